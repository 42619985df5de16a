package app

import (
	"encoding/json"
	"io"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/net/recording"
)

// Options is what the command line and the environment ask for. Values are as
// they were given; what they mean together is decided in Open.
type Options struct {
	Environ []string // KEY=value; of two entries for a key the last counts
	Cwd     string   // absolute
	Version string
	Started time.Time
	Stderr  io.Writer // warnings
	// Print says that nobody sits at a terminal; Streaming that a host drives
	// the session over standard input.
	Print, Streaming bool
	// Dialogs says that the front end can put every kind of question to a person.
	Dialogs bool

	Model, Effort   string
	Fallback        []string
	Thinking        string // adaptive, enabled, disabled
	ThinkingDisplay string
	ThinkingTokens  int
	ThinkingSet     bool
	Betas           []string
	OnlyHosts       []string // the only hosts that may be reached; nil: all

	Tools       []string // names of built-in tools; "default" is all
	ToolsSet    bool
	Allow       []string // permission rules
	Deny        []string
	Mode        agent.Mode // "" is the settings' choice
	AllowBypass bool
	PromptTool  string // MCP tool that answers permission questions; stdio is the host
	NoPrompts   bool
	Restricted  bool

	Directories     []string // absolute
	ProjectRoot     string   // where .claude is looked for; "" is Cwd
	Settings        string   // file or JSON
	ManagedSettings string   // JSON
	Sources         []string
	SourcesSet      bool

	MCPConfig      []string // files or JSON
	StrictMCP      bool
	Agents         string // JSON, or a file
	Agent          string
	PluginDirs     []string
	NoCommands     bool
	Bare, SafeMode bool

	SystemPrompt, AppendPrompt *string // nil: not given
	SubagentPrompt             string
	ExcludeDynamic             bool
	Schema                     json.RawMessage // of the answer; nil: none

	MaxTurns, TaskBudget int
	MaxBudget            float64 // US dollars

	Continue, ResumeSet, Fork                bool
	Resume, ResumeAt, DropsTurn, RewindFiles string
	SessionID, Name                          string
	NoPersistence                            bool
	Autocompact                              string

	Init, InitOnly, Maintenance bool
	AwaitInitialize             bool
	Debug                       bool
	DebugFile                   string

	// Record, if not nil, takes a recording of what is said to the model and
	// answered; RecordAs is kept at its head. Replay, if not nil, stands in for
	// the model and for every tool.
	Record   io.Writer
	RecordAs any
	Replay   *recording.Recording

	// BaseURL and APIKey, if set, stand in for the environment's; the demo
	// points them at the offline model.
	BaseURL, APIKey string
}

// NoPrompt reports whether the run does its work without one.
func (o *Options) NoPrompt() bool { return o.InitOnly || o.RewindFiles != "" }
