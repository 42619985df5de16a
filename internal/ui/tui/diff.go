package tui

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/lib/textdiff"
	"github.com/seed-eb844fcb/cinch/internal/ui/tui/cell"
)

// A patch is what a call has changed in a file.
type patch []textdiff.Hunk

// patchOf reads the changes from the detail of a result; nil if it has none.
func patchOf(tool string, detail any) patch {
	switch tool {
	case "Edit", "MultiEdit", "Write":
	default:
		return nil
	}
	raw, err := json.Marshal(detail)
	if err != nil {
		return nil
	}
	var d struct {
		Type    string          `json:"type"`
		Content string          `json:"content"`
		Hunks   []textdiff.Hunk `json:"structuredPatch"`
	}
	if json.Unmarshal(raw, &d) != nil {
		return nil
	}
	if len(d.Hunks) == 0 && d.Type == "create" {
		return textdiff.Hunks("", clipText(d.Content), textdiff.Context)
	}
	return d.Hunks
}

// count is how many lines were added and removed.
func (p patch) count() (added, removed int) {
	for _, h := range p {
		for _, l := range h.Lines {
			switch {
			case strings.HasPrefix(l, "+"):
				added++
			case strings.HasPrefix(l, "-"):
				removed++
			}
		}
	}
	return added, removed
}

// patchRows shows the changes of a call under it.
func (it *item) patchRows(l look, lead, more string) []cell.Row {
	added, removed := it.patch.count()
	rows := []cell.Row{cell.Line{{Text: lead, Style: dim}, {Text: fmt.Sprintf("+%d", added), Style: inserted}, {Text: " "}, {Text: fmt.Sprintf("-%d", removed), Style: deleted}}.Cut(l.width)}
	limit := 24
	if l.full {
		limit = 0
	}
	return append(rows, it.patch.rows(more, l.width, limit)...)
}

// rows shows p with line numbers, changed words marked.
func (p patch) rows(pad string, width, limit int) []cell.Row {
	var rows []cell.Row
	last := 1
	for _, h := range p {
		last = max(last, h.OldStart+h.OldLines, h.NewStart+h.NewLines)
	}
	digits := len(fmt.Sprint(last))
	for i, h := range p {
		if i > 0 {
			rows = append(rows, cell.Styled(pad+strings.Repeat(" ", digits)+" ⋯", dim).Cut(width))
		}
		from, to := h.OldStart, h.NewStart
		for j, l := range h.Lines {
			if limit > 0 && len(rows) >= limit {
				return append(rows, cell.Styled(pad+"… more (ctrl+o)", dim).Cut(width))
			}
			sign, text := " ", l
			if l != "" {
				sign, text = l[:1], l[1:]
			}
			n, st := to, plain
			switch sign {
			case "-":
				n, st = from, deleted
				from++
			case "+":
				st = inserted
				to++
			case `\`:
				rows = append(rows, cell.Styled(pad+strings.Repeat(" ", digits)+"   "+text, dim).Cut(width))
				continue
			default:
				from++
				to++
			}
			line := cell.Line{{Text: pad}, {Text: fmt.Sprintf("%*d ", digits, n), Style: dim}, {Text: sign + " ", Style: st}}
			line = append(line, words(h.Lines, j, text, st)...)
			rows = append(rows, line.Fold(width, cell.Plain(pad+strings.Repeat(" ", digits+3)))...)
		}
	}
	return rows
}

// words marks what differs between a line and the one it stands in for, if
// they are alike: the j-th of as many removed as added lines.
func words(lines []string, j int, text string, st cell.Style) cell.Line {
	other, ok := partner(lines, j)
	if !ok || len(text) > 2000 || len(other) > 2000 {
		return cell.Styled(text, st)
	}
	a, b := []rune(text), []rune(other)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	if 2*(head+tail) < len(a) || head+tail == len(a) {
		return cell.Styled(text, st)
	}
	mark := st
	mark.Reverse = true
	return cell.Line{{Text: string(a[:head]), Style: st}, {Text: string(a[head : len(a)-tail]), Style: mark}, {Text: string(a[len(a)-tail:]), Style: st}}
}

// partner is the line that stands on the other side of a change.
func partner(lines []string, j int) (string, bool) {
	if lines[j] == "" || lines[j][0] != '-' && lines[j][0] != '+' {
		return "", false
	}
	first := j
	for first > 0 && lines[first-1] != "" && (lines[first-1][0] == '-' || lines[first-1][0] == '+') {
		first--
	}
	minus := first
	for minus < len(lines) && strings.HasPrefix(lines[minus], "-") {
		minus++
	}
	plus := minus
	for plus < len(lines) && strings.HasPrefix(lines[plus], "+") {
		plus++
	}
	n := minus - first
	if n == 0 || n != plus-minus || j >= plus {
		return "", false
	}
	if j < minus {
		return lines[j+n][1:], true
	}
	return lines[j-n][1:], true
}
