// Package modelserver is a model that needs no network: a server for the
// Messages API on loopback, with real HTTP and real server-sent events, whose
// answers come from scripts or from a small program. It checks each request
// as strictly as the API does, and simulates the prompt cache in the numbers
// it reports. It is the model of the demo and of the tests. It
// owns the server's side of the wire; it must not know the program that
// talks to it.
//
// A script says what happens to one request, a line a step. Empty lines and
// lines that start with # are passed over.
//
//	when [not] PART TEXT   use this script only for a request whose PART holds TEXT: last (the
//	                       newest user turn), first (message), prompt, system, any, tool (is offered),
//	                       model (is), beta (header), key (of the body), stream (is true or false)
//	repeat [N]             use it N times, or for ever
//
//	text WORDS             a text block; Go quotes are taken off
//	| WORDS                a further line of the text, thinking or body before it
//	thinking [sig=S] WORDS a thinking block, with its signature
//	redacted [DATA]        a redacted_thinking block
//	tool ID NAME JSON      a tool_use block; %n in ID is the number of the request
//	rawtool ID NAME BYTES  the same, its input sent as it is; "a" "b" are two pieces
//	block JSON             a block of any type
//	open STEP              a text, thinking, tool or rawtool that never ends
//	start                  headers and message_start; the first content sends them by itself
//	event TYPE JSON        an event of any type
//	ping | comment WORDS | unknown [event|block]
//	stop REASON [SEQ]      the end of the message; added if the script has none
//
//	sleep DURATION         wait
//	headers                send the headers and nothing else yet
//	hang                   send nothing more until the client leaves
//	headers-only           both
//	cut | drop | eof       reset the connection | close it inside the body | end the body
//	error TYPE [WORDS]     an error event; the end of the stream
//	body WORDS             any body; before a status, if there is one
//	status CODE [RETRY-AFTER] [TYPE [WORDS]]   an HTTP error
//
//	header KEY [VALUE]     set or remove a header
//	model NAME             the name that answers
//	usage in=N read=N write=N out=N
//	chunk N | piece N      bytes of one write | characters of one delta
//	pace DURATION          the time between two events
//	eol lf|crlf|cr         line ends of the stream
//	gzip                   compress, if the client takes it
package modelserver

import (
	"context"
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
)

// A Brain answers one request. It may be called concurrently, and returns
// soon after ctx ends. Its error refuses the request.
type Brain func(ctx context.Context, r *Request) (Script, error)

// Play returns a Brain that answers each request with the first script that
// matches it and is not used up.
func Play(scripts ...Script) Brain {
	var mu sync.Mutex
	used := make([]int, len(scripts))
	return func(_ context.Context, r *Request) (Script, error) {
		mu.Lock()
		defer mu.Unlock()
		for i := range scripts {
			s := &scripts[i]
			if s.Repeat >= 0 && used[i] >= max(s.Repeat, 1) || !s.holds(r) {
				continue
			}
			used[i]++
			return *s, nil
		}
		return Script{}, fmt.Errorf("no script is left for request %d", r.N)
	}
}

// Options say how a Server behaves. The zero value answers nothing.
type Options struct {
	Brain    Brain         // required
	Window   int           // tokens a request may hold; 0 is no limit
	MaxBody  int64         // bytes a request may have; 0 is 32 MB
	MinCache int           // tokens a prefix needs to be cached
	Lenient  bool          // answer requests that break the rules, too
	Key      string        // the only credential that is taken; "" takes any
	Seed     string        // part of every id, so that two servers' ids differ
	Patience time.Duration // the longest wait for a client; 0 is 10 minutes
	Forget   bool          // keep no request bodies
	// Fault, if set, is asked before each event what goes wrong there. Both
	// count from 0; request counts message requests.
	Fault func(request, event int) Fault
}

// A Fault is something that goes wrong in place of an event.
type Fault uint8

const (
	NoFault    Fault = iota
	FaultCut         // the connection is reset
	FaultDrop        // the connection is closed inside the body
	FaultEOF         // the body ends
	FaultError       // an overloaded_error event comes instead, and the stream ends
	FaultHang        // nothing comes any more
)

