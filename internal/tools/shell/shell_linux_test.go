package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
)

// A list is the simplest list of background work.
type list struct {
	mu   sync.Mutex
	jobs map[string]*listed
	told []agent.Task // ends that were not quiet
	full error
}

type listed struct {
	task agent.Task
	stop context.CancelCauseFunc
	done chan struct{}
}

func (l *list) funcs() Jobs {
	return Jobs{
		Start: func(ctx context.Context, t agent.Task, quiet bool) (context.Context, func(agent.Task), error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.full != nil {
				return nil, nil, l.full
			}
			ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
			j := &listed{t, cancel, make(chan struct{})}
			l.jobs[t.ID] = j
			return ctx, func(t agent.Task) {
				l.mu.Lock()
				defer l.mu.Unlock()
				j.task = t
				if !quiet {
					l.told = append(l.told, t)
				}
				close(j.done)
			}, nil
		},
		Find: func(id string) (agent.Task, bool) {
			l.mu.Lock()
			defer l.mu.Unlock()
			j, ok := l.jobs[id]
			if !ok {
				return agent.Task{}, false
			}
			return j.task, true
		},
		Stop: func(ctx context.Context, id string) error {
			l.mu.Lock()
			j := l.jobs[id]
			l.mu.Unlock()
			j.stop(errors.New("stopped"))
			<-j.done
			return nil
		},
		Done: func(id string) <-chan struct{} {
			l.mu.Lock()
			defer l.mu.Unlock()
			select {
			case <-l.jobs[id].done:
				return nil
			default:
				return l.jobs[id].done
			}
		},
	}
}

// A lab is a project directory with the tools.
type lab struct {
	t     *testing.T
	root  string
	o     Options
	tools map[string]agent.Tool
	jobs  *list
	calls int
}

func newLab(t *testing.T, change func(*Options)) *lab {
	t.Helper()
	home := t.TempDir()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, root: root, jobs: &list{jobs: map[string]*listed{}}}
	guard := &proc.Guard{}
	l.o = Options{
		Env:       func() []string { return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8"} },
		Root:      root,
		TaskDir:   filepath.Join(t.TempDir(), "tasks"),
		ResultDir: filepath.Join(t.TempDir(), "results"),
		Jobs:      l.jobs.funcs(),
		Guard:     guard,
	}
	if change != nil {
		change(&l.o)
	}
	l.tools = map[string]agent.Tool{}
	for _, tool := range New(l.o) {
		l.tools[tool.Spec().Name] = tool
	}
	t.Cleanup(func() {
		for id := range l.jobs.jobs {
			if l.jobs.funcs().Done(id) != nil {
				l.jobs.funcs().Stop(context.Background(), id)
			}
		}
		if err := guard.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

type args map[string]any

// call runs a tool as the loop does.
func (l *lab) call(ctx context.Context, name, agentID string, in args) agent.Result {
	l.t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		l.t.Fatal(err)
	}
	tool := l.tools[name]
	if tool == nil {
		l.t.Fatalf("there is no %s", name)
	}
	e, err := tool.Inspect(raw)
	if err != nil {
		return agent.Failed(err.Error())
	}
	l.calls++
	c := agent.Call{ID: agent.CallID("toolu_" + strconv.Itoa(l.calls)), Name: name, Input: raw, Effects: e, Agent: agentID, Progress: func(agent.Progress) {}}
	res, err := tool.Run(ctx, c)
	if err != nil {
		return agent.Failed(err.Error())
	}
	return res
}

func (l *lab) bash(command string, more ...any) agent.Result {
	l.t.Helper()
	in := args{"command": command}
	for i := 0; i < len(more); i += 2 {
		in[more[i].(string)] = more[i+1]
	}
	return l.call(l.t.Context(), "Bash", "", in)
}

func text(r agent.Result) string { return agent.TextOf(r.Blocks) }

// says checks what a command's result says and whether it is an error.
func (l *lab) says(r agent.Result, want string, isError bool) {
	l.t.Helper()
	if got := text(r); got != want || r.IsError != isError {
		l.t.Errorf("got %q (error %v), want %q (error %v)", got, r.IsError, want, isError)
	}
}

// files are what is left in the directory for output.
func (l *lab) files() []string {
	var names []string
	es, _ := os.ReadDir(l.o.TaskDir)
	for _, e := range es {
		names = append(names, e.Name())
	}
	return names
}

func alive(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	rest := data[strings.LastIndexByte(string(data), ')')+1:]
	return strings.Fields(string(rest))[0] != "Z"
}

// pids waits until file holds n numbers.
func pids(t *testing.T, file string, n int) []int {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		data, _ := os.ReadFile(file)
		f := strings.Fields(string(data))
		if len(f) < n || !strings.HasSuffix(string(data), "\n") {
			continue
		}
		var out []int
		for _, s := range f {
			pid, err := strconv.Atoi(s)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, pid)
		}
		return out
	}
	t.Fatal("the processes did not start")
	return nil
}

