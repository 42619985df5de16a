package compact

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// A place is where a block stands: block J of message I, or block K of the
// tool result there if K >= 0.
type place struct{ I, J, K int }

// block returns what stands at p.
func (p place) block(h []agent.Message) agent.Block {
	b := h[p.I].Blocks[p.J]
	if p.K >= 0 {
		return b.(*agent.ToolResult).Blocks[p.K]
	}
	return b
}

// put replaces what stands at p. b nil takes it out; a result then keeps its
// call paired with whatever else it holds.
func (e *editor) put(p place, b agent.Block, c Cut) {
	if p.K < 0 {
		e.replace(p.I, p.J, b, c)
		return
	}
	r := e.history()[p.I].Blocks[p.J].(*agent.ToolResult)
	n := &agent.ToolResult{ID: r.ID, Blocks: slices.Clone(r.Blocks), Array: r.Array, IsError: r.IsError}
	if b != nil {
		n.Blocks[p.K] = b
	} else {
		n.Blocks = slices.Delete(n.Blocks, p.K, p.K+1)
	}
	c.Call = r.ID
	e.replace(p.I, p.J, n, c)
}

// media returns the places of images and documents, oldest first.
func media(h []agent.Message) []place {
	var ps []place
	is := func(b agent.Block) bool {
		switch b := b.(type) {
		case *agent.Image:
			return true
		case *agent.Document:
			return b.MediaType != "text/plain"
		}
		return false
	}
	for i, m := range h {
		for j, b := range m.Blocks {
			if is(b) {
				ps = append(ps, place{i, j, -1})
			}
			if r, ok := b.(*agent.ToolResult); ok {
				for k, b := range r.Blocks {
					if is(b) {
						ps = append(ps, place{i, j, k})
					}
				}
			}
		}
	}
	return ps
}

// Media replaces images and documents by stubs, oldest first, until the
// request has at most limit.Bytes, limit.Media and limit.Pages. If it must
// change anything it goes on to four fifths of what was exceeded, so that the
// next picture does not break the prefix again.
func Media(s *Scale, h []agent.Message, limit Size) ([]agent.Message, []Cut) {
	total := s.History(h)
	var over []string
	goal := Size{Bytes: total.Bytes, Media: total.Media, Pages: total.Pages}
	check := func(n, max int, goal *int, what string) {
		if n > max {
			*goal = max / 5 * 4
			over = append(over, fmt.Sprintf("%s (%s of %s)", what, count(n), count(max)))
		}
	}
	check(total.Bytes, limit.Bytes, &goal.Bytes, "bytes")
	check(total.Media, limit.Media, &goal.Media, "images and documents")
	check(total.Pages, limit.Pages, &goal.Pages, "PDF pages")
	if over == nil {
		return h, nil
	}
	e := edit("media", s, h)
	why := "the request has too many " + strings.Join(over, " and ")
	for _, p := range media(h) {
		if total.Bytes <= goal.Bytes && total.Media <= goal.Media && total.Pages <= goal.Pages {
			break
		}
		b := p.block(h)
		size := s.Block(b)
		e.put(p, mediaStub(b, size, "taken out to keep the request small. Load it again if you need it."), Cut{What: mediaName(b), Why: why})
		total.Bytes -= size.Bytes
		total.Media -= size.Media
		total.Pages -= size.Pages
	}
	return e.done()
}

func mediaName(b agent.Block) string {
	switch b := b.(type) {
	case *agent.Image:
		return "an image (" + strings.TrimSpace(b.MediaType+" "+b.URL) + ")"
	case *agent.Document:
		return strings.TrimSpace("a document "+b.Title) + " (" + b.MediaType + ")"
	}
	return "a block"
}

func mediaStub(b agent.Block, size Size, why string) *agent.Text {
	return stub(fmt.Sprintf("[%s of %s was %s]", mediaName(b), count(size.Bytes), why))
}

// count writes n with its unit where it is large.
func count(n int) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprint(n)
}

// Largest names the n largest blocks of h, for a message to a person.
func Largest(s *Scale, h []agent.Message, n int) string {
	type item struct {
		what string
		size int
	}
	var items []item
	for i, m := range h {
		for _, b := range m.Blocks {
			what := "a text"
			switch x := b.(type) {
			case *agent.Image, *agent.Document:
				what = mediaName(b)
			case *agent.ToolResult:
				what = "a tool result"
				if len(x.Blocks) > 0 && s.Block(x).Media > 0 {
					what = "a tool result with images or documents"
				}
			case *agent.ToolUse:
				what = "a call of " + x.Name
			}
			items = append(items, item{fmt.Sprintf("%s in message %d", what, i+1), s.Block(b).Bytes})
		}
	}
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(b.size, a.size) })
	var out []string
	for _, x := range items[:min(n, len(items))] {
		out = append(out, fmt.Sprintf("%s (%s)", x.what, count(x.size)))
	}
	return strings.Join(out, ", ")
}
