package transcript

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/jsonl"
	"github.com/seed-eb844fcb/cinch/internal/transcript/history"
)

// RequestsPath returns the name of the record of requests of the transcript
// path. Each of its lines holds what a request has that an earlier one of the
// same conversation has not, so that it grows as the transcript does.
func RequestsPath(path string) string { return filepath.Join(SideDir(path), "requests.jsonl") }

// A Sent is one request as it went out.
type Sent struct {
	N              int // counts the requests of the session from 1, attempts included
	At             time.Time
	Agent, Purpose string
	Model          string
	Attempt        int
	Bytes          int // of the body
}

// A delta is a line of the record: a body is the first Head bytes of that of
// request Base, then Mid, then its last Tail bytes.
type delta struct {
	At      time.Time `json:"at"`
	Agent   string    `json:"agent,omitempty"`
	Purpose string    `json:"purpose,omitempty"`
	Model   string    `json:"model"`
	Attempt int       `json:"attempt"`
	Bytes   int       `json:"bytes"`
	Sum     uint32    `json:"crc32c"` // of the body
	Base    int       `json:"base,omitempty"`
	Head    int       `json:"head,omitempty"`
	Tail    int       `json:"tail,omitempty"`
	N       int       `json:"n"`

	mid place // of Mid
}

// A place is where the text of a line stands in the file: a JSON string, in
// base64 where it is no UTF-8.
type place struct {
	off int64
	len int
	b64 bool
}

func (d *delta) sent() Sent {
	return Sent{N: d.N, At: d.At, Agent: d.Agent, Purpose: d.Purpose, Model: d.Model, Attempt: d.Attempt, Bytes: d.Bytes}
}

// encode is the line of d, with its text.
func (d *delta) encode(mid []byte) []byte {
	b, err := json.Marshal(d)
	if err != nil {
		return []byte("{}") // a time that no calendar has; readers pass it over
	}
	b = b[:len(b)-1]
	switch {
	case len(mid) == 0:
	case utf8.Valid(mid):
		b = agent.AppendString(append(b, `,"mid":`...), string(mid))
	default:
		b = append(b, `,"mid64":"`...)
		b = append(base64.StdEncoding.AppendEncode(b, mid), '"')
	}
	return append(b, '}')
}

// decode reads a line, all but its text.
func decode(l jsonl.Line) (*delta, bool) {
	d := &delta{}
	rest := []byte{'{'}
	err := history.Fields(l.Data, func(name, value []byte) bool {
		if n := string(name); n == "mid" || n == "mid64" {
			d.mid = place{l.Off + int64(cap(l.Data)-cap(value)), len(value), n == "mid64"} // value is a part of Data
			return true
		}
		if len(rest) > 1 {
			rest = append(rest, ',')
		}
		rest = append(append(append(append(rest, '"'), name...), `":`...), value...)
		return true
	})
	return d, err == nil && json.Unmarshal(append(rest, '}'), d) == nil &&
		d.N > 0 && d.Base >= 0 && d.Base < d.N && d.Head >= 0 && d.Tail >= 0 && d.Bytes >= 0
}

// text reads the text of d.
func (d *delta) text(f io.ReaderAt) ([]byte, bool) {
	if d.mid.len == 0 {
		return nil, true
	}
	raw := make([]byte, d.mid.len)
	if _, err := f.ReadAt(raw, d.mid.off); err != nil {
		return nil, false
	}
	s, ok := history.Unquote(raw)
	if !ok || !d.mid.b64 {
		return []byte(s), ok
	}
	out, err := base64.StdEncoding.DecodeString(s)
	return out, err == nil
}

// pending is a request on its way to the record.
type pending struct {
	Sent
	path   string
	pieces [][]byte
}

// A requestLog writes the record of requests. One goroutine of its own does
// the work, so that no request waits for it.
type requestLog struct {
	w    *Writer
	work chan pending
	done sync.WaitGroup

	mu   sync.Mutex
	err  error // the first
	over bool
	lost int // requests that are left out, and not yet counted

	// Of the goroutine.
	path  string
	file  *jsonl.Appender
	n     int
	bases map[string]*base // by agent
}

// A base is the newest request of a conversation.
type base struct {
	n, bytes int
	pieces   [][]byte
}

// maxBases bounds the conversations whose newest request is remembered.
const maxBases = 16

// Sent records a request whose body is pieces, which nobody may change from
// here on. It does not wait for the disk: should the record be far behind, the
// request is left out of it. N is filled in.
func (w *Writer) Sent(s Sent, pieces [][]byte) {
	w.mu.Lock()
	path, l := w.main.out.path, w.requests
	if l == nil {
		l = &requestLog{w: w, work: make(chan pending, 64)}
		w.requests = l
		l.done.Go(l.run)
	}
	w.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	select {
	case l.work <- pending{s, RequestsPath(path), pieces}:
	default:
		l.lost++
	}
}

