package checkpoint

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
	changed int64 // when its content did, in nanoseconds since 1970
	inode   uint64
	altered int64 // when anything of it did, which no program can set
}

// fresh reports whether the file may have changed after at without its stamp
// showing it: the clock of file systems has coarse ticks.
func (s stamp) fresh(at time.Time) bool {
	const tick = 20 * time.Millisecond // the coarsest kernel ticks 100 times a second
	when := s.altered
	if when == 0 {
		when = s.changed
	}
	return when > at.Add(-tick).UnixNano()
}

// A Coverage is what a snapshot does not hold.
type Coverage struct {
	Files int
	// Left are files whose changes could not be taken back, with the reason.
	Left []Kept
	// Cut says that the workspace has more files than are looked at.
	Cut bool
	// Tell is what a person should know of this and has not been told by an
	// earlier snapshot of the store.
	Tell []string
}

// A Snapshot is a workspace before a command. Settle must be called when the
// command has ended.
type Snapshot struct {
	s      *Store
	point  *point // a command belongs to the prompt that started it
	number int    // of the last note when it was taken
	roots  []string
	heads  []string // of git, by root
	files  map[string]*kept
	at     time.Time
	Coverage
}

// kept is what the store has of a file as it was seen. It does not change.
type kept struct {
	seen   stamp
	sure   bool // the same stamp means the same file
	state  state
	why    string // it is not kept, or ""
	theirs bool   // it is not what we had left there
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
	n := &Snapshot{s: s, point: s.point(""), number: s.number, roots: outermost(roots), at: time.Now()}
	seen, cut := scan(n.roots, s.dir)
	n.Cut, n.Files = cut, len(seen)
	n.files = make(map[string]*kept, len(seen))
	room := int64(MaxShellTotal)
	for _, f := range seen {
		k := s.known[f.path]
		if k == nil || !k.sure || k.seen != f.stamp {
			k = s.take(f, n.at, &room)
		}
		n.files[f.path] = k
		if k.why != "" {
			n.Left = append(n.Left, Kept{f.path, k.why})
		}
	}
	s.known = n.files // neither changes from now on
	for _, root := range n.roots {
		n.heads = append(n.heads, head(root))
	}
	slices.SortFunc(n.Left, func(a, b Kept) int { return strings.Compare(a.Path, b.Path) })
	n.tell()
	s.open = append(s.open, n)
	return n, nil
}

// take keeps a file of a snapshot that was begun at begun, if there is room.
func (s *Store) take(f stamped, begun time.Time, room *int64) *kept {
	k := &kept{seen: f.stamp, sure: true}
	switch {
	case f.mode&fs.ModeSymlink != 0:
		k.state, _ = look(f.path)
	case f.size > MaxShellFile:
		k.why = fmt.Sprintf("it is larger than %d MB", MaxShellFile>>20)
	case f.size > *room, time.Since(begun) > snapTime:
		k.why, k.sure = "too much was new at once", false
	default:
		*room -= f.size
		state, err := s.save(f.path)
		switch {
		case err != nil:
			k.why, k.sure = err.Error(), false
		case state.Kind == "other":
			k.why = state.Why
		}
		k.state = state
		// A file that is written while it is read, or just before, is not known.
		if now, ok := stampAt(f.path); !ok || now != f.stamp || f.fresh(begun) {
			k.sure = false
		}
	}
	if k.why != "" {
		k.state = state{Kind: "other", Why: k.why}
	} else if ours, ok := s.after[f.path]; ok {
		k.theirs = !ours.same(k.state)
	}
	return k
}

// tell says what of n is not covered and has not been said before.
func (n *Snapshot) tell() {
	if n.Cut && !n.s.told[""] {
		n.s.told[""] = true
		n.Tell = append(n.Tell, fmt.Sprintf("the workspace has more than %d files: what commands do to the others cannot be taken back", MaxScan))
	}
	var names []string
	more := 0
	for _, l := range n.Left {
		switch {
		case n.s.told[l.Path]:
			continue
		case len(names) < 5:
			names = append(names, l.Path+" ("+l.Why+")")
		default:
			more++
		}
		n.s.told[l.Path] = true
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if len(names) > 0 {
		n.Tell = append(n.Tell, "not kept, so what commands do to them cannot be taken back: "+strings.Join(names, ", "))
	}
}

// A Settled is what happened while a command ran.
type Settled struct {
	Changed []string // files
	// Lost are those of them that cannot be taken back, with the reason.
	Lost []Kept
}

// Settle finds what has changed while the command ran and writes it into the
// index: what each file was, and what it is now. Who changed a file cannot be
// seen; what tools, other commands and restores of ours have noted themselves
// is not counted again.
func (n *Snapshot) Settle() (Settled, error) {
	s := n.s
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.open = slices.DeleteFunc(s.open, func(o *Snapshot) bool { return o == n }) }()
	var out Settled
	for _, path := range n.changed() {
		did, err := n.settle(path, &out)
		if err != nil {
			return out, fmt.Errorf("noting what a command changed: %w", err)
		}
		if did {
			out.Changed = append(out.Changed, path)
		}
	}
	var gaps []string
	if n.Cut {
		gaps = append(gaps, fmt.Sprintf("only %d files were looked at, and the workspace has more", MaxScan))
	}
	for i, root := range n.roots {
		if head(root) != n.heads[i] {
			gaps = append(gaps, "git's own state of "+root+" (commits, branches, the index) stays as it is: see git reflog")
		}
	}
	for _, g := range gaps {
		if slices.Contains(n.point.gaps, g) {
			continue
		}
		if err := s.write(record{Type: "gap", ID: n.point.id, Label: g}); err != nil {
			return out, fmt.Errorf("noting what cannot be taken back: %w", err)
		}
	}
	return out, nil
}

