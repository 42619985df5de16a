package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/ext/hook"
	"github.com/seed-eb844fcb/cinch/internal/ext/subagent"
	"github.com/seed-eb844fcb/cinch/internal/job"
	"github.com/seed-eb844fcb/cinch/internal/loop"
	"github.com/seed-eb844fcb/cinch/internal/session"
	"github.com/seed-eb844fcb/cinch/internal/tools/file"
	"github.com/seed-eb844fcb/cinch/internal/transcript"
	"github.com/seed-eb844fcb/cinch/internal/ui/frame"
	"github.com/seed-eb844fcb/cinch/internal/window"
	"github.com/seed-eb844fcb/cinch/internal/window/compact"
	"github.com/seed-eb844fcb/cinch/internal/window/memory"
	"github.com/seed-eb844fcb/cinch/internal/window/prompt"
)

// newAgentID is a short id, as file names and people take them.
func newAgentID() string { return "a" + strings.ReplaceAll(frame.UUID(), "-", "")[:16] }

// agentTools are the tools that send sub-agents.
func (a *App) agentTools() []agent.Tool {
	background := !a.env.on("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS")
	return subagent.New(subagent.Options{
		Definitions: a.ext.definitions, Allowed: a.agentAllowed, Run: a.runAgent, Start: a.startAgent,
		Tell: func(id, text string) bool {
			return a.Session.Tell(id, []agent.Block{&agent.Text{Text: text}})
		},
		Known: a.knownAgent, NewID: newAgentID, Background: background,
		// A program that waits for one answer is served best by agents that
		// are done when the answer comes.
		Default:   background && a.env.on("CLAUDE_AUTO_BACKGROUND_TASKS"),
		NoDefault: a.o.Print && a.env.on("CLAUDE_AGENT_SDK_DISABLE_BUILTIN_AGENTS"),
		MaxText:   min(a.env.number("TASK_MAX_OUTPUT_LENGTH", 0), 160000),
		Spill:     func(_, text string) (string, error) { return a.spill(text) },
		Depth: func(_ context.Context, c agent.Call) int {
			return a.env.number("CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH", 3) - a.Session.Depth(c.Agent)
		},
	})
}

// limitReached is a phrase that scripts look for.
const limitReached = "Concurrent subagent limit reached"

// startAgent lists a sub-agent among the jobs.
func (a *App) startAgent(ctx context.Context, t agent.Task, background bool) (subagent.Job, error) {
	output := filepath.Join(a.taskDir(), t.ID+".output")
	t.Output = output
	jctx, j, err := a.jobs.Start(ctx, t)
	if err != nil {
		if errors.Is(err, job.ErrLimit) {
			return subagent.Job{}, fmt.Errorf("%s: %w; wait for one to end, or do this yourself", limitReached, err)
		}
		return subagent.Job{}, err
	}
	if !background {
		j.Quiet()
	}
	return subagent.Job{
		Ctx: jctx, Output: output,
		Progress: func(u agent.TaskUsage, tool string) {
			j.Progress(func(t *agent.Task) { t.Usage, t.LastTool = u, tool })
		},
		End: func(status string, o subagent.Outcome, err error) {
			if werr := writeReport(output, o.Text); werr != nil {
				a.warn("the report of %s could not be kept: %v", t.ID, werr)
			}
			j.End(status, func(t *agent.Task) {
				t.Summary = o.Text
				t.Usage = agent.TaskUsage{Tokens: o.Tokens, Tools: o.Tools, Took: o.Took}
				t.Ended = time.Now()
				if err != nil {
					t.Err = err.Error()
				} else if o.Partial {
					t.Err = o.Why
				}
			})
		},
	}, nil
}

