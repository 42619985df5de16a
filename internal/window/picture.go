package window

import (
	"fmt"
	"io"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/window/audit"
)

// Picture draws how the window grew over a session as an SVG: a bar for each
// request, split into what was read from the cache, written to it and paid in
// full; the window and the threshold as lines; a mark at each break of the
// prefix, with its reason as a tooltip. window and threshold are tokens, 0 for
// unknown.
func Picture(w io.Writer, records []audit.Record, window, threshold int) error {
	const width, height, left, top = 960, 320, 60, 20
	high := max(window, threshold, 1)
	for _, r := range records {
		high = max(high, r.Prompt)
	}
	y := func(tokens int) float64 { return top + height*(1-float64(tokens)/float64(high)) }
	step := float64(width) / float64(max(len(records), 1))
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`+"\n", left+width+20, top+height+60)
	b.WriteString("<title>Tokens of each request</title>\n")
	line := func(tokens int, name, color string) {
		if tokens > 0 {
			fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="%s" stroke-dasharray="4 3"/><text x="4" y="%.1f" fill="%s">%s</text>`+"\n",
				left, left+width, y(tokens), y(tokens), color, y(tokens)+4, color, name)
		}
	}
	for i, r := range records {
		x := left + float64(i)*step
		read := min(r.Read, r.Prompt)
		written := min(r.Written, r.Prompt-read)
		at := 0
		fmt.Fprintf(&b, `<g><title>%s</title>`, escape(caption(r)))
		for _, part := range []struct {
			tokens int
			color  string
		}{{read, "#5b9f6e"}, {written, "#d9a324"}, {r.Prompt - read - written, "#c0504d"}} {
			if part.tokens > 0 {
				fmt.Fprintf(&b, `<rect x="%.2f" y="%.1f" width="%.2f" height="%.1f" fill="%s"/>`, x, y(at+part.tokens), max(step*0.9, 0.5), y(at)-y(at+part.tokens), part.color)
				at += part.tokens
			}
		}
		if r.Break != nil {
			color := "#c0504d"
			if r.Break.Planned {
				color = "#5b7fd1"
			}
			fmt.Fprintf(&b, `<circle cx="%.2f" cy="%d" r="3" fill="%s"/>`, x+step/2, top+height+10, color)
		}
		b.WriteString("</g>\n")
	}
	line(window, count(window), "#777777")
	line(threshold, count(threshold), "#aaaaaa")
	for i, l := range []struct{ color, name string }{{"#5b9f6e", "read from the cache"}, {"#d9a324", "written to it"}, {"#c0504d", "neither"},
		{"#5b7fd1", "planned break"}, {"#c0504d", "unplanned break"}} {
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="10" height="10" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n",
			left+i*170, top+height+30, l.color, left+i*170+14, top+height+39, l.name)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func caption(r audit.Record) string {
	s := fmt.Sprintf("request %d: %d tokens, %d read, %d written, %s", r.N, r.Prompt, r.Read, r.Written, r.Verdict)
	if r.Break != nil {
		s += "\n" + r.Break.String()
	}
	return s
}

func count(n int) string {
	if n >= 1_000_000 {
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	}
	return fmt.Sprintf("%dk", n/1000)
}

// escape makes s safe between tags: it holds bytes of prompts.
func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r == 0xfffe || r == 0xffff {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?")))
}
