package authority

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func pool(t *testing.T, data []byte) *x509.CertPool {
	t.Helper()
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(data) {
		t.Fatal("the bundle holds nothing")
	}
	return p
}

// Who trusts the bundle trusts the certificates of this authority, and no
// other's.
func TestFor(t *testing.T) {
	t.Parallel()
	a, err := New()
	if err != nil {
		t.Fatal(err)
	}
	b, err := New()
	if err != nil {
		t.Fatal(err)
	}
	own, err := a.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	other, err := b.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"api.example.com", "127.0.0.1", "::1", strings.Repeat("a.", 60) + "example.com"} {
		c, err := a.For(host)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: pool(t, own)}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
		if _, err := c.Leaf.Verify(x509.VerifyOptions{DNSName: "other.example.com", Roots: pool(t, own)}); err == nil {
			t.Errorf("the certificate of %s serves another host", host)
		}
		if _, err := c.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: pool(t, other)}); err == nil {
			t.Errorf("%s: one authority is taken for another", host)
		}
		if again, _ := a.For(host); again != c {
			t.Errorf("%s: made twice", host)
		}
	}
}

// The bundle has what was trusted before, and no key.
func TestBundle(t *testing.T) {
	t.Parallel()
	a, err := New()
	if err != nil {
		t.Fatal(err)
	}
	more, err := New()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "corp.pem")
	if err := os.WriteFile(file, more.pem, 0o600); err != nil {
		t.Fatal(err)
	}
	data, err := a.Bundle(file)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for rest := data; ; n++ {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			break
		}
		if b.Type != "CERTIFICATE" {
			t.Errorf("a %s stands in the bundle", b.Type)
		}
	}
	if n < 50 {
		t.Errorf("%d certificates: the roots are missing", n)
	}
	c, err := more.For("corp.test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Leaf.Verify(x509.VerifyOptions{DNSName: "corp.test", Roots: pool(t, data)}); err != nil {
		t.Error(err)
	}
	if data, err := a.Bundle(file + ".none"); err == nil || len(data) == 0 {
		t.Errorf("a file that is not there: %d bytes, %v", len(data), err)
	}
	env := Environ("/b.pem")
	for _, name := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"} {
		if !slices.Contains(env, name+"=/b.pem") {
			t.Errorf("%s is not set", name)
		}
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	a, err := New()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	der, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, key := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.key")
	write := func(name string, data []byte) {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(cert, a.pem)
	write(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	b, err := Load(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := b.For("x.test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Leaf.Verify(x509.VerifyOptions{DNSName: "x.test", Roots: pool(t, a.pem)}); err != nil {
		t.Error(err)
	}
	write(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}))
	if _, err := Load(cert, key); err == nil {
		t.Error("a leaf was taken for an authority")
	}
}
