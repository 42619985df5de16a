package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/ext/subagent"
	"github.com/seed-eb844fcb/cinch/internal/session"
	"github.com/seed-eb844fcb/cinch/internal/ui/frame"
)

// A slash is a built-in command.
type slash struct {
	name, hint, help string
	aliases          []string
	run              func(a *App, ctx context.Context, args string) (session.Expansion, error)
}

// slashCommands are the built-in commands that make sense without a screen.
func slashCommands() []slash {
	return []slash{
		{name: "help", help: "List the commands", run: (*App).slashHelp},
		{name: "clear", hint: "[name]", help: "Begin a new conversation; this one can be resumed", aliases: []string{"reset", "new"}, run: func(*App, context.Context, string) (session.Expansion, error) {
			return session.Expansion{Clear: true}, nil
		}},
		{name: "compact", hint: "[what to keep]", help: "Replace the conversation by a summary", run: func(_ *App, _ context.Context, args string) (session.Expansion, error) {
			return session.Expansion{Inputs: []agent.Input{agent.Compact{Focus: args}}}, nil
		}},
		{name: "context", help: "Show what fills the context window", run: (*App).slashContext},
		{name: "cost", help: "Show what the session has cost", aliases: []string{"usage", "stats"}, run: func(a *App, _ context.Context, _ string) (session.Expansion, error) {
			return session.Expansion{Local: a.costText()}, nil
		}},
		{name: "model", hint: "[name]", help: "Show or set the model", run: (*App).slashModel},
		{name: "effort", hint: "[level]", help: "Show or set the effort: low, medium, high, xhigh, max", run: (*App).slashEffort},
		{name: "permissions", help: "List the permission rules", aliases: []string{"allowed-tools"}, run: (*App).slashPermissions},
		{name: "hooks", help: "List the hooks", run: (*App).slashHooks},
		{name: "agents", help: "List the kinds of sub-agents", run: (*App).slashAgents},
		{name: "skills", help: "List the skills", run: (*App).slashSkills},
		{name: "mcp", hint: "[reconnect|enable|disable SERVER]", help: "Show MCP servers", run: (*App).slashMCP},
		{name: "memory", help: "List the instruction files", run: (*App).slashMemory},
		{name: "status", help: "Show version, model, account and settings", run: (*App).slashStatus},
		{name: "tasks", help: "List background work", aliases: []string{"bashes"}, run: (*App).slashTasks},
		{name: "rename", hint: "NAME", help: "Name this session", run: (*App).slashRename},
		{name: "add-dir", hint: "PATH", help: "Add a working directory", run: (*App).slashAddDir},
		{name: "export", hint: "[file]", help: "Write the conversation as plain text", run: (*App).slashExport},
		{name: "plan", hint: "[task]", help: "Switch to plan mode", run: (*App).slashPlan},
		{name: "rewind", hint: "[message uuid]", help: "Take changes to files back", aliases: []string{"checkpoint", "undo"}, run: (*App).slashRewind},
		{name: "pin", hint: "[FACT]", help: "Keep a fact through every summary; without one, list the pins", run: (*App).slashPin},
		{name: "unpin", hint: "NUMBER", help: "Take a pin away", run: (*App).slashUnpin},
		{name: "init", help: "Write a CLAUDE.md for this project", run: asking(initPrompt)},
		{name: "review", hint: "[what]", help: "Review the changes", aliases: []string{"code-review"}, run: asking(reviewPrompt)},
		{name: "security-review", help: "Look for security faults in the changes", run: asking(securityPrompt)},
	}
}

// expand is session.Options.Expand.
func (a *App) expand(ctx context.Context, p agent.Prompt) (session.Expansion, error) {
	var back []agent.Input
	if p.Origin == "" || p.Origin == "human" {
		back = a.takeBack()
		a.mu.Lock()
		a.prompt = p.UUID
		a.mu.Unlock()
		a.refresh(ctx)
	}
	if p.Origin == "shell" {
		return a.bang(ctx, p)
	}
	x, err := a.expansion(ctx, p)
	x.Inputs = append(back, x.Inputs...)
	return x, err
}

