package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/app"
	"github.com/seed-eb844fcb/cinch/internal/ui/line"
	"github.com/seed-eb844fcb/cinch/internal/ui/print"
	"github.com/seed-eb844fcb/cinch/internal/ui/stream"
	"github.com/seed-eb844fcb/cinch/internal/ui/tui"
)

// maxPiped bounds what is read from a pipe as part of the prompt.
const maxPiped = 10 << 20

// converse runs a session with the front end that argv asks for.
func (p *program) converse(o *options) int {
	// compat: SDKs give only the formats; streaming in is printing out.
	printing := o.on("print") || o.last("input-format") == "stream-json" || o.last("output-format") == "stream-json" ||
		o.last("output-format") == "json" || !isTerminal(p.stdout) || o.on("init-only")
	if err := checkFormats(o, printing); err != nil {
		return p.fail(err)
	}
	p.oneProcessor()
	ao, err := p.appOptions(o, printing)
	if err != nil {
		return p.fail(err)
	}
	streamIn := o.last("input-format") == "stream-json"
	if p.replay != nil {
		ao.Replay, ao.BaseURL, ao.APIKey = p.replay.rec, p.replay.url, "replay"
		ao.NoPersistence = true
	}
	prompt := strings.Join(o.args, " ")
	if p.replay != nil {
		prompt = p.replay.Prompt
	} else if printing && !streamIn {
		prompt, err = p.withPiped(prompt)
		if err != nil {
			return p.fail(err)
		}
		if strings.TrimSpace(prompt) == "" && !ao.NoPrompt() {
			return p.fail(errors.New("there is no prompt: give one as an argument or through a pipe"))
		}
	}
	if name := o.last("record"); name != "" && p.replay == nil {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return p.fail(fmt.Errorf("--record: %w", err))
		}
		defer f.Close()
		ao.Record, ao.RecordAs = f, replay{Args: p.args, Prompt: prompt}
	}
	var blocks []agent.Block
	if prompt != "" {
		blocks = []agent.Block{&agent.Text{Text: prompt}}
	}
	ao.Dialogs = !printing && p.screen(o)
	var ended tui.Result
	code := p.run(ao, func(ctx context.Context, a *app.App) int {
		switch {
		case ao.Dialogs:
			r, err := p.talk(ctx, a, blocks)
			if err != nil {
				return p.fail(err)
			}
			ended = r
			return r.Code
		case streamIn || o.last("output-format") == "stream-json":
			so := stream.Options{
				Out: p.stdout, Err: p.stderr, Prompt: blocks,
				Partial: o.on("include-partial-messages"), HookEvents: o.on("include-hook-events"),
				Replay:      o.on("replay-user-messages"),
				ForwardText: o.on("forward-subagent-text") || truthy(p.env("CLAUDE_CODE_FORWARD_SUBAGENT_TEXT")),
				States:      truthy(p.env("CLAUDE_CODE_SDK_READS_SESSION_STATE")),
				Host:        o.last("permission-prompt-tool") == "stdio" && o.last("permission-prompts") != "none",
				Version:     Version,
			}
			if streamIn {
				so.In = p.stdin
			}
			return stream.Run(ctx, a.Session, so)
		case printing:
			return print.Run(ctx, a.Session, print.Options{
				Prompt: blocks, Format: or(o.last("output-format"), "text"), Verbose: o.on("verbose"),
				Out: p.stdout, Err: p.stderr, Terminal: isTerminal(p.stdout), Budget: ao.MaxBudget,
			})
		}
		return line.Run(ctx, a.Session, line.Options{
			In: p.stdin, Person: isTerminal(p.stdin), Out: p.stdout, Prompt: blocks, Color: p.color(),
		})
	})
	if ended.Resume != "" { // the person went over to another session
		next := &program{environ: p.environ, stdin: p.stdin, stdout: p.stdout, stderr: p.stderr, started: time.Now(), args: p.args, draft: ended.Draft}
		return next.converse(o.resuming(ended.Resume))
	}
	return code
}

