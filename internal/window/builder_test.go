package window

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/window/audit"
	"github.com/seed-eb844fcb/cinch/internal/window/prompt"
)

func spec(name string, deferred bool) agent.Spec {
	return agent.Spec{Name: name, Description: "Does " + name + ".", Schema: json.RawMessage(`{"type": "object"}`), Deferred: deferred}
}

func builder() *Builder {
	return New(Options{
		Model: "m", MaxTokens: 100, ToolSearch: true,
		Sections: []prompt.Section{{Name: "a", Text: "One."}, {Name: "b", Text: "Two.", Mark: true}, {Name: "c", Text: "Three.", Mark: true}},
		Tools:    []agent.Spec{spec("mcp__a__x", true), spec("Write", false), spec("Bash", false), spec("mcp__a__b", false)},
	})
}

func said(role agent.Role, uuid string, blocks ...agent.Block) agent.Message {
	return agent.Message{Role: role, UUID: uuid, Blocks: blocks}.Encode()
}

func words(s string) agent.Block { return &agent.Text{Text: s} }

func call(id string) agent.Block {
	return &agent.ToolUse{ID: agent.CallID(id), Name: "Bash", Input: json.RawMessage(`{"command":"ls"}`)}
}

func result(id, s string) agent.Block {
	return &agent.ToolResult{ID: agent.CallID(id), Blocks: []agent.Block{words(s)}}
}

// wire renders a request as a client of it would encode it.
func wire(r *agent.Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "tools %s\nsystem %s\n", r.Tools, r.System)
	for _, m := range r.Messages {
		fmt.Fprintf(&b, "%s %s\n", m.Role, m.Wire)
	}
	return b.String()
}

func TestRequest(t *testing.T) {
	t.Parallel()
	b := builder()
	h := []agent.Message{
		said(agent.User, "1", words("hi"), words(" \n")),
		said(agent.Assistant, "2", &agent.Thinking{Text: "half"}, words(""), call("c1")),
		said(agent.User, "3", result("c1", "")),
		said(agent.User, "4", words("  ")),
	}
	got := wire(b.Request(h))
	want := `tools [{"name":"Bash","description":"Does Bash.","input_schema":{"type":"object"}},{"name":"Write","description":"Does Write.","input_schema":{"type":"object"}},{"name":"mcp__a__b","description":"Does mcp__a__b.","input_schema":{"type":"object"}}]
system [{"type":"text","text":"One.\n\nTwo.","cache_control":{"type":"ephemeral"}},{"type":"text","text":"Three.","cache_control":{"type":"ephemeral"}}]
user [{"type":"text","text":"hi"}]
assistant [{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"ls"}}]
user [{"type":"tool_result","tool_use_id":"c1","content":""}]
`
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if p := b.Problems(); len(p) != 0 {
		t.Error(p)
	}
}

// Request N+1 begins with the bytes of request N, whatever happens between.
func TestPrefixIsStable(t *testing.T) {
	t.Parallel()
	b := builder()
	var h []agent.Message
	last := ""
	for i := range 60 {
		id := fmt.Sprint("c", i)
		h = append(h, said(agent.User, "u"+id, words("do "+id)))
		h = append(h, said(agent.Assistant, "a"+id, call(id)))
		h = append(h, said(agent.User, "r"+id, result(id, strings.Repeat("x", i*100)), words(" ")))
		switch i {
		case 20: // a tool server connects late, and one of its tools is looked up
			b.AppendTools(spec("mcp__late__y", true), spec("mcp__late__z", true))
			b.Load("mcp__late__y", "mcp__a__x", "no-such-tool")
		case 40:
			h[len(h)-1] = said(agent.User, "r"+id, &agent.ToolResult{ID: agent.CallID(id), Blocks: []agent.Block{&agent.ToolReference{Name: "mcp__gone__q"}}})
		}
		h = append(h, said(agent.Assistant, "e"+id, words("done")))
		h2 := append(slices.Clone(h), said(agent.User, "q"+id, words("and?")))
		req := b.Request(h2)
		var prefix strings.Builder
		for _, m := range req.Messages[:len(req.Messages)-1] {
			fmt.Fprintf(&prefix, "%s %s\n", m.Role, m.Wire)
		}
		if !strings.HasPrefix(prefix.String(), last) {
			t.Fatalf("turn %d: the prefix changed", i)
		}
		last = prefix.String()
		b.Answered(agent.Usage{In: 10, CacheRead: i * 1000, CacheWrite5m: 1000})
	}
	for _, r := range b.Records() {
		if r.Break != nil && r.Break.Kind != audit.Message {
			t.Errorf("request %d: %v", r.N, r.Break)
		}
	}
	req := b.Request(h)
	for _, name := range []string{"mcp__late__y", "mcp__a__x", "mcp__gone__q"} {
		if !strings.Contains(string(req.Tools), `"name":"`+name+`"`) || !strings.Contains(string(req.Tools), `"defer_loading":true`) {
			t.Errorf("%s is not defined in %s", name, req.Tools)
		}
	}
	if strings.Contains(string(req.Tools), "late__z") || !slices.Contains(req.Features, ToolSearch) {
		t.Errorf("tools %s, features %v", req.Tools, req.Features)
	}
}

