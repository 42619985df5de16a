package app

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/ext/hook"
	"github.com/seed-eb844fcb/cinch/internal/lib/linkpath"
	"github.com/seed-eb844fcb/cinch/internal/policy"
	"github.com/seed-eb844fcb/cinch/internal/settings"
	"github.com/seed-eb844fcb/cinch/internal/transcript"
	"github.com/seed-eb844fcb/cinch/internal/window/memory"
)

// listen makes the hooks of the settings.
func (a *App) listen(context.Context) error {
	a.hooks = hook.New(hook.Options{
		Common: a.hookFields, Cwd: a.cwd, Project: a.o.Cwd, Home: a.home,
		Env: a.hookEnv(), EnvFile: a.hookEnvFile, ShellPrefix: a.env.get("CLAUDE_CODE_SHELL_PREFIX"),
		Post:     a.postHook,
		AllowURL: func(u string) bool { return a.cfg().allowHookURL == nil || a.cfg().allowHookURL(u) },
		AllowVar: func(n string) bool { return a.cfg().allowHookVar == nil || a.cfg().allowHookVar(n) },
		TypeOf:   a.typeOf,
		Call:     a.hookTool, Ask: a.hookModel, Work: a.hookAgent, Host: a.ask,
		Matches: a.matches, Emit: func(call agent.CallID, b agent.Hooked) { a.emit("", "", b) },
		Late: a.lateHook, Spill: a.spill, StopTimeout: a.env.ms("CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS"),
	})
	a.onClose(a.hooks.Close)
	a.setHooks()
	return nil
}

// setHooks takes the hooks of every settings layer; a layer may have several
// files, and those which had hooks before may have none now.
func (a *App) setHooks() {
	a.lock()
	for _, layer := range []settings.Layer{settings.Managed, settings.Flag, settings.Local, settings.Project, settings.User} {
		var all []hook.Handler
		for _, src := range a.cfg().hooks {
			if src.layer != string(layer) {
				continue
			}
			hs, problems := hook.Parse(src.raw, hook.Handler{Source: src.layer, File: src.file})
			for _, p := range problems {
				a.warn("%s", p)
			}
			all = append(all, hs...)
		}
		a.hooks.Replace(string(layer), all)
	}
}

// hook runs hooks, sparing the work where nobody listens.
func (a *App) hook(ctx context.Context, m agent.Moment) agent.HookResult {
	var r agent.HookResult
	if m.Event == "SessionStart" && m.Match == "startup" {
		r = a.setup(ctx)
	}
	if !a.hooks.Any(m.Event) {
		return r
	}
	x := a.hooks.Run(ctx, m)
	a.heed(m.Event, x)
	x.Context, x.Notes, x.Ran = append(r.Context, x.Context...), append(r.Notes, x.Notes...), r.Ran+x.Ran
	return x
}

// ownFiles are the files that a call has changed, for hooks that run after it:
// what a formatter makes of our own change is ours, too.
func (a *App) ownFiles(c agent.Call) []string {
	if a.points == nil {
		return nil
	}
	var out []string
	for _, s := range c.Effects.Subjects {
		if s.Kind == agent.SubjectWrite && a.points.Ours(s.Value) {
			out = append(out, s.Value)
		}
	}
	return out
}

// hookFields are what every hook gets.
func (a *App) hookFields(m agent.Moment) map[string]any {
	f := map[string]any{"session_id": a.sessionID(), "transcript_path": a.transcriptPath(), "cwd": a.cwd()}
	a.mu.Lock()
	prompt := a.prompt
	a.mu.Unlock()
	if prompt != "" {
		f["prompt_id"] = prompt
	}
	if a.Session == nil {
		return f
	}
	f["permission_mode"] = string(a.Session.Mode())
	stop := m.Event == "Stop" || m.Event == "SubagentStop"
	if _, effort := a.Session.Thinking(); effort != "" && (m.Call != nil || stop) {
		f["effort"] = map[string]string{"level": effort}
	}
	if m.Event == "SubagentStop" && m.Agent != "" {
		f["agent_transcript_path"] = transcript.AgentPath(a.transcriptPath(), m.Agent)
	}
	return f
}

func (a *App) hookEnv() []string {
	return append(append([]string(nil), a.env.list...),
		"CLAUDECODE=1", "CLAUDE_CODE_SESSION_ID="+a.sessionID(), "CLAUDE_CODE_ENTRYPOINT="+a.entrypoint(),
		"CLAUDE_CODE_CHILD_SESSION=1", fmt.Sprintf("CLAUDE_PID=%d", os.Getpid()))
}

// envDir holds the files that hooks write variables to.
func (a *App) envDir() string { return filepath.Join(a.root, "session-env", a.id) }

func (a *App) hookEnvFile(event string) string {
	switch event {
	case "SessionStart", "Setup", "CwdChanged", "FileChanged":
	default:
		return ""
	}
	if os.MkdirAll(a.envDir(), 0o700) != nil {
		return ""
	}
	return filepath.Join(a.envDir(), strings.ToLower(event)+"-hook.sh")
}

// envFiles are sourced before each command.
func (a *App) envFiles() []string {
	var out []string
	if f := a.env.get("CLAUDE_ENV_FILE"); f != "" {
		out = append(out, f)
	}
	entries, err := os.ReadDir(a.envDir())
	if err != nil {
		return out // no hook wrote anything
	}
	for _, e := range entries {
		out = append(out, filepath.Join(a.envDir(), e.Name()))
	}
	return out
}

