package test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
	"github.com/seed-eb844fcb/cinch/internal/net/dial"
	"github.com/seed-eb844fcb/cinch/internal/net/egress"
	"github.com/seed-eb844fcb/cinch/internal/net/egress/authority"
	"github.com/seed-eb844fcb/cinch/internal/net/egress/credential"
	"github.com/seed-eb844fcb/cinch/internal/net/egress/mask"
	"github.com/seed-eb844fcb/cinch/internal/net/egress/reach"
	"github.com/seed-eb844fcb/cinch/internal/sandbox"
)

// names are what the name server of the tests knows.
var names = map[string][]string{
	"pub.test": {"127.0.0.1"}, "sub.pub.test": {"127.0.0.1"}, "rebind.test": {"127.0.0.1"}, "private.test": {"10.9.9.9"},
	"meta.test": {"169.254.169.254"}, "two.test": {"10.9.9.9", "127.0.0.1"}, "corp.test": {"127.0.0.1"}, "other.test": {"127.0.0.1"},
}

// nameServer answers from names.
func nameServer(t *testing.T) *net.Resolver {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pc.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			m.Response, m.Authoritative, m.Additionals = true, true, nil
			addrs, known := names[strings.TrimSuffix(strings.ToLower(q.Name.String()), ".")]
			if !known {
				m.RCode = dnsmessage.RCodeNameError
			}
			for _, a := range addrs {
				if q.Type == dnsmessage.TypeA {
					m.Answers = append(m.Answers, dnsmessage.Resource{
						Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1},
						Body:   &dnsmessage.AResource{A: netip.MustParseAddr(a).As4()},
					})
				}
			}
			if out, err := m.Pack(); err == nil {
				_, _ = pc.WriteTo(out, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
}

const banner = "banner of the host"

// A network is what the matrix is run in: hosts, proxies, names.
type network struct {
	resolver                *net.Resolver
	box                     *sandbox.Box
	host, web, secure, dead string // ports
	ca                      string // vouches for secure and for the proxies over TLS
	proxies                 map[string]string
	program                 string
}

func portOf(t *testing.T, serve func(net.Listener)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go serve(l)
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// each serves every connection by f.
func each(f func(net.Conn)) func(net.Listener) {
	return func(l net.Listener) {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); f(c) }()
		}
	}
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{resolver: nameServer(t), box: sandbox.Open(t.Context(), sandbox.Options{Path: os.Getenv("PATH")})}
	if n.box.Level() != sandbox.Full {
		if os.Getenv("CI") != "" {
			t.Fatal(n.box.Status())
		}
		t.Skip(n.box.Status())
	}
	var err error
	if n.program, err = os.Executable(); err != nil {
		t.Fatal(err)
	}
	n.host = portOf(t, each(func(c net.Conn) {
		_, _ = io.WriteString(c, banner+"\n")
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c)
	}))
	quiet := log.New(io.Discard, "", 0)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, banner+"\n")
		if r.Header.Get("Authorization") == secretValue {
			_, _ = io.WriteString(w, "AUTHORIZED\n")
		}
	})
	n.web = portOf(t, func(l net.Listener) { _ = (&http.Server{Handler: handler, ErrorLog: quiet}).Serve(l) })
	ca, err := authority.New()
	if err != nil {
		t.Fatal(err)
	}
	n.ca = filepath.Join(t.TempDir(), "ca.pem")
	bundle, err := ca.Bundle()
	if err == nil {
		err = os.WriteFile(n.ca, bundle, 0o600)
	}
	cert, cerr := ca.For("localhost")
	if err != nil || cerr != nil {
		t.Fatal(err, cerr)
	}
	conf := &tls.Config{Certificates: []tls.Certificate{*cert}}
	n.secure = portOf(t, func(l net.Listener) {
		_ = (&http.Server{Handler: handler, ErrorLog: quiet, TLSConfig: conf.Clone()}).ServeTLS(l, "", "")
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n.dead = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()

	proxy := func(auth string, refuse int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case auth != "" && r.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte(auth)):
				w.WriteHeader(http.StatusProxyAuthRequired)
				return
			case r.Method != http.MethodConnect:
				_, _ = io.WriteString(w, banner+"\n")
				return
			case refuse != 0:
				w.WriteHeader(refuse)
				return
			}
			up, err := net.Dial("tcp", "127.0.0.1:"+n.host)
			if err != nil {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			defer up.Close()
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
			_, _ = io.Copy(conn, up)
		})
	}
	plain := func(h http.Handler) string {
		return portOf(t, func(l net.Listener) { _ = (&http.Server{Handler: h, ErrorLog: quiet}).Serve(l) })
	}
	n.proxies = map[string]string{
		"good": "http://u:p@127.0.0.1:" + plain(proxy("u:p", 0)), "refuses": "http://127.0.0.1:" + plain(proxy("", 403)),
		"cannot": "http://127.0.0.1:" + plain(proxy("", 502)), "no-tunnel": "http://127.0.0.1:" + plain(proxy("", 405)),
		"dead": "http://127.0.0.1:" + n.dead, "hangs up": "http://127.0.0.1:" + portOf(t, each(func(c net.Conn) { _, _ = bufio.NewReader(c).ReadString('\n') })),
		"talks": "http://127.0.0.1:" + n.host,
		"tls": "https://localhost:" + portOf(t, func(l net.Listener) {
			_ = (&http.Server{Handler: proxy("", 0), ErrorLog: quiet, TLSConfig: conf.Clone()}).ServeTLS(l, "", "")
		}),
		"socks": "socks5h://127.0.0.1:" + portOf(t, each(n.socks(0))), "socks refuses": "socks5h://127.0.0.1:" + portOf(t, each(n.socks(2))),
	}
	n.proxies["wrong"] = strings.Replace(n.proxies["good"], "u:p@", "u:x@", 1)
	return n
}

