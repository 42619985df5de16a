package connector

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
)

// proxy answers one connection with text, after checking what is asked for,
// and echoes what comes then.
func proxy(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		br := bufio.NewReader(c)
		req, err := http.ReadRequest(br)
		if err != nil || req.Method != "CONNECT" || req.RequestURI != "git.test:22" || req.Header.Get("Proxy-Authorization") != "Basic Y2luY2g6dG9rZW4=" {
			t.Errorf("%+v %v", req, err)
			return
		}
		_, _ = io.WriteString(c, text)
		_, _ = io.Copy(c, br)
	}()
	return "http://cinch:token@" + l.Addr().String()
}

func TestConnector(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, answer string
		code         int
		out, err     string
	}{
		{"accepted", "HTTP/1.1 200 Connection established\r\nX: y\r\n\r\nSSH-2.0-test\r\n", 0, "SSH-2.0-test\r\nhello", ""},
		{"refused", "HTTP/1.1 403 Forbidden\r\nContent-Length: 40\r\nConnection: close\r\n\r\ncinch sandbox: git.test:22 is not allowed", 1, "", "cinch: git.test:22: cinch sandbox: git.test:22 is not allowed"},
		{"nonsense", "SSH-2.0\r\n\r\n", 1, "", "cinch: git.test:22: SSH-2.0"},
		{"endless", strings.Repeat("HTTP/1.1 200\r\n", 200), 1, "", "does not end"},
		{"cut", "HTTP/1.1 2", 1, "", "reading the proxy's answer"},
	} {
		var out, stderr bytes.Buffer
		in := io.Reader(strings.NewReader("hello"))
		if tc.name == "cut" {
			in = strings.NewReader("")
		}
		p := proxy(t, tc.answer)
		if tc.name == "cut" || tc.name == "nonsense" || tc.name == "refused" {
			// The echo would keep these open: they end as the proxy hangs up.
			p = hangUp(t, tc.answer)
		}
		code := Main([]string{"git.test", "22"}, p, in, &out, &stderr)
		if code != tc.code || out.String() != tc.out || !strings.Contains(stderr.String(), tc.err) {
			t.Errorf("%s: code %d, out %q, err %q", tc.name, code, &out, &stderr)
		}
	}
	var stderr bytes.Buffer
	if code := Main([]string{"h", "1"}, "", nil, io.Discard, &stderr); code != 1 || !strings.Contains(stderr.String(), Variable) {
		t.Errorf("without a proxy: %d %q", code, &stderr)
	}
}

func hangUp(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.WriteString(c, text)
		}
	}()
	return "http://cinch:token@" + l.Addr().String()
}

// A program at an awkward place is still one word, for the shell that git
// starts and for the one that ssh does.
func TestQuoting(t *testing.T) {
	t.Parallel()
	const at = `/srv/my proj's $x & 100%/cinch`
	out, err := exec.Command("sh", "-c", "printf '%s\n' "+SSH(at)).Output()
	if err != nil {
		t.Fatal(err)
	}
	option := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(option) != 2 || option[0] != "-o" {
		t.Fatalf("%q", option)
	}
	command, ok := strings.CutPrefix(option[1], "ProxyCommand=")
	// What ssh does: %h and %p, then a shell.
	command = strings.NewReplacer("%%", "%", "%h", "git.test", "%p", "22").Replace(command)
	out, err = exec.Command("sh", "-c", "printf '%s\n' "+command).Output()
	if err != nil || !ok || string(out) != at+"\n"+Verb+"\ngit.test\n22\n" {
		t.Errorf("%q %v", out, err)
	}
}

// Only an answer that says so is a connection, and reading any of them ends.
func FuzzAccepted(f *testing.F) {
	f.Add("HTTP/1.1 200 OK\r\n\r\n")
	f.Add("HTTP/1.1 403 Forbidden\r\n\r\nno")
	f.Fuzz(func(t *testing.T, answer string) {
		tu := &tunnel{r: bufio.NewReader(strings.NewReader(answer))}
		if err := tu.accepted(); err == nil && !strings.HasPrefix(answer, "HTTP/1.") && !strings.HasPrefix(strings.TrimLeft(answer, " \t\v\f\r\u0085\u00a0\u2000\u3000"), "HTTP/1.") {
			t.Errorf("%q was taken for a connection", answer)
		}
	})
}
