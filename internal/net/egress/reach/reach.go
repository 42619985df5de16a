// Package reach says whether a host can be reached, and if not, which of the
// layers on the way says no and what the smallest change is.
//
// It owns the order of the layers and their words. What a layer decides it asks
// of the code that decides in earnest: the rules of package egress, the dialer.
// It must not know settings or permission rules; those it is told about.
package reach

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/lib/termsafe"
	"github.com/seed-eb844fcb/cinch/internal/net/dial"
	"github.com/seed-eb844fcb/cinch/internal/net/egress"
)

// A Verdict is what one layer says.
type Verdict string

const (
	Yes  Verdict = "yes"
	No   Verdict = "no"
	Ask  Verdict = "ask" // a person is asked
	None Verdict = "-"   // the layer has no say, or was not tried
)

// A Layer is one thing on the way to a host.
type Layer struct {
	Name    string  `json:"layer"`
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why"`
	// Change is the smallest change by which it would say yes, "" if it does or
	// none is known.
	Change string `json:"change,omitempty"`
}

// Names of the layers, in the order in which they are asked.
const (
	Permission  = "permission"
	Sandbox     = "sandbox"
	Net         = "--net"
	Denied      = "deny list"
	Allowed     = "allow list"
	Address     = "address"
	Proxy       = "corporate proxy"
	Firewall    = "firewall"
	Credentials = "credentials"
)

// A Question is about one host.
type Question struct {
	Target egress.Target
	Scheme string // http, https, ssh or tcp
	By     string // who wants to reach it, for people

	// Before are the layers that are asked before the network's: Permission and
	// Sandbox. After is Credentials; "" leaves it out.
	Before []Layer
	After  Layer

	// Judged says that Rules hold; they do for commands in the sandbox.
	Judged bool
	Rules  egress.Rules
	// Unknown is what becomes of a host that no rule speaks of.
	Unknown    Verdict
	UnknownWhy string
	// Check, if not nil, judges addresses where Rules do not.
	Check func(host string, at netip.AddrPort) error
	// Loose says that --net does not hold.
	Loose bool
	// Other is the loopback port of a proxy that stands in for ours; 0 is none.
	Other uint16

	// Opened says that the connection is opened to put a credential in.
	Opened bool

	Dialer *dial.Dialer
	// Probe connects to the host, unless an earlier layer forbids it. Limit
	// bounds that; 0 is ten seconds.
	Probe bool
	Limit time.Duration
}

// A Report is the answer to a Question.
type Report struct {
	Target  string  `json:"target"`
	Scheme  string  `json:"scheme"`
	By      string  `json:"by"`
	Layers  []Layer `json:"layers"`
	Verdict Verdict `json:"verdict"`
	// Blocker is the first layer that says no or, if none does, asks; "" if all
	// say yes.
	Blocker string `json:"blocker,omitempty"`
	// Changes are what would make it reachable: first those of layers that say
	// no, in order, then those that would save the questions.
	Changes []string `json:"changes,omitempty"`
}

// Evaluate answers q.
func Evaluate(ctx context.Context, q Question) Report {
	e := &evaluation{q: q, r: Report{Target: q.Target.String(), Scheme: q.Scheme, By: q.By}}
	e.r.Layers = append(e.r.Layers, q.Before...)
	e.net()
	if q.Other != 0 {
		e.other(ctx)
	} else {
		e.rules()
		e.way(ctx)
	}
	if q.After.Name != "" {
		e.r.Layers = append(e.r.Layers, q.After)
	}
	e.sum()
	return e.r
}

type evaluation struct {
	q Question
	r Report
	// shut says that contact is forbidden outright, so that none is tried.
	shut string
}

func (e *evaluation) say(name string, v Verdict, why, change string) {
	e.r.Layers = append(e.r.Layers, Layer{name, v, why, change})
}

