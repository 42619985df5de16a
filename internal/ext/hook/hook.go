// Package hook runs what users put at points of a session's life: commands,
// HTTP endpoints, MCP tools, questions to a model, and callbacks of a host.
// It owns the hooks block of settings files, which hooks match a moment, what
// they are given, how their answers are read, and how several answers become
// one. A hook only tightens: the strictest answer counts.
//
// It does not know the session, permissions or the network; what it needs of
// them are functions in Options.
package hook

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// Types of handlers.
const (
	Command  = "command"
	HTTP     = "http"
	MCPTool  = "mcp_tool"
	Prompt   = "prompt"
	Agent    = "agent"
	Callback = "callback" // of an SDK host
)

// A Handler is one hook as it was configured.
type Handler struct {
	Event   string
	Matcher string
	Type    string

	Command string
	Args    []string // exec form: no shell
	Shell   string   // bash, powershell; "" is sh

	URL         string
	Headers     map[string]string
	AllowedVars []string // environment variables that headers may name

	Server, Tool string
	Input        json.RawMessage

	Prompt, Model   string
	ContinueOnBlock bool

	CallbackID string

	If      string // a permission rule the call must match
	Timeout time.Duration
	Async   bool
	// Rewake: an asynchronous hook that ends with exit code 2 wakes an idle session.
	Rewake bool
	Once   bool
	// FailClosed makes a hook that could not give an answer count as a block
	// (ours: policy hooks must not be walked around by breaking them).
	FailClosed    bool
	StatusMessage string

	Source string // user, project, local, managed, flag, sdk, plugin:…, skill:…, agent:…
	File   string // where it stands, for messages
	Root   string // plugin or skill directory, or ""
	Data   string // the plugin's data directory, or ""
}

// Name is what messages call the hook.
func (h *Handler) Name() string {
	switch h.Type {
	case Command:
		if len(h.Args) > 0 {
			return strings.Join(append([]string{h.Command}, h.Args...), " ")
		}
		return h.Command
	case HTTP:
		return h.URL
	case MCPTool:
		return h.Server + "/" + h.Tool
	case Callback:
		return h.CallbackID
	}
	return h.Type
}

// key tells identical handlers of settings files apart from different ones.
func (h *Handler) key() string {
	if strings.Contains(h.Source, ":") || h.Type == Callback {
		return "" // copies of plugins and skills stay separate
	}
	b, err := json.Marshal([]any{h.Event, h.Matcher, h.Type, h.Command, h.Args, h.Shell, h.URL, h.Headers, h.Server, h.Tool, h.Input, h.Prompt, h.Model, h.If})
	if err != nil {
		return ""
	}
	return string(b)
}

// Options are what hooks need of the rest. Functions may be called concurrently.
type Options struct {
	// Common returns the fields every hook gets: session_id, transcript_path,
	// cwd, permission_mode, …
	Common func(m agent.Moment) map[string]any
	// Cwd is the current directory of tools; Project where the session
	// started; Home the fallback where both are gone.
	Cwd           func() string
	Project, Home string
	Env           []string
	// EnvFile returns the file whose lines hooks of that event may append to,
	// or "". Nil: there is none.
	EnvFile func(event string) string
	// Shell, if set, is a wrapper that gets the command line as one argument.
	ShellPrefix string

	// Post sends an HTTP hook. Nil: HTTP hooks fail.
	Post func(ctx context.Context, url string, header map[string]string, body []byte) (status int, answer []byte, err error)
	// AllowURL says whether an HTTP hook may go there. Nil: anywhere.
	AllowURL func(url string) bool
	// AllowVar says whether headers may hold that variable. Nil: what the handler allows.
	AllowVar func(name string) bool
	// Call runs a tool of a connected MCP server. Nil: such hooks fail.
	Call func(ctx context.Context, server, tool string, input json.RawMessage) (text string, isError bool, err error)
	// Ask puts a prompt to a model; Work lets an agent with read tools
	// answer it. Nil: such hooks fail.
	Ask  func(ctx context.Context, model, prompt string) (string, error)
	Work func(ctx context.Context, model, prompt string) (string, error)
	// Host asks the SDK host. Nil: callbacks fail.
	Host agent.Asker
	// Matches says whether a call fits a permission rule. Nil: `if` never matches.
	Matches func(rule string, c agent.Call) bool
	// Emit tells the life of hooks. Nil: nobody is told.
	Emit func(agent.CallID, agent.Hooked)
	// Late takes what an asynchronous hook said after the moment has passed;
	// wake asks for a turn. Nil: it is dropped.
	Late func(context []string, notes []string, wake bool)
	// Spill keeps a text that is too long to be shown and returns its path.
	// Nil: the text is cut.
	Spill func(text string) (path string, err error)
	// StopTimeout bounds all SessionEnd hooks together. 0: 1.5 s.
	StopTimeout time.Duration
	// TypeOf returns the kind of a sub-agent. Nil: moments say it.
	TypeOf func(agent string) string
}

// Locks are what settings keep from running.
type Locks struct {
	Disabled    bool // all hooks
	ManagedOnly bool // all but those of the administrator and the host
}

// A Set is the hooks of a session. Its methods may be called concurrently.
type Set struct {
	o Options

	mu       sync.Mutex
	locks    Locks
	bySource map[string][]Handler
	order    []string
	spent    map[string]bool // once-hooks that ran

	late   sync.WaitGroup // asynchronous hooks that run
	ctx    context.Context
	cancel context.CancelFunc
}

// New returns an empty set. Close must be called.
func New(o Options) *Set {
	s := &Set{o: o, bySource: map[string][]Handler{}, spent: map[string]bool{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Replace makes hs the hooks of source; an empty hs removes it.
func (s *Set) Replace(source string, hs []Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.bySource[source]; !ok {
		s.order = append(s.order, source)
	}
	s.bySource[source] = slices.Clone(hs)
	if len(hs) == 0 {
		delete(s.bySource, source)
		s.order = slices.DeleteFunc(s.order, func(x string) bool { return x == source })
	}
}

// Lock puts l in the place of the locks before.
func (s *Set) Lock(l Locks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locks = l
}

// Handlers returns the hooks in force, in order of their sources.
func (s *Set) Handlers() []Handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Handler
	seen := map[string]bool{}
	for _, src := range s.order {
		for _, h := range s.bySource[src] {
			if s.locked(h.Source) {
				continue
			}
			if k := h.key(); k != "" {
				if seen[k] {
					continue
				}
				seen[k] = true
			}
			out = append(out, h)
		}
	}
	return out
}

// locked reports whether the settings keep hooks of that source from running.
func (s *Set) locked(source string) bool {
	if s.locks.Disabled {
		return true
	}
	return s.locks.ManagedOnly && source != "managed" && source != "sdk"
}

// Any reports whether some hook listens to event, so that callers can spare
// themselves the work of making a Moment.
func (s *Set) Any(event string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, hs := range s.bySource {
		for _, h := range hs {
			if h.Event == event && !s.locked(h.Source) {
				return true
			}
		}
	}
	return false
}

// Close ends the asynchronous hooks that still run and waits for them.
func (s *Set) Close() {
	s.cancel()
	s.late.Wait()
}
