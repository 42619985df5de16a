package loop

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

// A script is a Provider that replays one list of steps for each request: a
// Delta is yielded, a time.Duration waited for, an error ends the stream. It
// is the one stand-in for a model in this package: what is tested here is what
// the loop does with deltas, not how they come to be.
type script struct {
	mu    sync.Mutex
	steps [][]any
	reqs  []*agent.Request
}

func (s *script) Stream(ctx context.Context, r *agent.Request) iter.Seq2[agent.Delta, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reqs = append(s.reqs, r)
	if len(s.steps) == 0 {
		return play(ctx, []any{errors.New("the script is over")})
	}
	step := s.steps[0]
	s.steps = s.steps[1:]
	return play(ctx, step)
}

func play(ctx context.Context, step []any) iter.Seq2[agent.Delta, error] {
	return func(yield func(agent.Delta, error) bool) {
		for _, x := range step {
			if ctx.Err() != nil {
				yield(nil, context.Cause(ctx))
				return
			}
			switch x := x.(type) {
			case func():
				x()
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
			default:
				panic(fmt.Sprintf("%T in a script", x))
			}
		}
	}
}

// reply wraps parts (see text and use) in the events of a whole response.
func whole(stop string, parts ...any) []any {
	s := []any{agent.Begin{MessageID: "msg", Model: "m", Usage: agent.Usage{In: 10}}}
	i := 0
	for _, p := range parts {
		if b, ok := p.(agent.Block); ok {
			s = append(s, agent.BlockBegin{Index: i, Block: opening(b)})
			if t, ok := b.(*agent.Text); ok {
				s = append(s, agent.Chunk{Index: i, Kind: "text_delta", Text: t.Text})
			}
			s = append(s, agent.BlockEnd{Index: i, Block: b})
			i++
			continue
		}
		s = append(s, p)
	}
	return append(s, agent.Stopped{Stop: stop, Usage: agent.Usage{In: 10, Out: 5}}, agent.Done{})
}

func opening(b agent.Block) agent.Block {
	if _, ok := b.(*agent.Text); ok {
		return &agent.Text{}
	}
	return b
}

func text(s string) agent.Block { return &agent.Text{Text: s} }

func use(id, name string) agent.Block { return useWith(id, name, "{}") }

func useWith(id, name, input string) agent.Block {
	return &agent.ToolUse{ID: agent.CallID(id), Name: name, Input: json.RawMessage(input)}
}

// A tool of the tests is what its fields say.
type tool struct {
	eff     agent.Effects
	took    time.Duration
	run     func(ctx context.Context, c agent.Call) (agent.Result, error)
	inspect func(json.RawMessage) (agent.Effects, error)
	spec    agent.Spec
}

func (t tool) Spec() agent.Spec { return t.spec }
func (t tool) Inspect(in json.RawMessage) (agent.Effects, error) {
	if t.inspect != nil {
		return t.inspect(in)
	}
	return t.eff, nil
}
func (t tool) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	if t.run != nil {
		return t.run(ctx, c)
	}
	select {
	case <-time.After(t.took):
		return agent.Textual("ran " + string(c.ID)), nil
	case <-ctx.Done():
		return agent.Result{}, context.Cause(ctx)
	}
}

var (
	reader = tool{eff: agent.Effects{Concurrent: true, ReadOnly: true}, took: time.Second}
	writer = tool{took: time.Second}
)

// A rig is a Loop over a script, and what it told.
type rig struct {
	*Loop
	script *script
	mu     sync.Mutex
	events []agent.Body
	begin  time.Time
	starts map[agent.CallID]time.Duration
	ids    int
}

func allow(context.Context, agent.Call) (agent.Decision, error) {
	return agent.Decision{Verdict: agent.Allow}, nil
}

func newRig(tools map[string]agent.Tool, steps ...[]any) *rig {
	r := &rig{script: &script{steps: steps}, begin: time.Now(), starts: map[agent.CallID]time.Duration{}}
	r.Loop = &Loop{
		Provider: r.script,
		Tool:     func(n string) agent.Tool { return tools[n] },
		Window:   func(h []agent.Message) *agent.Request { return &agent.Request{Model: "m", Messages: h} },
		Gate:     allow,
		Emit: func(b agent.Body) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.events = append(r.events, b)
			if s, ok := b.(agent.Started); ok {
				r.starts[s.Call.ID] = time.Since(r.begin)
			}
		},
		ID: func() string {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.ids++
			return fmt.Sprintf("id-%d", r.ids)
		},
		MaxSteps: 40,
	}
	return r
}

var hello = []agent.Message{{Role: agent.User, Blocks: []agent.Block{&agent.Text{Text: "hi"}}}}

