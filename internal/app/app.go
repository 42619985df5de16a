// Package app is the composition root: from what the command line, the
// environment and the settings ask for it makes a session that runs, with its
// provider, tools, permissions, extensions and files. It is the only package
// that knows all others, and nobody receives it but cli.
//
// Each file wires one subject. What a part does is in that part's package;
// what stands here only says which parts there are and what they are given.
package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/checkpoint"
	"github.com/seed-eb844fcb/cinch/internal/ext/hook"
	"github.com/seed-eb844fcb/cinch/internal/gate"
	"github.com/seed-eb844fcb/cinch/internal/job"
	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
	"github.com/seed-eb844fcb/cinch/internal/net/dial"
	"github.com/seed-eb844fcb/cinch/internal/net/ledger"
	"github.com/seed-eb844fcb/cinch/internal/net/mcp"
	"github.com/seed-eb844fcb/cinch/internal/net/model"
	"github.com/seed-eb844fcb/cinch/internal/session"
	"github.com/seed-eb844fcb/cinch/internal/settings"
	"github.com/seed-eb844fcb/cinch/internal/tools/file"
	"github.com/seed-eb844fcb/cinch/internal/transcript"
	"github.com/seed-eb844fcb/cinch/internal/ui/frame"
	"github.com/seed-eb844fcb/cinch/internal/window"
	"github.com/seed-eb844fcb/cinch/internal/window/lookup"
)

// An App is a session with everything it stands on.
type App struct {
	// Session is what front ends talk to. Its Run must be called.
	Session *session.Session

	o    Options
	env  environment
	conf atomic.Pointer[config] // what the settings say now
	root string                 // the configuration root, ~/.claude
	home string
	id   string // of the session

	dialer   *dial.Dialer
	model    *model.Client
	web      lazyClient
	tools    *session.Tools
	files    *file.State
	jobs     *job.Registry
	guard    proc.Guard
	gate     *gate.Gate
	hooks    *hook.Set
	points   *checkpoint.Store // nil: no checkpoints
	confined *confined         // nil: commands run as they are
	record   *transcript.Writer
	loaded   *transcript.Loaded // of a resumed session, or nil
	store    transcript.Store
	layout   *layout
	ext      *extensions
	watch    watch

	mu       sync.Mutex
	dir      string            // where tools run now
	agents   map[string]string // directories of sub-agents, by id
	schema   json.RawMessage
	lent     []agent.PermissionUpdate // permissions that end with the turn
	borrowed []agent.Input            // that give back what a skill changed for its turn
	prompt   string                   // uuid of the newest prompt
	before   agent.Mode               // that plan mode replaced
	ledger   *ledger.Book
	pinned   []window.Note // facts that the model has not been told of
	mcp      *mcp.Set
	starting []mcp.Config // servers that are connected to at the start
	hosted   bool         // a host has brought servers
	mcpOnce  sync.Once
	mcpMu    sync.Mutex                     // over changes of the set of tools
	catalog  *lookup.Catalog                // nil: nothing is held back
	used     []window.Note                  // skills that were invoked, oldest first
	sources  settings.Options               // of the settings
	flag     map[string]json.RawMessage     // settings that the host has applied
	behind   map[agent.CallID]chan struct{} // closed when a call is to go to the background
	warned   []string
	schemas  schemaCache
	closers  []func()
}

// Open makes an App. Nothing of it runs yet but what Close ends. The error
// says what to do next where that is known.
func Open(ctx context.Context, o Options) (*App, error) {
	a := newApp(o)
	a.places()
	for _, step := range []func(context.Context) error{
		a.readSettings, a.connect, a.openSession, a.judge, a.listen, a.extend, a.equip, a.lay, a.mcpOpen, a.assemble,
	} {
		if err := step(ctx); err != nil {
			a.Close()
			return nil, err
		}
	}
	return a, nil
}

func newApp(o Options) *App {
	return &App{o: o, dir: o.Cwd, agents: map[string]string{}, behind: map[agent.CallID]chan struct{}{}, schema: o.Schema}
}

// places finds the home and the configuration root.
func (a *App) places() {
	env := newEnvironment(a.o.Environ, nil)
	a.home = env.first("HOME", "USERPROFILE")
	a.root = settings.Root(env.get)
}

// Close ends what Open started and waits for it. It may be called on an App
// that Open did not finish.
func (a *App) Close() {
	for _, f := range slices.Backward(a.closers) {
		f()
	}
	a.closers = nil
}

func (a *App) onClose(f func()) { a.closers = append(a.closers, f) }

// warn tells the person something before a front end runs, or, once it does,
// as a note.
func (a *App) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if a.Session != nil {
		a.note("warning", text)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if slices.Contains(a.warned, text) {
		return
	}
	a.warned = append(a.warned, text)
	fmt.Fprintln(a.o.Stderr, "cinch: "+text)
}

func (a *App) note(level, text string) { a.emit("", "", agent.Noted{Level: level, Text: text}) }

func (a *App) emit(parent agent.CallID, id string, b agent.Body) {
	if a.Session != nil {
		a.Session.Emit(parent, id, b)
	}
}

// cfg is what the settings say now.
func (a *App) cfg() *config { return a.conf.Load() }

// cwd is where tools run now.
func (a *App) cwd() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.dir
}

