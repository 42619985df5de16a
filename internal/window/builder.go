// Package window builds what the model sees. It owns the layout of a request
// (tools, system text, messages), the stability of its prefix and the cache
// marks, the notes that open a conversation and those that follow a change,
// and the account of what fills the window. It does not know the network,
// settings or front ends: files come through memory.Options, everything else
// as values and functions.
package window

import (
	"context"
	"encoding/json"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/window/audit"
	"github.com/seed-eb844fcb/cinch/internal/window/compact"
	"github.com/seed-eb844fcb/cinch/internal/window/memory"
	"github.com/seed-eb844fcb/cinch/internal/window/prompt"
)

// The parts of the context engine under one name, for those who may import
// this package only.
type (
	Compactor = compact.Compactor
	Outcome   = compact.Outcome
	Cut       = compact.Cut
	Limits    = compact.Limits
	Section   = prompt.Section
	Record    = audit.Record
	Break     = audit.Break
)

// Options is what a Builder is made from.
type Options struct {
	Model string
	// Sections make the system text.
	Sections []prompt.Section
	// Recorded, if not nil, is the system text as an earlier run of the same
	// conversation sent it: it is used in place of Sections.
	Recorded json.RawMessage
	// Tools are the tools on offer. Names that start with mcp__ stand behind
	// the others; each part is sorted by name.
	Tools []agent.Spec
	// ToolSearch sends the definitions of Deferred tools only once they were
	// looked up. Without it all are sent.
	ToolSearch bool
	MaxTokens  int
	Thinking   agent.Thought
	Effort     string
	Extra      map[string]json.RawMessage
	Features   []string
	Purpose    string // "" is main
	Agent      string
	NoCache    bool
	TTL        string // of cache marks: "" or "1h"
	// Now is the clock of the audit. Nil: time.Now.
	Now func() time.Time
}

// A Builder makes the requests of one conversation. Its methods may be called
// concurrently.
type Builder struct {
	o Options
}

// New returns a Builder. It never fails: a tool without a usable schema gets
// an empty one, and Problems names it.
func New(o Options) *Builder { return &Builder{o: o} }

// Request returns the request over h. Bytes that were sent before are sent
// again as they were; if h differs in a part that was sent, Records tells it.
// The request shares the encoded bytes with h and is valid for ever.
func (b *Builder) Request(h []agent.Message) *agent.Request {
	return &agent.Request{Model: b.o.Model, MaxTokens: b.o.MaxTokens, Messages: h, Mark: !b.o.NoCache,
		Thinking: b.o.Thinking, Effort: b.o.Effort, Extra: b.o.Extra, Features: b.o.Features, Purpose: b.o.Purpose, Agent: b.o.Agent}
}

// For returns a copy of req for another purpose ("compact", …), with the same
// prefix and with last as its final user text.
func (b *Builder) For(req *agent.Request, purpose, last string) *agent.Request { return req }

// System returns the system text as it is sent, to be recorded with the conversation.
func (b *Builder) System() json.RawMessage { return nil }

// AppendTools adds tools behind those already there; a name that is there
// stays as it is. Deferred ones wait until they are loaded.
func (b *Builder) AppendTools(specs ...agent.Spec) {}

// Load adds the definitions of deferred tools that were looked up.
func (b *Builder) Load(names ...string) {}

// SetModel changes the model from the next request on.
func (b *Builder) SetModel(model string, maxTokens int) {}

// SetThinking changes thinking and effort from the next request on.
func (b *Builder) SetThinking(t agent.Thought, effort string) {}

// Reset replaces system text and tools: at /clear, after a compaction, when
// the person changes the tools. reason says why the prefix changes.
func (b *Builder) Reset(reason string, sections []prompt.Section, tools []agent.Spec) {}

// Plan says that the next request may differ from what was sent, and why.
func (b *Builder) Plan(reason string) {}

// Without turns a feature off that the upstream refused ("tool-search", …):
// all tools are sent in full from then on. It reports whether that changes anything.
func (b *Builder) Without(feature string) bool { return false }

// Answered notes the usage of the answer to the newest request.
func (b *Builder) Answered(u agent.Usage) {}

// Records returns the audit of all requests so far.
func (b *Builder) Records() []audit.Record { return nil }

// Overhead estimates the tokens of system text and tools.
func (b *Builder) Overhead() int { return 0 }

// An Opening is what a conversation starts with, apart from the prompt.
type Opening struct {
	// Memory holds the instruction files. Nil for none.
	Memory *memory.Set
	// Git describes the state of the repository, or returns "" outside of one.
	// It has its own clock. Nil: no such note.
	Git func(ctx context.Context) string
	Environment
	Deferred []string // names of deferred tools
	Agents   []agent.AgentInfo
	Skills   string // the listing, made by its owner
	// More are further notes (hook output, mode, …).
	More []Note
}

// An Environment is where a session runs.
type Environment struct {
	Cwd      string
	Dirs     []string // further working directories
	Repo     bool     // Cwd is inside a git repository
	Platform string   // linux, darwin, windows
	OS       string   // name and release
	Shell    string
	Model    string
	Date     string // 2006-01-02
	Mode     agent.Mode
}

// A Note is a text for the model with the kind that tells notes apart.
type Note struct{ Kind, Text string }

// Blocks returns the notes for the first user message, before the prompt.
// Each is a *agent.Text with Note set; empty ones are left out.
func (o Opening) Blocks(ctx context.Context) []agent.Block { return nil }

// Remind wraps text as a reminder to the model: never part of what the person
// said, and never to be answered. It returns nil if text is blank.
func Remind(kind, text string) agent.Block {
	return &agent.Text{Text: "<system-reminder>\n" + text + "\n</system-reminder>", Note: kind}
}