func TestPlannedBreaks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*Builder)
		kind   string
	}{
		"model":      {func(b *Builder) { b.SetModel("other", 5) }, audit.Key},
		"effort":     {func(b *Builder) { b.SetThinking(agent.Thought{}, "high") }, audit.Key},
		"tool":       {func(b *Builder) { b.AppendTools(spec("mcp__z__z", false)) }, audit.Tools},
		"reset":      {func(b *Builder) { b.Reset("compaction", []prompt.Section{{Text: "New.", Mark: true}}, nil) }, audit.System},
		"no search":  {func(b *Builder) { b.Without(ToolSearch) }, audit.Tools},
		"held tools": {func(b *Builder) { b.AppendTools(spec("mcp__z__z", true)) }, ""},
		"loaded":     {func(b *Builder) { b.Load("mcp__a__x") }, ""},
		"known tool": {func(b *Builder) { b.AppendTools(spec("Bash", false)) }, ""},
	} {
		b := builder()
		h := []agent.Message{said(agent.User, "1", words("hi"))}
		b.Request(h)
		b.Answered(agent.Usage{CacheWrite5m: 5000})
		tc.change(b)
		b.Request(append(h, said(agent.Assistant, "2", words("ho")), said(agent.User, "3", words("go"))))
		r := b.Answered(agent.Usage{CacheWrite5m: 5000})
		if tc.kind == "" {
			if r.Break != nil {
				t.Errorf("%s: %v", name, r.Break)
			}
			continue
		}
		if r.Break == nil || r.Break.Kind != tc.kind || !r.Break.Planned || r.Break.Reason == "" || r.Verdict != audit.Planned || r.Lost() != 5000 {
			t.Errorf("%s: record %+v, break %v", name, r, r.Break)
		}
	}
}

// Whatever byte of the sent prefix changes, by whatever way, the audit names
// the segment and the place.
func TestMutationsAreNamed(t *testing.T) {
	t.Parallel()
	const rounds = 20
	named := 0
	for i := range rounds {
		rnd := rand.New(rand.NewPCG(uint64(i), 7))
		b := builder()
		var h []agent.Message
		for j := range 40 {
			role := agent.User
			if j%2 == 1 {
				role = agent.Assistant
			}
			h = append(h, said(role, fmt.Sprint("u", j), words(fmt.Sprintf("%d %s", j, strings.Repeat("abcdefgh", rnd.IntN(800))))))
		}
		h = h[:39]
		b.Request(h)
		b.Answered(agent.Usage{CacheWrite5m: 100_000})
		at := rnd.IntN(len(h))
		n := slices.Clone(h)
		m := n[at]
		text := []byte(m.Blocks[0].(*agent.Text).Text)
		place := rnd.IntN(len(text))
		near := false
		switch i % 5 {
		case 0: // a byte replaced
			text[place] = 'Z'
			n[at] = said(m.Role, m.UUID, words(string(text)))
		case 1: // a byte gone
			if len(text) == 1 {
				text = append(text, 'x')
			}
			text = slices.Delete(text, place, place+1)
			n[at] = said(m.Role, m.UUID, words(string(text)))
		case 2: // a byte more
			n[at] = said(m.Role, m.UUID, words(string(slices.Insert(text, place, 'Z'))))
		case 3: // a message gone
			place = -1
			n = slices.Delete(n, at, at+1)
		case 4: // overwritten in place, by somebody who must not
			near = true
			off := strings.Index(string(m.Wire), string(text)) + place
			m.Wire[off] ^= 1
		}
		// Every seventh lies before the messages instead, in what all share.
		if i%7 == 6 {
			n = slices.Clone(h)
			if near {
				m.Wire[strings.Index(string(m.Wire), string(text))+place] ^= 1 // back again
			}
			shared, kind := b.System(), audit.System
			if i%2 == 0 {
				shared, kind = b.Request(h).Tools, audit.Tools
				b.Answered(agent.Usage{CacheWrite5m: 100_000})
			}
			place = rnd.IntN(len(shared))
			shared[place] ^= 1
			b.Request(append(n, said(agent.Assistant, "z", words("and on"))))
			k := b.Answered(agent.Usage{CacheWrite5m: 100_000}).Break
			if k == nil || k.Kind != kind || k.Planned || !k.Near || place < k.Offset || place >= k.Offset+audit.Chunk {
				t.Errorf("mutation %d in byte %d of %s: %v", i, place, kind, k)
				continue
			}
			named++
			continue
		}
		b.Request(append(n, said(agent.Assistant, "z", words("and on"))))
		r := b.Answered(agent.Usage{CacheWrite5m: 100_000})
		k := r.Break
		if k == nil || k.Kind != audit.Message || k.Index != at || k.Planned || r.Verdict != audit.Unplanned {
			t.Errorf("mutation %d in message %d: %v", i, at, k)
			continue
		}
		off := len(`[{"type":"text","text":"`) + place
		switch {
		case near && (!k.Near || off < k.Offset || off >= k.Offset+audit.Chunk):
			t.Errorf("mutation %d at byte %d: %v", i, off, k)
		// A byte that is gone or doubled shows at the first difference, which
		// may lie behind it in a row of equal bytes.
		case !near && place >= 0 && (k.Offset < off || k.Offset > off+1):
			t.Errorf("mutation %d at byte %d: %v", i, off, k)
		default:
			named++
		}
	}
	if named != rounds {
		t.Errorf("named %d of %d", named, rounds)
	}
}

