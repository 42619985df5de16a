package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// A call that was made before is not made again; an upstream that gives one id
// to different calls gets them all run. Ids are unique in the history either way.
func TestIDs(t *testing.T) {
	t.Parallel()
	read := func(path string) string { return fmt.Sprintf(`{"path":%q}`, path) }
	for _, tt := range []struct {
		name  string
		steps [][]any
		runs  []string
	}{
		{"again in the same response", [][]any{whole("tool_use", useWith("a", "R", read("x")), useWith("a", "R", read("x")))}, []string{read("x")}},
		{"again in the next response", [][]any{whole("tool_use", useWith("a", "R", read("x"))), whole("tool_use", useWith("a", "R", read("x")))}, []string{read("x")}},
		{"one id for all", [][]any{whole("tool_use", useWith("a", "R", read("x")), useWith("a", "R", read("y"))), whole("tool_use", useWith("a", "R", read("x")))},
			[]string{read("x"), read("y"), read("x")}},
		{"no id, and an odd one", [][]any{whole("tool_use", useWith("", "R", read("x")), useWith("a b", "R", read("y")))}, []string{read("x"), read("y")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var runs []string
			r := newRig(map[string]agent.Tool{"R": tool{run: func(_ context.Context, c agent.Call) (agent.Result, error) {
				runs = append(runs, string(c.Input))
				return agent.Textual(fmt.Sprint(len(runs))), nil
			}}}, append(tt.steps, whole("end_turn", text("ok")))...)
			got := r.Run(t.Context(), hello)
			check(t, got.History)
			if !slices.Equal(runs, tt.runs) || got.Text != "ok" {
				t.Errorf("ran %v, want %v\n%s", runs, tt.runs, show(got.History))
			}
		})
	}
	t.Run("again in a later turn", func(t *testing.T) {
		t.Parallel()
		runs := 0
		tools := map[string]agent.Tool{"R": tool{run: func(context.Context, agent.Call) (agent.Result, error) { runs++; return agent.Textual("x"), nil }}}
		r := newRig(tools, whole("tool_use", use("a", "R")), whole("end_turn", text("ok")), whole("tool_use", use("a", "R")), whole("end_turn", text("ok")))
		h := r.Run(t.Context(), hello).History
		h = Push(h, hello[0])
		h = r.Run(t.Context(), h).History
		check(t, h)
		if runs != 1 || !strings.Contains(show(h), repeated) {
			t.Errorf("ran %d times\n%s", runs, show(h))
		}
	})
}

func TestIdenticalCalls(t *testing.T) {
	t.Parallel()
	same := func(n int) (out [][]any) {
		for i := range n {
			out = append(out, whole("tool_use", useWith(fmt.Sprint("c", i), "R", `{"q":1}`)))
		}
		return append(out, whole("end_turn", text("ok")))
	}
	for _, tt := range []struct {
		name            string
		steps           int
		changes, steers bool
		reason          string
		warned, runs    int
	}{
		{"twice", 2, false, false, Completed, 0, 2},
		{"three times", 3, false, false, Completed, 1, 3},
		{"for ever", 30, false, false, Identical, maxSame - warnSame + 1, maxSame},
		{"results that change", 30, true, false, Completed, 0, 30},
		{"somebody speaks", 30, false, true, Completed, 0, 30},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			r := newRig(map[string]agent.Tool{"R": tool{run: func(context.Context, agent.Call) (agent.Result, error) {
				runs++
				if tt.changes {
					return agent.Textual(fmt.Sprint(runs)), nil
				}
				return agent.Textual("same"), nil
			}}}, same(tt.steps)...)
			if tt.steers {
				r.Steer = func(context.Context) []agent.Said {
					return []agent.Said{{Message: agent.Message{Role: agent.User, Blocks: []agent.Block{text("hm")}}}}
				}
			}
			got := r.Run(t.Context(), hello)
			check(t, got.History)
			if n := strings.Count(show(got.History), "time in a row"); got.Reason != tt.reason || n != tt.warned || runs != tt.runs {
				t.Errorf("%s, warned %d times, ran %d times", got.Reason, n, runs)
			}
		})
	}
}

