package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/window"
)

func TestHooks(t *testing.T) {
	each(t, func(t *testing.T) {
		var moments []string
		stops := 0
		b := start(t, answers("done"), func(o *Options) {
			o.Hook = func(_ context.Context, m agent.Moment) agent.HookResult {
				moments = append(moments, m.Event+" "+m.Match)
				switch m.Event {
				case "SessionStart":
					return agent.HookResult{Context: []string{"from the start"}, Extra: map[string]json.RawMessage{"sessionTitle": json.RawMessage(`"T"`)}}
				case "UserPromptSubmit":
					if m.Fields["prompt"] == "secret" {
						return agent.HookResult{Block: true, Reason: "not that"}
					}
					return agent.HookResult{Context: []string{"ctx"}}
				case "Stop":
					if stops++; stops == 1 {
						if m.Fields["stop_hook_active"] != false {
							t.Error("active too early")
						}
						return agent.HookResult{Block: true, Reason: "KEEP GOING"}
					}
					if m.Fields["stop_hook_active"] != (stops == 2) {
						t.Errorf("stop %d: %v", stops, m.Fields)
					}
				}
				return agent.HookResult{}
			}
		})
		b.prompt("secret")
		b.prompt("hi")
		b.prompt("again")
		es := b.finish()
		compare(t, strings.Join(moments, "\n"), "SessionStart startup\nUserPromptSubmit \nUserPromptSubmit \nStop \nStop \nUserPromptSubmit \nStop \nSessionEnd other")
		os := outcomes(es)
		if os[0].Turns != 0 || os[0].Subtype != "success" || os[0].Text != "" || os[1].Turns != 2 {
			t.Errorf("%+v", os)
		}
		first, second := sent(b.up.reqs[0]), sent(b.up.reqs[1])
		if strings.Contains(first, "secret") || !strings.Contains(first, "from the start") || !strings.Contains(first, "ctx") || !strings.Contains(second, "KEEP GOING") {
			t.Errorf("sent\n%s\n%s", first, second)
		}
		if b.s.Info().Title != "T" {
			t.Error("no title")
		}
	})
}

func TestExpansionHooks(t *testing.T) {
	each(t, func(t *testing.T) {
		b := start(t, answers("ok"), func(o *Options) {
			o.Expand = func(_ context.Context, p agent.Prompt) (Expansion, error) {
				name, args, _ := strings.Cut(agent.TextOf(p.Blocks)[1:], " ")
				return Expansion{Name: name, Args: args, Messages: []agent.Message{{UUID: "other", Blocks: []agent.Block{&agent.Text{Text: "do " + args}}}}}, nil
			}
			o.Hook = func(_ context.Context, m agent.Moment) agent.HookResult {
				if m.Event != "UserPromptExpansion" {
					return agent.HookResult{}
				}
				return agent.HookResult{Block: m.Fields["command_args"] == "harm", Reason: "no", Context: []string{"careful with " + m.Match}}
			}
		})
		b.prompt("/x harm")
		b.prompt("/x good")
		es := b.finish()
		os := outcomes(es)
		if !os[0].IsError || os[0].Text != "no" || os[1].Text != "ok" || len(b.up.reqs) != 1 {
			t.Errorf("%+v", os)
		}
		if s := sent(b.up.reqs[0]); !strings.Contains(s, "careful with x") || !strings.Contains(s, "do good") {
			t.Error(s)
		}
		for _, s := range bodies[agent.Said](es) {
			if s.Replay && s.Message.UUID != "u-/x good" {
				t.Errorf("the echo has the uuid %s", s.Message.UUID)
			}
		}
	})
}

