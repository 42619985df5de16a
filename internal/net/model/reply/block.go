package reply

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/jsonscan"
)

// toolUse makes a tool_use out of the bytes of its input. Nothing is an empty
// object. What is no object becomes one that holds the bytes, marked
// Malformed, so that it can be answered and sent back. Of duplicate keys the
// last counts, and only it is left: whoever reads the input reads the same.
func toolUse(id, name string, in []byte) *agent.ToolUse {
	u := &agent.ToolUse{ID: agent.CallID(id), Name: name}
	in = bytes.TrimSpace(in)
	if len(in) == 0 || string(in) == "null" {
		u.Input = json.RawMessage("{}")
		return u
	}
	var b bytes.Buffer
	if in[0] == '{' && json.Compact(&b, in) == nil {
		if u.Input = b.Bytes(); !repeats(u.Input) {
			return u
		}
		if once, err := lastKeys(u.Input); err == nil {
			u.Input = once
			return u
		}
	}
	u.Malformed = true
	raw := agent.AppendString([]byte(`{"__unparsedToolInput":{"raw":`), string(in))
	raw = strconv.AppendInt(append(raw, `,"len":`...), int64(len(in)), 10)
	u.Input = append(raw, "}}"...)
	return u
}

// repeats reports whether any object in valid JSON has a key twice.
func repeats(b []byte) bool {
	type level struct {
		keys map[string]bool // nil for arrays
		key  bool            // a key is next
	}
	var stack []level
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{':
			stack = append(stack, level{map[string]bool{}, true})
		case '[':
			stack = append(stack, level{})
		case '}', ']':
			stack = stack[:len(stack)-1]
		case ',':
			top := &stack[len(stack)-1]
			top.key = top.keys != nil
		case '"':
			end := jsonscan.String(b, i)
			if top := &stack[len(stack)-1]; top.key {
				key, _ := jsonscan.Unquote(nil, b[i+1:end-1])
				if top.keys[string(key)] {
					return true
				}
				top.keys[string(key)], top.key = true, false
			}
			i = end - 1
		}
	}
	return false
}

// lastKeys encodes an object anew, keeping the last of each key.
func lastKeys(b []byte) (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// merge lays the pieces of a block that is kept as it is over its start:
// tool input becomes its input; of every other piece each field is added to
// the block's field of that name, strings and arrays at the end, anything
// else in its place.
func merge(o *openBlock) json.RawMessage {
	if len(o.text) == 0 && len(o.deltas) == 0 {
		return o.start
	}
	var keys []string
	vals := map[string]json.RawMessage{}
	put := func(key string, val json.RawMessage) {
		if _, have := vals[key]; !have {
			keys = append(keys, key)
		}
		vals[key] = val
	}
	jsonscan.Members(o.start, func(m jsonscan.Member) bool {
		put(string(m.Key), m.Val)
		return true
	})
	for _, delta := range o.deltas {
		jsonscan.Members(delta, func(m jsonscan.Member) bool {
			if key := string(m.Key); key != "type" {
				put(key, join(vals[key], m.Val))
			}
			return true
		})
	}
	if len(o.text) > 0 {
		put("input", toolUse(o.id, o.name, o.text).Input)
	}
	out := []byte{'{'}
	for i, key := range keys {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), key...), '"', ':')
		out = append(out, vals[key]...)
	}
	return append(out, '}')
}

// join adds the JSON value b to a.
func join(a, b json.RawMessage) json.RawMessage {
	if len(a) < 2 || len(b) < 2 || a[0] != b[0] {
		return b
	}
	switch a[0] {
	case '"':
		return append(append(bytes.Clone(a[:len(a)-1]), b[1:len(b)-1]...), '"')
	case '[':
		head, rest := bytes.TrimSpace(a[1:len(a)-1]), bytes.TrimSpace(b[1:len(b)-1])
		out := append([]byte{'['}, head...)
		if len(head) > 0 && len(rest) > 0 {
			out = append(out, ',')
		}
		return append(append(out, rest...), ']')
	}
	return b
}

// ErrNoMessage reports a successful answer that is no message of the API.
var ErrNoMessage = errors.New("the answer is no message")

// Whole takes in a response that came in one piece. The error is a
// *StreamError or an ErrNoMessage.
func (d *Decoder) Whole(data []byte) error {
	var m struct {
		Type     string            `json:"type"`
		ID       string            `json:"id"`
		Model    string            `json:"model"`
		Content  []json.RawMessage `json:"content"`
		Stop     string            `json:"stop_reason"`
		Sequence string            `json:"stop_sequence"`
		Usage    *wireUsage        `json:"usage"`
		Error    *APIError         `json:"error"`
		Request  string            `json:"request_id"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("%w: %s", ErrNoMessage, Clip(strings.TrimSpace(string(data)), 200))
	}
	if m.Error != nil {
		return &StreamError{APIError: *m.Error, RequestID: m.Request}
	}
	if m.Type != "message" && (m.ID == "" || m.Content == nil) {
		return fmt.Errorf("%w: %s", ErrNoMessage, Clip(strings.TrimSpace(string(data)), 200))
	}
	blocks := make([]agent.Block, len(m.Content))
	for i, raw := range m.Content {
		b, err := agent.DecodeBlock(raw)
		if err != nil {
			return fmt.Errorf("%w: block %d: %w", ErrNoMessage, i, err)
		}
		if u, ok := b.(*agent.ToolUse); ok {
			b = toolUse(string(u.ID), u.Name, u.Input)
			d.calls++
		}
		blocks[i] = b
	}
	d.Begun, d.usage = true, m.Usage.onto(d.usage)
	d.Emit(agent.Begin{MessageID: m.ID, Model: m.Model, RequestID: d.RequestID, Usage: d.usage, Whole: true})
	for i, b := range blocks {
		if t, ok := b.(*agent.Text); ok && Blank([]byte(t.Text)) {
			continue // the API would refuse to take it back
		}
		d.Complete++
		d.Emit(agent.BlockBegin{Index: i, Block: b})
		d.Emit(agent.BlockEnd{Index: i, Block: b})
	}
	d.stop, d.sequence = m.Stop, m.Sequence
	if d.stop != "" {
		d.tellStop()
	}
	return d.messageStop()
}
