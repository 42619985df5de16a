package dial

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// listen serves each connection of a loopback port by f.
func listen(t *testing.T, f func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); f(c) }()
		}
	}()
	return l.Addr().String()
}

// exchange reads what is wanted and answers, step by step.
func exchange(c net.Conn, steps ...string) bool {
	for i := 0; i+1 < len(steps); i += 2 {
		b := make([]byte, len(steps[i]))
		if _, err := io.ReadFull(c, b); err != nil || string(b) != steps[i] {
			return false
		}
		if _, err := io.WriteString(c, steps[i+1]); err != nil {
			return false
		}
	}
	return true
}

func TestSocksTunnel(t *testing.T) {
	t.Parallel()
	login, ask := "\x05\x02\x00\x02", "\x05\x01\x00\x03\x0bhost.x.test\x00\x16"
	serve := func(steps ...string) string {
		return listen(t, func(c net.Conn) {
			if exchange(c, steps...) {
				_, _ = io.Copy(c, c)
			}
		})
	}
	for name, tt := range map[string]struct {
		user, host string
		steps      []string
		want       string
	}{
		"login":    {"u:p@", "host.x.test:22", []string{login, "\x05\x02", "\x01\x01u\x01p", "\x01\x00", ask, "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"}, ""},
		"no login": {"", "host.x.test:22", []string{"\x05\x01\x00", "\x05\x00", ask, "\x05\x00\x00\x03\x02ab\x00\x00"}, ""},
		"address":  {"", "192.0.2.7:22", []string{"\x05\x01\x00", "\x05\x00", "\x05\x01\x00\x01\xc0\x00\x02\x07\x00\x16", "\x05\x00\x00\x04" + strings.Repeat("\x00", 18)}, ""},
		"six":      {"", "[2001:db8::1]:22", []string{"\x05\x01\x00", "\x05\x00", "\x05\x01\x00\x04\x20\x01\x0d\xb8" + strings.Repeat("\x00", 11) + "\x01\x00\x16", "\x05\x00\x00\x01" + strings.Repeat("\x00", 6)}, ""},
		"wrong":    {"u:p@", "host.x.test:22", []string{login, "\x05\x02", "\x01\x01u\x01p", "\x01\x01"}, "does not take the user"},
		"wants it": {"", "host.x.test:22", []string{"\x05\x01\x00", "\x05\xff"}, "wants a user"},
		"forbids":  {"", "host.x.test:22", []string{"\x05\x01\x00", "\x05\x00", ask, "\x05\x02\x00\x01"}, "its rules forbid"},
		"no socks": {"", "host.x.test:22", []string{"\x05\x01\x00", "HTTP/1.1 400"}, "does not speak SOCKS5"},
		"long":     {"", strings.Repeat("a", 256) + ":22", nil, "too long"},
	} {
		d, err := New(Options{Env: env(map[string]string{"HTTPS_PROXY": "socks5h://" + tt.user + serve(tt.steps...)})})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		c, err := d.Tunnel(ctx, Use{}, tt.host)
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
		b := make([]byte, 2)
		_, _ = io.WriteString(c, "hi")
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "hi" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
		c.Close()
	}
}

// A server that speaks first may do so in the packet of the proxy's answer.
func TestServerSpeaksFirst(t *testing.T) {
	t.Parallel()
	addr := listen(t, func(c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\nSSH-2.0-test\r\n")
			_, _ = io.Copy(c, c)
		}
	})
	d, err := New(Options{Env: env(map[string]string{"HTTPS_PROXY": "http://" + addr})})
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.Tunnel(t.Context(), Use{}, "host.x.test:22")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "hello")
	_ = c.(interface{ CloseWrite() error }).CloseWrite()
	if b, err := io.ReadAll(c); err != nil || string(b) != "SSH-2.0-test\r\nhello" {
		t.Errorf("%q, %v", b, err)
	}
}

// What is sent on for somebody else goes out as it was: through the proxy
// with its password, with no header added, and unread.
func TestForward(t *testing.T) {
	t.Parallel()
	var got http.Header
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, "not gzip at all")
	}))
	defer srv.Close()
	p, ps := proxyTo(t, srv.Listener.Addr().String(), "Basic dTpw", nil)
	d, err := New(Options{Env: env(map[string]string{"HTTP_PROXY": strings.Replace(ps.URL, "://", "://u:p@", 1)}), Only: []string{"a.x.test"}})
	if err != nil {
		t.Fatal(err)
	}
	f := d.Forward(Use{})
	send := func(url string) (string, error) {
		req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("User-Agent", "theirs")
		resp, err := f.RoundTrip(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return string(b), err
	}
	if b, err := send("http://a.x.test/"); err != nil || b != "not gzip at all" {
		t.Errorf("%q %v", b, err)
	}
	for name := range got {
		if name != "Connection" && (name != "User-Agent" || got.Get(name) != "theirs") {
			t.Errorf("%s: %q was added", name, got[name])
		}
	}
	if b, err := send("http://b.x.test/"); err == nil {
		t.Errorf("reached what --net forbids: %q", b)
	}
	if got := p.requests(); len(got) != 1 || got[0] != "GET a.x.test" {
		t.Errorf("the proxy saw %q", got)
	}
}

// Whatever a SOCKS proxy answers, the conversation ends.
func FuzzSocks(f *testing.F) {
	f.Add([]byte("\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x05\x02\x01\x00\x05\x00\x00\x03\x02ab\x00\x00"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		ours, theirs := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		go func() { _, _ = theirs.Write(answer); theirs.Close() }()
		if c, err := socks(ours, &url.URL{User: url.UserPassword("u", "p"), Host: "proxy.test:1080"}, "a.test", "22"); err == nil {
			if len(answer) < 2+4+1+2 || answer[0] != 5 {
				t.Errorf("%q was taken for a connection", answer)
			}
			c.Close()
		}
	})
}