// What SessionStart hooks say is not lost to an interrupt that came first.
func TestStartIsNotLost(t *testing.T) {
	each(t, func(t *testing.T) {
		b := start(t, answers("ok"), func(o *Options) {
			o.Hook = func(_ context.Context, m agent.Moment) agent.HookResult {
				if m.Event == "SessionStart" {
					time.Sleep(time.Minute)
					return agent.HookResult{Context: []string{"rules of the house"}}
				}
				return agent.HookResult{}
			}
		})
		b.prompt("one")
		time.Sleep(time.Second)
		b.submit(agent.Interrupt{})
		time.Sleep(2 * time.Minute)
		b.prompt("two")
		es := b.finish()
		if os := outcomes(es); len(os) != 2 || os[0].Reason != "aborted_streaming" || os[1].Text != "ok" {
			t.Errorf("%+v", os)
		}
		if s := sent(b.up.reqs[0]); !strings.Contains(s, "rules of the house") || !strings.Contains(s, "one") {
			t.Error(s)
		}
	})
}

func TestStopHookThatNeverEnds(t *testing.T) {
	each(t, func(t *testing.T) {
		b := start(t, answers("done"), func(o *Options) {
			o.Hook = func(_ context.Context, m agent.Moment) agent.HookResult {
				return agent.HookResult{Block: m.Event == "Stop", Reason: "more"}
			}
		})
		b.prompt("hi")
		es := b.finish()
		if n := len(b.up.reqs); n != 9 {
			t.Errorf("%d requests, want 9", n)
		}
		if o := outcomes(es)[0]; o.Subtype != "success" || !strings.Contains(lines(es), "warning: Stop hooks") {
			t.Errorf("%+v", o)
		}
	})
}

func TestLimits(t *testing.T) {
	step := func(n int, _ *agent.Request) []any { return says(fmt.Sprintf("c%d T {}", n)) }
	for _, tt := range []struct {
		name                    string
		change                  func(*Options)
		subtype, reason, errors string
		requests, turns         int
	}{
		{"turns", func(o *Options) { o.MaxTurns = 2 }, "error_max_turns", "max_turns", "[Reached maximum number of turns (2)]", 2, 3},
		{"budget", func(o *Options) { o.MaxBudget = 1; o.Price = func(string, agent.Usage) float64 { return 0.6 } },
			"error_max_budget_usd", "budget_exhausted", "[Exceeded USD budget (1)]", 2, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T) {
				b := start(t, step, tt.change)
				b.prompt("hi")
				o := outcomes(b.finish())[0]
				if o.Subtype != tt.subtype || o.Reason != tt.reason || !o.IsError || fmt.Sprint(o.Errors) != tt.errors || len(b.up.reqs) != tt.requests || o.Turns != tt.turns {
					t.Errorf("%+v after %d requests", o, len(b.up.reqs))
				}
			})
		})
	}
}

func TestStructuredOutput(t *testing.T) {
	good := slow{name: "StructuredOutput", run: func(_ context.Context, c agent.Call) (agent.Result, error) {
		if string(c.Input) == `{"bad":1}` {
			return agent.Failed("does not match"), nil
		}
		return agent.Result{Structured: c.Input}, nil
	}}
	for _, tt := range []struct {
		name                      string
		m                         model
		subtype, text, structured string
		requests                  int
	}{
		{"at once", answers(`c StructuredOutput {"a":1}`), "success", `{"a":1}`, `{"a":1}`, 1},
		{"after a nudge", answers("text", `c StructuredOutput {"a":1}`), "success", `{"a":1}`, `{"a":1}`, 2},
		{"never", answers("text"), "success", "text", "", 2},
		{"wrong once", answers(`c StructuredOutput {"bad":1}`, `d StructuredOutput {"a":1}`), "success", `{"a":1}`, `{"a":1}`, 2},
		{"always wrong", func(n int, _ *agent.Request) []any { return says(fmt.Sprintf(`c%d StructuredOutput {"bad":1}`, n)) },
			"error_max_structured_output_retries", "", "", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T) {
				b := start(t, tt.m, func(o *Options) {
					o.Structured, o.StructuredRetries = true, 2
					o.Tools.Add(good)
				})
				b.prompt("hi")
				o := outcomes(b.finish())[0]
				if o.Subtype != tt.subtype || o.Text != tt.text || string(o.Structured) != tt.structured || len(b.up.reqs) != tt.requests {
					t.Errorf("%+v after %d requests", o, len(b.up.reqs))
				}
			})
		})
	}
}

