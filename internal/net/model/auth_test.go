package model

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/net/model/limit"
)

// keyed answers only requests that carry the key.
func keyed(key func() string) turn {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != key() || r.Header.Get("Authorization") != "Bearer "+key() {
			status(401, "authentication_error", "invalid x-api-key")(w, r)
			return
		}
		ok("hi")(w, r)
	}
}

func TestHelper(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	next := func(context.Context) (string, error) { return fmt.Sprintf("key%d\n", calls.Add(1)), nil }
	right := "key1"
	bubble(t, Options{Auth: Auth{Helper: next, HelperTTL: time.Minute}}, []turn{keyed(func() string { return right })}, func(t *testing.T, c *Client, s *script) {
		ask := func(want ...string) {
			t.Helper()
			got := collect(t.Context(), c, prompt("x"))
			if d := cmp.Diff(want, got.lines); d != "" || got.err != nil {
				t.Errorf("%v (-want +got):\n%s", got.err, d)
			}
		}
		ask(again(1, "hi")...)
		ask(again(2, "hi")...) // from memory
		if n := calls.Load(); n != 1 {
			t.Errorf("the helper ran %d times, want once", n)
		}
		time.Sleep(2 * time.Minute)
		right = "key2"
		ask(again(3, "hi")...) // the old one was too old
		right = "key3"         // it was revoked: ask again, at once
		ask(append([]string{"retrying 1/10 authentication_failed 401"}, again(5, "hi")...)...)
	})
}

func TestHelperFails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		helper func(context.Context) (string, error)
		what   string
		n      int
	}{
		{"error", func(context.Context) (string, error) { return "", errors.New("exit status 3") }, "your apiKeyHelper script is failing: exit status 3", 0},
		{"nothing", func(context.Context) (string, error) { return " \n", nil }, "it printed nothing", 0},
		{"two lines", func(context.Context) (string, error) { return "a\nb", nil }, "character 2 of its output", 0},
		{"always the same", func(context.Context) (string, error) { return "k", nil }, "printed the refused key again", 1},
	} {
		bubble(t, Options{Auth: Auth{Helper: tt.helper}}, []turn{status(401, "authentication_error", "invalid x-api-key")}, func(t *testing.T, c *Client, s *script) {
			checkFault(t, collect(t.Context(), c, prompt("x")).err, agent.FaultAuth, tt.what)
			if n := len(s.asked()); n != tt.n {
				t.Errorf("%s: %d requests, want %d", tt.name, n, tt.n)
			}
		})
	}
	// A helper that never ends is told, and given up.
	hang := func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }
	bubble(t, Options{Auth: Auth{Helper: hang}, MaxRetries: -1}, []turn{ok("x")}, func(t *testing.T, c *Client, s *script) {
		got := collect(t.Context(), c, prompt("x"))
		checkFault(t, got.err, agent.FaultTransient, "waiting for the credential")
		if got.took != helperClock || got.lines[0] != "waiting for the credential 10s of 1m0s" {
			t.Errorf("after %v: %v", got.took, got)
		}
	})
}

// Many requests at once run the helper once.
func TestHelperRunsOnce(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	slow := func(context.Context) (string, error) {
		time.Sleep(time.Second)
		return fmt.Sprintf("key%d", calls.Add(1)), nil
	}
	bubble(t, Options{Auth: Auth{Helper: slow}}, []turn{keyed(func() string { return "key1" })}, func(t *testing.T, c *Client, _ *script) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if got := collect(t.Context(), c, prompt("x")); got.err != nil || got.took > time.Second+linger {
					t.Errorf("%v after %v", got.err, got.took)
				}
			})
		}
		wg.Wait()
		if n := calls.Load(); n != 1 {
			t.Errorf("the helper ran %d times", n)
		}
	})
}

