package dial

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/youmark/pkcs8"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/net/ledger"
)

var quiet = log.New(io.Discard, "", 0)

func TestExceptions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		list, host, port string
		direct           bool
	}{
		{"x.test", "x.test", "443", true},
		{"x.test", "a.x.test", "443", true},
		{"x.test", "ax.test", "443", false},
		{".x.test", "a.x.test", "443", true},
		{".x.test", "x.test", "443", false},
		{"*.x.test", "a.b.x.test", "443", true},
		{"*.x.test", "x.test", "443", false},
		{"X.Test", "x.tEST.", "443", true},
		{"x.test:8443", "x.test", "8443", true},
		{"x.test:8443", "x.test", "443", false},
		{"a.test b.test\tc.test\nd.test", "d.test", "443", true},
		{"a.test, b.test;c.test", "c.test", "443", true},
		{"10.0.0.0/8", "10.1.2.3", "443", true},
		{"10.0.0.0/8", "11.1.2.3", "443", false},
		{"10.1.2.3/8", "10.9.9.9", "443", true},
		{"10.1.2.3", "10.1.2.3", "443", true},
		{"10.1.2.3:80", "10.1.2.3", "443", false},
		{"[fd00::1]", "fd00::1", "443", true},
		{"fd00::1", "fd00::1", "443", true},
		{"[fd00::1]:443", "fd00::1", "443", true},
		{"[fd00::1]:80", "fd00::1", "443", false},
		{"fd00::/8", "fd12::9", "443", true},
		{"https://x.test/", "x.test", "443", true},
		{"*", "anything.test", "443", true},
		{"a.test,*", "1.2.3.4", "443", true},
		{"", "127.0.0.1", "80", true},
		{"", "127.8.8.8", "80", true},
		{"", "::1", "80", true},
		{"", "localhost", "80", true},
		{"", "x.test", "80", false},
		{", ,:80,/8", "x.test", "80", false},
	} {
		if got := parseExceptions(tt.list).match(tt.host, tt.port) != ""; got != tt.direct {
			t.Errorf("%q: %s:%s direct = %v, want %v", tt.list, tt.host, tt.port, got, tt.direct)
		}
	}
}

func FuzzExceptions(f *testing.F) {
	f.Add("a.test, .b.test *", "a.test", "80")
	f.Add("10.0.0.0/8,[::1]:80", "::1", "80")
	f.Fuzz(func(t *testing.T, list, host, port string) {
		parseExceptions(list).match(host, port)
		if _, err := parseProxy(list); err == nil && !strings.Contains(list, "://") {
			t.Errorf("%q is no proxy URL", list)
		}
		allowed([]string{list}, host, port)
	})
}

