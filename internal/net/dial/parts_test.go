package dial

import (
	"bufio"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func env(m map[string]string) func(string) string { return func(k string) string { return m[k] } }

// A ca signs certificates for tests.
type ca struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

var serial = struct {
	sync.Mutex
	n int64
}{}

func newCA(t *testing.T, name string) *ca {
	t.Helper()
	c := &ca{}
	c.key, c.cert, c.pem = c.issue(t, name, true, nil)
	return c
}

func (c *ca) issue(t *testing.T, name string, isCA bool, hosts []string) (*ecdsa.PrivateKey, *x509.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial.Lock()
	serial.n++
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(serial.n), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: hosts, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: isCA,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	serial.Unlock()
	parent, signer := c.cert, c.key
	if isCA {
		tmpl.ExtKeyUsage, tmpl.IPAddresses = nil, nil
		parent, signer = tmpl, key
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, key.Public(), crypto.Signer(signer))
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return key, cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// server makes a certificate for hosts.
func (c *ca) server(t *testing.T, hosts ...string) tls.Certificate {
	t.Helper()
	key, cert, _ := c.issue(t, "server", false, hosts)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

func write(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// secure starts an HTTPS server that answers with the name of its client.
func secure(t *testing.T, c *ca, clients *x509.CertPool, hosts ...string) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := "nobody"
		if len(r.TLS.PeerCertificates) > 0 {
			name = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		_, _ = io.WriteString(w, "hello "+name)
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{c.server(t, hosts...)}}
	if clients != nil {
		s.TLS.ClientAuth, s.TLS.ClientCAs = tls.RequireAndVerifyClientCert, clients
	}
	s.Config.ErrorLog = quiet
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// A testProxy is a forward proxy for which every host is at to. It wants the
// given Proxy-Authorization, if that is not empty.
type testProxy struct {
	to, auth string

	mu   sync.Mutex
	seen []string
}

func (p *testProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.auth != "" && r.Header.Get("Proxy-Authorization") != p.auth {
		w.Header().Set("Proxy-Authenticate", "Basic")
		http.Error(w, "no", http.StatusProxyAuthRequired)
		return
	}
	p.mu.Lock()
	p.seen = append(p.seen, r.Method+" "+r.Host)
	p.mu.Unlock()
	up, err := net.Dial("tcp", p.to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer up.Close()
	if r.Method != http.MethodConnect {
		r.Header.Del("Proxy-Authorization")
		if r.Write(up) != nil {
			return
		}
		resp, err := http.ReadResponse(bufio.NewReader(up), r)
		if err != nil {
			return
		}
		defer resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = io.Copy(up, conn); _ = up.(*net.TCPConn).CloseWrite() })
	_, _ = io.Copy(conn, up)
	conn.Close()
	wg.Wait()
}

func (p *testProxy) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.seen...)
}

// proxyTo starts a proxy in front of to; over TLS if c is not nil.
func proxyTo(t *testing.T, to, auth string, c *ca) (*testProxy, *httptest.Server) {
	t.Helper()
	p := &testProxy{to: to, auth: auth}
	s := httptest.NewUnstartedServer(p)
	s.Config.ErrorLog = quiet
	if c != nil {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{c.server(t)}}
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return p, s
}

// fetch gets a URL and returns what it says.
func fetch(t *testing.T, c *http.Client, url string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

// open makes a dialer or fails the test, and closes what its clients keep.
func open(t *testing.T, o Options, u Use) (*Dialer, *http.Client) {
	t.Helper()
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	c := d.Client(u)
	t.Cleanup(c.CloseIdleConnections)
	return d, c
}
