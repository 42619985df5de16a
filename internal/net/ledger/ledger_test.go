package ledger

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func read(t *testing.T, path string) []Contact {
	t.Helper()
	list, skipped, err := Read(path)
	if err != nil || skipped != 0 {
		t.Fatalf("skipped %d, %v", skipped, err)
	}
	return list
}

// A contact has one place in the list however many lines tell of it; one that
// never ended is there too; a torn line costs itself only.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	path := Name(filepath.Join(t.TempDir(), "side"))
	b := New(Options{Path: func() string { return path }, Failed: func(err error) { t.Error(err) }})
	one := b.Begin(Contact{Host: "a.test:443", Why: "model", Boundary: "model/1"})
	b.Begin(Contact{Host: "b.test:443", Why: "web", Call: "t1"})
	b.Refuse(Contact{Host: "c.test:80", Why: "command", Call: "t2", By: "*.test", Err: "denied", Command: strings.Repeat("é", 400)})
	one.End(func(c *Contact) { c.Sent, c.Received, c.Status = 10, 20, 200 })
	b.Close()
	one.End(nil)           // late: nothing
	New(Options{}).Close() // keeps nothing
	(*Book)(nil).Begin(Contact{}).End(nil)
	(*Book)(nil).Refuse(Contact{})
	(*Book)(nil).Close()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"id":"x","ho`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	list, skipped, err := Read(path)
	if skipped != 1 || err != nil {
		t.Errorf("skipped %d, %v", skipped, err)
	}
	want := []Contact{
		{Host: "a.test:443", Why: "model", Boundary: "model/1", Verdict: Allowed, Sent: 10, Received: 20, Status: 200},
		{Host: "b.test:443", Why: "web", Call: "t1", Verdict: Allowed},
		{Host: "c.test:80", Why: "command", Call: "t2", Verdict: Denied, By: "*.test", Err: "denied", Command: strings.Repeat("é", 150) + "…"},
	}
	if d := cmp.Diff(want, list, cmpopts.IgnoreFields(Contact{}, "ID", "At", "End")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if list[0].End.IsZero() || !list[1].End.IsZero() || list[2].End.IsZero() {
		t.Errorf("ends: %v %v %v", list[0].End, list[1].End, list[2].End)
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", fi, err)
	}
}

// A session that becomes another one (/clear) gets a ledger of its own; what
// began in the first ends there.
func TestMoves(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var mu sync.Mutex
	path := filepath.Join(dir, "1")
	b := New(Options{Path: func() string { mu.Lock(); defer mu.Unlock(); return path }})
	old := b.Begin(Contact{Host: "a.test:1"})
	mu.Lock()
	path = filepath.Join(dir, "2")
	mu.Unlock()
	b.Begin(Contact{Host: "b.test:1"}).End(nil)
	old.End(nil)
	b.Close()
	first, second := read(t, filepath.Join(dir, "1")), read(t, filepath.Join(dir, "2"))
	if len(first) != 1 || first[0].Host != "a.test:1" || first[0].End.IsZero() || len(second) != 1 || second[0].Host != "b.test:1" {
		t.Errorf("%+v\n%+v", first, second)
	}
}

// What cannot be written is told once and stops nobody.
func TestCannotWrite(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var told []error
	b := New(Options{Path: func() string { return filepath.Join(file, "network.jsonl") }, Failed: func(err error) { told = append(told, err) }})
	b.Begin(Contact{Host: "a.test:1"}).End(nil)
	b.Refuse(Contact{Host: "a.test:1"})
	if len(told) != 1 {
		t.Errorf("told %q", errors.Join(told...))
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	list := []Contact{
		{ID: "1", At: at, End: at.Add(time.Second), Host: "a.test:443", Why: "model", Boundary: "model/1", Verdict: Allowed, Sent: 20_000, Received: 5, Status: 200},
		{ID: "2", At: at.Add(time.Second), Host: "b\x1b[2J.test:80", Why: "command", Call: "t1", Verdict: Allowed, By: "*.test", Command: "curl b"},
		{ID: "3", At: at, End: at, Host: "a.test:443", Why: "model", Verdict: Allowed, Err: "gone"},
	}
	var b strings.Builder
	if err := WriteTotals(&b, Totals(list)); err != nil {
		t.Fatal(err)
	}
	want := `HOST              WHY      VERDICT  TIMES  SENT  RECEIVED
a.test:443        model    allowed  2      20k   5         1 failed
b\x1b[2J.test:80  command  allowed  1      0     0         by *.test, 1 without an end
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	b.Reset()
	if err := WriteContacts(&b, list); err != nil {
		t.Fatal(err)
	}
	want = `TIME          HOST              WHY      VERDICT  SENT  RECEIVED  TOOK
03:04:05.000  a.test:443        model    allowed  20k   5         1s    request model/1 · status 200
03:04:05.000  a.test:443        model    allowed  0     0         0s    gone
03:04:06.000  b\x1b[2J.test:80  command  allowed  0     0         -     call t1 · by *.test · $ curl b · no end is written: under way, or killed
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Whatever stands in a ledger, reading it ends and prints.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"id":"1","host":"a:1"}` + "\n" + `{"id":"1","host":"a:1","end":"2026-01-02T03:04:05Z"}` + "\n{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "l")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		list, _, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := errors.Join(WriteTotals(&b, Totals(list)), WriteContacts(&b, list)); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(b.String(), "\x1b\x07\x00") {
			t.Errorf("%q", b.String())
		}
	})
}
