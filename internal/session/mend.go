package session

import (
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/loop"
)

const lost = "What became of this call is not known: the session ended before its result was recorded. It may have run. Look at what it would have changed before you repeat it."

// Mend returns h as an upstream takes it: roles alternate, it begins with a
// user message, every call has exactly one result in the message after it and
// every result a call, ids are unique, no message is blank or ends in
// thinking. A call without a result gets one that says so, but for the call
// open at the very end. Messages that need no change keep their bytes; the
// result shares them with h.
func Mend(h []agent.Message, open agent.CallID) []agent.Message {
	var joined []agent.Message
	for len(h) > 0 {
		n := 1 // the blocks of one response may come one by one
		for n < len(h) && h[n].Role == h[0].Role && h[n].ID == h[0].ID {
			n++
		}
		var part []agent.Message
		for _, m := range h[:n] {
			part = loop.Push(part, m)
		}
		for _, m := range part {
			if m.Role == agent.Assistant {
				m = untail(m)
			}
			joined = loop.Push(joined, m)
		}
		h = h[n:]
	}
	var out []agent.Message
	seen := map[agent.CallID]bool{}
	var owed []agent.CallID
	for i, m := range joined {
		if m.Role == agent.User {
			out = loop.Push(out, pay(m, owed))
			owed = nil
			continue
		}
		if len(out) == 0 {
			continue // nothing was asked
		}
		if len(owed) > 0 {
			out = loop.Push(out, pay(agent.Message{Role: agent.User, Meta: true}, owed))
		}
		owed = nil
		m = unique(m, seen, &owed)
		if i == len(joined)-1 && open != "" {
			owed = slices.DeleteFunc(owed, func(id agent.CallID) bool { return id == open })
		}
		out = loop.Push(out, m)
	}
	if len(owed) > 0 {
		out = loop.Push(out, pay(agent.Message{Role: agent.User, Meta: true}, owed))
	}
	return out
}

// untail drops thinking that nothing follows.
func untail(m agent.Message) agent.Message {
	n := len(m.Blocks)
	for n > 0 && idle(m.Blocks[n-1]) {
		n--
	}
	if n < len(m.Blocks) {
		m.Blocks, m.Wire = m.Blocks[:n:n], nil
	}
	return m
}

// idle reports whether b cannot be the end of what a model said.
func idle(b agent.Block) bool {
	switch b := b.(type) {
	case *agent.Thinking, *agent.Redacted:
		return true
	case *agent.Text:
		return strings.TrimSpace(b.Text) == ""
	}
	return false
}

// unique drops calls whose id was there before, and notes the others as owed.
func unique(m agent.Message, seen map[agent.CallID]bool, owed *[]agent.CallID) agent.Message {
	twice := false
	var blocks []agent.Block
	for _, b := range m.Blocks {
		if u, ok := b.(*agent.ToolUse); ok {
			if seen[u.ID] {
				twice = true
				continue
			}
			seen[u.ID] = true
			*owed = append(*owed, u.ID)
		}
		blocks = append(blocks, b)
	}
	if twice {
		m.Blocks, m.Wire = blocks, nil
	}
	return m
}

// pay makes m begin with exactly one result for each owed call, in order.
func pay(m agent.Message, owed []agent.CallID) agent.Message {
	results := map[agent.CallID]*agent.ToolResult{}
	var others []agent.Block
	ok, n := true, 0
	for i, b := range m.Blocks {
		r, is := b.(*agent.ToolResult)
		if !is {
			others = append(others, b)
			continue
		}
		if i != n || n >= len(owed) || owed[n] != r.ID {
			ok = false
		}
		n++
		if results[r.ID] == nil && slices.Contains(owed, r.ID) {
			results[r.ID] = r
		}
	}
	if ok && n == len(owed) {
		return m
	}
	blocks := make([]agent.Block, 0, len(owed)+len(others))
	for _, id := range owed {
		r := results[id]
		if r == nil {
			r = &agent.ToolResult{ID: id, IsError: true, Blocks: []agent.Block{&agent.Text{Text: lost}}}
		}
		blocks = append(blocks, r)
	}
	m.Blocks, m.Wire = append(blocks, others...), nil
	return m
}