// oneProcessor has goroutines take turns. Between two answers of the model a
// session passes small pieces of work from goroutine to goroutine; to wake a
// thread for each costs about as much as the work: a turn with a Read takes a
// fifth less CPU so. What has work for all processors, as the search
// engine and the scaling of pictures have, calls runtime.SetDefaultGOMAXPROCS
// first. A GOMAXPROCS of the environment stands.
func (p *program) oneProcessor() {
	if p.env("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
}

// run opens the app, runs its session beside the front end, and sees to it
// that both are over, and every child dead, when it returns. The first SIGINT
// of a turn interrupts it and ends a print run; SIGTERM, SIGHUP and a second
// SIGINT before the next turn end the session at once.
func (p *program) run(ao app.Options, front func(context.Context, *app.App) int) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	a, err := app.Open(ctx, ao)
	if err != nil {
		return p.fail(err)
	}
	defer a.Close()

	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, hangup, brokenPipe)
	defer signal.Stop(signals)
	died := make(chan int, 1) // the exit code a signal asks for
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		interrupted := -1 // the turn that was
		for {
			select {
			case <-done:
				return
			case sig := <-signals:
				turn := a.Session.Turns()
				switch {
				case sig == brokenPipe: // the write that failed says so itself
				case sig == os.Interrupt && (interrupted < 0 || !ao.Print && interrupted != turn):
					interrupted = turn
					if ao.Print {
						setFirst(died, 130)
					}
					_ = a.Session.Submit(ctx, agent.Interrupt{Reason: "SIGINT"})
					if ao.Print {
						_ = a.Session.Submit(ctx, agent.Finish{})
					}
				default:
					code := 143
					switch sig {
					case os.Interrupt:
						code = 130
					case hangup:
						code = 129
					}
					setFirst(died, code)
					_ = a.Session.Submit(ctx, agent.Stop{Reason: sig.String()})
				}
			}
		}
	})
	wg.Go(func() { a.Session.Run(ctx) })
	code := front(ctx, a)
	// The front end may have left early: its reader is gone, so is the need.
	stopCtx, stopCancel := context.WithTimeout(context.Background(), 10*time.Second)
	_ = a.Session.Submit(stopCtx, agent.Stop{Reason: "the front end ended"})
	stopCancel()
	close(done)
	wg.Wait()
	select {
	case code = <-died:
	default:
	}
	return code
}

func setFirst(c chan int, v int) {
	select {
	case c <- v:
	default:
	}
}

// withPiped adds what is piped in to the prompt: the whole prompt, or more
// text after it.
func (p *program) withPiped(prompt string) (string, error) {
	if p.stdin == nil || isTerminal(p.stdin) {
		return prompt, nil
	}
	if fi, err := p.stdin.Stat(); err == nil && fi.Mode()&os.ModeCharDevice != 0 {
		return prompt, nil // the null device
	}
	b, err := io.ReadAll(io.LimitReader(p.stdin, maxPiped+1))
	if err != nil {
		fmt.Fprintf(p.stderr, "cinch: warning: standard input could not be read (%v); going on without it\n", err)
		return prompt, nil
	}
	if len(b) > maxPiped {
		return "", fmt.Errorf("more than %d MB came through the pipe\nhint: write it to a file and name the file in the prompt", maxPiped>>20)
	}
	switch text := strings.TrimRight(string(b), "\n"); {
	case strings.TrimSpace(text) == "":
		return prompt, nil
	case prompt == "":
		return text, nil
	default:
		return prompt + "\n\n" + text, nil
	}
}

func checkFormats(o *options, printing bool) error {
	oneOf := func(name string, list ...string) error {
		if !o.has(name) {
			return nil
		}
		for _, w := range list {
			if o.last(name) == w {
				return nil
			}
		}
		return usagef("option '--%s' argument '%s' is invalid. Allowed choices are %s.", name, o.last(name), strings.Join(list, ", "))
	}
	for _, err := range []error{
		oneOf("output-format", "text", "json", "stream-json"),
		oneOf("input-format", "text", "stream-json"),
		oneOf("permission-mode", "acceptEdits", "auto", "bypassPermissions", "manual", "dontAsk", "plan", "default"),
		oneOf("permission-prompts", "host", "none"),
		oneOf("effort", "low", "medium", "high", "xhigh", "max", "auto"),
	} {
		if err != nil {
			return err
		}
	}
	streamOut := o.last("output-format") == "stream-json"
	switch {
	case o.last("input-format") == "stream-json" && !streamOut:
		return usagef("--input-format=stream-json needs --output-format=stream-json")
	case streamOut && !o.on("verbose"):
		return usagef("--output-format=stream-json needs --verbose")
	case o.on("include-partial-messages") && !streamOut:
		return usagef("--include-partial-messages needs --output-format=stream-json")
	case o.on("replay-user-messages") && (!streamOut || o.last("input-format") != "stream-json"):
		return usagef("--replay-user-messages needs --input-format=stream-json and --output-format=stream-json")
	case o.on("forward-subagent-text") && !streamOut:
		return usagef("--forward-subagent-text needs --output-format=stream-json")
	case o.has("system-prompt") && o.has("system-prompt-file"):
		return usagef("--system-prompt and --system-prompt-file exclude each other")
	case o.has("session-id") && (o.has("resume") || o.on("continue")) && !o.on("fork-session"):
		return usagef("--session-id with --resume or --continue needs --fork-session")
	}
	return nil
}

