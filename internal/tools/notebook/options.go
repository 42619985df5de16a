// Package notebook holds the tool NotebookEdit.
//
// It owns what an edit of a cell means. It neither opens nor writes files:
// Load and Save do, so that every file tool shares one way to change a file.
package notebook

import (
	"context"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// Options are what the tool stands on. All fields are required.
type Options struct {
	// Subjects resolves a path as given and names what a change of it would touch.
	Subjects func(path string) (abs string, subjects []agent.Subject, err error)
	// Load returns the content of a file that the model has read and nobody
	// has changed since; any other file is an error that tells the model what to do.
	Load func(ctx context.Context, c agent.Call, path string) ([]byte, error)
	// Save replaces what Load returned.
	Save func(ctx context.Context, c agent.Call, path string, before, after []byte) error
}

// New returns NotebookEdit.
func New(o Options) []agent.Tool { return nil }
