package textdiff

import (
	"fmt"
	"strings"
)

const noNewline = `\ No newline at end of file`

// Hunks returns what changes between before and after, with up to context
// unchanged lines around each change. It is never nil.
func Hunks(before, after string, context int) []Hunk {
	a, b := splitLines(before), splitLines(after)
	out := []Hunk{}
	cs := changes(a, b)
	for len(cs) > 0 {
		// Changes whose contexts touch share a hunk.
		n := 1
		for n < len(cs) && cs[n].from-cs[n-1].to <= 2*context {
			n++
		}
		out = append(out, hunk(a, b, cs[:n], context))
		cs = cs[n:]
	}
	return out
}

func hunk(a, b []string, cs []change, context int) Hunk {
	first, last := cs[0], cs[len(cs)-1]
	lead := min(context, first.from)
	trail := min(context, len(a)-last.to)
	h := Hunk{
		OldStart: first.from - lead + 1,
		OldLines: last.to + trail - (first.from - lead),
		NewStart: first.newFrom - lead + 1,
		NewLines: last.newTo + trail - (first.newFrom - lead),
	}
	at := first.from - lead
	for _, c := range cs {
		h.add(' ', a[at:c.from])
		h.add('-', a[c.from:c.to])
		h.add('+', b[c.newFrom:c.newTo])
		at = c.to
	}
	h.add(' ', a[at:last.to+trail])
	return h
}

func (h *Hunk) add(mark byte, lines []string) {
	for _, l := range lines {
		text, ended := strings.CutSuffix(l, "\n")
		h.Lines = append(h.Lines, string(mark)+text)
		if !ended {
			h.Lines = append(h.Lines, noNewline)
		}
	}
}

// Format writes hunks as the body of a unified diff.
func Format(hunks []Hunk) string {
	var b strings.Builder
	for _, h := range hunks {
		fmt.Fprintf(&b, "@@ -%s +%s @@\n", span(h.OldStart, h.OldLines), span(h.NewStart, h.NewLines))
		for _, l := range h.Lines {
			b.WriteString(l)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// span writes a line range as diff does; an empty one names the line before it.
func span(start, lines int) string {
	if lines == 0 {
		start--
	}
	if lines == 1 {
		return fmt.Sprint(start)
	}
	return fmt.Sprintf("%d,%d", start, lines)
}
