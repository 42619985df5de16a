package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/coder/websocket"
)

// Stdio serves s until in ends.
func Stdio(in io.Reader, out io.Writer, s *Script, exit func()) {
	var mu sync.Mutex
	c := &Conn{Script: s, Drop: exit, state: newState()}
	c.Raw = func(b []byte) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = out.Write(append(bytes.Clone(b), '\n')) // a client that left ends in too
	}
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadBytes('\n')
		var req Request
		if json.Unmarshal(line, &req) == nil && !c.answer(req) {
			go c.handle(req)
		}
		if err != nil {
			return
		}
	}
}

// A Remote serves a script over HTTP: /mcp is Streamable HTTP, /sse the older
// pair, /ws a web socket.
type Remote struct {
	Script *Script

	mu    sync.Mutex
	next  int
	conns map[string]*session
}

// A session is one client over HTTP.
type session struct {
	*Conn
	out chan []byte // to the stream that stands by
}

// Sessions returns how many sessions there have been.
func (r *Remote) Sessions() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next
}

// Forget makes the server know no session any more.
func (r *Remote) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = nil
}

// Broadcast sends a notification to every client that listens.
func (r *Remote) Broadcast(method, params string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.conns {
		s.Notify(method, params)
	}
}

// Each calls f with every connection.
func (r *Remote) Each(f func(*Conn)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.conns {
		f(s.Conn)
	}
}

func (r *Remote) open() (string, *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	id := fmt.Sprintf("session-%d", r.next)
	s := &session{Conn: &Conn{Script: r.Script, state: newState()}, out: make(chan []byte, 1000)}
	s.Raw = func(b []byte) { s.out <- bytes.Clone(b) }
	s.Drop = func() {}
	if r.conns == nil {
		r.conns = map[string]*session{}
	}
	r.conns[id] = s
	return id, s
}

func (r *Remote) find(id string) *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.conns[id]
}

// ServeHTTP implements http.Handler.
func (r *Remote) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	id := req.Header.Get("Mcp-Session-Id")
	if id == "" {
		id = req.URL.Query().Get("s")
	}
	var msg Request
	if req.Method == http.MethodPost {
		_ = json.NewDecoder(req.Body).Decode(&msg) // what is no message is refused below
	}
	if f := r.Script.Status; f != nil {
		if code, body := f(req.Method, id, msg); code != 0 {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
			return
		}
	}
	if f := r.Script.Header; f != nil {
		if code := f(req.Header.Get); code != 0 {
			w.WriteHeader(code)
			return
		}
	}
	switch req.URL.Path {
	case "/mcp":
		r.streamable(w, req, id, msg)
	case "/sse":
		r.events(w, req, id, msg)
	case "/ws":
		r.socket(w, req)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func event(w http.ResponseWriter, name string, data []byte) {
	fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data)
	w.(http.Flusher).Flush()
}

func (r *Remote) streamable(w http.ResponseWriter, req *http.Request, id string, msg Request) {
	if msg.Method == "server/discover" { // as most servers of today do
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`, msg.ID)
		return
	}
	s := r.find(id)
	if msg.Method == "initialize" {
		id, s = r.open()
		w.Header().Set("Mcp-Session-Id", id)
	}
	switch {
	case s == nil:
		w.WriteHeader(http.StatusNotFound)
	case req.Method == http.MethodGet:
		w.Header().Set("Content-Type", "text/event-stream")
		pump(w, req.Context(), s.out)
	case req.Method == http.MethodDelete:
	case s.answer(msg), len(msg.ID) == 0:
		if len(msg.ID) == 0 {
			s.handle(msg)
		}
		w.WriteHeader(http.StatusAccepted)
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		// What the handler sends goes with its own answer.
		var mu sync.Mutex
		over := make(chan struct{})
		c := &Conn{Script: r.Script, state: s.state}
		c.Raw = func(b []byte) {
			mu.Lock()
			defer mu.Unlock()
			select {
			case <-over:
			default:
				event(w, "message", b)
			}
		}
		c.Drop = func() { panic(http.ErrAbortHandler) }
		defer func() { mu.Lock(); close(over); mu.Unlock() }()
		if !c.handle(msg) {
			<-req.Context().Done()
		}
	}
}

func pump(w http.ResponseWriter, ctx context.Context, out chan []byte) {
	w.(http.Flusher).Flush()
	for {
		select {
		case b := <-out:
			event(w, "message", b)
		case <-ctx.Done():
			return
		}
	}
}

func (r *Remote) events(w http.ResponseWriter, req *http.Request, id string, msg Request) {
	if req.Method == http.MethodGet {
		id, s := r.open()
		ctx, cancel := context.WithCancel(req.Context())
		defer cancel()
		s.Drop = cancel
		w.Header().Set("Content-Type", "text/event-stream")
		event(w, "endpoint", []byte("/sse?s="+id))
		pump(w, ctx, s.out)
		return
	}
	s := r.find(id)
	if s == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	if !s.answer(msg) {
		go s.handle(msg)
	}
}

func (r *Remote) socket(w http.ResponseWriter, req *http.Request) {
	ws, err := websocket.Accept(w, req, &websocket.AcceptOptions{Subprotocols: []string{"mcp"}})
	if err != nil {
		return
	}
	ws.SetReadLimit(-1)
	_, s := r.open()
	s.Raw = func(b []byte) { _ = ws.Write(context.Background(), websocket.MessageText, b) }
	s.Drop = func() { _ = ws.CloseNow() }
	for {
		_, data, err := ws.Read(req.Context())
		if err != nil {
			return
		}
		var msg Request
		if json.Unmarshal(data, &msg) == nil && !s.answer(msg) {
			go s.handle(msg)
		}
	}
}
