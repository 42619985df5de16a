package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
)

// States of a server.
const (
	Pending   = "pending"
	Connected = "connected"
	NeedsAuth = "needs-auth"
	Failed    = "failed"
	Disabled  = "disabled"
)

// legacy is the newest revision that opens with initialize. Child processes
// and hosts are spoken to in it: some of them end at, or never answer, a first
// message they do not know.
const legacy = "2025-11-25"

// A Server is one configured server and its connection, if there is one.
type Server struct {
	Config
	set *Set

	mu      sync.Mutex
	state   string
	err     string
	session *sdk.ClientSession
	info    *sdk.InitializeResult
	tools   []*tool
	prompts []*sdk.Prompt
	skipped []Problem
	junk    *proc.Capture
	ready   chan struct{} // closed while nothing is under way
	gen     int           // counts connections; late news of an old one is dropped

	refused atomic.Bool // the endpoint answered 401 or 403
}

// Status describes a server to people and programs.
type Status struct {
	Name, State, Err, Source, Instructions string
	ServerName, ServerVersion              string
	Config                                 json.RawMessage
	Tools                                  []ToolStatus
	Skipped                                []Problem
}

// A ToolStatus is one tool of a server.
type ToolStatus struct {
	Name, Full, Description              string
	ReadOnly, Destructive, OpenWorld     bool
	HasReadOnly, HasDestructive, HasOpen bool
}

// Status describes s as it is now.
func (s *Server) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{Name: s.Name, State: s.state, Err: s.err, Source: s.Source, Config: s.Raw, Skipped: s.skipped}
	if s.info != nil {
		st.Instructions = s.info.Instructions
		if s.info.ServerInfo != nil {
			st.ServerName, st.ServerVersion = s.info.ServerInfo.Name, s.info.ServerInfo.Version
		}
	}
	for _, t := range s.tools {
		ts := ToolStatus{Name: t.def.Name, Full: t.name, Description: t.def.Description}
		if a := t.def.Annotations; a != nil {
			ts.ReadOnly, ts.HasReadOnly = a.ReadOnlyHint, a.ReadOnlyHint
			if a.DestructiveHint != nil {
				ts.Destructive, ts.HasDestructive = *a.DestructiveHint, true
			}
			if a.OpenWorldHint != nil {
				ts.OpenWorld, ts.HasOpen = *a.OpenWorldHint, true
			}
		}
		st.Tools = append(st.Tools, ts)
	}
	return st
}

// begin marks that something is under way and returns its generation.
func (s *Server) begin() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gen++
	s.state, s.err = Pending, ""
	select {
	case <-s.ready:
		s.ready = make(chan struct{})
	default:
	}
	return s.gen
}

// finish notes how connection gen came out.
func (s *Server) finish(gen int, state, err string) {
	s.mu.Lock()
	if s.gen == gen {
		s.state, s.err = state, err
		select {
		case <-s.ready:
		default:
			close(s.ready)
		}
	}
	s.mu.Unlock()
	s.set.changed(s)
}

// connect makes the connection, trying again where that may help. Child
// processes are started once.
func (s *Server) connect(ctx context.Context) {
	gen := s.begin()
	tries := 3
	if s.Type == "stdio" || s.Type == "sdk" {
		tries = 1
	}
	var err error
	for try := range tries {
		if try > 0 {
			select {
			case <-time.After(time.Second << (try - 1)):
			case <-ctx.Done():
			}
		}
		s.refused.Store(false)
		if err = s.once(ctx, gen); err == nil || ctx.Err() != nil || !transient(err) || s.refused.Load() {
			break
		}
	}
	switch {
	case err == nil:
		s.finish(gen, Connected, "")
	case s.refused.Load() && s.Headers["Authorization"] == "" && s.HeadersHelper == "":
		s.finish(gen, NeedsAuth, "the server wants you to sign in: "+err.Error())
	default:
		s.finish(gen, Failed, s.explain(err))
	}
}

// explain adds what the server wrote to its errors.
func (s *Server) explain(err error) string {
	text := err.Error()
	s.mu.Lock()
	junk := s.junk
	s.mu.Unlock()
	if junk != nil {
		if out := strings.TrimSpace(string(junk.Bytes())); out != "" {
			const most = 500
			if len(out) > most {
				out = "…" + strings.ToValidUTF8(out[len(out)-most:], "")
			}
			text += "; it wrote: " + out
		}
	}
	return text
}

