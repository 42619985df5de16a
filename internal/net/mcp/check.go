package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
)

// Weights of what a check finds. An Error is what clients trip over.
const (
	Good    = "ok"
	Warning = "warning"
	Error   = "error"
)

// A Finding is one thing that a check found out.
type Finding struct {
	Weight string `json:"weight"`
	About  string `json:"about"` // start, protocol, stdout, tools, prompts, resources, cost, drift, shutdown
	Text   string `json:"text"`
}

// A Report is what a check of a server found out.
type Report struct {
	Server   string    `json:"server,omitempty"`
	Version  string    `json:"version,omitempty"`
	Protocol string    `json:"protocol,omitempty"`
	ReadyMS  int64     `json:"readyMs"`
	Tools    int       `json:"tools"`
	Prompts  int       `json:"prompts"`
	Resource int       `json:"resources"`
	Cost     Cost      `json:"cost"`
	Shutdown string    `json:"shutdown,omitempty"` // graceful, asked, forced
	Findings []Finding `json:"findings"`
}

// Failed reports whether there is an Error among the findings.
func (r *Report) Failed() bool { return r.count(Error) > 0 }

func (r *Report) count(weight string) (n int) {
	for _, f := range r.Findings {
		if f.Weight == weight {
			n++
		}
	}
	return n
}

func (r *Report) say(weight, about, format string, args ...any) {
	r.Findings = append(r.Findings, Finding{weight, about, fmt.Sprintf(format, args...)})
}

// graceful is how long a server may take to end once its input has, and how
// long again once it was asked to.
const graceful = 2 * time.Second

// Check connects to a server as to one of a session, and looks at it the way
// its author should. It calls none of its tools but one that does not exist.
func Check(ctx context.Context, o Options, c Config) *Report {
	r := &Report{}
	set := New(o)
	defer set.Close()
	x := &Server{Config: c, set: set, state: Pending, ready: make(chan struct{})}
	set.servers = append(set.servers, x) // nobody else has the set yet
	ctx, cancel := context.WithTimeoutCause(ctx, set.o.ConnectTimeout, fmt.Errorf("it was not ready within %s", set.o.ConnectTimeout))
	defer cancel()
	var child *stdio
	stray := &strays{}
	t, err := x.transport(ctx)
	if c.Type == "stdio" {
		t = via(func(context.Context) (sdk.Connection, error) {
			x.junk = &proc.Capture{Max: 64 << 10}
			env := append([]string(nil), set.o.Env...)
			for k, v := range c.Env {
				env = append(env, k+"="+v)
			}
			child, err = startStdio(proc.Spec{Path: c.Command, Args: append([]string{c.Command}, c.Args...), Env: env, Dir: o.Dir}, o.Guard, x.junk)
			if err == nil {
				child.in = bufio.NewReaderSize(io.TeeReader(child.p.Stdout, stray), 64<<10)
			}
			return child, err
		})
	}
	start := time.Now()
	var cs *sdk.ClientSession
	if err == nil {
		opts := &sdk.ClientSessionOptions{}
		if c.Type != "http" {
			opts.ProtocolVersion = legacy
		}
		cs, err = x.client(0).Connect(ctx, t, opts)
	}
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		r.say(Error, "start", "no connection: %s", x.explain(err))
		stray.report(r)
		return r
	}
	defer cs.Close()
	r.look(ctx, x, cs, start)
	if child != nil {
		r.end(child)
		stray.report(r)
	}
	return r
}

