// Package checkpoint keeps what files were before they were changed, so that
// changes can be taken back: a content-addressed store of file contents and an
// append-only index of which file had which content at which checkpoint.
//
// It owns the store, what a restore would change, and the restore itself. It
// never touches git, never follows a link, and never overwrites or deletes
// silently what somebody else has changed since. It does not know tools or the
// conversation: they call Begin, Before and After.
package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/lib/jsonl"
)

// Keep is how many of the newest checkpoints can be gone back to.
const Keep = 100

// MaxFile bounds a file that is kept; larger ones are listed as not covered.
const MaxFile = 256 << 20

// Who says which kind of change a saved content precedes.
type Who string

const (
	Tool  Who = "tool"  // a file tool of ours
	Shell Who = "shell" // a command
	Undo  Who = "undo"  // a restore
)

// A state is what stood at a path.
type state struct {
	Kind string      `json:"kind"` // absent, file, dir, link, other
	Sum  string      `json:"sum,omitempty"`
	Mode fs.FileMode `json:"mode,omitempty"`
	Size int64       `json:"size,omitempty"`
	Why  string      `json:"why,omitempty"` // of other: why it is not covered; of link: where it leads
}

// same reports whether two states are known to be the same.
func (s state) same(t state) bool {
	if s.Kind != t.Kind {
		return false
	}
	switch s.Kind {
	case "file":
		return s.Sum == t.Sum && s.Mode.Perm() == t.Mode.Perm()
	case "link":
		return s.Why == t.Why
	}
	return s.Kind != "other"
}

// gone reports whether s is no file: one that stands there now has to go.
func (s state) gone() bool { return s.Kind == "absent" || s.Kind == "dir" }

// A record is one line of the index.
type record struct {
	Type  string    `json:"type"`         // point, before, after, gap
	ID    string    `json:"id,omitempty"` // of before and gap: the point they belong to; "" is the last
	At    time.Time `json:"at,omitzero"`
	Label string    `json:"label,omitempty"`
	Path  string    `json:"path,omitempty"`
	Who   Who       `json:"who,omitempty"`
	Dir   string    `json:"dir,omitempty"` // real directory of Path when it was saved
	State *state    `json:"state,omitempty"`
	// Theirs says that State is not what we had left there: somebody else
	// has changed the file since.
	Theirs bool `json:"theirs,omitempty"`
	// Since, if not 0, says that State was seen before the note of that
	// number, by a command that was under way.
	Since int `json:"since,omitempty"`
}

// A point is one checkpoint with what was saved since, until the next one.
type point struct {
	id, label string
	at        time.Time
	before    map[string]saved
	order     []string // paths of before, in the order they were saved
	// theirs holds paths that somebody else changed after they were saved
	// here and before we changed them again.
	theirs map[string]mark
	gaps   []string // what cannot be taken back, in words
}

type saved struct {
	state  state
	who    Who
	dir    string
	theirs bool // somebody else made it so
	number int  // of the note
}

// A mark is the note of what somebody else had left at a path.
type mark struct {
	number int
	sum    string
}

// A left is what we last left at a path. Notes are numbered as they come.
type left struct {
	state
	number int
}

// A Store is the checkpoints of one session. Its methods may be called
// concurrently.
type Store struct {
	dir   string
	index *jsonl.Appender

	mu     sync.Mutex
	points []*point
	after  map[string]left  // what we last wrote, by path
	number int              // of the last note: a before or an after
	known  map[string]*kept // files of the workspace as Snap last saw them
	open   []*Snapshot      // of commands under way, the oldest first
	told   map[string]bool  // what Snapshot.Tell has said
}

// Open opens the store in dir, making it when something is first saved, and
// reads what an earlier run left. Lines it cannot read are passed over.
func Open(dir string) (*Store, error) {
	s := &Store{dir: dir, after: map[string]left{}, told: map[string]bool{}}
	name := filepath.Join(dir, "index.jsonl")
	f, err := os.Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("opening checkpoints: %w", err)
	default:
		defer f.Close()
		var skips jsonl.Skips
		for line, err := range jsonl.Read(f, &skips) {
			if err != nil {
				return nil, fmt.Errorf("reading checkpoints: %w", err)
			}
			var r record
			if json.Unmarshal(line.Data, &r) == nil {
				s.apply(r)
			}
		}
	}
	return s, nil
}

// Close closes the index.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index == nil {
		return nil
	}
	err := s.index.Close()
	s.index = nil
	return err
}

// apply takes r into memory.
func (s *Store) apply(r record) {
	switch r.Type {
	case "point":
		s.points = append(s.points, &point{id: r.ID, at: r.At, label: r.Label, before: map[string]saved{}, theirs: map[string]mark{}})
	case "before":
		p := s.point(r.ID)
		if p == nil || r.State == nil {
			return
		}
		s.number++
		b, held := p.before[r.Path]
		switch {
		case !held:
			p.before[r.Path] = saved{*r.State, r.Who, r.Dir, r.Theirs, s.number}
			p.order = append(p.order, r.Path)
		case r.Since > 0 && b.number >= r.Since:
			p.before[r.Path] = saved{*r.State, b.who, r.Dir, r.Theirs, s.number}
			if p.theirs[r.Path].number >= r.Since {
				delete(p.theirs, r.Path)
			}
		case r.Theirs:
			p.theirs[r.Path] = mark{s.number, r.State.Sum}
		}
	case "after":
		if r.State != nil {
			s.number++
			s.after[r.Path] = left{*r.State, s.number}
		}
	case "gap":
		if p := s.point(r.ID); p != nil {
			p.gaps = append(p.gaps, r.Label)
		}
	}
}

