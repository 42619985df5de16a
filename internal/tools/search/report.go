package search

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

const (
	maxColumns = 500       // characters shown of one line
	maxReport  = 100 << 10 // bytes of one result
)

// A GrepDetail is the Detail of a Grep: the SDK's tool_use_result.
type GrepDetail struct {
	Mode          string   `json:"mode"`
	NumFiles      int      `json:"numFiles"`
	Filenames     []string `json:"filenames"`
	Content       *string  `json:"content,omitempty"`
	NumLines      *int     `json:"numLines,omitempty"`
	NumMatches    *int     `json:"numMatches,omitempty"`
	AppliedLimit  *int     `json:"appliedLimit,omitempty"`
	AppliedOffset *int     `json:"appliedOffset,omitempty"`
}

// A window is the stretch of entries that head_limit and offset leave.
type window struct {
	skip, left int // left < 0: no limit
	unlimited  bool
	taken      int
	bytes      int
	more       bool // entries behind the window exist
	full       bool // cut off for its bytes
}

// take reports whether the next entry, of that many bytes, is inside.
func (w *window) take(size int) bool {
	if w.skip > 0 {
		w.skip--
		return false
	}
	switch {
	case w.more || w.full:
		return false
	case !w.unlimited && w.left == 0:
		w.more = true
		return false
	case w.bytes+size > maxReport:
		w.full = true
		return false
	}
	w.left--
	w.taken++
	w.bytes += size + 1
	return true
}

func (t *grepTool) report(q *query, found *collector) agent.Result {
	w := &window{skip: q.offset, left: q.limit, unlimited: q.limit == 0}
	d := GrepDetail{Mode: q.mode, Filenames: []string{}}
	var body string
	switch q.mode {
	case modeFiles:
		body = t.listFiles(found.byTime(), w, &d)
	case modeCount:
		body = t.listCounts(found.byPath(), w, &d)
	default:
		body = t.listLines(q, found.byPath(), w, &d)
	}
	if w.more || w.full {
		d.AppliedLimit = &w.taken
	}
	if q.offset > 0 {
		d.AppliedOffset = &q.offset
	}
	var b strings.Builder
	b.WriteString(body)
	switch {
	case len(found.files) > 0 && w.taken == 0 && q.offset == 0:
		b.WriteString("No matches found") // but empty ones, of which -o shows nothing
	case len(found.files) > 0 && w.taken == 0:
		fmt.Fprintf(&b, "No entries at this offset (%d).", q.offset)
	case w.more:
		fmt.Fprintf(&b, "\n\n(Cut after %d entries, as head_limit says. Go on with offset %d.)", w.taken, q.offset+w.taken)
	case w.full:
		fmt.Fprintf(&b, "\n\n(Cut after %d entries: more is too much for one result. Go on with offset %d, or narrow the search.)", w.taken, q.offset+w.taken)
	}
	if found.ended > 0 {
		fmt.Fprintf(&b, "\n\n(The search was ended after %s; this is what was found until then. Use a narrower path, glob or type.)", found.ended)
	}
	if found.big > 0 {
		fmt.Fprintf(&b, "\n\n(%d files above %d MB were not searched. Name one as path to be told of it.)", found.big, maxLoad>>20)
	}
	return agent.Result{Blocks: []agent.Block{&agent.Text{Text: b.String()}}, Detail: d}
}

func plural(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return strconv.Itoa(n) + " " + word
}

func (t *grepTool) listFiles(files []*hits, w *window, d *GrepDetail) string {
	if len(files) == 0 {
		return "No files found"
	}
	var b strings.Builder
	for _, h := range files {
		name := t.shown(h.path)
		if !w.take(len(name)) {
			continue
		}
		d.Filenames = append(d.Filenames, name)
		b.WriteByte('\n')
		b.WriteString(visible(name))
	}
	d.NumFiles = len(d.Filenames)
	if d.NumFiles == 0 {
		return ""
	}
	return "Found " + plural(len(files), "file") + b.String()
}

func (t *grepTool) listCounts(files []*hits, w *window, d *GrepDetail) string {
	total := 0
	var b strings.Builder
	for _, h := range files {
		total += h.count
		name := t.shown(h.path)
		if !w.take(len(name) + 8) {
			continue
		}
		d.Filenames = append(d.Filenames, name)
		fmt.Fprintf(&b, "%s:%d\n", visible(name), h.count)
	}
	d.NumFiles, d.NumMatches = len(files), &total
	content := strings.TrimSuffix(b.String(), "\n")
	d.Content = &content
	switch {
	case len(files) == 0:
		return "No matches found"
	case w.taken == 0:
		return ""
	}
	return fmt.Sprintf("%s\nFound %s in %s.", b.String(), plural(total, "matching line"), plural(len(files), "file"))
}

func (t *grepTool) listLines(q *query, files []*hits, w *window, d *GrepDetail) string {
	var b strings.Builder
	context := q.before+q.after > 0
	for _, h := range files {
		name := visible(t.shown(h.path))
		taken := w.taken
		if h.binary {
			if text := name + ": binary file matches"; w.take(len(text)) {
				b.WriteString(text + "\n")
			}
		}
		last := -1
		for _, l := range h.lines {
			text := clip(l.text, l.at)
			if !w.take(len(name) + len(text) + 8) {
				continue
			}
			if context && b.Len() > 0 && (last < 0 || l.number > last+1) {
				// compat: ripgrep's mark between stretches of lines.
				b.WriteString("--\n")
			}
			last = l.number
			sep := byte(':')
			if !l.match {
				sep = '-'
			}
			b.WriteString(name)
			b.WriteByte(sep)
			if q.numbers {
				b.WriteString(strconv.Itoa(l.number))
				b.WriteByte(sep)
			}
			b.WriteString(text)
			b.WriteByte('\n')
		}
		if w.taken > taken {
			d.Filenames = append(d.Filenames, t.shown(h.path))
		}
	}
	d.NumFiles, d.NumLines = len(d.Filenames), &w.taken
	content := strings.TrimSuffix(b.String(), "\n")
	d.Content = &content
	if len(files) == 0 {
		return "No matches found"
	}
	return content
}

// clip cuts a very long line, such as minified code, to the part around the
// match at offset at.
func clip(s string, at int) string {
	if len(s) <= maxColumns {
		return s
	}
	start := max(0, min(at-maxColumns/5, len(s)-maxColumns))
	for start > 0 && !utf8.RuneStart(s[start]) {
		start--
	}
	end := min(len(s), start+maxColumns)
	for end < len(s) && !utf8.RuneStart(s[end]) {
		end--
	}
	head := ""
	if start > 0 {
		head = "… "
	}
	return fmt.Sprintf("%s%s … (%d more bytes in this line)", head, s[start:end], len(s)-(end-start))
}
