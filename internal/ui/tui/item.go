package tui

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/ui/tui/cell"
	"github.com/seed-eb844fcb/cinch/internal/ui/tui/markdown"
)

type kind uint8

const (
	user kind = iota
	answer
	thinking
	call
	note
	local
	divider
	end
)

// The states of a call, in their order.
const (
	writing = iota // the model writes its input
	waiting
	asking
	running
	done
)

// An item is one part of the conversation as it is shown. Once it is final
// it does not change any more.
type item struct {
	kind     kind
	final    bool
	at       time.Time
	took     time.Duration
	text     string // of all kinds but call
	detail   string // more, for the transcript
	level    string // of a note
	uuid     string // of a prompt
	pictures int
	aborted  bool

	shown int               // bytes of an answer that stand in the scrollback
	md    markdown.Renderer // behind them

	tool, title string
	input       json.RawMessage
	state       int
	since       time.Time // it runs
	progress    string
	bytes       int64
	output      string
	patch       patch
	depth       int
	children    []*item // calls of a sub-agent
	tokens      int
	tools       int
	cost        float64
	ran, failed bool
	unknown     bool
	denied      bool
	interrupted bool
}

var (
	plain    = cell.Style{}
	dim      = cell.Style{Dim: true}
	bold     = cell.Style{Bold: true}
	good     = cell.Style{FG: cell.Green}
	bad      = cell.Style{FG: cell.Red}
	careful  = cell.Style{FG: cell.Yellow}
	accent   = cell.Style{FG: cell.Cyan}
	asked    = cell.Style{FG: cell.Yellow, Bold: true}
	inserted = cell.Style{FG: cell.Green}
	deleted  = cell.Style{FG: cell.Red}
)

// A look is what rows are made for.
type look struct {
	width int
	full  bool // all details
	now   time.Time
}

// rows shows it whole.
func (it *item) rows(l look) []cell.Row {
	switch it.kind {
	case user:
		return it.userRows(l)
	case answer:
		md := markdown.Renderer{}
		return it.gutter(it.answerRows(&md, it.text, l.width-2), true)
	case thinking:
		return it.thinkingRows(l)
	case call:
		return it.callRows(l)
	case note:
		return it.noteRows(l)
	case local:
		return textRows(it.text, "", plain, l.width, 0)
	case divider:
		return []cell.Row{cell.Styled("── "+it.text+" ──", dim).Cut(l.width)}
	case end:
		return []cell.Row{cell.Styled("  "+it.text, dim).Cut(l.width)}
	}
	return nil
}

// gap reports whether a blank row stands before the item.
func (it *item) gap() bool { return it.kind != end }

func (it *item) userRows(l look) []cell.Row {
	text := it.text
	if it.pictures > 0 {
		text = strings.TrimSpace(text + " [" + plural(it.pictures, "attachment") + "]")
	}
	limit := 30
	if l.full {
		limit = 0
	}
	rows := textRows(text, "  ", bold, l.width, limit)
	if len(rows) > 0 {
		rows[0] = append(cell.Styled("> ", dim).Cells(), rows[0][min(2, len(rows[0])):]...)
	}
	return rows
}

// answerRows shows src, a text that is over, from where md stands.
func (it *item) answerRows(md *markdown.Renderer, src string, width int) []cell.Row {
	var rows []cell.Row
	for src != "" {
		line, rest, more := strings.Cut(src, "\n")
		if line != "" || more {
			rows = append(rows, md.Line(line, width)...)
		}
		src = rest
	}
	rows = append(rows, md.End(width)...)
	for len(rows) > 0 && len(rows[len(rows)-1]) == 0 {
		rows = rows[:len(rows)-1]
	}
	return rows
}

// gutter puts the mark of an answer before its first row, and room before the others.
func (it *item) gutter(rows []cell.Row, first bool) []cell.Row {
	for i, r := range rows {
		lead := cell.Plain("  ")
		if i == 0 && first {
			lead = cell.Line{{Text: "●", Style: accent}, {Text: " "}}
		}
		if len(r) > 0 || i == 0 && first {
			rows[i] = append(lead.Cells(), r...)
		}
	}
	return rows
}

