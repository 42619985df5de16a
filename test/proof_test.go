package test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/net/modelserver"
	"github.com/seed-eb844fcb/cinch/internal/transcript"
)

// seeds times lives is about the number of points at which the program is
// killed: some lives end before their time is over.
var seeds = flag.Int("seeds", 80, "random walks of TestKilledAnywhere, each with three kills; a tenth with -short")

// A box is a folder with a home and a project, and a model that works there.
type box struct {
	t   *testing.T
	dir string
	srv *modelserver.Server
	env []string
}

func newBox(t *testing.T, o modelserver.Options) *box {
	t.Helper()
	b := &box{t: t, dir: t.TempDir(), srv: modelserver.New(o)}
	url, err := b.srv.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.srv.Close)
	for _, d := range []string{"home", "project", "tmp"} {
		if err := os.Mkdir(filepath.Join(b.dir, d), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	b.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(b.dir, "home"), "TMPDIR=" + filepath.Join(b.dir, "tmp"),
		"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=test-key", "SHELL=/bin/bash", "TERM=dumb",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
	}
	return b
}

func (b *box) command(ctx context.Context, args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.CommandContext(ctx, "cinch", args...)
	cmd.Dir, cmd.Env = filepath.Join(b.dir, "project"), b.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 5 * time.Second
	return cmd, &out
}

func (b *box) log() string {
	got, err := os.ReadFile(filepath.Join(b.dir, "project", "log"))
	if err != nil && !os.IsNotExist(err) {
		b.t.Fatal(err)
	}
	return string(got)
}

// began reports whether a session has anything to go on with.
func (b *box) began(session string) bool {
	files, err := filepath.Glob(filepath.Join(b.dir, "home", ".claude", "projects", "*", session+".jsonl"))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			b.t.Fatal(err)
		}
		if bytes.Contains(text, []byte(`"type":"user"`)) {
			return true
		}
	}
	return false
}

func (b *box) check() {
	b.t.Helper()
	if v := b.srv.Violations(); len(v) > 0 {
		b.t.Errorf("the model was asked what the API refuses:\n%s", strings.Join(v, "\n"))
	}
}

// done reports whether a command has succeeded in the conversation.
func done(r *modelserver.Request, command string) bool {
	for _, w := range r.Work() {
		var in struct{ Command string }
		if json.Unmarshal(w.Input, &in) == nil && in.Command == command && !w.IsError {
			return true
		}
	}
	return false
}

func bash(r *modelserver.Request, i int, command string) modelserver.Step {
	in, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	return modelserver.Tool{ID: fmt.Sprintf("t%d_%d", r.N, i), Name: "Bash", Input: in}
}

// twoTools says something, calls two tools, and says something behind them,
// as far as the conversation does not hold that yet; then it ends.
func twoTools(_ context.Context, r *modelserver.Request) (modelserver.Script, error) {
	s := modelserver.Script{Steps: []modelserver.Step{modelserver.Piece{Chars: 1000}}}
	a, b := done(r, "echo A >> log"), done(r, "echo B >> log")
	if a && b {
		s.Steps = append(s.Steps, modelserver.Text{Text: "All is done."})
		return s, nil
	}
	said := false
	for _, m := range r.Messages {
		for _, blk := range m.Blocks {
			said = said || m.Role == "assistant" && blk.Text == "Opening."
		}
	}
	if !said {
		s.Steps = append(s.Steps, modelserver.Text{Text: "Opening."})
	}
	if !a {
		s.Steps = append(s.Steps, bash(r, 1, "echo A >> log"))
	}
	if !b {
		s.Steps = append(s.Steps, bash(r, 2, "echo B >> log"))
	}
	s.Steps = append(s.Steps, modelserver.Text{Text: "Both are called."})
	return s, nil
}

