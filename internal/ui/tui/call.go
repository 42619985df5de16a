package tui

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/seed-eb844fcb/cinch/internal/ui/tui/cell"
)

// title is a call in one line: the tool, and what it is about.
func title(tool string, input json.RawMessage, cwd string) string {
	name := tool
	if rest, ok := strings.CutPrefix(tool, "mcp__"); ok {
		if server, t, ok := strings.Cut(rest, "__"); ok {
			name = server + ": " + t
		}
	}
	var in map[string]any
	if json.Unmarshal(input, &in) != nil {
		return name
	}
	for _, key := range []string{"command", "file_path", "notebook_path", "pattern", "url", "query", "description", "skill", "subject", "task_id", "path"} {
		v, ok := in[key].(string)
		if !ok || v == "" {
			continue
		}
		if strings.HasSuffix(key, "path") {
			v = short(v, cwd)
		}
		if tool == "Bash" && strings.Contains(v, "\n") {
			v = firstLine(v) + " …"
		}
		return name + "(" + v + ")"
	}
	return name
}

// short is a path as seen from cwd.
func short(path, cwd string) string {
	if rel, err := filepath.Rel(cwd, path); cwd != "" && err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// name is the title without what would fill a line.
func (it *item) name() string {
	if utf8.RuneCountInString(it.title) <= 60 {
		return it.title
	}
	return string([]rune(it.title)[:59]) + "…"
}

// callRows shows a call: one line while it runs, its outcome under it when it
// is over.
func (it *item) callRows(l look) []cell.Row {
	pad := strings.Repeat("  ", it.depth)
	mark, st := "○", dim
	switch {
	case it.state == asking:
		mark, st = "?", asked
	case it.state == running:
		mark, st = "◐", accent
	case it.state == done && (it.failed || it.interrupted):
		mark, st = "●", bad
	case it.state == done:
		mark, st = "●", good
	}
	name, about, _ := strings.Cut(it.title, "(")
	head := cell.Line{{Text: pad}, {Text: mark + " ", Style: st}, {Text: name, Style: bold}}
	if about != "" {
		head = append(head, cell.Span{Text: "(" + about})
	}
	head = append(head, cell.Span{Text: it.going(l), Style: dim})
	var rows []cell.Row
	if l.full {
		rows = head.Wrap(l.width, cell.Plain(pad+"  "))
	} else {
		rows = []cell.Row{head.Cut(l.width)}
	}
	rows = append(rows, it.childRows(l)...)
	if it.state == done {
		rows = append(rows, it.outcomeRows(l, pad+"  ")...)
	}
	return rows
}

// going says how far a call is that is not over.
func (it *item) going(l look) string {
	var parts []string
	switch it.state {
	case writing:
		if it.bytes > 2000 {
			return "  " + size(it.bytes)
		}
	case asking:
		return "  waits for your answer"
	case running:
		if d := l.now.Sub(it.since); d >= 1e9 {
			parts = append(parts, seconds(d))
		}
		if it.tools > 0 || it.tokens > 0 {
			parts = append(parts, plural(it.tools, "tool"), tokens(it.tokens)+" tokens")
		}
		if it.bytes > 4096 {
			parts = append(parts, size(it.bytes))
		}
		if p := strings.TrimSpace(it.progress); p != "" {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "  " + strings.Join(parts, " · ")
}

// childRows shows the calls of a sub-agent: all in full, else the last few
// while it works.
func (it *item) childRows(l look) []cell.Row {
	cs := it.children
	const last = 3
	if !l.full {
		if it.state == done {
			return nil
		}
		if len(cs) > last {
			cs = cs[len(cs)-last:]
		}
	}
	var rows []cell.Row
	if n := len(it.children) - len(cs); n > 0 {
		rows = append(rows, cell.Styled(strings.Repeat("  ", it.depth+1)+fmt.Sprintf("⋮ %s before", plural(n, "call")), dim).Cut(l.width))
	}
	for _, c := range cs {
		if l.full || c.state != done {
			rows = append(rows, c.callRows(l)...)
		} else {
			rows = append(rows, c.callRows(look{width: l.width, now: l.now})[:1]...)
		}
	}
	return rows
}

// outcomeRows shows what a call came to.
func (it *item) outcomeRows(l look, pad string) []cell.Row {
	lead := pad + "⎿ "
	more := pad + "  "
	st := dim
	var head string
	limit := 3
	text := strings.TrimRight(it.output, "\n")
	switch {
	case it.interrupted:
		return []cell.Row{cell.Styled(lead+it.interruptedWords(), careful).Cut(l.width)}
	case it.denied:
		return textRowsUnder(lead, more, "not permitted: "+firstLine(strip(text)), careful, l, 3)
	case it.failed:
		st, limit = bad, 8
		text = strip(text)
	case len(it.patch) > 0:
		return it.patchRows(l, lead, more)
	case it.tool == "Read", it.tool == "Glob", it.tool == "Grep":
		if n := strings.Count(text, "\n") + 1; text != "" && !l.full && n > 1 {
			head = plural(n, "line")
			text = ""
		}
	case len(it.children) > 0 || it.tools > 0 || it.tokens > 0:
		head = fmt.Sprintf("%s · %s tokens", plural(max(it.tools, len(it.children)), "tool"), tokens(it.tokens))
		if it.cost > 0 {
			head += fmt.Sprintf(" · $%.3f", it.cost)
		}
		limit = 2
	}
	if it.took >= 1e9 {
		head = strings.TrimPrefix(head+" · "+rounded(it.took), " · ")
	}
	if l.full {
		limit = 0
	}
	var rows []cell.Row
	if head != "" {
		rows = append(rows, cell.Styled(lead+head, dim).Cut(l.width))
		lead = more
	}
	if strings.TrimSpace(text) == "" {
		if head == "" {
			rows = append(rows, cell.Styled(lead+"done", dim).Cut(l.width))
		}
		return rows
	}
	return append(rows, textRowsUnder(lead, more, text, st, l, limit)...)
}

func (it *item) interruptedWords() string {
	if !it.ran {
		return "interrupted before it began: it did not run"
	}
	return "interrupted after " + rounded(it.took) + "; what it did until then stands"
}

// strip takes the tags off that mark an error for the model.
func strip(s string) string {
	s = strings.TrimPrefix(strings.TrimSpace(s), "<tool_use_error>")
	return strings.TrimSuffix(s, "</tool_use_error>")
}

// textRowsUnder shows text under a call: the first line behind lead, the
// others behind more. Of many lines the last says how many there are.
func textRowsUnder(lead, more, text string, st cell.Style, l look, limit int) []cell.Row {
	lines := strings.Split(text, "\n")
	left := 0
	if limit > 0 && len(lines) > limit {
		left = len(lines) - limit
		lines = lines[:limit]
	}
	var rows []cell.Row
	for i, s := range lines {
		p := more
		if i == 0 {
			p = lead
		}
		s = strings.TrimRight(s, "\r")
		line := cell.Line{{Text: p, Style: dim}, {Text: s, Style: st}}
		if l.full {
			rows = append(rows, line.Fold(l.width, cell.Plain(more))...)
		} else {
			rows = append(rows, line.Cut(l.width))
		}
	}
	if left > 0 {
		rows = append(rows, cell.Styled(more+"… "+plural(left, "more line")+" (ctrl+o)", dim).Cut(l.width))
	}
	return rows
}
