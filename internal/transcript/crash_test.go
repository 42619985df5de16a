package transcript

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/disk"
	"github.com/seed-eb844fcb/cinch/internal/test/faultfs"
)

// A deed is one event of a scenario, and the blocks it acknowledges.
type deed struct {
	body agent.Body
	acks []agent.Block
}

func say(id, uuid string, role agent.Role, bs ...agent.Block) deed {
	s := agent.Said{Message: agent.Message{ID: id, UUID: uuid, Role: role, Blocks: bs}}
	if role == agent.Assistant {
		s.RequestID, s.Model = "req_"+id, "claude-test-1"
	}
	return deed{s, bs}
}

func starts(u *agent.ToolUse, readOnly bool) deed {
	return deed{agent.Started{Call: agent.Call{ID: u.ID, Name: u.Name, Effects: agent.Effects{ReadOnly: readOnly}}}, nil}
}

func stops(u *agent.ToolUse, out string) deed {
	r := agent.Textual(out)
	return deed{agent.Finished{Call: agent.Call{ID: u.ID, Name: u.Name}, Result: r, Ran: true}, []agent.Block{&agent.ToolResult{ID: u.ID, Blocks: r.Blocks}}}
}

// scenario is two turns in which calls start, and one ends, while the
// response that asks for them is still being written.
func scenario() []deed {
	a, b, c := call("toolu_a", "Read"), call("toolu_b", "Bash"), call("toolu_c", "Write")
	ra, rb, rc := &agent.ToolResult{ID: "toolu_a", Blocks: []agent.Block{text("A out")}}, &agent.ToolResult{ID: "toolu_b", Blocks: []agent.Block{text("B out")}}, &agent.ToolResult{ID: "toolu_c", Blocks: []agent.Block{text("C out")}}
	done := func(id string) deed {
		return deed{agent.Responded{MessageID: id, Model: "claude-test-1", Stop: "end_turn", Usage: agent.Usage{Out: 9}}, nil}
	}
	return []deed{
		{agent.Opened{Info: agent.Info{Session: session}}, nil},
		{agent.Began{Info: agent.Info{Mode: agent.ModeDefault}}, nil},
		say("", "p1", agent.User, noted("instructions", "the rules"), text("first prompt")),
		say("m1", "m1a", agent.Assistant, &agent.Thinking{Text: "hm", Signature: "s"}),
		say("m1", "m1b", agent.Assistant, text("on it")),
		say("m1", "m1c", agent.Assistant, a),
		starts(a, true),
		say("m1", "m1d", agent.Assistant, b),
		stops(a, "A out"),
		{agent.Decided{Call: agent.Call{ID: b.ID, Name: b.Name}, Decision: agent.Decision{Verdict: agent.Allow}}, nil},
		starts(b, false),
		say("m1", "m1e", agent.Assistant, c),
		done("m1"),
		stops(b, "B out"),
		starts(c, false),
		stops(c, "C out"),
		say("", "r1", agent.User, ra, rb, rc, noted("memory", "nested")),
		say("m2", "m2a", agent.Assistant, text("all done")),
		done("m2"),
		{agent.Settled{Outcome: agent.Outcome{Subtype: "success"}}, nil},
		{agent.Began{Info: agent.Info{Mode: agent.ModePlan}}, nil},
		say("", "p2", agent.User, text("second prompt")),
		say("m3", "m3a", agent.Assistant, text("bye")),
		done("m3"),
		{agent.Settled{Outcome: agent.Outcome{Subtype: "success"}}, nil},
	}
}

// holds checks that l is valid and says all that was acknowledged.
func holds(t *testing.T, l *Loaded, acks []agent.Block, when string) {
	t.Helper()
	valid(t, l)
	sent := wire(l.History)
	for _, b := range acks {
		if thinks(b) {
			continue // not sent while nothing follows it
		}
		if n := strings.Count(sent, string(agent.AppendBlock(nil, b))); n != 1 {
			t.Fatalf("%s: %d times in the history: %s\n%s", when, n, agent.AppendBlock(nil, b), sent)
		}
	}
}

