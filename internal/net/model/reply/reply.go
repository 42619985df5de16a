// Package reply reads the answers of the Messages API: the events of a stream
// or a message in one piece become the deltas of the vocabulary. It owns the
// state of a response and the making of blocks; it must not know how the
// bytes came, when to give up on them, or what to do then.
package reply

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/jsonscan"
)

// A Decoder turns the events of one response into deltas. Blocks are told
// apart by their index, never by their order; a block is complete at its
// content_block_stop and the response at its message_stop.
//
// The zero Decoder with Emit set is ready for one response.
type Decoder struct {
	Emit      func(agent.Delta) // gets the deltas, in order
	RequestID string            // goes into the Begin

	Begun    bool // the Begin was told
	Done     bool // the Done was told: the response is whole
	Complete int  // blocks that were told complete
	Idle     bool // the newest event was a ping

	calls    int  // tool_use blocks among the complete ones
	stopped  bool // a Stopped was told
	size     int  // bytes accumulated so far
	usage    agent.Usage
	stop     string
	sequence string
	open     []*openBlock
}

// MaxSize bounds what one response may accumulate, in bytes.
const MaxSize = 256 << 20

// An openBlock is a block between its start and its stop.
type openBlock struct {
	index int
	typ   string
	start json.RawMessage // of blocks that are kept as they are
	shown bool            // its BlockBegin was told

	id, name  string
	text      []byte // text, thinking, or the pieces of tool input
	signature []byte
	citations []json.RawMessage
	deltas    []json.RawMessage // pieces of a kind that is not known
	input     json.RawMessage   // that came with the start of a tool_use
}

// ErrProtocol marks events that no sound upstream sends.
var ErrProtocol = errors.New("the stream breaks the protocol")

// An APIError is an error object of the API.
type APIError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// A StreamError is an error event inside a stream.
type StreamError struct {
	APIError
	RequestID string
}

func (e *StreamError) Error() string { return e.Type + ": " + e.Message }

// Event takes in the data of one event. tail says that it may be cut short.
// The error is an *StreamError, or an ErrProtocol; after it, and once Done is
// set, the Decoder takes nothing more.
func (d *Decoder) Event(data []byte, tail bool) error {
	d.Idle = false
	if index, kind, text, ok := parseDelta(data); ok {
		if done, err := d.piece(index, kind, text); done {
			return err
		}
	}
	var w struct {
		Type         string          `json:"type"`
		Index        int             `json:"index"`
		Message      json.RawMessage `json:"message"`
		ContentBlock json.RawMessage `json:"content_block"`
		Delta        json.RawMessage `json:"delta"`
		Usage        *wireUsage      `json:"usage"`
		Error        json.RawMessage `json:"error"`
		RequestID    string          `json:"request_id"`
	}
	if err := json.Unmarshal(data, &w); err != nil {
		if tail {
			return nil // the end of the input says what happened
		}
		return fmt.Errorf("%w: an event is no JSON: %w", ErrProtocol, err)
	}
	switch w.Type {
	case "ping":
		d.Idle = true
		return nil
	case "message_start":
		return d.begin(w.Message)
	case "content_block_start":
		return d.blockStart(w.Index, w.ContentBlock)
	case "content_block_delta":
		return d.oddPiece(w.Index, w.Delta)
	case "content_block_stop":
		o := d.find(w.Index)
		if o == nil {
			return fmt.Errorf("%w: the end of block %d, which is not open", ErrProtocol, w.Index)
		}
		d.blockStop(o)
		return nil
	case "message_delta":
		return d.messageDelta(w.Delta, w.Usage)
	case "message_stop":
		return d.messageStop()
	case "error":
		e := &StreamError{RequestID: w.RequestID}
		if json.Unmarshal(w.Error, &e.APIError) != nil || e.Message == "" && e.Type == "" {
			e.Message = Clip(string(data), 300)
		}
		return e
	}
	d.Emit(agent.Unknown{Type: w.Type, Raw: bytes.Clone(data)})
	return nil
}