// socks is a SOCKS5 proxy that answers with code.
func (n *network) socks(code byte) func(net.Conn) {
	return func(c net.Conn) {
		b := make([]byte, 3+4+1)
		if _, err := io.ReadFull(c, b[:3]); err != nil {
			return
		}
		_, _ = c.Write([]byte{5, 0})
		if _, err := io.ReadFull(c, b[3:8]); err != nil || b[6] != 3 {
			return
		}
		_, _ = io.CopyN(io.Discard, c, int64(b[7])+2)
		_, _ = c.Write([]byte{5, code, 0, 1, 0, 0, 0, 0, 0, 0})
		if code == 0 {
			_, _ = io.WriteString(c, banner+"\n")
		}
	}
}

// A reachCase is one line of the matrix. Of its texts $HOST, $WEB, $SECURE and
// $DEAD are ports.
type reachCase struct {
	name        string
	allow, deny string
	strict      bool
	answer      string // of a person: yes or no; "" is nobody
	only        string // --net
	proxy       string // by name
	noProxy     string
	remote      bool // the proxy resolves names
	noCA        bool // nobody vouches for the proxy
	target      string
	how         string // connect (""), http, socks, direct, credential
	secret      string // mask, mask-elsewhere, mask-sealed, deny, plain; file-hidden, file-seen, file-mask
	other       string // port of another proxy
	want        reach.Verdict
	blocker     string
}