func TestProxyURL(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"http://corp:8080":                     "http://corp:8080 - -",
		"https://corp":                         "https://corp:443 - -",
		"http://corp/":                         "http://corp:80 - -",
		"HTTP://corp":                          "http://corp:80 - -",
		"http://u:p@corp:1":                    "http://corp:1 u p",
		"http://u:p%40s%3As@corp:1":            "http://corp:1 u p@s:s",
		"http://u:p%40s:s/w@rd@127.0.0.1:3128": "http://127.0.0.1:3128 u p@s:s/w@rd",
		"http://u@[::1]:3128":                  "http://[::1]:3128 u -",
		"socks5://corp":                        "socks5://corp:1080 - -",
		"corp:8080":                            "error the proxy has no scheme: write http://corp:8080",
		"user:secret@corp:8080":                "error the proxy has no scheme: write http://corp:8080",
		"ftp://corp":                           `error the proxy scheme "ftp" is not one of http, https, socks5`,
		"http://u:secret@":                     "error the proxy host cannot be read: write http://HOST:PORT",
		"http://a b":                           "error the proxy host cannot be read: write http://HOST:PORT",
		"http://corp:port":                     "error the proxy host cannot be read: write http://HOST:PORT",
	} {
		got := ""
		if u, err := parseProxy(in); err != nil {
			got = "error " + err.Error()
		} else {
			user, password := "-", "-"
			if u.User != nil {
				user = u.User.Username()
				if p, ok := u.User.Password(); ok {
					password = p
				}
			}
			got = fmt.Sprintf("%s://%s %s %s", u.Scheme, u.Host, user, password)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		env  map[string]string
		url  string
		want string
	}{
		{map[string]string{"HTTPS_PROXY": "http://p:1"}, "https://x.test", "p:1"},
		{map[string]string{"HTTPS_PROXY": "http://p:1"}, "http://x.test", "p:1"},
		{map[string]string{"HTTPS_PROXY": "http://p:1", "https_proxy": "http://q:1", "HTTP_PROXY": "http://r:1"}, "https://x.test", "q:1"},
		{map[string]string{"HTTPS_PROXY": "http://p:1", "http_proxy": "http://r:1"}, "http://x.test", "r:1"},
		{map[string]string{"HTTP_PROXY": "http://p:1", "HTTPS_PROXY": " "}, "https://x.test", "p:1"},
		{map[string]string{"HTTPS_PROXY": "http://p:1", "NO_PROXY": "x.test"}, "https://x.test", ""},
		{map[string]string{"HTTPS_PROXY": "http://p:1", "NO_PROXY": "x.test", "no_proxy": "y.test"}, "https://x.test", "p:1"},
		{map[string]string{"HTTPS_PROXY": "http://p:1"}, "http://127.0.0.1:4000", ""},
		{map[string]string{"HTTPS_PROXY": "http://p:1", "NO_PROXY": "x.test:443"}, "https://x.test", ""},
		{map[string]string{"REQUEST_METHOD": "GET", "HTTP_PROXY": "http://p:1"}, "http://x.test", "p:1"},
		{nil, "https://x.test", ""},
	} {
		d, err := New(Options{Env: env(tt.env)})
		if err != nil {
			t.Fatal(err)
		}
		u, _ := url.Parse(tt.url)
		if got := d.ProxyFor(u); got != tt.want {
			t.Errorf("%v %s: got %q, want %q", tt.env, tt.url, got, tt.want)
		}
	}
}

func TestNewNamesTheVariable(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"HTTPS_PROXY": "corp:8080", "http_proxy": "ftp://x", "CLAUDE_CODE_CERT_STORE": "bundled,os",
		"CLAUDE_CODE_CLIENT_CERT": "/nowhere", "CLAUDE_CODE_CLIENT_KEY": "/nowhere",
	} {
		if _, err := New(Options{Env: env(map[string]string{name: value})}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: got %v", name, value, err)
		}
	}
}

func TestThroughProxy(t *testing.T) {
	t.Parallel()
	authority := newCA(t, "Test Authority")
	file := write(t, t.TempDir(), "ca.pem", authority.pem)
	target := secure(t, authority, nil, "api.x.test")
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "plain "+r.Host) }))
	t.Cleanup(plain.Close)
	const password = "p%40s:s/w@rd"
	auth := "Basic " + base64.StdEncoding.EncodeToString([]byte("u:p@s:s/w@rd"))
	for _, overTLS := range []bool{false, true} {
		t.Run(fmt.Sprintf("proxy over TLS %v", overTLS), func(t *testing.T) {
			t.Parallel()
			var by *ca
			if overTLS {
				by = authority
			}
			p, ps := proxyTo(t, target.Listener.Addr().String(), auth, by)
			at := strings.Replace(ps.URL, "://", "://u:"+password+"@", 1)
			_, c := open(t, Options{Env: env(map[string]string{"HTTPS_PROXY": at, "NODE_EXTRA_CA_CERTS": file})}, Use{})
			if got, err := fetch(t, c, "https://api.x.test/"); got != "hello nobody" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
			if got, want := p.requests(), []string{"CONNECT api.x.test:443"}; !slices.Equal(got, want) {
				t.Errorf("the proxy saw %q, want %q", got, want)
			}
			p2, ps2 := proxyTo(t, plain.Listener.Addr().String(), auth, by)
			at2 := strings.Replace(ps2.URL, "://", "://u:"+password+"@", 1)
			_, c2 := open(t, Options{Env: env(map[string]string{"HTTP_PROXY": at2, "NODE_EXTRA_CA_CERTS": file})}, Use{})
			if got, err := fetch(t, c2, "http://api.x.test/"); got != "plain api.x.test" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
			if got, want := p2.requests(), []string{"GET api.x.test"}; !slices.Equal(got, want) {
				t.Errorf("the proxy saw %q, want %q", got, want)
			}
			for _, u := range []string{"https://api.x.test/", "http://api.x.test/"} {
				_, c := open(t, Options{Env: env(map[string]string{"HTTPS_PROXY": ps.URL, "NODE_EXTRA_CA_CERTS": file})}, Use{})
				_, err := fetch(t, c, u)
				if pr := Explain(err); pr.Kind != Proxy || !pr.Lasting || !strings.Contains(pr.Text, "407") || !strings.Contains(pr.Hint, "USER:PASSWORD") {
					t.Errorf("%s without a password: %+v (%v)", u, pr, err)
				}
			}
		})
	}
}