// The stream breaks in every way in place of every event of a response: each
// tool runs exactly once, nothing is said twice, and the turn ends well.
func TestStreamBreaksAnywhere(t *testing.T) {
	t.Parallel()
	const events = 15
	faults := map[string]modelserver.Fault{"cut": modelserver.FaultCut, "drop": modelserver.FaultDrop, "eof": modelserver.FaultEOF, "error": modelserver.FaultError}
	for name, fault := range faults {
		for at := range events + 1 {
			t.Run(fmt.Sprintf("%s at %d", name, at), func(t *testing.T) {
				t.Parallel()
				b := newBox(t, modelserver.Options{Brain: twoTools, Fault: func(request, event int) modelserver.Fault {
					if request == 0 && event == at {
						return fault
					}
					return modelserver.NoFault
				}})
				ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
				defer cancel()
				cmd, out := b.command(ctx, "-p", "go", "--allowedTools", "Bash", "--output-format", "stream-json", "--verbose")
				if err := cmd.Run(); err != nil {
					t.Errorf("the run ended with %v", err)
				}
				if got := b.log(); got != "A\nB\n" && got != "B\nA\n" {
					t.Errorf("got the log %q, want A and B once", got)
				}
				for _, said := range []string{"Opening.", "All is done."} {
					if n := strings.Count(out.String(), `"type":"text","text":"`+said+`"`); n != 1 {
						t.Errorf("%q was said %d times", said, n)
					}
				}
				b.check()
				if at == events && len(b.srv.Exchanges()[0].Events) != events {
					t.Errorf("the response has %d events, not %d", len(b.srv.Exchanges()[0].Events), events)
				}
				if t.Failed() {
					t.Logf("%d requests\n%s", len(b.srv.Requests()), out)
				}
			})
		}
	}
}

const steps = 6

// A step leaves a trace that can be counted: a line of its own in a file, or
// a file of its own.
func stepOf(r *modelserver.Request, k int) (do modelserver.Step, look string) {
	if k%3 == 2 {
		in := fmt.Sprintf(`{"file_path":"file-%d","content":"step-%d\n"}`, k, k)
		return modelserver.Tool{ID: fmt.Sprintf("t%d_%d", r.N, k), Name: "Write", Input: json.RawMessage(in)}, fmt.Sprintf("cat file-%d 2>/dev/null | grep -c '^step-%d$'; true", k, k)
	}
	return bash(r, k, fmt.Sprintf("sleep 0.02; echo step-%d >> log", k)), fmt.Sprintf("cat log 2>/dev/null | grep -c '^step-%d$'; true", k)
}

// stepByStep does a step at a time, and does not trust a step whose outcome
// is unknown: it looks first.
func stepByStep(_ context.Context, r *modelserver.Request) (modelserver.Script, error) {
	var s modelserver.Script
	for k := range steps {
		do, look := stepOf(r, k)
		tried, found := false, -1
		for _, m := range r.Messages {
			for _, blk := range m.Blocks {
				var in struct{ Command string }
				if blk.Type != "tool_use" || json.Unmarshal(blk.Input, &in) != nil {
					continue
				}
				res := resultOf(r, blk.ID)
				switch {
				case bytes.Equal(blk.Input, do.(modelserver.Tool).Input) && res.IsError:
					tried, found = true, -1
				case bytes.Equal(blk.Input, do.(modelserver.Tool).Input):
					tried, found = true, 1
				case in.Command == look && !res.IsError:
					if n, err := strconv.Atoi(strings.TrimSpace(res.Text)); err == nil {
						found = n
					}
				}
			}
		}
		switch {
		case found > 0:
			continue
		case tried && found < 0:
			s.Steps = append(s.Steps, bash(r, k, look))
		default:
			s.Steps = append(s.Steps, do)
		}
		return s, nil
	}
	s.Steps = append(s.Steps, modelserver.Text{Text: "All is done."})
	return s, nil
}

// resultOf is the result of a call, wherever in the conversation it stands.
func resultOf(r *modelserver.Request, id string) (res struct {
	Text    string
	IsError bool
}) {
	for _, m := range r.Messages {
		for _, b := range m.Blocks {
			if b.Type == "tool_result" && b.ToolUseID == id {
				res.IsError = b.IsError
				for _, c := range b.Content {
					res.Text += c.Text
				}
			}
		}
	}
	return res
}

