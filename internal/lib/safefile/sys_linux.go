package safefile

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// openDir opens a directory by a path that has no symbolic link in it.
func openDir(path string) (*dir, error) {
	f, err := openNoLinks(path, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	return &dir{path: path, f: f}, nil
}

// openNoLinks opens path, no part of which may be a symbolic link.
func openNoLinks(path string, flags int) (*os.File, error) {
	flags |= unix.O_CLOEXEC | unix.O_NONBLOCK
	if flags&unix.O_PATH != 0 {
		flags &^= unix.O_NONBLOCK
	}
	fd, err := ignoringEINTR(func() (int, error) {
		return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_NO_SYMLINKS})
	})
	switch {
	case err == nil:
		return os.NewFile(uintptr(fd), path), nil
	case errors.Is(err, unix.ELOOP):
		return nil, ErrChanged
	case errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM):
		return openAndCheck(path, flags) // an old kernel, or a filter that does not know the call
	}
	return nil, err
}

// openAndCheck opens path and asks the kernel what was opened.
func openAndCheck(path string, flags int) (*os.File, error) {
	fd, err := ignoringEINTR(func() (int, error) { return unix.Open(path, flags|unix.O_NOFOLLOW, 0) })
	if err != nil {
		if errors.Is(err, unix.ELOOP) {
			return nil, ErrChanged
		}
		return nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil || strings.TrimSuffix(real, " (deleted)") != path {
		_ = f.Close()
		if err != nil {
			return nil, fmt.Errorf("finding out what was opened: %w", err)
		}
		return nil, ErrChanged
	}
	return f, nil
}

func renameNoReplace(fd int, from, to string) error {
	return unix.Renameat2(fd, from, fd, to, unix.RENAME_NOREPLACE)
}

// sync makes renames in the directory durable. The files are already, so an
// error changes nothing that a caller could act on.
func (d *dir) sync() {
	fd, err := unix.Openat(d.fd(), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	_ = unix.Fsync(fd)
	_ = unix.Close(fd)
}

// grow makes sure that f has room for size bytes. A file system that cannot
// tell is taken at its word when writing.
func grow(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return err
}

// copyAttributes gives f the extended attributes of old, access lists among
// them. Labels that the kernel sets by its own policy may be refused.
func copyAttributes(f, old *os.File) error {
	dst, src := int(f.Fd()), int(old.Fd())
	n, err := unix.Flistxattr(src, nil)
	if err != nil || n == 0 {
		return nil // the file system has none
	}
	list := make([]byte, n)
	if n, err = unix.Flistxattr(src, list); err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list[:n]), "\x00"), "\x00") {
		size, err := unix.Fgetxattr(src, name, nil)
		if err != nil {
			return err
		}
		value := make([]byte, size)
		if size, err = unix.Fgetxattr(src, name, value); err != nil {
			return err
		}
		err = unix.Fsetxattr(dst, name, value[:size], 0)
		if err != nil && !strings.HasPrefix(name, "security.") {
			return err
		}
	}
	return nil
}
