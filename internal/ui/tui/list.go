package tui

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/ui/tui/cell"
	"github.com/seed-eb844fcb/cinch/internal/ui/tui/editor"
)

// A list is something to choose from, with a search.
type list struct {
	head   string
	all    []entry
	search editor.Editor
	cursor int // among those found
}

type entry struct {
	label, about string
	do           func()
}

func newList(head string) *list { return &list{head: head} }

func (l *list) add(label, about string, do func()) {
	l.all = append(l.all, entry{label, about, do})
}

// found are the entries that hold the words of the search.
func (l *list) found() []entry {
	words := strings.Fields(strings.ToLower(l.search.Text()))
	var out []entry
next:
	for _, e := range l.all {
		s := strings.ToLower(e.label + " " + e.about)
		for _, w := range words {
			if !strings.Contains(s, w) {
				continue next
			}
		}
		out = append(out, e)
	}
	return out
}

func (l *list) rows(v look, height int) ([]cell.Row, *cell.Point) {
	rows := cell.Styled(l.head, asked).Wrap(v.width, nil)
	p := &cell.Point{X: 2 + cell.Width(l.search.Text()), Y: len(rows)}
	rows = append(rows, cell.Line{{Text: "> ", Style: accent}, {Text: l.search.Text()}}.Cut(v.width))
	found := l.found()
	l.cursor = max(0, min(l.cursor, len(found)-1))
	room := max(1, height-len(rows)-1)
	from := max(0, min(l.cursor-room/2, len(found)-room))
	for i := from; i < min(len(found), from+room); i++ {
		e := found[i]
		mark, st := "  ", plain
		if i == l.cursor {
			mark, st = "❯ ", bold
		}
		line := cell.Line{{Text: mark, Style: accent}, {Text: e.label, Style: st}}
		if e.about != "" {
			line = append(line, cell.Span{Text: "  " + e.about, Style: dim})
		}
		rows = append(rows, line.Cut(v.width))
	}
	foot := fmt.Sprintf("  %d of %d · enter chooses · esc cancels", len(found), len(l.all))
	return append(rows, cell.Styled(foot, dim).Cut(v.width)), p
}

// key acts on a key; it reports whether the list is over.
func (l *list) key(in cell.Input) bool {
	switch nameOf(in) {
	case "esc", "ctrl+c":
		return true
	case "up", "ctrl+p":
		l.cursor--
	case "down", "ctrl+n", "tab":
		l.cursor = min(l.cursor+1, len(l.found())-1)
	case "pgup":
		l.cursor -= 10
	case "pgdown":
		l.cursor += 10
	case "enter":
		found := l.found()
		if len(found) == 0 {
			return false
		}
		found[max(0, min(l.cursor, len(found)-1))].do()
		return true
	default:
		if in.Paste {
			in.Text = firstLine(in.Text)
		}
		edit(&l.search, in)
		l.cursor = 0
	}
	return false
}

// unmarshal reads what the program said as if it had come over a wire.
func unmarshal(from, to any) error {
	raw, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, to)
}
