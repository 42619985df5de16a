package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/checkpoint"
	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
	"github.com/seed-eb844fcb/cinch/internal/lib/programs"
	"github.com/seed-eb844fcb/cinch/internal/net/dial"
	"github.com/seed-eb844fcb/cinch/internal/tools/ask"
	"github.com/seed-eb844fcb/cinch/internal/tools/file"
	"github.com/seed-eb844fcb/cinch/internal/tools/notebook"
	"github.com/seed-eb844fcb/cinch/internal/tools/search"
	"github.com/seed-eb844fcb/cinch/internal/tools/shell"
	"github.com/seed-eb844fcb/cinch/internal/tools/task"
	"github.com/seed-eb844fcb/cinch/internal/tools/web"
)

// fileTools are the tools of one agent that look at and change files; each
// agent has its own memory of what it read.
func (a *App) fileTools(state *file.State) []agent.Tool {
	o := file.Options{
		Cwd: a.cwd, State: state, Home: a.home, Deny: a.denied,
		Before: a.beforeChange, After: a.afterChange,
		Run: a.capture, Which: a.which, MaxTokens: a.env.number("CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS", 0),
	}
	e := file.NewEditor(o)
	ts := e.Tools()
	ts = append(ts, notebook.New(notebook.Options{
		Subjects: func(path string) (string, []agent.Subject, error) { return e.Subjects(agent.SubjectWrite, path) },
		Load:     e.Load, Save: e.Save,
	})...)
	return append(ts, search.New(search.Options{
		Cwd: a.cwd, Home: a.home, Deny: a.denied, Ripgrep: a.which("rg"), Exec: a.stream,
		HideDot: !a.env.onOr("CLAUDE_CODE_GLOB_HIDDEN", true), Ignore: !a.env.onOr("CLAUDE_CODE_GLOB_NO_IGNORE", true),
	})...)
}

// builtins are all built-in tools of the main conversation, whether they are
// on offer or not.
func (a *App) builtins() []agent.Tool {
	ts := a.fileTools(a.files)
	ts = append(ts, a.shellTools()...)
	ts = append(ts, a.webTools()...)
	ts = append(ts, task.New(task.Options{
		List: a.taskList(), Todo: a.todoTool(),
	})...)
	ts = append(ts, ask.New(ask.Options{
		Questions: true, Ask: a.ask, Plan: true, Mode: a.mode, SetMode: a.setMode, Before: a.modeBeforePlan,
		Approved: a.keepPlan, Schema: a.schema,
	})...)
	return ts
}

// taskList is the list of tasks of the session.
func (a *App) taskList() *task.List {
	return &task.List{Dir: func() string { return filepath.Join(a.root, "tasks", a.listID()) }}
}

// todoTool says whether TodoWrite stands in for the task tools.
func (a *App) todoTool() bool {
	if on, ok := a.env.choice("CLAUDE_CODE_ENABLE_TASKS"); ok {
		return !on
	}
	return false
}

func (a *App) listID() string { return or(a.env.get("CLAUDE_CODE_TASK_LIST_ID"), a.id) }

func (a *App) shellTools() []agent.Tool {
	return shell.New(shell.Options{
		Shell: a.env.get("CLAUDE_CODE_SHELL"), Prefix: a.env.get("CLAUDE_CODE_SHELL_PREFIX"),
		Env: func() []string { return a.env.list }, EnvFiles: a.envFiles, Marks: a.marks,
		Root: a.o.Cwd, Dirs: a.directories, Cwd: a.cwd, Chdir: a.chdir,
		AgentDir: a.agentDir,
		Stay:     a.env.on("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR"),
		TaskDir:  a.taskDir(), ResultDir: a.resultDir(), SnapshotDir: filepath.Join(a.root, "shell-snapshots"),
		ReadOnly: func(command, cwd string) bool { return programs.ReadOnly(command, cwd) },
		Wrap:     a.wrapCommand, ToBackground: a.toBackground, Guard: &a.guard, Jobs: a.shellJobs(),
		Timeout: a.env.ms("BASH_DEFAULT_TIMEOUT_MS"), MaxTimeout: a.env.ms("BASH_MAX_TIMEOUT_MS"),
		AgentLimit: a.env.ms("CLAUDE_SUBAGENT_BG_SHELL_MAX_MS"),
		MaxText:    a.env.number("BASH_MAX_OUTPUT_LENGTH", 0), MaxTaskText: a.env.number("TASK_MAX_OUTPUT_LENGTH", 0),
	})
}

// shellJobs hands the list of background work to the shell tools.
func (a *App) shellJobs() shell.Jobs {
	if a.env.on("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS") {
		return shell.Jobs{}
	}
	return shell.Jobs{
		Start: func(ctx context.Context, t agent.Task, quiet bool) (context.Context, func(agent.Task), error) {
			jctx, j, err := a.jobs.Start(ctx, t)
			if err != nil {
				return nil, nil, err
			}
			if quiet {
				j.Quiet()
			}
			return jctx, func(end agent.Task) {
				j.End(end.Status, func(t *agent.Task) { t.Summary, t.Err, t.Output, t.Ended = end.Summary, end.Err, end.Output, end.Ended })
			}, nil
		},
		Find: a.jobs.Find, Stop: a.jobs.Stop,
		Done: func(id string) <-chan struct{} {
			if j := a.jobs.Job(id); j != nil {
				return j.Done()
			}
			return nil
		},
	}
}

