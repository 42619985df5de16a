package safefile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAttributesStay(t *testing.T) {
	t.Parallel()
	path := write(t, filepath.Join(tempDir(t), "f"), "old")
	if err := unix.Setxattr(path, "user.note", []byte("mine"), 0); err != nil {
		t.Logf("the file system keeps no attributes: %v", err)
		return
	}
	old, err := Load(path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := (Writer{}).Replace(path, old, []byte("new"), nil); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 10)
	n, err := unix.Getxattr(path, "user.note", buf)
	if err != nil || string(buf[:n]) != "mine" {
		t.Errorf("got %q, %v", buf[:max(n, 0)], err)
	}
}

// The way taken where openat2 is missing refuses the same paths.
func TestOpenAndCheck(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	path := write(t, filepath.Join(dir, "real/f"), "x")
	link(t, "real", filepath.Join(dir, "l"))
	f, err := openAndCheck(path, os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	if _, err := openAndCheck(filepath.Join(dir, "l/f"), os.O_RDONLY); !errors.Is(err, ErrChanged) {
		t.Errorf("through a link: %v", err)
	}
}
