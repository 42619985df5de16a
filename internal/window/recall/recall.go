// Package recall lets the model search what its window no longer holds: the
// session file, in which every message stands in full. It owns the search and
// the SearchConversation tool. It opens the file through the function it is
// given, changes nothing, and knows of the file only that it holds one JSON
// object a line with a message in it.
package recall

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// Name is the name of the tool.
const Name = "SearchConversation"

// Limits of one search.
const (
	maxLine    = 16 << 20 // longer lines are passed over
	maxExcerpt = 600      // bytes of one match
	most       = 30       // matches
	usual      = 8
)

// A Query says what to look for.
type Query struct {
	// Text is what to find: all of its words in one block, in any case; a
	// regular expression if Regexp is set.
	Text   string
	Regexp bool
	Role   string // user, assistant, tool; "" is any
	Max    int    // newest matches to return; 0 is 8
}

// A Match is one block that matches.
type Match struct {
	Time string // as the file has it
	Who  string // user, assistant, call of NAME, result, note
	Text string // the place, with what stands around it
}

// Search returns the newest matches in r, oldest of them first, and how many
// there are in all. Lines that it cannot read are passed over.
func Search(ctx context.Context, r io.Reader, q Query) (ms []Match, total int, err error) {
	find, err := q.finder()
	if err != nil {
		return nil, 0, err
	}
	n := q.Max
	if n <= 0 {
		n = usual
	}
	n = min(n, most)
	lines := bufio.NewReaderSize(r, 256<<10)
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, 0, err
		}
		line, rerr := nextLine(lines)
		for _, m := range matches(line, q.Role, find) {
			total++
			ms = append(ms, m)
			if len(ms) > 4*n { // keep the newest, without moving them each time
				ms = append(ms[:0], ms[len(ms)-n:]...)
			}
		}
		if rerr == io.EOF {
			return ms[max(0, len(ms)-n):], total, nil
		}
		if rerr != nil {
			return nil, 0, fmt.Errorf("reading the session file: %w", rerr)
		}
	}
}

// nextLine returns the next line, nil in place of one that is too long.
func nextLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	over := false
	for {
		part, err := r.ReadSlice('\n')
		if over = over || len(line)+len(part) > maxLine; over {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// A finder returns where a text matches, or start < 0.
type finder func(text string) (start, end int)

func (q Query) finder() (finder, error) {
	if strings.TrimSpace(q.Text) == "" {
		return nil, errors.New("the query is empty")
	}
	if q.Regexp {
		re, err := regexp.Compile(q.Text)
		if err != nil {
			return nil, fmt.Errorf("the query is no regular expression: %w", err)
		}
		return func(s string) (int, int) {
			if m := re.FindStringIndex(s); m != nil {
				return m[0], m[1]
			}
			return -1, -1
		}, nil
	}
	words := strings.Fields(strings.ToLower(q.Text))
	return func(s string) (int, int) {
		low := strings.ToLower(s)
		for _, w := range words[1:] {
			if !strings.Contains(low, w) {
				return -1, -1
			}
		}
		i := strings.Index(low, words[0])
		if i < 0 {
			return -1, -1
		}
		// Lower case may be shorter or longer than what it stands for.
		i = min(i, len(s))
		return i, min(i+len(words[0]), len(s))
	}, nil
}

// matches returns the blocks of one line that match.
func matches(line []byte, role string, find finder) []Match {
	var w struct {
		Type      string `json:"type"`
		Timestamp string `json:"timestamp"`
		IsMeta    bool   `json:"isMeta"`
		Message   struct {
			Content json.RawMessage `json:"content"`
		} `json:"message"`
	}
	if len(line) == 0 || json.Unmarshal(line, &w) != nil || w.Type != "user" && w.Type != "assistant" {
		return nil
	}
	blocks, _, err := agent.DecodeContent(w.Message.Content)
	if err != nil {
		return nil
	}
	var out []Match
	for _, b := range blocks {
		who, group, text := w.Type, w.Type, ""
		switch b := b.(type) {
		case *agent.Text:
			if text = b.Text; w.IsMeta {
				who = "note"
			}
		case *agent.ToolUse:
			if b.Name == Name {
				continue // a search must not find itself
			}
			who, group, text = "call of "+b.Name, "tool", string(b.Input)
		case *agent.ToolResult:
			who, group, text = "result", "tool", agent.TextOf(b.Blocks)
		}
		if role != "" && role != group {
			continue
		}
		if start, end := find(text); start >= 0 {
			out = append(out, Match{w.Timestamp, who, excerpt(text, start, end)})
		}
	}
	return out
}

// excerpt returns the match with what stands around it.
func excerpt(s string, start, end int) string {
	end = min(end, start+maxExcerpt)
	room := (maxExcerpt - (end - start)) / 2
	from, to := max(0, start-room), min(len(s), end+room)
	for from > 0 && !utf8.RuneStart(s[from]) {
		from--
	}
	for to < len(s) && !utf8.RuneStart(s[to]) {
		to++
	}
	out := s[from:to]
	if from > 0 {
		out = "…" + out
	}
	if to < len(s) {
		out += "…"
	}
	return out
}

type tool struct {
	open func() (io.ReadCloser, error)
}

// New returns the tool. open opens the session file of the conversation.
func New(open func() (io.ReadCloser, error)) agent.Tool { return tool{open} }

type input struct {
	Query  string  `json:"query"`
	Regexp bool    `json:"regexp"`
	Role   string  `json:"role"`
	Max    float64 `json:"max_results"`
}

func (tool) Spec() agent.Spec {
	return agent.Spec{Name: Name, Deferred: true,
		Description: "Searches the full text of this conversation, including what was summarised or cleared since. Finds what the user said, what you said, your calls and their results.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"query":{"type":"string","description":"Words that must all occur, or a regular expression"},` +
			`"regexp":{"type":"boolean","description":"Take the query as a regular expression","default":false},` +
			`"role":{"type":"string","enum":["user","assistant","tool"],"description":"Search only there"},` +
			`"max_results":{"type":"number","description":"How many of the newest matches to show","default":8}},` +
			`"required":["query"],"additionalProperties":false}`)}
}

func (tool) Inspect(raw json.RawMessage) (agent.Effects, error) {
	var in input
	if err := json.Unmarshal(raw, &in); err != nil {
		return agent.Effects{}, fmt.Errorf("reading the input: %w", err)
	}
	_, err := Query{Text: in.Query, Regexp: in.Regexp}.finder()
	return agent.Effects{Concurrent: true, ReadOnly: true, Idempotent: true}, err
}

func (t tool) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	var in input
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return agent.Result{}, fmt.Errorf("reading the input: %w", err)
	}
	f, err := t.open()
	if err != nil {
		return agent.Result{}, fmt.Errorf("opening the session file: %w", err)
	}
	defer f.Close()
	ms, total, err := Search(ctx, f, Query{Text: in.Query, Regexp: in.Regexp, Role: in.Role, Max: int(min(in.Max, most))})
	if err != nil {
		return agent.Result{}, err
	}
	if total == 0 {
		return agent.Textual("Nothing in this conversation matches."), nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d matches, the newest last:\n", len(ms), total)
	for _, m := range ms {
		fmt.Fprintf(&b, "\n[%s, %s]\n%s\n", m.Who, m.Time, m.Text)
	}
	return agent.Textual(b.String()), nil
}
