package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// A model answers the n-th request with what it writes: Deltas, pauses, errors.
// It stands in for an upstream; what is tested here is the session around it.
type model func(n int, req *agent.Request) []any

type upstream struct {
	mu   sync.Mutex
	m    model
	reqs []*agent.Request
}

func (u *upstream) Stream(ctx context.Context, req *agent.Request) iter.Seq2[agent.Delta, error] {
	u.mu.Lock()
	n := len(u.reqs)
	u.reqs = append(u.reqs, req)
	u.mu.Unlock()
	return func(yield func(agent.Delta, error) bool) {
		for _, x := range u.m(n, req) {
			if ctx.Err() != nil {
				yield(nil, context.Cause(ctx))
				return
			}
			switch x := x.(type) {
			case time.Duration:
				select {
				case <-time.After(x):
				case <-ctx.Done():
					yield(nil, context.Cause(ctx))
					return
				}
			case error:
				yield(nil, x)
				return
			case agent.Delta:
				if !yield(x, nil) {
					return
				}
			}
		}
	}
}

// says is a whole response: text, or a call written as "id Tool {input}".
func says(parts ...string) []any {
	out := []any{agent.Begin{MessageID: "msg", Model: "m", Usage: agent.Usage{In: 100}}}
	stop := "end_turn"
	for i, p := range parts {
		var b agent.Block = &agent.Text{Text: p}
		if f := strings.SplitN(p, " ", 3); len(f) == 3 && strings.HasPrefix(f[2], "{") {
			b, stop = &agent.ToolUse{ID: agent.CallID(f[0]), Name: f[1], Input: json.RawMessage(f[2])}, "tool_use"
		}
		out = append(out, agent.BlockBegin{Index: i, Block: &agent.Text{}}, agent.BlockEnd{Index: i, Block: b})
	}
	return append(out, agent.Stopped{Stop: stop, Usage: agent.Usage{In: 100, Out: 10}}, agent.Done{})
}

// answers says each text in turn, and then goes on with the last.
func answers(texts ...string) model {
	return func(n int, _ *agent.Request) []any { return says(texts[min(n, len(texts)-1)]) }
}

type slow struct {
	name string
	took time.Duration
	run  func(ctx context.Context, c agent.Call) (agent.Result, error)
}

func (t slow) Spec() agent.Spec {
	return agent.Spec{Name: t.name, Schema: json.RawMessage(`{"type":"object"}`)}
}
func (t slow) Inspect(json.RawMessage) (agent.Effects, error) { return agent.Effects{}, nil }
func (t slow) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	if t.run != nil {
		return t.run(ctx, c)
	}
	select {
	case <-time.After(t.took):
		return agent.Textual("ran"), nil
	case <-ctx.Done():
		return agent.Result{}, context.Cause(ctx)
	}
}

// A bench is a session at work and the record of its events.
type bench struct {
	t    *testing.T
	s    *Session
	up   *upstream
	mu   sync.Mutex
	log  []agent.Event
	read chan struct{} // closed when the events have ended
	ran  chan struct{} // closed when Run has returned
}

func start(t *testing.T, m model, change func(*Options)) *bench {
	t.Helper()
	b := &bench{t: t, up: &upstream{m: m}, read: make(chan struct{}), ran: make(chan struct{})}
	ids := 0
	var mu sync.Mutex
	o := Options{
		ID: "S", Provider: b.up, Model: "m", Tools: NewTools(slow{name: "T", took: time.Second}),
		Window: func(h []agent.Message) *agent.Request {
			return &agent.Request{Model: b.s.Model(), Messages: h, Purpose: "main"}
		},
		Gate: func(context.Context, agent.Call) (agent.Decision, error) {
			return agent.Decision{Verdict: agent.Allow}, nil
		},
		NewID: func() string {
			mu.Lock()
			defer mu.Unlock()
			ids++
			return fmt.Sprintf("id%d", ids)
		},
	}
	if change != nil {
		change(&o)
	}
	b.s = New(o)
	go func() {
		defer close(b.read)
		for e, err := range b.s.Events(context.Background(), 0) {
			if err != nil {
				t.Error(err)
				return
			}
			b.mu.Lock()
			b.log = append(b.log, e)
			b.mu.Unlock()
		}
	}()
	go func() { defer close(b.ran); b.s.Run(context.Background()) }()
	return b
}

