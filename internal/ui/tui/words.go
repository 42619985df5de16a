package tui

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// rounded tells a time as exactly as a person cares.
func rounded(d time.Duration) string {
	switch {
	case d >= time.Hour:
		return fmt.Sprintf("%dh %02dm", int(d.Hours()), int(d.Minutes())%60)
	case d >= time.Minute:
		return fmt.Sprintf("%dm %02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d >= 10*time.Second:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d >= time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return fmt.Sprintf("%dms", d.Milliseconds())
}

// seconds tells a time that goes on: it changes once a second.
func seconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%ds", int(max(d, 0).Seconds()))
	}
	return rounded(d)
}

// tokens tells a number of tokens.
func tokens(n int) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 10_000:
		return fmt.Sprintf("%dk", n/1000)
	case n >= 1000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprint(n)
}

func size(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f kB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(s)
}

func lastLine(s string) string {
	s = strings.TrimRight(s, "\r\n \t")
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// maxOutput is how much of a result is kept to be looked at.
const maxOutput = 64 << 10

// clipText keeps the head and the tail of s.
func clipText(s string) string {
	if len(s) <= maxOutput {
		return s
	}
	cut := s[:maxOutput/2]
	cut = cut[:strings.LastIndexByte(cut, '\n')+1]
	tail := s[len(s)-maxOutput/2:]
	tail = tail[strings.IndexByte(tail, '\n')+1:]
	return strings.Clone(cut) + fmt.Sprintf("… %s left out here …\n", size(int64(len(s)-len(cut)-len(tail)))) + strings.Clone(tail)
}

// resultText is what a person sees of a result.
func resultText(bs []agent.Block) string {
	var parts []string
	for _, b := range bs {
		switch b := b.(type) {
		case *agent.Text:
			if b.Note == "" && b.Text != "" {
				parts = append(parts, b.Text)
			}
		case *agent.Image:
			parts = append(parts, "[image]")
		case *agent.Document:
			parts = append(parts, "[document]")
		}
	}
	return strings.Join(parts, "\n")
}

// outputOf is what a person sees of the result of a tool. What follows a
// sub-agent's report is for the model.
func outputOf(tool string, bs []agent.Block) string {
	if tool == "Agent" && len(bs) > 0 {
		bs = bs[:1]
	}
	return resultText(bs)
}

// interruptedText reports whether a result is that of a call which an
// interrupt met.
func interruptedText(s string) bool {
	return strings.HasPrefix(s, "The user interrupted") || strings.HasPrefix(s, "The session was stopped") || strings.Contains(s, "\nCommand was interrupted; ")
}

func taskEnd(t agent.Task) string {
	what := t.Description
	if what == "" {
		what = t.Command
	}
	s := firstLine(what) + " in the background: " + t.Status
	if t.Err != "" {
		s += ", " + firstLine(t.Err)
	}
	return s
}

// place is a directory as one calls it: its name, and that of the one it is in.
func place(dir string) string {
	return filepath.Join(filepath.Base(filepath.Dir(dir)), filepath.Base(dir))
}
