package file

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/lib/safefile"
	"github.com/seed-eb844fcb/cinch/internal/lib/textdiff"
	"github.com/seed-eb844fcb/cinch/internal/lib/textenc"
)

const (
	keepFile  = 256 << 10 // a file up to this size is kept, to show what changed
	keepAll   = 16 << 20  // all kept files together
	watchFile = 8 << 20   // a file above this size is told apart by size and time only
	diffLimit = 6 << 10   // what a notice shows of a change
)

// A State is what one agent has seen of files. It is safe for concurrent use.
type State struct {
	seed maphash.Seed

	mu    sync.Mutex
	files map[string]*seen // by resolved path
	clock uint64
	kept  int
}

// seen is one file as it was when last seen. It is replaced, never changed.
type seen struct {
	size  int64
	mtime time.Time
	sum   uint64 // of the content; 0 if it was too big
	data  []byte // the content, if small enough
	// spans are the lines that reached the model, merged and sorted; total
	// is how many lines there are.
	spans []span
	total int
	used  uint64
}

// A span is a range of lines, the first and the last, counted from 1.
type span struct{ first, last int }

func (s *seen) whole() bool {
	return s.total == 0 || len(s.spans) == 1 && s.spans[0].first <= 1 && s.spans[0].last >= s.total
}

// A Notice tells of a file that somebody else changed after the agent saw it.
type Notice struct {
	Path string
	Gone bool   // the file is no longer there
	Diff string // hunks of a unified diff; "" if there is none to show
	Cut  bool   // Diff is not all of the change
}

// Text words the notice for the model.
func (n Notice) Text() string {
	switch {
	case n.Gone:
		return n.Path + " was deleted after you last saw it, by the user or by another program. Do not assume that this was a mistake."
	case n.Diff == "":
		return n.Path + " was changed after you last saw it, by the user or by another program. The change is not shown here: read the file before you rely on its content."
	case n.Cut:
		return n.Path + " was changed after you last saw it, by the user or by another program. Keep the change unless you are told otherwise. It begins (read the file for the rest):\n" + n.Diff
	}
	return n.Path + " was changed after you last saw it, by the user or by another program. Keep the change unless you are told otherwise. What changed:\n" + n.Diff
}

// NewState returns a State that has seen nothing.
func NewState() *State {
	return &State{seed: maphash.MakeSeed(), files: map[string]*seen{}}
}

// Fork returns a copy for a sub-agent that begins with the same context.
func (s *State) Fork() *State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &State{seed: s.seed, files: maps.Clone(s.files), clock: s.clock, kept: s.kept}
}

// put notes that the lines of sp reached the model when the file was as info
// and data say; data is nil if it was not held whole. Lines seen earlier
// count on if the content is still the same.
func (s *State) put(real string, info fs.FileInfo, data []byte, sp span, total int) {
	n := &seen{size: info.Size(), mtime: info.ModTime(), spans: []span{sp}, total: total}
	if data != nil && len(data) <= watchFile {
		n.sum = maphash.Bytes(s.seed, data)
		if len(data) <= keepFile {
			n.data = data
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.files[real]; old != nil && old.sum == n.sum && old.size == n.size && (n.sum != 0 || old.mtime.Equal(n.mtime)) {
		n.spans = merge(append(slices.Clone(old.spans), sp))
	}
	s.store(real, n)
}

// store puts n in the map. The lock is held.
func (s *State) store(real string, n *seen) {
	s.forget(real)
	if n.used == 0 {
		s.clock++
		n.used = s.clock
	}
	s.files[real] = n
	s.kept += len(n.data)
	for s.kept > keepAll {
		oldest := ""
		for p, f := range s.files {
			if f.data != nil && (oldest == "" || f.used < s.files[oldest].used) {
				oldest = p
			}
		}
		bare := *s.files[oldest]
		s.kept -= len(bare.data)
		bare.data = nil
		s.files[oldest] = &bare
	}
}

func (s *State) forget(real string) {
	if old := s.files[real]; old != nil {
		s.kept -= len(old.data)
		delete(s.files, real)
	}
}

func merge(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return a.first - b.first })
	out := spans[:1]
	for _, sp := range spans[1:] {
		if last := &out[len(out)-1]; sp.first <= last.last+1 {
			last.last = max(last.last, sp.last)
		} else {
			out = append(out, sp)
		}
	}
	return out
}

// A standing is how what an agent knows of a file relates to its content.
type standing uint8

const (
	unseen  standing = iota
	partial          // seen in part, and not changed since
	current          // seen whole, and not changed since
	stale            // changed since
)

// standing compares a loaded file with what was seen. old is what was seen,
// if it was kept.
func (s *State) standing(snap *safefile.Snapshot) (st standing, old []byte) {
	s.mu.Lock()
	f := s.files[snap.Real]
	s.mu.Unlock()
	switch {
	case f == nil:
		return unseen, nil
	case s.changed(f, snap.Info, snap.Data):
		return stale, f.data
	case !f.whole():
		return partial, f.data
	}
	return current, f.data
}

