package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	for _, c := range []struct{ name, before, content, after string }{
		{"blanks at line ends stay", "a\n", "a  \nb\t\n", "a  \nb\t\n"},
		{"no final newline", "a\n", "b", "b"},
		{"a final newline", "a", "b\n", "b\n"},
		{"crlf", "a\r\nb\r\n", "a\nc\n", "a\r\nc\r\n"},
		{"asked for crlf", "a\nb\n", "a\r\nb\r\n", "a\r\nb\r\n"},
		{"windows-1252", "caf\xe9\n", "thé\n", "th\xe9\n"},
		{"utf-16", "\xff\xfea\x00", "b", "\xff\xfeb\x00"},
		{"byte order mark", "\xef\xbb\xbfa", "b", "\xef\xbb\xbfb"},
		{"binary", "\x7fELF\x00\x00\xff", "text\n", "text\n"},
		{"to empty", "a\n", "", ""},
	} {
		d.write("f", c.before)
		d.o.State.Viewed(d.path("f"))
		if got, want := d.ok("Write", args{"file_path": "f", "content": c.content}), "The file "+d.path("f")+" has been updated successfully. "+knownNote; got != want {
			t.Errorf("%s: got %q, want %q", c.name, got, want)
		}
		if got := d.content("f"); got != c.after {
			t.Errorf("%s: got %q, want %q", c.name, got, c.after)
		}
	}
	d.ok("Write", args{"file_path": "new/dir/f", "content": "a  \n\n"})
	if got := d.content("new/dir/f"); got != "a  \n\n" {
		t.Errorf("got %q", got)
	}
	d.write("latin", "caf\xe9\n")
	d.fails("Write", args{"file_path": "latin", "content": "☺"}, "<tool_use_error>", "☺", "windows-1252")
	d.fails("Write", args{"file_path": ".", "content": ""}, "EISDIR")
	d.fails("Write", args{"file_path": "/dev/null", "content": ""}, "a device")
	d.write("seen", "one\n")
	d.ok("Read", args{"file_path": "seen"})
	d.write("seen", "changed by the user\n")
	d.fails("Write", args{"file_path": "seen", "content": "two\n"}, "<tool_use_error>", "would undo that", "Read it again")
	if got := d.content("seen"); got != "changed by the user\n" {
		t.Errorf("got %q", got)
	}
	d.write("unseen", "one\n")
	d.ok("Write", args{"file_path": "unseen", "content": "two\n"})
}

