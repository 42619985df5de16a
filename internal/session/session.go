// Package session owns one conversation: its history, mode, model, queue and
// the turn in progress, and what all of it has cost. One goroutine, Run, takes
// the inputs; one more runs the turn. The rest of the program submits inputs
// and reads events.
//
// It does not look inside a model stream (that is loop's), does not decide
// what may run (gate's), and touches no file and no network: all that is
// handed in as functions by the composition root.
package session

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/journal"
	"github.com/seed-eb844fcb/cinch/internal/loop"
	"github.com/seed-eb844fcb/cinch/internal/window"
)

// Options says what a session is made of. Fields without a word on nil are
// required. Functions are called from several goroutines at a time.
type Options struct {
	ID string
	// History is the conversation so far. It is mended where calls have no
	// result, or the wrong ones.
	History []agent.Message
	// Source is how the session came to be: startup, resume, fork, clear. "" is
	// startup, or resume if there is a History.
	Source string
	// Deferred names the call at the end of History that waits for its
	// decision: it is decided anew, and run, before the next request.
	Deferred agent.CallID

	Provider agent.Provider
	Tools    *Tools
	// Check compares input with a tool's schema. Nil: no check.
	Check func(spec agent.Spec, input json.RawMessage) error
	// Window makes the request over the main history.
	Window func(history []agent.Message) *agent.Request
	// Gate decides about the calls of the main conversation and, unless they
	// bring their own, of sub-agents (Call.Agent names them).
	Gate func(ctx context.Context, c agent.Call) (agent.Decision, error)
	// Hook runs user hooks. Nil: there are none.
	Hook agent.Hooker
	// After sees each call that ran (PostToolUse). Nil: the result stands.
	After func(ctx context.Context, f agent.Finished) agent.Result
	// Batch sees the calls of a step (PostToolBatch). Nil: nothing is added.
	Batch func(ctx context.Context, fs []agent.Finished) (behind []agent.Block, end string)

	// Fit shortens the history before a request, Recover after a refusal,
	// Compact because a person asked. Nil: the history stays.
	Fit     func(ctx context.Context, h []agent.Message) window.Outcome
	Recover func(ctx context.Context, h []agent.Message, err error) (window.Outcome, bool)
	Compact func(ctx context.Context, h []agent.Message, focus string) agent.Compacted
	// Answered is told of each response of the main conversation. Nil: nobody is.
	Answered func(messageID string, u agent.Usage)

	// Expand turns a prompt that is not Verbatim into what it stands for
	// (slash commands, mentions). Nil: it stands for itself.
	Expand func(ctx context.Context, p agent.Prompt) (Expansion, error)
	// Opening returns the notes that stand before the first prompt of a
	// conversation; source is startup, clear, …. Nil: none.
	Opening func(ctx context.Context, source string, hooks []string) []agent.Block
	// Remind returns notes about what changed since the last request; they
	// join the next prompt or the results of a step. Nil: none.
	Remind func(ctx context.Context) []agent.Block
	// Checkpoint is called before each prompt, with its uuid. Nil: nothing is kept.
	Checkpoint func(ctx context.Context, uuid string)

	// Info describes the session; ID, mode, model, effort and tools are
	// filled in by the session. Nil: only those.
	Info func() agent.Info
	// Queries answer what a host asks by name, besides those the session
	// knows itself.
	Queries map[string]Query

	Model  string
	Effort string
	Mode   agent.Mode
	// Resolve turns a model's name into an id; "" is the default. Nil: as given.
	Resolve func(name string) (string, error)
	// Changed is told of a new model, effort or thinking before the next
	// request. Nil: nobody is.
	Changed func(model string, t agent.Thought, effort string)
	// AllowMode says whether a mode may be switched to. Nil: any.
	AllowMode func(agent.Mode) error
	// Grant applies permission updates other than setMode. Nil: they are lost.
	Grant func(ctx context.Context, us []agent.PermissionUpdate) error

	// Price is the cost of a response in US dollars. Nil: nothing costs anything.
	Price func(model string, u agent.Usage) float64
	// Limits are the sizes of a model. Nil: unknown.
	Limits func(model string) (window, output int)
	// MaxTurns bounds the requests of a turn, MaxBudget the cost of the
	// session in US dollars. 0: no bound.
	MaxTurns  int
	MaxBudget float64

	// Structured is set when the answer must come as a StructuredOutput call.
	Structured bool
	// StructuredRetries is how many wrong ones are sent back. 0: 5.
	StructuredRetries int

	// Agents caps sub-agents.
	Agents AgentLimits
	// Busy waits until no background agent runs and their notices have been
	// submitted. Nil: there are none.
	Busy func(ctx context.Context) error
	// Ceiling bounds that wait after a Finish. 0: 10 minutes; < 0: no bound.
	Ceiling time.Duration
	// Tasks lists background work, for the stop hooks. Nil: none.
	Tasks func() []agent.Task
	// Close ends background work; it is called once, when no turn runs any
	// more and none will. Nil: nothing to do.
	Close func(ctx context.Context)

	// Answerable says whether some front end can answer questions of that
	// kind. Nil: yes.
	Answerable func(kind string) bool
	// Sink saves durable events. Nil: nothing is saved.
	Sink journal.Sink
	// NewID makes uuids. Nil: random ones.
	NewID func() string
	// Clear makes the session start anew: it returns the new session's id.
	// Nil: /clear is not possible.
	Clear func(ctx context.Context) (id string, err error)
}

