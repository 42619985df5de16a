package history

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/jsonscan"
)

func text(s string) agent.Block { return &agent.Text{Text: s} }
func call(id, name, input string) agent.Block {
	return &agent.ToolUse{ID: agent.CallID(id), Name: name, Input: json.RawMessage(input)}
}
func result(id, s string) agent.Block {
	return &agent.ToolResult{ID: agent.CallID(id), Blocks: []agent.Block{text(s)}}
}
func opaque(s string) agent.Block {
	var t struct{ Type string }
	_ = json.Unmarshal([]byte(s), &t) // the test's own
	return &agent.Opaque{Type: t.Type, Raw: json.RawMessage(s)}
}

// Each kind of damage is put right in one way.
func TestMend(t *testing.T) {
	t.Parallel()
	u := func(bs ...agent.Block) Message { return Message{Message: agent.Message{Role: agent.User, Blocks: bs}} }
	a := func(bs ...agent.Block) Message {
		return Message{Message: agent.Message{Role: agent.Assistant, Blocks: bs}}
	}
	for _, c := range []struct {
		name string
		in   []Message
		want string
	}{
		{"a call without a result", []Message{u(text("q")), a(call("c", "T", "{}"))}, `q | T#c{} | c=closed`},
		{"a result that comes late", []Message{u(text("q")), a(call("c", "T", "{}")), u(text("and")), a(text("x")), u(result("c", "r"))}, `q | T#c{} | c=closed, and | x`},
		{"results out of order, behind a text", []Message{u(text("q")), a(call("c", "T", "{}"), call("d", "T", "{}")), u(text("n"), result("d", "2"), result("c", "1"))}, `q | T#c{}, T#d{} | c=1, d=2, n`},
		{"a result twice: the newer one", []Message{u(text("q")), a(call("c", "T", "{}")), u(result("c", "old"), result("c", "new"))}, `q | T#c{} | c=new`},
		{"a result of nothing", []Message{u(text("q"), result("z", "r")), a(text("x"))}, `q | x`},
		{"one id for two calls", []Message{u(text("q")), a(call("c", "T", "{}")), u(result("c", "1")), a(call("c", "T", "{}")), u(result("c", "2"))}, `q | T#c{} | c=1 | T#c_2{} | c_2=2`},
		{"one id twice in a response", []Message{u(text("q")), a(call("c", "T", "{}"), call("c", "T", "{}")), u(result("c", "1"), result("c", "2"))}, `q | T#c{}, T#c_2{} | c=1, c_2=2`},
		{"ids, names and inputs that no upstream takes", []Message{u(text("q")), a(call("", "", "[1]")), u(result("", "r"))}, `q | unknown#call{"__unparsedToolInput":{"raw":"[1]","len":3}} | call=r`},
		{"begins with an answer", []Message{a(text("x"))}, StartMissing + ` | x`},
		{"blank and empty messages", []Message{u(text(" ")), u(text("q")), a(text("\n")), a(text("x")), u()}, `q | x`},
		{"thinking at the end, thinking without its signature", []Message{u(text("q")), a(&agent.Thinking{Text: "h"}, text("x"), &agent.Thinking{Signature: "s"})}, `q | x`},
		{"nothing but thinking", []Message{u(text("q")), a(&agent.Redacted{Data: "d"}), u(text("more"))}, `q, more`},
		{"a call of the upstream that was cut off", []Message{u(text("q")), a(text("x"), opaque(`{"type":"server_tool_use","id":"s"}`))}, `q | x`},
		{"its result without it", []Message{u(text("q")), a(text("x"), opaque(`{"type":"web_search_tool_result","tool_use_id":"s"}`))}, `q | x`},
		{"both", []Message{u(text("q")), a(opaque(`{"type":"server_tool_use","id":"s"}`), opaque(`{"type":"web_search_tool_result","tool_use_id":"s"}`))},
			`q | {"type":"server_tool_use","id":"s"}, {"type":"web_search_tool_result","tool_use_id":"s"}`},
		{"blocks in the wrong mouth", []Message{u(text("q"), call("c", "T", "{}"), &agent.Thinking{Signature: "s"}), a(text("x"), result("c", "r"), &agent.Image{})}, `q | x`},
		{"nothing", nil, ``},
	} {
		d := Mender{Closing: func(u *agent.ToolUse) *agent.ToolResult {
			return &agent.ToolResult{ID: u.ID, Blocks: []agent.Block{text("closed")}}
		}}
		if got := show(d.Mend(c.in)); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
	d := Mender{Deferred: "c"}
	if got := show(d.Mend([]Message{u(text("q")), a(call("c", "T", "{}"))})); got != `q | T#c{}` || d.Open != "c" || d.Closed != nil {
		t.Errorf("a deferred call: %s, open %q", got, d.Open)
	}
}

func show(h []Message) string {
	var ms []string
	for _, m := range h {
		var bs []string
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case *agent.Text:
				bs = append(bs, b.Text)
			case *agent.ToolUse:
				bs = append(bs, b.Name+"#"+string(b.ID)+string(b.Input))
			case *agent.ToolResult:
				bs = append(bs, string(b.ID)+"="+agent.TextOf(b.Blocks))
			default:
				bs = append(bs, string(agent.AppendBlock(nil, b)))
			}
		}
		ms = append(ms, strings.Join(bs, ", "))
	}
	return strings.Join(ms, " | ")
}

func FuzzUnquote(f *testing.F) {
	for _, s := range []string{`"a\n\"\\\u00e9\ud83d\ude00\ud83d x\/\b\f\r\t"`, `"\q"`, `"\u12"`, `"`, `"\"`, `"a"b"`, "\"\xff\"", "\"\x01\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var want string
		if jsonscan.Skip(raw, 0) != len(raw) {
			return // not a value that is ever found
		}
		valid := raw[0] == '"' && json.Unmarshal(raw, &want) == nil
		if got, ok := Unquote(raw); ok != valid || got != want {
			t.Errorf("%q: got %q, %v, want %q, %v", raw, got, ok, want, valid)
		}
	})
}
