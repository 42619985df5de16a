package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var env = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}

func sh(script string) Spec {
	s := Shell("", script)
	s.Env = env
	return s
}

func TestExit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		script string
		want   Exit
	}{
		{"exit 0", Exit{}},
		{"exit 7", Exit{Code: 7}},
		{"kill -9 $$", Exit{Code: 137, Signal: "SIGKILL"}},
		{"kill -TERM $$", Exit{Code: 143, Signal: "SIGTERM"}},
	} {
		out, err := Run(t.Context(), sh(tt.script), Options{}, 100)
		got := Exit{Code: out.Code, Signal: out.Signal, Held: out.Held}
		if err != nil || got != tt.want {
			t.Errorf("%s: got %+v, %v; want %+v", tt.script, got, err, tt.want)
		}
		if out.Took <= 0 {
			t.Errorf("%s: no time was taken", tt.script)
		}
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	s := sh(`cat; echo "$1 $PWD" >&2; env | grep -v PWD | grep -v '^_='`)
	s.Args = append(s.Args, "one")
	s.Dir = t.TempDir()
	out, err := Run(t.Context(), s, Options{Stdin: strings.NewReader("in\n")}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(out.Stdout), "in\n"+env[0]+"\n"; strings.ReplaceAll(got, "SHLVL=1\n", "") != want {
		t.Errorf("stdout %q, want %q: nothing is inherited", got, want)
	}
	if got, want := string(out.Stderr), "one "+s.Dir+"\n"; got != want {
		t.Errorf("stderr %q, want %q", got, want)
	}
}

func TestNoInputNoTerminal(t *testing.T) {
	t.Parallel()
	out, err := Run(t.Context(), sh(`cat; (exec </dev/tty) 2>/dev/null && echo tty; ps -o sid= -p $$ | tr -d ' '; echo $$`), Options{}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(out.Stdout))
	if len(f) != 2 || f[0] != f[1] {
		t.Errorf("got %q, want the child to lead a session of its own, with no terminal", out.Stdout)
	}
}

func TestCannotStart(t *testing.T) {
	t.Parallel()
	gone := filepath.Join(t.TempDir(), "gone")
	for _, tt := range []struct {
		spec Spec
		want error
	}{
		{Spec{Path: "true", Env: env, Dir: gone}, ErrDir},
		{Spec{Path: "no-such-program", Env: env}, exec.ErrNotFound},
		{Spec{Path: "true"}, exec.ErrNotFound},
		{Spec{Path: ""}, exec.ErrNotFound},
		{Spec{Path: gone}, os.ErrNotExist},
	} {
		for _, pipes := range []bool{false, true} {
			cleaned := 0
			wrap := func(s Spec) (Spec, func(), error) { return s, func() { cleaned++ }, nil }
			_, err := Start(t.Context(), tt.spec, Options{Wrap: wrap, Pipes: pipes})
			if !errors.Is(err, tt.want) || cleaned != 1 {
				t.Errorf("%+v: got %v after %d cleanups, want %v after one", tt.spec, err, cleaned, tt.want)
			}
		}
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	cleaned := 0
	wrap := func(s Spec) (Spec, func(), error) {
		s.Args = append([]string{"env", "A=1", s.Path}, s.Args[1:]...)
		s.Path = "env"
		return s, func() { cleaned++ }, nil
	}
	out, err := Run(t.Context(), sh("echo $A"), Options{Wrap: wrap}, 100)
	if err != nil || string(out.Stdout) != "1\n" || cleaned != 1 {
		t.Errorf("got %q, %v, %d cleanups", out.Stdout, err, cleaned)
	}
	refuse := func(s Spec) (Spec, func(), error) { return s, nil, io.ErrUnexpectedEOF }
	if _, err := Start(t.Context(), sh("true"), Options{Wrap: refuse}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want the wrap's error", err)
	}
}

func TestPipes(t *testing.T) {
	t.Parallel()
	p, err := Start(t.Context(), sh("read x; echo got $x; cat"), Options{Pipes: true})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(p.Stdin, "a")
	buf := make([]byte, 100)
	n, err := p.Stdout.Read(buf)
	if string(buf[:n]) != "got a\n" || err != nil {
		t.Fatalf("got %q, %v", buf[:n], err)
	}
	fmt.Fprint(p.Stdin, "rest")
	p.Stdin.Close()
	// All output can be read after the child is gone.
	exit, err := p.Wait()
	rest, rerr := io.ReadAll(p.Stdout)
	p.Stdout.Close()
	if !exit.OK() || err != nil || string(rest) != "rest" || rerr != nil {
		t.Errorf("got %v, %v, %q, %v", exit, err, rest, rerr)
	}
}

// A background process that holds the output does not hold us.
func TestWaitForTheChildOnly(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		script     string
		held, left bool
	}{
		{"sleep 300 & echo done", true, true},
		{"(while :; do echo x; sleep .01; done) & sleep .05; echo done", true, false}, // its pipe breaks
		{"sleep 300 </dev/null >/dev/null & echo done", true, true},                   // stderr is held
		{"sleep 300 >/dev/null 2>&1 & echo done", false, true},
	} {
		begin := time.Now()
		var out, errs Capture
		out.Max, errs.Max = 10_000, 10_000
		o := Options{Stdout: &out, Stderr: &errs}
		if !tt.held {
			o.Drain = 10 * time.Second // is not used up
		}
		p, err := Start(t.Context(), sh(tt.script), o)
		if err != nil {
			t.Fatal(err)
		}
		exit, err := p.Wait()
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s: took %v", tt.script, took)
		}
		if !exit.OK() || err != nil || exit.Held != tt.held || !bytes.Contains(out.Bytes(), []byte("done\n")) {
			t.Errorf("%s: got %v held=%v, %v, %q", tt.script, exit, exit.Held, err, out.Bytes())
		}
		if tt.left && p.Remaining() == 0 {
			t.Errorf("%s: the background process is not seen", tt.script)
		}
		if err := p.Kill(time.Second); err != nil || p.Remaining() != 0 {
			t.Errorf("%s: after Kill: %v, remaining %d", tt.script, err, p.Remaining())
		}
		if err := p.WaitGroup(t.Context()); err != nil {
			t.Errorf("%s: %v", tt.script, err)
		}
	}
}

