package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/net/ledger"
)

// rig is a proxy on a loopback port. Names ending in .test lead to upstream.
type rig struct {
	*Proxy
	call *Call
	addr string
	book string // the ledger
}

func newRig(t *testing.T, upstream string, allow, deny []string, ask func(context.Context, Target) (bool, error)) *rig {
	t.Helper()
	rules, errs := NewRules(allow, deny, false)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	r := &rig{call: &Call{ID: "t1", Command: "cmd"}, book: ledger.Name(t.TempDir())}
	book := ledger.New(ledger.Options{Path: func() string { return r.book }})
	r.Proxy = New(Options{
		Rules: func() Rules { return rules }, Ask: ask,
		Dial: func(ctx context.Context, address string, check func(netip.AddrPort) error) (net.Conn, error) {
			host, _, _ := net.SplitHostPort(address)
			if strings.HasSuffix(host, ".test") && !strings.HasPrefix(host, "rebound") {
				return new(net.Dialer).DialContext(ctx, "tcp", upstream)
			}
			if strings.HasPrefix(host, "rebound") {
				address = upstream // a public name that leads to loopback
			}
			return direct(ctx, address, check)
		},
		Ledger: book,
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = l.Addr().String()
	done := make(chan struct{})
	go func() { defer close(done); r.Serve(l, r.call) }()
	t.Cleanup(func() {
		l.Close()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Error("Serve does not return")
		}
		book.Close()
	})
	return r
}

func (r *rig) client(scheme string) *http.Client {
	u, _ := url.Parse(scheme + "://cinch:" + r.token + "@" + r.addr)
	return &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(u), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}, Timeout: 20 * time.Second}
}

func hello(t *testing.T) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		b, _ := io.ReadAll(req.Body)
		if req.Header.Get("Proxy-Authorization") != "" {
			t.Error("the token went upstream")
		}
		fmt.Fprintf(w, "%s %s %d", req.Method, req.Host, len(b))
	})
}

func fetch(c *http.Client, u string, body string) (int, string, error) {
	resp, err := c.Post(u, "text/plain", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

func TestProtocols(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(hello(t))
	defer plain.Close()
	secure := httptest.NewTLSServer(hello(t))
	defer secure.Close()
	big := strings.Repeat("x", 1<<20)
	for _, scheme := range []string{"http", "socks5"} {
		r := newRig(t, plain.Listener.Addr().String(), []string{"ok.test"}, nil, nil)
		if code, body, err := fetch(r.client(scheme), "http://ok.test/", big); err != nil || code != 200 || body != "POST ok.test 1048576" {
			t.Errorf("%s plain: %d %q %v", scheme, code, body, err)
		}
		s := newRig(t, secure.Listener.Addr().String(), []string{"ok.test"}, nil, nil)
		if code, body, err := fetch(s.client(scheme), "https://ok.test/", big); err != nil || code != 200 || body != "POST ok.test 1048576" {
			t.Errorf("%s secure: %d %q %v", scheme, code, body, err)
		}
		if code, _, err := fetch(r.client(scheme), "http://no.test/", ""); scheme == "http" && code != 403 || scheme == "socks5" && err == nil {
			t.Errorf("%s refused: %d %v", scheme, code, err)
		}
		want := `no.test:80 is not allowed: no rule allows it; to allow it, add "no.test" to sandbox.network.allowedDomains`
		if got := r.call.Refused(); len(got) != 1 || got[0] != want {
			t.Errorf("%s: refused %q, want %q", scheme, got, want)
		}
		var told []string
		for _, c := range r.contacts(t, 2) {
			told = append(told, fmt.Sprintf("%s %s %s by %s for %s: %v %v", c.Host, c.Why, c.Verdict, c.By, c.Call, c.Sent >= 1<<20, c.Received > 0))
		}
		if got, want := strings.Join(told, "\n"), "ok.test:80 command allowed by ok.test for t1: true true\nno.test:80 command denied by no rule for t1: false false"; got != want {
			t.Errorf("%s: the ledger has\n%s\nwant\n%s", scheme, got, want)
		}
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	r := newRig(t, "127.0.0.1:1", []string{"ok.test"}, nil, nil)
	r.token = "right"
	for _, pass := range []string{"", "wrong"} {
		u, _ := url.Parse("http://cinch:" + pass + "@" + r.addr)
		c := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(u)}, Timeout: 5 * time.Second}
		if code, _, err := fetch(c, "http://ok.test/", ""); err != nil || code != 407 {
			t.Errorf("password %q: %d %v", pass, code, err)
		}
		u.Scheme = "socks5"
		c = &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(u)}, Timeout: 5 * time.Second}
		if _, _, err := fetch(c, "http://ok.test/", ""); err == nil {
			t.Errorf("socks, password %q: connected", pass)
		}
	}
}

// A name that is allowed and leads to this machine does not open it.
func TestRebinding(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(hello(t))
	defer srv.Close()
	r := newRig(t, srv.Listener.Addr().String(), []string{"rebound.test"}, nil, nil)
	code, body, err := fetch(r.client("http"), "http://rebound.test/", "")
	if err != nil || code != 403 || !strings.Contains(body, "a loopback address") {
		t.Errorf("got %d %q %v", code, body, err)
	}
}

