package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/ext/skill"
	"github.com/seed-eb844fcb/cinch/internal/ext/subagent"
	"github.com/seed-eb844fcb/cinch/internal/job"
	"github.com/seed-eb844fcb/cinch/internal/session"
	"github.com/seed-eb844fcb/cinch/internal/tools/ask"
	"github.com/seed-eb844fcb/cinch/internal/tools/file"
	"github.com/seed-eb844fcb/cinch/internal/window"
	"github.com/seed-eb844fcb/cinch/internal/window/lookup"
	"github.com/seed-eb844fcb/cinch/internal/window/recall"
)

// info describes the session; what the session knows itself it fills in.
func (a *App) info() agent.Info {
	i := agent.Info{
		Session: a.sessionID(), Cwd: a.cwd(), Version: a.o.Version, Servers: a.servers(), Commands: a.commands(),
		Agents: subagent.Infos(a.ext.definitions()), OutputStyle: or(a.cfg().outputStyle, "default"), KeySource: a.keySource(),
		MemoryDir: a.memoryDir(), Tools: a.allTools(), Sandboxed: a.confined != nil,
		Plugins: a.pluginInfos(),
	}
	if dirs := a.directories(); len(dirs) > 1 {
		i.Directories = dirs[1:]
	}
	for _, s := range a.listed() {
		if !s.Command {
			i.Skills = append(i.Skills, s.Name)
		}
	}
	return i
}

// commands lists what can be typed after a slash.
func (a *App) commands() []agent.CommandInfo {
	if a.o.NoCommands {
		return nil
	}
	out := skill.Infos(a.ext.list())
	for _, c := range slashCommands() {
		if slices.ContainsFunc(out, func(x agent.CommandInfo) bool { return x.Name == c.name }) {
			continue
		}
		out = append(out, agent.CommandInfo{Name: c.name, Description: c.help, Hint: c.hint, Aliases: c.aliases, Builtin: true})
	}
	return append(out, a.mcpPrompts()...)
}

// equip makes the tools of the main conversation.
func (a *App) equip(context.Context) error {
	a.files = file.NewState()
	a.tools = session.NewTools()
	a.jobs = job.New(job.Options{
		Emit:   func(w agent.Worked) { a.emit(w.Task.Call, "", w) },
		Notify: func(t agent.Task) { _ = a.Session.Submit(context.Background(), job.Prompt(t)) }, // a session that is over needs no notice
	})
	a.onClose(func() { a.guard.Close() })
	if a.schema != nil {
		if err := ask.CheckSchema(a.schema); err != nil {
			return fmt.Errorf("--json-schema: %w", err)
		}
	}
	ts := a.builtins()
	ts = append(ts, a.agentTools()...)
	if name := a.recallName(); name != "" {
		ts = append(ts, recall.New(func() (io.ReadCloser, error) { return os.Open(a.transcriptPath()) }))
	}
	if !a.o.NoCommands {
		ts = append(ts, skill.New(skill.Options{Skills: a.listed, Invoke: a.invoke}))
	}
	a.tools.Add(a.fromRecording(a.offered(ts))...)
	if a.toolSearch() {
		a.catalog = lookup.New(a.mcpWait)
		a.tools.Add(a.catalog.Tool())
		a.recatalog()
	}
	return nil
}

// recatalog tells the search tool which definitions are held back.
func (a *App) recatalog() {
	if a.catalog == nil {
		return
	}
	a.catalog.Set(slices.DeleteFunc(a.tools.Specs(), func(s agent.Spec) bool { return !s.Deferred })...)
}

// deferred are the names of the tools whose definitions are held back.
func (a *App) deferred() []string {
	if a.catalog == nil {
		return nil
	}
	return a.catalog.Names()
}

func (a *App) firstParty() bool { return strings.HasSuffix(a.model.Upstream(), "api.anthropic.com") }

// toolSearch says whether definitions are held back until looked up.
func (a *App) toolSearch() bool {
	// Gateways may not know the feature: there it must be asked for.
	w, err := lookup.ParseWhen(a.env.get("ENABLE_TOOL_SEARCH"), a.firstParty())
	if err != nil {
		a.warn("%v", err)
	}
	if w.Off || a.env.on("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS") {
		return false
	}
	window, _ := a.limits(a.modelName())
	return w.Defer(a.tools.Specs(), window)
}

