package egress

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Of the benchmark the server and the client are processes of their own, as
// the command and the host are.
func TestMain(m *testing.M) {
	switch os.Getenv("EGRESS_BENCH") {
	case "serve":
		serveBytes()
	case "get":
		getBytes(os.Args[1], os.Args[2])
	default:
		os.Exit(m.Run())
	}
}

const benchSize = 512 << 20

// serveBytes prints its address and sends many bytes to whoever sends it one.
func serveBytes() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	block := make([]byte, 256<<10)
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
				return
			}
			for range benchSize / len(block) {
				if _, err := c.Write(block); err != nil {
					return
				}
			}
		}()
	}
}

// getBytes reads them all, through a proxy if there is a token, and prints how
// long it took in nanoseconds.
func getBytes(addr, token string) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		panic(err)
	}
	if token != "" {
		fmt.Fprintf(c, "\x05\x01\x02\x01\x05cinch%c%s\x05\x01\x00\x03\x07ok.test\x00\x19", len(token), token)
		if _, err := io.ReadFull(c, make([]byte, 2+2+10)); err != nil {
			panic(err)
		}
	}
	begun := time.Now()
	if _, err := c.Write([]byte("x")); err != nil {
		panic(err)
	}
	buf, n := make([]byte, 256<<10), 0
	for n < benchSize {
		k, err := c.Read(buf)
		if n += k; err != nil {
			panic(err)
		}
	}
	fmt.Println(time.Since(begun).Nanoseconds())
}

// BenchmarkThroughput sends 512 MB over a loopback connection, directly and
// through a tunnel of the proxy by turns, and reports the two speeds and their
// ratio, from the fastest of each.
func BenchmarkThroughput(b *testing.B) {
	self := func(what string, args ...string) *exec.Cmd {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), "EGRESS_BENCH="+what)
		cmd.Stderr = os.Stderr
		return cmd
	}
	server := self("serve")
	out, err := server.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	host, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	host = strings.TrimSpace(host)
	rules, _ := NewRules([]string{"ok.test"}, nil, true)
	p := New(Options{Rules: func() Rules { return rules }, Dial: func(ctx context.Context, _ string, _ func(netip.AddrPort) error) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", host)
	}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); p.Serve(l, &Call{}) }()
	defer func() { l.Close(); <-done }()
	once := func(addr, token string) time.Duration {
		text, err := self("get", addr, token).Output()
		if err != nil {
			b.Fatal(err)
		}
		ns, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		return time.Duration(ns)
	}
	best := [2]time.Duration{time.Hour, time.Hour}
	for b.Loop() {
		best[0] = min(best[0], once(host, ""))
		best[1] = min(best[1], once(l.Addr().String(), p.token))
	}
	b.ReportMetric(benchSize/1e6/best[0].Seconds(), "MB/s-direct")
	b.ReportMetric(benchSize/1e6/best[1].Seconds(), "MB/s-proxy")
	b.ReportMetric(float64(best[0])/float64(best[1]), "ratio")
}
