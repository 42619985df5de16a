package transcript

import (
	"encoding/json"
	"errors"
	"hash/maphash"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/atomicfile"
	"github.com/seed-eb844fcb/cinch/internal/transcript/history"
)

// A chain is the conversation of the main thread or of one sub-agent: lines
// of which each names the one before it.
type chain struct {
	w     *Writer
	agent string
	out   out

	parent string // uuid of the last line
	prompt string // uuid of the prompt that is worked on

	// held are the lines since the first block of a response that is not
	// over; id is the response's, stop and usage what is known of its end.
	held  []line
	id    string
	stop  string
	usage agent.Usage

	active  []entry                 // the history, as lines
	uses    map[agent.CallID]string // line of each call without a result
	results map[agent.CallID]result // lines whose message is not said yet
	seed    maphash.Seed
}

// An entry is one message of the history and the lines that hold it.
type entry struct {
	id    string // the message's uuid
	role  agent.Role
	sum   uint64 // of its content
	lines []string
	leaf  string // the last of the lines in the file
}

// A result is the line that was written when a call finished.
type result struct {
	line  string
	block *agent.ToolResult
	sum   uint64
}

func newChain(w *Writer, id, path string) *chain {
	return &chain{w: w, agent: id, out: out{w: w, path: path}, seed: maphash.MakeSeed(),
		uses: map[agent.CallID]string{}, results: map[agent.CallID]result{}}
}

// resume continues the conversation that l holds. What Load had to put right
// at its end is queued, and so written before the first new line.
func (c *chain) resume(l *Loaded) {
	c.parent, c.active = l.leaf, slices.Clone(l.entries)
	for i := range c.active {
		c.active[i].sum = c.sum(0, l.History[i].Blocks...)
	}
	for id, line := range l.open {
		c.uses[id] = line
	}
	c.out.queue(l.drafts...)
	for _, r := range l.closed {
		m := c.resultLine(c.w.o.NewID(), time.Now(), r, detail(agent.Result{Blocks: r.Blocks, IsError: true}))
		c.out.queue(m.bytes("", agent.Usage{}))
		e := &c.active[len(c.active)-1]
		e.lines, e.leaf = append(slices.Clone(e.lines), m.uuid), m.uuid
	}
}

// pickUp continues the transcript of a sub-agent that was there before.
func (c *chain) pickUp() {
	if info, err := c.w.o.FS.Stat(c.out.path); err != nil || info.Size() == 0 {
		return
	}
	if l, err := load(c.out.path, TracePath(c.w.main.out.path), c.agent, LoadOptions{}); err == nil {
		c.resume(l)
	}
}

// sum continues s, the sum of a message's blocks so far, with bs. What blank
// texts say does not count: they are not sent.
func (c *chain) sum(s uint64, bs ...agent.Block) uint64 {
	for _, b := range bs {
		if t, ok := b.(*agent.Text); ok && strings.TrimSpace(t.Text) == "" {
			continue
		}
		s = s*31 + maphash.Bytes(c.seed, agent.AppendBlock(nil, b))
	}
	return s
}

// same reports whether b is what was written for the call already.
func (c *chain) same(r result, b *agent.ToolResult) bool {
	if r.block.IsError == b.IsError && r.block.Array == b.Array && len(r.block.Blocks) == len(b.Blocks) &&
		(len(b.Blocks) == 0 || &r.block.Blocks[0] == &b.Blocks[0]) {
		return true // the very blocks: no need to compare what is in them
	}
	return r.sum == c.sum(0, b)
}

// put writes lines. While a response is open they are held, and stand as
// drafts in the boundary record.
func (c *chain) put(lines ...line) error {
	if c.id == "" {
		for _, l := range lines {
			c.out.queue(l.bytes(c.stop, c.usage))
		}
		return c.out.flush()
	}
	c.held = append(c.held, lines...)
	for _, l := range lines {
		c.w.trace.queue(draft(c.agent, l.bytes(c.stop, c.usage)))
	}
	return c.w.trace.flush()
}

// flush ends the open response: its lines are written for good.
func (c *chain) flush() error {
	held := c.held
	c.held, c.id = nil, ""
	if len(held) == 0 {
		return nil
	}
	err := c.put(held...)
	c.stop, c.usage = "", agent.Usage{}
	return err
}

// said records a finished part of the conversation.
func (c *chain) said(at time.Time, s agent.Said) error {
	if s.Message.UUID == "" {
		s.Message.UUID = c.w.o.NewID()
	}
	switch {
	case s.Err != nil:
		return errors.Join(c.flush(), c.failure(at, s))
	case len(s.Message.Blocks) == 0:
		return nil
	case s.Message.Role == agent.Assistant:
		return c.answer(at, s)
	}
	err := c.flush()
	if c.agent == "" && !s.Message.Meta {
		if text := agent.TextOf(s.Message.Blocks); text != "" {
			c.w.prompt = strings.Join(strings.Fields(text), " ")
			c.prompt = s.Message.UUID
		}
	}
	lines, ids := c.userLines(at, s)
	c.push(s.Message, ids)
	return errors.Join(err, c.put(lines...))
}

