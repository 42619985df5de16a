package proc

import (
	"context"
	"sync"
)

// An Output is what a child wrote and how it ended.
type Output struct {
	Exit
	Stdout, Stderr []byte
	// Omitted counts the bytes left out of the middle of either.
	Omitted int64
}

// Run starts s, waits for it, and returns the first and last bytes of what it
// wrote, at most limit of each stream. Options.Stdout and Stderr, where set,
// are written to instead. The error is that of Start or Wait.
func Run(ctx context.Context, s Spec, o Options, limit int) (Output, error) {
	out, errs := &Capture{Max: limit}, &Capture{Max: limit}
	if o.Stdout == nil {
		o.Stdout = out
	}
	if o.Stderr == nil {
		o.Stderr = errs
	}
	p, err := Start(ctx, s, o)
	if err != nil {
		return Output{Exit: Exit{Code: -1}}, err
	}
	exit, err := p.Wait()
	res := Output{Exit: exit, Stdout: out.Bytes(), Stderr: errs.Bytes()}
	res.Omitted = out.Omitted() + errs.Omitted()
	return res, err
}

// A Capture keeps the first and the last bytes written to it, at most Max in
// all, and counts the rest. It may be used concurrently; writing never fails.
type Capture struct {
	Max int

	mu      sync.Mutex
	head    []byte
	tail    []byte // the newest bytes; a ring once it is full
	at      int    // where the ring's oldest byte is
	omitted int64
}

// Write keeps of b what fits.
func (c *Capture) Write(b []byte) (int, error) {
	n := len(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if room := c.Max - c.Max/2 - len(c.head); room > 0 {
		k := min(room, len(b))
		c.head = append(c.head, b[:k]...)
		b = b[k:]
	}
	size := c.Max / 2
	if over := len(b) - size; over > 0 { // b alone fills the ring
		c.omitted += int64(over + len(c.tail))
		c.tail = append(c.tail[:0], b[over:]...)
		c.at = 0
		return n, nil
	}
	if room := size - len(c.tail); room > 0 {
		k := min(room, len(b))
		c.tail = append(c.tail, b[:k]...)
		b = b[k:]
	}
	c.omitted += int64(len(b))
	for len(b) > 0 {
		k := copy(c.tail[c.at:], b)
		c.at = (c.at + k) % size
		b = b[k:]
	}
	return n, nil
}

// Bytes returns a copy of what is kept; Omitted bytes are missing where the
// first half of Max ends.
func (c *Capture) Bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := make([]byte, 0, len(c.head)+len(c.tail))
	b = append(b, c.head...)
	b = append(b, c.tail[c.at:]...)
	return append(b, c.tail[:c.at]...)
}

// Omitted counts the bytes that were not kept.
func (c *Capture) Omitted() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.omitted
}
