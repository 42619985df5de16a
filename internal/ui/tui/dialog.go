package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/ui/tui/cell"
	"github.com/seed-eb844fcb/cinch/internal/ui/tui/editor"
)

// deaf is how long a question hears nothing after it has appeared: what is
// typed then was meant for something else.
const deaf = 150 * time.Millisecond

// A dialog is a question on the screen: one step, or several after each other.
type dialog struct {
	q       agent.Question
	steps   []step
	at      int
	replies []reply
	finish  func([]reply) agent.Answer
	cancel  agent.Answer // Escape
	// declines, if not nil, may end the dialog before its last step.
	declines func(reply) *agent.Answer

	shown   time.Time // when it was first drawn; zero before
	cursor  int
	scroll  int
	seen    bool // the end of the body was on the screen
	fits    bool // all of the body is
	page    int  // rows of the body that are shown
	marked  map[int]bool
	typing  bool
	field   editor.Editor
	trouble string
}

// A step is one question with its choices.
type step struct {
	head  string
	title string                        // small, before the head
	body  func(width int) []cell.Row    // may be long; nil: none
	notes []cell.Line                   // warnings: always whole, before the choices
	opts  []choice                      //
	multi bool                          // several may be chosen
	value string                        // what a field begins with
	check func(text string) (err error) // nil: any text
}

// A choice is one answer.
type choice struct {
	label, hint string
	// lasting answers count for more than this once: they may be given only
	// when everything was seen.
	lasting bool
	// write opens a field for text; comment allows one (Tab).
	write, comment bool
}

// A reply is what was chosen in a step.
type reply struct {
	picks []int
	text  string
}

func (d *dialog) step() *step { return &d.steps[d.at] }

// rows draws the dialog in at most height rows.
func (d *dialog) rows(l look, height int) (rows []cell.Row, p *cell.Point) {
	s := d.step()
	w := l.width
	head := cell.Line{}
	if s.title != "" {
		head = append(head, cell.Span{Text: s.title + " ", Style: accent})
	}
	if len(d.steps) > 1 {
		head = append(head, cell.Span{Text: fmt.Sprintf("(%d of %d) ", d.at+1, len(d.steps)), Style: dim})
	}
	rows = append(head, cell.Span{Text: s.head, Style: asked}).Wrap(w, nil)
	var notes []cell.Row
	for _, n := range s.notes {
		notes = append(notes, n.Wrap(w, cell.Plain("    "))...)
	}
	opts, at := d.optionRows(w)
	foot := d.footRows(w)
	if height < 8 && d.trouble == "" { // what is asked is worth more than the keys
		foot = nil
	}
	var body []cell.Row
	if s.body != nil {
		body = s.body(w)
	}
	room := height - len(rows) - len(opts) - len(foot)
	if len(notes)+len(body) <= room {
		d.scroll, d.fits, d.seen = 0, true, true
		rows = append(append(rows, body...), notes...)
		if len(notes)+len(body) < room { // room to breathe
			rows = append(rows, nil)
		}
	} else {
		// What does not fit is scrolled, the warnings with it.
		body = append(body, notes...)
		room = max(room-1, 1)
		d.page, d.fits = room, false
		d.scroll = max(0, min(d.scroll, len(body)-room))
		end := min(d.scroll+room, len(body))
		d.seen = d.seen || end == len(body)
		rows = append(rows, body[d.scroll:end]...)
		rows = append(rows, cell.Styled(fmt.Sprintf("  lines %d to %d of %d · PgUp PgDn", d.scroll+1, end, len(body)), careful).Cut(w))
	}
	if over := len(rows) + len(opts) + len(foot) - height; over > 0 && len(opts) > 1 { // a tiny screen: the choices around the cursor
		keep := max(1, len(opts)-over)
		from := max(0, min(at.Y-keep/2, len(opts)-keep))
		opts = opts[from : from+keep]
		at.Y -= from
	}
	if d.typing {
		p = &cell.Point{X: at.X, Y: len(rows) + at.Y}
	}
	rows = append(append(rows, opts...), foot...)
	if len(rows) > height {
		rows = rows[len(rows)-height:]
		if p != nil {
			p.Y = max(0, p.Y-(len(rows)-height))
		}
	}
	return rows, p
}

// optionRows draws the choices; at is the row of the cursor, or the place of
// the cursor in the field.
func (d *dialog) optionRows(w int) (rows []cell.Row, at cell.Point) {
	s := d.step()
	for i, o := range s.opts {
		mark, st := "  ", plain
		if i == d.cursor {
			mark, st = "❯ ", bold
			at.Y = len(rows)
		}
		line := cell.Line{{Text: mark, Style: accent}, {Text: fmt.Sprintf("%d. ", i+1), Style: dim}}
		if s.multi && !o.write {
			box := "☐ "
			if d.marked[i] {
				box = "☒ "
			}
			line = append(line, cell.Span{Text: box})
		}
		if o.lasting && !d.seen {
			st.Dim = true
		}
		line = append(line, cell.Span{Text: o.label, Style: st})
		hang := cell.Plain("     ")
		if d.typing && i == d.cursor {
			field, p := d.field.Rows(max(w-5, 8))
			if o.label != "" {
				rows = append(rows, append(line, cell.Span{Text: ":"}).Wrap(w, hang)...)
			}
			at = cell.Point{X: p.X + 5, Y: len(rows) + p.Y}
			for _, r := range field {
				rows = append(rows, append(hang.Cells(), r...))
			}
			continue
		}
		rows = append(rows, line.Wrap(w, hang)...)
		if o.hint != "" {
			rows = append(rows, cell.Line{{Text: "     "}, {Text: o.hint, Style: dim}}.Wrap(w, hang)...)
		}
	}
	return rows, at
}

