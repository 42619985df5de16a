package window

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Text is the report as a person reads it.
func (r Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d of %d tokens (%d%%)\n", r.Model, r.Total, r.RawMax, r.Percentage)
	for _, c := range r.Categories {
		fmt.Fprintf(&b, "%-28s %9d%s\n", c.Name, c.Tokens, share(c.Tokens, r.RawMax))
	}
	r.messagesText(&b)
	for _, f := range r.MemoryFiles {
		fmt.Fprintf(&b, "  %s: %d\n", f.Path, f.Tokens)
	}
	r.cacheText(&b)
	r.roomText(&b)
	return strings.TrimRight(b.String(), "\n")
}

func share(n, of int) string {
	if of <= 0 {
		return ""
	}
	return fmt.Sprintf(" %5.1f%%", 100*float64(n)/float64(of))
}

// shown is how many items of a list a person is shown.
const shown = 5

// messagesText says what the messages are made of.
func (r Report) messagesText(b *strings.Builder) {
	m := r.Messages
	var parts []string
	for _, p := range []struct {
		name string
		n    int
	}{{"prompts", m.User}, {"answers", m.Assistant}, {"calls", m.Calls}, {"results", m.Results}, {"notes and media", m.Attachments}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", p.name, p.n))
		}
	}
	if parts != nil {
		fmt.Fprintf(b, "In the messages: %s\n", strings.Join(parts, ", "))
	}
	for i, t := range m.ByTool {
		if i == shown {
			fmt.Fprintf(b, "  and %d more tools\n", len(m.ByTool)-shown)
			break
		}
		fmt.Fprintf(b, "  %s: %d, of which results %d\n", t.Name, t.Calls+t.Results, t.Results)
	}
}

// cacheText says what the upstream has in its cache, and what became of the
// cache at the newest request.
func (r Report) cacheText(b *strings.Builder) {
	if r.Warm > 0 {
		fmt.Fprintf(b, "Cache: warm, %d tokens\n", r.Warm)
	} else {
		b.WriteString("Cache: cold\n")
	}
	c := r.Cache
	if c == nil || c.Prompt == 0 {
		return
	}
	fmt.Fprintf(b, "  the newest request: %s, %d of %d tokens read, %d written\n", c.Verdict, c.Read, c.Prompt, c.Written)
	if c.Break != nil {
		fmt.Fprintf(b, "  it broke in %s\n", c.Break)
	}
}

// roomText says when room is made, and what goes first.
func (r Report) roomText(b *strings.Builder) {
	switch {
	case !r.Auto:
		b.WriteString("Room is made only when asked for: automatic compaction is off\n")
	case r.Threshold > 0:
		fmt.Fprintf(b, "Room is made at %d tokens", r.Threshold)
		if left := r.Threshold - r.Total; left > 0 {
			fmt.Fprintf(b, ", %d from here", left)
		}
		b.WriteString("\n")
	}
	if len(r.Next) == 0 {
		return
	}
	type group struct {
		what      string
		n, tokens int
	}
	var groups []*group
	total := 0
	for _, c := range r.Next {
		total += c.Tokens
		what := c.Stage + ": " + c.What
		i := slices.IndexFunc(groups, func(g *group) bool { return g.what == what })
		if i < 0 {
			groups, i = append(groups, &group{what: what}), len(groups)
		}
		groups[i].n++
		groups[i].tokens += c.Tokens
	}
	slices.SortStableFunc(groups, func(x, y *group) int { return cmp.Compare(y.tokens, x.tokens) })
	fmt.Fprintf(b, "What would go first: %d things, %d tokens\n", len(r.Next), total)
	for i, g := range groups {
		if i == shown {
			fmt.Fprintf(b, "  and %d more kinds\n", len(groups)-shown)
			break
		}
		times := ""
		if g.n > 1 {
			times = fmt.Sprintf(" (%d times)", g.n)
		}
		fmt.Fprintf(b, "  %s%s, %d tokens\n", g.what, times, g.tokens)
	}
}
