package dial

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/youmark/pkcs8"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// trust is the set of certificate authorities. It is put together when the
// first TLS connection is made.
type trust struct {
	bundled, system bool
	extra           string // file of further certificates, or ""
	pool            func() *x509.CertPool
}

func (t *trust) init(env func(string) string, log *slog.Logger) error {
	t.extra = env("NODE_EXTRA_CA_CERTS")
	t.pool = sync.OnceValue(func() *x509.CertPool { return t.load(log) })
	v := env("CLAUDE_CODE_CERT_STORE")
	for _, name := range strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r <= ' ' }) {
		switch strings.ToLower(name) {
		case "bundled":
			t.bundled = true
		case "system":
			t.system = true
		default:
			return fmt.Errorf("CLAUDE_CODE_CERT_STORE: %q is not one of bundled, system", name)
		}
	}
	if !t.bundled && !t.system {
		t.bundled, t.system = true, true
	}
	return nil
}

func (t *trust) stores() (s []string) {
	if t.bundled {
		s = append(s, "bundled")
	}
	if t.system {
		s = append(s, "system")
	}
	return s
}

// load builds the pool. What cannot be read is left out and logged: a missing
// authority shows when a host needs it, and Explain then says so.
func (t *trust) load(log *slog.Logger) *x509.CertPool {
	pool := x509.NewCertPool()
	if t.system {
		if p, err := x509.SystemCertPool(); err == nil {
			pool = p
		} else {
			log.Warn("reading the system's certificates", "err", err)
		}
	}
	if t.bundled {
		for root := range bundle.Roots() {
			c, err := x509.ParseCertificate(root.Certificate)
			if err != nil {
				continue
			}
			if root.Constraint == nil {
				pool.AddCert(c)
			} else {
				pool.AddCertWithConstraint(c, root.Constraint)
			}
		}
	}
	if t.extra != "" {
		data, err := os.ReadFile(t.extra)
		if err == nil && !pool.AppendCertsFromPEM(data) {
			err = errors.New("it holds no PEM certificate")
		}
		if err != nil {
			log.Warn("NODE_EXTRA_CA_CERTS", "file", t.extra, "err", err)
		}
	}
	return pool
}

// A clientCert is the certificate for mTLS. Its files are read at the first
// handshake that asks for it, and again when they have changed; a pair that
// does not fit together leaves the old one in place.
type clientCert struct {
	certFile, keyFile, passphrase string
	once                          bool // never read again
	log                           *slog.Logger

	mu     sync.Mutex
	cert   *tls.Certificate
	stamps [2]stamp
}

// A stamp tells one version of a file from another.
type stamp struct {
	mod  time.Time
	size int64
}

func newClientCert(env func(string) string, log *slog.Logger) (*clientCert, error) {
	c := &clientCert{
		certFile: env("CLAUDE_CODE_CLIENT_CERT"), keyFile: env("CLAUDE_CODE_CLIENT_KEY"),
		passphrase: env("CLAUDE_CODE_CLIENT_KEY_PASSPHRASE"),
		once:       truth(env("CLAUDE_CODE_DISABLE_MTLS_RELOAD_ON_STALE_CONNECTION")), log: log,
	}
	switch {
	case c.certFile == "" && c.keyFile == "":
		return nil, nil
	case c.certFile == "":
		return nil, errors.New("CLAUDE_CODE_CLIENT_KEY is set but CLAUDE_CODE_CLIENT_CERT is not")
	case c.keyFile == "":
		return nil, errors.New("CLAUDE_CODE_CLIENT_CERT is set but CLAUDE_CODE_CLIENT_KEY is not")
	}
	return c, nil
}

// certificate is tls.Config.GetClientCertificate.
func (c *clientCert) certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	now := [2]stamp{stampOf(c.certFile), stampOf(c.keyFile)}
	c.mu.Lock()
	old, same := c.cert, c.once || now == c.stamps
	c.mu.Unlock()
	if old != nil && same {
		return old, nil
	}
	cert, err := loadPair(c.certFile, c.keyFile, c.passphrase)
	if err != nil {
		if old == nil {
			return nil, err
		}
		c.log.Warn("the client certificate changed but cannot be used; keeping the one before", "err", err)
		return old, nil
	}
	c.mu.Lock()
	c.cert, c.stamps = cert, now
	c.mu.Unlock()
	return cert, nil
}

func stampOf(file string) stamp {
	fi, err := os.Stat(file)
	if err != nil {
		return stamp{}
	}
	return stamp{fi.ModTime(), fi.Size()}
}

// loadPair reads a certificate chain and its key, which may be encrypted.
func loadPair(certFile, keyFile, passphrase string) (*tls.Certificate, error) {
	certPEM, err := os.ReadFile(certFile)
	if err != nil {
		return nil, fmt.Errorf("CLAUDE_CODE_CLIENT_CERT: %w", err)
	}
	keyPEM, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, fmt.Errorf("CLAUDE_CODE_CLIENT_KEY: %w", err)
	}
	if keyPEM, err = decrypt(keyPEM, passphrase); err != nil {
		return nil, fmt.Errorf("CLAUDE_CODE_CLIENT_KEY %s: %w", keyFile, err)
	}
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("client certificate %s with key %s: %w", certFile, keyFile, err)
	}
	return &cert, nil
}

// decrypt returns the key in a form that tls.X509KeyPair reads.
func decrypt(keyPEM []byte, passphrase string) ([]byte, error) {
	for rest := keyPEM; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return keyPEM, nil // X509KeyPair says what is wrong with it
		}
		legacy := strings.HasPrefix(block.Headers["Proc-Type"], "4,ENCRYPTED")
		if block.Type != "ENCRYPTED PRIVATE KEY" && !legacy {
			continue
		}
		if passphrase == "" {
			return nil, errors.New("the key is encrypted: set CLAUDE_CODE_CLIENT_KEY_PASSPHRASE")
		}
		if legacy {
			//lint:ignore SA1019 keys in this old form are what some people have
			der, err := x509.DecryptPEMBlock(block, []byte(passphrase))
			if err != nil {
				return nil, fmt.Errorf("decrypting the key: %w", err)
			}
			return pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: der}), nil
		}
		key, err := pkcs8.ParsePKCS8PrivateKey(block.Bytes, []byte(passphrase))
		if err != nil {
			if strings.Contains(err.Error(), "PBES2") {
				return nil, fmt.Errorf("the key's encryption is too old; convert it with: openssl pkcs8 -topk8 -v2 aes256 -in OLD -out NEW: %w", err)
			}
			return nil, fmt.Errorf("decrypting the key (is the passphrase right?): %w", err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(crypto.PrivateKey(key))
		if err != nil {
			return nil, err
		}
		return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
	}
}