func writeReport(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// never are tools that sub-agents do not have.
var never = [...]string{
	"AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "TaskOutput", "StructuredOutput", "ScheduleWakeup", "EndConversation", "WaitForMcpServers", "Workflow",
}

// agentToolset is what a sub-agent may use: a set of its own file tools, so
// that what one has read does not count as read by another.
func (a *App) agentToolset(l subagent.Launch) (map[string]agent.Tool, []agent.Spec, error) {
	own := map[string]agent.Tool{}
	for _, t := range a.fileTools(file.NewState()) {
		own[t.Spec().Name] = t
	}
	set := map[string]agent.Tool{}
	var specs []agent.Spec
	for _, name := range a.allTools() {
		t := a.tools.Lookup(name)
		if t == nil || slices.Contains(never[:], name) || !wanted(l.Definition, name) {
			continue
		}
		if (name == "Agent" || name == "SendMessage") && a.env.number("CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH", 3)-a.Session.Depth(l.Parent) <= 1 {
			continue
		}
		if o := own[name]; o != nil {
			t = o
		}
		set[name] = t
		specs = append(specs, t.Spec())
	}
	if len(set) == 0 && len(l.Definition.Tools) > 0 {
		return nil, nil, fmt.Errorf("the agent %s would have no tool: none of %s is there", l.Definition.Name, strings.Join(l.Definition.Tools, ", "))
	}
	return set, specs, nil
}

// wanted says whether a definition's lists leave it a tool.
func wanted(d subagent.Definition, name string) bool {
	fits := func(list []string) bool {
		return slices.ContainsFunc(list, func(w string) bool {
			w = canonical(w)
			return w == name || strings.HasPrefix(w, "mcp__") && (strings.HasPrefix(name, strings.TrimSuffix(w, "*")) && strings.HasSuffix(w, "*") || strings.HasPrefix(name, w+"__"))
		})
	}
	if fits(d.Without) {
		return false
	}
	return d.Tools == nil || fits(d.Tools)
}

// runAgent runs a sub-agent to its end.
func (a *App) runAgent(ctx context.Context, l subagent.Launch) (subagent.Outcome, error) {
	set, specs, err := a.agentToolset(l)
	if err != nil {
		return subagent.Outcome{}, err
	}
	d := l.Definition
	name := a.agentModel(l)
	spec := a.model.Resolve(name)
	e := window.NewEngine(window.New(window.Options{
		Model: name, Tools: specs, MaxTokens: spec.MaxTokens, Purpose: "agent", Agent: l.ID, Effort: d.Effort,
		Sections: prompt.Sections(prompt.Options{Agent: d.Prompt + suffix(a.o.SubagentPrompt), Tools: names(specs), Unattended: true}),
	}), compact.Options{
		Provider: a.Session.Metered(a.model), Limits: a.compactLimits(name), Hook: a.hook, UUID: frame.UUID, Agent: l.ID,
		Count: a.model.CountTokens, Emit: func(b agent.Body) { a.emit(l.Call, l.ID, b) },
	})
	e.Told = func(r window.Record) { a.cachedOf(l.Call, l.ID, name, r) }
	c := session.Child{
		ID: l.ID, Type: d.Name, Call: l.Call, Parent: l.Parent, MaxTurns: d.MaxTurns,
		Tools: func(n string) agent.Tool { return set[n] }, Progress: l.Progress,
		Window: e.Request, Fit: e.Fit, Recover: e.Recover, Answered: e.Answered, Load: func(n ...string) { e.Load(n...) },
	}
	if d.Mode != "" && stricterThan(a.mode(), d.Mode) {
		c.Gate = a.gate.In(d.Mode)
	}
	if l.Resume {
		loaded, err := transcript.LoadAgent(a.transcriptPath(), l.ID)
		if err != nil {
			return subagent.Outcome{}, fmt.Errorf("the agent %s cannot go on: %w", l.ID, err)
		}
		c.History = loaded.History
		c.Prompt = []agent.Block{&agent.Text{Text: l.Prompt}}
	} else {
		c.Prompt = append(a.agentOpening(ctx, l), &agent.Text{Text: l.Prompt})
	}
	a.setAgentDir(l.ID, a.cwd())
	defer a.setAgentDir(l.ID, "")
	if len(d.Hooks) > 0 {
		source := "agent:" + l.ID
		hs, ps := hook.Parse(d.Hooks, hook.Handler{Source: source, File: d.File})
		for _, p := range ps {
			a.warn("%s", p)
		}
		for i := range hs {
			if hs[i].Event == "Stop" {
				hs[i].Event = "SubagentStop"
			}
		}
		a.hooks.Replace(source, hs)
		defer a.hooks.Replace(source, nil)
	}
	s, err := a.Session.Spawn(ctx, c)
	if err != nil {
		return subagent.Outcome{}, err
	}
	out := subagent.Outcome{
		Text: s.End.Text, Partial: s.Partial, Why: s.Why, Usage: s.Sum, Tokens: s.Usage.Tokens, Tools: s.Usage.Tools, Took: s.Usage.Took,
		Model: name, Models: s.Models, Interrupted: s.Interrupted,
	}
	if s.End.Reason == loop.MaxTurns && !out.Partial {
		out.Partial, out.Why = true, "it reached its limit of turns"
	}
	return out, nil
}

func suffix(s string) string {
	if s == "" {
		return ""
	}
	return "\n\n" + s
}

func names(specs []agent.Spec) []string {
	out := make([]string, 0, len(specs))
	for _, s := range specs {
		out = append(out, s.Name)
	}
	return out
}

// stricterThan says whether a sub-agent's own mode may hold: what the main
// conversation has been given stays in force for its agents.
func stricterThan(main, own agent.Mode) bool {
	switch main {
	case agent.ModeBypass, agent.ModeAcceptEdits, agent.ModeAuto:
		return false
	}
	// A definition file must not open what the session keeps shut.
	return own != agent.ModeBypass
}

// agentModel is the model a sub-agent runs on.
func (a *App) agentModel(l subagent.Launch) string {
	for _, n := range []string{a.env.get("CLAUDE_CODE_SUBAGENT_MODEL"), l.Model, l.Definition.Model} {
		if n != "" && n != "inherit" {
			return a.model.Resolve(n).ID
		}
	}
	return a.Session.Model()
}

// agentOpening is what a sub-agent is told besides its task.
func (a *App) agentOpening(ctx context.Context, l subagent.Launch) []agent.Block {
	o := window.Opening{Environment: a.surroundings()}
	if !l.Definition.Bare && !a.o.Bare {
		a.layout.mu.Lock()
		set := a.layout.memory
		a.layout.mu.Unlock()
		if set != nil {
			// The automatic memory is the main conversation's own.
			own := &memory.Set{Files: slices.DeleteFunc(slices.Clone(set.Files), func(f memory.File) bool { return f.Kind == memory.Auto })}
			o.Memory = own
		}
		o.Git = a.git
	}
	for _, want := range l.Definition.Skills {
		for _, s := range a.ext.list() {
			if s.Name != want || s.Hidden {
				continue
			}
			text, err := a.render(ctx, s, "")
			if err != nil {
				a.warn("the skill %s was not loaded for %s: %v", want, l.Definition.Name, err)
				continue
			}
			o.More = append(o.More, window.Note{Kind: "skill", Text: text})
		}
	}
	return o.Blocks(ctx)
}

// knownAgent returns the type of an agent that has ended.
func (a *App) knownAgent(id string) (def string, stopped, ok bool) {
	t, ok := a.jobs.Find(id)
	if !ok || t.Type != job.Agent {
		return "", false, false
	}
	return t.Agent, t.Status == job.Killed, true
}

func (a *App) agentDir(id string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.agents[id]
}

func (a *App) setAgentDir(id, dir string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if dir == "" {
		delete(a.agents, id)
		return
	}
	a.agents[id] = dir
}
