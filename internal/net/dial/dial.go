// Package dial makes every HTTP client of the program, so that proxies,
// certificates, allow-lists and the record of who was contacted hold for all
// of them. It owns the way to a host; it must not know what is said there.
//
// The environment it obeys: HTTPS_PROXY, HTTP_PROXY and NO_PROXY (in either
// case), CLAUDE_CODE_PROXY_RESOLVES_HOSTS, CLAUDE_CODE_CERT_STORE,
// NODE_EXTRA_CA_CERTS, CLAUDE_CODE_CLIENT_CERT, CLAUDE_CODE_CLIENT_KEY,
// CLAUDE_CODE_CLIENT_KEY_PASSPHRASE and
// CLAUDE_CODE_DISABLE_MTLS_RELOAD_ON_STALE_CONNECTION. Nothing turns the
// verification of certificates off.
package dial

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/net/ledger"
)

// Options configure a Dialer. The zero value connects directly and trusts
// the bundled and the system's certificates.
type Options struct {
	// Env looks up environment variables; nil knows none.
	Env func(string) string
	// Connect bounds name lookup and TCP; 0 is 30 s.
	Connect time.Duration
	// Resolver looks names up; nil is the system's.
	Resolver *net.Resolver
	// Handshake bounds TLS; 0 is 15 s.
	Handshake time.Duration
	// Only, if not nil, lists the only hosts that anything may reach, as
	// Use.Only does for one purpose. The proxy on the way need not be in it.
	Only []string
	// Ledger takes every exchange down; nil keeps none.
	Ledger *ledger.Book
	// Log gets problems that do not stop anything; nil discards.
	Log *slog.Logger
}

// A Use is one purpose for which a client is made.
type Use struct {
	// Why names the purpose in the ledger and in errors: "model", "mcp", …
	Why string
	// Only, if not nil, lists the hosts that may be reached: "host",
	// "*.domain" (which includes domain), either with ":port", or "*". It
	// holds for redirects too. An empty list allows nothing.
	Only []string
	// Control, if not nil, sees every address right before it is connected
	// to, after name lookup; its error refuses it. Through a proxy it sees
	// the addresses of the target, unless the proxy alone resolves names.
	Control func(host string, addr netip.AddrPort) error
	// Record, if not nil, gets the boundaries of every request, from any
	// goroutine.
	Record func(agent.Crossed)
	// Redirect is http.Client.CheckRedirect.
	Redirect func(req *http.Request, via []*http.Request) error
	// Unrecorded keeps exchanges out of the ledger: the caller takes them down.
	Unrecorded bool
	// HTTP1 never negotiates HTTP/2, as protocol upgrades need it.
	HTTP1 bool
}

// A Dialer makes clients. Its methods may be called concurrently.
type Dialer struct {
	o         Options
	proxies   proxies
	trust     trust
	client    *clientCert // nil without mTLS
	viaProxy  bool        // the proxy resolves names
	unverify  bool        // somebody asked for no verification; refused
	netDialer net.Dialer
	lookup    func(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// New returns a Dialer. It reads no file and opens no connection. Its error
// names the variable that cannot be used.
func New(o Options) (*Dialer, error) {
	if o.Env == nil {
		o.Env = func(string) string { return "" }
	}
	if o.Connect <= 0 {
		o.Connect = 30 * time.Second
	}
	if o.Handshake <= 0 {
		o.Handshake = 15 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	d := &Dialer{o: o, viaProxy: truth(o.Env("CLAUDE_CODE_PROXY_RESOLVES_HOSTS")), lookup: net.DefaultResolver.LookupNetIP}
	if o.Resolver != nil {
		d.lookup = o.Resolver.LookupNetIP
	}
	var errProxy, errTrust, errCert error
	d.proxies, errProxy = newProxies(o.Env)
	errTrust = d.trust.init(o.Env, o.Log)
	d.client, errCert = newClientCert(o.Env, o.Log)
	d.netDialer = net.Dialer{Timeout: o.Connect, Resolver: o.Resolver, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 15 * time.Second, Count: 4}}
	if v := o.Env("NODE_TLS_REJECT_UNAUTHORIZED"); v == "0" {
		d.unverify = true
		o.Log.Warn("NODE_TLS_REJECT_UNAUTHORIZED=0 is not obeyed: certificates are always verified; name the CA in NODE_EXTRA_CA_CERTS")
	}
	return d, errors.Join(errProxy, errTrust, errCert)
}

// Client returns a client for u. Each has connections of its own; make one
// per purpose and keep it.
func (d *Dialer) Client(u Use) *http.Client {
	return &http.Client{Transport: newTransport(d, u), CheckRedirect: u.Redirect}
}

// Forward returns a way to send requests of somebody else on as they are: each
// on a connection of its own, through the proxy that is meant for their URL,
// with nothing added, and not in the ledger.
func (d *Dialer) Forward(u Use) http.RoundTripper {
	u.Unrecorded, u.HTTP1 = true, true
	t := newTransport(d, u)
	t.forward = true
	return t
}

// ServerTLS is the configuration for a TLS connection to host on somebody
// else's behalf: it has no certificate of ours.
func (d *Dialer) ServerTLS(host string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: d.trust.pool(), ServerName: host, NextProtos: []string{"http/1.1"}}
}

// A Setting is one line about how hosts are reached, for people to read.
type Setting struct{ Name, Value string }

// Settings says how hosts are reached. It shows no secret.
func (d *Dialer) Settings() []Setting {
	var s []Setting
	add := func(name, value string) {
		if value != "" {
			s = append(s, Setting{name, value})
		}
	}
	for _, p := range []*proxy{d.proxies.https, d.proxies.http} {
		if p != nil && (len(s) == 0 || s[0].Value != p.String()) {
			add("Proxy", p.String())
		}
	}
	if len(s) > 0 {
		add("No proxy for", d.proxies.except.String())
	}
	add("Certificate store", strings.Join(d.trust.stores(), ", "))
	add("Additional CA", d.trust.extra)
	if d.client != nil {
		add("mTLS client cert", d.client.certFile)
		add("mTLS client key", d.client.keyFile)
	}
	if d.unverify {
		add("NODE_TLS_REJECT_UNAUTHORIZED", "0 (not obeyed)")
	}
	return s
}

// ProxyFor returns the host and port of the proxy that requests to u go
// through, or "" for a direct connection.
func (d *Dialer) ProxyFor(u *url.URL) string { return d.Way(u).Proxy }

// A Way is how a host is reached.
type Way struct {
	Proxy string // host:port, "" for a direct connection
	// Shown is the proxy without its password and the variable that names it.
	Shown string
	// Except is the entry of NO_PROXY, or "loopback", that keeps the host from
	// the proxy there is.
	Except string
	// Remote says that only the proxy looks the name up.
	Remote bool
}

// Way says which way requests to u go.
func (d *Dialer) Way(u *url.URL) Way {
	p, why := d.proxies.choose(u)
	if p == nil {
		return Way{Except: why}
	}
	return Way{Proxy: p.url.Host, Shown: p.String(), Remote: d.viaProxy}
}

// Lookup returns the addresses of a host as connections would use them.
func (d *Dialer) Lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	return d.lookup(ctx, "ip", host)
}