func allDead(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d of %v lives on", pid, pids)
		}
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	for _, tt := range []struct {
		command, want string
		isError       bool
	}{
		{`printf "out-%s" 42; echo err >&2`, "out-42err", false},
		{`echo a; echo b >&2; echo c`, "a\nb\nc", false},
		{`true`, "(Bash completed with no output)", false},
		{`echo; echo x; echo; echo`, "\nx", false},
		{`echo before; exit 3`, "Exit code 3\nbefore", true},
		{`exit 3`, "Exit code 3", true},
		{`echo only >&2`, "only", false},
		{`kill -9 $$`, "Exit code 137\nEnded by SIGKILL", true},
		{`if`, "Exit code 2\n/bin/bash: eval: line 2: syntax error: unexpected end of file", true},
		{`no-such-program`, "Exit code 127\n/bin/bash: line 1: no-such-program: command not found", true},
		// What set -e means in a script it means here.
		{`set -e; false; echo not here`, "Exit code 1", true},
		{`set -eo pipefail; false | cat; echo not here`, "Exit code 1", true},
		{"set -e\ntrue\n(exit 4)\necho not here", "Exit code 4", true},
		{`set -u; echo "$nope"`, "Exit code 127\n/bin/bash: line 1: nope: unbound variable", true},
		{`set -x; echo x`, "++ echo x\nx", false},
		{"cat <<'E'\n$x 'y' \"z\"\nE", "$x 'y' \"z\"", false},
		{"# a comment", "(Bash completed with no output)", false},
		{"echo it\\'s # '", "it's", false},
		{`echo "$0|$#|$-"`, "/bin/bash|0|hBc", false},
		{`trap 'echo bye' EXIT; echo hi`, "hi\nbye", false},
		// Exit status 1 that is an answer.
		{`echo a | grep b`, "(Bash completed with no output)\n(exit code 1: nothing matched)", false},
		{`cd . && grep b /dev/null`, "(Bash completed with no output)\n(exit code 1: nothing matched)", false},
		{`false && grep b /dev/null`, "Exit code 1", true},
		{`grep -q '(' /nope`, "Exit code 2\ngrep: /nope: No such file or directory", true},
		{`test 1 = 2`, "(Bash completed with no output)\n(exit code 1: the condition is false)", false},
		{`[ 1 = 2 ] || false`, "Exit code 1", true},
		// Nothing is read, and nothing waits.
		{`cat`, "(Bash completed with no output)\n" + hintText, false},
		{`read x`, "Exit code 1\n" + hintText, true},
		{`read x <<<y; echo $x`, "y", false},
		{`echo x | cat >/dev/null`, "(Bash completed with no output)", false},
	} {
		l.says(l.bash(tt.command), tt.want, tt.isError)
	}
	if left := l.files(); left != nil {
		t.Errorf("%v are left", left)
	}
}

const hintText = "Note: this tried to read standard input, which is empty here; pass what it needs as arguments, in a file or through a pipe."

func TestDetail(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	got := l.bash("echo out; echo err >&2").Detail
	if diff := cmp.Diff(any(detail{Stdout: "out\nerr"}), got); diff != "" {
		t.Error(diff)
	}
	raw, _ := json.Marshal(got)
	if want := `{"stdout":"out\nerr","stderr":"","interrupted":false,"isImage":false,"noOutputExpected":false}`; string(raw) != want {
		t.Errorf("got %s, want %s", raw, want)
	}
	if d := l.bash("exit 3").Detail; d != nil {
		t.Errorf("a failure has the detail %+v", d)
	}
}

