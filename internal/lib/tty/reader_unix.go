//go:build unix

package tty

import (
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// A Reader reads what is typed, and can be kept from it while somebody else
// reads, or for ever. Read is called by one goroutine at a time.
type Reader struct {
	f          *os.File
	wake, poke *os.File // a pipe that ends a wait

	mu     sync.Mutex
	paused chan struct{} // closed when reading may go on; nil if it may
	closed bool
}

// NewReader returns a reader of the terminal f, which stays the caller's.
func NewReader(f *os.File) (*Reader, error) {
	wake, poke, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &Reader{f: f, wake: wake, poke: poke}, nil
}

// Read waits for bytes. It fails with io.EOF once the reader is closed.
func (r *Reader) Read(b []byte) (int, error) {
	for {
		r.mu.Lock()
		paused, closed := r.paused, r.closed
		r.mu.Unlock()
		if closed {
			return 0, io.EOF
		}
		if paused != nil {
			<-paused
			continue
		}
		fds := []unix.PollFd{{Fd: int32(r.f.Fd()), Events: unix.POLLIN}, {Fd: int32(r.wake.Fd()), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err == unix.EINTR {
			continue
		} else if err != nil {
			return 0, err
		}
		if fds[1].Revents != 0 {
			var one [1]byte
			if _, err := r.wake.Read(one[:]); err != nil {
				return 0, io.EOF
			}
			continue
		}
		if fds[0].Revents != 0 {
			return r.f.Read(b)
		}
	}
}

// Pause keeps Read from reading until Resume.
func (r *Reader) Pause() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.paused == nil && !r.closed {
		r.paused = make(chan struct{})
		_, _ = r.poke.Write([]byte{0}) // the pipe is never full: each byte ends a wait
	}
}

// Resume lets Read go on.
func (r *Reader) Resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.paused != nil {
		close(r.paused)
		r.paused = nil
	}
}

// Close ends Read.
func (r *Reader) Close() {
	r.Resume()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		r.poke.Close()
	}
}
