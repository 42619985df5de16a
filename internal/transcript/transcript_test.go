package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/transcript/history"
)

const session = "11111111-2222-4333-8444-555555555555"

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A log feeds events to a Writer as a session's journal does, and keeps the
// history as the session does.
type log struct {
	t       *testing.T
	w       *Writer
	n       int
	agent   string
	parent  agent.CallID
	History []agent.Message
}

// path returns the name of a transcript in a fresh store.
func path(t *testing.T) string {
	return filepath.Join(t.TempDir(), "projects", "-w", session+ext)
}

func open(t *testing.T, o Options) *log {
	t.Helper()
	if o.Cwd == "" {
		o.Cwd, o.Version = "/w", "1.2.3"
	}
	w, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	l := &log{t: t, w: w}
	if o.Resume != nil {
		l.History = o.Resume.History
	}
	t.Cleanup(func() { _ = w.Close() })
	return l
}

func (l *log) emit(b agent.Body) {
	l.t.Helper()
	l.n++
	if err := l.w.Sink(agent.Event{Seq: uint64(l.n), At: start.Add(time.Duration(l.n) * time.Second), Agent: l.agent, Parent: l.parent, Body: b}); err != nil {
		l.t.Fatal(err)
	}
}

// keep puts m at the end of the history, as the loop does.
func (l *log) keep(m agent.Message) {
	m = m.Encode()
	if n := len(l.History); n > 0 && l.History[n-1].Role == m.Role {
		last := l.History[n-1]
		last.Blocks = slices.Concat(last.Blocks, m.Blocks)
		last.Wire = agent.AppendBlocks(nil, last.Blocks)
		last.ID, last.UUID, last.Meta = m.ID, m.UUID, last.Meta && m.Meta
		l.History = append(l.History[:n-1:n-1], last)
		return
	}
	l.History = append(l.History, m)
}

func (l *log) user(uuid string, bs ...agent.Block) {
	l.t.Helper()
	m := agent.Message{UUID: uuid, Role: agent.User, Blocks: bs}
	l.keep(m)
	l.emit(agent.Said{Message: m})
}

// answer says blocks one by one and closes the response.
func (l *log) answer(id string, bs ...agent.Block) {
	l.t.Helper()
	for i, b := range bs {
		l.block(id, fmt.Sprintf("%s-%d", id, i), b)
	}
	l.respond(id)
}

func (l *log) block(id, uuid string, b agent.Block) {
	l.t.Helper()
	m := agent.Message{ID: id, UUID: uuid, Role: agent.Assistant, Blocks: []agent.Block{b}}
	l.keep(m)
	l.emit(agent.Said{Message: m, RequestID: "req_" + id, Model: "claude-test-1", Usage: agent.Usage{In: 5, Out: 1}})
}

func (l *log) respond(id string) {
	l.t.Helper()
	l.emit(agent.Responded{MessageID: id, RequestID: "req_" + id, Model: "claude-test-1", Stop: "end_turn", Usage: agent.Usage{In: 5, Out: 42, CacheWrite5m: 7}})
}

func call(id, name string) *agent.ToolUse {
	return &agent.ToolUse{ID: agent.CallID(id), Name: name, Input: json.RawMessage(`{"x":1}`)}
}

func (l *log) begin(u *agent.ToolUse, readOnly bool) {
	l.t.Helper()
	l.emit(agent.Started{Call: agent.Call{ID: u.ID, Name: u.Name, Input: u.Input, Agent: l.agent, Effects: agent.Effects{ReadOnly: readOnly}}})
}

func (l *log) finish(u *agent.ToolUse, r agent.Result) *agent.ToolResult {
	l.t.Helper()
	l.emit(agent.Finished{Call: agent.Call{ID: u.ID, Name: u.Name, Input: u.Input, Agent: l.agent}, Result: r, Ran: true})
	return &agent.ToolResult{ID: u.ID, Blocks: r.Blocks, Array: r.Array, IsError: r.IsError}
}

