// Package egress is the proxy through which confined commands reach the
// network: one port that speaks CONNECT, plain HTTP and SOCKS5.
//
// It owns the domain rules, the decision about each connection, the question
// about a host nobody has spoken of, and the list of what was refused. Names
// are resolved here, once, and the connection is made to an address that was
// judged. It does not know the sandbox: it is handed listening sockets, and
// dials by a function, so that a corporate proxy can be on the way.
//
// What is not promised: what an allowed host does with what it gets, and that
// a host behind a shared front is the one that was named. The name in a TLS
// greeting is held to the rules, unless it is encrypted.
package egress

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Clocks.
const (
	greeting  = 30 * time.Second // from the connection to what it wants
	dialing   = 40 * time.Second
	askLimit  = 10 * time.Minute // for a person to answer
	drainTime = 10 * time.Second // for what is left after one side is done
)

// Options configure a Proxy. Functions may be called concurrently.
type Options struct {
	// Rules returns the rules in force now. Required.
	Rules func() Rules
	// Ask, if not nil, is asked about a host that no rule speaks of; at most
	// one question per target is open at a time. An answer holds for the
	// session. Nil refuses.
	Ask func(ctx context.Context, t Target) (bool, error)
	// Dial connects to address, HOST:PORT. It must call check with every
	// address it is about to connect to, and obey its error. Nil connects
	// directly.
	Dial func(ctx context.Context, address string, check func(netip.AddrPort) error) (net.Conn, error)
	// Record, if not nil, is told of every connection when it is over.
	Record func(Contact)
}

// A Contact is one connection, or the refusal of one.
type Contact struct {
	At             time.Time
	Target         string
	Call           string // what the command was
	Verdict        Verdict
	Rule           string // that decided, or ""
	Sent, Received int64
	Err            string
}

// A Proxy serves the commands of one session.
type Proxy struct {
	o     Options
	token string
	web   *http.Transport

	mu      sync.Mutex
	answers map[string]bool    // of Ask, by target
	open    map[string]*flight // questions under way
}

// A flight is a question that several connections wait for.
type flight struct {
	done chan struct{}
	ok   bool
}

// New returns a Proxy with a token of its own.
func New(o Options) *Proxy {
	var b [16]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	p := &Proxy{o: o, token: hex.EncodeToString(b[:]), answers: map[string]bool{}, open: map[string]*flight{}}
	if p.o.Dial == nil {
		p.o.Dial = direct
	}
	p.web = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return ctx.Value(connKey{}).(net.Conn), nil
		},
		DisableKeepAlives: true, DisableCompression: true, ResponseHeaderTimeout: askLimit,
	}
	return p
}

type connKey struct{}

// direct connects without a proxy, address by address.
func direct(ctx context.Context, address string, check func(netip.AddrPort) error) (net.Conn, error) {
	d := net.Dialer{ControlContext: func(_ context.Context, _, at string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(at)
		if err != nil {
			return err
		}
		return check(ap)
	}}
	return d.DialContext(ctx, "tcp", address)
}

// Environ are the variables by which programs find the proxy at address. Where
// localhost is a host outside, by the rules, it is reached through the proxy
// like any other.
func (p *Proxy) Environ(address string) []string {
	web := "http://cinch:" + p.token + "@" + address
	socks := "socks5h://cinch:" + p.token + "@" + address
	none := "localhost,127.0.0.1,::1"
	if any, _ := p.o.Rules().Loopback(); any {
		none = ""
	}
	host, port, _ := net.SplitHostPort(address)
	return []string{
		"HTTP_PROXY=" + web, "HTTPS_PROXY=" + web, "http_proxy=" + web, "https_proxy=" + web,
		"ALL_PROXY=" + socks, "all_proxy=" + socks, "NO_PROXY=" + none, "no_proxy=" + none,
		"GRPC_PROXY=" + web, "grpc_proxy=" + web, "FTP_PROXY=" + web, "ftp_proxy=" + web, "RSYNC_PROXY=cinch:" + p.token + "@" + address,
		"CLOUDSDK_PROXY_TYPE=http", "CLOUDSDK_PROXY_ADDRESS=" + host, "CLOUDSDK_PROXY_PORT=" + port,
		"CLOUDSDK_PROXY_USERNAME=cinch", "CLOUDSDK_PROXY_PASSWORD=" + p.token,
		"NODE_USE_ENV_PROXY=1",
	}
}

// A Call is one command, for attribution. The zero value has no name.
type Call struct {
	Name string

	mu      sync.Mutex
	refused []string
}

// Refused lists what was refused to the command, each once, for the model.
func (c *Call) Refused() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.refused)
}

func (c *Call) refuse(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.refused) < 50 && !slices.Contains(c.refused, text) {
		c.refused = append(c.refused, text)
	}
}

// Serve accepts connections of c from l until l is closed, then ends those
// that are left and returns.
func (p *Proxy) Serve(l net.Listener, c *Call) {
	p.accept(l, func(ctx context.Context, conn net.Conn) { p.handle(ctx, conn, c) })
}

