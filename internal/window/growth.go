package window

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// A Growth is how the window of a conversation filled, request by request.
type Growth struct {
	Title string
	// Window and Threshold are tokens, 0 for unknown.
	Window, Threshold int
	Steps             []Step
	// Parts are what the newest request is made of.
	Parts []Part
	// Notes are lines that stand below.
	Notes []string
}

// A Step is one answered request of the conversation. Counts are tokens.
type Step struct {
	N                     int // of the request
	At                    time.Time
	Model                 string
	Prompt, Read, Written int
	Out                   int
	Cost                  float64 // US dollars
	Verdict               string  // what became of the cache
	// Break is the place where the earlier prefix changed, Reason says why, and
	// Before and After are the bytes there. "" if it held.
	Break, Reason, Before, After string
	Planned                      bool
	// Summary says that a summary took the place of the history before it.
	Summary bool
}

// Colors of the picture, readable on white and on black.
const (
	colorRead    = "#4c9a63"
	colorWritten = "#c9921b"
	colorFull    = "#c0504d"
	colorPlanned = "#4f7ccf"
	colorText    = "#7a7f87"
	colorSummary = "#8e6bbf"
)

// plot is the place of the bars within the picture.
type plot struct {
	width, height, left, top float64
	high                     int // tokens at the top
	step                     float64
}

func (p plot) y(tokens int) float64 {
	return p.top + p.height*(1-float64(min(tokens, p.high))/float64(p.high))
}

// most is how many bars there may be; more requests share one.
const most = 1000

