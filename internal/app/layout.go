package app

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/ext/skill"
	"github.com/seed-eb844fcb/cinch/internal/ext/subagent"
	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
	"github.com/seed-eb844fcb/cinch/internal/ui/frame"
	"github.com/seed-eb844fcb/cinch/internal/window"
	"github.com/seed-eb844fcb/cinch/internal/window/compact"
	"github.com/seed-eb844fcb/cinch/internal/window/memory"
	"github.com/seed-eb844fcb/cinch/internal/window/prompt"
)

// A layout is what the model of the main conversation sees. It is made at the
// first request: until then a host may still change what it is made of.
type layout struct {
	a *App

	mu      sync.Mutex
	custom  []string // systemPrompt of the host; nil: none
	add     *string
	plan    string // planModeInstructions
	exclude bool
	skills  []string // the only ones listed; nil: all

	fresh    bool   // /clear: nothing of a session that was taken up holds any more
	recorded string // the system prompt as the transcript has it
	engine   *window.Engine
	memory   *memory.Set
	facts    window.Facts
	last     *agent.Usage  // of the newest response
	touched  []agent.Block // instruction files that joined because of a read
}

func (a *App) lay(context.Context) error {
	a.layout = &layout{a: a, exclude: a.o.ExcludeDynamic, add: a.o.AppendPrompt}
	if a.o.SystemPrompt != nil {
		a.layout.custom = []string{*a.o.SystemPrompt}
	}
	return nil
}

// sections is the system prompt.
func (l *layout) sections() []prompt.Section {
	a := l.a
	o := prompt.Options{Custom: l.custom, Tools: a.tools.Names(), Unattended: a.o.Print}
	if l.add != nil {
		o.Append = *l.add
	}
	if s := a.ext.style(a.cfg().outputStyle); s.Name != "" {
		o.Style = s
	}
	if d, ok := a.mainAgent(); ok {
		o.Agent, o.Lead = d.Prompt, true
	}
	return prompt.Sections(o)
}

// made returns the engine, making it first if need be.
func (l *layout) made() *window.Engine {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.engine != nil {
		return l.engine
	}
	a := l.a
	name := a.Session.Model()
	spec := a.model.Resolve(name)
	thought, effort := a.Session.Thinking()
	o := window.Options{
		Model: name, Sections: l.sections(), Tools: a.tools.Specs(), MaxTokens: spec.MaxTokens,
		Thinking: thought, Effort: effort, ToolSearch: a.catalog != nil, NoCache: a.env.on("DISABLE_PROMPT_CACHING"),
	}
	if a.loaded != nil && !l.fresh && len(a.loaded.System) == 1 && json.Valid([]byte(a.loaded.System[0])) && l.custom == nil {
		o.Recorded, l.recorded = json.RawMessage(a.loaded.System[0]), a.loaded.System[0]
	}
	b := window.New(o)
	for _, p := range b.Problems() {
		a.warn("%s", p)
	}
	l.engine = window.NewEngine(b, compact.Options{
		Provider: a.Session.Metered(a.model), Limits: a.compactLimits(name), Restore: l.restore, Hook: a.hook,
		Emit: func(body agent.Body) { a.emit("", "", body) }, UUID: frame.UUID,
		Count: a.model.CountTokens, Instructions: l.instructions, Transcript: a.transcriptPath(), Recall: a.recallName(),
	})
	l.engine.Told = a.cached
	l.engine.Renew = func() ([]prompt.Section, []agent.Spec) {
		l.recorded = "" // what stands before a summary is not read again
		if t := a.tools.Lookup("Skill"); t != nil {
			skill.Forget(t)
		}
		return l.sections(), a.tools.Specs()
	}
	return l.engine
}

// request is session.Options.Window. The system prompt is recorded with the
// conversation when it is new: at the start, and behind a summary, with which
// it was rendered anew.
func (l *layout) request(h []agent.Message) *agent.Request {
	e := l.made()
	if r := l.a.record; r != nil {
		if s := e.System(); string(s) != l.recorded {
			l.recorded = string(s)
			if err := r.Snapshot([]string{l.recorded}); err != nil {
				l.a.warn("the system prompt was not recorded: %v", err)
			}
		}
	}
	return e.Request(h)
}

func (l *layout) changed(name string, t agent.Thought, effort string) {
	l.mu.Lock()
	e := l.engine
	l.mu.Unlock()
	if e == nil {
		return // it is made for what holds then
	}
	e.Plan("the model, its thinking or its effort was changed")
	e.SetModel(name, l.a.model.Resolve(name).MaxTokens)
	e.SetThinking(t, effort)
	e.SetLimits(l.a.compactLimits(name))
}