func (b *bench) submit(in agent.Input) {
	b.t.Helper()
	if err := b.s.Submit(context.Background(), in); err != nil {
		b.t.Errorf("%T: %v", in, err)
	}
}

func (b *bench) prompt(text string) {
	b.t.Helper()
	b.submit(agent.Prompt{UUID: "u-" + text, Blocks: []agent.Block{&agent.Text{Text: text}}, Replay: true})
}

// finish ends the session and returns its events.
func (b *bench) finish() []agent.Event {
	b.t.Helper()
	b.submit(agent.Finish{})
	return b.wait()
}

func (b *bench) wait() []agent.Event {
	b.t.Helper()
	<-b.ran
	<-b.read
	return b.log
}

func bodies[T agent.Body](es []agent.Event) (out []T) {
	for _, e := range es {
		if b, ok := e.Body.(T); ok {
			out = append(out, b)
		}
	}
	return out
}

func outcomes(es []agent.Event) (out []agent.Outcome) {
	for _, s := range bodies[agent.Settled](es) {
		out = append(out, s.Outcome)
	}
	return out
}

// line writes an event in a word or two, "" for those of no interest here.
func line(e agent.Event) string {
	switch b := e.Body.(type) {
	case agent.Opened:
		return "opened"
	case agent.Began:
		return "began " + strings.Join(b.Prompts, ",")
	case agent.Said:
		if b.Message.Role == agent.User {
			return strings.TrimSpace("user " + agent.TextOf(b.Message.Blocks))
		}
		return strings.TrimSpace("model " + agent.TextOf(b.Message.Blocks))
	case agent.Lifecycle:
		return b.State + " " + b.UUID
	case agent.State:
		return b.State
	case agent.Settled:
		return "settled " + b.Outcome.Subtype
	case agent.Replied:
		v, _ := json.Marshal(b.Value)
		return fmt.Sprintf("replied %s %s%s", b.ID, v, b.Err)
	case agent.Changed:
		return "changed " + b.What
	case agent.Asked:
		return "asked " + b.Question.ID
	case agent.Answered:
		return "answered " + b.ID
	case agent.Withdrawn:
		return "withdrawn " + b.ID
	case agent.Noted:
		return b.Level + ": " + b.Text
	case agent.Local:
		return "local " + b.Text
	case agent.Compacting:
		return "compacting"
	case agent.Compacted:
		return "compacted"
	case agent.Cleared:
		return "cleared " + b.Session
	}
	return ""
}

func lines(es []agent.Event) string {
	var out []string
	for _, e := range es {
		if s := line(e); s != "" {
			out = append(out, s)
		}
	}
	return strings.Join(out, "\n")
}

func compare(t *testing.T, got, want string) {
	t.Helper()
	if got = strings.TrimSpace(got); got != strings.TrimSpace(want) {
		t.Errorf("got\n%s\n\nwant\n%s", got, strings.TrimSpace(want))
	}
}

func sent(req *agent.Request) string {
	var s strings.Builder
	for _, m := range req.Messages {
		fmt.Fprintf(&s, "%s %s\n", m.Role, m.Encode().Wire)
	}
	return s.String()
}

// each runs f in a bubble of its own.
func each(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}

func TestOrderOfATurn(t *testing.T) {
	each(t, func(t *testing.T) {
		b := start(t, answers("hello"), func(o *Options) {
			o.Hook = func(_ context.Context, m agent.Moment) agent.HookResult {
				return agent.HookResult{Notes: []string{m.Event}}
			}
			o.Opening = func(_ context.Context, source string, hooks []string) []agent.Block {
				return []agent.Block{&agent.Text{Text: "opening of " + source, Note: "x"}}
			}
		})
		synctest.Wait()
		b.prompt("hi")
		compare(t, lines(b.finish()), `
opened
info: SessionStart
queued u-hi
running
started u-hi
info: UserPromptSubmit
began u-hi
user hi
model hello
info: Stop
settled success
completed u-hi
idle
info: SessionEnd`)
		o := outcomes(b.log)[0]
		if o.Text != "hello" || o.Turns != 1 || o.Reason != "completed" || o.Stop != "end_turn" || o.Usage.Out != 10 || o.IsError {
			t.Errorf("%+v", o)
		}
		if got, want := sent(b.up.reqs[0]), "user [{\"type\":\"text\",\"text\":\"opening of startup\"},{\"type\":\"text\",\"text\":\"hi\"}]\n"; got != want {
			t.Errorf("sent %s want %s", got, want)
		}
	})
}