// readable checks that a killed session's files can be read: whole lines of
// JSON but for a torn end, and all of it as a conversation.
func (b *box) readable(session string) {
	b.t.Helper()
	files, err := filepath.Glob(filepath.Join(b.dir, "home", ".claude", "projects", "*", session+".jsonl"))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			b.t.Fatal(err)
		}
		for i, line := range bytes.Split(text, []byte("\n")) {
			if torn := i == bytes.Count(text, []byte("\n")); !torn && !json.Valid(line) {
				b.t.Errorf("line %d of the transcript is broken: %q", i+1, line)
			}
		}
		if _, err := transcript.Load(f, transcript.LoadOptions{}); err != nil {
			b.t.Errorf("the transcript cannot be read: %v", err)
		}
	}
}

// alone waits until nothing runs any more that was started in the box.
func (b *box) alone() {
	b.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		var left []string
		procs, err := filepath.Glob("/proc/[0-9]*/environ")
		if err != nil {
			b.t.Fatal(err)
		}
		for _, p := range procs {
			if env, err := os.ReadFile(p); err == nil && bytes.Contains(env, []byte("HOME="+filepath.Join(b.dir, "home")+"\x00")) {
				cmd, _ := os.ReadFile(filepath.Join(filepath.Dir(p), "cmdline"))
				left = append(left, strings.ReplaceAll(string(cmd), "\x00", " "))
			}
		}
		switch {
		case len(left) == 0:
			return
		case time.Now().After(end):
			b.t.Fatalf("10 s after the kill there still runs %q", left)
		}
	}
}

// SIGKILL at a random point of a task whose steps leave traces, again and
// again until the task is done: no step is done twice and none is lost, every
// call is paired, the transcript can be read, and no child is left.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	const session = "11111111-2222-4333-8444-555555555555"
	var want strings.Builder
	for k := range steps {
		if k%3 != 2 {
			fmt.Fprintf(&want, "step-%d\n", k)
		}
	}
	walks := *seeds
	if testing.Short() {
		walks = (walks + 9) / 10
	}
	var hits atomic.Int64
	t.Cleanup(func() { t.Logf("%d kills in %d walks", hits.Load(), walks) })
	places := make(chan struct{}, 4)
	for seed := range walks {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			places <- struct{}{}
			defer func() { <-places }()
			rnd := rand.New(rand.NewPCG(uint64(seed), 0))
			b := newBox(t, modelserver.Options{Brain: stepByStep})
			ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
			defer cancel()
			args := []string{"-p", "go", "--allowedTools", "Bash,Write", "--session-id", session}
			for life := 0; ; life++ {
				if b.began(session) {
					args = []string{"-p", "go on", "--allowedTools", "Bash,Write", "--resume", session}
				}
				cmd, out := b.command(ctx, args...)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				if life < 3 {
					after := time.Duration(rnd.Int64N(int64(400 * time.Millisecond)))
					timer := time.AfterFunc(after, func() { cmd.Process.Kill() })
					err := cmd.Wait()
					if timer.Stop() && err != nil {
						t.Fatalf("life %d ended by itself with %v\n%s", life, err, out)
					}
					if err != nil {
						hits.Add(1)
						b.alone()
						b.readable(session)
						continue
					}
				} else if err := cmd.Wait(); err != nil {
					t.Errorf("life %d ended with %v\n%s", life, err, out)
				}
				if !strings.Contains(out.String(), "All is done.") {
					t.Errorf("life %d: got %s", life, out)
				}
				break
			}
			b.alone()
			for k := range steps {
				if got, err := os.ReadFile(filepath.Join(b.dir, "project", fmt.Sprintf("file-%d", k))); k%3 == 2 && (err != nil || string(got) != fmt.Sprintf("step-%d\n", k)) {
					t.Errorf("file-%d: got %q, %v", k, got, err)
				}
			}
			if t.Failed() || b.log() != want.String() {
				if rs := b.srv.Requests(); len(rs) > 0 {
					t.Logf("the last request:\n%s", rs[len(rs)-1].Raw)
				}
			}
			if got := b.log(); got != want.String() {
				t.Errorf("got the log\n%swant\n%s", got, &want)
			}
			b.check()
		})
	}
}
