package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
)

// maxLine bounds one message of a server.
const maxLine = 64 << 20

// A mended is a connection whose messages are put right before the SDK
// decodes them.
type mended struct{ sdk.Connection }

func (c mended) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Response); ok && err == nil {
		r.Result = known(r.Result)
	}
	return m, err
}

// mend is the same for a message that is not decoded yet. It returns nil for
// what is no message.
func mend(data []byte) []byte {
	m, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return nil
	}
	r, ok := m.(*jsonrpc.Response)
	if !ok || !bytes.Contains(r.Result, []byte(`"content"`)) {
		return data
	}
	r.Result = known(r.Result)
	out, err := jsonrpc.EncodeMessage(r)
	if err != nil {
		return data
	}
	return out
}

// known rewrites content of kinds the SDK does not know as text: one odd block
// must not cost the whole result.
func known(result json.RawMessage) json.RawMessage {
	if !bytes.Contains(result, []byte(`"content"`)) {
		return result
	}
	var m map[string]json.RawMessage
	var blocks []json.RawMessage
	if json.Unmarshal(result, &m) != nil || json.Unmarshal(m["content"], &blocks) != nil {
		return result
	}
	changed := false
	for i, b := range blocks {
		var t struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(b, &t) == nil {
			switch t.Type {
			case "text", "image", "audio", "resource", "resource_link":
				continue
			}
		}
		text, err := json.Marshal(map[string]string{"type": "text", "text": string(b)})
		if err != nil {
			return result
		}
		blocks[i], changed = text, true
	}
	if !changed {
		return result
	}
	content, err := json.Marshal(blocks)
	if err != nil {
		return result
	}
	m["content"] = content
	out, err := json.Marshal(m)
	if err != nil {
		return result
	}
	return out
}

// A via makes a transport of a function.
type via func(ctx context.Context) (sdk.Connection, error)

func (f via) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := f(ctx)
	if err != nil {
		return nil, err
	}
	return mended{c}, nil
}

// writeTime bounds the writing of one message, however big it is.
const writeTime = time.Minute

// An outbox lets one message out at a time, each of them whole: who gives up
// waiting does not tear what is being written, for the messages behind it and
// the connection would go with it.
type outbox chan struct{}

func newOutbox() outbox { return make(outbox, 1) }

// send runs write, which has an end of its own.
func (o outbox) send(ctx context.Context, write func() error) error {
	select {
	case o <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-o }()
		done <- write()
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A stdio is a connection to a child process, a message a line. Lines that are
// no JSON objects are kept among the errors and passed over.
type stdio struct {
	p      *proc.Process
	cancel context.CancelFunc
	junk   *proc.Capture // standard error and what was no message
	in     *bufio.Reader

	out  outbox
	once sync.Once
}

// startStdio starts a server. The child outlives ctx; Close ends it.
func startStdio(spec proc.Spec, guard *proc.Guard, junk *proc.Capture) (*stdio, error) {
	ctx, cancel := context.WithCancel(context.Background())
	p, err := proc.Start(ctx, spec, proc.Options{Pipes: true, Stderr: junk, Guard: guard, Grace: 500 * time.Millisecond})
	if err != nil {
		cancel()
		return nil, err
	}
	return &stdio{p: p, cancel: cancel, junk: junk, in: bufio.NewReaderSize(p.Stdout, 64<<10), out: newOutbox()}, nil
}

func (c *stdio) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		line, err := readLine(c.in)
		if t := bytes.TrimSpace(line); len(t) > 0 {
			if t[0] == '{' {
				if m, derr := jsonrpc.DecodeMessage(t); derr == nil {
					return m, nil
				}
			}
			_, _ = c.junk.Write(append(t, '\n')) // a Capture never fails
		}
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// readLine reads up to a line feed, at most maxLine bytes.
func readLine(r *bufio.Reader) ([]byte, error) {
	var long []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(long)+len(part) > maxLine {
			return nil, fmt.Errorf("a message is longer than %d bytes", maxLine)
		}
		long = append(long, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return long, err
		}
	}
}

// Write ends at the latest when the input of the child does.
func (c *stdio) Write(ctx context.Context, m jsonrpc.Message) error {
	b, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return c.out.send(ctx, func() error {
		_, err := c.p.Stdin.Write(append(b, '\n'))
		return err
	})
}

// Close ends the server: its input closes, then it is asked, then forced,
// with all its children.
func (c *stdio) Close() error {
	c.once.Do(func() {
		_ = c.p.Stdin.Close() // it may have left already
		select {
		case <-c.p.Exited():
		case <-time.After(300 * time.Millisecond):
		}
		_ = c.p.Kill(500 * time.Millisecond)
		c.cancel()
		_ = c.p.Stdout.Close()
		_, _ = c.p.Wait()
	})
	return nil
}

