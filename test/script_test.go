// Package test runs the whole program, as it is built, against an offline
// model: one txtar file a scenario, in testdata, grouped by layer.
//
// A script starts in $WORK/project, with an empty $HOME, credentials for the
// model, and nothing else of the outside world. What the archive holds decides:
//
//	project/…       the project the program works in
//	home/…          the user's files
//	model/1, 2, …   what the model answers, a script a request (see modelserver);
//	                $WORK stands for the script's folder
//	model/options   how the model behaves, a line an option: window N, maxbody N,
//	                mincache N, key K, lenient, fault REQUEST EVENT cut|drop|eof|error|hang
//
// Commands, besides those of testscript:
//
//	secure LOG            start an HTTPS server at localhost:$SECURE that writes what it gets to LOG; $WORK/ca.pem vouches for it
//	proxy LOG PORT [USER:PASSWORD]   start a forward proxy at 127.0.0.1:$PROXY for which every host is at PORT; it writes what it is asked to LOG
//	sshd DIR              start an SSH server at localhost:$SSHD that runs what it is told in DIR
//	mcpserver FILE        is an MCP server on standard input and output, for configurations (see internal/test/mcpserver)
//	requests              write the requests so far to request/1, 2, … and their headers to request/1.header, …
//	await N               wait until the model has got N requests, or until the file N has content
//	count N               the model got exactly N requests
//	prefix A B            request B goes on where request A ended, byte for byte up to its last mark
//	violations [PATTERN]  the model was asked something the API refuses; ! violations is checked at every end
//	json FILE PATH [RE]   the value at PATH (a.b.0.c) of the JSON in FILE matches RE; of JSON lines the last is meant
//	code N CMD ARGS…      CMD exits with N
//	signal SIG WHEN CODE CMD ARGS…   CMD gets SIG once the model has WHEN requests, or the file WHEN
//	                      is there, and exits with CODE; its output is in out and err, its
//	                      environment that of the script's start
//	answer FILE CODE CMD ARGS…       CMD on a dumb terminal (Linux), a line of FILE typed at each question and
//	                      each "> " that waits for a prompt; all
//	                      of them were wanted, CODE is the exit, out what was on the screen
//	robot FILE CODE CMD ARGS…        CMD on a terminal (Linux) before which a robot does the steps of FILE (see
//	                      robot); CODE is the exit, $TOOK the milliseconds to it, $WRITTEN the bytes written
package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/seed-eb844fcb/cinch/internal/cli"
	"github.com/seed-eb844fcb/cinch/internal/net/modelserver"
	"github.com/seed-eb844fcb/cinch/internal/test/mcpserver"
)

