//go:build unix

package safefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A dir is an open directory. Names are looked up in it whatever happens to
// the path that led there, and a name that is a symbolic link is not followed.
type dir struct {
	path string
	f    *os.File
}

func (d *dir) close() { _ = d.f.Close() }

func (d *dir) fd() int { return int(d.f.Fd()) }

func (d *dir) open(name string, flags int, perm fs.FileMode) (*os.File, error) {
	fd, err := ignoringEINTR(func() (int, error) {
		return unix.Openat(d.fd(), name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, uint32(perm.Perm()))
	})
	if err != nil {
		if errors.Is(err, unix.ELOOP) {
			return nil, ErrChanged
		}
		return nil, err
	}
	return os.NewFile(uintptr(fd), filepath.Join(d.path, name)), nil
}

func ignoringEINTR(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if err != unix.EINTR {
			return n, err
		}
	}
}

func (d *dir) rename(from, to string) error { return unix.Renameat(d.fd(), from, d.fd(), to) }

func (d *dir) remove(name string) error { return unix.Unlinkat(d.fd(), name, 0) }

func (d *dir) mkdir(name string) error { return unix.Mkdirat(d.fd(), name, 0o777) }

// publish gives a new file its name unless something has that name.
func (d *dir) publish(from, to string) error {
	err := renameNoReplace(d.fd(), from, to)
	if err == nil || errors.Is(err, unix.EEXIST) {
		return err
	}
	err = unix.Linkat(d.fd(), from, d.fd(), to, 0)
	if err == nil {
		return d.remove(from)
	}
	if errors.Is(err, unix.EEXIST) {
		return err
	}
	// Neither is possible on this file system.
	var st unix.Stat_t
	if unix.Fstatat(d.fd(), to, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
		return unix.EEXIST
	}
	return d.rename(from, to)
}

// isStuck reports an error of a directory that cannot take the new name.
func isStuck(err error) bool {
	return errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EROFS) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES)
}

func isNotDir(err error) bool { return errors.Is(err, unix.ENOTDIR) }

func links(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Nlink)
	}
	return 1
}

// held is a file that this process is about to change. Others that hold
// files in this way wait for each other; all others take no notice.
type held struct {
	f    *os.File
	info fs.FileInfo
}

const (
	holdWait = 2 * time.Second      // for another to finish; then it counts as stuck
	holdPoll = 2 * time.Millisecond // between attempts
)

func hold(d *dir, name string) (*held, error) {
	f, err := d.open(name, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	// The lock only keeps agents from undoing each other's work; a file
	// system without locks, or a program that never lets go, does not stop us.
	deadline := time.After(holdWait)
wait:
	for unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == unix.EWOULDBLOCK {
		select {
		case <-time.After(holdPoll):
		case <-deadline:
			break wait
		}
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &held{f, info}, nil
}

func (h *held) release() { _ = h.f.Close() }

// dress gives f the owner, mode and attributes of the held file.
func (h *held) dress(f *os.File) error {
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	want, ok1 := h.info.Sys().(*syscall.Stat_t)
	have, ok2 := mine.Sys().(*syscall.Stat_t)
	if ok1 && ok2 && (want.Uid != have.Uid || want.Gid != have.Gid) {
		if err := f.Chown(int(want.Uid), int(want.Gid)); err != nil {
			return err
		}
	}
	if err := copyAttributes(f, h.f); err != nil {
		return err
	}
	return f.Chmod(h.info.Mode()) // last: a change of owner clears the set-id bits
}
