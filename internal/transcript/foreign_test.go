package transcript

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/transcript/history"
)

// Files as the reference writes them: parallel calls whose results hang each
// on its own call, rendered and bare attachments, lines of the program's own,
// synthetic answers, sub-agents inside the main file, lines from the future.
func TestReference(t *testing.T) {
	t.Parallel()
	l := reload(t, filepath.Join("testdata", "reference.jsonl"))
	want := strings.Join([]string{
		`user: [{"type":"text","text":"<system-reminder>\nrules\n</system-reminder>"},{"type":"text","text":"fix it"},{"type":"text","text":"<system-reminder>\nenv text\n</system-reminder>"}]`,
		`assistant: [{"type":"thinking","thinking":"","signature":"sg"},{"type":"text","text":"I look."},{"type":"tool_use","id":"tu1","name":"Read","input":{"file_path":"/w/app/a"}},{"type":"tool_use","id":"tu2","name":"Read","input":{"file_path":"/w/app/a"}},{"type":"tool_use","id":"tu3","name":"Bash","input":{"file_path":"/w/app/a"}}]`,
		`user: [{"type":"tool_result","tool_use_id":"tu1","content":"one"},{"type":"tool_result","tool_use_id":"tu2","content":"Error: no","is_error":true},{"type":"tool_result","tool_use_id":"tu3","content":"three"},{"type":"text","text":"nested"},{"type":"text","text":"Resume where you left off."}]`,
		`assistant: [{"type":"text","text":"Done."}]`,
		`user: [{"type":"text","text":"<command-name>/cost</command-name>"},{"type":"text","text":"and this too"}]`,
		`assistant: [{"type":"text","text":"Yes."}]`, ""}, "\n")
	if got := wire(l.History); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := fmt.Sprintln(l.Title, l.Mode, l.Model, l.Cwd, l.Branch, l.Version, l.System, len(l.FileHistory), l.Skipped.Count, l.Unfinished, len(l.Unknown)); got != "My name acceptEdits claude-opus-5-5 /w/app dev 2.1.332 [one two] 1 0 false 0\n" {
		t.Errorf("got %s", got)
	}
	if !l.Active.Equal(time.Date(2026, 2, 3, 4, 5, 24, 0, time.UTC)) || !l.Created.Before(l.Active) {
		t.Errorf("active %v, created %v", l.Active, l.Created)
	}

	l = reload(t, filepath.Join("testdata", "compacted.jsonl"))
	want = strings.Join([]string{
		`user: [{"type":"text","text":"The summary."},{"type":"text","text":"second"}]`,
		`assistant: [{"type":"text","text":"answer two"}]`,
		`user: [{"type":"text","text":"put back"},{"type":"text","text":"third"}]`,
		`assistant: [{"type":"text","text":"answer three"}]`, ""}, "\n")
	if got := wire(l.History); got != want {
		t.Errorf("compacted: got\n%s\nwant\n%s", got, want)
	}
}

// Our lines behind those of another program leave its bytes as they are.
func TestGoOnWithForeign(t *testing.T) {
	t.Parallel()
	p := path(t)
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		t.Fatal(err)
	}
	old := must(os.ReadFile(filepath.Join("testdata", "reference.jsonl")))
	if err := os.WriteFile(p, old, 0o600); err != nil {
		t.Fatal(err)
	}
	l := open(t, Options{Path: p, Resume: reload(t, p)})
	l.user("p1", text("ours"))
	l.answer("m1", text("our answer"))
	l.settle()
	l.same(t, p, "gone on")
	if data := must(os.ReadFile(p)); !bytes.HasPrefix(data, old) {
		t.Error("the other program's lines have changed")
	}
}

