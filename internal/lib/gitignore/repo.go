package gitignore

import (
	"io/fs"
	"path"
	"strings"
	"sync"
)

// FileName is the name of the ignore files that lie in a work tree.
const FileName = ".gitignore"

// A Repo answers for single paths of a work tree, directories above them
// included. It reads each ignore file once. It is safe for concurrent use.
type Repo struct {
	tree fs.FS
	root *Scope

	mu   sync.Mutex
	dirs map[string]dirState
}

type dirState struct {
	scope   *Scope
	ignored bool
}

// Open returns a Repo for the work tree in tree. lists come after the tree's
// own ignore files, the first before the second: info/exclude, then the
// user's. A file that cannot be read counts as empty.
func Open(tree fs.FS, lists ...*List) *Repo {
	r := &Repo{tree: tree, dirs: map[string]dirState{}}
	for i := len(lists) - 1; i >= 0; i-- {
		r.root = r.root.Enter(lists[i])
	}
	return r
}

// Ignored reports whether git would leave path out: because of the path
// itself, or because a directory above it is left out.
func (r *Repo) Ignored(name string, isDir bool) bool {
	name = strings.Trim(path.Clean("/"+name), "/")
	if name == "" {
		return false
	}
	d := r.dir(parent(name))
	return d.ignored || d.scope.Match(name, isDir) == Ignore
}

func parent(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i]
	}
	return ""
}

func (r *Repo) dir(name string) dirState {
	r.mu.Lock()
	d, ok := r.dirs[name]
	r.mu.Unlock()
	if ok {
		return d
	}
	up := dirState{scope: r.root}
	if name != "" {
		up = r.dir(parent(name))
	}
	d = up
	if name != "" && !d.ignored {
		d.ignored = up.scope.Match(name, true) == Ignore
	}
	if !d.ignored {
		d.scope = up.scope.Enter(r.read(name))
	}
	r.mu.Lock()
	r.dirs[name] = d
	r.mu.Unlock()
	return d
}

func (r *Repo) read(dir string) *List {
	data, err := fs.ReadFile(r.tree, path.Join(dir, FileName))
	if err != nil {
		return nil
	}
	return Parse(dir, data)
}
