package safefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// A dir is a directory by its path, checked when it was opened.
type dir struct{ path string }

func (d *dir) close() {}

func (d *dir) sync() {}

func openDir(path string) (*dir, error) {
	f, err := openNoLinks(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return &dir{path: path}, f.Close()
}

// openNoLinks opens path, no part of which may be a symbolic link.
func openNoLinks(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, err
	}
	return checkOpened(f, path)
}

func (d *dir) open(name string, flags int, perm fs.FileMode) (*os.File, error) {
	path := filepath.Join(d.path, name)
	f, err := os.OpenFile(path, flags, perm)
	if err != nil || flags&os.O_EXCL != 0 {
		return f, err
	}
	return checkOpened(f, path)
}

func (d *dir) rename(from, to string) error {
	return os.Rename(filepath.Join(d.path, from), filepath.Join(d.path, to))
}

func (d *dir) remove(name string) error { return os.Remove(filepath.Join(d.path, name)) }

func (d *dir) mkdir(name string) error { return os.Mkdir(filepath.Join(d.path, name), 0o777) }

// publish gives a new file its name unless something has that name.
func (d *dir) publish(from, to string) error {
	if err := os.Link(filepath.Join(d.path, from), filepath.Join(d.path, to)); err == nil || errors.Is(err, fs.ErrExist) {
		if err == nil {
			return d.remove(from)
		}
		return err
	}
	if _, err := os.Lstat(filepath.Join(d.path, to)); err == nil {
		return fs.ErrExist
	}
	return d.rename(from, to)
}

// Sharing violations: another program holds the file open.
const errSharing = syscall.Errno(32)

func isStuck(err error) bool {
	return errors.Is(err, errSharing) || errors.Is(err, fs.ErrPermission)
}

func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

// links is not known without another call; a rename is right for nearly all.
func links(fs.FileInfo) int { return 1 }

func grow(*os.File, int64) error { return nil }

// held is a file that this process is about to change. It is not kept open:
// Windows would not let it be replaced.
type held struct{ info fs.FileInfo }

func hold(d *dir, name string) (*held, error) {
	f, err := d.open(name, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return &held{info}, err
}

func (h *held) release() {}

// dress gives f the mode of the held file.
func (h *held) dress(f *os.File) error { return f.Chmod(h.info.Mode()) }