func (a *App) age() time.Duration { return time.Since(a.o.Started) }

// directories are those a shell may stay in.
func (a *App) directories() []string { return a.gate.Policy().Dirs() }

// assemble makes the session of the parts.
func (a *App) assemble(context.Context) error {
	history, source := a.history()
	thought, effort := a.thinking()
	name := a.modelName()
	so := session.Options{
		ID: a.id, History: history, Source: source,
		Provider: a.provider(), Tools: a.tools, Check: a.check,
		Window: a.layout.request,
		Gate:   a.gate.Decide, Hook: a.hook, After: a.after, Batch: a.batch, Load: a.layout.loaded,
		Fit: a.layout.fit, Recover: a.layout.recover, Compact: a.layout.compact, Answered: a.layout.answered,
		Expand: a.expand, Opening: a.layout.opening, Remind: a.layout.remind, Checkpoint: a.checkpoint,
		Info: a.info, Queries: a.queries(),
		Model: name, Thinking: thought, Effort: effort, Mode: a.startMode(),
		Resolve: a.resolve, Changed: a.layout.changed, AllowMode: a.allowMode, Grant: a.grant,
		Price: a.price, Limits: a.limits, MaxTurns: a.o.MaxTurns, MaxBudget: a.o.MaxBudget,
		Structured: a.schema != nil, StructuredRetries: a.env.number("MAX_STRUCTURED_OUTPUT_RETRIES", 0),
		Agents: session.AgentLimits{
			Depth:      a.env.number("CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH", 0),
			Concurrent: a.env.number("CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS", 0),
			Tokens:     a.env.number("CINCH_AGENT_TREE_TOKENS", 0),
			Time:       a.env.ms("CINCH_AGENT_TREE_MS"),
		},
		Busy:    func(ctx context.Context) error { return a.jobs.Wait(ctx, job.Agent) },
		Ceiling: a.ceiling(), Tasks: a.jobs.List, Close: a.stopJobs,
		Answerable: a.answerable, NewID: frame.UUID, Clear: a.clear,
	}
	if a.loaded != nil {
		so.Deferred = a.loaded.Deferred
	}
	if a.record != nil {
		so.Sink = a.record.Sink
	}
	a.Session = session.New(so)
	a.mcpStart()
	a.sweep()
	return nil
}

// stopJobs ends background work. Plain shells get a moment to end by
// themselves when a print run is over.
func (a *App) stopJobs(ctx context.Context) {
	if a.o.Print && len(a.jobs.Running()) > 0 {
		wait, cancel := context.WithTimeout(ctx, 5*time.Second)
		_ = a.jobs.Wait(wait, job.Shell) // what still runs is ended next
		cancel()
	}
	if err := a.jobs.Close(ctx); err != nil {
		a.warn("background work did not end: %v", err)
	}
}

func (a *App) ceiling() time.Duration {
	switch n := a.env.number("CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS", -1); {
	case n == 0:
		return -1
	case n > 0:
		return time.Duration(n) * time.Millisecond
	}
	return 0
}

// checkpoint opens a checkpoint for a prompt.
func (a *App) checkpoint(_ context.Context, uuid string) {
	if a.points == nil {
		return
	}
	if err := a.points.Begin(uuid, ""); err != nil {
		a.note("warning", "what this turn changes cannot be taken back: "+err.Error())
	}
}

// answerable says whether the front end can answer questions of that kind.
func (a *App) answerable(kind string) bool {
	switch kind {
	case agent.AskPermission:
		return !a.o.NoPrompts && (!a.o.Print || a.o.PromptTool == "stdio")
	case agent.AskElicit, agent.AskDialog:
		return a.o.Streaming || a.o.Dialogs
	case agent.AskConfirm:
		return !a.o.NoPrompts && !a.o.Print
	}
	return a.o.Streaming
}

// ask puts a question to the front ends.
func (a *App) ask(ctx context.Context, q agent.Question) (agent.Answer, error) {
	if a.Session == nil {
		return agent.Answer{}, agent.ErrNoOne
	}
	return a.asked(ctx, q)
}

func (a *App) mode() agent.Mode {
	if a.Session == nil {
		return a.startMode()
	}
	return a.Session.Mode()
}

// errRoot refuses bypassPermissions where it would be the whole machine's.
var errRoot = errors.New("permission mode bypassPermissions cannot be used as root or with sudo\nhint: run as another user, or in a container with IS_SANDBOX=1")

// startMode is the mode the session begins in.
func (a *App) startMode() agent.Mode {
	switch {
	case a.o.Mode != "":
		return a.o.Mode
	case a.loaded != nil && a.loaded.Mode != "" && a.loaded.Mode != agent.ModePlan && a.loaded.Mode != agent.ModeBypass:
		return a.loaded.Mode
	case a.cfg().mode != "" && !a.o.Print:
		return a.cfg().mode
	case a.cfg().mode != "":
		return a.cfg().mode
	}
	return agent.ModeDefault
}

func (a *App) setMode(ctx context.Context, m agent.Mode) error {
	return a.Session.Submit(ctx, agent.SetMode{Mode: m})
}

func (a *App) allowMode(m agent.Mode) error {
	return a.gate.SetMode(m)
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// isDir reports whether path is a directory.
func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}