func (d *dialog) footRows(w int) []cell.Row {
	s := d.step()
	if d.trouble != "" {
		return cell.Styled("  "+d.trouble, bad).Wrap(w, nil)
	}
	var t string
	switch {
	case d.typing:
		t = "enter to go on · esc back"
	case s.multi:
		t = "space marks · enter when done · esc cancels"
	default:
		t = "number or enter · esc cancels"
		if slices.ContainsFunc(s.opts, func(o choice) bool { return o.comment }) {
			t += " · tab adds a comment"
		}
	}
	return []cell.Row{cell.Styled("  "+t, dim).Cut(w)}
}

// key acts on a key; answer is set when the dialog is over.
func (d *dialog) key(in cell.Input, now time.Time) (answer *agent.Answer) {
	if d.shown.IsZero() || now.Sub(d.shown) < deaf {
		return nil
	}
	d.trouble = ""
	if d.typing {
		return d.write(in, now)
	}
	s := d.step()
	switch k := nameOf(in); k {
	case "esc", "ctrl+c":
		return &d.cancel
	case "up", "ctrl+p":
		d.cursor = (d.cursor + len(s.opts) - 1) % len(s.opts)
	case "down", "ctrl+n":
		d.cursor = (d.cursor + 1) % len(s.opts)
	case "pgdown", "ctrl+v":
		d.scroll += d.page
	case "pgup", "alt+v":
		d.scroll = max(0, d.scroll-d.page)
	case "home":
		d.scroll = 0
	case "end":
		d.scroll = 1 << 30
	case "enter":
		return d.choose(d.cursor, true, now)
	case "space":
		if s.multi {
			return d.choose(d.cursor, false, now)
		}
	case "tab":
		if s.opts[d.cursor].comment {
			d.typing = true
		}
	case "y", "Y":
		if len(d.steps) == 1 && s.opts[0].label == yes {
			return d.choose(0, true, now)
		}
	case "n", "N":
		if last := len(s.opts) - 1; len(d.steps) == 1 && s.opts[0].label == yes {
			return d.choose(last, true, now)
		}
	default:
		if len(k) == 1 && k[0] >= '1' && int(k[0]-'1') < len(s.opts) {
			d.cursor = int(k[0] - '1')
			return d.choose(d.cursor, !s.multi, now)
		}
	}
	return nil
}

// choose takes choice i; in a step of several, enter ends it.
func (d *dialog) choose(i int, enter bool, now time.Time) *agent.Answer {
	s := d.step()
	o := s.opts[i]
	switch {
	case o.lasting && !d.seen:
		d.trouble = "Read to the end first (PgDn): this counts for more than this once."
	case o.write:
		d.typing = true
		if d.field.Empty() {
			d.field.Set(s.value)
		}
	case s.multi && !enter:
		if d.marked == nil {
			d.marked = map[int]bool{}
		}
		d.marked[i] = !d.marked[i]
	case s.multi:
		return d.next(reply{picks: d.picks()}, now)
	default:
		return d.next(reply{picks: []int{i}}, now)
	}
	return nil
}

func (d *dialog) picks() []int {
	var out []int
	for i := range d.step().opts {
		if d.marked[i] {
			out = append(out, i)
		}
	}
	return out
}

// write is a key while text is written.
func (d *dialog) write(in cell.Input, now time.Time) *agent.Answer {
	switch nameOf(in) {
	case "esc", "ctrl+c":
		d.typing = false
		if len(d.step().opts) == 1 {
			return &d.cancel
		}
		return nil
	case "enter":
		if d.field.Escaped() {
			return nil
		}
		text := strings.TrimSpace(d.field.Value())
		if check := d.step().check; check != nil {
			if err := check(text); err != nil {
				d.trouble = err.Error()
				return nil
			}
		}
		return d.next(reply{picks: append(d.picks(), d.cursor), text: text}, now)
	}
	edit(&d.field, in)
	return nil
}

// next takes the reply to a step and goes on to the next one.
func (d *dialog) next(r reply, now time.Time) *agent.Answer {
	d.replies = append(d.replies, r)
	if d.declines != nil {
		if a := d.declines(r); a != nil {
			return a
		}
	}
	if d.at+1 == len(d.steps) {
		a := d.finish(d.replies)
		return &a
	}
	d.at++
	d.cursor, d.scroll, d.seen, d.marked, d.typing = 0, 0, false, nil, false
	d.field.Clear()
	d.shown = now
	d.begin()
	return nil
}

// begin opens the field of a step that has nothing else.
func (d *dialog) begin() {
	if s := d.step(); len(s.opts) == 1 && s.opts[0].write {
		d.typing = true
		d.field.Set(s.value)
	}
}