var update = flag.Bool("update", false, "rewrite expected output in scripts")

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "__inner" || os.Args[1] == "__connect") { // the sandbox's helpers are this very program
		os.Exit(cli.Main(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
	}
	testscript.Main(m, map[string]func(){
		"cinch": func() {
			os.Exit(cli.Main(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
		},
		"mcpserver": func() { os.Exit(mcpserver.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// layer runs the scripts of one folder of testdata.
func layer(t *testing.T, name string) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", name),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"requests":   requests,
			"await":      await,
			"count":      count,
			"prefix":     prefix,
			"violations": violations,
			"json":       jsonAt,
			"code":       code,
			"signal":     signal,
			"answer":     answer,
			"robot":      play,
			"secure":     secure,
			"sshd":       sshd,
			"proxy":      proxy,
		},
	})
}

func TestPrint(t *testing.T)    { layer(t, "print") }
func TestLoop(t *testing.T)     { layer(t, "loop") }
func TestTools(t *testing.T)    { layer(t, "tools") }
func TestModel(t *testing.T)    { layer(t, "model") }
func TestSession(t *testing.T)  { layer(t, "session") }
func TestSettings(t *testing.T) { layer(t, "settings") }
func TestStream(t *testing.T)   { layer(t, "stream") }
func TestDemo(t *testing.T)     { layer(t, "demo") }
func TestHooks(t *testing.T)    { layer(t, "hooks") }
func TestSafety(t *testing.T)   { layer(t, "safety") }
func TestExtend(t *testing.T)   { layer(t, "extend") }
func TestContext(t *testing.T)  { layer(t, "context") }
func TestMCP(t *testing.T)      { layer(t, "mcp") }
func TestTerminal(t *testing.T) { layer(t, "terminal") }

// Every folder has its test: a new one cannot be forgotten.
func TestLayersAreComplete(t *testing.T) {
	entries, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		if files, _ := filepath.Glob(filepath.Join("testdata", e.Name(), "*.txtar")); len(files) == 0 {
			t.Errorf("testdata/%s holds no script", e.Name())
		}
		got = append(got, e.Name())
	}
	if want := []string{"context", "demo", "extend", "hooks", "loop", "mcp", "model", "print", "safety", "session", "settings", "stream", "terminal", "tools"}; !slices.Equal(got, want) {
		t.Errorf("got folders %q, want %q", got, want)
	}
}

// A model is the server of one script.
type model struct {
	*modelserver.Server
	env      *testscript.Env
	expected bool // the script has looked at the violations itself
}

type modelKey struct{}

func setup(e *testscript.Env) error {
	srv, err := modelOf(filepath.Join(e.WorkDir, "model"), e.WorkDir)
	if err != nil {
		return err
	}
	url, err := srv.Listen()
	if err != nil {
		return err
	}
	m := &model{Server: srv, env: e}
	e.Values[modelKey{}] = m
	e.Defer(func() {
		srv.Close()
		if v := srv.Violations(); len(v) > 0 && !m.expected {
			e.T().Fatal("the model was asked what the API refuses:\n" + strings.Join(v, "\n"))
		}
	})
	for _, dir := range []string{"home", "project", "tmp"} {
		if err := os.MkdirAll(filepath.Join(e.WorkDir, dir), 0o777); err != nil {
			return err
		}
	}
	e.Cd = filepath.Join(e.WorkDir, "project")
	e.Vars = append(e.Vars,
		"HOME="+filepath.Join(e.WorkDir, "home"),
		"TMPDIR="+filepath.Join(e.WorkDir, "tmp"),
		"ANTHROPIC_BASE_URL="+url,
		"ANTHROPIC_API_KEY=test-key",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_CONFIG_NOSYSTEM=1",
		"SHELL=/bin/bash",
		"TERM=xterm-256color",
		"TZ=UTC",
	)
	for _, v := range []string{"GOROOT", "GOCACHE", "GOFLAGS"} {
		out, err := exec.Command("go", "env", v).Output()
		if err != nil {
			return fmt.Errorf("go env %s: %w", v, err)
		}
		if s := strings.TrimSpace(string(out)); s != "" {
			e.Vars = append(e.Vars, v+"="+s)
		}
	}
	return nil
}

// modelOf makes the model that the files in dir describe.
func modelOf(dir, work string) (*modelserver.Server, error) {
	var o modelserver.Options
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	numbers := map[int]modelserver.Script{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		text := strings.ReplaceAll(string(b), "$WORK", work)
		if e.Name() == "options" {
			if err := options(&o, text); err != nil {
				return nil, fmt.Errorf("model/options: %w", err)
			}
			continue
		}
		n, err := strconv.Atoi(e.Name())
		if err != nil {
			return nil, fmt.Errorf("model/%s: the name is neither a number nor options", e.Name())
		}
		if numbers[n], err = modelserver.ParseScript(text); err != nil {
			return nil, fmt.Errorf("model/%s: %w", e.Name(), err)
		}
	}
	var scripts []modelserver.Script
	for n := 1; n <= len(numbers); n++ {
		s, ok := numbers[n]
		if !ok {
			return nil, fmt.Errorf("model/%d is missing", n)
		}
		scripts = append(scripts, s)
	}
	o.Brain = modelserver.Play(scripts...)
	return modelserver.New(o), nil
}

func options(o *modelserver.Options, text string) error {
	faults := map[[2]int]modelserver.Fault{}
	words := map[string]modelserver.Fault{"cut": modelserver.FaultCut, "drop": modelserver.FaultDrop, "eof": modelserver.FaultEOF, "error": modelserver.FaultError, "hang": modelserver.FaultHang}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		n := 0
		if len(f) > 1 {
			n, _ = strconv.Atoi(f[1])
		}
		switch {
		case f[0] == "window" && n > 0:
			o.Window = n
		case f[0] == "maxbody" && n > 0:
			o.MaxBody = int64(n)
		case f[0] == "mincache" && n > 0:
			o.MinCache = n
		case f[0] == "key" && len(f) == 2:
			o.Key = f[1]
		case f[0] == "lenient":
			o.Lenient = true
		case f[0] == "fault" && len(f) == 4 && words[f[3]] != 0:
			ev, err := strconv.Atoi(f[2])
			if err != nil {
				return err
			}
			faults[[2]int{n, ev}] = words[f[3]]
		default:
			return fmt.Errorf("no such option: %s", strings.TrimSpace(line))
		}
	}
	o.Fault = func(request, event int) modelserver.Fault { return faults[[2]int{request, event}] }
	return nil
}

func serverOf(ts *testscript.TestScript) *model { return ts.Value(modelKey{}).(*model) }

func requests(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 0, 0)
	dir := filepath.Join(ts.Getenv("WORK"), "request")
	ts.Check(os.MkdirAll(dir, 0o777))
	for _, x := range serverOf(ts).Exchanges() {
		if x.N < 0 {
			continue
		}
		name := filepath.Join(dir, strconv.Itoa(x.N+1))
		ts.Check(os.WriteFile(name, append(slices.Clone(x.Body), '\n'), 0o666))
		var head bytes.Buffer
		fmt.Fprintf(&head, "%s %s\n", x.Method, x.Path)
		x.Header.Write(&head)
		ts.Check(os.WriteFile(name+".header", bytes.ReplaceAll(head.Bytes(), []byte("\r"), nil), 0o666))
	}
}

// seen counts the message requests so far.
func seen(m *model) (n int) {
	for _, x := range m.Exchanges() {
		if x.N >= 0 {
			n++
		}
	}
	return n
}

func await(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, 1)
	m := serverOf(ts)
	there := func() bool {
		fi, err := os.Stat(ts.MkAbs(args[0]))
		return err == nil && fi.Size() > 0
	}
	if want, err := strconv.Atoi(args[0]); err == nil {
		there = func() bool { return seen(m) >= want }
	}
	for deadline := time.Now().Add(30 * time.Second); !there(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			ts.Fatalf("waited 30 s for %s in vain; the model got %d requests", args[0], seen(m))
		}
	}
}

