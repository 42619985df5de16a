package atomicfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/lib/procid"
)

// A Holder says who holds a lock.
type Holder struct {
	procid.ID
	Host  string    `json:"host,omitempty"`
	Since time.Time `json:"since"`
	Note  string    `json:"note,omitempty"` // what it is held for
}

// Gone reports whether the holder is dead for sure. Children that it was about
// to start may have the lock for a moment longer.
func (h Holder) Gone() bool {
	host, err := os.Hostname()
	return err == nil && h.PID != 0 && h.Host == host && !h.Alive()
}

// A HeldError reports that a lock was not to be had in time.
type HeldError struct {
	Path   string
	Holder Holder // the zero Holder if it left no name
}

func (e *HeldError) Error() string {
	if e.Holder.PID == 0 {
		return fmt.Sprintf("%s is locked by another process", e.Path)
	}
	if e.Holder.Gone() {
		return fmt.Sprintf("%s is locked by what process %d, which has ended, has left running", e.Path, e.Holder.PID)
	}
	return fmt.Sprintf("%s is locked by process %d since %s", e.Path, e.Holder.PID, e.Holder.Since.Format(time.DateTime))
}

// A Lock excludes other processes, and other holders in this one, as far as
// they ask too. The system gives it up when the process ends, however it ends.
type Lock struct {
	path string
	f    *os.File
	void bool // there was nowhere to lock: held in name only
	mark string
}

// None returns a lock that excludes nobody, for where none can be made. It is
// never lost.
func None() *Lock { return &Lock{void: true} }

const pause = 20 * time.Millisecond // between two tries for a lock

// Acquire takes the lock that the file path stands for, creating the file
// and its directory. It waits for at most wait, or until ctx ends; a lock
// that was not free by then is a *HeldError. note says what it is held for.
func Acquire(ctx context.Context, path string, wait time.Duration, note string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("locking: %w", err)
	}
	end := time.Now().Add(wait)
	for {
		l, err := try(path, note)
		if err == nil || !errors.Is(err, errHeld) {
			return l, err
		}
		left := time.Until(end)
		if left <= 0 {
			return nil, &HeldError{Path: path, Holder: holder(path)}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for lock %s: %w", path, context.Cause(ctx))
		case <-time.After(min(left, pause)):
		}
	}
}

// Seize takes the lock that path stands for from whoever holds it. The former
// holder is not stopped; it can tell by Lost.
func Seize(ctx context.Context, path, note string) (*Lock, error) {
	for _, p := range []string{path, path + recordSuffix} {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("taking over lock %s: %w", path, err)
		}
	}
	return Acquire(ctx, path, time.Second, note)
}

// Lost reports whether somebody has seized the lock.
func (l *Lock) Lost() bool {
	if l.void {
		return false
	}
	if l.f == nil {
		data, err := os.ReadFile(l.path + recordSuffix)
		return err != nil || string(data) != l.mark
	}
	mine, err := l.f.Stat()
	if err != nil {
		return true
	}
	now, err := os.Stat(l.path)
	return err != nil || !os.SameFile(mine, now)
}

// Release gives the lock up. The file stays: removing it would let two
// processes lock two files of one name.
func (l *Lock) Release() error {
	if l.void {
		return nil
	}
	if l.f == nil {
		if l.Lost() {
			return nil
		}
		return os.Remove(l.path + recordSuffix)
	}
	_ = l.f.Truncate(0) // only a name for others to read
	return l.f.Close()
}

var errHeld = errors.New("held")

// try takes the lock if it is free. It fails with errHeld if it is not.
func try(path, note string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking: %w", err)
	}
	switch err := lockFile(f); {
	case errors.Is(err, errHeld):
		_ = f.Close()
		return nil, errHeld
	case err != nil:
		_ = f.Close()
		return tryRecord(path, note) // this file system has no locks
	}
	l := &Lock{path: path, f: f}
	if l.Lost() { // seized between open and lock
		_ = f.Close()
		return nil, errHeld
	}
	_ = f.Truncate(0) // the name is for people; the lock holds without it
	_, _ = f.WriteAt(record(note), 0)
	return l, nil
}

func record(note string) []byte {
	host, _ := os.Hostname()
	data, _ := json.Marshal(Holder{ID: procid.Self(), Host: host, Since: time.Now(), Note: note}) // plain fields
	return data
}

// holder reads who holds the lock at path, if it can be told.
func holder(path string) (h Holder) {
	for _, p := range []string{path, path + recordSuffix} {
		if data, err := os.ReadFile(p); err == nil && json.Unmarshal(data, &h) == nil {
			return h
		}
	}
	return Holder{}
}

// recordSuffix is added to the name of a lock where the file system has no
// locks (NFS without its lock service): the lock is then a file that exists,
// and its content tells whether its maker still lives.
const recordSuffix = ".held"

func tryRecord(path, note string) (*Lock, error) {
	path0, path := path, path+recordSuffix
	mark := record(note)
	for range 2 {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			_, err = f.Write(mark)
			if cerr := f.Close(); err == nil {
				err = cerr
			}
			if err != nil {
				return nil, fmt.Errorf("locking: %w", err)
			}
			return &Lock{path: path0, mark: string(mark)}, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("locking: %w", err)
		}
		if !dropStale(path) {
			return nil, errHeld
		}
	}
	return nil, errHeld
}

// dropStale removes the record at path if its maker is gone. Two processes
// may find the same record stale; the one that comes late must not remove the
// record the other has made since, so a record is moved aside, looked at
// again, and put back if it is not the stale one.
func dropStale(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	data, err := io.ReadAll(f)
	info, serr := f.Stat()
	_ = f.Close() // only read
	if err != nil || serr != nil || !stale(data, info.ModTime()) {
		return false
	}
	aside := fmt.Sprintf("%s.%d", path, os.Getpid())
	if os.Rename(path, aside) != nil {
		return false
	}
	if now, err := os.ReadFile(aside); err == nil && string(now) != string(data) {
		_ = os.Link(aside, path) // fails if a third has come: then that one holds it
		_ = os.Remove(aside)
		return false
	}
	_ = os.Remove(aside)
	return true
}

// stale reports whether the maker of a record is gone for sure. One that was
// never finished is given ten seconds.
func stale(data []byte, made time.Time) bool {
	var h Holder
	if json.Unmarshal(data, &h) != nil {
		return time.Since(made) > 10*time.Second
	}
	return h.Gone()
}