func TestNotices(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	for _, n := range []string{"a", "b", "c", "gone", "same", "part"} {
		d.write(n, "one\ntwo\n")
		d.ok("Read", args{"file_path": n})
	}
	secret := d.write("secret", "x\n")
	d.ok("Read", args{"file_path": "secret"})
	if got := d.o.State.Changed(nil); got != nil {
		t.Errorf("nothing changed, got %v", got)
	}
	d.write("a", "one\n2\n")
	d.write("b", strings.Repeat("a new line\n", 5000))
	d.write("c", "\x00\xff\x00")
	d.write("secret", "y\n")
	if err := os.Remove(d.path("gone")); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(d.path("same"), later, later); err != nil {
		t.Fatal(err)
	}
	deny := func(p string) bool { return p == secret }
	got := d.o.State.Changed(deny)
	for i := range got {
		if got[i].Cut {
			got[i].Diff = got[i].Diff[:20]
		}
	}
	want := []Notice{
		{Path: d.path("a"), Diff: "@@ -1,2 +1,2 @@\n one\n-two\n+2\n"},
		{Path: d.path("b"), Diff: "@@ -1,2 +1,5000 @@\n-", Cut: true},
		{Path: d.path("c")},
		{Path: d.path("gone"), Gone: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, n := range got {
		if text := n.Text(); !strings.HasPrefix(text, n.Path+" was ") {
			t.Errorf("got %q", text)
		}
	}
	if got := d.o.State.Changed(deny); got != nil {
		t.Errorf("told twice: %v", got)
	}
	// A change that was shown whole is known; one that was not must be read.
	d.ok("Write", args{"file_path": "a", "content": "new\n"})
	d.fails("Write", args{"file_path": "b", "content": "new\n"}, "only in part")
	// Our own changes are no news.
	d.ok("Edit", args{"file_path": "a", "old_string": "new", "new_string": "newer"})
	if got := d.o.State.Changed(deny); got != nil {
		t.Errorf("own changes told: %v", got)
	}
}

func TestRecentAndFork(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	for _, n := range []string{"a", "b", "c"} {
		d.write(n, "x\n")
		d.ok("Read", args{"file_path": n})
	}
	d.ok("Edit", args{"file_path": "a", "old_string": "x", "new_string": "y"})
	if diff := cmp.Diff([]string{d.path("a"), d.path("c")}, d.o.State.Recent(2)); diff != "" {
		t.Error(diff)
	}
	child := d.o.State.Fork()
	d.write("new", "x\n")
	d.ok("Read", args{"file_path": "new"})
	if diff := cmp.Diff([]string{d.path("a"), d.path("c"), d.path("b")}, child.Recent(9)); diff != "" {
		t.Error(diff)
	}
	if got := len(d.o.State.Recent(9)); got != 4 {
		t.Errorf("got %d files", got)
	}
}

func TestSeed(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(o *Options) { o.RequireRead = func() bool { return true } })
	f := d.write("f", "x\n")
	info, err := os.Stat(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.o.State.Seed(f, info.ModTime().Add(-time.Second)); err == nil {
		t.Error("a file that changed since was noted as read")
	}
	d.fails("Write", args{"file_path": "f", "content": "y"}, "Read it first")
	if err := d.o.State.Seed(f, info.ModTime().Truncate(time.Millisecond)); err != nil {
		t.Error(err)
	}
	d.ok("Write", args{"file_path": "f", "content": "y"})
	if err := d.o.State.Seed(d.path("none"), time.Now()); err == nil {
		t.Error("a file that does not exist was noted as read")
	}
}

// Much is seen, little is kept.
func TestKeptIsBounded(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	f := d.write("f", strings.Repeat("x", keepFile))
	info, err := os.Stat(f)
	if err != nil {
		t.Fatal(err)
	}
	s := d.o.State
	for i := range 3 * keepAll / keepFile {
		s.put(fmt.Sprintf("/f%d", i), info, make([]byte, keepFile), span{1, 1}, 1)
	}
	sum := 0
	for _, f := range s.files {
		sum += len(f.data)
	}
	if sum != s.kept || sum > keepAll {
		t.Errorf("%d bytes kept, counted as %d", sum, s.kept)
	}
}

func TestSpans(t *testing.T) {
	t.Parallel()
	got := merge([]span{{5, 6}, {1, 2}, {9, 9}, {3, 5}})
	if diff := cmp.Diff([]span{{1, 6}, {9, 9}}, got, cmp.AllowUnexported(span{})); diff != "" {
		t.Error(diff)
	}
}

// Agents that edit one file at the same time lose nothing.
func TestConcurrentEdits(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	const n = 8
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "slot%d=0\n", i)
	}
	d.write("f", b.String())
	var wg sync.WaitGroup
	done := make([]bool, n)
	for i := range n {
		wg.Go(func() {
			tool := New(Options{Cwd: d.o.Cwd, State: NewState()})[2]
			for range 50 {
				_, err := tool.Run(context.Background(), agent.Call{Input: json.RawMessage(fmt.Sprintf(`{"file_path":"f","old_string":"slot%d=0","new_string":"slot%d=1"}`, i, i))})
				if err == nil {
					done[i] = true
					return
				}
			}
		})
	}
	wg.Wait()
	got := d.content("f")
	for i := range n {
		if done[i] != strings.Contains(got, fmt.Sprintf("slot%d=1", i)) {
			t.Errorf("edit %d: made %v, file %q", i, done[i], got)
		}
	}
}

func TestEditor(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	f := d.write("f", "x\n")
	ctx, c := context.Background(), agent.Call{}
	if _, err := d.ed.Load(ctx, c, f); err == nil || !strings.Contains(err.Error(), "Read it first") {
		t.Errorf("unread: %v", err)
	}
	d.ok("Read", args{"file_path": "f"})
	data, err := d.ed.Load(ctx, c, f)
	if err != nil || string(data) != "x\n" {
		t.Fatalf("got %q, %v", data, err)
	}
	if err := d.ed.Save(ctx, c, f, data, []byte("y\n")); err != nil || d.content("f") != "y\n" {
		t.Errorf("got %q, %v", d.content("f"), err)
	}
	if err := d.ed.Save(ctx, c, f, data, []byte("z\n")); err == nil || d.content("f") != "y\n" {
		t.Errorf("saved over other content: %v", err)
	}
	d.write("f", "changed\n")
	if _, err := d.ed.Load(ctx, c, f); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("stale: %v", err)
	}
	stop := errors.New("stop")
	held := newDesk(t, func(o *Options) { o.Before = func(context.Context, string) error { return stop } })
	held.write("f", "x\n")
	if _, err := held.call("Edit", args{"file_path": "f", "old_string": "x", "new_string": "y"}); !errors.Is(err, stop) || held.content("f") != "x\n" {
		t.Errorf("got %v, %q", err, held.content("f"))
	}
}
