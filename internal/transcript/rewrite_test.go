package transcript

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// turns makes a session of three plain turns.
func turns(t *testing.T, p string) *log {
	l := open(t, Options{Path: p})
	for _, n := range []string{"1", "2", "3"} {
		l.user("p"+n, noted("date", "day "+n), text("prompt "+n))
		l.answer("m"+n, text("answer "+n))
		l.settle()
	}
	return l
}

func (l *log) same(t *testing.T, p, when string) *Loaded {
	t.Helper()
	got := reload(t, p)
	if g, w := wire(got.History), wire(l.History); g != w {
		t.Errorf("%s: got\n%s\nwant\n%s", when, g, w)
	}
	return got
}

// A compaction replaces the history; what it keeps is not written again.
func TestCompacted(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]func(h []agent.Message) []agent.Message{
		"summary only": func(h []agent.Message) []agent.Message {
			return []agent.Message{{UUID: "s1", Role: agent.User, Blocks: []agent.Block{noted("instructions", "rules"), noted("summary", "Summary: …"), noted("file", "a.go")}}}
		},
		"summary and tail": func(h []agent.Message) []agent.Message {
			return append([]agent.Message{{UUID: "s1", Role: agent.User, Blocks: []agent.Block{text("Summary: …")}}}, h[len(h)-1])
		},
		"a changed message in the tail": func(h []agent.Message) []agent.Message {
			m := h[len(h)-2]
			m.Blocks, m.Wire = []agent.Block{text("shortened")}, nil
			return []agent.Message{{UUID: "s1", Role: agent.User, Blocks: []agent.Block{text("Summary: …")}}, h[1], m, h[len(h)-1]}
		},
		"head kept, rest summarised": func(h []agent.Message) []agent.Message {
			return append(slices.Clone(h[:2]), agent.Message{UUID: "s1", Role: agent.User, Blocks: []agent.Block{noted("summary", "Summary: …")}})
		},
	} {
		p := path(t)
		l := turns(t, p)
		h := to(l.History)
		for i := range h {
			h[i] = h[i].Encode()
		}
		size := func() int64 {
			info, err := os.Stat(p)
			if err != nil {
				t.Fatal(err)
			}
			return info.Size()
		}
		l.emit(agent.Compacted{Trigger: "auto", Pre: 100, Post: 10, History: h})
		l.History = h
		l.same(t, p, name)
		l.user("p9", text("go on"))
		l.answer("m9", text("gone on"))
		l.settle()
		if err := l.w.Close(); err != nil {
			t.Fatal(err)
		}
		got := l.same(t, p, name+", gone on")
		if !slices.ContainsFunc(decodeLines(t, p), func(f map[string]any) bool { return f["type"] == "user" && f["isCompactSummary"] == true }) {
			t.Errorf("%s: no line says that it is a summary", name)
		}
		// Once more, from what was loaded, keeping the last two.
		r := open(t, Options{Path: p, Resume: got})
		h = append([]agent.Message{agent.Message{UUID: "s2", Role: agent.User, Blocks: []agent.Block{text("Shorter.")}}.Encode()}, got.History[len(got.History)-1])
		before := size()
		r.emit(agent.Compacted{Trigger: "manual", History: h})
		r.History = h
		r.user("p10", text("again"))
		r.same(t, p, name+", resumed and compacted")
		if n := size() - before; n > 3000 {
			t.Errorf("%s: the second compaction wrote %d bytes", name, n)
		}
		if n := strings.Count(string(must(os.ReadFile(p))), "gone on"); n != 1 {
			t.Errorf("%s: the kept answer stands %d times in the file", name, n)
		}
	}
	p := path(t)
	l := turns(t, p)
	l.emit(agent.Compacted{Trigger: "auto", History: l.History[:1], Err: "too long"})
	l.same(t, p, "a compaction that failed")
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

