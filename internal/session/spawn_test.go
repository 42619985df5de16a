package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// delegate is a session whose main model sends one agent for each prompt, in
// the call "a". The child is what f makes of it; what it left goes to got.
func delegate(t *testing.T, child model, change func(*Options), f func(c *Child)) (b *bench, got *Spawned, failed *error) {
	got, failed = new(Spawned), new(error)
	kids := &upstream{m: child}
	var send slow
	send = slow{name: "Agent", run: func(ctx context.Context, c agent.Call) (agent.Result, error) {
		k := Child{Type: "helper", Call: c.ID, Parent: c.Agent, Prompt: []agent.Block{&agent.Text{Text: "task"}}, Provider: kids,
			Tools: func(name string) agent.Tool {
				if name == "Agent" {
					return send
				}
				return b.s.o.Tools.Lookup(name)
			},
			Window: func(h []agent.Message) *agent.Request {
				return &agent.Request{Model: "kid", Messages: h, Purpose: "agent"}
			}}
		if f != nil {
			f(&k)
		}
		left, err := b.s.Spawn(ctx, k)
		if c.Agent == "" {
			*got, *failed = left, err
		}
		if err != nil {
			return agent.Result{}, err
		}
		return agent.Textual(left.End.Text), nil
	}}
	b = start(t, func(n int, req *agent.Request) []any {
		if n%2 == 0 {
			return says("starting", fmt.Sprintf("a%d Agent {}", n))
		}
		return says("main done")
	}, func(o *Options) {
		o.Tools.Add(send)
		o.Price = func(m string, u agent.Usage) float64 { return float64(u.Out) / 10 }
		if change != nil {
			change(o)
		}
	})
	return b, got, failed
}

func TestSpawn(t *testing.T) {
	each(t, func(t *testing.T) {
		var moments []string
		b, got, _ := delegate(t, func(n int, _ *agent.Request) []any {
			if n == 0 {
				return says("looking", "k T {}")
			}
			return says("found")
		}, func(o *Options) {
			o.Hook = func(_ context.Context, m agent.Moment) agent.HookResult {
				if m.Agent != "" {
					moments = append(moments, m.Event+" "+m.AgentType)
				}
				return agent.HookResult{}
			}
			o.Gate = func(_ context.Context, c agent.Call) (agent.Decision, error) {
				if c.Agent != "" {
					return agent.Decision{Verdict: agent.Deny, Reason: "no"}, nil
				}
				return agent.Decision{Verdict: agent.Allow}, nil
			}
		}, nil)
		b.prompt("go")
		es := b.finish()
		if got.End.Text != "found" || got.Partial || got.Usage.Tools != 1 || got.Usage.Tokens != 110 || got.Cost != 2 || !slices.Equal(got.Models, []string{"m"}) {
			t.Errorf("%+v", got)
		}
		var inside []string
		for _, e := range es {
			if e.Agent == got.ID && e.Parent == "a0" {
				if s := line(e); s != "" {
					inside = append(inside, s)
				}
			} else if e.Agent != "" || e.Parent != "" {
				t.Errorf("%+v", e)
			}
		}
		compare(t, strings.Join(inside, "\n"), "user task\nmodel looking\nmodel\nuser\nmodel found")
		o := outcomes(es)[0]
		if o.Cost != 4 || o.Usage.Out != 20 || len(o.Denials) != 1 || o.Denials[0].ID != "k" || o.Models[0].Usage.Out != 40 {
			t.Errorf("%+v", o)
		}
		compare(t, strings.Join(moments, "\n"), "SubagentStart helper\nSubagentStop helper")
		if s := sent(b.up.reqs[1]); strings.Contains(s, "looking") || !strings.Contains(s, "found") {
			t.Error(s)
		}
		sound(t, got.End.History)
	})
}

