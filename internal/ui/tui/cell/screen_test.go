package cell_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/test/screen"
	"github.com/seed-eb844fcb/cinch/internal/ui/tui/cell"
)

// A stage is a screen and the terminal it draws on.
type stage struct {
	vt   *screen.Screen
	s    cell.Screen
	w, h int
	done []string // what must stand in the scrollback
}

func newStage(w, h int) *stage {
	return &stage{vt: screen.New(w, h), s: cell.Screen{Color: true}, w: w, h: h}
}

func (g *stage) frame(done, live []string, p *cell.Point) int {
	rows := func(ss []string) (out []cell.Row) {
		for i, s := range ss {
			out = append(out, cell.Styled(s, cell.Style{FG: cell.Color(len(s) % 9), Bold: i%2 == 0}).Cut(g.w))
		}
		return out
	}
	b := g.s.Frame(g.w, rows(done), rows(live), p)
	g.vt.Write(b)
	g.done = append(g.done, done...)
	return len(b)
}

// check compares what can be seen and scrolled back to with what was drawn.
func (g *stage) check(t *testing.T, live []string) {
	t.Helper()
	var want []string
	for _, s := range append(append([]string{}, g.done...), live...) {
		want = append(want, strings.TrimRight(cell.Plain(s).Cut(g.w).String(), " "))
	}
	if got, want := g.vt.All(), strings.TrimRight(strings.Join(want, "\n"), "\n"); got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
	if a := g.vt.Account(); a.Loose > 0 || a.Clears > 0 || len(a.Strange) > 0 {
		t.Fatalf("%+v", a)
	}
}

func TestFrame(t *testing.T) {
	t.Parallel()
	g := newStage(20, 5)
	for _, tt := range []struct {
		done, live []string
		at         *cell.Point
		bytes      int // at most
	}{
		{nil, []string{"> ", "status"}, &cell.Point{X: 2}, 80},
		{nil, []string{"> a", "status"}, &cell.Point{X: 3}, 30},
		{nil, []string{"> a", "status"}, &cell.Point{X: 3}, 0},
		{[]string{"said"}, []string{"> ", "status"}, &cell.Point{X: 2}, 90},
		{[]string{"one", "two", "three", "four", "five"}, []string{"> ", "status"}, &cell.Point{X: 2}, 200},
		{nil, []string{"a question", "of", "several", "rows", "> "}, nil, 130},
		{nil, []string{"> "}, &cell.Point{X: 2}, 70},
		{[]string{"你好你好你好你好你好", "👩\u200d👧 x"}, []string{"exactly twenty wide!", "> "}, &cell.Point{X: 2, Y: 1}, 200},
		{nil, []string{"exactly twenty wide?", "> "}, &cell.Point{X: 2, Y: 1}, 60},
	} {
		n := g.frame(tt.done, tt.live, tt.at)
		g.check(t, tt.live)
		if n > tt.bytes {
			t.Errorf("%q: %d bytes, may be %d", tt.live, n, tt.bytes)
		}
		if x, _, visible := g.vt.Cursor(); visible != (tt.at != nil) || tt.at != nil && x != tt.at.X {
			t.Errorf("%q: the cursor is in column %d (visible: %t)", tt.live, x, visible)
		}
	}
}

