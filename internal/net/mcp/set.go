package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
	"github.com/seed-eb844fcb/cinch/internal/net/mcp/signin"
)

// Options are what the servers of a session need. Functions may be called
// concurrently.
type Options struct {
	Version, UserAgent string
	Dir                string          // where the session started
	Roots              func() []string // further working directories
	Env                []string        // of child processes
	// HTTP makes the client for remote servers.
	HTTP func() *http.Client
	// Credentials is the file that keeps sign-ins; "" means that nobody signs in.
	Credentials string
	Ask         agent.Asker
	Guard       *proc.Guard
	// Changed is told when a server's state or tools are different.
	Changed func(Status)
	// Note tells the person something.
	Note func(level, text string)
	// Spill keeps a result that is too long and returns its path.
	Spill func(text string) (string, error)
	// Keep stores an image beside the result and returns its path. May be nil.
	Keep func(media string, data []byte) (string, error)
	// ConnectTimeout bounds one attempt, CallTimeout a call; Idle the time a
	// call may go without progress. 0: 30 s, 100,000 s, 5 min (30 min for
	// child processes).
	ConnectTimeout, CallTimeout, Idle time.Duration
	// Pause is the first wait before a connection is tried again; 0: 1 s.
	Pause time.Duration
	// MaxTokens bounds a result, as estimated; 0 is 25,000.
	MaxTokens int
	// Pins is the file that keeps the definitions of tools as they were
	// approved; "" keeps none.
	Pins string
	// Deferred says that tools wait to be looked up unless told otherwise.
	Deferred bool
}

// A Set is the MCP servers of a session. Its methods may be called
// concurrently. Close must be called.
type Set struct {
	o      Options
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	servers []*Server
	names   map[string]string // of tools -> the server and tool that have it
	calls   map[string]func(string)
	token   int
}

// New returns a set without servers.
func New(o Options) *Set {
	if o.ConnectTimeout == 0 {
		o.ConnectTimeout = 30 * time.Second
	}
	if o.Pause == 0 {
		o.Pause = time.Second
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = 100_000 * time.Second
	}
	if o.MaxTokens == 0 {
		o.MaxTokens = 25_000
	}
	if o.Roots == nil {
		o.Roots = func() []string { return nil }
	}
	o.Env = inherited(o.Env)
	s := &Set{o: o, names: map[string]string{}, calls: map[string]func(string){}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Add begins to connect to the servers of cs. Of two with one name the first
// that was added counts.
func (s *Set) Add(cs ...Config) {
	for _, c := range cs {
		s.mu.Lock()
		if slices.ContainsFunc(s.servers, func(x *Server) bool { return x.Name == c.Name }) {
			s.mu.Unlock()
			continue
		}
		x := &Server{Config: c, set: s, state: Pending, ready: make(chan struct{})}
		s.servers = append(s.servers, x)
		s.mu.Unlock()
		s.wg.Go(func() { x.connect(s.ctx) })
	}
}

// Remove ends and forgets a server.
func (s *Set) Remove(name string) bool {
	s.mu.Lock()
	i := slices.IndexFunc(s.servers, func(x *Server) bool { return x.Name == name })
	if i < 0 {
		s.mu.Unlock()
		return false
	}
	x := s.servers[i]
	s.servers = slices.Delete(s.servers, i, i+1)
	s.mu.Unlock()
	x.close(Disabled)
	return true
}

// Wait returns when no server is being connected to, or with ctx.
func (s *Set) Wait(ctx context.Context) {
	for _, x := range s.list() {
		x.mu.Lock()
		ready := x.ready
		x.mu.Unlock()
		select {
		case <-ready:
		case <-ctx.Done():
			return
		}
	}
}

// Connected returns nil once the server is connected, and why it is not.
func (s *Set) Connected(ctx context.Context, name string) error {
	x, err := s.find(name)
	if err != nil {
		return err
	}
	_, err = x.live(ctx)
	return err
}

func (s *Set) list() []*Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.servers)
}

func (s *Set) find(name string) (*Server, error) {
	for _, x := range s.list() {
		if x.Name == name {
			return x, nil
		}
	}
	return nil, fmt.Errorf("%w: %q", ErrUnknown, name)
}

// Servers describes all servers, in the order they were added.
func (s *Set) Servers() []Status {
	var out []Status
	for _, x := range s.list() {
		out = append(out, x.Status())
	}
	return out
}

// Tools returns the tools of all connected servers, and those that list and
// read resources where a server has some.
func (s *Set) Tools() []agent.Tool {
	var out []agent.Tool
	for _, x := range s.list() {
		x.mu.Lock()
		if x.state == Connected {
			for _, t := range x.tools {
				out = append(out, t)
			}
		}
		x.mu.Unlock()
	}
	return append(out, s.resourceTools()...)
}

