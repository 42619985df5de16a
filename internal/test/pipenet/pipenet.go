// Package pipenet is an in-memory network for tests that run in a synctest
// bubble, where waiting on a real socket would stop the fake clock. It owns
// connections made of net.Pipe; it must not know what is sent over them.
package pipenet

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// A Listener accepts the connections that its own Dial makes.
type Listener struct {
	once  sync.Once
	conns chan net.Conn
	done  chan struct{}
}

// Listen returns a listener. Close it to end its server.
func Listen() *Listener { return &Listener{conns: make(chan net.Conn), done: make(chan struct{})} }

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. Connections that exist stay open.
func (l *Listener) Close() error { l.once.Do(func() { close(l.done) }); return nil }

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: "pipenet", Net: "pipe"} }

// Dial connects to the listener, whatever address is asked for.
func (l *Listener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	a, b := net.Pipe()
	select {
	case l.conns <- b:
		return a, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Client returns an HTTP client whose every request reaches the listener.
// Its idle connections must be closed before a synctest bubble ends.
func (l *Listener) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: l.Dial}}
}
