package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// dir is where the next command of that agent starts.
func (b *bash) dir(agent string) string {
	switch {
	case agent != "" && b.o.AgentDir != nil:
		if d := b.o.AgentDir(agent); d != "" {
			return d
		}
	case b.o.Stay:
		return b.o.Root
	}
	if b.o.Cwd != nil {
		return b.o.Cwd()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cwd != "" {
		return b.cwd
	}
	return b.o.Root
}

func (b *bash) setDir(dir string) {
	if b.o.Chdir != nil {
		b.o.Chdir(dir)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cwd = dir
}

// startDir is dir if it exists. If it does not, gone says so: a command
// written for one place must not run in another, so the next one starts in
// the nearest place that is left.
func (b *bash) startDir(agent string) (dir, gone string) {
	dir = b.dir(agent)
	if isDir(dir) {
		return dir, ""
	}
	to := b.o.Root
	for !isDir(to) && to != filepath.Dir(to) {
		to = filepath.Dir(to)
	}
	gone = fmt.Sprintf("The working directory %s no longer exists, so the command was not run.", dir)
	if agent != "" && b.o.AgentDir != nil {
		return dir, gone + "\nStart over from a directory that exists."
	}
	b.setDir(to)
	return dir, gone + "\nShell cwd was reset to " + to + "\nRun the command again if it fits there."
}

func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}

// settleDir takes over the directory r's shell ended in, or says that the
// next command does not start there.
func (b *bash) settleDir(agent string, r *run) (note string) {
	data, err := os.ReadFile(r.cwdPath)
	if err != nil {
		return "" // the shell was replaced or killed before it could tell
	}
	to := strings.TrimSuffix(string(data), "\n")
	if to == "" || to == r.dir || to == physical(r.dir) {
		return ""
	}
	if agent == "" && !b.o.Stay && isDir(to) {
		for _, root := range b.dirs() {
			if inside(to, root) {
				b.setDir(to)
				return ""
			}
			// Keep the name the person knows the project by.
			if real := physical(root); inside(to, real) {
				b.setDir(filepath.Join(root, strings.TrimPrefix(to, real)))
				return ""
			}
		}
	}
	back := r.dir
	if agent == "" {
		back = b.o.Root
		b.setDir(back)
	}
	return "Shell cwd was reset to " + back
}

// dirs are the directories a command may leave the shell in.
func (b *bash) dirs() []string {
	dirs := []string{b.o.Root}
	if b.o.Dirs != nil {
		dirs = append(dirs, b.o.Dirs()...)
	}
	return dirs
}

// physical is path with its links resolved, or path.
func physical(path string) string {
	if p, err := filepath.EvalSymlinks(path); err == nil {
		return p
	}
	return path
}
