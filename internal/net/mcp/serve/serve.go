// Package serve is the other side of MCP: it offers tools of this program to
// the clients of others, on standard input and output and over Streamable
// HTTP. It owns the protocol, who may knock at the door of the HTTP endpoint,
// and how results become content. Whether a call may run, and running it, is
// its caller's business.
package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// Name is what clients are told the server is called.
const Name = "Cinch"

// Options are what is served.
type Options struct {
	Version      string
	Instructions string
	Tools        []Tool
	// Call runs a tool if it may run. It is called concurrently, returns soon
	// after ctx ends, and calls progress from one goroutine at a time.
	Call func(ctx context.Context, name string, input json.RawMessage, progress func(agent.Progress)) agent.Result
}

// A Tool is one that is offered, with what clients may tell a person of it.
type Tool struct {
	agent.Spec
	ReadOnly, OpenWorld bool
}

// New returns a server for o. It may serve many connections.
func New(o Options) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: Name, Title: Name, Version: o.Version}, &sdk.ServerOptions{
		Instructions: o.Instructions,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
	})
	Add(s, o)
	return s
}

// Add offers the tools of o in s, too.
func Add(s *sdk.Server, o Options) {
	for _, t := range o.Tools {
		destructive := !t.ReadOnly
		s.AddTool(&sdk.Tool{
			Name: t.Name, Description: t.Description, InputSchema: t.Schema,
			Annotations: &sdk.ToolAnnotations{ReadOnlyHint: t.ReadOnly, DestructiveHint: &destructive, OpenWorldHint: &t.OpenWorld},
		}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			input := r.Params.Arguments
			if len(bytes.TrimSpace(input)) == 0 {
				input = json.RawMessage("{}")
			}
			return content(o.Call(ctx, t.Name, input, notifier(ctx, r))), nil
		})
	}
}

// pace is the time between two notifications of progress.
const pace = 100 * time.Millisecond

// notifier passes progress on, if the client wants it and as often as is good
// for it.
func notifier(ctx context.Context, r *sdk.CallToolRequest) func(agent.Progress) {
	token := r.Params.GetProgressToken()
	if token == nil {
		return func(agent.Progress) {}
	}
	var mu sync.Mutex // over n and last
	n, last := 0.0, time.Time{}
	return func(p agent.Progress) {
		mu.Lock()
		if time.Since(last) < pace {
			mu.Unlock()
			return
		}
		n++
		last = time.Now()
		params := &sdk.ProgressNotificationParams{ProgressToken: token, Progress: n, Message: p.Text}
		mu.Unlock()
		_ = r.Session.NotifyProgress(ctx, params) // news only: the result says how it ended
	}
}

// content translates a result.
func content(r agent.Result) *sdk.CallToolResult {
	out := &sdk.CallToolResult{IsError: r.IsError, Content: []sdk.Content{}}
	for _, b := range r.Blocks {
		switch b := b.(type) {
		case *agent.Text:
			out.Content = append(out.Content, &sdk.TextContent{Text: b.Text})
		case *agent.Image:
			data, err := base64.StdEncoding.DecodeString(b.Data)
			if err != nil {
				out.Content = append(out.Content, &sdk.TextContent{Text: "[a picture that cannot be read: " + err.Error() + "]"})
				continue
			}
			out.Content = append(out.Content, &sdk.ImageContent{MIMEType: b.MediaType, Data: data})
		default:
			out.Content = append(out.Content, &sdk.TextContent{Text: string(agent.AppendBlocks(nil, []agent.Block{b}))})
		}
	}
	return out
}

// Stdio serves one client that writes a message a line to in, until in ends
// or ctx does.
func Stdio(ctx context.Context, s *sdk.Server, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &lines{lines: make(chan line), out: out, done: make(chan struct{})}
	go c.scan(in) // ends with in, which nothing else can make it do
	err := s.Run(ctx, c)
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return err
}

// maxLine bounds one message of a client.
const maxLine = 64 << 20

// A line is one message, or why there are no more.
type line struct {
	message jsonrpc.Message
	err     error
}

// lines is a connection over standard input and output. It is its own
// transport: there is only one.
type lines struct {
	lines chan line
	mu    sync.Mutex // one message at a time goes to out, which is memory or a pipe of ours
	out   io.Writer
	once  sync.Once
	done  chan struct{}
}

func (c *lines) Connect(context.Context) (sdk.Connection, error) { return c, nil }

// scan reads what is there. A line that is no message is answered with an
// error and passed over: it must not cost the connection.
func (c *lines) scan(in io.Reader) {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		text, err := readLine(r)
		if t := bytes.TrimSpace(text); len(t) > 0 {
			m, derr := jsonrpc.DecodeMessage(t)
			if derr != nil {
				_ = c.write([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"this is no JSON-RPC message"}}`)) // whoever cannot read it is gone
			} else if !c.pass(line{message: m}) {
				return
			}
		}
		if err != nil {
			c.pass(line{err: err})
			return
		}
	}
}

func (c *lines) pass(l line) bool {
	select {
	case c.lines <- l:
		return true
	case <-c.done:
		return false
	}
}

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

func (c *lines) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case l := <-c.lines:
		return l.message, l.err
	case <-c.done:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *lines) Write(_ context.Context, m jsonrpc.Message) error {
	b, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return c.write(b)
}

func (c *lines) write(b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.out.Write(append(b, '\n'))
	return err
}

func (c *lines) Close() error {
	c.once.Do(func() { close(c.done) })
	return nil
}

func (*lines) SessionID() string { return "" }
