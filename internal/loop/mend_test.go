package loop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

var errCut = &agent.ModelError{Op: "read", Fault: agent.FaultTruncated, Message: "connection reset"}
var errOverload = &agent.ModelError{Op: "read", Fault: agent.FaultTruncated, Type: "overloaded_error", Message: "overloaded"}

// A response of text, two calls and text is cut, or an error comes, before
// each of its events. The answer after it is the same text and calls if the
// model never got to them, as a real one would do.
func TestBrokenAtEveryEvent(t *testing.T) {
	t.Parallel()
	full := whole("tool_use", text("first"), use("a", "W"), use("b", "W"), text("last"))
	for _, broken := range []error{errCut, errOverload} {
		for i := range len(full) + 1 {
			t.Run(fmt.Sprintf("%s before event %d", broken.(*agent.ModelError).Message, i), func(t *testing.T) {
				t.Parallel()
				var ran [2]atomic.Int32
				tools := map[string]agent.Tool{"W": tool{run: func(_ context.Context, c agent.Call) (agent.Result, error) {
					ran[strings.Index("ab", string(c.ID))].Add(1)
					return agent.Textual("ok"), nil
				}}}
				first := append(append([]any{}, full[:i]...), broken)
				// What the model writes next depends on which calls it sees.
				var next []any
				done := 0
				for _, x := range full[:i] {
					if e, ok := x.(agent.BlockEnd); ok {
						if _, ok := e.Block.(*agent.ToolUse); ok {
							done++
						}
					}
				}
				next = whole("tool_use", use("a", "W"), use("b", "W"))
				if done == 1 {
					next = whole("tool_use", use("b", "W"))
				}
				steps := [][]any{first, next, whole("end_turn", text("end"))}
				if done == 2 {
					steps = [][]any{first, whole("end_turn", text("end"))}
				}
				r := newRig(tools, steps...)
				got := r.Run(t.Context(), hello)
				check(t, got.History)
				text := false
				for _, x := range full[:i] {
					e, ok := x.(agent.BlockEnd)
					text = text || ok && e.Block != nil
				}
				if !text { // nothing arrived: the provider has tried again, and failed
					if got.Reason != APIError || got.Trouble == nil || ran[0].Load()+ran[1].Load() != 0 {
						t.Fatalf("reason %q, trouble %v", got.Reason, got.Trouble)
					}
					return
				}
				if got.Reason != Completed || got.Text != "end" {
					t.Errorf("ended with %q, %q:\n%s", got.Reason, got.Text, show(got.History))
				}
				if a, b := ran[0].Load(), ran[1].Load(); a != 1 || b != 1 {
					t.Errorf("a ran %d times, b %d times", a, b)
				}
				for _, m := range got.History {
					for _, b := range m.Blocks {
						if x, ok := b.(*agent.Text); ok && x.Text == "last" && i < len(full)-3 {
							t.Error("half a block was kept")
						}
					}
				}
			})
		}
	}
}

