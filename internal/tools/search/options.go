// Package search holds the tools Glob and Grep.
//
// It owns the walk over a tree, the ignore rules, and the search engine that
// stands in where ripgrep is not installed; both engines give the same answer.
// It does not decide whether a directory may be searched: Inspect names it,
// and the caller decides.
package search

import (
	"context"
	"io"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// Options are what the tools stand on.
type Options struct {
	// Cwd returns the directory that relative paths start in. Required.
	Cwd func() string
	// Home replaces a leading "~/" in a path. Empty leaves such paths alone.
	Home string
	// Deny reports files that must not appear in a listing. It is asked with
	// absolute paths and may be called concurrently. May be nil.
	Deny func(path string) bool
	// Ripgrep is the path of rg. Empty uses the built-in engine.
	Ripgrep string
	// Exec runs a program in dir, its output going to stdout as it comes. An
	// error from stdout ends the program. code is the exit status; err
	// reports a program that did not start or was killed. Needed with Ripgrep.
	Exec func(ctx context.Context, dir string, argv []string, stdout io.Writer) (code int, stderr []byte, err error)
	// HideDot makes Glob leave out names with a leading dot that the pattern
	// does not spell out.
	HideDot bool
	// Ignore makes Glob respect .gitignore.
	Ignore bool
	// Timeout bounds one Glob. 0 is 20 seconds.
	Timeout time.Duration
}

// New returns Glob and Grep.
func New(o Options) []agent.Tool { return nil }