// check fails unless h could be sent: roles alternate, every call has exactly
// one result in the next message, ids are unique, no text is blank, no message
// ends in thinking, and the bytes are those of the blocks.
func check(t *testing.T, h []agent.Message) {
	t.Helper()
	seen := map[agent.CallID]bool{}
	for i, m := range h {
		want := agent.User
		if i%2 == 1 {
			want = agent.Assistant
		}
		if m.Role != want {
			t.Errorf("message %d: role %s, want %s", i, m.Role, want)
		}
		if i > 0 && string(m.Wire) != string(agent.AppendBlocks(nil, m.Blocks)) {
			t.Errorf("message %d: wire %s, want %s", i, m.Wire, agent.AppendBlocks(nil, m.Blocks))
		}
		if len(m.Blocks) == 0 || m.Role == agent.Assistant && thinking(m.Blocks[len(m.Blocks)-1]) {
			t.Errorf("message %d ends badly", i)
		}
		var uses, results []agent.CallID
		for j, b := range m.Blocks {
			if blank(b) {
				t.Errorf("message %d has a blank text", i)
			}
			if u, ok := b.(*agent.ToolUse); ok {
				if seen[u.ID] {
					t.Errorf("message %d: id %s is not unique", i, u.ID)
				}
				seen[u.ID] = true
				uses = append(uses, u.ID)
			}
			if r, ok := b.(*agent.ToolResult); ok {
				results = append(results, r.ID)
				if j >= len(results) {
					t.Errorf("message %d: a result stands behind other blocks", i)
				}
			}
		}
		if len(uses) > 0 {
			results = nil
			if i+1 < len(h) {
				for _, b := range h[i+1].Blocks {
					if r, ok := b.(*agent.ToolResult); ok {
						results = append(results, r.ID)
					}
				}
			}
			if !slices.Equal(uses, results) {
				t.Errorf("message %d: calls %v, results %v", i, uses, results)
			}
		} else if len(results) > 0 && (i == 0 || !hasUse(h[i-1])) {
			t.Errorf("message %d: results without calls", i)
		}
	}
}

func hasUse(m agent.Message) bool {
	return slices.ContainsFunc(m.Blocks, func(b agent.Block) bool { _, ok := b.(*agent.ToolUse); return ok })
}

// show writes a history in one line per message, for comparison.
func show(h []agent.Message) string {
	var s strings.Builder
	for _, m := range h {
		fmt.Fprintf(&s, "%s:", m.Role)
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case *agent.Text:
				fmt.Fprintf(&s, " %q", b.Text)
			case *agent.Thinking:
				fmt.Fprintf(&s, " thinking(%s)", b.Text)
			case *agent.ToolUse:
				fmt.Fprintf(&s, " call(%s %s)", b.ID, b.Name)
			case *agent.ToolResult:
				bad := ""
				if b.IsError {
					bad = "!"
				}
				fmt.Fprintf(&s, " result%s(%s %s)", bad, b.ID, agent.TextOf(b.Blocks))
			}
		}
		s.WriteByte('\n')
	}
	return s.String()
}

// finished counts the outcomes of each call that were told.
func (r *rig) finished() map[agent.CallID]int {
	n := map[agent.CallID]int{}
	for _, b := range r.events {
		if f, ok := b.(agent.Finished); ok {
			n[f.Call.ID]++
		}
	}
	return n
}

