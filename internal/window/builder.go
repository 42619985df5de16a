// Package window builds what the model sees. It owns the layout of a request
// (tools, system text, messages), the stability of its prefix and the cache
// marks, the notes that open a conversation and those that follow a change,
// and the account of what fills the window. It does not know the network,
// settings or front ends: files come through memory.Options, everything else
// as values and functions.
package window

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/window/audit"
	"github.com/seed-eb844fcb/cinch/internal/window/compact"
	"github.com/seed-eb844fcb/cinch/internal/window/prompt"
)

// The parts of the context engine under one name, for those who may import
// this package only.
type (
	Compactor = compact.Compactor
	Outcome   = compact.Outcome
	Cut       = compact.Cut
	Limits    = compact.Limits
	Section   = prompt.Section
	Record    = audit.Record
	Break     = audit.Break
)

// ToolSearch is the name of the feature that deferred definitions rely on.
const ToolSearch = "tool-search"

// Options is what a Builder is made from.
type Options struct {
	Model string
	// Sections make the system text.
	Sections []prompt.Section
	// Recorded, if not nil, is the system text as an earlier run of the same
	// conversation sent it: it is used in place of Sections.
	Recorded json.RawMessage
	// Tools are the tools on offer. Names that start with mcp__ stand behind
	// the others; each part is sorted by name.
	Tools []agent.Spec
	// ToolSearch sends the definitions of Deferred tools only once they were
	// looked up. Without it all are sent.
	ToolSearch bool
	MaxTokens  int
	Thinking   agent.Thought
	Effort     string
	Extra      map[string]json.RawMessage
	Features   []string
	Purpose    string // "" is main
	Agent      string
	NoCache    bool
	TTL        string // how long the cache lives: "" (five minutes) or "1h"
	// Now is the clock of the audit. Nil: time.Now.
	Now func() time.Time
}

// A Builder makes the requests of one conversation. Its methods may be called
// concurrently.
type Builder struct {
	mu       sync.Mutex
	o        Options
	system   json.RawMessage
	tools    toolset
	seen     []entry // what was sent last, by position in the history
	marked   int     // length of the request sent last: its mark stood on the last message
	planned  []string
	chain    *audit.Chain
	problems []string
}

// An entry is a message of the history and what is sent for it.
type entry struct {
	blocks *agent.Block
	n      int
	wire   *byte
	out    agent.Message
	drop   bool // nothing of it can be sent
}

// New returns a Builder. It never fails: a tool without a usable schema gets
// an empty one, one without a usable name is left out; Problems tells.
func New(o Options) *Builder {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Purpose == "" {
		o.Purpose = "main"
	}
	b := &Builder{o: o, chain: audit.NewChain()}
	b.system = o.Recorded
	if b.system == nil {
		b.system = systemText(o.Sections, !o.NoCache, o.TTL)
	}
	b.retool(o.Tools)
	return b
}

// Request returns the request over h. Bytes that were sent before are sent
// again as they were; if h differs in a part that was sent, the audit tells.
// What an upstream would refuse (blank texts, calls without results) is
// mended on the way. The result shares the encoded bytes with h, so nobody
// may change either.
func (b *Builder) Request(h []agent.Message) *agent.Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	msgs := b.sendable(h)
	b.define(msgs)
	req := b.request(msgs)
	b.audit(msgs)
	if !b.o.NoCache {
		bridge(msgs, b.marked, b.system)
	}
	b.marked = len(msgs)
	return req
}

// Aside returns a request with the same prefix for another purpose
// ("compact", …), with last as its final user text. It is not part of the
// conversation and not audited.
func (b *Builder) Aside(h []agent.Message, purpose, last string) *agent.Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := b.seen
	msgs := b.sendable(h)
	b.seen = seen
	b.define(msgs)
	req := b.request(msgs)
	text := &agent.Text{Text: last}
	if n := len(msgs); n > 0 && msgs[n-1].Role == agent.User {
		m := msgs[n-1]
		m.Blocks = append(slices.Clip(m.Blocks), text)
		m.Wire = appendElement(m.Wire, agent.AppendBlock(nil, text))
		msgs[n-1] = m
	} else {
		msgs = append(msgs, agent.Message{Role: agent.User, Blocks: []agent.Block{text}}.Encode())
	}
	req.Messages, req.Purpose = msgs, purpose
	if len(msgs) > 1 {
		req.MarkBack = 1
	}
	return req
}

