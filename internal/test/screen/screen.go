// Package screen is a terminal for tests: it takes the bytes a program writes
// and shows what a person would see. It knows the sequences this program has a
// reason to write, keeps account of those it does not know, and breaks long
// lines anew when it is resized, as most terminals do.
package screen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// A line is one row; wrapped says that it goes on in the next.
type line struct {
	cells   []string // a wide character is followed by ""
	wrapped bool
}

// A Screen is a terminal. Its methods may be called concurrently.
type Screen struct {
	mu      sync.Mutex
	w, h    int
	past    []line // scrollback
	rows    []line
	saved   []line // the main screen while the other one is shown
	sx, sy  int
	alt     bool
	x, y    int
	hang    bool // the cursor hangs behind the last column
	hidden  bool
	sync    bool
	buf     []byte
	bytes   int
	frames  int
	clears  int      // of the whole main screen
	strange []string // sequences that are not known
	loose   int      // bytes of text written outside of a synchronised update, once there was one
	bells   int
}

// New returns an empty terminal.
func New(w, h int) *Screen {
	s := &Screen{w: w, h: h}
	s.rows = make([]line, h)
	return s
}

// Write takes what a program writes.
func (s *Screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes += len(b)
	s.buf = append(s.buf, b...)
	for len(s.buf) > 0 {
		n := s.step(s.buf)
		if n == 0 {
			break
		}
		s.buf = s.buf[n:]
	}
	return len(b), nil
}

// step acts on what b begins with; 0 says that more has to come.
func (s *Screen) step(b []byte) int {
	switch c := b[0]; {
	case c == 0x1b:
		return s.escape(b)
	case c == '\r':
		s.x, s.hang = 0, false
		return 1
	case c == '\n':
		s.hang = false
		s.feed()
		return 1
	case c == 7:
		s.bells++
		return 1
	case c == 8:
		s.x = max(0, s.x-1)
		return 1
	case c < ' ' || c == 0x7f:
		s.strange = append(s.strange, fmt.Sprintf("%#x", c))
		return 1
	}
	end := 0
	for end < len(b) && b[end] >= ' ' && b[end] != 0x7f {
		end++
	}
	if end == len(b) { // keep a letter whose rest has not come
		for n := 1; n < utf8.UTFMax && n <= end; n++ {
			if utf8.RuneStart(b[end-n]) {
				if !utf8.FullRune(b[end-n:]) {
					end -= n
				}
				break
			}
		}
		if end == 0 {
			return 0
		}
	}
	if !s.sync && !s.alt && s.frames > 0 {
		s.loose += end
	}
	g := displaywidth.StringGraphemes(string(b[:end]))
	for g.Next() {
		s.put(g.Value(), g.Width())
	}
	return end
}

func (s *Screen) put(c string, w int) {
	if r, _ := utf8.DecodeRuneInString(c); r >= 0x80 && r < 0xa0 {
		s.strange = append(s.strange, fmt.Sprintf("%U", r))
		return
	}
	if w == 0 {
		return
	}
	if s.hang || s.x+w > s.w {
		s.rows[s.y].wrapped = true
		s.x, s.hang = 0, false
		s.feed()
	}
	l := &s.rows[s.y]
	for len(l.cells) < s.x+w {
		l.cells = append(l.cells, " ")
	}
	l.cells[s.x] = c
	for i := 1; i < w; i++ {
		l.cells[s.x+i] = ""
	}
	s.x += w
	if s.x >= s.w {
		s.x, s.hang = s.w-1, true
	}
}

// feed goes to the next row.
func (s *Screen) feed() {
	if s.y < s.h-1 {
		s.y++
		return
	}
	if !s.alt {
		s.past = append(s.past, s.rows[0])
	}
	s.rows = append(s.rows[1:], line{})
}

// escape acts on a sequence.
func (s *Screen) escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	if b[1] == ']' { // up to BEL or ST
		for i := 2; i < len(b); i++ {
			if b[i] == 7 || b[i] == '\\' && b[i-1] == 0x1b {
				s.strange = append(s.strange, fmt.Sprintf("%q", b[:i+1]))
				return i + 1
			}
		}
		return 0
	}
	if b[1] != '[' {
		s.strange = append(s.strange, fmt.Sprintf("%q", b[:2]))
		return 2
	}
	i := 2
	for i < len(b) && (b[i] < 0x40 || b[i] > 0x7e) {
		i++
	}
	if i == len(b) {
		return 0
	}
	s.control(string(b[2:i]), b[i])
	return i + 1
}

