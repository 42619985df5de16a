package tui

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/ui/tui/cell"
)

// statusGap is how long the figures must rest before the command of the status
// line runs.
const statusGap = 300 * time.Millisecond

// A statusLine is what a command of the person makes of the figures.
type statusLine struct {
	text    string
	since   time.Time // the figures are different from then on
	made    time.Time
	seen    int // changes it was made for
	run     int
	cancel  context.CancelFunc
	results chan statusResult
}

type statusResult struct {
	run  int
	text string
}

func (s *statusLine) take(r statusResult) {
	if r.run == s.run {
		s.text = r.text
		s.cancel = nil
	}
}

// refresh runs the command of the status line when it is time.
func (t *tui) refresh(ctx context.Context, now time.Time) {
	s := &t.status
	if t.o.Status == nil || t.st.info.Session == "" {
		return
	}
	due := s.run == 0 || t.o.StatusEvery > 0 && now.Sub(s.made) >= t.o.StatusEvery
	if s.seen != t.st.changes {
		if s.since.IsZero() {
			s.since = now
		}
		due = due || now.Sub(s.since) >= statusGap
	}
	if !due {
		return
	}
	s.seen, s.since, s.made = t.st.changes, time.Time{}, now
	if s.cancel != nil {
		s.cancel()
	}
	s.run++
	run, width := s.run, t.w
	document, err := json.Marshal(t.figures(now))
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	s.cancel = cancel
	t.group.Go(func() { // only the newest counts
		defer cancel()
		text, err := t.o.Status(ctx, document, width)
		if err != nil {
			text = ""
		}
		select {
		case s.results <- statusResult{run, text}:
		case <-ctx.Done():
		}
	})
}

// figures is the document that status line commands get.
func (t *tui) figures(now time.Time) map[string]any {
	s := t.st
	f := map[string]any{}
	if t.o.Facts != nil {
		for k, v := range t.o.Facts() {
			f[k] = v
		}
	}
	in, size := s.usage.Prompt(), s.window
	if size == 0 {
		size = 200_000
	}
	var used, left, current any
	if in > 0 {
		p := min(100, in*100/size)
		used, left = p, 100-p
		current = map[string]any{"input_tokens": s.usage.In, "output_tokens": s.usage.Out,
			"cache_creation_input_tokens": s.usage.CacheWrite(), "cache_read_input_tokens": s.usage.CacheRead}
	}
	f["session_id"] = s.info.Session
	if s.info.Title != "" {
		f["session_name"] = s.info.Title
	}
	f["cwd"] = s.info.Cwd
	f["model"] = map[string]any{"id": s.info.Model, "display_name": s.info.Model}
	workspace := map[string]any{"current_dir": s.info.Cwd, "project_dir": s.info.Cwd, "added_dirs": append([]string{}, s.info.Directories...)}
	if d, ok := f["project_dir"].(string); ok {
		workspace["project_dir"] = d
		delete(f, "project_dir")
	}
	f["workspace"] = workspace
	f["version"] = t.o.Version
	f["output_style"] = map[string]any{"name": s.info.OutputStyle}
	f["cost"] = map[string]any{"total_cost_usd": s.cost, "total_duration_ms": now.Sub(t.born).Milliseconds(), "total_api_duration_ms": s.api.Milliseconds(),
		"total_lines_added": s.added, "total_lines_removed": s.removed}
	f["context_window"] = map[string]any{"total_input_tokens": in, "total_output_tokens": s.usage.Out, "context_window_size": size,
		"used_percentage": used, "remaining_percentage": left, "current_usage": current}
	f["exceeds_200k_tokens"] = in > 200_000
	f["fast_mode"] = false
	if s.info.Effort != "" {
		f["effort"] = map[string]any{"level": s.info.Effort}
	}
	return f
}

