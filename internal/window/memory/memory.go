// Package memory finds and reads the instructions that people keep for the
// model: CLAUDE.md files and what they import, rules, and the index of the
// automatic memory. It owns their order, limits and origin notes. It reads
// through an fs.FS and the clock of its context only; it never writes, runs
// nothing, and does not know how its text reaches the model.
package memory

import (
	"context"
	"io/fs"
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

// Options says where to look. All paths are absolute.
type Options struct {
	// FS is the file system, rooted at "/" (os.DirFS("/")). It should also
	// implement fs.ReadLinkFS; without it symbolic links are not told apart.
	FS fs.FS
	// Cwd is the directory of the session.
	Cwd string
	// Home is the user's home directory, for "~/" in imports. "" if there is none.
	Home string
	// ConfigDir is the user's configuration directory (~/.claude).
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
	// AllowImport is asked, once for each path, whether a project file may
	// import a file outside of Cwd. Nil refuses.
	AllowImport func(from, path string) bool
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

// A Set is what was loaded. Its methods may not be called concurrently.
type Set struct {
	AutoDir  string // of the automatic memory, or ""
	Files    []File
	Problems []Problem
}

// Load reads all files that apply at the start of a session. It stops early,
// with what it has and a Problem, when ctx ends.
func Load(ctx context.Context, o Options) *Set { return &Set{} }

// Touched returns the files that join because path (absolute) was read:
// nested CLAUDE.md files between Cwd and path, and rules whose globs match.
// Each file joins once.
func (s *Set) Touched(ctx context.Context, path string) []File { return nil }
