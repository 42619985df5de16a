package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A kind is what a mount does to what stands at its path. Where two meet at
// one path the greater wins.
type kind int

const (
	writable kind = iota
	readOnly
	hidden
)

// A mount is one place that differs from what lies around it.
type mount struct {
	path string
	kind kind
	dir  bool
}

// A layout is the file system a command sees, and what is to be looked after
// when it has ended.
type layout struct {
	mounts  []mount // a directory stands before what is in it
	watched []watch
}

// roots are the writable places of l.
func (l layout) roots() []string {
	var out []string
	for _, m := range l.mounts {
		if m.kind == writable {
			out = append(out, m.path)
		}
	}
	return out
}

// A planner collects a layout.
type planner struct {
	at      map[string]mount
	write   []string
	watched []watch
}

// layOut decides what r means for the files that are there now. It only
// looks, and every path it returns has its links resolved.
func layOut(o Options, r Rules) layout {
	if r.OpenFiles {
		return layout{}
	}
	p := &planner{at: map[string]mount{}}
	deny := r.DenyWrite
	for _, w := range append(slices.Clone(r.Write), r.Scratch) {
		p.root(w, deny)
	}
	guarded := protected(o, r, p)
	for _, d := range deny {
		p.forbid(d)
	}
	for _, g := range guarded {
		p.forbid(g)
	}
	var closed []string
	for _, d := range r.DenyRead {
		for _, path := range expand(d) {
			if q, ok := real(path); ok && q != "/" {
				p.add(q, hidden)
				closed = append(closed, q)
			}
		}
	}
	for _, a := range r.AllowRead {
		q, ok := real(a)
		if !ok || slices.Contains(closed, q) {
			continue
		}
		if slices.ContainsFunc(closed, func(c string) bool { return within(q, c) }) {
			p.add(q, readOnly)
		}
	}
	return p.layout()
}

// root makes path writable unless something above it is denied.
func (p *planner) root(path string, deny []string) {
	if path == "" {
		return
	}
	q, ok := real(path)
	if !ok || q == "/" {
		return
	}
	for _, d := range deny {
		if rd, ok := real(d); ok && within(q, rd) {
			return
		}
	}
	p.add(q, writable)
	p.write = append(p.write, q)
}

// covers returns the longest writable root that path is inside of, or "".
func (p *planner) covers(path string) string {
	best := ""
	for _, w := range p.write {
		if within(path, w) && len(w) > len(best) {
			best = w
		}
	}
	return best
}

// forbid keeps path from being written. Where nothing can be mounted, since
// nothing is there or a link is, it is watched. The directories from the root
// down to it are mounts of their own, so that none of them can be renamed and
// another put in its place.
func (p *planner) forbid(path string) {
	path = filepath.Clean(path)
	dir, rest := filepath.Dir(path), filepath.Base(path)
	at, ok := real(dir)
	for !ok && dir != filepath.Dir(dir) {
		dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest)
		at, ok = real(dir)
	}
	path = filepath.Join(at, rest)
	if rest != filepath.Base(rest) { // a parent is missing, and may appear
		if root := p.covers(path); root != "" {
			p.pin(root, at)
			p.watched = append(p.watched, watch{Root: root, Path: path})
		}
		return
	}
	dir = at
	root := p.covers(path)
	fi, err := os.Lstat(path)
	switch {
	case err != nil:
		if root != "" {
			p.pin(root, dir)
			p.watched = append(p.watched, watch{Root: root, Path: path})
		}
	case fi.Mode()&os.ModeSymlink != 0:
		if root != "" {
			target, err := os.Readlink(path)
			if err != nil {
				return
			}
			p.pin(root, dir)
			p.watched = append(p.watched, watch{Root: root, Path: path, Link: target})
		}
		if q, ok := real(path); ok && p.covers(q) != "" && !slices.Contains(p.write, q) {
			p.pin(p.covers(q), filepath.Dir(q))
			p.add(q, readOnly)
		}
	case root != "":
		if path != root {
			p.pin(root, dir)
		}
		p.add(path, readOnly)
	}
}

// pin makes dir and the directories above it, below root, mounts.
func (p *planner) pin(root, dir string) {
	for ; dir != root && within(dir, root); dir = filepath.Dir(dir) {
		p.add(dir, writable)
	}
}

// add puts k at path, where something exists.
func (p *planner) add(path string, k kind) {
	if m, ok := p.at[path]; ok && m.kind >= k {
		return
	}
	fi, err := os.Stat(path)
	if err != nil {
		return
	}
	p.at[path] = mount{path, k, fi.IsDir()}
}

func (p *planner) layout() layout {
	l := layout{watched: p.watched}
	for _, m := range p.at {
		l.mounts = append(l.mounts, m)
	}
	slices.SortFunc(l.mounts, func(a, b mount) int {
		if d := strings.Count(a.path, "/") - strings.Count(b.path, "/"); d != 0 {
			return d
		}
		return strings.Compare(a.path, b.path)
	})
	// What lies in a read-only place is read-only already, and a pin there
	// would open it.
	var shut []string
	l.mounts = slices.DeleteFunc(l.mounts, func(m mount) bool {
		in := slices.ContainsFunc(shut, func(s string) bool { return within(m.path, s) })
		if m.kind == readOnly {
			if !in {
				shut = append(shut, m.path)
			}
			return in && !p.insideHidden(m.path)
		}
		return in && m.kind == writable
	})
	return l
}

func (p *planner) insideHidden(path string) bool {
	for _, m := range p.at {
		if m.kind == hidden && within(path, m.path) {
			return true
		}
	}
	return false
}

// expand returns the paths a pattern stands for; a path without wildcards
// stands for itself.
func expand(pattern string) []string {
	pattern = strings.TrimSuffix(strings.TrimSuffix(pattern, "/**"), "/")
	if !strings.ContainsAny(pattern, "*?[") {
		return []string{pattern}
	}
	head, tail, deep := strings.Cut(pattern, "/**/")
	if !deep {
		list, err := filepath.Glob(pattern)
		if err != nil {
			return nil
		}
		return list
	}
	var out []string
	seen := 0
	_ = filepath.WalkDir(head, func(path string, e os.DirEntry, err error) error {
		if seen++; seen > maxExpand {
			return filepath.SkipAll
		}
		if err != nil {
			return nil
		}
		if ok, _ := filepath.Match(tail, filepath.Base(path)); ok {
			out = append(out, path)
			if e.IsDir() {
				return filepath.SkipDir
			}
		}
		return nil
	})
	return out
}

// maxExpand bounds how many entries are looked at for one pattern.
const maxExpand = 50_000
