package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/ui/tui/cell"
)

// draw brings the terminal up to date.
func (t *tui) draw(now time.Time) {
	t.dirty, t.urgent, t.last = false, false, now
	if t.resized {
		t.resized = false
		t.resize()
	}
	if t.hint != "" && now.Sub(t.hinted) >= hintTime {
		t.hint = ""
	}
	l := look{width: t.w, now: now}
	if t.pager != nil {
		t.write(t.pager.frame(t, l))
		return
	}
	done := t.commit(l)
	t.rows += len(done)
	live, p := t.live(l)
	t.write(t.screen.Frame(t.w, done, live, p))
	if d := t.dialog; d != nil && d.shown.IsZero() {
		d.shown = now
	}
}

// resize takes in the terminal's new size.
func (t *tui) resize() {
	w, h := t.o.Size()
	if w == t.w && h == t.h {
		return
	}
	t.w, t.h = w, h
	if t.pager != nil {
		t.pager.resized()
		t.stale = true
		return
	}
	t.write(t.screen.Resized(w))
}

// commit makes the rows that become part of the scrollback now.
func (t *tui) commit(l look) (rows []cell.Row) {
	items := t.st.items
	for t.committed < len(items) {
		it := items[t.committed]
		gap := it.gap() && it.shown == 0 && t.rows+len(rows) > 0
		var r []cell.Row
		switch {
		case it.final && it.kind == answer:
			r = it.rest(l)
			it.shown = len(it.text)
		case it.final:
			r = it.rows(l)
		case it.kind == answer:
			r = it.take(l)
		}
		if len(r) > 0 && gap {
			rows = append(rows, nil)
		}
		rows = append(rows, r...)
		if !it.final {
			break
		}
		t.committed++
	}
	return rows
}

// live makes the rows that may change yet: at most as many as the terminal has.
func (t *tui) live(l look) ([]cell.Row, *cell.Point) {
	var above []cell.Row
	for i, it := range t.st.items[t.committed:] {
		var r []cell.Row
		if it.kind == answer && !it.final {
			r = it.live(l)
		} else {
			r = it.rows(l)
		}
		if len(r) > 0 && it.gap() && it.shown == 0 && (i > 0 || t.rows > 0) {
			above = append(above, nil)
		}
		above = append(above, r...)
	}
	if len(above) > 0 || t.rows > 0 {
		above = append(above, nil)
	}
	if s := t.working(l); s != nil {
		above = append(above, s)
	}
	above = append(above, t.waitingRows(l)...)
	if t.err != nil { // what stays on the terminal is what was said
		return above, nil
	}
	height := max(t.h, 4)
	var below []cell.Row
	var p *cell.Point
	if t.dialog != nil {
		room := height - min(len(above), height/3)
		below, p = t.dialog.rows(l, room)
	} else {
		below, p = t.input(l, height-1)
	}
	if over := len(above) + len(below) - height; over > 0 {
		above = above[min(over, len(above)):]
	}
	if p != nil {
		p.Y += len(above)
	}
	return append(above, below...), p
}

var turning = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// working is the row that says what is waited for, nil if nothing is.
func (t *tui) working(l look) cell.Row {
	s := t.st
	if !s.running || len(s.asks) > 0 {
		return nil
	}
	mark := "•"
	if !t.o.Still {
		mark = turning[int(l.now.Sub(s.began)/tickGap)%len(turning)]
	}
	since := seconds(l.now.Sub(s.began))
	word, st := "Working", plain
	var more []string
	switch w := s.wait; {
	case w.retry != nil:
		st = careful
		left := max(0, w.at.Sub(l.now)).Round(time.Second)
		word = fmt.Sprintf("Trying again in %s (attempt %d of %d)", seconds(left), w.retry.Attempt, w.retry.Max)
		if left == 0 {
			word = fmt.Sprintf("Trying again (attempt %d of %d)", w.retry.Attempt, w.retry.Max)
		}
		more = append(more, firstLine(w.retry.Err))
	case w.what == "compacting":
		word = "Shortening the conversation"
	case w.what != "":
		word = fmt.Sprintf("Waiting for the %s: %s of %s", waitWord(w.what), seconds(l.now.Sub(w.since)), seconds(w.limit))
	case s.open[""] != nil && s.open[""].kind == thinking:
		word = "Thinking"
	}
	row := cell.Line{{Text: mark + " ", Style: accent}, {Text: word, Style: st}, {Text: " · " + since, Style: dim}}
	for _, m := range more {
		row = append(row, cell.Span{Text: " · " + m, Style: dim})
	}
	if n := s.out + s.written/4; n > 0 {
		row = append(row, cell.Span{Text: " · ↓ " + tokens(n) + " tokens", Style: dim})
	}
	row = append(row, cell.Span{Text: " · esc to interrupt", Style: dim})
	return row.Cut(l.width)
}

