// Package editor is the text a person is writing: where the cursor is, what
// each editing key does to it, what can be taken back, and the long pastes
// that are shown as a chip. It draws itself into rows and knows nothing of
// keys, terminals and sessions.
package editor

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/clipperhouse/displaywidth"

	"github.com/seed-eb844fcb/cinch/internal/ui/tui/cell"
)

// What is pasted and longer than this is shown as a chip.
const (
	chipLines = 4
	chipBytes = 1200
	maxUndo   = 200
	maxKills  = 20
)

// An Editor holds one text. The zero value is empty and ready for use.
type Editor struct {
	text string
	at   int // the cursor: a byte offset at a cluster's edge
	want int // the column Up and Down aim for; -1 if none

	chips map[string]string // what stands for a paste, and the paste
	made  int

	undo   []state
	typing bool // the last change was a letter: the next joins it
	kills  []string
	killed bool // the last change was a kill: the next joins it
	yanked int  // bytes before the cursor that a yank put there, 0 if none
	ring   int
}

type state struct {
	text string
	at   int
}

// Text is what stands in the editor, with chips as they are shown.
func (e *Editor) Text() string { return e.text }

// At is where the cursor is in Text, in bytes.
func (e *Editor) At() int { return e.at }

// Value is the text with every paste in full.
func (e *Editor) Value() string {
	s := e.text
	for chip, whole := range e.chips {
		s = strings.ReplaceAll(s, chip, whole)
	}
	return s
}

// Empty reports whether there is no text.
func (e *Editor) Empty() bool { return e.text == "" }

// Set replaces the text; the cursor goes to its end. It can be undone.
func (e *Editor) Set(text string) {
	if text != e.text {
		e.keep(false)
	}
	e.text, e.at = text, len(text)
	e.rest()
}

// Clear empties the editor and forgets pastes and what could be undone.
func (e *Editor) Clear() { *e = Editor{kills: e.kills, made: e.made} }

// Insert writes s at the cursor.
func (e *Editor) Insert(s string) {
	letter := s != "" && !strings.ContainsAny(s, " \n")
	e.keep(letter && e.typing)
	e.put(s)
	e.rest()
	e.typing = letter
}

// Paste writes s at the cursor, or a chip in its place if it is long.
func (e *Editor) Paste(s string) {
	lines := strings.Count(s, "\n")
	if lines < chipLines && len(s) < chipBytes {
		e.Insert(s)
		e.typing = false
		return
	}
	e.made++
	chip := fmt.Sprintf("[Pasted text #%d +%d lines]", e.made, lines)
	if lines == 0 {
		chip = fmt.Sprintf("[Pasted text #%d, %d characters]", e.made, len([]rune(s)))
	}
	if e.chips == nil {
		e.chips = map[string]string{}
	}
	e.chips[chip] = s
	e.Insert(chip)
	e.typing = false
}

func (e *Editor) put(s string) {
	e.text = e.text[:e.at] + s + e.text[e.at:]
	e.at += len(s)
}

// keep remembers the text as it is, unless the next change joins the last.
func (e *Editor) keep(joins bool) {
	if joins {
		return
	}
	e.undo = append(e.undo, state{e.text, e.at})
	if len(e.undo) > maxUndo {
		e.undo = slices.Delete(e.undo, 0, len(e.undo)-maxUndo)
	}
}

// rest ends what several keys in a row may do together.
func (e *Editor) rest() { e.typing, e.killed, e.yanked, e.want = false, false, 0, -1 }

// Undo takes the last change back.
func (e *Editor) Undo() {
	if n := len(e.undo); n > 0 {
		e.text, e.at = e.undo[n-1].text, e.undo[n-1].at
		e.undo = e.undo[:n-1]
	}
	e.rest()
}

// before is where the cluster, or chip, before at begins.
func (e *Editor) before(at int) int {
	if at == 0 {
		return 0
	}
	for chip := range e.chips {
		if strings.HasSuffix(e.text[:at], chip) {
			return at - len(chip)
		}
	}
	start := strings.LastIndexByte(e.text[:at-1], '\n') + 1
	g := displaywidth.StringGraphemes(e.text[start:at])
	last := start
	for pos := start; g.Next(); pos += len(g.Value()) {
		last = pos
	}
	return last
}

// after is where the cluster, or chip, at at ends.
func (e *Editor) after(at int) int {
	for chip := range e.chips {
		if strings.HasPrefix(e.text[at:], chip) {
			return at + len(chip)
		}
	}
	g := displaywidth.StringGraphemes(e.text[at:min(len(e.text), at+256)])
	if g.Next() {
		return at + len(g.Value())
	}
	return at
}

// Left and the like move the cursor.
func (e *Editor) Left()  { e.at = e.before(e.at); e.rest() }
func (e *Editor) Right() { e.at = e.after(e.at); e.rest() }

// Home goes to the beginning of the line, End to its end.
func (e *Editor) Home() { e.at = e.lineStart(); e.rest() }
func (e *Editor) End()  { e.at = e.lineEnd(); e.rest() }

func (e *Editor) lineStart() int { return strings.LastIndexByte(e.text[:e.at], '\n') + 1 }
func (e *Editor) lineEnd() int {
	if i := strings.IndexByte(e.text[e.at:], '\n'); i >= 0 {
		return e.at + i
	}
	return len(e.text)
}

// WordLeft goes to the beginning of a word, WordRight to the end of one.
func (e *Editor) WordLeft()  { e.at = e.wordBefore(isWord); e.rest() }
func (e *Editor) WordRight() { e.at = e.wordAfter(); e.rest() }

func isWord(r rune) bool   { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }
func notSpace(r rune) bool { return !unicode.IsSpace(r) }