func TestOverlap(t *testing.T) {
	t.Parallel()
	end := whole("end_turn", text("done"))
	tail := 3 * time.Second // the model keeps writing
	for _, tt := range []struct {
		name   string
		first  []any
		took   time.Duration
		starts map[agent.CallID]time.Duration
	}{
		{"hidden under the stream", whole("tool_use", use("a", "R"), use("b", "R"), tail), 3 * time.Second,
			map[agent.CallID]time.Duration{"a": 0, "b": 0}},
		{"a call starts before the next is written", whole("tool_use", use("a", "R"), tail, use("b", "R")), 4 * time.Second,
			map[agent.CallID]time.Duration{"a": 0, "b": tail}},
		{"writes run alone and in order", whole("tool_use", use("a", "W"), use("b", "W")), 2 * time.Second,
			map[agent.CallID]time.Duration{"a": 0, "b": time.Second}},
		{"read write read", whole("tool_use", use("a", "R"), use("b", "W"), use("c", "R"), use("d", "R")), 3 * time.Second,
			map[agent.CallID]time.Duration{"a": 0, "b": time.Second, "c": 2 * time.Second, "d": 2 * time.Second}},
		{"an unknown tool keeps nobody waiting", whole("tool_use", use("a", "?"), use("b", "W")), time.Second,
			map[agent.CallID]time.Duration{"b": 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(map[string]agent.Tool{"R": reader, "W": writer}, tt.first, end)
				got := r.Run(t.Context(), hello)
				if took := time.Since(r.begin); took != tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
				if fmt.Sprint(r.starts) != fmt.Sprint(tt.starts) {
					t.Errorf("starts %v, want %v", r.starts, tt.starts)
				}
				if got.Reason != Completed || got.Text != "done" {
					t.Errorf("ended with %q, %q", got.Reason, got.Text)
				}
				check(t, got.History)
			})
		})
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	deny := func(_ context.Context, c agent.Call) (agent.Decision, error) {
		if c.Name == "D" {
			return agent.Decision{Verdict: agent.Deny, Reason: "not today"}, nil
		}
		return agent.Decision{Verdict: agent.Allow}, nil
	}
	tools := map[string]agent.Tool{
		"R": tool{eff: reader.eff}, "D": tool{},
		"P": tool{run: func(context.Context, agent.Call) (agent.Result, error) { panic("boom") }},
		"E": tool{run: func(context.Context, agent.Call) (agent.Result, error) {
			return agent.Result{}, errors.New("no such file")
		}},
		"B": tool{inspect: func(json.RawMessage) (agent.Effects, error) {
			return agent.Effects{}, errors.New("file_path is missing")
		}},
		"X": tool{inspect: func(json.RawMessage) (agent.Effects, error) { panic("odd") }},
	}
	r := newRig(tools,
		whole("tool_use", text("look"), use("a", "R"), use("b", "D"), use("c", "P"), use("d", "E"), use("e", "B"), use("f", "Nope"), use("g", "X"),
			&agent.ToolUse{ID: "h", Name: "R", Malformed: true, Input: json.RawMessage(`{"__unparsedToolInput":{"raw":"{","len":1}}`)}),
		whole("end_turn", text("ok")))
	r.Gate = deny
	got := r.Run(t.Context(), hello)
	check(t, got.History)
	want := `user: "hi"
assistant: "look" call(a R) call(b D) call(c P) call(d E) call(e B) call(f Nope) call(g X) call(h R)
user: result(a ran a) result!(b not today) result!(c The tool P failed inside (boom). What it did until then stands: look before you repeat the call.) result!(d no such file) result!(e <tool_use_error>InputValidationError: B cannot run with this input:
file_path is missing</tool_use_error>) result!(f <tool_use_error>Error: No such tool available: Nope</tool_use_error>) result!(g <tool_use_error>InputValidationError: X cannot run with this input:
the tool could not read its input: odd</tool_use_error>) result!(h <tool_use_error>InputValidationError: the input of R is not complete, valid JSON, so the call did not run. What arrived: {"__unparsedToolInput":{"raw":"{","len":1}}</tool_use_error>)
assistant: "ok"
`
	if s := show(got.History); s != want {
		t.Errorf("got\n%s\nwant\n%s", s, want)
	}
	if d := got.Denials; len(d) != 1 || d[0].ID != "b" {
		t.Errorf("denials %v", d)
	}
	if got.Turns != 9 || got.Steps != 2 || got.Usage.Out != 10 {
		t.Errorf("turns %d, steps %d, usage %+v", got.Turns, got.Steps, got.Usage)
	}
}

func TestSchemaIsCheckedFirst(t *testing.T) {
	t.Parallel()
	ran := false
	tools := map[string]agent.Tool{"R": tool{run: func(context.Context, agent.Call) (agent.Result, error) { ran = true; return agent.Result{}, nil }},
		"L": tool{spec: agent.Spec{Loose: true}}}
	r := newRig(tools, whole("tool_use", use("a", "R"), use("b", "L")), whole("end_turn", text("ok")))
	r.Check = func(agent.Spec, json.RawMessage) error { return errors.New("x: missing") }
	got := r.Run(t.Context(), hello)
	if ran || !strings.Contains(show(got.History), "x: missing") || !strings.Contains(show(got.History), "result(b ran b)") {
		t.Errorf("ran %v\n%s", ran, show(got.History))
	}
}

// The order of what is told: a block is told before its end, a call starts
// after its block was told, and its outcome comes before the message of results.
func TestOrderOfEvents(t *testing.T) {
	t.Parallel()
	r := newRig(map[string]agent.Tool{"W": tool{}}, whole("tool_use", text("t"), use("a", "W")), whole("end_turn", text("ok")))
	r.Run(t.Context(), hello)
	var got []string
	for _, b := range r.events {
		switch b := b.(type) {
		case agent.Wrote:
			if _, ok := b.Delta.(agent.BlockEnd); ok {
				got = append(got, "end")
			}
		case agent.Said:
			got = append(got, "said "+string(b.Message.Role))
		case agent.Decided, agent.Started, agent.Finished, agent.Responded:
			got = append(got, strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", b), "agent.")))
		}
	}
	// The call runs beside the end of the stream: its events may come before
	// or after responded.
	calls := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return s == "responded" })
	want := []string{"said assistant", "end", "said assistant", "end", "decided", "started", "finished", "said user", "said assistant", "end"}
	if !slices.Equal(calls, want) || len(got) != len(want)+2 {
		t.Errorf("got %v\nwant %v and two responded", got, want)
	}
}