func waitWord(what string) string {
	if what == "connect" {
		return "connection"
	}
	return what + " of the answer"
}

// waitingRows are the prompts that wait for their turn.
func (t *tui) waitingRows(l look) (rows []cell.Row) {
	const most = 3
	for i, id := range t.st.queued {
		if i == most {
			rows = append(rows, cell.Styled(fmt.Sprintf("  … %d more wait", len(t.st.queued)-most), dim).Cut(l.width))
			break
		}
		text := t.sent[id]
		if text == "" {
			text = "a prompt"
		}
		rows = append(rows, cell.Styled("  ⏎ "+strings.ReplaceAll(text, "\n", " ⏎ "), dim).Cut(l.width))
	}
	return rows
}

// input makes the rows of the draft, what is under it, and the cursor.
func (t *tui) input(l look, height int) ([]cell.Row, *cell.Point) {
	if t.list != nil {
		return t.list.rows(l, height)
	}
	var below []cell.Row
	switch {
	case t.help:
		below = helpRows(l)
	case t.find != nil:
		below = []cell.Row{t.find.row(l)}
	default:
		below = t.comp.rows(l)
	}
	if len(below) == 0 {
		below = t.statusRows(l)
	}
	below = below[:min(len(below), max(height-3, 1))]

	rows, p := t.ed.Rows(l.width - 2)
	room := max(height-len(below), 1)
	if limit := max(3, l.height(t)/2); len(rows) > min(room, limit) { // the part around the cursor
		n := min(room, limit)
		from := max(0, min(p.Y-n/2, len(rows)-n))
		rows, p.Y = rows[from:from+n], p.Y-from
	}
	lead, st := "> ", accent
	if strings.HasPrefix(t.ed.Text(), "!") {
		lead, st = "! ", cell.Style{FG: cell.Magenta}
	}
	out := make([]cell.Row, 0, len(rows)+len(below))
	for i, r := range rows {
		first := cell.Plain("  ").Cells()
		if i == 0 {
			first = cell.Styled(lead, st).Cells()
		}
		out = append(out, append(first, r...))
	}
	p.X += 2
	return append(out, below...), &p
}

func (l look) height(t *tui) int { return t.h }

// modeName is a mode in words.
func modeName(m agent.Mode) string {
	switch m {
	case agent.ModeAcceptEdits:
		return "accept edits"
	case agent.ModePlan:
		return "plan mode"
	case agent.ModeAuto:
		return "auto mode"
	case agent.ModeDontAsk:
		return "no questions"
	case agent.ModeBypass:
		return "no permission checks"
	}
	return "asks before it acts"
}

// helpRows lists the keys.
func helpRows(l look) (rows []cell.Row) {
	for _, line := range strings.Split(strings.TrimSpace(keysHelp), "\n") {
		k, v, _ := strings.Cut(strings.TrimSpace(line), "\t")
		rows = append(rows, cell.Line{{Text: "  " + k + strings.Repeat(" ", max(1, 22-cell.Width(k))), Style: accent}, {Text: v, Style: dim}}.Cut(l.width))
	}
	return rows
}

const keysHelp = `
enter	send; while a turn runs: queue
ctrl+j, \ enter	a new line (also alt+enter, shift+enter)
esc	interrupt the turn; esc esc clears the draft
ctrl+c	interrupt; clear; twice: leave
ctrl+d	twice: leave
shift+tab	next permission mode
ctrl+o	transcript with all details
ctrl+r	search what was typed before
ctrl+b	send the running command to the background
ctrl+g	edit the draft in $EDITOR
ctrl+l	draw anew
/ @	commands, files
up	take queued prompts back; earlier prompts
`
