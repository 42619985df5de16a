package markdown

import (
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/ui/tui/cell"
)

// maxTable is how many rows are held back until a table is over.
const maxTable = 100

func isRow(s string) bool {
	s = strings.TrimSpace(s)
	return len(s) > 2 && s[0] == '|' && s[len(s)-1] == '|'
}

// hasRule reports whether the second row is the line under a table's head.
func hasRule(rows []string) bool {
	return len(rows) > 1 && strings.Contains(rows[1], "-") && strings.Trim(rows[1], "|-: \t") == ""
}

// split parts the cells of a row; a bar in code or behind \ parts nothing.
func split(row string) []string {
	row = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(row), "|"), "|")
	var out []string
	code, start := false, 0
	for i := 0; i < len(row); i++ {
		switch {
		case row[i] == '\\':
			i++
		case row[i] == '`':
			code = !code
		case row[i] == '|' && !code:
			out = append(out, strings.TrimSpace(row[start:i]))
			start = i + 1
		}
	}
	return append(out, strings.TrimSpace(row[min(start, len(row)):]))
}

// table shows rows, the second of which is the rule. Columns take what they
// need, or a fair part of what there is; cells are broken, not cut.
func table(src []string, width int) []cell.Row {
	var grid [][]cell.Line
	columns := 0
	for i, s := range src {
		if i == 1 {
			continue
		}
		st := cell.Style{}
		if i == 0 {
			st = heading
		}
		var row []cell.Line
		for _, c := range split(s) {
			row = append(row, inline(strings.ReplaceAll(c, `\|`, "|"), st))
		}
		columns = max(columns, len(row))
		grid = append(grid, row)
	}
	want := make([]int, columns)
	for _, row := range grid {
		for i, c := range row {
			want[i] = max(want[i], c.Cells().Width(), 1)
		}
	}
	if 4*columns > width {
		var rows []cell.Row
		for _, s := range src {
			rows = append(rows, cell.Plain(s).Wrap(width, nil)...)
		}
		return rows
	}
	share(want, width-3*(columns-1))
	var out []cell.Row
	for i, row := range grid {
		out = append(out, spread(row, want)...)
		if i == 0 {
			var rule []string
			for _, w := range want {
				rule = append(rule, strings.Repeat("─", w))
			}
			out = append(out, cell.Styled(strings.Join(rule, "─┼─"), dim).Cells())
		}
	}
	return out
}

// share takes from the widest until all fit into room.
func share(want []int, room int) {
	for {
		sum, widest := 0, 0
		for i, w := range want {
			sum += w
			if w > want[widest] {
				widest = i
			}
		}
		if sum <= room || want[widest] <= 4 {
			return
		}
		want[widest] -= max(1, min(sum-room, want[widest]/8))
	}
}

// spread lays the cells of one row of a table beside each other.
func spread(row []cell.Line, widths []int) []cell.Row {
	parts := make([][]cell.Row, len(widths))
	height := 1
	for i := range widths {
		if i < len(row) {
			parts[i] = row[i].Wrap(widths[i], nil)
		}
		height = max(height, len(parts[i]))
	}
	var out []cell.Row
	for y := range height {
		var r cell.Row
		for i, w := range widths {
			var c cell.Row
			if y < len(parts[i]) {
				c = parts[i][y]
			}
			r = append(r, c...)
			if i < len(widths)-1 {
				r = append(r, cell.Plain(strings.Repeat(" ", max(0, w-c.Width()))).Cells()...)
				r = append(r, cell.Styled(" │ ", dim).Cells()...)
			}
		}
		out = append(out, r)
	}
	return out
}
