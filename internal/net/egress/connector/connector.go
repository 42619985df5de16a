// Package connector is the program by which SSH gets out of the sandbox: it
// asks the proxy for a connection and copies between that and its standard
// input and output, as ssh wants of a ProxyCommand.
//
// It owns that one conversation. It must not know rules, and it imports little:
// it is started for every SSH connection.
package connector

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"
)

// Verb is the argument that makes our program the connector; HOST and PORT
// follow.
const Verb = "__connect"

// Variable names the proxy, as a URL with the password in it.
const Variable = "CINCH_EGRESS"

// Clocks: the answer may wait for a person.
const (
	reach    = 10 * time.Second
	answerIn = 11 * time.Minute
)

// SSH returns the ssh option that makes program the connector, for a command
// line that a shell reads.
func SSH(program string) string { return "-o " + Quote("ProxyCommand="+Command(program)) }

// Command is the ProxyCommand itself: ssh expands its percent signs and hands
// it to a shell.
func Command(program string) string {
	return Quote(strings.ReplaceAll(program, "%", "%%")) + " " + Verb + " %h %p"
}

// Quote makes s one word of a shell.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Main is the connector; args follow the verb. It returns the exit status.
func Main(args []string, proxy string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) != 2 {
		fmt.Fprintln(stderr, "cinch: this verb is for the sandbox's own use")
		return 1
	}
	conn, err := connect(net.JoinHostPort(args[0], args[1]), proxy)
	if err != nil {
		fmt.Fprintf(stderr, "cinch: %s:%s: %v\n", args[0], args[1], err)
		return 1
	}
	defer func() { _ = conn.Close() }()
	// Nothing can end a read of standard input; who hangs up is the host.
	go func() {
		_, _ = io.Copy(conn, stdin)
		_ = conn.CloseWrite()
	}()
	if _, err := io.Copy(stdout, conn); err != nil {
		fmt.Fprintf(stderr, "cinch: %s:%s: %v\n", args[0], args[1], err)
		return 1
	}
	return 0
}

// A tunnel is a connection through the proxy.
type tunnel struct {
	*net.TCPConn
	r *bufio.Reader
}

func (t *tunnel) Read(b []byte) (int, error) { return t.r.Read(b) }

// WriteTo keeps io.Copy from reading past r.
func (t *tunnel) WriteTo(w io.Writer) (int64, error) { return t.r.WriteTo(w) }

func connect(target, proxy string) (*tunnel, error) {
	u, err := url.Parse(proxy)
	if err != nil || u.Host == "" {
		return nil, errors.New(Variable + " does not name a proxy: SSH gets out of the sandbox only as it was set up")
	}
	c, err := net.DialTimeout("tcp", u.Host, reach)
	if err != nil {
		return nil, err
	}
	conn := c.(*net.TCPConn)
	_ = conn.SetDeadline(time.Now().Add(answerIn))
	request := "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n"
	if u.User != nil {
		password, _ := u.User.Password()
		request += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)) + "\r\n"
	}
	t := &tunnel{conn, bufio.NewReader(conn)}
	if _, err = io.WriteString(conn, request+"\r\n"); err == nil {
		err = t.accepted()
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return t, nil
}

// accepted reads the proxy's answer.
func (t *tunnel) accepted() error {
	line := func() (string, error) {
		b, err := t.r.ReadSlice('\n')
		return strings.TrimRight(string(b), "\r\n"), err
	}
	status, err := line()
	if err != nil {
		return fmt.Errorf("reading the proxy's answer: %w", err)
	}
	for range 100 {
		l, err := line()
		if err != nil {
			return fmt.Errorf("reading the proxy's answer: %w", err)
		}
		if l != "" {
			continue
		}
		fields := strings.Fields(status)
		if len(fields) > 1 && strings.HasPrefix(fields[0], "HTTP/1.") && fields[1] == "200" {
			return nil
		}
		why, _ := io.ReadAll(io.LimitReader(t.r, 4096))
		if len(why) == 0 {
			why = []byte(status)
		}
		return errors.New(strings.TrimSpace(string(why)))
	}
	return errors.New("the proxy's answer does not end")
}