func TestPromptsWhileIdleAreTurns(t *testing.T) {
	each(t, func(t *testing.T) {
		b := start(t, func(n int, _ *agent.Request) []any {
			return append([]any{time.Second}, says(fmt.Sprint("answer ", n))...)
		}, nil)
		b.prompt("a")
		b.prompt("b")
		es := b.finish()
		var got []string
		for _, o := range outcomes(es) {
			got = append(got, o.Text+" "+strings.Join(o.Prompts, ","))
		}
		compare(t, strings.Join(got, "\n"), "answer 0 u-a\nanswer 1 u-b")
		if n := strings.Count(lines(es), "idle"); n != 1 {
			t.Errorf("%d times idle", n)
		}
	})
}

func TestPromptJoinsTheTurn(t *testing.T) {
	each(t, func(t *testing.T) {
		b := start(t, func(n int, _ *agent.Request) []any {
			if n == 0 {
				return says("c T {}")
			}
			return says("done")
		}, func(o *Options) {
			o.Expand = func(_ context.Context, p agent.Prompt) (Expansion, error) {
				return Expansion{Messages: []agent.Message{{Role: agent.User, Blocks: p.Blocks}}}, nil
			}
		})
		b.prompt("one")
		time.Sleep(500 * time.Millisecond)
		b.submit(agent.Prompt{UUID: "later", Later: true, Blocks: []agent.Block{&agent.Text{Text: "afterwards"}}})
		b.prompt("two")
		b.submit(agent.Prompt{UUID: "cmd", Blocks: []agent.Block{&agent.Text{Text: "/command"}}})
		b.prompt("three")
		es := b.finish()
		// Behind a command nothing overtakes; what waits for the end of the turn does.
		var got []string
		for _, o := range outcomes(es) {
			got = append(got, strings.Join(o.Prompts, ","))
		}
		compare(t, strings.Join(got, "\n"), "u-one,u-two\nlater\ncmd\nu-three")
		m := b.up.reqs[1].Messages
		if last := m[len(m)-1]; len(m) != 3 || len(last.Blocks) != 3 || agent.TextOf(last.Blocks) != "two" {
			t.Errorf("sent\n%s", sent(b.up.reqs[1]))
		}
		if s := lines(es); !strings.Contains(s, "started u-two\nuser\nuser two\nmodel done") && !strings.Contains(s, "user\nstarted u-two\nuser two\nmodel done") {
			t.Errorf("events\n%s", s)
		}
	})
}

func TestInterrupt(t *testing.T) {
	each(t, func(t *testing.T) {
		b := start(t, func(n int, _ *agent.Request) []any {
			switch n {
			case 0:
				return []any{agent.Begin{MessageID: "m"}, agent.BlockBegin{Block: &agent.Text{}}, agent.Chunk{Kind: "text_delta", Text: "I was"}, time.Hour}
			case 1:
				return says("c T {}", "d T {}")
			}
			return says("alive")
		}, nil)
		b.submit(agent.Interrupt{}) // idle: nothing happens
		b.prompt("one")
		time.Sleep(time.Millisecond)
		b.submit(agent.Query{ID: "q", Name: "interrupt"})
		time.Sleep(time.Millisecond)
		b.prompt("two")
		time.Sleep(time.Millisecond)
		b.prompt("queued")
		b.submit(agent.Query{ID: "r", Name: "interrupt", Args: json.RawMessage(`{"cancel_queued":true}`)})
		time.Sleep(time.Millisecond)
		b.prompt("three")
		es := b.finish()
		compare(t, lines(es), `
opened
queued u-one
running
started u-one
began u-one
user one
replied q {"still_queued":[]}
model I was
user [Request interrupted by user]
settled error_during_execution
completed u-one
idle
queued u-two
running
started u-two
began u-two
user two
model
model
queued u-queued
cancelled u-queued
replied r {"cancelled":["u-queued"],"still_queued":[]}
user
user [Request interrupted by user for tool use]
settled error_during_execution
completed u-two
idle
queued u-three
running
started u-three
began u-three
user three
model alive
settled success
completed u-three
idle`)
		reasons := []string{}
		for _, o := range outcomes(es) {
			reasons = append(reasons, o.Reason)
		}
		if !slices.Equal(reasons, []string{"aborted_streaming", "aborted_tools", "completed"}) {
			t.Error(reasons)
		}
		if s := sent(b.up.reqs[2]); !strings.Contains(s, "I was") || strings.Count(s, "\n") != 5 {
			t.Errorf("sent\n%s", s)
		}
	})
}