func (a *App) expansion(ctx context.Context, p agent.Prompt) (session.Expansion, error) {
	a.mcpReady(ctx)
	text := agent.TextOf(p.Blocks)
	if a.o.NoCommands || !strings.HasPrefix(text, "/") {
		return a.mentions(ctx, p), nil
	}
	name, args, _ := strings.Cut(strings.TrimPrefix(text, "/"), " ")
	if i := strings.IndexByte(name, '\n'); i >= 0 {
		name, args = name[:i], name[i+1:]+" "+args
	}
	args = strings.TrimSpace(args)
	if name == "" || strings.ContainsAny(name, "/.") {
		return a.mentions(ctx, p), nil // a path, not a command
	}
	for _, s := range a.ext.list() {
		if s.Name == name && !s.Internal {
			x, err := a.typed(ctx, p, s.Name, args)
			return x, err
		}
	}
	for _, c := range slashCommands() {
		if c.name == name || contains(c.aliases, name) {
			x, err := c.run(a, ctx, args)
			x.Name = c.name
			if err != nil {
				x.Local, x.Failed = err.Error(), true
			}
			return x, nil
		}
	}
	if x, ok, err := a.mcpPrompt(ctx, p, name, args); ok {
		return x, err
	}
	// compat: what is no command goes to the model as it stands.
	return a.mentions(ctx, p), nil
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// typed is a skill or custom command that the person typed.
func (a *App) typed(ctx context.Context, p agent.Prompt, name, args string) (session.Expansion, error) {
	for _, s := range a.ext.list() {
		if s.Name != name {
			continue
		}
		text, err := a.render(ctx, s, args)
		if err != nil {
			return session.Expansion{Local: err.Error(), Failed: true, Name: name}, nil
		}
		a.adopt(s)
		a.remember(s, text)
		x := session.Expansion{Name: name, Args: args, Source: s.Source, Inputs: a.borrow(s)}
		if s.Fork {
			text = fmt.Sprintf("Send a sub-agent (subagent_type %s) with exactly this task, and tell the user what it reports:\n\n%s", or(s.Agent, subagent.General), text)
		}
		tag := fmt.Sprintf("<command-name>/%s</command-name>\n<command-message>%s</command-message>\n<command-args>%s</command-args>", name, name, args)
		x.Messages = []agent.Message{{
			UUID: p.UUID, Role: agent.User, Origin: p.Origin,
			Blocks: append(others(p.Blocks), &agent.Text{Text: tag, Note: "command"}, &agent.Text{Text: text}),
		}}
		return x, nil
	}
	return session.Expansion{}, fmt.Errorf("there is no command /%s", name)
}

// others are the blocks of a prompt that are no text.
func others(bs []agent.Block) []agent.Block {
	var out []agent.Block
	for _, b := range bs {
		if t, ok := b.(*agent.Text); !ok || t.Note != "" {
			out = append(out, b)
		}
	}
	return out
}

// asking makes a command of a prompt to the model.
func asking(text string) func(*App, context.Context, string) (session.Expansion, error) {
	return func(_ *App, _ context.Context, args string) (session.Expansion, error) {
		t := text
		if args != "" {
			t += "\n\nThe user adds: " + args
		}
		return session.Expansion{Messages: []agent.Message{{UUID: frame.UUID(), Role: agent.User, Blocks: []agent.Block{&agent.Text{Text: t}}}}}, nil
	}
}

const (
	initPrompt     = "Write a CLAUDE.md in the root of this project, or improve the one that is there. It is read at the start of every session, so it must be short and true. Find out, from the files and not by guessing: how to build, run, lint and test (one test, too); how the code is laid out, as far as a listing does not show it; the conventions that a newcomer would break. Take over what matters from README.md, AGENTS.md, .cursor/rules, .cursorrules and .github/copilot-instructions.md if they are there. Leave out what is obvious and what changes often. Run the commands that are safe to run before you write them down."
	reviewPrompt   = "Review the changes in this repository: what git diff shows against the default branch, and what is not committed. Read enough of the code around each change to judge it. Report only faults that would matter to the author: wrong behaviour, lost data, races, broken error handling, missing tests for new behaviour, needless complexity. For each: file and line, what goes wrong and when, and the smallest fix. Order them by weight. If there is nothing, say so."
	securityPrompt = "Look for security faults that the changes in this repository bring in (git diff against the default branch, and what is not committed): injection, missing checks of who may do what, secrets in code or logs, unsafe handling of paths, files, URLs and deserialised data, weak cryptography, races. Follow the data from where it enters to where it is used. Report only what can be exploited, each with file and line, how, how bad, and the fix; no theory, no style."
)

func (a *App) slashHelp(context.Context, string) (session.Expansion, error) {
	var b strings.Builder
	for _, c := range a.commands() {
		fmt.Fprintf(&b, "/%s\t%s\n", strings.TrimSpace(c.Name+" "+c.Hint), c.Description)
	}
	return session.Expansion{Local: strings.TrimRight(b.String(), "\n")}, nil
}

func (a *App) slashModel(ctx context.Context, args string) (session.Expansion, error) {
	now := a.Session.Model()
	if args == "" {
		return session.Expansion{Local: "The model is " + now + "."}, nil
	}
	if next, err := a.resolve(args); err == nil && next != now {
		if ok, err := a.agreed(ctx, "The model "+now+" becomes "+next, next); err != nil || !ok {
			return session.Expansion{Local: "The model stays " + now + "."}, err
		}
	}
	return session.Expansion{Inputs: []agent.Input{agent.SetModel{Model: args}}, Local: "The model is " + a.model.Resolve(args).ID + " from here on."}, nil
}

func (a *App) slashEffort(ctx context.Context, args string) (session.Expansion, error) {
	_, now := a.Session.Thinking()
	switch args {
	case "":
		return session.Expansion{Local: "The effort is " + or(now, "the model's default") + "."}, nil
	case "low", "medium", "high", "xhigh", "max":
		if args != now {
			if ok, err := a.agreed(ctx, "The effort "+or(now, "of the model's default")+" becomes "+args, a.Session.Model()); err != nil || !ok {
				return session.Expansion{Local: "The effort stays " + or(now, "the model's default") + "."}, err
			}
		}
		return session.Expansion{Inputs: []agent.Input{agent.SetThinking{Effort: args}}, Local: "The effort is " + args + " from here on."}, nil
	}
	return session.Expansion{}, fmt.Errorf("%q is no effort: low, medium, high, xhigh or max", args)
}

func (a *App) slashPermissions(context.Context, string) (session.Expansion, error) {
	p := a.gate.Policy()
	var b strings.Builder
	fmt.Fprintf(&b, "mode: %s\n", p.Mode())
	for _, r := range p.Rules() {
		fmt.Fprintf(&b, "%s %s (%s)\n", r.Verdict, r.Text, r.Where())
	}
	fmt.Fprintf(&b, "directories: %s", strings.Join(p.Dirs(), ", "))
	return session.Expansion{Local: b.String()}, nil
}

func (a *App) slashHooks(context.Context, string) (session.Expansion, error) {
	var b strings.Builder
	for _, h := range a.hooks.Handlers() {
		fmt.Fprintf(&b, "%s %s: %s (%s)\n", h.Event, or(h.Matcher, "*"), h.Name(), h.Source)
	}
	return session.Expansion{Local: or(strings.TrimRight(b.String(), "\n"), "There are no hooks.")}, nil
}

func (a *App) slashAgents(context.Context, string) (session.Expansion, error) {
	var b strings.Builder
	for _, d := range a.ext.definitions() {
		fmt.Fprintf(&b, "%s (%s): %s\n", d.Name, d.Source, d.Description)
	}
	return session.Expansion{Local: or(strings.TrimRight(b.String(), "\n"), "There are no agents.")}, nil
}

func (a *App) slashSkills(context.Context, string) (session.Expansion, error) {
	var b strings.Builder
	for _, s := range a.ext.list() {
		fmt.Fprintf(&b, "%s (%s): %s\n", s.Name, s.Source, s.Description)
	}
	return session.Expansion{Local: or(strings.TrimRight(b.String(), "\n"), "There are no skills.")}, nil
}

func (a *App) slashMemory(context.Context, string) (session.Expansion, error) {
	a.layout.mu.Lock()
	set := a.layout.memory
	a.layout.mu.Unlock()
	if set == nil {
		return session.Expansion{Local: "No instruction files are loaded yet."}, nil
	}
	var b strings.Builder
	for _, f := range set.Files {
		fmt.Fprintf(&b, "%s (%s, %d bytes)\n", f.Path, f.Kind, len(f.Text))
	}
	return session.Expansion{Local: or(strings.TrimRight(b.String(), "\n"), "There are no instruction files.")}, nil
}

func (a *App) slashStatus(context.Context, string) (session.Expansion, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "cinch %s\nsession: %s\ncwd: %s\nmodel: %s\nmode: %s\nupstream: %s (%s)\n", a.o.Version, a.sessionID(), a.cwd(), a.Session.Model(), a.mode(), a.model.Upstream(), a.keySource())
	for _, s := range a.dialer.Settings() {
		fmt.Fprintf(&b, "%s: %s\n", s.Name, s.Value)
	}
	fmt.Fprintf(&b, "settings: %s", strings.Join(a.cfg().files, ", "))
	return session.Expansion{Local: b.String()}, nil
}

