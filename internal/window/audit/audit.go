// Package audit watches the cached prefix of a conversation. It owns the
// fingerprints of what was sent (a hash tree: chunks in segments), finds the
// first byte of an already sent prefix that is different in the next request,
// and compares the cache reads an upstream reports with those that the bytes
// allow. It knows nothing of prices, files or the network, and never changes
// a request.
package audit

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"slices"
	"time"
	"unsafe"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// Kinds of Segment, in the order in which an upstream caches them. Key is
// what the cache depends on beside the bytes.
const (
	Key     = "key"
	Tools   = "tools"
	System  = "system"
	Message = "message"
)

// A Segment is one part of a prefix: all tool definitions, the system text,
// or one message. Bytes is a JSON array as it is sent, without the moving
// cache mark. The audit keeps it, and expects that nobody changes it; if
// somebody does, it tells.
type Segment struct {
	Kind  string
	Role  string // of a message
	UUID  string // of a message, if it has one
	Bytes []byte
}

// A Sent is one request as the audit sees it.
type Sent struct {
	At       time.Time
	Key      string // model, effort, thinking
	Life     time.Duration
	Segments []Segment
	// Planned says why the prefix is different this time. "" if it should not be.
	Planned string
}

// A Break is a change of bytes that had been sent before.
type Break struct {
	Kind   string `json:"segment"`
	Index  int    `json:"index"` // of the message; 0 for the other kinds
	UUID   string `json:"uuid,omitempty"`
	Offset int    `json:"offset"` // of the first byte that differs, within the segment
	// Near says that the byte lies in the Chunk bytes from Offset on: the old
	// bytes were overwritten in place, so Before is not known.
	Near bool `json:"near,omitempty"`
	// Before and After are some bytes from Offset on, as they were and as they are.
	Before  string `json:"before"`
	After   string `json:"after"`
	Planned bool   `json:"planned"`
	Reason  string `json:"reason"`
	// Kept and Lost are the bytes of the earlier prefix before and behind the break.
	Kept int `json:"kept"`
	Lost int `json:"lost"`
}

// String names the place of the break.
func (b *Break) String() string {
	where := b.Kind
	if b.Kind == Message {
		where = fmt.Sprintf("message %d", b.Index)
	}
	return fmt.Sprintf("%s, byte %d: %q became %q (%s)", where, b.Offset, b.Before, b.After, b.Reason)
}

// A Verdict says what became of the cache at one request.
type Verdict string

const (
	Pending   Verdict = "pending"   // not answered yet
	First     Verdict = "first"     // nothing was cached before
	Hit       Verdict = "hit"       // read what the bytes allow
	Planned   Verdict = "planned"   // a change with a reason cost the rest
	Unplanned Verdict = "unplanned" // our bytes changed and nobody said why
	Expired   Verdict = "expired"   // the bytes held, the entry was too old
	Missed    Verdict = "missed"    // the bytes held, the entry was young: the upstream did not read it
)

// A Record is one request and what became of its cache. Counts are tokens
// unless they say bytes.
type Record struct {
	N     int           `json:"n"` // counts from 1
	At    time.Time     `json:"at"`
	Bytes int           `json:"bytes"` // of the prefix
	Break *Break        `json:"break,omitempty"`
	Gap   time.Duration `json:"gap"` // since the previous request of the chain
	// Expected is what the upstream would read from its cache if nothing of
	// the earlier prefix had changed.
	Expected int     `json:"expected"`
	Read     int     `json:"read"`
	Written  int     `json:"written"`
	Prompt   int     `json:"prompt"`
	Verdict  Verdict `json:"verdict"`
}

// Lost is how many tokens were cached before and had to be paid for again.
func (r Record) Lost() int { return max(0, r.Expected-r.Read) }

// Chunk is the size, in bytes, of the leaves of the hash tree.
const Chunk = 1024

// keep bounds the records and boundaries that a Chain holds.
const keep = 10_000

