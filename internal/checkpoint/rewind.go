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
	at, order, err := s.since(r.To)
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
	slices.SortStableFunc(order, func(a, b string) int {
		return cmp.Compare(kindOrder(at[a].state), kindOrder(at[b].state))
	})
	for _, path := range order {
		want := at[path]
		if want.who == Shell && !r.Shell {
			rep.Shell = append(rep.Shell, path)
			continue
		}
		s.one(&rep, r, path, want)
	}
	slices.SortFunc(rep.Changes, func(a, b Change) int { return cmp.Compare(place[a.Path], place[b.Path]) })
	slices.SortFunc(rep.Kept, func(a, b Kept) int { return cmp.Compare(place[a.Path], place[b.Path]) })
	slices.SortFunc(rep.Links, func(a, b string) int { return cmp.Compare(place[a], place[b]) })
	slices.SortFunc(rep.Shell, func(a, b string) int { return cmp.Compare(place[a], place[b]) })
	return rep, nil
}

func kindOrder(s state) int {
	if s.Kind == "absent" {
		return 0
	}
	return 1
}

// one takes path back to want, or says in rep why not.
func (s *Store) one(rep *Report, r Rewind, path string, want saved) {
	keep := func(why string) { rep.Kept = append(rep.Kept, Kept{path, why}) }
	now, err := look(path)
	if err != nil {
		keep(err.Error())
		return
	}
	switch {
	case now.same(want.state):
		return
	case want.state.Kind == "link", now.Kind == "link":
		rep.Links = append(rep.Links, path)
		return
	case want.state.Kind == "other":
		keep("it was not saved: " + want.state.Why)
		return
	case now.Kind == "other":
		if now.Why == "it is a hard link" {
			rep.Links = append(rep.Links, path)
			return
		}
		keep("something else stands there now: " + now.Why)
		return
	}
	if ours, ok := s.after[path]; !r.Force && !(ok && ours.same(now)) {
		keep("it was changed by somebody else since")
		return
	}
	if real := realDir(path); real != "" && want.dir != "" && real != want.dir {
		// A directory on the way is a link now, or another one: what lies
		// behind it is not what was saved.
		rep.Links = append(rep.Links, path)
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
	case want.state.Kind == "absent":
		c.How = "deleted"
	case now.Kind == "absent":
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
		if err := s.write(record{Type: "before", Path: path, Dir: realDir(path), Who: Undo, State: &now}); err != nil {
			return err
		}
	}
	if st.Kind == "absent" {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
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
