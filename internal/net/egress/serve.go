package egress

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/net/ledger"
)

// handle serves one connection, whichever protocol it speaks.
func (p *Proxy) handle(ctx context.Context, conn net.Conn, c *Call) {
	_ = conn.SetReadDeadline(time.Now().Add(greetTime))
	br := bufio.NewReaderSize(conn, 32<<10)
	first, err := br.Peek(1)
	if err != nil {
		return
	}
	if first[0] == 5 {
		p.socks(ctx, conn, br, c)
		return
	}
	p.http(ctx, conn, br, c)
}

// http serves requests until one turns the connection into a tunnel.
func (p *Proxy) http(ctx context.Context, conn net.Conn, br *bufio.Reader, c *Call) {
	for {
		_ = conn.SetReadDeadline(time.Now().Add(greetTime))
		req, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		_ = conn.SetReadDeadline(time.Time{})
		if !p.authorized(password(req)) {
			answer(conn, http.StatusProxyAuthRequired, "this proxy is for commands in the sandbox; they find its password in their environment")
			return
		}
		if req.Method == http.MethodConnect {
			p.tunnel(ctx, conn, br, req, c)
			return
		}
		if !p.plain(ctx, conn, req, c) {
			return
		}
	}
}

func password(req *http.Request) string {
	kind, text, _ := strings.Cut(req.Header.Get("Proxy-Authorization"), " ")
	if !strings.EqualFold(kind, "basic") {
		return ""
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return ""
	}
	_, pass, _ := strings.Cut(string(raw), ":")
	return pass
}

// answer sends a response of our own and has the client close.
func answer(w io.Writer, code int, text string) {
	extra := ""
	if code == http.StatusProxyAuthRequired {
		extra = "Proxy-Authenticate: Basic realm=\"cinch\"\r\n"
	}
	text = "cinch sandbox: " + text + "\n"
	_, _ = fmt.Fprintf(w, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nX-Cinch-Sandbox: refused\r\n%sContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		code, http.StatusText(code), extra, len(text), text)
}

// statusOf is the response that tells of err.
func statusOf(err error) int {
	if _, ok := errors.AsType[*refusal](err); ok {
		return http.StatusForbidden
	}
	return http.StatusBadGateway
}

func (p *Proxy) tunnel(ctx context.Context, conn net.Conn, br *bufio.Reader, req *http.Request, c *Call) {
	t, err := targetOf(req.RequestURI, 443)
	if err != nil {
		answer(conn, http.StatusBadRequest, err.Error())
		return
	}
	up, e, err := p.connect(ctx, t, c)
	if err != nil {
		answer(conn, statusOf(err), err.Error())
		return
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = up.Close()
		e.End(nil)
		return
	}
	p.join(ctx, conn, up, t, c, br, e)
}

// targetOf reads HOST:PORT.
func targetOf(s string, port uint16) (Target, error) {
	host, text, err := net.SplitHostPort(s)
	if err != nil {
		host = s
	} else {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return Target{}, fmt.Errorf("%q is no port", text)
		}
		port = uint16(n)
	}
	return NewTarget(host, port)
}

