package dial

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/net/ledger"
)

// A transport applies the rules of one Use to every request, redirects
// included, and keeps its connections.
type transport struct {
	d    *Dialer
	u    Use
	seq  atomic.Int64
	rest clock
	// Connections without TLS must not pay for loading certificates, so there
	// are two base transports, each made when it is needed.
	plain, secure func() *http.Transport
	made          [2]atomic.Pointer[http.Transport]
	forward       bool // see Dialer.Forward
}

// A route is how one request goes out. It travels in the request's context
// to the proxy and dial functions of the base transport.
type route struct{ proxy *proxy }

type routeKey struct{}

func newTransport(d *Dialer, u Use) *transport {
	t := &transport{d: d, u: u}
	for i, f := range []*func() *http.Transport{&t.plain, &t.secure} {
		*f = sync.OnceValue(func() *http.Transport {
			b := t.make(i == 1)
			t.made[i].Store(b)
			return b
		})
	}
	return t
}

func (t *transport) make(secure bool) *http.Transport {
	base := &http.Transport{
		Proxy: func(req *http.Request) (*url.URL, error) {
			if r, _ := req.Context().Value(routeKey{}).(route); r.proxy != nil {
				return r.proxy.url, nil
			}
			return nil, nil
		},
		OnProxyConnectResponse: func(_ context.Context, proxy *url.URL, _ *http.Request, resp *http.Response) error {
			if resp.StatusCode != http.StatusOK {
				return &ProxyError{proxy.Host, resp.StatusCode, resp.Status}
			}
			return nil
		},
		DialContext:           t.dial,
		TLSHandshakeTimeout:   t.d.o.Handshake,
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       90 * time.Second,
		DisableKeepAlives:     t.forward,
		DisableCompression:    t.forward,
		ExpectContinueTimeout: time.Second,
		// A connection that went dead while it was idle or while the machine
		// slept is found by these pings.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
	}
	if secure {
		base.TLSClientConfig = t.d.tlsConfig()
		base.ForceAttemptHTTP2 = !t.u.HTTP1
		if t.u.HTTP1 {
			base.TLSClientConfig.NextProtos = []string{"http/1.1"}
		}
	}
	return base
}

// dial connects to a server or to the proxy in front of it.
func (t *transport) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if r, _ := ctx.Value(routeKey{}).(route); r.proxy != nil && addr == r.proxy.url.Host {
		return t.d.netDialer.DialContext(ctx, network, addr)
	}
	return t.d.direct(ctx, t.u, network, addr)
}

// CloseIdleConnections is what http.Client.CloseIdleConnections calls.
func (t *transport) CloseIdleConnections() {
	for i := range t.made {
		if b := t.made[i].Load(); b != nil {
			b.CloseIdleConnections()
		}
	}
}

// RoundTrip sends one request.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	host, port := req.URL.Hostname(), req.URL.Port()
	if port == "" {
		if port = "443"; req.URL.Scheme == "http" {
			port = "80"
		}
	}
	c := ledger.Contact{At: time.Now(), Host: net.JoinHostPort(host, port), Why: t.u.why(), Call: agent.CallOf(req.Context())}
	if s, _ := req.Context().Value(spanKey{}).(*Span); s != nil {
		c.Boundary = s.id
	}
	fail := func(err error) (*http.Response, error) {
		if req.Body != nil {
			req.Body.Close()
		}
		c.By, c.Err = deniedBy(err), err.Error()
		t.book().Refuse(c)
		return nil, err
	}
	if err := t.d.checkHost(t.u, host, port); err != nil {
		return fail(err)
	}
	p, _ := t.d.proxies.choose(req.URL)
	if p != nil {
		if err := t.d.screen(req.Context(), t.u, host, port); err != nil {
			return fail(err)
		}
		c.Proxy = p.url.Host
	}
	ctx := context.WithValue(req.Context(), routeKey{}, route{p})
	var own *Span
	if t.u.Record != nil {
		id := t.u.why() + "/" + strconv.FormatInt(t.seq.Add(1), 10)
		c.Boundary = id
		ctx, own = Watch(ctx, id, t.u.why(), 1, t.u.Record)
		own.via(c.Host, c.Proxy)
	}
	if s, _ := req.Context().Value(spanKey{}).(*Span); s != nil {
		s.via(c.Host, c.Proxy)
	}
	if t.rest.slept() {
		t.CloseIdleConnections()
	}
	base := t.plain
	if req.URL.Scheme != "http" || p != nil && p.url.Scheme == "https" {
		base = t.secure
	}
	e := t.book().Begin(c)
	resp, err := base().RoundTrip(req.WithContext(ctx))
	if err == nil && p != nil && resp.StatusCode == http.StatusProxyAuthRequired {
		resp.Body.Close()
		resp, err = nil, &ProxyError{p.url.Host, resp.StatusCode, resp.Status}
	}
	if own != nil {
		if err != nil {
			own.Fail(err, req.Context().Err() != nil)
		} else {
			own.Done(resp)
		}
	}
	sent := max(0, req.ContentLength)
	if err != nil {
		e.End(func(c *ledger.Contact) {
			c.Err = Explain(err).Text
			if errors.Is(err, ErrDenied) {
				c.Verdict, c.By = ledger.Denied, deniedBy(err)
			}
		})
		return nil, err
	}
	resp.Request = req
	status := resp.StatusCode
	b := &body{ReadCloser: resp.Body, entry: e, status: status}
	b.sent.Store(sent)
	if conn, ok := resp.Body.(io.Writer); ok && status == http.StatusSwitchingProtocols {
		resp.Body = &upgraded{b, conn}
		return resp, nil
	}
	resp.Body = b
	return resp, nil
}