func TestFailureDomains(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		run := func(_ context.Context, c agent.Call) (agent.Result, error) {
			time.Sleep(time.Second)
			if c.ID == "bad" {
				return agent.Result{IsError: true, Fatal: true, Blocks: []agent.Block{text("broke")}}, nil
			}
			return agent.Textual("ok"), nil
		}
		tools := map[string]agent.Tool{
			"A": tool{eff: agent.Effects{Domain: "deploy"}, run: run},
			"B": tool{eff: agent.Effects{Domain: "other"}, run: run},
			"N": tool{run: run},
			"R": tool{eff: agent.Effects{Concurrent: true, ReadOnly: true, Domain: "deploy"}, run: run},
		}
		r := newRig(tools, whole("tool_use", use("r", "R"), use("bad", "A"), use("a", "A"), use("b", "B"), use("n", "N"), use("s", "R")), whole("end_turn", text("ok")))
		asked := map[agent.CallID]bool{}
		r.Gate = func(_ context.Context, c agent.Call) (agent.Decision, error) {
			asked[c.ID] = true
			return agent.Decision{Verdict: agent.Allow}, nil
		}
		got := r.Run(t.Context(), hello)
		check(t, got.History)
		var ran []string
		for id := range r.starts {
			ran = append(ran, string(id))
		}
		slices.Sort(ran)
		if fmt.Sprint(ran) != "[b bad n r]" || asked["a"] || !strings.Contains(show(got.History), "result!(a This call did not run: the call bad before it failed") {
			t.Errorf("ran %v\n%s", ran, show(got.History))
		}
	})
}

// A call that is exclusive only with its new input still runs alone.
func TestReplacedInput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		running, most := 0, map[string]int{}
		var r *rig
		tools := map[string]agent.Tool{"R": tool{
			inspect: func(in json.RawMessage) (agent.Effects, error) {
				if string(in) == "{}" {
					return agent.Effects{Concurrent: true, ReadOnly: true}, nil
				}
				if string(in) == `"bad"` {
					return agent.Effects{}, errors.New("not an object")
				}
				return agent.Effects{}, nil
			},
			run: func(_ context.Context, c agent.Call) (agent.Result, error) {
				r.mu.Lock()
				running++
				most[string(c.Input)] = max(most[string(c.Input)], running)
				r.mu.Unlock()
				time.Sleep(time.Second)
				r.mu.Lock()
				running--
				r.mu.Unlock()
				return agent.Textual(string(c.Input)), nil
			}}}
		r = newRig(tools, whole("tool_use", use("a", "R"), use("b", "R"), use("c", "R"), use("d", "R"), use("e", "R"), use("f", "R")), whole("end_turn", text("ok")))
		r.Gate = func(_ context.Context, c agent.Call) (agent.Decision, error) {
			d := agent.Decision{Verdict: agent.Allow, Why: agent.WhyUser}
			switch c.ID {
			case "b", "d":
				d.Input = json.RawMessage(`{"write":1}`)
			case "f":
				d.Input = json.RawMessage(`"bad"`)
			}
			return d, nil
		}
		got := r.Run(t.Context(), hello)
		check(t, got.History)
		if most[`{"write":1}`] != 1 {
			t.Errorf("ran beside others: %v", most)
		}
		s := show(got.History)
		if !strings.Contains(s, `result(b {"write":1})`) || !strings.Contains(s, "result!(f <tool_use_error>InputValidationError") {
			t.Error(s)
		}
		for _, b := range r.events {
			if f, ok := b.(agent.Finished); ok && f.Call.UserModified != (f.Call.ID == "b" || f.Call.ID == "d") {
				t.Errorf("%+v", f.Call)
			}
		}
		if uses := unanswered(got.History[:2]); string(uses[1].Input) != "{}" {
			t.Errorf("the history shows %s", uses[1].Input)
		}
	})
}