func TestDeadProxy(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, c := open(t, Options{Env: env(map[string]string{"HTTPS_PROXY": "http://u:secret@" + l.Addr().String()})}, Use{})
	_, err = fetch(t, c, "https://api.x.test/")
	p := Explain(err)
	want := Problem{Proxy, "ECONNREFUSED", "connecting to the proxy: the connection was refused", "check the proxy variables", false}
	if d := cmp.Diff(want, p); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the error shows the password: %v", err)
	}
}

func TestTrust(t *testing.T) {
	t.Parallel()
	authority := newCA(t, "Inspecting Authority")
	s := secure(t, authority, nil)
	file := write(t, t.TempDir(), "ca.pem", authority.pem)
	for _, tt := range []struct {
		name string
		env  map[string]string
		ok   bool
	}{
		{"nothing", nil, false},
		{"bundled", map[string]string{"CLAUDE_CODE_CERT_STORE": "bundled"}, false},
		{"extra", map[string]string{"NODE_EXTRA_CA_CERTS": file}, true},
		{"extra and system", map[string]string{"NODE_EXTRA_CA_CERTS": file, "CLAUDE_CODE_CERT_STORE": "system"}, true},
		{"extra that is missing", map[string]string{"NODE_EXTRA_CA_CERTS": file + "x"}, false},
		{"verification cannot be turned off", map[string]string{"NODE_TLS_REJECT_UNAUTHORIZED": "0"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, c := open(t, Options{Env: env(tt.env)}, Use{})
			got, err := fetch(t, c, s.URL)
			if tt.ok {
				if err != nil || got != "hello nobody" {
					t.Errorf("got %q, %v", got, err)
				}
				return
			}
			p := Explain(err)
			want := Problem{TLS, "UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "the certificate is signed by an unknown authority: CN=Inspecting Authority", caHint, true}
			if d := cmp.Diff(want, p); d != "" {
				t.Errorf("%v (-want +got):\n%s", err, d)
			}
		})
	}
	t.Run("wrong name", func(t *testing.T) {
		t.Parallel()
		_, ps := proxyTo(t, s.Listener.Addr().String(), "", nil)
		_, c := open(t, Options{Env: env(map[string]string{"NODE_EXTRA_CA_CERTS": file, "HTTPS_PROXY": ps.URL})}, Use{})
		_, err := fetch(t, c, "https://other.x.test/")
		if p := Explain(err); p.Kind != TLS || p.Code != "ERR_TLS_CERT_ALTNAME_INVALID" || !p.Lasting {
			t.Errorf("got %+v (%v)", p, err)
		}
	})
	t.Run("no TLS there", func(t *testing.T) {
		t.Parallel()
		plain := httptest.NewServer(http.NotFoundHandler())
		defer plain.Close()
		_, c := open(t, Options{}, Use{})
		_, err := fetch(t, c, strings.Replace(plain.URL, "http:", "https:", 1))
		if p := Explain(err); p.Kind != TLS || !p.Lasting {
			t.Errorf("got %+v (%v)", p, err)
		}
	})
}

func TestHTTP2(t *testing.T) {
	t.Parallel()
	authority := newCA(t, "A")
	s := secure(t, authority, nil)
	file := write(t, t.TempDir(), "ca.pem", authority.pem)
	for _, old := range []bool{false, true} {
		_, c := open(t, Options{Env: env(map[string]string{"NODE_EXTRA_CA_CERTS": file})}, Use{HTTP1: old})
		resp, err := c.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if want := map[bool]int{false: 2, true: 1}[old]; resp.ProtoMajor != want {
			t.Errorf("HTTP1 %v: got %s", old, resp.Proto)
		}
	}
}

func TestClientCert(t *testing.T) {
	t.Parallel()
	authority := newCA(t, "A")
	pool := x509.NewCertPool()
	pool.AddCert(authority.cert)
	s := secure(t, authority, pool)
	dir := t.TempDir()
	caFile := write(t, dir, "ca.pem", authority.pem)
	key, _, certPEM := authority.issue(t, "alice", false, nil)
	certFile := write(t, dir, "cert.pem", certPEM)
	plainKey := func(key *ecdsa.PrivateKey) []byte {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	}
	encrypted := func(opts *pkcs8.Opts) []byte {
		der, err := pkcs8.MarshalPrivateKey(key, []byte("pass"), opts)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: der})
	}
	ecDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	//lint:ignore SA1019 the old form must stay readable
	legacy, err := x509.EncryptPEMBlock(rng{}, "EC PRIVATE KEY", ecDER, []byte("pass"), x509.PEMCipherAES256)
	if err != nil {
		t.Fatal(err)
	}
	scrypt := &pkcs8.Opts{Cipher: pkcs8.AES256CBC, KDFOpts: pkcs8.ScryptOpts{SaltSize: 8, CostParameter: 4, BlockSize: 8, ParallelizationParameter: 1}}
	for name, tt := range map[string]struct {
		key  []byte
		pass string
		want string
	}{
		"plain":            {plainKey(key), "", "hello alice"},
		"PBES2":            {encrypted(nil), "pass", "hello alice"},
		"scrypt":           {encrypted(scrypt), "pass", "hello alice"},
		"legacy":           {pem.EncodeToMemory(legacy), "pass", "hello alice"},
		"wrong passphrase": {encrypted(nil), "no", "is the passphrase right?"},
		"no passphrase":    {encrypted(nil), "", "set CLAUDE_CODE_CLIENT_KEY_PASSPHRASE"},
		"PBES1":            {pbes1(t), "pass", "openssl pkcs8 -topk8 -v2 aes256"},
		"no key":           {[]byte("nothing"), "", "client certificate"},
	} {
		file := write(t, dir, name+".key", tt.key)
		_, c := open(t, Options{Env: env(map[string]string{
			"NODE_EXTRA_CA_CERTS": caFile, "CLAUDE_CODE_CLIENT_CERT": certFile, "CLAUDE_CODE_CLIENT_KEY": file, "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE": tt.pass,
		})}, Use{})
		got, err := fetch(t, c, s.URL)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
	// A certificate that is renewed is used from the next connection on; a
	// pair that does not fit leaves the old one.
	keyFile := write(t, dir, "live.key", plainKey(key))
	live := write(t, dir, "live.pem", certPEM)
	_, c := open(t, Options{Env: env(map[string]string{"NODE_EXTRA_CA_CERTS": caFile, "CLAUDE_CODE_CLIENT_CERT": live, "CLAUDE_CODE_CLIENT_KEY": keyFile})}, Use{})
	who := func(want string) {
		t.Helper()
		c.CloseIdleConnections()
		if got, err := fetch(t, c, s.URL); got != want || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	who("hello alice")
	key2, _, cert2 := authority.issue(t, "bob", false, nil)
	touch := func(file string, data []byte, ahead time.Duration) {
		t.Helper()
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(ahead)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	touch(live, cert2, time.Minute)
	who("hello alice") // the key is still the old one
	touch(keyFile, plainKey(key2), 2*time.Minute)
	who("hello bob")
}

// rng makes the one encryption that takes a source of randomness repeatable.
type rng struct{}

func (rng) Read(p []byte) (int, error) { return len(p), nil }

// pbes1 is a key in an encryption that is too old: pbeWithSHAAnd3-KeyTripleDES-CBC.
func pbes1(t *testing.T) []byte {
	t.Helper()
	der, err := asn1.Marshal(struct {
		Algorithm pkix.AlgorithmIdentifier
		Data      []byte
	}{pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 12, 1, 3}}, []byte("data")})
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: der})
}

