package model

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/jsonscan"
	"github.com/seed-eb844fcb/cinch/internal/net/model/caps"
	"github.com/seed-eb844fcb/cinch/internal/net/model/catalog"
)

// A plan is what one attempt asks for: the request after the model, the
// capability table and earlier refusals had their say.
type plan struct {
	spec     catalog.Spec
	max      int // max_tokens
	thinking agent.Thought
	effort   string
	betas    []string
	features []string // what is used of what may be refused
	extra    map[string]json.RawMessage
	whole    bool
	counting bool   // for the endpoint that counts tokens
	mark     string // the cache mark, "" for none
	userID   string
}

// maxWhole is the ceiling of max_tokens for answers in one piece, which the
// upstream would take too long to write otherwise.
const maxWhole = 64_000

// plan decides what to send. ceiling, if not 0, is a max_tokens learned from
// a refusal.
func (c *Client) plan(req *agent.Request, spec catalog.Spec, whole bool, ceiling int, skip []string) plan {
	p := plan{spec: spec, max: req.MaxTokens, whole: whole, extra: map[string]json.RawMessage{}}
	use := func(name string) bool {
		if !c.caps.Allows(name, spec.ID) || slices.Contains(skip, caps.ByName(name).Name) {
			return false
		}
		p.use(name)
		return true
	}
	if p.max <= 0 || spec.Known && p.max > spec.MaxTokens {
		p.max = spec.MaxTokens
	}
	if whole && p.max > maxWhole {
		p.max = maxWhole
	}
	if ceiling > 0 && p.max > ceiling {
		p.max = ceiling
	}
	c.planThinking(&p, req, use)
	for key, v := range req.Extra {
		p.extra[key] = v
	}
	if p.effort = spec.ClampEffort(req.Effort); p.effort != "" && !use("effort") {
		p.effort = ""
	}
	for _, name := range req.Features {
		use(name)
	}
	for _, beta := range c.o.Betas {
		use(beta)
	}
	if spec.Long {
		use("context-1m")
	}
	for _, f := range []struct{ key, name string }{
		{"context_management", "context-management"}, {"output_format", "structured-output"}, {"output_config", "output-config"},
	} {
		if _, have := p.extra[f.key]; have && !use(f.name) {
			delete(p.extra, f.key)
		}
	}
	if p.effort != "" && !use("output-config") {
		p.effort = ""
	}
	if c.caps.Allows("cache", spec.ID) {
		if req.Mark {
			p.mark = `{"type":"ephemeral"}`
			if c.o.MarkTTL == "1h" && use("cache-1h") {
				p.mark = `{"type":"ephemeral","ttl":"1h"}`
			}
		}
		p.use("cache")
	}
	if bytes.Contains(req.Tools, []byte(`"defer_loading"`)) {
		use("tool-search")
	}
	for _, name := range []string{"strict-tools", "eager-input"} {
		if bytes.Contains(req.Tools, []byte(`"`+caps.ByName(name).Fields+`"`)) {
			use(name)
		}
	}
	if c.o.UserID != "" && use("metadata") {
		p.userID = c.o.UserID
	}
	return p
}

func (c *Client) planThinking(p *plan, req *agent.Request, use func(string) bool) {
	want := req.Thinking
	if want.Type == "" && c.o.Think.Type != "" {
		display := want.Display
		if want = c.o.Think; display != "" {
			want.Display = display
		}
	}
	t := p.spec.Think(want)
	if t.Type == "adaptive" && !use("adaptive-thinking") {
		t.Type, t.Budget = "", 0
		if p.spec.Budget {
			t.Type, t.Budget = "enabled", 31_999
		}
	}
	if t.Type == "enabled" {
		// The budget must leave room for an answer, and have a size that the API takes.
		if t.Budget = min(t.Budget, p.max-1); t.Budget < 1024 {
			t.Type = ""
		}
	}
	if t.Type == "" || !use("thinking") {
		return
	}
	if t.Type == "enabled" {
		use("interleaved-thinking")
	}
	if t.Type == "disabled" || t.Display != "" && !use("thinking-display") {
		t.Display = ""
	}
	p.thinking = t
}

// use notes a feature and the beta that goes with it.
func (p *plan) use(name string) {
	f := caps.ByName(name)
	if !slices.Contains(p.features, f.Name) {
		p.features = append(p.features, f.Name)
	}
	if f.Beta != "" && !slices.Contains(p.betas, f.Beta) {
		p.betas = append(p.betas, f.Beta)
	}
}

// body is the request as it goes out. What req holds encoded is copied once
// and not changed, so that the head of a body is that of the one before.
func (c *Client) body(req *agent.Request, p plan) []byte { return bytes.Join(c.pieces(req, p), nil) }

