package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/ext/hook"
	"github.com/seed-eb844fcb/cinch/internal/ext/plugin"
	"github.com/seed-eb844fcb/cinch/internal/ext/skill"
	"github.com/seed-eb844fcb/cinch/internal/ext/subagent"
	"github.com/seed-eb844fcb/cinch/internal/lib/frontmatter"
	"github.com/seed-eb844fcb/cinch/internal/window/prompt"
)

// extensions are what the user added, as it was last read.
type extensions struct {
	mu     sync.Mutex
	host   []subagent.Definition // of --agents and the host
	files  []subagent.Definition
	skills []skill.Skill
	nested []skill.Skill // of directories below, found as files there were touched
	styles []prompt.Style

	pluginDirs []string        // of the host, besides --plugin-dir
	hostOwned  map[string]bool // those of them whose MCP servers the host runs itself
	plugins    []*plugin.Plugin
}

// definitions returns the agents there are, the strongest first.
func (e *extensions) definitions() []subagent.Definition {
	e.mu.Lock()
	defer e.mu.Unlock()
	return subagent.Merge(e.host, e.files)
}

func (e *extensions) list() []skill.Skill {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append(slices.Clone(e.skills), e.nested...)
}

func (e *extensions) style(name string) prompt.Style {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.styles {
		if strings.EqualFold(s.Name, name) {
			return s
		}
	}
	return prompt.Style{}
}

// extend reads agents, skills, commands and output styles.
func (a *App) extend(context.Context) error {
	a.ext = &extensions{}
	if a.o.Agents != "" {
		raw := []byte(a.o.Agents)
		if !strings.HasPrefix(strings.TrimSpace(a.o.Agents), "{") {
			b, err := os.ReadFile(a.o.Agents)
			if err != nil {
				return fmt.Errorf("--agents is neither JSON nor a file: %w", err)
			}
			raw = b
		}
		ds, ps, err := subagent.ParseJSON(raw, "flag")
		if err != nil {
			return fmt.Errorf("--agents: %w", err)
		}
		for _, p := range ps {
			a.warn("%s", p)
		}
		a.ext.host = ds
	}
	a.readPlugins()
	a.reload()
	a.watch.places = a.fingerprint()
	return nil
}

// extensionPlaces are the directories of agents, skills and commands, the
// strongest first.
func (a *App) extensionPlaces() (agents []subagent.Place, skills []skill.Place) {
	fsys := a.fs()
	add := func(base, source string) {
		dir := strings.TrimPrefix(filepath.ToSlash(base), "/")
		agents = append(agents, subagent.Place{FS: fsys, Dir: path.Join(dir, "agents"), Path: path.Join(base, "agents"), Source: source})
		skills = append(skills,
			skill.Place{FS: fsys, Dir: path.Join(dir, "skills"), Path: path.Join(base, "skills"), Source: source},
			skill.Place{FS: fsys, Dir: path.Join(dir, "commands"), Path: path.Join(base, "commands"), Source: source, Command: true})
	}
	add(path.Join(managedDir(), ".claude"), "managed")
	own := !a.o.Bare && !a.o.SafeMode && !a.o.Restricted
	project := func() {
		for _, dir := range a.upward() {
			add(path.Join(dir, ".claude"), "project")
		}
	}
	if own && a.source("user") && a.root != "" {
		// Among skills the user's come first, among agents the project's.
		add(a.root, "user")
	}
	if own && a.source("project") {
		project()
	}
	for _, d := range a.o.Directories {
		add(path.Join(d, ".claude"), "project")
	}
	slices.SortStableFunc(agents, func(x, y subagent.Place) int { return agentRank(x.Source) - agentRank(y.Source) })
	// Names of plugins have prefixes: nothing is in their way.
	pa, ps := a.pluginPlaces()
	return append(agents, pa...), append(skills, ps...)
}

// reload reads the files of extensions anew.
func (a *App) reload() {
	agents, skills := a.extensionPlaces()
	ds, dps := subagent.Discover(agents)
	var ss []skill.Skill
	var sps []skill.Problem
	if !a.o.NoCommands {
		ss, sps = skill.Discover(skills)
	}
	for _, p := range dps {
		a.warn("%s", p)
	}
	for _, p := range sps {
		a.warn("%s", p)
	}
	if !a.env.on("CLAUDE_AGENT_SDK_DISABLE_BUILTIN_AGENTS") || !a.o.Print {
		for _, d := range subagent.Builtin() {
			if d.Bare && a.env.on("CLAUDE_CODE_DISABLE_EXPLORE_PLAN_AGENTS") {
				continue
			}
			ds = append(ds, d)
		}
	}
	styles := a.readStyles()
	a.ext.mu.Lock()
	defer a.ext.mu.Unlock()
	a.ext.files, a.ext.skills, a.ext.styles = ds, ss, styles
}