var reachCases = []reachCase{
	{name: "name and address allowed", allow: "pub.test 127.0.0.1", target: "pub.test:$HOST", want: "yes"},
	{name: "no rule, strict", strict: true, target: "pub.test:$HOST", want: "no", blocker: "allow list"},
	{name: "no rule, nobody there", target: "pub.test:$HOST", want: "no", blocker: "allow list"},
	{name: "a person says yes", allow: "127.0.0.1", answer: "yes", target: "pub.test:$HOST", want: "ask", blocker: "allow list"},
	{name: "a person says no", allow: "127.0.0.1", answer: "no", target: "pub.test:$HOST", want: "ask", blocker: "allow list"},
	{name: "a person cannot open a private address", answer: "yes", target: "private.test:80", want: "no", blocker: "address"},
	{name: "denied", allow: "127.0.0.1", deny: "pub.test", answer: "yes", target: "pub.test:$HOST", want: "no", blocker: "deny list"},
	{name: "deny wins over allow", allow: "pub.test 127.0.0.1", deny: "pub.test", target: "pub.test:$HOST", want: "no", blocker: "deny list"},
	{name: "denied below", allow: "sub.pub.test 127.0.0.1", deny: "*.pub.test", target: "sub.pub.test:$HOST", want: "no", blocker: "deny list"},
	{name: "all denied", allow: "pub.test 127.0.0.1", deny: "*", target: "pub.test:$HOST", want: "no", blocker: "deny list"},
	{name: "another port denied", allow: "pub.test 127.0.0.1", deny: "pub.test:1", target: "pub.test:$HOST", want: "yes"},
	{name: "this port denied", allow: "pub.test 127.0.0.1", deny: "pub.test:$HOST", target: "pub.test:$HOST", want: "no", blocker: "deny list"},
	{name: "this port allowed", allow: "pub.test:$HOST 127.0.0.1", target: "pub.test:$HOST", want: "yes"},
	{name: "another port allowed", allow: "pub.test:1 127.0.0.1", target: "pub.test:$HOST", want: "no", blocker: "allow list"},
	{name: "below a wildcard", allow: "*.pub.test 127.0.0.1", target: "sub.pub.test:$HOST", want: "yes"},
	{name: "the wildcard's own name", allow: "*.pub.test 127.0.0.1", target: "pub.test:$HOST", want: "no", blocker: "allow list"},
	{name: "capitals and a final dot", allow: "Pub.TEST. 127.0.0.1", target: "PUB.test.:$HOST", want: "yes"},
	{name: "a name that leads home", allow: "rebind.test", target: "rebind.test:$HOST", want: "no", blocker: "address"},
	{name: "a name that leads to a private address", allow: "private.test", target: "private.test:80", want: "no", blocker: "address"},
	{name: "a name that leads to the metadata service", allow: "meta.test", target: "meta.test:80", want: "no", blocker: "address"},
	{name: "the metadata service", target: "169.254.169.254:80", want: "no", blocker: "allow list"},
	{name: "one good address of two", allow: "two.test 127.0.0.1", target: "two.test:$HOST", want: "yes"},
	{name: "the address denied", allow: "pub.test 127.0.0.0/8", deny: "127.0.0.1", target: "pub.test:$HOST", want: "no", blocker: "address"},
	{name: "a name without an address", allow: "none.test", target: "none.test:80", want: "no", blocker: "address"},
	{name: "an address in a network", allow: "127.0.0.0/8", target: "127.0.0.1:$HOST", want: "yes"},
	{name: "an address mapped to IPv6", allow: "127.0.0.1", target: "[::ffff:127.0.0.1]:$HOST", want: "yes"},
	{name: "an IPv6 address without a rule", allow: "[::1]:1", target: "[::1]:$HOST", want: "no", blocker: "allow list"},
	{name: "localhost", allow: "localhost", target: "localhost:$HOST", want: "yes"},
	{name: "localhost by its address", allow: "localhost:$HOST", target: "127.0.0.1:$HOST", want: "yes"},
	{name: "localhost, another port", allow: "localhost:1", target: "localhost:$HOST", want: "no", blocker: "allow list"},
	{name: "localhost for every program", allow: "localhost:$HOST", how: "direct", target: "localhost:$HOST", want: "yes"},
	{name: "localhost denied", allow: "localhost:$HOST", deny: "localhost", how: "direct", target: "localhost:$HOST", want: "no", blocker: "deny list"},
	{name: "nobody listens", allow: "pub.test 127.0.0.1", target: "pub.test:$DEAD", want: "no", blocker: "firewall"},
	{name: "among the only hosts", allow: "pub.test 127.0.0.1", only: "pub.test", target: "pub.test:$HOST", want: "yes"},
	{name: "not among the only hosts", allow: "pub.test 127.0.0.1", only: "other.test", target: "pub.test:$HOST", want: "no", blocker: "--net"},
	{name: "not among them, and nobody is asked", answer: "yes", only: "other.test", target: "pub.test:$HOST", want: "no", blocker: "--net"},

	{name: "plain HTTP", allow: "pub.test 127.0.0.1", how: "http", target: "pub.test:$WEB", want: "yes"},
	{name: "plain HTTP denied", deny: "pub.test", how: "http", target: "pub.test:$WEB", want: "no", blocker: "deny list"},
	{name: "plain HTTP to a private address", allow: "rebind.test", how: "http", target: "rebind.test:$WEB", want: "no", blocker: "address"},
	{name: "SOCKS", allow: "pub.test 127.0.0.1", how: "socks", target: "pub.test:$HOST", want: "yes"},
	{name: "SOCKS, no rule", how: "socks", target: "pub.test:$HOST", want: "no", blocker: "allow list"},
	{name: "SOCKS to a name that leads home", allow: "rebind.test", how: "socks", target: "rebind.test:$HOST", want: "no", blocker: "address"},

	{name: "corporate proxy", allow: "corp.test", proxy: "good", remote: true, target: "corp.test:443", want: "yes"},
	{name: "corporate proxy, no rule", proxy: "good", remote: true, target: "corp.test:443", want: "no", blocker: "allow list"},
	{name: "corporate proxy, wrong password", allow: "corp.test", proxy: "wrong", remote: true, target: "corp.test:443", want: "no", blocker: "corporate proxy"},
	{name: "corporate proxy refuses", allow: "corp.test", proxy: "refuses", remote: true, target: "corp.test:443", want: "no", blocker: "corporate proxy"},
	{name: "corporate proxy cannot reach it", allow: "corp.test", proxy: "cannot", remote: true, target: "corp.test:443", want: "no", blocker: "firewall"},
	{name: "corporate proxy is not there", allow: "corp.test", proxy: "dead", remote: true, target: "corp.test:443", want: "no", blocker: "corporate proxy"},
	{name: "corporate proxy hangs up", allow: "corp.test", proxy: "hangs up", remote: true, target: "corp.test:443", want: "no", blocker: "corporate proxy"},
	{name: "corporate proxy is none", allow: "corp.test", proxy: "talks", remote: true, target: "corp.test:443", want: "no", blocker: "corporate proxy"},
	{name: "corporate proxy over TLS", allow: "corp.test", proxy: "tls", remote: true, target: "corp.test:443", want: "yes"},
	{name: "corporate proxy over TLS, unknown", allow: "corp.test", proxy: "tls", noCA: true, remote: true, target: "corp.test:443", want: "no", blocker: "corporate proxy"},
	{name: "corporate SOCKS proxy", allow: "corp.test", proxy: "socks", remote: true, target: "corp.test:443", want: "yes"},
	{name: "corporate SOCKS proxy refuses", allow: "corp.test", proxy: "socks refuses", remote: true, target: "corp.test:443", want: "no", blocker: "corporate proxy"},
	{name: "excepted from the proxy", allow: "pub.test 127.0.0.1", proxy: "dead", noProxy: "pub.test", target: "pub.test:$HOST", want: "yes"},
	{name: "excepted by its domain", allow: "sub.pub.test 127.0.0.1", proxy: "dead", noProxy: ".pub.test", target: "sub.pub.test:$HOST", want: "yes"},
	{name: "not excepted", allow: "pub.test 127.0.0.1", proxy: "dead", noProxy: ".pub.test", target: "pub.test:$HOST", want: "no", blocker: "corporate proxy"},
	{name: "looked up here before the proxy", allow: "private.test", proxy: "good", target: "private.test:443", want: "no", blocker: "address"},
	{name: "not to be looked up here", allow: "none.test", proxy: "good", target: "none.test:443", want: "no", blocker: "address"},
	{name: "one bad address of two is one too many for a proxy", allow: "two.test 127.0.0.1", proxy: "good", target: "two.test:443", want: "no", blocker: "address"},
	{name: "plain HTTP through a proxy without tunnels", allow: "corp.test", proxy: "no-tunnel", remote: true, how: "http", target: "corp.test:80", want: "yes"},
	{name: "plain HTTP through a proxy, wrong password", allow: "corp.test", proxy: "wrong", remote: true, how: "http", target: "corp.test:80", want: "no", blocker: "corporate proxy"},

	{name: "another proxy", other: "$HOST", how: "other", target: "pub.test:80", want: "yes"},
	{name: "another proxy, not there", other: "$DEAD", how: "other", target: "pub.test:80", want: "no", blocker: "corporate proxy"},

	{name: "credential seen", allow: "localhost", how: "credential", secret: "plain", target: "localhost:$SECURE", want: "yes"},
	{name: "credential masked for the host", allow: "localhost", how: "credential", secret: "mask", target: "localhost:$SECURE", want: "yes"},
	{name: "credential masked, the host unknown", allow: "localhost", noCA: true, how: "credential", secret: "mask", target: "localhost:$SECURE", want: "no", blocker: "firewall"},
	{name: "credential masked for another", allow: "localhost", how: "credential", secret: "mask-elsewhere", target: "localhost:$SECURE", want: "no", blocker: "credentials"},
	{name: "credential masked, TLS not opened", allow: "localhost", how: "credential", secret: "mask-sealed", target: "localhost:$SECURE", want: "no", blocker: "credentials"},
	{name: "credential masked, plain HTTP", allow: "localhost", how: "credential", secret: "mask", target: "localhost:$WEB", want: "no", blocker: "credentials"},
	{name: "credential denied", allow: "localhost", how: "credential", secret: "deny", target: "localhost:$SECURE", want: "no", blocker: "credentials"},
	{name: "credential in a file", allow: "localhost", how: "credential", secret: "file-plain", target: "localhost:$SECURE", want: "yes"},
	{name: "credential in a masked file", allow: "localhost", how: "credential", secret: "file-mask", target: "localhost:$SECURE", want: "yes"},
	{name: "credential in a hidden file", allow: "localhost", how: "credential", secret: "file-deny", target: "localhost:$SECURE", want: "no", blocker: "credentials"},
}

