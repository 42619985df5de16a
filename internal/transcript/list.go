package transcript

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/lib/jsonl"
	"github.com/seed-eb844fcb/cinch/internal/transcript/history"
)

// A Summary is what a list shows of a session. It is read from the beginning
// and the end of the transcript, never from an index.
type Summary struct {
	ID, Path   string
	Title      string // "" if it has none
	Prompt     string // the first one, cut
	Last       string // the last one, cut
	Cwd        string // where it was begun
	Branch     string // at its end
	Entrypoint string // cli, sdk-cli, sdk-ts, sdk-py; "" if unknown
	Tag        string
	Created    time.Time
	Active     time.Time // the newest time stamp in it
	Size       int64
}

// Name is what to call the session: its title, or else what was asked.
func (s Summary) Name() string {
	for _, n := range []string{s.Title, s.Prompt, s.Last} {
		if n != "" {
			return n
		}
	}
	return s.ID
}

// Headless reports whether a program started the session, not a person.
func (s Summary) Headless() bool { return strings.HasPrefix(s.Entrypoint, "sdk") }

const ends = 64 << 10 // how much of each end of a transcript is read

// List returns the sessions that were begun in cwd, the newest activity
// first. Sessions of other directories that share the project directory are
// left out, files that hold no conversation too. A file that cannot be read
// costs only itself; a directory that is not there has no sessions.
func (s Store) List(ctx context.Context, cwd string) ([]Summary, error) {
	all, err := s.listDir(ctx, s.Dir(cwd))
	if err != nil {
		return nil, err
	}
	cwd = filepath.Clean(cwd)
	return slices.DeleteFunc(all, func(m Summary) bool { return m.Cwd != "" && filepath.Clean(m.Cwd) != cwd }), nil
}

// ListAll returns the sessions of all projects, the newest activity first.
func (s Store) ListAll(ctx context.Context) ([]Summary, error) {
	dirs, err := s.dirs()
	if err != nil {
		return nil, err
	}
	var all []Summary
	for _, d := range dirs {
		l, err := s.listDir(ctx, d)
		if err != nil {
			return nil, err
		}
		all = append(all, l...)
	}
	newestFirst(all)
	return all, nil
}

func (s Store) dirs() ([]string, error) {
	es, err := os.ReadDir(s.Projects)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing projects: %w", err)
	}
	var dirs []string
	for _, e := range es {
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(s.Projects, e.Name()))
		}
	}
	return dirs, nil
}

func (s Store) listDir(ctx context.Context, dir string) ([]Summary, error) {
	es, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing sessions: %w", err)
	}
	var all []Summary
	for _, e := range es {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("listing sessions: %w", context.Cause(ctx))
		}
		if !isTranscript(e.Name()) || e.IsDir() {
			continue
		}
		if m, ok := summarize(filepath.Join(dir, e.Name())); ok {
			all = append(all, m)
		}
	}
	newestFirst(all)
	return all, nil
}

func isTranscript(name string) bool {
	return strings.HasSuffix(name, ext) && !strings.HasSuffix(name, traceExt)
}

func newestFirst(all []Summary) {
	slices.SortStableFunc(all, func(a, b Summary) int { return b.Active.Compare(a.Active) })
}

// summarize reads both ends of a transcript. ok is false if there is no
// conversation in it.
func summarize(path string) (m Summary, ok bool) {
	f, err := os.Open(path)
	if err != nil {
		return m, false
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return m, false
	}
	m = Summary{ID: strings.TrimSuffix(filepath.Base(path), ext), Path: path, Size: info.Size()}
	p := peek{m: &m}
	pieces := []*io.SectionReader{io.NewSectionReader(f, 0, info.Size())}
	if info.Size() > 2*ends {
		pieces = []*io.SectionReader{io.NewSectionReader(f, 0, ends), io.NewSectionReader(f, info.Size()-ends, ends)}
	}
	for i, piece := range pieces {
		data, err := io.ReadAll(piece)
		if err != nil {
			return m, false
		}
		p.read(data, i > 0)
	}
	s := &p.s
	m.Title, m.Last, m.Cwd, m.Branch, m.Entrypoint, m.Tag = s.Title(), s.Last, s.Cwd, s.Branch, s.Entrypoint, s.Tag
	m.Created, m.Active = s.First, s.Newest
	if m.Active.IsZero() {
		m.Active = info.ModTime()
	}
	return m, p.talks
}

