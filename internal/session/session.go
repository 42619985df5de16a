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
	"errors"
	"iter"
	"slices"
	"sync"
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

	// Load is told the deferred tools that a call loaded. Nil: nobody is.
	Load func(names ...string)

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

	Model    string
	Thinking agent.Thought
	Effort   string
	Mode     agent.Mode
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
	// Name is the command's, for the UserPromptExpansion hooks, which are
	// asked before Messages are sent; the others say how it was called and
	// where it comes from. Kind is slash_command if empty, or mcp_prompt.
	Name, Args, Source, Kind string
}

// A Query answers what a host asks.
type Query struct {
	// Run answers. It may be called concurrently with others. An error with a
	// method Code() string gives the machine word for it.
	Run func(ctx context.Context, args json.RawMessage) (any, error)
	// First holds back turns, and the queries behind it, until it is answered.
	First bool
}

// A Session is a running conversation. Its methods may be called concurrently.
type Session struct {
	o      Options
	log    *journal.Journal
	inputs chan submission
	// closing is closed when no more inputs are taken, over when no goroutine
	// of the session asks or waits any more.
	closing, over chan struct{}

	mu      sync.Mutex
	id      string
	mode    agent.Mode
	model   string
	thought agent.Thought
	effort  string
	title   string
	history []agent.Message // as it was last sent or settled; never changed in place
	queue   []queued
	pending started // notes of hooks that wait for a prompt or request
	running bool    // a turn runs
	turns   int     // that began in this run
	account account
	denials []agent.Denial // of sub-agents, since the turn began
	asks    map[string]asked
	persons int // open questions for a person
	agents  map[string]*node
	spawned int
}

var _ agent.Session = (*Session)(nil)

// ErrOver reports that the session has ended.
var ErrOver = errors.New("the session is over")

const reasonBudget = loop.Budget

// New returns a session; Run drives it.
func New(o Options) *Session {
	if o.NewID == nil {
		o.NewID = randomID
	}
	if o.ID == "" {
		o.ID = o.NewID()
	}
	if o.Tools == nil {
		o.Tools = NewTools()
	}
	if o.Mode == "" {
		o.Mode = agent.ModeDefault
	}
	if o.StructuredRetries == 0 {
		o.StructuredRetries = 5
	}
	if o.Ceiling == 0 {
		o.Ceiling = 10 * time.Minute
	}
	o.Agents = o.Agents.withDefaults()
	h := Mend(o.History, o.Deferred)
	if o.Source == "" {
		o.Source = "startup"
		if len(h) > 0 {
			o.Source = "resume"
		}
	}
	return &Session{o: o, log: journal.New(o.Sink), inputs: make(chan submission), closing: make(chan struct{}), over: make(chan struct{}),
		id: o.ID, mode: o.Mode, model: o.Model, thought: o.Thinking, effort: o.Effort, history: h, pending: started{source: o.Source},
		asks: map[string]asked{}, agents: map[string]*node{}}
}

// Submit implements [agent.Session]. SetMode, SetModel, SetThinking and Grant
// have been applied when it returns, or its error says why not. Before Run it
// waits for Run; after Run it fails with ErrOver.
func (s *Session) Submit(ctx context.Context, in agent.Input) error {
	if a, ok := in.(agent.Answer); ok { // whoever asked may be what the owner waits for
		return s.answer(a)
	}
	return s.send(ctx, submission{in: in})
}

// A submission is an input, or a piece of work of the program itself, on its
// way to the goroutine of Run.
type submission struct {
	in   agent.Input
	do   func(*owner) error
	done chan error
}

func (s *Session) send(ctx context.Context, sub submission) error {
	sub.done = make(chan error, 1)
	select {
	case s.inputs <- sub:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.closing:
		return ErrOver
	}
	return <-sub.done // Run answers whatever it takes
}

// Events implements [agent.Session].
func (s *Session) Events(ctx context.Context, from uint64) iter.Seq2[agent.Event, error] {
	return s.log.Read(ctx, from)
}

// Emit records a fact: what happened outside of a turn's loop (a hook, a
// background job) comes in here too. When it returns, a durable fact is saved.
func (s *Session) Emit(parent agent.CallID, agentID string, b agent.Body) {
	if r, ok := b.(agent.Responded); ok {
		s.mu.Lock()
		s.account.add(r)
		s.mu.Unlock()
	}
	s.log.Append(parent, agentID, b)
}

func (s *Session) emit(b agent.Body) { s.Emit("", "", b) }

// History returns the conversation as it was last sent or settled. The caller
// must not change its messages.
func (s *Session) History() []agent.Message { return slices.Clip(s.current()) }

// current is History for those who append to it: one turn at a time.
func (s *Session) current() []agent.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.history
}

func (s *Session) setHistory(h []agent.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history = h
}

// Info describes the session as it is now.
func (s *Session) Info() agent.Info {
	var i agent.Info
	if s.o.Info != nil {
		i = s.o.Info()
	}
	if i.Tools == nil {
		i.Tools = s.o.Tools.Names()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i.Session, i.Mode, i.Model, i.Effort = s.id, s.mode, s.model, s.effort
	if s.title != "" {
		i.Title = s.title
	}
	return i
}

// ID is the session's id; it changes when the conversation starts anew.
func (s *Session) ID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Turns is how many turns began in this run, the one in progress included.
func (s *Session) Turns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turns
}

// Mode is the current permission mode.
func (s *Session) Mode() agent.Mode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mode
}

// Model is the id of the current model.
func (s *Session) Model() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model
}

// Thinking is how much the model may think, and its effort.
func (s *Session) Thinking() (agent.Thought, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.thought, s.effort
}

// SetTitle names the session.
func (s *Session) SetTitle(title string) {
	s.mu.Lock()
	s.title = title
	s.mu.Unlock()
	s.emit(agent.Changed{What: "title", Info: s.Info()})
}

// Rewind goes back to r.History while no turn runs, and tells r.
func (s *Session) Rewind(ctx context.Context, r agent.Rewound) error {
	return s.send(ctx, submission{do: func(o *owner) error {
		if o.turn != nil {
			return errors.New("going back is possible only between turns")
		}
		if r.History != nil {
			r.History = Mend(r.History, "")
			s.setHistory(r.History)
		}
		s.emit(r)
		return nil
	}})
}