// What explain says is what happens: each case is asked about, and then tried
// by a command in the sandbox, through the real proxy and dialer.
func TestExplainIsTrue(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	if len(reachCases) < 40 {
		t.Errorf("%d cases", len(reachCases))
	}
	for _, c := range reachCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n.try(t, c)
		})
	}
}

func (n *network) try(t *testing.T, c reachCase) {
	fill := strings.NewReplacer("$HOST", n.host, "$WEB", n.web, "$SECURE", n.secure, "$DEAD", n.dead)
	host, port, err := net.SplitHostPort(fill.Replace(c.target))
	if err != nil {
		t.Fatal(err)
	}
	number, _ := strconv.Atoi(port)
	target, err := egress.NewTarget(host, uint16(number))
	if err != nil {
		t.Fatal(err)
	}
	rules, problems := egress.NewRules(strings.Fields(fill.Replace(c.allow)), strings.Fields(fill.Replace(c.deny)), c.strict)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	env := map[string]string{"HTTPS_PROXY": n.proxies[c.proxy], "NO_PROXY": c.noProxy, "NODE_EXTRA_CA_CERTS": n.ca}
	if c.noCA {
		delete(env, "NODE_EXTRA_CA_CERTS")
	}
	if c.remote {
		env["CLAUDE_CODE_PROXY_RESOLVES_HOSTS"] = "1"
	}
	do := dial.Options{Env: func(name string) string { return env[name] }, Resolver: n.resolver}
	if c.only != "" {
		do.Only = []string{c.only}
	}
	d, err := dial.New(do)
	if err != nil {
		t.Fatal(err)
	}
	run := &attempt{n: n, c: c, host: host, port: port, scheme: "tcp", dir: t.TempDir()}
	switch {
	case c.how == "http" || c.how == "other" || port == n.web:
		run.scheme = "http"
	case c.how == "credential" || port == "443":
		run.scheme = "https"
	}
	q := reach.Question{
		Target: target, Scheme: run.scheme, By: "a test", Judged: true, Rules: rules, Unknown: reach.No, UnknownWhy: "nobody could be asked",
		Dialer: d, Probe: true, Limit: 20 * time.Second,
	}
	if c.answer != "" {
		q.Unknown, q.UnknownWhy = reach.Ask, "somebody is asked"
	}
	if c.other != "" {
		o, _ := strconv.Atoi(fill.Replace(c.other))
		q.Other, run.other = uint16(o), uint16(o)
	}
	o := egress.Options{Rules: func() egress.Rules { return rules }}.Over(d)
	var asked atomic.Int32
	if c.answer != "" {
		o.Ask = func(context.Context, egress.Target) (bool, error) { asked.Add(1); return c.answer == "yes", nil }
	}
	if c.how == "credential" {
		q.After = run.credentials(t, target, &o)
		q.Opened = run.opened
	}
	r := reach.Evaluate(t.Context(), q)
	var text strings.Builder
	if err := r.Write(&text); err != nil {
		t.Fatal(err)
	}
	if r.Verdict != c.want || r.Blocker != c.blocker {
		t.Errorf("explained as %s by %q, want %s by %q:\n%s", r.Verdict, r.Blocker, c.want, c.blocker, text.String())
	}
	if (r.Verdict != reach.Yes) != (len(r.Changes) > 0) {
		t.Errorf("the changes are %q:\n%s", r.Changes, text.String())
	}
	reached, out := run.real(t, o, rules)
	wantReached := c.want == reach.Yes || c.want == reach.Ask && c.answer == "yes"
	if reached != wantReached {
		t.Errorf("reached: %v; explained:\n%s\nthe command said:\n%s", reached, text.String(), out)
	}
	if wasAsked := asked.Load() > 0; wasAsked != (c.want == reach.Ask || c.blocker == "address" && c.answer != "") {
		t.Errorf("asked %d times; explained:\n%s", asked.Load(), text.String())
	}
}