// Forward connects what it accepts from l to a loopback port of the machine,
// if the rules allow that one.
func (p *Proxy) Forward(l net.Listener, port uint16, c *Call) {
	p.accept(l, func(ctx context.Context, conn net.Conn) {
		t := Target{Host: "localhost", Port: port}
		up, err := p.connect(ctx, t, c)
		if err != nil {
			return
		}
		p.join(conn, up, t, c, nil)
	})
}

func (p *Proxy) accept(l net.Listener, handle func(context.Context, net.Conn)) {
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	for {
		conn, err := l.Accept()
		if err != nil {
			if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
				continue
			}
			break
		}
		work.Go(func() {
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer stop()
			defer func() { _ = conn.Close() }()
			handle(ctx, conn)
		})
	}
	cancel()
	work.Wait()
}

// authorized compares a password with the token in constant time.
func (p *Proxy) authorized(password string) bool {
	return subtle.ConstantTimeCompare([]byte(password), []byte(p.token)) == 1
}

// A refusal is an error that the command's program gets to read.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

// decide judges t, asking if need be.
func (p *Proxy) decide(ctx context.Context, t Target, c *Call) (string, error) {
	rules := p.o.Rules()
	v, by := rules.Decide(t)
	switch v {
	case Allowed:
		return by, nil
	case Denied:
		if by != "" {
			return by, &refusal{fmt.Sprintf("%s is denied by the rule %q in sandbox.network.deniedDomains", t, by)}
		}
	case Unknown:
		ok, err := p.ask(ctx, t)
		if ok {
			return "answer", nil
		}
		if err != nil && !errors.Is(err, errNobody) {
			return "", &refusal{fmt.Sprintf("%s is not allowed: %v", t, err)}
		}
		if err == nil {
			return "answer", &refusal{fmt.Sprintf("%s is not allowed: the user said no", t)}
		}
	}
	hint := t.Host
	if t.addr.Is6() {
		hint = "[" + t.Host + "]"
	}
	if t.Host == "localhost" || t.addr.IsLoopback() {
		hint += ":" + strconv.Itoa(int(t.Port))
	}
	return "", &refusal{fmt.Sprintf("%s is not allowed: no rule allows it; to allow it, add %q to sandbox.network.allowedDomains", t, hint)}
}

var errNobody = errors.New("nobody can be asked")

// ask asks about t, once at a time, and remembers the answer.
func (p *Proxy) ask(ctx context.Context, t Target) (bool, error) {
	if p.o.Ask == nil {
		return false, errNobody
	}
	key := t.String()
	p.mu.Lock()
	if ok, known := p.answers[key]; known {
		p.mu.Unlock()
		return ok, nil
	}
	f := p.open[key]
	if f != nil {
		p.mu.Unlock()
		select {
		case <-f.done:
			return f.ok, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	f = &flight{done: make(chan struct{})}
	p.open[key] = f
	p.mu.Unlock()
	actx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	ok, err := p.o.Ask(actx, t)
	p.mu.Lock()
	f.ok = ok && err == nil
	if err == nil {
		p.answers[key] = ok
	}
	delete(p.open, key)
	p.mu.Unlock()
	close(f.done)
	return f.ok, err
}

// connect judges t and connects to it. What is refused is noted in c.
func (p *Proxy) connect(ctx context.Context, t Target, c *Call) (net.Conn, error) {
	by, err := p.decide(ctx, t, c)
	if err != nil {
		p.refused(t, c, by, err)
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialing)
	defer cancel()
	var bad error
	var mu sync.Mutex
	conn, err := p.o.Dial(ctx, t.String(), func(ap netip.AddrPort) error {
		if err := p.o.Rules().CheckAddr(t, ap.Addr()); err != nil {
			mu.Lock()
			bad = &refusal{err.Error()}
			mu.Unlock()
			return err
		}
		return nil
	})
	mu.Lock()
	defer mu.Unlock()
	switch {
	case err == nil:
		return conn, nil
	case bad != nil:
		p.refused(t, c, by, bad)
		return nil, bad
	}
	p.record(Contact{At: time.Now(), Target: t.String(), Call: c.Name, Verdict: Allowed, Rule: by, Err: err.Error()})
	return nil, fmt.Errorf("connecting to %s: %w", t, err)
}

func (p *Proxy) refused(t Target, c *Call, by string, err error) {
	c.refuse(err.Error())
	p.record(Contact{At: time.Now(), Target: t.String(), Call: c.Name, Verdict: Denied, Rule: by, Err: err.Error()})
}

func (p *Proxy) record(c Contact) {
	if p.o.Record != nil {
		p.o.Record(c)
	}
}

// listing joins refusals for a tool result.
func listing(refused []string) string {
	return "The sandbox refused network connections:\n- " + strings.Join(refused, "\n- ")
}

// Note says what was refused to c, for a tool result; "" if nothing was.
func (c *Call) Note() string {
	if r := c.Refused(); len(r) > 0 {
		return listing(r)
	}
	return ""
}
