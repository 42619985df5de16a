package session

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// Turns upon turns, each with a tool result of the size tools cap theirs at: memory
// is what the history holds, and the last turns take no longer than the first.
func TestLongSession(t *testing.T) {
	const turns, size = 200, 30_000
	n := -1
	b := start(t, func(int, *agent.Request) []any {
		if n++; n%2 == 0 {
			return says("looking", fmt.Sprintf(`c%d T {"n":%d}`, n, n))
		}
		return says("done")
	}, func(o *Options) {
		o.Tools = NewTools(slow{name: "T", run: func(_ context.Context, c agent.Call) (agent.Result, error) {
			out := strings.Repeat("x", size) + string(c.ID)
			return agent.Result{Blocks: []agent.Block{&agent.Text{Text: out}}, Detail: map[string]string{"stdout": out + "."}}, nil
		}})
		o.Window = func(h []agent.Message) *agent.Request { return &agent.Request{Messages: h} }
	})
	took := make([]time.Duration, turns)
	for i := range turns {
		began := time.Now()
		b.prompt(fmt.Sprint(i))
		for { // until the turn has settled
			b.mu.Lock()
			n := len(b.log)
			idle := n > 0 && b.log[n-1].Body == agent.Body(agent.State{State: "idle"})
			b.log = b.log[max(0, n-1):]
			b.mu.Unlock()
			if idle {
				break
			}
			time.Sleep(20 * time.Microsecond)
		}
		took[i] = time.Since(began)
		b.mu.Lock()
		b.log = nil
		b.mu.Unlock()
		b.up.reqs = nil
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	early, late := sum(took[25:75]), sum(took[turns-50:])
	t.Logf("%d MB in use, turns 25-75 took %v, the last 50 %v", m.HeapAlloc>>20, early, late)
	if m.HeapAlloc > 50<<20 {
		t.Errorf("%d MB in use after %d turns", m.HeapAlloc>>20, turns)
	}
	if late > 10*early {
		t.Errorf("the last 50 turns took %v, early ones %v", late, early)
	}
	if h := b.s.History(); len(h) != 4*turns {
		t.Errorf("%d messages", len(h))
	}
	b.finish()
}

func sum(ds []time.Duration) (s time.Duration) {
	for _, d := range ds {
		s += d
	}
	return s
}
