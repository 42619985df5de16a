// Package compact keeps a conversation inside its window. It owns the sizes
// (tokens, bytes, media, pages), the stages that shorten a history without a
// model, the summary that a model writes, and the repair of a history that an
// upstream refused. Stages are pure functions over histories; only the
// Compactor asks a model, through the Provider that it is given. It does not
// know files, settings or front ends: what comes back after a summary is
// handed in.
package compact

import (
	"context"
	"log/slog"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// A Cut is one thing that a stage took away.
type Cut struct {
	Stage   string       `json:"stage"` // budget, snip, clear, collapse, summary, media, repair, mend
	Index   int          `json:"index"` // of the message in the history before the stage
	UUID    string       `json:"uuid,omitempty"`
	Call    agent.CallID `json:"call,omitempty"`
	What    string       `json:"what"` // what it was, for a person
	Why     string       `json:"why"`
	Tokens  int          `json:"tokens"` // estimated, saved
	Bytes   int          `json:"bytes"`  // saved
	InCache bool         `json:"in_cache"`
}

// Limits are the sizes a request must keep.
type Limits struct {
	Window    int  // tokens of the model's context window
	Threshold int  // tokens at which the history is shortened
	Output    int  // tokens kept free for the answer
	Bytes     int  // of a whole request; 0: 32 MB
	Pages     int  // of PDF in a request; 0: 100
	Media     int  // images and documents in a request; 0: 100
	Auto      bool // shorten without being asked
	Off       bool // no compaction at all, also not when asked
	Result    int  // bytes of tool results that one message may hold; 0: 400,000
	Problems  []string
}

// Options is what a Compactor needs.
type Options struct {
	Provider agent.Provider
	// Request builds a request over h with the prefix of the conversation.
	Request func(h []agent.Message) *agent.Request
	Limits  Limits
	// Overhead is the estimated size, in tokens, of system text and tools. Nil: 0.
	Overhead func() int
	// Restore returns what stands before (Opening) and behind (Behind) the
	// summary, read anew. Nil: nothing.
	Restore func(ctx context.Context, h []agent.Message) Restored
	// Hook runs PreCompact and PostCompact. Nil: no hooks.
	Hook agent.Hooker
	// Emit tells Compacting and Noted. Nil: nobody is told.
	Emit func(agent.Body)
	// UUID names new messages. Required.
	UUID func() string
	// Instructions are standing wishes for summaries ("Compact Instructions" of CLAUDE.md).
	Instructions func() string
	// Transcript is the path of the session file, named in the summary. "" for none.
	Transcript string
	// Clock bounds one summary, its retries included. 0: 5 minutes.
	Clock time.Duration
	Log   *slog.Logger
}

// Restored is what is put back after a summary.
type Restored struct {
	Opening []agent.Block // instructions, environment, …
	Behind  []agent.Block // files, plan, tasks, skills, pins
}

// An Outcome is what became of a history.
type Outcome struct {
	History []agent.Message // h itself if nothing changed
	Changed bool
	Cuts    []Cut
	// Compacted is set if a summary was tried; its Err is set if it failed.
	Compacted *agent.Compacted
	// Note is a line for the person, or "".
	Note string
}

// A Compactor shortens the history of one conversation. Its methods are
// called by one goroutine at a time.
type Compactor struct {
	o     Options
	known map[string]int // message id -> tokens of request and answer
}

// New returns a Compactor. The zero Limits never shorten anything.
func New(o Options) *Compactor { return &Compactor{o: o, known: map[string]int{}} }

// Observe notes the usage that the upstream reported for a response.
func (c *Compactor) Observe(messageID string, u agent.Usage) {}

// SetLimits replaces the limits, after a change of model or settings.
func (c *Compactor) SetLimits(l Limits) { c.o.Limits = l }

// Fit returns h, or what has to be sent in its place so that the next request
// keeps the limits. It asks a model only when nothing else suffices.
func (c *Compactor) Fit(ctx context.Context, h []agent.Message) Outcome {
	return Outcome{History: h}
}

// Recover answers a refused request: FaultTooLong compacts, once in a row;
// FaultTooLarge replaces media by stubs, oldest first; FaultBlock replaces the
// block that err names. ok is false if nothing can be done: tell the user.
func (c *Compactor) Recover(ctx context.Context, h []agent.Message, err error) (out Outcome, ok bool) {
	return Outcome{History: h}, false
}

// Compact summarises h because a person asked for it. On failure Err is set
// and History is h.
func (c *Compactor) Compact(ctx context.Context, h []agent.Message, focus string) agent.Compacted {
	return agent.Compacted{Trigger: "manual", History: h}
}