func (l *log) settle() {
	l.t.Helper()
	l.emit(agent.Settled{Outcome: agent.Outcome{Subtype: "success"}})
}

func text(s string) *agent.Text        { return &agent.Text{Text: s} }
func noted(kind, s string) *agent.Text { return &agent.Text{Text: s, Note: kind} }

func reload(t *testing.T, path string) *Loaded {
	t.Helper()
	l, err := Load(path, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	valid(t, l)
	return l
}

// wire shows a history as it is sent.
func wire(h []agent.Message) string {
	var b strings.Builder
	for _, m := range h {
		fmt.Fprintf(&b, "%s: %s\n", m.Role, m.Wire)
	}
	return b.String()
}

// A conversation with all kinds of blocks comes back byte for byte, notes and
// their kinds too.
func TestHistorySurvives(t *testing.T) {
	t.Parallel()
	p := path(t)
	l := open(t, Options{Path: p, Branch: func() string { return "main" }, Entrypoint: "sdk-ts"})
	l.emit(agent.Opened{Info: agent.Info{Session: session, Mode: agent.ModePlan, Model: "claude-test-1"}})
	if _, err := os.Stat(filepath.Dir(p)); err == nil {
		t.Error("something was written before the first message")
	}
	l.user("u1", noted("instructions", "<system-reminder>\nrules & <b>\n</system-reminder>"), noted("date", "today"), text("do it\u2028now"))
	a, b := call("toolu_a", "Read"), call("toolu_b", "Bash")
	l.answer("msg_1", &agent.Thinking{Text: "", Signature: "sig=="}, text("I will."), a, b)
	l.begin(a, true)
	l.begin(b, false)
	rb := l.finish(b, agent.Result{Blocks: []agent.Block{text("b done")}, Detail: map[string]any{"stdout": "b done"}})
	ra := l.finish(a, agent.Result{Array: true, IsError: true, Blocks: []agent.Block{text("no"), &agent.Image{MediaType: "image/png", Data: "AAAA"}}})
	l.user("u2", ra, rb, noted("memory", "nested rules"))
	l.user("u3", text("and this"), &agent.Image{MediaType: "image/png", Data: "BBBB"}, noted("hook", "ctx"), text("then"))
	l.answer("msg_2", &agent.Opaque{Type: "server_tool_use", Raw: json.RawMessage(`{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}`)},
		&agent.Opaque{Type: "web_search_tool_result", Raw: json.RawMessage(`{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}`)},
		&agent.Text{Text: "done", Citations: json.RawMessage(`[{"type":"x"}]`)})
	l.settle()
	if err := l.w.Close(); err != nil {
		t.Fatal(err)
	}
	got := reload(t, p)
	if g, w := wire(got.History), wire(l.History); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
	var kinds []string
	for _, m := range got.History {
		for _, b := range m.Blocks {
			if x, ok := b.(*agent.Text); ok && x.Note != "" {
				kinds = append(kinds, x.Note)
			}
		}
	}
	if want := "instructions date memory hook"; strings.Join(kinds, " ") != want {
		t.Errorf("notes: %v, want %s", kinds, want)
	}
	if got.Model != "claude-test-1" || got.Mode != agent.ModePlan || got.Cwd != "/w" || got.Branch != "main" || got.Session != session ||
		got.Unfinished || got.Skipped.Count != 0 || len(got.Unknown) != 0 || got.Deferred != "" {
		t.Errorf("got %+v", got)
	}
	if g, w := fmt.Sprintf("%q", got.Prompts), `[{"u1" "do it\u2028now"} {"u3" "and this"} `; !strings.HasPrefix(g, w) {
		t.Errorf("prompts %s, want %s…", g, w)
	}
	for uuid, want := range map[string]int{"u1": 0, "msg_1-1": 1, "u2": 2, "u3": 2, "msg_2-0": 3} {
		if i, ok := got.Place(uuid); !ok || i != want {
			t.Errorf("%s is at %d, want %d", uuid, i, want)
		}
	}
	if n := strings.Count(string(must(os.ReadFile(p))), `"tool_use_id":"toolu_b"`); n != 1 {
		t.Errorf("a result stands %d times in the file", n)
	}
	lines := decodeLines(t, p)
	for _, f := range lines {
		if f["type"] == "assistant" {
			m := f["message"].(map[string]any)
			if m["stop_reason"] != "end_turn" || m["usage"].(map[string]any)["output_tokens"] != 42.0 || f["requestId"] == nil {
				t.Errorf("an answer without its final account: %v", f)
			}
			if len(m["content"].([]any)) != 1 {
				t.Errorf("not one line for each block: %v", m)
			}
		}
		if f["uuid"] != nil && (f["cwd"] != "/w" || f["sessionId"] != session || f["version"] != "1.2.3" || f["entrypoint"] != "sdk-ts" || f["gitBranch"] != "main" || f["userType"] != "external") {
			t.Errorf("common keys: %v", f)
		}
	}
	info, err := os.Stat(p)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func decodeLines(t *testing.T, p string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	for l := range bytes.Lines(data) {
		var m map[string]any
		if err := json.Unmarshal(l, &m); err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		all = append(all, m)
	}
	return all
}

// valid checks what the Messages API asks of a history.
func valid(t *testing.T, l *Loaded) {
	t.Helper()
	h := l.History
	seen := map[agent.CallID]bool{}
	for i, m := range h {
		fail := func(f string, args ...any) {
			t.Helper()
			t.Fatalf("message %d: %s\n%s", i, fmt.Sprintf(f, args...), wire(h))
		}
		if want := []agent.Role{agent.User, agent.Assistant}[i%2]; m.Role != want {
			fail("%s in place of %s", m.Role, want)
		}
		if len(m.Blocks) == 0 {
			fail("empty")
		}
		if !json.Valid(m.Wire) || string(m.Wire) != string(agent.AppendBlocks(nil, m.Blocks)) {
			fail("wire bytes that are not its blocks: %s", m.Wire)
		}
		var want []agent.CallID
		if i > 0 {
			for _, b := range h[i-1].Blocks {
				if u, ok := b.(*agent.ToolUse); ok {
					want = append(want, u.ID)
				}
			}
		}
		for j, b := range m.Blocks {
			r, isResult := b.(*agent.ToolResult)
			if isResult != (j < len(want)) || isResult && r.ID != want[j] {
				fail("block %d: results %v are not at the head", j, want)
			}
			switch b := b.(type) {
			case *agent.Text:
				if strings.TrimSpace(b.Text) == "" {
					fail("a blank text")
				}
			case *agent.ToolUse:
				if m.Role != agent.Assistant || b.ID == "" || seen[b.ID] || string(b.ID) != history.Safe(string(b.ID)) || b.Name == "" || !isObject(b.Input) {
					fail("call %+v", b)
				}
				seen[b.ID] = true
			case *agent.Thinking:
				if m.Role != agent.Assistant || b.Signature == "" {
					fail("thinking %+v", b)
				}
			}
		}
		if len(want) > len(m.Blocks) {
			fail("%d results of %d", len(m.Blocks), len(want))
		}
		if m.Role == agent.Assistant && thinks(m.Blocks[len(m.Blocks)-1]) {
			fail("thinking at the end")
		}
	}
	if n := len(h); n > 0 && h[n-1].Role == agent.Assistant {
		for _, b := range h[n-1].Blocks {
			if u, ok := b.(*agent.ToolUse); ok && u.ID != l.Deferred {
				t.Fatalf("call %s has no result\n%s", u.ID, wire(h))
			}
		}
	}
	if len(l.entries) != len(h) {
		t.Fatalf("%d entries for %d messages", len(l.entries), len(h))
	}
}

func thinks(b agent.Block) bool {
	switch b.(type) {
	case *agent.Thinking, *agent.Redacted:
		return true
	}
	return false
}

func isObject(raw json.RawMessage) bool {
	return json.Valid(raw) && strings.HasPrefix(strings.TrimSpace(string(raw)), "{")
}