func (l *layout) answered(id string, u agent.Usage) {
	l.made().Answered(id, u)
	l.mu.Lock()
	l.last = &u
	l.mu.Unlock()
}

func (a *App) compactLimits(name string) compact.Limits {
	spec := a.model.Resolve(name)
	l := compact.Wish{
		Window: spec.Window, Assumed: !spec.Known, Enabled: a.cfg().autoCompact, Setting: a.cfg().autoCompactWindow,
		Flag: a.o.Autocompact, Env: a.env.get,
	}.Limits()
	for _, p := range l.Problems {
		a.warn("%s", p)
	}
	return l
}

func (l *layout) instructions() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.memory == nil {
		return ""
	}
	return l.memory.Section("Compact Instructions")
}

// knows says whether the model has the definition of a tool.
func (l *layout) knows(tool string) bool {
	l.mu.Lock()
	e := l.engine
	l.mu.Unlock()
	return e != nil && e.Loaded(tool)
}

// loaded adds the definitions of tools that were looked up.
func (l *layout) loaded(names ...string) { l.made().Load(names...) }

func (l *layout) fit(ctx context.Context, h []agent.Message) window.Outcome {
	return l.made().Fit(ctx, h)
}

func (l *layout) recover(ctx context.Context, h []agent.Message, err error) (window.Outcome, bool) {
	return l.made().Recover(ctx, h, err)
}

func (l *layout) compact(ctx context.Context, h []agent.Message, focus string) agent.Compacted {
	return l.made().Compact(ctx, h, focus)
}

// forget makes the next conversation start from what is on disk now.
func (l *layout) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.engine, l.memory, l.facts, l.touched, l.last = nil, nil, window.Facts{}, nil, nil
	l.fresh, l.recorded = true, ""
}

// restore is what stands around a summary, read anew.
func (l *layout) restore(ctx context.Context, h []agent.Message) compact.Restored {
	r := window.Restore{
		Opening: func(ctx context.Context) []agent.Block { return l.notes(ctx, memory.Compact, nil) },
		FS:      l.a.fs(), Allowed: func(path string) bool { return !l.a.denied(path) },
		Skills: l.a.invoked, Plan: l.a.plan, Tasks: l.a.openTasks, Pins: l.a.pins,
	}
	return r.Around(ctx, h)
}

// load reads the instruction files.
func (l *layout) load(ctx context.Context, why memory.Reason) *memory.Set {
	a := l.a
	set := memory.Load(ctx, memory.Options{
		FS: a.fs(), Cwd: a.o.Cwd, Root: a.projectRoot(), Home: a.home, ConfigDir: a.root, ManagedDir: managedDir(),
		ManagedText: a.cfg().managedMemory, AutoDir: a.memoryDir(), AddDirs: a.memoryDirs(),
		NoUser: !a.source("user"), NoProject: !a.source("project"), NoLocal: !a.source("local"),
		Off:      a.o.Bare || a.o.SafeMode || a.env.on("CLAUDE_CODE_DISABLE_CLAUDE_MDS") || a.o.Restricted,
		Excludes: a.cfg().memoryExcludes, Denied: a.denied, Reason: why,
		AllowImport: func(_, path string) bool { return strings.HasPrefix(path, a.projectRoot()+"/") },
	})
	for _, p := range set.Problems {
		a.warn("%s: %s", p.Path, p.Text)
	}
	for _, f := range set.Files {
		a.loadedFile(ctx, f)
	}
	l.mu.Lock()
	l.memory = set
	l.mu.Unlock()
	return set
}

// opening is session.Options.Opening.
func (l *layout) opening(ctx context.Context, source string, hooks []string) []agent.Block {
	return l.notes(ctx, memory.AtStart, hooks)
}

// notes are what a conversation starts with besides the prompt.
func (l *layout) notes(ctx context.Context, why memory.Reason, hooks []string) []agent.Block {
	a := l.a
	o := window.Opening{Memory: l.load(ctx, why), Git: a.git, Environment: a.surroundings(), Agents: a.agentInfos()}
	if a.o.Bare {
		o.Git = nil
	}
	if a.tools.Lookup("Skill") != nil {
		list, dropped := skill.Listing(a.listed(), skill.Budget{
			Total: a.env.number("SLASH_COMMAND_TOOL_CHAR_BUDGET", 0), Each: a.cfg().skillChars, Show: a.cfg().skillShow,
		})
		o.Skills = list
		if dropped > 0 {
			a.warn("%d skills are listed by name only: the listing is over its budget (skillListingBudgetFraction)", dropped)
		}
	}
	if a.toolSearch() {
		o.Deferred = a.deferred()
	}
	o.More = append(o.More, a.mcpInstructions()...)
	for _, h := range hooks {
		o.More = append(o.More, window.Note{Kind: "hook", Text: h})
	}
	if l.plan != "" && a.mode() == agent.ModePlan {
		o.More = append(o.More, window.Note{Kind: window.NoteMode, Text: l.plan})
	}
	blocks := o.Blocks(ctx)
	l.mu.Lock()
	l.facts = a.facts()
	l.mu.Unlock()
	return append(blocks, window.Mode(a.mode())...)
}

