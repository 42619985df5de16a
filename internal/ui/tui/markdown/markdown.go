// Package markdown shows Markdown on a terminal while it is still being
// written: line by line, each of them final as soon as its end has come, so
// that nothing shown is ever taken back. Only tables wait for their last row.
//
// It owns what a construct looks like. Lines of the source stay lines, as
// people who write to each other in terminals expect. HTML is text; links
// show where they go. It knows nothing of models and sessions.
package markdown

import (
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/ui/tui/cell"
)

// A Renderer is the state between two lines of a text. The zero value stands
// at its beginning.
type Renderer struct {
	fence  string // what closes the code block, or ""
	indent int    // of the fence
	code   highlighter
	table  []string // its rows so far
	blank  bool     // the last line shown was empty
	any    bool     // something was shown
}

var (
	dim     = cell.Style{Dim: true}
	heading = cell.Style{Bold: true}
	inCode  = cell.Style{FG: cell.Cyan}
)

// Line shows one whole line of the source, without its end, in rows of at most
// width columns.
func (r *Renderer) Line(src string, width int) []cell.Row {
	if r.fence == "" && isRow(src) {
		r.table = append(r.table, src)
		if len(r.table) <= maxTable {
			return nil
		}
		return r.End(width)
	}
	rows := r.End(width)
	return append(rows, r.line(src, width)...)
}

// End shows what was held back.
func (r *Renderer) End(width int) []cell.Row {
	t := r.table
	r.table = nil
	if len(t) == 0 {
		return nil
	}
	r.blank, r.any = false, true
	if !hasRule(t) {
		var rows []cell.Row
		for _, s := range t {
			rows = append(rows, inline(s, cell.Style{}).Wrap(width, nil)...)
		}
		return rows
	}
	return table(t, width)
}

// Tail shows what is there of the last line, and what is held back, as it
// would look now. It changes nothing.
func (r *Renderer) Tail(src string, width int) []cell.Row {
	c := *r
	rows := c.End(width)
	if src == "" {
		return rows
	}
	if c.fence == "" && len(src) < 4 && strings.Trim(src, "`~#-*>| ") == "" {
		return rows // nobody knows yet what that will be
	}
	return append(rows, c.line(src, width)...)
}

func (r *Renderer) line(src string, width int) []cell.Row {
	src = strings.TrimRight(src, " \t\r")
	trimmed := strings.TrimLeft(src, " \t")
	in := len(src) - len(trimmed)
	if r.fence != "" {
		if strings.HasPrefix(trimmed, r.fence) && strings.Trim(trimmed, r.fence[:1]) == "" {
			r.fence = ""
			return nil
		}
		for n := r.indent; n > 0 && strings.HasPrefix(src, " "); n-- {
			src = src[1:]
		}
		r.blank, r.any = false, true
		line := append(cell.Line{{Text: "  "}}, r.code.line(strings.ReplaceAll(src, "\t", "    "))...)
		return line.Fold(width, cell.Plain("  "))
	}
	if f := fenceOf(trimmed); f != "" {
		r.fence, r.indent = f, in
		r.code = newHighlighter(strings.Trim(trimmed, "`~ "))
		return nil
	}
	if trimmed == "" {
		if r.blank || !r.any {
			return nil
		}
		r.blank = true
		return []cell.Row{nil}
	}
	r.blank, r.any = false, true
	return block(trimmed, in, width)
}

// fenceOf is the fence that s opens, or "".
func fenceOf(s string) string {
	for _, c := range []string{"`", "~"} {
		n := 0
		for n < len(s) && s[n] == c[0] {
			n++
		}
		if n >= 3 && !strings.Contains(s[n:], "`") {
			return s[:n]
		}
	}
	return ""
}

// block shows a line outside of code: s is indented by in blanks.
func block(s string, in, width int) []cell.Row {
	pad := strings.Repeat(" ", min(in, width/4))
	if n := len(s) - len(strings.TrimLeft(s, "#")); n > 0 && n <= 6 && len(s) > n && s[n] == ' ' {
		st := heading
		if n == 1 {
			st.Underline = true
		}
		return inline(strings.TrimRight(strings.TrimSpace(s[n:]), "# "), st).Wrap(width, nil)
	}
	if len(s) >= 3 && (strings.Trim(s, "- ") == "" || strings.Trim(s, "* ") == "" || strings.Trim(s, "_ ") == "") && strings.Count(s, s[:1]) >= 3 {
		return []cell.Row{cell.Styled(strings.Repeat("─", min(width, 24)), dim).Cells()}
	}
	if rest, ok := strings.CutPrefix(s, ">"); ok {
		bar := cell.Styled(pad+"│ ", dim)
		return append(bar[:1:1], inline(strings.TrimPrefix(rest, " "), cell.Style{Italic: true})...).Wrap(width, bar)
	}
	if mark, rest := item(s); mark != "" {
		lead := cell.Line{{Text: pad}, {Text: mark, Style: dim}}
		return append(lead[:2:2], inline(rest, cell.Style{})...).Wrap(width, cell.Plain(strings.Repeat(" ", cell.Width(pad+mark))))
	}
	return append(cell.Plain(pad), inline(s, cell.Style{})...).Wrap(width, cell.Plain(pad))
}

// item splits the mark of a list item, as it is shown, from its text.
func item(s string) (mark, rest string) {
	if len(s) >= 2 && strings.IndexByte("-*+", s[0]) >= 0 && s[1] == ' ' {
		rest = strings.TrimLeft(s[2:], " ")
		switch {
		case strings.HasPrefix(rest, "[ ] "):
			return "☐ ", rest[4:]
		case strings.HasPrefix(rest, "[x] "), strings.HasPrefix(rest, "[X] "):
			return "☒ ", rest[4:]
		}
		return "• ", rest
	}
	n := 0
	for n < len(s) && n < 9 && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	if n > 0 && n+1 < len(s) && (s[n] == '.' || s[n] == ')') && s[n+1] == ' ' {
		return s[:n+2], strings.TrimLeft(s[n+2:], " ")
	}
	return "", s
}
