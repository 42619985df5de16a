package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// search is the tool WebSearch.
type search struct {
	o Options

	mu      sync.Mutex
	session string
	count   int
}

const searchSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{` +
	`"query":{"description":"What to search for","type":"string","minLength":2},` +
	`"allowed_domains":{"description":"Only results from these hosts","type":"array","items":{"type":"string"}},` +
	`"blocked_domains":{"description":"No results from these hosts","type":"array","items":{"type":"string"}}},` +
	`"required":["query"],"additionalProperties":false}`

func (s *search) Spec() agent.Spec {
	return agent.Spec{Name: "WebSearch", Schema: json.RawMessage(searchSchema), Description: `Searches the web and returns what was found, with the addresses it comes from.

- Use it for what is newer than you know or changes often; put the year into the query where it matters.
- allowed_domains or blocked_domains, not both, narrow the search.
- Name the sources you used, as links, in your answer. Read a page with WebFetch where an excerpt is not enough.`}
}

type searchInput struct {
	Query   string   `json:"query"`
	Allowed []string `json:"allowed_domains"`
	Blocked []string `json:"blocked_domains"`
}

func parseSearch(raw json.RawMessage) (in searchInput, err error) {
	if err := json.Unmarshal(raw, &in); err != nil {
		return in, fmt.Errorf("reading the input: %w", err)
	}
	if len([]rune(strings.TrimSpace(in.Query))) < 2 {
		return in, errors.New("query has less than two characters")
	}
	if len(in.Allowed) > 0 && len(in.Blocked) > 0 {
		return in, errors.New("give allowed_domains or blocked_domains, not both")
	}
	return in, nil
}

func (s *search) Inspect(raw json.RawMessage) (agent.Effects, error) {
	if _, err := parseSearch(raw); err != nil {
		return agent.Effects{}, err
	}
	return agent.Effects{Concurrent: true, ReadOnly: true, Idempotent: true}, nil
}

// take counts a search and reports whether it is one too many.
func (s *search) take() bool {
	session := ""
	if s.o.Session != nil {
		session = s.o.Session()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if session != s.session {
		s.session, s.count = session, 0
	}
	if s.count >= s.o.MaxSearches {
		return false
	}
	s.count++
	return true
}

func (s *search) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	in, err := parseSearch(c.Input)
	if err != nil {
		return agent.Result{}, err
	}
	if !s.take() {
		return agent.Textual(fmt.Sprintf("The %d web searches of this session are used up. Go on with what you have found.", s.o.MaxSearches)), nil
	}
	begin := time.Now()
	text, err := s.o.Search(ctx, in.Query, in.Allowed, in.Blocked)
	if err != nil {
		return agent.Result{}, fmt.Errorf("searching the web: %w", err)
	}
	if strings.TrimSpace(text) == "" {
		text = "Nothing was found."
	}
	res := agent.Textual(text)
	res.Detail = map[string]any{"query": in.Query, "results": []string{text}, "durationSeconds": time.Since(begin).Seconds()}
	return res, nil
}
