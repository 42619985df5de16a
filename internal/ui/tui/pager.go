package tui

import (
	"fmt"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/ui/tui/cell"
	"github.com/seed-eb844fcb/cinch/internal/ui/tui/editor"
)

// A pager shows the whole conversation with every detail, on the terminal's
// other screen.
type pager struct {
	screen  cell.Screen
	rows    []cell.Row
	prompts []int // rows where a prompt begins
	width   int
	items   int // that rows were made of
	top     int
	end     bool // follow what comes
	search  editor.Editor
	asking  bool // what to search for
	fresh   bool
}

// openPager goes to the transcript.
func (t *tui) openPager() {
	t.pager = &pager{end: true, fresh: true}
	t.pager.screen.Color = t.o.Color
	t.dirty, t.urgent = true, true
}

// closePager goes back.
func (t *tui) closePager() {
	if t.pager == nil {
		return
	}
	t.pager = nil
	t.write([]byte("\x1b[?1049l"))
	if t.screen.Hidden() {
		t.write([]byte("\x1b[?25l"))
	}
	if t.stale {
		t.stale = false
		t.write(t.screen.Resized(t.w))
	}
	t.dirty, t.urgent = true, true
}

func (p *pager) resized() { p.width, p.fresh = 0, true }

// frame draws the part of the conversation that is looked at.
func (p *pager) frame(t *tui, l look) []byte {
	var head []byte
	if p.fresh {
		p.fresh = false
		head = []byte("\x1b[?1049h\x1b[H\x1b[J")
		p.screen.Forget()
	}
	p.layout(t, l)
	height := max(t.h-1, 1)
	last := max(0, len(p.rows)-height)
	if p.end {
		p.top = last
	}
	p.top = max(0, min(p.top, last))
	out := make([]cell.Row, 0, t.h)
	for i := p.top; i < p.top+height; i++ {
		if i < len(p.rows) {
			out = append(out, p.rows[i])
		} else {
			out = append(out, nil)
		}
	}
	foot := fmt.Sprintf("  %d to %d of %d · q back · / searches, n next · { } prompts · g first, G last", min(p.top+1, len(p.rows)), min(p.top+height, len(p.rows)), len(p.rows))
	var at *cell.Point
	if p.asking {
		foot = "  search: " + p.search.Text()
		at = &cell.Point{X: cell.Width(foot), Y: len(out)}
	}
	out = append(out, cell.Styled(foot, dim).Cut(l.width))
	return append(head, p.screen.Frame(t.w, nil, out, at)...)
}

// layout makes the rows anew if there is more to show.
func (p *pager) layout(t *tui, l look) {
	items := t.st.items
	running := len(items) > 0 && !items[len(items)-1].final || t.st.running
	if p.width == l.width && p.items == len(items) && !running {
		return
	}
	p.width, p.items = l.width, len(items)
	p.rows, p.prompts = nil, nil
	l.full = true
	for _, it := range items {
		if it.gap() && len(p.rows) > 0 {
			p.rows = append(p.rows, nil)
		}
		if it.kind == user {
			p.prompts = append(p.prompts, len(p.rows))
		}
		p.rows = append(p.rows, it.rows(l)...)
	}
}

// key acts on a key; it reports whether the person goes back.
func (p *pager) key(t *tui, in cell.Input) bool {
	k := nameOf(in)
	if p.asking {
		switch k {
		case "enter":
			p.asking = false
			p.next(p.top, 1)
		case "esc", "ctrl+c":
			p.asking = false
		default:
			edit(&p.search, in)
		}
		return false
	}
	page := max(t.h-2, 1)
	p.end = false
	switch k {
	case "q", "esc", "ctrl+c", "ctrl+o":
		return true
	case "up", "k", "ctrl+p":
		p.top--
	case "down", "j", "ctrl+n":
		p.top++
	case "pgup", "b", "ctrl+b":
		p.top -= page
	case "pgdown", "space", "ctrl+f":
		p.top += page
	case "ctrl+u":
		p.top -= page / 2
	case "ctrl+d":
		p.top += page / 2
	case "home", "g":
		p.top = 0
	case "end", "G":
		p.end = true
	case "{":
		for i := len(p.prompts) - 1; i >= 0; i-- {
			if p.prompts[i] < p.top {
				p.top = p.prompts[i]
				break
			}
		}
	case "}":
		for _, at := range p.prompts {
			if at > p.top {
				p.top = at
				break
			}
		}
	case "/":
		p.asking = true
		p.search.Clear()
	case "n":
		p.next(p.top+1, 1)
	case "N":
		p.next(p.top-1, -1)
	}
	return false
}

// next goes to the next row from from on that holds what is searched for.
func (p *pager) next(from, by int) {
	what := strings.ToLower(p.search.Text())
	if what == "" {
		return
	}
	for i := from; i >= 0 && i < len(p.rows); i += by {
		if strings.Contains(strings.ToLower(p.rows[i].String()), what) {
			p.top = i
			return
		}
	}
}