// ToolsOf returns the tools of one server, connected or not.
func (s *Set) ToolsOf(name string) []string {
	x, err := s.find(name)
	if err != nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []string
	for _, t := range x.tools {
		out = append(out, t.name)
	}
	return out
}

// Reconnect connects to a server anew.
func (s *Set) Reconnect(ctx context.Context, name string) error {
	x, err := s.find(name)
	if err != nil {
		return err
	}
	x.connect(ctx)
	if st := x.Status(); st.State != Connected {
		return fmt.Errorf("connecting to the MCP server %s: %s", name, st.Err)
	}
	return nil
}

// SignIn connects to a server anew and lets fetch ask the person, if the
// server wants that; redirect is where the browser is sent back to.
func (s *Set) SignIn(ctx context.Context, name, redirect string, fetch signin.Fetch) error {
	x, err := s.find(name)
	if err != nil {
		return err
	}
	x.mu.Lock()
	x.fetch, x.redirect = fetch, redirect
	x.mu.Unlock()
	defer func() {
		x.mu.Lock()
		x.fetch = nil
		x.mu.Unlock()
	}()
	return s.Reconnect(ctx, name)
}

// SignOut forgets the sign-in at a server.
func (s *Set) SignOut(ctx context.Context, name string) (found bool, err error) {
	return signin.Store{Path: s.o.Credentials}.Forget(ctx, name)
}

// Toggle switches a server on or off.
func (s *Set) Toggle(ctx context.Context, name string, on bool) error {
	x, err := s.find(name)
	if err != nil {
		return err
	}
	if on {
		if x.Status().State == Connected {
			return nil
		}
		return s.Reconnect(ctx, name)
	}
	x.close(Disabled)
	s.changed(x)
	return nil
}

// Close ends all servers, their children included, and waits for it.
func (s *Set) Close() {
	s.cancel()
	var wg sync.WaitGroup
	for _, x := range s.list() {
		wg.Go(func() { x.close(Disabled) })
	}
	wg.Wait()
	s.wg.Wait()
}

// roots are the directories that servers may be told of.
func (s *Set) roots() []*sdk.Root {
	var out []*sdk.Root
	for _, dir := range append([]string{s.o.Dir}, s.o.Roots()...) {
		u := url.URL{Scheme: "file", Path: dir}
		out = append(out, &sdk.Root{URI: u.String()})
	}
	return out
}

// RootsChanged tells the servers that the working directories are others now.
func (s *Set) RootsChanged() {
	now := s.roots()
	for _, x := range s.list() {
		x.mu.Lock()
		c, old := x.peer, x.told
		x.told = now
		x.mu.Unlock()
		if c == nil {
			continue
		}
		var gone []string
		for _, r := range old {
			if !slices.ContainsFunc(now, func(n *sdk.Root) bool { return n.URI == r.URI }) {
				gone = append(gone, r.URI)
			}
		}
		if len(gone) > 0 {
			c.RemoveRoots(gone...)
		}
		c.AddRoots(now...)
	}
}

func (s *Set) changed(x *Server) {
	if s.o.Changed != nil && s.ctx.Err() == nil {
		s.o.Changed(x.Status())
	}
}

func (s *Set) note(level, text string) {
	if s.o.Note != nil {
		s.o.Note(level, text)
	}
}

// Call runs a tool by the names the server knows.
func (s *Set) Call(ctx context.Context, server, name string, args json.RawMessage) (agent.Result, error) {
	x, err := s.find(server)
	if err != nil {
		return agent.Result{}, err
	}
	x.mu.Lock()
	i := slices.IndexFunc(x.tools, func(t *tool) bool { return t.def.Name == name || t.name == name })
	var t *tool
	if i >= 0 {
		t = x.tools[i]
	}
	x.mu.Unlock()
	if t == nil {
		return agent.Result{}, fmt.Errorf("the MCP server %s has no tool %q", server, name)
	}
	if t.drift != nil && !t.drift.approved.Load() {
		return agent.Failed(t.drift.reason(server, t.def.Name)), nil
	}
	return t.call(ctx, agent.Call{ID: "mcp_call", Name: t.name, Input: args, Progress: func(agent.Progress) {}})
}

// claim gives a tool its name: the plain one, unless another tool has it.
func (s *Set) claim(server, tool string, plain bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	me := server + "\x00" + tool
	name := ToolName(server, tool, func(n string) bool {
		owner, taken := s.names[n]
		return taken && owner != me || !plain && n == plainName(server, tool)
	})
	s.names[name] = me
	return name
}

// progress tells the call with that token that it lives.
func (s *Set) progress(token, text string) {
	s.mu.Lock()
	f := s.calls[token]
	s.mu.Unlock()
	if f != nil {
		f(text)
	}
}

// expect registers f for progress of one call and returns its token.
func (s *Set) expect(f func(string)) (token string, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token++
	token = fmt.Sprintf("cinch-%d", s.token)
	s.calls[token] = f
	return token, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.calls, token)
	}
}
