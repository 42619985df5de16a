package compact

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// brief writes a history with a line a message; long texts by their length.
func brief(h []agent.Message) []string {
	var out []string
	show := func(s string) string {
		if len(s) > 200 {
			return fmt.Sprintf("%d bytes", len(s))
		}
		return s
	}
	for _, m := range h {
		line := string(m.Role[:1])
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case *agent.Text:
				line += " [" + b.Note + "|" + show(b.Text) + "]"
			case *agent.Thinking:
				line += " thinking"
			case *agent.Redacted:
				line += " redacted"
			case *agent.ToolUse:
				line += fmt.Sprintf(" %s=%s(%s)", b.ID, b.Name, b.Input)
			case *agent.ToolResult:
				line += fmt.Sprintf(" %s:", b.ID)
				for _, x := range b.Blocks {
					if t, ok := x.(*agent.Text); ok {
						line += show(t.Text)
					} else {
						line += fmt.Sprintf("%T", x)
					}
				}
			default:
				line += fmt.Sprintf(" %T", b)
			}
		}
		out = append(out, line)
	}
	return out
}

func toolUse(id, name, in string) agent.Block {
	return &agent.ToolUse{ID: agent.CallID(id), Name: name, Input: json.RawMessage(in)}
}

func note(kind, s string) agent.Block { return &agent.Text{Text: s, Note: kind} }

// work is two finished turns and one that runs.
func work() []agent.Message {
	big := txt(strings.Repeat("line\n", 400)) // 500 tokens
	return []agent.Message{
		msg(agent.User, note("date", "monday"), txt("first")),
		msg(agent.Assistant, &agent.Thinking{Text: "hm", Signature: "s"}, toolUse("a", "Read", `{"file_path":"/x"}`), toolUse("b", "Agent", `{}`)),
		msg(agent.User, res("a", big), res("b", big), txt("by the way")),
		msg(agent.Assistant, txt("first done")),
		msg(agent.User, note("date", "tuesday"), txt("second")),
		msg(agent.Assistant, txt("let me see"), toolUse("c", "Bash", `{"command":"make"}`)),
		msg(agent.User, res("c", big)),
		msg(agent.Assistant, toolUse("d", "Bash", `{"command":"true"}`)),
		msg(agent.User, res("d", txt("ok"))),
		msg(agent.Assistant, &agent.Redacted{Data: "r"}, txt("second done")),
		msg(agent.User, note("date", "friday"), txt("third")),
		msg(agent.Assistant, &agent.Thinking{Text: "hm", Signature: "s"}, toolUse("e", "Read", `{"file_path":"/x"}`)),
		msg(agent.User, res("e", big)),
	}
}

func TestClear(t *testing.T) {
	t.Parallel()
	s := &Scale{}
	size := s.History(work()).Tokens
	const clearedRead = "a:[Cleared] An old result of Read (2121 bytes) was cleared to save room. Run the call again if you need it."
	change := func(lines map[int]string) []string {
		want := brief(work())
		for i, l := range lines {
			want[i] = l
		}
		return want
	}
	for name, tc := range map[string]struct {
		g    Goal
		want []string
		cuts int
	}{
		"enough room": {Goal{Tokens: size}, change(nil), 0},
		"one is enough": {Goal{Tokens: size - 1}, change(map[int]string{
			2: "u " + clearedRead + " b:2000 bytes [|by the way]"}), 1},
		// The agent's result is worth more than room, "ok" too small to matter.
		"all but two": {Goal{Keep: 2}, change(map[int]string{
			2: "u " + clearedRead + " b:2000 bytes [|by the way]",
			6: "u " + strings.NewReplacer("a:", "c:", "Read", "Bash").Replace(clearedRead)}), 2},
		"recent ones stay": {Goal{Keep: 5}, change(nil), 0},
	} {
		out, cuts := Clear(s, work(), tc.g)
		if d := cmp.Diff(tc.want, brief(out)); d != "" || len(cuts) != tc.cuts {
			t.Errorf("%s: %d cuts: %s", name, len(cuts), d)
		}
	}
}

func TestSnip(t *testing.T) {
	t.Parallel()
	s := &Scale{}
	want := brief(work())
	want[1] = `a a=Read({"file_path":"/x"}) b=Agent({})`
	want[2] = "u a:[Cleared] The same call was made again later. See its result there. b:2000 bytes [|by the way]"
	want[4] = "u [|second]" // the note of the first message stands in the opening and stays
	want[9] = "a [|second done]"
	out, cuts := Snip(s, work(), Goal{})
	if d := cmp.Diff(want, brief(out)); d != "" || len(cuts) != 4 {
		t.Errorf("%d cuts: %s", len(cuts), d)
	}
	if out, cuts := Snip(s, work(), Goal{Tokens: 1 << 20}); cuts != nil || len(out) != 13 {
		t.Errorf("snipped without need: %+v", cuts)
	}
}