// changed lists the paths that may have changed, in order.
func (n *Snapshot) changed() []string {
	seen, _ := scan(n.roots, n.s.dir)
	var out []string
	there := make(map[string]bool, len(seen))
	for _, f := range seen {
		there[f.path] = true
		k, ok := n.files[f.path]
		switch {
		case ok && k.seen == f.stamp && (!k.seen.fresh(n.at) || k.why != ""): // what is not kept cannot be compared
		case !ok && n.Cut: // what is new could be what was not looked at
		default:
			out = append(out, f.path)
		}
	}
	for path := range n.files {
		if !there[path] {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// settle notes one path. did is false if it is as it was after all, or if
// somebody has noted it already.
func (n *Snapshot) settle(path string, out *Settled) (did bool, err error) {
	s := n.s
	was, theirs := n.was(path)
	now, err := look(path)
	if err != nil {
		now = state{Kind: "other", Why: err.Error()}
	}
	ours, ok := s.after[path]
	noted := ok && ours.number > n.number && ours.same(now)
	if now.same(was) || noted && n.alone(path, was) {
		return false, nil
	}
	if was.Kind == "other" {
		out.Lost = append(out.Lost, Kept{path, was.Why})
	}
	if b, held := n.point.before[path]; !held || theirs || b.number > n.number {
		r := record{Type: "before", ID: n.point.id, Path: path, Dir: realDir(path), Who: Shell, State: &was, Theirs: theirs, Since: n.number + 1}
		if err := s.write(r); err != nil {
			return true, err
		}
	}
	if noted {
		return true, nil
	}
	return true, s.write(record{Type: "after", Path: path, State: &now})
}

// alone reports whether those who have noted a change of path since the
// snapshot found there what the snapshot did: the command was not before them.
func (n *Snapshot) alone(path string, was state) bool {
	for _, p := range n.s.points {
		if b, ok := p.before[path]; ok && b.number > n.number {
			return b.state.same(was)
		}
	}
	return true // what they found was noted earlier
}

// was is what stood at path before the command, or before the first of those
// of the same prompt that ran at the same time.
func (n *Snapshot) was(path string) (st state, theirs bool) {
	for _, o := range n.s.open {
		if o.point != n.point || !slices.ContainsFunc(o.roots, func(root string) bool { return within(path, root) }) {
			continue
		}
		if k, ok := o.files[path]; ok {
			return k.state, k.theirs
		}
		ours, ok := n.s.after[path]
		return state{Kind: "absent"}, ok && ours.number <= o.number && ours.Kind != "absent"
	}
	return state{Kind: "absent"}, false
}

// outermost returns the clean roots that lie in no other.
func outermost(roots []string) []string {
	var out []string
	for i, r := range roots {
		r = filepath.Clean(r)
		inner := false
		for j, o := range roots {
			o = filepath.Clean(o)
			inner = inner || within(r, o) && (r != o || j < i)
		}
		if !inner {
			out = append(out, r)
		}
	}
	return out
}

func within(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, "/"))
	return ok && (rest == "" || rest[0] == '/')
}

// head tells whether git's HEAD at root has moved: commits, checkouts and
// resets leave a line in its log. "" if root is no repository.
func head(root string) string {
	git := filepath.Join(root, ".git")
	if b, err := os.ReadFile(git); err == nil { // a worktree or a submodule
		dir, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "gitdir: ")
		if !ok {
			return ""
		}
		if git = dir; !filepath.IsAbs(git) {
			git = filepath.Join(root, git)
		}
	}
	ref, err := os.ReadFile(filepath.Join(git, "HEAD"))
	if err != nil {
		return ""
	}
	log, _ := stampAt(filepath.Join(git, "logs", "HEAD"))
	return fmt.Sprint(strings.TrimSpace(string(ref)), " ", log.size)
}

// scan stamps the files below roots. It reports whether there are more than it
// looks at. Git directories and the store itself are passed over. Directories
// of one depth are read at the same time: most of the work is waiting for the
// kernel.
func scan(roots []string, store string) (files []stamped, cut bool) {
	level := make([]string, 0, len(roots))
	for _, root := range roots {
		fi, err := os.Stat(root)
		switch {
		case err != nil:
		case fi.IsDir():
			level = append(level, root)
		case fi.Mode().IsRegular():
			files = append(files, stamped{root, stampOf(fi)})
		}
	}
	for len(level) > 0 {
		found := list(level)
		var next []string
		for _, d := range found {
			if files = append(files, d.files...); len(files) > MaxScan {
				return files[:MaxScan], true
			}
			cut = cut || d.cut
			for _, sub := range d.dirs {
				if sub != store {
					next = append(next, sub)
				}
			}
		}
		level = next
	}
	return files, cut
}

// A listing is what one directory holds: files with their stamps, and
// directories, git's own left out. What cannot be listed cannot be kept.
type listing struct {
	files []stamped
	dirs  []string
	cut   bool // there are more than MaxScan
}

type stamped struct {
	path string
	stamp
}

// list lists dirs, in their order.
func list(dirs []string) []listing {
	out := make([]listing, len(dirs))
	workers := min(runtime.GOMAXPROCS(0), maxListers, (len(dirs)+7)/8)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(dirs) {
					return
				}
				out[i].read(dirs[i])
			}
		})
	}
	wg.Wait()
	return out
}

// maxListers bounds how many directories are read at the same time.
const maxListers = 8

func stampAt(path string) (stamp, bool) {
	fi, err := os.Lstat(path)
	if err != nil {
		return stamp{}, false
	}
	return stampOf(fi), true
}