// A Server answers the Messages API. It is an http.Handler, and can listen
// by itself. All methods may be called concurrently.
type Server struct {
	opts   Options
	memory Memory
	cache  cache
	closed chan struct{}
	once   sync.Once
	active sync.WaitGroup
	http   *http.Server // set by Listen

	mu        sync.Mutex
	n         int // message requests so far
	exchanges []*Exchange
}

// An Exchange is one request and what became of it.
type Exchange struct {
	N          int // counts message requests from 0; -1 for any other
	Method     string
	Path       string // with its query
	Header     http.Header
	Body       []byte
	Request    *Request // nil if the body could not be read as one
	Violations []Violation
	At         time.Time // arrival of the headers
	Done       time.Time // zero while it runs
	Status     int       // 0 if the connection was broken before the headers
	Usage      Usage
	Events     []Sent
	Left       bool // the client went away before the end
}

// Sent is one event that was written.
type Sent struct {
	Type string
	At   time.Time
}

// New returns a server that does not listen: use it as a handler, or call Listen.
func New(o Options) *Server {
	if o.MaxBody == 0 {
		o.MaxBody = 32 << 20
	}
	if o.Patience == 0 {
		o.Patience = 10 * time.Minute
	}
	return &Server{opts: o, cache: cache{min: o.MinCache}, closed: make(chan struct{})}
}

// Listen serves on a free port of 127.0.0.1 and returns the base URL. The
// caller calls Close.
func (s *Server) Listen() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("starting the offline model: %w", err)
	}
	s.Serve(l)
	return "http://" + l.Addr().String(), nil
}

// Serve serves on l in the background until Close, which closes l.
func (s *Server) Serve(l net.Listener) {
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 30 * time.Second}
	s.active.Go(func() { s.http.Serve(l) }) // ends with ErrServerClosed
}

// Close ends every connection and waits for the answers that run. It may be
// called more than once.
func (s *Server) Close() {
	s.once.Do(func() { close(s.closed) })
	if s.http != nil {
		s.http.Close()
	}
	s.active.Wait()
}

// Exchanges returns what the server saw so far, in order of arrival.
func (s *Server) Exchanges() []Exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Exchange, len(s.exchanges))
	for i, x := range s.exchanges {
		out[i] = *x
		out[i].Events = slices.Clone(x.Events)
	}
	return out
}

// Requests returns the message requests so far that could be read.
func (s *Server) Requests() []*Request {
	var out []*Request
	for _, x := range s.Exchanges() {
		if x.N >= 0 && x.Request != nil {
			out = append(out, x.Request)
		}
	}
	return out
}

// Violations returns every rule that was broken so far, each with the number
// of its request.
func (s *Server) Violations() []string {
	var out []string
	for _, x := range s.Exchanges() {
		for _, v := range x.Violations {
			out = append(out, fmt.Sprintf("request %d: %v", x.N, v))
		}
	}
	return out
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.active.Add(1)
	defer s.active.Done()
	x := &Exchange{N: -1, Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), At: time.Now()}
	messages := r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/v1/messages")
	s.mu.Lock()
	if messages {
		x.N = s.n
		s.n++
	}
	s.exchanges = append(s.exchanges, x)
	s.mu.Unlock()
	defer func() { s.note(func() { x.Done = time.Now() }) }()
	p := &player{s: s, x: x, w: w, rc: http.NewResponseController(w), r: r}
	switch {
	case messages:
		p.messages()
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/v1/messages/count_tokens"):
		p.countTokens()
	case r.Method == http.MethodHead:
		// Some clients look first whether anybody is there.
		p.status(http.StatusOK)
	default:
		p.refuse(http.StatusNotFound, "not_found_error", "there is nothing at "+r.Method+" "+r.URL.Path)
	}
}