func TestGoingOn(t *testing.T) {
	t.Parallel()
	think := &agent.Thinking{Text: "hm", Signature: "s"}
	cut := func(parts ...any) []any {
		w := whole("", parts...)
		return append(w[:len(w)-2], errCut)
	}
	long := func(s string) []any { return whole("max_tokens", text(s)) }
	end := whole("end_turn", text("end"))
	again := func(n int, step []any, rest ...[]any) (out [][]any) {
		for range n {
			out = append(out, step)
		}
		return append(out, rest...)
	}
	for _, tt := range []struct {
		name   string
		steps  [][]any
		reason string
		text   string
		whole  string
		steps2 int // requests
	}{
		{"a text that was cut is one answer with its rest", [][]any{cut(text("one ")), end}, Completed, "one end", "", 2},
		{"an error in the stream makes two texts", [][]any{append(cut(text("one "))[:4], errOverload), end}, Completed, "end", "one end", 2},
		{"cuts are bounded", again(4, cut(text("x"))), APIError, "API Error: model: read: connection reset", "", 4},
		{"thinking alone is thought again", [][]any{cut(think), end}, Completed, "end", "", 2},
		{"but not for ever", again(4, cut(think)), APIError, "API Error: model: read: connection reset", "", 3},
		{"thinking behind a text is dropped", [][]any{cut(text("one "), think), end}, Completed, "one end", "", 2},
		{"the last event lost", [][]any{append(end[:len(end)-1:len(end)-1], errCut)}, Completed, "end", "", 1},
		{"no end at all", [][]any{end[:len(end)-2], end}, Completed, "endend", "", 2},
		{"output limit", [][]any{long("a"), long("b"), long("c"), end}, Completed, "abcend", "", 4},
		{"output limit again and again", again(4, long("a")), APIError, "API Error: " + limitTold, "", 4},
		{"empty once", [][]any{whole("end_turn"), end}, Completed, "end", "", 2},
		{"empty twice", again(2, whole("end_turn", text(" \n"))), Completed, "", "", 2},
		{"only thinking", [][]any{whole("end_turn", think), end}, Completed, "end", "", 2},
		{"pause", [][]any{whole("pause_turn", text("a")), whole("pause_turn", &agent.Opaque{Type: "server_tool_use", Raw: []byte(`{"type":"server_tool_use"}`)}), end}, Completed, "end", "", 3},
		{"refused once", [][]any{whole("refusal", text("no")), end}, Completed, "end", "", 2},
		{"refused twice", again(2, whole("refusal")), Refused, "API Error: " + refuseTold, "", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(nil, tt.steps...)
			r.MaxSteps = 1 // what mends a response is no step of its own
			got := r.Run(t.Context(), hello)
			check(t, got.History)
			if got.Reason != tt.reason || got.Text != tt.text || got.Whole != tt.whole || len(r.script.reqs) != tt.steps2 {
				t.Errorf("got %q %q %q after %d requests, want %q %q %q after %d\n%s", got.Reason, got.Text, got.Whole, len(r.script.reqs), tt.reason, tt.text, tt.whole, tt.steps2, show(got.History))
			}
		})
	}
}