func (s *Screen) control(params string, final byte) {
	n, err := strconv.Atoi(params)
	if err != nil {
		n = 1
	}
	if final != 'm' && final != 'h' && final != 'l' {
		s.hang = false
	}
	switch key := params + string(final); {
	case final == 'A':
		s.y = max(0, s.y-n)
	case final == 'B':
		s.y = min(s.h-1, s.y+n)
	case final == 'C':
		s.x = min(s.w-1, s.x+n)
	case final == 'D':
		s.x = max(0, s.x-n)
	case final == 'G':
		s.x = max(0, min(n, s.w)-1)
	case key == "H":
		s.x, s.y = 0, 0
	case key == "K" || key == "0K":
		s.cut(s.y, s.x)
	case key == "J" || key == "0J":
		if s.x == 0 && s.y == 0 && !s.alt {
			s.clears++
		}
		s.cut(s.y, s.x)
		for y := s.y + 1; y < s.h; y++ {
			s.rows[y] = line{}
		}
	case final == 'J':
		s.clears++
	case final == 'm':
	case key == "?2026h":
		s.sync = true
		s.frames++
	case key == "?2026l":
		s.sync = false
	case key == "?25h":
		s.hidden = false
	case key == "?25l":
		s.hidden = true
	case key == "?1049h":
		s.saved, s.sx, s.sy, s.alt = s.rows, s.x, s.y, true
		s.rows = make([]line, s.h)
	case key == "?1049l":
		if s.alt {
			s.rows, s.x, s.y, s.alt = s.saved, s.sx, s.sy, false
		}
	case key == "?2004h", key == "?2004l", key == ">1u", key == "<u":
	default:
		s.strange = append(s.strange, fmt.Sprintf("CSI %s", key))
	}
}

func (s *Screen) cut(y, x int) {
	if len(s.rows[y].cells) > x {
		s.rows[y].cells = s.rows[y].cells[:x]
	}
	s.rows[y].wrapped = false
}

// Resize changes the size. Rows of the main screen that do not fit are broken,
// and joined again when there is room.
func (s *Screen) Resize(w, h int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	main, x, y := s.rows, s.x, s.y
	if s.alt {
		main, x, y = s.saved, s.sx, s.sy
	}
	all := append(slices.Clone(s.past), main...)
	at := len(s.past) + y
	last := at
	for i := range all {
		if i > last && len(all[i].cells) > 0 {
			last = i
		}
	}
	var out []line
	cx, cy := 0, 0
	for i := 0; i <= last; i++ {
		var cells []string
		off := -1
		for ; ; i++ {
			if i == at {
				off = len(cells) + x
			}
			cells = append(cells, all[i].cells...)
			if !all[i].wrapped || i == last {
				break
			}
		}
		first := len(out)
		for {
			n := min(w, len(cells))
			if n < len(cells) && cells[n] == "" {
				n--
			}
			out = append(out, line{cells: slices.Clone(cells[:n]), wrapped: n < len(cells)})
			cells = cells[n:]
			if len(cells) == 0 {
				break
			}
		}
		if off >= 0 {
			cy, cx = first+off/w, off%w
		}
	}
	for len(out) <= cy {
		out = append(out, line{})
	}
	top := max(0, len(out)-h)
	rows := slices.Clone(out[top:])
	for len(rows) < h {
		rows = append(rows, line{})
	}
	s.w, s.h, s.past = w, h, out[:top]
	if s.alt {
		s.saved, s.sx, s.sy = rows, cx, max(0, cy-top)
		s.rows, s.x, s.y = make([]line, h), 0, 0
	} else {
		s.rows, s.x, s.y = rows, cx, max(0, cy-top)
	}
	s.hang = false
}

func text(ls []line) string {
	var out []string
	for _, l := range ls {
		out = append(out, strings.TrimRight(strings.Join(l.cells, ""), " "))
	}
	return strings.TrimRight(strings.Join(out, "\n"), "\n")
}

// Text is what can be seen.
func (s *Screen) Text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return text(s.rows)
}

// All is what can be seen, and what can be scrolled back to.
func (s *Screen) All() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alt {
		return text(append(slices.Clone(s.past), s.saved...))
	}
	return text(append(slices.Clone(s.past), s.rows...))
}

// Cursor is where the cursor is, from 0.
func (s *Screen) Cursor() (x, y int, visible bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.x, s.y, !s.hidden
}

// An Account is what was written.
type Account struct {
	Bytes, Frames, Clears, Loose, Bells int
	Strange                             []string
	Alt                                 bool
}

// Account returns what was written so far.
func (s *Screen) Account() Account {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Account{s.bytes, s.frames, s.clears, s.loose, s.bells, slices.Clone(s.strange), s.alt}
}
