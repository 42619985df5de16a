package cell

import (
	"strconv"
)

// A Screen is the end of what a program has written on a terminal's main
// screen: rows that are still its own, above which is the terminal's
// scrollback. It turns pictures into bytes and writes nothing itself.
//
// Every frame stands between the marks of a synchronised update, moves the
// cursor relatively, and changes only what is different. Nothing is ever
// cleared as a whole.
type Screen struct {
	// Color allows colours; bold, dim and the like are always allowed.
	Color bool

	rows   []Row // what is there now, from the first live row down
	x, y   int   // the cursor in it
	width  int
	buf    []byte
	style  Style
	hidden bool
}

// A Point is a place in the live rows, counted from 0.
type Point struct{ X, Y int }

// Frame returns the bytes after which done stands above the live rows, for
// ever, and live is what is live. The cursor is at p, or hidden if p is nil.
// There may be at most as many live rows as the terminal has, each narrower
// than width or as wide. The bytes are valid until the next call; they are
// none if nothing changes.
func (s *Screen) Frame(width int, done, live []Row, p *Point) []byte {
	s.width = width
	s.buf = append(s.buf[:0], "\x1b[?2026h"...)
	head := len(s.buf)
	if len(live) == 0 {
		live = []Row{nil}
	}
	total := len(done) + len(live)
	for i := range total {
		row := rowAt(done, live, i)
		switch {
		case i >= len(s.rows):
			s.down(i)
			s.cells(row)
		case !row.Equal(s.rows[i]):
			s.change(i, s.rows[i], row)
		}
	}
	if total < len(s.rows) { // what is left of a taller picture
		s.move(0, total)
		s.restyle(Style{})
		s.buf = append(s.buf, "\x1b[J"...)
		s.rows = s.rows[:total]
	}
	s.restyle(Style{})
	if s.y < len(done) {
		s.move(s.x, len(done))
	}
	// From here on rows count from the first live one.
	s.rows = append(s.rows[:0], live...)
	s.y -= len(done)
	switch {
	case p == nil && !s.hidden:
		s.buf = append(s.buf, "\x1b[?25l"...)
		s.hidden = true
	case p != nil:
		s.move(min(p.X, max(width-1, 0)), min(p.Y, len(live)-1))
		if s.hidden {
			s.buf = append(s.buf, "\x1b[?25h"...)
			s.hidden = false
		}
	}
	if len(s.buf) == head {
		return nil
	}
	return append(s.buf, "\x1b[?2026l"...)
}

func rowAt(done, live []Row, i int) Row {
	if i < len(done) {
		return done[i]
	}
	return live[i-len(done)]
}

// Resized says that the terminal has another width now. What is on it may
// have been broken anew; the next frame begins where the first live row is
// then. It returns the bytes that go there and take away what is below.
func (s *Screen) Resized(width int) []byte {
	up := 0
	for i := 0; i < s.y && i < len(s.rows); i++ {
		up += max(1, (s.rows[i].Width()+width-1)/width)
	}
	if s.y < len(s.rows) {
		up += min(s.x, max(s.rows[s.y].Width(), s.x)) / max(width, 1)
	}
	s.buf = append(s.buf[:0], "\x1b[?2026h\r"...)
	s.csi(up, 'A')
	s.buf = append(s.buf, "\x1b[J\x1b[?2026l"...)
	s.Forget()
	return s.buf
}

// Forget says that nothing of what was drawn is on the terminal any more: the
// cursor stands at the beginning of an empty row.
func (s *Screen) Forget() { s.rows, s.x, s.y, s.style = nil, 0, 0, Style{} }

// Leave returns the bytes that end the picture: the cursor is visible, at the
// beginning of the row under it.
func (s *Screen) Leave() []byte {
	s.buf = s.buf[:0]
	if len(s.rows) > 0 {
		s.down(len(s.rows))
	}
	if s.hidden {
		s.buf = append(s.buf, "\x1b[?25h"...)
		s.hidden = false
	}
	s.Forget()
	return s.buf
}

// down goes to the beginning of row i; rows that are not there yet appear.
func (s *Screen) down(i int) {
	if i == 0 && len(s.rows) == 0 {
		s.buf = append(s.buf, '\r')
		s.x, s.y = 0, 0
		return
	}
	if last := min(i, max(len(s.rows)-1, s.y)); s.y != last {
		s.move(s.x, last)
	}
	s.restyle(Style{}) // else a new row would get the background
	for s.y < i {
		s.buf = append(s.buf, '\r', '\n')
		s.y++
	}
	s.x = 0
}

