package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/seed-eb844fcb/cinch/internal/lib/glob"
)

// A rule is a path-scoped rule file that waits for a matching path.
type rule struct {
	file     File
	base     string // globs are relative to it
	patterns []*glob.Pattern
	done     bool
}

func (l *loader) problem(p, format string, args ...any) {
	l.s.Problems = append(l.s.Problems, Problem{p, fmt.Sprintf(format, args...)})
}

// file loads the file p and what it imports, right behind it. It reports
// whether there is such a file, loaded or not.
func (l *loader) file(ctx context.Context, p string, kind Kind, hops int, parent string) bool {
	if ctx.Err() != nil || !l.exists(p) {
		return false
	}
	text, ok := l.claim(p, l.real(p), kind, false)
	if !ok {
		return true
	}
	f := File{Path: p, Kind: kind, Reason: l.reason, Parent: parent, Trigger: l.trigger, Text: stripComments(text)}
	if parent != "" {
		f.Reason = Include
	}
	l.s.Files = append(l.s.Files, f)
	l.imports(ctx, f, hops)
	return true
}

// claim reads p unless it was loaded, is excluded or must not be read. See
// read for regular.
func (l *loader) claim(p, real string, kind Kind, regular bool) (string, bool) {
	if l.seen[real] {
		return "", false
	}
	if kind != Managed && (l.excluded(p) || l.excluded(real)) {
		return "", false
	}
	text, ok := l.read(p, real, regular)
	if ok {
		l.seen[real] = true
	}
	return text, ok
}

// imports loads what the text of f imports.
func (l *loader) imports(ctx context.Context, f File, hops int) {
	for _, ref := range references(f.Text) {
		p, ok := l.target(f.Path, ref)
		if !ok || !l.exists(p) {
			if path.Ext(ref) != "" && !strings.HasPrefix(ref, ".") {
				l.problem(p, "%s imports it, and it is not there", f.Path)
			}
			continue
		}
		if l.seen[l.real(p)] {
			continue
		}
		if hops >= maxHops {
			l.problem(p, "%s imports it, which is more than %d imports deep", f.Path, maxHops)
			continue
		}
		if (f.Kind == Project || f.Kind == Local) && !l.inside(p) && !l.allowed(f.Path, p) {
			l.problem(p, "%s imports it from outside the project, and nobody has allowed that", f.Path)
			continue
		}
		l.file(ctx, p, f.Kind, hops+1, f.Path)
	}
}

// target resolves an import against the file that holds it.
func (l *loader) target(from, ref string) (string, bool) {
	switch {
	case strings.HasPrefix(ref, "~/"):
		if l.o.Home == "" {
			return ref, false
		}
		return path.Join(l.o.Home, ref[2:]), true
	case strings.HasPrefix(ref, "/"):
		return path.Clean(ref), true
	}
	return path.Join(path.Dir(from), ref), true
}

func (l *loader) inside(p string) bool {
	real := l.real(p)
	return within(real, l.real(l.o.Root)) || within(real, l.real(l.o.Cwd))
}

func (l *loader) allowed(from, p string) bool {
	if l.o.AllowImport == nil {
		return false
	}
	ok, known := l.asked[p]
	if !known {
		ok = l.o.AllowImport(from, p)
		l.asked[p] = ok
	}
	return ok
}

func (l *loader) excluded(p string) bool {
	if len(l.excludes) == 0 {
		return false
	}
	for ; p != "/" && p != "."; p = path.Dir(p) { // a glob of a directory covers what is in it
		if slices.ContainsFunc(l.excludes, func(g *glob.Pattern) bool { return g.Match(p) || g.Match(p[1:]) }) {
			return true
		}
	}
	return false
}

// name is p as the file system calls it.
func name(p string) string {
	if p = strings.TrimPrefix(path.Clean(p), "/"); p == "" {
		return "."
	}
	return p
}

// exists reports whether something is called p. What cannot be looked at
// counts, so that reading it tells why.
func (l *loader) exists(p string) bool {
	if !fs.ValidPath(name(p)) {
		return false
	}
	_, err := fs.Stat(l.o.FS, name(p))
	return err == nil || !absent(err)
}

// absent reports whether err says that there is no such file.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)
}

// read returns the text of p; real is where it lies. What is no regular file
// is never opened, as opening a pipe would wait for its writer; regular says
// that the directory has told so already.
func (l *loader) read(p, real string, regular bool) (string, bool) {
	if !regular {
		fi, err := fs.Stat(l.o.FS, name(p))
		switch {
		case err != nil && absent(err):
			return "", false
		case err != nil:
			l.problem(p, "%v", err)
			return "", false
		case !fi.Mode().IsRegular():
			l.problem(p, "it is %s, not a file", what(fi.Mode()))
			return "", false
		}
	}
	if l.o.Denied != nil && (l.o.Denied(p) || l.o.Denied(real)) {
		l.problem(p, "a permission rule forbids to read it")
		return "", false
	}
	raw, err := l.bytes(p)
	if err != nil {
		l.problem(p, "%v", err)
		return "", false
	}
	l.total += len(raw)
	text := strings.TrimPrefix(string(raw), "\ufeff")
	if strings.IndexByte(text, 0) >= 0 {
		l.problem(p, "it is not text and was left out")
		return "", false
	}
	if !utf8.ValidString(text) {
		l.problem(p, "it is not valid UTF-8; the bytes in question were replaced")
		text = strings.ToValidUTF8(text, "\ufffd")
	}
	return strings.ReplaceAll(text, "\r\n", "\n"), true
}