// What a call means is looked at again when calls before it may have changed it.
func TestInspectedAgainAfterAWait(t *testing.T) {
	t.Parallel()
	// A call may be looked at while one before it runs.
	var cwd atomic.Pointer[string]
	cwd.Store(new("/"))
	var subjects []string
	tools := map[string]agent.Tool{"cd": tool{
		inspect: func(json.RawMessage) (agent.Effects, error) {
			return agent.Effects{Subjects: []agent.Subject{{Value: *cwd.Load()}}}, nil
		},
		run: func(context.Context, agent.Call) (agent.Result, error) {
			time.Sleep(20 * time.Millisecond)
			cwd.Store(new(*cwd.Load() + "sub/"))
			return agent.Textual(*cwd.Load()), nil
		}}}
	r := newRig(tools, whole("tool_use", use("a", "cd"), use("b", "cd")), whole("end_turn", text("ok")))
	r.Gate = func(_ context.Context, c agent.Call) (agent.Decision, error) {
		subjects = append(subjects, c.Effects.Subjects[0].Value)
		return agent.Decision{Verdict: agent.Allow}, nil
	}
	r.Run(t.Context(), hello)
	if fmt.Sprint(subjects) != "[/ /sub/]" {
		t.Error(subjects)
	}
}

func TestDefer(t *testing.T) {
	t.Parallel()
	gate := func(_ context.Context, c agent.Call) (agent.Decision, error) {
		if c.Name == "D" {
			return agent.Decision{Verdict: agent.Defer}, nil
		}
		return agent.Decision{Verdict: agent.Allow}, nil
	}
	tools := map[string]agent.Tool{"D": tool{}, "R": tool{}}
	r := newRig(tools, whole("tool_use", text("t"), use("a", "D")))
	r.Gate = gate
	got := r.Run(t.Context(), hello)
	if got.Reason != Deferred || got.Deferred.ID != "a" || len(got.History) != 2 || len(r.finished()) != 0 {
		t.Errorf("%+v", got)
	}
	// Taken up again, the call is decided anew and the turn goes on.
	again := newRig(tools, whole("end_turn", text("ok")))
	end := again.Run(t.Context(), got.History)
	check(t, end.History)
	if end.Text != "ok" || len(again.finished()) != 1 {
		t.Errorf("%+v", end)
	}
	// Beside other calls it is refused.
	r = newRig(tools, whole("tool_use", use("a", "D"), use("b", "R")), whole("end_turn", text("ok")))
	r.Gate = gate
	got = r.Run(t.Context(), hello)
	check(t, got.History)
	if got.Reason != Completed || !strings.Contains(show(got.History), "result!(a This call waits") || len(r.finished()) != 2 {
		t.Errorf("%s\n%s", got.Reason, show(got.History))
	}
}

func TestWhatStandsBehindTheResults(t *testing.T) {
	t.Parallel()
	tools := map[string]agent.Tool{"R": tool{run: func(_ context.Context, c agent.Call) (agent.Result, error) {
		r := agent.Textual("r")
		r.After = []agent.Block{text("after " + string(c.ID))}
		return r, nil
	}}}
	r := newRig(tools, whole("tool_use", use("a", "R"), use("b", "R")), whole("end_turn", text("ok")))
	r.After = func(_ context.Context, f agent.Finished) agent.Result {
		f.Result.Blocks = append(f.Result.Blocks, text("hooked"))
		return f.Result
	}
	r.Batch = func(_ context.Context, fs []agent.Finished) ([]agent.Block, string) {
		return []agent.Block{text(fmt.Sprint("batch of ", len(fs)))}, ""
	}
	r.Steer = func(context.Context) []agent.Said {
		return []agent.Said{{Message: agent.Message{UUID: "u", Role: agent.User, Blocks: []agent.Block{text("steered")}}, Replay: true}}
	}
	got := r.Run(t.Context(), hello)
	check(t, got.History)
	want := "user: result(a r\nhooked) result(b r\nhooked) \"after a\" \"after b\" \"batch of 2\" \"steered\"\n"
	if !strings.Contains(show(got.History), want) {
		t.Errorf("got\n%s", show(got.History))
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	step := whole("tool_use", use("a", "R"), use("b", "W"), use("c", "W"))
	give := func(r agent.Result) map[string]agent.Tool {
		t := tool{run: func(context.Context, agent.Call) (agent.Result, error) {
			time.Sleep(10 * time.Millisecond)
			return r, nil
		}}
		return map[string]agent.Tool{"R": t, "W": t}
	}
	for _, tt := range []struct {
		name   string
		tools  map[string]agent.Tool
		change func(*rig)
		reason string
	}{
		{"a tool", give(agent.Result{End: "plan"}), nil, "plan"},
		{"a batch", give(agent.Result{}), func(r *rig) {
			r.Batch = func(context.Context, []agent.Finished) ([]agent.Block, string) { return nil, "hook_stopped" }
		}, "hook_stopped"},
		{"a structured answer", give(agent.Result{Structured: json.RawMessage(`{}`)}), nil, Completed},
		{"steps", give(agent.Result{}), func(r *rig) { r.MaxSteps = 1 }, MaxTurns},
		{"money", give(agent.Result{}), func(r *rig) {
			spent := 0.0
			r.Cost = func(string, agent.Usage) float64 { spent++; return 1 }
			r.Budget = func() string {
				if spent > 0 {
					return Budget
				}
				return ""
			}
		}, Budget},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(tt.tools, step)
			if tt.change != nil {
				tt.change(r)
			}
			r.Steer = func(context.Context) []agent.Said {
				if tt.reason != MaxTurns && tt.reason != Budget {
					t.Error("steered into a turn that ends")
				}
				return nil
			}
			got := r.Run(t.Context(), hello)
			check(t, got.History)
			if got.Reason != tt.reason || len(r.script.reqs) != 1 {
				t.Errorf("%s after %d requests, want %s", got.Reason, len(r.script.reqs), tt.reason)
			}
			if _, ran := r.starts["c"]; ran == (tt.reason == Budget) {
				t.Errorf("the last call ran: %v", ran)
			}
		})
	}
}

