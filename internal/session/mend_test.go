package session

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

func user(bs ...agent.Block) agent.Message { return agent.Message{Role: agent.User, Blocks: bs} }
func assistant(bs ...agent.Block) agent.Message {
	return agent.Message{Role: agent.Assistant, Blocks: bs}
}
func text(s string) agent.Block  { return &agent.Text{Text: s} }
func call(id string) agent.Block { return &agent.ToolUse{ID: agent.CallID(id), Name: "T"} }
func result(id string) agent.Block {
	return &agent.ToolResult{ID: agent.CallID(id), Blocks: []agent.Block{text("r" + id)}}
}

func wire(h []agent.Message) string {
	return sent(&agent.Request{Messages: h})
}

func TestMend(t *testing.T) {
	t.Parallel()
	missing := func(id string) string {
		return fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":%q,"is_error":true}`, id, lost)
	}
	for _, tt := range []struct {
		name string
		in   []agent.Message
		open agent.CallID
		want string
	}{
		{"nothing", nil, "", ""},
		{"as it should be", []agent.Message{user(text("a")), assistant(call("1")), user(result("1"), text("b"))}, "",
			`user [{"type":"text","text":"a"}]
assistant [{"type":"tool_use","id":"1","name":"T","input":{}}]
user [{"type":"tool_result","tool_use_id":"1","content":"r1"},{"type":"text","text":"b"}]
`},
		{"lost at the end", []agent.Message{user(text("a")), assistant(call("1"), call("2")), user(result("2"))}, "",
			`user [{"type":"text","text":"a"}]
assistant [{"type":"tool_use","id":"1","name":"T","input":{}},{"type":"tool_use","id":"2","name":"T","input":{}}]
user [` + missing("1") + `,{"type":"tool_result","tool_use_id":"2","content":"r2"}]
`},
		{"no message with results", []agent.Message{user(text("a")), assistant(call("1"))}, "",
			`user [{"type":"text","text":"a"}]
assistant [{"type":"tool_use","id":"1","name":"T","input":{}}]
user [` + missing("1") + `]
`},
		{"open on purpose", []agent.Message{user(text("a")), assistant(call("1"))}, "1",
			`user [{"type":"text","text":"a"}]
assistant [{"type":"tool_use","id":"1","name":"T","input":{}}]
`},
		{"one line for each block and result", []agent.Message{user(text("a")), assistant(text("t")), assistant(call("1")), assistant(call("2")), user(result("1")), user(result("2"))}, "",
			`user [{"type":"text","text":"a"}]
assistant [{"type":"text","text":"t"},{"type":"tool_use","id":"1","name":"T","input":{}},{"type":"tool_use","id":"2","name":"T","input":{}}]
user [{"type":"tool_result","tool_use_id":"1","content":"r1"},{"type":"tool_result","tool_use_id":"2","content":"r2"}]
`},
		{"thinking of a response that comes block by block, and of one that was cut", []agent.Message{user(text("a")),
			{Role: agent.Assistant, ID: "0", Blocks: []agent.Block{&agent.Thinking{Text: "cut"}}},
			{Role: agent.Assistant, ID: "1", Blocks: []agent.Block{&agent.Thinking{Text: "hm", Signature: "s"}}}, {Role: agent.Assistant, ID: "1", Blocks: []agent.Block{call("1")}}, user(result("1"))}, "",
			`user [{"type":"text","text":"a"}]
assistant [{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"1","name":"T","input":{}}]
user [{"type":"tool_result","tool_use_id":"1","content":"r1"}]
`},
		{"results out of order, strange and twice", []agent.Message{user(text("a")), assistant(call("1"), call("2")), user(text("x"), result("2"), result("9"), result("1"), result("1"))}, "",
			`user [{"type":"text","text":"a"}]
assistant [{"type":"tool_use","id":"1","name":"T","input":{}},{"type":"tool_use","id":"2","name":"T","input":{}}]
user [{"type":"tool_result","tool_use_id":"1","content":"r1"},{"type":"tool_result","tool_use_id":"2","content":"r2"},{"type":"text","text":"x"}]
`},
		{"an answer to nothing, blank and thinking only", []agent.Message{assistant(text("x")), user(text("a")), assistant(&agent.Thinking{Text: "hm"}), assistant(text(" "))}, "",
			`user [{"type":"text","text":"a"}]
`},
		{"an id twice", []agent.Message{user(text("a")), assistant(call("1")), user(result("1")), assistant(text("t"), call("1")), user(result("1"))}, "",
			`user [{"type":"text","text":"a"}]
assistant [{"type":"tool_use","id":"1","name":"T","input":{}}]
user [{"type":"tool_result","tool_use_id":"1","content":"r1"}]
assistant [{"type":"text","text":"t"}]
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Mend(tt.in, tt.open)
			compare(t, wire(got), tt.want)
			if tt.open == "" {
				sound(t, got)
			}
			if again := Mend(got, tt.open); wire(again) != wire(got) {
				t.Errorf("a second time gives\n%s", wire(again))
			}
		})
	}
}

// sound fails unless h could be sent.
func sound(t *testing.T, h []agent.Message) {
	t.Helper()
	seen := map[agent.CallID]bool{}
	var owed []agent.CallID
	for i, m := range h {
		if (m.Role == agent.User) != (i%2 == 0) || len(m.Blocks) == 0 || string(m.Wire) != string(agent.AppendBlocks(nil, m.Blocks)) {
			t.Fatalf("message %d of\n%s", i, wire(h))
		}
		for j, b := range m.Blocks {
			if r, ok := b.(*agent.ToolResult); ok {
				if j >= len(owed) || owed[j] != r.ID {
					t.Fatalf("result %s in\n%s", r.ID, wire(h))
				}
			} else if m.Role == agent.User && j < len(owed) {
				t.Fatalf("calls without results in\n%s", wire(h))
			}
		}
		if owed = nil; m.Role == agent.Assistant {
			for _, b := range m.Blocks {
				if u, ok := b.(*agent.ToolUse); ok {
					if seen[u.ID] {
						t.Fatalf("%s twice in\n%s", u.ID, wire(h))
					}
					seen[u.ID] = true
					owed = append(owed, u.ID)
				}
			}
		}
	}
	if len(owed) > 0 {
		t.Fatalf("calls without results at the end of\n%s", wire(h))
	}
}

func TestMendAnything(t *testing.T) {
	t.Parallel()
	for seed := range uint64(600) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		var h []agent.Message
		for range rnd.IntN(12) {
			m := agent.Message{Role: []agent.Role{agent.User, agent.Assistant}[rnd.IntN(2)]}
			for range rnd.IntN(5) {
				id := fmt.Sprint(rnd.IntN(6))
				switch k := rnd.IntN(6); {
				case k == 0:
					m.Blocks = append(m.Blocks, text(""))
				case k == 1:
					m.Blocks = append(m.Blocks, text("t"))
				case m.Role == agent.Assistant && k == 2:
					m.Blocks = append(m.Blocks, &agent.Thinking{Text: "hm", Signature: "s"})
				case m.Role == agent.Assistant:
					m.Blocks = append(m.Blocks, call(id))
				default:
					m.Blocks = append(m.Blocks, result(id))
				}
			}
			h = append(h, m)
		}
		before := wire(h)
		sound(t, Mend(h, ""))
		if wire(h) != before {
			t.Fatal("the history that was given was changed")
		}
	}
}