// close waits for what is on its way and returns the first error.
func (l *requestLog) close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	if !l.over {
		l.over = true
		close(l.work)
	}
	l.mu.Unlock()
	l.done.Wait()
	if l.err != nil {
		return fmt.Errorf("recording requests: %w", l.err)
	}
	return nil
}

func (l *requestLog) run() {
	for p := range l.work {
		if err := l.add(p); err != nil {
			l.bases = nil // what the file holds is not known
			if l.err == nil {
				l.err = err
			}
		}
	}
	if l.file != nil {
		if err := l.file.Close(); l.err == nil {
			l.err = err
		}
	}
}

func (l *requestLog) add(p pending) error {
	if g := l.w.o.Guard; g != nil {
		if g() != nil {
			return nil // the transcript tells
		}
	}
	if err := l.open(p); err != nil {
		return err
	}
	l.mu.Lock()
	l.n += 1 + l.lost // about where they are missing
	l.lost = 0
	l.mu.Unlock()
	d := &delta{At: p.At, Agent: p.Agent, Purpose: p.Purpose, Model: p.Model, Attempt: p.Attempt, N: l.n}
	table := crc32.MakeTable(crc32.Castagnoli)
	for _, x := range p.pieces {
		d.Bytes += len(x)
		d.Sum = crc32.Update(d.Sum, table, x)
	}
	if b := l.bases[p.Agent]; b != nil {
		d.Head = shared(b.pieces, p.pieces, min(b.bytes, d.Bytes), false)
		d.Tail = shared(b.pieces, p.pieces, min(b.bytes, d.Bytes)-d.Head, true)
		if d.Head+d.Tail > 0 {
			d.Base = b.n
		}
	}
	if err := l.file.Append(d.encode(part(p.pieces, d.Head, d.Bytes-d.Tail))); err != nil {
		return err
	}
	if l.bases == nil || l.bases[p.Agent] == nil && len(l.bases) >= maxBases {
		l.bases = map[string]*base{}
	}
	l.bases[p.Agent] = &base{l.n, d.Bytes, p.pieces}
	return nil
}

// part joins what pieces hold from byte from to byte to.
func part(pieces [][]byte, from, to int) []byte {
	out := make([]byte, 0, max(to-from, 0))
	at := 0
	for _, p := range pieces {
		if lo, hi := max(from-at, 0), min(to-at, len(p)); lo < hi {
			out = append(out, p[lo:hi]...)
		}
		at += len(p)
	}
	return out
}

// open turns to the file of p. One that an earlier run left is continued: its
// newest request of the main conversation is the base of the next.
func (l *requestLog) open(p pending) error {
	if l.file != nil && l.path == p.path {
		return nil
	}
	if l.file != nil {
		_ = l.file.Close() // an error of the past is nobody's concern now
	}
	l.file, l.path, l.n, l.bases = nil, p.path, 0, nil
	fsys := l.w.o.FS
	if err := fsys.MkdirAll(filepath.Dir(p.path), 0o700); err != nil {
		return err
	}
	if info, err := fsys.Stat(p.path); err == nil && info.Size() > 0 {
		rec, err := readRequests(p.path)
		if err != nil {
			return err
		}
		l.n = rec.last
		if n := rec.newest(""); n > 0 {
			if body, err := rec.body(n); err == nil {
				l.bases = map[string]*base{"": {n, len(body), [][]byte{body}}}
			}
		}
	}
	var err error
	l.file, err = jsonl.Open(fsys, p.path)
	return err
}

// shared returns how many bytes a and b have in common from the start, or from
// the end, at most limit. Pieces that both share are not looked into.
func shared(a, b [][]byte, limit int, end bool) int {
	var x, y []byte
	i, j, n := 0, 0, 0
	next := func(list [][]byte, k *int) []byte {
		for *k < len(list) {
			p := list[*k]
			if end {
				p = list[len(list)-1-*k]
			}
			if *k++; len(p) > 0 {
				return p
			}
		}
		return nil
	}
	for n < limit {
		if len(x) == 0 {
			x = next(a, &i)
		}
		if len(y) == 0 {
			y = next(b, &j)
		}
		most := min(len(x), len(y), limit-n)
		if most == 0 {
			break
		}
		p, q := x[:most], y[:most]
		if end {
			p, q = x[len(x)-most:], y[len(y)-most:]
		}
		if k := alike(p, q, end); k < most {
			return n + k
		}
		n += most
		if end {
			x, y = x[:len(x)-most], y[:len(y)-most]
		} else {
			x, y = x[most:], y[most:]
		}
	}
	return n
}

