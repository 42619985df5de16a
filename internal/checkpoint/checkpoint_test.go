package checkpoint

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// change changes path the way a tool does.
func change(t *testing.T, s *Store, who Who, path string, f func()) {
	t.Helper()
	if err := s.Before(path, who); err != nil {
		t.Fatal(err)
	}
	f()
	if err := s.After(path); err != nil {
		t.Fatal(err)
	}
}

// tree reads all files under dir with their modes.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if e.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(p)
			out[rel] = "-> " + target
			return err
		}
		data, err := os.ReadFile(p)
		out[rel] = fi.Mode().String() + " " + string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestRewindAndItsUndo(t *testing.T) {
	t.Parallel()
	store, ws := t.TempDir(), t.TempDir()
	at := func(n string) string { return filepath.Join(ws, n) }
	write(t, at("keep.txt"), "one\ntwo\n", 0o644)
	write(t, at("run.sh"), "#!/bin/sh\n", 0o755)
	write(t, at("bin"), "\x00\x01\x02", 0o600)
	write(t, at("gone.txt"), "bye\n", 0o644)
	before := tree(t, ws)

	s := open(t, store)
	if err := s.Begin("p1", "first"); err != nil {
		t.Fatal(err)
	}
	change(t, s, Tool, at("keep.txt"), func() { write(t, at("keep.txt"), "one\n2\nthree\n", 0o644) })
	change(t, s, Tool, at("sub/new.txt"), func() { write(t, at("sub/new.txt"), "fresh", 0o644) })
	if err := s.Begin("p2", "second"); err != nil {
		t.Fatal(err)
	}
	change(t, s, Tool, at("keep.txt"), func() { write(t, at("keep.txt"), "again\n", 0o644) })
	change(t, s, Tool, at("run.sh"), func() { write(t, at("run.sh"), "#!/bin/sh\n", 0o644) })
	change(t, s, Tool, at("bin"), func() { write(t, at("bin"), "\x00\xff", 0o600) })
	change(t, s, Tool, at("gone.txt"), func() { os.Remove(at("gone.txt")) })
	after := tree(t, ws)

	// The store survives the program.
	s.Close()
	s = open(t, store)
	dry, err := s.Rewind(Rewind{To: "p1", Dry: true, Undo: "u"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(after, tree(t, ws)); d != "" {
		t.Fatalf("a dry run changed something:\n%s", d)
	}
	real, err := s.Rewind(Rewind{To: "p1", Undo: "u"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(dry, real); d != "" {
		t.Errorf("the dry run said something else:\n%s", d)
	}
	if d := cmp.Diff(before, tree(t, ws)); d != "" {
		t.Errorf("(-before +restored):\n%s", d)
	}
	want := []Change{
		{at("keep.txt"), "restored", Tool, 2, 1},
		{at("sub/new.txt"), "deleted", Tool, 0, 1},
		{at("run.sh"), "mode", Tool, 0, 0},
		{at("bin"), "restored", Tool, 0, 0},
		{at("gone.txt"), "created", Tool, 1, 0},
	}
	if d := cmp.Diff(want, real.Changes); d != "" {
		t.Errorf("changes (-want +got):\n%s", d)
	}
	if _, err := s.Rewind(Rewind{To: "u", Undo: "u2"}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(after, tree(t, ws)); d != "" {
		t.Errorf("the restore could not be taken back (-after +undone):\n%s", d)
	}
}

// What somebody else changed since is kept and named, unless forced.
func TestLaterEditsAreKept(t *testing.T) {
	t.Parallel()
	ws := t.TempDir()
	at := func(n string) string { return filepath.Join(ws, n) }
	write(t, at("a"), "old a", 0o644)
	write(t, at("d"), "old d", 0o644)
	write(t, at("l"), "old l", 0o644)
	s := open(t, t.TempDir())
	if err := s.Begin("p", ""); err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"a", "d", "l", "n"} {
		change(t, s, Tool, at(n), func() { write(t, at(n), "ours", 0o644) })
	}
	write(t, at("a"), "theirs", 0o644)
	write(t, at("n"), "theirs too", 0o644)
	os.Remove(at("l"))
	if err := os.Symlink(at("d"), at("l")); err != nil {
		t.Fatal(err)
	}
	r, err := s.Rewind(Rewind{To: "p"})
	if err != nil {
		t.Fatal(err)
	}
	const why = "it was changed by somebody else since"
	if d := cmp.Diff([]Kept{{at("a"), why}, {at("n"), why}}, r.Kept); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{at("l")}, r.Links); d != "" {
		t.Error(d)
	}
	got := tree(t, ws)
	if got["a"] != "-rw-r--r-- theirs" || got["n"] != "-rw-r--r-- theirs too" || got["d"] != "-rw-r--r-- old d" {
		t.Errorf("tree: %v", got)
	}
	if _, err := s.Rewind(Rewind{To: "p", Force: true}); err != nil {
		t.Fatal(err)
	}
	if got := tree(t, ws); got["a"] != "-rw-r--r-- old a" || got["n"] != "" || got["l"] != "-> "+at("d") {
		t.Errorf("forced: %v", got)
	}
}

// A directory that became a link since must not lead the restore elsewhere.
func TestLinkOnTheWay(t *testing.T) {
	t.Parallel()
	ws, evil := t.TempDir(), t.TempDir()
	f := filepath.Join(ws, "sub", "f")
	write(t, f, "old", 0o644)
	s := open(t, t.TempDir())
	if err := s.Begin("p", ""); err != nil {
		t.Fatal(err)
	}
	change(t, s, Tool, f, func() { write(t, f, "ours", 0o644) })
	if err := os.RemoveAll(filepath.Dir(f)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(evil, filepath.Dir(f)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(evil, "f"), "ours", 0o644)
	r, err := s.Rewind(Rewind{To: "p", Force: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Links) != 1 || len(r.Changes) != 0 || tree(t, evil)["f"] != "-rw-r--r-- ours" {
		t.Errorf("report %+v, tree %v", r, tree(t, evil))
	}
}

func TestShellChangesAreAChoice(t *testing.T) {
	t.Parallel()
	ws := t.TempDir()
	f := filepath.Join(ws, "f")
	write(t, f, "old", 0o644)
	s := open(t, t.TempDir())
	if err := s.Begin("p", ""); err != nil {
		t.Fatal(err)
	}
	change(t, s, Shell, f, func() { write(t, f, "by a command", 0o644) })
	r, err := s.Rewind(Rewind{To: "p"})
	if err != nil || len(r.Changes) != 0 || len(r.Shell) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = s.Rewind(Rewind{To: "p", Shell: true})
	if err != nil || len(r.Changes) != 1 || tree(t, ws)["f"] != "-rw-r--r-- old" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := s.Rewind(Rewind{To: "nowhere"}); err == nil {
		t.Error("an unknown checkpoint is an error")
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, n := range []string{"old", "new"} {
		s := open(t, filepath.Join(dir, n))
		if err := s.Begin("p", ""); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().AddDate(0, 0, -31)
	if err := os.Chtimes(filepath.Join(dir, "old", "index.jsonl"), long, long); err != nil {
		t.Fatal(err)
	}
	Sweep(dir, time.Now().AddDate(0, 0, -30))
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 || list[0].Name() != "new" {
		t.Errorf("left: %v, %v", list, err)
	}
}

// The newest checkpoints can be gone back to; what only older ones needed is
// not kept, a file's first content excepted, and equal contents are kept once.
func TestKeep(t *testing.T) {
	t.Parallel()
	ws, store := t.TempDir(), t.TempDir()
	f, g := filepath.Join(ws, "f"), filepath.Join(ws, "g")
	write(t, f, "first", 0o644)
	write(t, g, "same", 0o644)
	s := open(t, store)
	const more = 20
	for i := range Keep + more {
		if err := s.Begin(fmt.Sprint("p", i), ""); err != nil {
			t.Fatal(err)
		}
		change(t, s, Tool, f, func() { write(t, f, fmt.Sprint("version ", i), 0o644) })
		change(t, s, Tool, g, func() { write(t, g, []string{"same", "other"}[(i+1)%2], 0o644) })
	}
	blobs := 0
	for p := range tree(t, filepath.Join(store, "blobs")) {
		_ = p
		blobs++
	}
	if want := Keep + 1 + 2; blobs > want { // the versions, the first one, and those of g
		t.Errorf("%d contents are kept, want at most %d", blobs, want)
	}
	s = open(t, store)
	if ps := s.Points(); len(ps) != Keep || ps[0].ID != fmt.Sprint("p", more) {
		t.Errorf("%d checkpoints, the first %v", len(ps), ps[0])
	}
	if _, err := s.Rewind(Rewind{To: fmt.Sprint("p", more-1)}); err == nil {
		t.Error("went back to one that is too old")
	}
	if rep, err := s.Rewind(Rewind{To: fmt.Sprint("p", more)}); err != nil || len(rep.Kept) > 0 {
		t.Errorf("%+v, %v", rep, err)
	}
	if got := tree(t, ws)["f"]; got != fmt.Sprint("-rw-r--r-- version ", more-1) {
		t.Errorf("f is %q", got)
	}
}
