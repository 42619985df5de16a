package atomicfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/lib/disk"
)

// An Update is one change of a file that several processes change.
type Update struct {
	Name string
	Perm fs.FileMode // of a new file
	// Lock is the lock file that all who change Name agree on.
	Lock string
	// Wait is how long to wait for the lock.
	Wait time.Duration
	// Change returns the new content for the old, which is nil if there is
	// no file. It must not change old. Its error ends the update.
	Change func(old []byte) ([]byte, error)
}

// Update applies u: it takes the lock, reads the file, and writes what
// Change made of it, unless that is the same. Where no lock file can be made
// because nothing can be written there, the update goes on without it.
func (w Writer) Update(ctx context.Context, u Update) error {
	if w.FS == nil {
		w.FS = disk.OS{}
	}
	l, err := Acquire(ctx, u.Lock, u.Wait, "change of "+filepath.Base(u.Name))
	if barred(err) {
		l, err = None(), nil
	}
	if err != nil {
		return fmt.Errorf("changing %s: %w", u.Name, err)
	}
	defer func() { _ = l.Release() }() // what matters is written by then
	old, err := disk.ReadFile(w.FS, u.Name)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return fmt.Errorf("changing %s: %w", u.Name, err)
	}
	data, err := u.Change(old)
	if err != nil {
		return fmt.Errorf("changing %s: %w", u.Name, err)
	}
	if !missing && bytes.Equal(old, data) {
		return nil
	}
	return w.WriteFile(u.Name, data, u.Perm)
}

// barred reports whether err says that a place takes no new files.
func barred(err error) bool {
	for _, e := range []error{syscall.EROFS, syscall.EACCES, syscall.EPERM, syscall.ENOTDIR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