// look reads what the server offers, twice.
func (r *Report) look(ctx context.Context, x *Server, cs *sdk.ClientSession, start time.Time) {
	info := cs.InitializeResult()
	x.info = info
	r.Protocol = info.ProtocolVersion
	if info.ServerInfo != nil {
		r.Server, r.Version = info.ServerInfo.Name, info.ServerInfo.Version
	}
	if r.Server == "" || r.Version == "" {
		r.say(Warning, "protocol", "it does not say its name and version (serverInfo)")
	}
	caps := info.Capabilities
	if caps == nil || caps.Tools == nil && caps.Prompts == nil && caps.Resources == nil {
		r.say(Warning, "protocol", "it declares neither tools nor prompts nor resources")
		caps = &sdk.ServerCapabilities{}
	}
	err := x.list(ctx, cs, 0)
	r.ReadyMS = time.Since(start).Milliseconds()
	if err != nil {
		r.say(Error, "tools", "%v", err)
		return
	}
	r.say(Good, "start", "ready in %d ms, protocol %s", r.ReadyMS, r.Protocol)
	if n := len(info.Instructions); n > maxDescription {
		r.say(Warning, "protocol", "its instructions have %d bytes; the model gets the first %d", n, maxDescription)
	}
	r.tools(x)
	r.drift(ctx, x, cs)
	r.manners(ctx, cs, caps)
	x.state = Connected
	r.Prompts = len(x.prompts)
	if caps.Resources != nil {
		list, err := cs.ListResources(ctx, nil)
		if err != nil {
			r.say(Error, "resources", "it declares resources and does not list them: %v", err)
		} else {
			r.Resource = len(list.Resources)
		}
	}
	r.Cost = x.set.Costs()[0]
	r.say(Good, "cost", "about %d tokens, %d while deferred", r.Cost.Tokens, r.Cost.Deferred)
}

// tools looks at the definitions.
func (r *Report) tools(x *Server) {
	r.Tools = len(x.tools)
	for _, p := range x.skipped {
		r.say(Error, "tools", "%s", p.Text)
	}
	hints := 0
	for _, t := range x.tools {
		what := "the tool " + fmt.Sprintf("%q", t.def.Name)
		if t.name != "mcp__"+x.Name+"__"+t.def.Name {
			r.say(Warning, "tools", "%s has a name that providers do not take (letters, digits, _ and -, 64 with the server's name); here it is called %s", what, t.name)
		}
		switch n := len(t.def.Description); {
		case n == 0:
			r.say(Warning, "tools", "%s has no description", what)
		case n > maxDescription:
			r.say(Warning, "tools", "the description of %s has %d bytes; the model gets the first %d", what, n, maxDescription)
		}
		if fixed := repairs(t.def.InputSchema, t.schema); len(fixed) > 0 {
			r.say(Warning, "tools", "the input schema of %s had to be repaired: %s", what, strings.Join(fixed, ", "))
		}
		if t.def.Annotations == nil {
			hints++
		}
	}
	if hints > 0 {
		r.say(Warning, "tools", "%d of %d tools have no annotations: they are taken for destructive, run alone, and are not repeated when an answer is lost", hints, r.Tools)
	}
	r.say(Good, "tools", "%d can be used", r.Tools)
}

// repairs says in what repair changed a schema.
func repairs(in any, out json.RawMessage) []string {
	m, _ := in.(map[string]any)
	var fixed []string
	if m == nil {
		return []string{"there is none"}
	}
	if _, ok := m["type"]; !ok {
		fixed = append(fixed, "it has no type")
	}
	if _, ok := m["properties"]; !ok && len(m) > 1 {
		fixed = append(fixed, "it has no properties")
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		if _, ok := m[key]; ok {
			fixed = append(fixed, key+" at the top is merged")
		}
	}
	if raw, err := json.Marshal(in); err == nil && bytes.Contains(raw, []byte(`"$ref"`)) && !bytes.Contains(out, []byte(`"$ref"`)) {
		fixed = append(fixed, "references are followed")
	}
	return fixed
}