func TestOnly(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		list       []string
		host, port string
		ok         bool
	}{
		{[]string{"x.test"}, "x.test", "443", true},
		{[]string{"X.test"}, "x.TEST.", "443", true},
		{[]string{"x.test"}, "a.x.test", "443", false},
		{[]string{"*.x.test"}, "a.b.x.test", "443", true},
		{[]string{"*.x.test"}, "x.test", "443", true},
		{[]string{"*.x.test"}, "evilx.test", "443", false},
		{[]string{"x.test:8443"}, "x.test", "443", false},
		{[]string{"x.test:8443"}, "x.test", "8443", true},
		{[]string{"[::1]:80"}, "::1", "80", true},
		{[]string{"::1"}, "::1", "80", true},
		{[]string{"*"}, "any", "1", true},
		{[]string{}, "any", "1", false},
		{[]string{"a", "b"}, "b", "1", true},
	} {
		if got := allowed(tt.list, tt.host, tt.port); got != tt.ok {
			t.Errorf("%q: %s:%s = %v", tt.list, tt.host, tt.port, got)
		}
	}
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer other.Close()
	s := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusFound))
	defer s.Close()
	_, c := open(t, Options{}, Use{Why: "fetch", Only: []string{s.Listener.Addr().String()}})
	if _, err := fetch(t, c, s.URL); !errors.Is(err, ErrDenied) || Explain(err).Kind != Denied || !Explain(err).Lasting {
		t.Errorf("got %v", err)
	}
	d, c := open(t, Options{}, Use{Why: "fetch", Only: []string{}})
	if _, err := fetch(t, c, s.URL); !errors.Is(err, ErrDenied) {
		t.Errorf("got %v", err)
	}
	if _, err := d.Tunnel(t.Context(), Use{Only: []string{"x.test"}}, s.Listener.Addr().String()); !errors.Is(err, ErrDenied) {
		t.Errorf("got %v", err)
	}
}