func TestRecoverOnceInARow(t *testing.T) {
	t.Parallel()
	tooLong := &agent.ModelError{Op: "send", Fault: agent.FaultTooLong, Status: 400, Message: "prompt is too long"}
	for _, tt := range []struct {
		name  string
		steps [][]any
		asked int
		want  string
	}{
		{"then it fits", [][]any{{tooLong}, whole("end_turn", text("ok"))}, 1, Completed},
		{"still too long", [][]any{{tooLong}, {tooLong}}, 1, TooLong},
		{"again after an answer", [][]any{{tooLong}, whole("tool_use", use("a", "R")), {tooLong}, whole("end_turn", text("ok"))}, 2, Completed},
		{"another fault", [][]any{{tooLong}, {&agent.ModelError{Fault: agent.FaultBlock}}, whole("end_turn", text("ok"))}, 2, Completed},
		{"nothing to do about it", [][]any{{&agent.ModelError{Fault: agent.FaultAuth}}}, 0, APIError},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(map[string]agent.Tool{"R": tool{}}, tt.steps...)
			asked := 0
			r.Recover = func(_ context.Context, h []agent.Message, _ *agent.ModelError) ([]agent.Message, bool) {
				asked++
				return h, true
			}
			if got := r.Run(t.Context(), hello); got.Reason != tt.want || asked != tt.asked {
				t.Errorf("%q after %d, want %q after %d", got.Reason, asked, tt.want, tt.asked)
			}
		})
	}
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	stubborn := tool{run: func(context.Context, agent.Call) (agent.Result, error) {
		time.Sleep(time.Hour)
		return agent.Textual("too late"), nil
	}}
	partly := tool{run: func(ctx context.Context, c agent.Call) (agent.Result, error) {
		<-ctx.Done()
		return agent.Textual("half the output"), context.Cause(ctx)
	}}
	tools := map[string]agent.Tool{"R": reader, "W": writer, "S": stubborn, "P": partly}
	hang := time.Hour
	for _, tt := range []struct {
		name, want, reason string
		cause              error
		step               []any
	}{
		{"in a text", "user: \"hi\"\nassistant: \"partial\"\nuser: \"[Request interrupted by user]\"\n", InStream, ErrInterrupted,
			[]any{agent.Begin{}, agent.BlockBegin{Block: &agent.Text{}}, agent.Chunk{Kind: "text_delta", Text: "partial"}, hang}},
		{"before anything came", "user: \"hi\" \"[Request interrupted by user]\"\n", InStream, ErrInterrupted, []any{hang}},
		{"half a call is dropped", "user: \"hi\"\nassistant: \"t\"\nuser: \"[Request interrupted by user]\"\n", InStream, ErrInterrupted,
			[]any{agent.Begin{}, agent.BlockEnd{Block: text("t")}, agent.BlockBegin{Index: 1, Block: use("a", "R")}, agent.Chunk{Index: 1, Kind: "input_json_delta", Text: "{"}, hang}},
		{"in tools", `user: "hi"
assistant: call(a R) call(b W)
user: result!(a The user interrupted this call while it ran.) result!(b The user interrupted the turn before this call started. It did not run, and nothing was changed by it. Wait for what the user says next.) "[Request interrupted by user for tool use]"
`, InTools, ErrInterrupted, append(whole("tool_use", use("a", "R"), use("b", "W")), hang)},
		{"output so far is kept", `user: "hi"
assistant: call(a P)
user: result!(a half the output
The user interrupted this call while it ran. What it did until then stands, and how far it came is not known: look before you repeat it.) "[Request interrupted by user for tool use]"
`, InTools, ErrInterrupted, whole("tool_use", use("a", "P"))},
		{"a tool that does not end", `user: "hi"
assistant: call(a S)
user: result!(a The user interrupted this call while it ran. What it did until then stands, and how far it came is not known: look before you repeat it. It did not end within 10s after it was told to.) "[Request interrupted by user for tool use]"
`, InTools, ErrInterrupted, whole("tool_use", use("a", "S"))},
		{"the program stops", `user: "hi"
assistant: call(a R) call(b W)
user: result!(a The session was stopped while this call ran.) result!(b The session was stopped before this call started. It did not run.)
`, InTools, ErrStopped, append(whole("tool_use", use("a", "R"), use("b", "W")), hang)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				testInterrupt(t, tools, tt.step, tt.cause, tt.want, tt.reason)
			})
		})
	}
}

func testInterrupt(t *testing.T, tools map[string]agent.Tool, step []any, cause error, want, reason string) {
	r := newRig(tools, step)
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
	got := r.Run(ctx, hello)
	time.Sleep(2 * time.Hour) // until the tool that was left behind has ended
	if s := show(got.History); s != want || got.Reason != reason {
		t.Errorf("%s\n%s\nwant %s\n%s", got.Reason, s, reason, want)
	}
	check(t, got.History)
}

// A denial that interrupts ends the turn like an interrupt, without another request.
func TestDenyInterrupts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(map[string]agent.Tool{"R": reader, "W": writer}, whole("tool_use", use("r", "R"), use("a", "W"), use("b", "W"), time.Hour))
		r.Gate = func(_ context.Context, c agent.Call) (agent.Decision, error) {
			if c.ID == "a" {
				return agent.Decision{Verdict: agent.Deny, Reason: "stop it", Interrupt: true}, nil
			}
			return agent.Decision{Verdict: agent.Allow}, nil
		}
		got := r.Run(t.Context(), hello)
		check(t, got.History)
		if got.Reason != InTools || len(r.script.reqs) != 1 || !strings.Contains(show(got.History), "result!(a stop it)") {
			t.Errorf("%s\n%s", got.Reason, show(got.History))
		}
		if _, ran := r.starts["b"]; ran {
			t.Error("b ran")
		}
	})
}

