package jsonl_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/seed-eb844fcb/cinch/internal/lib/disk"
	"github.com/seed-eb844fcb/cinch/internal/lib/jsonl"
	"github.com/seed-eb844fcb/cinch/internal/test/faultfs"
)

func TestRead(t *testing.T) {
	t.Parallel()
	long := `{"x":"` + strings.Repeat("y", 11<<20) + `"}`
	in := strings.Join([]string{
		"\ufeff" + `{"a":1}`, "", "  ", ` {"b":2}` + "\r", "\x00\x00\x00", `{"c`, "no", "[1]", long, `{"d":4}`, `{"torn":"`,
	}, "\n")
	var skips jsonl.Skips
	var got []string
	for l, err := range jsonl.Read(iotest.HalfReader(strings.NewReader(in)), &skips) {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(in[l.Off:], string(l.Data)) {
			t.Errorf("line %d is not at %d", l.N, l.Off)
		}
		got = append(got, fmt.Sprintf("%d:%.7s", l.N, l.Data))
	}
	if want := []string{`1:{"a":1}`, `4:{"b":2}`, `9:{"x":"y`, `10:{"d":4}`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	want := jsonl.Skips{Count: 5, First: []jsonl.Skip{{5, "NUL bytes"}, {6, "cut short"}, {7, "not a JSON object"}, {8, "not a JSON object"}, {11, "cut short"}}}
	if fmt.Sprint(skips) != fmt.Sprint(want) {
		t.Errorf("skipped %v, want %v", skips, want)
	}
	bad := errors.New("bad sector")
	for _, err := range jsonl.Read(iotest.ErrReader(bad), &skips) {
		if !errors.Is(err, bad) {
			t.Errorf("got %v, want the reader's error", err)
		}
	}
}

func TestAppend(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "f.jsonl")
	if err := os.WriteFile(name, []byte(`{"a":1}`+"\n"+`{"torn`), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := jsonl.Open(nil, name)
	if err != nil {
		t.Fatal(err)
	}
	for _, ls := range [][]string{{`{"b":2}`, `{"c":3}`}, {`{"d":4}`}} {
		var lines [][]byte
		for _, l := range ls {
			lines = append(lines, []byte(l))
		}
		if err := a.Append(lines...); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Append([]byte("{\n}")); err == nil {
		t.Error("a line with a line feed in it was taken")
	}
	if err := errors.Join(a.Sync(), a.Close()); err != nil {
		t.Error(err)
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if want := "{\"a\":1}\n{\"torn\n{\"b\":2}\n{\"c\":3}\n{\"d\":4}\n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Whatever operation fails, the lines that were acknowledged are readable and
// in order, and those before are untouched.
func TestAppendFailing(t *testing.T) {
	t.Parallel()
	for n := int64(1); ; n++ {
		name := filepath.Join(t.TempDir(), "f.jsonl")
		if err := os.WriteFile(name, []byte(`{"n":-1}`+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		f := &faultfs.FS{FS: disk.OS{}, Fail: n, Err: syscall.ENOSPC}
		want := []string{`{"n":-1}`}
		if a, err := jsonl.Open(f, name); err == nil {
			for i := range 4 {
				line := fmt.Sprintf(`{"n":%d}`, i)
				if a.Append([]byte(line)) == nil {
					want = append(want, line)
				}
			}
			_ = a.Sync()
			_ = a.Close()
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		var skips jsonl.Skips
		for l := range jsonl.Read(bytes.NewReader(data), &skips) {
			got = append(got, string(l.Data))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("operation %d failed: got %q, acknowledged %q", n, got, want)
		}
		if f.Ran() < n {
			return
		}
	}
}

func TestAppendersDoNotInterleave(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "f.jsonl")
	const writers, lines = 4, 50
	done := make(chan error)
	for w := range writers {
		go func() {
			a, err := jsonl.Open(nil, name)
			if err != nil {
				done <- err
				return
			}
			line := fmt.Appendf(nil, `{"w":%d,"x":"%s"}`, w, strings.Repeat("z", 100_000))
			for range lines {
				err = errors.Join(err, a.Append(line))
			}
			done <- errors.Join(err, a.Close())
		}()
	}
	for range writers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	var skips jsonl.Skips
	for l, err := range jsonl.Read(f, &skips) {
		if err != nil || !json.Valid(l.Data) {
			t.Fatalf("line %d is broken: %v", l.N, err)
		}
		n++
	}
	if n != writers*lines || skips.Count != 0 {
		t.Errorf("%d lines, %d skipped", n, skips.Count)
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"", "\n", "{}", "{}\n{", "\x00\n{\"a\":[1,{\"b\":\"\\\"}\"}]}\r\n", "\ufeff{}\n[]\n{\"a\":nul}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		read := func(r *bytes.Reader, half bool) string {
			var s strings.Builder
			var skips jsonl.Skips
			src := iotest.OneByteReader(r)
			if half {
				src = iotest.HalfReader(r)
			}
			for l, err := range jsonl.Read(src, &skips) {
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&s, "%d@%d %q\n", l.N, l.Off, l.Data)
			}
			fmt.Fprintln(&s, skips)
			return s.String()
		}
		if a, b := read(bytes.NewReader(data), false), read(bytes.NewReader(data), true); a != b {
			t.Errorf("the lines depend on how they are read:\n%s\n%s", a, b)
		}
	})
}
