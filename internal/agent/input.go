package agent

import (
	"context"
	"encoding/json"
	"iter"
)

// A Session is all that a front end can see of the program.
type Session interface {
	// Submit hands in an input. It returns once the input is accepted, not
	// when its effects are done. It may be called concurrently.
	Submit(ctx context.Context, in Input) error
	// Events yields the events with Seq >= from, then follows until ctx ends
	// (which yields the cause as an error) or the session is over. A slow
	// reader loses only ephemeral events that a later durable one covers.
	Events(ctx context.Context, from uint64) iter.Seq2[Event, error]
}

// An Input is what a front end asks of a session.
type Input interface{ input() }

type (
	// Prompt is a user message. While a turn runs it joins the turn with the
	// next tool results, unless Later is set; otherwise it starts a turn.
	Prompt struct {
		UUID   string // "" gets one
		Blocks []Block
		// Origin says who speaks: "" or "human"; "shell" is a command that a
		// person typed, to be run as it stands.
		Origin string
		Meta   bool
		// Quiet appends to the history without starting a turn.
		Quiet bool
		// Later waits for the running turn to end.
		Later bool
		// Verbatim text is never expanded as a command.
		Verbatim bool
		// Replay asks for the message to be echoed by Said with Replay set.
		Replay bool
	}
	// Interrupt ends the running turn.
	Interrupt struct{ Reason string }
	// Answer ends a question. ID is the question's.
	Answer struct {
		ID       string
		Decision Decision        // for permission questions
		Payload  json.RawMessage // for the other kinds
		Err      string
	}
	SetMode  struct{ Mode Mode }
	SetModel struct{ Model string } // "" resets
	// SetThinking changes thinking and effort from the next request on.
	SetThinking struct {
		Thought Thought
		Effort  string
	}
	// Grant applies permission updates as if a person had given them with an answer.
	Grant struct{ Updates []PermissionUpdate }
	// Compact shortens the history; Focus says what to keep.
	Compact struct{ Focus string }
	// Unqueue takes back a queued prompt.
	Unqueue struct{ UUID string }
	// Query asks for information or for an effect that is not part of the
	// conversation; a Replied with the same ID answers. Names are those of
	// the SDK's control requests (mcp_status, get_context_usage, …).
	Query struct {
		ID   string
		Name string
		Args json.RawMessage
	}
	// Finish says that no more inputs but Answers, Interrupts and Queries
	// will come: the session works off its queue, waits for background
	// agents, then ends.
	Finish struct{}
	// Stop ends the session at once; the running turn is left unfinished.
	Stop struct{ Reason string }
)

func (Prompt) input()      {}
func (Interrupt) input()   {}
func (Answer) input()      {}
func (SetMode) input()     {}
func (SetModel) input()    {}
func (SetThinking) input() {}
func (Grant) input()       {}
func (Compact) input()     {}
func (Unqueue) input()     {}
func (Query) input()       {}
func (Finish) input()      {}
func (Stop) input()        {}

// Kinds of Question.
const (
	AskPermission = "permission" // Call, Decision (the pending one) are set
	AskHook       = "hook"       // Payload is the hook input; Name the callback id
	AskMCP        = "mcp"        // Payload is a JSON-RPC message; Name the server
	AskElicit     = "elicitation"
	AskDialog     = "dialog"
	// AskConfirm is a yes or no of the person at the terminal: Title says to
	// what, and Allow is the yes. No host is asked it.
	AskConfirm = "confirm"
)

// A Question is something only a front end can answer.
type Question struct {
	ID       string
	Kind     string
	Call     Call     // for permission questions, and the call a hook is about
	Decision Decision // for permission questions: why it is asked
	Name     string
	Payload  json.RawMessage
	Agent    string // sub-agent that asks
	Title    string
	// OneWay questions need no answer.
	OneWay bool
}

// An Asker puts a question to the front ends and waits for the first answer.
// It fails with the cause of ctx, after withdrawing the question, and with
// ErrNoOne when no front end can answer that kind.
type Asker func(ctx context.Context, q Question) (Answer, error)
