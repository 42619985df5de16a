package checkpoint

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A history is a generated repository and what happened to it: prompts, the
// changes of tools and commands after each, and, if others is set, changes by
// a person in between.
type history struct {
	*rand.Rand
	t      *testing.T
	ws     string
	dir    string // of the store
	s      *Store
	others bool
	count  int // of contents, each one of its own
	points []string
	trees  []map[string]string
	story  []string
	linked bool // there are, or were, hard links, which hinder
}

// run runs a script in the repository.
func (h *history) run(script string) {
	h.t.Helper()
	c := exec.Command("bash", "-c", script)
	c.Dir = h.ws
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always")
	if out, err := c.CombinedOutput(); err != nil {
		h.t.Fatalf("%v\n%s\n%s", err, script, out)
	}
}

// log keeps what happened, for a test that fails.
func (h *history) log(format string, args ...any) {
	h.story = append(h.story, fmt.Sprintf(format, args...))
}

// tell shows what happened, if the test has failed.
func (h *history) tell() {
	if h.t.Failed() {
		h.t.Logf("%s", strings.Join(h.story, "\n"))
	}
}

func (h *history) content() string {
	h.count++
	switch h.IntN(5) {
	case 0:
		return fmt.Sprintf("binary %d \x00\xff\xfe\x01", h.count)
	case 1:
		return fmt.Sprintf("no newline %d", h.count)
	case 2:
		return strings.Repeat(fmt.Sprintf("line %d\n", h.count), 50+h.IntN(200))
	}
	return fmt.Sprintf("text %d\n", h.count)
}

// fresh is a path at which nothing stands, nor a file on the way to it.
func (h *history) fresh() string {
	dirs := []string{"", "", "src", "src/deep/er", "build", "docs", "a dir", "src/.hidden"}
	names := []string{"main.go", "x.log", "pic.png", "run.sh", "with space", "quo'te", "ünïcode", "-dash", "new\nline", "core"}
	for {
		p := filepath.Join(dirs[h.IntN(len(dirs))], fmt.Sprint(h.IntN(40), names[h.IntN(len(names))]))
		if _, err := os.Lstat(filepath.Join(h.ws, p)); err == nil {
			continue
		}
		if dir, err := os.Stat(filepath.Join(h.ws, filepath.Dir(p))); err == nil && !dir.IsDir() {
			continue
		}
		return p
	}
}

// tree is what the repository holds, git directories and the directories
// themselves left out.
func (h *history) tree() map[string]string {
	out := map[string]string{}
	err := filepath.WalkDir(h.ws, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if e.Name() == ".git" {
				return filepath.SkipDir
			}
			return nil
		}
		rel, _ := filepath.Rel(h.ws, p)
		fi, err := e.Info()
		if err != nil {
			return err
		}
		if e.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(p)
			out[rel] = "-> " + target
			return err
		}
		data, err := os.ReadFile(p)
		out[rel] = fmt.Sprintf("%v %q", fi.Mode(), data)
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return out
}

// file is one of the files that are there: a regular one, and not one that a
// person's words are in if mine is set; "" if there is none.
func (h *history) file(mine bool) string {
	var list []string
	for p, text := range h.tree() {
		if !strings.HasPrefix(text, "->") && filepath.Base(p) != ".git" && !(mine && strings.Contains(text, "person")) {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return ""
	}
	slices.Sort(list)
	return list[h.IntN(len(list))]
}

// build makes the repository: plain, or a linked worktree, or one with a
// submodule, or no repository at all.
func (h *history) build() {
	for range 8 + h.IntN(12) {
		p := filepath.Join(h.ws, h.fresh())
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			h.t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(h.content()), []fs.FileMode{0o644, 0o644, 0o755, 0o600, 0o444}[h.IntN(5)]); err != nil {
			h.t.Fatal(err)
		}
	}
	h.run("echo '*.log' > .gitignore; echo build/ >> .gitignore; ln -s src link-to-dir; ln -s nowhere dangling; ln -s /etc/hostname outside; ln -s .gitignore link-to-file; mkdir -p empty/dirs")
	git := "git init -q . && git add -A && git commit -qm one; "
	switch h.IntN(4) {
	case 0:
		h.run(git)
	case 1: // the workspace is a linked worktree
		h.run("git init -q ../main && (cd ../main && git commit -q --allow-empty -m one && git worktree add -q --detach ../tree) && mv ../tree/.git . && git add -A && git commit -qm two")
	case 2: // it has a submodule, and a worktree of itself inside
		h.run("git init -q ../sub && (cd ../sub && echo s > s && git add s && git commit -qm s) && " + git + "git submodule --quiet add ../sub sub && git commit -qm sub && git worktree add -q --detach wt")
	}
}

