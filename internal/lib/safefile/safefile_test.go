//go:build unix

package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, path, data string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestResolve(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	at := func(p string) string { return filepath.Join(dir, p) }
	write(t, at("real/f"), "x")
	link(t, "real", at("l"))
	link(t, at("l"), at("ll"))
	link(t, "../real/f", at("real/g"))
	link(t, "nowhere/x", at("dangling"))
	link(t, "b", at("a"))
	link(t, "a", at("b"))
	for in, want := range map[string][]string{
		"real/f":    {"real/f"},
		"l/f":       {"l/f", "real/f"},
		"ll/g":      {"ll/g", "l/g", "real/g", "real/f"},
		"l/../l/f":  {"l/f", "real/f"},
		"no/such":   {"no/such"},
		"l/no/such": {"l/no/such", "real/no/such"},
		"dangling":  {"dangling", "nowhere/x"},
		"real/f/x":  {"real/f/x"},
	} {
		for i := range want {
			want[i] = at(want[i])
		}
		got, err := Resolve(dir + "/" + in)
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("Resolve(%s): %v %s", in, err, d)
		}
	}
	if _, err := Resolve(at("a")); !errors.Is(err, ErrLoop) {
		t.Errorf("loop: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	write(t, filepath.Join(dir, "real/f"), "x")
	link(t, "real", filepath.Join(dir, "l"))
	link(t, "f", filepath.Join(dir, "real/g"))
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"l/f": ErrChanged, "real/g": ErrChanged, "none": fs.ErrNotExist} {
		if _, _, err := Open(filepath.Join(dir, name)); !errors.Is(err, want) {
			t.Errorf("Open(%s): %v, want %v", name, err, want)
		}
	}
	for _, path := range []string{filepath.Join(dir, "fifo"), dir, "/dev/null"} {
		var kind *KindError
		if _, _, err := Open(path); !errors.As(err, &kind) {
			t.Errorf("Open(%s): %v, want a KindError", path, err)
		}
	}
	if _, err := Load(filepath.Join(dir, "real/f"), 0); !errors.Is(err, ErrTooBig) {
		t.Errorf("Load above the limit: %v", err)
	}
	if s, err := Load("/proc/self/status", 1<<20); err == nil && len(s.Data) == 0 {
		t.Error("a file that tells no size reads as empty")
	}
}

func TestReplaceKeeps(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	for _, c := range []struct {
		name string
		mode fs.FileMode
		hard bool
	}{{"plain", 0o644, false}, {"script", 0o755, false}, {"private", 0o600, false}, {"linked", 0o640, true}} {
		path := write(t, filepath.Join(dir, c.name), "old content")
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		if c.hard {
			if err := os.Link(path, path+".2"); err != nil {
				t.Fatal(err)
			}
		}
		for _, data := range []string{"new", "a longer new content", "", "again"} {
			old, err := Load(path, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			if err := (Writer{}).Replace(path, old, []byte(data), nil); err != nil {
				t.Fatal(err)
			}
			got, _ := os.ReadFile(path)
			info, _ := os.Stat(path)
			if string(got) != data || info.Mode() != c.mode {
				t.Errorf("%s: got %q %v, want %q %v", c.name, got, info.Mode(), data, c.mode)
			}
			if c.hard {
				if got, _ := os.ReadFile(path + ".2"); string(got) != data {
					t.Errorf("%s: the other name reads %q", c.name, got)
				}
			}
		}
	}
	noSpares(t, dir)
}

func noSpares(t *testing.T, dir string) {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		if strings.Contains(e.Name(), ".cinch-") {
			t.Errorf("%s was left behind", e.Name())
		}
	}
}

func TestCreate(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	path := filepath.Join(dir, "a/b/c")
	if err := (Writer{}).Replace(path, nil, []byte("x"), nil); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); string(got) != "x" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := (Writer{}).Replace(path, nil, []byte("y"), nil); !errors.Is(err, ErrChanged) {
		t.Errorf("over a file that came up: %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "x" {
		t.Errorf("the file that came up was overwritten: %q", got)
	}
	if err := (Writer{}).Replace(filepath.Join(path, "d"), nil, nil, nil); err == nil {
		t.Error("a file below a file was made")
	}
	noSpares(t, filepath.Dir(path))
}