// alike returns how many bytes of p and q, which are of one length, are the
// same from the start or the end.
func alike(p, q []byte, end bool) int {
	if unsafe.SliceData(p) == unsafe.SliceData(q) || bytes.Equal(p, q) {
		return len(p)
	}
	k := 0
	if end {
		for p[len(p)-1-k] == q[len(q)-1-k] {
			k++
		}
		return k
	}
	const step = 1024
	for k+step <= len(p) && bytes.Equal(p[k:k+step], q[k:k+step]) {
		k += step
	}
	for p[k] == q[k] {
		k++
	}
	return k
}

// ErrNotRecorded reports a request that the record does not hold.
var ErrNotRecorded = errors.New("that request was not recorded")

// Requests are the requests of a session, as its record tells.
type Requests struct {
	// Skipped counts lines that could not be read.
	Skipped jsonl.Skips

	name   string
	deltas map[int]*delta
	order  []int
	last   int
}

// ReadRequests reads the record of requests of the transcript path. A session
// without one has none.
func ReadRequests(path string) (*Requests, error) {
	r, err := readRequests(RequestsPath(path))
	if errors.Is(err, fs.ErrNotExist) {
		return &Requests{}, nil
	}
	return r, err
}

func readRequests(name string) (*Requests, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading the record of requests: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	r := &Requests{name: name, deltas: map[int]*delta{}}
	for l, err := range jsonl.Read(f, &r.Skipped) {
		if err != nil {
			return nil, fmt.Errorf("reading the record of requests: %w", err)
		}
		d, ok := decode(l)
		if !ok || r.deltas[d.N] != nil {
			r.Skipped.Add(l.N, "not a request")
			continue
		}
		r.deltas[d.N] = d
		r.order = append(r.order, d.N)
		r.last = max(r.last, d.N)
	}
	return r, nil
}

// newest returns the newest request of a conversation, or 0.
func (r *Requests) newest(agentID string) int {
	for i := len(r.order) - 1; i >= 0; i-- {
		if d := r.deltas[r.order[i]]; d.Agent == agentID {
			return d.N
		}
	}
	return 0
}

// All returns the requests in the order in which they went out.
func (r *Requests) All() []Sent {
	var out []Sent
	for _, n := range r.order {
		out = append(out, r.deltas[n].sent())
	}
	return out
}

// Body returns the body of request n: the very bytes that went out, as their
// checksum proves. Any other error than ErrNotRecorded says what of the record
// is damaged.
func (r *Requests) Body(n int) ([]byte, Sent, error) {
	d := r.deltas[n]
	if d == nil {
		return nil, Sent{}, ErrNotRecorded
	}
	body, err := r.body(n)
	return body, d.sent(), err
}

// A span is a part of the text of one line.
type span struct{ n, from, to int }

func (r *Requests) body(n int) ([]byte, error) {
	var line []*delta // from n back to one that stands alone
	for at := n; at > 0; {
		d := r.deltas[at]
		if d == nil {
			return nil, fmt.Errorf("request %d rests on request %d, which cannot be read", n, at)
		}
		line = append(line, d)
		at = d.Base
	}
	f, err := os.Open(r.name)
	if err != nil {
		return nil, fmt.Errorf("reading the record of requests: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	mids := map[int][]byte{}
	var spans []span
	size := 0
	for i := len(line) - 1; i >= 0; i-- {
		d := line[i]
		mid, ok := d.text(f)
		if !ok || d.Head > size || d.Tail > size-d.Head || d.Head+d.Tail+len(mid) != d.Bytes {
			return nil, fmt.Errorf("the record of request %d is damaged", d.N)
		}
		mids[d.N] = mid
		next := slice(nil, spans, 0, d.Head)
		if len(mid) > 0 {
			next = append(next, span{d.N, 0, len(mid)})
		}
		spans = slice(next, spans, size-d.Tail, size)
		size = d.Bytes
	}
	body := make([]byte, 0, min(size, 1<<30))
	for _, s := range spans {
		body = append(body, mids[s.n][s.from:s.to]...)
	}
	if sum := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)); sum != r.deltas[n].Sum {
		return nil, fmt.Errorf("the record of request %d is damaged: its checksum is wrong", n)
	}
	return body, nil
}

// slice appends the part of spans from byte from to byte to.
func slice(dst, spans []span, from, to int) []span {
	at := 0
	for _, s := range spans {
		n := s.to - s.from
		lo, hi := max(from, at), min(to, at+n)
		if lo < hi {
			dst = append(dst, span{s.n, s.from + lo - at, s.from + hi - at})
		}
		at += n
	}
	return dst
}
