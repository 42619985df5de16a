package dial

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// A proxy is a proxy and the variable that named it.
type proxy struct {
	url *url.URL
	env string
}

// String shows the proxy without its password.
func (p *proxy) String() string {
	u := *p.url
	if u.User != nil {
		u.User = url.UserPassword(u.User.Username(), "xxxxx")
	}
	return u.String() + " (" + p.env + ")"
}

// proxies says which proxy a URL goes through.
type proxies struct {
	http, https *proxy
	except      exceptions
}

func newProxies(env func(string) string) (proxies, error) {
	first := func(names ...string) (*proxy, error) {
		for _, name := range names {
			if v := strings.TrimSpace(env(name)); v != "" {
				u, err := parseProxy(v)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
				return &proxy{u, name}, nil
			}
		}
		return nil, nil
	}
	var p proxies
	var err error
	if p.https, err = first("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"); err != nil {
		return p, err
	}
	if p.http, err = first("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"); err != nil {
		return p, err
	}
	for _, name := range []string{"no_proxy", "NO_PROXY"} {
		if v := env(name); strings.TrimSpace(v) != "" {
			p.except = parseExceptions(v)
			break
		}
	}
	return p, nil
}

// parseProxy reads a proxy URL. A password may hold any character, escaped or
// not: what stands before the last @ is the user's. The error shows none of it.
func parseProxy(s string) (*url.URL, error) {
	scheme, rest, ok := strings.Cut(s, "://")
	switch scheme = strings.ToLower(scheme); {
	case !ok:
		return nil, fmt.Errorf("the proxy has no scheme: write http://%s", hostPart(s))
	case scheme != "http" && scheme != "https" && scheme != "socks5" && scheme != "socks5h":
		return nil, fmt.Errorf("the proxy scheme %q is not one of http, https, socks5", scheme)
	}
	u := &url.URL{Scheme: scheme}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		user, password, has := strings.Cut(rest[:i], ":")
		if u.User = url.User(unescape(user)); has {
			u.User = url.UserPassword(unescape(user), unescape(password))
		}
	}
	h, err := url.Parse("http://" + hostPart(rest))
	if err != nil || h.Hostname() == "" || strings.ContainsAny(h.Host, " \t") {
		return nil, fmt.Errorf("the proxy host cannot be read: write %s://HOST:PORT", scheme)
	}
	u.Host = h.Host
	if h.Port() == "" {
		port := map[string]string{"http": "80", "https": "443"}[scheme]
		if port == "" {
			port = "1080"
		}
		u.Host = net.JoinHostPort(h.Hostname(), port)
	}
	return u, nil
}

// hostPart cuts user, password and path off.
func hostPart(s string) string {
	s = s[strings.LastIndexByte(s, '@')+1:]
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		s = s[:i]
	}
	return s
}

func unescape(s string) string {
	if v, err := url.PathUnescape(s); err == nil {
		return v
	}
	return s
}

// choose returns the proxy for u, or nil and why u is reached directly.
func (p proxies) choose(u *url.URL) (_ *proxy, why string) {
	via := p.https
	switch u.Scheme {
	case "http", "ws":
		via = p.http
	}
	if via == nil {
		return nil, ""
	}
	port := u.Port()
	if port == "" {
		if port = "443"; u.Scheme == "http" || u.Scheme == "ws" {
			port = "80"
		}
	}
	if why := p.except.match(u.Hostname(), port); why != "" {
		return nil, why
	}
	return via, ""
}

// exceptions are the entries of NO_PROXY.
type exceptions []exception

type exception struct {
	text   string
	all    bool
	prefix netip.Prefix // an address or a network
	suffix string       // ".domain"
	base   bool         // suffix without its dot matches too
	port   string
}

func (es exceptions) String() string {
	var s []string
	for _, e := range es {
		s = append(s, e.text)
	}
	return strings.Join(s, ", ")
}

// parseExceptions reads a list separated by commas or white space. Entries
// are "*", a host (and its subdomains), ".domain" or "*.domain" (subdomains
// only), an address or a network, each but the first and the last with an
// optional port. An entry that is none of these matches nothing.
func parseExceptions(list string) exceptions {
	var es exceptions
	for _, text := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ';' || r <= ' ' }) {
		e := exception{text: text}
		s := strings.ToLower(text)
		if s == "*" {
			e.all = true
			es = append(es, e)
			continue
		}
		if p, err := netip.ParsePrefix(s); err == nil {
			e.prefix = p.Masked()
			es = append(es, e)
			continue
		}
		if _, after, ok := strings.Cut(s, "://"); ok {
			s = strings.TrimRight(after, "/")
		}
		s, e.port = splitPort(s)
		if a, err := netip.ParseAddr(s); err == nil {
			a = a.Unmap()
			e.prefix = netip.PrefixFrom(a, a.BitLen())
		} else if s = strings.Trim(strings.TrimPrefix(s, "*"), "."); s != "" {
			e.base = !strings.HasPrefix(strings.ToLower(text), ".") && !strings.HasPrefix(text, "*")
			e.suffix = "." + s
		} else {
			continue
		}
		es = append(es, e)
	}
	return es
}

// match returns the entry that keeps host from the proxy, or "".
func (es exceptions) match(host, port string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	a, err := netip.ParseAddr(host)
	a = a.Unmap().WithZone("")
	if host == "localhost" || err == nil && a.IsLoopback() {
		return "loopback"
	}
	for _, e := range es {
		switch {
		case e.all:
			return e.text
		case e.port != "" && e.port != port:
		case e.prefix.IsValid():
			if err == nil && e.prefix.Contains(a) {
				return e.text
			}
		case strings.HasSuffix(host, e.suffix), e.base && host == e.suffix[1:]:
			return e.text
		}
	}
	return ""
}
