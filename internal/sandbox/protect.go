package sandbox

import (
	"os"
	"path/filepath"
	"slices"
)

// names below a project directory, or one above it, that steer this program.
var steering = [...]string{
	".claude/settings.json", ".claude/settings.local.json", ".claude/skills", ".claude/agents", ".claude/commands",
	".claude/hooks", ".claude/workflows", ".claude/scheduled_tasks.json", ".mcp.json",
}

// names in a directory that other programs run or obey.
var obeyed = [...]string{
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zprofile", ".zshenv", ".zlogin",
	".gitconfig", ".gitmodules", ".ripgreprc", ".vscode", ".idea",
}

// in a git directory: what git runs, and what says where it looks.
var gitOwn = [...]string{"hooks", "config", "config.worktree", "commondir", "gitdir"}

// protected lists the paths that nobody may write from inside, and adds to p
// the git directories of the project, which lie elsewhere for a worktree.
func protected(o Options, r Rules, p *planner) []string {
	var out []string
	add := func(dir string, names []string) {
		for _, n := range names {
			out = append(out, filepath.Join(dir, n))
		}
	}
	dirs := slices.Clone(p.write)
	if root, ok := real(r.Root); ok {
		for d := root; ; d = filepath.Dir(d) {
			if !slices.Contains(dirs, d) {
				dirs = append(dirs, d)
			}
			if d == filepath.Dir(d) {
				break
			}
		}
	}
	scratch, _ := real(r.Scratch)
	for _, d := range dirs {
		if d == scratch || p.covers(d) == "" {
			continue // nothing there can be written, or nobody looks there
		}
		add(d, steering[:])
		add(d, obeyed[:])
		if isBare(d) {
			add(d, gitOwn[:])
		} else {
			out = append(out, bareMark(d)...)
		}
		for _, g := range gitDirs(d) {
			out = append(out, g.own...)
			for _, w := range g.grant {
				if p.covers(w) == "" {
					p.root(w, r.DenyWrite)
				}
			}
		}
	}
	if o.Home != "" {
		add(o.Home, obeyed[:])
		out = append(out, filepath.Join(o.Home, ".ssh"), filepath.Join(o.Home, ".config", "git"))
	}
	for _, f := range []string{o.Config, o.State} {
		if f != "" {
			out = append(out, f)
		}
	}
	return out
}

// isBare reports whether dir itself looks like a git directory to git.
func isBare(dir string) bool {
	return isFile(filepath.Join(dir, "HEAD")) && isDir(filepath.Join(dir, "objects")) && isDir(filepath.Join(dir, "refs"))
}

// bareMark is the one file without which dir is no git directory; it must not
// appear where it is not.
func bareMark(dir string) []string {
	if head := filepath.Join(dir, "HEAD"); !exists(head) {
		return []string{head}
	}
	return nil
}

func isDir(path string) bool  { fi, err := os.Stat(path); return err == nil && fi.IsDir() }
func isFile(path string) bool { fi, err := os.Stat(path); return err == nil && fi.Mode().IsRegular() }
func exists(path string) bool { _, err := os.Lstat(path); return err == nil }