func count(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, 1)
	if got, want := seen(serverOf(ts)), number(ts, args[0]); got != want {
		ts.Fatalf("the model got %d requests, want %d", got, want)
	}
}

func prefix(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: prefix A B")
	}
	rs := serverOf(ts).Requests()
	at := func(s string) *modelserver.Request {
		n := number(ts, s)
		i := slices.IndexFunc(rs, func(r *modelserver.Request) bool { return r.N == n-1 })
		if i < 0 {
			ts.Fatalf("there is no request %d", n)
		}
		return rs[i]
	}
	err := at(args[1]).Extends(at(args[0]))
	switch {
	case err != nil && !neg:
		ts.Fatalf("the prefix is broken: %v", err)
	case err == nil && neg:
		ts.Fatalf("the prefix is whole")
	}
}

func violations(ts *testscript.TestScript, neg bool, args []string) {
	m := serverOf(ts)
	all := strings.Join(m.Violations(), "\n")
	m.expected = true
	switch {
	case neg && all != "":
		ts.Fatalf("the model was asked what the API refuses:\n%s", all)
	case !neg && all == "":
		ts.Fatalf("the API would have taken every request")
	case !neg && len(args) == 1 && !pattern(ts, args[0]).MatchString(all):
		ts.Fatalf("no violation matches %s:\n%s", args[0], all)
	}
}