func (e *evaluation) net() {
	if e.q.Loose {
		e.say(Net, None, "it does not hold for commands outside of the sandbox", "")
		return
	}
	host, port := e.q.Target.Host, strconv.Itoa(int(e.q.Target.Port))
	if err := e.q.Dialer.Check(host, port); err != nil {
		e.shut = Net
		e.say(Net, No, "it is not one of the hosts that may be reached", "add "+e.q.Target.Rule()+" to --net only:…")
		return
	}
	e.say(Net, Yes, "nothing limits the hosts, or this one is among them", "")
}

// rules asks the domain rules.
func (e *evaluation) rules() {
	if !e.q.Judged {
		e.say(Denied, None, "domain rules hold for commands in the sandbox only", "")
		e.say(Allowed, None, "domain rules hold for commands in the sandbox only", "")
		return
	}
	v, by := e.q.Rules.Decide(e.q.Target)
	add := e.add()
	switch {
	case v == egress.Denied && by != "":
		e.shut = Denied
		e.say(Denied, No, "the rule "+strconv.Quote(by)+" denies it", "take "+strconv.Quote(by)+" out of sandbox.network.deniedDomains, or out of the WebFetch rule that denies it")
		e.say(Allowed, None, "a deny rule wins over every allow rule", "")
	case v == egress.Allowed:
		e.say(Denied, Yes, "no rule denies it", "")
		e.say(Allowed, Yes, "the rule "+strconv.Quote(by)+" allows it", "")
	case v == egress.Denied:
		e.say(Denied, Yes, "no rule denies it", "")
		e.say(Allowed, No, "no rule allows it, and nobody is asked (strictAllowlist or allowManagedDomainsOnly)", add)
	default:
		e.say(Denied, Yes, "no rule denies it", "")
		change := add
		if e.q.Unknown == Yes {
			change = ""
		}
		e.say(Allowed, e.q.Unknown, "no rule allows it: "+e.q.UnknownWhy, change)
	}
}

// add is the change by which a rule allows the host.
func (e *evaluation) add() string {
	return "add " + strconv.Quote(e.q.Target.Rule()) + " to sandbox.network.allowedDomains"
}

// check judges an address as a connection would.
func (e *evaluation) check(host string, at netip.AddrPort) error {
	switch {
	case e.q.Judged:
		t, err := egress.NewTarget(host, at.Port())
		if err != nil {
			return err
		}
		return e.q.Rules.CheckAddr(t, at.Addr())
	case e.q.Check != nil:
		return e.q.Check(host, at)
	}
	return nil
}

// url is what a proxy is chosen by.
func (e *evaluation) url() *url.URL {
	u := &url.URL{Scheme: "https", Host: e.q.Target.String()}
	if e.q.Scheme == "http" {
		u.Scheme = "http"
	}
	return u
}

