package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// strict is a gateway that refuses requests which have one of the given
// strings in body or betas, with the message that goes with it.
func strict(refuse map[string]string) turn {
	return func(w http.ResponseWriter, r *http.Request) {
		s := r.Context().Value(bodyKey{}).(string)
		for _, what := range slices.Sorted(keysOf(refuse)) {
			if strings.Contains(s, what) {
				status(400, "invalid_request_error", refuse[what])(w, r)
				return
			}
		}
		ok("hi")(w, r)
	}
}

func keysOf(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// TestLearning: a refusal that names a beta or a field drops that one thing,
// once, and is remembered.
func TestLearning(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		model  string
		change func(*agent.Request)
		refuse map[string]string
		denied []string // features, as learned
		n      int      // requests of the first call
	}{
		{"a beta by its value", "opus", nil, map[string]string{"effort-2025-11-24": "Unexpected value(s) `effort-2025-11-24` for the `anthropic-beta` header."}, []string{"effort claude-opus-5-5"}, 2},
		{"a beta that is not named", "opus", func(r *agent.Request) { r.Features = []string{"context-management"} },
			map[string]string{"effort-2025": "invalid beta flag", "context-management-2025": "invalid beta flag"}, []string{"context-management", "effort claude-opus-5-5"}, 2},
		{"a beta of the user's", "opus", func(r *agent.Request) { r.Features = []string{"own-2026-01-01"} }, map[string]string{"own-2026": "unknown beta own-2026-01-01"}, []string{"own-2026-01-01"}, 2},
		{"deferred tools", "opus", func(r *agent.Request) {
			r.Tools = json.RawMessage(`[{"name":"T","input_schema":{},"defer_loading":true}]`)
		},
			map[string]string{"defer_loading": "tools.0.custom.defer_loading: Extra inputs are not permitted"}, []string{"tool-search"}, 2},
		{"context management", "opus", func(r *agent.Request) {
			r.Extra = map[string]json.RawMessage{"context_management": json.RawMessage(`{}`)}
		}, map[string]string{"context_management": "context_management: Extra inputs are not permitted"}, []string{"context-management"}, 2},
		{"display", "opus", nil, map[string]string{"omitted": "thinking.adaptive.display: Extra inputs are not permitted"}, []string{"thinking-display claude-opus-5-5"}, 2},
		{"adaptive, then all thinking", "qwen", nil, map[string]string{`"adaptive"`: "thinking: Input tag 'adaptive' found using 'type' does not match any of the expected tags: 'disabled', 'enabled'", `"enabled"`: "thinking is not supported by this model"},
			[]string{"adaptive-thinking qwen", "thinking qwen"}, 3},
		{"adaptive by its type", "opus", nil, map[string]string{`"adaptive"`: "thinking.type: Input should be 'enabled' or 'disabled'"}, []string{"adaptive-thinking claude-opus-5-5"}, 2},
		{"effort", "opus", nil, map[string]string{`"effort"`: "This model does not support the effort parameter."}, []string{"effort claude-opus-5-5"}, 2},
		{"output_config", "opus", nil, map[string]string{"output_config": "output_config: Extra inputs are not permitted"}, []string{"output-config"}, 2},
		{"cache marks", "opus", func(r *agent.Request) { r.Mark = true }, map[string]string{"cache_control": "messages.0.content.0.text.cache_control: Extra inputs are not permitted"}, []string{"cache"}, 2},
		{"metadata", "opus", nil, map[string]string{"user_id": "metadata.user_id: Extra inputs are not permitted"}, []string{"metadata"}, 2},
		{"a token that says it", "opus", nil, map[string]string{`"effort"`: "capability_rejected: effort (this route)"}, []string{"effort claude-opus-5-5"}, 2},
		{"several, one after the other", "opus", func(r *agent.Request) { r.Mark = true }, map[string]string{"cache_control": "cache_control is not supported", "output_config": "Unknown field output_config", "omitted": "thinking.display: Extra inputs are not permitted"},
			[]string{"cache", "output-config", "thinking-display claude-opus-5-5"}, 4},
		{"a refusal that names nothing", "opus", func(r *agent.Request) { r.Mark = true }, map[string]string{"thinking": "Bad Request"},
			[]string{"adaptive-thinking claude-opus-5-5", "effort claude-opus-5-5", "output-config", "thinking claude-opus-5-5", "thinking-display claude-opus-5-5"}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, Options{UserID: "u", With: []string{"tool-search"}}, []turn{strict(tt.refuse)}, func(t *testing.T, c *Client, s *script) {
				req := prompt("x")
				req.Model = tt.model
				if tt.change != nil {
					tt.change(req)
				}
				if got := collect(t.Context(), c, req); got.err != nil || got.lines[len(got.lines)-1] != "done" {
					t.Errorf("%v\n%v", got.err, got)
				}
				if n := len(s.asked()); n != tt.n {
					t.Errorf("%d requests, want %d", n, tt.n)
				}
				var denied []string
				for _, k := range c.Caps() {
					if !k.Allowed {
						denied = append(denied, strings.TrimSpace(k.Feature+" "+k.Model))
					}
				}
				if d := cmp.Diff(tt.denied, denied); d != "" {
					t.Errorf("learned (-want +got):\n%s", d)
				}
				// The second call asks for it no more.
				if got := collect(t.Context(), c, req); got.err != nil || len(s.asked()) != tt.n+1 {
					t.Errorf("the second call made %d requests (%v)", len(s.asked())-tt.n, got.err)
				}
			})
		})
	}
}