// book is where exchanges are taken down.
func (t *transport) book() *ledger.Book {
	if t.u.Unrecorded {
		return nil
	}
	return t.d.o.Ledger
}

// A body counts what is read from it and tells the ledger when it is over.
type body struct {
	io.ReadCloser
	entry  *ledger.Entry
	status int
	n      atomic.Int64
	sent   atomic.Int64
	once   sync.Once
}

// An upgraded body is the connection itself: it stays writable.
type upgraded struct {
	*body
	conn io.Writer
}

func (u *upgraded) Write(p []byte) (int, error) {
	n, err := u.conn.Write(p)
	u.sent.Add(int64(n))
	return n, err
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	if err != nil {
		b.end()
	}
	return n, err
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}

func (b *body) end() {
	b.once.Do(func() {
		b.entry.End(func(c *ledger.Contact) { c.Status, c.Sent, c.Received = b.status, b.sent.Load(), b.n.Load() })
	})
}

// A clock notices that the machine slept between two looks at it: the wall
// clock went on while the monotonic one stood still.
type clock struct {
	mu   sync.Mutex
	last time.Time
}

// nap is how far the two clocks may drift apart before connections are
// thought to be dead.
const nap = 30 * time.Second

func (c *clock) slept() bool {
	now := time.Now()
	c.mu.Lock()
	last := c.last
	c.last = now
	c.mu.Unlock()
	return !last.IsZero() && apart(now.Round(0).Sub(last.Round(0)), now.Sub(last))
}

func apart(wall, monotonic time.Duration) bool { return wall-monotonic > nap }

// A ProxyError is the refusal of a proxy to connect.
type ProxyError struct {
	Proxy      string // host:port
	StatusCode int
	Status     string
}

func (e *ProxyError) Error() string { return "proxy " + e.Proxy + " answered " + e.Status }

// Tunnel connects to addr (host:port) under the rules of u, through the proxy
// that an https URL would take. It is for protocols that are not HTTP. The
// caller closes the connection; ctx bounds the connecting only.
func (d *Dialer) Tunnel(ctx context.Context, u Use, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	p, _ := d.proxies.choose(&url.URL{Scheme: "https", Host: addr})
	if p == nil {
		return d.direct(ctx, u, "tcp", addr)
	}
	if err := d.checkHost(u, host, port); err != nil {
		return nil, err
	}
	if err := d.screen(ctx, u, host, port); err != nil {
		return nil, err
	}
	conn, err := d.netDialer.DialContext(ctx, "tcp", p.url.Host)
	if err != nil {
		return nil, &net.OpError{Op: "proxyconnect", Net: "tcp", Err: err}
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	if p.url.Scheme == "socks5" || p.url.Scheme == "socks5h" {
		conn, err = socks(conn, p.url, host, port)
	} else {
		conn, err = d.connect(ctx, conn, p.url, addr)
	}
	if !stop() && err == nil {
		conn.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// connect asks a proxy for a tunnel. It closes conn on errors.
func (d *Dialer) connect(ctx context.Context, conn net.Conn, proxy *url.URL, addr string) (net.Conn, error) {
	if proxy.Scheme == "https" {
		c := d.tlsConfig()
		c.ServerName, c.NextProtos = proxy.Hostname(), []string{"http/1.1"}
		tc := tls.Client(conn, c)
		if err := tc.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, &net.OpError{Op: "proxyconnect", Net: "tcp", Err: err}
		}
		conn = tc
	}
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: addr}, Host: addr, Header: http.Header{}}
	if u := proxy.User; u != nil {
		password, _ := u.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	if err := req.Write(conn); err != nil {
		conn.Close()
		return nil, err
	}
	br := bufio.NewReader(conn)
	resp, err := http.ReadResponse(br, req)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = &ProxyError{proxy.Host, resp.StatusCode, resp.Status}
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	if br.Buffered() > 0 { // a server that speaks first, as SSH does
		return &ahead{conn, br}, nil
	}
	return conn, nil
}

// ahead is a connection of which something has been read already.
type ahead struct {
	net.Conn
	r *bufio.Reader
}

func (a *ahead) Read(b []byte) (int, error) { return a.r.Read(b) }

// CloseWrite tells the other side that nothing more comes.
func (a *ahead) CloseWrite() error {
	if c, ok := a.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return a.Conn.Close()
}