// transient says whether trying again may help.
func transient(err error) bool {
	text := err.Error()
	for _, w := range []string{"404", "401", "403", "405", "certificate", "not allowed"} {
		if strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// once makes one attempt.
func (s *Server) once(ctx context.Context, gen int) error {
	o := s.set.o
	ctx, cancel := context.WithTimeoutCause(ctx, o.ConnectTimeout, fmt.Errorf("it was not ready within %s (MCP_TIMEOUT)", o.ConnectTimeout))
	defer cancel()
	t, err := s.transport(ctx)
	if err != nil {
		return err
	}
	opts := &sdk.ClientSessionOptions{}
	if s.Type == "stdio" || s.Type == "sdk" || s.Type == "sse" {
		opts.ProtocolVersion = legacy
	}
	cs, err := s.client(gen).Connect(ctx, t, opts)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return err
	}
	if err := s.list(ctx, cs); err != nil {
		_ = cs.Close()
		return err
	}
	s.mu.Lock()
	old := s.session
	if s.gen != gen { // somebody has begun anew meanwhile
		s.mu.Unlock()
		_ = cs.Close()
		return errors.New("the connection was given up")
	}
	s.session, s.info = cs, cs.InitializeResult()
	s.mu.Unlock()
	if old != nil {
		_ = old.Close()
	}
	s.set.wg.Go(func() { s.watch(gen, cs) })
	return nil
}

// transport is the way to the server.
func (s *Server) transport(ctx context.Context) (sdk.Transport, error) {
	o := s.set.o
	switch s.Type {
	case "stdio":
		junk := &proc.Capture{Max: 64 << 10}
		s.mu.Lock()
		s.junk = junk
		s.mu.Unlock()
		return via(func(context.Context) (sdk.Connection, error) {
			env := append([]string(nil), o.Env...)
			for k, v := range s.Env {
				env = append(env, k+"="+v)
			}
			return startStdio(proc.Spec{Path: s.Command, Args: append([]string{s.Command}, s.Args...), Env: env, Dir: o.Dir}, o.Guard, junk)
		}), nil
	case "sdk":
		return via(func(context.Context) (sdk.Connection, error) {
			m := s.Manifest
			s.Manifest = nil // it serves one connection
			return newHosted(s.Name, o.Ask, m), nil
		}), nil
	}
	header, err := s.headers(ctx)
	if err != nil {
		return nil, err
	}
	client := *o.HTTP()
	client.Transport = &decorated{base: client.Transport, header: header, refused: &s.refused, agent: o.UserAgent}
	switch s.Type {
	case "http":
		inner := &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: &client}
		return via(inner.Connect), nil
	case "sse":
		inner := &sdk.SSEClientTransport{Endpoint: s.URL, HTTPClient: &client}
		// Its stream lives as long as the context of Connect, which must
		// therefore outlive the attempt.
		return via(func(context.Context) (sdk.Connection, error) { return inner.Connect(s.set.ctx) }), nil
	}
	return via(func(ctx context.Context) (sdk.Connection, error) { return dialSocket(ctx, &client, s.URL, header) }), nil
}

// headers are the static ones, under what the helper prints.
func (s *Server) headers(ctx context.Context) (http.Header, error) {
	h := http.Header{}
	for k, v := range s.Headers {
		h.Set(k, v)
	}
	if s.HeadersHelper == "" {
		return h, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	spec := proc.Shell("", s.HeadersHelper)
	spec.Dir = s.set.o.Dir
	spec.Env = append(append([]string(nil), s.set.o.Env...), "CLAUDE_CODE_MCP_SERVER_NAME="+s.Name, "CLAUDE_CODE_MCP_SERVER_URL="+s.URL)
	out, err := proc.Run(ctx, spec, proc.Options{Guard: s.set.o.Guard}, 64<<10)
	if err != nil {
		return nil, fmt.Errorf("running headersHelper: %w", err)
	}
	var more map[string]string
	if !out.OK() || json.Unmarshal(out.Stdout, &more) != nil {
		return nil, fmt.Errorf("headersHelper ended with %s and did not print a JSON object of texts", out.Exit)
	}
	for k, v := range more {
		h.Set(k, v)
	}
	return h, nil
}

// A decorated round tripper adds a server's headers and notes a refusal.
type decorated struct {
	base    http.RoundTripper
	header  http.Header
	refused *atomic.Bool
	agent   string
}

func (d *decorated) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("User-Agent", d.agent)
	for k, v := range d.header {
		req.Header[k] = v
	}
	resp, err := d.base.RoundTrip(req)
	if err == nil && (resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden) {
		d.refused.Store(true)
	}
	return resp, err
}

// client is the protocol's client for one connection.
func (s *Server) client(gen int) *sdk.Client {
	o := s.set.o
	co := &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{
			RootsV2:     &sdk.RootCapabilities{ListChanged: true},
			Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}},
		},
		ElicitationHandler: func(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return s.elicit(ctx, r.Params), nil
		},
		ToolListChangedHandler:   func(context.Context, *sdk.ToolListChangedRequest) { s.relist(gen) },
		PromptListChangedHandler: func(context.Context, *sdk.PromptListChangedRequest) { s.relist(gen) },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			s.set.progress(fmt.Sprint(r.Params.ProgressToken), r.Params.Message)
		},
	}
	c := sdk.NewClient(&sdk.Implementation{Name: "cinch", Title: "Cinch", Version: o.Version}, co)
	for _, dir := range append([]string{o.Dir}, o.Roots()...) {
		c.AddRoots(&sdk.Root{URI: "file://" + dir})
	}
	return c
}

