package tui

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/test/screen"
)

// A play is a session that says what it is told to.
type play struct {
	mu     sync.Mutex
	events []agent.Event
	wake   chan struct{}
	inputs []agent.Input
}

func newPlay() *play { return &play{wake: make(chan struct{})} }

func (p *play) Submit(_ context.Context, in agent.Input) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inputs = append(p.inputs, in)
	return nil
}

func (p *play) got() []agent.Input {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.inputs)
}

func (p *play) say(bs ...agent.Body) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range bs {
		p.events = append(p.events, agent.Event{Seq: uint64(len(p.events)), At: time.Now(), Body: b})
	}
	close(p.wake)
	p.wake = make(chan struct{})
}

func (p *play) Events(ctx context.Context, from uint64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for i := from; ; i++ {
			p.mu.Lock()
			for int(i) >= len(p.events) {
				wake := p.wake
				p.mu.Unlock()
				select {
				case <-wake:
				case <-ctx.Done():
					yield(agent.Event{}, context.Cause(ctx))
					return
				}
				p.mu.Lock()
			}
			e := p.events[i]
			p.mu.Unlock()
			if !yield(e, nil) {
				return
			}
		}
	}
}

// A seat is a terminal with a front end on it.
type seat struct {
	vt   *screen.Screen
	keys *io.PipeWriter
	stop context.CancelFunc
	done chan Result
}

func sit(t *testing.T, s agent.Session, o Options) *seat {
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	st := &seat{vt: screen.New(80, 30), keys: w, stop: cancel, done: make(chan Result, 1)}
	o.In, o.Out, o.Color, o.Still = r, st.vt, true, true
	o.Size = func() (int, int) { return 80, 30 }
	go func() { st.done <- Run(ctx, s, o) }()
	return st
}

func (s *seat) leave() Result {
	s.stop()
	r := <-s.done
	s.keys.Close()
	return r
}

func chunk(kind, text string) agent.Body {
	return agent.Wrote{Delta: agent.Chunk{Kind: kind, Text: text}}
}

func begin(b agent.Block) agent.Body { return agent.Wrote{Delta: agent.BlockBegin{Block: b}} }

func prompt(text string) agent.Body {
	return agent.Said{Message: agent.Message{UUID: "u", Role: agent.User, Blocks: []agent.Block{&agent.Text{Text: text}}}}
}

func said(b agent.Block) agent.Body {
	return agent.Said{Message: agent.Message{ID: "m", Role: agent.Assistant, Blocks: []agent.Block{b}}}
}