// What a refusal says of the content is not taken for a feature.
func TestNotLearned(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		message string
		fault   agent.Fault
		path    string
	}{
		{"messages.1.content.0: Invalid `signature` in `thinking` block", agent.FaultBlock, "messages.1.content.0"},
		{"messages.3.content.12.image.source.base64.data: image exceeds 5 MB maximum", agent.FaultBlock, "messages.3.content.12"},
		{"messages.2: `tool_use` ids were found without `tool_result` blocks", agent.FaultOther, "messages.2"},
		{"Could not process image", agent.FaultBlock, ""},
		{"tools.0.custom.input_schema.properties.effort: JSON schema is invalid", agent.FaultOther, ""},
		{"messages.0.content.0.text.thinking: unexpected", agent.FaultBlock, "messages.0.content.0"},
	} {
		bubble(t, Options{BaseURL: "http://api.anthropic.com"}, []turn{status(400, "invalid_request_error", tt.message)}, func(t *testing.T, c *Client, s *script) {
			got := collect(t.Context(), c, prompt("x"))
			e, is := errors.AsType[*agent.ModelError](got.err)
			if !is || e.Fault != tt.fault || e.Path != tt.path || e.Message != tt.message || len(s.asked()) != 1 {
				t.Errorf("%s: got %+v after %d requests", tt.message, e, len(s.asked()))
			}
			for _, k := range c.Caps() {
				if !k.Allowed {
					t.Errorf("%s: learned %+v", tt.message, k)
				}
			}
		})
	}
}

// A refusal that stays says what it said, and nothing is learned from it.
func TestBareDoesNotHelp(t *testing.T) {
	t.Parallel()
	bubble(t, Options{}, []turn{status(400, "invalid_request_error", "no")}, func(t *testing.T, c *Client, s *script) {
		got := collect(t.Context(), c, prompt("x"))
		checkFault(t, got.err, agent.FaultOther, "no")
		if n := len(s.asked()); n != 2 {
			t.Errorf("%d requests, want 2", n)
		}
		for _, k := range c.Caps() {
			if !k.Allowed && k.Feature != "tool-search" {
				t.Errorf("learned %+v", k)
			}
		}
	})
}