// statusRows are the rows under the draft.
func (t *tui) statusRows(l look) []cell.Row {
	if t.hint != "" {
		return cell.Styled("  "+t.hint, careful).Wrap(l.width, cell.Plain("  "))
	}
	if t.status.text != "" {
		var rows []cell.Row
		for i, line := range strings.Split(strings.TrimRight(t.status.text, "\n"), "\n") {
			if i == 3 {
				break
			}
			rows = append(rows, append(cell.Plain("  "), styled(line)...).Cut(l.width))
		}
		return rows
	}
	s := t.st
	var parts cell.Line
	add := func(text string, st cell.Style) {
		if len(parts) > 0 {
			parts = append(parts, cell.Span{Text: " · ", Style: dim})
		}
		parts = append(parts, cell.Span{Text: text, Style: st})
	}
	mode := dim
	switch s.info.Mode {
	case "acceptEdits", "plan", "auto":
		mode = accent
	case "bypassPermissions":
		mode = bad
	}
	if s.info.Session != "" {
		add(modeName(s.info.Mode), mode)
	}
	if n := len(s.queued); n > 0 {
		add(fmt.Sprintf("%d queued", n), dim)
	}
	if n := len(s.tasks); n > 0 {
		add(plural(n, "task")+" in the background", accent)
	}
	if s.info.Model != "" {
		add(s.info.Model, dim)
	}
	if in := s.usage.Prompt() + s.usage.Out; in > 0 && s.window > 0 {
		p := min(100, in*100/s.window)
		st := dim
		if p >= 80 {
			st = careful
		}
		add(fmt.Sprintf("context %d%%", p), st)
	}
	if s.cost > 0 {
		add(fmt.Sprintf("$%.2f", s.cost), dim)
	}
	if t.ed.Empty() && !s.running && s.info.Session != "" {
		add("? for keys", dim)
	}
	for len(parts) > 1 && parts.Cells().Width() > l.width-2 { // the last are the least
		parts = parts[:len(parts)-2]
	}
	return []cell.Row{append(cell.Plain("  "), parts...).Cut(l.width)}
}

// styled reads the colours that a status line command may use; every other
// sequence is text.
func styled(s string) cell.Line {
	var out cell.Line
	st := plain
	for s != "" {
		i := strings.Index(s, "\x1b[")
		if i < 0 {
			break
		}
		end := strings.IndexFunc(s[i+2:], func(r rune) bool { return r != ';' && (r < '0' || r > '9') })
		if end < 0 || s[i+2+end] != 'm' {
			out = append(out, cell.Span{Text: s[:i+2], Style: st})
			s = s[i+2:]
			continue
		}
		if i > 0 {
			out = append(out, cell.Span{Text: s[:i], Style: st})
		}
		st = sgr(st, s[i+2:i+2+end])
		s = s[i+2+end+1:]
	}
	return append(out, cell.Span{Text: s, Style: st})
}

// sgr applies the parameters of a colour sequence.
func sgr(st cell.Style, params string) cell.Style {
	var ns []int
	for p := range strings.SplitSeq(params, ";") {
		n := 0
		fmt.Sscanf(p, "%d", &n)
		ns = append(ns, n)
	}
	for i := 0; i < len(ns); i++ {
		switch n := ns[i]; {
		case n == 0:
			st = plain
		case n == 1:
			st.Bold = true
		case n == 2:
			st.Dim = true
		case n == 3:
			st.Italic = true
		case n == 4:
			st.Underline = true
		case n == 7:
			st.Reverse = true
		case n == 22:
			st.Bold, st.Dim = false, false
		case n >= 30 && n <= 37:
			st.FG = cell.Color(n - 30 + 1)
		case n >= 90 && n <= 97:
			st.FG = cell.Color(n - 90 + 9)
		case n == 39:
			st.FG = cell.Default
		case n >= 40 && n <= 47:
			st.BG = cell.Color(n - 40 + 1)
		case n == 49:
			st.BG = cell.Default
		case (n == 38 || n == 48) && i+2 < len(ns) && ns[i+1] == 5:
			c := cell.Indexed(uint8(ns[i+2]))
			if n == 38 {
				st.FG = c
			} else {
				st.BG = c
			}
			i += 2
		case (n == 38 || n == 48) && i+4 < len(ns) && ns[i+1] == 2:
			i += 4 // more colours than there are here: as the terminal writes by itself
		}
	}
	return st
}
