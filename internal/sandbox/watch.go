package sandbox

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/lib/procid"
)

// A watch is a protected place at which nothing can be mounted, since nothing
// is there, or a link is. A mount would need a file to stand on, and that file
// would be seen in the project while the command runs, and after it if we are
// killed. So the place is left alone, and what has appeared there when the
// command has ended is moved away.
type watch struct {
	Root string `json:"root"` // writable, and no link
	Path string `json:"path"` // below Root
	Link string `json:"link,omitempty"`
}

// Aside is the ending of the name that something gets which stood at a
// protected place.
const Aside = ".cinch-moved"

// sweep puts every watched place right and returns what it moved.
func sweep(list []watch) []string {
	var moved []string
	for _, w := range list {
		if at, ok := w.intruder(); ok {
			to := fmt.Sprintf("%s%s-%d", at, Aside, time.Now().UnixNano())
			if err := os.Rename(at, to); err != nil {
				if err = os.RemoveAll(at); err != nil {
					moved = append(moved, fmt.Sprintf("%s is protected, and what the command left there cannot be moved: %v", at, err))
					continue
				}
			}
			// What is moved shall not be run by accident either.
			if fi, err := os.Lstat(to); err == nil && fi.Mode().IsRegular() {
				_ = os.Chmod(to, 0o600)
			}
			moved = append(moved, fmt.Sprintf("%s is protected: what the command left there is now %s", at, to))
		}
		if w.Link != "" {
			if _, err := os.Lstat(w.Path); err != nil {
				_ = os.Symlink(w.Link, w.Path)
			}
		}
	}
	return moved
}

// intruder returns what has appeared on the way to w.Path. A link on the way
// that was not there before is the intruder itself: what lies behind it is
// somebody else's.
func (w watch) intruder() (path string, ok bool) {
	rest, ok := strings.CutPrefix(w.Path, w.Root+"/")
	if !ok {
		return "", false
	}
	at := w.Root
	names := strings.Split(rest, "/")
	for i, n := range names {
		at = filepath.Join(at, n)
		fi, err := os.Lstat(at)
		if err != nil {
			return "", false
		}
		link := fi.Mode()&os.ModeSymlink != 0
		if i < len(names)-1 {
			if link {
				return at, true
			}
			continue
		}
		if w.Link != "" && link {
			target, err := os.Readlink(at)
			return at, err != nil || target != w.Link
		}
	}
	return at, !harmless(at)
}

// harmless reports whether something at a protected place may stay: what git
// itself makes in a new repository, and a file named HEAD that makes none.
func harmless(path string) bool {
	switch dir := filepath.Dir(path); filepath.Base(path) {
	case "HEAD":
		return !isBare(dir)
	case "hooks":
		if filepath.Base(dir) != ".git" {
			return false
		}
		list, err := os.ReadDir(path)
		if err != nil {
			return false
		}
		for _, e := range list {
			if !e.Type().IsRegular() || !strings.HasSuffix(e.Name(), ".sample") {
				return false
			}
		}
		return true
	case "config":
		return filepath.Base(dir) == ".git" && plainGitConfig(path)
	}
	return false
}

// plainGitConfig reports whether a git config holds nothing but what init and
// clone write, none of which runs a program.
func plainGitConfig(path string) bool {
	fi, err := os.Lstat(path)
	if err != nil || !fi.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	section := ""
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		line := strings.TrimSpace(sc.Text())
		if line == "" {
			continue
		}
		if strings.HasSuffix(line, "\\") {
			return false
		}
		if strings.HasPrefix(line, "[") {
			section, _, _ = strings.Cut(strings.Trim(strings.ToLower(line), "[]"), " ")
			if strings.Contains(strings.Trim(line, "[]"), "]") {
				return false // a key on the section's own line
			}
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		key, value = section+"."+strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		switch key {
		case "core.repositoryformatversion", "core.filemode", "core.bare", "core.logallrefupdates", "core.ignorecase", "core.precomposeunicode",
			"remote.fetch", "branch.remote", "branch.merge", "extensions.objectformat", "extensions.refstorage":
		case "remote.url":
			if strings.Contains(value, "::") || strings.HasPrefix(value, "-") {
				return false // names a helper program
			}
		default:
			return false
		}
	}
	return sc.Err() == nil
}

// A note is what is on disk about a command under way.
type note struct {
	Owner   procid.ID `json:"owner"`
	Watched []watch   `json:"watched"`
}

// noteDown writes down what is to be swept should we not live to do it. The
// function it returns removes the note.
func (b *Box) noteDown(list []watch) (func(), error) {
	if b.o.Journal == "" || len(list) == 0 {
		return func() {}, nil
	}
	if err := os.MkdirAll(b.o.Journal, 0o700); err != nil {
		return nil, errDo("making the sandbox's journal", err)
	}
	self := procid.Self()
	data, err := json.Marshal(note{self, list})
	if err != nil {
		return nil, err
	}
	name := filepath.Join(b.o.Journal, fmt.Sprintf("%d-%s-%d.json", self.PID, self.Start, b.seq.Add(1)))
	if err := os.WriteFile(name, data, 0o600); err != nil {
		return nil, errDo("noting what a command must not leave behind", err)
	}
	return func() { _ = os.Remove(name) }, nil
}

// tidy sweeps up after programs that did not live to do it.
func tidy(journal string) []string {
	if journal == "" {
		return nil
	}
	var moved []string
	list, _ := os.ReadDir(journal)
	for _, e := range list {
		name := filepath.Join(journal, e.Name())
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		var n note
		if json.Unmarshal(data, &n) == nil {
			if n.Owner.Alive() {
				continue
			}
			moved = append(moved, sweep(n.Watched)...)
		}
		_ = os.Remove(name)
	}
	return moved
}