// way asks where the name leads, which proxy is on the way, and whether a
// connection comes about.
func (e *evaluation) way(ctx context.Context) {
	limit := e.q.Limit
	if limit == 0 {
		limit = 10 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	way := e.q.Dialer.Way(e.url())
	ok := e.address(ctx, way)
	shown := "it goes through " + way.Shown
	switch {
	case way.Proxy == "" && way.Except == "loopback":
		shown = "none: loopback is reached directly"
	case way.Proxy == "" && way.Except != "":
		shown = "none: NO_PROXY has " + way.Except
	case way.Proxy == "":
		shown = "none is set (HTTPS_PROXY, HTTP_PROXY)"
	}
	switch {
	case !ok:
		e.say(Proxy, None, shown, "")
		e.say(Firewall, None, "not tried: the address is refused", "")
	case e.shut != "":
		e.say(Proxy, None, shown, "")
		e.say(Firewall, None, "not tried: "+e.shut+" forbids it", "")
	case !e.q.Probe:
		e.say(Proxy, None, shown, "")
		e.say(Firewall, None, "not tried (--no-probe)", "")
	default:
		e.probe(ctx, way, shown)
	}
}

// address judges where the name leads. It reports whether a connection may be
// tried.
func (e *evaluation) address(ctx context.Context, way dial.Way) bool {
	literal := e.q.Target.Addr().IsValid()
	switch {
	case e.shut != "":
		e.say(Address, None, "not looked up: "+e.shut+" forbids it", "")
		return true
	case !e.q.Judged && e.q.Check == nil:
		e.say(Address, None, "addresses are not judged", "")
		return true
	case way.Remote && !literal:
		e.say(Address, None, "the proxy alone looks the name up (CLAUDE_CODE_PROXY_RESOLVES_HOSTS)", "")
		return true
	}
	addrs, err := e.q.Dialer.Lookup(ctx, e.q.Target.Host)
	if err != nil {
		p := dial.Explain(err)
		change := "check the name, and the resolver of this machine"
		if way.Proxy != "" {
			change = "if only the proxy can resolve names, set CLAUDE_CODE_PROXY_RESOLVES_HOSTS=1"
		}
		e.say(Address, No, p.Text, change)
		return false
	}
	var good []string
	var bad error
	var at netip.Addr
	for _, a := range addrs {
		if err := e.check(e.q.Target.Host, netip.AddrPortFrom(a.Unmap(), e.q.Target.Port)); err != nil {
			bad, at = err, a.Unmap()
		} else {
			good = append(good, a.Unmap().String())
		}
	}
	// A proxy connects to whichever it likes; we, to those that are good.
	if bad != nil && (len(good) == 0 || way.Proxy != "") {
		change := ""
		if e.q.Judged {
			change = "add the address itself, " + strconv.Quote(at.String()) + ", to sandbox.network.allowedDomains"
			if literal {
				change = e.add()
			}
			if strings.Contains(bad.Error(), "denies") {
				change = "take the rule that denies the address out"
			}
		}
		e.say(Address, No, bad.Error(), change)
		return false
	}
	e.say(Address, Yes, "it leads to "+strings.Join(good, ", "), "")
	return true
}

// probe connects, and says which of the proxy and the network between stands
// in the way.
func (e *evaluation) probe(ctx context.Context, way dial.Way, shown string) {
	begun := time.Now()
	use := dial.Use{Why: "egress explain", Unrecorded: true, Control: e.check}
	conn, err := e.q.Dialer.Tunnel(ctx, use, e.q.Target.String())
	connected := "connected in " + time.Since(begun).Round(time.Millisecond).String()
	v, change := Yes, ""
	if err == nil {
		if e.q.Scheme == "https" {
			v, connected, change = e.greet(ctx, conn, connected)
		}
		_ = conn.Close()
	}
	if way.Proxy == "" {
		if err == nil {
			e.say(Proxy, None, shown, "")
			e.say(Firewall, v, connected, change)
			return
		}
		e.say(Proxy, None, shown, "")
		why, change := e.trouble(ctx, err)
		e.say(Firewall, No, why, change)
		return
	}
	refused, isProxy := errors.AsType[*dial.ProxyError](err)
	switch {
	case err == nil:
		e.say(Proxy, Yes, shown, "")
		e.say(Firewall, v, connected+", through the proxy", change)
	case e.q.Scheme == "http" && isProxy && refused.StatusCode != 407:
		// Requests without TLS are no tunnels; a proxy may take them all the same.
		e.say(Proxy, Yes, shown+"; it makes no tunnel to this port ("+refused.Status+"), and requests need none", "")
		e.say(Firewall, None, "what is behind the proxy cannot be told without a request", "")
	case isProxy && refused.StatusCode == 407:
		e.say(Proxy, No, shown+", which wants a user and a password, or others", "put them into the proxy's URL: http://USER:PASSWORD@HOST:PORT")
		e.say(Firewall, None, "not reached: the proxy refuses", "")
	case isProxy && refused.StatusCode < 500:
		e.say(Proxy, No, shown+", which answers "+refused.Status, "have the proxy's administrator allow "+e.q.Target.String()+", or add the host to NO_PROXY if it can be reached directly")
		e.say(Firewall, None, "not reached: the proxy refuses", "")
	case isProxy:
		e.say(Proxy, Yes, shown, "")
		e.say(Firewall, No, "the proxy cannot reach it: "+refused.Status, "check the host, and the way from the proxy to it")
	default:
		why, change := e.trouble(ctx, err)
		if change == "" {
			change = "check the proxy that is set, and that it may connect to " + e.q.Target.String()
		}
		e.say(Proxy, No, shown+": "+why, change)
		e.say(Firewall, None, "not reached: the proxy does not answer as one", "")
	}
}

// greet finds out who answers. Where the connection is opened on the way that
// counts; else programs have their own opinion of certificates.
func (e *evaluation) greet(ctx context.Context, conn net.Conn, connected string) (v Verdict, why, change string) {
	err := tls.Client(conn, e.q.Dialer.ServerTLS(e.q.Target.Host)).HandshakeContext(ctx)
	if err == nil {
		return Yes, connected, ""
	}
	p := dial.Explain(err)
	if e.q.Opened {
		return No, connected + "; the credential is not put in: " + p.Text, p.Hint
	}
	return Yes, connected + "; programs that verify certificates may refuse it: " + p.Text, ""
}

// trouble is why a connection did not come about.
func (e *evaluation) trouble(ctx context.Context, err error) (why, change string) {
	if ctx.Err() != nil {
		return "no answer in time", "open the firewall between here and there, or set the proxy that must be used (HTTPS_PROXY)"
	}
	p := dial.Explain(err)
	switch p.Kind {
	case dial.Refused:
		return p.Text, "start what is to listen there, or check the port"
	case dial.Timeout, dial.Route:
		return p.Text, "open the firewall between here and there, or set the proxy that must be used (HTTPS_PROXY)"
	}
	if p.Hint == "" && e.q.Dialer.Way(e.url()).Proxy == "" {
		return p.Text, "check the network between here and there"
	}
	return p.Text, p.Hint
}

// other asks a proxy of somebody else's whether it is there.
func (e *evaluation) other(ctx context.Context) {
	why := "another proxy, at port " + strconv.Itoa(int(e.q.Other)) + ", judges it (sandbox.network.httpProxyPort, socksProxyPort)"
	for _, name := range []string{Denied, Allowed, Address} {
		e.say(name, None, why, "")
	}
	if e.shut != "" || !e.q.Probe {
		e.say(Proxy, None, "not tried", "")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(e.q.Other))))
	if err != nil {
		e.say(Proxy, No, "the other proxy is not there: "+dial.Explain(err).Text, "start it, or take the setting out")
		return
	}
	_ = conn.Close()
	e.say(Proxy, Yes, "the other proxy is there; what it decides is not known here", "")
}

