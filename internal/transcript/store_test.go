package transcript

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/atomicfile"
	"github.com/seed-eb844fcb/cinch/internal/lib/jsonl"
)

// The names that the Agent SDK was seen to open for these directories.
func TestSlug(t *testing.T) {
	t.Parallel()
	long := "/home/me/" + strings.Repeat("Abc_def.ghi/", 20)
	cut := "-home-me" + strings.Repeat("-Abc-def-ghi", 16) + "-"
	for dir, want := range map[string]string{
		"/w/my_app.x":   "-w-my-app-x",
		"/w/é😀 x":       "-w-----x",
		`C:\Users\me\p`: "C--Users-me-p",
		long + "a":      cut + "ra2k55",
		long + "é":      cut + "ra2k1d",
		long + "😀x":     cut + "4j3gth",
	} {
		if got := Slug(dir); got != want {
			t.Errorf("%s: got %s, want %s", dir, got, want)
		}
	}
	s := NewStore("/c")
	if got := s.Path("/w", "id"); got != filepath.FromSlash("/c/projects/-w/id.jsonl") {
		t.Error(got)
	}
	s.Name = "fixed"
	if got := s.Dir("/w"); got != filepath.FromSlash("/c/projects/fixed") {
		t.Error(got)
	}
}

// put writes a session of one prompt.
func put(t *testing.T, s Store, cwd, id string, at time.Time, entry, prompt string) string {
	t.Helper()
	p := s.Path(cwd, id)
	w, err := Open(Options{Path: p, Cwd: cwd, Entrypoint: entry, Branch: func() string { return "b-" + id }})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []agent.Body{agent.Began{},
		agent.Said{Message: agent.Message{UUID: "u-" + id, Role: agent.User, Blocks: []agent.Block{noted("instructions", strings.Repeat("r", 100_000)), text(prompt)}}},
		agent.Said{Message: agent.Message{ID: "m-" + id, UUID: "a-" + id, Role: agent.Assistant, Blocks: []agent.Block{text("answer")}}},
		agent.Settled{}} {
		if err := w.Sink(agent.Event{At: at, Body: b}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return p
}

func ids(l []Summary) string {
	var s []string
	for _, m := range l {
		s = append(s, m.ID)
	}
	return strings.Join(s, " ")
}

func TestListFindContinue(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := NewStore(t.TempDir())
	if l, err := s.List(ctx, "/w/a.b"); err != nil || l != nil {
		t.Errorf("no projects: %v, %v", l, err)
	}
	old := put(t, s, "/w/a.b", "one", start, "cli", "the first\nprompt")
	put(t, s, "/w/a.b", "two", start.Add(2*time.Hour), "sdk-ts", "by a program")
	put(t, s, "/w/a-b", "other", start.Add(time.Hour), "cli", "of another directory with the same name")
	put(t, s, "/w/tree", "three", start.Add(time.Minute), "cli", "in a worktree")
	put(t, s, "/far", "four", start.Add(time.Minute), "cli", "far away")
	// What is no session, and what cannot be read, is no hindrance; an index
	// that lies is not looked at.
	for name, data := range map[string]string{"x.jsonl": `{"type":"queue-operation"}` + "\n", "y.jsonl": "", "sessions-index.json": `{"sessions":[]}`, "z.jsonl/f": ""} {
		name = filepath.Join(s.Dir("/w/a.b"), name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(data), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	// The newest file is not the newest session.
	now := time.Now().Add(time.Hour)
	if err := os.Chtimes(old, now, now); err != nil {
		t.Fatal(err)
	}
	l, err := s.List(ctx, "/w/a.b")
	if err != nil || ids(l) != "two one" {
		t.Fatalf("got %s, %v", ids(l), err)
	}
	m := l[1]
	if m.Prompt != "the first prompt" || m.Last != "the first prompt" || m.Name() != "the first prompt" || m.Branch != "b-one" || m.Cwd != "/w/a.b" || m.Headless() || !l[0].Headless() || !m.Active.Equal(start) || m.Size < 100_000 {
		t.Errorf("got %+v", m)
	}
	for _, headless := range []bool{false, true} {
		m, ok, err := s.Continue(ctx, "/w/a.b", headless)
		if want := map[bool]string{false: "one", true: "two"}[headless]; !ok || err != nil || m.ID != want {
			t.Errorf("continue, headless %v: %s", headless, m.ID)
		}
	}
	if _, ok, _ := s.Continue(ctx, "/nowhere", true); ok {
		t.Error("continued what never was")
	}
	if err := errors.Join(Rename(old, "My Work"), Rename(s.Path("/far", "four"), "my work")); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"one": "one", "THREE": "three", "my work": "one", "four": "four", "nobody": "", "other": "other"} {
		m, err := s.Find(ctx, key, "/w/a.b", "/w/tree")
		var nf *NotFoundError
		if m.ID != want || (err == nil) != (want != "") || err != nil && !errors.As(err, &nf) {
			t.Errorf("find %s: %s, %v", key, m.ID, err)
		}
	}
	var amb *AmbiguousError
	if _, err := s.Find(ctx, "my work"); !errors.As(err, &amb) || len(amb.Matches) != 2 {
		t.Errorf("an ambiguous name: %v", err)
	}
	if all, err := s.ListAll(ctx); err != nil || ids(all) != "two other three four one" && ids(all) != "two other four three one" {
		t.Errorf("all: %s, %v", ids(all), err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.List(gone, "/w/a.b"); err == nil {
		t.Error("a list went on without anybody waiting for it")
	}
}

func TestFork(t *testing.T) {
	t.Parallel()
	s := NewStore(t.TempDir())
	p := s.Path("/w", session)
	l := open(t, Options{Path: p})
	u := call("toolu_x", "Bash")
	l.user("p1", text("go"))
	l.block("m1", "m1a", u)
	l.begin(u, false)
	l.agent = "ag"
	sub := l.History
	l.History = nil
	l.user("sp1", text("sub"))
	l.History, l.agent = sub, ""
	before := must(os.ReadFile(p))
	to := s.Path("/elsewhere", "99999999-2222-4333-8444-555555555555")
	if err := Fork(p, to); err != nil {
		t.Fatal(err)
	}
	a, b := reload(t, p), reload(t, to)
	if wire(a.History) != wire(b.History) || len(b.Unknown) != 1 || !slices.Equal(b.Agents, []string{"ag"}) {
		t.Errorf("the copy: %+v %v\n%s", b.Unknown, b.Agents, wire(b.History))
	}
	if !strings.Contains(b.Forked, session) {
		t.Errorf("forked from %s", b.Forked)
	}
	for _, f := range []string{to, AgentPath(to, "ag")} {
		for _, m := range decodeLines(t, f) {
			if m["sessionId"] != "99999999-2222-4333-8444-555555555555" {
				t.Errorf("%s: %v", f, m)
			}
		}
	}
	r := open(t, Options{Path: to, Resume: b})
	r.user("p2", text("in the copy"))
	r.same(t, to, "the copy goes on")
	if string(must(os.ReadFile(p))) != string(before) {
		t.Error("the origin has changed")
	}
	if err := Fork(p, to); !errors.Is(err, os.ErrExist) {
		t.Errorf("forked over a session: %v", err)
	}
	if err := Fork(s.Path("/w", "nobody"), s.Path("/w", "x")); err == nil {
		t.Error("forked what is not there")
	}
	if _, err := os.Stat(s.Path("/w", "x")); err == nil {
		t.Error("half a copy was left")
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := NewStore(t.TempDir())
	long := time.Now().AddDate(0, 0, -40)
	for _, id := range []string{"old", "open", "new"} {
		p := put(t, s, "/w", id, start, "cli", "x")
		if err := os.MkdirAll(filepath.Join(SideDir(p), "tool-results"), 0o700); err != nil {
			t.Fatal(err)
		}
		if id == "new" {
			continue
		}
		for _, f := range []string{p, TracePath(p)} {
			if err := os.Chtimes(f, long, long); err != nil {
				t.Fatal(err)
			}
		}
	}
	gone := put(t, s, "/gone", "last", start, "cli", "x")
	memory := filepath.Join(s.Dir("/w"), "memory", "MEMORY.md")
	if err := errors.Join(os.Chtimes(gone, long, long), os.Chtimes(TracePath(gone), long, long), os.MkdirAll(filepath.Dir(memory), 0o700), os.WriteFile(memory, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	lock, err := s.Lock(ctx, "open")
	if err != nil {
		t.Fatal(err)
	}
	removed, err := s.Sweep(ctx, time.Now().AddDate(0, 0, -30))
	slices.Sort(removed)
	if err != nil || !slices.Equal(removed, []string{"last", "old"}) {
		t.Errorf("removed %v, %v", removed, err)
	}
	_ = lock.Release()
	var left []string
	es, err := os.ReadDir(s.Dir("/w"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		left = append(left, e.Name())
	}
	if got := fmt.Sprint(left); got != "[memory new new.jsonl new.trace.jsonl open open.jsonl open.trace.jsonl]" {
		t.Errorf("left %s", got)
	}
	if _, err := os.Stat(s.Dir("/gone")); err == nil {
		t.Error("an empty project is left")
	}
}

// A place where nothing can be written costs the lock and the saving, not the
// session.
func TestNowhereToWrite(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := NewStore(file)
	l, err := s.Lock(t.Context(), session)
	if err != nil || l.Lost() {
		t.Errorf("a lock where none can be made: %v", err)
	}
	_ = l.Release()
	w, err := Open(Options{Path: s.Path("/w", session)})
	if err != nil {
		t.Fatal(err)
	}
	err = w.Sink(agent.Event{At: start, Body: agent.Said{Message: agent.Message{Role: agent.User, Blocks: []agent.Block{text("hi")}}}})
	if err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v, want the path that is in the way", err)
	}
	if got, err := s.List(t.Context(), "/w"); len(got) != 0 || err == nil {
		t.Errorf("listed %v, %v", got, err)
	}
}

func TestTrace(t *testing.T) {
	t.Parallel()
	p := path(t)
	l := open(t, Options{Path: p})
	for _, d := range scenario() {
		l.emit(d.body)
	}
	l.emit(agent.Crossed{ID: "c1", Boundary: "tls", Name: "host", Start: start, End: start.Add(time.Millisecond), Attempt: 1, Outcome: "ok", Detail: map[string]string{"k": "v"}})
	var kinds []string
	var skips jsonl.Skips
	for r, err := range Trace(p, &skips) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Kind != "draft" && !(r.Kind == "said" && r.Role == agent.Assistant) {
			kinds = append(kinds, strings.TrimSpace(fmt.Sprint(r.Kind, " ", r.Call)))
		}
		if r.Kind == "crossed" && (r.Boundary != "tls" || r.End.Sub(r.Start) != time.Millisecond || r.Detail["k"] != "v") {
			t.Errorf("got %+v", r)
		}
	}
	want := "opened|began|said|started toolu_a|finished toolu_a|decided toolu_b|started toolu_b|responded|finished toolu_b|started toolu_c|finished toolu_c|said|responded|settled|began|said|responded|settled|crossed"
	if got := strings.Join(kinds, "|"); got != want || skips.Count != 0 {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for range Trace(filepath.Join(t.TempDir(), "x.jsonl"), &skips) {
		t.Error("a record of a session that never was")
	}
}

// bigSession writes a session of about mb megabytes, most of it results.
func bigSession(tb testing.TB, mb int) string {
	p := filepath.Join(tb.TempDir(), "big.jsonl")
	w, err := Open(Options{Path: p, Cwd: "/w"})
	if err != nil {
		tb.Fatal(err)
	}
	out := strings.Repeat("a line of \"output\"\tof some length, 0123456789\n", 2200) // 100 KB
	sink := func(b agent.Body) {
		if err := w.Sink(agent.Event{At: start, Body: b}); err != nil {
			tb.Fatal(err)
		}
	}
	sink(agent.Said{Message: agent.Message{UUID: "p", Role: agent.User, Blocks: []agent.Block{text("go")}}})
	for i := range mb * 9 {
		u := call(fmt.Sprint("toolu_", i), "Bash")
		id := fmt.Sprint("m", i)
		sink(agent.Said{Message: agent.Message{ID: id, UUID: id, Role: agent.Assistant, Blocks: []agent.Block{u}}})
		sink(agent.Responded{MessageID: id})
		sink(agent.Started{Call: agent.Call{ID: u.ID}})
		r := agent.Textual(out)
		sink(agent.Finished{Call: agent.Call{ID: u.ID}, Result: r, Ran: true})
		sink(agent.Said{Message: agent.Message{UUID: "r" + id, Role: agent.User, Blocks: []agent.Block{&agent.ToolResult{ID: u.ID, Blocks: r.Blocks}}}})
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return p
}

func BenchmarkLoad80MB(b *testing.B) {
	p := bigSession(b, 80)
	info, err := os.Stat(p)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	for b.Loop() {
		if _, err := Load(p, LoadOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSinkTurn(b *testing.B) {
	p := filepath.Join(b.TempDir(), "s.jsonl")
	w, err := Open(Options{Path: p, Cwd: "/w"})
	if err != nil {
		b.Fatal(err)
	}
	out := agent.Textual(strings.Repeat("x", 4000))
	n := 0
	for b.Loop() {
		n++
		id := fmt.Sprint("m", n)
		u := call("toolu_"+id, "Read")
		for _, body := range []agent.Body{
			agent.Said{Message: agent.Message{ID: id, UUID: id, Role: agent.Assistant, Blocks: []agent.Block{u}}},
			agent.Decided{Call: agent.Call{ID: u.ID}}, agent.Started{Call: agent.Call{ID: u.ID}}, agent.Responded{MessageID: id},
			agent.Finished{Call: agent.Call{ID: u.ID}, Result: out, Ran: true},
			agent.Said{Message: agent.Message{UUID: "r" + id, Role: agent.User, Blocks: []agent.Block{&agent.ToolResult{ID: u.ID, Blocks: out.Blocks}}}},
		} {
			if err := w.Sink(agent.Event{At: start, Body: body}); err != nil {
				b.Fatal(err)
			}
		}
	}
	_ = w.Close()
}

// What a dead process has left running holds its lock for a moment longer:
// that is waited for. A process that lives has the session.
func TestLockOfTheDead(t *testing.T) {
	t.Parallel()
	s := NewStore(t.TempDir())
	left, err := s.Lock(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	var held *atomicfile.HeldError
	if _, err := s.Lock(t.Context(), session); !errors.As(err, &held) || held.Holder.Gone() {
		t.Fatalf("locked by the living: %v", err)
	}
	dead := held.Holder
	dead.Start += "0" // the process that had our number before us
	data, err := json.Marshal(dead)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.lockPath(session), data, 0o600); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		time.Sleep(patience + patience/2)
		if err := left.Release(); err != nil {
			t.Error(err)
		}
	})
	defer wg.Wait()
	l, err := s.Lock(t.Context(), session)
	if err != nil {
		t.Fatalf("locked by what the dead have left: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Lock(ctx, session); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}