func (a *App) slashTasks(context.Context, string) (session.Expansion, error) {
	var b strings.Builder
	for _, t := range a.jobs.List() {
		fmt.Fprintf(&b, "%s %s %s: %s\n", t.ID, t.Type, t.Status, or(t.Description, t.Command))
	}
	return session.Expansion{Local: or(strings.TrimRight(b.String(), "\n"), "Nothing runs in the background.")}, nil
}

func (a *App) slashRename(_ context.Context, args string) (session.Expansion, error) {
	if args == "" {
		return session.Expansion{}, fmt.Errorf("usage: /rename NAME")
	}
	return session.Expansion{Local: "The session is called " + args + "."}, a.rename(args)
}

func (a *App) slashAddDir(ctx context.Context, args string) (session.Expansion, error) {
	dir := args
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(a.cwd(), dir)
	}
	if args == "" || !isDir(dir) {
		return session.Expansion{}, fmt.Errorf("%q is not a directory", args)
	}
	u := agent.PermissionUpdate{Type: "addDirectories", Directories: []string{dir}, Destination: "session"}
	return session.Expansion{Local: dir + " is a working directory for this session."}, a.gate.Grant(ctx, []agent.PermissionUpdate{u})
}

func (a *App) slashPlan(_ context.Context, args string) (session.Expansion, error) {
	x := session.Expansion{Inputs: []agent.Input{agent.SetMode{Mode: agent.ModePlan}}}
	if args == "" {
		x.Local = "Plan mode is on."
		return x, nil
	}
	x.Messages = []agent.Message{{UUID: frame.UUID(), Role: agent.User, Blocks: []agent.Block{&agent.Text{Text: args}}}}
	return x, nil
}

// slashExport writes the conversation as plain text.
func (a *App) slashExport(_ context.Context, args string) (session.Expansion, error) {
	name := or(args, "cinch-"+a.sessionID()[:8]+".txt")
	if !filepath.IsAbs(name) {
		name = filepath.Join(a.cwd(), name)
	}
	var b strings.Builder
	for _, m := range a.Session.History() {
		for _, blk := range m.Blocks {
			switch blk := blk.(type) {
			case *agent.Text:
				if blk.Note == "" {
					fmt.Fprintf(&b, "%s:\n%s\n\n", m.Role, blk.Text)
				}
			case *agent.ToolUse:
				fmt.Fprintf(&b, "call %s %s\n\n", blk.Name, blk.Input)
			case *agent.ToolResult:
				fmt.Fprintf(&b, "result:\n%s\n\n", agent.TextOf(blk.Blocks))
			}
		}
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return session.Expansion{}, err
	}
	_, err = f.WriteString(b.String())
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return session.Expansion{Local: "The conversation is in " + name + "."}, err
}
