package model

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/net/dial"
)

// An exchange is one HTTP request under way. One goroutine sends it and reads
// the answer; it belongs to the attempt that started it, which waits for it
// to end. The goroutine never blocks on the attempt but for buffers.
type exchange struct {
	cancel context.CancelCauseFunc
	over   chan struct{} // closed when the goroutine is gone
	news   chan news     // every kind of news once, so sending never blocks
	data   chan []byte   // the body, in order; closed at its end
	free   chan []byte   // buffers to read into
	err    error         // why data ended; set before it is closed
	span   *dial.Span

	mu      sync.Mutex
	crossed []agent.Crossed
	linked  bool // that there is a connection was told
}

// news is how far an exchange came: it has a credential, a connection, or an
// answer.
type news struct {
	stage stage
	resp  *http.Response
	cred  string
	err   error // with stage answered: there is no answer
}

type stage uint8

const (
	credentialed stage = iota
	connected
	answered
)

// errLeft ends exchanges whose answer nobody waits for any more.
var errLeft = errors.New("the answer is not needed any more")

// errSameCredential says that the helper had nothing new to offer.
var errSameCredential = errors.New("the apiKeyHelper printed the refused key again")

const bufferSize = 32 << 10

// start sends a request. The caller must call finish.
func (c *Client) start(ctx context.Context, path string, body []byte, p plan, req *agent.Request, attempt int, badCred string) *exchange {
	ctx, cancel := context.WithCancelCause(ctx)
	x := &exchange{
		cancel: cancel, over: make(chan struct{}), news: make(chan news, 3),
		data: make(chan []byte, 1), free: make(chan []byte, 2),
	}
	x.free <- nil // buffers are made when they are needed
	x.free <- nil
	id := "model/" + strconv.FormatInt(c.seq.Add(1), 10)
	name := req.Purpose
	if name == "" {
		name = "model"
	}
	ctx, x.span = dial.Watch(ctx, id, name, attempt, x.cross)
	go x.run(ctx, c, path, body, p, req, badCred)
	return x
}

func (x *exchange) run(ctx context.Context, c *Client, path string, body []byte, p plan, req *agent.Request, badCred string) {
	defer close(x.over)
	defer close(x.data)
	fail := func(err error, cred string) {
		x.span.Fail(err, ctx.Err() != nil)
		x.news <- news{stage: answered, err: err, cred: cred}
	}
	hreq := c.request(ctx, path, body, p, req)
	cred, err := c.cred.set(ctx, hreq.Header)
	if err == nil && badCred != "" && cred == badCred {
		err = errSameCredential
	}
	if err != nil {
		fail(err, cred)
		return
	}
	c.customize(hreq)
	x.news <- news{stage: credentialed}
	resp, err := c.http.Do(hreq)
	if err != nil {
		fail(err, cred)
		return
	}
	defer resp.Body.Close()
	x.span.Done(resp)
	x.news <- news{stage: answered, resp: resp, cred: cred}
	x.err = x.read(ctx, resp)
}

// read hands the body over piece by piece.
func (x *exchange) read(ctx context.Context, resp *http.Response) error {
	var r io.Reader = resp.Body
	if strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		z, err := gzip.NewReader(resp.Body) // some gateways compress unasked
		if err != nil {
			return err
		}
		r = z
	}
	for {
		var buf []byte
		select {
		case buf = <-x.free:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if buf == nil {
			buf = make([]byte, bufferSize)
		}
		n, err := r.Read(buf[:bufferSize])
		if n > 0 {
			select {
			case x.data <- buf[:n]:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		} else {
			x.free <- buf
		}
		if err != nil {
			return err
		}
	}
}

// cross takes in a boundary, from any goroutine.
func (x *exchange) cross(c agent.Crossed) {
	x.mu.Lock()
	x.crossed = append(x.crossed, c)
	first := c.Boundary == "connect" && c.Outcome == "ok" && !x.linked
	x.linked = x.linked || first
	x.mu.Unlock()
	if first {
		x.news <- news{stage: connected}
	}
}

// take returns the boundaries that came since the last call.
func (x *exchange) take() []agent.Crossed {
	x.mu.Lock()
	defer x.mu.Unlock()
	cs := x.crossed
	x.crossed = nil
	return cs
}

// linger is how long finish waits for the end of an answer that is complete,
// so that its connection can be used again.
const linger = 100 * time.Millisecond

// finish ends the exchange and waits for its goroutine. It may be called twice.
func (x *exchange) finish(complete bool) {
	if complete {
		t := time.NewTimer(linger)
		defer t.Stop()
	drain:
		for {
			select {
			case b, more := <-x.data:
				if !more {
					break drain
				}
				x.free <- b
			case <-t.C:
				break drain
			}
		}
	}
	x.cancel(errLeft)
	<-x.over
}

// request makes the HTTP request, all but its credential and the user's headers.
func (c *Client) request(ctx context.Context, path string, body []byte, p plan, req *agent.Request) *http.Request {
	u := *c.base
	u.Path += path
	q := u.Query()
	q.Set("beta", "true")
	u.RawQuery = q.Encode()
	hreq := (&http.Request{
		Method: http.MethodPost, URL: &u, Host: u.Host, Header: http.Header{},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		GetBody: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil },
	}).WithContext(ctx)
	h := hreq.Header
	h.Set("Accept", "application/json")
	if !p.whole {
		h.Set("Accept", "text/event-stream, application/json")
		// A proxy that compresses a stream holds events back.
		h.Set("Accept-Encoding", "identity")
	}
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", c.o.UserAgent)
	h.Set("Anthropic-Version", version)
	if len(p.betas) > 0 {
		h.Set("Anthropic-Beta", strings.Join(p.betas, ","))
	}
	if c.o.Session != nil {
		if id := c.o.Session(); id != "" {
			h.Set("X-Cinch-Session-Id", id)
		}
	}
	if req.Agent != "" {
		h.Set("X-Cinch-Agent-Id", req.Agent)
	}
	return hreq
}

// customize lays the user's headers over ours.
func (c *Client) customize(hreq *http.Request) {
	for _, h := range c.o.Headers {
		switch http.CanonicalHeaderKey(h.Name) {
		case "Host":
			hreq.Host = h.Value
		case "Anthropic-Beta": // is among the betas
		default:
			hreq.Header.Set(h.Name, h.Value)
		}
	}
}