// A fingerprint is a segment and the leaves of its hash tree.
type fingerprint struct {
	Segment
	sum    uint64
	leaves []uint64
}

// A boundary is a point up to which an upstream is known to have cached.
type boundary struct{ segments, tokens int }

// A Chain is the audit of one conversation. It is not safe for concurrent use.
type Chain struct {
	seed       maphash.Seed
	prints     []fingerprint
	key        string
	records    []Record
	n          int
	boundaries []boundary // ascending
	whole      int        // cached tokens of the newest answered request
	last       time.Time
}

// NewChain returns an empty chain.
func NewChain() *Chain { return &Chain{seed: maphash.MakeSeed()} }

// Sent notes a request and returns its record, with the break if the earlier
// prefix changed.
func (c *Chain) Sent(s Sent) Record {
	c.n++
	r := Record{N: c.n, At: s.At, Verdict: Pending}
	for _, g := range s.Segments {
		r.Bytes += len(g.Bytes)
	}
	if c.n == 1 {
		c.key = s.Key
	} else {
		r.Gap = s.At.Sub(c.last)
	}
	b, at := c.compare(s)
	r.Break, r.Expected = b, c.whole
	if b != nil {
		c.boundaries = slices.DeleteFunc(c.boundaries, func(x boundary) bool { return x.segments > at })
	} else {
		r.Expected = c.cached(len(s.Segments))
		if s.Life > 0 && r.Gap > s.Life {
			r.Verdict = Expired
		}
	}
	c.last, c.key = s.At, s.Key
	c.records = append(c.records, r)
	if len(c.records) > keep {
		c.records = slices.Delete(c.records, 0, keep/2)
	}
	return r
}

// Answered notes what the upstream reported for the newest request and
// returns the finished record. The zero Record means that nothing was sent.
func (c *Chain) Answered(u agent.Usage) Record {
	if len(c.records) == 0 {
		return Record{}
	}
	r := &c.records[len(c.records)-1]
	r.Read, r.Written, r.Prompt = u.CacheRead, u.CacheWrite(), u.Prompt()
	switch {
	case r.Break != nil && r.Break.Planned:
		r.Verdict = Planned
	case r.Break != nil:
		r.Verdict = Unplanned
	case r.Expected == 0:
		r.Verdict = First
	// Upstreams count in steps and by their own tokenizer version; a tenth
	// is below what any change of a segment costs.
	case r.Read >= r.Expected-r.Expected/10:
		r.Verdict = Hit
	case r.Verdict == Expired:
	default:
		r.Verdict = Missed
	}
	c.whole = u.CacheRead + u.CacheWrite()
	if n := len(c.prints); c.whole > 0 {
		for len(c.boundaries) > 0 && c.boundaries[len(c.boundaries)-1].segments >= n {
			c.boundaries = c.boundaries[:len(c.boundaries)-1]
		}
		c.boundaries = append(c.boundaries, boundary{n, c.whole})
		if len(c.boundaries) > keep {
			c.boundaries = slices.Delete(c.boundaries, 0, keep/2)
		}
	}
	return *r
}

// Records returns the records so far, oldest first.
func (c *Chain) Records() []Record { return slices.Clone(c.records) }

// Warm returns how many tokens an upstream should still have cached at that
// time: what a change of model, effort or tools would cost.
func (c *Chain) Warm(now time.Time, life time.Duration) int {
	if len(c.records) == 0 || now.Sub(c.last) > life {
		return 0
	}
	return c.whole
}