// A front end that is killed in the middle of a turn, at any event, and one
// that attaches then, from the first event, show the same screen; and so do
// both at the end.
func TestAttach(t *testing.T) {
	t.Parallel()
	call := agent.Call{ID: "t1", Name: "Bash", Input: json.RawMessage(`{"command":"ls"}`)}
	edit := agent.Call{ID: "t2", Name: "Edit", Input: json.RawMessage(`{"file_path":"/p/a"}`)}
	detail := json.RawMessage(`{"structuredPatch":[{"oldStart":1,"oldLines":1,"newStart":1,"newLines":1,"lines":["-a","+b"]}]}`)
	story := []agent.Body{
		agent.Opened{Info: agent.Info{Session: "s", Cwd: "/srv/proj", Model: "m", Version: "1"}},
		agent.State{State: "running"},
		agent.Began{Info: agent.Info{Session: "s", Cwd: "/srv/proj", Model: "m", Version: "1"}},
		prompt("please\ndo it"),
		begin(&agent.Thinking{}), chunk("thinking_delta", "hm"), said(&agent.Thinking{Text: "hm"}),
		begin(&agent.Text{}), chunk("text_delta", "I **will"), chunk("text_delta", "** do.\n\n- one\n"), chunk("text_delta", "- two"),
		said(&agent.Text{Text: "I **will** do.\n\n- one\n- two"}),
		begin(&agent.ToolUse{ID: "t1", Name: "Bash"}), chunk("input_json_delta", `{"command":"ls"}`),
		said(&agent.ToolUse{ID: "t1", Name: "Bash", Input: call.Input}),
		agent.Asked{Question: agent.Question{ID: "q", Kind: agent.AskPermission, Call: call}},
		agent.Answered{ID: "q"},
		agent.Started{Call: call},
		agent.Progressed{ID: "t1", Progress: agent.Progress{Text: "half"}},
		agent.Finished{Call: call, Ran: true, Result: agent.Textual("a\nb\nc\nd\ne")},
		said(&agent.ToolUse{ID: "t2", Name: "Edit", Input: edit.Input}),
		agent.Started{Call: edit},
		agent.Finished{Call: edit, Ran: true, Result: agent.Result{Detail: detail, Blocks: []agent.Block{&agent.Text{Text: "done"}}}},
		agent.Responded{Usage: agent.Usage{In: 10, Out: 5}, Cost: 0.5},
		agent.Noted{Level: "warning", Text: "mind the gap"},
		begin(&agent.Text{}), chunk("text_delta", "lost half"), agent.Wrote{Delta: agent.Reset{}},
		agent.Wrote{Delta: agent.Retrying{Attempt: 1, Max: 3, Err: "overloaded"}},
		begin(&agent.Text{}), chunk("text_delta", "All done."), said(&agent.Text{Text: "All done."}),
		agent.Settled{Outcome: agent.Outcome{Subtype: "success", Took: 3 * time.Second, Cost: 0.5, Usage: agent.Usage{In: 10, Out: 5}}},
		agent.State{State: "idle"},
	}
	for n := 1; n <= len(story); n++ {
		synctest.Test(t, func(t *testing.T) {
			p := newPlay()
			old := sit(t, p, Options{})
			for _, b := range story[:n] {
				p.say(b)
				time.Sleep(50 * time.Millisecond) // the clock of the bubble: each is drawn
				synctest.Wait()
			}
			before := old.vt.All()
			old.leave()
			fresh := sit(t, p, Options{})
			time.Sleep(50 * time.Millisecond)
			synctest.Wait()
			if got := fresh.vt.All(); still(got) != still(before) {
				t.Errorf("after %d events (%T): the first showed\n%s\nthe second shows\n%s", n, story[n-1], before, got)
			}
			if a := fresh.vt.Account(); len(a.Strange) > 0 || a.Clears > 0 || a.Loose > 0 {
				t.Errorf("%+v", a)
			}
			fresh.leave()
		})
	}
}

// still is a screen without the times that go on.
func still(s string) string { return going.ReplaceAllString(s, "") }

var going = regexp.MustCompile(` · \d+s`)