func agentRank(source string) int {
	return map[string]int{"managed": 0, "project": 1, "user": 2}[source]
}

// upward are the directories from the current one up to the project's root.
func (a *App) upward() []string {
	var out []string
	root := a.projectRoot()
	for dir := or(a.o.ProjectRoot, a.o.Cwd); ; dir = filepath.Dir(dir) {
		out = append(out, dir)
		if dir == root || dir == filepath.Dir(dir) || dir == a.home {
			return out
		}
	}
}

// readStyles reads output styles, beside those that are built in.
func (a *App) readStyles() []prompt.Style {
	var files [][2]string // and the prefix of the style's name
	for _, dir := range a.styleDirs() {
		names, err := filepath.Glob(filepath.Join(dir, "output-styles", "*.md"))
		if err != nil {
			continue
		}
		for _, name := range names {
			files = append(files, [2]string{name, ""})
		}
	}
	var out []prompt.Style
	for _, f := range append(files, a.pluginStyles()...) {
		name, prefix := f[0], f[1]
		data, err := os.ReadFile(name)
		if err != nil {
			a.warn("%v", err)
			continue
		}
		h, body, err := frontmatter.Parse(data)
		if err != nil {
			a.warn("%s: %v; its text is used without it", name, err)
		}
		out = append(out, prompt.Style{
			Name: prefix + or(h.Text("name"), strings.TrimSuffix(filepath.Base(name), ".md")), Text: strings.TrimSpace(body),
			KeepCoding: h.Bool("keep-coding-instructions", false),
		})
	}
	return out
}

// styleDirs are the directories that may hold output styles.
func (a *App) styleDirs() (dirs []string) {
	if a.o.Bare || a.o.SafeMode {
		return nil
	}
	if a.root != "" && a.source("user") {
		dirs = append(dirs, a.root)
	}
	if a.source("project") {
		dirs = append(dirs, filepath.Join(a.projectRoot(), ".claude"))
	}
	return dirs
}

// listed are the skills the model is told of.
func (a *App) listed() []skill.Skill {
	all := a.ext.list()
	a.layout.mu.Lock()
	only := a.layout.skills
	a.layout.mu.Unlock()
	if only == nil {
		return all
	}
	return slices.DeleteFunc(all, func(s skill.Skill) bool {
		return !slices.ContainsFunc(only, func(n string) bool { return n == s.Name || strings.HasSuffix(s.Name, ":"+n) })
	})
}

func (a *App) agentInfos() []agent.AgentInfo {
	if a.tools.Lookup("Agent") == nil {
		return nil
	}
	ds := slices.DeleteFunc(a.ext.definitions(), func(d subagent.Definition) bool { return !a.agentAllowed(d.Name) })
	return subagent.Infos(ds)
}

// agentAllowed says whether the rules let agents of that name be sent.
func (a *App) agentAllowed(name string) bool {
	d := a.gate.Policy().Decide(agent.Call{Name: "Agent", Input: json.RawMessage(`{}`), Effects: agent.Effects{ReadOnly: true, Subjects: []agent.Subject{{Kind: agent.SubjectName, Value: name}}}})
	return d.Verdict != agent.Deny
}

// invoke renders a skill and applies what its head says.
func (a *App) invoke(ctx context.Context, c agent.Call, s skill.Skill, args string) (string, error) {
	text, err := a.render(ctx, s, args)
	if err != nil {
		return "", err
	}
	a.adopt(s)
	if !s.Fork {
		a.remember(s, text)
		for _, in := range a.borrow(s) {
			if err := a.Session.Submit(ctx, in); err != nil {
				return "", err
			}
		}
		return text, nil
	}
	name := or(s.Agent, subagent.General)
	for _, d := range a.ext.definitions() {
		if d.Name != name {
			continue
		}
		out, err := a.runAgent(ctx, subagent.Launch{ID: newAgentID(), Definition: d, Description: "skill " + s.Name, Prompt: text, Model: s.Model, Call: c.ID, Parent: c.Agent})
		if err != nil {
			return "", err
		}
		return subagent.Disarm(out.Text), nil
	}
	return "", fmt.Errorf("the skill %s names the agent %q, which is not there", s.Name, name)
}