func TestStyles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		row   cell.Line
		color bool
		want  string
	}{
		{cell.Line{{"a", cell.Style{FG: cell.Red}}, {"b", cell.Style{FG: cell.Red, Bold: true}}, {"c", cell.Style{}}}, true, "\x1b[31ma\x1b[1mb\x1b[mc"},
		{cell.Line{{"a", cell.Style{FG: cell.Red, Bold: true}}, {"b", cell.Style{FG: cell.Red}}}, true, "\x1b[1;31ma\x1b[0;31mb\x1b[m"},
		{cell.Line{{"a", cell.Style{FG: cell.BrightBlue, BG: cell.Indexed(200)}}, {"b", cell.Style{BG: cell.Indexed(200)}}}, true, "\x1b[94;48;5;200ma\x1b[39mb\x1b[m"},
		{cell.Line{{"a", cell.Style{FG: cell.Red, Bold: true}}}, false, "\x1b[1ma\x1b[m"},
		{cell.Line{{"a", cell.Style{FG: cell.Red}}}, false, "a"},
	} {
		s := cell.Screen{Color: tt.color}
		got := string(s.Frame(20, nil, []cell.Row{tt.row.Cells()}, nil))
		if want := "\x1b[?2026h\r" + tt.want + "\x1b[?25l\x1b[?2026l"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Whatever pictures follow each other, the terminal shows the last one under
// everything that was finished.
func TestRandomFrames(t *testing.T) {
	t.Parallel()
	words := []string{"", "a", "some words", "你好", "👩\u200d👧!", "exactly twenty wide!", "more than twenty columns wide", "\x1b[31m", "e\u0301"}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		g := newStage(20, 4+r.IntN(6))
		pick := func(n int) (out []string) {
			for range n {
				out = append(out, words[r.IntN(len(words))])
			}
			return out
		}
		for range 30 {
			live := pick(1 + r.IntN(g.h))
			var p *cell.Point
			if r.IntN(3) > 0 {
				p = &cell.Point{X: r.IntN(20), Y: r.IntN(len(live))}
			}
			g.frame(pick(r.IntN(4)*r.IntN(3)), live, p)
			g.check(t, live)
		}
	}
}

// A resize in the middle loses nothing and doubles nothing.
func TestResized(t *testing.T) {
	t.Parallel()
	for _, to := range []int{30, 60, 40} {
		g := newStage(40, 10)
		g.frame([]string{"first", "second"}, []string{"a live row that is longer than thirty", "> draft", "status"}, &cell.Point{X: 7, Y: 1})
		g.vt.Resize(to, 10)
		g.w = to
		g.vt.Write(g.s.Resized(to))
		live := []string{"a live row", "> draft", "status"}
		g.frame([]string{"third"}, live, &cell.Point{X: 7, Y: 1})
		g.check(t, live)
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in    string
		width int
		fold  bool
		want  string
	}{
		{"one two three", 8, false, "one two|-three"},
		{"one two three", 8, true, "one two |-three"},
		{"onetwothree", 5, false, "onetw|-othr|-ee"},
		{"你好你好", 5, false, "你好|-你好"},
		{"one    two", 5, false, "one|-two"},
		{"", 5, false, ""},
		{"a\tb", 20, false, "a   b"},
	} {
		f := cell.Line.Wrap
		if tt.fold {
			f = cell.Line.Fold
		}
		var got []string
		for _, r := range f(cell.Plain(tt.in), tt.width, cell.Plain("-")) {
			got = append(got, r.String())
		}
		if s := strings.Join(got, "|"); s != tt.want {
			t.Errorf("%q in %d: got %q, want %q", tt.in, tt.width, s, tt.want)
		}
	}
}

func FuzzWrap(f *testing.F) {
	f.Add("some words 你好 👩\u200d👧 \x1b[31m\tx", 7)
	f.Fuzz(func(t *testing.T, s string, width int) {
		width = 4 + max(width, -width)%60
		for _, rows := range [][]cell.Row{cell.Plain(s).Wrap(width, cell.Plain("  ")), cell.Plain(s).Fold(width, nil)} {
			for _, r := range rows {
				if r.Width() > width {
					t.Fatalf("%q in %d columns: %q", s, width, r)
				}
				for _, c := range r {
					if strings.ContainsFunc(c.S, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }) {
						t.Fatalf("%q lets %q through", s, c.S)
					}
				}
			}
		}
	})
}

func BenchmarkFrame(b *testing.B) {
	s := cell.Screen{Color: true}
	for i := 0; b.Loop(); i++ {
		var live []cell.Row
		for j := range 23 {
			live = append(live, cell.Plain(fmt.Sprintf("row %d of a picture that changes in one place: %d", j, i*(j%2))).Cells())
		}
		s.Frame(120, nil, live, nil)
	}
}
