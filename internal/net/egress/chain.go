package egress

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"

	"github.com/seed-eb844fcb/cinch/internal/net/dial"
)

// Over returns o with hosts reached over d: through the corporate proxy that
// d knows of, with its password and authorities, and within d's list of the
// only hosts.
func (o Options) Over(d *dial.Dialer) Options {
	o.Only = func(t Target) error {
		if d.Check(t.Host, strconv.Itoa(int(t.Port))) != nil {
			return errors.New("it is not one of the hosts that may be reached (--net)")
		}
		return nil
	}
	o.Dial = func(ctx context.Context, address string, check func(netip.AddrPort) error) (net.Conn, error) {
		return d.Tunnel(ctx, dial.Use{Why: "command", Control: func(_ string, at netip.AddrPort) error { return check(at) }}, address)
	}
	o.Web = func(check func(string, netip.AddrPort) error) http.RoundTripper {
		return d.Forward(dial.Use{Why: "command", Control: check})
	}
	o.Via = func(t Target) string { return d.ProxyFor(t.url()) }
	o.TLS = d.ServerTLS
	return o
}

// url is what a proxy is chosen by.
func (t Target) url() *url.URL {
	u := &url.URL{Scheme: "https", Host: t.String()}
	if t.Port == 80 {
		u.Scheme = "http"
	}
	return u
}
