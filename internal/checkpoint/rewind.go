package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/lib/atomicfile"
	"github.com/seed-eb844fcb/cinch/internal/lib/textdiff"
)

// Rewind says what to go back to.
type Rewind struct {
	To string // id of the checkpoint
	// Shell takes back what commands changed, too.
	Shell bool
	// Force overwrites what somebody else has changed since.
	Force bool
	// Dry only says what would be done.
	Dry bool
	// Undo is the id under which the restore itself can be taken back; "" for none.
	Undo string
}

// A Kept is a file that was left as it is, and why.
type Kept struct{ Path, Why string }

// A Change is one file that goes, or went, back.
type Change struct {
	Path                  string
	How                   string // restored, deleted, created, mode
	By                    Who
	Insertions, Deletions int // of lines, by going back
}

// A Report is what a Rewind did, or would do.
type Report struct {
	Changes []Change
	Kept    []Kept // changed since by somebody else, or not restorable
	Links   []string
	// Gaps are changes since that nothing can be done about, in words.
	Gaps []string
	// Shell lists files that commands changed and that stay, because Shell
	// was not asked for.
	Shell []string
}

// Rewind puts files back as they were at a checkpoint. A file that cannot be
// restored is named in the report and hinders no other. The error says that
// nothing was done.
func (s *Store) Rewind(r Rewind) (Report, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rep Report
	at, order, words, err := s.since(r.To)
	if err != nil {
		return rep, err
	}
	if !r.Dry && r.Undo != "" {
		if err := s.write(record{Type: "point", ID: r.Undo, Label: "before going back"}); err != nil {
			return rep, fmt.Errorf("nothing was restored: %w", err)
		}
	}
	// What was not there goes first: it may stand where a directory was.
	place := make(map[string]int, len(order))
	for i, path := range order {
		place[path] = i
	}
	// And what is in a directory goes before what stands where it stands.
	slices.SortStableFunc(order, func(a, b string) int {
		if c := cmp.Compare(kindOrder(at[a].state), kindOrder(at[b].state)); c != 0 || !at[a].state.gone() {
			return c
		}
		return cmp.Compare(strings.Count(b, string(filepath.Separator)), strings.Count(a, string(filepath.Separator)))
	})
	for _, path := range order {
		want := at[path]
		if want.who == Shell && !r.Shell {
			rep.Shell = append(rep.Shell, path)
			continue
		}
		s.one(&rep, r, path, want, words)
	}
	for _, p := range s.points[slices.IndexFunc(s.points, func(p *point) bool { return p.id == r.To }):] {
		for _, g := range p.gaps {
			if !slices.Contains(rep.Gaps, g) {
				rep.Gaps = append(rep.Gaps, g)
			}
		}
	}
	slices.SortFunc(rep.Changes, func(a, b Change) int { return cmp.Compare(place[a.Path], place[b.Path]) })
	slices.SortFunc(rep.Kept, func(a, b Kept) int { return cmp.Compare(place[a.Path], place[b.Path]) })
	slices.SortFunc(rep.Links, func(a, b string) int { return cmp.Compare(place[a], place[b]) })
	slices.SortFunc(rep.Shell, func(a, b string) int { return cmp.Compare(place[a], place[b]) })
	return rep, nil
}

func kindOrder(s state) int {
	if s.gone() {
		return 0
	}
	return 1
}