func TestStopLeavesTheTurn(t *testing.T) {
	each(t, func(t *testing.T) {
		b := start(t, func(n int, _ *agent.Request) []any { return says("c T {}") }, nil)
		b.prompt("one")
		time.Sleep(500 * time.Millisecond)
		b.submit(agent.Stop{})
		es := b.wait()
		if len(outcomes(es)) != 0 || strings.Contains(lines(es), "interrupted") {
			t.Error(lines(es))
		}
		if h := b.s.History(); len(h) != 3 || !strings.Contains(string(h[2].Wire), `"is_error":true`) {
			t.Errorf("history %v", h)
		}
		if err := b.s.Submit(context.Background(), agent.Finish{}); !errors.Is(err, ErrOver) {
			t.Error(err)
		}
	})
}

func TestContextEndIsAStop(t *testing.T) {
	each(t, func(t *testing.T) {
		up := &upstream{m: func(int, *agent.Request) []any { return []any{time.Hour} }}
		s := New(Options{Provider: up, Window: func(h []agent.Message) *agent.Request { return &agent.Request{Messages: h} }})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); s.Run(ctx) }()
		if err := s.Submit(ctx, agent.Prompt{Blocks: []agent.Block{&agent.Text{Text: "x"}}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		cancel()
		<-done
	})
}

func TestChoices(t *testing.T) {
	each(t, func(t *testing.T) {
		var told []string
		b := start(t, answers("ok"), func(o *Options) {
			o.Resolve = func(n string) (string, error) {
				switch n {
				case "":
					return "m", nil
				case "no":
					return "", errors.New("no such model")
				}
				return "model-" + n, nil
			}
			o.AllowMode = func(m agent.Mode) error {
				if m == agent.ModeBypass {
					return errors.New("not available")
				}
				return nil
			}
			o.Changed = func(m string, t agent.Thought, e string) { told = append(told, fmt.Sprint(m, t, e)) }
			o.Grant = func(_ context.Context, us []agent.PermissionUpdate) error {
				told = append(told, fmt.Sprint(len(us), " ", us[0].Type))
				return nil
			}
		})
		bad := func(in agent.Input) {
			t.Helper()
			if b.s.Submit(t.Context(), in) == nil {
				t.Errorf("%#v was taken", in)
			}
		}
		b.submit(agent.SetMode{Mode: agent.ModePlan})
		b.submit(agent.SetMode{Mode: agent.ModePlan})
		bad(agent.SetMode{Mode: agent.ModeBypass})
		b.submit(agent.SetModel{Model: "x"})
		bad(agent.SetModel{Model: "no"})
		b.submit(agent.SetThinking{Effort: "high"})
		b.submit(agent.SetThinking{Thought: agent.Thought{Type: "disabled"}})
		b.submit(agent.Grant{Updates: []agent.PermissionUpdate{{Type: "setMode", Mode: agent.ModeAcceptEdits}, {Type: "addRules"}}})
		bad(agent.Prompt{})
		bad(agent.Unqueue{UUID: "none"})
		bad(agent.Compact{})
		b.submit(agent.SetModel{})
		if b.s.Mode() != agent.ModeAcceptEdits || b.s.Model() != "m" {
			t.Error(b.s.Info())
		}
		for id, q := range map[string]string{"a": `{"mode":"manual"}`, "b": `{"mode":"odd"}`, "c": `[]`} {
			b.submit(agent.Query{ID: id, Name: "set_permission_mode", Args: json.RawMessage(q)})
		}
		es := b.finish()
		compare(t, strings.Join(told, "\n"), `
model-x{ 0 }
model-x{ 0 }high
model-x{disabled 0 }high
1 addRules
m{disabled 0 }high`)
		var whats []string
		for _, c := range bodies[agent.Changed](es) {
			whats = append(whats, c.What)
		}
		if got := strings.Join(whats, " "); got != "mode model effort thinking mode rules model mode" {
			t.Error(got)
		}
		for _, r := range bodies[agent.Replied](es) {
			if (r.Err != "") != (r.ID != "a") {
				t.Errorf("%+v", r)
			}
		}
	})
}

