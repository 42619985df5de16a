package agent

import (
	"encoding/json"
	"time"
)

// An Event is a fact about a session. Front ends are folds over events.
type Event struct {
	Seq    uint64
	At     time.Time
	Parent CallID // the call whose sub-agent this happened in, or ""
	Agent  string // the id of that sub-agent, or ""
	Body   Body
}

// A Body is the fact. Durable facts stay readable for the life of the
// session; ephemeral ones (see Ephemeral) are superseded by the next Said of
// the same Parent.
type Body interface{ body() }

type (
	// Opened is the first event of a session.
	Opened struct{ Info Info }
	// Began opens a turn. Info is the session as it is now; Prompts are the
	// uuids of the user messages that caused it.
	Began struct {
		Info    Info
		Prompts []string
		Origin  string
	}
	// Said is one finished part of the conversation. Of a model's response
	// there is one Said for each finished block, all with the same
	// Message.ID; user messages come whole.
	Said struct {
		Message   Message
		RequestID string // of the response, from its headers
		Model     string
		Usage     Usage  // as known when the block ended
		Stop      string // set on the last block only if it was known then
		// Replay marks a user message that came from a host and may be echoed to it.
		Replay bool
		// Err marks a message made by the program in place of an answer that
		// failed; it is shown and recorded but never sent to the model.
		Err *Trouble
		// Aborted marks text that was cut by an interrupt.
		Aborted bool
		// Hidden messages are recorded and sent but not shown.
		Hidden bool
	}
	// Responded closes a response: its final stop reason and usage.
	Responded struct {
		MessageID, RequestID, Model string
		Stop                        string
		Usage                       Usage
		Cost                        float64 // US dollars
		TTFT, Took                  time.Duration
		Purpose                     string
	}
	// Wrote is one delta of a running response. Ephemeral.
	Wrote struct{ Delta Delta }
	// Asked is a question that a front end may answer with an Answer.
	Asked struct{ Question Question }
	// Answered says how a question ended; the first answer wins.
	Answered struct {
		ID       string
		Kind     string
		Call     CallID
		Decision Decision // for permission questions
	}
	// Withdrawn says that a question needs no answer any more.
	Withdrawn struct{ ID, Reason string }
	// Decided is the verdict on one call, whoever gave it.
	Decided struct {
		Call     Call
		Decision Decision
	}
	// Started says that a call runs from here on; on disk before Run begins
	// when the call may write.
	Started struct{ Call Call }
	// Progressed is news of a running call. Ephemeral.
	Progressed struct {
		ID       CallID
		Tool     string
		Progress Progress
		Elapsed  time.Duration
	}
	// Finished is the outcome of a call. Waited and Took are its times in
	// the queue and at work; Result.Blocks are what the model gets.
	Finished struct {
		Call         Call
		Result       Result
		Decision     Decision
		Ran          bool // false if it never started
		Waited, Took time.Duration
	}
	// Noted is a line for the person: Level is info, notice, warning, error.
	Noted struct {
		Level, Text string
		Call        CallID
		Stops       bool // the turn does not go on
	}
	// Local is the output of a command that ran without the model.
	Local struct{ Text string }
	// Hooked is one step of a user hook: started, progress, response.
	Hooked struct {
		Stage, ID, Name, Event string
		Output, Stdout, Stderr string
		ExitCode               int
		Outcome                string // success, error, cancelled
		Quiet                  bool   // shown only where hook events were asked for
		Took                   time.Duration
	}
	// Worked is a change of a background task.
	Worked struct {
		Stage string // started, progress, updated, ended
		Task  Task
	}
	// Compacting says that the history is being shortened; Compacted ends it.
	Compacting struct{ Trigger string }
	// Compacted replaces the history by History.
	Compacted struct {
		Trigger   string // auto, manual
		Pre, Post int    // tokens
		Took      time.Duration
		Summary   string
		History   []Message
		Err       string // set if nothing was replaced
	}
	// Changed says that mode, model, effort or settings are different now.
	Changed struct {
		What string // mode, model, effort, thinking, title, rules, commands, tools, cwd
		Info Info
	}
	// Cleared says that the conversation starts anew under Session.
	Cleared struct{ Session string }
	// Rewound says that the history, files, or both went back to a message.
	Rewound struct {
		To      string
		Files   []string
		History []Message // nil if only files went back
	}
	// Mended says that History stands in for the history before: blocks were
	// cut or replaced so that the upstream takes it. Reason is for a person.
	Mended struct {
		Reason  string
		History []Message
	}
	// Crossed is a boundary that was crossed: connect, TLS, request, first
	// byte, tool, permission, hook, MCP call, egress, compaction, retry.
	Crossed struct {
		ID, Boundary, Name string
		Start, End         time.Time
		Attempt            int
		Outcome            string // ok, error, cancelled, unknown
		Detail             map[string]string
	}
	// Lifecycle tells the fate of a user message that has a uuid: queued,
	// started, completed, cancelled.
	Lifecycle struct{ UUID, State string }
	// Replied answers a Query. Ephemeral in meaning, kept until read.
	Replied struct {
		ID    string
		Value any    // encoded as JSON by the front end that asked
		Err   string // not "": the query failed
		Code  string // a machine word for Err
	}
	// State is idle, running or requires_action.
	State struct{ State string }
	// Settled is always the last event of a turn, exactly once.
	Settled struct{ Outcome Outcome }
)

