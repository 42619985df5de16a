package dial

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
)

// A Kind says at which boundary a connection failed.
type Kind string

const (
	Canceled Kind = "canceled" // the caller gave up
	Timeout  Kind = "timeout"
	Lookup   Kind = "lookup" // the name has no address
	Refused  Kind = "refused"
	Reset    Kind = "reset" // the other side dropped the connection
	Route    Kind = "route" // no way to the host
	TLS      Kind = "TLS"
	Proxy    Kind = "proxy"
	Denied   Kind = "denied" // the program's own rules
	Unknown  Kind = "unknown"
)

// A Problem is an explained connection error.
type Problem struct {
	Kind Kind
	// Code is the word scripts know it by: ECONNREFUSED, ENOTFOUND, …
	Code string
	Text string // what happened
	Hint string // what can be done, "" if nothing is known
	// Lasting problems do not go away by trying again.
	Lasting bool
}

// Explain says what err, which came from a client or a Tunnel, means. It
// never shows a secret.
func Explain(err error) Problem {
	var (
		proxyErr  *ProxyError
		dnsErr    *net.DNSError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		alert     tls.AlertError
		op        *net.OpError
	)
	viaProxy := errors.As(err, &op) && op.Op == "proxyconnect"
	p := Problem{Kind: Unknown, Code: "ERR", Text: cut(err)}
	switch {
	case errors.Is(err, ErrDenied):
		var request *url.Error // its method and URL say nothing here
		if errors.As(err, &request) {
			err = request.Err
		}
		p = Problem{Denied, "EACCES", cut(err), "", true}
	case errors.Is(err, context.Canceled):
		p = Problem{Canceled, "ABORT_ERR", "canceled", "", true}
	case errors.As(err, &proxyErr):
		p = Problem{Proxy, "EPROXY", proxyErr.Error(), "check the proxy variables and NO_PROXY", proxyErr.StatusCode < 500}
		if proxyErr.StatusCode == 407 {
			p.Hint = "the proxy wants a user and a password: http://USER:PASSWORD@HOST:PORT"
		}
		return p
	case errors.As(err, &authority):
		p = Problem{TLS, "UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "the certificate is signed by an unknown authority", caHint, true}
		if c := authority.Cert; c != nil {
			p.Text += ": " + c.Issuer.String()
			if c.Issuer.String() == c.Subject.String() {
				p.Code = "SELF_SIGNED_CERT_IN_CHAIN"
			}
		}
	case errors.As(err, &hostname):
		p = Problem{TLS, "ERR_TLS_CERT_ALTNAME_INVALID", cut(hostname), "the host answers with the certificate of another name: check the URL, or what stands between", true}
	case errors.As(err, &invalid):
		p = Problem{TLS, "CERT_INVALID", cut(invalid), "check the clock of this machine, and the certificate of the host", true}
		if invalid.Reason == x509.Expired {
			p.Code = "CERT_HAS_EXPIRED"
		}
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		p = Problem{TLS, "EPROTO", "the other side does not speak TLS", "use an http:// URL, or the port that speaks TLS", true}
	case errors.As(err, &alert):
		p = Problem{TLS, "EPROTO", "the other side ended the TLS handshake: " + alert.Error(), "it may want a client certificate (CLAUDE_CODE_CLIENT_CERT, CLAUDE_CODE_CLIENT_KEY)", false}
	case errors.As(err, &dnsErr):
		p = Problem{Lookup, "EAI_AGAIN", "the name " + dnsErr.Name + " could not be looked up", "check the network and the name", false}
		if dnsErr.IsNotFound {
			p.Code, p.Text = "ENOTFOUND", "the name "+dnsErr.Name+" has no address"
		}
	case errors.Is(err, syscall.ECONNREFUSED):
		p = Problem{Refused, "ECONNREFUSED", "the connection was refused", "check that the server is running at that address", false}
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF),
		errors.Is(err, io.ErrClosedPipe), errors.Is(err, syscall.ECONNABORTED), strings.Contains(err.Error(), "server closed idle connection"),
		strings.Contains(err.Error(), "http2: "), strings.Contains(err.Error(), "stream error: "):
		p = Problem{Reset, "ECONNRESET", "the connection was dropped", "", false}
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.ENETDOWN):
		p = Problem{Route, "EHOSTUNREACH", "there is no way to the host", "check the network", false}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), isTimeout(err):
		p = Problem{Timeout, "ETIMEDOUT", "no answer in time", "", false}
	}
	if viaProxy && p.Kind != Canceled && p.Kind != Denied {
		if p.Hint == "" || p.Kind == Refused {
			p.Hint = "check the proxy variables"
		}
		p.Kind, p.Text = Proxy, "connecting to the proxy: "+p.Text
	}
	return p
}

const caHint = "if something on the way inspects TLS, name its CA file in NODE_EXTRA_CA_CERTS"

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// cut shortens an error that is shown to people.
func cut(err error) string {
	s := err.Error()
	if len(s) > 300 {
		s = strings.ToValidUTF8(s[:300], "") + "…"
	}
	return s
}