// A context that ends when the child has ended already kills nothing it left,
// however late the watcher looks: with many at once it is late for some.
func TestEndsBeforeItsContext(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p, err := Start(ctx, sh("sleep 300 </dev/null >/dev/null 2>&1 &"), Options{})
			if err != nil {
				t.Error(err)
				return
			}
			<-p.Exited()
			cancel()
			if exit, err := p.Wait(); !exit.OK() || err != nil || p.Remaining() != 1 {
				t.Errorf("got %v, %v, %d left", exit, err, p.Remaining())
			}
			if err := p.Kill(time.Second); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// brood is a script whose descendants try hard to survive: they ignore
// signals, leave the group by job control, and leave the session. Each writes
// its number to the file $1.
const brood = `
trap '' TERM INT HUP
me() { sh -c 'echo $PPID' >>"$out"; }
out=$1
me
(me; sleep 300) &
( (me; exec sleep 300) & )
setsid sh -c 'trap "" TERM; echo $$ >>"$0"; sleep 300 & echo $! >>"$0"; wait' "$out" &
bash -c 'set -m; sleep 300 & echo $! >>"$0"; kill -STOP $!; wait' "$out" &
while [ "$(wc -l <"$out")" -lt 6 ]; do sleep .01; done
echo ready >>"$out"
sleep 300
wait
`

// hatch starts a brood and waits until it is complete.
func hatch(t *testing.T, file string) []int {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		data, _ := os.ReadFile(file)
		if !bytes.Contains(data, []byte("ready")) {
			continue
		}
		var pids []int
		for f := range strings.FieldsSeq(string(data)) {
			if pid, err := strconv.Atoi(f); err == nil {
				pids = append(pids, pid)
			}
		}
		if len(pids) < 6 {
			t.Fatalf("brood is %q", data)
		}
		return pids
	}
	t.Fatal("the brood did not hatch")
	return nil
}