// Bad input of all kinds costs what is bad, and is counted.
func TestBadLines(t *testing.T) {
	t.Parallel()
	line := func(typ, uuid, parent, rest string) string {
		return `{"type":"` + typ + `","uuid":"` + uuid + `",` + parent + `"sessionId":"s",` + rest + `}`
	}
	user := func(uuid, parent, text string) string {
		return line("user", uuid, parent, `"message":{"role":"user","content":"`+text+`"}`)
	}
	answer := func(uuid, parent, text string) string {
		return line("assistant", uuid, parent, `"message":{"id":"`+uuid+`","role":"assistant","content":[{"type":"text","text":"`+text+`"}]}`)
	}
	for name, c := range map[string]struct {
		lines   []string
		want    string
		skipped int
	}{
		"a parent that is nowhere": {[]string{user("u1", `"parentUuid":null,`, "one"), answer("a1", `"parentUuid":"gone",`, "two"), user("u2", `"parentUuid":"a1",`, "three")}, "one two three", 0},
		"no parents at all":        {[]string{user("u1", "", "one"), answer("a1", "", "two"), user("u2", "", "three")}, "one two three", 0},
		"a cycle":                  {[]string{user("u1", `"parentUuid":"a1",`, "one"), answer("a1", `"parentUuid":"u1",`, "two")}, "one two", 0},
		"its own parent":           {[]string{user("u1", `"parentUuid":null,`, "one"), answer("a1", `"parentUuid":"a1",`, "two")}, "one two", 0},
		"lines twice":              {[]string{user("u1", `"parentUuid":null,`, "one"), user("u1", `"parentUuid":null,`, "one"), answer("a1", `"parentUuid":"u1",`, "two")}, "one two", 0},
		"blanks, NULs, rubbish, a torn line": {[]string{user("u1", `"parentUuid":null,`, "one"), "", "\x00\x00\x00\x00", "rubbish", `{"type":"assis`, answer("a1", `"parentUuid":"u1",`, "two"),
			`{"type":"user","uuid":"x","parentUuid":"a1","message":{"content":{"a":1}}}`}, "one two", 4},
		"begins with an answer": {[]string{answer("a1", `"parentUuid":null,`, "two"), user("u1", `"parentUuid":"a1",`, "three")}, history.StartMissing + " two three", 0},
		"an answer to nothing":  {[]string{user("u1", `"parentUuid":null,`, "  "), answer("a1", `"parentUuid":"u1",`, "two")}, history.StartMissing + " two", 0},
	} {
		p := filepath.Join(t.TempDir(), "s.jsonl")
		if err := os.WriteFile(p, []byte(strings.Join(c.lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		l := reload(t, p)
		var said []string
		for _, m := range l.History {
			for _, b := range m.Blocks {
				said = append(said, b.(*agent.Text).Text)
			}
		}
		if got := strings.Join(said, " "); got != c.want || l.Skipped.Count != c.skipped {
			t.Errorf("%s: got %q and %d skipped (%v), want %q and %d", name, got, l.Skipped.Count, l.Skipped.First, c.want, c.skipped)
		}
	}
}

// mutate changes data in one of the ways in which files go bad.
func mutate(r *rand.Rand, data []byte) []byte {
	if len(data) < 3 {
		return data
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	i, j := r.IntN(len(lines)), r.IntN(len(lines))
	at := r.IntN(len(data))
	span := 1 + r.IntN(min(40, len(data)-at))
	switch r.IntN(9) {
	case 0:
		return data[:at]
	case 1: // a byte flips
		out := bytes.Clone(data)
		out[at] ^= 1 << r.IntN(8)
		return out
	case 2: // a line is gone
		return bytes.Join(append(append([][]byte{}, lines[:i]...), lines[i+1:]...), nil)
	case 3: // a line comes twice
		return bytes.Join(append(append(append([][]byte{}, lines[:i]...), lines[j]), lines[i:]...), nil)
	case 4: // two lines change places
		out := append([][]byte{}, lines...)
		out[i], out[j] = out[j], out[i]
		return bytes.Join(out, nil)
	case 5: // a block of zeros
		out := bytes.Clone(data)
		clear(out[at : at+span])
		return out
	case 6: // a piece is gone
		return append(bytes.Clone(data[:at]), data[at+span:]...)
	case 7: // a piece of it in another place
		return append(append(append([]byte{}, data[:at]...), data[at:at+span]...), data[at:]...)
	}
	words := []string{`"tool_use"`, `"tool_result"`, `"user"`, `"assistant"`, `null`, `"toolu_a"`, `"toolu_b"`, `"uuid"`, `"thinking"`, `[]`, `{}`, `""`, `true`, `"system"`}
	w := []byte(words[r.IntN(len(words))])
	for range 8 { // a value is another
		k := []byte(words[r.IntN(len(words))])
		if n := bytes.Index(data[at:], k); n >= 0 {
			return append(append(append([]byte{}, data[:at+n]...), w...), data[at+n+len(k):]...)
		}
	}
	return data
}

// A thousand damaged sessions all load to a history that the API accepts.
func TestDamaged(t *testing.T) {
	t.Parallel()
	p := path(t)
	w := open(t, Options{Path: p})
	for _, d := range scenario() {
		w.emit(d.body)
	}
	ours, trace := must(os.ReadFile(p)), must(os.ReadFile(TracePath(p)))
	theirs, compacted := must(os.ReadFile("testdata/reference.jsonl")), must(os.ReadFile("testdata/compacted.jsonl"))
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	for n := range 1000 {
		data, tr := [][]byte{ours, theirs, compacted}[n%3], trace
		for range 1 + r.IntN(6) {
			data = mutate(r, data)
			if r.IntN(3) == 0 {
				tr = mutate(r, tr)
			}
		}
		f := filepath.Join(dir, "s.jsonl")
		if err := os.WriteFile(f, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(TracePath(f), tr, 0o600); err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if p := recover(); p != nil || t.Failed() {
					t.Fatalf("seed %d, file %d: %v", seed, n, p)
				}
			}()
			l := reload(t, f)
			if n%10 == 0 { // and can be gone on with
				w := open(t, Options{Path: f, Resume: l})
				w.user("p9", text("go on"))
				_ = w.w.Close()
				if h := reload(t, f).History; !strings.HasSuffix(string(h[len(h)-1].Wire), `{"type":"text","text":"go on"}]`) {
					t.Errorf("the new prompt is not at the end: %s", wire(h))
				}
			}
		}()
	}
}

func FuzzLoad(f *testing.F) {
	for _, name := range []string{"reference", "compacted"} {
		data, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, []byte(`{"k":"started","call":"tu1"}`))
	}
	f.Add([]byte(`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"","name":"","input":3},{"type":"tool_use","id":"","name":"x"}]}}`+"\n"), []byte(`{"k":"draft","line":{"type":"user","uuid":"1"}}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data, trace []byte) {
		p := filepath.Join(dir, "s.jsonl")
		if os.WriteFile(p, data, 0o600) != nil || os.WriteFile(TracePath(p), trace, 0o600) != nil {
			t.Skip()
		}
		reload(t, p)
		summarize(p)
	})
}