func TestQuietPrompts(t *testing.T) {
	each(t, func(t *testing.T) {
		b := start(t, answers("ok"), func(o *Options) {
			o.Opening = func(context.Context, string, []string) []agent.Block {
				return []agent.Block{&agent.Text{Text: "O", Note: "n"}}
			}
		})
		quiet := func(s string) {
			b.submit(agent.Prompt{Quiet: true, Blocks: []agent.Block{&agent.Text{Text: s}}})
		}
		quiet("a")
		time.Sleep(time.Second)
		b.prompt("hi")
		time.Sleep(time.Second)
		quiet("b")
		es := b.finish()
		if len(outcomes(es)) != 1 {
			t.Errorf("%d turns", len(outcomes(es)))
		}
		compare(t, sent(b.up.reqs[0]), `user [{"type":"text","text":"O"},{"type":"text","text":"a"},{"type":"text","text":"hi"}]`)
		if h := b.s.History(); agent.TextOf(h[len(h)-1].Blocks) != "b" {
			t.Errorf("%v", h)
		}
	})
}

func TestTrouble(t *testing.T) {
	for _, tt := range []struct {
		name   string
		err    *agent.ModelError
		kind   string
		head   string
		reason string
	}{
		{"key", &agent.ModelError{Fault: agent.FaultAuth, Status: 401, Message: "invalid x-api-key", Gateway: "api.example:443"}, "authentication_failed", "Invalid API key from api.example:443", "api_error"},
		{"rate", &agent.ModelError{Fault: agent.FaultTransient, Status: 429, Message: "slow down"}, "rate_limit", "API Error: Request rejected (429) · slow down", "api_error"},
		{"long", &agent.ModelError{Fault: agent.FaultTooLong, Status: 400, Message: "too long"}, "invalid_request", "Prompt is too long", "prompt_too_long"},
		{"large", &agent.ModelError{Fault: agent.FaultTooLarge, Status: 413, Message: "32 MB"}, "invalid_request", "Request too large", "image_error"},
		{"server", &agent.ModelError{Fault: agent.FaultTransient, Status: 500, Message: "oops", RequestID: "req_1"}, "server_error", "API Error: 500 oops", "api_error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T) {
				var failure agent.Moment
				b := start(t, func(int, *agent.Request) []any { return []any{tt.err} }, func(o *Options) {
					o.Hook = func(_ context.Context, m agent.Moment) agent.HookResult {
						if m.Event == "StopFailure" {
							failure = m
						}
						return agent.HookResult{}
					}
				})
				b.prompt("hi")
				es := b.finish()
				o := outcomes(es)[0]
				if o.Subtype != "success" || !o.IsError || o.Reason != tt.reason || o.APIStatus != tt.err.Status || !strings.HasPrefix(o.Text, tt.head) {
					t.Errorf("%+v", o)
				}
				if failure.Match != tt.kind {
					t.Errorf("StopFailure %+v", failure)
				}
				if h := b.s.History(); len(h) != 1 {
					t.Errorf("the failure is in the history: %v", h)
				}
			})
		})
	}
}

// A call whose decision was left to the host ends the run; the resumed session
// decides it anew, runs it, and the prompt stands behind its result.
func TestDeferral(t *testing.T) {
	each(t, func(t *testing.T) {
		b := start(t, answers("c T {}"), func(o *Options) {
			o.Gate = func(context.Context, agent.Call) (agent.Decision, error) {
				return agent.Decision{Verdict: agent.Defer}, nil
			}
		})
		b.prompt("hi")
		es := b.finish()
		o := outcomes(es)[0]
		if o.Reason != "tool_deferred" || o.Deferred == nil || o.Deferred.ID != "c" || len(bodies[agent.Finished](es)) != 0 {
			t.Fatalf("%+v", o)
		}
		again := start(t, answers("done"), func(o *Options) {
			o.History, o.Deferred = b.s.History(), "c"
		})
		again.prompt("go on")
		es = again.finish()
		compare(t, sent(again.up.reqs[0]), `user [{"type":"text","text":"hi"}]
assistant [{"type":"tool_use","id":"c","name":"T","input":{}}]
user [{"type":"tool_result","tool_use_id":"c","content":"ran"},{"type":"text","text":"go on"}]`)
		if o := outcomes(es)[0]; o.Text != "done" {
			t.Errorf("%+v", o)
		}
	})
}