func TestInspect(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(o *Options) {
		o.ReadOnly = func(command, cwd string) bool { return strings.HasPrefix(command, "ls") && cwd == o.Root }
	})
	subject := func(s string) []agent.Subject { return []agent.Subject{{Kind: agent.SubjectCommand, Value: s}} }
	for in, want := range map[string]agent.Effects{
		`{"command":"ls -l"}`:                               {Concurrent: true, ReadOnly: true, Idempotent: true, Subjects: subject("ls -l")},
		`{"command":"ls; cd x"}`:                            {ReadOnly: true, Idempotent: true, Subjects: subject("ls; cd x")},
		`{"command":"ls; echo abcd"}`:                       {Concurrent: true, ReadOnly: true, Idempotent: true, Subjects: subject("ls; echo abcd")},
		`{"command":"rm x; ls"}`:                            {Subjects: subject("rm x; ls")},
		`{"command":"ls","dangerouslyDisableSandbox":true}`: {Subjects: subject("ls")},
	} {
		got, err := l.tools["Bash"].Inspect(json.RawMessage(in))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", in, err, diff)
		}
	}
	for _, in := range []string{`{}`, `{"command":"  "}`, `{"command":["a"]}`, `{"command":"a\u0000b"}`, `{"command":"a","timeout":-1}`, `[]`} {
		if _, err := l.tools["Bash"].Inspect(json.RawMessage(in)); err == nil {
			t.Errorf("%s is accepted", in)
		}
	}
	e, err := newLab(t, nil).tools["Bash"].Inspect(json.RawMessage(`{"command":"ls"}`))
	if diff := cmp.Diff(agent.Effects{Subjects: subject("ls")}, e); diff != "" || err != nil {
		t.Errorf("without ReadOnly: %v %s", err, diff)
	}
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	other := t.TempDir()
	l := newLab(t, func(o *Options) { o.Dirs = func() []string { return []string{other} } })
	sub := filepath.Join(l.root, "sub")
	l.says(l.bash("mkdir -p sub && cd sub && pwd"), sub, false)
	l.says(l.bash("pwd; export A=1"), sub, false)
	l.says(l.bash(`echo "A=$A"`), "A=", false)
	l.says(l.bash("cd .. && exit 0"), "(Bash completed with no output)", false)
	l.says(l.bash("pwd"), l.root, false)
	l.says(l.bash("set -e; cd sub; false"), "Exit code 1", true) // as in a shell
	l.says(l.bash("pwd"), sub, false)
	l.says(l.bash("cd /; pwd"), "/\nShell cwd was reset to "+l.root, false)
	l.says(l.bash("pwd"), l.root, false)
	l.says(l.bash("(cd /); pwd"), l.root, false)
	l.says(l.bash("cd "+other), "(Bash completed with no output)", false)
	l.says(l.bash("pwd"), other, false)
	l.says(l.bash("cd '"+l.root+"'"), "(Bash completed with no output)", false)
	// Only the main conversation moves.
	r := l.call(t.Context(), "Bash", "agent-1", args{"command": "cd sub; pwd"})
	l.says(r, sub+"\nShell cwd was reset to "+l.root, false)
	l.says(l.bash("pwd"), l.root, false)
}

func TestStay(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(o *Options) { o.Stay = true })
	l.says(l.bash("mkdir s; cd s; pwd"), filepath.Join(l.root, "s")+"\nShell cwd was reset to "+l.root, false)
	l.says(l.bash("pwd"), l.root, false)
}

func TestDirectoryThroughLink(t *testing.T) {
	t.Parallel()
	real := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	var at string
	l := newLab(t, func(o *Options) {
		o.Root = link
		at = link
		o.Cwd = func() string { return at }
		o.Chdir = func(d string) { at = d }
	})
	l.says(l.bash("mkdir -p a; cd a; pwd"), filepath.Join(link, "a"), false)
	if want := filepath.Join(link, "a"); at != want {
		t.Errorf("cwd is %s, want %s: the name the project is known by", at, want)
	}
	l.says(l.bash("cd ..; pwd -P"), real, false)
	if at != link {
		t.Errorf("cwd is %s, want %s", at, link)
	}
}

