package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// bodies are requests of a conversation as it grows, moves its mark, is
// shortened in the middle and begins anew.
func bodies(rnd *rand.Rand, n int) [][][]byte {
	literal := func(s string) []byte { return []byte(s) }
	system, tools := literal(strings.Repeat("system ", 500)), literal(strings.Repeat("tool\n", 900))
	var wires [][]byte
	var out [][][]byte
	for i := range n {
		switch k := rnd.IntN(20); {
		case k == 0 && len(wires) > 4: // an old result is cleared
			wires[rnd.IntN(len(wires)-2)] = literal("[cleared]")
		case k == 1 && i > 10: // a summary
			wires = [][]byte{literal("[summary]")}
		case k == 2:
			tools = append(bytes.Clone(tools), "more"...)
		}
		for range 1 + rnd.IntN(3) {
			text := fmt.Sprintf("[%d %s]", i, strings.Repeat("word ", rnd.IntN(400)))
			if rnd.IntN(6) == 0 {
				text += "\xff\x00é\u2028\""
			}
			wires = append(wires, literal(text))
		}
		p := [][]byte{literal(`{"messages":[`)}
		for j, w := range wires {
			if j > 0 {
				p = append(p, literal(`},{`))
			}
			if j == len(wires)-1 {
				p = append(p, w[:len(w)-1], literal("<mark>"), w[len(w)-1:])
			} else {
				p = append(p, w)
			}
		}
		out = append(out, append(p, literal(`],"system":`), system, literal(`,"tools":`), tools, literal("}")))
	}
	return out
}

