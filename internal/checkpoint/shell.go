package checkpoint

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Bounds of what is kept around a command.
const (
	// MaxScan is how many files of a workspace are looked at.
	MaxScan = 20_000
	// MaxShellFile bounds one file that is kept for a command, and
	// MaxShellTotal what is newly copied before one command. What is left out
	// is named by Coverage.
	MaxShellFile  = 8 << 20
	MaxShellTotal = 64 << 20

	snapTime = 2 * time.Second
)

// A stamp tells whether a file has changed without reading it.
type stamp struct {
	size    int64
	mode    fs.FileMode
	changed time.Time // of content
	inode   uint64
	altered int64 // when anything of it changed, which no program can set
}

// A Coverage is what a snapshot does not hold.
type Coverage struct {
	Files int
	// Left are files whose changes could not be taken back, with the reason.
	Left []Kept
	// Cut says that the workspace has more files than are looked at.
	Cut bool
}

// A Snapshot is a workspace before a command. Settle must be called when the
// command has ended.
type Snapshot struct {
	s     *Store
	roots []string
	files map[string]stamp
	Coverage
}

// Snap looks at all files below roots before a command, ignored ones
// included, and keeps the contents that the store does not have yet. Git
// directories are not part of it: git keeps its own history. The first call
// reads every file; later ones only what has changed since. Nil without a
// checkpoint.
func (s *Store) Snap(roots []string) (*Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.points) == 0 {
		return nil, nil
	}
	n := &Snapshot{s: s, roots: slices.Clone(roots), files: make(map[string]stamp, len(s.known)+64)}
	n.Cut = scan(roots, s.dir, n.files)
	n.Files = len(n.files)
	if s.known == nil {
		s.known = map[string]kept{}
	}
	room, begun := int64(MaxShellTotal), time.Now()
	for path, st := range n.files {
		if k, ok := s.known[path]; ok && k.stamp == st {
			if k.why != "" {
				n.Left = append(n.Left, Kept{path, k.why})
			}
			continue
		}
		k := kept{stamp: st}
		switch {
		case st.mode&fs.ModeSymlink != 0:
			k.state, _ = look(path)
		case st.size > MaxShellFile:
			k.why = fmt.Sprintf("it is larger than %d MB", MaxShellFile>>20)
		case st.size > room, time.Since(begun) > snapTime:
			k.why, k.stamp = "too much is new at once", stamp{}
		default:
			room -= st.size
			state, err := s.save(path)
			if err != nil {
				k.why = err.Error()
			}
			k.state = state
			// A file that is written while it is read is not known.
			if now, ok := stampAt(path); !ok || now != st {
				k.stamp = stamp{}
			}
		}
		if k.why != "" {
			n.Left = append(n.Left, Kept{path, k.why})
		}
		s.known[path] = k
	}
	for path := range s.known {
		if _, ok := n.files[path]; !ok {
			delete(s.known, path)
		}
	}
	slices.SortFunc(n.Left, func(a, b Kept) int { return strings.Compare(a.Path, b.Path) })
	return n, nil
}

// kept is what the store has of a file as it was last seen.
type kept struct {
	stamp stamp
	state state
	why   string // it is not kept, or ""
}

// Settle finds what the command has changed and writes it into the index: what
// each file was, and what it is now. It returns the changed paths.
func (n *Snapshot) Settle() ([]string, error) {
	s := n.s
	s.mu.Lock()
	defer s.mu.Unlock()
	after := make(map[string]stamp, len(n.files))
	scan(n.roots, s.dir, after)
	var changed []string
	for path, st := range n.files {
		if now, ok := after[path]; !ok || now != st {
			changed = append(changed, path)
		}
	}
	if !n.Cut { // or what is new could be what was not looked at
		for path := range after {
			if _, ok := n.files[path]; !ok {
				changed = append(changed, path)
			}
		}
	}
	slices.Sort(changed)
	if len(s.points) == 0 {
		return changed, nil
	}
	real := changed[:0]
	for _, path := range changed {
		did, err := n.settle(path, after)
		if err != nil {
			return real, fmt.Errorf("noting what a command changed: %w", err)
		}
		if did {
			real = append(real, path)
		}
	}
	return real, nil
}

// settle notes one path. did is false if it is as it was after all.
func (n *Snapshot) settle(path string, after map[string]stamp) (did bool, err error) {
	s := n.s
	was := state{Kind: "absent"}
	if _, ok := n.files[path]; ok {
		k := s.known[path]
		if was = k.state; k.why != "" {
			was = state{Kind: "other", Why: k.why}
		}
	}
	now, err := look(path)
	if err != nil {
		now = state{Kind: "other", Why: err.Error()}
	}
	if now.same(was) && now.Kind != "other" && (now.Kind != "link" || now.Why == was.Why) {
		s.known[path] = kept{stamp: after[path], state: was}
		return false, nil
	}
	if _, ok := s.points[len(s.points)-1].before[path]; !ok {
		if err := s.write(record{Type: "before", Path: path, Dir: realDir(path), Who: Shell, State: &was}); err != nil {
			return true, err
		}
	}
	return true, s.write(record{Type: "after", Path: path, State: &now})
}

// scan stamps the files below roots. It reports whether there are more than it
// looks at. The store itself is passed over.
func scan(roots []string, store string, into map[string]stamp) (cut bool) {
	for _, root := range roots {
		_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil // what cannot be listed cannot be kept
			case e.IsDir() && (path == store || e.Name() == ".git" && path != root):
				return filepath.SkipDir
			case e.IsDir(), e.Type()&^fs.ModeSymlink != 0:
				return nil
			case len(into) >= MaxScan:
				cut = true
				return filepath.SkipAll
			}
			if fi, err := e.Info(); err == nil {
				into[path] = stampOf(fi)
			}
			return nil
		})
	}
	return cut
}

func stampAt(path string) (stamp, bool) {
	fi, err := os.Lstat(path)
	if err != nil {
		return stamp{}, false
	}
	return stampOf(fi), true
}