// A directory that becomes a link between resolving and writing is not followed.
func TestSwappedDirectory(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	path := write(t, filepath.Join(dir, "work/f"), "old")
	evil := write(t, filepath.Join(dir, "evil/f"), "precious")
	old, err := Load(path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	swap := func() {
		if err := os.Rename(filepath.Join(dir, "work"), filepath.Join(dir, "moved")); err != nil {
			t.Fatal(err)
		}
		link(t, "evil", filepath.Join(dir, "work"))
	}
	// In the middle of the work, the open directory is what counts.
	if err := (Writer{}).Replace(path, old, []byte("new"), func() error { swap(); return nil }); err != nil {
		t.Errorf("swapped in the middle: %v", err)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "moved/f")); string(got) != "new" {
		t.Errorf("the approved file reads %q", got)
	}
	if err := (Writer{}).Replace(path, old, []byte("new"), nil); !errors.Is(err, ErrChanged) {
		t.Errorf("swapped before: %v", err)
	}
	if err := (Writer{}).Replace(filepath.Join(dir, "work/new/g"), nil, []byte("new"), nil); !errors.Is(err, ErrChanged) {
		t.Errorf("creating below a link: %v", err)
	}
	if got, _ := os.ReadFile(evil); string(got) != "precious" {
		t.Errorf("the link's target was written: %q", got)
	}
	noSpares(t, filepath.Join(dir, "evil"))
}

func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(path string) error{
		"same size": func(p string) error { return os.WriteFile(p, []byte("OLD"), 0o644) },
		"replaced": func(p string) error {
			if err := os.WriteFile(p+".x", []byte("old"), 0o644); err != nil {
				return err
			}
			return os.Rename(p+".x", p)
		},
		"removed": os.Remove,
		"a link": func(p string) error {
			if err := os.Remove(p); err != nil {
				return err
			}
			return os.Symlink("/etc/hostname", p)
		},
	} {
		for _, hard := range []bool{false, true} {
			path := write(t, filepath.Join(tempDir(t), "f"), "old")
			if hard {
				if err := os.Link(path, path+".2"); err != nil {
					t.Fatal(err)
				}
			}
			old, err := Load(path, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			err = Writer{}.Replace(path, old, []byte("new"), func() error { return change(path) })
			if !errors.Is(err, ErrChanged) {
				t.Errorf("%s, hard link %v: %v", name, hard, err)
			}
			if got, _ := os.ReadFile(path); string(got) == "new" {
				t.Errorf("%s, hard link %v: overwritten", name, hard)
			}
			noSpares(t, filepath.Dir(path))
		}
	}
}

