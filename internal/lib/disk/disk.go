// Package disk is the set of file operations that code which must not lose
// data performs, as an interface, so that a test can make the n-th of them
// fail and look at what is left. It owns no state and no policy: what to do
// about a failure is the caller's business.
package disk

import (
	"io"
	"io/fs"
	"os"
)

// A File is an open file. It is what *os.File offers of use here.
type File interface {
	io.Reader
	io.ReaderAt
	io.Writer
	io.WriterAt
	io.Closer
	Sync() error
	Truncate(size int64) error
	Stat() (fs.FileInfo, error)
	Chmod(mode fs.FileMode) error
	Chown(uid, gid int) error
}

// An FS performs file operations as the functions of package os of the same
// name do. It may be used concurrently.
type FS interface {
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	Rename(from, to string) error
	Remove(name string) error
	MkdirAll(name string, perm fs.FileMode) error
	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	Readlink(name string) (string, error)
	ReadDir(name string) ([]fs.DirEntry, error)
}

// OS is the machine's file system.
type OS struct{}

func (OS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err // not f: a nil *os.File is not a nil File
	}
	return f, nil
}
func (OS) Rename(from, to string) error                 { return os.Rename(from, to) }
func (OS) Remove(name string) error                     { return os.Remove(name) }
func (OS) MkdirAll(name string, perm fs.FileMode) error { return os.MkdirAll(name, perm) }
func (OS) Stat(name string) (fs.FileInfo, error)        { return os.Stat(name) }
func (OS) Lstat(name string) (fs.FileInfo, error)       { return os.Lstat(name) }
func (OS) Readlink(name string) (string, error)         { return os.Readlink(name) }
func (OS) ReadDir(name string) ([]fs.DirEntry, error)   { return os.ReadDir(name) }

// ReadFile returns the content of the file name.
func ReadFile(fsys FS, name string) (data []byte, err error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	return io.ReadAll(f)
}
