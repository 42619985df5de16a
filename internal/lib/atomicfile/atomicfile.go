// Package atomicfile replaces whole files so that a reader, a crash or a
// failing disk finds the old content or the new, never something else, and
// lets several processes take turns at changing one file.
//
// It owns how a file is replaced: a new file in the same directory, made
// durable, then renamed over the old one. A symbolic link stays: the file it
// leads to is replaced, in that file's directory. Where a rename cannot be
// done (a file that is itself a mount point, a directory that takes no new
// names) the bytes are written in place after a copy of the old ones was put
// aside. It does not know what the files mean.
package atomicfile

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/seed-eb844fcb/cinch/internal/lib/disk"
)

// A Writer replaces files. The zero value works on the machine's disk. It
// may be used concurrently.
type Writer struct {
	// FS is the disk; nil is the machine's.
	FS disk.FS
	// Spare is the directory for copies of old bytes during a write in place
	// when the file's own directory takes no new files. Empty means the
	// system's directory for temporary files.
	Spare string
}

// WriteFile replaces the content of the file name, following symbolic links.
// A file that is there keeps its mode and, where permitted, its owner; a new
// one gets perm. If it fails the old content is still there, or the error
// names the file that holds it.
func WriteFile(name string, data []byte, perm fs.FileMode) error {
	return Writer{}.WriteFile(name, data, perm)
}

// WriteFile is like the function, on the disk of w.
func (w Writer) WriteFile(name string, data []byte, perm fs.FileMode) error {
	if w.FS == nil {
		w.FS = disk.OS{}
	}
	target, info, err := w.resolve(name)
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if info != nil && !info.Mode().IsRegular() {
		return fmt.Errorf("writing %s: not a regular file", target)
	}
	err = w.replace(target, info, data, perm)
	if info != nil && errors.Is(err, errStuck) {
		err = w.inPlace(target, data, err)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", target, err)
	}
	return nil
}

// resolve follows name to the file that is to be replaced. info is nil if
// there is none yet.
func (w Writer) resolve(name string) (target string, info fs.FileInfo, err error) {
	target = name
	const most = 40 // as many links as Linux follows
	for range most {
		info, err = w.FS.Lstat(target)
		if errors.Is(err, fs.ErrNotExist) {
			return target, nil, nil
		}
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return target, info, err
		}
		link, err := w.FS.Readlink(target)
		if err != nil {
			return "", nil, err
		}
		if !filepath.IsAbs(link) {
			link = filepath.Join(filepath.Dir(target), link)
		}
		target = link
	}
	return "", nil, errors.New("too many symbolic links")
}

// errStuck says that this file cannot be replaced by renaming, and why.
var errStuck = errors.New("cannot be replaced by renaming")

// stuck wraps err with errStuck if writing in place may still work.
func stuck(err error) error {
	for _, e := range []error{syscall.EBUSY, syscall.EROFS, syscall.EXDEV, syscall.EACCES, syscall.EPERM, syscall.ETXTBSY} {
		if errors.Is(err, e) {
			return fmt.Errorf("%w: %w", errStuck, err)
		}
	}
	return err
}

// replace puts data in a new file beside target and renames it over target.
func (w Writer) replace(target string, info fs.FileInfo, data []byte, perm fs.FileMode) error {
	temp := filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+"."+rand.Text()[:10]+".tmp")
	f, err := w.FS.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return stuck(err)
	}
	err = fill(f, info, data, perm)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		if err = w.FS.Rename(temp, target); err != nil {
			err = stuck(err)
		}
	}
	if err != nil {
		_ = w.FS.Remove(temp) // err says more than a left-over would
		return err
	}
	return w.syncDir(filepath.Dir(target))
}

// fill makes f, empty and new, what the file is to be.
func fill(f disk.File, info fs.FileInfo, data []byte, perm fs.FileMode) error {
	if info != nil {
		perm = info.Mode().Perm()
		if uid, gid, ok := foreign(info); ok {
			if err := f.Chown(uid, gid); err != nil {
				return fmt.Errorf("%w: keeping its owner: %w", errStuck, err)
			}
		}
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Chmod(perm); err != nil {
		return err
	}
	return f.Sync()
}

// syncDir makes a rename durable where directories can be synced.
func (w Writer) syncDir(dir string) error {
	d, err := w.FS.OpenFile(dir, os.O_RDONLY, 0)
	if err != nil {
		return nil // a directory that may be written but not read
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	for _, e := range []error{syscall.EINVAL, syscall.ENOTSUP, syscall.EACCES, syscall.EPERM, syscall.EBADF} {
		if errors.Is(err, e) {
			return nil // not something this file system does
		}
	}
	return err
}

// inPlace overwrites target. cause is why it could not be replaced. A copy
// of the old bytes is durable elsewhere before the first one is changed.
func (w Writer) inPlace(target string, data []byte, cause error) (err error) {
	f, err := w.FS.OpenFile(target, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("%w (and in place: %w)", cause, err)
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	old, err := disk.ReadFile(w.FS, target)
	if err != nil {
		return err
	}
	if bytes.Equal(old, data) {
		return nil
	}
	spare, err := w.setAside(target, old)
	if err != nil {
		return fmt.Errorf("%w (and there is no place for a copy of the old content: %w)", cause, err)
	}
	if err := overwrite(f, data); err != nil {
		if again := overwrite(f, old); again != nil {
			return fmt.Errorf("%w; the old content is in %s", err, spare)
		}
		_ = w.FS.Remove(spare)
		return err
	}
	_ = w.FS.Remove(spare) // the write is done; a left-over copy harms nobody
	return nil
}

func overwrite(f disk.File, data []byte) error {
	if _, err := f.WriteAt(data, 0); err != nil {
		return err
	}
	if err := f.Truncate(int64(len(data))); err != nil {
		return err
	}
	return f.Sync()
}

// setAside puts old in a new file, beside target if possible.
func (w Writer) setAside(target string, old []byte) (spare string, err error) {
	elsewhere := w.Spare
	if elsewhere == "" {
		elsewhere = os.TempDir()
	}
	for _, dir := range []string{filepath.Dir(target), elsewhere} {
		spare = filepath.Join(dir, filepath.Base(target)+"."+rand.Text()[:10]+".old")
		f, ferr := w.FS.OpenFile(spare, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err = ferr; err != nil {
			continue
		}
		_, err = f.Write(old)
		if serr := f.Sync(); err == nil {
			err = serr
		}
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err == nil {
			return spare, nil
		}
		_ = w.FS.Remove(spare)
	}
	return "", err
}
