package transcript

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/atomicfile"
	"github.com/seed-eb844fcb/cinch/internal/lib/jsonl"
	"github.com/seed-eb844fcb/cinch/internal/transcript/history"
)

// Rename gives the session path a title. It may be open elsewhere.
func Rename(path, title string) error {
	title = cleanTitle(title)
	if title == "" {
		return errors.New("renaming session: the title is empty")
	}
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("renaming session: %w", err)
	}
	a, err := jsonl.Open(nil, path)
	if err != nil {
		return fmt.Errorf("renaming session: %w", err)
	}
	err = a.Append(titleLine(title, strings.TrimSuffix(filepath.Base(path), ext)))
	if err = errors.Join(err, a.Close()); err != nil {
		return fmt.Errorf("renaming session: %w", err)
	}
	return nil
}

// Fork copies the session from, with its boundary record and sub-agents, to
// the transcript to, whose name is the new id. The origin stays as it is, and
// the copy says where it came from. If it fails no copy is left.
func Fork(from, to string) error { return fork(from, to, "") }

// ForkBefore is Fork, but the copy ends before the prompt of that uuid, and
// has no boundary record: what it could tell is of calls that had not ended.
// ErrNoMessage means that there is no such prompt.
func ForkBefore(from, to, prompt string) error { return fork(from, to, prompt) }