// plain forwards one request that is not encrypted. It reports whether the
// connection can be used for another.
func (p *Proxy) plain(ctx context.Context, conn net.Conn, req *http.Request, c *Call) bool {
	if req.URL.Scheme != "http" || req.URL.Host == "" {
		answer(conn, http.StatusBadRequest, "only http: and CONNECT are spoken here")
		return false
	}
	t, err := targetOf(req.URL.Host, 80)
	if err != nil {
		answer(conn, http.StatusBadRequest, err.Error())
		return false
	}
	e, err := p.admit(ctx, t, c)
	if err != nil {
		answer(conn, statusOf(err), err.Error())
		return false
	}
	// The request line says where it goes; a Host that says otherwise does not count.
	req.Host = req.URL.Host
	req.RequestURI = ""
	for _, h := range []string{"Proxy-Authorization", "Proxy-Connection", "Connection", "Keep-Alive", "Te", "Trailer", "Upgrade"} {
		req.Header.Del(h)
	}
	if req.Header.Get("Expect") != "" {
		req.Header.Del("Expect")
		if _, err := io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			e.End(nil)
			return false
		}
	}
	if _, ok := req.Header["User-Agent"]; !ok {
		req.Header["User-Agent"] = nil // or the transport would add its own
	}
	used := &names{}
	swap := p.swap(t, false)
	if swap != nil {
		used.add(swap.Request(req, func(n string) { used.add(n) })...)
	}
	var sent, received counted
	if req.Body != nil && req.Body != http.NoBody {
		req.Body = sent.over(req.Body)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(askLimit, func() { cancel(errors.New("no answer in " + askLimit.String())) })
	resp, err := p.web.RoundTrip(req.WithContext(ctx))
	late.Stop()
	if err != nil {
		err = p.failed(e, t, c, err)
		answer(conn, statusOf(err), err.Error())
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	if swap != nil {
		swap.Response(resp)
	}
	resp.Header.Del("Connection")
	resp.Close = false
	resp.Body = received.over(resp.Body)
	err = resp.Write(conn)
	e.End(func(x *ledger.Contact) {
		x.Sent, x.Received, x.Status, x.Secrets = sent.n.Load(), received.n.Load(), resp.StatusCode, used.list()
	})
	return err == nil && !req.Close && (resp.ContentLength >= 0 || len(resp.TransferEncoding) > 0)
}

// Replies of SOCKS5 (RFC 1928).
const (
	socksOK      = 0
	socksFailed  = 1
	socksRefused = 2
	socksCommand = 7
	socksAddress = 8
)

// socks serves one SOCKS5 connection: CONNECT only, with the token as password.
func (p *Proxy) socks(ctx context.Context, conn net.Conn, br *bufio.Reader, c *Call) {
	reply := func(code byte) { _, _ = conn.Write([]byte{5, code, 0, 1, 0, 0, 0, 0, 0, 0}) }
	if !p.socksLogin(conn, br) {
		return
	}
	t, code := socksTarget(br)
	if code != socksOK {
		reply(code)
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	up, e, err := p.connect(ctx, t, c)
	if err != nil {
		code = socksFailed
		if _, ok := errors.AsType[*refusal](err); ok {
			code = socksRefused
		}
		reply(code)
		return
	}
	reply(socksOK)
	p.join(ctx, conn, up, t, c, br, e)
}

// socksLogin agrees on user and password, and checks the latter.
func (p *Proxy) socksLogin(conn net.Conn, br *bufio.Reader) bool {
	if _, err := br.ReadByte(); err != nil { // the version, seen already
		return false
	}
	methods, err := field(br)
	if err != nil {
		return false
	}
	if !strings.ContainsRune(methods, 2) {
		_, _ = conn.Write([]byte{5, 0xff})
		return false
	}
	if _, err := conn.Write([]byte{5, 2}); err != nil {
		return false
	}
	if v, err := br.ReadByte(); err != nil || v != 1 {
		return false
	}
	if _, err := field(br); err != nil { // the user
		return false
	}
	pass, err := field(br)
	if err != nil {
		return false
	}
	if !p.authorized(pass) {
		_, _ = conn.Write([]byte{1, 1})
		return false
	}
	_, err = conn.Write([]byte{1, 0})
	return err == nil
}

// field reads bytes with their number before them.
func field(br *bufio.Reader) (string, error) {
	n, err := br.ReadByte()
	if err != nil {
		return "", err
	}
	b := make([]byte, n)
	_, err = io.ReadFull(br, b)
	return string(b), err
}

// socksTarget reads a request; code is not socksOK if it cannot be served.
func socksTarget(br *bufio.Reader) (t Target, code byte) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(br, head); err != nil || head[0] != 5 {
		return t, socksFailed
	}
	var host string
	switch head[3] {
	case 1, 4:
		b := make([]byte, map[byte]int{1: 4, 4: 16}[head[3]])
		if _, err := io.ReadFull(br, b); err != nil {
			return t, socksFailed
		}
		host = net.IP(b).String()
	case 3:
		h, err := field(br)
		if err != nil {
			return t, socksFailed
		}
		host = h
	default:
		return t, socksAddress
	}
	port := make([]byte, 2)
	if _, err := io.ReadFull(br, port); err != nil {
		return t, socksFailed
	}
	if head[1] != 1 {
		return t, socksCommand
	}
	t, err := NewTarget(host, uint16(port[0])<<8|uint16(port[1]))
	if err != nil {
		return t, socksAddress
	}
	return t, socksOK
}
