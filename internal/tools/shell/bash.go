package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
	"github.com/seed-eb844fcb/cinch/internal/lib/procid"
)

// Causes that end a command.
var (
	errTimeout = errors.New("the command ran longer than it may")
	errFlood   = errors.New("the command wrote more than it may")
	errStopped = errors.New("the command was stopped")
)

// New returns Bash and, if there are Jobs, TaskStop and TaskOutput.
func New(o Options) []agent.Tool {
	b := &bash{o: o.withDefaults(), settle: 100 * time.Millisecond}
	b.self = sync.OnceValue(procid.Self)
	b.profile = newProfile(b)
	tools := []agent.Tool{b}
	if o.Jobs.Start != nil {
		tools = append(tools, stop{o.Jobs}, output{b})
	}
	return tools
}

func (o Options) withDefaults() Options {
	if o.Shell == "" {
		o.Shell = "/bin/bash"
	}
	if o.Timeout <= 0 {
		o.Timeout = 2 * time.Minute
	}
	if o.MaxTimeout <= 0 {
		o.MaxTimeout = 10 * time.Minute
	}
	o.MaxTimeout = max(o.MaxTimeout, o.Timeout)
	if o.AgentLimit <= 0 {
		o.AgentLimit = time.Hour
	}
	if o.MaxText <= 0 {
		o.MaxText = 30_000
	}
	o.MaxText = min(o.MaxText, 150_000)
	if o.MaxTaskText <= 0 {
		o.MaxTaskText = 32_000
	}
	o.MaxTaskText = min(o.MaxTaskText, 160_000)
	if o.MaxOutput <= 0 {
		o.MaxOutput = 5 << 30
	}
	return o
}

// bash is the tool Bash.
type bash struct {
	o       Options
	self    func() procid.ID
	profile *profile
	// settle is how long what a command leaves running may take to end
	// before it counts as left.
	settle time.Duration

	mu  sync.Mutex
	cwd string // where the next command starts, if we keep it; "" is Root
}

type bashInput struct {
	Command     string  `json:"command"`
	Timeout     float64 `json:"timeout"` // ms
	Description string  `json:"description"`
	Background  bool    `json:"run_in_background"`
	Outside     bool    `json:"dangerouslyDisableSandbox"`
}

// detail is the structured result, in the words of the SDK.
type detail struct {
	Stdout           string `json:"stdout"`
	Stderr           string `json:"stderr"`
	Interrupted      bool   `json:"interrupted"`
	IsImage          bool   `json:"isImage"`
	NoOutputExpected bool   `json:"noOutputExpected"`
	Meaning          string `json:"returnCodeInterpretation,omitempty"`
	Task             string `json:"backgroundTaskId,omitempty"`
	ByUser           bool   `json:"backgroundedByUser,omitempty"`
	TimedOut         int64  `json:"timedOutAfterMs,omitempty"`
	Persisted        string `json:"persistedOutputPath,omitempty"`
	PersistedSize    int64  `json:"persistedOutputSize,omitempty"`
}

func (b *bash) Spec() agent.Spec {
	return agent.Spec{Name: "Bash", Description: b.description(), Schema: json.RawMessage(bashSchema)}
}

func parseBash(raw json.RawMessage) (bashInput, error) {
	var in bashInput
	if err := json.Unmarshal(raw, &in); err != nil {
		return in, fmt.Errorf("reading the input: %w", err)
	}
	switch {
	case strings.TrimSpace(in.Command) == "":
		return in, errors.New("command is empty")
	case strings.ContainsRune(in.Command, 0):
		return in, errors.New("command holds a NUL byte, which no shell can be given")
	case in.Timeout < 0:
		return in, errors.New("timeout is negative")
	}
	return in, nil
}

// Inspect trusts a command no more than ReadOnly does. One that may leave the
// shell in another directory runs alone, so that the next starts where the
// order of the calls says.
func (b *bash) Inspect(raw json.RawMessage) (agent.Effects, error) {
	in, err := parseBash(raw)
	if err != nil {
		return agent.Effects{}, err
	}
	e := agent.Effects{Subjects: []agent.Subject{{Kind: agent.SubjectCommand, Value: in.Command}}}
	if b.o.ReadOnly != nil && !in.Outside && b.o.ReadOnly(in.Command, b.dir("")) {
		e.ReadOnly, e.Idempotent = true, true
		e.Concurrent = !mayChangeDir(in.Command)
	}
	return e, nil
}

func (b *bash) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	in, err := parseBash(c.Input)
	if err != nil {
		return agent.Result{}, err
	}
	dir, gone := b.startDir(c.Agent)
	if gone != "" {
		return agent.Failed(gone), nil
	}
	if in.Background {
		return b.background(ctx, c, in, dir)
	}
	r, err := b.start(context.WithoutCancel(ctx), newID(), in, dir)
	if err != nil {
		return agent.Result{}, err
	}
	end := b.watch(ctx, r, c, in)
	if end.moved != nil {
		return *end.moved, nil
	}
	return b.report(c, in, r, end), nil
}