// alive returns those of pids that run and are no zombies.
func alive(t *testing.T, pids []int) (left []int) {
	t.Helper()
	all, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		for _, pid := range pids {
			if e.pid == pid {
				left = append(left, pid)
			}
		}
	}
	return left
}

func TestEndOfContextKillsTheTree(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pids")
	s := sh(brood)
	s.Args = append(s.Args, file)
	ctx, cancel := context.WithCancelCause(t.Context())
	p, err := Start(ctx, s, Options{Grace: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	pids := hatch(t, file)
	enough := errors.New("enough")
	cancel(enough)
	exit, err := p.Wait()
	if !errors.Is(err, enough) || exit.Signal != "SIGKILL" || exit.Code != 137 {
		t.Errorf("got %v, %v", exit, err)
	}
	if left := alive(t, pids); len(left) > 0 {
		t.Errorf("%v of %v live on", left, pids)
	}
}

func TestKillAsksFirst(t *testing.T) {
	t.Parallel()
	var out Capture
	out.Max = 100
	p, err := Start(t.Context(), sh(`trap 'echo bye; exit 3' TERM; echo on; while :; do sleep .01; done`), Options{Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	for len(out.Bytes()) == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := p.Kill(10 * time.Second); err != nil {
		t.Error(err)
	}
	if exit, err := p.Wait(); exit.Code != 3 || err != nil || string(out.Bytes()) != "on\nbye\n" {
		t.Errorf("got %v, %v, %q", exit, err, out.Bytes())
	}
	if err := p.Kill(time.Second); err != nil {
		t.Errorf("killing the dead: %v", err)
	}
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	p, err := Start(t.Context(), Spec{Path: "sleep", Args: []string{"sleep", "300"}, Env: env}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Interrupt(); err != nil {
		t.Error(err)
	}
	if exit, err := p.Wait(); exit.Signal != "SIGINT" || err != nil {
		t.Errorf("got %v, %v", exit, err)
	}
}

// TestMain lets this test binary be the parent that dies.
func TestMain(m *testing.M) {
	if file := os.Getenv("PROC_TEST_PARENT"); file != "" {
		var g Guard
		s := sh(brood)
		s.Args = append(s.Args, file)
		p, err := Start(context.Background(), s, Options{Guard: &g})
		if err != nil {
			panic(err)
		}
		if os.Getenv("PROC_TEST_CLOSE") != "" {
			io.Copy(io.Discard, os.Stdin)
			if err := g.Close(); err != nil {
				panic(err)
			}
			os.Exit(0)
		}
		p.Wait()
	}
	os.Exit(m.Run())
}

// When the parent is killed, or ends without killing its children, what it
// started is killed too. A process that made itself a session asked not to be.
func TestParentGone(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"killed", "closed"} {
		file := filepath.Join(t.TempDir(), "pids")
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "PROC_TEST_PARENT="+file)
		if how == "closed" {
			cmd.Env = append(cmd.Env, "PROC_TEST_CLOSE=1")
		}
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pids := hatch(t, file)
		all, _ := processes()
		var want, deserters []int
		for _, e := range all {
			for _, pid := range pids {
				switch {
				case e.pid == pid && e.session == pids[0]:
					want = append(want, pid)
				case e.pid == pid:
					deserters = append(deserters, pid)
				}
			}
		}
		if len(want) < 4 || len(deserters) != 2 {
			t.Errorf("of %v, %v are in the session and %v are not", pids, want, deserters)
		}
		if how == "closed" {
			stdin.Close()
		} else {
			cmd.Process.Kill()
		}
		cmd.Wait()
		deadline := time.Now().Add(10 * time.Second)
		for len(alive(t, want)) > 0 && time.Now().Before(deadline) {
			time.Sleep(5 * time.Millisecond)
		}
		if left := alive(t, want); len(left) > 0 {
			t.Errorf("parent %s: %v of %v live on", how, left, want)
		}
		for _, pid := range deserters {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func TestGuardForgetsTheDead(t *testing.T) {
	t.Parallel()
	var g Guard
	for range 3 {
		if _, err := Run(t.Context(), sh("true"), Options{Guard: &g}, 10); err != nil {
			t.Fatal(err)
		}
	}
	if len(g.groups) != 0 || g.cmd == nil {
		t.Errorf("guard holds %v", g.groups)
	}
	pid := g.cmd.Process.Pid
	g.cmd.Process.Kill() // a lost guard is replaced
	for deadline := time.Now().Add(5 * time.Second); len(alive(t, []int{pid})) > 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	for range 2 {
		if out, err := Run(t.Context(), sh("echo ok"), Options{Guard: &g}, 10); err != nil || string(out.Stdout) != "ok\n" {
			t.Errorf("after the guard's death: %q, %v", out.Stdout, err)
		}
	}
	if g.cmd == nil || g.cmd.Process.Pid == pid {
		t.Error("the guard was not replaced")
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "a", "a b", `it's`, `"$x" & (1)`, "a\nb", "*", "~", "-n", "é€", `\`, "`id`", "{a,b}", "a=b", "!x", "#"} {
		out, err := Run(t.Context(), sh("printf %s "+Quote(s)), Options{}, 100)
		if err != nil || !out.OK() || (string(out.Stdout) != s && s != "-n") {
			t.Errorf("%q became %q, %v, %s", s, out.Stdout, err, out.Stderr)
		}
	}
}

func TestLook(t *testing.T) {
	t.Parallel()
	a, b := t.TempDir(), t.TempDir()
	write := func(file string, mode os.FileMode) string {
		if err := os.WriteFile(file, nil, mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write(filepath.Join(a, "x"), 0o644) // not a program
	want := write(filepath.Join(b, "x"), 0o755)
	if err := os.Mkdir(filepath.Join(a, "y"), 0o755); err != nil {
		t.Fatal(err)
	}
	path := strings.Join([]string{".", "", a, "/none", b}, string(filepath.ListSeparator))
	if got, err := Look("x", path); got != want || err != nil {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if got, err := Look("y", path); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := Look("./x", path); got != "./x" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func FuzzParseStat(f *testing.F) {
	self, _ := os.ReadFile("/proc/self/stat")
	f.Add(self)
	f.Add([]byte("12 (a) b) (c) S 1 12 12 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 77 1 1"))
	f.Add([]byte("12 (x) Z 1 12 12 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 77 1 1"))
	f.Add([]byte(")"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if e, ok := parseStat(12, data); ok && e.pid != 12 {
			t.Errorf("%q became %+v", data, e)
		}
	})
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	got, ok := parseStat(12, []byte("12 (a) Z (c) S 1 10 11 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 77 1 1"))
	if want := (entry{12, 1, 10, 11, 77}); got != want || !ok {
		t.Errorf("got %+v, %v; want %+v", got, ok, want)
	}
}

func BenchmarkRun(b *testing.B) {
	var g Guard
	defer g.Close()
	for b.Loop() {
		if _, err := Run(b.Context(), Spec{Path: "/bin/true"}, Options{Guard: &g}, 100); err != nil {
			b.Fatal(err)
		}
	}
}

// A program that is started deaf does not end when its group is asked to, and
// hands the deafness on; nobody else is started so.
func TestDeaf(t *testing.T) {
	t.Parallel()
	for _, deaf := range []bool{true, false, true} {
		s := Spec{Path: "grep", Args: []string{"grep", "SigBlk", "/proc/self/status"}, Env: []string{"PATH=" + os.Getenv("PATH")}}
		s.Deaf = deaf
		out, err := Run(t.Context(), s, Options{}, 1<<10)
		if err != nil || !out.OK() {
			t.Fatal(err, out.Exit, string(out.Stderr))
		}
		want := "0000000000000000"
		if deaf {
			want = "0000000000004003"
		}
		if !strings.Contains(string(out.Stdout), "SigBlk:\t"+want) {
			t.Errorf("deaf %v: %s", deaf, out.Stdout)
		}
	}
}