func TestQueries(t *testing.T) {
	each(t, func(t *testing.T) {
		b := start(t, answers("ok"), func(o *Options) {
			o.Queries = map[string]Query{
				"initialize": {First: true, Run: func(ctx context.Context, args json.RawMessage) (any, error) {
					time.Sleep(time.Second)
					return args, nil
				}},
				"fails":  {Run: func(context.Context, json.RawMessage) (any, error) { return nil, coded{"no", "code"} }},
				"panics": {Run: func(context.Context, json.RawMessage) (any, error) { panic("odd") }},
			}
		})
		b.submit(agent.Query{ID: "1", Name: "initialize", Args: json.RawMessage(`{"x":1}`)})
		b.prompt("hi") // waits for the answer
		b.submit(agent.Query{ID: "2", Name: "fails"})
		b.submit(agent.Query{ID: "3", Name: "nobody knows this"})
		b.submit(agent.Query{ID: "4", Name: "panics"})
		es := b.finish()
		if got := lines(es); !strings.HasPrefix(got, "opened\nqueued u-hi\nreplied 1 {\"x\":1}\n") {
			t.Error(got)
		}
		got := map[string]agent.Replied{}
		for _, r := range bodies[agent.Replied](es) {
			got[r.ID] = r
		}
		if got["2"].Code != "code" || got["3"].Code != "unsupported_request" || !strings.Contains(got["4"].Err, "odd") {
			t.Errorf("%+v", got)
		}
	})
}

func TestQuestions(t *testing.T) {
	each(t, func(t *testing.T) {
		var b *bench
		b = start(t, func(n int, _ *agent.Request) []any {
			if n%2 == 0 {
				return says(fmt.Sprintf("c%d T {}", n))
			}
			return says("ok")
		}, func(o *Options) {
			o.Gate = func(ctx context.Context, c agent.Call) (agent.Decision, error) {
				a, err := b.s.Ask(ctx, agent.Question{ID: "q-" + string(c.ID), Kind: agent.AskPermission, Call: c})
				return a.Decision, err
			}
			o.Answerable = func(kind string) bool { return kind != agent.AskDialog }
		})
		b.prompt("one")
		time.Sleep(time.Millisecond)
		if qs := b.s.Open(); len(qs) != 1 || qs[0].ID != "q-c0" {
			t.Error(qs)
		}
		allow := agent.Answer{ID: "q-c0", Decision: agent.Decision{Verdict: agent.Allow}}
		b.submit(allow)
		b.submit(allow) // too late: dropped
		time.Sleep(2 * time.Second)
		b.prompt("two")
		time.Sleep(time.Millisecond)
		b.submit(agent.Interrupt{})
		time.Sleep(time.Millisecond)
		if _, err := b.s.Ask(t.Context(), agent.Question{Kind: agent.AskDialog}); !errors.Is(err, agent.ErrNoOne) {
			t.Error(err)
		}
		got := lines(b.finish())
		for _, want := range []string{
			"asked q-c0\nrequires_action\nanswered q-c0\nrunning\n",
			"asked q-c2\nrequires_action\nwithdrawn q-c2\nrunning\nuser\nuser [Request interrupted by user for tool use]\n",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("got\n%s\nwant in it\n%s", got, want)
			}
		}
	})
}