// move goes to a place on a row that is there.
func (s *Screen) move(x, y int) {
	switch {
	case y < s.y:
		s.csi(s.y-y, 'A')
	case y > s.y:
		s.csi(y-s.y, 'B')
	}
	s.y = y
	if x == s.x {
		return
	}
	s.column(x)
}

func (s *Screen) column(x int) {
	if x == 0 {
		s.buf = append(s.buf, '\r')
	} else {
		s.buf = append(s.buf, "\x1b["...)
		s.buf = strconv.AppendInt(s.buf, int64(x+1), 10)
		s.buf = append(s.buf, 'G')
	}
	s.x = x
}

func (s *Screen) csi(n int, final byte) {
	if n <= 0 {
		return
	}
	s.buf = append(s.buf, "\x1b["...)
	if n > 1 {
		s.buf = strconv.AppendInt(s.buf, int64(n), 10)
	}
	s.buf = append(s.buf, final)
}

// change turns old, on row y, into row.
func (s *Screen) change(y int, old, row Row) {
	same, x := 0, 0
	for same < len(old) && same < len(row) && old[same] == row[same] {
		x += int(row[same].W)
		same++
	}
	s.move(x, y)
	if s.x != x {
		s.column(x)
	}
	// When only letters in the middle change, what follows stays.
	tail := 0
	if len(old) == len(row) {
		for tail < len(row)-same && old[len(old)-1-tail] == row[len(row)-1-tail] {
			tail++
		}
		if Row(old[same:len(old)-tail]).Width() != Row(row[same:len(row)-tail]).Width() {
			tail = 0
		}
	}
	s.cells(row[same : len(row)-tail])
	if tail == 0 && old.Width() > row.Width() {
		s.restyle(Style{})
		s.buf = append(s.buf, "\x1b[K"...)
	}
}

// cells writes row where the cursor is.
func (s *Screen) cells(row Row) {
	for _, c := range row {
		s.restyle(c.Style)
		s.buf = append(s.buf, c.S...)
		s.x += int(c.W)
		// Terminals differ about the width of joined emoji and the like: what
		// stands behind is put where it belongs.
		if len(c.S) > 4 && s.x < s.width {
			s.column(s.x)
		}
	}
	if s.x >= s.width { // the cursor hangs behind the last column: nobody can tell where it is
		s.restyle(Style{})
		s.buf = append(s.buf, '\r')
		s.x = 0
	}
}

// restyle changes the style in which letters are written.
func (s *Screen) restyle(st Style) {
	if !s.Color {
		st.FG, st.BG = Default, Default
	}
	if st == s.style {
		return
	}
	b := append(s.buf, "\x1b["...)
	on := func(was, is bool, code string) {
		if is && !was {
			b = append(append(b, code...), ';')
		}
	}
	was := s.style
	if was.Bold && !st.Bold || was.Dim && !st.Dim || was.Italic && !st.Italic || was.Underline && !st.Underline ||
		was.Reverse && !st.Reverse || was.Strike && !st.Strike || st == (Style{}) {
		was = Style{}
		if st == was {
			s.buf, s.style = append(b, 'm'), st
			return
		}
		b = append(b, "0;"...)
	}
	on(was.Bold, st.Bold, "1")
	on(was.Dim, st.Dim, "2")
	on(was.Italic, st.Italic, "3")
	on(was.Underline, st.Underline, "4")
	on(was.Reverse, st.Reverse, "7")
	on(was.Strike, st.Strike, "9")
	if st.FG != was.FG {
		b = append(color(b, st.FG, 30), ';')
	}
	if st.BG != was.BG {
		b = append(color(b, st.BG, 40), ';')
	}
	b[len(b)-1] = 'm' // in place of the last semicolon
	s.buf, s.style = b, st
}

func color(b []byte, c Color, base int) []byte {
	switch {
	case c == Default:
		return strconv.AppendInt(b, int64(base+9), 10)
	case c <= White:
		return strconv.AppendInt(b, int64(base+int(c)-1), 10)
	case c <= BrightWhite:
		return strconv.AppendInt(b, int64(base+60+int(c)-int(Gray)), 10)
	}
	b = strconv.AppendInt(b, int64(base+8), 10)
	b = append(b, ";5;"...)
	return strconv.AppendInt(b, int64(c)-1, 10)
}

// Hidden reports whether the last frame left the cursor hidden.
func (s *Screen) Hidden() bool { return s.hidden }