// render makes the text of a skill; commands in it run through the gate.
func (a *App) render(ctx context.Context, s skill.Skill, args string) (string, error) {
	v := skill.Invocation{Skill: s, Args: args, Vars: map[string]string{"CLAUDE_SESSION_ID": a.sessionID(), "CLAUDE_PROJECT_DIR": a.o.Cwd}}
	if _, effort := a.Session.Thinking(); effort != "" || s.Effort != "" {
		v.Vars["CLAUDE_EFFORT"] = or(s.Effort, effort)
	}
	if !a.cfg().noSkillShell || s.Source == "managed" || s.Source == "bundled" {
		v.Run = a.injected
	}
	return v.Render(ctx)
}

// checkFailed is a phrase that scripts look for.
const checkFailed = "Shell command permission check failed"

// injected runs a command that a skill's text holds: only if rules and mode
// allow it without asking.
func (a *App) injected(ctx context.Context, command string, allow []string) (string, error) {
	bash := a.tools.Lookup("Bash")
	if bash == nil {
		return "", errors.New("there is no Bash tool")
	}
	input, err := marshal(map[string]string{"command": command})
	if err != nil {
		return "", err
	}
	e, err := bash.Inspect(input)
	if err != nil {
		return "", err
	}
	c := agent.Call{ID: agent.CallID("skill_" + newAgentID()), Name: "Bash", Input: input, Effects: e, Progress: func(agent.Progress) {}}
	p := a.gate.Policy()
	if len(allow) > 0 {
		p = p.With([]agent.PermissionUpdate{{Type: "addRules", Behavior: "allow", Rules: ruleTexts(allow), Destination: "session"}})
	}
	if d := p.Decide(c); d.Verdict != agent.Allow {
		return "", fmt.Errorf("%s: %s", checkFailed, or(d.Reason, "it would need approval; name it in allowed-tools"))
	}
	r, err := bash.Run(ctx, c)
	if err != nil {
		return "", err
	}
	if text := agent.TextOf(r.Blocks); !r.IsError {
		return text, nil
	} else {
		return "", errors.New(text)
	}
}

// adopt applies the head of a skill that was invoked: its rules until the next
// prompt, its hooks until the end.
func (a *App) adopt(s skill.Skill) {
	for _, l := range []struct {
		behavior string
		list     []string
	}{{"allow", s.Allow}, {"deny", s.Deny}} {
		if len(l.list) > 0 {
			a.lend(agent.PermissionUpdate{Type: "addRules", Behavior: l.behavior, Rules: ruleTexts(l.list), Destination: "session"})
		}
	}
	if s.Hooks != nil {
		raw, err := marshal(s.Hooks)
		if err == nil {
			hs, ps := hook.Parse(raw, hook.Handler{Source: "skill:" + s.Name, File: s.File, Root: s.Root, Data: s.Data})
			for _, p := range ps {
				a.warn("%s", p)
			}
			a.hooks.Replace("skill:"+s.Name, hs)
		}
	}
}

// borrow returns the inputs that make the rest of the turn run on the skill's
// model and effort, and keeps those that give back what was there before.
func (a *App) borrow(s skill.Skill) []agent.Input {
	var now, then []agent.Input
	if s.Model != "" {
		now, then = append(now, agent.SetModel{Model: s.Model}), append(then, agent.SetModel{Model: a.Session.Model()})
	}
	if s.Effort != "" {
		thought, effort := a.Session.Thinking()
		now, then = append(now, agent.SetThinking{Thought: thought, Effort: s.Effort}), append(then, agent.SetThinking{Thought: thought, Effort: effort})
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.borrowed == nil { // else an earlier skill of this turn knows what was there
		a.borrowed = then
	}
	return now
}

// lend grants a permission until the next prompt.
func (a *App) lend(u agent.PermissionUpdate) {
	if err := a.gate.Grant(context.Background(), []agent.PermissionUpdate{u}); err != nil {
		a.warn("%v", err)
		return
	}
	a.mu.Lock()
	a.lent = append(a.lent, u)
	a.mu.Unlock()
}

// takeBack ends what was lent to the turn before. The inputs it returns give
// back the model and effort of before.
func (a *App) takeBack() []agent.Input {
	a.mu.Lock()
	lent, back := a.lent, a.borrowed
	a.lent, a.borrowed = nil, nil
	a.mu.Unlock()
	for _, u := range lent {
		u.Type = "removeRules"
		_ = a.gate.Grant(context.Background(), []agent.PermissionUpdate{u}) // session rules are not saved: nothing can fail
	}
	return back
}

func ruleTexts(list []string) []agent.RuleText {
	out := make([]agent.RuleText, 0, len(list))
	for _, s := range list {
		name, content, ok := strings.Cut(s, "(")
		if ok {
			content = strings.TrimSuffix(content, ")")
		}
		out = append(out, agent.RuleText{Tool: name, Content: content})
	}
	return out
}

// fs is the machine's file system, from its root.
func (a *App) fs() fs.FS { return os.DirFS("/") }