func (Opened) body()     {}
func (Began) body()      {}
func (Said) body()       {}
func (Responded) body()  {}
func (Wrote) body()      {}
func (Asked) body()      {}
func (Answered) body()   {}
func (Withdrawn) body()  {}
func (Decided) body()    {}
func (Started) body()    {}
func (Progressed) body() {}
func (Finished) body()   {}
func (Noted) body()      {}
func (Local) body()      {}
func (Hooked) body()     {}
func (Worked) body()     {}
func (Compacting) body() {}
func (Compacted) body()  {}
func (Changed) body()    {}
func (Cleared) body()    {}
func (Rewound) body()    {}
func (Mended) body()     {}
func (Crossed) body()    {}
func (Lifecycle) body()  {}
func (Replied) body()    {}
func (State) body()      {}
func (Settled) body()    {}

// Ephemeral reports whether b may be dropped once a later Said of the same
// Parent covers it.
func Ephemeral(b Body) bool {
	switch b.(type) {
	case Wrote, Progressed:
		return true
	}
	return false
}

// A Trouble is a failure told as a message.
type Trouble struct {
	Kind   string // unknown, invalid_request, authentication_failed, rate_limit, overloaded, server_error, model_not_found, max_output_tokens, billing_error
	Status int    // HTTP status, or 0
	Type   string // the API's error type
	Text   string
}

// An Outcome is how a turn ended.
type Outcome struct {
	// Subtype is success, error_during_execution, error_max_turns,
	// error_max_budget_usd or error_max_structured_output_retries.
	Subtype string
	IsError bool
	// Reason is the terminal_reason: completed, max_turns, budget_exhausted,
	// api_error, prompt_too_long, image_error, aborted_tools, aborted_streaming,
	// tool_deferred, hook_stopped, structured_output_retry_exhausted, …
	Reason string
	Stop   string // the last stop_reason
	Text   string // the answer
	// Whole, if not "", is the answer with the part before it that a broken
	// stream cut off; Text has only what came after.
	Whole      string
	Errors     []string
	APIStatus  int // of a failed request, or 0
	Turns      int
	Took, API  time.Duration
	TTFT       time.Duration
	Usage      Usage // of the main conversation in this turn; Models has all
	Models     []ModelUsage
	Cost       float64 // US dollars, of the session
	Denials    []Denial
	Structured json.RawMessage
	Deferred   *ToolUse
	Origin     string
	Prompts    []string // uuids of the user messages of the turn
}

// A ModelUsage is what one model was used for in the session so far.
type ModelUsage struct {
	Model         string
	Usage         Usage
	Cost          float64
	ContextWindow int
	MaxOutput     int
}

// A Denial is one call that was not allowed.
type Denial struct {
	Tool  string          `json:"tool_name"`
	ID    CallID          `json:"tool_use_id"`
	Input json.RawMessage `json:"tool_input"`
}

// A Task is work that goes on beside the turns.
type Task struct {
	ID, Type    string // local_bash, local_agent
	Call        CallID
	Status      string // running, completed, failed, killed
	Description string
	Command     string
	Agent       string // agent type
	Owner       string // id of the sub-agent that started it, or ""
	Output      string // file that holds the output
	Summary     string
	Background  bool
	Depth       int
	Prompt      string
	Usage       TaskUsage
	Started     time.Time
	Ended       time.Time
	Err         string
	LastTool    string
}

// TaskUsage counts what a task took.
type TaskUsage struct {
	Tokens, Tools int
	Took          time.Duration
}

// Info describes a session to a front end.
type Info struct {
	Session, Cwd, Model, Version string
	Mode                         Mode
	Tools                        []string
	Servers                      []Server
	Commands                     []CommandInfo
	Agents                       []AgentInfo
	Skills                       []string
	Plugins                      []PluginInfo
	OutputStyle                  string
	KeySource                    string
	Effort                       string
	Directories                  []string
	MemoryDir                    string
	Title                        string
	Sandboxed                    bool
}

type (
	// A Server is the state of one MCP server.
	Server struct {
		Name, Status, Source, Err string // Status: pending, connected, needs-auth, failed, disabled
	}
	// A CommandInfo is one slash command.
	CommandInfo struct {
		Name, Description, Hint string
		Aliases                 []string
		Builtin                 bool
		Skill                   bool
	}
	// An AgentInfo is one kind of sub-agent.
	AgentInfo struct{ Name, Description, Model string }
	// A PluginInfo is one loaded plugin.
	PluginInfo struct{ Name, Path, Source string }
)