func (*stdio) SessionID() string { return "" }

// A hosted is a connection to a server in the process of an SDK host, over
// questions to the front end.
type hosted struct {
	name     string
	ask      agent.Asker
	manifest *Manifest

	ctx    context.Context
	cancel context.CancelFunc
	in     chan jsonrpc.Message
	wg     sync.WaitGroup
}

func newHosted(name string, ask agent.Asker, m *Manifest) *hosted {
	h := &hosted{name: name, ask: ask, manifest: m, in: make(chan jsonrpc.Message, 16)}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

func (h *hosted) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-h.in:
		return m, nil
	case <-h.ctx.Done():
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (h *hosted) Write(_ context.Context, m jsonrpc.Message) error {
	if h.ctx.Err() != nil {
		return io.ErrClosedPipe
	}
	req, isReq := m.(*jsonrpc.Request)
	if isReq && h.known(req) {
		return nil
	}
	raw, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	q := agent.Question{Kind: agent.AskMCP, Name: h.name, Payload: raw, OneWay: !isReq || !req.IsCall()}
	if q.OneWay {
		// It waits for no answer, and must stand in front of what is written
		// next: servers refuse requests before notifications/initialized.
		_, err := h.ask(h.ctx, q)
		return err
	}
	h.wg.Go(func() {
		a, err := h.ask(h.ctx, q)
		if err == nil && a.Err != "" {
			err = errors.New(a.Err)
		}
		var back jsonrpc.Message
		if err == nil {
			back, err = jsonrpc.DecodeMessage(a.Payload)
		}
		if err != nil {
			back = &jsonrpc.Response{ID: req.ID, Error: &jsonrpc.Error{Code: -32000, Message: err.Error()}}
		}
		h.push(back)
	})
	return nil
}

func (h *hosted) push(m jsonrpc.Message) {
	select {
	case h.in <- m:
	case <-h.ctx.Done():
	}
}

// known answers the handshake from the manifest. It is used once: later
// listings go to the server.
func (h *hosted) known(req *jsonrpc.Request) bool {
	if h.manifest == nil {
		return false
	}
	var result json.RawMessage
	switch req.Method {
	case "initialize":
		result = h.manifest.Initialize
	case "notifications/initialized":
		return true
	case "tools/list":
		result, h.manifest.Tools = h.manifest.Tools, nil
	}
	if result == nil || !req.IsCall() {
		return false
	}
	h.push(&jsonrpc.Response{ID: req.ID, Result: result})
	return true
}

func (h *hosted) Close() error {
	h.cancel()
	h.wg.Wait()
	return nil
}

func (*hosted) SessionID() string { return "" }

// A socket is a connection over a web socket, a message a text frame.
type socket struct {
	c   *websocket.Conn
	out outbox
}

func dialSocket(ctx context.Context, client *http.Client, url string) (*socket, error) {
	c, resp, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: client, Subprotocols: []string{"mcp"}})
	if resp != nil && resp.Body != nil {
		resp.Body.Close()
	}
	if err != nil {
		return nil, err
	}
	c.SetReadLimit(maxLine)
	return &socket{c, newOutbox()}, nil
}

func (s *socket) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		_, data, err := s.c.Read(ctx)
		if err != nil {
			return nil, err
		}
		if m, err := jsonrpc.DecodeMessage(data); err == nil {
			return m, nil
		}
	}
}

func (s *socket) Write(ctx context.Context, m jsonrpc.Message) error {
	b, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return s.out.send(ctx, func() error {
		// The library closes the connection when the context of a write ends
		// in the midst of it: a call given up must not end the others.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
		defer cancel()
		return s.c.Write(ctx, websocket.MessageText, b)
	})
}

func (s *socket) Close() error    { return s.c.Close(websocket.StatusNormalClosure, "") }
func (*socket) SessionID() string { return "" }

// An events is a connection over the older pair of an event stream and posts.
// Its stream lives as long as the context of Connect, which is therefore the
// connection's own.
type events struct {
	sdk.Connection
	cancel context.CancelFunc
}

func dialEvents(ctx context.Context, url string, client *http.Client) (*events, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	c, err := (&sdk.SSEClientTransport{Endpoint: url, HTTPClient: client, MaxEventSize: maxLine}).Connect(life)
	if err != nil || !stop() {
		cancel()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	return &events{c, cancel}, nil
}

func (e *events) Close() error {
	defer e.cancel()
	return e.Connection.Close()
}