// point is the newest point of that id, or the last for "".
func (s *Store) point(id string) *point {
	for _, p := range slices.Backward(s.points) {
		if id == "" || p.id == id {
			return p
		}
	}
	return nil
}

// write puts r on disk, then into memory.
func (s *Store) write(r record) error {
	if s.index == nil {
		if err := os.MkdirAll(filepath.Join(s.dir, "blobs"), 0o700); err != nil {
			return fmt.Errorf("making the checkpoint store: %w", err)
		}
		a, err := jsonl.Open(nil, filepath.Join(s.dir, "index.jsonl"))
		if err != nil {
			return fmt.Errorf("opening the checkpoint index: %w", err)
		}
		s.index = a
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := s.index.Append(line); err != nil {
		return fmt.Errorf("writing the checkpoint index: %w", err)
	}
	s.apply(r)
	return nil
}

// Begin opens a checkpoint under id, a prompt's uuid; label is for people.
// What is saved from now on belongs to it.
func (s *Store) Begin(id, label string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.points); n > 0 && s.points[n-1].id == id {
		return nil
	}
	if err := s.write(record{Type: "point", ID: id, At: time.Now(), Label: label}); err != nil {
		return err
	}
	s.trim()
	return nil
}

// trim forgets the contents that only checkpoints too old to be gone back to
// needed. The first content of each file is kept. A blob that cannot be
// removed takes room, nothing else.
func (s *Store) trim() {
	if len(s.points) <= Keep {
		return
	}
	needed := map[string]bool{}
	first := map[string]bool{}
	for i, p := range s.points {
		for path, b := range p.before {
			if i >= len(s.points)-Keep || !first[path] {
				needed[b.state.Sum] = true
			}
			first[path] = true
		}
	}
	old := s.points[len(s.points)-Keep-1]
	for _, b := range old.before {
		if sum := b.state.Sum; sum != "" && !needed[sum] {
			_ = os.Remove(s.blob(sum))
		}
	}
}

// Before saves what stands at path, an absolute one, unless the current
// checkpoint holds it already. It must be called before the first byte
// changes. Without a checkpoint it does nothing.
func (s *Store) Before(path string, who Who) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.points) == 0 {
		return nil
	}
	_, held := s.points[len(s.points)-1].before[path]
	ours, changed := s.after[path]
	if held && !changed {
		return nil // this very change is under way
	}
	see := s.save
	if held {
		see = look
	}
	st, err := see(path)
	if err != nil {
		return fmt.Errorf("saving %s before it changes: %w", path, err)
	}
	theirs := changed && !ours.same(st)
	if held && !theirs {
		return nil
	}
	return s.write(record{Type: "before", Path: path, Dir: realDir(path), Who: who, State: &st, Theirs: theirs})
}

// After notes what stands at path now that we have changed it, so that a
// restore can tell our change from a later one of somebody else.
func (s *Store) After(path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.points) == 0 {
		return nil
	}
	st, err := look(path)
	if err != nil {
		return fmt.Errorf("noting %s after its change: %w", path, err)
	}
	return s.write(record{Type: "after", Path: path, State: &st})
}

// Ours reports whether what stands at path is what we left there.
func (s *Store) Ours(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ours, ok := s.after[path]
	if !ok {
		return false
	}
	now, err := look(path)
	return err == nil && ours.same(now)
}

// A Point describes one checkpoint.
type Point struct {
	ID, Label string
	At        time.Time
	Files     int // saved in it
}

// Points lists the checkpoints that can be gone back to, oldest first.
func (s *Store) Points() []Point {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Point
	for _, p := range s.points[max(0, len(s.points)-Keep):] {
		out = append(out, Point{p.id, p.label, p.at, len(p.before)})
	}
	return out
}

// Size is the number of bytes the store takes.
func (s *Store) Size() int64 {
	var n int64
	_ = filepath.WalkDir(s.dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if fi, err := e.Info(); err == nil {
				n += fi.Size()
			}
		}
		return nil
	})
	return n
}

// since returns the earliest saved content of each path from checkpoint id on;
// theirs says then that somebody else has changed it after that, and we again.
// words are the sums of what they wrote, with the path.
func (s *Store) since(id string) (at map[string]saved, order []string, words map[string]string, err error) {
	i := slices.IndexFunc(s.points, func(p *point) bool { return p.id == id })
	if i < 0 {
		return nil, nil, nil, fmt.Errorf("there is no checkpoint %s", id)
	}
	if i < len(s.points)-Keep {
		return nil, nil, nil, fmt.Errorf("the checkpoint %s is older than the newest %d, which are kept", id, Keep)
	}
	at, order = map[string]saved{}, nil
	words = map[string]string{}
	for _, p := range s.points[i:] {
		for _, path := range p.order {
			b := p.before[path]
			old, ok := at[path]
			if m := p.theirs[path]; m.sum != "" {
				words[m.sum] = path
			}
			if b.theirs && ok && b.state.Sum != "" {
				words[b.state.Sum] = path
			}
			if !ok {
				b.theirs = p.theirs[path].number > 0 // before this was saved is nobody's business
				at[path] = b
				order = append(order, path)
				continue
			}
			// A file that tools changed too is a tool's, as far as asking goes.
			if old.who == Shell && b.who == Tool {
				old.who = Tool
			}
			old.theirs = old.theirs || b.theirs || p.theirs[path].number > 0
			at[path] = old
		}
	}
	return at, order, words, nil
}