func (e *Editor) wordBefore(in func(rune) bool) int {
	s := strings.TrimRightFunc(e.text[:e.at], func(r rune) bool { return !in(r) })
	return len(strings.TrimRightFunc(s, in))
}

func (e *Editor) wordAfter() int {
	rest := e.text[e.at:]
	s := strings.TrimLeftFunc(rest, func(r rune) bool { return !isWord(r) })
	return len(e.text) - len(strings.TrimLeftFunc(s, isWord))
}

// Backspace deletes before the cursor, Delete behind it.
func (e *Editor) Backspace() { e.cut(e.before(e.at), e.at) }
func (e *Editor) Delete()    { e.cut(e.at, e.after(e.at)) }

func (e *Editor) cut(from, to int) {
	if from < to {
		e.keep(false)
		e.text = e.text[:from] + e.text[to:]
		e.at = from
	}
	e.rest()
}

// The kills delete and remember: up to the end or the beginning of the line,
// the blank-separated or the plain word before, the word behind.
func (e *Editor) KillToEnd() {
	end := e.lineEnd()
	if end == e.at && end < len(e.text) {
		end++
	}
	e.kill(e.at, end, false)
}
func (e *Editor) KillToStart()    { e.kill(e.lineStart(), e.at, true) }
func (e *Editor) KillBlankWord()  { e.kill(e.wordBefore(notSpace), e.at, true) }
func (e *Editor) KillWordBefore() { e.kill(e.wordBefore(isWord), e.at, true) }
func (e *Editor) KillWordAfter()  { e.kill(e.at, e.wordAfter(), false) }

func (e *Editor) kill(from, to int, before bool) {
	if from == to {
		return
	}
	s := e.text[from:to]
	joins := e.killed && len(e.kills) > 0
	e.cut(from, to)
	switch last := len(e.kills) - 1; {
	case joins && before:
		e.kills[last] = s + e.kills[last]
	case joins:
		e.kills[last] += s
	default:
		e.kills = append(e.kills, s)
		if len(e.kills) > maxKills {
			e.kills = e.kills[1:]
		}
	}
	e.killed = true
}

// Yank writes what was killed last; YankPop, after it, what was killed before.
func (e *Editor) Yank() {
	if n := len(e.kills); n > 0 {
		e.ring = n - 1
		e.keep(false)
		e.put(e.kills[e.ring])
		e.rest()
		e.yanked = len(e.kills[e.ring])
	}
}

func (e *Editor) YankPop() {
	if e.yanked == 0 {
		return
	}
	from := e.at - e.yanked
	e.text, e.at = e.text[:from]+e.text[e.at:], from
	e.ring = (e.ring + len(e.kills) - 1) % len(e.kills)
	e.put(e.kills[e.ring])
	e.rest()
	e.yanked = len(e.kills[e.ring])
}

// Replace writes s in place of the text from from up to the cursor.
func (e *Editor) Replace(from int, s string) {
	e.keep(false)
	e.text = e.text[:from] + e.text[e.at:]
	e.at = from
	e.put(s)
	e.rest()
}

// Escaped turns a backslash before the cursor into a line end; it reports
// whether there was one.
func (e *Editor) Escaped() bool {
	if !strings.HasSuffix(e.text[:e.at], `\`) {
		return false
	}
	e.Replace(e.at-1, "\n")
	return true
}

// A place is where a cluster stands once the text is laid out.
type place struct{ at, x, y int }

// Rows lays the text out in rows of at most width columns; p is the cursor.
func (e *Editor) Rows(width int) (rows []cell.Row, p cell.Point) {
	rows, places := e.layout(width)
	i, _ := slices.BinarySearchFunc(places, e.at, func(p place, at int) int { return p.at - at })
	pl := places[min(i, len(places)-1)]
	return rows, cell.Point{X: pl.x, Y: pl.y}
}

// layout places each cluster; the last place is behind the text.
func (e *Editor) layout(width int) ([]cell.Row, []place) {
	width = max(width, 4)
	rows := []cell.Row{nil}
	var places []place
	x, at := 0, 0
	newRow := func() { rows, x = append(rows, nil), 0 }
	g := displaywidth.StringGraphemes(e.text)
	for g.Next() {
		v := g.Value()
		if v == "\n" || v == "\r\n" {
			places = append(places, place{at, x, len(rows) - 1})
			newRow()
			at += len(v)
			continue
		}
		cs := cell.Plain(v).Cells()
		if w := cs.Width(); x+w > width {
			newRow()
		}
		places = append(places, place{at, x, len(rows) - 1})
		rows[len(rows)-1] = append(rows[len(rows)-1], cs...)
		x += cs.Width()
		at += len(v)
	}
	if x >= width {
		newRow()
	}
	return rows, append(places, place{len(e.text), x, len(rows) - 1})
}

// Up and Down go to the row above or below, in a layout of that width. They
// report whether there is one.
func (e *Editor) Up(width int) bool   { return e.vertical(width, -1) }
func (e *Editor) Down(width int) bool { return e.vertical(width, +1) }

func (e *Editor) vertical(width, by int) bool {
	rows, places := e.layout(width)
	i, _ := slices.BinarySearchFunc(places, e.at, func(p place, at int) int { return p.at - at })
	now := places[min(i, len(places)-1)]
	y := now.y + by
	if y < 0 || y >= len(rows) {
		return false
	}
	want := e.want
	if want < 0 || e.typing {
		want = now.x
	}
	best := -1
	for j, p := range places {
		if p.y == y && (best < 0 || p.x <= want) {
			best = j
		}
	}
	if best < 0 {
		return false
	}
	e.rest()
	e.at, e.want = places[best].at, want
	return true
}
