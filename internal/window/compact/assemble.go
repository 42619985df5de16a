package compact

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// A cutting is a history in two: what a summary replaces and what stays.
type cutting struct {
	head, tail []agent.Message
	// request is what the person asked for last, if it is not in tail.
	request string
}

// split divides h so that the newest exchange stays word for word: the last
// answer, the last step with its results, or the prompt that waits. room
// bounds its tokens; results that are too large are shortened, and what still
// does not fit goes into the head, but for the prompt.
func split(s *Scale, h []agent.Message, room int) cutting {
	at := len(h)
	for at > 0 && h[at-1].Role == agent.User {
		at--
	}
	for at > 0 && h[at-1].Role == agent.Assistant {
		at--
	}
	if at == 0 { // nothing stands before the newest exchange
		at = prompts(h)
	}
	c := cutting{head: h[:at], tail: h[at:]}
	if n := s.History(c.tail).Tokens; n > room {
		c.tail, _ = Budget(s, c.tail, max(room*2, 2000))
		c.tail, _ = Media(s, c.tail, Size{Bytes: room * 4, Media: 4, Pages: 10})
		if s.History(c.tail).Tokens > room*2 {
			at = prompts(h)
			c = cutting{head: h[:at], tail: h[at:]}
		}
	}
	if !slices.ContainsFunc(c.tail, spokenIn) {
		for _, m := range slices.Backward(c.head) {
			if spokenIn(m) {
				c.request = agent.TextOf(m.Blocks)
				break
			}
		}
	}
	return c
}

// prompts returns where the user messages begin that nobody has answered.
// Results stay with their calls, so a message that holds some is no start.
func prompts(h []agent.Message) int {
	at := len(h)
	for at > 0 && h[at-1].Role == agent.User && !hasResult(h[at-1]) {
		at--
	}
	if at == 0 && len(h) > 0 {
		return len(h) - 1
	}
	return at
}

// spokenIn reports whether a person said something in m.
func spokenIn(m agent.Message) bool {
	return m.Role == agent.User && !m.Meta && agent.TextOf(m.Blocks) != ""
}

// spoken reports whether there is something to summarise.
func spoken(h []agent.Message) bool {
	return slices.ContainsFunc(h, func(m agent.Message) bool { return m.Role == agent.Assistant || spokenIn(m) })
}

// assemble builds the history that stands in the place of h.
func (c *Compactor) assemble(ctx context.Context, h []agent.Message, plan cutting, summary string) []agent.Message {
	var r Restored
	if c.o.Restore != nil {
		r = c.o.Restore(ctx, h)
	}
	blocks := slices.Clone(r.Opening)
	blocks = append(blocks, c.summaryText(plan, summary))
	blocks = append(blocks, r.Behind...)
	return c.history(blocks, plan.tail)
}

// bare is assemble without anything put back.
func (c *Compactor) bare(plan cutting, summary string) []agent.Message {
	return c.history([]agent.Block{c.summaryText(plan, summary)}, plan.tail)
}

func (c *Compactor) history(blocks []agent.Block, tail []agent.Message) []agent.Message {
	first := agent.Message{UUID: c.o.UUID(), Role: agent.User, Meta: true, Blocks: blocks}
	first, _ = Clean(first, true)
	out := append([]agent.Message{first.Encode()}, tail...)
	out, _ = Mend(out)
	for i := range out {
		out[i] = out[i].Encode()
	}
	return out
}

// summaryText introduces the summary. What the person asked for last stands
// behind it word for word, as a summary may change its sense.
func (c *Compactor) summaryText(plan cutting, summary string) *agent.Text {
	var b strings.Builder
	b.WriteString("What came before in this conversation was replaced by this summary, which you wrote.\n\n")
	b.WriteString(strings.TrimSpace(summary))
	if plan.request != "" {
		const most = 16_000
		r := utf8Cut(plan.request, most)
		if len(r) < len(plan.request) {
			r += " […]"
		}
		b.WriteString("\n\nThe user's latest request, word for word:\n\n" + r)
	}
	switch {
	case c.o.Recall != "":
		fmt.Fprintf(&b, "\n\nThe full text of what came before can be searched with the tool %s. Use it when you need an exact detail.", c.o.Recall)
	case c.o.Transcript != "":
		fmt.Fprintf(&b, "\n\nThe full text of what came before is in %s, one JSON object a line. Search it when you need an exact detail.", c.o.Transcript)
	}
	if len(plan.tail) > 0 {
		b.WriteString("\n\nThe newest messages follow unchanged. Go on with the work from there, without asking about or mentioning this summary.")
	} else {
		b.WriteString("\n\nGo on with the work from there, without asking about or mentioning this summary.")
	}
	return &agent.Text{Text: b.String(), Note: "summary"}
}

// outline is a summary without a model: what the person said, which files
// were touched, which commands ran, what was said last. most bounds its tokens.
func outline(h []agent.Message, most int) string {
	most = max(most, 1000) * 4 // bytes
	var said, did []string
	files, commands := map[string]bool{}, map[string]bool{}
	last := ""
	for _, m := range h {
		if spokenIn(m) {
			said = append(said, utf8Cut(agent.TextOf(m.Blocks), 2000))
		}
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case *agent.ToolUse:
				if p := pathOf(b); p != "" {
					if k := b.Name + " " + p; !files[k] {
						files[k] = true
						did = append(did, k)
					}
				} else if k := b.Name + " " + utf8Cut(strings.Join(strings.Fields(string(b.Input)), " "), 200); !commands[k] {
					commands[k] = true
					did = append(did, k)
				}
			case *agent.Text:
				if m.Role == agent.Assistant && b.Note == "" {
					last = b.Text
				}
				if b.Note == "summary" {
					said = append(said, "(an earlier summary) "+utf8Cut(b.Text, most/4))
				}
			}
		}
	}
	var out strings.Builder
	out.WriteString("No model was at hand to write this summary, so it only lists what is known.\n")
	list := func(title string, items []string, room int) {
		if len(items) == 0 {
			return
		}
		from := len(items) // the newest ones that fit
		for n := 0; from > 0; from-- {
			if n += len(items[from-1]) + 3; n > room {
				break
			}
		}
		fmt.Fprintf(&out, "\n%s:\n", title)
		if from > 0 {
			fmt.Fprintf(&out, "(%d earlier ones are left out)\n", from)
		}
		for _, s := range items[from:] {
			out.WriteString("- " + s + "\n")
		}
	}
	list("What the user said", said, most/2)
	list("What was done", did, most/4)
	if last != "" {
		out.WriteString("\nWhat you said last:\n" + utf8Cut(last, most/8) + "\n")
	}
	return out.String()
}