// answer records blocks of a response, one line each.
func (c *chain) answer(at time.Time, s agent.Said) error {
	m := s.Message
	var err error
	if c.id != m.ID {
		err = c.flush()
	}
	c.id, c.usage = m.ID, s.Usage
	if s.Stop != "" {
		c.stop = s.Stop
	}
	var lines []line
	var ids []string
	for i, b := range m.Blocks {
		id := m.UUID
		if i < len(m.Blocks)-1 || c.has(id) {
			id = c.w.o.NewID()
		}
		own := []field{}
		if s.RequestID != "" {
			own = append(own, str("requestId", s.RequestID))
		}
		if s.Aborted {
			own = append(own, raw("aborted", "true"))
		}
		l := c.line("assistant", id, at, own...).respond(assistantMessage(m.ID, s.Model, []agent.Block{b}))
		if u, ok := b.(*agent.ToolUse); ok {
			c.uses[u.ID] = id
		}
		lines, ids = append(lines, l), append(ids, id)
	}
	c.push(m, ids)
	return errors.Join(err, c.put(lines...))
}

// has reports whether the newest message has a line id already: a response
// may give all its blocks one uuid.
func (c *chain) has(id string) bool {
	return len(c.active) > 0 && slices.Contains(c.active[len(c.active)-1].lines, id)
}

// push puts m at the end of the history. As in the history that is sent,
// neighbours of one role are one message.
func (c *chain) push(m agent.Message, ids []string) {
	if len(ids) == 0 {
		return
	}
	if n := len(c.active); n > 0 && c.active[n-1].role == m.Role {
		e := &c.active[n-1]
		e.id, e.sum, e.leaf = m.UUID, c.sum(e.sum, m.Blocks...), c.parent
		e.lines = append(e.lines, ids...)
		return
	}
	c.active = append(c.active, entry{m.UUID, m.Role, c.sum(0, m.Blocks...), ids, c.parent})
}

// responded closes a response with its final account.
func (c *chain) responded(b agent.Responded) error {
	if c.id == "" || b.MessageID != c.id {
		return nil
	}
	c.stop, c.usage = b.Stop, b.Usage
	return c.flush()
}

// userLines lays a user message out as lines: each result and each note has
// its own, the rest goes together, with extra members. Results that were written when their call
// finished are not written again. ids are the lines, in
// the order of the file, with those that were there before.
func (c *chain) userLines(at time.Time, s agent.Said, extra ...field) (lines []line, ids []string) {
	m := s.Message
	whole := false // m.UUID is in use
	name := func() string {
		if whole {
			return c.w.o.NewID()
		}
		whole = true
		return m.UUID
	}
	bare := !slices.ContainsFunc(m.Blocks, func(b agent.Block) bool { // has notes and results only
		_, isResult := b.(*agent.ToolResult)
		return !isResult && note(b) == nil
	})
	add := func(l line) { lines, ids = append(lines, l), append(ids, l.uuid) }
	// Notes in front of the prompt are written behind it: readers look for the
	// first prompt in the first bytes of the file.
	var own []agent.Block
	var early []*agent.Text
	plain := func() {
		if len(own) > 0 {
			f := append(c.userFields(s, own), extra...)
			if len(extra) == 0 && slices.ContainsFunc(own, isSummary) {
				f = append(f, summaryFields()...)
			}
			add(c.line("user", name(), at, f...))
			own = nil
			for _, t := range early {
				add(c.noteLine(c.w.o.NewID(), at, t, raw("cinchBefore", "true")))
			}
			early = nil
		}
	}
	var beside []field
	for _, b := range m.Blocks {
		if r, ok := b.(*agent.ToolResult); ok {
			plain()
			beside = []field{raw("renderedBesideToolResult", "true")}
			if known, ok := c.results[r.ID]; ok && c.same(known, r) {
				delete(c.results, r.ID)
				ids = append(ids, known.line)
				continue
			}
			add(c.resultLine(c.w.o.NewID(), at, r, nil))
			continue
		}
		switch t := note(b); {
		case t == nil:
			own = append(own, b)
		case bare:
			add(c.noteLine(name(), at, t, beside...))
		case len(ids) == 0 && len(own) == 0:
			early = append(early, t)
		default:
			plain()
			add(c.noteLine(c.w.o.NewID(), at, t, beside...))
		}
	}
	plain()
	return lines, ids
}

// note returns b if it is a note of the program. A summary is none here: it
// has a form of its own.
func note(b agent.Block) *agent.Text {
	if t, ok := b.(*agent.Text); ok && t.Note != "" && len(t.Citations) == 0 && !isSummary(b) {
		return t
	}
	return nil
}