// parseDelta is the fast path for the events that make up a stream: a
// content_block_delta with one string. text is that string without its
// quotes, still escaped. What is not recognized goes the long way.
func parseDelta(data []byte) (index int, kind string, text []byte, ok bool) {
	var delta []byte
	index, good := -1, false
	jsonscan.Members(data, func(m jsonscan.Member) bool {
		switch string(m.Key) {
		case "type":
			good = string(m.Val) == `"content_block_delta"`
			return good
		case "index":
			index = small(m.Val)
		case "delta":
			delta = m.Val
		}
		return true
	})
	if !good || index < 0 || len(delta) == 0 {
		return 0, "", nil, false
	}
	var typ []byte
	extra := false
	whole := jsonscan.Members(delta, func(m jsonscan.Member) bool {
		switch string(m.Key) {
		case "type":
			typ = m.Val
		case "text", "thinking", "partial_json", "signature":
			extra = extra || text != nil || len(m.Val) < 2 || m.Val[0] != '"'
			if !extra {
				text = m.Val[1 : len(m.Val)-1]
				kind = string2kind(m.Key)
			}
		default:
			extra = true
		}
		return true
	})
	if !whole || extra || text == nil || len(typ) < 2 || string(typ[1:len(typ)-1]) != kind {
		return 0, "", nil, false
	}
	return index, kind, text, true
}

func string2kind(key []byte) string {
	switch string(key) {
	case "text":
		return "text_delta"
	case "thinking":
		return "thinking_delta"
	case "partial_json":
		return "input_json_delta"
	}
	return "signature_delta"
}

// small reads an index.
func small(b []byte) int {
	n := 0
	if len(b) == 0 || len(b) > 6 {
		return -1
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return -1
		}
		n = n*10 + int(c-'0')
	}
	return n
}

func (d *Decoder) find(index int) *openBlock {
	for _, o := range d.open {
		if o.index == index {
			return o
		}
	}
	return nil
}

// piece takes in one piece of a block, still escaped. done is false if the
// block wants it decoded the long way.
func (d *Decoder) piece(index int, kind string, escaped []byte) (done bool, err error) {
	o := d.find(index)
	if o == nil {
		return false, nil
	}
	into := &o.text
	switch {
	case o.typ == "text" && kind == "text_delta", o.typ == "thinking" && kind == "thinking_delta",
		kind == "input_json_delta" && (o.typ == "tool_use" || o.start != nil):
	case o.typ == "thinking" && kind == "signature_delta":
		into = &o.signature
	default:
		return false, nil
	}
	before := len(*into)
	var ok bool
	if *into, ok = jsonscan.Unquote(*into, escaped); !ok {
		*into = (*into)[:before]
		return false, nil
	}
	return true, d.chunk(o, kind, (*into)[before:])
}

// chunk tells a piece that was added to o. White space at the head of a text
// is held back until more than that has come: a text of nothing else is no
// block, since the API would refuse to take it back.
func (d *Decoder) chunk(o *openBlock, kind string, text []byte) error {
	if d.size += len(text); d.size > MaxSize {
		return fmt.Errorf("%w: the answer is larger than %d MB", ErrProtocol, MaxSize>>20)
	}
	if !o.shown {
		if Blank(text) {
			return nil
		}
		d.show(o, &agent.Text{})
		text = o.text
	}
	d.Emit(agent.Chunk{Index: o.index, Kind: kind, Text: string(text)})
	return nil
}

// Blank reports whether s has nothing to see.
func Blank(s []byte) bool { return len(bytes.TrimSpace(s)) == 0 }

