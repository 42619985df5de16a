package test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/crypto/ssh"

	"github.com/seed-eb844fcb/cinch/internal/net/egress/authority"
)

// secure starts an HTTPS server for localhost. It writes a line for what it gets
// to the file args[0] and says it back; $SECURE is its port, and who trusts
// $WORK/ca.pem trusts it.
func secure(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, 1)
	ca, err := authority.New()
	ts.Check(err)
	cert, err := ca.For("localhost")
	ts.Check(err)
	bundle, err := ca.Bundle()
	ts.Check(err)
	ts.Check(os.WriteFile(filepath.Join(ts.Getenv("WORK"), "ca.pem"), bundle, 0o600))
	out, err := os.OpenFile(ts.MkAbs(args[0]), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	ts.Check(err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	var mu sync.Mutex
	srv := &http.Server{
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{*cert}}, ErrorLog: log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
			mu.Lock()
			defer mu.Unlock()
			line := fmt.Sprintf("%s %s authorization=%q body=%q\n", r.Method, r.URL.Path, r.Header.Get("Authorization"), body)
			_, _ = io.WriteString(out, line)
			if r.Header.Get("Authorization") == "" { // git shows what it has only to who asks
				w.Header().Set("WWW-Authenticate", "Basic")
				w.WriteHeader(http.StatusUnauthorized)
			}
			_, _ = io.WriteString(w, line)
		}),
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.ServeTLS(l, "", "") }()
	ts.Defer(func() { _ = srv.Close(); <-done; _ = out.Close() })
	ts.Setenv("SECURE", strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
}

// sshd starts an SSH server that lets anybody in and runs what they ask for in
// the directory args[0]; $SSHD is its port.
func sshd(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, 1)
	_, key, err := ed25519.GenerateKey(rand.Reader)
	ts.Check(err)
	signer, err := ssh.NewSignerFromKey(key)
	ts.Check(err)
	conf := &ssh.ServerConfig{NoClientAuth: true}
	conf.AddHostKey(signer)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	dir := ts.MkAbs(args[0])
	var work sync.WaitGroup
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() { defer c.Close(); serveSSH(c, conf, dir) })
		}
	})
	ts.Defer(func() { _ = l.Close(); work.Wait() })
	ts.Setenv("SSHD", strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
}

func serveSSH(c net.Conn, conf *ssh.ServerConfig, dir string) {
	conn, channels, requests, err := ssh.NewServerConn(c, conf)
	if err != nil {
		return
	}
	defer conn.Close()
	go ssh.DiscardRequests(requests)
	for nc := range channels {
		if nc.ChannelType() != "session" {
			_ = nc.Reject(ssh.UnknownChannelType, "sessions only")
			continue
		}
		ch, reqs, err := nc.Accept()
		if err != nil {
			return
		}
		go func() {
			defer ch.Close()
			for r := range reqs {
				var in struct{ Command string }
				if r.Type != "exec" || ssh.Unmarshal(r.Payload, &in) != nil {
					_ = r.Reply(r.Type == "env", nil)
					continue
				}
				_ = r.Reply(true, nil)
				cmd := exec.Command("sh", "-c", in.Command)
				cmd.Dir, cmd.Stdout, cmd.Stderr = dir, ch, ch.Stderr()
				stdin, err := cmd.StdinPipe()
				if err != nil || cmd.Start() != nil {
					return
				}
				go func() { _, _ = io.Copy(stdin, ch); _ = stdin.Close() }()
				_ = cmd.Wait()
				code := uint32(cmd.ProcessState.ExitCode())
				_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{code}))
				return
			}
		}()
	}
}

// proxy starts a forward proxy for which every host is at the loopback port
// args[1]. It writes a line for what it is asked to the file args[0], and wants the
// USER:PASSWORD args[2], if there is one; $PROXY is its port.
func proxy(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, 3)
	out, err := os.OpenFile(ts.MkAbs(args[0]), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	ts.Check(err)
	want := ""
	if len(args) > 2 {
		want = "Basic " + base64.StdEncoding.EncodeToString([]byte(args[2]))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	var mu sync.Mutex
	srv := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		fmt.Fprintf(out, "%s %s\n", r.Method, r.RequestURI)
		mu.Unlock()
		if want != "" && r.Header.Get("Proxy-Authorization") != want {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		if r.Method != http.MethodConnect {
			_, _ = io.WriteString(w, "plain through the proxy\n")
			return
		}
		up, err := net.Dial("tcp", "127.0.0.1:"+args[1])
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer up.Close()
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(up, rw); _ = up.(*net.TCPConn).CloseWrite() }()
		_, _ = io.Copy(conn, up)
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	ts.Defer(func() { _ = srv.Close(); <-done; _ = out.Close() })
	ts.Setenv("PROXY", strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
}
