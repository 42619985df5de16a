package compact

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Told says in a line what the stages took out and why, the largest first; ""
// if nothing was.
func (o Outcome) Told() string {
	type group struct {
		what, why string
		n, tokens int
	}
	var groups []*group
	total := 0
	for _, c := range o.Cuts {
		total += c.Tokens
		what := c.What
		if strings.Contains(what, " bytes from the middle of ") { // differs by their number only
			_, rest, _ := strings.Cut(what, " bytes from ")
			what = rest
		}
		i := slices.IndexFunc(groups, func(g *group) bool { return g.what == what && g.why == c.Why })
		if i < 0 {
			groups, i = append(groups, &group{what: what, why: c.Why}), len(groups)
		}
		groups[i].n++
		groups[i].tokens += c.Tokens
	}
	if groups == nil {
		return ""
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return cmp.Compare(b.tokens, a.tokens) })
	var parts []string
	for i, g := range groups {
		if i == 4 {
			parts = append(parts, fmt.Sprintf("and %d more kinds", len(groups)-i))
			break
		}
		times := ""
		if g.n > 1 {
			times = fmt.Sprintf(" (%d times)", g.n)
		}
		parts = append(parts, fmt.Sprintf("%s%s: %s", g.what, times, g.why))
	}
	return fmt.Sprintf("To make room about %d tokens were taken out of the conversation. %s.", max(total, 0), strings.Join(parts, "; "))
}