func (d *Decoder) begin(raw json.RawMessage) error {
	var m struct {
		ID    string     `json:"id"`
		Model string     `json:"model"`
		Usage *wireUsage `json:"usage"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return fmt.Errorf("%w: message_start without a message: %w", ErrProtocol, err)
	}
	if d.Begun {
		return nil // some gateways say it twice
	}
	d.Begun = true
	d.usage = m.Usage.onto(d.usage)
	d.Emit(agent.Begin{MessageID: m.ID, Model: m.Model, RequestID: d.RequestID, Usage: d.usage})
	return nil
}

func (d *Decoder) blockStart(index int, raw json.RawMessage) error {
	if !d.Begun {
		return fmt.Errorf("%w: a block before message_start", ErrProtocol)
	}
	if d.find(index) != nil {
		return fmt.Errorf("%w: block %d starts twice", ErrProtocol, index)
	}
	var w struct {
		Type      string            `json:"type"`
		Text      string            `json:"text"`
		Citations []json.RawMessage `json:"citations"`
		Thinking  string            `json:"thinking"`
		Signature string            `json:"signature"`
		ID        string            `json:"id"`
		Name      string            `json:"name"`
		Input     json.RawMessage   `json:"input"`
	}
	// A field of another shape than expected does not make it no block.
	if _ = json.Unmarshal(raw, &w); w.Type == "" {
		return fmt.Errorf("%w: block %d starts without a type", ErrProtocol, index)
	}
	o := &openBlock{index: index, typ: w.Type, id: w.ID, name: w.Name}
	d.open = append(d.open, o)
	switch w.Type {
	case "text":
		o.text, o.citations = []byte(w.Text), w.Citations
		if !Blank(o.text) {
			d.show(o, &agent.Text{Text: w.Text})
		}
	case "thinking":
		o.text, o.signature = []byte(w.Thinking), []byte(w.Signature)
		d.show(o, &agent.Thinking{Text: w.Thinking, Signature: w.Signature})
	case "tool_use":
		o.input = bytes.Clone(w.Input)
		d.show(o, &agent.ToolUse{ID: agent.CallID(w.ID), Name: w.Name})
	default:
		o.start = bytes.Clone(raw)
		d.show(o, known(o.start))
	}
	d.size += len(raw)
	return nil
}

// show tells the start of a block. b is its own from here on: the block that
// ends is another value.
func (d *Decoder) show(o *openBlock, b agent.Block) {
	o.shown = true
	d.Emit(agent.BlockBegin{Index: o.index, Block: b})
}

// known decodes a block that was kept as it came: redacted thinking is of the
// vocabulary, everything else is opaque.
func known(raw json.RawMessage) agent.Block {
	if b, err := agent.DecodeBlock(raw); err == nil {
		switch b.(type) {
		case *agent.Redacted, *agent.Opaque:
			return b
		}
	}
	var w struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(raw, &w) // a block without a type was refused at its start
	return &agent.Opaque{Type: w.Type, Raw: raw}
}

// oddPiece takes in a piece that the fast path left: of a kind, of a shape or
// for a block that is not common.
func (d *Decoder) oddPiece(index int, raw json.RawMessage) error {
	o := d.find(index)
	if o == nil {
		return fmt.Errorf("%w: a piece of block %d, which is not open", ErrProtocol, index)
	}
	var w struct {
		Type      string          `json:"type"`
		Text      *string         `json:"text"`
		Thinking  *string         `json:"thinking"`
		Partial   *string         `json:"partial_json"`
		Signature *string         `json:"signature"`
		Citation  json.RawMessage `json:"citation"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return fmt.Errorf("%w: a piece of block %d: %w", ErrProtocol, index, err)
	}
	add := func(into *[]byte, s *string) error {
		*into = append(*into, *s...)
		return d.chunk(o, w.Type, []byte(*s))
	}
	switch {
	case w.Type == "text_delta" && w.Text != nil && o.typ == "text":
		return add(&o.text, w.Text)
	case w.Type == "thinking_delta" && w.Thinking != nil && o.typ == "thinking":
		return add(&o.text, w.Thinking)
	case w.Type == "signature_delta" && w.Signature != nil && o.typ == "thinking":
		return add(&o.signature, w.Signature)
	case w.Type == "input_json_delta" && w.Partial != nil && (o.typ == "tool_use" || o.start != nil):
		return add(&o.text, w.Partial)
	case w.Type == "citations_delta" && w.Citation != nil && o.typ == "text":
		o.citations = append(o.citations, bytes.Clone(w.Citation))
		d.size += len(w.Citation)
		if o.shown {
			d.Emit(agent.Chunk{Index: index, Kind: w.Type, Text: string(w.Citation)})
		}
		return nil
	}
	o.deltas = append(o.deltas, bytes.Clone(raw))
	d.size += len(raw)
	if o.shown {
		d.Emit(agent.Chunk{Index: index, Kind: w.Type, Text: string(raw)})
	}
	return nil
}