func TestFitAndRecover(t *testing.T) {
	each(t, func(t *testing.T) {
		short := []agent.Message{{Role: agent.User, Blocks: []agent.Block{&agent.Text{Text: "summary"}}}}
		fitted := 0
		var b *bench
		b = start(t, func(n int, _ *agent.Request) []any {
			if n == 1 {
				return []any{&agent.ModelError{Fault: agent.FaultBlock, Status: 400, Message: "bad image"}}
			}
			return says("ok")
		}, func(o *Options) {
			o.Fit = func(_ context.Context, h []agent.Message) window.Outcome {
				if fitted++; fitted == 1 {
					return window.Outcome{History: h, Changed: true, Compacted: &agent.Compacted{Trigger: "auto", History: short}}
				}
				return window.Outcome{History: h}
			}
			o.Recover = func(_ context.Context, h []agent.Message, err error) (window.Outcome, bool) {
				return window.Outcome{History: short, Changed: true, Note: "an image was taken out"}, true
			}
			o.Hook = func(_ context.Context, m agent.Moment) agent.HookResult {
				if m.Match == "compact" {
					return agent.HookResult{Context: []string{"after compaction"}}
				}
				return agent.HookResult{}
			}
		})
		b.prompt("one")
		b.prompt("two")
		es := b.finish()
		if s := sent(b.up.reqs[0]); !strings.Contains(s, "summary") || !strings.Contains(s, "after compaction") || strings.Contains(s, "one") {
			t.Error(s)
		}
		if m := bodies[agent.Mended](es); len(m) != 1 || m[0].Reason != "an image was taken out" {
			t.Errorf("%+v", m)
		}
		if os := outcomes(es); len(os) != 2 || os[1].Text != "ok" {
			t.Errorf("%+v", os)
		}
	})
}

func TestAFaultOfTheProgramEndsTheTurnOnly(t *testing.T) {
	each(t, func(t *testing.T) {
		b := start(t, func(n int, _ *agent.Request) []any {
			if n == 0 {
				panic("odd")
			}
			return says("ok")
		}, nil)
		b.prompt("one")
		b.prompt("two")
		os := outcomes(b.finish())
		if len(os) != 2 || os[0].Subtype != "error_during_execution" || os[1].Text != "ok" {
			t.Errorf("%+v", os)
		}
	})
}

// A disk that is full is told once and does not end the session.
func TestSinkThatFails(t *testing.T) {
	each(t, func(t *testing.T) {
		b := start(t, answers("ok"), func(o *Options) {
			o.Sink = func(agent.Event) error { return errors.New("no space left on device") }
		})
		b.prompt("one")
		es := b.finish()
		if n := strings.Count(lines(es), "Transcript writes are failing"); n != 1 || outcomes(es)[0].Text != "ok" {
			t.Errorf("told %d times\n%s", n, lines(es))
		}
	})
}

func TestIntentIsSavedBeforeACallRuns(t *testing.T) {
	each(t, func(t *testing.T) {
		var saved []string
		b := start(t, func(n int, _ *agent.Request) []any {
			if n == 0 {
				return says("c T {}")
			}
			return says("ok")
		}, func(o *Options) {
			o.Sink = func(e agent.Event) error {
				switch b := e.Body.(type) {
				case agent.Started:
					time.Sleep(time.Second)
					saved = append(saved, "started "+string(b.Call.ID))
				case agent.Finished:
					saved = append(saved, "finished "+string(b.Call.ID))
				}
				return nil
			}
			o.Tools = NewTools(slow{name: "T", run: func(context.Context, agent.Call) (agent.Result, error) {
				saved = append(saved, "runs")
				return agent.Textual("x"), nil
			}})
		})
		b.prompt("one")
		b.finish()
		compare(t, strings.Join(saved, "\n"), "started c\nruns\nfinished c")
	})
}