// An attempt is a case as it is tried.
type attempt struct {
	n                       *network
	c                       reachCase
	host, port, scheme, dir string
	other                   uint16
	opened                  bool
	plan                    *credential.Plan
	trust                   string
	environ                 []string
	rules                   sandbox.Rules
}

const secretValue = "the-value-of-the-case"

// credentials sets the credential of the case up, and says how it is seen.
func (a *attempt) credentials(t *testing.T, target egress.Target, o *egress.Options) reach.Layer {
	t.Helper()
	kind, inFile := strings.CutPrefix(a.c.secret, "file-")
	file := filepath.Join(a.dir, "secret")
	e := credential.Entry{Name: "SECRET", Mode: "mask", InjectHosts: []string{"localhost"}, CanMask: true}
	if inFile {
		e.Name, e.Path = "", file
		if err := os.WriteFile(file, []byte(secretValue), 0o600); err != nil {
			t.Fatal(err)
		}
	} else {
		a.environ = append(a.environ, "SECRET="+secretValue)
	}
	var entries []credential.Entry
	switch kind {
	case "plain":
	case "deny":
		e.Mode = "deny"
		entries = append(entries, e)
	case "mask-elsewhere":
		e.InjectHosts = []string{"elsewhere.test"}
		entries = append(entries, e)
	default:
		entries = append(entries, e)
	}
	var err error
	if a.plan, err = credential.New(entries, credential.Options{Environ: a.environ, Files: true}); err != nil {
		t.Fatal(err)
	}
	if kind != "mask-sealed" {
		if o.Authority, err = authority.New(); err != nil {
			t.Fatal(err)
		}
		bundle, err := o.Authority.Bundle(a.n.ca)
		if err != nil {
			t.Fatal(err)
		}
		a.trust = filepath.Join(a.dir, "trust.pem")
		if err := os.WriteFile(a.trust, bundle, 0o600); err != nil {
			t.Fatal(err)
		}
	} else {
		a.trust = a.n.ca
	}
	o.Secrets = func() *mask.Set { return a.plan.Set }
	pool := x509.NewCertPool()
	if data, err := os.ReadFile(a.n.ca); err != nil || !pool.AppendCertsFromPEM(data) {
		t.Fatal(err)
	}
	a.opened = o.Authority != nil && a.plan.Set.Swap(target.Host, target.Port, true) != nil
	a.rules.Unset, a.rules.DenyRead = a.plan.Unset, a.plan.Deny
	for _, f := range a.plan.Files {
		a.rules.Show = append(a.rules.Show, sandbox.Shown(f))
	}
	x := reach.Credential{Name: "the secret", File: inFile, By: "the case"}
	if inFile {
		view := a.n.box.View(a.rules, file)
		x.Hidden, x.Masked = view == sandbox.Hidden, view == sandbox.Other
	} else {
		x.Hidden, x.Masked = len(a.plan.Unset) > 0, len(a.plan.Environ) > 0
	}
	x.For = slices.ContainsFunc(a.plan.Set.Names(target.Host, target.Port), func(string) bool { return true })
	return reach.Visibility([]reach.Credential{x}, target, a.scheme, o.Authority != nil, false)
}