// blockStop closes a block: it is whole and, for a tool_use, parsed.
func (d *Decoder) blockStop(o *openBlock) {
	d.open = slices.DeleteFunc(d.open, func(x *openBlock) bool { return x == o })
	if !o.shown {
		return // a text of nothing
	}
	var b agent.Block
	switch {
	case o.start != nil:
		b = known(merge(o))
	case o.typ == "text":
		t := &agent.Text{Text: string(o.text)}
		if len(o.citations) > 0 {
			t.Citations, _ = json.Marshal(o.citations)
		}
		b = t
	case o.typ == "thinking":
		b = &agent.Thinking{Text: string(o.text), Signature: string(o.signature)}
	default:
		in := o.text
		if len(bytes.TrimSpace(in)) == 0 {
			in = o.input
		}
		b = toolUse(o.id, o.name, in)
		d.calls++
	}
	d.Complete++
	d.Emit(agent.BlockEnd{Index: o.index, Block: b})
}

// messageDelta takes in what is known of the end.
func (d *Decoder) messageDelta(raw json.RawMessage, usage *wireUsage) error {
	var w struct {
		Stop     *string `json:"stop_reason"`
		Sequence *string `json:"stop_sequence"`
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &w); err != nil {
			return fmt.Errorf("%w: message_delta: %w", ErrProtocol, err)
		}
	}
	d.usage = usage.onto(d.usage)
	if w.Stop != nil {
		d.stop = *w.Stop
	}
	if w.Sequence != nil {
		d.sequence = *w.Sequence
	}
	if d.stop != "" {
		d.tellStop()
	}
	return nil
}

func (d *Decoder) tellStop() {
	d.stopped = true
	d.Emit(agent.Stopped{Stop: d.stop, Sequence: d.sequence, Usage: d.usage})
}

// messageStop ends the response. Blocks that were not closed are: the
// response is whole, whatever the gateway in between forgot.
func (d *Decoder) messageStop() error {
	if !d.Begun {
		return fmt.Errorf("%w: message_stop before message_start", ErrProtocol)
	}
	slices.SortFunc(d.open, func(a, b *openBlock) int { return a.index - b.index })
	for len(d.open) > 0 {
		d.blockStop(d.open[0])
	}
	if !d.stopped {
		if d.stop = "end_turn"; d.calls > 0 {
			d.stop = "tool_use"
		}
		d.tellStop()
	}
	d.Done = true
	d.Emit(agent.Done{})
	return nil
}

// wireUsage is usage as the API reports it; what is missing stays unknown.
type wireUsage struct {
	In         *int `json:"input_tokens"`
	Out        *int `json:"output_tokens"`
	CacheRead  *int `json:"cache_read_input_tokens"`
	CacheWrite *int `json:"cache_creation_input_tokens"`
	Creation   *struct {
		FiveMin int `json:"ephemeral_5m_input_tokens"`
		OneHour int `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Server *struct {
		Searches int `json:"web_search_requests"`
		Fetches  int `json:"web_fetch_requests"`
	} `json:"server_tool_use"`
	Tier *string `json:"service_tier"`
}

// onto lays what is known now over what was known before. Input counts of 0
// in a later report mean that a gateway does not know them.
func (w *wireUsage) onto(u agent.Usage) agent.Usage {
	if w == nil {
		return u
	}
	more := func(into *int, n *int) {
		if n != nil && *n > 0 {
			*into = *n
		}
	}
	more(&u.In, w.In)
	more(&u.Out, w.Out)
	more(&u.CacheRead, w.CacheRead)
	switch {
	case w.Creation != nil && w.Creation.FiveMin+w.Creation.OneHour > 0:
		u.CacheWrite5m, u.CacheWrite1h = w.Creation.FiveMin, w.Creation.OneHour
	case w.CacheWrite != nil && *w.CacheWrite != u.CacheWrite() && *w.CacheWrite > 0:
		u.CacheWrite5m, u.CacheWrite1h = *w.CacheWrite, 0
	}
	if w.Server != nil {
		more(&u.WebSearches, &w.Server.Searches)
		more(&u.WebFetches, &w.Server.Fetches)
	}
	if w.Tier != nil {
		u.ServiceTier = *w.Tier
	}
	return u
}

// Clip shortens text that is shown to people.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return string(bytes.ToValidUTF8([]byte(s[:n]), nil)) + "… (" + strconv.Itoa(len(s)) + " bytes)"
}