// pieces returns the body in the parts that it is made of: model, messages,
// system, tools, metadata, max_tokens, thinking, everything else by name,
// stream. Parts that req holds encoded are shared with it.
func (c *Client) pieces(req *agent.Request, p plan) [][]byte {
	system, tools := c.prefix(req, &p)
	at, in, cut := -1, json.RawMessage(nil), 0 // message, its content, where the mark goes
	if p.mark != "" {
		at, in, cut = markAt(req)
	}
	out := make([][]byte, 0, 2*len(req.Messages)+8)
	head := agent.AppendString([]byte(`{"model":`), p.spec.ID)
	head = append(head, `,"messages":[`...)
	// What stands between two messages depends on the role alone.
	var between [2]struct {
		role agent.Role
		text []byte
	}
	first := true
	for i, m := range req.Messages {
		content := m.Wire
		if i == at {
			content = in
		} else if content == nil {
			content = encode(m)
		}
		if len(content) <= len("[]") {
			continue // the API takes no message without content
		}
		if first {
			head = append(agent.AppendString(append(head, `{"role":`...), string(m.Role)), `,"content":`...)
			out = append(out, head)
		} else {
			n := &between[i&1]
			if n.role != m.Role {
				n.role = m.Role
				n.text = append(agent.AppendString([]byte(`},{"role":`), string(m.Role)), `,"content":`...)
			}
			out = append(out, n.text)
		}
		first = false
		if i == at {
			out = append(out, content[:cut], []byte(`,"cache_control":`+p.mark), content[cut:])
		} else {
			out = append(out, content)
		}
	}
	if first {
		head = append(head, ']')
	} else {
		head = []byte(`}]`)
	}
	if len(system) > 0 {
		out = append(out, append(head, `,"system":`...), system)
		head = nil
	}
	if len(tools) > 0 {
		out = append(out, append(head, `,"tools":`...), tools)
		head = nil
	}
	return append(out, append(head, c.tail(p)...))
}

// prefix returns system and tools as they go out: without what the upstream
// refused, and with no more marks than the API takes.
func (c *Client) prefix(req *agent.Request, p *plan) (system, tools json.RawMessage) {
	system, tools = req.System, req.Tools
	model := p.spec.ID
	has := func(b []byte, field string) bool { return bytes.Contains(b, []byte(`"`+field+`"`)) }
	for _, f := range []struct{ name, field string }{
		{"tool-search", "defer_loading"}, {"strict-tools", "strict"}, {"eager-input", "eager_input_streaming"}, {"cache", "cache_control"},
	} {
		if has(tools, f.field) && !c.caps.Allows(f.name, model) {
			tools = jsonscan.EachWithout(tools, func(_ int, m jsonscan.Member) bool { return string(m.Key) == f.field })
		}
	}
	if has(system, "cache_control") && !c.caps.Allows("cache", model) {
		system = jsonscan.EachWithout(system, func(_ int, m jsonscan.Member) bool { return string(m.Key) == "cache_control" })
	}
	for _, f := range []struct{ name, field string }{{"cache-1h", "ttl"}, {"cache-scope", "scope"}} {
		if has(system, f.field) && !c.caps.Allows(f.name, model) {
			system = trimMarks(system, f.field)
		} else if has(system, f.field) && has(system, "cache_control") {
			p.use(f.name)
		}
	}
	return limitMarks(system, tools, p.mark != "")
}

// trimMarks takes one field out of every cache mark in an array of blocks.
func trimMarks(blocks json.RawMessage, field string) json.RawMessage {
	var out []byte
	last := 0
	jsonscan.Elements(blocks, func(start, end int) bool {
		el := blocks[start:end]
		jsonscan.Members(el, func(m jsonscan.Member) bool {
			if string(m.Key) != "cache_control" {
				return true
			}
			mark, hit := jsonscan.Without(m.Val, func(m jsonscan.Member) bool { return string(m.Key) == field })
			if hit {
				at := start + m.End - len(m.Val)
				out = append(append(out, blocks[last:at]...), mark...)
				last = start + m.End
			}
			return false
		})
		return true
	})
	if last == 0 {
		return blocks
	}
	return append(out, blocks[last:]...)
}

// maxMarks is how many cache marks the API takes in a request.
const maxMarks = 4

// limitMarks takes away the marks that are too many, those of the shortest
// prefixes first: a later mark covers what is before it.
func limitMarks(system, tools json.RawMessage, moving bool) (_, _ json.RawMessage) {
	room := maxMarks
	if moving {
		room--
	}
	mark := []byte(`"cache_control"`)
	if bytes.Count(system, mark)+bytes.Count(tools, mark) <= room {
		return system, tools
	}
	// The count above takes a property of that name in a schema for a mark;
	// this one does not.
	var n int
	count := func(_ int, m jsonscan.Member) bool {
		if string(m.Key) == "cache_control" {
			n++
		}
		return false
	}
	jsonscan.EachWithout(tools, count)
	jsonscan.EachWithout(system, count)
	drop := func(_ int, m jsonscan.Member) bool {
		if string(m.Key) == "cache_control" && n > room {
			n--
			return true
		}
		return false
	}
	// The API's order is tools, then system.
	tools = jsonscan.EachWithout(tools, drop)
	return jsonscan.EachWithout(system, drop), tools
}

// encode encodes a message that has no bytes yet, without the empty texts
// that the API refuses.
func encode(m agent.Message) json.RawMessage {
	blocks := make([]agent.Block, 0, len(m.Blocks))
	for _, b := range m.Blocks {
		if t, ok := b.(*agent.Text); ok && blank([]byte(t.Text)) {
			continue
		}
		blocks = append(blocks, b)
	}
	return agent.AppendBlocks(nil, blocks)
}

