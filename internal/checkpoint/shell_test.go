package checkpoint

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// What a command changed goes back when it is asked for, and only then.
func TestShell(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{"a": "a", "b": "b", "d/e/c": "c\x00\xff", "ignored.log": "log", "x": "#!/bin/sh\n", "same": "same"} {
		put(t, filepath.Join(root, name), text)
	}
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n, err := s.Snap([]string{root}); n != nil || err != nil {
		t.Fatal("a snapshot without a checkpoint", n, err)
	}
	if err := s.Begin("p1", ""); err != nil {
		t.Fatal(err)
	}
	command := func(script string) []string {
		t.Helper()
		n, err := s.Snap([]string{root})
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command("/bin/sh", "-ec", script)
		c.Dir = root
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatal(err, string(out))
		}
		settled, err := n.Settle()
		if err != nil {
			t.Fatal(err)
		}
		changed := settled.Changed
		for i := range changed {
			changed[i], _ = filepath.Rel(root, changed[i])
		}
		return changed
	}
	if got := command("true; touch same"); len(got) != 0 {
		t.Errorf("nothing changed, got %v", got)
	}
	got := command("echo new > a; rm b; rm -r d; echo more >> ignored.log; chmod +x x; mkdir n; echo n > n/f")
	if want := []string{"a", "b", "d/e/c", "ignored.log", "n/f", "x"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if err := s.Begin("p2", ""); err != nil {
		t.Fatal(err)
	}
	command("echo newer > a; echo x > d")
	put(t, filepath.Join(root, "ignored.log"), "the user's")
	rep, err := s.Rewind(Rewind{To: "p1"})
	if err != nil || len(rep.Changes) != 0 || len(rep.Shell) != 7 {
		t.Fatalf("without asking: %+v %v", rep, err)
	}
	rep, err = s.Rewind(Rewind{To: "p1", Shell: true, Undo: "u1"})
	if err != nil || len(rep.Kept) != 1 || rep.Kept[0].Path != filepath.Join(root, "ignored.log") {
		t.Fatalf("%+v %v", rep, err)
	}
	tree := func() map[string]string {
		out := map[string]string{}
		_ = filepath.WalkDir(root, func(path string, e os.DirEntry, _ error) error {
			if e.Type().IsRegular() {
				b, _ := os.ReadFile(path)
				fi, _ := e.Info()
				rel, _ := filepath.Rel(root, path)
				out[rel] = fmt.Sprintf("%v %q", fi.Mode(), b)
			}
			return nil
		})
		return out
	}
	want := map[string]string{
		"a": `-rw-r--r-- "a"`, "b": `-rw-r--r-- "b"`, "d/e/c": `-rw-r--r-- "c\x00\xff"`,
		"ignored.log": `-rw-r--r-- "the user's"`, "x": `-rw-r--r-- "#!/bin/sh\n"`, "same": `-rw-r--r-- "same"`,
	}
	if got := tree(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, err := s.Rewind(Rewind{To: "u1", Shell: true}); err != nil {
		t.Fatal(err)
	}
	if got := tree()["a"]; got != `-rw-r--r-- "newer\n"` {
		t.Errorf("undone: a is %s", got)
	}
}

// What a person wrote between two changes of ours is in nobody's way back,
// not even where a command has moved it.
func TestWordsBetweenChanges(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	at := func(n string) string { return filepath.Join(root, n) }
	for _, n := range []string{"a", "b", "c"} {
		put(t, at(n), "old "+n)
	}
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Begin("p", ""); err != nil {
		t.Fatal(err)
	}
	command := func(f func()) Settled {
		t.Helper()
		n, err := s.Snap([]string{root})
		if err != nil {
			t.Fatal(err)
		}
		f()
		out, err := n.Settle()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	command(func() { put(t, at("a"), "ours"); put(t, at("b"), "ours"); put(t, at("c"), "ours") })
	put(t, at("a"), "a person's a")
	put(t, at("b"), "a person's b")
	command(func() {
		put(t, at("a"), "ours again")
		if err := os.Rename(at("b"), at("moved")); err != nil {
			t.Fatal(err)
		}
	})
	rep, err := s.Rewind(Rewind{To: "p", Shell: true})
	if err != nil {
		t.Fatal(err)
	}
	const between = "somebody else changed it between our changes"
	want := []Kept{{at("a"), between}, {at("b"), between}, {at("moved"), "it holds what somebody else wrote into " + at("b")}}
	if !slices.Equal(rep.Kept, want) || len(rep.Changes) != 1 {
		t.Errorf("kept %v, changed %v", rep.Kept, rep.Changes)
	}
	if _, err := s.Rewind(Rewind{To: "p", Shell: true, Force: true}); err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"a", "b", "c"} {
		if got, err := os.ReadFile(at(n)); string(got) != "old "+n {
			t.Errorf("forced: %s is %q, %v", n, got, err)
		}
	}
}

// What is not kept is told, once; a change to it is told when it happens.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	big := filepath.Join(root, "big")
	if err := os.WriteFile(big, make([]byte, MaxShellFile+1), 0o644); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(root, "small"), "x")
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Begin("p", ""); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{1, 0} {
		n, err := s.Snap([]string{root, filepath.Join(root, ".")})
		if err != nil || n.Files != 2 || len(n.Tell) != want || len(n.Left) != 1 {
			t.Fatalf("%d: %+v, %v", i, n, err)
		}
		if i == 1 {
			put(t, big, "small now")
		}
		if got, err := n.Settle(); err != nil || len(got.Changed) != i || len(got.Lost) != i {
			t.Errorf("%d: %+v, %v", i, got, err)
		}
	}
	// A store that cannot be written costs the undo, not the command.
	if err := os.RemoveAll(filepath.Join(s.dir, "blobs")); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(s.dir, "blobs"), "in the way")
	put(t, filepath.Join(root, "new"), "y")
	n, err := s.Snap([]string{root})
	if err != nil || !slices.ContainsFunc(n.Left, func(k Kept) bool { return k.Path == filepath.Join(root, "new") }) || len(n.Tell) != 1 {
		t.Fatalf("%+v, %v", n, err)
	}
	put(t, filepath.Join(root, "new"), "longer")
	if got, err := n.Settle(); err != nil || len(got.Lost) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func BenchmarkSnap(b *testing.B) {
	root := b.TempDir()
	for i := range 2000 {
		put(b, filepath.Join(root, fmt.Sprint(i%40), fmt.Sprint(i)), fmt.Sprint("file ", i))
	}
	s, err := Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if err := s.Begin("p", ""); err != nil {
		b.Fatal(err)
	}
	if _, err := s.Snap([]string{root}); err != nil {
		b.Fatal(err)
	}
	i := 0
	for b.Loop() {
		n, err := s.Snap([]string{root})
		if err != nil {
			b.Fatal(err)
		}
		i++
		put(b, filepath.Join(root, "0", "0"), fmt.Sprint("changed ", i))
		if c, err := n.Settle(); err != nil || len(c.Changed) != 1 {
			b.Fatal(c, err)
		}
	}
}
