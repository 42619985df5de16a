// Package task holds the tools with which the model keeps a list of what is
// to do: TodoWrite, or TaskCreate, TaskGet, TaskList and TaskUpdate.
//
// It owns the list, its file format (one small file for each task, which
// other programs may read and change), and the reminder of what is open. It
// does not know who shows the list.
package task

import "github.com/seed-eb844fcb/cinch/internal/agent"

// Options are what the tools stand on.
type Options struct {
	// List is the list of the session. Required.
	List *List
	// Todo offers TodoWrite in place of the four Task tools.
	Todo bool
	// Both offers all five.
	Both bool
}

// New returns the tools.
func New(o Options) []agent.Tool { return nil }

// A List is the list of tasks of a session. It may be used concurrently, by
// several processes too.
type List struct {
	// Dir returns the directory that holds the list now. Required. It is
	// created with the first task.
	Dir func() string
}

// An Item is one task.
type Item struct {
	ID          string         `json:"id"`
	Subject     string         `json:"subject"`
	Description string         `json:"description"`
	ActiveForm  string         `json:"activeForm,omitempty"`
	Status      string         `json:"status"` // pending, in_progress, completed
	Owner       string         `json:"owner,omitempty"`
	Blocks      []string       `json:"blocks"`
	BlockedBy   []string       `json:"blockedBy"`
	Metadata    map[string]any `json:"metadata,omitempty"`
}

// A Todo is one line of a TodoWrite list.
type Todo struct {
	Content    string `json:"content"`
	Status     string `json:"status"` // pending, in_progress, completed
	ActiveForm string `json:"activeForm"`
}
