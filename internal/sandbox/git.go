package sandbox

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
)

// A gitDir is one git directory that work in a directory needs.
type gitDir struct {
	grant []string // to be written
	own   []string // not to be written
}

// maxGitDirs bounds how many worktrees and submodules are looked at.
const maxGitDirs = 500

// gitDirs finds the repository whose top is dir. A .git that is a file leads
// elsewhere, and is content of the tree like any other: what it names is
// granted only if that place names dir in turn, as git writes both ends of a
// worktree and of a submodule.
func gitDirs(dir string) []gitDir {
	dot := filepath.Join(dir, ".git")
	fi, err := os.Lstat(dot)
	if err != nil {
		// One that appears may bring anything with it.
		return []gitDir{{own: fresh(dot)}}
	}
	if fi.Mode()&os.ModeSymlink != 0 || fi.IsDir() {
		target, ok := real(dot)
		if !ok {
			return []gitDir{{own: []string{dot}}}
		}
		g := repository(target)
		if fi.Mode()&os.ModeSymlink != 0 {
			g.own = append(g.own, dot)
		}
		return []gitDir{g}
	}
	out := []gitDir{{own: []string{dot}}} // leads git elsewhere
	place, ok := pointer(dot, "gitdir: ", dir)
	if !ok {
		return out
	}
	common := place
	if c, ok := pointer(filepath.Join(place, "commondir"), "", place); ok {
		common = c
	}
	if !isFile(filepath.Join(place, "HEAD")) || !isDir(filepath.Join(common, "objects")) || !namesBack(place, common, dir, dot) {
		return out
	}
	g := repository(common)
	g.grant = []string{common}
	if !within(place, common) {
		g.grant = append(g.grant, place)
		for _, n := range gitOwn {
			g.own = append(g.own, filepath.Join(place, n))
		}
	}
	return append(out, g)
}

// fresh lists what must not be in a git directory that a command has made.
func fresh(dot string) []string {
	return []string{filepath.Join(dot, "hooks"), filepath.Join(dot, "config"), filepath.Join(dot, "commondir")}
}

// repository protects what steers git in common, its worktrees and its
// submodules.
func repository(common string) gitDir {
	var g gitDir
	add := func(dir string) {
		for _, n := range gitOwn {
			g.own = append(g.own, filepath.Join(dir, n))
		}
	}
	add(common)
	trees, _ := os.ReadDir(filepath.Join(common, "worktrees"))
	for i, t := range trees {
		if i >= maxGitDirs {
			break
		}
		add(filepath.Join(common, "worktrees", t.Name()))
	}
	seen := 0
	var modules func(dir string, depth int)
	modules = func(dir string, depth int) {
		list, _ := os.ReadDir(dir)
		for _, e := range list {
			if seen++; seen > maxGitDirs || depth > 6 || !e.IsDir() {
				continue
			}
			sub := filepath.Join(dir, e.Name())
			if isFile(filepath.Join(sub, "HEAD")) {
				add(sub)
				modules(filepath.Join(sub, "modules"), depth+1)
				continue
			}
			modules(sub, depth+1) // names of submodules may hold slashes
		}
	}
	modules(filepath.Join(common, "modules"), 0)
	return g
}

// namesBack reports whether the git directory place belongs to dir by its own
// account: the worktree's gitdir file names dot, or the submodule's config
// names dir.
func namesBack(place, common, dir, dot string) bool {
	if place != common {
		back, ok := pointer(filepath.Join(place, "gitdir"), "", place)
		want, ok2 := real(dot)
		return ok && ok2 && back == want && filepath.Dir(filepath.Dir(place)) == common
	}
	tree := worktreeOf(filepath.Join(place, "config"))
	if tree == "" {
		return false
	}
	if !filepath.IsAbs(tree) {
		tree = filepath.Join(place, tree)
	}
	got, ok := real(tree)
	want, ok2 := real(dir)
	return ok && ok2 && got == want
}

// worktreeOf reads core.worktree from a git config; it understands the form
// that git itself writes.
func worktreeOf(config string) string {
	f, err := os.Open(config)
	if err != nil {
		return ""
	}
	defer f.Close()
	core := false
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		line := strings.TrimSpace(sc.Text())
		if strings.HasPrefix(line, "[") {
			core = strings.EqualFold(line, "[core]")
			continue
		}
		k, v, ok := strings.Cut(line, "=")
		if core && ok && strings.EqualFold(strings.TrimSpace(k), "worktree") {
			return strings.Trim(strings.TrimSpace(v), `"`)
		}
	}
	return ""
}

// pointer reads a small file that holds a path after prefix, and resolves it
// from base.
func pointer(file, prefix, base string) (string, bool) {
	fi, err := os.Stat(file)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > 8192 {
		return "", false
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", false
	}
	text, ok := strings.CutPrefix(string(data), prefix)
	text = strings.TrimRight(text, "\r\n")
	if !ok || text == "" || strings.ContainsAny(text, "\n\x00") {
		return "", false
	}
	if !filepath.IsAbs(text) {
		text = filepath.Join(base, text)
	}
	return real(text)
}