// tool changes a file the way a tool does.
func (h *history) tool() {
	p := h.fresh()
	if h.IntN(3) > 0 {
		f := h.file(false)
		if st, err := look(filepath.Join(h.ws, f)); err == nil && st.Kind == "file" { // no hard link
			p = f
		}
	}
	path := filepath.Join(h.ws, p)
	text := h.content()
	if old, err := os.ReadFile(path); err == nil {
		text = string(old) + text // what is there is edited, not lost
	}
	h.log("tool %q", p)
	if err := h.s.Before(path, Tool); err != nil {
		h.t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		h.t.Fatal(err)
	}
	if fi, err := os.Stat(path); err == nil {
		_ = os.Chmod(path, fi.Mode()|0o200)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
	if err := h.s.After(path); err != nil {
		h.t.Fatal(err)
	}
}

// at is the absolute path of p.
func (h *history) at(p string) string { return filepath.Join(h.ws, p) }

// put writes text to p, whatever it takes, as a command would: into the same
// file if there is one. It may fail like one.
func (h *history) put(p, text string, flag int) {
	_ = os.MkdirAll(filepath.Dir(h.at(p)), 0o777)
	f, err := os.OpenFile(h.at(p), os.O_WRONLY|os.O_CREATE|flag, 0o666)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.WriteString(text)
}

// theirs reports whether a person's words are below p.
func (h *history) theirs(p string) bool {
	for name, text := range h.tree() {
		if (name == p || within(name, p)) && strings.Contains(text, "person") {
			return true
		}
	}
	return false
}

// script does what a command does. What fails is as good a case as any.
func (h *history) script() {
	for range 1 + h.IntN(4) {
		f, to := h.file(true), h.fresh()
		if f == "" {
			f = to
		}
		data, _ := os.ReadFile(h.at(f))
		op := h.IntN(17)
		h.log("command %d %q %q", op, f, to)
		switch op {
		case 0, 1:
			h.put(to, h.content(), os.O_TRUNC)
		case 2:
			h.put(f, h.content(), os.O_APPEND)
		case 3:
			_ = os.Remove(h.at(f))
		case 4:
			_ = os.MkdirAll(filepath.Dir(h.at(to)), 0o777)
			_ = os.Rename(h.at(f), h.at(to))
		case 5:
			_ = os.Chmod(h.at(f), []fs.FileMode{0o755, 0o600, 0o444, 0o640}[h.IntN(4)])
		case 6:
			h.put(to, string(data), os.O_TRUNC)
		case 7:
			if !h.theirs("src") {
				_ = os.RemoveAll(h.at("src"))
			}
		case 8: // a directory where a file was
			_ = os.Remove(h.at(f))
			h.put(f+"/inside", "in", os.O_TRUNC)
		case 9: // a file where a directory was
			if fi, err := os.Stat(h.at("build")); err == nil && fi.IsDir() && !h.theirs("build") {
				_ = os.RemoveAll(h.at("build"))
				h.put("build", "file", 0)
			}
		case 10:
			_ = os.Symlink(f, h.at(to))
		case 11:
			_ = os.Remove(h.at("dangling"))
			_ = os.Remove(h.at("link-to-dir"))
			_ = os.Symlink("docs", h.at("link-to-dir"))
		case 12:
			h.run("git add -A && git commit -qm more || true")
		case 13: // the same content once more
			h.put(f, string(data), os.O_TRUNC)
			h.put("bin.dat", "\x00\x01", os.O_TRUNC)
			_ = os.MkdirAll(h.at("empty/more"), 0o777)
		case 14:
			h.linked = true
			_ = os.Link(h.at(f), h.at(fmt.Sprint("hard-", h.IntN(100))))
			h.put(to, strings.Repeat("\x00", 3), 0)
		case 15:
			_ = os.RemoveAll(h.at("a dir"))
			h.put("node_modules/m/i.js", "x", os.O_TRUNC)
		case 16: // the same size within a tick of the clock
			if n := len(data); n > 0 {
				h.put(f, strings.Repeat(string(rune('a'+h.IntN(26))), n), 0)
			}
		}
	}
}

// command runs a command, sometimes while another is under way.
func (h *history) command() {
	first := h.snap()
	if h.IntN(4) == 0 {
		second := h.snap()
		h.script()
		if h.IntN(2) == 0 {
			h.tool()
		}
		h.settle(second)
	}
	h.script()
	h.settle(first)
}

func (h *history) snap() *Snapshot {
	n, err := h.s.Snap([]string{h.ws})
	if err != nil {
		h.t.Fatal(err)
	}
	if i := slices.IndexFunc(n.Left, func(k Kept) bool { return k.Why != hardLink }); i >= 0 {
		h.t.Fatalf("not kept: %v", n.Left[i])
	}
	return n
}

func (h *history) settle(n *Snapshot) {
	if _, err := n.Settle(); err != nil {
		h.t.Fatal(err)
	}
}

// person changes a file, with words that are in no other.
func (h *history) person() {
	f := h.file(false)
	if f == "" {
		return
	}
	h.log("person %q", f)
	path := h.at(f)
	w, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	h.count++
	fmt.Fprintf(w, "person %d.\n", h.count)
	if err := w.Close(); err != nil {
		h.t.Fatal(err)
	}
}

func (h *history) reopen() {
	if h.s != nil {
		h.s.Close()
	}
	s, err := Open(h.dir)
	if err != nil {
		h.t.Fatal(err)
	}
	h.s = s
}

func (h *history) live() {
	for i := range 3 + h.IntN(3) {
		id := fmt.Sprint("p", i)
		h.log("prompt %s", id)
		h.points, h.trees = append(h.points, id), append(h.trees, h.tree())
		if err := h.s.Begin(id, ""); err != nil {
			h.t.Fatal(err)
		}
		for range 1 + h.IntN(4) {
			switch n := h.IntN(8); {
			case n < 3:
				h.tool()
			case n < 7:
				h.command()
			default:
				h.reopen()
			}
			if h.others && h.IntN(2) == 0 {
				h.person()
			}
		}
	}
}

func newHistory(t *testing.T, seed uint64, others bool) *history {
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("git is not installed")
		}
		t.Skip("git is not installed")
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &history{Rand: rand.New(rand.NewPCG(seed, 7)), t: t, ws: filepath.Join(base, "ws"), dir: filepath.Join(base, "store"), others: others}
	if err := os.Mkdir(h.ws, 0o777); err != nil {
		t.Fatal(err)
	}
	h.build()
	h.reopen()
	t.Cleanup(func() { h.s.Close(); h.tell() })
	h.live()
	return h
}

