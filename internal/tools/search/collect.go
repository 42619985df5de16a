package search

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// hits are what was found in one file.
type hits struct {
	path  string
	count int    // lines that match; in multiline, matches
	lines []line // with context, rising; cut off once there are enough
	// binary marks a file that holds binary data and was named outright.
	binary bool
	mtime  time.Time
}

// A line is one line of output.
type line struct {
	number int
	text   string
	match  bool // not context
	at     int  // offset of the first match
}

// A collector gathers hits from an engine. Its methods may be called concurrently.
type collector struct {
	q         *query
	real, was string
	// single: one file was named, so it is searched whatever it is.
	single bool
	// ended is the time after which the search was ended, 0 if it came to its end.
	ended time.Duration

	mu    sync.Mutex
	files []*hits
	held  int // lines
	big   int // files left out for their size
}

func newCollector(q *query) *collector { return &collector{q: q} }

// alias makes paths below real be shown below the path that was asked for.
func (c *collector) alias(real, was string) { c.real, c.was = real, was }

func (c *collector) named(path string) string {
	if rest, ok := strings.CutPrefix(path, c.real); ok {
		return c.was + rest
	}
	return path
}

// add takes the hits of one file. Binary files count only if named outright.
func (c *collector) add(h *hits) {
	if sniffBinary(h.path) {
		if !c.single {
			return
		}
		h.binary, h.lines = true, nil
	}
	if c.q.mode == modeFiles {
		info, err := os.Stat(h.path)
		if err != nil {
			return
		}
		h.mtime = info.ModTime()
	}
	h.path = c.named(h.path)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files = append(c.files, h)
	if c.held += len(h.lines); c.held > 2*c.q.need+maxLines {
		c.prune()
	}
}

// prune drops lines that come behind all that can be shown. The lock is held.
func (c *collector) prune() {
	slices.SortFunc(c.files, func(a, b *hits) int { return comparePaths(a.path, b.path) })
	c.held = 0
	for _, h := range c.files {
		if c.held >= c.q.need {
			h.lines = nil
		}
		c.held += len(h.lines)
	}
}

func (c *collector) tooBig() {
	c.mu.Lock()
	c.big++
	c.mu.Unlock()
}

// byPath returns the hits in the order of their paths.
func (c *collector) byPath() []*hits {
	c.prune()
	return c.files
}

func (c *collector) byTime() []*hits {
	slices.SortFunc(c.files, func(a, b *hits) int {
		if d := b.mtime.Compare(a.mtime); d != 0 {
			return d
		}
		return comparePaths(a.path, b.path)
	})
	return c.files
}

// sniffLen is how much of a file decides whether it is binary. compat:
// ripgrep looks at its first buffer.
const sniffLen = 64 << 10

// binaryData reports whether the head of a file is that of a binary one: it
// has a zero byte, and no mark of UTF-16, in which those are common.
func binaryData(head []byte) bool {
	if utf16Marked(head) {
		return false
	}
	return bytes.IndexByte(head[:min(len(head), sniffLen)], 0) >= 0
}

func utf16Marked(head []byte) bool {
	return bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff"))
}

func sniffBinary(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return true
	}
	defer f.Close()
	head := make([]byte, sniffLen)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return true
	}
	return binaryData(head[:n])
}