func TestIdle(t *testing.T) {
	t.Parallel()
	var steps [][]any
	for range 20 {
		steps = append(steps, whole("end_turn", text("ok")))
	}
	r := newRig(nil, steps...)
	r.Idle = func(_ context.Context, answer string, n int) (*agent.Message, string) {
		return &agent.Message{Role: agent.User, Meta: true, Blocks: []agent.Block{text(fmt.Sprint(answer, n))}}, ""
	}
	got := r.Run(t.Context(), hello)
	check(t, got.History)
	if n := len(r.script.reqs); n != maxIdle+1 || got.Reason != Completed || got.Turns != maxIdle+1 {
		t.Errorf("%d requests, %s, %d turns", n, got.Reason, got.Turns)
	}
}

// An answer in one piece is told once, with its stop reason, before its calls start.
func TestWholeResponse(t *testing.T) {
	t.Parallel()
	w := whole("tool_use", text("t"), use("a", "R"))
	w[0] = agent.Begin{MessageID: "m", Whole: true}
	r := newRig(map[string]agent.Tool{"R": tool{}}, w, whole("end_turn", text("ok")))
	got := r.Run(t.Context(), hello)
	check(t, got.History)
	var told []string
	for _, b := range r.events {
		switch b := b.(type) {
		case agent.Said:
			told = append(told, fmt.Sprint(b.Message.Role, len(b.Message.Blocks), b.Stop))
		case agent.Started:
			told = append(told, "started")
		}
	}
	if fmt.Sprint(told) != "[assistant2tool_use started user1 assistant1]" {
		t.Error(told)
	}
}

// A turn of many steps costs no more per step at its end: nothing that was
// sent is encoded again, and what a request shares with the one before it is
// the same memory.
func TestPrefixIsShared(t *testing.T) {
	t.Parallel()
	var steps [][]any
	for i := range 30 {
		steps = append(steps, whole("tool_use", useWith(fmt.Sprint("c", i), "R", fmt.Sprintf(`{"n":%d}`, i))))
	}
	r := newRig(map[string]agent.Tool{"R": tool{}}, append(steps, whole("end_turn", text("ok")))...)
	r.Run(t.Context(), Push(nil, hello[0]))
	for i := 1; i < len(r.script.reqs); i++ {
		a, b := r.script.reqs[i-1].Messages, r.script.reqs[i].Messages
		if len(b) != len(a)+2 {
			t.Fatalf("request %d has %d messages after %d", i, len(b), len(a))
		}
		for k := range a {
			if &a[k].Wire[0] != &b[k].Wire[0] {
				t.Fatalf("message %d was encoded again for request %d", k, i)
			}
		}
	}
}
