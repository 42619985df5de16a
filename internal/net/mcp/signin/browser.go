package signin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// A Listener waits at a loopback port for the browser to come back.
type Listener struct {
	l    net.Listener
	back chan string
	srv  *http.Server
}

// Listen opens port, or any if it is 0 or taken and fixed is not set.
func Listen(port int, fixed bool) (*Listener, error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil && !fixed {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("waiting for the browser: %w", err)
	}
	b := &Listener{l: l, back: make(chan string, 1)}
	b.srv = &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(b.serve)}
	go func() { _ = b.srv.Serve(l) }() // ends with Close
	return b, nil
}

func (b *Listener) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/callback" || r.Method != http.MethodGet {
		http.NotFound(w, r)
		return
	}
	select {
	case b.back <- r.URL.String():
	default: // it came back already
	}
	fmt.Fprintln(w, "You can close this page and go back to the terminal.")
}

// Redirect is the URL the browser comes back to.
func (b *Listener) Redirect() string {
	return fmt.Sprintf("http://localhost:%d/callback", b.l.Addr().(*net.TCPAddr).Port)
}

// Wait returns the URL the browser came back with, or what the person pasted
// in its place, whichever is first.
func (b *Listener) Wait(ctx context.Context, pasted <-chan string) (string, error) {
	for {
		select {
		case u := <-b.back:
			return u, nil
		case u, ok := <-pasted:
			if !ok {
				pasted = nil
				continue
			}
			return u, nil
		case <-ctx.Done():
			return "", errors.Join(errors.New("nobody signed in"), context.Cause(ctx))
		}
	}
}

// Close stops waiting.
func (b *Listener) Close() error { return b.srv.Close() }
