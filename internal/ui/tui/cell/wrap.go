package cell

// Wrap breaks l into rows of at most width columns, between words where it
// can. Each row but the first starts with the cells of hang. A word longer
// than a row is broken where the row ends; wide characters may be parted
// anywhere. There is at least one row.
func (l Line) Wrap(width int, hang Line) []Row { return wrap(l.Cells(), width, hang, true) }

// Fold breaks l into rows of exactly width columns, the last excepted: for
// code, where a blank counts.
func (l Line) Fold(width int, hang Line) []Row { return wrap(l.Cells(), width, hang, false) }

func wrap(cells Row, width int, hang Line, words bool) []Row {
	width = max(width, 4) // a wide character must fit, behind hang too
	lead := hang.Cells()
	if lead.Width() > width/2 {
		lead = nil
	}
	var rows []Row
	start, n := 0, 0 // the row begins at cells[start] and has n columns
	if cells.Width() <= width {
		return []Row{cells}
	}
	indent := 0
	flush := func(end int) {
		row := cells[start:end]
		if len(rows) > 0 && len(lead) > 0 {
			row = append(append(make(Row, 0, len(lead)+len(row)), lead...), row...)
		}
		rows = append(rows, row[:len(row):len(row)])
		indent = lead.Width()
	}
	brk := -1 // a row may end before cells[brk]
	for i := 0; i < len(cells); i++ {
		c := cells[i]
		if words && i > start && (cells[i-1].S == " " && c.S != " " || c.W == 2 || cells[i-1].W == 2) {
			brk = i
		}
		if indent+n+int(c.W) <= width {
			n += int(c.W)
			continue
		}
		if words && c.S == " " { // blanks that do not fit vanish
			flush(trimmed(cells, start, i, words))
			for i < len(cells) && cells[i].S == " " {
				i++
			}
			start, n, brk = i, 0, -1
			i--
			continue
		}
		end := i
		if words && brk > start {
			end = brk
		}
		flush(trimmed(cells, start, end, words))
		start, n, brk = end, 0, -1
		i = end - 1
	}
	if start < len(cells) || len(rows) == 0 {
		flush(len(cells))
	}
	return rows
}

// trimmed is end without the blanks before it.
func trimmed(cells Row, start, end int, words bool) int {
	for words && end > start+1 && cells[end-1].S == " " {
		end--
	}
	return end
}