func TestRewound(t *testing.T) {
	t.Parallel()
	p := path(t)
	l := turns(t, p)
	l.emit(agent.Rewound{To: "p3", Files: []string{"a"}}) // files only
	l.same(t, p, "files")
	l.History = slices.Clone(l.History[:4])
	l.emit(agent.Rewound{To: "p3", History: l.History})
	l.same(t, p, "rewound, and nothing since")
	l.user("p4", text("another third"))
	l.answer("m4", text("another answer"))
	got := l.same(t, p, "rewound and gone on")
	if len(got.Prompts) != 3 || got.Prompts[2].UUID != "p4" {
		t.Errorf("prompts: %+v", got.Prompts)
	}
	r := open(t, Options{Path: p, Resume: got})
	r.History = slices.Clone(got.History[:2])
	r.emit(agent.Rewound{To: "p2", History: r.History})
	r.same(t, p, "resumed and rewound")
	r.History = []agent.Message{}
	r.emit(agent.Rewound{To: "p1", History: r.History})
	r.same(t, p, "rewound to the start")
	r.user("p5", text("afresh"))
	r.same(t, p, "begun afresh")
	// Back behind a summary that was made of the end.
	h := []agent.Message{r.History[0], {ID: "x", UUID: "x1", Role: agent.Assistant, Blocks: []agent.Block{text("…"), call("t9", "Bash")}}}
	h[1] = h[1].Encode()
	r.emit(agent.Rewound{To: "p5", History: h[:2]})
	r.History = append(h, agent.Message{Role: agent.User, Blocks: []agent.Block{&agent.ToolResult{ID: "t9", IsError: true, Blocks: []agent.Block{text(neverRan)}}}}.Encode())
	r.same(t, p, "rewound to something new")
}

// A history that was put right is what the next run begins with: the block
// that the upstream refuses does not come back with its line.
func TestMended(t *testing.T) {
	t.Parallel()
	p := path(t)
	l := open(t, Options{Path: p})
	l.user("p1", text("look"))
	a, b := call("t1", "Read"), call("t2", "Read")
	l.block("m1", "m1", a)
	l.block("m1", "m2", b)
	l.respond("m1")
	l.begin(a, true)
	l.begin(b, true)
	bad := l.finish(a, agent.Result{Array: true, Blocks: []agent.Block{&agent.Image{MediaType: "image/png", Data: "bm9uZQ=="}}})
	good := l.finish(b, agent.Result{Blocks: []agent.Block{text("fine")}})
	l.user("r1", bad, good)
	l.answer("m2", text("seen"))
	l.user("p2", text("and now?"))

	h := slices.Clone(l.History)
	stub := &agent.ToolResult{ID: "t1", Array: true, Blocks: []agent.Block{text("There was an image here.")}}
	h[2].Blocks, h[2].Wire = []agent.Block{stub, good}, nil
	h[2] = h[2].Encode()
	l.History = h
	l.emit(agent.Mended{Reason: "an image was refused", History: h})
	got := l.same(t, p, "mended")
	if len(got.Prompts) != 2 || got.Prompts[1].Text != "and now?" {
		t.Errorf("prompts: %+v", got.Prompts)
	}
	size := len(must(os.ReadFile(p)))
	l.emit(agent.Mended{Reason: "once more", History: l.History})
	if n := len(must(os.ReadFile(p))); n != size {
		t.Errorf("what is as it was took %d bytes", n-size)
	}
	l.answer("m3", text("better"))
	l.settle()
	got = l.same(t, p, "mended and gone on")
	r := open(t, Options{Path: p, Resume: got})
	r.user("p3", text("again"))
	r.same(t, p, "mended, resumed and gone on")
	r.History = slices.Clone(r.History[:4])
	r.emit(agent.Mended{Reason: "shorter", History: r.History})
	r.same(t, p, "the end taken out")
	if !slices.ContainsFunc(decodeLines(t, p), func(f map[string]any) bool { return f["cinchMended"] == true }) {
		t.Error("no line makes the new end the end")
	}
}

