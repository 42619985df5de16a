package dial

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// A Span watches one HTTP exchange and tells its boundaries: connect, TLS,
// request (until it is written) and first byte (until the headers are in).
// Every boundary has the attempt, the gateway (the host that was asked) and,
// if there is one, the proxy in its Detail; connect says whether a connection
// was reused.
type Span struct {
	id, name string
	attempt  int
	record   func(agent.Crossed)

	mu                         sync.Mutex
	gateway, proxy, addr       string
	asked, dns, dialed, joined time.Time
	lookup                     time.Duration
	tlsStart, tlsEnd           time.Time
	tlsState                   tls.ConnectionState
	got, wrote, first          time.Time
	over                       bool
	connected                  chan struct{}
}

type spanKey struct{}

// Watch returns a context whose one request is watched. record may be called
// from any goroutine until Done or Fail returns, and not afterwards. name
// says what the request is for.
func Watch(ctx context.Context, id, name string, attempt int, record func(agent.Crossed)) (context.Context, *Span) {
	s := &Span{id: id, name: name, attempt: attempt, record: record, asked: time.Now(), connected: make(chan struct{})}
	ctx = context.WithValue(ctx, spanKey{}, s)
	return httptrace.WithClientTrace(ctx, s.hooks()), s
}

// Connected is closed when the request has a connection.
func (s *Span) Connected() <-chan struct{} { return s.connected }

// hooks run on the goroutines of the transport. A dial that another request
// ends up using may outlive this one: over guards against it.
func (s *Span) hooks() *httptrace.ClientTrace {
	set := func(f func(now time.Time)) {
		now := time.Now()
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.over {
			f(now)
		}
	}
	return &httptrace.ClientTrace{
		GetConn: func(hostPort string) {
			set(func(time.Time) {
				if s.gateway == "" {
					s.gateway = hostPort
				}
			})
		},
		DNSStart: func(httptrace.DNSStartInfo) { set(func(now time.Time) { s.dns = now }) },
		DNSDone: func(httptrace.DNSDoneInfo) {
			set(func(now time.Time) { s.lookup = now.Sub(s.dns) })
		},
		ConnectStart: func(_, addr string) {
			set(func(now time.Time) {
				if s.addr = addr; s.dialed.IsZero() {
					s.dialed = now
				}
			})
		},
		ConnectDone: func(_, addr string, err error) {
			set(func(now time.Time) {
				if err == nil {
					s.joined, s.addr = now, addr
				}
			})
		},
		TLSHandshakeStart: func() { set(func(now time.Time) { s.tlsStart = now }) },
		TLSHandshakeDone: func(cs tls.ConnectionState, err error) {
			set(func(now time.Time) {
				if err == nil {
					s.tlsEnd, s.tlsState = now, cs
				}
			})
		},
		GotConn: s.gotConn,
		WroteRequest: func(i httptrace.WroteRequestInfo) {
			set(func(now time.Time) {
				if i.Err == nil {
					s.wrote = now
				}
			})
		},
		GotFirstResponseByte: func() { set(func(now time.Time) { s.first = now }) },
	}
}

// gotConn tells how the connection came about. It runs again when the
// transport repeats a request on a connection that turned out to be dead.
func (s *Span) gotConn(i httptrace.GotConnInfo) {
	now := time.Now()
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return
	}
	again := !s.got.IsZero()
	s.got = now
	s.wrote, s.first = time.Time{}, time.Time{}
	var told []agent.Crossed
	if i.Reused {
		c := s.crossing("connect", now, now)
		c.Detail["reused"] = "true"
		if i.WasIdle {
			c.Detail["idle"] = ms(i.IdleTime)
		}
		told = append(told, c)
	} else {
		start, end := s.dialed, s.joined
		if start.IsZero() || end.IsZero() { // a dial function that is not watched, or another request's dial
			start, end = s.asked, now
		}
		if s.lookup > 0 {
			start = start.Add(-s.lookup)
		}
		c := s.crossing("connect", start, end)
		if s.lookup > 0 {
			c.Detail["dns"] = ms(s.lookup)
		}
		told = append(told, c)
		if !s.tlsEnd.IsZero() {
			c := s.crossing("TLS", s.tlsStart, s.tlsEnd)
			c.Detail["version"] = tls.VersionName(s.tlsState.Version)
			c.Detail["proto"] = s.tlsState.NegotiatedProtocol
			told = append(told, c)
		}
	}
	s.mu.Unlock()
	for _, c := range told {
		s.record(c)
	}
	if !again {
		close(s.connected)
	}
}

// Done tells the rest of the boundaries when the headers of resp are in.
func (s *Span) Done(resp *http.Response) {
	now := time.Now()
	s.mu.Lock()
	wrote := s.wrote
	if wrote.IsZero() {
		wrote = now // the answer came before the request was out
	}
	first := s.first
	if first.IsZero() {
		first = now
	}
	req := s.crossing("request", s.got, wrote)
	head := s.crossing("first byte", wrote, first)
	head.Detail["status"] = strconv.Itoa(resp.StatusCode)
	head.Detail["proto"] = resp.Proto
	if id := RequestID(resp.Header); id != "" {
		head.Detail["request_id"] = id
	}
	s.over = true
	s.mu.Unlock()
	s.record(req)
	s.record(head)
}

// Fail tells the boundary at which the request stopped. canceled says that
// it was given up rather than failed.
func (s *Span) Fail(err error, canceled bool) {
	now := time.Now()
	s.mu.Lock()
	var c agent.Crossed
	switch {
	case s.over:
		s.mu.Unlock()
		return
	case !s.wrote.IsZero():
		c = s.crossing("first byte", s.wrote, now)
	case !s.got.IsZero():
		c = s.crossing("request", s.got, now)
	case !s.tlsStart.IsZero():
		c = s.crossing("TLS", s.tlsStart, now)
	default:
		c = s.crossing("connect", s.asked, now)
	}
	s.over = true
	s.mu.Unlock()
	c.Outcome = "error"
	if canceled {
		c.Outcome = "cancelled"
	}
	if err != nil {
		c.Detail["error"] = Explain(err).Text
	}
	s.record(c)
}

// via notes the host that is meant and the proxy that the transport chose.
func (s *Span) via(gateway, proxy string) {
	s.mu.Lock()
	s.gateway, s.proxy = gateway, proxy
	s.mu.Unlock()
}

// crossing makes a boundary; the caller holds mu.
func (s *Span) crossing(boundary string, start, end time.Time) agent.Crossed {
	c := agent.Crossed{
		ID: s.id, Boundary: boundary, Name: s.name, Start: start, End: end,
		Attempt: s.attempt, Outcome: "ok", Detail: map[string]string{},
	}
	for k, v := range map[string]string{"gateway": s.gateway, "proxy": s.proxy, "address": s.addr} {
		if v != "" {
			c.Detail[k] = v
		}
	}
	return c
}

func ms(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 1, 64) + "ms"
}

// RequestID is the name that the other side gave the request, under any of
// the headers in use for it.
func RequestID(h http.Header) string {
	for _, name := range []string{"Request-Id", "X-Request-Id", "X-Amzn-Requestid", "Apim-Request-Id"} {
		if v := h.Get(name); v != "" {
			return v
		}
	}
	return ""
}