// allowed reports whether list has host and port.
func allowed(list []string, host, port string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	for _, e := range list {
		e = strings.ToLower(strings.TrimSpace(e))
		if e == "*" {
			return true
		}
		pattern, p := splitPort(e)
		if p != "" && p != port {
			continue
		}
		if base, wild := strings.CutPrefix(pattern, "*."); wild {
			if host == base || strings.HasSuffix(host, "."+base) {
				return true
			}
		} else if host == pattern {
			return true
		}
	}
	return false
}

// splitPort splits an optional port off a host, which may be a bare or
// bracketed IPv6 address.
func splitPort(s string) (host, port string) {
	if h, p, err := net.SplitHostPort(s); err == nil {
		return h, p
	}
	return strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"), ""
}

// ErrDenied marks connections that the program itself refused to make.
var ErrDenied = errors.New("not allowed")

// errOnly marks those that a list of the only hosts refuses.
var errOnly = errors.New("it is not one of the hosts that may be reached (--net)")

// Check reports whether the list of the only hosts lets host and port be
// reached; its error is ErrDenied and says so.
func (d *Dialer) Check(host, port string) error { return d.checkHost(Use{}, host, port) }

func (d *Dialer) checkHost(u Use, host, port string) error {
	for _, only := range [...][]string{d.o.Only, u.Only} {
		if only != nil && !allowed(only, host, port) {
			return fmt.Errorf("%s: %s: %w: %w", u.why(), net.JoinHostPort(host, port), ErrDenied, errOnly)
		}
	}
	return nil
}

// deniedBy names what refused err, for the ledger.
func deniedBy(err error) string {
	if errors.Is(err, errOnly) {
		return "--net"
	}
	return "address"
}

func (u Use) checkAddr(host string, addr netip.AddrPort) error {
	if u.Control == nil {
		return nil
	}
	addr = netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
	if err := u.Control(host, addr); err != nil {
		return fmt.Errorf("%s: %s at %s: %w: %w", u.why(), host, addr, ErrDenied, err)
	}
	return nil
}

func (u Use) why() string {
	if u.Why == "" {
		return "network"
	}
	return u.Why
}

// direct connects to addr without a proxy, under the rules of u.
func (d *Dialer) direct(ctx context.Context, u Use, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if err := d.checkHost(u, host, port); err != nil {
		return nil, err
	}
	nd := d.netDialer
	if u.Control != nil {
		nd.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("%s at %s: %w", host, address, ErrDenied)
			}
			return u.checkAddr(host, ap)
		}
	}
	return nd.DialContext(ctx, network, addr)
}

// screen applies u.Control to a target that a proxy will connect to.
func (d *Dialer) screen(ctx context.Context, u Use, host, port string) error {
	if u.Control == nil {
		return nil
	}
	pn, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
	if err != nil {
		return err
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return u.checkAddr(host, netip.AddrPortFrom(a, uint16(pn)))
	}
	if d.viaProxy {
		return nil
	}
	addrs, err := d.lookup(ctx, "ip", host)
	if err != nil {
		return fmt.Errorf("%s: cannot tell where %s is before the proxy connects to it; if only the proxy can resolve names, set CLAUDE_CODE_PROXY_RESOLVES_HOSTS=1: %w", u.why(), host, err)
	}
	for _, a := range addrs {
		if err := u.checkAddr(host, netip.AddrPortFrom(a, uint16(pn))); err != nil {
			return err
		}
	}
	return nil
}

// tlsConfig returns the configuration for connections to servers and to
// proxies.
func (d *Dialer) tlsConfig() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: d.trust.pool()}
	if d.client != nil {
		c.GetClientCertificate = d.client.certificate
	}
	return c
}

// truth reads a boolean variable.
func truth(s string) bool {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}
