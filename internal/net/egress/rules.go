package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// A Verdict says whether a host may be reached.
type Verdict int

const (
	Unknown Verdict = iota // no rule speaks of it
	Allowed
	Denied
)

func (v Verdict) String() string { return [...]string{"unknown", "allowed", "denied"}[v] }

// Rules are the hosts that may and may not be reached. A rule is a name, a
// name after "*." (its subdomains, not itself), an address, or a network;
// each with an optional port. IPv6 with a port stands in brackets. "*" is
// every host and may only deny.
type Rules struct {
	allow, deny []rule
	// Strict refuses what no rule speaks of; nobody is asked.
	Strict bool
}

type rule struct {
	text   string
	all    bool
	name   string // lower case, ASCII, no final dot
	below  bool   // subdomains of name only
	prefix netip.Prefix
	port   uint16 // 0 is any
}

// NewRules reads rules. Those that cannot be read are left out and returned
// as errors; a deny rule with two readings denies both.
func NewRules(allow, deny []string, strict bool) (Rules, []error) {
	r := Rules{Strict: strict}
	var errs []error
	for _, s := range allow {
		p, err := parse(s)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("allowed domain %q: %w", s, err))
		case p.all:
			errs = append(errs, fmt.Errorf("allowed domain %q: every host cannot be allowed; name the hosts", s))
		default:
			r.allow = append(r.allow, p)
		}
	}
	for _, s := range deny {
		p, err := parse(s)
		if err == nil {
			r.deny = append(r.deny, p)
			continue
		}
		if two := ambiguous(s); len(two) > 0 {
			r.deny = append(r.deny, two...)
			continue
		}
		errs = append(errs, fmt.Errorf("denied domain %q: %w", s, err))
	}
	return r, errs
}

// parse reads one rule.
func parse(s string) (rule, error) {
	r := rule{text: s}
	h := strings.TrimSpace(s)
	if h == "*" {
		r.all = true
		return r, nil
	}
	if p, err := netip.ParsePrefix(h); err == nil {
		r.prefix = p.Masked()
		return r, nil
	}
	host, port, err := splitPort(h)
	if err != nil {
		return r, err
	}
	r.port = port
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		a = a.Unmap().WithZone("")
		r.prefix = netip.PrefixFrom(a, a.BitLen())
		return r, nil
	}
	if rest, ok := strings.CutPrefix(host, "*."); ok {
		r.below, host = true, rest
	}
	if r.name, err = canonical(host); err != nil {
		return r, err
	}
	if r.below && !strings.Contains(r.name, ".") {
		return r, errors.New("a wildcard for a whole top-level domain is too wide")
	}
	return r, nil
}

// splitPort cuts an optional port off.
func splitPort(h string) (host string, port uint16, err error) {
	if strings.HasPrefix(h, "[") {
		end := strings.IndexByte(h, ']')
		if end < 0 {
			return "", 0, errors.New("the bracket is not closed")
		}
		host, h = h[:end+1], h[end+1:]
		if h == "" {
			return host, 0, nil
		}
	} else {
		i := strings.IndexByte(h, ':')
		if i < 0 {
			return h, 0, nil
		}
		if strings.Count(h, ":") > 1 {
			if _, err := netip.ParseAddr(h); err == nil && !endsLikePort(h) {
				return h, 0, nil
			}
			return "", 0, errors.New("write an IPv6 address in brackets")
		}
		host, h = h[:i], h[i:]
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(h, ":"), 10, 16)
	if err != nil || n == 0 || h[0] != ':' {
		return "", 0, errors.New("the port is not a number from 1 to 65535")
	}
	return host, uint16(n), nil
}

// endsLikePort reports whether the last group of an IPv6 address could as
// well be meant as a port.
func endsLikePort(h string) bool {
	rest, last := h[:strings.LastIndexByte(h, ':')], h[strings.LastIndexByte(h, ':')+1:]
	_, err := strconv.ParseUint(last, 10, 16)
	_, err2 := netip.ParseAddr(strings.TrimSuffix(rest, ":"))
	return err == nil && err2 == nil
}

// ambiguous reads an IPv6 address without brackets in both ways.
func ambiguous(s string) []rule {
	h := strings.TrimSpace(s)
	var out []rule
	if a, err := netip.ParseAddr(h); err == nil {
		out = append(out, rule{text: s, prefix: netip.PrefixFrom(a, a.BitLen())})
	}
	if i := strings.LastIndexByte(h, ':'); i > 0 {
		a, err := netip.ParseAddr(h[:i])
		n, err2 := strconv.ParseUint(h[i+1:], 10, 16)
		if err == nil && err2 == nil {
			out = append(out, rule{text: s, prefix: netip.PrefixFrom(a, a.BitLen()), port: uint16(n)})
		}
	}
	return out
}

