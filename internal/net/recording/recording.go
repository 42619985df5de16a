// Package recording keeps what a session and its model said to each other in
// a file, and serves it again: a session can be run once more without a
// network, and says the same. It owns the file's format, the recorder on the
// client's side and the server on the model's. It must not know who talks.
//
// The file has one JSON object a line: a head, then each exchange, written
// when its answer has ended. It holds what is needed to serve the same
// answers and to tell what the tools had answered. It holds no times and no
// request headers, so no credentials.
package recording

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/seed-eb844fcb/cinch/internal/net/modelserver"
)

// format is the version of the file.
const format = 1

type head struct {
	Format  int             `json:"cinch_recording"`
	Session json.RawMessage `json:"session"`
}

// An exchange is one further line of the file.
type exchange struct {
	N        int      `json:"n"` // in the order of the requests
	Request  request  `json:"request"`
	Response response `json:"response"`
}

type request struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Digest string `json:"digest"` // of the body
	// Place says where in a conversation the request stands, whatever else
	// of it may differ in another run.
	Place   string            `json:"place,omitempty"`
	Results []json.RawMessage `json:"results,omitempty"` // tool_result blocks it brings
}

type response struct {
	Status int               `json:"status"` // 0: there was no answer
	Header map[string]string `json:"header,omitempty"`
	Body   string            `json:"body,omitempty"`
	Base64 string            `json:"base64,omitempty"` // a body that is no text
	Broken string            `json:"broken,omitempty"` // how the connection broke, if it did
}

// kept reports whether a response header is part of the exchange.
func kept(key string) bool {
	switch key = strings.ToLower(key); key {
	case "content-type", "content-encoding", "request-id", "retry-after", "retry-after-ms", "x-should-retry":
		return true
	}
	return strings.HasPrefix(strings.ToLower(key), "anthropic-")
}

// A Recorder is an http.RoundTripper that writes every exchange to a file
// while it passes it on. It may be used concurrently.
type Recorder struct {
	next http.RoundTripper

	mu  sync.Mutex
	out io.Writer
	n   int
	err error
}

// NewRecorder writes the head of a recording to out. session is what the
// caller wants to find again in [Recording.Session]; it is encoded as JSON.
func NewRecorder(out io.Writer, next http.RoundTripper, session any) (*Recorder, error) {
	enc, err := encode(session)
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	c := &Recorder{next: next, out: out}
	if c.line(head{format, enc}); c.err != nil {
		return nil, c.err
	}
	return c, nil
}

// Err is the first failure to write. The session that is recorded goes on
// without its recording.
func (c *Recorder) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// line writes v as one line with one Write. After a failure it writes nothing
// more: a file with a gap would replay wrongly.
func (c *Recorder) line(v any) {
	enc, err := encode(v)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	if err == nil {
		_, err = c.out.Write(append(enc, '\n'))
	}
	if err != nil {
		c.err = fmt.Errorf("recording: %w", err)
	}
}

// RoundTrip implements [http.RoundTripper].
func (c *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(req.Body)
		req.Body.Close()
		if err != nil {
			return nil, err
		}
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(body))
		req.ContentLength = int64(len(body))
	}
	c.mu.Lock()
	x := exchange{N: c.n, Request: describe(req.Method, req.URL.RequestURI(), body)}
	c.n++
	c.mu.Unlock()
	resp, err := c.next.RoundTrip(req)
	if err != nil {
		x.Response.Broken = err.Error()
		c.line(x)
		return nil, err
	}
	x.Response.Status, x.Response.Header = resp.StatusCode, map[string]string{}
	for k, v := range resp.Header {
		if kept(k) {
			x.Response.Header[strings.ToLower(k)] = strings.Join(v, ", ")
		}
	}
	resp.Body = &tapped{ReadCloser: resp.Body, done: func(b []byte, broken error) {
		if utf8.Valid(b) {
			x.Response.Body = string(b)
		} else {
			x.Response.Base64 = base64.StdEncoding.EncodeToString(b)
		}
		if broken != nil {
			x.Response.Broken = broken.Error()
		}
		c.line(x)
	}}
	return resp, nil
}

// tapped is a body that is kept while it is read, and handed over at its end.
type tapped struct {
	io.ReadCloser
	once sync.Once
	got  []byte
	done func(body []byte, broken error)
}

func (t *tapped) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.got = append(t.got, p[:n]...)
	if err != nil {
		t.end(err)
	}
	return n, err
}

// Close before the end means that the client did not want the rest: what was
// read is the answer.
func (t *tapped) Close() error {
	err := t.ReadCloser.Close()
	t.end(io.EOF)
	return err
}

func (t *tapped) end(err error) {
	t.once.Do(func() {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		t.done(t.got, err)
	})
}