func isSummary(b agent.Block) bool {
	t, ok := b.(*agent.Text)
	return ok && t.Note == history.Summary
}

// summaryFields mark a user line that sums up what came before.
func summaryFields() []field {
	return []field{raw("isVisibleInTranscriptOnly", "true"), raw("isCompactSummary", "true")}
}

// noteLine records a note as the reference records what it adds: rendered, so
// that the same bytes are sent after a resume.
func (c *chain) noteLine(id string, at time.Time, t *agent.Text, where ...field) line {
	b := append([]byte(nil), `[{"content":`...)
	b = append(agent.AppendString(b, t.Text), `}]`...)
	own := []field{
		{"attachment", append(agent.AppendString([]byte(`{"type":`), t.Note), '}')},
		{"rendered", b}, str("renderedRole", "user"),
	}
	return c.line("attachment", id, at, append(own, where...)...)
}

func (c *chain) userFields(s agent.Said, bs []agent.Block) []field {
	var own []field
	if c.prompt != "" {
		own = append(own, str("promptId", c.prompt))
	}
	own = append(own, field{"message", userMessage(bs)})
	if s.Message.Meta || s.Hidden {
		own = append(own, raw("isMeta", "true"))
	} else if c.w.mode != "" {
		own = append(own, str("permissionMode", string(c.w.mode)))
	}
	if o := s.Message.Origin; o != "" {
		own = append(own, field{"origin", append(agent.AppendString([]byte(`{"kind":`), o), '}')})
	}
	return own
}

// resultLine records the outcome of a call under its tool_use.
func (c *chain) resultLine(id string, at time.Time, r *agent.ToolResult, detail []byte) line {
	var own []field
	if c.prompt != "" {
		own = append(own, str("promptId", c.prompt))
	}
	own = append(own, field{"message", userMessage([]agent.Block{r})})
	if detail != nil {
		own = append(own, field{"toolUseResult", detail})
	}
	if use, ok := c.uses[r.ID]; ok {
		own = append(own, str("sourceToolAssistantUUID", use))
		delete(c.uses, r.ID)
	}
	return c.line("user", id, at, own...)
}

// finished records the result of a call as soon as there is one.
func (c *chain) finished(at time.Time, f agent.Finished) error {
	if _, ok := c.uses[f.Call.ID]; !ok {
		return nil // its block was never said, or it has a result: the message will tell
	}
	r := &agent.ToolResult{ID: f.Call.ID, Blocks: f.Result.Blocks, Array: f.Result.Array, IsError: f.Result.IsError}
	l := c.resultLine(c.w.o.NewID(), at, r, detail(f.Result))
	c.results[r.ID] = result{l.uuid, r, c.sum(0, r)}
	return c.put(l)
}

// failure records a message that stands in place of an answer.
func (c *chain) failure(at time.Time, s agent.Said) error {
	own := []field{raw("isApiErrorMessage", "true"), str("error", s.Err.Kind)}
	if s.Err.Status != 0 {
		own = append(own, raw("apiErrorStatus", strconv.Itoa(s.Err.Status)))
	}
	if s.RequestID != "" {
		own = append(own, str("requestId", s.RequestID))
	}
	model := s.Model
	if model == "" {
		model = history.Synthetic
	}
	bs := s.Message.Blocks
	if len(bs) == 0 {
		bs = []agent.Block{&agent.Text{Text: s.Err.Text}}
	}
	l := c.line("assistant", s.Message.UUID, at, own...).respond(assistantMessage(s.Message.ID, model, bs))
	l.pre, l.response = appendTail(l.pre, "stop_sequence", agent.Usage{}), false
	return c.put(l)
}

// system records a line for the person.
func (c *chain) system(at time.Time, subtype, level, text string) error {
	return c.put(c.line("system", c.w.o.NewID(), at, str("subtype", subtype), str("content", text), raw("isMeta", "false"), str("level", level)))
}

// writeMeta writes what is known of a sub-agent.
func (w *Writer) writeMeta(t agent.Task) error {
	if !w.live {
		return nil
	}
	meta := struct {
		AgentType   string       `json:"agentType"`
		Description string       `json:"description,omitempty"`
		ToolUseID   agent.CallID `json:"toolUseId,omitempty"`
		Depth       int          `json:"spawnDepth,omitempty"`
	}{t.Agent, t.Description, t.Call, t.Depth}
	data, err := json.Marshal(meta)
	if err != nil {
		return err
	}
	path := strings.TrimSuffix(AgentPath(w.main.out.path, t.ID), ext) + ".meta.json"
	if err := w.o.FS.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Writer{FS: w.o.FS}.WriteFile(path, append(data, '\n'), os.FileMode(0o600))
}