// canonical is a host name as names are compared: ASCII, lower case, no final
// dot. What could be read as an address in an old notation is no name.
func canonical(host string) (string, error) {
	h := strings.TrimSuffix(host, ".")
	if h == "" || len(h) > 253 {
		return "", errors.New("it is not a host name")
	}
	for _, c := range h {
		if c >= 0x80 {
			return "", errors.New("write an international name in its ASCII form, which begins with xn--")
		}
	}
	h = strings.ToLower(h)
	last := h[strings.LastIndexByte(h, '.')+1:]
	for label := range strings.SplitSeq(h, ".") {
		if label == "" || len(label) > 63 {
			return "", errors.New("it is not a host name")
		}
		for _, c := range []byte(label) {
			if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
				return "", fmt.Errorf("it is not a host name: %q is in it", c)
			}
		}
	}
	if last[0] >= '0' && last[0] <= '9' {
		return "", errors.New("it looks like an address, but is none in the usual notation")
	}
	return h, nil
}

// A Target is a host and port that something wants to reach.
type Target struct {
	Host string // canonical name, or address
	Port uint16
	addr netip.Addr
}

// NewTarget reads a host, as a client names it, and a port.
func NewTarget(host string, port uint16) (Target, error) {
	if port == 0 {
		return Target{}, errors.New("there is no port 0")
	}
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		if a.Zone() != "" {
			return Target{}, errors.New("addresses with a zone cannot be reached")
		}
		a = a.Unmap()
		return Target{a.String(), port, a}, nil
	}
	h, err := canonical(host)
	if err != nil {
		return Target{}, fmt.Errorf("%q: %w", host, err)
	}
	return Target{Host: h, Port: port}, nil
}

// String is HOST:PORT.
func (t Target) String() string {
	if t.addr.Is6() {
		return "[" + t.Host + "]:" + strconv.Itoa(int(t.Port))
	}
	return t.Host + ":" + strconv.Itoa(int(t.Port))
}

// Rule is the narrowest rule that is customary for t: the host, and for
// loopback its port.
func (t Target) Rule() string {
	s := t.Host
	if t.addr.Is6() {
		s = "[" + t.Host + "]"
	}
	if t.Host == "localhost" || t.addr.IsLoopback() {
		s += ":" + strconv.Itoa(int(t.Port))
	}
	return s
}

// Addr is t's address, if it is one and no name.
func (t Target) Addr() netip.Addr { return t.addr }

func (r rule) matches(t Target) bool {
	switch {
	case r.port != 0 && r.port != t.Port:
		return false
	case r.all:
		return true
	case r.prefix.IsValid():
		return t.addr.IsValid() && r.prefix.Contains(t.addr)
	case t.addr.IsValid():
		return r.name == "localhost" && !r.below && t.addr.IsLoopback()
	case r.below:
		return strings.HasSuffix(t.Host, "."+r.name)
	}
	return r.name == t.Host
}

// Decide judges a target by its name. by is the rule that decides, or "".
func (r Rules) Decide(t Target) (v Verdict, by string) {
	for _, d := range r.deny {
		if d.matches(t) {
			return Denied, d.text
		}
	}
	for _, a := range r.allow {
		if a.matches(t) {
			return Allowed, a.text
		}
	}
	if r.Strict {
		return Denied, ""
	}
	return Unknown, ""
}

// Loopback reports whether a rule allows localhost, with any port, and lists
// the ports that rules name.
func (r Rules) Loopback() (any bool, ports []uint16) {
	for _, a := range r.allow {
		if a.name == "localhost" && !a.below || a.prefix.IsValid() && a.prefix.Addr().IsLoopback() {
			if a.port == 0 {
				any = true
			} else {
				ports = append(ports, a.port)
			}
		}
	}
	return any, ports
}

// CheckAddr judges the address that t's name has led to. An address that is
// not of the public internet must itself be in a rule, or be loopback where
// localhost is; it is not enough that a name leads there.
func (r Rules) CheckAddr(t Target, a netip.Addr) error {
	a = a.Unmap().WithZone("")
	at := Target{a.String(), t.Port, a}
	for _, d := range r.deny {
		if !d.all && d.prefix.IsValid() && d.matches(at) {
			return fmt.Errorf("%s leads to %s, which rule %q denies", t, a, d.text)
		}
	}
	kind := special(a)
	if kind == "" {
		return nil
	}
	for _, l := range r.allow {
		if l.matches(at) && (l.prefix.IsValid() || t.Host == "localhost" || t.addr.IsValid()) {
			return nil
		}
	}
	return fmt.Errorf("%s leads to %s, %s address; to reach it, name the address itself in sandbox.network.allowedDomains", t, a, kind)
}

// special names the kind of an address outside of the public internet.
func special(a netip.Addr) string {
	switch {
	case a.IsLoopback():
		return "a loopback"
	case a.IsLinkLocalUnicast():
		return "a link-local"
	case a.IsPrivate():
		return "a private"
	case a.IsUnspecified(), a.IsMulticast(), !a.IsGlobalUnicast():
		return "a special"
	}
	for _, p := range [...]string{
		"100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "0.0.0.0/8",
		"64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "fec0::/10", "2001:db8::/32", "100::/64",
	} {
		if netip.MustParsePrefix(p).Contains(a) {
			return "a special"
		}
	}
	return ""
}