// Nothing but sequences of ours reaches the terminal, whatever a session says.
func TestNoForeignSequences(t *testing.T) {
	t.Parallel()
	for _, evil := range []string{
		"\x1b]0;title\x07", "\x1b]52;c;eA==\x1b\\", "\x1b[2J\x1b[H", "\x1bc", "\x1b[6n", "\x1bP+q544e\x1b\\", "\x1b_x\x1b\\", "\u009b31m", "\u0090x\u009c",
		"\x1b]8;;http://x\x07y", "\x1b]", "a\rb", "a\bb", "\x00\x07\x7f", "\u202ea\u2066", "\x1b[?1049h", "\x1b[200~", "\xff\xfe", "\u2028", "\U000e0041",
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPlay()
			s := sit(t, p, Options{Typed: []string{evil}, Past: []agent.Message{{Role: agent.User, Blocks: []agent.Block{&agent.Text{Text: evil}}}},
				Status: func(context.Context, []byte, int) (string, error) { return evil, nil }})
			in := encode(map[string]any{"command": evil, "description": evil, "file_path": evil, "old_string": evil, "new_string": evil + "\n" + evil, "content": evil, "plan": evil, "url": evil})
			p.say(agent.Opened{Info: agent.Info{Session: "s", Cwd: "/srv/" + evil, Model: evil, Version: evil, Commands: []agent.CommandInfo{{Name: "x" + evil, Description: evil}}}},
				prompt(evil), begin(&agent.Text{}), chunk("text_delta", evil+"\n"+evil), said(&agent.Text{Text: evil + "\n" + evil}), said(&agent.Thinking{Text: evil}))
			for i, name := range []string{"Bash", "Edit", "Write", "WebFetch", "Read", "ExitPlanMode", "mcp__a" + evil + "__b", evil} {
				c := agent.Call{ID: agent.CallID(fmt.Sprint("t", i)), Name: name, Input: in}
				id := fmt.Sprint("q", i)
				p.say(said(&agent.ToolUse{ID: c.ID, Name: name, Input: in}),
					agent.Asked{Question: agent.Question{ID: id, Kind: agent.AskPermission, Call: c, Agent: evil, Decision: agent.Decision{Reason: evil, Warn: []string{evil},
						Suggest: []agent.PermissionUpdate{{Type: "addRules", Rules: []agent.RuleText{{Tool: "Bash", Content: evil}}, Destination: evil}}}}})
				time.Sleep(50 * time.Millisecond)
				p.say(agent.Answered{ID: id}, agent.Started{Call: c}, agent.Progressed{ID: c.ID, Progress: agent.Progress{Text: evil}})
				time.Sleep(50 * time.Millisecond)
				p.say(agent.Finished{Call: c, Ran: true, Result: agent.Result{IsError: i%2 == 0, Blocks: []agent.Block{&agent.Text{Text: evil}}, Detail: map[string]any{"structuredPatch": []any{map[string]any{"oldStart": 1, "lines": []string{"-" + evil, "+" + evil + "x"}}}}}})
			}
			ask := encode(map[string]any{"questions": []any{map[string]any{"question": evil, "header": evil, "options": []any{map[string]any{"label": evil, "description": evil}}}}})
			p.say(agent.Asked{Question: agent.Question{ID: "d", Kind: agent.AskDialog, Name: "AskUserQuestion", Payload: ask}})
			time.Sleep(50 * time.Millisecond)
			p.say(agent.Withdrawn{ID: "d"}, agent.Asked{Question: agent.Question{ID: "e", Kind: agent.AskElicit, Payload: encode(map[string]any{"message": evil, "mcp_server_name": evil, "mode": "url", "url": evil})}})
			time.Sleep(50 * time.Millisecond)
			p.say(agent.Withdrawn{ID: "e"}, agent.Noted{Level: "error", Text: evil}, agent.Local{Text: evil}, agent.Wrote{Delta: agent.Retrying{Err: evil}},
				agent.Worked{Task: agent.Task{ID: "b", Status: "running", Description: evil}}, agent.State{State: "running"}, agent.Wrote{Delta: agent.Waiting{For: evil}})
			time.Sleep(50 * time.Millisecond)
			for _, k := range []string{"/x", "\x03", evil, "\x1b[A", "\x12" + "x", "\x0f", "q", "@" + evil} {
				io.WriteString(s.keys, k)
				time.Sleep(100 * time.Millisecond)
			}
			if a := s.vt.Account(); len(a.Strange) > 0 || a.Loose > 0 {
				t.Errorf("%q: %+v\n%s", evil, a, s.vt.All())
			}
			s.leave()
		})
	}
}