func TestFinishWaitsForBackgroundAgents(t *testing.T) {
	each(t, func(t *testing.T) {
		end := make(chan struct{})
		var b *bench
		b = start(t, answers("launched", "reported"), func(o *Options) {
			told := 0
			o.Busy = func(ctx context.Context) error {
				select {
				case <-end:
					if told++; told <= 2 { // the second turn sends an agent too
						b.submit(agent.Prompt{Origin: "task-notification", Verbatim: true, Blocks: []agent.Block{&agent.Text{Text: "<task-notification>"}}})
					}
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		})
		b.prompt("go")
		b.submit(agent.Finish{})
		if err := b.s.Submit(t.Context(), agent.Prompt{Blocks: []agent.Block{&agent.Text{Text: "x"}}}); !errors.Is(err, ErrOver) {
			t.Error(err)
		}
		time.Sleep(5 * time.Minute)
		close(end)
		got := outcomes(b.wait())
		if len(got) != 3 || got[1].Text != "reported" || got[1].Origin != "task-notification" {
			t.Errorf("%+v", got)
		}
	})
}

func TestCeilingOfThatWait(t *testing.T) {
	each(t, func(t *testing.T) {
		begin := time.Now()
		b := start(t, answers("launched"), func(o *Options) {
			o.Busy = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		})
		b.prompt("go")
		got := lines(b.finish())
		if d := time.Since(begin); d != 10*time.Minute || !strings.Contains(got, "warning: Background agents") {
			t.Errorf("after %v\n%s", d, got)
		}
	})
}

func TestCommands(t *testing.T) {
	each(t, func(t *testing.T) {
		b := start(t, answers("ok"), func(o *Options) {
			o.Expand = func(_ context.Context, p agent.Prompt) (Expansion, error) {
				switch s := agent.TextOf(p.Blocks); s {
				case "/cost":
					return Expansion{Local: "0 USD"}, nil
				case "/bad":
					return Expansion{}, errors.New("no such thing")
				case "/compact":
					return Expansion{Inputs: []agent.Input{agent.Compact{Focus: "f"}}, Local: "Compacted."}, nil
				case "/clear":
					return Expansion{Clear: true}, nil
				case "/model":
					return Expansion{Inputs: []agent.Input{agent.SetModel{Model: "other"}}, Local: "other"}, nil
				}
				return Expansion{Messages: []agent.Message{{Blocks: p.Blocks}}}, nil
			}
			o.Compact = func(_ context.Context, h []agent.Message, focus string) agent.Compacted {
				return agent.Compacted{Trigger: "manual", Summary: focus, History: []agent.Message{{Role: agent.User, Blocks: []agent.Block{&agent.Text{Text: "summary"}}}}}
			}
			o.Clear = func(context.Context) (string, error) { return "S2", nil }
			o.Opening = func(_ context.Context, source string, _ []string) []agent.Block {
				return []agent.Block{&agent.Text{Text: source, Note: "n"}}
			}
		})
		for _, p := range []string{"one", "/cost", "/bad", "/model", "/compact", "two", "/clear", "three"} {
			b.prompt(p)
			time.Sleep(time.Second)
		}
		es := b.finish()
		var got []string
		for _, o := range outcomes(es) {
			got = append(got, fmt.Sprint(o.Text, " ", o.Turns, " ", o.IsError))
		}
		compare(t, strings.Join(got, "\n"), "ok 1 false\n0 USD 0 false\nno such thing 0 true\nother 0 false\nCompacted. 0 false\nok 1 false\n 0 false\nok 1 false")
		if len(b.up.reqs) != 3 || b.up.reqs[1].Model != "other" {
			t.Fatalf("%d requests", len(b.up.reqs))
		}
		compare(t, sent(b.up.reqs[1]), `user [{"type":"text","text":"summary"},{"type":"text","text":"two"}]`+"\n")
		compare(t, sent(b.up.reqs[2]), `user [{"type":"text","text":"clear"},{"type":"text","text":"three"}]`+"\n")
		if b.s.ID() != "S2" || !strings.Contains(lines(es), "cleared S2") {
			t.Error(b.s.ID())
		}
	})
}