func TestReadOnlyFile(t *testing.T) {
	t.Parallel()
	path := write(t, filepath.Join(tempDir(t), "f"), "old")
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	old, err := Load(path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	err = Writer{}.Replace(path, old, []byte("new"), nil)
	if root := os.Geteuid() == 0; !root && !errors.Is(err, fs.ErrPermission) || root && err != nil {
		t.Errorf("got %v", err)
	}
}

// Whichever step fails, the file holds the old content or the new, an error
// means the old, and nothing is left beside it.
func TestEveryStepFails(t *testing.T) {
	t.Parallel()
	const before, after = "old content\n", "the new content, which is longer\n"
	disk := errors.New("disk on fire")
	for _, kind := range []string{"rename", "in place", "shorter in place", "create"} {
		for n := 0; ; n++ {
			dir := tempDir(t)
			path := filepath.Join(dir, "sub", "f")
			old, data := (*Snapshot)(nil), after
			if kind != "create" {
				write(t, path, before)
				if kind != "rename" {
					if err := os.Link(path, path+".2"); err != nil {
						t.Fatal(err)
					}
				}
				if kind == "shorter in place" {
					data = "new"
				}
				var err error
				if old, err = Load(path, 1<<20); err != nil {
					t.Fatal(err)
				}
			}
			var steps []string
			w := Writer{fault: func(step string) error {
				if steps = append(steps, step); len(steps) == n+1 {
					return disk
				}
				return nil
			}}
			calls := 0
			err := w.Replace(path, old, []byte(data), func() error { calls++; return nil })
			got, rerr := os.ReadFile(path)
			what := fmt.Sprintf("%s, failing at %v", kind, steps)
			switch {
			case err != nil && !errors.Is(err, disk):
				t.Errorf("%s: %v", what, err)
			case err != nil && old == nil && !errors.Is(rerr, fs.ErrNotExist):
				t.Errorf("%s: got %q, want no file", what, got)
			case err != nil && old != nil && string(got) != before:
				t.Errorf("%s: got %q, want the old content", what, got)
			case err == nil && string(got) != data:
				t.Errorf("%s: got %q, want the new content", what, got)
			case calls > 1:
				t.Errorf("%s: before was called %d times", what, calls)
			}
			if _, err := os.Stat(filepath.Dir(path)); err == nil {
				noSpares(t, filepath.Dir(path))
			} else if old != nil {
				t.Error(err)
			}
			if len(steps) <= n {
				if n < 5 {
					t.Errorf("%s: only steps %v", kind, steps)
				}
				break
			}
		}
	}
}

// A file whose name cannot be changed, such as a mount point, is written in place.
func TestMountPoint(t *testing.T) {
	t.Parallel()
	path := write(t, filepath.Join(tempDir(t), "f"), "old")
	old, err := Load(path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	w := Writer{fault: func(step string) error {
		if step == "rename" {
			return syscall.EBUSY
		}
		return nil
	}}
	calls := 0
	if err := w.Replace(path, old, []byte("new content"), func() error { calls++; return nil }); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || !os.SameFile(info, old.Info) || calls != 1 {
		t.Errorf("not the same file, or before was called %d times: %v", calls, err)
	}
	if got, _ := os.ReadFile(path); string(got) != "new content" {
		t.Errorf("got %q", got)
	}
	noSpares(t, filepath.Dir(path))
}

// Two that replace one file at the same time take turns, and the second sees
// that its content is old.
func TestTurns(t *testing.T) {
	t.Parallel()
	path := write(t, filepath.Join(tempDir(t), "f"), "old")
	old, err := Load(path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	err = Writer{}.Replace(path, old, []byte("first"), func() error {
		go func() { second <- Writer{}.Replace(path, old, []byte("second"), nil) }()
		select {
		case err := <-second:
			second <- err
			return fmt.Errorf("the second did not wait: %w", err)
		case <-time.After(100 * time.Millisecond):
			return nil
		}
	})
	if err != nil {
		t.Error(err)
	}
	if err := <-second; !errors.Is(err, ErrChanged) {
		t.Errorf("the second: %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "first" {
		t.Errorf("got %q", got)
	}
}

func TestBeforeStops(t *testing.T) {
	t.Parallel()
	stop := errors.New("no checkpoint")
	dir := tempDir(t)
	path := write(t, filepath.Join(dir, "f"), "old")
	old, err := Load(path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	seen := ""
	before := func() error {
		b, _ := os.ReadFile(path)
		seen = string(b)
		return stop
	}
	if err := (Writer{}).Replace(path, old, []byte("new"), before); !errors.Is(err, stop) || seen != "old" {
		t.Errorf("got %v, before saw %q", err, seen)
	}
	if err := (Writer{}).Replace(filepath.Join(dir, "d/g"), nil, nil, func() error { return stop }); !errors.Is(err, stop) {
		t.Errorf("creating: %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "old" {
		t.Errorf("changed to %q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "d")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory was made: %v", err)
	}
	noSpares(t, dir)
}

func TestAbs(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a":       "/w/a",
		"../a":    "/a",
		"/a/./b/": "/a/b",
		"~/x":     "/home/u/x",
		"~":       "/home/u",
		"~u/x":    "/w/~u/x",
		"-v":      "/w/-v",
		`C:\x`:    `/w/C:\x`,
		"a b\n":   "/w/a b\n",
	} {
		if got, err := Abs(in, "/w", "/home/u"); err != nil || got != want {
			t.Errorf("Abs(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"", "a\x00b"} {
		if got, err := Abs(in, "/w", ""); err == nil {
			t.Errorf("Abs(%q) = %q", in, got)
		}
	}
	if got, err := Abs("a", "", ""); err == nil {
		t.Errorf("without a directory: %q", got)
	}
}
