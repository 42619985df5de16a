// Package memory finds and reads the instructions that people keep for the
// model: CLAUDE.md files and what they import, rules, and the index of the
// automatic memory. It owns their order, limits and origins. It reads through
// an fs.FS only; it never writes, runs nothing, and does not know how its text
// reaches the model.
package memory

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/seed-eb844fcb/cinch/internal/lib/glob"
)

// A Kind says whose file it is. The values are the memory_type words of the
// InstructionsLoaded hook.
type Kind string

const (
	Managed Kind = "Managed"
	User    Kind = "User"
	Project Kind = "Project"
	Local   Kind = "Local"
	Auto    Kind = "AutoMem"
)

// A Reason says why a file was loaded. The values are the load_reason words
// of the InstructionsLoaded hook.
type Reason string

const (
	AtStart Reason = "session_start"
	Nested  Reason = "nested_traversal"
	Matched Reason = "path_glob_match"
	Include Reason = "include"
	Compact Reason = "compact"
)

// Limits. What is over them is left out, or cut, and told.
const (
	maxFile   = 4 << 20 // bytes of one file
	maxTotal  = 8 << 20 // bytes of all files
	maxHops   = 4       // imports of imports
	maxRules  = 2000    // rule files below one directory
	maxDepth  = 16      // directories of rules in each other
	autoLines = 200     // of MEMORY.md
	autoBytes = 25 << 10
)

// Options says where to look. All paths are absolute and use slashes.
type Options struct {
	// FS is the file system, rooted at "/" (os.DirFS("/")). If it also
	// implements fs.ReadLinkFS, symbolic links are resolved; otherwise a file
	// that is reached in two ways is loaded twice.
	FS fs.FS
	// Cwd is the directory of the session.
	Cwd string
	// Root is the top of the project. "" is Cwd.
	Root string
	// Home is the user's home directory, for "~/" in imports. "" if there is none.
	Home string
	// ConfigDir is the user's configuration directory (~/.claude). "" for none.
	ConfigDir string
	// ManagedDir holds the managed CLAUDE.md. "" for none.
	ManagedDir string
	// ManagedText is the claudeMd text of managed settings.
	ManagedText string
	// AutoDir is the directory of the automatic memory; "" if it is off.
	AutoDir string
	// AddDirs are further directories whose own files are read.
	AddDirs []string
	// NoUser, NoProject and NoLocal leave a setting source out.
	NoUser, NoProject, NoLocal bool
	// Off reads nothing but the automatic memory.
	Off bool
	// Excludes are globs of absolute paths that are left out (never managed ones).
	Excludes []string
	// AllowImport is asked, once for each path, whether a file of the project
	// may import a file outside of it. Nil refuses.
	AllowImport func(from, path string) bool
	// Denied reports whether rules forbid reading path. Nil: they do not.
	Denied func(path string) bool
	// Reason is noted for what Load reads. "" is AtStart.
	Reason Reason
}

// A File is one loaded file.
type File struct {
	Path   string
	Kind   Kind
	Reason Reason
	Parent string   // the file that imports it, or ""
	Globs  []string // of a path-scoped rule
	Text   string   // as it goes to the model
	// Trigger is the path whose reading loaded it, or "".
	Trigger string
	// Cut says that Text is not all of the file, and why.
	Cut string
}

// A Problem is a file that was left out, or read in part, and why.
type Problem struct{ Path, Text string }

// A Set is what was loaded. Its methods may be called concurrently; the
// fields are for when nobody calls Touched.
type Set struct {
	AutoDir  string // of the automatic memory, or ""
	Files    []File
	Problems []Problem

	mu sync.Mutex
	l  loader
}

// A loader is the state that Load and Touched share.
type loader struct {
	o        Options
	s        *Set
	links    fs.ReadLinkFS   // nil if the file system has no links
	seen     map[string]bool // real paths of loaded files
	dirs     map[string]bool // directories whose files were loaded
	resolved map[string]string
	asked    map[string]bool // answers of AllowImport
	rules    []rule          // path-scoped rules that wait
	excludes []*glob.Pattern
	total    int
	reason   Reason
	trigger  string
}

// Load reads all files that apply at the start of a session. When ctx ends it
// stops with what it has and a Problem.
func Load(ctx context.Context, o Options) *Set {
	if o.Root == "" {
		o.Root = o.Cwd
	}
	s := &Set{AutoDir: o.AutoDir}
	s.l = loader{
		o: o, s: s, reason: o.Reason,
		seen: map[string]bool{}, dirs: map[string]bool{}, resolved: map[string]string{}, asked: map[string]bool{},
	}
	l := &s.l
	if l.reason == "" {
		l.reason = AtStart
	}
	l.links, _ = o.FS.(fs.ReadLinkFS)
	for _, g := range o.Excludes {
		p, err := glob.Compile(strings.TrimSuffix(g, "/"))
		if err != nil {
			l.problem(g, "the exclusion is not used: %v", err)
			continue
		}
		l.excludes = append(l.excludes, p)
	}
	if o.FS == nil {
		return s
	}
	if !o.Off {
		l.start(ctx)
	}
	l.auto()
	if ctx.Err() != nil {
		l.problem(o.Cwd, "reading the instructions was stopped: %v", context.Cause(ctx))
	}
	return s
}