func TestCollapse(t *testing.T) {
	t.Parallel()
	s := &Scale{}
	want := brief(work())
	// The first turn holds the answer of a sub-agent and stays.
	want = append(append(want[:5:5],
		"a [stub|[2 calls of this turn were taken out with their results to save room:\n- Bash {\"command\":\"make\"}\n- Bash {\"command\":\"true\"}]] [|second done]"), want[10:]...)
	out, cuts := Collapse(s, work(), Goal{})
	if d := cmp.Diff(want, brief(out)); d != "" || len(cuts) != 1 || cuts[0].What != "2 calls and their results" || cuts[0].Index != 4 {
		t.Errorf("%+v: %s", cuts, d)
	}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	text := func(n int) agent.Block { return txt(strings.Repeat("0123456789", n/10)) }
	h := []agent.Message{msg(agent.User, txt("x")), msg(agent.Assistant, use("1"), use("2"), use("3")),
		msg(agent.User, res("1", text(1000)), res("2", text(20_000), img("AA"), text(20_000)), res("3", text(40_000)))}
	out, cuts := Budget(&Scale{}, h, 30_000)
	if len(cuts) != 2 {
		t.Fatalf("%+v", cuts)
	}
	total := 0
	for _, b := range out[2].Blocks {
		r := b.(*agent.ToolResult)
		total += textLen(r.Blocks)
	}
	two := out[2].Blocks[1].(*agent.ToolResult)
	got := two.Blocks[0].(*agent.Text).Text
	if total > 30_000 || total < 29_000 || len(two.Blocks) != 2 || !strings.HasPrefix(got, "0123456789") || !strings.HasSuffix(got, "0123456789") ||
		!strings.Contains(got, "[… 25500 bytes are left out here.") {
		t.Errorf("%d bytes in all; %.100s", total, got)
	}
	if out[2].Blocks[0] != h[2].Blocks[0] {
		t.Error("a small result was touched")
	}
	if _, cuts := Budget(&Scale{}, h, 81_000); cuts != nil {
		t.Errorf("cut without need: %+v", cuts)
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	m := agent.Message{Role: agent.User, Blocks: []agent.Block{
		txt(" "), res("a/b", txt(""), txt("x"), &agent.Thinking{}, &agent.ToolReference{Name: "T"}), res("c", txt("\n")),
		&agent.Thinking{Text: "not mine", Signature: "s"}, &agent.Redacted{Data: "r"}, img(""), &agent.Document{}, &agent.ToolReference{Name: "T"},
		&agent.Opaque{Type: "x", Raw: json.RawMessage(`{"type":"x","cache_control":{"type":"ephemeral"},"a":1}`)}, &agent.Opaque{Type: "y", Raw: json.RawMessage(`{`)},
	}}
	out, cuts := Clean(m, true)
	want := []string{"u a_b:x*agent.ToolReference c: [stub|[An image without data stood here.]] [stub|[An empty document stood here.]] [stub|The definition of T is loaded.] *agent.Opaque"}
	if d := cmp.Diff(want, brief([]agent.Message{out})); d != "" || len(cuts) != 11 {
		t.Errorf("%d cuts: %s", len(cuts), d)
	}
	if raw := string(out.Blocks[len(out.Blocks)-1].(*agent.Opaque).Raw); raw != `{"a":1,"type":"x"}` {
		t.Errorf("got %s", raw)
	}
	m = msg(agent.Assistant, &agent.Thinking{Text: "", Signature: "s"}, &agent.ToolUse{ID: "1", Name: "a.b", Input: json.RawMessage(`"x"`)}, &agent.ToolUse{ID: "2", Name: "B"})
	out, _ = Clean(m, false)
	if d := cmp.Diff([]string{`a thinking 1=a_b({"__unparsedToolInput":{"len":3,"raw":"\"x\""}}) 2=B()`}, brief([]agent.Message{out})); d != "" {
		t.Error(d)
	}
	same, cuts := Clean(sick()[2], true)
	if cuts != nil || len(same.Wire) == 0 || len(same.Blocks) != 3 {
		t.Errorf("a clean message was changed: %+v", cuts)
	}
}
