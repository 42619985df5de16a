package transcript

import (
	"errors"
	"strconv"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/transcript/history"
)

// compacted records that a new history takes the place of the old one: a
// boundary with no line before it, the messages that are new, and the names
// of those that are kept, whose lines stand further up.
func (c *chain) compacted(at time.Time, b agent.Compacted) error {
	if b.Err != "" || b.History == nil {
		return nil
	}
	err := c.flush()
	from, to := c.keeps(b.History)
	before, kept := b.History[:from], c.active[:0:0]
	var uuids []string
	for _, m := range b.History[from:to] {
		e := c.active[c.find(m)]
		kept = append(kept, e)
		uuids = append(uuids, e.lines...)
	}

	leaf := c.parent
	c.parent, c.active = "", nil
	boundary := c.w.o.NewID()
	c.parent = boundary
	var lines []line
	for i, m := range before {
		lines = append(lines, c.copy(at, m, i == 0)...)
	}
	anchor := c.parent
	c.active = append(c.active, kept...)
	for _, m := range b.History[to:] {
		lines = append(lines, c.copy(at, m, false)...)
	}
	after := c.parent

	c.parent = ""
	head := c.line("system", boundary, at, boundaryFields(b, leaf, anchor, uuids)...)
	c.parent = after
	return errors.Join(err, c.put(append([]line{head}, lines...)...))
}

func boundaryFields(b agent.Compacted, leaf, anchor string, uuids []string) []field {
	meta := append([]byte(nil), `{"trigger":`...)
	meta = agent.AppendString(meta, b.Trigger)
	for _, n := range []struct {
		key string
		n   int64
	}{{"preTokens", int64(b.Pre)}, {"postTokens", int64(b.Post)}, {"durationMs", b.Took.Milliseconds()}} {
		meta = append(meta, `,"`+n.key+`":`...)
		meta = strconv.AppendInt(meta, n.n, 10)
	}
	if len(uuids) > 0 {
		// compat: the SDK's declarations name both forms; readers use the
		// list where they know it.
		meta = append(meta, `,"preservedSegment":{"headUuid":`...)
		meta = agent.AppendString(meta, uuids[0])
		meta = append(meta, `,"anchorUuid":`...)
		meta = agent.AppendString(meta, anchor)
		meta = append(meta, `,"tailUuid":`...)
		meta = agent.AppendString(meta, uuids[len(uuids)-1])
		meta = append(meta, `},"preservedMessages":{"anchorUuid":`...)
		meta = agent.AppendString(meta, anchor)
		meta = append(meta, `,"uuids":[`...)
		for i, u := range uuids {
			if i > 0 {
				meta = append(meta, ',')
			}
			meta = agent.AppendString(meta, u)
		}
		meta = append(meta, "]}"...)
	}
	meta = append(meta, '}')
	own := []field{str("subtype", "compact_boundary"), str("content", "The conversation was shortened here."),
		raw("isMeta", "false"), str("level", "info"), {"compactMetadata", meta}}
	if leaf != "" {
		own = append(own, str("logicalParentUuid", leaf))
	}
	return own
}

// keeps returns the part of h that is taken over unchanged: the first run of
// messages which are in the history now, in the same order.
func (c *chain) keeps(h []agent.Message) (from, to int) {
	for from = range h {
		i := c.find(h[from])
		if i < 0 {
			continue
		}
		for to = from + 1; to < len(h) && c.find(h[to]) == i+to-from; to++ {
		}
		return from, to
	}
	return len(h), len(h)
}

// find returns the place of m in the history, or -1.
func (c *chain) find(m agent.Message) int {
	for i := len(c.active) - 1; i >= 0; i-- {
		if e := c.active[i]; e.id == m.UUID && e.role == m.Role {
			if e.sum == c.sum(0, m.Blocks...) {
				return i
			}
			return -1
		}
	}
	return -1
}

// copy lays out a message of a history that was put together anew. Its lines
// have uuids of their own where others hold the same message already. What
// the answers in it took was counted when they came.
func (c *chain) copy(at time.Time, m agent.Message, summary bool) []line {
	var lines []line
	var ids []string
	if m.Role == agent.Assistant {
		for _, b := range m.Blocks {
			l := c.line("assistant", c.w.o.NewID(), at).respond(assistantMessage(m.ID, history.Synthetic, []agent.Block{b}))
			l.pre, l.response = appendTail(l.pre, "", agent.Usage{}), false
			lines, ids = append(lines, l), append(ids, l.uuid)
		}
		c.push(m, ids)
		return lines
	}
	said := agent.Said{Message: m}
	said.Message.UUID = c.w.o.NewID()
	var extra []field
	if summary {
		extra = summaryFields()
	}
	lines, ids = c.userLines(at, said, extra...)
	c.push(m, ids)
	return lines
}

// rewound goes back: the lines that follow hang on the message that is now
// the last.
func (c *chain) rewound(at time.Time, b agent.Rewound) error {
	return c.replaced(at, b.History, "The conversation went back to this point.", raw("cinchRewound", "true"))
}

// mended records a history that was put right: the lines that follow hang on
// the last message that stayed as it was, and those behind it are written as
// they are now. Of a result that stands in the file twice, the newer counts.
func (c *chain) mended(at time.Time, b agent.Mended) error {
	return c.replaced(at, b.History, "What followed was taken out of the conversation.", raw("cinchMended", "true"))
}

// replaced makes h the history. What it has beyond the old one is written. If
// that is nothing a line that says text does it: it hangs on the new end, and
// so makes it the end for readers, even if nothing is ever said after it.
func (c *chain) replaced(at time.Time, h []agent.Message, text string, mark field) error {
	err := c.flush()
	n := 0
	for n < len(h) && n < len(c.active) && c.find(h[n]) == n {
		n++
	}
	if n == len(h) && n == len(c.active) {
		return err // nothing that a reader would see
	}
	c.active = c.active[:n:n]
	c.parent = ""
	if n > 0 {
		c.parent = c.active[n-1].leaf
	}
	var lines []line
	for _, m := range h[n:] {
		lines = append(lines, c.copy(at, m, false)...)
	}
	if len(lines) == 0 {
		lines = append(lines, c.line("system", c.w.o.NewID(), at, str("subtype", "informational"),
			str("content", text), raw("isMeta", "false"), str("level", "info"), mark))
	}
	return errors.Join(err, c.put(lines...))
}
