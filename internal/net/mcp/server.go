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
	"github.com/seed-eb844fcb/cinch/internal/net/dial"
	"github.com/seed-eb844fcb/cinch/internal/net/mcp/signin"
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

// maxTools bounds what one server may list.
const maxTools = 5000

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
	listing bool          // a reading of the lists is due
	peer    *sdk.Client   // of session
	told    []*sdk.Root   // what peer says of our directories

	fetch    signin.Fetch // asks the person; nil but for SignIn
	redirect string

	status atomic.Int32 // of the endpoint's last answer; 0 if there was none
	asking atomic.Int32 // questions of the server that a person is looking at
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

// begin opens a new generation: what was connected is let go, and whoever
// needs the server waits until finish.
func (s *Server) begin() (gen int, old *sdk.ClientSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next()
}

// next is begin for holders of mu.
func (s *Server) next() (gen int, old *sdk.ClientSession) {
	s.gen++
	s.state, s.err = Pending, ""
	old, s.session = s.session, nil
	select {
	case <-s.ready:
		s.ready = make(chan struct{})
	default:
	}
	return s.gen, old
}

// finish notes how connection gen came out.
func (s *Server) finish(gen int, state, err string) {
	s.mu.Lock()
	current := s.gen == gen
	if current {
		s.state, s.err = state, err
		select {
		case <-s.ready:
		default:
			close(s.ready)
		}
	}
	s.mu.Unlock()
	if current {
		s.set.changed(s)
	}
}

// child says that the server is no remote one: it is started, or asked, once.
func (s *Server) child() bool { return s.Type == "stdio" || s.Type == "sdk" }

// connect makes the connection, trying again where that may help.
func (s *Server) connect(ctx context.Context) {
	gen, old := s.begin()
	if old != nil {
		_ = old.Close() // it is replaced: how it ended does not matter
	}
	waits := []time.Duration{0, 1, 2}
	if s.child() {
		waits = waits[:1]
	}
	s.attempt(ctx, gen, waits, "")
}

// regain makes a lost connection again: at once if the server only forgot the
// session, else with waits that double.
func (s *Server) regain(gen int, cause error) {
	waits := []time.Duration{1, 2, 4, 8, 16}
	if errors.Is(cause, sdk.ErrSessionMissing) {
		waits = append([]time.Duration{0}, waits[:4]...)
	}
	s.attempt(s.set.ctx, gen, waits, "the connection was lost and could not be made again: ")
}

// attempt tries once after each wait, in steps of Options.Pause, until it succeeds, trying again cannot
// help, or somebody begins anew.
func (s *Server) attempt(ctx context.Context, gen int, waits []time.Duration, prefix string) {
	var err error
	for _, d := range waits {
		select {
		case <-time.After(d * s.set.o.Pause):
		case <-ctx.Done():
		}
		if err = s.once(ctx, gen); err == nil || ctx.Err() != nil || !s.transient(err) {
			break
		}
	}
	switch {
	case err == nil:
		s.finish(gen, Connected, "")
	case errors.Is(err, errGivenUp):
	case s.refused() && s.Headers["Authorization"] == "" && s.HeadersHelper == "":
		text := "the server wants you to sign in: cinch mcp login " + s.Name
		s.mu.Lock()
		tried := s.fetch != nil
		s.mu.Unlock()
		if tried { // that was just done
			text = s.explain(err)
		}
		s.finish(gen, NeedsAuth, text)
	default:
		s.finish(gen, Failed, prefix+s.explain(err))
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

// refused says whether the endpoint's last answer was that we may not.
func (s *Server) refused() bool {
	code := s.status.Load()
	return code == http.StatusUnauthorized || code == http.StatusForbidden
}

// transient says whether trying again may help after err.
func (s *Server) transient(err error) bool {
	if errors.Is(err, errGivenUp) {
		return false
	}
	switch code := s.status.Load(); {
	case code >= 500, code == http.StatusRequestTimeout, code == http.StatusTooManyRequests:
		return true
	case code >= 400:
		return false
	}
	return !dial.Explain(err).Lasting
}

// errGivenUp reports that somebody began anew, or switched the server off,
// while a connection was being made.
var errGivenUp = errors.New("the connection was given up")

// once makes one attempt.
func (s *Server) once(ctx context.Context, gen int) error {
	o := s.set.o
	s.status.Store(0)
	limit := o.ConnectTimeout
	s.mu.Lock()
	if s.fetch != nil {
		limit = 10 * time.Minute // a person reads
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it was not ready within %s (MCP_TIMEOUT)", limit))
	defer cancel()
	t, err := s.transport(ctx)
	if err != nil {
		return err
	}
	opts := &sdk.ClientSessionOptions{}
	if s.child() || s.Type == "sse" || s.Type == "ws" {
		opts.ProtocolVersion = legacy
	}
	c := s.client(gen)
	cs, err := c.Connect(ctx, t, opts)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return err
	}
	for try := 0; ; try++ {
		if err = s.list(ctx, cs, gen); err == nil || try == 2 || ctx.Err() != nil || errors.Is(err, errGivenUp) {
			break
		}
		if e, ok := rpcError(err); ok && e.Code == jsonrpc.CodeMethodNotFound {
			break
		}
		select {
		case <-time.After(s.set.o.Pause / 5 << try):
		case <-ctx.Done():
		}
	}
	if err != nil {
		_ = cs.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return err
	}
	s.mu.Lock()
	if s.gen != gen {
		s.mu.Unlock()
		_ = cs.Close()
		return errGivenUp
	}
	s.session, s.peer, s.info = cs, c, cs.InitializeResult()
	s.told = s.set.roots()
	s.mu.Unlock()
	s.set.wg.Go(func() {
		err := cs.Wait()
		s.lose(cs, err)
	})
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
	client, err := s.web(header)
	if err != nil {
		return nil, err
	}
	switch s.Type {
	case "http":
		// Not wrapped: the SDK asks its own connection for more than the
		// interface has. What it reads is mended in its HTTP client.
		return &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: client, MaxEventSize: maxLine}, nil
	case "sse":
		return via(func(ctx context.Context) (sdk.Connection, error) { return dialEvents(ctx, s.URL, client) }), nil
	}
	return via(func(ctx context.Context) (sdk.Connection, error) { return dialSocket(ctx, client, s.URL) }), nil
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
	c.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			if method == "sampling/createMessage" { // servers get no model of ours
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "sampling is not offered"}
			}
			return next(ctx, method, r)
		}
	})
	c.AddRoots(s.set.roots()...)
	return c
}