// markAt finds the place for the moving cache mark: the message, its content,
// and the index in it of the closing brace of the last block that can carry a
// mark. at is -1 if there is none, or the block has one already.
func markAt(req *agent.Request) (at int, content json.RawMessage, cut int) {
	for at = len(req.Messages) - 1 - max(0, req.MarkBack); at >= 0; at-- {
		if content = req.Messages[at].Wire; content == nil {
			content = encode(req.Messages[at])
		}
		last, marked := 0, false
		jsonscan.Elements(content, func(start, end int) bool {
			if ok, has := markable(content[start:end]); ok {
				last, marked = end-1, has
			}
			return true
		})
		switch {
		case last > 0 && marked:
			return -1, nil, 0
		case last > 0:
			return at, content, last
		}
	}
	return -1, nil, 0
}

// markable reports whether a block can carry a cache mark and whether it has
// one. Thinking cannot, nor can empty text; what is unknown is left alone.
func markable(block []byte) (ok, has bool) {
	var kind, text []byte
	jsonscan.Members(block, func(m jsonscan.Member) bool {
		switch string(m.Key) {
		case "type":
			kind = m.Val
		case "text":
			text = m.Val
		case "cache_control":
			has = true
		}
		return true
	})
	switch string(kind) {
	case `"text"`:
		return len(text) > 2 && !blank(text[1:len(text)-1]), has
	case `"image"`, `"document"`, `"tool_use"`, `"tool_result"`, `"search_result"`,
		`"server_tool_use"`, `"web_search_tool_result"`, `"web_fetch_tool_result"`:
		return true, has
	}
	return false, has
}

// blank reports whether a text, or the inside of a JSON string, is nothing
// but white space.
func blank(b []byte) bool {
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case ' ', '\t', '\n', '\r':
		case '\\':
			if i++; i == len(b) || b[i] != 'n' && b[i] != 't' && b[i] != 'r' {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// tail is the body from behind the tools to its end.
func (c *Client) tail(p plan) []byte {
	if p.counting {
		return countTail(p)
	}
	keys := map[string]json.RawMessage{}
	for k, v := range p.extra {
		keys[k] = v
	}
	for k, v := range c.o.Extra {
		switch k {
		case "model", "messages", "system", "tools", "stream":
		default:
			keys[k] = v
		}
	}
	if p.effort != "" {
		keys["output_config"] = withEffort(keys["output_config"], p.effort)
	}
	var b []byte
	put := func(key string, val []byte) {
		b = append(b, ',')
		b = agent.AppendString(b, key)
		b = append(append(b, ':'), val...)
		delete(keys, key)
	}
	own := func(key string, val []byte) {
		if v, ok := keys[key]; ok {
			val = v
		}
		if val != nil {
			put(key, val)
		}
	}
	var metadata []byte
	if p.userID != "" {
		metadata = append(agent.AppendString([]byte(`{"user_id":`), p.userID), '}')
	}
	own("metadata", metadata)
	own("max_tokens", strconv.AppendInt(nil, int64(p.max), 10))
	own("thinking", thinking(p.thinking))
	rest := make([]string, 0, len(keys))
	for k := range keys {
		rest = append(rest, k)
	}
	slices.Sort(rest)
	for _, k := range rest {
		put(k, keys[k])
	}
	put("stream", strconv.AppendBool(nil, !p.whole))
	return append(b, '}')
}

// countTail is the tail of a body whose tokens are counted: what does not
// count is left out, since the endpoint refuses it.
func countTail(p plan) []byte {
	var b []byte
	if t := thinking(p.thinking); t != nil {
		b = append(append(b, `,"thinking":`...), t...)
	}
	if choice := p.extra["tool_choice"]; choice != nil {
		b = append(append(b, `,"tool_choice":`...), choice...)
	}
	return append(b, '}')
}

func thinking(t agent.Thought) []byte {
	if t.Type == "" {
		return nil
	}
	b := agent.AppendString([]byte(`{"type":`), t.Type)
	if t.Type == "enabled" {
		b = strconv.AppendInt(append(b, `,"budget_tokens":`...), int64(t.Budget), 10)
	}
	if t.Display != "" {
		b = agent.AppendString(append(b, `,"display":`...), t.Display)
	}
	return append(b, '}')
}

// withEffort adds the effort to an output_config that does not name one.
func withEffort(config json.RawMessage, effort string) json.RawMessage {
	has := false
	jsonscan.Members(config, func(m jsonscan.Member) bool {
		has = has || string(m.Key) == "effort"
		return true
	})
	if has {
		return config
	}
	out := append(agent.AppendString([]byte(`{"effort":`), effort), '}')
	if i := jsonscan.Spaces(config, 0); i < len(config) && config[i] == '{' {
		if rest := config[jsonscan.Spaces(config, i+1):]; len(rest) > 0 && rest[0] != '}' {
			out = append(append(out[:len(out)-1], ','), rest...)
		}
	}
	return out
}
