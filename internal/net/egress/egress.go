// Package egress is the proxy through which confined commands reach the
// network: one port that speaks CONNECT, plain HTTP and SOCKS5.
//
// It owns the domain rules, the decision about each connection, the question
// about a host nobody has spoken of, and the list of what was refused. Names
// are resolved here, once, and the connection is made to an address that was
// judged. It does not know the sandbox: it is handed listening sockets, and
// dials by a function, so that a corporate proxy can be on the way.
//
// Connections to a host that a masked credential is for are opened here, if
// there is an authority to sign with, and the stand-in becomes the real value
// on the way (packages mask and authority). All others pass as they are.
//
// What is not promised: what an allowed host does with what it gets, and that
// a host behind a shared front is the one that was named. The name in a TLS
// greeting is held to the rules, unless it is encrypted.
package egress

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
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

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/net/egress/authority"
	"github.com/seed-eb844fcb/cinch/internal/net/egress/mask"
	"github.com/seed-eb844fcb/cinch/internal/net/ledger"
)

// Clocks.
const (
	greetTime = 30 * time.Second // from the connection to what it wants
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
	// Only, if not nil, refuses hosts whatever the rules say; it is asked first.
	Only func(t Target) error
	// Dial connects to address, HOST:PORT. It must call check with every
	// address it is about to connect to, and obey its error. Nil connects
	// directly.
	Dial func(ctx context.Context, address string, check func(netip.AddrPort) error) (net.Conn, error)
	// Web, if not nil, returns a way to send requests without TLS on, other than by
	// Dial; check is as there. A corporate proxy may tunnel to no port but 443.
	Web func(check func(host string, at netip.AddrPort) error) http.RoundTripper
	// Via returns the proxy that is on the way to t, for the ledger. May be nil.
	Via func(t Target) string
	// Ledger takes every connection down; nil keeps none.
	Ledger *ledger.Book

	// Secrets returns those that are put in where they are for a host; nil has
	// none. Over TLS that needs Authority, which signs for the host, and TLS,
	// the configuration by which the host itself is connected to.
	Secrets   func() *mask.Set
	Authority *authority.Authority
	TLS       func(host string) *tls.Config
}

// A Proxy serves the commands of one session.
type Proxy struct {
	o     Options
	token string
	web   http.RoundTripper

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
	if o.Web != nil {
		p.web = o.Web(p.checkAddr)
		return p
	}
	p.web = &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return p.o.Dial(ctx, address, func(at netip.AddrPort) error { return p.checkAddr(host, at) })
		},
		DisableKeepAlives: true, DisableCompression: true,
	}
	return p
}

// checkAddr judges the address that a host's name has led to.
func (p *Proxy) checkAddr(host string, at netip.AddrPort) error {
	t, err := NewTarget(host, at.Port())
	if err == nil {
		err = p.o.Rules().CheckAddr(t, at.Addr())
	}
	if err != nil {
		return &refusal{err.Error(), "address"}
	}
	return nil
}

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

// A Call is one command, for attribution. The zero value has no name.
type Call struct {
	ID      agent.CallID
	Command string

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
		up, e, err := p.connect(ctx, t, c)
		if err != nil {
			return
		}
		p.join(ctx, conn, up, t, c, nil, e)
	})
}

