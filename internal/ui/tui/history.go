package tui

import (
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/ui/tui/cell"
	"github.com/seed-eb844fcb/cinch/internal/ui/tui/editor"
)

// A history is what was typed before, and where the person is in it.
type history struct {
	items []string // the newest last
	at    int      // steps back; 0 is the draft
	draft string
}

// add keeps text; it reports whether it is not the newest one already.
func (h *history) add(text string) bool {
	h.at = 0
	if n := len(h.items); n > 0 && h.items[n-1] == text {
		return false
	}
	h.items = append(h.items, text)
	return true
}

// left says that the text was edited: what is shown is the draft now.
func (h *history) left() { h.at = 0 }

// older goes a step back from draft.
func (h *history) older(draft string) (string, bool) {
	if h.at == 0 {
		h.draft = draft
	}
	now := draft
	for i := h.at + 1; i <= len(h.items); i++ {
		if s := h.items[len(h.items)-i]; s != now {
			h.at = i
			return s, true
		}
	}
	return "", false
}

// newer goes a step forth, at last to the draft.
func (h *history) newer() (string, bool) {
	if h.at == 0 {
		return "", false
	}
	h.at--
	if h.at == 0 {
		return h.draft, true
	}
	return h.items[len(h.items)-h.at], true
}

// A finder searches what was typed before.
type finder struct {
	items  []string
	search editor.Editor
	draft  string
	at     int // the match, -1 for none
}

func newFinder(items []string, draft string) *finder {
	return &finder{items: items, draft: draft, at: -1}
}

// look goes to the newest match before index from.
func (f *finder) look(from int) bool {
	for i := min(from, len(f.items)) - 1; i >= 0; i-- {
		if strings.Contains(strings.ToLower(f.items[i]), strings.ToLower(f.search.Text())) {
			f.at = i
			return true
		}
	}
	return false
}

func (f *finder) row(l look) cell.Row {
	none := ""
	if f.at < 0 && !f.search.Empty() {
		none = "  nothing found"
	}
	return cell.Line{{Text: "  search: ", Style: accent}, {Text: f.search.Text()}, {Text: none, Style: dim},
		{Text: "  · ctrl+r older · enter sends · tab takes · esc back", Style: dim}}.Cut(l.width)
}

// findKey acts on a key of the search; it reports whether it was one.
func (t *tui) findKey(in cell.Input) bool {
	f := t.find
	switch nameOf(in) {
	case "ctrl+r", "up":
		if f.at < 0 {
			f.at = len(f.items)
		}
		if !f.look(f.at) && f.at == len(f.items) {
			f.at = -1
		}
	case "esc", "ctrl+c", "ctrl+g":
		t.find = nil
		t.ed.Set(f.draft)
		return true
	case "enter":
		t.find = nil
		return false // and it is sent
	case "tab", "right", "end", "ctrl+e":
		t.find = nil
		return true
	default:
		if in.Paste {
			in.Text = firstLine(in.Text)
		}
		if !edit(&f.search, in) {
			return true
		}
		f.at = -1
		f.look(len(f.items))
	}
	if f.at >= 0 && f.at < len(f.items) {
		t.ed.Set(f.items[f.at])
	} else {
		t.ed.Set(f.draft)
	}
	return true
}
