// Package sse decodes streams of server-sent events. It owns the framing:
// line ends, fields, comments, and what one event may cost in memory. It must
// not know what the events mean or where the bytes come from.
//
// A stream is a sequence of lines that end in LF, CR LF or CR, behind an
// optional byte order mark. A line is empty (it ends the event), starts with
// a colon (a comment), or is "field:value" with at most one space after the
// colon. The fields that count are event, data, id and retry.
package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// An Event is one event, or one comment line. Its byte slices are valid until
// the next step of the iteration.
type Event struct {
	Name []byte // the event field; empty means "message"
	Data []byte // the data lines, joined by LF; of a comment, its text
	ID   []byte // the id field of this very event; nil if it had none
	// Retry is the reconnection time in milliseconds, -1 if the event gave none.
	Retry int
	// Comment says that this is a comment line, which carries nothing but the
	// news that the other side is alive.
	Comment bool
	// Tail says that the input ended before the blank line that would have
	// ended the event: its last line may be cut short.
	Tail bool
}

// MaxEvent is the size in bytes at which Decode gives up on one event.
const MaxEvent = 64 << 20

// ErrTooLong reports an event larger than the limit. The stream cannot be
// decoded any further.
var ErrTooLong = errors.New("event too long")

// Decode yields the events and comments in r. A block of lines without data
// is an event only if it has an id or a retry field; its Data is nil. An
// error from r comes last, and the event under way is lost; a clean end
// yields the event under way with Tail set. What is yielded depends on the
// bytes of r alone, not on how they are split into reads.
func Decode(r io.Reader) iter.Seq2[Event, error] { return DecodeMax(r, MaxEvent) }

// DecodeMax is Decode with another limit for the size of one event.
func DecodeMax(r io.Reader, limit int) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		d := decoder{r: r, limit: limit, retry: -1}
		d.run(yield)
	}
}

// A decoder holds the bytes read and not yet used in buf[pos:end]. Lines are
// slices of buf, so that an event of one data line, which is almost every
// event, is never copied.
type decoder struct {
	r        io.Reader
	limit    int
	buf      []byte
	pos, end int
	err      error // from r
	skipLF   bool  // the last line ended in CR: an LF right behind it belongs to it
	begun    bool  // the byte order mark was looked for

	// The event under way. Its data is view, a slice of buf, or data, which
	// is owned; fill moves the one to the other.
	name, id, data, view []byte
	lines                int // data lines so far
	retry                int
	hasName, hasID       bool
}

func (d *decoder) run(yield func(Event, error) bool) {
	for {
		line, err := d.line()
		if err == io.EOF {
			break
		} else if err != nil {
			yield(Event{Retry: -1}, fmt.Errorf("sse: %w", err))
			return
		}
		switch {
		case len(line) == 0:
			if !d.dispatch(false, yield) {
				return
			}
		case line[0] == ':':
			if !yield(Event{Data: oneSpace(line[1:]), Retry: -1, Comment: true}, nil) {
				return
			}
		default:
			d.field(line)
		}
	}
	if rest := d.mark(d.buf[d.pos:d.end]); len(rest) > 0 && rest[0] != ':' {
		d.field(rest)
	}
	d.dispatch(true, yield)
}

// line returns the next line without its end. It fails with io.EOF when what
// is left in buf has no line end.
func (d *decoder) line() ([]byte, error) {
	seen := 0 // bytes behind pos that hold no line end
	for {
		rest := d.buf[d.pos+seen : d.end]
		if d.skipLF && len(rest) > 0 {
			d.skipLF = false
			if rest[0] == '\n' {
				d.pos++
				rest = rest[1:]
			}
		}
		n := bytes.IndexByte(rest, '\n')
		if n < 0 {
			n = len(rest)
		}
		if cr := bytes.IndexByte(rest[:n], '\r'); cr >= 0 {
			n, d.skipLF = cr, true
		}
		if err := d.afford(seen + n); err != nil {
			return nil, err
		}
		if n < len(rest) {
			line := d.buf[d.pos : d.pos+seen+n]
			d.pos += seen + n + 1
			return d.mark(line), nil
		}
		seen += n
		if err := d.fill(); err != nil {
			return nil, err
		}
	}
}

// afford checks that the event under way may have n more bytes.
func (d *decoder) afford(n int) error {
	if n+len(d.data)+len(d.view) > d.limit {
		return fmt.Errorf("%w: over %d bytes", ErrTooLong, d.limit)
	}
	return nil
}

// mark takes the byte order mark off the first line.
func (d *decoder) mark(line []byte) []byte {
	if d.begun {
		return line
	}
	d.begun = true
	return bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
}

// fill reads more bytes into buf. It moves what is there, so that no slice of
// buf but pos:end stays valid.
func (d *decoder) fill() error {
	if d.view != nil {
		d.data, d.view = append(d.data[:0], d.view...), nil
	}
	if d.pos > 0 {
		d.end = copy(d.buf, d.buf[d.pos:d.end])
		d.pos = 0
	}
	if d.end == len(d.buf) {
		d.buf = append(d.buf, make([]byte, max(32<<10, len(d.buf)))...)
	}
	for range 100 {
		if d.err != nil {
			return d.err
		}
		var n int
		n, d.err = d.r.Read(d.buf[d.end:])
		if d.end += n; n > 0 {
			return nil
		}
	}
	return io.ErrNoProgress
}

// field takes in one line that is neither empty nor a comment.
func (d *decoder) field(line []byte) {
	key, value, _ := bytes.Cut(line, []byte(":"))
	value = oneSpace(value)
	switch string(key) {
	case "data":
		if d.lines++; d.lines == 1 {
			d.view = value
			return
		}
		if d.view != nil {
			d.data, d.view = append(d.data[:0], d.view...), nil
		}
		d.data = append(append(d.data, '\n'), value...)
	case "event":
		d.name, d.hasName = append(d.name[:0], value...), true
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			d.id, d.hasID = append(d.id[:0], value...), true
		}
	case "retry":
		if ms, ok := digits(value); ok {
			d.retry = ms
		}
	}
}

// dispatch yields the event under way, if there is one, and starts the next.
func (d *decoder) dispatch(tail bool, yield func(Event, error) bool) bool {
	e := Event{Retry: d.retry, Tail: tail}
	if d.lines > 0 {
		switch {
		case d.view != nil:
			e.Data = d.view
		case d.data != nil:
			e.Data = d.data
		default:
			e.Data = []byte{}
		}
	}
	if d.hasName {
		e.Name = d.name
	}
	if d.hasID {
		e.ID = d.id
	}
	more := true
	if d.lines > 0 || d.hasID || d.retry >= 0 {
		more = yield(e, nil)
	}
	d.data, d.view = d.data[:0], nil
	d.lines, d.retry, d.hasName, d.hasID = 0, -1, false, false
	return more
}

// oneSpace drops the one space that may stand behind the colon.
func oneSpace(b []byte) []byte {
	if len(b) > 0 && b[0] == ' ' {
		return b[1:]
	}
	return b
}

// digits reads a number of plain digits.
func digits(b []byte) (n int, ok bool) {
	if len(b) == 0 || len(b) > 9 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}