// An Expansion is what a prompt stands for.
type Expansion struct {
	// Messages go to the model in place of the prompt; none of them makes a
	// turn that ends without asking the model.
	Messages []agent.Message
	// Local is shown, and not sent.
	Local string
	// Failed says that Local tells why nothing was done.
	Failed bool
	// Inputs are done first: Compact, SetModel, SetMode, SetThinking, Grant.
	Inputs []agent.Input
	// Clear starts the conversation anew.
	Clear bool
	// Name is the command's, for hooks.
	Name string
}

// A Query answers what a host asks.
type Query struct {
	// Run answers. It may be called concurrently with others. An error with a
	// method Code() string gives the machine word for it.
	Run func(ctx context.Context, args json.RawMessage) (any, error)
	// First holds back turns, and the queries behind it, until it is answered.
	First bool
}

// AgentLimits cap the sub-agents of a session. Zero fields have the defaults.
type AgentLimits struct {
	Depth      int // levels below the main conversation; 3
	Concurrent int // at one time; 20
	Total      int // in the session; 200
	// Tokens, Cost and Time cap one tree: an agent and all below it. 0: no cap.
	Tokens int
	Cost   float64
	Time   time.Duration
}

// A Session is a running conversation.
type Session struct {
	o   Options
	log *journal.Journal
}

var _ agent.Session = (*Session)(nil)

// New returns a session; Run drives it.
func New(o Options) *Session { return &Session{o: o, log: journal.New(o.Sink)} }

// Run serves inputs until a Finish or Stop has been worked off, or ctx ends,
// which is a Stop. When it returns, no goroutine and no call of the session
// runs any more and the events have ended. It is called once.
func (s *Session) Run(ctx context.Context) {}

// Submit implements [agent.Session]. SetMode, SetModel, SetThinking and Grant
// have been applied when it returns, or its error says why not.
func (s *Session) Submit(ctx context.Context, in agent.Input) error { return nil }

// Events implements [agent.Session].
func (s *Session) Events(ctx context.Context, from uint64) iter.Seq2[agent.Event, error] {
	return s.log.Read(ctx, from)
}

// Emit records a fact that happened outside of a turn's loop (a hook, a
// background job). It may be called concurrently.
func (s *Session) Emit(parent agent.CallID, agentID string, b agent.Body) {}

// Ask puts a question to the front ends: it is an [agent.Asker].
func (s *Session) Ask(ctx context.Context, q agent.Question) (agent.Answer, error) {
	return agent.Answer{}, agent.ErrNoOne
}

// History returns the conversation as it was last sent or settled.
func (s *Session) History() []agent.Message { return nil }

// Info describes the session as it is now.
func (s *Session) Info() agent.Info { return agent.Info{} }

// Mode, Model, Effort and Thinking are the current choices.
func (s *Session) Mode() agent.Mode                  { return s.o.Mode }
func (s *Session) Model() string                     { return s.o.Model }
func (s *Session) Thinking() (agent.Thought, string) { return agent.Thought{}, s.o.Effort }

// Totals returns what was used in the session so far.
func (s *Session) Totals() (models []agent.ModelUsage, cost float64) { return nil, 0 }

// Rewind replaces the history while no turn runs; the body (Rewound) tells it.
func (s *Session) Rewind(ctx context.Context, r agent.Rewound) error { return nil }

// A Child is a sub-agent to run.
type Child struct {
	ID     string       // "" gets one
	Type   string       // agent type, for hooks
	Call   agent.CallID // the call that spawns it: the Parent of its events
	Parent string       // id of the agent that spawns it, or ""
	// History to continue (a fork, a resumption); it is mended first.
	History []agent.Message
	// Prompt is the first, or next, user message.
	Prompt   []agent.Block
	Provider agent.Provider // nil: the session's
	Tools    func(name string) agent.Tool
	Window   func(history []agent.Message) *agent.Request
	// Gate, Fit and Recover stand in for the session's. Nil: the session's
	// Gate; no Fit; no Recover.
	Gate     func(ctx context.Context, c agent.Call) (agent.Decision, error)
	Fit      func(ctx context.Context, h []agent.Message) window.Outcome
	Recover  func(ctx context.Context, h []agent.Message, err error) (window.Outcome, bool)
	MaxTurns int
	// Progress is told after each call and response. Nil: nobody is.
	Progress func(agent.TaskUsage, string)
}

// Spawned is what a sub-agent left.
type Spawned struct {
	ID  string
	End loop.End // with its History, for a resumption
	// Partial says that the text is not a finished answer; Why says why.
	Partial bool
	Why     string
	Tools   int
	Tokens  int
	Cost    float64
	Took    time.Duration
	Models  []string
}

// Spawn runs a sub-agent to its end in the caller's goroutine. Its error says
// that it was not started (a cap, a hook). Everything else is in Spawned.
func (s *Session) Spawn(ctx context.Context, c Child) (Spawned, error) { return Spawned{}, nil }

// Tell hands a message to a running sub-agent: it joins the results of its
// next step. It reports whether such an agent runs.
func (s *Session) Tell(id string, blocks []agent.Block) bool { return false }