// note changes an exchange under the lock.
func (s *Server) note(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// read reads and checks the request. It reports whether there is one to
// answer; if not, it has refused it.
func (p *player) read(counting bool) bool {
	s := p.s
	p.rc.SetReadDeadline(time.Now().Add(s.opts.Patience))
	body, err := io.ReadAll(io.LimitReader(p.r.Body, s.opts.MaxBody+1))
	p.rc.SetReadDeadline(time.Time{})
	switch {
	case err != nil:
		s.note(func() { p.x.Left = true })
		return false
	case int64(len(body)) > s.opts.MaxBody:
		p.refuse(http.StatusRequestEntityTooLarge, "request_too_large", fmt.Sprintf("the request exceeds the maximum of %d bytes", s.opts.MaxBody))
		return false
	}
	if !s.opts.Forget {
		s.note(func() { p.x.Body = body })
	}
	if k := s.opts.Key; k != "" && p.r.Header.Get("x-api-key") != k && p.r.Header.Get("authorization") != "Bearer "+k {
		p.refuse(http.StatusUnauthorized, "authentication_error", "the credential is not valid")
		return false
	}
	req, err := ParseRequest(body)
	if err != nil {
		var shape *errShape
		v := Violation{"body", err.Error()}
		if errors.As(err, &shape) {
			v = Violation{shape.path, shape.message}
		}
		s.note(func() { p.x.Violations = []Violation{v} })
		p.refuse(http.StatusBadRequest, "invalid_request_error", v.String())
		return false
	}
	req.N, req.Header = p.x.N, p.r.Header
	if counting {
		req.MaxTokens = max(req.MaxTokens, req.Thinking.Budget+1)
	}
	bad := req.Check(&s.memory)
	if p.r.Header.Get("anthropic-version") == "" {
		bad = append([]Violation{{"anthropic-version", "the header is required"}}, bad...)
	}
	s.note(func() {
		p.x.Violations = bad
		if !s.opts.Forget {
			p.x.Request = req
		}
	})
	if len(bad) > 0 && !s.opts.Lenient {
		p.refuse(http.StatusBadRequest, "invalid_request_error", bad[0].String())
		return false
	}
	p.req = req
	return true
}

func (p *player) countTokens() {
	if !p.read(true) {
		return
	}
	p.w.Header().Set("content-type", "application/json")
	p.status(http.StatusOK)
	fmt.Fprintf(p.w, `{"input_tokens":%d}`, tokens(p.req))
}

func (p *player) messages() {
	if !p.read(false) {
		return
	}
	s := p.s
	p.plan = s.cache.plan(p.req)
	if n := p.plan.usage.Total(); s.opts.Window > 0 && n > s.opts.Window {
		// The words are a token of the protocol: clients look for them.
		p.refuse(http.StatusBadRequest, "invalid_request_error", fmt.Sprintf("prompt is too long: %d tokens > %d maximum", n, s.opts.Window))
		return
	}
	script, err := s.opts.Brain(p.r.Context(), p.req)
	if err != nil {
		s.note(func() { p.x.Violations = append(p.x.Violations, Violation{"script", err.Error()}) })
		p.refuse(http.StatusBadRequest, "invalid_request_error", "offline model: "+err.Error())
		return
	}
	p.play(script.Steps)
}

// refuse answers with an error of the API's shape.
func (p *player) refuse(code int, typ, message string) {
	h := p.w.Header()
	h.Set("content-type", "application/json")
	h.Set("request-id", p.id("req"))
	p.status(code)
	body, _ := encode(apiError{"error", apiDetail{typ, message}, p.id("req")})
	p.w.Write(body)
}

type apiError struct {
	Type      string    `json:"type"`
	Error     apiDetail `json:"error"`
	RequestID string    `json:"request_id,omitempty"`
}

type apiDetail struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// status sends the headers, once.
func (p *player) status(code int) {
	p.s.note(func() { p.x.Status = code })
	p.w.WriteHeader(code)
}

// id names the exchange: the same request of the same server always has the same.
func (p *player) id(prefix string) string {
	if p.s.opts.Seed != "" {
		prefix += "_" + p.s.opts.Seed
	}
	return fmt.Sprintf("%s_%06d", prefix, p.x.N+1)
}

// errorType is the API's word for an HTTP status.
func errorType(code int) string {
	switch code {
	case 401:
		return "authentication_error"
	case 402:
		return "billing_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	case 504:
		return "timeout_error"
	case 529:
		return "overloaded_error"
	}
	if code < 500 {
		return "invalid_request_error"
	}
	return "api_error"
}

// errorStatus is the HTTP status for the API's word.
func errorStatus(typ string) int {
	for _, code := range []int{401, 402, 403, 404, 413, 429, 504, 529, 400} {
		if errorType(code) == typ {
			return code
		}
	}
	return 500
}

// raw is v as JSON; v is always something that has one.
func raw(v any) json.RawMessage {
	b, err := encode(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}
