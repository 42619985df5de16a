package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/net/egress/authority"
	"github.com/seed-eb844fcb/cinch/internal/net/egress/mask"
	"github.com/seed-eb844fcb/cinch/internal/net/ledger"
)

// A vault is a rig with a credential for secret.test, and a server at all
// names that says what it got.
type vault struct {
	*rig
	ca       *authority.Authority
	upstream *httptest.Server
	stand    string
}

const real = "the-real-value"

func newVault(t *testing.T, plaintext bool) *vault {
	t.Helper()
	echo := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Upgrade") == "echo" {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			_, _ = io.Copy(conn, rw)
			return
		}
		b, _ := io.ReadAll(req.Body)
		w.Header().Set("X-Seen", strings.ReplaceAll(req.Header.Get("Authorization")+string(b), real, "REAL"))
		fmt.Fprintf(w, "you sent %s %s to %s%s", req.Header.Get("Authorization"), b, req.Host, req.URL.RequestURI())
	})
	srv := httptest.NewTLSServer(echo)
	t.Cleanup(srv.Close)
	plain := httptest.NewServer(echo)
	t.Cleanup(plain.Close)
	ca, err := authority.New()
	if err != nil {
		t.Fatal(err)
	}
	v := &vault{ca: ca, upstream: srv}
	secrets := mask.New([]mask.Secret{{Name: "TOKEN", Value: real, For: func(host string, _ uint16) bool { return host == "secret.test" || host == "127.0.0.9" }}}, plaintext, nil)
	v.stand = secrets.StandIn("TOKEN")
	v.rig = newRig(t, srv.Listener.Addr().String(), []string{"secret.test", "other.test", "example.com", "127.0.0.9"}, nil, nil)
	pool := x509.NewCertPool()
	pool.AddCert(srv.Certificate())
	v.o.Secrets, v.o.Authority = func() *mask.Set { return secrets }, ca
	// The test server's certificate is for example.com.
	v.o.TLS = func(host string) *tls.Config {
		name := "example.com"
		if host == "127.0.0.9" {
			name = "wrong.example.org"
		}
		return &tls.Config{RootCAs: pool, ServerName: name}
	}
	dial := v.o.Dial
	v.o.Dial = func(ctx context.Context, address string, check func(netip.AddrPort) error) (net.Conn, error) {
		_, port, _ := net.SplitHostPort(address)
		if port == "80" {
			return new(net.Dialer).DialContext(ctx, "tcp", plain.Listener.Addr().String())
		}
		if strings.HasPrefix(address, "127.0.0.9:") {
			return new(net.Dialer).DialContext(ctx, "tcp", srv.Listener.Addr().String())
		}
		return dial(ctx, address, check)
	}
	return v
}

// tunnel asks for a tunnel to host and returns it.
func (v *vault) tunnel(t *testing.T, host string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", v.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	req, _ := http.NewRequest("CONNECT", "", nil)
	req.URL = &url.URL{Opaque: host}
	req.SetBasicAuth("cinch", v.token)
	req.Header["Proxy-Authorization"] = req.Header["Authorization"]
	if err := req.Write(conn); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), req)
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(err, resp)
	}
	return conn
}

