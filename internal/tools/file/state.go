package file

import "time"

// A State is what one agent has seen of files. It is safe for concurrent use.
type State struct{}

// A Notice tells of a file that somebody else changed after the agent saw it.
type Notice struct {
	Path string
	Gone bool   // the file is no longer there
	Diff string // what changed, with line numbers; "" if it is too long or not text
}

// NewState returns a State that has seen nothing.
func NewState() *State { return &State{} }

// Fork returns a copy for a sub-agent.
func (s *State) Fork() *State { return &State{} }

// Changed returns a notice for each seen file whose content is no longer
// what was seen, in the order of paths, each change once. Files that deny
// reports, and deny may be nil, are left out.
func (s *State) Changed(deny func(path string) bool) []Notice { return nil }

// Recent returns up to n files, the most recently seen first.
func (s *State) Recent(n int) []string { return nil }

// Seed notes that the file was read when its modification time was mtime. If
// the file has changed since, the note has no effect and Seed returns false.
func (s *State) Seed(path string, mtime time.Time) bool { return false }

// Viewed notes that the whole file reached the model by another way, such as cat.
func (s *State) Viewed(path string) {}