// The target is what the request line says, whatever Host says.
func TestHostHeader(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(hello(t))
	defer srv.Close()
	r := newRig(t, srv.Listener.Addr().String(), []string{"ok.test"}, nil, nil)
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	login := base64.StdEncoding.EncodeToString([]byte("cinch:" + r.token))
	fmt.Fprintf(conn, "GET http://ok.test/ HTTP/1.1\r\nHost: evil.test\r\nProxy-Authorization: Basic %s\r\n\r\n", login)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); string(b) != "GET ok.test 0" {
		t.Errorf("got %q", b)
	}
}

// A tunnel to an allowed host does not carry a greeting for another.
func TestServerName(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(hello(t))
	defer srv.Close()
	for name, ok := range map[string]bool{"ok.test": true, "also.test": true, "evil.test": false} {
		r := newRig(t, srv.Listener.Addr().String(), []string{"ok.test", "also.test"}, nil, nil)
		conn, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		req, _ := http.NewRequest("CONNECT", "", nil)
		req.URL = &url.URL{Opaque: "ok.test:443"}
		req.SetBasicAuth("cinch", r.token)
		req.Header["Proxy-Authorization"] = req.Header["Authorization"]
		if err := req.Write(conn); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), req)
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(err, resp)
		}
		err = tls.Client(conn, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
		if (err == nil) != ok {
			t.Errorf("%s: got %v, want ok %v", name, err, ok)
		}
		conn.Close()
	}
}

// Many connections to one unknown host are one question.
func TestAskOnce(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(hello(t))
	defer srv.Close()
	var asked atomic.Int32
	gate := make(chan struct{})
	r := newRig(t, srv.Listener.Addr().String(), nil, []string{"denied.test"}, func(_ context.Context, target Target) (bool, error) {
		asked.Add(1)
		<-gate
		return target.Host == "yes.test", nil
	})
	var all sync.WaitGroup
	var good atomic.Int32
	for range 20 {
		all.Go(func() {
			if code, _, _ := fetch(r.client("http"), "http://yes.test/", ""); code == 200 {
				good.Add(1)
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	close(gate)
	all.Wait()
	for range 3 {
		if code, _, _ := fetch(r.client("http"), "http://no.test/", ""); code != 403 {
			t.Errorf("no.test: %d", code)
		}
	}
	if code, _, _ := fetch(r.client("http"), "http://denied.test/", ""); code != 403 {
		t.Errorf("denied.test: %d", code)
	}
	if asked.Load() != 2 || good.Load() != 20 {
		t.Errorf("asked %d times, %d good", asked.Load(), good.Load())
	}
}

// Forward reaches a port of the machine only while a rule allows it.
func TestForward(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(hello(t))
	defer srv.Close()
	port := srv.Listener.Addr().(*net.TCPAddr).Port
	for _, allow := range []string{fmt.Sprintf("localhost:%d", port), "localhost:1"} {
		r := newRig(t, "", []string{allow}, nil, nil)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() { defer close(done); r.Forward(l, uint16(port), r.call) }()
		_, body, err := fetch(&http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{}}, "http://"+l.Addr().String()+"/", "")
		if ok := strings.HasPrefix(body, "POST"); ok != (allow != "localhost:1") {
			t.Errorf("%s: %q %v", allow, body, err)
		}
		l.Close()
		<-done
	}
}

// Half of a connection may end while the other goes on.
func TestHalfClose(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		b, _ := io.ReadAll(c)
		_, _ = c.Write(bytes.ToUpper(b))
		c.Close()
	}()
	r := newRig(t, l.Addr().String(), []string{"ok.test"}, nil, nil)
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "\x05\x01\x02\x01\x05cinch%c%s\x05\x01\x00\x03\x07ok.test\x00\x19", len(r.token), r.token)
	head := make([]byte, 2+2+10)
	if _, err := io.ReadFull(conn, head); err != nil || head[5] != 0 {
		t.Fatal(head, err)
	}
	_, _ = io.WriteString(conn, "half")
	_ = conn.(*net.TCPConn).CloseWrite()
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if b, err := io.ReadAll(conn); err != nil || string(b) != "HALF" {
		t.Errorf("got %q %v", b, err)
	}
}

func FuzzHandle(f *testing.F) {
	f.Add([]byte("CONNECT a:1 HTTP/1.1\r\n\r\n"))
	f.Add([]byte("\x05\x01\x02\x01\x00\x00\x05\x01\x00\x03\x01a\x00\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := New(Options{Rules: func() Rules { return Rules{Strict: true} }, Dial: func(context.Context, string, func(netip.AddrPort) error) (net.Conn, error) {
			t.Error("dialled without a rule")
			return nil, errors.New("no")
		}})
		p.token = ""
		ours, theirs := net.Pipe()
		go func() {
			_, _ = theirs.Write(data)
			_ = theirs.Close()
		}()
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		p.handle(t.Context(), ours, &Call{})
		_ = ours.Close()
	})
}