func TestSource(t *testing.T) {
	t.Parallel()
	h := func(context.Context) (string, error) { return "", nil }
	for want, a := range map[string]Auth{"token": {Key: "k", Token: "t", Helper: h}, "key": {Key: "k", Helper: h}, "helper": {Helper: h}, "none": {}} {
		if got := a.Source(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	berlin := time.FixedZone("CET", 3600)
	at := func(d time.Duration) string {
		return fmt.Sprint(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(d).Unix())
	}
	warning := func(w http.ResponseWriter, r *http.Request) {
		for k, v := range map[string]string{"status": "allowed_warning", "representative-claim": "five_hour", "5h-status": "allowed_warning", "5h-utilization": "0.85", "5h-reset": at(2 * time.Hour), "7d-utilization": "0.1", "7d-status": "allowed"} {
			w.Header().Set("Anthropic-Ratelimit-Unified-"+k, v)
		}
		ok("hi")(w, r)
	}
	rejected := func(w http.ResponseWriter, r *http.Request) {
		for k, v := range map[string]string{"status": "rejected", "representative-claim": "five_hour", "5h-status": "rejected", "5h-utilization": "1.0", "5h-reset": at(2*time.Hour + 30*time.Minute), "7d-reset": at(72 * time.Hour)} {
			w.Header().Set("Anthropic-Ratelimit-Unified-"+k, v)
		}
		status(429, "rate_limit_error", "This request would exceed your limit")(w, r)
	}
	bubble(t, Options{Local: berlin}, []turn{warning, rejected}, func(t *testing.T, c *Client, s *script) {
		if l := c.Limits(); !l.At.IsZero() {
			t.Errorf("limits before any answer: %+v", l)
		}
		collect(t.Context(), c, prompt("x"))
		got := c.Limits()
		want := Limits{
			At: got.At, Headers: got.Headers, Claim: "five_hour", Status: "allowed_warning",
			Windows: []limit.Window{{Name: "5h", Status: "allowed_warning", Used: 0.85, Reset: time.Unix(946684800+7200, 0)}, {Name: "7d", Status: "allowed", Used: 0.1}},
		}
		if d := cmp.Diff(want, got); d != "" || len(got.Headers) != 7 || got.Headers["anthropic-ratelimit-unified-5h-utilization"] != "0.85" {
			t.Errorf("(-want +got):\n%s\n%v", d, got.Headers)
		}
		// 2.5 hours are too long to sit out: told at once, with window and local time.
		r := collect(t.Context(), c, prompt("x"))
		checkFault(t, r.err, agent.FaultTransient, "This request would exceed your limit · 5-hour limit (100% used) resets at 03:30 CET (in 2h30m) · the server asks to wait 2h30m")
		if r.took > linger || len(s.asked()) != 2 {
			t.Errorf("%d requests in %v", len(s.asked()), r.took)
		}
		if got := c.Limits().Status; got != "rejected" {
			t.Errorf("status %q", got)
		}
	})
	bubble(t, Options{Local: berlin, MaxRetries: -1}, []turn{status(429, "rate_limit_error", "slow down", "anthropic-ratelimit-requests-remaining", "0", "anthropic-ratelimit-requests-reset", "2000-01-02T10:00:00Z")}, func(t *testing.T, c *Client, _ *script) {
		checkFault(t, collect(t.Context(), c, prompt("x")).err, agent.FaultTransient, "slow down · rate limit resets at Sun 2 Jan 11:00 CET (in 34h0m)")
	})
}

func TestFromEnv(t *testing.T) {
	t.Parallel()
	env := func(m map[string]string) func(string) string { return func(k string) string { return m[k] } }
	o, warnings, err := FromEnv(env(map[string]string{
		"ANTHROPIC_BASE_URL": "http://h", "ANTHROPIC_API_KEY": " k\n", "ANTHROPIC_CUSTOM_HEADERS": "A: b", "ANTHROPIC_BETAS": "x-1, y-2",
		"CLAUDE_CODE_EXTRA_BODY": `{"a":1}`, "ANTHROPIC_DEFAULT_OPUS_MODEL": "my-opus", "ANTHROPIC_SMALL_FAST_MODEL": "tiny",
		"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "64_000", "CLAUDE_CODE_MAX_RETRIES": "0", "API_TIMEOUT_MS": "2e3", "CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS": "1",
		"MAX_THINKING_TOKENS": "500", "DISABLE_PROMPT_CACHING_HAIKU": "yes", "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS": "1", "ENABLE_TOOL_SEARCH": "auto:5",
		"ENABLE_PROMPT_CACHING_1H": "1", "CLAUDE_CODE_RETRY_WATCHDOG": "on", "CLAUDE_CODE_MAX_CONTEXT_TOKENS": "lots",
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := Options{
		BaseURL: "http://h", Auth: Auth{Key: "k"}, Headers: []Header{{"A", "b", "ANTHROPIC_CUSTOM_HEADERS line 1"}}, Betas: []string{"x-1", "y-2"},
		Models:  Models{Aliases: map[string]string{"opus": "my-opus", "haiku": "tiny"}, MaxOutput: 64000},
		Without: []string{"betas", "cache haiku"}, With: []string{"tool-search"}, MaxRetries: -1, Patient: true, MarkTTL: "1h",
		Clocks: Clocks{Connect: 2 * time.Second, FirstByte: 2 * time.Second, Whole: 2 * time.Second, Idle: 10 * time.Second, Total: 10 * time.Minute},
		Think:  agent.Thought{Type: "enabled", Budget: 1024},
	}
	want.Extra = o.Extra
	if string(o.Extra["a"]) != "1" || len(o.Extra) != 1 {
		t.Errorf("extra %v", o.Extra)
	}
	if d := cmp.Diff(want, o, cmp.Comparer(func(a, b func(context.Context) (string, error)) bool { return (a == nil) == (b == nil) })); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if len(warnings) != 1 || warnings[0].Error() != `CLAUDE_CODE_MAX_CONTEXT_TOKENS: "lots" is no number` {
		t.Errorf("warnings %v", warnings)
	}
	_, _, err = FromEnv(env(map[string]string{"ANTHROPIC_CUSTOM_HEADERS": "x", "CLAUDE_CODE_EXTRA_BODY": "[]", "ANTHROPIC_AUTH_TOKEN": "a\x00b"}))
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 3 || !strings.Contains(lines[2], "ANTHROPIC_AUTH_TOKEN: invalid request header value: character 2") || strings.Contains(err.Error(), "\x00") {
		t.Errorf("got %q", lines)
	}
}

func TestEnvThinking(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"CLAUDE_CODE_DISABLE_THINKING": {"thinking"}, "CLAUDE_CODE_DISABLE_ADAPTIVE_THINKING": {"adaptive-thinking"}, "DISABLE_INTERLEAVED_THINKING": {"interleaved-thinking"},
	} {
		o, _, _ := FromEnv(func(k string) string {
			if k == name {
				return "true"
			}
			return ""
		})
		if !slices.Equal(o.Without, want) {
			t.Errorf("%s: without %v", name, o.Without)
		}
	}
}