func TestControl(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	var mu sync.Mutex
	var seen []string
	noLoopback := func(host string, a netip.AddrPort) error {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, host+" "+a.Addr().String())
		if a.Addr().IsLoopback() || a.Addr().IsPrivate() {
			return errors.New("a private address")
		}
		return nil
	}
	d, c := open(t, Options{}, Use{Why: "fetch", Control: noLoopback})
	for _, host := range []string{"127.0.0.1", "localhost"} {
		_, err := fetch(t, c, "http://"+net.JoinHostPort(host, port))
		if !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "a private address") {
			t.Errorf("%s: got %v", host, err)
		}
	}
	if !slices.Contains(seen, "localhost 127.0.0.1") {
		t.Errorf("saw %q", seen)
	}
	if _, err := d.Tunnel(t.Context(), Use{Control: noLoopback}, s.Listener.Addr().String()); !errors.Is(err, ErrDenied) {
		t.Errorf("tunnel: got %v", err)
	}
	// Through a proxy the target is looked at, and the proxy's own address is not.
	p, ps := proxyTo(t, s.Listener.Addr().String(), "", nil)
	for _, tt := range []struct {
		url, resolves, want string
	}{
		{"http://10.0.0.1/", "", "a private address"},
		{"http://10.0.0.1/", "1", "a private address"},
		{"http://unknown.x.test/", "", "CLAUDE_CODE_PROXY_RESOLVES_HOSTS=1"},
		{"http://unknown.x.test/", "1", ""},
		{"http://inside.x.test/", "", "a private address"},
		{"http://outside.x.test/", "", ""},
		{"http://93.184.216.34/", "", ""},
	} {
		d, c := open(t, Options{Env: env(map[string]string{"HTTP_PROXY": ps.URL, "CLAUDE_CODE_PROXY_RESOLVES_HOSTS": tt.resolves})}, Use{Control: noLoopback})
		d.lookup = func(_ context.Context, _, host string) ([]netip.Addr, error) {
			switch host {
			case "inside.x.test":
				return []netip.Addr{netip.MustParseAddr("93.184.216.34"), netip.MustParseAddr("10.0.0.1")}, nil
			case "outside.x.test":
				return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
			}
			return nil, &net.DNSError{Name: host, IsNotFound: true}
		}
		_, err := fetch(t, c, tt.url)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s, proxy resolves %q: got %v, want %q", tt.url, tt.resolves, err, tt.want)
		}
	}
	if got := len(p.requests()); got != 3 {
		t.Errorf("the proxy saw %d requests, want 3", got)
	}
}

