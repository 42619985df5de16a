package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/net/egress/mask"
	"github.com/seed-eb844fcb/cinch/internal/net/ledger"
)

// idleTime is how long an opened connection may be without a request.
const idleTime = 10 * time.Minute

// unseal joins a command with a host that a credential is for: it ends the
// command's TLS here, exchanges stand-ins in each request, and speaks TLS of
// its own to the host. What does not begin like TLS, names another host or
// speaks no HTTP/1.1 is carried as it is: the stand-in then stays what it is.
func (p *Proxy) unseal(ctx context.Context, down, up net.Conn, t Target, c *Call, br *bufio.Reader, e *ledger.Entry, swap *mask.Swap) {
	var src io.Reader = down
	if br != nil {
		src = br
	}
	g, err := greet(src)
	if err == nil {
		err = p.named(g, t, c)
	}
	if !g.tls || err != nil || !p.ours(g, t) {
		p.carry(down, up, br, e, func(io.Reader) ([]byte, error) { return g.bytes, err })
		return
	}
	o := &unsealed{p: p, t: t, c: c, swap: swap, first: up}
	defer func() {
		_ = up.Close()
		e.End(func(x *ledger.Contact) {
			x.Sent, x.Received, x.Secrets, x.Status = o.sent.Load(), o.received.Load(), o.used.list(), int(o.status.Load())
			if f, _ := o.failure.Load().(string); f != "" {
				x.Err = f
			}
		})
	}()
	cert, err := p.o.Authority.For(t.Host)
	if err != nil {
		o.failure.Store(err.Error())
		return
	}
	inside := tls.Server(&again{down, io.MultiReader(strings.NewReader(string(g.bytes)), src)}, &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*cert}, NextProtos: []string{"http/1.1"},
	})
	hctx, cancel := context.WithTimeout(ctx, greetTime)
	err = inside.HandshakeContext(hctx)
	cancel()
	if err != nil {
		o.failure.Store("the command does not take our certificate: " + err.Error())
		return
	}
	o.serve(inside)
}

// ours reports whether a connection that begins with g is one to open.
func (p *Proxy) ours(g greeting, t Target) bool {
	if g.name == "" && !t.addr.IsValid() {
		return false
	}
	if g.name != "" {
		if inner, err := NewTarget(g.name, t.Port); err != nil || inner.Host != t.Host {
			return false
		}
	}
	return len(g.alpn) == 0 || slices.Contains(g.alpn, "http/1.1")
}

// again is a connection of which the beginning was read.
type again struct {
	net.Conn
	r io.Reader
}

func (a *again) Read(b []byte) (int, error) { return a.r.Read(b) }

// An unsealed is a connection whose TLS ends here.
type unsealed struct {
	p    *Proxy
	t    Target
	c    *Call
	swap *mask.Swap

	mu    sync.Mutex
	first net.Conn // connected already, for the first request

	sent, received, status atomic.Int64
	failure                atomic.Value // string
	used                   names
}

// serve answers requests until the command closes the connection.
func (o *unsealed) serve(conn net.Conn) {
	up := &http.Transport{
		DialTLSContext: o.dial, DisableCompression: true, MaxIdleConnsPerHost: 1, IdleConnTimeout: idleTime,
		ResponseHeaderTimeout: askLimit, ExpectContinueTimeout: time.Second,
	}
	defer up.CloseIdleConnections()
	quiet := log.New(io.Discard, "", 0)
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.URL.RawQuery, r.Out.Host = "https", o.t.String(), r.In.URL.RawQuery, r.In.Host
			for _, h := range [...]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if v, ok := r.In.Header[h]; ok {
					r.Out.Header[h] = v // the command's own
				}
			}
			o.used.add(o.swap.Request(r.Out, func(n string) { o.used.add(n) })...)
		},
		ModifyResponse: func(resp *http.Response) error {
			o.status.Store(int64(resp.StatusCode))
			o.swap.Response(resp)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			o.failure.Store(err.Error())
			code := http.StatusBadGateway
			if r, ok := errors.AsType[*refusal](err); ok {
				o.c.refuse(r.text)
				code = http.StatusForbidden
			}
			w.Header().Set("X-Cinch-Sandbox", "refused")
			http.Error(w, "cinch sandbox: "+err.Error(), code)
		},
		Transport: up, FlushInterval: -1, ErrorLog: quiet,
	}
	srv := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if h, err := targetOf(r.Host, o.t.Port); err != nil || h.Host != o.t.Host || h.Port != o.t.Port {
				// One host's credential must not reach another behind the same front.
				http.Error(w, fmt.Sprintf("cinch sandbox: this connection is to %s, not to %q", o.t, r.Host), http.StatusMisdirectedRequest)
				return
			}
			forward.ServeHTTP(w, r)
		}),
		ErrorLog: quiet, ReadHeaderTimeout: idleTime, IdleTimeout: idleTime,
	}
	_ = srv.Serve(newSingle(conn)) // always net.ErrClosed, when the connection is
}

// dial connects to the host and greets it. What was connected to already is
// used first.
func (o *unsealed) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	o.mu.Lock()
	conn := o.first
	o.first = nil
	o.mu.Unlock()
	if conn == nil {
		if _, err := o.p.decide(ctx, o.t); err != nil { // the rules may be others by now
			return nil, err
		}
		var err error
		if conn, err = o.p.dial(ctx, o.t); err != nil {
			return nil, err
		}
	}
	tc := tls.Client(&counter{conn, &o.sent, &o.received}, o.p.o.TLS(o.t.Host))
	ctx, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	if err := tc.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("the TLS connection to %s: %w", o.t, err)
	}
	return tc, nil
}

// A single is a listener for one connection that is there already.
type single struct {
	conns  chan net.Conn
	closed chan struct{} // when the connection is
	once   sync.Once
	addr   net.Addr
}

func newSingle(conn net.Conn) *single {
	s := &single{conns: make(chan net.Conn, 1), closed: make(chan struct{}), addr: conn.LocalAddr()}
	s.conns <- &lone{conn, s}
	return s
}

func (s *single) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *single) Close() error   { return nil }
func (s *single) Addr() net.Addr { return s.addr }

// A lone connection tells its listener when it is closed.
type lone struct {
	net.Conn
	s *single
}

func (l *lone) Close() error {
	err := l.Conn.Close()
	l.s.once.Do(func() { close(l.s.closed) })
	return err
}

// names are names that were used, each once. It may be used concurrently.
type names struct {
	mu   sync.Mutex
	seen []string
}

func (n *names) add(list ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range list {
		if !slices.Contains(n.seen, s) {
			n.seen = append(n.seen, s)
		}
	}
}

func (n *names) list() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(slices.Values(n.seen))
}
