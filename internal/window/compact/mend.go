package compact

import (
	"fmt"
	"slices"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// lost is the result of a call whose outcome nobody recorded.
const lost = "The outcome of this call is not known: the program ended, or was interrupted, before it was recorded. " +
	"If the call could have changed something, look before you repeat it."

// Mend returns a history that keeps the rules of the wire: the first message
// is a user's, each call has exactly one result in the turn that follows, no
// result is without its call, results stand first, and no id is used twice.
// It returns h itself if nothing had to change. Neighbours of one role count
// as one turn, as upstreams join them.
func Mend(h []agent.Message) ([]agent.Message, []Cut) {
	if sound(h) {
		return h, nil
	}
	var m mender
	m.ids = map[agent.CallID]bool{}
	for i := 0; i < len(h); {
		j := i + 1
		for j < len(h) && h[j].Role == h[i].Role {
			j++
		}
		if h[i].Role == agent.Assistant {
			m.answer(i, h[i:j])
		} else {
			m.question(i, h[i:j])
		}
		i = j
	}
	m.close(len(h))
	if len(m.out) > 0 && m.out[0].Role != agent.User {
		m.cut(0, m.out[0], "", "the missing beginning", "a conversation begins with a user message")
		m.out = slices.Insert(m.out, 0, agent.Message{Role: agent.User, Meta: true, Blocks: []agent.Block{stub("[The beginning of this conversation is missing.]")}})
	}
	return m.out, m.cuts
}

// sound reports whether Mend has nothing to do. It is the common case and
// allocates one map.
func sound(h []agent.Message) bool {
	if len(h) > 0 && h[0].Role != agent.User {
		return false
	}
	ids := make(map[agent.CallID]bool, len(h))
	open, head := 0, true // calls without a result; still at the results of this turn
	for i, m := range h {
		turn := i == 0 || h[i-1].Role != m.Role
		if turn && m.Role == agent.Assistant && open > 0 {
			return false
		}
		if turn {
			head = true
		}
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case *agent.ToolUse:
				if _, dup := ids[b.ID]; dup || m.Role != agent.Assistant {
					return false
				}
				ids[b.ID] = true
				open++
			case *agent.ToolResult:
				if !head || !ids[b.ID] || m.Role != agent.User {
					return false
				}
				ids[b.ID] = false
				open--
			default:
				if m.Role == agent.User {
					if open > 0 {
						return false
					}
					head = false
				}
			}
		}
	}
	return open == 0
}

type mender struct {
	out  []agent.Message
	cuts []Cut
	ids  map[agent.CallID]bool
	open []agent.CallID // calls of the newest answer
}

func (m *mender) cut(i int, msg agent.Message, id agent.CallID, what, why string) {
	m.cuts = append(m.cuts, Cut{Stage: "mend", Index: i, UUID: msg.UUID, Call: id, What: what, Why: why})
}

// answer takes a turn of the model.
func (m *mender) answer(at int, turn []agent.Message) {
	m.close(at)
	for i, msg := range turn {
		kept := slices.Clone(msg.Blocks)
		kept = slices.DeleteFunc(kept, func(b agent.Block) bool {
			switch b := b.(type) {
			case *agent.ToolUse:
				if m.ids[b.ID] {
					m.cut(at+i, msg, b.ID, "a second call with the id "+string(b.ID), "ids are unique")
					return true
				}
				m.ids[b.ID] = true
				m.open = append(m.open, b.ID)
			case *agent.ToolResult:
				m.cut(at+i, msg, b.ID, "a result in the model's own message", "results stand in user messages")
				return true
			}
			return false
		})
		m.keep(msg, kept)
	}
}

// question takes a user turn. It stays as it is if it is in order; otherwise
// it becomes one message with the results first.
func (m *mender) question(at int, turn []agent.Message) {
	var results, rest []agent.Block
	want := slices.Clone(m.open)
	ordered := true
	for i, msg := range turn {
		for _, b := range msg.Blocks {
			switch b := b.(type) {
			case *agent.ToolResult:
				k := slices.Index(want, b.ID)
				if k < 0 {
					m.cut(at+i, msg, b.ID, "a result without its call", "each result answers one call of the message before")
					ordered = false
					continue
				}
				want = slices.Delete(want, k, k+1)
				if len(rest) > 0 {
					m.cut(at+i, msg, b.ID, "a result behind other content", "results stand first")
					ordered = false
				}
				results = append(results, b)
			case *agent.ToolUse:
				m.cut(at+i, msg, b.ID, "a call in a user message", "calls stand in the model's messages")
				ordered = false
			default:
				rest = append(rest, b)
			}
		}
	}
	for _, id := range want {
		m.cut(at, turn[0], id, "no result for "+string(id), "each call has one result")
		results = append(results, &agent.ToolResult{ID: id, Blocks: []agent.Block{stub(lost)}, IsError: true})
	}
	m.open = nil
	if ordered && len(want) == 0 {
		m.out = append(m.out, turn...)
		return
	}
	m.keep(turn[0], append(results, rest...))
}

// keep appends msg with blocks, as it was if they are the same.
func (m *mender) keep(msg agent.Message, blocks []agent.Block) {
	if len(blocks) == 0 {
		return
	}
	if !slices.Equal(blocks, msg.Blocks) {
		msg.Blocks, msg.Wire = blocks, nil
	}
	m.out = append(m.out, msg)
}

// close answers the calls that are still open.
func (m *mender) close(at int) {
	if len(m.open) == 0 {
		return
	}
	msg := agent.Message{Role: agent.User, Meta: true}
	for _, id := range m.open {
		msg.Blocks = append(msg.Blocks, &agent.ToolResult{ID: id, Blocks: []agent.Block{stub(lost)}, IsError: true})
		m.cut(at, msg, id, fmt.Sprintf("no result for %s", id), "each call has one result")
	}
	m.out, m.open = append(m.out, msg), nil
}