func TestDirectoryVanishes(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.bash("mkdir -p a/b; cd a/b")
	if err := os.RemoveAll(filepath.Join(l.root, "a")); err != nil {
		t.Fatal(err)
	}
	want := "The working directory " + filepath.Join(l.root, "a/b") + " no longer exists, so the command was not run.\n" +
		"Shell cwd was reset to " + l.root + "\nRun the command again if it fits there."
	l.says(l.bash("touch ran"), want, true)
	l.says(l.bash("ls"), "(Bash completed with no output)", false)
	// The project itself, while the command runs.
	l.says(l.bash(`rm -rf "$PWD"; echo gone`), "gone", false)
	parent := filepath.Dir(l.root)
	want = "The working directory " + l.root + " no longer exists, so the command was not run.\n" +
		"Shell cwd was reset to " + parent + "\nRun the command again if it fits there."
	l.says(l.bash("ls"), want, true)
	l.says(l.bash("pwd"), parent, false)
}

func TestPathWithEverything(t *testing.T) {
	t.Parallel()
	odd := filepath.Join(t.TempDir(), "My Proj's $x & (1)\n`id`")
	for _, d := range []string{"p", "tasks", "snap"} {
		if err := os.MkdirAll(filepath.Join(odd, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(odd, "env.sh")
	if err := os.WriteFile(file, []byte("FROM_FILE=yes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := newLab(t, func(o *Options) {
		o.Root, o.TaskDir, o.SnapshotDir = filepath.Join(odd, "p"), filepath.Join(odd, "tasks"), filepath.Join(odd, "snap")
		o.EnvFiles = func() []string { return []string{file, filepath.Join(odd, "none")} }
	})
	l.says(l.bash(`mkdir "a b'"; cd "a b'"; echo "$FROM_FILE"`), "yes", false)
	l.says(l.bash("pwd"), filepath.Join(odd, "p", "a b'"), false)
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(o *Options) {
		env := o.Env()
		o.Env = func() []string { return append(env, "PAGER=less", "GIT_EDITOR=vi", "MINE=1", "CLAUDECODE=0") }
		o.Marks = func() []string { return []string{"CLAUDE_CODE_SESSION_ID=abc"} }
	})
	got := strings.Split(text(l.bash(`env | grep -v -e ^HOME -e ^PATH -e ^_= -e ^CINCH_PARENT | sort`)), "\n")
	want := []string{
		"CLAUDECODE=1", "CLAUDE_CODE_CHILD_SESSION=1", "CLAUDE_CODE_SESSION_ID=abc", "CLAUDE_PID=" + strconv.Itoa(os.Getpid()),
		"COREPACK_ENABLE_AUTO_PIN=0", "GIT_EDITOR=true", "GIT_PAGER=cat", "LANG=C.UTF-8", "MINE=1", "NoDefaultCurrentDirectoryInExePath=1",
		"PAGER=cat", "PWD=" + l.root, "SHELL=/bin/bash", "SHLVL=1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got, want := text(l.bash("echo $CINCH_PARENT")), fmt.Sprintf("%d:", os.Getpid()); !strings.HasPrefix(got, want) || got == want {
		t.Errorf("CINCH_PARENT is %q", got)
	}
}

func TestGitDoesNotAsk(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.bash("git init -q . && git config user.email a@b && git config user.name n && echo 1 >f && git add f && git commit -qm one")
	if r := l.bash("git commit --allow-empty; git log; git rebase -i --root && git commit --amend"); r.IsError && !strings.Contains(text(r), "one") {
		t.Errorf("got %q", text(r))
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	file := filepath.Join(l.root, "pids")
	begin := time.Now()
	l.says(l.bash("sleep 300 & echo $! >>pids; echo $$ >>pids; { sleep 300; } 2>/dev/null", "timeout", 400), "Exit code 143\nCommand timed out after 400ms", true)
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
	allDead(t, pids(t, file, 2))
	// One that does not want to end, and whose child has left the session.
	os.Remove(file)
	r := l.bash(`sleep 0; trap '' TERM; setsid sh -c 'trap "" TERM; echo $$ >>pids; sleep 300; sleep 300' & echo $$ >>pids; git --version; wait`, "timeout", 400)
	if got := text(r); !strings.HasPrefix(got, "Exit code 137\nCommand timed out after 400ms\ngit version") || !r.IsError {
		t.Errorf("got %q", got)
	}
	allDead(t, pids(t, file, 2))
	if left := l.files(); left != nil {
		t.Errorf("%v are left", left)
	}
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		o    Options
		ms   float64
		want time.Duration
	}{
		{Options{}, 0, 2 * time.Minute},
		{Options{}, 1500.5, 1500500 * time.Microsecond},
		{Options{}, 1e9, 10 * time.Minute},
		{Options{}, 1e300, 10 * time.Minute},
		{Options{Timeout: time.Hour}, 0, time.Hour},
		{Options{Timeout: time.Hour}, 1e9, time.Hour},
		{Options{MaxTimeout: time.Minute}, 0, 2 * time.Minute},
	} {
		b := &bash{o: tt.o.withDefaults()}
		if got := b.timeout(bashInput{Timeout: tt.ms}); got != tt.want {
			t.Errorf("%+v, %v: got %v, want %v", tt.o, tt.ms, got, tt.want)
		}
	}
}

func TestTimeoutGoesOnInBackground(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	r := l.bash("echo one; while [ ! -e go ]; do sleep .02; done; echo two", "timeout", 300, "description", "wait for go")
	d, ok := r.Detail.(detail)
	if !ok || r.IsError || d.Task == "" || d.TimedOut != 300 || d.Stdout != "one" {
		t.Fatalf("got %q, %+v", text(r), r.Detail)
	}
	for _, s := range []string{"after 300ms", d.Task, filepath.Join(l.o.TaskDir, d.Task+".output"), "one"} {
		if !strings.Contains(text(r), s) {
			t.Errorf("%q does not say %q", text(r), s)
		}
	}
	if err := os.WriteFile(filepath.Join(l.root, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out := l.call(t.Context(), "TaskOutput", "", args{"task_id": d.Task})
	want := "<retrieval_status>success</retrieval_status>\n<task_id>" + d.Task + "</task_id>\n<task_type>local_bash</task_type>\n<status>completed</status>\n<output>\none\ntwo\n</output>"
	l.says(out, want, false)
	if len(l.jobs.told) != 1 || l.jobs.told[0].Summary != `Background command "wait for go" completed (exit code 0)` {
		t.Errorf("told %+v", l.jobs.told)
	}
}

func TestTimeoutWithoutJobs(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(o *Options) { o.Jobs = Jobs{} })
	l.says(l.bash("echo on; { while :; do sleep .02; done; } 2>/dev/null", "timeout", 300), "Exit code 143\nCommand timed out after 300ms\non", true)
	if len(l.tools) != 1 {
		t.Errorf("there are %d tools", len(l.tools))
	}
	l.says(l.bash("true", "run_in_background", true), "Background commands are switched off here. Run it without run_in_background.", true)
}

func TestMayGoOn(t *testing.T) {
	t.Parallel()
	b := &bash{o: Options{Jobs: (&list{}).funcs()}}
	for command, want := range map[string]bool{
		"make": true, "npm run dev | tee log": true, "sleep 5": false, "sleep 5; make": false, "make; sleep 5": true,
		"cd x && git push": false, "/usr/bin/git fetch": false, "if": false, "echo $(git pull)": false,
	} {
		if got := b.mayGoOn(bashInput{Command: command}); got != want {
			t.Errorf("%s: got %v", command, got)
		}
	}
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	file := filepath.Join(l.root, "pids")
	go func() {
		pids(t, file, 3)
		cancel(errors.New("Esc"))
	}()
	r := l.call(ctx, "Bash", "", args{"command": "echo work; sleep 300 & echo $! >>pids; setsid sleep 300 & echo $! >>pids; echo $$ >>pids; { sleep 300; } 2>/dev/null"})
	l.says(r, "Exit code 143\nCommand was interrupted; what it had done by then stays done\nwork", true)
	allDead(t, pids(t, file, 3))
}

func TestLeftovers(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	for _, command := range []string{
		"sleep 300 & echo $! >pids; echo done",
		"(while :; do echo x; sleep .1; done) & echo $! >pids; echo done",
		"sleep 300 </dev/null >/dev/null & echo $! >pids; echo done",
	} {
		begin := time.Now()
		r := l.bash(command)
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s: took %v", command, took)
		}
		d, _ := r.Detail.(detail)
		if r.IsError || d.Task == "" || !strings.Contains(text(r), "done") || !strings.Contains(text(r), "task "+d.Task) {
			t.Fatalf("%s: got %q, %+v", command, text(r), r.Detail)
		}
		pid := pids(t, filepath.Join(l.root, "pids"), 1)
		if !alive(pid[0]) {
			t.Errorf("%s: the child is dead", command)
		}
		l.says(l.call(t.Context(), "TaskStop", "", args{"task_id": d.Task}), "Stopped task "+d.Task+" ("+command+").", false)
		allDead(t, pid)
	}
	if len(l.jobs.told) != 0 {
		t.Errorf("the model was told of %+v", l.jobs.told)
	}
	// When no more may run they are stopped.
	l.jobs.full = errors.New("full")
	l.says(l.bash("sleep 300 & echo $! >pids; echo done"), "done\nNote: 1 process started by this command still ran when it ended and were stopped.", false)
	allDead(t, pids(t, filepath.Join(l.root, "pids"), 1))
}

// What is over at once is no news.
func TestNoLeftovers(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.tools["Bash"].(*bash).settle = 30 * time.Second // the machine may be busy
	l.says(l.bash("sleep .03 & echo done"), "done", false)
	l.says(l.bash("echo a > >(sleep .03; cat)"), "a", false)
}

func TestBackground(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	r := l.bash("cat; echo start; while [ ! -e go ]; do sleep .02; done; echo end; exit 4", "run_in_background", true, "description", "serve")
	d, _ := r.Detail.(detail)
	if r.IsError || d.Task == "" || !strings.Contains(text(r), "task "+d.Task) {
		t.Fatalf("got %q, %+v", text(r), r.Detail)
	}
	job, _ := l.o.Jobs.Find(d.Task)
	if want := (agent.Task{ID: d.Task, Type: "local_bash", Call: "toolu_1", Status: "running", Description: "serve",
		Command: "cat; echo start; while [ ! -e go ]; do sleep .02; done; echo end; exit 4",
		Output:  filepath.Join(l.o.TaskDir, d.Task+".output"), Background: true, Started: job.Started}); job != want {
		t.Errorf("got %+v, want %+v", job, want)
	}
	out := l.call(t.Context(), "TaskOutput", "", args{"task_id": d.Task, "block": false})
	if !strings.HasPrefix(text(out), "<retrieval_status>not_ready</retrieval_status>") {
		t.Errorf("got %q", text(out))
	}
	out = l.call(t.Context(), "TaskOutput", "", args{"task_id": d.Task, "timeout": 1})
	if !strings.HasPrefix(text(out), "<retrieval_status>timeout</retrieval_status>") {
		t.Errorf("got %q", text(out))
	}
	os.WriteFile(filepath.Join(l.root, "go"), nil, 0o600)
	<-l.o.Jobs.Done(d.Task)
	data, err := os.ReadFile(job.Output)
	if string(data) != "start\nend\n" || err != nil {
		t.Errorf("output %q, %v", data, err)
	}
	if len(l.jobs.told) != 1 || l.jobs.told[0].Status != "failed" || l.jobs.told[0].Summary != `Background command "serve" failed with exit code 4` {
		t.Errorf("told %+v", l.jobs.told)
	}
	l.says(l.call(t.Context(), "TaskStop", "", args{"shell_id": "nope"}), `There is no task with the id "nope".`, true)
	l.says(l.call(t.Context(), "TaskOutput", "", args{"task_id": "nope"}), `There is no task with the id "nope".`, true)
}

func TestBackgroundStop(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	r := l.bash("trap '' TERM; echo $$ >pids; setsid sh -c 'echo $$ >>pids; sleep 300' & while :; do sleep 1; done", "run_in_background", true)
	d := r.Detail.(detail)
	all := pids(t, filepath.Join(l.root, "pids"), 2)
	if r := l.call(t.Context(), "TaskStop", "", args{"task_id": d.Task}); r.IsError {
		t.Errorf("got %q", text(r))
	}
	allDead(t, all)
	if job, _ := l.o.Jobs.Find(d.Task); job.Status != "killed" {
		t.Errorf("got %+v", job)
	}
}

func TestBackgroundLimits(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(o *Options) {
		o.MaxOutput = 1 << 20
		o.AgentLimit = 300 * time.Millisecond
	})
	timed := l.bash("while :; do sleep .1; done", "run_in_background", true, "timeout", 300, "description", "a").Detail.(detail).Task
	owned := l.call(t.Context(), "Bash", "agent-7", args{"command": "while :; do sleep .1; done", "run_in_background": true, "description": "b"}).Detail.(detail).Task
	flood := l.bash("while head -c 100000 /dev/zero; do sleep .01; done", "run_in_background", true, "description", "c").Detail.(detail).Task
	for id, want := range map[string]string{
		timed: `Background command "a" was ended after 300ms`,
		owned: `Background command "b" was ended after 300ms`,
		flood: `Background command "c" was ended: its output grew without bounds`,
	} {
		if done := l.o.Jobs.Done(id); done != nil {
			<-done
		}
		if job, _ := l.o.Jobs.Find(id); job.Summary != want || job.Status != "failed" {
			t.Errorf("got %+v, want %s", job, want)
		}
	}
	if job, _ := l.o.Jobs.Find(owned); job.Owner != "agent-7" {
		t.Errorf("got %+v", job)
	}
}

func TestMovedByPerson(t *testing.T) {
	t.Parallel()
	key := make(chan struct{})
	l := newLab(t, func(o *Options) { o.ToBackground = func(agent.CallID) <-chan struct{} { return key } })
	go func() {
		for {
			if _, err := os.Stat(filepath.Join(l.root, "up")); err == nil {
				close(key)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	r := l.bash("echo first; touch up; sleep 300")
	d, _ := r.Detail.(detail)
	if !d.ByUser || d.Task == "" || d.Stdout != "first" || r.IsError {
		t.Errorf("got %q, %+v", text(r), r.Detail)
	}
}

func TestConcurrent(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(o *Options) { o.SnapshotDir = t.TempDir() })
	var wg sync.WaitGroup
	got := make([]string, 20)
	for i := range got {
		wg.Go(func() {
			raw := json.RawMessage(fmt.Sprintf(`{"command":"echo %d; sleep .01; echo %d"}`, i, i))
			r, err := l.tools["Bash"].Run(t.Context(), agent.Call{ID: "x", Input: raw, Progress: func(agent.Progress) {}})
			if err != nil {
				t.Error(err)
			}
			got[i] = text(r)
		})
	}
	wg.Wait()
	for i, s := range got {
		if want := fmt.Sprintf("%d\n%d", i, i); s != want {
			t.Errorf("got %q, want %q", s, want)
		}
	}
}

func TestLongCommand(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	body := strings.Repeat("it's a line of text\n", 15_000) // 300 KB
	r := l.bash("cat >f <<'E'\n" + body + "E\nwc -c <f")
	l.says(r, strconv.Itoa(len(body)), false)
	if data, err := os.ReadFile(filepath.Join(l.root, "f")); string(data) != body || err != nil {
		t.Errorf("the file differs: %v", err)
	}
	if left := l.files(); left != nil {
		t.Errorf("%v are left", left)
	}
}

func TestWrapAndPrefix(t *testing.T) {
	t.Parallel()
	var outside []bool
	l := newLab(t, func(o *Options) {
		o.Wrap = func(_ context.Context, command string, out bool) (proc.Wrap, func(string) string) {
			outside = append(outside, out)
			if out {
				return nil, nil
			}
			return func(s proc.Spec) (proc.Spec, func(), error) {
				s.Env = append(s.Env, "INSIDE=1")
				return s, nil, nil
			}, func(string) string { return "Sandbox: writing to /x was refused" }
		}
	})
	l.says(l.bash(`echo "$INSIDE"`), "1", false)
	l.says(l.bash(`exit 1`), "Exit code 1\nSandbox: writing to /x was refused", true)
	l.says(l.bash(`echo "in=$INSIDE"`, "dangerouslyDisableSandbox", true), "in=", false)
	if want := []bool{false, false, true}; !slices.Equal(outside, want) {
		t.Errorf("got %v, want %v", outside, want)
	}
	wrapper := filepath.Join(t.TempDir(), "wrap")
	if err := os.WriteFile(wrapper, []byte("#!/bin/sh\necho \"$# args\"\nexec sh -c \"$1\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := newLab(t, func(o *Options) { o.Prefix = wrapper })
	p.says(p.bash(`echo "it's" && cd . && exit 3`), "Exit code 3\n1 args\nit's", true)
}

func BenchmarkBash(b *testing.B) {
	guard := &proc.Guard{}
	defer guard.Close()
	env := os.Environ()
	tool := New(Options{
		Env: func() []string { return env }, Root: b.TempDir(), TaskDir: b.TempDir(), SnapshotDir: b.TempDir(), Guard: guard,
	})[0]
	c := agent.Call{ID: "x", Input: json.RawMessage(`{"command":"true"}`), Progress: func(agent.Progress) {}}
	for b.Loop() {
		if r, err := tool.Run(b.Context(), c); err != nil || r.IsError {
			b.Fatal(text(r), err)
		}
	}
}
