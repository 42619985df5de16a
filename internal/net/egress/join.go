package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/net/ledger"
)

// A counter counts the bytes of a connection.
type counter struct {
	net.Conn
	sent, received *atomic.Int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.received.Add(int64(n))
	return n, err
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}

// counted counts the bytes that are read of a body.
type counted struct{ n atomic.Int64 }

func (c *counted) over(body io.ReadCloser) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.TeeReader(body, c), body}
}

func (c *counted) Write(b []byte) (int, error) {
	c.n.Add(int64(len(b)))
	return len(b), nil
}

// join connects a command with the host it reached. br, if not nil, has what
// was read already. It closes up and ends e.
func (p *Proxy) join(ctx context.Context, down, up net.Conn, t Target, c *Call, br *bufio.Reader, e *ledger.Entry) {
	_ = down.SetDeadline(time.Time{})
	if swap := p.swap(t, true); swap != nil {
		p.unseal(ctx, down, up, t, c, br, e, swap)
		return
	}
	p.carry(down, up, br, e, func(src io.Reader) ([]byte, error) {
		g, err := greet(src)
		if err == nil {
			err = p.named(g, t, c)
		}
		return g.bytes, err
	})
}

// splice is join without looking at what passes.
func (p *Proxy) splice(down, up net.Conn, br *bufio.Reader, e *ledger.Entry) {
	p.carry(down, up, br, e, func(io.Reader) ([]byte, error) { return nil, nil })
}

// carry copies both ways, each direction ending on its own. head reads what the
// command sends first, and may refuse it.
func (p *Proxy) carry(down, up net.Conn, br *bufio.Reader, e *ledger.Entry, head func(io.Reader) ([]byte, error)) {
	var src io.Reader = down
	if br != nil {
		src = br
	}
	var sent, received int64
	var refused error
	var both sync.WaitGroup
	both.Go(func() {
		first, err := head(src)
		if err != nil {
			refused = err
			_ = up.Close()
			_ = down.Close()
			return
		}
		if len(first) > 0 {
			n, err := up.Write(first)
			sent += int64(n)
			if err != nil {
				return
			}
		}
		if br != nil && br.Buffered() == 0 {
			src = down // lets the kernel move the bytes
		}
		n, _ := io.Copy(up, src)
		sent += n
		closeWrite(up)
		_ = up.SetReadDeadline(time.Now().Add(drainTime * 60))
	})
	both.Go(func() {
		received, _ = io.Copy(down, up)
		closeWrite(down)
		// A command that has got its answer may still be sending; for a while.
		_ = down.SetReadDeadline(time.Now().Add(drainTime))
	})
	both.Wait()
	_ = up.Close()
	e.End(func(x *ledger.Contact) {
		x.Sent, x.Received = sent, received
		if refused != nil {
			x.Verdict, x.By, x.Err = ledger.Denied, "name in the greeting", refused.Error()
		}
	})
}

// closeWrite tells the other side that nothing more comes.
func closeWrite(c net.Conn) {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		_ = w.CloseWrite()
	} else {
		_ = c.Close()
	}
}

// errSeen ends a handshake of which only the greeting was wanted.
var errSeen = errors.New("seen")

// A greeting is what a command sends first.
type greeting struct {
	bytes []byte // that were read
	tls   bool
	name  string   // in a TLS greeting, if there is one that can be read
	alpn  []string // protocols that it offers
}

// greet reads the first bytes of a tunnel.
func greet(src io.Reader) (greeting, error) {
	buf := make([]byte, 16<<10)
	n, err := src.Read(buf)
	buf = buf[:n]
	if err != nil || n == 0 || buf[0] != 0x16 {
		return greeting{bytes: buf}, nil
	}
	seen := bytes.NewBuffer(buf)
	rec := &recorded{r: io.MultiReader(bytes.NewReader(buf), io.TeeReader(src, seen))}
	g := greeting{tls: true}
	ctx, cancel := context.WithTimeout(context.Background(), greetTime)
	defer cancel()
	err = tls.Server(rec, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		g.name, g.alpn = h.ServerName, h.SupportedProtos
		return nil, errSeen
	}}).HandshakeContext(ctx)
	g.tls = errors.Is(err, errSeen)
	g.bytes = seen.Bytes()
	return g, nil
}

// named holds the name in a greeting to the rules: a front that serves many
// hosts would otherwise serve one that is not allowed.
func (p *Proxy) named(g greeting, t Target, c *Call) error {
	if !g.tls || g.name == "" {
		return nil
	}
	inner, err := NewTarget(g.name, t.Port)
	if err != nil || inner.Host == t.Host {
		return nil
	}
	if p.o.Only == nil || p.o.Only(inner) == nil {
		if v, _ := p.o.Rules().Decide(inner); v == Allowed || v == Unknown && p.answered(inner) {
			return nil
		}
	}
	err = &refusal{t.String() + " is allowed, but the TLS greeting names " + g.name + ", which no rule allows", "name in the greeting"}
	c.refuse(err.Error())
	return err
}

// answered reports whether somebody has allowed t.
func (p *Proxy) answered(t Target) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answers[t.String()]
}

// recorded is a connection that is only read from.
type recorded struct{ r io.Reader }

func (r *recorded) Read(b []byte) (int, error)     { return r.r.Read(b) }
func (*recorded) Write(b []byte) (int, error)      { return len(b), nil }
func (*recorded) Close() error                     { return nil }
func (*recorded) LocalAddr() net.Addr              { return nil }
func (*recorded) RemoteAddr() net.Addr             { return nil }
func (*recorded) SetDeadline(time.Time) error      { return nil }
func (*recorded) SetReadDeadline(time.Time) error  { return nil }
func (*recorded) SetWriteDeadline(time.Time) error { return nil }
