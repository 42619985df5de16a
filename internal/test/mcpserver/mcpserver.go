// Package mcpserver is an MCP server that misbehaves on command. A Script says
// what it answers and what it does wrong; the same script runs on standard
// input and output, over Streamable HTTP, over the older pair of event stream
// and posts, and over a web socket.
//
// It speaks plain JSON-RPC and shares no code with the client under test.
package mcpserver

import (
	"encoding/json"
	"fmt"
	"sync"
)

// A Request is one message of the client.
type Request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// Arg returns a string argument of a tools/call.
func (r Request) Arg(name string) string {
	var p struct {
		Arguments map[string]any `json:"arguments"`
	}
	_ = json.Unmarshal(r.Params, &p) // a missing argument is ""
	s, _ := p.Arguments[name].(string)
	return s
}

// Tool returns the name of the tool of a tools/call.
func (r Request) Tool() string {
	var p struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(r.Params, &p) // a missing name is ""
	return p.Name
}

// Token returns the progress token of a request, as JSON.
func (r Request) Token() string {
	var p struct {
		Meta struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(r.Params, &p) // none is ""
	return string(p.Meta.Token)
}

// A Script is how a server behaves. The zero value serves one tool, echo.
type Script struct {
	// Tools are the definitions, as JSON; nil is that of echo.
	Tools []string
	// Caps are the capabilities, as JSON.
	Caps string
	// On replaces what happens at a method, or at a call of a tool under
	// "tool:NAME". It returns the result, or an error to answer with, or
	// ErrSilent.
	On map[string]func(*Conn, Request) (string, error)
	// Status, if not nil, may refuse an HTTP request: 0 goes on.
	Status func(method string, session string, r Request) (status int, body string)
	// Header, if not nil, may refuse an HTTP request for its headers.
	Header func(get func(string) string) (status int)
}

// ErrSilent makes a handler's request stay without an answer.
var ErrSilent error = &RPCError{}

// An RPCError is an error to answer with.
type RPCError struct {
	Code    int
	Message string
}

func (e *RPCError) Error() string { return e.Message }

// Echo is the definition of the tool that every script can serve.
const Echo = `{"name":"echo","description":"says it again","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}`

// Text is a result that has one text.
func Text(s string) string {
	b, _ := json.Marshal(s) // a string always encodes
	return fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, b)
}

// A Conn is one client, as the handlers of a script see it.
type Conn struct {
	Script *Script
	// Raw sends bytes as they are, in the transport's own framing of one
	// message: a line, an event, a frame.
	Raw func([]byte)
	// Drop cuts the connection, or ends the process.
	Drop func()

	state *state
}

// A state is what the parts of one client's connection share.
type state struct {
	mu      sync.Mutex
	next    int
	waiting map[string]chan Request
	seen    []Request
}

func newState() *state { return &state{waiting: map[string]chan Request{}} }

// Seen returns the messages of the client with that method.
func (c *Conn) Seen(method string) []Request {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	var out []Request
	for _, r := range c.state.seen {
		if r.Method == method {
			out = append(out, r)
		}
	}
	return out
}

// Notify sends a notification.
func (c *Conn) Notify(method, params string) {
	c.Raw(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params))
}

// Ask sends a request and returns the client's answer, result or error.
func (c *Conn) Ask(method, params string) Request {
	st := c.state
	st.mu.Lock()
	st.next++
	id := fmt.Sprint(1000 + st.next)
	ch := make(chan Request, 1)
	st.waiting[id] = ch
	st.mu.Unlock()
	c.Raw(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	return <-ch
}

// answer gives r to whoever asked; it reports whether r was an answer.
func (c *Conn) answer(r Request) bool {
	if r.Method != "" {
		return false
	}
	c.state.mu.Lock()
	ch := c.state.waiting[string(r.ID)]
	delete(c.state.waiting, string(r.ID))
	c.state.mu.Unlock()
	if ch != nil {
		ch <- r
	}
	return true
}

// handle answers one request through c, and reports whether it did.
func (c *Conn) handle(r Request) (answered bool) {
	c.state.mu.Lock()
	c.state.seen = append(c.state.seen, r)
	c.state.mu.Unlock()
	result, err := c.result(r)
	if len(r.ID) == 0 || err == ErrSilent {
		return false
	}
	if err != nil {
		code := -32000
		if e, ok := err.(*RPCError); ok {
			code = e.Code
		}
		c.Raw(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, r.ID, code, err.Error()))
		return true
	}
	c.Raw(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, result))
	return true
}

func (c *Conn) result(r Request) (string, error) {
	s := c.Script
	if f := s.On[r.Method]; f != nil {
		return f(c, r)
	}
	switch r.Method {
	case "initialize":
		caps := s.Caps
		if caps == "" {
			caps = `{"tools":{"listChanged":true}}`
		}
		return `{"protocolVersion":"2025-11-25","capabilities":` + caps + `,"serverInfo":{"name":"scripted","version":"1"}}`, nil
	case "ping":
		return `{}`, nil
	case "tools/list":
		tools := s.Tools
		if tools == nil {
			tools = []string{Echo}
		}
		raw := make([]json.RawMessage, len(tools))
		for i, t := range tools {
			raw[i] = json.RawMessage(t)
		}
		b, err := json.Marshal(raw)
		return `{"tools":` + string(b) + `}`, err
	case "tools/call":
		if f := s.On["tool:"+r.Tool()]; f != nil {
			return f(c, r)
		}
		if r.Tool() == "echo" {
			return Text(r.Arg("text")), nil
		}
		return "", &RPCError{-32602, "unknown tool " + r.Tool()}
	}
	return "", &RPCError{-32601, "method not found"}
}