func fork(from, to, before string) (err error) {
	id := strings.TrimSuffix(filepath.Base(to), ext)
	old := strings.TrimSuffix(filepath.Base(from), ext)
	defer func() {
		if err != nil {
			err = fmt.Errorf("forking session %s: %w", old, err)
		}
	}()
	if _, err := os.Stat(to); err == nil {
		return fmt.Errorf("session %s: %w", id, fs.ErrExist)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	// The transcript comes last: without it the rest belongs to nothing.
	rename := func(l []byte) ([]byte, bool) { return renameLine(l, old, id), true }
	if before == "" {
		if err := copyLines(TracePath(from), TracePath(to), rename); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	side := filepath.Join(SideDir(from), "subagents")
	es, err := os.ReadDir(side)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range es {
		if e.IsDir() {
			continue
		}
		dst := filepath.Join(SideDir(to), "subagents", e.Name())
		if err := os.MkdirAll(filepath.Dir(dst), 0o700); err != nil {
			return err
		}
		if err := copyLines(filepath.Join(side, e.Name()), dst, rename); err != nil {
			return err
		}
	}
	found := before == ""
	err = copyLines(from, to, func(l []byte) ([]byte, bool) {
		if before != "" && uuidOf(l) == before {
			found = true
			return nil, false
		}
		return forkLine(l, old, id), true
	})
	if err == nil && !found {
		err = ErrNoMessage
	}
	if err != nil {
		_ = os.Remove(to) // half a session is worse than none
	}
	return err
}

// uuidOf is the uuid of a line, "" if it has none.
func uuidOf(l []byte) string {
	var line struct {
		UUID string `json:"uuid"`
	}
	_ = json.Unmarshal(l, &line) // as far as it can be read
	return line.UUID
}

// copyLines copies the readable lines of a file as edit changes them, until it
// says that no more are wanted.
func copyLines(from, to string, edit func([]byte) (line []byte, more bool)) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	var skips jsonl.Skips
	var buf bytes.Buffer
	for l, rerr := range jsonl.Read(in, &skips) {
		if err = rerr; err != nil {
			break
		}
		line, more := edit(l.Data)
		if !more {
			break
		}
		buf.Write(line)
		buf.WriteByte('\n')
		if buf.Len() > 1<<20 {
			if _, err = out.Write(buf.Bytes()); err != nil {
				break
			}
			buf.Reset()
		}
	}
	if err == nil {
		_, err = out.Write(buf.Bytes())
	}
	return errors.Join(err, out.Close())
}

// forkLine puts id in place of the session's id and adds where the line came from.
func forkLine(l []byte, old, id string) []byte {
	var uuid []byte
	forked := false
	_ = history.Fields(l, func(name, value []byte) bool { // as far as it can be read
		switch string(name) {
		case "uuid":
			uuid = value
		case "forkedFrom":
			forked = true
		}
		return true
	})
	out := renameLine(l, old, id)
	if uuid == nil || forked || len(out) == 0 {
		return out
	}
	out = append(bytes.TrimSuffix(out, []byte("}")), `,"forkedFrom":{"sessionId":`...)
	out = agent.AppendString(out, old)
	out = append(out, `,"messageUuid":`...)
	out = append(out, uuid...)
	return append(out, "}}"...)
}

func renameLine(l []byte, old, id string) []byte {
	out := bytes.Clone(l)
	_ = history.Fields(l, func(name, value []byte) bool { // as far as it can be read
		if string(name) != "sessionId" {
			return true
		}
		at := cap(l) - cap(value) // value is a part of l
		out = append(out[:at:at], agent.AppendString(nil, id)...)
		out = append(out, l[at+len(value):]...)
		return false
	})
	return out
}

// A holder that lives gives a lock up at its end, and that may be now; one
// that is dead gives it up once its last child has let go of it.
const (
	patience     = time.Second
	longPatience = 10 * time.Second
)

// Lock takes the session id, so that no second process appends to it
// unawares. One that is open elsewhere is an *atomicfile.HeldError that says
// where; that is known after a second, or after ten if the process that has
// it is dead. Where no lock can be made there is none, and no error.
func (s Store) Lock(ctx context.Context, id string) (*atomicfile.Lock, error) {
	for end := time.Now().Add(longPatience); ; {
		l, err := s.tryLock(ctx, id, patience)
		var held *atomicfile.HeldError
		if !errors.As(err, &held) || !held.Holder.Gone() || !time.Now().Before(end) {
			return l, err
		}
	}
}

func (s Store) tryLock(ctx context.Context, id string, wait time.Duration) (*atomicfile.Lock, error) {
	l, err := atomicfile.Acquire(ctx, s.lockPath(id), wait, "session "+id)
	var held *atomicfile.HeldError
	if err == nil || errors.As(err, &held) || ctx.Err() != nil {
		return l, err
	}
	return atomicfile.None(), nil
}

// TakeOver takes the session id from the process that has it, which stops to
// write when it is next about to: see Taken.
func (s Store) TakeOver(ctx context.Context, id string) (*atomicfile.Lock, error) {
	return atomicfile.Seize(ctx, s.lockPath(id), "session "+id)
}

func (s Store) lockPath(id string) string {
	return filepath.Join(s.Private, "sessions", history.Safe(id)+".lock")
}

// Taken returns a guard for a Writer that keeps it from writing once its
// session has been taken over.
func Taken(l *atomicfile.Lock) func() error {
	return func() error {
		if l.Lost() {
			return errors.New("this session was taken over by another process; fork it to go on here")
		}
		return nil
	}
}

// Sweep removes the sessions whose files nobody has touched since before,
// with all that belongs to them, and returns their ids. Memory directories and
// sessions that are open stay. It goes on after an error and returns all of
// them.
func (s Store) Sweep(ctx context.Context, before time.Time) (removed []string, err error) {
	dirs, err := s.dirs()
	for _, d := range dirs {
		es, derr := os.ReadDir(d)
		err = errors.Join(err, derr)
		for _, e := range es {
			if ctx.Err() != nil {
				return removed, errors.Join(err, context.Cause(ctx))
			}
			if !isTranscript(e.Name()) || e.IsDir() {
				continue
			}
			id := strings.TrimSuffix(e.Name(), ext)
			gone, rerr := s.sweep(ctx, filepath.Join(d, e.Name()), id, before)
			if err = errors.Join(err, rerr); gone {
				removed = append(removed, id)
			}
		}
		_ = os.Remove(d) // goes only if nothing is left in it
	}
	return removed, err
}

func (s Store) sweep(ctx context.Context, path, id string, before time.Time) (gone bool, err error) {
	for _, p := range []string{path, TracePath(path)} {
		info, err := os.Stat(p)
		if err == nil && !info.ModTime().Before(before) {
			return false, nil
		}
	}
	l, err := s.tryLock(ctx, id, 0)
	if err != nil {
		return false, nil // somebody has it open
	}
	err = Delete(path)
	_ = os.Remove(s.lockPath(id)) // ours, and of no use any more
	return true, errors.Join(err, l.Release())
}

// Delete removes a session with all that belongs to it.
func Delete(path string) error {
	var err error
	for _, p := range []string{path, TracePath(path)} {
		if rerr := os.Remove(p); !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	if side := SideDir(path); side != path {
		err = errors.Join(err, os.RemoveAll(side))
	}
	return err
}

// asked returns what a person said in b, on one line; what only looks like a
// prompt in the file is none.
func asked(b agent.Block) string {
	t, ok := b.(*agent.Text)
	if !ok {
		return ""
	}
	text := strings.Join(strings.Fields(t.Text), " ")
	for _, p := range []string{"<command-", "<local-command-", "<system-reminder>", "<task-notification>", "[Request interrupted"} {
		if strings.HasPrefix(text, p) {
			return ""
		}
	}
	return text
}