// start loads everything in its order: from the widest to the closest.
func (l *loader) start(ctx context.Context) {
	o := l.o
	if o.ManagedDir != "" {
		l.file(ctx, path.Join(o.ManagedDir, "CLAUDE.md"), Managed, 0, "")
	}
	if strings.TrimSpace(o.ManagedText) != "" {
		l.s.Files = append(l.s.Files, File{Path: "managed settings", Kind: Managed, Reason: l.reason, Text: o.ManagedText})
	}
	if o.ConfigDir != "" && !o.NoUser {
		l.file(ctx, path.Join(o.ConfigDir, "CLAUDE.md"), User, 0, "")
		l.ruleDir(ctx, path.Join(o.ConfigDir, "rules"), o.Root, User)
	}
	for _, dir := range ancestors(o.Cwd) {
		l.dir(ctx, dir)
	}
	for _, dir := range o.AddDirs {
		l.dir(ctx, path.Clean(dir))
	}
}

// dir loads the files of one directory of a project.
func (l *loader) dir(ctx context.Context, dir string) {
	if l.dirs[dir] || ctx.Err() != nil {
		return
	}
	l.dirs[dir] = true
	dot := path.Join(dir, ".claude")
	user := dot == path.Clean(l.o.ConfigDir) // ~/.claude is the user's, also when the walk meets it
	if !l.o.NoProject {
		plain := l.file(ctx, path.Join(dir, "CLAUDE.md"), Project, 0, "")
		hidden := !user && l.file(ctx, path.Join(dot, "CLAUDE.md"), Project, 0, "")
		if !plain && !hidden {
			l.file(ctx, path.Join(dir, "AGENTS.md"), Project, 0, "")
		}
		if !user {
			l.ruleDir(ctx, path.Join(dot, "rules"), dir, Project)
		}
	}
	if !l.o.NoLocal {
		l.file(ctx, path.Join(dir, "CLAUDE.local.md"), Local, 0, "")
	}
}

// auto loads the head of the index of the automatic memory.
func (l *loader) auto() {
	if l.o.AutoDir == "" {
		return
	}
	p := path.Join(l.o.AutoDir, "MEMORY.md")
	text, ok := l.read(p, p, false)
	if !ok || strings.TrimSpace(text) == "" {
		return
	}
	f := File{Path: p, Kind: Auto, Reason: l.reason, Text: text}
	lines := strings.SplitAfter(text, "\n")
	if len(lines) > autoLines && strings.Join(lines[autoLines:], "") != "" {
		f.Text, f.Cut = strings.Join(lines[:autoLines], ""), "Only the first 200 lines are shown. Shorten the index: one line for each memory."
	}
	if len(f.Text) > autoBytes {
		cut := strings.LastIndexByte(f.Text[:autoBytes], '\n') + 1
		if cut == 0 {
			cut = autoBytes
		}
		f.Text = strings.ToValidUTF8(f.Text[:cut], "")
		f.Cut = "Only the first 25 KB are shown. Shorten the index: one line for each memory."
	}
	if f.Cut != "" {
		l.problem(p, "%s", f.Cut)
	}
	l.s.Files = append(l.s.Files, f)
}

// CheckIndex says whether an index of the automatic memory, as it was just
// written, is over its limits, and has a note for the model if it is, or soon
// will be. What is over is kept on disk, but not read again.
func CheckIndex(text string) (note string, over bool) {
	lines := strings.Count(strings.TrimRight(text, "\n"), "\n") + 1
	const rule = "Only the first %d lines and %d KB of MEMORY.md are read in later conversations. Rewrite it: one short line for each memory, details in their own files, and nothing that is no longer true."
	switch {
	case lines > autoLines || len(text) > autoBytes:
		return fmt.Sprintf("MEMORY.md is too long now (%d lines, %d bytes). "+rule, lines, len(text), autoLines, autoBytes>>10), true
	case lines > autoLines*9/10 || len(text) > autoBytes*9/10:
		return fmt.Sprintf("MEMORY.md is nearly full (%d lines, %d bytes). "+rule, lines, len(text), autoLines, autoBytes>>10), false
	}
	return "", false
}

// Touched returns the files that join because path (absolute) was read:
// CLAUDE.md files between Cwd and path, and rules whose globs match. Each
// file joins once.
func (s *Set) Touched(ctx context.Context, p string) []File {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.l
	if l.o.FS == nil || l.o.Off {
		return nil
	}
	n := len(s.Files)
	p = path.Clean(p)
	l.trigger, l.reason = p, Nested
	if within(p, l.o.Cwd) {
		for _, dir := range ancestors(path.Dir(p)) {
			if within(dir, l.o.Cwd) {
				l.dir(ctx, dir)
			}
		}
	}
	l.reason = Matched
	l.match(ctx, p)
	return slices.Clone(s.Files[n:])
}

// Loaded returns the files and problems so far.
func (s *Set) Loaded() ([]File, []Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.Files), slices.Clone(s.Problems)
}

// Section returns what stands under the heading (of any level, compared
// without case) in the files, joined. "" if there is none.
func (s *Set) Section(heading string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, f := range s.Files {
		if f.Kind == Auto {
			continue
		}
		if t := section(f.Text, heading); t != "" {
			out = append(out, t)
		}
	}
	return strings.Join(out, "\n\n")
}

// ancestors returns the directories from the root down to dir.
func ancestors(dir string) []string {
	var out []string
	for dir = path.Clean(dir); ; dir = path.Dir(dir) {
		out = append(out, dir)
		if dir == path.Dir(dir) {
			slices.Reverse(out)
			return out
		}
	}
}

// within reports whether p is dir or below it.
func within(p, dir string) bool {
	dir = path.Clean(dir)
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}