// one takes path back to want, or says in rep why not.
func (s *Store) one(rep *Report, r Rewind, path string, want saved, words map[string]string) {
	keep := func(why string) { rep.Kept = append(rep.Kept, Kept{path, why}) }
	now, err := look(path)
	if err != nil {
		keep(err.Error())
		return
	}
	switch {
	case now.same(want.state), now.gone() && want.state.gone() && (now.Kind == "absent" || empties(path, rep.Changes)):
		return
	case want.state.Kind == "link", now.Kind == "link":
		rep.Links = append(rep.Links, path)
		return
	case want.state.Kind == "other":
		keep("it was not saved: " + want.state.Why)
		return
	case now.Kind == "other":
		if now.Why == hardLink {
			rep.Links = append(rep.Links, path)
			return
		}
		keep("something else stands there now: " + now.Why)
		return
	}
	if want.theirs && !r.Force {
		keep("somebody else changed it between our changes")
		return
	}
	// Of a directory only what is in it counts, which has paths of its own.
	if ours, ok := s.after[path]; !r.Force && now.Kind != "dir" && !(ok && (ours.same(now) || ours.gone() && now.gone())) {
		keep("it was changed by somebody else since")
		return
	}
	// It may have been moved here.
	if from, ok := words[now.Sum]; ok && now.Kind == "file" && !r.Force {
		keep("it holds what somebody else wrote into " + from)
		return
	}
	if real := realDir(path); real != "" && want.dir != "" && real != want.dir {
		// A directory on the way is a link now, or another one: what lies
		// behind it is not what was saved.
		rep.Links = append(rep.Links, path)
		return
	}
	if now.Kind == "dir" && !empties(path, rep.Changes) {
		keep("a directory with other files stands there now")
		return
	}
	if in := obstacle(path, rep.Changes); in != "" && want.state.Kind == "file" {
		keep(in + " stands where its directory was")
		return
	}
	c := Change{Path: path, By: want.who}
	var data, old []byte
	if now.Kind == "file" {
		if old, err = os.ReadFile(path); err != nil {
			keep(err.Error())
			return
		}
	}
	if want.state.Kind == "file" {
		if data, err = s.content(want.state.Sum); err != nil {
			keep("its content is no longer there: " + err.Error())
			return
		}
	}
	c.Insertions, c.Deletions = lines(string(old), string(data))
	switch {
	case want.state.gone():
		c.How = "deleted"
	case now.Kind == "absent", now.Kind == "dir":
		c.How = "created"
	case now.Sum == want.state.Sum:
		c.How = "mode"
	default:
		c.How = "restored"
	}
	if !r.Dry {
		if err := s.put1(r, path, want.state, data); err != nil {
			keep(err.Error())
			return
		}
	}
	rep.Changes = append(rep.Changes, c)
}

// put1 makes path be st with data, saving first what stands there.
func (s *Store) put1(r Rewind, path string, st state, data []byte) error {
	if r.Undo != "" {
		now, err := s.save(path)
		if err != nil {
			return err
		}
		ours, changed := s.after[path]
		if err := s.write(record{Type: "before", Path: path, Dir: realDir(path), Who: Undo, State: &now, Theirs: changed && !ours.same(now)}); err != nil {
			return err
		}
	}
	if err := removeDirs(path); err != nil {
		return err
	}
	if st.gone() {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if st.Kind == "dir" {
			if err := os.MkdirAll(path, 0o777); err != nil {
				return err
			}
		}
	} else {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := atomicfile.WriteFile(path, data, st.Mode.Perm()); err != nil {
			return err
		}
		if err := os.Chmod(path, st.Mode.Perm()); err != nil {
			return err
		}
	}
	st2, err := look(path)
	if err != nil {
		return err
	}
	return s.write(record{Type: "after", Path: path, State: &st2})
}

// empties reports whether nothing but directories is left below dir when done
// is done.
func empties(dir string, done []Change) bool {
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if deletes(done, path) {
			return nil
		}
		return fs.ErrExist
	})
	return err == nil
}

// obstacle is what keeps the directory of path from being made when done is
// done, or "".
func obstacle(path string, done []Change) string {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		fi, err := os.Stat(dir)
		switch {
		case err == nil && fi.IsDir(), dir == filepath.Dir(dir):
			return ""
		case err == nil && !deletes(done, dir):
			return dir
		}
	}
}

func deletes(done []Change, path string) bool {
	return slices.ContainsFunc(done, func(c Change) bool { return c.Path == path && c.How == "deleted" })
}

// removeDirs removes path if it is a directory that holds nothing but
// directories, and does nothing if it is none.
func removeDirs(path string) error {
	fi, err := os.Lstat(path)
	if err != nil || !fi.IsDir() {
		return nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeDirs(filepath.Join(path, e.Name())); err != nil {
				return err
			}
		}
	}
	return os.Remove(path) // fails if a file is left
}

// realDir is the directory of path with all links resolved; "" if it is not there.
func realDir(path string) string {
	real, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return ""
	}
	return real
}

// lines counts the lines that come and go between two texts; binary ones
// count as none.
func lines(before, after string) (ins, del int) {
	if strings.ContainsRune(before, 0) || strings.ContainsRune(after, 0) {
		return 0, 0
	}
	for _, h := range textdiff.Hunks(before, after, 0) {
		for _, l := range h.Lines {
			switch l[0] {
			case '+':
				ins++
			case '-':
				del++
			}
		}
	}
	return ins, del
}