// Killed after any event, the session has everything that was acknowledged,
// and the model is told of each call whether it ran.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	for stop := 3; stop <= len(scenario()); stop++ {
		p := path(t)
		l := open(t, Options{Path: p})
		var acks []agent.Block
		running := map[agent.CallID]bool{}
		for _, d := range scenario()[:stop] {
			l.emit(d.body)
			acks = append(acks, d.acks...)
			switch b := d.body.(type) {
			case agent.Started:
				running[b.Call.ID] = true
			case agent.Finished:
				delete(running, b.Call.ID)
			case agent.Said:
				if b.Message.UUID == "r1" {
					acks = acks[:len(acks)-len(d.acks)] // the results are acknowledged already
					acks = append(acks, d.acks[3])
				}
			}
		}
		// No Close: this is the kill.
		got := reload(t, p)
		holds(t, got, acks, "killed")
		if len(got.Unknown) != len(running) {
			t.Errorf("after %d events: unknown %+v, running %v", stop, got.Unknown, running)
		}
		for _, u := range got.Unknown {
			if !running[u.Call] || u.ReadOnly != (u.Call == "toolu_a") {
				t.Errorf("after %d events: %+v is not unknown", stop, u)
			}
			want := unknown
			if u.ReadOnly {
				want = harmless
			}
			if !strings.Contains(wire(got.History), want) {
				t.Errorf("after %d events the model is not told of %s", stop, u.Call)
			}
		}
		// Resumed, the rest is said; nothing that was there changes its bytes.
		before := wire(got.History)
		r := open(t, Options{Path: p, Resume: got})
		r.n = 100
		r.user("p9", text("go on"))
		r.answer("m9", text("gone on"))
		r.settle()
		if err := r.w.Close(); err != nil {
			t.Fatal(err)
		}
		again := reload(t, p)
		if g, w := wire(again.History), wire(r.History); g != w {
			t.Fatalf("killed after %d events and resumed:\ngot\n%s\nwant\n%s", stop, g, w)
		}
		if err := os.Remove(TracePath(p)); err != nil {
			t.Fatal(err)
		}
		if g, w := wire(reload(t, p).History), wire(r.History); g != w {
			t.Fatalf("killed after %d events and resumed: the transcript alone says\n%s\nwant\n%s", stop, g, w)
		}
		if len(again.Unknown) != 0 {
			t.Errorf("killed after %d events and resumed: %+v is unknown still", stop, again.Unknown)
		}
		head := strings.TrimSuffix(before, "]\n") // a user message may have grown at its end
		if !strings.HasPrefix(wire(again.History), head) {
			t.Errorf("killed after %d events and resumed: the prefix changed\n%s\n%s", stop, before, wire(again.History))
		}
	}
}

// A tail that is torn off at any byte costs the torn line only, and the next
// session does not append to it.
func TestTornAnywhere(t *testing.T) {
	t.Parallel()
	p := path(t)
	l := open(t, Options{Path: p})
	for _, d := range scenario() {
		l.emit(d.body)
	}
	if err := l.w.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	for cut := len(whole) - 1; cut > 0; cut -= 41 {
		p := path(t)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		got := reload(t, p)
		if want := bytes.Count(whole[:cut], []byte("\n")); got.Lines+got.Skipped.Count > want+1 || got.Lines < want {
			t.Fatalf("cut at %d: %d lines of %d", cut, got.Lines, want)
		}
		r := open(t, Options{Path: p, Resume: got})
		r.user("p9", text("go on"))
		if err := r.w.Close(); err != nil {
			t.Fatal(err)
		}
		if g, w := wire(reload(t, p).History), wire(r.History); g != w {
			t.Fatalf("cut at %d:\ngot\n%s\nwant\n%s", cut, g, w)
		}
		data, err := os.ReadFile(p)
		if err != nil || !bytes.HasPrefix(data, whole[:cut]) {
			t.Fatalf("cut at %d: what was there has changed (%v)", cut, err)
		}
	}
}

// Whatever file operation fails: once the sink has returned nil, all events up
// to then are on disk, those of failed writes too, and the session is valid.
func TestDiskFailing(t *testing.T) {
	t.Parallel()
	for _, lasting := range []int64{1, 4, 1000} {
		for n := int64(1); ; n++ {
			p := path(t)
			f := &faultfs.FS{FS: disk.OS{}, Fail: n, For: lasting, Err: syscall.ENOSPC}
			w, err := Open(Options{Path: p, FS: f, Cwd: "/w"})
			if err != nil {
				t.Fatal(err)
			}
			var acks, pending []agent.Block
			failed := 0
			for _, d := range scenario() {
				if s, ok := d.body.(agent.Said); ok && s.Message.UUID == "r1" {
					d.acks = d.acks[3:]
				}
				pending = append(pending, d.acks...)
				if err := w.Sink(agent.Event{At: start, Body: d.body}); err == nil {
					acks, pending = append(acks, pending...), nil
				} else {
					failed++
				}
			}
			_ = w.Close()
			l, err := Load(p, LoadOptions{})
			if errors.Is(err, fs.ErrNotExist) && len(acks) == 0 {
				continue // nothing was ever acknowledged
			}
			if err != nil {
				t.Fatal(err)
			}
			holds(t, l, acks, "failed")
			if f.Ran() < n {
				if failed > 0 {
					t.Errorf("%d events failed without a fault", failed)
				}
				break
			}
			if n > 200 {
				t.Fatal("the flow never passes")
			}
		}
	}
}

// A session that was taken over stops to write, and says so.
func TestGuard(t *testing.T) {
	t.Parallel()
	p := path(t)
	st := Store{Private: t.TempDir()}
	lock, err := st.Lock(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Lock(t.Context(), session); err == nil {
		t.Error("two processes hold one session")
	}
	l := open(t, Options{Path: p, Guard: Taken(lock)})
	l.user("p1", text("mine"))
	second, err := st.TakeOver(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	err = l.w.Sink(agent.Event{At: start, Body: agent.Said{Message: agent.Message{Role: agent.User, Blocks: []agent.Block{text("no more")}}}})
	if err == nil || !strings.Contains(err.Error(), "taken over") {
		t.Errorf("got %v", err)
	}
	if got := reload(t, p); strings.Contains(wire(got.History), "no more") {
		t.Error("written after the session was taken over")
	}
	_ = second.Release()
}