// Every request comes back byte for byte, also over several runs of one
// session, several conversations, and retries.
func TestRequestsComeBack(t *testing.T) {
	t.Parallel()
	for seed := range 20 {
		rnd := rand.New(rand.NewPCG(uint64(seed), 5))
		p := path(t)
		var want []string
		var who []string
		list := bodies(rnd, 60)
		side := bodies(rnd, 60)
		for run := 0; len(list) > 0; run++ {
			w, err := Open(Options{Path: p, Cwd: "/w", Resume: &Loaded{}})
			if err != nil {
				t.Fatal(err)
			}
			for range min(1+rnd.IntN(30), len(list)) {
				agentID, b := "", &list
				if rnd.IntN(4) == 0 {
					agentID, b = "a1", &side
				}
				body := (*b)[0]
				*b = (*b)[1:]
				for try := range 1 + rnd.IntN(2) {
					w.Sent(Sent{At: start, Agent: agentID, Purpose: "main", Model: "m", Attempt: try + 1}, body)
					want, who = append(want, string(bytes.Join(body, nil))), append(who, agentID)
				}
				if len(*b) == 0 {
					break
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
		r, err := ReadRequests(p)
		if err != nil || r.Skipped.Count > 0 {
			t.Fatal(err, r.Skipped)
		}
		if all := r.All(); len(all) != len(want) || all[len(all)-1].N != len(want) {
			t.Fatalf("seed %d: %d requests, want %d", seed, len(all), len(want))
		}
		for i, w := range want {
			got, s, err := r.Body(i + 1)
			if err != nil || string(got) != w || s.Agent != who[i] || s.Bytes != len(w) {
				t.Fatalf("seed %d, request %d: %v, %d bytes, want %d", seed, i+1, err, len(got), len(w))
			}
		}
		if _, _, err := r.Body(len(want) + 1); !errors.Is(err, ErrNotRecorded) {
			t.Error(err)
		}
	}
}

// The record of a conversation grows with what is said, not with what is sent.
func TestRequestsAreSmall(t *testing.T) {
	t.Parallel()
	p := path(t)
	system := bytes.Repeat([]byte("s"), 30_000)
	var wires [][]byte
	said := 0
	for run := range 4 {
		w, err := Open(Options{Path: p, Cwd: "/w", Resume: &Loaded{}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 50 {
			m := []byte(fmt.Sprintf("[%d %d %s]", run, i, strings.Repeat("x", 2000)))
			said += len(m)
			wires = append(wires, m)
			w.Sent(Sent{At: start, Purpose: "main", Model: "m", Attempt: 1}, append(append([][]byte{[]byte("{")}, wires...), []byte("<mark>"), system))
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	fi, err := os.Stat(RequestsPath(p))
	if err != nil {
		t.Fatal(err)
	}
	if most := int64(len(system) + said + said/4); fi.Size() > most {
		t.Errorf("%d bytes for %d that were said", fi.Size(), said)
	}
}

// A torn line, or one that somebody changed, costs the requests that rest on
// it; they are not given out wrong, and the next run goes on behind them.
func TestRequestsDamaged(t *testing.T) {
	t.Parallel()
	p := path(t)
	write := func(from, to int) {
		w, err := Open(Options{Path: p, Cwd: "/w", Resume: &Loaded{}})
		if err != nil {
			t.Fatal(err)
		}
		for i := from; i < to; i++ {
			w.Sent(Sent{At: start, Model: "m", Attempt: 1}, [][]byte{[]byte(strings.Repeat("same ", 10)), []byte(fmt.Sprintf("MID%d", i)), []byte(strings.Repeat("end ", 10))})
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write(0, 3)
	name := RequestsPath(p)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	lines[1] = bytes.Replace(lines[1], []byte(`"mid":"1`), []byte(`"mid":"7`), 1)
	torn := append(bytes.Join(lines[:2], nil), lines[2][:len(lines[2])/2]...)
	if err := os.WriteFile(name, torn, 0o600); err != nil {
		t.Fatal(err)
	}
	write(3, 5)
	r, err := ReadRequests(p)
	if err != nil || r.Skipped.Count != 1 {
		t.Fatal(err, r.Skipped)
	}
	for n, good := range map[int]bool{1: true, 2: false, 3: true, 4: true} {
		if _, _, err := r.Body(n); (err == nil) != good {
			t.Errorf("request %d: %v", n, err)
		}
	}
	if r, err := ReadRequests(filepath.Join(t.TempDir(), "none.jsonl")); err != nil || len(r.All()) != 0 {
		t.Error(err)
	}
}

// /clear begins a record of its own, and a session that was taken over writes none.
func TestRequestsFollowTheSession(t *testing.T) {
	t.Parallel()
	p := path(t)
	l := open(t, Options{Path: p})
	one := [][]byte{[]byte(`{"a":1}`)}
	l.w.Sent(Sent{At: start, Model: "m", Attempt: 1}, one)
	l.emit(agent.Cleared{Session: "22222222-2222-4333-8444-555555555555"})
	l.w.Sent(Sent{At: start, Model: "m", Attempt: 1}, one)
	if err := l.w.Close(); err != nil {
		t.Fatal(err)
	}
	l.w.Sent(Sent{At: start, Model: "m", Attempt: 1}, one) // too late, and no fault
	for _, name := range []string{p, l.w.Path()} {
		r, err := ReadRequests(name)
		if err != nil || len(r.All()) != 1 || r.All()[0].N != 1 {
			t.Errorf("%s: %v, %+v", name, err, r.All())
		}
	}
	q := path(t)
	w, err := Open(Options{Path: q, Guard: func() error { return errors.New("taken over") }})
	if err != nil {
		t.Fatal(err)
	}
	w.Sent(Sent{At: start, Model: "m", Attempt: 1}, one)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(RequestsPath(q)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a session that was taken over wrote: %v", err)
	}
}

func FuzzRequests(f *testing.F) {
	p := filepath.Join(f.TempDir(), "s.jsonl")
	w, err := Open(Options{Path: p, Cwd: "/w"})
	if err != nil {
		f.Fatal(err)
	}
	for _, b := range bodies(rand.New(rand.NewPCG(1, 5)), 3) {
		w.Sent(Sent{At: start, Model: "m", Attempt: 1}, b)
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(RequestsPath(p))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"n":2,"base":1,"head":99999999999,"tail":1,"bytes":3}` + "\n" + `{"n":1,"bytes":2,"mid":"ab"}`))
	f.Add([]byte(`{"n":1,"bytes":2,"mid64":"!!"}` + "\n" + `{"n":1,"mid":3,"mid64":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := path(t)
		if err := os.MkdirAll(SideDir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(RequestsPath(p), data, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := ReadRequests(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.All() {
			if body, _, err := r.Body(s.N); err == nil && len(body) != s.Bytes {
				t.Errorf("request %d has %d bytes, and says %d", s.N, len(body), s.Bytes)
			}
		}
	})
}

// What it takes to record one more request of a conversation of 1,000
// messages, 3 MB: it is done behind the request, on its own goroutine.
func BenchmarkSent1000(b *testing.B) {
	w, err := Open(Options{Path: filepath.Join(b.TempDir(), "s.jsonl"), Cwd: "/w"})
	if err != nil {
		b.Fatal(err)
	}
	pieces := [][]byte{[]byte("{")}
	for range 1000 {
		pieces = append(pieces, bytes.Repeat([]byte("x"), 3000), []byte(`},{"role":"user","content":`))
	}
	end := bytes.Repeat([]byte("s"), 30_000)
	l := &requestLog{w: w}
	n := 0
	for b.Loop() {
		n++
		fresh := append(pieces[:len(pieces):len(pieces)], []byte(fmt.Sprint("answer ", n)), []byte("<mark>"), end)
		if err := l.add(pending{Sent{At: start, Model: "m"}, RequestsPath(w.Path()), fresh}); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.file.Close(); err != nil {
		b.Fatal(err)
	}
}
