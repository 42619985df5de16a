package history

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// A Mender makes a history that the Messages API accepts of what was read:
// the first message is the user's, roles alternate, nothing is empty, every
// call has exactly one result at the head of the next message, ids are unique.
type Mender struct {
	// Closing makes the result of a call that has none.
	Closing func(*agent.ToolUse) *agent.ToolResult
	// Deferred is a call that may stand open at the end.
	Deferred agent.CallID

	// Closed are the results that Mend had to make for the last calls of the
	// history. Open is the one that was left open.
	Closed []*agent.ToolResult
	Open   agent.CallID

	out  []Message
	seen map[agent.CallID]bool
	open []pending // calls of the last message, if that is the assistant's
}

// A pending call waits for its result; was is the id by which the result
// knows it.
type pending struct {
	use *agent.ToolUse
	was agent.CallID
}

// StartMissing stands in for the user messages that a history must begin with.
const StartMissing = "(What came before in this conversation is missing.)"

// Mend returns h put right, with the bytes to send. h is not used again.
func (d *Mender) Mend(h []Message) []Message {
	d.seen = map[agent.CallID]bool{}
	for _, m := range h {
		if m.Role == agent.Assistant {
			d.assistant(m)
		} else {
			d.user(m)
		}
	}
	if n := len(d.open); n > 0 && !(n == 1 && d.open[0].was == d.Deferred && d.Deferred != "") {
		d.user(Message{Message: agent.Message{Role: agent.User, Meta: true}, Leaf: d.out[len(d.out)-1].Leaf})
	}
	if len(d.open) > 0 {
		d.Open = d.open[0].use.ID
	}
	if n := len(d.out); n == 0 || d.out[n-1].Role != agent.User {
		d.Closed = nil
	}
	for i := range d.out {
		m := &d.out[i]
		m.Wire = agent.AppendBlocks(make([]byte, 0, room(m.Blocks)), m.Blocks)
	}
	return d.out
}

// room guesses how many bytes the encoding of bs takes.
func room(bs []agent.Block) int {
	n := 16
	for _, b := range bs {
		n += 256
		switch b := b.(type) {
		case *agent.Text:
			n += len(b.Text) + len(b.Text)/16
		case *agent.Thinking:
			n += len(b.Text) + len(b.Text)/16 + len(b.Signature)
		case *agent.ToolUse:
			n += len(b.Input)
		case *agent.ToolResult:
			n += room(b.Blocks)
		case *agent.Image:
			n += len(b.Data)
		case *agent.Document:
			n += len(b.Data)
		case *agent.Opaque:
			n += len(b.Raw)
		}
	}
	return n
}

func (d *Mender) last() *Message {
	if len(d.out) == 0 {
		return nil
	}
	return &d.out[len(d.out)-1]
}

func (d *Mender) assistant(m Message) {
	m.Blocks = slices.DeleteFunc(slices.Clone(m.Blocks), func(b agent.Block) bool { return !answers(b) })
	m.Blocks = served(m.Blocks)
	for n := len(m.Blocks); n > 0 && thinks(m.Blocks[n-1]); n-- {
		m.Blocks = m.Blocks[:n-1]
	}
	if len(m.Blocks) == 0 {
		return
	}
	switch l := d.last(); {
	case l == nil:
		d.out = append(d.out, Message{Message: agent.Message{Role: agent.User, Meta: true, Blocks: []agent.Block{&agent.Text{Text: StartMissing, Note: "reminder"}}}})
	case len(d.open) > 0:
		d.user(Message{Message: agent.Message{Role: agent.User, Meta: true}, Leaf: l.Leaf})
	}
	for i, b := range m.Blocks {
		if u, ok := b.(*agent.ToolUse); ok {
			was := u.ID
			u = d.unique(u)
			m.Blocks[i] = u
			d.open = append(d.open, pending{u, was})
		}
	}
	d.push(m)
}

// push puts m behind the history, joined to a neighbour of its role.
func (d *Mender) push(m Message) {
	l := d.last()
	if l == nil || l.Role != m.Role {
		d.out = append(d.out, m)
		return
	}
	l.Blocks = slices.Concat(l.Blocks, m.Blocks)
	l.Lines = slices.Concat(l.Lines, m.Lines)
	l.ID, l.UUID, l.Leaf = m.ID, m.UUID, m.Leaf
	l.Meta = l.Meta && m.Meta
	if l.Origin == "" {
		l.Origin = m.Origin
	}
}

func (d *Mender) user(m Message) {
	answered := map[agent.CallID][]*agent.ToolResult{}
	var rest []agent.Block
	for _, b := range m.Blocks {
		if r, ok := b.(*agent.ToolResult); ok {
			answered[r.ID] = append(answered[r.ID], r)
		} else if says(b) {
			rest = append(rest, b)
		}
	}
	var bs []agent.Block
	d.Closed = nil
	for i, p := range d.open {
		r := take(answered, p.was, !slices.ContainsFunc(d.open[i+1:], func(q pending) bool { return q.was == p.was }))
		if r == nil {
			r = d.Closing(&agent.ToolUse{ID: p.was, Name: p.use.Name, Input: p.use.Input})
			d.Closed = append(d.Closed, r)
		}
		if r.ID != p.use.ID {
			c := *r
			c.ID = p.use.ID
			r = &c
		}
		bs = append(bs, tidy(r))
	}
	d.open = nil
	m.Blocks = append(bs, rest...)
	if len(m.Blocks) > 0 {
		d.push(m)
	}
}