// Peek returns the request over h without its being sent: it is not audited,
// and the next Request does not build on it.
func (b *Builder) Peek(h []agent.Message) *agent.Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := b.seen
	msgs := b.sendable(h)
	b.seen = seen
	b.define(msgs)
	return b.request(msgs)
}

// System returns the system text as it is sent, to be recorded with the
// conversation and handed in as Recorded when it is resumed.
func (b *Builder) System() json.RawMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.system
}

// SetModel changes the model from the next request on.
func (b *Builder) SetModel(model string, maxTokens int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if model != b.o.Model {
		b.planned = append(b.planned, "model "+b.o.Model+" became "+model)
	}
	b.o.Model, b.o.MaxTokens = model, maxTokens
}

// SetThinking changes thinking and effort from the next request on.
func (b *Builder) SetThinking(t agent.Thought, effort string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t != b.o.Thinking || effort != b.o.Effort {
		b.planned = append(b.planned, "thinking or effort changed")
	}
	b.o.Thinking, b.o.Effort = t, effort
}

// SetExtra changes the further top-level keys from the next request on.
func (b *Builder) SetExtra(extra map[string]json.RawMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.o.Extra = extra
}

// Reset replaces system text and tools: at /clear, after a compaction, when
// the person changes the tools. Nil keeps what is there. reason says why the
// prefix changes.
func (b *Builder) Reset(reason string, sections []prompt.Section, tools []agent.Spec) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.planned = append(b.planned, reason)
	if sections != nil {
		b.system = systemText(sections, !b.o.NoCache, b.o.TTL)
	}
	if tools != nil {
		b.retool(tools)
	}
}

// Plan says that the next request may differ from what was sent, and why.
func (b *Builder) Plan(reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.planned = append(b.planned, reason)
}

// Without turns a feature off that the upstream refused: without ToolSearch
// all tools are sent in full from then on. It reports whether that changes
// the next request.
func (b *Builder) Without(feature string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.o.Features, feature)
	if i >= 0 {
		b.o.Features = slices.Delete(slices.Clone(b.o.Features), i, i+1)
	}
	if feature != ToolSearch || !b.o.ToolSearch {
		return i >= 0
	}
	b.o.ToolSearch = false
	b.seen = nil // references to tools become text
	b.planned = append(b.planned, "the upstream does not know tool search")
	b.retool(b.tools.all())
	return true
}

// Answered notes the usage of the answer to the newest request and returns
// what became of its cache.
func (b *Builder) Answered(u agent.Usage) audit.Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.chain.Answered(u)
}

// Records returns the audit of the requests so far.
func (b *Builder) Records() []audit.Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.chain.Records()
}

// Warm returns how many tokens the upstream should have cached now. A change
// of model, effort or tools makes them be paid for again: ask first if it is
// not 0.
func (b *Builder) Warm() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.chain.Warm(b.o.Now(), b.life())
}

// Problems tells which tools could not be offered as they are.
func (b *Builder) Problems() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.problems)
}

// Overhead estimates the tokens of system text and tools.
func (b *Builder) Overhead() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return compact.TokensOf(len(b.system)) + compact.TokensOf(len(b.tools.wire))
}

func (b *Builder) request(msgs []agent.Message) *agent.Request {
	return &agent.Request{
		Model: b.o.Model, MaxTokens: b.o.MaxTokens,
		System: b.system, Tools: b.tools.wire, Messages: msgs,
		Mark:     !b.o.NoCache,
		Thinking: b.o.Thinking, Effort: b.o.Effort,
		Extra: b.o.Extra, Features: b.features(),
		Purpose: b.o.Purpose, Agent: b.o.Agent,
	}
}

func (b *Builder) features() []string {
	if b.o.ToolSearch && b.tools.deferred() && !slices.Contains(b.o.Features, ToolSearch) {
		return append(slices.Clip(b.o.Features), ToolSearch)
	}
	return b.o.Features
}

// sendable returns what is sent for h, encoded. What was sent before is
// found again by identity, so the cost does not depend on its size.
func (b *Builder) sendable(h []agent.Message) []agent.Message {
	seen := make([]entry, len(h))
	msgs := make([]agent.Message, 0, len(h)+1)
	for i, m := range h {
		e := entry{blocks: unsafe.SliceData(m.Blocks), n: len(m.Blocks), wire: unsafe.SliceData(m.Wire)}
		if i < len(b.seen) && b.seen[i].blocks == e.blocks && b.seen[i].n == e.n && b.seen[i].wire == e.wire && b.seen[i].out.Role == m.Role {
			e = b.seen[i]
		} else {
			m, _ = compact.Clean(m, b.o.ToolSearch)
			e.out, e.drop = m.Encode(), len(m.Blocks) == 0
		}
		seen[i] = e
		if !e.drop {
			msgs = append(msgs, e.out)
		}
	}
	b.seen = seen
	msgs, _ = compact.Mend(msgs)
	for i := range msgs {
		msgs[i] = msgs[i].Encode()
	}
	return msgs
}