func TestLoadAt(t *testing.T) {
	t.Parallel()
	p := path(t)
	l := turns(t, p)
	full := l.History
	for _, c := range []struct {
		o LoadOptions
		n int
	}{{LoadOptions{At: "m2-0"}, 4}, {LoadOptions{At: "p2"}, 3}, {LoadOptions{At: "p1"}, 1}, {LoadOptions{Drop: "p3"}, 4}, {LoadOptions{Drop: "p1"}, 0}} {
		got, err := Load(p, c.o)
		if err != nil {
			t.Fatal(err)
		}
		valid(t, got)
		if g, w := wire(got.History), wire(full[:c.n]); g != w {
			t.Errorf("%+v: got\n%s\nwant\n%s", c.o, g, w)
		}
	}
	if _, err := Load(p, LoadOptions{At: "nobody"}); !errors.Is(err, ErrNoMessage) {
		t.Errorf("got %v", err)
	}
	// What is said after that hangs on it.
	got, err := Load(p, LoadOptions{At: "m1-0"})
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, Options{Path: p, Resume: got})
	r.user("p8", text("instead"))
	r.same(t, p, "resumed at an earlier message")
}

func TestClearedAndRenamed(t *testing.T) {
	t.Parallel()
	p := path(t)
	l := open(t, Options{Path: p})
	l.emit(agent.Opened{Info: agent.Info{Title: "my\x1b[31m title\n"}})
	l.user("p1", text("one"))
	l.answer("m1", text("answer"))
	first := wire(l.History)
	l.emit(agent.Cleared{Session: "99999999-2222-4333-8444-555555555555"})
	if _, err := os.Stat(l.w.Path()); err == nil {
		t.Error("the new session has a file before it has a message")
	}
	l.History = nil
	l.user("p2", text("two"))
	next := l.w.Path()
	if filepath.Base(next) != "99999999-2222-4333-8444-555555555555.jsonl" {
		t.Fatalf("the new session is in %s", next)
	}
	if got := l.same(t, next, "cleared"); got.Title != "my[31m title" || got.Session != "99999999-2222-4333-8444-555555555555" {
		t.Errorf("got %q, %s", got.Title, got.Session)
	}
	if got := reload(t, p); wire(got.History) != first || got.Title != "my[31m title" {
		t.Errorf("the old session: %s", wire(got.History))
	}
	if err := Rename(p, " other\tname "); err != nil {
		t.Fatal(err)
	}
	if got := reload(t, p); got.Title != "othername" || wire(got.History) != first {
		t.Errorf("renamed: %q", got.Title)
	}
	if Rename(p, " \n") == nil || Rename(p+"x", "y") == nil {
		t.Error("an empty title, or a session that is not there, was taken")
	}
}

func TestAgents(t *testing.T) {
	t.Parallel()
	p := path(t)
	l := open(t, Options{Path: p})
	u := call("toolu_t", "Agent")
	l.user("p1", text("explore"))
	l.block("m1", "m1a", u)
	l.respond("m1")
	l.begin(u, false)
	l.emit(agent.Worked{Stage: "started", Task: agent.Task{ID: "a1/..", Type: "local_agent", Agent: "Explore", Description: "look", Call: u.ID}})
	main := l.History
	l.agent, l.parent, l.History = "a1/..", u.ID, nil
	l.user("sp1", text("look around"))
	r := call("toolu_s", "Bash")
	l.block("s1", "s1a", r)
	l.begin(r, false)
	sub := l.History
	got, err := LoadAgent(p, "a1/..")
	if err != nil {
		t.Fatal(err)
	}
	valid(t, got)
	if len(got.Unknown) != 1 || got.Unknown[0].Call != "toolu_s" || !strings.HasPrefix(wire(got.History), wire(sub)) {
		t.Errorf("the agent: %+v\n%s", got.Unknown, wire(got.History))
	}
	whole := reload(t, p)
	if !strings.HasPrefix(wire(whole.History), wire(main)) || !slices.Equal(whole.Agents, []string{"a1---"}) || len(whole.Unknown) != 1 || whole.Unknown[0].Call != "toolu_t" {
		t.Errorf("the session: %+v %v\n%s", whole.Unknown, whole.Agents, wire(whole.History))
	}
	var meta map[string]any
	if err := json.Unmarshal(must(os.ReadFile(strings.TrimSuffix(AgentPath(p, "a1/.."), ext)+".meta.json")), &meta); err != nil || meta["agentType"] != "Explore" || meta["toolUseId"] != "toolu_t" {
		t.Errorf("meta: %v, %v", meta, err)
	}
	for _, f := range decodeLines(t, AgentPath(p, "a1/..")) {
		if f["isSidechain"] != true || f["agentId"] != "a1/.." || f["sessionId"] != session {
			t.Errorf("line %v", f)
		}
	}
	// The session goes on, and so does the agent.
	next := open(t, Options{Path: p, Resume: whole})
	next.agent = "a1/.."
	next.History = got.History
	next.user("sp2", text("and further"))
	again, err := LoadAgent(p, "a1/..")
	if err != nil {
		t.Fatal(err)
	}
	if wire(again.History) != wire(next.History) {
		t.Errorf("the agent, resumed: got\n%s\nwant\n%s", wire(again.History), wire(next.History))
	}
}