// SVG draws g: a bar for each request, split into what was read from the
// cache, written to it, and paid in full; marks where the prefix broke and
// where a summary was made; the window and the threshold where they are near.
// It is self-contained, and what it shows of a conversation is escaped.
func (g Growth) SVG(w io.Writer) error {
	bars := g.bars()
	p := plot{width: 900, height: 300, left: 70, top: 56}
	top := 1
	for _, s := range g.Steps {
		top = max(top, s.Prompt)
	}
	p.high = nice(top + top/8)
	if g.Window > 0 && top > g.Window/4 {
		p.high = max(p.high, nice(g.Window))
	}
	p.step = p.width / float64(max(len(bars), 1))
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 %d" width="1000" role="img" font-family="system-ui, sans-serif" font-size="12" fill="%s">`+"\n", 470+len(g.Notes)*16, colorText)
	fmt.Fprintf(&b, "<title>%s</title>\n", escape(g.Title))
	fmt.Fprintf(&b, `<text x="%.0f" y="22" font-size="16">%s</text>`+"\n", p.left, escape(clipped(g.Title, 110)))
	fmt.Fprintf(&b, `<text x="%.0f" y="42">%s</text>`+"\n", p.left, escape(g.Headline()))
	g.axes(&b, p, bars)
	for i, bar := range bars {
		drawBar(&b, p, p.left+float64(i)*p.step, bar)
	}
	for _, l := range []struct {
		tokens int
		name   string
	}{{g.Window, "window"}, {g.Threshold, "makes room"}} {
		if l.tokens > 0 && l.tokens <= p.high {
			fmt.Fprintf(&b, `<line x1="%.0f" x2="%.0f" y1="%.1f" y2="%.1f" stroke="%s" stroke-dasharray="5 4"/><text x="%.0f" y="%.1f" text-anchor="end">%s %s</text>`+"\n",
				p.left, p.left+p.width, p.y(l.tokens), p.y(l.tokens), colorText, p.left+p.width, p.y(l.tokens)-4, l.name, count(l.tokens))
		}
	}
	y := p.top + p.height + 62
	for i, l := range []struct{ color, name string }{{colorRead, "read from the cache"}, {colorWritten, "written to it"}, {colorFull, "neither"},
		{colorPlanned, "planned break"}, {colorFull, "unplanned break"}, {colorSummary, "summary"}} {
		x := p.left + float64(i)*152
		fmt.Fprintf(&b, `<rect x="%.0f" y="%.0f" width="10" height="10" fill="%s"/><text x="%.0f" y="%.0f">%s</text>`+"\n", x, y, l.color, x+15, y+9, l.name)
	}
	for i, n := range g.Notes {
		fmt.Fprintf(&b, `<text x="%.0f" y="%.0f">%s</text>`+"\n", p.left, y+34+float64(i)*16, escape(clipped(n, 140)))
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// Headline says it in a line.
func (g Growth) Headline() string {
	if len(g.Steps) == 0 {
		return "No request was answered."
	}
	var prompt, read, top, summaries int
	var cost float64
	for _, s := range g.Steps {
		prompt, read, cost, top = prompt+s.Prompt, read+s.Read, cost+s.Cost, max(top, s.Prompt)
		if s.Summary {
			summaries++
		}
	}
	h := fmt.Sprintf("%d requests, %d %% of %s tokens read from the cache, $%.2f. The fullest had %s tokens", len(g.Steps), 100*read/max(prompt, 1), count(prompt), cost, count(top))
	if g.Window > 0 {
		share := fmt.Sprintf("%d %%", 100*top/g.Window)
		if 100*top < g.Window {
			share = "under 1 %"
		}
		h += fmt.Sprintf(", %s of the window of %s", share, count(g.Window))
	}
	switch {
	case summaries == 1:
		h += "; 1 summary"
	case summaries > 1:
		h += fmt.Sprintf("; %d summaries", summaries)
	}
	return h + "."
}

// bars groups the steps so that there are not more bars than the picture can
// show.
func (g Growth) bars() [][]Step {
	each := (len(g.Steps) + most - 1) / most
	var out [][]Step
	for i := 0; i < len(g.Steps); i += each {
		out = append(out, g.Steps[i:min(i+each, len(g.Steps))])
	}
	return out
}

// axes draws the scale on the left and the numbers of requests below.
func (g Growth) axes(b *strings.Builder, p plot, bars [][]Step) {
	for i := range 5 {
		n := p.high * i / 4
		fmt.Fprintf(b, `<line x1="%.0f" x2="%.0f" y1="%.1f" y2="%.1f" stroke="%s" stroke-opacity="0.25"/><text x="%.0f" y="%.1f" text-anchor="end">%s</text>`+"\n",
			p.left, p.left+p.width, p.y(n), p.y(n), colorText, p.left-8, p.y(n)+4, count(n))
	}
	if len(bars) == 0 {
		return
	}
	ticks := min(len(bars), 6)
	for k := range ticks {
		i := 0
		if ticks > 1 {
			i = k * (len(bars) - 1) / (ticks - 1)
		}
		s := bars[i][0]
		fmt.Fprintf(b, `<text x="%.1f" y="%.0f" text-anchor="middle">%d</text><text x="%.1f" y="%.0f" text-anchor="middle" font-size="10">%s</text>`+"\n",
			p.left+(float64(i)+0.5)*p.step, p.top+p.height+30, s.N, p.left+(float64(i)+0.5)*p.step, p.top+p.height+44, s.At.UTC().Format("01-02 15:04"))
	}
}

// drawBar draws one bar: the fullest of its requests.
func drawBar(b *strings.Builder, p plot, x float64, steps []Step) {
	s := steps[0]
	for _, o := range steps[1:] {
		if o.Prompt > s.Prompt {
			s = o
		}
	}
	var tips []string
	for _, o := range steps {
		tips = append(tips, o.caption())
	}
	fmt.Fprintf(b, `<g><title>%s</title>`, escape(strings.Join(tips, "\n")))
	read := min(s.Read, s.Prompt)
	written := min(s.Written, s.Prompt-read)
	wide := min(math.Max(p.step*0.86, 0.6), 60)
	x += (p.step - wide) / 2
	at := 0
	for _, part := range []struct {
		tokens int
		color  string
	}{{read, colorRead}, {written, colorWritten}, {s.Prompt - read - written, colorFull}} {
		if part.tokens > 0 {
			fmt.Fprintf(b, `<rect x="%.2f" y="%.1f" width="%.2f" height="%.1f" fill="%s"/>`, x, p.y(at+part.tokens), wide, p.y(at)-p.y(at+part.tokens), part.color)
			at += part.tokens
		}
	}
	for _, o := range steps {
		if o.Break != "" {
			color := colorFull
			if o.Planned {
				color = colorPlanned
			}
			fmt.Fprintf(b, `<circle cx="%.2f" cy="%.0f" r="3.5" fill="%s"/>`, x+wide/2, p.top+p.height+8, color)
		}
		if o.Summary {
			fmt.Fprintf(b, `<path d="M%.2f %.1f l-4 -8 h8 z" fill="%s"/>`, x+wide/2, p.y(s.Prompt)-3, colorSummary)
		}
	}
	b.WriteString("</g>\n")
}

// caption is what a person sees who points at the bar.
func (s Step) caption() string {
	t := fmt.Sprintf("request %d: %d tokens, %d read, %d written, $%.4f, %s", s.N, s.Prompt, s.Read, s.Written, s.Cost, s.Verdict)
	if s.Break != "" {
		t += "\n" + s.Break
	}
	if s.Summary {
		t += "\na summary took the place of the history"
	}
	return t
}

// HTML is a page with the picture, what the newest request is made of, each
// break with its bytes, and all requests in a table. It loads nothing and
// runs nothing.
func (g Growth) HTML(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>%s</title>
<style>
:root { color-scheme: light dark; }
body { font: 14px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em; }
svg { width: 100%%; height: auto; }
table { border-collapse: collapse; width: 100%%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .15em .6em; border-bottom: 1px solid #8884; }
th:first-child, td:first-child, .l { text-align: left; }
code { overflow-wrap: anywhere; }
.bar { background: %s; height: .8em; }
</style>
</head>
<body>
`, escape(g.Title), colorPlanned)
	if err := g.SVG(&b); err != nil {
		return err
	}
	g.partsTable(&b)
	g.breaksTable(&b)
	b.WriteString("<h2>Requests</h2>\n<table>\n<tr><th>request</th><th class=\"l\">at</th><th class=\"l\">model</th><th>tokens</th><th>read</th><th>written</th><th>answer</th><th>cost</th><th class=\"l\">cache</th></tr>\n")
	for _, s := range g.Steps {
		fmt.Fprintf(&b, "<tr><td>%d</td><td class=\"l\">%s</td><td class=\"l\">%s</td><td>%d</td><td>%d %%</td><td>%d</td><td>%d</td><td>$%.4f</td><td class=\"l\">%s</td></tr>\n",
			s.N, s.At.UTC().Format("01-02 15:04:05"), escape(s.Model), s.Prompt, 100*s.Read/max(s.Prompt, 1), s.Written, s.Out, s.Cost, escape(s.Verdict))
	}
	b.WriteString("</table>\n</body>\n</html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (g Growth) partsTable(b *strings.Builder) {
	if len(g.Parts) == 0 {
		return
	}
	total := 0
	for _, p := range g.Parts {
		total += p.Bytes
	}
	b.WriteString("<h2>What the newest request is made of</h2>\n<table>\n<tr><th>part</th><th>bytes</th><th>share</th><th class=\"l\"></th></tr>\n")
	for _, p := range g.Parts {
		fmt.Fprintf(b, "<tr><td>%s</td><td>%d</td><td>%d %%</td><td class=\"l\" style=\"width:50%%\"><div class=\"bar\" style=\"width:%.1f%%\"></div></td></tr>\n",
			escape(p.Name), p.Bytes, 100*p.Bytes/max(total, 1), 100*float64(p.Bytes)/float64(max(total, 1)))
	}
	b.WriteString("</table>\n")
}

func (g Growth) breaksTable(b *strings.Builder) {
	n := 0
	for _, s := range g.Steps {
		if s.Break == "" {
			continue
		}
		if n++; n == 1 {
			b.WriteString("<h2>Where the cached prefix broke</h2>\n<table>\n<tr><th>request</th><th class=\"l\">where and why</th><th class=\"l\">was</th><th class=\"l\">is</th><th>paid again</th></tr>\n")
		}
		fmt.Fprintf(b, "<tr><td>%d</td><td class=\"l\">%s</td><td class=\"l\"><code>%s</code></td><td class=\"l\"><code>%s</code></td><td>%d</td></tr>\n",
			s.N, escape(clipped(s.Break, 400)), escape(s.Before), escape(s.After), s.Prompt-min(s.Read, s.Prompt))
	}
	if n > 0 {
		b.WriteString("</table>\n")
	}
}

// nice is the next number from n on that reads well at the end of a scale.
func nice(n int) int {
	unit := 1
	for unit*100 < n {
		unit *= 10
	}
	for _, k := range []int{4, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48, 60, 80, 100} {
		if k*unit >= n {
			return k * unit
		}
	}
	return n
}

func clipped(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

func count(n int) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 10_000:
		return fmt.Sprintf("%dk", n/1000)
	case n >= 1000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}

// escape makes s safe between tags and in attributes: it holds bytes of
// prompts. What has no place in XML, and what would turn the direction of the
// text around it, becomes a space.
func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;").Replace(strings.Map(func(r rune) rune {
		switch {
		case r < ' ' && r != '\n', r == 0x7f, r == 0xfffe, r == 0xffff, 0x202a <= r && r <= 0x202e, 0x2066 <= r && r <= 0x2069:
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?")))
}