// remind is session.Options.Remind: what is different now.
func (l *layout) remind(ctx context.Context) []agent.Block {
	next := l.a.facts()
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []agent.Block
	if l.facts.Date != "" {
		out = l.facts.Changes(next)
	}
	l.facts = next
	out = append(out, l.touched...)
	l.touched = nil
	return append(append(out, l.a.newPins()...), l.a.changedFiles()...)
}

// touch lets instruction files join that go with a path that was read.
func (l *layout) touch(ctx context.Context, path string) {
	l.mu.Lock()
	set := l.memory
	l.mu.Unlock()
	if set == nil {
		return
	}
	files := set.Touched(ctx, path)
	if len(files) == 0 {
		return
	}
	for _, f := range files {
		l.a.loadedFile(ctx, f)
	}
	l.mu.Lock()
	l.touched = append(l.touched, window.Joined(files)...)
	l.mu.Unlock()
}

// facts are what the model is told of its surroundings.
func (a *App) facts() window.Facts {
	return window.Facts{
		Date: time.Now().Format(time.DateOnly), Cwd: a.cwd(), Model: a.Session.Model(), Mode: a.Session.Mode(),
		Deferred: a.deferred(), Agents: a.agentInfos(), Servers: a.servers(),
	}
}

func (a *App) surroundings() window.Environment {
	dirs := a.directories()
	return window.Environment{
		Cwd: a.cwd(), Dirs: dirs[min(1, len(dirs)):], Repo: gitRoot(a.o.Cwd) != "", Platform: runtime.GOOS, OS: osRelease(),
		Shell: or(a.env.get("SHELL"), "/bin/sh"), Model: a.Session.Model(), Date: time.Now().Format(time.DateOnly),
	}
}

// git is the state of the repository at the start, as git tells it; "" outside
// of one, without git, or when it takes too long.
func (a *App) git(ctx context.Context) string {
	root := gitRoot(a.o.Cwd)
	if root == "" || a.cfg().noGit || a.env.on("CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS") {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	ask := func(args ...string) string {
		out, err := proc.Run(ctx, proc.Spec{Path: "git", Args: append([]string{"git", "--no-optional-locks"}, args...), Env: a.env.list, Dir: a.o.Cwd}, proc.Options{Guard: nil}, 8<<10)
		if err != nil || !out.OK() {
			return ""
		}
		return strings.TrimRight(string(out.Stdout), "\n")
	}
	var branch, status, log string
	var wg sync.WaitGroup
	wg.Go(func() { branch = ask("branch", "--show-current") })
	wg.Go(func() { status = ask("status", "--short") })
	wg.Go(func() { log = ask("log", "--oneline", "-n", "5") })
	wg.Wait()
	if branch == "" && status == "" && log == "" {
		return ""
	}
	const most = 2000
	if len(status) > most {
		status = status[:most] + "\n…"
	}
	return "Branch: " + or(branch, "(none)") +
		"\nStatus:\n" + or(status, "(clean)") + "\nRecent commits:\n" + or(log, "(none)")
}

// gitRoot is the directory that holds .git, or "".
func gitRoot(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// projectRoot is where the project's configuration is looked for.
func (a *App) projectRoot() string {
	if a.o.ProjectRoot != "" {
		return a.o.ProjectRoot
	}
	return or(gitRoot(a.o.Cwd), a.o.Cwd)
}

// source reports whether settings and files of that source are read.
func (a *App) source(name string) bool {
	if a.o.Restricted {
		return false
	}
	return !a.o.SourcesSet || slices.Contains(a.o.Sources, name)
}

// mainAgent is the definition the main conversation runs as, if one was named.
func (a *App) mainAgent() (subagent.Definition, bool) {
	name := or(a.o.Agent, a.cfg().agent)
	if name == "" {
		return subagent.Definition{}, false
	}
	for _, d := range a.ext.definitions() {
		if d.Name == name {
			return d, true
		}
	}
	a.warn("there is no agent %q; going on without it", name)
	return subagent.Definition{}, false
}

type json_ = json.RawMessage

func marshal(v any) (json.RawMessage, error)     { return json.Marshal(v) }
func unmarshal(raw json.RawMessage, v any) error { return json.Unmarshal(raw, v) }
