// Package loop runs one turn: it calls the model, runs the tools the model
// asks for while the model is still writing, sends the results back, and
// repeats until the model stops asking.
//
// It owns the order of things within a turn, the pairing of every call with
// exactly one result, and what is done about a response that broke off. It
// knows nothing but the vocabulary: everything it needs is in Loop.
package loop

import (
	"context"
	"encoding/json"
	"errors"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// A Loop holds what one turn needs. The functions are called from several
// goroutines at a time only where that is said. Optional ones may be nil.
type Loop struct {
	Provider agent.Provider
	// Tool returns the tool of that name, or nil. Concurrent.
	Tool func(name string) agent.Tool
	// Check compares input with a tool's schema. Its error goes to the model
	// as an InputValidationError. Concurrent. Optional.
	Check func(spec agent.Spec, input json.RawMessage) error
	// Window makes the request over history.
	Window func(history []agent.Message) *agent.Request
	// Fit is called before each request. It returns the history to go on
	// with: history itself, or what stands in its place. Optional.
	Fit func(ctx context.Context, history []agent.Message) []agent.Message
	// Gate decides whether a call may run. It may block on a person.
	// Concurrent. Its error counts as a denial.
	Gate func(ctx context.Context, c agent.Call) (agent.Decision, error)
	// After sees the outcome of each call that ran, before it is final, and
	// returns what stands in place of its result. Concurrent. Optional.
	After func(ctx context.Context, f agent.Finished) agent.Result
	// Batch sees the outcomes of a step, in the order of the calls, and
	// returns blocks to stand behind the results. If end is not "", the turn
	// ends with that reason. Optional.
	Batch func(ctx context.Context, fs []agent.Finished) (behind []agent.Block, end string)
	// Load is told the deferred tools that a call loaded, before the next
	// request. Optional.
	Load func(names ...string)
	// Idle is called when the model has stopped of itself with answer, its
	// last text. A message in return makes it go on; end is then ignored.
	// Else end, if not "", is the reason of the turn's end. n counts the
	// messages it has returned in this turn so far. Optional.
	Idle func(ctx context.Context, answer string, n int) (m *agent.Message, end string)
	// Steer returns what was said to the model since the last call: messages
	// that join the turn behind the results of a step. Optional.
	Steer func(ctx context.Context) []agent.Said
	// Recover answers a refused request (too long, too large, a bad block)
	// with another history. It is asked once for each kind of fault in a row.
	// Optional.
	Recover func(ctx context.Context, history []agent.Message, err *agent.ModelError) ([]agent.Message, bool)
	// Explain words a failed request. Its text ends the turn. Optional.
	Explain func(err error) agent.Trouble
	// Budget reports why no further request may be made, or "". Concurrent. Optional.
	Budget func() string
	// Cost is the price of a response in US dollars. Optional.
	Cost func(model string, u agent.Usage) float64
	// Emit takes the facts of the turn. When it returns, a durable fact is as
	// safe as it gets: calls that may write start only then. Concurrent.
	Emit func(agent.Body)
	// ID makes uuids. Concurrent.
	ID func() string
	// MaxSteps bounds the requests of the turn, those not counted that mend
	// another; 0 is no bound.
	MaxSteps int
	// Agent is the id of the sub-agent whose turn this is, or "".
	Agent string
	// Grace is how long a tool may go on after it was told to stop. 0: 10 s.
	Grace time.Duration
}

// Causes that end the context of a turn.
var (
	// ErrInterrupted: a person ended the turn. The history says so to the model.
	ErrInterrupted = errors.New("interrupted by the user")
	// ErrStopped: the program ends. Calls are closed, nothing else is said,
	// so that the turn can be taken up again.
	ErrStopped = errors.New("the session was stopped")
)

// Reasons of an End. Others come from Batch, Idle, Budget and tools.
const (
	Completed = "completed"
	MaxTurns  = "max_turns"
	Budget    = "budget_exhausted"
	APIError  = "api_error"
	Refused   = "model_error"
	TooLong   = "prompt_too_long"
	TooLarge  = "image_error"
	InTools   = "aborted_tools"
	InStream  = "aborted_streaming"
	Deferred  = "tool_deferred"
	Malformed = "malformed_tool_use_exhausted"
	Identical = "identical_calls"
)

// An End says how a turn ended.
type End struct {
	// History is the conversation as it is now.
	History []agent.Message
	// Reason is one of the constants above or what a function of Loop gave.
	Reason string
	Stop   string // the last stop reason
	Text   string // what the model said last
	// Whole is Text with the parts that stand before it because a response
	// broke off, where Text is without them. "" if there are none.
	Whole string
	// Trouble is set when a request failed for good, and for a refusal.
	Trouble *agent.Trouble
	// Turns is 1 and the number of results and notes the model was sent.
	Turns      int
	Steps      int // requests
	Usage      agent.Usage
	API        time.Duration
	TTFT       time.Duration // of the first response
	Structured json.RawMessage
	Deferred   *agent.ToolUse
	Denials    []agent.Denial
}

// Run continues history until the model stops. It returns when no call of the
// turn runs any more, but for one that did not heed its end within Grace. It
// changes no message of history, and may append to its array. Calls at its end
// that have no result yet are decided and run first.
func (l *Loop) Run(ctx context.Context, history []agent.Message) End {
	t := &turn{l: l, seed: maphash.MakeSeed(), end: End{History: history, Turns: 1}}
	if uses := unanswered(history); len(uses) > 0 {
		r := &reply{calls: t.newCalls(ctx)}
		for _, u := range uses {
			r.calls.add(u, "")
		}
		if !t.results(ctx, r) {
			return t.end
		}
	}
	for t.step(ctx) {
	}
	return t.end
}

// unanswered returns the calls at the end of h that have no result.
func unanswered(h []agent.Message) []*agent.ToolUse {
	if len(h) == 0 || h[len(h)-1].Role != agent.Assistant {
		return nil
	}
	var uses []*agent.ToolUse
	for _, b := range h[len(h)-1].Blocks {
		if u, ok := b.(*agent.ToolUse); ok {
			uses = append(uses, u)
		}
	}
	return uses
}

// Push returns h with m at its end. A message joins one of the same role
// before it, so that roles alternate; the bytes of what was there stay the
// same, and so does h. Blocks that no upstream takes (blank texts) are left out, and with
// them a message that has no others.
func Push(h []agent.Message, m agent.Message) []agent.Message {
	if slices.ContainsFunc(m.Blocks, blank) {
		m.Blocks, m.Wire = slices.DeleteFunc(slices.Clone(m.Blocks), blank), nil
	}
	if len(m.Blocks) == 0 {
		return h
	}
	m = m.Encode()
	n := len(h)
	if n == 0 || h[n-1].Role != m.Role {
		return append(h, m)
	}
	last := h[n-1].Encode()
	last.Blocks = slices.Concat(last.Blocks, m.Blocks)
	last.Wire = slices.Concat(last.Wire[:len(last.Wire)-1], json.RawMessage(","), m.Wire[1:])
	last.ID, last.UUID = m.ID, m.UUID
	last.Meta = last.Meta && m.Meta
	if last.Origin == "" {
		last.Origin = m.Origin
	}
	return append(h[:n-1:n-1], last)
}

func blank(b agent.Block) bool {
	t, ok := b.(*agent.Text)
	return ok && strings.TrimSpace(t.Text) == ""
}
