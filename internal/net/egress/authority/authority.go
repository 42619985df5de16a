// Package authority is the certificate authority by which connections of
// commands are opened where a credential is to be put in. Its key lives in
// memory and nowhere else, and it is gone with the session.
//
// It owns keys, certificates and the bundle by which commands trust it. It
// must not know which hosts are opened.
package authority

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// Times. A session may take weeks; a leaf is made anew when it runs out.
const (
	lifetime = 90 * 24 * time.Hour
	leafLife = 7 * 24 * time.Hour
	early    = time.Hour // for clocks that are behind
)

// An Authority signs for hosts. Its methods may be called concurrently.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte

	mu   sync.Mutex
	leaf *ecdsa.PrivateKey // one for all leaves
	made map[string]*tls.Certificate
}

// New makes an authority.
func New() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	now := time.Now()
	tmpl := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "cinch, for this session only"},
		NotBefore: now.Add(-early), NotAfter: now.Add(lifetime),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate authority: %w", err)
	}
	return with(der, key)
}

// Load reads an authority from PEM files, which commands must not be able to
// read.
func Load(certFile, keyFile string) (*Authority, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s: a key of this kind cannot sign", keyFile)
	}
	a, err := with(pair.Certificate[0], key)
	if err == nil && !a.cert.IsCA {
		err = fmt.Errorf("%s is no certificate of an authority", certFile)
	}
	return a, err
}

func with(der []byte, key crypto.Signer) (*Authority, error) {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return &Authority{
		cert: cert, key: key, leaf: leaf, made: map[string]*tls.Certificate{},
		pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}, nil
}

func serial() *big.Int {
	var b [16]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	b[0] &= 0x7f
	return new(big.Int).SetBytes(b[:])
}

// For returns a certificate for host, a name or an address.
func (a *Authority) For(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if c := a.made[host]; c != nil && now.Before(c.Leaf.NotAfter.Add(-early)) {
		return c, nil
	}
	tmpl := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: host},
		NotBefore: now.Add(-early), NotAfter: now.Add(leafLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		tmpl.IPAddresses = []net.IP{ip}
	} else {
		tmpl.DNSNames = []string{host}
	}
	if len(host) > 64 { // the longest that a common name may be
		tmpl.Subject.CommonName = ""
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, a.leaf.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate for %s: %w", host, err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	c := &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: a.leaf, Leaf: leaf}
	a.made[host] = c
	return c, nil
}

// systemFiles are where systems keep the certificates that they trust.
var systemFiles = [...]string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Alpine, Arch
	"/etc/pki/tls/certs/ca-bundle.crt",                  // Fedora
	"/etc/ssl/ca-bundle.pem",                            // SUSE
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // CentOS
	"/etc/ssl/cert.pem",                                 // macOS, BSD
}

// Bundle is what commands are to trust: the authority, and what they would
// trust else. files are bundles of the user's; the first system bundle that
// can be read joins, or, where there is none, the roots that come with this
// program.
func (a *Authority) Bundle(files ...string) ([]byte, error) {
	out := bytes.Clone(a.pem)
	var errs []error
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(append(out, bytes.TrimSpace(data)...), '\n')
	}
	for _, f := range systemFiles {
		if data, err := os.ReadFile(f); err == nil && bytes.Contains(data, []byte("BEGIN CERTIFICATE")) {
			return append(out, data...), errors.Join(errs...)
		}
	}
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})...)
		}
	}
	return out, errors.Join(errs...)
}

// Environ are the variables by which programs find the bundle at path.
// Programs on the JVM know none.
func Environ(path string) []string {
	var out []string
	for _, name := range [...]string{
		"SSL_CERT_FILE", "NIX_SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", "DENO_CERT",
		"REQUESTS_CA_BUNDLE", "PIP_CERT", "AWS_CA_BUNDLE", "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
		"CARGO_HTTP_CAINFO", "npm_config_cafile", "BUNDLE_SSL_CA_CERT", "PERL_LWP_SSL_CA_FILE", "HEX_CACERTS_PATH", "JULIA_SSL_CA_ROOTS_PATH",
	} {
		out = append(out, name+"="+path)
	}
	return out
}