func (h *Store) must(t *testing.T, r Rewind) Report {
	t.Helper()
	rep, err := h.Rewind(r)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// less is tree without what a report names as left alone.
func (h *history) less(tree map[string]string, rep Report) map[string]string {
	tree = maps.Clone(tree)
	left := rep.Links
	for _, k := range rep.Kept {
		left = append(left, k.Path)
	}
	for _, l := range left {
		rel, _ := filepath.Rel(h.ws, l)
		delete(tree, rel)
	}
	return tree
}

// In generated repositories, with ignored files, binaries, modes, links,
// submodules and worktrees, going back to any prompt gives the files of then,
// links that are named excepted; and going back is itself undone.
func TestUndoGenerated(t *testing.T) {
	t.Parallel()
	for seed := range uint64(24) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			h := newHistory(t, seed, false)
			now := h.tree()
			i := h.IntN(len(h.points))
			dry := h.s.must(t, Rewind{To: h.points[i], Shell: true, Dry: true, Undo: "u"})
			if d := cmp.Diff(now, h.tree()); d != "" {
				t.Fatalf("a dry run changed something:\n%s", d)
			}
			rep := h.s.must(t, Rewind{To: h.points[i], Shell: true, Undo: "u"})
			if d := cmp.Diff(dry, rep); d != "" {
				t.Errorf("the dry run said something else:\n%s", d)
			}
			for _, k := range rep.Kept {
				if !h.linked || strings.Contains(k.Why, "somebody") {
					t.Errorf("kept: %v", k)
				}
			}
			if d := cmp.Diff(h.less(h.trees[i], rep), h.less(h.tree(), rep)); d != "" {
				t.Errorf("to %s (-then +restored):\n%s", h.points[i], d)
			}
			h.reopen()
			back := h.s.must(t, Rewind{To: "u", Shell: true, Undo: "v"})
			if d := cmp.Diff(now, h.tree()); d != "" {
				t.Errorf("undone (-before +after): %v\n%s", back, d)
			}
		})
	}
}

// What a person has written in between is still there, whatever goes back,
// and the file is named; all of it can be undone.
func TestUndoKeepsWhatOthersWrote(t *testing.T) {
	t.Parallel()
	for seed := range uint64(16) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			h := newHistory(t, 100+seed, true)
			now := h.tree()
			rep := h.s.must(t, Rewind{To: h.points[h.IntN(len(h.points))], Shell: true, Undo: "u"})
			after := strings.Join(slices.Collect(maps.Values(h.tree())), "\n")
			for p, text := range now {
				for i := range h.count + 1 {
					word := fmt.Sprintf("person %d.", i)
					if strings.Contains(text, word) && !strings.Contains(after, word) {
						t.Errorf("%q, written into %s, is gone; kept %v", word, p, rep.Kept)
					}
				}
			}
			h.s.must(t, Rewind{To: "u", Shell: true, Force: true})
			if d := cmp.Diff(now, h.tree()); d != "" {
				t.Errorf("undone (-before +after):\n%s", d)
			}
		})
	}
}
