package search

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"

	"github.com/seed-eb844fcb/cinch/internal/lib/textenc"
)

// maxLoad bounds the files that the built-in engine searches: it loads them.
const maxLoad = 64 << 20

// A matcher is the built-in engine.
type matcher struct {
	q    *query
	re   *regexp.Regexp
	must []byte // is in every match
}

func newMatcher(q *query) (*matcher, error) {
	re, must, err := compile(q.pattern, q.fold, q.multiline)
	if err != nil {
		return nil, err
	}
	return &matcher{q: q, re: re, must: []byte(must)}, nil
}

func (m *matcher) search(ctx context.Context, files <-chan string, found *collector) error {
	runtime.SetDefaultGOMAXPROCS() // cli keeps it low until there is work for all
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			var buf []byte
			for path := range files {
				if ctx.Err() != nil {
					return
				}
				buf = m.file(path, buf, found)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// file searches one file; buf is room to load it in, returned for the next.
func (m *matcher) file(path string, buf []byte, found *collector) []byte {
	data, err := load(path, buf[:0])
	if err == errBig {
		found.tooBig()
	}
	if err != nil {
		return data // unreadable files are passed over, as by ripgrep
	}
	text := data
	if utf16Marked(data) {
		text = []byte(textenc.Decode(data).Literal())
	} else if binaryData(data) && !found.single {
		return data
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if len(m.must) > 0 && !bytes.Contains(text, m.must) {
		return data
	}
	h := &hits{path: path}
	if m.q.multiline {
		m.spans(text, h)
	} else {
		m.lines(text, h)
	}
	if h.count > 0 {
		found.add(h)
	}
	return data
}

var errBig = errors.New("too big to load")

func load(path string, buf []byte) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return buf, err
	}
	defer f.Close()
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := f.Read(buf[len(buf):cap(buf)])
		if buf = buf[:len(buf)+n]; len(buf) > maxLoad {
			return buf, errBig
		}
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
}

// enough reports whether what was found in a file answers the question.
func (m *matcher) enough(h *hits) bool {
	switch m.q.mode {
	case modeFiles:
		return h.count > 0
	case modeContent:
		return len(h.lines) >= m.q.need+m.q.before+m.q.after
	}
	return false
}

// A lineReader counts lines while going forward through a text.
type lineReader struct {
	text   []byte
	at     int // offset that number belongs to
	number int
}

// lineAt returns the number of the line that an offset is in; offsets must rise.
func (r *lineReader) lineAt(offset int) int {
	r.number += bytes.Count(r.text[r.at:offset], []byte{'\n'})
	r.at = offset
	return r.number
}

// lines finds the lines that match. No match crosses a line end.
func (m *matcher) lines(text []byte, h *hits) {
	r := lineReader{text: text, number: 1}
	out := surround{q: m.q, text: text, h: h}
	for pos := 0; pos < len(text) && !m.enough(h); {
		loc := m.re.FindIndex(text[pos:])
		if loc == nil {
			break
		}
		from := pos + loc[0]
		if from == len(text) && text[from-1] == '\n' {
			break // behind the last line end there is no line
		}
		start := bytes.LastIndexByte(text[:from], '\n') + 1
		end := lineEnd(text, from)
		h.count++
		if m.q.mode == modeContent {
			n := r.lineAt(start)
			if m.q.only {
				m.pieces(text[start:end], n, h)
			} else {
				out.match(n, start, end, from-start)
			}
		}
		pos = end
	}
	out.flush()
}

// pieces adds each non-empty match in one line.
func (m *matcher) pieces(text []byte, number int, h *hits) {
	for _, loc := range m.re.FindAllIndex(text, -1) {
		if loc[0] < loc[1] {
			h.lines = append(h.lines, line{number: number, text: printable(text[loc[0]:loc[1]]), match: true})
		}
	}
}

// spans finds matches that may cross lines. All lines that one touches are shown.
func (m *matcher) spans(text []byte, h *hits) {
	r := lineReader{text: text, number: 1}
	out := surround{q: m.q, text: text, h: h}
	for _, loc := range m.re.FindAllIndex(text, -1) {
		if m.enough(h) {
			break
		}
		if loc[0] == len(text) && loc[0] > 0 && text[loc[0]-1] == '\n' {
			break
		}
		h.count++
		if m.q.mode != modeContent {
			continue
		}
		start := bytes.LastIndexByte(text[:loc[0]], '\n') + 1
		n := r.lineAt(start)
		if m.q.only {
			for piece := range strings.SplitSeq(strings.TrimSuffix(string(text[loc[0]:loc[1]]), "\n"), "\n") {
				if piece != "" || loc[0] < loc[1] {
					h.lines = append(h.lines, line{number: n, text: printable([]byte(piece)), match: true})
				}
				n++
			}
			continue
		}
		for at := loc[0] - start; ; at = 0 {
			end := lineEnd(text, start)
			out.match(n, start, end, at)
			if n, start = n+1, end; start >= loc[1] || start >= len(text) {
				break
			}
		}
	}
	out.flush()
}

// lineEnd returns the offset behind the line end that follows i.
func lineEnd(text []byte, i int) int {
	if j := bytes.IndexByte(text[i:], '\n'); j >= 0 {
		return i + j + 1
	}
	return len(text)
}

// surround adds the lines of one file with those around them.
type surround struct {
	q    *query
	text []byte
	h    *hits
	// What has been shown last: the line behind it and its number.
	next, number int
	pending      bool // lines behind a match are still to come
}

// match adds a line that matches, after the context before it.
func (c *surround) match(number, start, end, at int) {
	if c.number == 0 {
		c.number = 1
	}
	if number < c.number {
		return // shown already, as part of the match before
	}
	if c.pending {
		c.behind(number)
	}
	first, n := start, number
	for range c.q.before {
		if n <= c.number {
			break
		}
		first = bytes.LastIndexByte(c.text[:first-1], '\n') + 1
		n--
	}
	for ; n < number; n++ {
		e := lineEnd(c.text, first)
		c.add(n, first, e, false, 0)
		first = e
	}
	c.add(number, start, end, true, at)
	c.pending = c.q.after > 0
}

// behind adds up to after lines that follow the last match, before line stop.
func (c *surround) behind(stop int) {
	for range c.q.after {
		if c.next >= len(c.text) || stop > 0 && c.number >= stop {
			break
		}
		c.add(c.number, c.next, lineEnd(c.text, c.next), false, 0)
	}
	c.pending = false
}

func (c *surround) flush() {
	if c.pending {
		c.behind(0)
	}
}

func (c *surround) add(number, start, end int, match bool, at int) {
	c.h.lines = append(c.h.lines, line{number: number, text: printable(bytes.TrimSuffix(c.text[start:end], []byte{'\n'})), match: match, at: at})
	c.next, c.number = end, number+1
}

// printable makes a line of a file fit for a result.
func printable(b []byte) string {
	s := strings.TrimSuffix(string(b), "\r")
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\u2400")
}