// memoryDir is where the automatic memory is kept; "" if it is off.
func (a *App) memoryDir() string {
	if on, ok := a.env.choice("CLAUDE_CODE_DISABLE_AUTO_MEMORY"); ok && on || a.root == "" || a.o.SafeMode || a.o.Restricted {
		return ""
	} else if !ok && (a.o.Bare || !a.cfg().autoMemory) {
		return ""
	}
	if d := a.cfg().memoryDir; d != "" {
		return d
	}
	return filepath.Join(a.store.Dir(a.projectRoot()), "memory")
}

func (a *App) memoryDirs() []string {
	if !a.env.on("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD") {
		return nil
	}
	return a.o.Directories
}

// follow sees what a call brought about besides its result.
func (a *App) follow(ctx context.Context, f agent.Finished) {
	if f.Result.IsError {
		return
	}
	for _, s := range f.Call.Effects.Subjects {
		if s.Kind == agent.SubjectRead || s.Kind == agent.SubjectWrite {
			a.layout.touch(ctx, s.Value)
		}
	}
}

// changedFiles are notes on files that the model has read and that are
// different on disk now.
func (a *App) changedFiles() []agent.Block {
	var out []agent.Block
	for _, n := range a.files.Changed(a.denied) {
		out = append(out, window.Remind(window.Note{Kind: window.NoteFile, Text: n.Text()})...)
	}
	return out
}

// keepPlan keeps an approved plan beside the session.
func (a *App) keepPlan(plan string) (string, error) {
	if a.root == "" || a.o.NoPersistence {
		return "", nil
	}
	dir := filepath.Join(a.root, "plans")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	name := filepath.Join(dir, a.sessionID()+".md")
	return name, os.WriteFile(name, []byte(plan+"\n"), 0o600)
}

func (a *App) modeBeforePlan() agent.Mode {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.before
}

// chdir moves the tools to another directory.
func (a *App) chdir(dir string) {
	a.mu.Lock()
	old := a.dir
	a.dir = dir
	a.mu.Unlock()
	if old == dir {
		return
	}
	if a.hooks.Any("CwdChanged") {
		a.hooks.Run(context.Background(), agent.Moment{Event: "CwdChanged", Fields: map[string]any{"old_cwd": old, "new_cwd": dir}})
	}
}

// marks are the variables of ours that commands see.
func (a *App) marks() []string {
	m := []string{
		"CLAUDECODE=1", "CLAUDE_CODE_CHILD_SESSION=1", "CLAUDE_CODE_SESSION_ID=" + a.sessionID(), "CLAUDE_CODE_ENTRYPOINT=" + a.entrypoint(),
		fmt.Sprintf("CLAUDE_PID=%d", os.Getpid()), "CINCH_SESSION_ID=" + a.sessionID(), "AI_AGENT=cinch",
	}
	if a.Session != nil {
		if _, effort := a.Session.Thinking(); effort != "" {
			m = append(m, "CLAUDE_EFFORT="+effort)
		}
	}
	return m
}

// costText is the answer to /cost.
func (a *App) costText() string {
	models, cost := a.Session.Totals()
	var b strings.Builder
	fmt.Fprintf(&b, "Total cost: $%.4f (list prices of %s)\nTotal time: %s\n", cost, priceDate, a.age().Round(1e9))
	for _, m := range models {
		fmt.Fprintf(&b, "%s: %d in, %d out, %d cache read, %d cache write ($%.4f)\n", m.Model, m.Usage.In, m.Usage.Out, m.Usage.CacheRead, m.Usage.CacheWrite(), m.Cost)
	}
	return strings.TrimRight(b.String(), "\n")
}

// explain words a schema violation, one line for each fault.
func explain(spec agent.Spec, v any, err error) error {
	if err == nil {
		return nil
	}
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	object, ok := v.(map[string]any)
	if json.Unmarshal(spec.Schema, &s) != nil || !ok {
		return err
	}
	var lines []string
	for _, r := range s.Required {
		if _, ok := object[r]; !ok {
			lines = append(lines, fmt.Sprintf("The required parameter `%s` is missing", r))
		}
	}
	for k := range object {
		if _, ok := s.Properties[k]; !ok && len(s.Properties) > 0 {
			lines = append(lines, fmt.Sprintf("An unexpected parameter `%s` was provided", k))
		}
	}
	slices.Sort(lines)
	if len(lines) == 0 {
		return err
	}
	return fmt.Errorf("%s", strings.Join(lines, "\n"))
}