// A question takes no answer before a person can have read it, and none that
// was meant for the one before it.
func TestAnswers(t *testing.T) {
	t.Parallel()
	question := func(id string) agent.Body {
		return agent.Asked{Question: agent.Question{ID: id, Kind: agent.AskPermission, Call: agent.Call{Name: "Bash", Input: json.RawMessage(`{"command":"x"}`)}}}
	}
	for _, tt := range []struct {
		name  string
		steps []any // bodies; keys; pauses
		want  string
	}{
		{"yes", []any{question("a"), time.Second, "1"}, "a allow"},
		{"yes by letter", []any{question("a"), time.Second, "y"}, "a allow"},
		{"no by letter", []any{question("a"), time.Second, "n"}, ""},
		{"no by escape", []any{question("a"), time.Second, "\x1b", time.Second}, "a deny"},
		{"too soon", []any{question("a"), 40 * time.Millisecond, "1"}, ""},
		{"for the one before", []any{question("a"), question("b"), time.Second, "1", 20 * time.Millisecond, "1"}, "a allow"},
		{"one after the other", []any{question("a"), question("b"), time.Second, "1", agent.Answered{ID: "a"}, time.Second, "2"}, "a allow,b deny"},
		{"taken back", []any{question("a"), time.Second, agent.Withdrawn{ID: "a"}, time.Second, "1"}, ""},
		{"pasted", []any{question("a"), time.Second, "\x1b[200~1\x1b[201~"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlay()
				s := sit(t, p, Options{})
				for _, step := range tt.steps {
					switch step := step.(type) {
					case agent.Body:
						p.say(step)
					case string:
						io.WriteString(s.keys, step)
					case time.Duration:
						time.Sleep(step)
					}
					synctest.Wait()
				}
				var got []string
				for _, in := range p.got() {
					if a, ok := in.(agent.Answer); ok {
						got = append(got, a.ID+" "+a.Decision.Verdict.String())
					}
				}
				if s := strings.Join(got, ","); s != tt.want {
					t.Errorf("got %q, want %q", s, tt.want)
				}
				s.leave()
			})
		})
	}
}

// What an MCP server asks is answered in its own terms.
func TestElicitation(t *testing.T) {
	t.Parallel()
	form := `{"mcp_server_name":"s","message":"Who?","mode":"form","requested_schema":{"properties":{"age":{"type":"integer","minimum":1},"name":{"type":"string"},"ok":{"type":"boolean"},"pet":{"type":"string","enum":["cat","dog"]}},"required":["name"]}}`
	for _, tt := range []struct{ name, payload, keys, want string }{
		{"filled", form, "1|7\r|Ada\r|1|2", `{"action":"accept","content":{"age":7,"name":"Ada","ok":true,"pet":"dog"}}`},
		{"checked", form, "1|x\r|\x15\r|\r|A\r|2|1", `{"action":"accept","content":{"name":"A","ok":false,"pet":"cat"}}`},
		{"declined", form, "2", `{"action":"decline"}`},
		{"cancelled", form, "1|\x1b", `{"action":"cancel"}`},
		{"address", `{"mcp_server_name":"s","message":"Visit","mode":"url","url":"http://x/y"}`, "1", `{"action":"accept"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlay()
				s := sit(t, p, Options{})
				p.say(agent.Asked{Question: agent.Question{ID: "q", Kind: agent.AskElicit, Payload: json.RawMessage(tt.payload)}})
				for k := range strings.SplitSeq(tt.keys, "|") {
					time.Sleep(time.Second)
					io.WriteString(s.keys, k)
				}
				time.Sleep(time.Second)
				got := ""
				for _, in := range p.got() {
					if a, ok := in.(agent.Answer); ok {
						got += string(a.Payload)
					}
				}
				if got != tt.want {
					t.Errorf("got %s, want %s\n%s", got, tt.want, s.vt.Text())
				}
				s.leave()
			})
		})
	}
}

// A long session costs no more to draw than a short one.
func BenchmarkDraw(b *testing.B) {
	t := start(newPlay(), Options{Size: func() (int, int) { return 120, 40 }, Out: io.Discard})
	at := time.Now()
	for i := range 10_000 {
		t.st.fold(agent.Event{At: at, Body: said(&agent.Text{Text: fmt.Sprintf("message %d\n\n- with a list\n- of **items**", i)})})
	}
	t.draw(at)
	t.st.fold(agent.Event{At: at, Body: begin(&agent.Text{})})
	for i := 0; b.Loop(); i++ {
		text := "some more words "
		if i%10 == 9 {
			text = "\n"
		}
		t.st.fold(agent.Event{At: at, Body: chunk("text_delta", text)})
		t.draw(at)
	}
}