// max_tokens that does not fit is lowered once.
func TestLowerMaxTokens(t *testing.T) {
	t.Parallel()
	full := "input length and `max_tokens` exceed context limit: 150000 + 64000 > 200000, decrease input length or `max_tokens` and try again"
	bubble(t, Options{}, []turn{status(400, "invalid_request_error", full), ok("hi")}, func(t *testing.T, c *Client, s *script) {
		req := prompt("x")
		req.Model = "claude-opus-4-8"
		if got := collect(t.Context(), c, req); got.err != nil {
			t.Error(got.err)
		}
		if got := field(t, s.asked()[1].body, "max_tokens"); got != "49000" {
			t.Errorf("max_tokens %s, want 49000", got)
		}
	})
	bubble(t, Options{}, []turn{status(400, "invalid_request_error", strings.Replace(full, "150000", "199000", 1))}, func(t *testing.T, c *Client, s *script) {
		checkFault(t, collect(t.Context(), c, prompt("x")).err, agent.FaultTooLong, "exceed context limit")
		if n := len(s.asked()); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
	})
}

func TestCountTokens(t *testing.T) {
	t.Parallel()
	count := raw(200, "application/json", `{"input_tokens":42}`)
	bubble(t, Options{UserID: "u"}, []turn{status(529, "overloaded_error", "x"), count}, func(t *testing.T, c *Client, s *script) {
		req := prompt("x")
		req.Tools = json.RawMessage(`[{"name":"T"}]`)
		n, err := c.CountTokens(t.Context(), req)
		if n != 42 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
		a := s.asked()
		if len(a) != 2 || a[1].path != "/v1/messages/count_tokens?beta=true" {
			t.Errorf("asked %+v", a)
		}
		if want := `{"model":"claude-opus-5-5","messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"tools":[{"name":"T"}],"thinking":{"type":"adaptive","display":"omitted"}}`; a[1].body != want {
			t.Errorf("got  %s\nwant %s", a[1].body, want)
		}
	})
	for _, none := range []turn{status(404, "not_found_error", "x"), raw(405, "", ""), raw(200, "text/html", "<html>")} {
		bubble(t, Options{}, []turn{none}, func(t *testing.T, c *Client, s *script) {
			for range 2 {
				if _, err := c.CountTokens(t.Context(), prompt("x")); !errors.Is(err, ErrNoCount) {
					t.Errorf("got %v", err)
				}
			}
			if n := len(s.asked()); n != 1 {
				t.Errorf("asked %d times, want 1", n)
			}
		})
	}
	bubble(t, Options{}, []turn{status(500, "api_error", "x")}, func(t *testing.T, c *Client, s *script) {
		_, err := c.CountTokens(t.Context(), prompt("x"))
		checkFault(t, err, agent.FaultTransient, "x")
		if n := len(s.asked()); n != 3 {
			t.Errorf("asked %d times, want 3", n)
		}
	})
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	gate := strict(map[string]string{`"strict"`: "tools.0.custom.strict: Extra inputs are not permitted", "count_tokens": "no"})
	bubble(t, Options{}, []turn{gate}, func(t *testing.T, c *Client, s *script) {
		var got []string
		for p := range c.Doctor(t.Context(), "opus") {
			got = append(got, fmt.Sprintf("%v %s: %s", p.OK, p.Name, p.Detail))
		}
		want := []string{
			"true streaming: stop end_turn, 5 tokens in, 3 out", "true one piece: stop end_turn, 5 tokens in, 3 out", "false count tokens: model: send: no (status 400) (request req_3)",
			"true cache: stop end_turn, 5 tokens in, 3 out", "true thinking: stop end_turn, 5 tokens in, 3 out", "true effort: stop end_turn, 5 tokens in, 3 out",
			"true context-management: stop end_turn, 5 tokens in, 3 out", "false tool-search: not used: not the public API", "false strict-tools: tools.0.custom.strict: Extra inputs are not permitted",
			"true eager-input: stop end_turn, 5 tokens in, 3 out",
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}