// A peek gathers a Summary from pieces of a transcript.
type peek struct {
	m     *Summary
	s     history.Scan
	talks bool
}

// read takes in a piece of the file; middle says that it begins inside a line.
func (p *peek) read(data []byte, middle bool) {
	if middle {
		data = data[bytes.IndexByte(data, '\n')+1:]
	}
	var skips jsonl.Skips
	for l, err := range jsonl.Read(bytes.NewReader(data), &skips) {
		if err != nil {
			return
		}
		talks, asks := p.s.Add(l)
		p.talks = p.talks || talks
		if asks && p.m.Prompt == "" {
			p.m.Prompt = firstLine(l.Data)
		}
	}
	// The first prompt may be longer than the piece.
	p.talks = p.talks || !middle && bytes.Contains(data, []byte(`"type":"user"`))
}

// firstLine returns what a person said in a line, cut, or "".
func firstLine(data []byte) (text string) {
	// What is no message says nothing.
	_ = history.Fields(data, func(name, message []byte) bool {
		if string(name) != "message" {
			return true
		}
		_ = history.Fields(message, func(name, content []byte) bool {
			if string(name) != "content" {
				return true
			}
			bs, _ := history.Content(content)
			for _, b := range bs {
				if text = asked(b); text != "" {
					break
				}
			}
			return false
		})
		return false
	})
	return clip(text, 200)
}

// A NotFoundError reports that no session has that id or title.
type NotFoundError struct{ Key string }

func (e *NotFoundError) Error() string { return "no session has the id or title " + e.Key }

// An AmbiguousError reports that several sessions go by one name.
type AmbiguousError struct {
	Key     string
	Matches []Summary
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%d sessions go by %q; name one by its id", len(e.Matches), e.Key)
}

// Find returns the session whose id or title is key. It looks into dirs (the
// working directory, then the other worktrees of its repository) and then
// into all projects. It fails with a *NotFoundError, or an *AmbiguousError.
func (s Store) Find(ctx context.Context, key string, dirs ...string) (Summary, error) {
	var near []Summary
	for _, d := range dirs {
		l, err := s.List(ctx, d)
		if err != nil {
			return Summary{}, err
		}
		near = append(near, l...)
	}
	if m, ok, err := pick(near, key); ok || err != nil {
		return m, err
	}
	all, err := s.ListAll(ctx)
	if err != nil {
		return Summary{}, err
	}
	m, ok, err := pick(all, key)
	if !ok && err == nil {
		err = &NotFoundError{key}
	}
	return m, err
}

func pick(from []Summary, key string) (Summary, bool, error) {
	for _, match := range []func(Summary) bool{
		func(m Summary) bool { return strings.EqualFold(m.ID, key) },
		func(m Summary) bool { return m.Title != "" && strings.EqualFold(m.Title, cleanTitle(key)) },
	} {
		var found []Summary
		for _, m := range from {
			if match(m) && !slices.ContainsFunc(found, func(o Summary) bool { return o.Path == m.Path }) {
				found = append(found, m)
			}
		}
		switch len(found) {
		case 0:
		case 1:
			return found[0], true, nil
		default:
			return Summary{}, false, &AmbiguousError{key, found}
		}
	}
	return Summary{}, false, nil
}

// Continue returns the session of cwd that was active last. Those that a
// program started are passed over unless headless is set. ok is false if there
// is none.
func (s Store) Continue(ctx context.Context, cwd string, headless bool) (m Summary, ok bool, err error) {
	all, err := s.List(ctx, cwd)
	if err != nil {
		return m, false, err
	}
	for _, m := range all {
		if headless || !m.Headless() {
			return m, true, nil
		}
	}
	return m, false, nil
}
