package window_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/net/modelserver"
	"github.com/seed-eb844fcb/cinch/internal/window/compact"
)

// Where an estimate would decide whether the history is shortened, the
// upstream is asked, once; its word counts in both directions, and without it
// the estimate does.
func TestCountDecides(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		turns   int // of about 1,000 tokens
		count   int
		err     error
		asked   int
		shorter bool
	}{
		"over, but counted as under":  {turns: 36, count: 20_000, asked: 1},
		"under, but counted as over":  {turns: 28, count: 36_000, asked: 1, shorter: true},
		"over, and it cannot count":   {turns: 36, err: errors.New("no such path"), asked: 1, shorter: true},
		"under, and it cannot count":  {turns: 28, err: errors.New("no such path"), asked: 1},
		"far below: nobody is asked":  {turns: 5, count: 36_000},
		"far above: nobody is asked":  {turns: 60, count: 20, shorter: true},
		"a count of nothing is none":  {turns: 36, count: 0, asked: 1, shorter: true},
		"counted, and still too many": {turns: 36, count: 39_000, asked: 1, shorter: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			r := newRig(t, setup{Options: modelserver.Options{Brain: brain("<summary>SUM</summary>", "reply")},
				limits: compact.Limits{Window: 40_000, Threshold: 32_000, Output: 4000, Auto: true},
				change: func(o *compact.Options) {
					o.Count = func(_ context.Context, req *agent.Request) (int, error) {
						asked++
						if len(req.Messages) != 4*tc.turns || req.System == nil || req.Tools == nil {
							t.Errorf("counted are %d messages", len(req.Messages))
						}
						return tc.count, tc.err
					}
				}})
			r.long(tc.turns)
			out := r.e.Fit(t.Context(), r.h)
			if out.Changed != tc.shorter || asked != tc.asked {
				t.Errorf("got %d questions, shortened: %t; %d tokens", asked, out.Changed, r.e.Tokens(r.h))
			}
			if tc.err == nil && tc.count > 0 && tc.asked > 0 && !out.Changed && r.e.Tokens(r.h) != tc.count {
				t.Errorf("got %d tokens, counted were %d", r.e.Tokens(r.h), tc.count)
			}
			if again := r.e.Fit(t.Context(), out.History); asked > tc.asked {
				t.Errorf("asked again, shortened: %t", again.Changed)
			}
			if len(r.e.Records()) != 0 {
				t.Error("a count was taken for a request")
			}
		})
	}
}

// The real count over HTTP: the request goes to the endpoint that counts, and
// an upstream without one is asked once.
func TestCountOverHTTP(t *testing.T) {
	t.Parallel()
	var r *rig
	r = newRig(t, setup{Options: modelserver.Options{Brain: brain("<summary>SUM</summary>", "reply")},
		limits: compact.Limits{Window: 40_000, Threshold: 32_000, Output: 4000, Auto: true},
		change: func(o *compact.Options) {
			o.Count = func(ctx context.Context, req *agent.Request) (int, error) { return r.client.CountTokens(ctx, req) }
		}})
	r.long(30)
	if _, err := r.turn("and now?"); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, x := range r.srv.Exchanges() {
		path, _, _ := strings.Cut(x.Path, "?")
		paths = append(paths, path)
	}
	if got := strings.Join(paths, " "); got != "/v1/messages/count_tokens /v1/messages" {
		t.Errorf("got requests %q", got)
	}
	r.fine()
}