// list reads what the server offers. A listing that fails keeps the last good
// one; the first must succeed where the server says it has tools.
func (s *Server) list(ctx context.Context, cs *sdk.ClientSession) error {
	caps := cs.InitializeResult().Capabilities
	var defs []*sdk.Tool
	if caps != nil && caps.Tools != nil {
		for t, err := range cs.Tools(ctx, nil) {
			if err != nil {
				return fmt.Errorf("listing its tools: %w", err)
			}
			defs = append(defs, t)
		}
	}
	var prompts []*sdk.Prompt
	if caps != nil && caps.Prompts != nil {
		for p, err := range cs.Prompts(ctx, nil) {
			if err != nil {
				break // prompts are an extra
			}
			prompts = append(prompts, p)
		}
	}
	tools, skipped := s.adapt(defs)
	s.mu.Lock()
	s.tools, s.prompts, s.skipped = tools, prompts, skipped
	s.mu.Unlock()
	return nil
}

// relist reads the lists anew, a little later: servers tell of changes in bursts.
func (s *Server) relist(gen int) {
	s.set.wg.Go(func() {
		select {
		case <-time.After(200 * time.Millisecond):
		case <-s.set.ctx.Done():
			return
		}
		s.mu.Lock()
		cs, same := s.session, s.gen == gen
		s.mu.Unlock()
		if cs == nil || !same {
			return
		}
		ctx, cancel := context.WithTimeout(s.set.ctx, s.set.o.ConnectTimeout)
		defer cancel()
		if err := s.list(ctx, cs); err != nil {
			s.set.note("warning", fmt.Sprintf("MCP server %s: its tools changed and could not be read; the last list stands: %v", s.Name, err))
			return
		}
		s.set.changed(s)
	})
}

// watch waits for the end of a connection that nobody asked to end. Remote
// servers are connected to again; a child that died stays down.
func (s *Server) watch(gen int, cs *sdk.ClientSession) {
	err := cs.Wait()
	if s.set.ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	lost := s.gen == gen && s.session == cs
	if lost {
		s.session = nil
	}
	s.mu.Unlock()
	if !lost {
		return
	}
	if s.Type == "stdio" || s.Type == "sdk" {
		text := "the server ended"
		if err != nil {
			text += ": " + err.Error()
		}
		s.finish(gen, Failed, s.explain(errors.New(text)))
		return
	}
	for try := range 5 {
		select {
		case <-time.After(time.Second << try):
		case <-s.set.ctx.Done():
			return
		}
		s.mu.Lock()
		same := s.gen == gen
		s.mu.Unlock()
		if !same {
			return
		}
		next := s.begin()
		if err = s.once(s.set.ctx, next); err == nil {
			s.finish(next, Connected, "")
			return
		}
		gen = next
	}
	s.finish(gen, Failed, "the connection was lost and five tries to make it again failed: "+err.Error())
}

// live returns the session, waiting for a connection that is under way.
func (s *Server) live(ctx context.Context) (*sdk.ClientSession, error) {
	for {
		s.mu.Lock()
		cs, state, msg, ready := s.session, s.state, s.err, s.ready
		s.mu.Unlock()
		if state == Connected && cs != nil {
			return cs, nil
		}
		if state != Pending {
			if msg == "" {
				msg = state
			}
			return nil, fmt.Errorf("the MCP server %s is not connected (%s)", s.Name, msg)
		}
		select {
		case <-ready:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// again makes a new connection in place of cs, which the server no longer
// knows; several who find that out at once share one.
func (s *Server) again(ctx context.Context, cs *sdk.ClientSession) (*sdk.ClientSession, error) {
	s.mu.Lock()
	mine := s.session == cs && s.state == Connected
	s.mu.Unlock()
	if mine {
		s.connect(s.set.ctx)
	}
	return s.live(ctx)
}

// close ends the connection and leaves the server in state.
func (s *Server) close(state string) {
	s.mu.Lock()
	cs := s.session
	s.session = nil
	s.gen++
	s.state, s.err = state, ""
	select {
	case <-s.ready:
	default:
		close(s.ready)
	}
	s.mu.Unlock()
	if cs != nil {
		_ = cs.Close()
	}
}

// rpcError is the error a server answered with, if err is one.
func rpcError(err error) (*jsonrpc.Error, bool) {
	var e *jsonrpc.Error
	ok := errors.As(err, &e)
	return e, ok
}

// inherited leaves out of an environment what belongs to us alone.
func inherited(environ []string) []string {
	out := make([]string, 0, len(environ))
	for _, kv := range environ {
		if !strings.HasPrefix(kv, "CLAUDE_CODE_CHILD_SESSION=") {
			out = append(out, kv)
		}
	}
	return out
}