// matches says whether a call fits a permission rule, as a hook's `if` has it.
// A deny rule is what matches any part of a call, so the question is put as one.
func (a *App) matches(rule string, c agent.Call) bool {
	p, problems := policy.New(policy.Config{
		Rules: []policy.Rule{{Verdict: agent.Deny, Layer: policy.LayerSession, Text: rule}},
		Cwd:   a.o.Cwd, Home: a.home, Resolve: linkpath.Targets, Expand: expandPattern,
	})
	return len(problems) == 0 && p.Decide(c).Verdict == agent.Deny
}

func (a *App) hookModel(ctx context.Context, model, prompt string) (string, error) {
	name := a.small()
	if model != "" {
		name = a.model.Resolve(model).ID
	}
	return a.complete(ctx, name, "hook", prompt)
}

// lateHook takes what an asynchronous hook said.
func (a *App) lateHook(texts, notes []string, wake bool) {
	for _, n := range notes {
		a.note("info", n)
	}
	if len(texts) == 0 {
		return
	}
	p := agent.Prompt{Blocks: []agent.Block{&agent.Text{Text: strings.Join(texts, "\n\n"), Note: "hook"}}, Meta: true, Origin: "hook", Quiet: !wake, Verbatim: true}
	_ = a.Session.Submit(context.Background(), p) // a session that is over needs no word
}

// after is PostToolUse and PostToolUseFailure, and what a call brings about.
func (a *App) after(ctx context.Context, f agent.Finished) agent.Result {
	r := f.Result
	a.follow(ctx, f)
	event := "PostToolUse"
	if r.IsError {
		event = "PostToolUseFailure"
	}
	if !a.hooks.Any(event) {
		return r
	}
	text := agent.TextOf(r.Blocks)
	fields := map[string]any{"duration_ms": f.Took.Milliseconds()}
	if r.IsError {
		fields["error"], fields["is_interrupt"] = text, ctx.Err() != nil
	} else if r.Detail != nil {
		fields["tool_response"] = r.Detail
	} else {
		fields["tool_response"] = json.RawMessage(agent.AppendBlocks(nil, r.Blocks))
	}
	call := f.Call
	own := a.ownFiles(call)
	h := a.hooks.Run(ctx, agent.Moment{Event: event, Match: call.Name, Fields: fields, Call: &call, Agent: call.Agent})
	for _, path := range own {
		a.afterChange(ctx, path)
	}
	for _, n := range h.Notes {
		a.note("warning", n)
	}
	for _, c := range h.Context {
		r.After = append(r.After, &agent.Text{Text: "<system-reminder>\n" + event + ":" + call.Name + " hook additional context: " + c + "\n</system-reminder>", Note: "hook"})
	}
	if h.Block && h.Reason != "" {
		r.After = append(r.After, &agent.Text{Text: "<system-reminder>\n" + h.Reason + "\n</system-reminder>", Note: "hook"})
	}
	if h.Output != nil && !r.IsError {
		if out, ok := replaced(h.Output); ok {
			r.Blocks = out
		}
	}
	if h.Halt {
		r.End = "hook_stopped"
		a.note("warning", h.Reason)
	}
	return r
}

// replaced reads the output a hook puts in a tool's place.
func replaced(raw json.RawMessage) ([]agent.Block, bool) {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return []agent.Block{&agent.Text{Text: s}}, true
	}
	if bs, _, err := agent.DecodeContent(raw); err == nil && len(bs) > 0 {
		return bs, true
	}
	return []agent.Block{&agent.Text{Text: string(raw)}}, true
}

// batch is PostToolBatch.
func (a *App) batch(ctx context.Context, fs []agent.Finished) (behind []agent.Block, end string) {
	a.touched(fs)
	a.changedOnDisk(ctx)
	if !a.hooks.Any("PostToolBatch") {
		return nil, ""
	}
	type call struct {
		Name     string          `json:"tool_name"`
		Input    json.RawMessage `json:"tool_input"`
		ID       string          `json:"tool_use_id"`
		Response string          `json:"tool_response"`
	}
	calls := make([]call, 0, len(fs))
	for _, f := range fs {
		calls = append(calls, call{f.Call.Name, f.Call.Input, string(f.Call.ID), agent.TextOf(f.Result.Blocks)})
	}
	h := a.hooks.Run(ctx, agent.Moment{Event: "PostToolBatch", Fields: map[string]any{"tool_calls": calls}})
	for _, n := range h.Notes {
		a.note("warning", n)
	}
	for _, c := range h.Context {
		behind = append(behind, &agent.Text{Text: "<system-reminder>\nPostToolBatch hook additional context: " + c + "\n</system-reminder>", Note: "hook"})
	}
	if h.Block || h.Halt {
		a.note("warning", h.Reason)
		return behind, "hook_stopped"
	}
	return behind, ""
}

// loadedFile is InstructionsLoaded.
func (a *App) loadedFile(ctx context.Context, f memory.File) {
	if !a.hooks.Any("InstructionsLoaded") {
		return
	}
	fields := map[string]any{"file_path": f.Path, "memory_type": string(f.Kind), "load_reason": string(f.Reason)}
	if f.Parent != "" {
		fields["parent_file_path"] = f.Parent
	}
	if f.Trigger != "" {
		fields["trigger_file_path"] = f.Trigger
	}
	if len(f.Globs) > 0 {
		fields["globs"] = f.Globs
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	a.hooks.Run(ctx, agent.Moment{Event: "InstructionsLoaded", Match: string(f.Reason), Fields: fields})
}