func TestRecordAndLedger(t *testing.T) {
	t.Parallel()
	authority := newCA(t, "A")
	s := secure(t, authority, nil, "api.x.test")
	file := write(t, t.TempDir(), "ca.pem", authority.pem)
	_, ps := proxyTo(t, s.Listener.Addr().String(), "", nil)
	proxyHost := strings.TrimPrefix(ps.URL, "http://")
	var mu sync.Mutex
	var crossed []string
	record := func(c agent.Crossed) {
		mu.Lock()
		defer mu.Unlock()
		crossed = append(crossed, fmt.Sprintf("%s %s %s %s %s%s%s", c.ID, c.Boundary, c.Outcome, c.Detail["gateway"], c.Detail["version"], c.Detail["reused"], c.Detail["status"]))
		if c.Detail["proxy"] != proxyHost || c.End.Before(c.Start) || c.Start.IsZero() {
			t.Errorf("%+v", c)
		}
	}
	path := ledger.Name(t.TempDir())
	book := ledger.New(ledger.Options{Path: func() string { return path }})
	defer book.Close()
	_, c := open(t, Options{Env: env(map[string]string{"HTTPS_PROXY": ps.URL, "NODE_EXTRA_CA_CERTS": file}), Ledger: book, Only: []string{"*.x.test"}}, Use{Why: "mcp", Record: record})
	for range 2 {
		resp, err := c.Post("https://api.x.test/", "text/plain", strings.NewReader("12345"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	ps.Close()
	c.CloseIdleConnections()
	if _, err := fetch(t, c, "https://api.x.test/"); err == nil {
		t.Fatal("no error from a proxy that is gone")
	}
	if _, err := fetch(t, c, "https://other.test/"); !errors.Is(err, ErrDenied) {
		t.Errorf("other.test: %v", err)
	}
	contacts, _, err := ledger.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	wantCrossed := []string{
		"mcp/1 connect ok api.x.test:443 ", "mcp/1 TLS ok api.x.test:443 TLS 1.3", "mcp/1 request ok api.x.test:443 ", "mcp/1 first byte ok api.x.test:443 200",
		"mcp/2 connect ok api.x.test:443 true", "mcp/2 request ok api.x.test:443 ", "mcp/2 first byte ok api.x.test:443 200",
		"mcp/3 connect error api.x.test:443 ",
	}
	if d := cmp.Diff(wantCrossed, crossed); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	contact := func(n, verdict string) ledger.Contact {
		return ledger.Contact{Host: "api.x.test:443", Proxy: proxyHost, Why: "mcp", Boundary: "mcp/" + n, Verdict: verdict}
	}
	first, second, bad := contact("1", ledger.Allowed), contact("2", ledger.Allowed), contact("3", ledger.Allowed)
	for _, c := range []*ledger.Contact{&first, &second} {
		c.Sent, c.Received, c.Status = 5, 12, 200
	}
	bad.Err = "connecting to the proxy: the connection was refused"
	refused := ledger.Contact{
		Host: "other.test:443", Why: "mcp", Verdict: ledger.Denied, By: "--net",
		Err: "mcp: other.test:443: not allowed: it is not one of the hosts that may be reached (--net)",
	}
	for i, c := range contacts {
		if c.At.IsZero() || c.End.Before(c.At) {
			t.Errorf("contact %d: from %v to %v", i, c.At, c.End)
		}
	}
	if d := cmp.Diff([]ledger.Contact{first, second, bad, refused}, contacts, cmpopts.IgnoreFields(ledger.Contact{}, "ID", "At", "End")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Connections without TLS must not pay for certificates.
func TestPlainLoadsNoCertificates(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	_, c := open(t, Options{}, Use{})
	if _, err := fetch(t, c, s.URL); err != nil {
		t.Fatal(err)
	}
	if c.Transport.(*transport).made[1].Load() != nil {
		t.Error("the transport for TLS was made")
	}
}

func TestTunnel(t *testing.T) {
	t.Parallel()
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(c, c)
			c.Close()
		}
	}()
	authority := newCA(t, "A")
	file := write(t, t.TempDir(), "ca.pem", authority.pem)
	_, plain := proxyTo(t, echo.Addr().String(), "Basic dTpw", nil)
	_, overTLS := proxyTo(t, echo.Addr().String(), "", authority)
	for name, tt := range map[string]struct{ proxy, addr, want string }{
		"direct":          {"", echo.Addr().String(), ""},
		"proxy":           {strings.Replace(plain.URL, "://", "://u:p@", 1), "host.x.test:22", ""},
		"proxy over TLS":  {overTLS.URL, "host.x.test:22", ""},
		"wrong password":  {plain.URL, "host.x.test:22", "407"},
		"socks":           {"socks5://127.0.0.1:1", "host.x.test:22", "refused"},
		"no port":         {"", "host", "missing port"},
		"nobody answers":  {"http://127.0.0.1:1", "host.x.test:22", "refused"},
		"TLS to no proxy": {strings.Replace(plain.URL, "http:", "https:", 1), "host.x.test:22", "proxyconnect"},
	} {
		d, err := New(Options{Env: env(map[string]string{"HTTPS_PROXY": tt.proxy, "NODE_EXTRA_CA_CERTS": file})})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		c, err := d.Tunnel(ctx, Use{Why: "egress"}, tt.addr)
		if tt.want != "" {
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: got %v, want %s", name, err, tt.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := io.WriteString(c, "hi"); err != nil {
			t.Error(err)
		}
		b := make([]byte, 2)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "hi" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
		c.Close()
	}
	// A proxy that never answers is given up when ctx ends.
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	d, _ := New(Options{Env: env(map[string]string{"HTTPS_PROXY": "http://" + mute.Addr().String()})})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := d.Tunnel(ctx, Use{}, "host.x.test:22"); err == nil {
		t.Error("no error")
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	op := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
	}
	for _, tt := range []struct {
		err     error
		kind    Kind
		code    string
		lasting bool
	}{
		{op(syscall.ECONNREFUSED), Refused, "ECONNREFUSED", false},
		{op(syscall.ECONNRESET), Reset, "ECONNRESET", false},
		{op(syscall.ENETUNREACH), Route, "EHOSTUNREACH", false},
		{io.ErrUnexpectedEOF, Reset, "ECONNRESET", false},
		{fmt.Errorf("x: %w", io.EOF), Reset, "ECONNRESET", false},
		{context.Canceled, Canceled, "ABORT_ERR", true},
		{context.DeadlineExceeded, Timeout, "ETIMEDOUT", false},
		{os.ErrDeadlineExceeded, Timeout, "ETIMEDOUT", false},
		{&net.DNSError{Name: "x.test", IsNotFound: true}, Lookup, "ENOTFOUND", false},
		{&net.DNSError{Name: "x.test"}, Lookup, "EAI_AGAIN", false},
		{fmt.Errorf("a: %w", ErrDenied), Denied, "EACCES", true},
		{tls.AlertError(42), TLS, "EPROTO", false},
		{&ProxyError{"p:1", 502, "502 Bad Gateway"}, Proxy, "EPROXY", false},
		{errors.New("odd"), Unknown, "ERR", false},
	} {
		if p := Explain(tt.err); p.Kind != tt.kind || p.Code != tt.code || p.Lasting != tt.lasting || p.Text == "" {
			t.Errorf("%v: got %+v", tt.err, p)
		}
	}
}

func TestSleep(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		wall, monotonic time.Duration
		want            bool
	}{
		{time.Minute, time.Minute, false},
		{2 * time.Hour, time.Minute, true},
		{-2 * time.Hour, time.Minute, false}, // the clock was set back: connections live on
		{time.Hour, time.Hour - time.Second, false},
	} {
		if got := apart(tt.wall, tt.monotonic); got != tt.want {
			t.Errorf("%v against %v: %v", tt.wall, tt.monotonic, got)
		}
	}
	var c clock
	for range 2 {
		if c.slept() {
			t.Error("slept without a gap")
		}
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	d, err := New(Options{Env: env(map[string]string{
		"HTTPS_PROXY": "http://u:secret@corp:8080", "NO_PROXY": "a.test b.test", "NODE_EXTRA_CA_CERTS": "/ca.pem", "CLAUDE_CODE_CLIENT_CERT": "/c", "CLAUDE_CODE_CLIENT_KEY": "/k",
		"CLAUDE_CODE_CERT_STORE": "system", "NODE_TLS_REJECT_UNAUTHORIZED": "0",
	})})
	if err != nil {
		t.Fatal(err)
	}
	want := []Setting{
		{"Proxy", "http://u:xxxxx@corp:8080 (HTTPS_PROXY)"}, {"No proxy for", "a.test, b.test"}, {"Certificate store", "system"}, {"Additional CA", "/ca.pem"},
		{"mTLS client cert", "/c"}, {"mTLS client key", "/k"}, {"NODE_TLS_REJECT_UNAUTHORIZED", "0 (not obeyed)"},
	}
	if d := cmp.Diff(want, d.Settings()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