// take returns the result of a call: the next one of its id, and for the last
// call of that id the newest, which was written because it differs.
func take(from map[agent.CallID][]*agent.ToolResult, id agent.CallID, last bool) *agent.ToolResult {
	rs := from[id]
	if len(rs) == 0 {
		return nil
	}
	if last {
		return rs[len(rs)-1]
	}
	from[id] = rs[1:]
	return rs[0]
}

// tidy returns r without what no upstream takes.
func tidy(r *agent.ToolResult) *agent.ToolResult {
	if !slices.ContainsFunc(r.Blocks, func(b agent.Block) bool { return r.Array && !fits(b) }) {
		return r
	}
	c := *r
	c.Blocks = slices.DeleteFunc(slices.Clone(r.Blocks), func(b agent.Block) bool { return !fits(b) })
	return &c
}

// fits reports whether b may stand in a result.
func fits(b agent.Block) bool {
	switch b := b.(type) {
	case *agent.Text:
		return strings.TrimSpace(b.Text) != ""
	case *agent.Image, *agent.Document, *agent.ToolReference, *agent.Opaque:
		return true
	}
	return false
}

// says reports whether b may stand in a user message.
func says(b agent.Block) bool {
	switch b := b.(type) {
	case *agent.Text:
		return strings.TrimSpace(b.Text) != ""
	case *agent.Image, *agent.Document:
		return true
	case *agent.Opaque:
		return b.Type != "server_tool_use" && !strings.HasSuffix(b.Type, "_tool_result") && !strings.Contains(b.Type, "thinking")
	}
	return false
}

// answers reports whether b may stand in an assistant message.
func answers(b agent.Block) bool {
	switch b := b.(type) {
	case *agent.Text:
		return strings.TrimSpace(b.Text) != ""
	case *agent.Thinking:
		return b.Signature != ""
	case *agent.Redacted:
		return b.Data != ""
	case *agent.ToolUse:
		return true
	case *agent.Opaque:
		return b.Type != "tool_result" && b.Type != "tool_use" && b.Type != "image" && b.Type != "document"
	}
	return false
}

func thinks(b agent.Block) bool {
	switch b.(type) {
	case *agent.Thinking, *agent.Redacted:
		return true
	}
	return false
}

// served leaves out calls that the upstream was to run itself and whose
// result was cut off, and results without their call.
func served(bs []agent.Block) []agent.Block {
	type ids struct {
		ID        string `json:"id"`
		ToolUseID string `json:"tool_use_id"`
	}
	of := func(b agent.Block) (i ids, call, result bool) {
		o, ok := b.(*agent.Opaque)
		if !ok {
			return i, false, false
		}
		_ = json.Unmarshal(o.Raw, &i) // no ids then, and so no partner
		return i, o.Type == "server_tool_use" || o.Type == "mcp_tool_use", strings.HasSuffix(o.Type, "_tool_result")
	}
	calls, results := map[string]bool{}, map[string]bool{}
	for _, b := range bs {
		switch i, call, result := of(b); {
		case call:
			calls[i.ID] = true
		case result && calls[i.ToolUseID]:
			results[i.ToolUseID] = true
		}
	}
	return slices.DeleteFunc(bs, func(b agent.Block) bool {
		i, call, result := of(b)
		return call && !results[i.ID] || result && !results[i.ToolUseID]
	})
}

// unique returns u with an id that no call before it has and that the API
// takes, and with an input that is an object.
func (d *Mender) unique(u *agent.ToolUse) *agent.ToolUse {
	id := agent.CallID(Safe(string(u.ID)))
	if id == "" {
		id = "call"
	}
	for base, n := id, 2; d.seen[id]; n++ {
		id = base + "_" + agent.CallID(strconv.Itoa(n))
	}
	d.seen[id] = true
	name := toolName(u.Name)
	if id == u.ID && name == u.Name && isObject(u.Input) {
		return u
	}
	c := *u
	c.ID, c.Name = id, name
	if !isObject(u.Input) {
		text := string(u.Input)
		c.Malformed = true
		c.Input = append(agent.AppendString([]byte(`{"__unparsedToolInput":{"raw":`), text), `,"len":`+strconv.Itoa(len(text))+`}}`...)
	}
	return &c
}

func isObject(raw json.RawMessage) bool {
	t := strings.TrimLeft(string(raw[:min(len(raw), 64)]), " \t\r\n")
	return strings.HasPrefix(t, "{") && json.Valid(raw)
}

// Safe makes of s a name of ASCII letters, digits, dashes and underscores, as
// the API wants ids and file systems want files.
func Safe(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, s)
}

// toolName makes a name that the API takes: ^[a-zA-Z0-9_-]{1,128}$.
func toolName(s string) string {
	if s = Safe(s); s == "" {
		return "unknown"
	}
	return s[:min(len(s), 128)]
}