// A call that waits for a decision from outside keeps its place, and its
// result joins it when the session goes on.
func TestDeferred(t *testing.T) {
	t.Parallel()
	p := path(t)
	l := open(t, Options{Path: p})
	u := call("toolu_d", "Bash")
	l.user("p1", text("do"))
	l.block("m1", "m1a", u)
	l.respond("m1")
	l.emit(agent.Decided{Call: agent.Call{ID: u.ID, Name: u.Name}, Decision: agent.Decision{Verdict: agent.Defer}})
	l.settle()
	got := l.same(t, p, "deferred")
	if got.Deferred != "toolu_d" {
		t.Fatalf("deferred: %q", got.Deferred)
	}
	r := open(t, Options{Path: p, Resume: got})
	r.begin(u, false)
	res := r.finish(u, agent.Textual("done"))
	r.same2(t, p, "finished", res)
	r.user("r1", res)
	r.answer("m2", text("ok"))
	if got := r.same(t, p, "gone on"); got.Deferred != "" || len(got.Unknown) != 0 {
		t.Errorf("%+v", got)
	}
}

// same2 is same with a result that has not been said yet.
func (l *log) same2(t *testing.T, p, when string, r *agent.ToolResult) {
	t.Helper()
	h := l.History
	l.History = append(slices.Clone(h), agent.Message{Role: agent.User, Blocks: []agent.Block{r}}.Encode())
	l.same(t, p, when)
	l.History = h
}

func TestSnapshotAndAppend(t *testing.T) {
	t.Parallel()
	p := path(t)
	l := open(t, Options{Path: p})
	if err := l.w.Snapshot([]string{"part <1>", "part 2"}); err != nil {
		t.Fatal(err)
	}
	l.user("p1", text("hi"))
	if err := l.w.Append("file-history-snapshot", json.RawMessage(`{"messageId":"p1","snapshot":{"a":1}}`)); err != nil {
		t.Fatal(err)
	}
	if err := l.w.Append("x", json.RawMessage(`[1]`)); err == nil {
		t.Error("members that are no object were taken")
	}
	got := l.same(t, p, "with a snapshot")
	if !slices.Equal(got.System, []string{"part <1>", "part 2"}) || len(got.FileHistory) != 1 {
		t.Errorf("system %q, history %s", got.System, got.FileHistory)
	}
	if _, err := Open(Options{Path: p}); !errors.Is(err, os.ErrExist) {
		t.Errorf("a session id in use: %v", err)
	}
}

// What only viewers read of a result is kept without its bulk.
func TestDetailIsSlim(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 1<<20)
	d := detail(agent.Result{Detail: map[string]any{"filePath": "a", "originalFile": big, "file": map[string]any{"content": big, "numLines": 3}, "structuredPatch": []int{1}}})
	if got, want := string(d), `{"file":{"numLines":3},"filePath":"a","structuredPatch":[1]}`; got != want {
		t.Errorf("got %.300s, want %s", got, want)
	}
	if d := detail(agent.Result{IsError: true, Blocks: []agent.Block{text(big)}}); len(d) > 5000 || !json.Valid(d) {
		t.Errorf("an error of %d bytes", len(d))
	}
	if d := detail(agent.Result{Detail: big}); len(d) > 5000 || !json.Valid(d) {
		t.Errorf("a text of %d bytes", len(d))
	}
}