func TestSpawnCaps(t *testing.T) {
	again := func(n int, _ *agent.Request) []any { return says(fmt.Sprintf("k%d Agent {}", n)) }
	works := func(n int, _ *agent.Request) []any { return says(fmt.Sprintf("k%d T {}", n)) }
	for _, tt := range []struct {
		name   string
		child  model
		limits AgentLimits
		change func(c *Child)
		why    string
		most   int // requests of children
		agents int
	}{
		{"an agent that always sends an agent", again, AgentLimits{Depth: 3, Tokens: 5000}, nil, "tokens", 60, 60},
		{"total", again, AgentLimits{Depth: 100, Concurrent: 100, Total: 3}, nil, "identical_calls", 60, 3},
		{"tokens", works, AgentLimits{Tokens: 1000}, nil, "used the 1000 tokens", 10, 1},
		{"cost", works, AgentLimits{Cost: 5}, nil, "used the 5.00 USD", 5, 1},
		{"time", works, AgentLimits{Time: 5 * time.Second}, nil, "the time for this agent", 7, 1},
		{"turns", works, AgentLimits{}, func(c *Child) { c.MaxTurns = 2 }, "2 turns", 2, 1},
		{"concurrent", again, AgentLimits{Concurrent: 1}, nil, "identical_calls", 20, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T) {
				n := 0
				b, got, failed := delegate(t, func(i int, r *agent.Request) []any { n++; return tt.child(i, r) },
					func(o *Options) { o.Agents = tt.limits }, tt.change)
				b.prompt("go")
				agents := map[string]bool{}
				for _, e := range b.finish() {
					agents[e.Agent] = true
				}
				if len(agents)-1 > tt.agents { // the main conversation is ""
					t.Errorf("%d agents ran, want at most %d", len(agents)-1, tt.agents)
				}
				if !got.Partial || !strings.Contains(got.Why, tt.why) || *failed != nil || n > tt.most {
					t.Errorf("partial %v, why %q, %v after %d requests", got.Partial, got.Why, *failed, n)
				}
				sound(t, got.End.History)
				if d := b.s.Depth(got.ID); d != 0 {
					t.Errorf("still listed at depth %d", d)
				}
			})
		})
	}
}

func TestInterruptReachesAgents(t *testing.T) {
	each(t, func(t *testing.T) {
		b, got, _ := delegate(t, func(n int, _ *agent.Request) []any {
			if n == 0 {
				return says("half of it", "k T {}")
			}
			return []any{time.Hour}
		}, nil, nil)
		b.prompt("go")
		time.Sleep(5 * time.Second)
		b.submit(agent.Interrupt{})
		time.Sleep(time.Second)
		es := b.finish()
		if !got.Partial || got.End.Text != "half of it" {
			t.Errorf("%+v", got)
		}
		if o := outcomes(es)[0]; o.Reason != "aborted_tools" {
			t.Errorf("%+v", o)
		}
		sound(t, b.s.History())
	})
}

func TestTellAndResume(t *testing.T) {
	each(t, func(t *testing.T) {
		var seen []string
		b, got, _ := delegate(t, func(n int, req *agent.Request) []any {
			seen = append(seen, sent(req))
			return append([]any{10 * time.Second}, says(fmt.Sprint("report ", n))...)
		}, nil, func(c *Child) { c.ID = "K" })
		b.prompt("go")
		time.Sleep(time.Second)
		if !b.s.Tell("K", []agent.Block{&agent.Text{Text: "also this"}}) || b.s.Tell("X", nil) {
			t.Error("told the wrong one")
		}
		b.prompt("later")
		time.Sleep(time.Minute)
		synctest.Wait()
		if got.End.Text != "report 3" && got.End.Text != "report 1" {
			t.Errorf("%q", got.End.Text)
		}
		if !strings.Contains(seen[1], "also this") {
			t.Error(seen)
		}
		left, err := b.s.Spawn(t.Context(), Child{ID: "K", History: got.End.History, Prompt: []agent.Block{&agent.Text{Text: "and now?"}},
			Provider: &upstream{m: answers("resumed")}, Window: func(h []agent.Message) *agent.Request { return &agent.Request{Messages: h} }})
		if err != nil || left.End.Text != "resumed" || len(left.End.History) != len(got.End.History)+2 {
			t.Errorf("%v %+v", err, left)
		}
		b.finish()
	})
}