// timeout is how long a command may run in the foreground.
func (b *bash) timeout(in bashInput) time.Duration {
	if in.Timeout == 0 {
		return b.o.Timeout
	}
	return min(millis(in.Timeout), b.o.MaxTimeout)
}

// millis is that many milliseconds, at most a year.
func millis(ms float64) time.Duration {
	const year = 365 * 24 * time.Hour
	return time.Duration(min(ms, float64(year.Milliseconds())) * float64(time.Millisecond))
}

// An ending says why a foreground command no longer is one.
type ending struct {
	exit  proc.Exit
	cause error         // errTimeout, errFlood, or the cause of the call's context; nil if it ended by itself
	after time.Duration // the timeout
	moved *agent.Result // it goes on in the background
}

// First look at a running command, and the interval of further ones. Most
// commands are over before the first.
const (
	firstLook = 500 * time.Millisecond
	nextLook  = 250 * time.Millisecond
)

// watch waits for the end of r, whatever it is.
func (b *bash) watch(ctx context.Context, r *run, c agent.Call, in bashInput) ending {
	limit := b.timeout(in)
	clock := time.NewTimer(limit)
	defer clock.Stop()
	look := time.NewTimer(firstLook)
	defer look.Stop()
	var moved <-chan struct{}
	if b.o.ToBackground != nil && b.o.Jobs.Start != nil {
		moved = b.o.ToBackground(c.ID)
	}
	for {
		var cause error
		select {
		case <-r.p.Exited():
		case <-ctx.Done():
			cause = context.Cause(ctx)
		case <-clock.C:
			cause = errTimeout
		case <-look.C:
			look.Reset(nextLook)
			if r.grown(c.Progress) <= b.o.MaxOutput {
				continue
			}
			cause = errFlood
		case <-moved:
			moved = nil
			if res, ok := b.moveToBackground(ctx, r, c, in, 0); ok {
				return ending{moved: &res}
			}
			continue
		}
		select {
		case <-r.p.Exited(): // by itself, whatever else came at the same time
			return ending{exit: r.end(nil)}
		default:
		}
		if cause == errTimeout && b.mayGoOn(in) {
			if res, ok := b.moveToBackground(ctx, r, c, in, limit); ok {
				return ending{moved: &res}
			}
		}
		return ending{exit: r.end(cause), cause: cause, after: limit}
	}
}

// report makes the result of a command that is over.
func (b *bash) report(c agent.Call, in bashInput, r *run, end ending) agent.Result {
	var notes []string
	note := func(n string) {
		if n != "" {
			notes = append(notes, n)
		}
	}
	note(b.settleDir(c.Agent, r))
	failed := end.cause != nil || !end.exit.OK()
	meaning := ""
	if end.cause == nil && end.exit.Code == 1 {
		meaning = benign(in.Command)
		failed = meaning == ""
	}
	limit := b.o.MaxText
	if failed {
		limit = min(limit, maxFailedText)
	}
	left := 0
	if end.cause == nil {
		left = r.lingering(b.settle)
	}
	v := r.view(limit, failed, left > 0, b.o.ResultDir)
	adopted := ""
	if left > 0 {
		var n string
		adopted, n = b.adopt(r, left, c, in)
		note(n)
	}
	if adopted == "" {
		r.close(v.kept)
	}
	if failed && r.note != nil {
		note(r.note(v.text))
	}
	note(inputHint(in.Command, v.text, failed))
	res := agent.Textual(b.say(v.text, failed, meaning, end, notes))
	res.IsError = failed
	if !failed { // a failure is told as a text
		res.Detail = detail{
			Stdout: v.text, Stderr: strings.Join(notes, "\n"), Meaning: meaning,
			Task: adopted, Persisted: v.path, PersistedSize: v.size,
		}
	}
	return res
}

// say puts together what the model reads.
func (b *bash) say(text string, failed bool, meaning string, end ending, notes []string) string {
	var lines []string
	if failed {
		lines = append(lines, fmt.Sprintf("Exit code %d", end.exit.Code))
	}
	switch {
	case errors.Is(end.cause, errTimeout):
		lines = append(lines, "Command timed out after "+brief(end.after))
	case errors.Is(end.cause, errFlood):
		lines = append(lines, "Command was ended because it wrote more than "+bytesText(b.o.MaxOutput))
	case end.cause != nil:
		lines = append(lines, "Command was interrupted; what it had done by then stays done")
	case failed && end.exit.Signal != "":
		lines = append(lines, "Ended by "+end.exit.Signal)
	}
	switch {
	case text != "":
		lines = append(lines, text)
	case !failed:
		lines = append(lines, "(Bash completed with no output)")
	}
	if meaning != "" {
		lines = append(lines, "(exit code 1: "+meaning+")")
	}
	return strings.Join(append(lines, notes...), "\n")
}

// brief formats d without parts that are zero.
func brief(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// inside reports whether path is dir or below it; both are clean.
func inside(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == os.PathSeparator || strings.HasSuffix(dir, string(os.PathSeparator)))
}
