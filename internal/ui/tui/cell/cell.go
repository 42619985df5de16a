// Package cell draws styled text on a terminal and reads keys from it.
//
// It owns the grid (what is a column, where a line breaks), the bytes that
// turn one picture into the next, and the decoding of what a terminal sends.
// It is the only place of the program that writes control sequences, and it
// writes no others than its own: whatever text it is given, a character that
// a terminal would act on leaves it as an escape. It knows no agent types and
// starts no goroutine.
package cell

import (
	"iter"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"github.com/seed-eb844fcb/cinch/internal/lib/termsafe"
)

// A Color is one of the terminal's own 256 colours. The zero value is the
// colour the terminal writes in by itself.
type Color uint16

// The first 16 colours are those of the terminal's theme.
const (
	Default Color = iota
	Black
	Red
	Green
	Yellow
	Blue
	Magenta
	Cyan
	White
	Gray
	BrightRed
	BrightGreen
	BrightYellow
	BrightBlue
	BrightMagenta
	BrightCyan
	BrightWhite
)

// Indexed is colour n of the 256.
func Indexed(n uint8) Color { return Color(n) + 1 }

// A Style is how text looks.
type Style struct {
	FG, BG                                        Color
	Bold, Dim, Italic, Underline, Reverse, Strike bool
}

// A Span is text in one style. Its text may be anything: it is made safe when
// it becomes cells.
type Span struct {
	Text  string
	Style Style
}

// A Line is one line of text before it is broken into rows.
type Line []Span

// Plain returns s as a line without style.
func Plain(s string) Line { return Line{{Text: s}} }

// Styled returns s as a line in one style.
func Styled(s string, st Style) Line { return Line{{s, st}} }

// Text returns the line without its styles.
func (l Line) Text() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.Text)
	}
	return b.String()
}

// A Cell is one character as a person counts them: a grapheme cluster, one or
// two columns wide.
type Cell struct {
	S     string
	W     uint8
	Style Style
}

// A Row is one row of a terminal.
type Row []Cell

// Width is the number of columns r takes.
func (r Row) Width() int {
	n := 0
	for _, c := range r {
		n += int(c.W)
	}
	return n
}

// String returns the text of r.
func (r Row) String() string {
	var b strings.Builder
	for _, c := range r {
		b.WriteString(c.S)
	}
	return b.String()
}

// Equal reports whether r and o look the same.
func (r Row) Equal(o Row) bool {
	if len(r) != len(o) {
		return false
	}
	for i := range r {
		if r[i] != o[i] {
			return false
		}
	}
	return true
}

// Width is the number of columns s takes on one line.
func Width(s string) int {
	n := 0
	for _, w := range Clusters(s) {
		n += w
	}
	return n
}

// Clusters yields the grapheme clusters of s, made safe, with their widths.
// One that has no width of its own, a combining mark behind nothing, gets a
// column to stand in.
func Clusters(s string) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		if ascii(s) {
			for i := range len(s) {
				if !yield(s[i:i+1], 1) {
					return
				}
			}
			return
		}
		g := displaywidth.StringGraphemes(termsafe.String(s))
		for g.Next() {
			c, w := g.Value(), g.Width()
			if w == 0 {
				c, w = "\u25cc"+c, 1
			}
			if !yield(c, min(w, 2)) {
				return
			}
		}
	}
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// Cells returns the cells of l on one row, however wide. Tabs go to the next
// multiple of tabWidth.
func (l Line) Cells() Row {
	row := make(Row, 0, 32)
	col := 0
	for _, sp := range l {
		for i, part := range strings.Split(sp.Text, "\t") {
			if i > 0 {
				for n := tabWidth - col%tabWidth; n > 0; n-- {
					row = append(row, Cell{" ", 1, sp.Style})
					col++
				}
			}
			for c, w := range Clusters(part) {
				row = append(row, Cell{c, uint8(w), sp.Style})
				col += w
			}
		}
	}
	return row
}

const tabWidth = 4

// Cut returns l on one row of at most width columns; what does not fit is
// left out, and "…" says so.
func (l Line) Cut(width int) Row {
	row := l.Cells()
	if row.Width() <= width {
		return row
	}
	if width <= 0 {
		return nil
	}
	n := 0
	for i, c := range row {
		if n+int(c.W) > width-1 {
			return append(row[:i:i], Cell{"…", 1, c.Style})
		}
		n += int(c.W)
	}
	return row
}
