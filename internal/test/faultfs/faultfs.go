// Package faultfs is a disk that fails on demand: it passes operations to
// another disk.FS, counts them, and fails the n-th. A test runs a flow with
// n = 1, 2, 3 … until it passes, and after each run looks at what is left.
// It owns the counting; it knows no flow.
package faultfs

import (
	"io/fs"
	"sync/atomic"

	"github.com/seed-eb844fcb/cinch/internal/lib/disk"
)

// An FS fails one operation of the FS below it. Set the fields before use.
type FS struct {
	disk.FS
	// Fail is the number of the operation that fails, from 1; 0 for none.
	Fail int64
	// For is how many operations from Fail on fail; 0 means one.
	For int64
	// Err is what it fails with.
	Err error

	n atomic.Int64
}

// Ran reports how many operations were asked for.
func (f *FS) Ran() int64 { return f.n.Load() }

// hit counts an operation and returns the error it must fail with, or nil.
func (f *FS) hit() error {
	n := f.n.Add(1)
	if f.Fail > 0 && n >= f.Fail && n < f.Fail+max(f.For, 1) {
		return f.Err
	}
	return nil
}

func (f *FS) OpenFile(name string, flag int, perm fs.FileMode) (disk.File, error) {
	if err := f.hit(); err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	file, err := f.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &open{file, f, name}, nil
}

func (f *FS) Rename(from, to string) error {
	if err := f.hit(); err != nil {
		return &fs.PathError{Op: "rename", Path: from, Err: err}
	}
	return f.FS.Rename(from, to)
}

func (f *FS) Remove(name string) error {
	if err := f.hit(); err != nil {
		return &fs.PathError{Op: "remove", Path: name, Err: err}
	}
	return f.FS.Remove(name)
}

func (f *FS) MkdirAll(name string, perm fs.FileMode) error {
	if err := f.hit(); err != nil {
		return &fs.PathError{Op: "mkdir", Path: name, Err: err}
	}
	return f.FS.MkdirAll(name, perm)
}

func (f *FS) Stat(name string) (fs.FileInfo, error) {
	if err := f.hit(); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return f.FS.Stat(name)
}

func (f *FS) Lstat(name string) (fs.FileInfo, error) {
	if err := f.hit(); err != nil {
		return nil, &fs.PathError{Op: "lstat", Path: name, Err: err}
	}
	return f.FS.Lstat(name)
}

func (f *FS) Readlink(name string) (string, error) {
	if err := f.hit(); err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	return f.FS.Readlink(name)
}

func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := f.hit(); err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	return f.FS.ReadDir(name)
}

// An open file fails as its FS does. A write that fails has written half.
type open struct {
	disk.File
	fs   *FS
	name string
}

func (o *open) fail(op string) error {
	if err := o.fs.hit(); err != nil {
		return &fs.PathError{Op: op, Path: o.name, Err: err}
	}
	return nil
}

// Read is not counted: how often io.ReadAll reads is chance.
func (o *open) Read(p []byte) (int, error) { return o.File.Read(p) }

func (o *open) Write(p []byte) (int, error) {
	if err := o.fail("write"); err != nil {
		n, _ := o.File.Write(p[:len(p)/2]) // the half that made it
		return n, err
	}
	return o.File.Write(p)
}

func (o *open) WriteAt(p []byte, off int64) (int, error) {
	if err := o.fail("write"); err != nil {
		n, _ := o.File.WriteAt(p[:len(p)/2], off) // the half that made it
		return n, err
	}
	return o.File.WriteAt(p, off)
}

func (o *open) Sync() error {
	if err := o.fail("sync"); err != nil {
		return err
	}
	return o.File.Sync()
}

func (o *open) Truncate(size int64) error {
	if err := o.fail("truncate"); err != nil {
		return err
	}
	return o.File.Truncate(size)
}

func (o *open) Stat() (fs.FileInfo, error) {
	if err := o.fail("stat"); err != nil {
		return nil, err
	}
	return o.File.Stat()
}

func (o *open) Chmod(mode fs.FileMode) error {
	if err := o.fail("chmod"); err != nil {
		return err
	}
	return o.File.Chmod(mode)
}

func (o *open) Chown(uid, gid int) error {
	if err := o.fail("chown"); err != nil {
		return err
	}
	return o.File.Chown(uid, gid)
}

// Close closes the file below in any case: a test must not leak it.
func (o *open) Close() error {
	err := o.fail("close")
	if cerr := o.File.Close(); err == nil {
		err = cerr
	}
	return err
}