// changed reports whether content differs from what f remembers.
func (s *State) changed(f *seen, info fs.FileInfo, data []byte) bool {
	if f.size != int64(len(data)) {
		return true
	}
	if f.sum == 0 {
		return !f.mtime.Equal(info.ModTime())
	}
	return maphash.Bytes(s.seed, data) != f.sum
}

// Changed returns a notice for each seen file whose content is no longer
// what was seen, in the order of paths, each change once. Files that deny
// reports are left out; deny may be nil.
func (s *State) Changed(deny func(path string) bool) []Notice {
	s.mu.Lock()
	files := maps.Clone(s.files)
	s.mu.Unlock()
	var out []Notice
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if deny != nil && deny(path) {
			continue
		}
		if n, now, ok := s.look(path, files[path]); now != files[path] {
			s.mu.Lock()
			same := s.files[path] == files[path]
			if same && now == nil {
				s.forget(path)
			} else if same {
				s.store(path, now)
			}
			s.mu.Unlock()
			if ok && same {
				out = append(out, n)
			}
		}
	}
	return out
}

// look compares one file with what was seen. now is what to remember from
// here on, nil for nothing; ok reports whether there is something to tell.
func (s *State) look(path string, old *seen) (n Notice, now *seen, ok bool) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Notice{Path: path, Gone: true}, nil, true
	}
	if err != nil || !info.Mode().IsRegular() {
		return n, old, false
	}
	if info.Size() == old.size && info.ModTime().Equal(old.mtime) {
		return n, old, false
	}
	// To be told of a change is no use of the file: it keeps its rank.
	fresh := &seen{size: info.Size(), mtime: info.ModTime(), total: 1, used: old.used}
	snap, err := safefile.Load(path, watchFile)
	if err != nil {
		return Notice{Path: path}, fresh, true
	}
	if !s.changed(old, snap.Info, snap.Data) {
		same := *old
		same.mtime = snap.Info.ModTime()
		return n, &same, false
	}
	fresh.size, fresh.mtime = snap.Info.Size(), snap.Info.ModTime()
	fresh.sum = maphash.Bytes(s.seed, snap.Data)
	if len(snap.Data) <= keepFile {
		fresh.data = snap.Data
	}
	n = Notice{Path: path}
	if n.Diff, n.Cut = difference(old.data, snap.Data); n.Diff != "" && !n.Cut && old.whole() {
		// All of the file is known: what was seen, and what has changed.
		fresh.total = strings.Count(textenc.Decode(snap.Data).String(), "\n") + 1
		fresh.spans = []span{{1, fresh.total}}
	}
	return n, fresh, true
}

// difference shows how two contents differ; "" if that cannot be shown.
func difference(before, after []byte) (diff string, cut bool) {
	if before == nil || after == nil || binary(before) || binary(after) {
		return "", false
	}
	diff = textdiff.Format(textdiff.Hunks(textenc.Decode(before).String(), textenc.Decode(after).String(), 2))
	if len(diff) <= diffLimit {
		return diff, false
	}
	head := diff[:diffLimit]
	return head[:strings.LastIndexByte(head, '\n')+1], true
}

func binary(data []byte) bool {
	var s textenc.Stats
	_, _ = s.Write(data)
	return s.Binary()
}

// Recent returns up to n files, the most recently seen or written first.
func (s *State) Recent(n int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	paths := slices.SortedFunc(maps.Keys(s.files), func(a, b string) int {
		return int(s.files[b].used) - int(s.files[a].used)
	})
	return paths[:min(n, len(paths))]
}

// Seed notes that the whole file was read when its modification time was
// mtime. If the file has changed since, Seed notes nothing and says so.
func (s *State) Seed(path string, mtime time.Time) error {
	return s.view(path, func(info fs.FileInfo) error {
		// Hosts count in milliseconds.
		if info.ModTime().Truncate(time.Millisecond).After(mtime) {
			return fmt.Errorf("%s has changed since it was read", path)
		}
		return nil
	})
}

// Viewed notes that the whole file, by its absolute path, reached the model
// by another way than Read. A file that cannot be read is not noted.
func (s *State) Viewed(path string) {
	_ = s.view(path, func(fs.FileInfo) error { return nil })
}

func (s *State) view(path string, ok func(fs.FileInfo) error) error {
	names, err := safefile.Resolve(path)
	if err != nil {
		return err
	}
	snap, err := safefile.Load(names[len(names)-1], watchFile)
	if err != nil {
		return err
	}
	if err := ok(snap.Info); err != nil {
		return err
	}
	total := strings.Count(textenc.Decode(snap.Data).String(), "\n") + 1
	s.put(snap.Real, snap.Info, snap.Data, span{1, total}, total)
	return nil
}