func (a *App) webTools() []agent.Tool {
	return web.New(web.Options{
		Fetch: a.fetch, UserAgent: "Claude-User (cinch/" + a.o.Version + ")", Ask: a.askSmall,
		SaveDir: a.resultDir(), TTL: a.env.ms("CLAUDE_CODE_WEBFETCH_CACHE_TTL_MS"),
		Search: a.search, MaxSearches: a.env.number("CLAUDE_CODE_MAX_WEB_SEARCHES_PER_SESSION", 0),
		Session: func() string { return a.id },
	})
}

// fetch makes one request for WebFetch; private addresses are refused where
// the connection is made.
func (a *App) fetch(ctx context.Context, method, url string, header map[string]string) (int, string, map[string][]string, io.ReadCloser, error) {
	return dial.Fetch(ctx, a.webClient(), method, url, header)
}

// offered picks from ts what --tools, the rules and the mode of the run leave.
func (a *App) offered(ts []agent.Tool) []agent.Tool {
	want := a.o.Tools
	all := !a.o.ToolsSet || slices.Contains(want, "default")
	kept := make([]agent.Tool, 0, len(ts))
	names := make([]string, 0, len(ts))
	for _, t := range ts {
		names = append(names, t.Spec().Name)
	}
	removed := a.gate.Policy().Removed(names)
	for _, t := range ts {
		name := t.Spec().Name
		switch {
		case slices.Contains(removed, name):
		case !all && !slices.ContainsFunc(want, func(w string) bool { return canonical(w) == name }):
			// compat: a schema's tool is there whatever was asked for.
			if name == "StructuredOutput" {
				kept = append(kept, t)
			}
		case a.o.Restricted && all && slices.Contains([]string{"Bash", "WebFetch", "NotebookEdit"}, name):
		case a.o.Bare && all && !slices.Contains([]string{"Bash", "Read", "Edit", "Write", "StructuredOutput"}, name):
		default:
			kept = append(kept, t)
		}
	}
	return kept
}

// canonical is the name of a tool, whatever it was called before.
func canonical(name string) string {
	name, _, _ = strings.Cut(name, "(")
	switch name {
	case "Task":
		return "Agent"
	case "BashOutput", "AgentOutputTool":
		return "TaskOutput"
	case "KillShell", "KillBash":
		return "TaskStop"
	}
	return name
}

// capture runs a helper program for a tool.
func (a *App) capture(ctx context.Context, argv []string, stdin []byte) ([]byte, error) {
	out, err := proc.Run(ctx, proc.Spec{Path: argv[0], Args: argv, Env: a.env.list, Dir: a.cwd()}, proc.Options{Stdin: bytes.NewReader(stdin), Guard: &a.guard}, 64<<20)
	if err != nil {
		return nil, fmt.Errorf("running %s: %w", argv[0], err)
	}
	if !out.OK() {
		return nil, fmt.Errorf("%s: %s: %s", filepath.Base(argv[0]), out.Exit, strings.TrimSpace(string(out.Stderr)))
	}
	return out.Stdout, nil
}

// stream runs a helper program whose output is too much to hold.
func (a *App) stream(ctx context.Context, dir string, argv []string, stdout io.Writer) (int, []byte, error) {
	out, err := proc.Run(ctx, proc.Spec{Path: argv[0], Args: argv, Env: a.env.without("RIPGREP_CONFIG_PATH"), Dir: dir}, proc.Options{Stdout: stdout, Guard: &a.guard}, 1<<20)
	return out.Code, out.Stderr, err
}

func (a *App) which(name string) string {
	p, err := proc.Look(name, a.env.get("PATH"))
	if err != nil {
		return ""
	}
	return p
}

// beforeChange keeps what a file was before a tool changes it.
func (a *App) beforeChange(_ context.Context, path string) error {
	if a.points == nil {
		return nil
	}
	if err := a.points.Before(path, checkpoint.Tool); err != nil {
		a.note("warning", "this change cannot be taken back: "+err.Error())
	}
	return nil
}

func (a *App) afterChange(_ context.Context, path string) {
	if a.points != nil {
		if err := a.points.After(path); err != nil {
			a.note("warning", "this change cannot be taken back: "+err.Error())
		}
	}
}

// taskDir holds the output of commands while they run.
func (a *App) taskDir() string {
	return filepath.Join(or(a.env.get("CLAUDE_CODE_TMPDIR"), os.TempDir()), fmt.Sprintf("cinch-%d", os.Getuid()), a.slug(), a.id, "tasks")
}
