package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// Conform does at c what the scenarios of the conformance suite want of a
// client: it connects, signs in by following redirects without a browser,
// calls each tool with arguments made from its schema, and answers questions
// with their defaults. It fails if the server cannot be reached; what a tool
// answers is the scenario's business.
func Conform(ctx context.Context, o Options, c Config) error {
	o.Ask = func(_ context.Context, q agent.Question) (agent.Answer, error) {
		if q.Kind != agent.AskElicit {
			return agent.Answer{}, agent.ErrNoOne
		}
		return agent.Answer{Payload: json.RawMessage(`{"action":"accept","content":{}}`)}, nil
	}
	set := New(o)
	defer set.Close()
	s := &Server{Config: c, set: set, state: Pending, ready: make(chan struct{})}
	s.redirect = "http://localhost:3000/callback"
	s.fetch = func(ctx context.Context, page string) (string, error) { return follow(ctx, *o.HTTP(), page) }
	set.servers = append(set.servers, s)
	s.connect(ctx)
	if st := s.Status(); st.State != Connected {
		return fmt.Errorf("%s: %s", st.State, st.Err)
	}
	s.mu.Lock()
	tools := s.tools
	s.mu.Unlock()
	for _, t := range tools {
		args, err := json.Marshal(sample(t.schema))
		if err != nil {
			return err
		}
		if _, err := t.Run(ctx, agent.Call{ID: "conformance", Name: t.name, Input: args, Progress: func(agent.Progress) {}}); err != nil {
			return fmt.Errorf("calling %s: %w", t.def.Name, err)
		}
	}
	return nil
}

// follow opens page and returns where it sends the browser.
func follow(ctx context.Context, client http.Client, page string) (string, error) {
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if to := resp.Header.Get("Location"); to != "" {
		return to, nil
	}
	return "", errors.New("the sign-in page sends the browser nowhere")
}

// sample makes arguments that fit a schema.
func sample(schema json.RawMessage) map[string]any {
	var s struct {
		Properties map[string]struct {
			Type    any   `json:"type"`
			Enum    []any `json:"enum"`
			Default any   `json:"default"`
		} `json:"properties"`
	}
	args := map[string]any{}
	if json.Unmarshal(schema, &s) != nil {
		return args
	}
	for name, p := range s.Properties {
		switch {
		case p.Default != nil:
			args[name] = p.Default
		case len(p.Enum) > 0:
			args[name] = p.Enum[0]
		default:
			switch p.Type {
			case "number", "integer":
				args[name] = 1
			case "boolean":
				args[name] = true
			case "array":
				args[name] = []any{}
			case "object":
				args[name] = map[string]any{}
			default:
				args[name] = "text"
			}
		}
	}
	return args
}