func jsonAt(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: json FILE PATH [PATTERN]")
	}
	text := strings.TrimSpace(ts.ReadFile(args[0]))
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		err := json.Unmarshal([]byte(text[strings.LastIndexByte(text, '\n')+1:]), &v)
		ts.Check(err)
	}
	found := true
	for key := range strings.SplitSeq(args[1], ".") {
		switch x := v.(type) {
		case map[string]any:
			v, found = x[key]
		case []any:
			n, err := strconv.Atoi(key)
			if n < 0 {
				n += len(x)
			}
			if found = err == nil && n >= 0 && n < len(x); found {
				v = x[n]
			}
		default:
			found = false
		}
		if !found {
			break
		}
	}
	got := "nothing"
	if found {
		b, err := json.Marshal(v)
		ts.Check(err)
		got = string(b)
		if s, ok := v.(string); ok {
			got = s
		}
	}
	match := found && (len(args) < 3 || pattern(ts, args[2]).MatchString(got))
	if match == neg {
		ts.Fatalf("%s of %s: got %s (want it: %t) %v", args[1], args[0], got, !neg, args[2:])
	}
}

// code runs a command to its end and compares its exit code; its output is
// stdout and stderr of the script, as with exec.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND [ARGS…]")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if want := number(ts, args[0]); got != want {
		ts.Fatalf("%s exited with %d, want %d", args[1], got, want)
	}
}

func signal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: signal SIG WHEN CODE COMMAND [ARGS…]")
	}
	sig, ok := map[string]os.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL}[args[0]]
	if !ok {
		ts.Fatalf("no signal is called %s", args[0])
	}
	m := serverOf(ts)
	path, err := lookIn(m.env.Getenv("PATH"), args[3])
	ts.Check(err)
	cmd := exec.Command(path, args[4:]...)
	cmd.Dir, cmd.Env = m.env.Cd, m.env.Vars
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	ts.Check(cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	await(ts, false, args[1:2])
	ts.Check(cmd.Process.Signal(sig))
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		cmd.Process.Kill()
		<-done
		ts.Fatalf("%s did not end within 30 s of SIG%s\n%s%s", args[3], args[0], &out, &errs)
	}
	ts.Check(os.WriteFile(filepath.Join(m.env.WorkDir, "out"), out.Bytes(), 0o666))
	ts.Check(os.WriteFile(filepath.Join(m.env.WorkDir, "err"), errs.Bytes(), 0o666))
	got := cmd.ProcessState.ExitCode() // -1: killed by a signal
	if want := number(ts, args[2]); got != want {
		ts.Fatalf("%s exited with %d, want %d\n%s%s", args[3], got, want, &out, &errs)
	}
}

// lookIn finds a program in the folders of a PATH.
func lookIn(path, name string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		p := filepath.Join(dir, name)
		if fi, err := os.Stat(p); err == nil && !fi.IsDir() {
			return p, nil
		}
	}
	return "", fmt.Errorf("%s is in no folder of PATH", name)
}

func need(ts *testscript.TestScript, neg bool, args []string, low, high int) {
	if neg || len(args) < low || len(args) > high {
		ts.Fatalf("wrong use: see the comment of the package")
	}
}

func pattern(ts *testscript.TestScript, s string) *regexp.Regexp {
	re, err := regexp.Compile(s)
	ts.Check(err)
	return re
}

func number(ts *testscript.TestScript, s string) int {
	n, err := strconv.Atoi(s)
	ts.Check(err)
	return n
}
