package tui

import (
	"context"
	"sort"
	"strings"
	"unicode"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/ui/tui/cell"
)

const maxOffers = 8

// A completion is what a word of the draft could become.
type completion struct {
	offers []offer
	cursor int
	from   int    // where the word begins, in bytes
	asked  string // the query that is on its way
	closed string // the word for which it was dismissed
}

type offer struct{ label, about, insert string }

// word is the word before the cursor that can be completed: a command at the
// beginning of the draft, or @ and a path.
func (t *tui) word() (from int, w string) {
	s := t.ed.Text()[:t.ed.At()]
	if strings.HasPrefix(s, "/") && !strings.ContainsAny(s, " \n") {
		return 0, s
	}
	from = strings.LastIndexFunc(s, unicode.IsSpace) + 1
	if w = s[from:]; strings.HasPrefix(w, "@") {
		return from, w
	}
	return 0, ""
}

// complete looks for what the word before the cursor could become.
func (t *tui) complete(ctx context.Context) {
	c := &t.comp
	from, w := t.word()
	if w == "" || w == c.closed {
		*c = completion{closed: c.closed}
		return
	}
	if from != c.from {
		c.offers, c.cursor = nil, 0
	}
	c.from, c.closed = from, ""
	if w[0] == '/' {
		c.offers = commands(t.st.info.Commands, w[1:])
		c.cursor = min(c.cursor, max(0, len(c.offers)-1))
		return
	}
	if c.asked == w {
		return
	}
	c.asked = w
	t.query(ctx, "file_suggestions", map[string]any{"query": w[1:]}, func(r agent.Replied) {
		if _, now := t.word(); now != w || t.comp.closed == w {
			return
		}
		var in struct {
			Suggestions []struct {
				Path string `json:"path"`
			} `json:"suggestions"`
		}
		if r.Err != "" || unmarshal(r.Value, &in) != nil {
			return
		}
		t.comp.offers, t.comp.cursor = nil, 0
		for _, s := range in.Suggestions[:min(len(in.Suggestions), 15)] {
			t.comp.offers = append(t.comp.offers, offer{label: s.Path, insert: "@" + s.Path + " "})
		}
	})
}

// own are the commands of this front end.
var own = []agent.CommandInfo{
	{Name: "exit", Description: "Leave", Aliases: []string{"quit"}},
	{Name: "resume", Hint: "[session]", Description: "Go on with another session", Aliases: []string{"continue"}},
	{Name: "keys", Description: "List the keys", Aliases: []string{"keybindings"}},
}

// commands are those that begin with w, then those that hold its letters.
func commands(all []agent.CommandInfo, w string) []offer {
	type hit struct {
		offer
		score int
	}
	var hits []hit
	w = strings.ToLower(w)
	for _, c := range append(append([]agent.CommandInfo{}, all...), own...) {
		best := -1
		for i, n := range append([]string{c.Name}, c.Aliases...) {
			if s := fits(strings.ToLower(n), w); s >= 0 && (best < 0 || s+i < best) {
				best = s + i
			}
		}
		if best < 0 {
			continue
		}
		insert := "/" + c.Name
		if c.Hint != "" {
			insert += " "
		}
		hits = append(hits, hit{offer{strings.TrimSpace("/" + c.Name + " " + c.Hint), firstLine(c.Description), insert}, best})
	}
	sort.SliceStable(hits, func(i, j int) bool { return hits[i].score < hits[j].score })
	var out []offer
	for _, h := range hits {
		out = append(out, h.offer)
	}
	return out
}

// fits scores how well w stands for name: 0 is itself, -1 not at all.
func fits(name, w string) int {
	switch {
	case name == w:
		return 0
	case strings.HasPrefix(name, w):
		return 10
	case strings.Contains(name, w):
		return 100
	}
	i := 0
	for _, r := range name {
		if i < len(w) && strings.HasPrefix(w[i:], string(r)) {
			i += len(string(r))
		}
	}
	if i == len(w) {
		return 1000
	}
	return -1
}

func (c *completion) rows(l look) (rows []cell.Row) {
	from := max(0, min(c.cursor-maxOffers/2, len(c.offers)-maxOffers))
	wide := 0
	for i := from; i < min(len(c.offers), from+maxOffers); i++ {
		wide = max(wide, cell.Width(c.offers[i].label))
	}
	wide = min(wide, l.width/2)
	for i := from; i < min(len(c.offers), from+maxOffers); i++ {
		o := c.offers[i]
		mark, st := "  ", plain
		if i == c.cursor {
			mark, st = "❯ ", bold
		}
		line := cell.Line{{Text: mark, Style: accent}, {Text: o.label, Style: st}}
		if o.about != "" {
			line = append(line, cell.Span{Text: strings.Repeat(" ", max(2, wide+2-cell.Width(o.label))) + o.about, Style: dim})
		}
		rows = append(rows, line.Cut(l.width))
	}
	return rows
}

// completing acts on a key for the offers; it reports whether it was one.
func (t *tui) completing(k string) bool {
	c := &t.comp
	if len(c.offers) == 0 {
		return false
	}
	switch k {
	case "up", "ctrl+p":
		c.cursor = (c.cursor + len(c.offers) - 1) % len(c.offers)
	case "down", "ctrl+n":
		c.cursor = (c.cursor + 1) % len(c.offers)
	case "esc":
		_, w := t.word()
		*c = completion{closed: w}
	case "tab", "enter":
		o := c.offers[c.cursor]
		_, w := t.word()
		if k == "enter" && w[0] == '/' && (w == strings.TrimSpace(o.insert) || !strings.HasSuffix(o.insert, " ")) {
			t.ed.Replace(c.from, strings.TrimSpace(o.insert))
			*c = completion{}
			return false // and sent at once: it takes no arguments
		}
		t.ed.Replace(c.from, o.insert)
		*c = completion{}
	default:
		return false
	}
	return true
}
