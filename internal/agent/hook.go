package agent

import (
	"context"
	"encoding/json"
	"errors"
)

// ErrNoOne reports that nobody could be asked.
var ErrNoOne = errors.New("agent: there is no one to ask")

// A Moment is a point in a session's life at which user hooks may run.
type Moment struct {
	Event string // PreToolUse, PostToolUse, Stop, …
	Match string // the value matchers are compared with, such as the tool name
	// Fields are the event's own input fields, encoded beside the common ones.
	Fields    map[string]any
	Call      *Call  // the call it is about, if any
	Agent     string // sub-agent id, or ""
	AgentType string
}

// A HookResult is the merged answer of all hooks that ran at a Moment.
// The zero value is "no opinion".
type HookResult struct {
	// Decision, if not nil, is the strictest of the hooks' decisions: deny,
	// then defer, then ask, then allow.
	Decision *Decision
	// Block stops what the moment is about; Reason says why.
	Block  bool
	Reason string
	// Halt ends the turn (continue:false); Reason is for the person.
	Halt bool
	// Context are texts for the model.
	Context []string
	// Notes are texts for the person.
	Notes []string
	// Input replaces the prompt's or call's input.
	Input json.RawMessage
	// Output replaces what the tool answered.
	Output json.RawMessage
	// Extra holds event-specific output fields by name (sessionTitle, watchPaths, …).
	Extra map[string]json.RawMessage
	// Ran counts the hooks that ran.
	Ran int
}

// A Hooker runs the hooks of a moment and waits for those that are not
// asynchronous. It never fails: what went wrong is in Notes.
type Hooker func(ctx context.Context, m Moment) HookResult
