package hook

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
)

// Limits of what a hook may say.
const (
	maxOutput = 8 << 20  // bytes that are kept of each stream: an answer may hold the whole text of a file
	maxShown  = 10000    // characters of one text; more goes to a file
	maxTold   = 64 << 10 // bytes of each stream that front ends are told
)

// drain is how long the output of a hook is still read after its end, while a
// child it left holds the pipe: on a busy machine what it said is not lost.
const drain = time.Second

// Run runs the hooks of m side by side and returns their merged answer. It
// is an agent.Hooker: what goes wrong is told in Notes.
func (s *Set) Run(ctx context.Context, m agent.Moment) agent.HookResult {
	hs := s.Matching(m)
	if len(hs) == 0 {
		return agent.HookResult{}
	}
	input, err := s.Input(m)
	if err != nil {
		return agent.HookResult{Notes: []string{"the hooks of " + m.Event + " did not run: " + err.Error()}}
	}
	if m.Event == "SessionEnd" {
		limit := s.o.StopTimeout
		if limit == 0 {
			limit = 1500 * time.Millisecond
		}
		for _, h := range hs {
			limit = max(limit, min(h.Timeout, time.Minute))
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	answers := make([]answer, len(hs))
	var wg sync.WaitGroup
	for i, h := range hs {
		if h.Once && !s.first(&h) {
			continue
		}
		if h.Async {
			s.late.Go(func() { s.runLate(&h, m, input) })
			continue
		}
		wg.Go(func() { answers[i] = s.one(ctx, &h, m, input) })
	}
	wg.Wait()
	return merge(m.Event, answers)
}

// first reports whether h, which runs once, has not run yet.
func (s *Set) first(h *Handler) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := h.Source + "\x00" + h.Event + "\x00" + h.Name()
	if s.spent[k] {
		return false
	}
	s.spent[k] = true
	return true
}

// Input is the JSON that every hook of m gets.
func (s *Set) Input(m agent.Moment) ([]byte, error) {
	in := map[string]any{}
	if s.o.Common != nil {
		for k, v := range s.o.Common(m) {
			in[k] = v
		}
	}
	for k, v := range m.Fields {
		in[k] = v
	}
	in["hook_event_name"] = m.Event
	if c := m.Call; c != nil {
		in["tool_name"], in["tool_input"] = c.Name, c.Input
		if m.Event != "PermissionRequest" {
			in["tool_use_id"] = string(c.ID)
		}
	}
	if m.Agent != "" {
		kind := m.AgentType
		if kind == "" && s.o.TypeOf != nil {
			kind = s.o.TypeOf(m.Agent)
		}
		in["agent_id"], in["agent_type"] = m.Agent, kind
	}
	return json.Marshal(in)
}

// clock is how long h may take.
func clock(h *Handler) time.Duration {
	if h.Timeout > 0 {
		return h.Timeout
	}
	switch {
	case h.Type == Prompt:
		return 30 * time.Second
	case h.Type == Agent:
		return 60 * time.Second
	case h.Event == "UserPromptSubmit":
		return 30 * time.Second
	case h.Event == "MessageDisplay":
		return 10 * time.Second
	}
	return 600 * time.Second
}

// one runs h and reads its answer.
func (s *Set) one(ctx context.Context, h *Handler, m agent.Moment, input []byte) answer {
	name := m.Event
	if m.Match != "" && !unmatched[m.Event] {
		name += ":" + m.Match
	}
	// Nobody outside asked for these four's life; compat: they are quiet.
	quiet := m.Event == "Notification" || m.Event == "SessionEnd" || m.Event == "PreCompact" || m.Event == "PostCompact"
	var call agent.CallID
	if m.Call != nil {
		call = m.Call.ID
	}
	life := agent.Hooked{Stage: "started", ID: newID(), Name: name, Event: m.Event, Quiet: quiet}
	if s.o.Emit != nil {
		s.o.Emit(call, life)
	}
	began := time.Now()
	cause := fmt.Errorf("it took longer than %s", clock(h))
	hctx, cancel := context.WithTimeoutCause(ctx, clock(h), cause)
	defer cancel()
	out := s.start(hctx, h, m, input)
	life.Stage, life.Took = "response", time.Since(began)
	life.Stdout, life.Stderr, life.ExitCode = told(out.stdout), told(out.stderr), out.code
	life.Output = life.Stdout + life.Stderr
	life.Outcome = "success"
	if out.err != nil || out.code != 0 {
		life.Outcome = "error"
	}
	if hctx.Err() != nil && out.err != nil {
		life.Outcome = "cancelled"
		out.err = context.Cause(hctx)
	}
	if s.o.Emit != nil {
		s.o.Emit(call, life)
	}
	a := read(h, m, out)
	s.bound(&a)
	return a
}

// An output is what a handler gave back, before it is read as an answer.
type output struct {
	stdout, stderr string
	code           int
	err            error           // no usable answer: it did not start, broke, or ran out of time
	cut            bool            // there was more output than is kept
	json           json.RawMessage // the answer of a callback
	verdict        *verdict        // the answer of a model
}

// start runs h in its way.
func (s *Set) start(ctx context.Context, h *Handler, m agent.Moment, input []byte) output {
	switch h.Type {
	case Command:
		return s.command(ctx, h, m.Event, input)
	case HTTP:
		return s.http(ctx, h, input)
	case MCPTool:
		return s.tool(ctx, h, input)
	case Prompt, Agent:
		return s.ask(ctx, h, input)
	case Callback:
		return s.callback(ctx, h, m, input)
	}
	return output{err: fmt.Errorf("unknown hook type %q", h.Type)}
}

// command runs a child with the input on its standard input. The child has
// a session of its own: no terminal, and all of it ends with its clock.
func (s *Set) command(ctx context.Context, h *Handler, event string, input []byte) output {
	vars := map[string]string{"CLAUDE_PROJECT_DIR": s.o.Project, "CINCH_PROJECT_DIR": s.o.Project}
	if h.Root != "" {
		vars["CLAUDE_PLUGIN_ROOT"] = h.Root
	}
	if h.Data != "" {
		vars["CLAUDE_PLUGIN_DATA"] = h.Data
	}
	if s.o.EnvFile != nil {
		if f := s.o.EnvFile(event); f != "" {
			vars["CLAUDE_ENV_FILE"] = f
		}
	}
	env := append([]string(nil), s.o.Env...)
	for k, v := range vars {
		env = append(env, k+"="+v)
	}
	var spec proc.Spec
	if h.Args != nil {
		args := make([]string, 0, len(h.Args)+1)
		for _, a := range append([]string{h.Command}, h.Args...) {
			args = append(args, expand(a, vars))
		}
		spec = proc.Spec{Path: args[0], Args: args}
	} else {
		line := references(h.Command, vars, h.Shell)
		if s.o.ShellPrefix != "" {
			line = s.o.ShellPrefix + " " + proc.Quote(line)
		}
		spec = proc.Shell(shellFor(h.Shell), line)
	}
	spec.Env, spec.Dir = env, s.dir()
	res, err := proc.Run(ctx, spec, proc.Options{Stdin: strings.NewReader(string(input)), Drain: drain}, maxOutput)
	// A hook that does not read its input is no fault of its.
	if err != nil && ctx.Err() == nil && !errors.Is(err, proc.ErrDir) && res.Took > 0 {
		err = nil
	}
	return output{stdout: string(res.Stdout), stderr: string(res.Stderr), code: res.Code, cut: res.Omitted > 0, err: err}
}

func shellFor(name string) string {
	switch name {
	case "bash":
		return "bash"
	case "powershell":
		return "pwsh"
	}
	return ""
}

// dir is where command hooks run: the tools' directory, or what is left.
func (s *Set) dir() string {
	var cwd string
	if s.o.Cwd != nil {
		cwd = s.o.Cwd()
	}
	for _, d := range []string{cwd, s.o.Project, s.o.Home} {
		if fi, err := os.Stat(d); d != "" && err == nil && fi.IsDir() {
			return d
		}
	}
	return string(os.PathSeparator)
}

// expand replaces ${NAME} for the names in vars, as the exec form has it.
func expand(s string, vars map[string]string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		if name, ok := placeholder(s[i:], vars); ok {
			b.WriteString(vars[name])
			i += len("${}") + len(name)
			continue
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}

// placeholder returns the name in the ${NAME} that s begins with, if it is
// one of vars.
func placeholder(s string, vars map[string]string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(s, "${")
	if !ok {
		return "", false
	}
	name, _, ok = strings.Cut(rest, "}")
	if !ok {
		return "", false
	}
	_, ok = vars[name]
	return name, ok
}

// references makes the placeholders of a command line fit its shell. The
// values never become part of the line: they are in the environment under the
// same names, and the shell puts them in. So no name of a directory, whatever
// is in it, is ever read as shell text; and one that stands outside of quotes
// gets them here, so that it stays one word.
func references(line string, vars map[string]string, shell string) string {
	var b strings.Builder
	var in []byte // the quotes and substitutions that are open, the innermost last
	top := func() byte {
		if len(in) == 0 {
			return 0
		}
		return in[len(in)-1]
	}
	for i := 0; i < len(line); {
		c := line[i]
		if name, ok := placeholder(line[i:], vars); ok {
			switch {
			case shell == "powershell":
				b.WriteString("${env:" + name + "}")
			case top() == '"', top() == '\'':
				b.WriteString("${" + name + "}")
			default:
				b.WriteString(`"${` + name + `}"`)
			}
			i += len("${}") + len(name)
			continue
		}
		b.WriteByte(c)
		i++
		switch quote := top(); {
		case quote == '\'':
			if c == '\'' {
				in = in[:len(in)-1]
			}
		case c == '\\' && i < len(line):
			b.WriteByte(line[i])
			i++
		case c == '"' && quote == '"', c == ')' && quote == '(':
			in = in[:len(in)-1]
		case c == '"', c == '\'' && quote != '"':
			in = append(in, c)
		case c == '(' && (quote != '"' || strings.HasSuffix(line[:i-1], "$")):
			in = append(in, c)
		}
	}
	return b.String()
}

// told is as much of a stream as front ends are told.
func told(s string) string {
	if len(s) <= maxTold {
		return s
	}
	return strings.ToValidUTF8(s[:maxTold], "") + fmt.Sprintf("\n[%d bytes more]", len(s)-maxTold)
}

// runLate runs an asynchronous hook to its end, beside whatever goes on.
func (s *Set) runLate(h *Handler, m agent.Moment, input []byte) {
	a := s.one(s.ctx, h, m, input)
	if s.ctx.Err() != nil || s.o.Late == nil {
		return
	}
	context, wake := a.context, false
	if h.Rewake && a.code == 2 {
		wake = true
		text := or(strings.TrimSpace(a.stderr), strings.TrimSpace(a.stdout))
		context = append(context, s.short(or(text, "The hook ["+h.Name()+"] asks for your attention.")))
	}
	if len(context) > 0 || len(a.notes) > 0 {
		s.o.Late(context, a.notes, wake)
	}
}

// bound keeps what a hook said to a readable size.
func (s *Set) bound(a *answer) {
	for i := range a.context {
		a.context[i] = s.short(a.context[i])
	}
	a.reason = s.short(a.reason)
	for i := range a.notes {
		a.notes[i] = s.short(a.notes[i])
	}
}

func (s *Set) short(text string) string {
	r := []rune(text)
	if len(r) <= maxShown {
		return text
	}
	where := "the rest was dropped"
	if s.o.Spill != nil {
		if path, err := s.o.Spill(text); err == nil {
			where = "all of it is in " + path
		}
	}
	return string(r[:maxShown]) + fmt.Sprintf("\n[%d characters more; %s]", len(r)-maxShown, where)
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