// drift compares two listings.
func (r *Report) drift(ctx context.Context, x *Server, cs *sdk.ClientSession) {
	before := map[string]Definition{}
	var order, again []string
	for _, t := range x.tools {
		before[t.def.Name] = definitionOf(t.def)
		order = append(order, t.def.Name)
	}
	if err := x.list(ctx, cs, 0); err != nil {
		r.say(Error, "drift", "the second listing failed: %v", err)
		return
	}
	same := true
	for _, t := range x.tools {
		again = append(again, t.def.Name)
		if old, ok := before[t.def.Name]; ok && !old.equal(definitionOf(t.def)) {
			same = false
			r.say(Error, "drift", "the tool %q is defined otherwise in a second listing (%s): a client that pins what was approved asks each time",
				t.def.Name, strings.Join((&drift{old: old, now: definitionOf(t.def)}).parts(), ", "))
		}
	}
	switch {
	case len(order) != len(again):
		r.say(Error, "drift", "a second listing has %d tools, the first had %d", len(again), len(order))
	case !reflect.DeepEqual(order, again):
		r.say(Warning, "drift", "a second listing has the tools in another order: caches of the prompt are lost")
	case same:
		r.say(Good, "drift", "two listings are the same")
	}
}

// manners tries what every server must know how to answer.
func (r *Report) manners(ctx context.Context, cs *sdk.ClientSession, caps *sdk.ServerCapabilities) {
	if r.Protocol <= legacy { // later revisions have no ping
		if err := cs.Ping(ctx, nil); err != nil {
			r.say(Error, "protocol", "it does not answer a ping: %v", err)
		}
	}
	if caps.Tools == nil {
		return
	}
	res, err := cs.CallTool(ctx, &sdk.CallToolParams{Name: "cinch_check_no_such_tool", Arguments: map[string]any{}})
	switch e, ok := rpcError(err); {
	case ok && e.Code != jsonrpc.CodeInvalidParams && e.Code != jsonrpc.CodeMethodNotFound:
		r.say(Warning, "protocol", "a call of a tool that does not exist is answered with the code %d, not %d", e.Code, jsonrpc.CodeInvalidParams)
	case ok:
	case err != nil:
		r.say(Error, "protocol", "a call of a tool that does not exist has no answer: %v", err)
	case !res.IsError:
		r.say(Error, "protocol", "a call of a tool that does not exist succeeds")
	}
}

// end closes the input of the server and sees how it takes it.
func (r *Report) end(c *stdio) {
	start := time.Now()
	_ = c.p.Stdin.Close() // it may have left already
	r.Shutdown = "graceful"
	select {
	case <-c.p.Exited():
	case <-time.After(graceful):
		r.Shutdown = "asked"
		asked := time.Now()
		_ = c.p.Kill(graceful) // what comes of it is seen below
		if time.Since(asked) >= graceful {
			r.Shutdown = "forced"
		}
	}
	took := time.Since(start).Round(time.Millisecond)
	switch r.Shutdown {
	case "graceful":
		r.say(Good, "shutdown", "graceful: it ends within %s of its input", took)
	case "asked":
		r.say(Warning, "shutdown", "it goes on %s after its input has ended, and ends when asked (SIGTERM)", graceful)
	default:
		r.say(Error, "shutdown", "it goes on when its input has ended and when asked (SIGTERM); it had to be killed")
	}
}

// strays keeps lines of standard output that are no messages. It is an
// io.Writer for all that comes by.
type strays struct {
	mu    sync.Mutex
	part  []byte
	lines int
	first string
}

func (s *strays) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for rest := b; ; {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			if len(s.part) < maxLine {
				s.part = append(s.part, rest...)
			}
			return len(b), nil
		}
		s.line(append(s.part, rest[:i]...))
		s.part, rest = nil, rest[i+1:]
	}
}

func (s *strays) line(b []byte) {
	b = bytes.TrimSpace(b)
	if len(b) == 0 {
		return
	}
	if _, err := jsonrpc.DecodeMessage(b); err == nil && b[0] == '{' {
		return
	}
	if s.lines++; s.lines == 1 {
		const most = 120
		s.first = strings.ToValidUTF8(string(b[:min(len(b), most)]), "")
	}
}

func (s *strays) report(r *Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines > 0 {
		r.say(Error, "stdout", "%d lines on standard output are no messages; the first is %q", s.lines, s.first)
	} else if r.Protocol != "" {
		r.say(Good, "stdout", "nothing but messages on standard output")
	}
}