// trust is a client that trusts the session's authority alone.
func (v *vault) trust(t *testing.T, scheme string) *http.Client {
	t.Helper()
	bundle, err := v.ca.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	c := v.client(scheme)
	c.Transport.(*http.Transport).TLSClientConfig, c.Transport.(*http.Transport).DisableKeepAlives = &tls.Config{RootCAs: pool}, false
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// contacts waits until the ledger has n contacts, all of them over.
func (v *rig) contacts(t *testing.T, n int) []ledger.Contact {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; {
		list, _, err := ledger.Read(v.book)
		if err != nil {
			t.Fatal(err)
		}
		open := 0
		for _, c := range list {
			if c.End.IsZero() {
				open++
			}
		}
		if len(list) >= n && open == 0 || time.Now().After(end) {
			return list
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func post(t *testing.T, c *http.Client, url, auth, body string) (string, *http.Response, error) {
	t.Helper()
	req, err := http.NewRequest("POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", auth)
	req.Header.Set("Content-Type", "text/plain")
	resp, err := c.Do(req)
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), resp, err
}

// The host gets the real value; the command neither has nor sees it.
func TestInjection(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "socks5"} {
		v := newVault(t, false)
		c := v.trust(t, scheme)
		for range 2 { // the second on the same connection
			got, resp, err := post(t, c, "https://secret.test/a?b=1;2", "Bearer "+v.stand, "x"+v.stand)
			want := "you sent Bearer " + v.stand + " x" + v.stand + " to secret.test/a?b=1;2"
			if err != nil || got != want || resp.Header.Get("X-Seen") != "Bearer REALxREAL" {
				t.Fatalf("%s: %q %v %v", scheme, got, resp, err)
			}
		}
		c.CloseIdleConnections()
		list := v.contacts(t, 1)
		if len(list) != 1 || cmp.Diff([]string{"TOKEN"}, list[0].Secrets) != "" || list[0].Host != "secret.test:443" || list[0].Call != "t1" ||
			list[0].By != "secret.test" || list[0].Status != 200 || list[0].Sent == 0 || list[0].Received == 0 {
			t.Errorf("%s: %+v", scheme, list)
		}
	}
}

// Connections to other hosts are not opened: the command sees the host's own
// certificate, and the host sees the stand-in.
func TestOthersStaySealed(t *testing.T) {
	t.Parallel()
	v := newVault(t, false)
	if _, _, err := post(t, v.trust(t, "http"), "https://other.test/", "Bearer "+v.stand, ""); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("other.test was opened: %v", err)
	}
	_, resp, err := post(t, v.client("http"), "https://other.test/", "Bearer "+v.stand, v.stand)
	if err != nil || resp.Header.Get("X-Seen") != "Bearer "+v.stand+v.stand || !resp.TLS.PeerCertificates[0].Equal(v.upstream.Certificate()) {
		t.Errorf("%v %v", resp, err)
	}
	// Neither are those to the host itself that name another, or speak HTTP/2 only.
	for name, conf := range map[string]*tls.Config{
		"another name": {ServerName: "example.com", InsecureSkipVerify: true},
		"no name":      {InsecureSkipVerify: true},
		"h2":           {ServerName: "secret.test", NextProtos: []string{"h2"}, InsecureSkipVerify: true},
	} {
		tc := tls.Client(v.tunnel(t, "secret.test:443"), conf)
		if err := tc.Handshake(); err != nil && !strings.Contains(err.Error(), "no application protocol") {
			t.Errorf("%s: %v", name, err)
		} else if err == nil && !tc.ConnectionState().PeerCertificates[0].Equal(v.upstream.Certificate()) {
			t.Errorf("%s: it was opened", name)
		}
	}
}

// Behind one front the credential of one host does not reach another.
func TestHostInside(t *testing.T) {
	t.Parallel()
	v := newVault(t, false)
	bundle, _ := v.ca.Bundle()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	for _, host := range []string{"evil.test", "secret.test:444", "other.test"} {
		tc := tls.Client(v.tunnel(t, "secret.test:443"), &tls.Config{ServerName: "secret.test", RootCAs: pool})
		fmt.Fprintf(tc, "GET / HTTP/1.1\r\nHost: %s\r\nAuthorization: %s\r\n\r\n", host, v.stand)
		resp, err := http.ReadResponse(bufio.NewReader(tc), nil)
		if err != nil || resp.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("%s: %v %v", host, resp, err)
		}
	}
}

// A host that is not who it says it is gets nothing.
func TestWrongHost(t *testing.T) {
	t.Parallel()
	v := newVault(t, false)
	got, resp, err := post(t, v.trust(t, "http"), "https://127.0.0.9/", v.stand, "")
	if err != nil || resp.StatusCode != 502 || !strings.Contains(got, "certificate is valid for") {
		t.Errorf("%q %v", got, err)
	}
}

func TestUpgradeInside(t *testing.T) {
	t.Parallel()
	v := newVault(t, false)
	bundle, _ := v.ca.Bundle()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	tc := tls.Client(v.tunnel(t, "secret.test:443"), &tls.Config{ServerName: "secret.test", RootCAs: pool})
	fmt.Fprint(tc, "GET / HTTP/1.1\r\nHost: secret.test\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	br := bufio.NewReader(tc)
	resp, err := http.ReadResponse(br, nil)
	if err != nil || resp.StatusCode != 101 {
		t.Fatal(resp, err)
	}
	fmt.Fprint(tc, "ping")
	b := make([]byte, 4)
	if _, err := io.ReadFull(br, b); err != nil || string(b) != "ping" {
		t.Errorf("%q %v", b, err)
	}
	tc.Close()
	if list := v.contacts(t, 1); len(list) != 1 || list[0].Status != 101 {
		t.Errorf("%+v", list)
	}
}

// Without TLS the value goes out only where that was allowed.
func TestPlaintext(t *testing.T) {
	t.Parallel()
	for _, allowed := range []bool{false, true} {
		v := newVault(t, allowed)
		got, resp, err := post(t, v.client("http"), "http://secret.test/", v.stand, "")
		want := v.stand
		if allowed {
			want = "REAL"
		}
		if err != nil || resp.Header.Get("X-Seen") != want || strings.Contains(got, real) {
			t.Errorf("allowed %v: %q %v %v", allowed, got, resp, err)
		}
	}
}