// list reads what the server offers. A listing that fails keeps the last good
// one; the first must succeed where the server says it has tools.
func (s *Server) list(ctx context.Context, cs *sdk.ClientSession, gen int) error {
	caps := cs.InitializeResult().Capabilities
	var defs []*sdk.Tool
	if caps != nil && caps.Tools != nil {
		seen := map[string]bool{}
		for p := (&sdk.ListToolsParams{}); ; {
			r, err := cs.ListTools(ctx, p)
			if err != nil {
				return fmt.Errorf("listing its tools: %w", err)
			}
			defs = append(defs, r.Tools...)
			if r.NextCursor == "" || len(defs) > maxTools {
				break
			}
			if seen[r.NextCursor] { // pages that go round in a circle
				return fmt.Errorf("listing its tools: the page %q comes again and again", r.NextCursor)
			}
			seen[r.NextCursor] = true
			p = &sdk.ListToolsParams{Cursor: r.NextCursor}
		}
	}
	var prompts []*sdk.Prompt
	if caps != nil && caps.Prompts != nil {
		for p, err := range cs.Prompts(ctx, nil) {
			if err != nil {
				break // prompts are an extra
			}
			if prompts = append(prompts, p); len(prompts) > maxTools {
				break
			}
		}
	}
	tools, skipped := s.adapt(defs)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gen != gen {
		return errGivenUp
	}
	s.tools, s.prompts, s.skipped = tools, prompts, skipped
	return nil
}

// relist reads the lists anew, a little later: servers tell of changes in
// bursts, and one reading serves them all.
func (s *Server) relist(gen int) {
	s.mu.Lock()
	under := s.listing
	s.listing = true
	s.mu.Unlock()
	if under {
		return
	}
	s.set.wg.Go(func() {
		select {
		case <-time.After(s.set.o.Pause / 5):
		case <-s.set.ctx.Done():
			return
		}
		s.mu.Lock()
		s.listing = false // what changes from here on needs another reading
		cs, same := s.session, s.gen == gen
		s.mu.Unlock()
		if cs == nil || !same {
			return
		}
		ctx, cancel := context.WithTimeout(s.set.ctx, s.set.o.ConnectTimeout)
		defer cancel()
		err := s.list(ctx, cs, gen)
		switch {
		case err == nil:
			s.set.changed(s)
		case errors.Is(err, errGivenUp), s.set.ctx.Err() != nil:
		default:
			s.set.note("warning", fmt.Sprintf("MCP server %s: its tools changed and could not be read; the last list stands: %v", s.Name, err))
		}
	})
}

// lose takes note that cs has ended, if it is the connection in use. Remote
// servers are connected to again; a child that died stays down. Several who
// find out at once cause one new connection.
func (s *Server) lose(cs *sdk.ClientSession, cause error) {
	s.mu.Lock()
	if s.session != cs || s.set.ctx.Err() != nil {
		s.mu.Unlock()
		return
	}
	gen, _ := s.next()
	s.mu.Unlock()
	if s.child() {
		_ = cs.Close()
		text := "the server ended"
		if cause != nil {
			text += ": " + cause.Error()
		}
		s.finish(gen, Failed, s.explain(errors.New(text)))
		return
	}
	s.set.wg.Go(func() {
		_ = cs.Close()
		s.regain(gen, cause)
	})
	s.set.changed(s)
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
