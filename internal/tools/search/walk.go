package search

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/seed-eb844fcb/cinch/internal/lib/gitignore"
	"github.com/seed-eb844fcb/cinch/internal/lib/glob"
)

// A walk goes through a tree of directories, several at a time. Symbolic
// links are seen but not followed.
type walk struct {
	ctx context.Context
	// deny leaves out files and whole directories.
	deny func(path string) bool
	// ignore makes the walk respect ignore files.
	ignore bool
	// hideDot leaves out names with a leading dot that the pattern does not name.
	hideDot bool
	// file is called for each entry that matches and is no directory, from
	// several goroutines. rel is the path below the root, with slashes.
	file func(path, rel string, d fs.DirEntry)

	wg   sync.WaitGroup
	busy chan struct{}
}

// A place is a directory on the way.
type place struct {
	path   string
	rel    string
	cursor glob.Cursor
	rules  rules
}

// run walks the tree below root and calls file for what matches the pattern.
// It returns when all calls have ended. Directories that cannot be read are
// passed over.
func (w *walk) run(root string, p *glob.Pattern) {
	w.busy = make(chan struct{}, 2*runtime.NumCPU())
	at := place{path: root, cursor: p.Root()}
	if w.ignore {
		at.rules = rulesAbove(root)
	}
	w.dir(at)
	w.wg.Wait()
}

func (w *walk) dir(at place) {
	if w.ctx.Err() != nil {
		return
	}
	entries, err := readDir(at.path)
	if err != nil {
		return
	}
	if w.ignore {
		at.rules = at.rules.enter(at.path, entries)
	}
	for _, d := range entries {
		w.entry(&at, d)
	}
}

// readDir lists a directory in the order of the disk: sorting would be wasted.
func readDir(path string) ([]fs.DirEntry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

// control are the directories that version control systems keep their data
// in. They are searched only where the pattern names them.
var control = map[string]bool{".git": true, ".svn": true, ".hg": true, ".bzr": true, ".jj": true, ".sl": true}

func (w *walk) entry(at *place, d fs.DirEntry) {
	name := d.Name()
	named := name[0] == '.' && at.cursor.Names(name)
	if w.hideDot && name[0] == '.' && !named {
		return
	}
	next := at.cursor.Step(name)
	if next.Dead() {
		return
	}
	isDir := d.IsDir()
	if !isDir && !next.Match() || isDir && !next.Deeper() || control[name] && !named {
		return
	}
	path := filepath.Join(at.path, name)
	if w.ignore && at.rules.ignored(path, isDir) || w.deny(path) {
		return
	}
	rel := name
	if at.rel != "" {
		rel = at.rel + "/" + name
	}
	if !isDir {
		w.file(path, rel, d)
		return
	}
	below := place{path: path, rel: rel, cursor: next, rules: at.rules}
	select {
	case w.busy <- struct{}{}:
		w.wg.Go(func() {
			w.dir(below)
			<-w.busy
		})
	default:
		w.dir(below) // all hands are busy
	}
}

// rules are the ignore files in force in a directory, in the order in which
// they count. Their paths are absolute ones without the leading slash.
// compat: the files and their precedence are ripgrep's.
type rules struct {
	rg, dot, git *gitignore.Scope
	repo         bool // inside a work tree of git: .gitignore counts
}

// rulesAbove returns what the directories above root say.
func rulesAbove(root string) (r rules) {
	var above []string
	for dir := filepath.Dir(root); ; dir = filepath.Dir(dir) {
		above = append(above, dir)
		if dir == filepath.Dir(dir) {
			break
		}
	}
	for i := len(above) - 1; i >= 0; i-- {
		r = r.enterNamed(above[i], func(name string) bool {
			_, err := os.Lstat(filepath.Join(above[i], name))
			return err == nil
		})
	}
	return r
}

func (r rules) enter(dir string, entries []fs.DirEntry) rules {
	var found [4]string
	names := found[:0]
	for _, d := range entries {
		switch n := d.Name(); n {
		case ".git", gitignore.FileName, ".ignore", ".rgignore":
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return r
	}
	return r.enterNamed(dir, func(name string) bool {
		for _, n := range names {
			if n == name {
				return true
			}
		}
		return false
	})
}

func (r rules) enterNamed(dir string, has func(name string) bool) rules {
	if has(".git") {
		// A work tree of its own: what is above it does not count.
		r.repo, r.git = true, (*gitignore.Scope)(nil).Enter(readList(dir, ".git/info/exclude"))
	}
	if r.repo && has(gitignore.FileName) {
		r.git = r.git.Enter(readList(dir, gitignore.FileName))
	}
	if has(".ignore") {
		r.dot = r.dot.Enter(readList(dir, ".ignore"))
	}
	if has(".rgignore") {
		r.rg = r.rg.Enter(readList(dir, ".rgignore"))
	}
	return r
}

func readList(dir, name string) *gitignore.List {
	path := filepath.Join(dir, name)
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return gitignore.Parse(slashed(dir), data)
}

func slashed(path string) string { return strings.TrimPrefix(filepath.ToSlash(path), "/") }

func (r *rules) ignored(path string, isDir bool) bool {
	if r.rg == nil && r.dot == nil && r.git == nil {
		return false
	}
	name := slashed(path)
	for _, s := range []*gitignore.Scope{r.rg, r.dot, r.git} {
		if v := s.Match(name, isDir); v != gitignore.None {
			return v == gitignore.Ignore
		}
	}
	return false
}