// appOptions translates argv into what the composition root understands.
func (p *program) appOptions(o *options, printing bool) (app.Options, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return app.Options{}, fmt.Errorf("the working directory is gone (%w)\nhint: cd to a directory that exists and start again", err)
	}
	a := app.Options{
		Environ: p.environ, Cwd: cwd, Version: Version, Started: p.started, Stderr: p.stderr, Print: printing,
		Model: o.last("model"), Fallback: o.words("fallback-model"), Effort: o.last("effort"),
		Tools: o.words("tools"), ToolsSet: o.has("tools"),
		Allow: o.words("allowedTools"), Deny: o.words("disallowedTools"),
		AllowBypass: o.on("allow-dangerously-skip-permissions") || o.on("dangerously-skip-permissions"),
		PromptTool:  o.last("permission-prompt-tool"), NoPrompts: o.last("permission-prompts") == "none",
		Directories: o.all("add-dir"), MCPConfig: o.all("mcp-config"), StrictMCP: o.on("strict-mcp-config"),
		Settings: o.last("settings"), ManagedSettings: o.last("managed-settings"),
		Agents: o.last("agents"), Agent: o.last("agent"),
		Continue: o.on("continue"), Resume: o.last("resume"), ResumeSet: o.has("resume"),
		Fork: o.on("fork-session"), ResumeAt: o.last("resume-session-at"), DropsTurn: o.last("resume-drops-turn"),
		RewindFiles: o.last("rewind-files"), SessionID: o.last("session-id"), Name: o.last("name"),
		NoPersistence: o.on("no-session-persistence"),
		Bare:          o.on("bare") || truthy(p.env("CLAUDE_CODE_SIMPLE")),
		SafeMode:      o.on("safe-mode") || truthy(p.env("CLAUDE_CODE_SAFE_MODE")),
		Restricted:    o.on("restricted"), Betas: o.words("betas"), NoCommands: o.on("disable-slash-commands"),
		PluginDirs: o.all("plugin-dir"), Autocompact: o.last("autocompact"),
		ExcludeDynamic: o.on("exclude-dynamic-system-prompt-sections"),
		SubagentPrompt: o.last("append-subagent-system-prompt"), ProjectRoot: o.last("project-config-root"),
		Init: o.on("init") || o.on("init-only"), InitOnly: o.on("init-only"), Maintenance: o.on("maintenance"),
		Debug: o.has("debug") || o.has("debug-file"), DebugFile: o.last("debug-file"),
		AwaitInitialize: o.on("await-initialize"),
		Streaming:       o.last("input-format") == "stream-json",
	}
	if o.has("permission-mode") {
		a.Mode, _ = agent.ParseMode(o.last("permission-mode"))
	}
	if o.on("dangerously-skip-permissions") {
		a.Mode = agent.ModeBypass
	}
	if o.has("setting-sources") {
		a.SourcesSet, a.Sources = true, o.words("setting-sources")
	}
	for _, pair := range []struct {
		flag string
		to   **string
	}{{"system-prompt", &a.SystemPrompt}, {"append-system-prompt", &a.AppendPrompt}} {
		switch {
		case o.has(pair.flag):
			s := o.last(pair.flag)
			*pair.to = &s
		case o.has(pair.flag + "-file"):
			b, err := os.ReadFile(o.last(pair.flag + "-file"))
			if err != nil {
				return a, fmt.Errorf("reading --%s-file: %w", pair.flag, err)
			}
			s := string(b)
			*pair.to = &s
		}
	}
	if o.has("json-schema") {
		a.Schema = json.RawMessage(o.last("json-schema"))
	}
	for _, n := range []struct {
		flag string
		to   *int
	}{{"max-turns", &a.MaxTurns}, {"max-thinking-tokens", &a.ThinkingTokens}, {"task-budget", &a.TaskBudget}} {
		if !o.has(n.flag) {
			continue
		}
		v, err := strconv.Atoi(o.last(n.flag))
		if err != nil || v < 0 {
			return a, usagef("option '--%s' takes a number that is not negative, not %q", n.flag, o.last(n.flag))
		}
		*n.to = v
	}
	a.ThinkingSet = o.has("max-thinking-tokens") || o.has("thinking")
	a.Thinking, a.ThinkingDisplay = o.last("thinking"), o.last("thinking-display")
	if o.has("max-budget-usd") {
		v, err := strconv.ParseFloat(o.last("max-budget-usd"), 64)
		if err != nil || v <= 0 {
			return a, usagef("option '--max-budget-usd' takes an amount above 0, not %q", o.last("max-budget-usd"))
		}
		a.MaxBudget = v
	}
	if n := o.last("net"); n != "" {
		if a.OnlyHosts, err = onlyHosts(n); err != nil {
			return a, err
		}
	}
	for i, d := range a.Directories {
		abs, err := filepath.Abs(d)
		if err == nil {
			var fi os.FileInfo
			if fi, err = os.Stat(abs); err == nil && !fi.IsDir() {
				err = errors.New("it is not a directory")
			}
		}
		if err != nil {
			return a, fmt.Errorf("--add-dir %s: %w", d, err)
		}
		a.Directories[i] = abs
	}
	return a, nil
}

func truthy(s string) bool {
	switch strings.ToLower(s) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}

// color reports whether the terminal is to get colours.
func (p *program) color() bool {
	return isTerminal(p.stdout) && p.env("NO_COLOR") == "" && p.env("TERM") != "dumb"
}