// describe is what a recording keeps of a request.
func describe(method, path string, body []byte) request {
	x := request{Method: method, Path: path, Digest: sum(body)}
	r, err := modelserver.ParseRequest(body)
	if err != nil {
		return x
	}
	var at strings.Builder
	for _, m := range r.Messages {
		for _, b := range m.Blocks {
			if b.Type == "tool_use" {
				at.WriteString(b.ID + "\n")
			}
		}
	}
	at.WriteString(r.Prompt())
	x.Place = sum([]byte(at.String()))
	for _, b := range r.Turn() {
		if b.Type == "tool_result" {
			x.Results = append(x.Results, b.Raw)
		}
	}
	return x
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// A Recording is a session that can be served again, by Listen or as an
// http.Handler. It may be used concurrently.
type Recording struct {
	Session json.RawMessage // what was given to NewRecorder
	// Torn says that the last line of the file was not whole and is left out.
	Torn bool

	exchanges []exchange

	mu    sync.Mutex
	used  []bool
	drift []string
}

// Read reads a recording. Its error names the line that is wrong; a
// torn last line is none.
func Read(in io.Reader) (*Recording, error) {
	rec := &Recording{}
	br := bufio.NewReader(in)
	for n := 1; ; n++ {
		line, err := br.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("reading the recording: %w", err)
		}
		if err == io.EOF && len(bytes.TrimSpace(line)) > 0 {
			rec.Torn = true
		}
		if err == io.EOF {
			break
		}
		if n == 1 {
			var h head
			if json.Unmarshal(line, &h) != nil || h.Format == 0 {
				return nil, errors.New("reading the recording: the file is not a recording of cinch")
			}
			if h.Format > format {
				return nil, fmt.Errorf("reading the recording: it is of format %d, this program knows %d", h.Format, format)
			}
			rec.Session = h.Session
			continue
		}
		var x exchange
		if err := json.Unmarshal(line, &x); err != nil {
			return nil, fmt.Errorf("reading the recording: line %d: %w", n, err)
		}
		rec.exchanges = append(rec.exchanges, x)
	}
	if rec.Session == nil {
		return nil, errors.New("reading the recording: the file is empty")
	}
	slices.SortStableFunc(rec.exchanges, func(a, b exchange) int { return a.N - b.N })
	rec.used = make([]bool, len(rec.exchanges))
	return rec, nil
}

// Len is the number of exchanges.
func (rec *Recording) Len() int { return len(rec.exchanges) }

// Result returns the tool_result block that was sent for a call, so that a
// replay need not run it again.
func (rec *Recording) Result(toolUseID string) (json.RawMessage, bool) {
	for _, x := range rec.exchanges {
		for _, raw := range x.Request.Results {
			var b struct {
				ID string `json:"tool_use_id"`
			}
			if json.Unmarshal(raw, &b) == nil && b.ID == toolUseID {
				return raw, true
			}
		}
	}
	return nil, false
}

// Drift tells of requests that were not the recorded ones, byte for byte,
// but stood at the same place and got the recorded answer.
func (rec *Recording) Drift() []string {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return slices.Clone(rec.drift)
}

// next takes the exchange that answers a request: the same one, else the
// first at the same place of a conversation.
func (rec *Recording) next(req request) (response, bool) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	take := func(fits func(request) bool) int {
		for i, x := range rec.exchanges {
			if !rec.used[i] && x.Request.Method == req.Method && x.Request.Path == req.Path && fits(x.Request) {
				rec.used[i] = true
				return i
			}
		}
		return -1
	}
	if i := take(func(r request) bool { return r.Digest == req.Digest }); i >= 0 {
		return rec.exchanges[i].Response, true
	}
	i := take(func(r request) bool { return r.Place != "" && r.Place == req.Place })
	if i < 0 {
		return response{}, false
	}
	rec.drift = append(rec.drift, fmt.Sprintf("request %d: %s %s differs from the recorded one", i, req.Method, req.Path))
	return rec.exchanges[i].Response, true
}

// Listen serves the recording on a free port of 127.0.0.1 and returns the
// base URL. The caller calls stop, which waits until no answer is being sent.
func (rec *Recording) Listen() (url string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("serving the recording: %w", err)
	}
	var wg sync.WaitGroup
	srv := &http.Server{ReadHeaderTimeout: clock, ReadTimeout: clock, WriteTimeout: clock}
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wg.Add(1)
		defer wg.Done()
		rec.ServeHTTP(w, r)
	})
	wg.Go(func() { srv.Serve(l) }) // ends with ErrServerClosed
	return "http://" + l.Addr().String(), func() { srv.Close(); wg.Wait() }, nil
}

// clock bounds the reading of a request and the writing of an answer.
const clock = 2 * time.Minute

// ServeHTTP answers with what was recorded. A request that has no answer in
// the recording is refused, in the API's form.
func (rec *Recording) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		return // somebody looks whether anybody is there
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	resp, ok := rec.next(describe(r.Method, r.URL.RequestURI(), body))
	if !ok {
		w.Header().Set("content-type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"type":"error","error":{"type":"invalid_request_error","message":"the recording holds no answer to this request"}}`)
		return
	}
	for k, v := range resp.Header {
		w.Header().Set(k, v)
	}
	text := []byte(resp.Body)
	if resp.Base64 != "" {
		if text, err = base64.StdEncoding.DecodeString(resp.Base64); err != nil {
			resp = response{} // as if there had been no answer
		}
	}
	if resp.Status != 0 {
		w.WriteHeader(resp.Status)
		w.Write(text)
		http.NewResponseController(w).Flush() // a reader that has gone needs no answer
	}
	if resp.Broken != "" || resp.Status == 0 {
		cut(w)
	}
}

// cut resets the connection, after what was written.
func cut(w http.ResponseWriter) {
	rc := http.NewResponseController(w)
	conn, _, err := rc.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // not HTTP/1.1: the server closes the stream
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	conn.Close()
}

// encode is json.Marshal without the escapes for HTML.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