// real tries the case by a command in the sandbox.
func (a *attempt) real(t *testing.T, o egress.Options, rules egress.Rules) (reached bool, out string) {
	t.Helper()
	p := egress.New(o)
	inside := egress.Inside{Port: sandbox.ProxyPort, Program: a.n.program}
	script := `exec "$PROGRAM" __connect "$TARGET_HOST" "$TARGET_PORT" </dev/null`
	switch a.c.how {
	case "http":
		script = `exec curl -sS --max-time 60 "http://$TARGET_HOST:$TARGET_PORT/"`
	case "socks":
		script = `exec curl -sS --max-time 60 --http0.9 -x "$ALL_PROXY" "telnet://$TARGET_HOST:$TARGET_PORT" </dev/null`
	case "direct":
		script = `exec 3<>"/dev/tcp/127.0.0.1/$TARGET_PORT" && cat <&3`
	case "other":
		inside.Web = sandbox.ProxyPort + 1
		script = `exec curl -sS --max-time 60 --http0.9 -x "$HTTP_PROXY" "http://$TARGET_HOST:$TARGET_PORT/"`
	case "credential":
		script = `exec curl -sS --max-time 60 -H "Authorization: ${SECRET-$(cat secret)}" "$SCHEME://$TARGET_HOST:$TARGET_PORT/"`
	}
	_, ports := rules.Loopback()
	r := a.rules
	r.Root, r.Write, r.Ports = a.dir, []string{a.dir}, ports
	r.Environ = p.Environ(inside)
	if a.plan != nil {
		r.Environ = append(append(r.Environ, a.plan.Environ...), authority.Environ(a.trust)...)
	}
	if inside.Web != 0 {
		r.Ports = append(r.Ports, inside.Web)
	}
	call := &egress.Call{Command: a.c.name}
	w := a.n.box.Command(r, func(l net.Listener, port uint16) {
		switch {
		case port == sandbox.ProxyPort:
			p.Serve(l, call)
		case port == inside.Web:
			p.Pass(l, a.other, call)
		default:
			p.Forward(l, port, call)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	spec := proc.Spec{Path: "bash", Args: []string{"bash", "-c", script}, Dir: a.dir, Env: append([]string{
		"PATH=" + os.Getenv("PATH"), "PROGRAM=" + a.n.program, "TARGET_HOST=" + strings.Trim(a.host, "[]"), "TARGET_PORT=" + a.port, "SCHEME=" + a.scheme,
	}, a.environ...)}
	capture := &proc.Capture{Max: 1 << 16}
	child, err := proc.Start(ctx, spec, proc.Options{Wrap: w.Wrap, Stdout: capture, Stderr: capture})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := child.Wait(); err != nil {
		t.Fatalf("%v: %s", err, capture.Bytes())
	}
	out = fmt.Sprintf("%s\n%s", capture.Bytes(), call.Note())
	reached = strings.Contains(out, banner)
	if a.c.how == "credential" {
		// What matters is that the host got the value.
		reached = reached && strings.Contains(out, "AUTHORIZED")
	}
	return reached, out
}
