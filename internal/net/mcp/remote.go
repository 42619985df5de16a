package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
	"github.com/seed-eb844fcb/cinch/internal/lib/sse"
	"github.com/seed-eb844fcb/cinch/internal/net/mcp/signin"
)

// web is the HTTP client for one connection to a remote server.
func (s *Server) web(header http.Header) (*http.Client, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("its url %q cannot be used", s.URL)
	}
	client := *s.set.o.HTTP()
	d := &remote{base: client.Transport, host: u.Host, header: header, status: &s.status, agent: s.set.o.UserAgent}
	if d.base == nil {
		d.base = http.DefaultTransport
	}
	switch {
	case s.HeadersHelper != "":
		d.renew = s.headers
	case s.set.o.Credentials != "" && s.Headers["Authorization"] == "" && s.Type != "ws":
		s.mu.Lock()
		o := signin.Options{
			Name: s.Name, URL: s.URL, ClientID: s.OAuth.ClientID, ClientSecret: s.OAuth.ClientSecret, Document: s.OAuth.Document,
			Scopes: strings.Fields(s.OAuth.Scopes), Redirect: s.redirect, HTTP: s.set.o.HTTP(),
			Store: signin.Store{Path: s.set.o.Credentials}, Fetch: s.fetch,
		}
		s.mu.Unlock()
		h, err := signin.New(o)
		if err != nil {
			return nil, fmt.Errorf("preparing to sign in: %w", err)
		}
		d.auth = h
	}
	client.Transport = d
	return &client, nil
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

// A remote is the way to one server's endpoint. It adds the server's headers
// and the token of whoever signed in, tries once more with new ones when the
// endpoint refuses, and puts answers right before the SDK sees them. Other
// hosts, to which an endpoint may redirect, get none of that.
type remote struct {
	base   http.RoundTripper
	host   string
	agent  string
	status *atomic.Int32
	renew  func(context.Context) (http.Header, error) // nil: there is no helper
	auth   auth.OAuthHandler                          // nil: nobody signs in

	mu     sync.Mutex
	header http.Header
}

func (r *remote) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host != r.host {
		return r.base.RoundTrip(req)
	}
	resp, sent, err := r.send(req)
	if err != nil {
		return nil, err
	}
	if code := resp.StatusCode; (code == http.StatusUnauthorized || code == http.StatusForbidden) && (req.Body == nil || req.GetBody != nil) {
		resp, err = r.again(req, sent, resp)
		if err != nil {
			return nil, err
		}
	}
	r.status.Store(int32(resp.StatusCode))
	return tidy(req, resp)
}

// send sends a copy of req, which it returns.
func (r *remote) send(req *http.Request) (*http.Response, *http.Request, error) {
	out := req.Clone(req.Context())
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, nil, err
		}
		out.Body = body
	}
	out.Header.Set("User-Agent", r.agent)
	r.mu.Lock()
	maps.Copy(out.Header, r.header)
	r.mu.Unlock()
	if r.auth != nil {
		ts, err := r.auth.TokenSource(req.Context())
		if err != nil {
			return nil, nil, err
		}
		if ts != nil {
			if t, err := ts.Token(); err == nil {
				t.SetAuthHeader(out)
			} // without one the endpoint refuses, which says what to do
		}
	}
	resp, err := r.base.RoundTrip(out)
	return resp, out, err
}

// again answers a refusal with newer headers or a new token.
func (r *remote) again(req, sent *http.Request, resp *http.Response) (*http.Response, error) {
	code := resp.StatusCode
	switch {
	case r.renew != nil:
		h, err := r.renew(req.Context())
		if err != nil {
			return resp, nil // the refusal stands
		}
		_ = resp.Body.Close()
		r.mu.Lock()
		r.header = h
		r.mu.Unlock()
	case r.auth != nil:
		if err := r.auth.Authorize(req.Context(), sent, resp); err != nil {
			r.status.Store(int32(code))
			return nil, fmt.Errorf("signing in: %w", err)
		}
	default:
		return resp, nil
	}
	resp, _, err := r.send(req)
	return resp, err
}

// tidy makes of an answer one that the SDK can live with.
func tidy(req *http.Request, resp *http.Response) (*http.Response, error) {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode == http.StatusBadRequest && req.Header.Get("Mcp-Session-Id") != "":
		// compat: some servers say so, and not 404, of a session they forgot.
		body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
		_ = resp.Body.Close()
		if err != nil {
			return nil, err
		}
		if t := strings.ToLower(string(body)); strings.Contains(t, "session") {
			resp.StatusCode, resp.Status, body = http.StatusNotFound, "404 Not Found", nil
		}
		resp.Body = io.NopCloser(bytes.NewReader(body))
	case resp.StatusCode/100 != 2:
	case kind == "text/event-stream":
		resp.Body = newStream(resp.Body)
		resp.ContentLength = -1
	case kind == "application/json" && req.Method == http.MethodPost:
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxLine+1))
		_ = resp.Body.Close()
		if err != nil {
			return nil, err
		}
		if len(body) > maxLine {
			return nil, fmt.Errorf("a message is longer than %d bytes", maxLine)
		}
		if good := mend(body); good != nil {
			body = good
		}
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return resp, nil
}

// A stream passes events on: those that carry messages mended, those that
// carry something else not at all.
type stream struct {
	body io.ReadCloser
	mu   sync.Mutex // over what follows
	next func() (sse.Event, error, bool)
	stop func()
	buf  bytes.Buffer
	err  error
}

func newStream(body io.ReadCloser) *stream {
	s := &stream{body: body}
	s.next, s.stop = iter.Pull2(sse.DecodeMax(body, maxLine))
	return s
}

func (s *stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.buf.Len() == 0 {
		if s.err != nil {
			return 0, s.err
		}
		ev, err, ok := s.next()
		switch {
		case !ok:
			s.err = io.EOF
		case err != nil:
			s.err = err
		default:
			s.put(ev)
		}
	}
	return s.buf.Read(p)
}

func (s *stream) put(ev sse.Event) {
	if ev.Comment || ev.Tail {
		return
	}
	data := ev.Data
	if len(ev.Name) == 0 || string(ev.Name) == "message" {
		switch {
		case len(data) > 0:
			if data = mend(data); data == nil {
				return
			}
		case ev.ID == nil && ev.Retry < 0:
			return
		}
	}
	if len(ev.Name) > 0 {
		fmt.Fprintf(&s.buf, "event: %s\n", ev.Name)
	}
	if ev.ID != nil {
		fmt.Fprintf(&s.buf, "id: %s\n", ev.ID)
	}
	if ev.Retry >= 0 {
		fmt.Fprintf(&s.buf, "retry: %d\n", ev.Retry)
	}
	if data != nil {
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			fmt.Fprintf(&s.buf, "data: %s\n", line)
		}
	}
	s.buf.WriteByte('\n')
}

func (s *stream) Close() error {
	err := s.body.Close() // ends a read that is under way
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
	if s.err == nil {
		s.err = io.ErrClosedPipe
	}
	return err
}
