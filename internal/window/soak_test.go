package window_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/net/modelserver"
	"github.com/seed-eb844fcb/cinch/internal/window"
	"github.com/seed-eb844fcb/cinch/internal/window/compact"
	"github.com/seed-eb844fcb/cinch/internal/window/memory"
)

// The figures in docs/context.md are those of -turns 2000.
var soakTurns = flag.Int("turns", 150, "turns of TestLongSession")

// A long session in a window of 20,000 tokens: the rules stand in every
// request exactly once, nobody hears of a prompt that is too long, and the
// cache is read.
func TestLongSession(t *testing.T) {
	t.Parallel()
	const marker = "RULE-MARKER-77"
	turns := *soakTurns
	fsys := fstest.MapFS{
		"r/CLAUDE.md":           {Data: []byte("Always mention " + marker + ".")},
		"r/.claude/rules/go.md": {Data: []byte("---\npaths: \"**/*.go\"\n---\nGo rule.")},
		"r/a.go":                {Data: []byte("package a\n")},
	}
	opening := func(ctx context.Context) []agent.Block {
		return window.Opening{Memory: memory.Load(ctx, memory.Options{FS: fsys, Cwd: "/r"}), Environment: window.Environment{Cwd: "/r", Date: "2026-09-01"}}.Blocks(ctx)
	}
	var missing, summaries atomic.Int64
	mind := func(_ context.Context, q *modelserver.Request) (modelserver.Script, error) {
		if strings.Count(q.All(), marker) != 1 {
			missing.Add(1)
		}
		switch {
		case strings.Contains(q.Last(), "<summary>"):
			summaries.Add(1)
			return answer("<summary>" + strings.Repeat("Work went on. ", 150) + "</summary>"), nil
		case len(q.Results()) == 0:
			in, _ := json.Marshal(map[string]string{"file_path": "/r/a.go", "n": fmt.Sprint(q.N)})
			return modelserver.Script{Steps: []modelserver.Step{modelserver.Text{Text: "I look."}, modelserver.Tool{ID: fmt.Sprint("t", q.N), Name: "Read", Input: in}}}, nil
		}
		return answer("It is so, as " + strings.Repeat("shown ", 20)), nil
	}
	r := newRig(t, setup{Options: modelserver.Options{Brain: mind, Window: 20_000, Forget: true},
		limits:  compact.Wish{Window: 20_000}.Limits(),
		builder: window.Options{Tools: []agent.Spec{{Name: "Read", Description: "Reads a file.", Schema: json.RawMessage(`{"type":"object"}`)}}},
		change: func(o *compact.Options) {
			o.Restore = window.Restore{Opening: opening, FS: fsys}.Around
		}})
	r.run = func(u agent.ToolUse) []agent.Block { return []agent.Block{text(strings.Repeat("1\tpackage a\n", 120))} }
	r.h = append(r.h, agent.Message{Role: agent.User, UUID: "0", Blocks: append(opening(t.Context()), text("begin"))}.Encode())
	r.say(agent.Assistant, "m0", text("ready"))
	for i := range turns {
		if _, err := r.turn(fmt.Sprintf("turn %d: what about this?", i)); err != nil {
			t.Fatalf("turn %d: %v", i, err)
		}
	}
	r.fine()
	if n := missing.Load(); n > 0 {
		t.Errorf("%d requests without the rules, or with them twice", n)
	}
	share := float64(r.reads.read) / float64(r.reads.expected)
	if share < 0.9 {
		t.Errorf("%.1f %% was read from the cache", 100*share)
	}
	cleared := 0
	for _, c := range r.cuts {
		if c.Stage == "clear" || c.Stage == "snip" || c.Stage == "collapse" {
			cleared++
		}
	}
	t.Logf("%d turns, %d requests, %d summaries, %d stage cuts, %.1f %% of the prompt tokens read from the cache on turns without a planned break",
		turns, len(r.e.Records()), summaries.Load(), cleared, 100*share)
	for _, n := range r.notes {
		t.Errorf("told: %s", n)
	}
}
