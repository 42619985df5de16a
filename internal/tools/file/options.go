// Package file holds the tools Read, Write and Edit, and State: what an agent
// has seen of the files on disk.
//
// It owns the text forms in which files reach the model, the matching of
// edits, and the rule that a file changes whole or not at all. It does not
// decide whether a path may be read or written: Inspect names the paths, at
// both ends of every symbolic link, and the caller decides.
package file

import (
	"context"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// Options are what the tools of one agent stand on.
type Options struct {
	// Cwd returns the directory that relative paths start in. Required.
	Cwd func() string
	// State is the agent's memory of files. Required; not shared between agents.
	State *State
	// Home replaces a leading "~/" in a path. Empty leaves such paths alone.
	Home string
	// Deny reports paths that no tool may show, whatever was allowed. It is
	// asked with every name that a file has. May be nil.
	Deny func(path string) bool
	// Before is called with the resolved path before the first byte of a
	// file changes; the file is as it was. Its error stops the change. May be nil.
	Before func(ctx context.Context, path string) error
	// After is called with the resolved path when a change is on disk. May be nil.
	After func(ctx context.Context, path string)
	// Run runs a program and returns what it wrote to stdout; a non-zero exit
	// is an error that holds what it wrote to stderr. Needed for page ranges
	// of PDFs. May be nil.
	Run func(ctx context.Context, argv []string, stdin []byte) (stdout []byte, err error)
	// Which returns the path of an installed program, "" if there is none.
	// May be nil: nothing is installed.
	Which func(name string) string
	// MaxTokens bounds the text of one Read. 0 is DefaultMaxTokens.
	MaxTokens int
	// RequireRead reports whether a file must have been read before it may be
	// edited or overwritten, as older models need. Nil is false.
	RequireRead func() bool
}

// DefaultMaxTokens is how much text one Read returns at most, as estimated.
const DefaultMaxTokens = 25_000

// New returns Read, Write and Edit.
func New(o Options) []agent.Tool { return NewEditor(o).Tools() }
