package atomicfile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/lib/atomicfile"
	"github.com/seed-eb844fcb/cinch/internal/lib/disk"
	"github.com/seed-eb844fcb/cinch/internal/test/faultfs"
)

func write(t *testing.T, name, data string, perm fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(name, []byte(data), perm); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// names lists what is in dir.
func names(t *testing.T, dir string) string {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var s []string
	for _, e := range es {
		s = append(s, e.Name())
	}
	return strings.Join(s, " ")
}

func TestWriteFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	if err := atomicfile.WriteFile(name, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.WriteFile(name, []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(read(t, name), info.Mode(), names(t, dir)); got != "two-rw-r-----f" {
		t.Errorf("got %s: content, kept mode, nothing left over", got)
	}
	if err := atomicfile.WriteFile(dir, nil, 0o600); err == nil {
		t.Error("a directory was replaced by a file")
	}
	if err := atomicfile.WriteFile(filepath.Join(dir, "no", "f"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a directory that is not there: %v", err)
	}
}

// A configuration that lives behind a link (a dotfiles directory, a store)
// keeps the link.
func TestWriteThroughLink(t *testing.T) {
	t.Parallel()
	dir, store := t.TempDir(), t.TempDir()
	write(t, filepath.Join(store, "real"), "old", 0o600)
	for _, l := range [][2]string{{"real", filepath.Join(store, "link")}, {filepath.Join(store, "link"), filepath.Join(dir, "f")}, {"later", filepath.Join(dir, "g")}} {
		if err := os.Symlink(l[0], l[1]); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []string{"f", "g"} {
		if err := atomicfile.WriteFile(filepath.Join(dir, n), []byte("new"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, filepath.Join(store, "real")); got != "new" {
		t.Errorf("the file behind the links holds %q", got)
	}
	if got := names(t, dir) + "|" + names(t, store); got != "f g later|link real" {
		t.Errorf("left: %s", got)
	}
	if _, err := os.Readlink(filepath.Join(dir, "f")); err != nil {
		t.Errorf("the link is gone: %v", err)
	}
	if err := os.Symlink("loop", filepath.Join(dir, "loop")); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.WriteFile(filepath.Join(dir, "loop"), nil, 0o600); err == nil {
		t.Error("wrote to a link that leads to itself")
	}
}

// mount is a disk on which some names cannot be renamed over and some
// directories take no new files, as with a single-file bind mount.
type mount struct {
	disk.FS
	busy     string
	readOnly string
}

func (m mount) Rename(from, to string) error {
	if to == m.busy {
		return &fs.PathError{Op: "rename", Path: to, Err: syscall.EBUSY}
	}
	return m.FS.Rename(from, to)
}

func (m mount) OpenFile(name string, flag int, perm fs.FileMode) (disk.File, error) {
	if flag&os.O_CREATE != 0 && filepath.Dir(name) == m.readOnly {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EROFS}
	}
	return m.FS.OpenFile(name, flag, perm)
}

// After any one failure the file holds the old content or the new, whether
// it is replaced by renaming or written in place, and no error is kept quiet.
func TestOneFailure(t *testing.T) {
	t.Parallel()
	long, short := strings.Repeat("long ", 100), "short"
	for _, how := range []string{"rename", "busy", "read-only directory", "link"} {
		for _, c := range [][2]string{{long, short}, {short, long}, {"", long}} {
			old, data := c[0], c[1]
			t.Run(how, func(t *testing.T) {
				t.Parallel()
				for n := int64(1); ; n++ {
					dir, store, spare := t.TempDir(), t.TempDir(), t.TempDir()
					name := filepath.Join(dir, "f")
					m := mount{FS: disk.OS{}}
					switch how {
					case "busy":
						m.busy = name
					case "read-only directory":
						m.busy, m.readOnly = name, dir
					case "link":
						if err := os.Symlink(filepath.Join(store, "real"), name); err != nil {
							t.Fatal(err)
						}
					}
					write(t, name, old, 0o600)
					f := &faultfs.FS{FS: m, Fail: n, Err: syscall.EIO}
					err := atomicfile.Writer{FS: f, Spare: spare}.WriteFile(name, []byte(data), 0o600)
					got := read(t, name)
					if got != old && got != data {
						t.Fatalf("operation %d failed and the file holds %q (%v)", n, got, err)
					}
					if err == nil && got != data {
						t.Fatalf("operation %d failed, no error, and the file holds the old content", n)
					}
					if f.Ran() < n { // the flow passed without meeting the fault
						if err != nil {
							t.Fatal(err)
						}
						if got := names(t, dir) + names(t, store) + names(t, spare); strings.Trim(got, "frel a") != "" {
							t.Errorf("left over: %s", got)
						}
						return
					}
				}
			})
		}
	}
}

// A disk that stays broken while the old bytes are put back: the error names
// the file that holds them.
func TestLastingFailureInPlace(t *testing.T) {
	t.Parallel()
	old, data := []byte("the old content"), []byte("what should have been written")
	for n := int64(1); n < 40; n++ {
		dir := t.TempDir()
		name := filepath.Join(dir, "f")
		write(t, name, string(old), 0o600)
		f := &faultfs.FS{FS: mount{FS: disk.OS{}, busy: name}, Fail: n, For: 1000, Err: syscall.ENOSPC}
		err := atomicfile.Writer{FS: f, Spare: t.TempDir()}.WriteFile(name, data, 0o600)
		got := []byte(read(t, name))
		if bytes.Equal(got, old) || bytes.Equal(got, data) {
			continue
		}
		_, spare, named := strings.Cut(fmt.Sprint(err), "the old content is in ")
		if !named || read(t, spare) != string(old) {
			t.Fatalf("from operation %d on: the file holds %q and the error is %v", n, got, err)
		}
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	u := atomicfile.Update{Name: filepath.Join(dir, "f"), Perm: 0o600, Lock: filepath.Join(dir, "locks", "f.lock"), Wait: 20e9}
	const n = 8
	done := make(chan error)
	for range n {
		go func() {
			u := u
			u.Change = func(old []byte) ([]byte, error) { return append(bytes.Clone(old), 'x'), nil }
			done <- atomicfile.Writer{}.Update(context.Background(), u)
		}()
	}
	for range n {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if got := read(t, u.Name); got != strings.Repeat("x", n) {
		t.Errorf("%d changes left %q", n, got)
	}
	no := errors.New("no")
	u.Change = func([]byte) ([]byte, error) { return nil, no }
	if err := (atomicfile.Writer{}).Update(context.Background(), u); !errors.Is(err, no) {
		t.Errorf("got %v, want the change's own error", err)
	}
	// A lock file that cannot be made must not keep a change from being made.
	write(t, filepath.Join(dir, "file"), "", 0o600)
	u.Lock = filepath.Join(dir, "file", "lock")
	u.Change = func([]byte) ([]byte, error) { return []byte("y"), nil }
	if err := (atomicfile.Writer{}).Update(context.Background(), u); err != nil || read(t, u.Name) != "y" {
		t.Errorf("without a place for the lock: %v", err)
	}
}