// take gives the rows that are final of an answer still being written, and
// leaves the rest for live.
func (it *item) take(l look) []cell.Row {
	rest := it.text[it.shown:]
	i := strings.LastIndexByte(rest, '\n')
	if i < 0 {
		return nil
	}
	first := it.shown == 0
	var rows []cell.Row
	for line := range strings.SplitSeq(rest[:i], "\n") {
		rows = append(rows, it.md.Line(line, l.width-2)...)
	}
	if len(rows) == 0 && first {
		return nil // nothing to put the mark before: once more with the next line
	}
	it.shown += i + 1
	return it.gutter(rows, first)
}

// live shows what take has left.
func (it *item) live(l look) []cell.Row {
	rest := it.text[it.shown:]
	i := strings.LastIndexByte(rest, '\n')
	md := it.md
	var rows []cell.Row
	if i >= 0 {
		for line := range strings.SplitSeq(rest[:i], "\n") {
			rows = append(rows, md.Line(line, l.width-2)...)
		}
	}
	rows = append(rows, md.Tail(rest[i+1:], l.width-2)...)
	return it.gutter(rows, it.shown == 0)
}

// rest shows what take has left once the answer is final.
func (it *item) rest(l look) []cell.Row {
	first := it.shown == 0
	return it.gutter(it.answerRows(&it.md, it.text[it.shown:], l.width-2), first)
}

func (it *item) thinkingRows(l look) []cell.Row {
	if !it.final {
		return nil // the line of what goes on tells it
	}
	head := cell.Styled("✻ thought for "+rounded(it.took), cell.Style{Dim: true, Italic: true}).Cut(l.width)
	if !l.full || strings.TrimSpace(it.text) == "" {
		return []cell.Row{head}
	}
	return append([]cell.Row{head}, textRows(strings.TrimSpace(it.text), "  ", dim, l.width, 0)...)
}

func (it *item) noteRows(l look) []cell.Row {
	st, lead := dim, ""
	switch it.level {
	case "error":
		st, lead = bad, "✗ "
	case "warning":
		st, lead = careful, "! "
	case "notice":
		st = careful
	case "interrupt":
		st, lead = careful, "⎋ "
	case "task":
		st, lead = accent, "◆ "
	default:
		lead = "· "
	}
	limit := 20
	if l.full {
		limit = 0
	}
	rows := textRows(it.text, strings.Repeat(" ", cell.Width(lead)), st, l.width, limit)
	if lead != "" && len(rows) > 0 {
		rows[0] = append(cell.Styled(lead, st).Cells(), rows[0][min(cell.Width(lead), len(rows[0])):]...)
	}
	if l.full && it.detail != "" {
		rows = append(rows, textRows(it.detail, "    ", dim, l.width, 0)...)
	}
	return rows
}

// textRows shows text as it is, each line behind pad; limit, if it is not 0,
// is how many rows there may be.
func textRows(text, pad string, st cell.Style, width, limit int) []cell.Row {
	var rows []cell.Row
	lead := cell.Plain(pad)
	text = strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	n := strings.Count(text, "\n") + 1
	for line := range strings.SplitSeq(text, "\n") {
		if limit > 0 && len(rows) >= limit {
			rows = append(rows[:limit:limit], cell.Styled(pad+fmt.Sprintf("… %s in all", plural(n, "line")), dim).Cut(width))
			break
		}
		rows = append(rows, append(cell.Line{{Text: pad}}, cell.Span{Text: line, Style: st}).Wrap(width, lead)...)
	}
	return rows
}

// past turns a conversation that was resumed into items.
func past(history []agent.Message, cwd string) []*item {
	s := newState()
	s.info.Cwd = cwd
	for _, m := range history {
		e := agent.Event{}
		for _, b := range m.Blocks {
			r, ok := b.(*agent.ToolResult)
			if !ok {
				continue
			}
			if it := s.calls[r.ID]; it != nil {
				it.state, it.final, it.ran, it.failed = done, true, true, r.IsError
				it.output = clipText(outputOf(it.tool, r.Blocks))
			}
		}
		s.said(e, agent.Said{Message: m})
	}
	for _, it := range s.items {
		if it.kind == call && it.state != done {
			it.state = done
		}
		it.final = true
	}
	return s.items
}