func TestWideFanIsBridged(t *testing.T) {
	t.Parallel()
	b := builder()
	h := []agent.Message{said(agent.User, "1", words("hi"))}
	b.Request(h)
	var calls, results []agent.Block
	for i := range 15 {
		calls = append(calls, call(fmt.Sprint("c", i)))
		results = append(results, result(fmt.Sprint("c", i), "ok"))
	}
	h = append(h, said(agent.Assistant, "2", calls...), said(agent.User, "3", results...))
	req := b.Request(h)
	if got := string(req.Messages[0].Wire); got != `[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]` {
		t.Errorf("first message %s", got)
	}
	if string(h[0].Wire) != `[{"type":"text","text":"hi"}]` {
		t.Error("the history was written to")
	}
	h = append(h, said(agent.Assistant, "4", words("ok")), said(agent.User, "5", words("go on")))
	if req := b.Request(h); strings.Contains(wire(req)[strings.Index(wire(req), "user"):], "cache_control") {
		t.Error("a mark stayed behind")
	}
	for _, r := range b.Records() {
		if r.Break != nil {
			t.Error(r.Break)
		}
	}
}

func TestAside(t *testing.T) {
	t.Parallel()
	b := builder()
	h := []agent.Message{said(agent.User, "1", words("hi")), said(agent.Assistant, "2", call("c")), said(agent.User, "3", result("c", "r"))}
	main := b.Request(h)
	req := b.Aside(h, "compact", "Summarise.")
	if req.Purpose != "compact" || req.MarkBack != 1 || string(req.System) != string(main.System) || string(req.Tools) != string(main.Tools) {
		t.Errorf("got %+v", req)
	}
	want := `[{"type":"tool_result","tool_use_id":"c","content":"r"},{"type":"text","text":"Summarise."}]`
	if got := string(req.Messages[2].Wire); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if req := b.Aside(h[:2], "compact", "Summarise."); len(req.Messages) != 3 || !strings.Contains(string(req.Messages[2].Wire), "tool_result") {
		t.Errorf("an open call: %s", wire(req))
	}
	if n := len(b.Records()); n != 1 {
		t.Errorf("%d records", n)
	}
}

func TestBadTools(t *testing.T) {
	t.Parallel()
	b := New(Options{Tools: []agent.Spec{
		{Name: "no name"}, {Name: strings.Repeat("n", 129)}, {Name: ""}, {Name: "A", Schema: json.RawMessage(`[`)}, {Name: "B", Schema: json.RawMessage(`{"type":"string"}`)},
		{Name: "C"}, {Name: "C"}, {Name: "D", Schema: json.RawMessage(`{"type":"object","properties":{"z":{},"a":{}}}`)}}})
	req := b.Request([]agent.Message{said(agent.User, "1", words("hi"))})
	want := `[{"name":"A","input_schema":{"type":"object"}},{"name":"B","input_schema":{"type":"object"}},{"name":"C","input_schema":{"type":"object"}},{"name":"D","input_schema":{"type":"object","properties":{"z":{},"a":{}}}}]`
	if got := string(req.Tools); got != want {
		t.Errorf("got %s", got)
	}
	if n := len(b.Problems()); n != 5 {
		t.Errorf("problems %q", b.Problems())
	}
}

func TestRecordedPromptWins(t *testing.T) {
	t.Parallel()
	old := builder().System()
	b := New(Options{Recorded: old, Sections: []prompt.Section{{Text: "New."}}})
	if got := string(b.Request(nil).System); got != string(old) {
		t.Errorf("got %s", got)
	}
	if New(Options{}).System() != nil || New(Options{NoCache: true, Sections: []prompt.Section{{Text: "x", Mark: true}}}).Request(nil).Mark {
		t.Error("marks without a cache")
	}
}

// The cost of a request with 1,000 messages of history: at most 2 ms.
func BenchmarkRequest1000(b *testing.B) {
	w := builder()
	var h []agent.Message
	for i := range 500 {
		id := fmt.Sprint("c", i)
		h = append(h, said(agent.Assistant, "a"+id, words("look"), call(id)), said(agent.User, "r"+id, result(id, strings.Repeat("some output\n", 400))))
	}
	h = append([]agent.Message{said(agent.User, "0", words("hi"))}, h...)
	n := 0
	for _, m := range h {
		n += len(m.Wire)
	}
	w.Request(h)
	b.SetBytes(int64(n))
	b.ReportAllocs()
	for b.Loop() {
		w.Request(h)
	}
}