// audit hands the prefix to the chain.
func (b *Builder) audit(msgs []agent.Message) {
	segs := make([]audit.Segment, 0, len(msgs)+2)
	segs = append(segs, audit.Segment{Kind: audit.Tools, Bytes: b.tools.cached}, audit.Segment{Kind: audit.System, Bytes: b.system})
	for _, m := range msgs {
		segs = append(segs, audit.Segment{Kind: audit.Message, Role: string(m.Role), UUID: m.UUID, Bytes: m.Wire})
	}
	key := strings.Join([]string{"model", b.o.Model, "thinking", b.o.Thinking.Type, "effort", b.o.Effort}, " ")
	b.chain.Sent(audit.Sent{At: b.o.Now(), Key: key, Life: b.life(), Segments: segs, Planned: strings.Join(b.planned, "; ")})
	b.planned = nil
}

// life is how long an upstream keeps what is not used.
func (b *Builder) life() time.Duration {
	if b.o.TTL == "1h" {
		return time.Hour
	}
	return 5 * time.Minute
}

// lookback is how many blocks before a mark an upstream searches for an
// earlier entry.
const lookback = 20

// bridge marks the message that carried the last request's mark once more
// when so many blocks have come since (a wide fan of calls) that the upstream
// would not find its entry. System text and last message carry at most three
// of the four marks that are allowed.
func bridge(msgs []agent.Message, marked int, system json.RawMessage) {
	if marked < 1 || marked >= len(msgs) || strings.Count(string(system), `"cache_control":`) > 2 {
		return
	}
	blocks := 0
	for _, m := range msgs[marked:] {
		blocks += len(m.Blocks)
	}
	m := msgs[marked-1]
	if blocks < lookback-1 || len(m.Blocks) == 0 {
		return
	}
	switch m.Blocks[len(m.Blocks)-1].(type) {
	case *agent.Text, *agent.ToolResult, *agent.ToolUse, *agent.Image, *agent.Document:
	default:
		return // not every block may carry a mark
	}
	if w := m.Wire; len(w) > 2 && string(w[len(w)-2:]) == "}]" {
		const mark = `,"cache_control":{"type":"ephemeral"}}]`
		msgs[marked-1].Wire = append(append(make([]byte, 0, len(w)+len(mark)), w[:len(w)-2]...), mark...)
	}
}

// appendElement returns the JSON array wire with one more element.
func appendElement(wire json.RawMessage, element []byte) json.RawMessage {
	out := make([]byte, 0, len(wire)+len(element)+1)
	out = append(out, wire[:len(wire)-1]...)
	if len(out) > 1 {
		out = append(out, ',')
	}
	return append(append(out, element...), ']')
}

// systemText encodes the system prompt: one block up to each mark.
func systemText(sections []prompt.Section, marks bool, ttl string) json.RawMessage {
	var dst []byte
	var text strings.Builder
	left := 0 // marks to come; only the last two are set
	for _, x := range sections {
		if x.Mark {
			left++
		}
	}
	flush := func(mark bool) {
		if text.Len() == 0 {
			return
		}
		if dst == nil {
			dst = append(dst, '[')
		} else {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"type":"text","text":`...)
		dst = agent.AppendString(dst, text.String())
		text.Reset()
		if mark {
			mark = marks && left <= 2
			left--
		}
		switch {
		case mark && ttl == "1h":
			dst = append(dst, `,"cache_control":{"type":"ephemeral","ttl":"1h"}`...)
		case mark:
			dst = append(dst, `,"cache_control":{"type":"ephemeral"}`...)
		}
		dst = append(dst, '}')
	}
	for _, s := range sections {
		if strings.TrimSpace(s.Text) == "" {
			continue
		}
		if text.Len() > 0 {
			text.WriteString("\n\n")
		}
		text.WriteString(s.Text)
		if s.Mark {
			flush(true)
		}
	}
	flush(false)
	if dst == nil {
		return nil
	}
	return append(dst, ']')
}