// Pass connects what it accepts from l to a loopback port of the machine, at
// which a proxy of somebody else's is. What passes there is that one's to
// judge; the ledger says so.
func (p *Proxy) Pass(l net.Listener, port uint16, c *Call) {
	p.accept(l, func(ctx context.Context, conn net.Conn) {
		t := Target{Host: "localhost", Port: port}
		e := p.o.Ledger.Begin(p.contact(t, c, "another proxy"))
		dctx, cancel := context.WithTimeout(ctx, dialing)
		defer cancel()
		up, err := new(net.Dialer).DialContext(dctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
		if err != nil {
			e.End(func(x *ledger.Contact) { x.Err = err.Error() })
			return
		}
		p.splice(conn, up, nil, e)
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

// swap is the exchange of credentials on the way to t, nil if there is none.
func (p *Proxy) swap(t Target, secure bool) *mask.Swap {
	if p.o.Secrets == nil || secure && p.o.Authority == nil {
		return nil
	}
	return p.o.Secrets().Swap(t.Host, t.Port, secure)
}

// authorized compares a password with the token in constant time.
func (p *Proxy) authorized(password string) bool {
	return subtle.ConstantTimeCompare([]byte(password), []byte(p.token)) == 1
}

// A refusal is an error that the command's program gets to read.
type refusal struct{ text, by string }

func (r *refusal) Error() string { return r.text }

// decide judges t, asking if need be. It returns what allowed it.
func (p *Proxy) decide(ctx context.Context, t Target) (string, error) {
	if p.o.Only != nil {
		if err := p.o.Only(t); err != nil {
			return "", &refusal{t.String() + " is not allowed: " + err.Error(), "--net"}
		}
	}
	rules := p.o.Rules()
	v, by := rules.Decide(t)
	switch v {
	case Allowed:
		return by, nil
	case Denied:
		if by != "" {
			return "", &refusal{fmt.Sprintf("%s is denied by the rule %q in sandbox.network.deniedDomains", t, by), by}
		}
	case Unknown:
		ok, err := p.ask(ctx, t)
		if ok {
			return "answer", nil
		}
		if err != nil && !errors.Is(err, errNobody) {
			return "", &refusal{fmt.Sprintf("%s is not allowed: %v", t, err), "no rule"}
		}
		if err == nil {
			return "", &refusal{fmt.Sprintf("%s is not allowed: the user said no", t), "answer"}
		}
	}
	return "", &refusal{fmt.Sprintf("%s is not allowed: no rule allows it; to allow it, add %q to sandbox.network.allowedDomains", t, t.Rule()), "no rule"}
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

// contact is what the ledger gets to know of a connection.
func (p *Proxy) contact(t Target, c *Call, by string) ledger.Contact {
	x := ledger.Contact{Why: "command", Host: t.String(), Call: c.ID, Command: c.Command, By: by}
	if p.o.Via != nil {
		x.Proxy = p.o.Via(t)
	}
	return x
}

// admit judges t. What is refused is noted in c.
func (p *Proxy) admit(ctx context.Context, t Target, c *Call) (*ledger.Entry, error) {
	by, err := p.decide(ctx, t)
	if err != nil {
		x := p.contact(t, c, "")
		if r, ok := errors.AsType[*refusal](err); ok {
			x.By = r.by
		}
		x.Err = err.Error()
		p.o.Ledger.Refuse(x)
		c.refuse(err.Error())
		return nil, err
	}
	return p.o.Ledger.Begin(p.contact(t, c, by)), nil
}

// connect judges t and connects to it. The entry is the caller's to end,
// unless there is an error.
func (p *Proxy) connect(ctx context.Context, t Target, c *Call) (net.Conn, *ledger.Entry, error) {
	e, err := p.admit(ctx, t, c)
	if err != nil {
		return nil, nil, err
	}
	conn, err := p.dial(ctx, t)
	if err != nil {
		err = p.failed(e, t, c, err)
	}
	return conn, e, err
}

// dial connects to t, at addresses that are judged.
func (p *Proxy) dial(ctx context.Context, t Target) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialing)
	defer cancel()
	return p.o.Dial(ctx, t.String(), func(at netip.AddrPort) error { return p.checkAddr(t.Host, at) })
}

// failed ends e, of a connection that did not come about, and returns the
// error that the command gets.
func (p *Proxy) failed(e *ledger.Entry, t Target, c *Call, err error) error {
	r, refused := errors.AsType[*refusal](err)
	if refused {
		c.refuse(r.text)
		err = r
	} else {
		err = fmt.Errorf("connecting to %s: %w", t, err)
	}
	e.End(func(x *ledger.Contact) {
		x.Err = err.Error()
		if refused {
			x.Verdict, x.By = ledger.Denied, r.by
		}
	})
	return err
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