// what names what is no regular file.
func what(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}

var errTotal = errors.New("all instructions together are larger than 8 MiB; this file was left out")

func (l *loader) bytes(p string) ([]byte, error) {
	f, err := l.o.FS.Open(name(p))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := fi.Size()
	tooLarge := func(n int64) error {
		return fmt.Errorf("it is larger than 4 MiB (%d bytes) and was left out", n)
	}
	if size > maxFile {
		return nil, tooLarge(size)
	}
	if int64(l.total)+size > maxTotal {
		return nil, errTotal
	}
	// One byte more than there should be saves a read of nothing at the end,
	// and shows a file that grows.
	raw := make([]byte, size+1)
	n, err := io.ReadFull(f, raw)
	if err == nil { // it grew
		more, err := io.ReadAll(io.LimitReader(f, maxFile-size))
		if err != nil {
			return nil, err
		}
		raw = append(raw, more...)
		n = len(raw)
	} else if err != io.ErrUnexpectedEOF && err != io.EOF {
		return nil, err
	}
	if n > maxFile {
		return nil, tooLarge(int64(n))
	}
	return raw[:n], nil
}

// real resolves symbolic links in p as far as it exists. Each directory is
// resolved once.
func (l *loader) real(p string) string {
	if l.links == nil {
		return path.Clean(p)
	}
	return l.resolve(path.Clean(p), 0)
}

func (l *loader) resolve(p string, links int) string {
	if p == "/" || p == "." || links > 40 {
		return p
	}
	if r, ok := l.resolved[p]; ok {
		return r
	}
	real := path.Join(l.resolve(path.Dir(p), links), path.Base(p))
	if fi, err := l.links.Lstat(name(real)); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
		if to, err := l.links.ReadLink(name(real)); err == nil {
			if !path.IsAbs(to) {
				to = path.Join(path.Dir(real), to)
			}
			real = l.resolve(path.Clean(to), links+1)
		}
	}
	l.resolved[p] = real
	return real
}

// ruleDir loads the rules below dir. Those with globs wait; they are relative
// to base.
func (l *loader) ruleDir(ctx context.Context, dir, base string, kind Kind) {
	files := l.markdown(ctx, dir, 0, map[string]bool{}, nil)
	if len(files) > maxRules {
		l.problem(dir, "it holds more than %d rules; the rest was left out", maxRules)
		files = files[:maxRules]
	}
	for _, m := range files {
		p := m.path
		text, ok := l.claim(p, m.real, kind, m.regular)
		if !ok {
			continue
		}
		globs, body := frontmatter(text)
		f := File{Path: p, Kind: kind, Reason: l.reason, Trigger: l.trigger, Globs: globs, Text: stripComments(body)}
		if len(globs) == 0 {
			l.s.Files = append(l.s.Files, f)
			l.imports(ctx, f, 0)
			continue
		}
		r := rule{file: f, base: base}
		for _, g := range globs {
			pat, err := glob.Compile(strings.TrimPrefix(g, "./"))
			if err != nil {
				l.problem(p, "the glob %q is not used: %v", g, err)
				continue
			}
			r.patterns = append(r.patterns, pat)
		}
		l.rules = append(l.rules, r)
	}
}

// A listed file is one that a directory names.
type listed struct {
	path, real string
	regular    bool
}

// markdown lists the .md files below dir in order, through links, each
// directory once.
func (l *loader) markdown(ctx context.Context, dir string, depth int, been map[string]bool, files []listed) []listed {
	if depth > maxDepth || len(files) > maxRules || ctx.Err() != nil {
		return files
	}
	entries, err := fs.ReadDir(l.o.FS, name(dir))
	if err != nil && !absent(err) {
		l.problem(dir, "%v", err)
	}
	if len(entries) == 0 {
		return files
	}
	real := l.real(dir)
	if been[real] {
		return files
	}
	been[real] = true
	for _, e := range entries {
		m := listed{path.Join(dir, e.Name()), path.Join(real, e.Name()), e.Type().IsRegular()}
		isDir := e.IsDir()
		if e.Type()&fs.ModeSymlink != 0 {
			fi, err := fs.Stat(l.o.FS, name(m.path))
			isDir = err == nil && fi.IsDir()
			m.real = l.real(m.path)
		}
		switch {
		case isDir:
			files = l.markdown(ctx, m.path, depth+1, been, files)
		case strings.EqualFold(path.Ext(m.path), ".md"):
			files = append(files, m)
		}
	}
	return files
}

// match loads the waiting rules that p, or the file it links to, triggers.
func (l *loader) match(ctx context.Context, p string) {
	paths := []string{p}
	if real := l.real(p); real != p {
		paths = append(paths, real)
	}
	for i := range l.rules {
		r := &l.rules[i]
		if r.done || !r.matches(paths) {
			continue
		}
		r.done = true
		f := r.file
		f.Reason, f.Trigger = l.reason, l.trigger
		l.s.Files = append(l.s.Files, f)
		l.imports(ctx, f, 0)
	}
}

func (r *rule) matches(paths []string) bool {
	for _, p := range paths {
		if !within(p, r.base) {
			continue
		}
		rel := strings.TrimPrefix(strings.TrimPrefix(p, path.Clean(r.base)), "/")
		for _, g := range r.patterns {
			if g.Match(rel) || g.Match(p) {
				return true
			}
		}
	}
	return false
}
