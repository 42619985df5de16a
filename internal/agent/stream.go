package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"
)

// A Provider is one upstream that speaks the Messages API.
type Provider interface {
	// Stream sends req and yields what the model writes, in order. It ends
	// after a Done, or after exactly one non-nil error, which is a *ModelError
	// unless ctx ended. Leaving the range loop, or ending ctx, abandons the
	// request. Retries that can be made without repeating a complete block
	// are made inside and told by Retrying, Reset and Switched deltas.
	Stream(ctx context.Context, req *Request) iter.Seq2[Delta, error]
}

// A Request is everything one model call carries. System, Tools and the head
// of Messages are the cached prefix: they are bytes, made once, and only ever
// appended to.
type Request struct {
	Model     string
	MaxTokens int             // 0: the provider's default for the model
	System    json.RawMessage // array of text blocks with their cache marks; nil for none
	Tools     json.RawMessage // array of definitions; nil for none
	Messages  []Message
	// Mark puts the moving cache mark on the last block of the last message
	// but MarkBack (0 is the last itself). No mark if Mark is false.
	Mark     bool
	MarkBack int
	Thinking Thought
	Effort   string // low … max; empty for the model's default
	// Extra holds further top-level keys, sorted by name when sent (tool_choice, output_config, …).
	Extra map[string]json.RawMessage
	// Features names beta features the request relies on ("tool-search", "context-management", …).
	Features []string
	// Purpose says who asks: "main", "agent", "compact", "hook", "search", "fetch", "classifier", "title".
	Purpose string
	Agent   string // id of the sub-agent that asks, or ""
	Whole   bool   // ask for one JSON answer instead of a stream
}

// A Thought says how much the model may think before it answers.
type Thought struct {
	Type    string // "", "adaptive", "enabled", "disabled"; "" is the model's default
	Budget  int    // tokens, for "enabled"
	Display string // "", "omitted", "summarized"
}

// A Delta is one step of a model stream: Begin, BlockBegin, Chunk, BlockEnd,
// Stopped, Done, Unknown, or news of the attempt itself: Reset, Retrying,
// Switched, Waiting, Crossed.
type Delta interface{ delta() }

type (
	// Begin opens a response: message_start.
	Begin struct {
		MessageID, Model string
		RequestID        string // the upstream's name for the request, from its headers
		Usage            Usage
		Whole            bool // the answer came in one piece, not as a stream
	}
	// BlockBegin opens the block with that index. Block holds what is known yet.
	BlockBegin struct {
		Index int
		Block Block
	}
	// Chunk is a piece of the open block with that index. Kind is the wire's
	// name of the piece: text_delta, thinking_delta, signature_delta,
	// input_json_delta, citations_delta (Text is then JSON).
	Chunk struct {
		Index int
		Kind  string
		Text  string
	}
	// BlockEnd closes a block: it is complete and, for a ToolUse, parsed.
	BlockEnd struct {
		Index int
		Block Block
	}
	// Stopped says why the model stopped; Usage is final: message_delta.
	Stopped struct {
		Stop     string // end_turn, tool_use, max_tokens, stop_sequence, refusal, pause_turn, …
		Sequence string
		Usage    Usage
	}
	// Done ends a response: message_stop.
	Done struct{}
	// Unknown is an event of a type this program does not know, kept.
	Unknown struct {
		Type string
		Raw  json.RawMessage
	}
	// Reset says that the attempt so far came to nothing: every block that was
	// opened and not ended is void, and so is the Begin. A new attempt follows.
	Reset struct{ Reason string }
	// Retrying says that the next attempt starts after Wait.
	Retrying struct {
		Attempt, Max int // Attempt counts from 1
		Wait         time.Duration
		Status       int    // HTTP status, 0 if there was no answer
		Kind         string // rate_limit, overloaded, server_error, authentication_failed, unknown, …
		Err          string
		At           time.Time // when the next attempt starts
	}
	// Switched says that another model answers from here on.
	Switched struct{ From, To, Reason string }
	// Waiting says that nothing has come for a while, and what is waited for.
	Waiting struct {
		For   string // connect, first byte, next byte
		Since time.Duration
		Limit time.Duration
	}
)

func (Begin) delta()      {}
func (BlockBegin) delta() {}
func (Chunk) delta()      {}
func (BlockEnd) delta()   {}
func (Stopped) delta()    {}
func (Done) delta()       {}
func (Unknown) delta()    {}
func (Reset) delta()      {}
func (Retrying) delta()   {}
func (Switched) delta()   {}
func (Waiting) delta()    {}
func (Crossed) delta()    {}

// A Fault classifies a failed model request by what the caller may do about it.
type Fault uint8

const (
	FaultOther     Fault = iota // tell the user
	FaultTransient              // retries are used up: try again later
	FaultTruncated              // the stream ended early; the complete blocks that were yielded are usable
	FaultTooLong                // compact, then try again
	FaultTooLarge               // drop media, then try again (HTTP 413)
	FaultAuth                   // ask the user to sign in
	FaultModel                  // no such model
	FaultBlock                  // one content block is refused; Path names it
	FaultBilling                // no credit
)

// A ModelError is a failed model request.
type ModelError struct {
	Op        string // connect, send, read, decode
	Fault     Fault
	Status    int    // HTTP status, 0 if there was no answer
	Type      string // the API's error type, if it gave one
	Message   string // the API's words, or what happened
	RequestID string
	Gateway   string // host and port that was asked
	Path      string // the part of the request the API named, such as messages.3.content.1
	Attempts  int
	Err       error // the cause, may be nil
}

func (e *ModelError) Error() string {
	s := "model: " + e.Op + ": " + e.Message
	if e.Status != 0 {
		s += fmt.Sprintf(" (status %d)", e.Status)
	}
	if e.RequestID != "" {
		s += " (request " + e.RequestID + ")"
	}
	return s
}
func (e *ModelError) Unwrap() error { return e.Err }
