//go:build unix && !linux

package safefile

import (
	"os"

	"golang.org/x/sys/unix"
)

func openDir(path string) (*dir, error) {
	f, err := openNoLinks(path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	return &dir{path: path, f: f}, nil
}

// openNoLinks opens path, no part of which may be a symbolic link.
func openNoLinks(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return checkOpened(f, path)
}

func renameNoReplace(int, string, string) error { return unix.ENOSYS }

func (d *dir) sync() { _ = d.f.Sync() }

func grow(f *os.File, size int64) error { return nil }

func copyAttributes(f, old *os.File) error { return nil }
