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
)

// A counter counts the bytes of a connection.
type counter struct {
	net.Conn
	sent, received atomic.Int64
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

// join copies both ways between a command and the host it reached, each
// direction ending on its own. br, if not nil, has what was read already. It
// closes up.
func (p *Proxy) join(down, up net.Conn, t Target, c *Call, br *bufio.Reader) {
	_ = down.SetDeadline(time.Time{})
	var src io.Reader = down
	if br != nil {
		src = br
	}
	begun := time.Now()
	var sent, received int64
	var failure string
	var both sync.WaitGroup
	both.Go(func() {
		head, err := p.greet(src, t, c)
		if err != nil {
			failure = err.Error()
			_ = up.Close()
			_ = down.Close()
			return
		}
		if len(head) > 0 {
			n, err := up.Write(head)
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
	v := Allowed
	if failure != "" {
		v = Denied
	}
	p.record(Contact{At: begun, Target: t.String(), Call: c.Name, Verdict: v, Sent: sent, Received: received, Err: failure})
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

// greet reads the first bytes of a tunnel and, if they are a TLS greeting,
// holds the name in it to the rules: a front that serves many hosts would
// otherwise serve one that is not allowed. It returns the bytes read.
func (p *Proxy) greet(src io.Reader, t Target, c *Call) ([]byte, error) {
	buf := make([]byte, 16<<10)
	n, err := src.Read(buf)
	buf = buf[:n]
	if err != nil || n == 0 || buf[0] != 0x16 {
		return buf, nil
	}
	seen := bytes.NewBuffer(buf)
	rec := &recorded{r: io.MultiReader(bytes.NewReader(buf), io.TeeReader(src, seen))}
	name := ""
	ctx, cancel := context.WithTimeout(context.Background(), greeting)
	defer cancel()
	err = tls.Server(rec, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		name = h.ServerName
		return nil, errSeen
	}}).HandshakeContext(ctx)
	if !errors.Is(err, errSeen) || name == "" {
		return seen.Bytes(), nil
	}
	inner, err := NewTarget(name, t.Port)
	if err != nil || inner.Host == t.Host {
		return seen.Bytes(), nil
	}
	if v, _ := p.o.Rules().Decide(inner); v == Allowed || v == Unknown && p.answered(inner) {
		return seen.Bytes(), nil
	}
	err = &refusal{t.String() + " is allowed, but the TLS greeting names " + name + ", which no rule allows"}
	c.refuse(err.Error())
	return nil, err
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