// sum draws the verdict.
func (e *evaluation) sum() {
	e.r.Verdict = Yes
	for _, v := range [...]Verdict{No, Ask} {
		for _, l := range e.r.Layers {
			if l.Verdict != v {
				continue
			}
			if e.r.Blocker == "" {
				e.r.Blocker, e.r.Verdict = l.Name, v
			}
			if l.Change != "" && !slices.Contains(e.r.Changes, l.Change) {
				e.r.Changes = append(e.r.Changes, l.Change)
			}
		}
	}
}

// Write prints r.
func (r Report) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s), for %s\n", r.Target, r.Scheme, r.By)
	for _, l := range r.Layers {
		fmt.Fprintf(&b, "  %-16s %-4s %s\n", l.Name, l.Verdict, line(l.Why))
	}
	switch r.Verdict {
	case Yes:
		tried := slices.ContainsFunc(r.Layers, func(l Layer) bool { return (l.Name == Firewall || l.Name == Proxy) && l.Verdict == Yes })
		if tried {
			b.WriteString("verdict: yes, it is reached\n")
		} else {
			b.WriteString("verdict: yes, as far as was tried\n")
		}
	case Ask:
		fmt.Fprintf(&b, "verdict: ask, first by: %s\n", r.Blocker)
	default:
		fmt.Fprintf(&b, "verdict: no, first blocked by: %s\n", r.Blocker)
	}
	for i, c := range r.Changes {
		name := "smallest change"
		if i > 0 {
			name = "and"
		}
		fmt.Fprintf(&b, "%s: %s\n", name, line(c))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// line is s on one line, safe for a terminal.
func line(s string) string {
	return termsafe.String(strings.Join(strings.Fields(s), " "))
}