// Whatever tools, denials, cuts and interrupts come together, every call has
// exactly one result and exactly one outcome that was told, and no call runs twice.
func TestEveryCallHasOneResult(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { random(t, seed) })
		})
	}
}

func random(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	ran := map[agent.CallID]int{}
	tools := map[string]agent.Tool{}
	var r *rig
	run := func(ctx context.Context, c agent.Call) (agent.Result, error) {
		r.mu.Lock()
		ran[c.ID]++
		n := rnd.IntN(6)
		r.mu.Unlock()
		switch n {
		case 0:
			panic("boom")
		case 1:
			return agent.Result{IsError: true, Fatal: true}, nil
		case 2:
			return agent.Result{}, errors.New("failed")
		}
		select {
		case <-time.After(time.Duration(n) * 100 * time.Millisecond):
			return agent.Textual("ok"), nil
		case <-ctx.Done():
			return agent.Result{}, context.Cause(ctx)
		}
	}
	for i, e := range []agent.Effects{{}, {Concurrent: true}, {Concurrent: true, ReadOnly: true, Domain: "d"}, {Domain: "d"}} {
		tools[string(rune('A'+i))] = tool{eff: e, run: run}
	}
	id := 0
	var steps [][]any
	for range 1 + rnd.IntN(5) {
		var parts []any
		for range rnd.IntN(7) {
			switch k := rnd.IntN(10); {
			case k == 0:
				parts = append(parts, time.Duration(rnd.IntN(300))*time.Millisecond)
			case k < 3:
				parts = append(parts, text("t"))
			case k == 3 && id > 0: // an id that was there
				parts = append(parts, useWith(fmt.Sprint("c", rnd.IntN(id)), "A", fmt.Sprintf(`{"n":%d}`, rnd.IntN(2))))
			default:
				parts = append(parts, useWith(fmt.Sprint("c", id), string(rune('A'+rnd.IntN(5))), `{"n":0}`))
				id++
			}
		}
		s := whole([]string{"tool_use", "end_turn", "max_tokens", "pause_turn"}[rnd.IntN(4)], parts...)
		if rnd.IntN(3) == 0 {
			s = append(s[:rnd.IntN(len(s))], errCut)
		}
		steps = append(steps, s)
	}
	r = newRig(tools, steps...)
	r.Gate = func(ctx context.Context, c agent.Call) (agent.Decision, error) {
		r.mu.Lock()
		n, stops := rnd.IntN(12), rnd.IntN(4) == 0
		r.mu.Unlock()
		switch n {
		case 0:
			return agent.Decision{Verdict: agent.Deny, Reason: "no"}, nil
		case 1:
			return agent.Decision{}, errors.New("gate broke")
		case 2:
			return agent.Decision{Verdict: agent.Allow, Input: []byte(`{"changed":1}`)}, nil
		case 3:
			return agent.Decision{Verdict: agent.Deny, Interrupt: stops}, nil
		case 4:
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return agent.Decision{}, context.Cause(ctx)
			}
		}
		return agent.Decision{Verdict: agent.Allow}, nil
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	if rnd.IntN(3) == 0 {
		time.AfterFunc(time.Duration(rnd.IntN(1500))*time.Millisecond, func() { cancel(ErrInterrupted) })
	}
	got := r.Run(ctx, hello)
	cancel(nil)
	check(t, got.History)
	uses := map[agent.CallID]int{}
	for _, m := range got.History {
		for _, b := range m.Blocks {
			if u, ok := b.(*agent.ToolUse); ok {
				uses[u.ID]++
			}
		}
	}
	if f := r.finished(); fmt.Sprint(f) != fmt.Sprint(uses) {
		t.Errorf("outcomes %v, calls %v", f, uses)
	}
	for id, n := range ran {
		if n != 1 {
			t.Errorf("%s ran %d times", id, n)
		}
	}
	if t.Failed() {
		t.Logf("\n%s", show(got.History))
	}
}