// compare finds the first difference between s and what was sent last, and
// takes s over as the new state. at is the index of the segment that differs.
func (c *Chain) compare(s Sent) (b *Break, at int) {
	old := c.prints
	c.prints = make([]fingerprint, len(s.Segments))
	if s.Key != c.key {
		off := common([]byte(c.key), []byte(s.Key))
		b = &Break{Kind: Key, Offset: off, Before: around([]byte(c.key), off), After: around([]byte(s.Key), off)}
	}
	kept, index := 0, 0
	for i, g := range s.Segments {
		var was *fingerprint
		if i < len(old) {
			was = &old[i]
		}
		p, off, near := c.take(g, was)
		c.prints[i] = p
		if b == nil && off >= 0 && (near || i != len(old)-1 || !grown(was.Bytes, g.Bytes, off)) {
			b, at = &Break{Kind: g.Kind, UUID: g.UUID, Offset: off, Near: near, After: around(g.Bytes, off), Kept: kept + off}, i
			if !near {
				b.Before = around(was.Bytes, off)
			}
			if g.Kind == Message {
				b.Index = index
			}
		}
		kept += len(g.Bytes)
		if g.Kind == Message {
			index++
		}
	}
	if b == nil {
		return nil, 0
	}
	for _, p := range old {
		b.Lost += len(p.Bytes)
	}
	b.Lost = max(0, b.Lost-b.Kept)
	b.Planned, b.Reason = s.Planned != "", s.Planned
	if !b.Planned {
		b.Reason = "nobody announced this change"
	}
	return b, at
}

// take fingerprints g. off is the first byte that differs from was, or -1.
func (c *Chain) take(g Segment, was *fingerprint) (p fingerprint, off int, near bool) {
	p = fingerprint{Segment: g}
	same := was != nil && was.Kind == g.Kind && was.Role == g.Role && len(was.Bytes) == len(g.Bytes) && unsafe.SliceData(was.Bytes) == unsafe.SliceData(g.Bytes)
	if same {
		p.leaves = was.leaves // verified below, replaced if the bytes are not what they were
	}
	off = -1
	for i, at := 0, 0; at < len(g.Bytes); i, at = i+1, at+Chunk {
		leaf := maphash.Bytes(c.seed, g.Bytes[at:min(at+Chunk, len(g.Bytes))])
		switch {
		case !same:
			if p.leaves == nil {
				p.leaves = make([]uint64, 0, (len(g.Bytes)+Chunk-1)/Chunk)
			}
			p.leaves = append(p.leaves, leaf)
		case p.leaves[i] != leaf:
			if off < 0 {
				off, near, p.leaves = at, true, slices.Clone(p.leaves)
			}
			p.leaves[i] = leaf
		}
		p.sum = (p.sum ^ leaf) * 0x9e3779b97f4a7c15
	}
	if same || was == nil || was.Kind == g.Kind && was.Role == g.Role && p.sum == was.sum && len(was.Bytes) == len(g.Bytes) {
		return p, off, near
	}
	if p.Role != was.Role {
		return p, 0, false
	}
	// A fresh copy. The bytes that were kept show the very place, unless
	// they were overwritten in the meantime: then the leaves do.
	off = common(was.Bytes, g.Bytes)
	for i, leaf := range was.leaves {
		if i < len(p.leaves) && p.leaves[i] != leaf && min((i+1)*Chunk, len(g.Bytes)) <= off {
			return p, i * Chunk, true
		}
	}
	return p, off, false
}

// grown reports whether is continues the array was with further elements: the
// last message may do that, as the cache works by block.
func grown(was, is []byte, off int) bool {
	return len(is) > len(was) && off == len(was)-1 && was[off] == ']' && is[off] == ','
}

// cached returns the tokens that are cached of the first n segments: all that
// was sent last, or less after a rewind.
func (c *Chain) cached(n int) int {
	for _, x := range slices.Backward(c.boundaries) {
		if x.segments <= n {
			return x.tokens
		}
	}
	return 0
}

// common returns how many bytes a and b have in common from the start.
func common(a, b []byte) int {
	n := min(len(a), len(b))
	// Whole chunks first: bytes.Equal is much faster than a loop.
	i := 0
	for i+Chunk <= n && bytes.Equal(a[i:i+Chunk], b[i:i+Chunk]) {
		i += Chunk
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// around returns up to 60 bytes of b from off on.
func around(b []byte, off int) string {
	if off >= len(b) {
		return ""
	}
	return string(b[off:min(off+60, len(b))])
}
