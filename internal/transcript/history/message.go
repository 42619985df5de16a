package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// A Message is a message of the history and the lines that hold it.
type Message struct {
	agent.Message
	Lines []string // their uuids
	Leaf  string   // the last of them in the conversation
	plain int      // where the blocks of its newest user line begin
}

// A Prompt is what a person has asked for.
type Prompt struct {
	UUID string
	Text string
}

// Summary is the kind of the note that stands in place of what a compaction
// took out.
const Summary = "summary"

// A Talk is a conversation as the lines tell it, before it is mended.
type Talk struct {
	Messages []Message
	Prompts  []Prompt
	System   []string // the system prompt that was recorded, in its parts
}

// Talk decodes the conversation that ends with the line leaf. f is what the
// Scan has read. Lines that cannot be decoded are left out and counted.
func (s *Scan) Talk(f io.ReaderAt, leaf string) (*Talk, error) {
	t := &Talk{}
	h, err := s.assemble(t, f, s.conversation(f, leaf))
	t.Messages = h
	return t, err
}

// assemble decodes rows, in order, into messages. As in the history that is
// sent, neighbours of one role are one message; blocks of one response belong
// together though results of its first calls stand between.
func (s *Scan) assemble(l *Talk, f io.ReaderAt, rows []int) ([]Message, error) {
	var h []Message
	var buf []byte // decode keeps nothing of it
	for _, i := range rows {
		r := &s.rows[i]
		data, err := r.bytes(f, buf)
		if err != nil {
			return nil, fmt.Errorf("reading line %d: %w", r.n, err)
		}
		if r.data == nil {
			buf = data
		}
		m, ok, err := decode(r, data, l)
		if err != nil {
			s.Skipped.Add(r.n, err.Error())
			continue
		}
		if !ok {
			continue
		}
		if n := len(h) - 1; r.before && n >= 0 && h[n].Role == m.Role {
			e := &h[n]
			e.Blocks = slices.Insert(e.Blocks, e.plain, m.Blocks...)
			e.plain += len(m.Blocks)
			e.Lines, e.Leaf = append(e.Lines, r.uuid), r.uuid
			continue
		}
		h = join(h, Message{Message: m, Lines: []string{r.uuid}, Leaf: r.uuid})
	}
	return h, nil
}

// join puts m behind h.
func join(h []Message, m Message) []Message {
	at := len(h) - 1
	if m.Role == agent.Assistant && m.ID != "" && at >= 1 && h[at].Role == agent.User && h[at-1].ID == m.ID && onlyResults(h[at].Blocks) {
		at--
	}
	if at < 0 || h[at].Role != m.Role {
		return append(h, m)
	}
	e := &h[at]
	e.plain = len(e.Blocks)
	e.Blocks = append(e.Blocks, m.Blocks...)
	e.Lines = append(e.Lines, m.Lines...)
	e.ID, e.UUID, e.Leaf = m.ID, m.UUID, m.Leaf
	e.Meta = e.Meta && m.Meta
	if e.Origin == "" {
		e.Origin = m.Origin
	}
	if at < len(h)-1 {
		h[at+1].Leaf = m.Leaf // going back to the results goes back to here
	}
	return h
}

func onlyResults(bs []agent.Block) bool {
	for _, b := range bs {
		if _, ok := b.(*agent.ToolResult); !ok {
			return false
		}
	}
	return true
}

// decode turns a line into a message. ok is false for lines that the model is
// not to see. l takes what the line says about the session.
func decode(r *row, data []byte, l *Talk) (m agent.Message, ok bool, err error) {
	m.UUID, m.Meta = r.uuid, r.meta
	switch {
	case r.failed || r.viewOnly && !r.summary:
		return m, false, nil
	case r.kind == attachmentLine:
		m.Role, m.Meta = agent.User, true
		m.Blocks, err = attached(data, l)
		return m, len(m.Blocks) > 0, err
	case r.kind == userLine:
		m.Role = agent.User
	case r.kind == assistantLine:
		m.Role, m.ID = agent.Assistant, r.msg
	default:
		return m, false, nil
	}
	var message []byte
	_ = Fields(data, func(name, value []byte) bool { // the first pass has been over it
		switch string(name) {
		case "message":
			message = value
		case "origin":
			m.Origin = originOf(value)
		}
		return true
	})
	if message == nil {
		return m, false, fmt.Errorf("no message")
	}
	var content []byte
	if err := Fields(message, func(name, value []byte) bool {
		if string(name) == "content" {
			content = value
		}
		return true
	}); err != nil {
		return m, false, fmt.Errorf("a message that is no object")
	}
	m.Blocks, err = Content(content)
	for _, b := range m.Blocks {
		if t, ok := b.(*agent.Text); ok && r.summary {
			t.Note = Summary
		}
	}
	if err == nil && r.asks() {
		if t := agent.TextOf(m.Blocks); t != "" {
			l.Prompts = append(l.Prompts, Prompt{r.uuid, t})
		}
	}
	return m, true, err
}

func originOf(value []byte) string {
	var o struct {
		Kind string `json:"kind"`
	}
	_ = json.Unmarshal(value, &o) // a form that is not known says nothing
	if o.Kind == "human" {
		return ""
	}
	return o.Kind
}

// Content decodes the content of a message. A block that is no block is left
// out; content that is neither text nor a list is an error.
func Content(raw []byte) ([]agent.Block, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] == '"' {
		t, ok := Unquote(raw)
		if !ok {
			return nil, fmt.Errorf("a text that is no string")
		}
		return []agent.Block{&agent.Text{Text: t}}, nil
	}
	var bs []agent.Block
	err := elements(raw, func(e []byte) {
		if b := block(e); b != nil {
			bs = append(bs, b)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("content that is no list")
	}
	return bs, nil
}

// block decodes one content block, or returns nil. Plain texts and results
// of plain text, which is nearly all there is in a transcript, take a short
// way; the long one passes over a text four times.
func block(raw []byte) agent.Block {
	if b := plainBlock(raw); b != nil {
		return b
	}
	if !json.Valid(raw) {
		return nil
	}
	b, err := agent.DecodeBlock(bytes.Clone(raw))
	if err != nil {
		return nil
	}
	if u, ok := b.(*agent.ToolUse); ok && bytes.HasPrefix(bytes.TrimSpace(u.Input), []byte(`{"__unparsedToolInput"`)) {
		u.Malformed = true
	}
	return b
}

func plainBlock(raw []byte) agent.Block {
	var typ, id string
	var text []byte
	isError := false
	odd := false
	err := Fields(raw, func(name, value []byte) bool {
		switch string(name) {
		case "type":
			typ, _ = Unquote(value)
		case "tool_use_id":
			id, _ = Unquote(value)
		case "text", "content":
			odd = odd || text != nil
			text = value
		case "is_error":
			isError = string(value) == "true"
			odd = odd || !isError && string(value) != "false"
		default:
			odd = true
		}
		return !odd
	})
	if err != nil || odd || len(text) == 0 || text[0] != '"' || typ != "text" && typ != "tool_result" {
		return nil
	}
	t, ok := Unquote(text)
	if !ok {
		return nil
	}
	if typ == "text" {
		return &agent.Text{Text: t}
	}
	return &agent.ToolResult{ID: agent.CallID(id), Blocks: []agent.Block{&agent.Text{Text: t}}, IsError: isError}
}

// attached decodes what the program added for the model. What was rendered
// goes as it was; of what was not, only what would be lost is put in words.
func attached(data []byte, l *Talk) ([]agent.Block, error) {
	var a struct {
		Attachment struct {
			Type         string          `json:"type"`
			Prompt       json.RawMessage `json:"prompt"`
			Content      json.RawMessage `json:"content"`
			Filename     string          `json:"filename"`
			SystemPrompt json.RawMessage `json:"systemPrompt"`
		} `json:"attachment"`
		Rendered json.RawMessage `json:"rendered"`
		Role     string          `json:"renderedRole"`
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, fmt.Errorf("an attachment of an unknown form")
	}
	t := a.Attachment
	if t.Type == "prompt_snapshot" {
		var parts []string
		if json.Unmarshal(t.SystemPrompt, &parts) == nil {
			l.System = parts
		}
		return nil, nil
	}
	if len(a.Rendered) > 0 && string(a.Rendered) != "null" {
		return rendered(t.Type, a.Role, a.Rendered), nil
	}
	switch t.Type {
	case "queued_command": // a prompt that joined a running turn
		bs, err := Content(t.Prompt)
		return bs, err
	case "hook_additional_context":
		var texts []string
		if json.Unmarshal(t.Content, &texts) != nil {
			s, _ := Unquote(t.Content)
			texts = []string{s}
		}
		return notes("hook", texts...), nil
	case "file":
		var c struct {
			File struct {
				Content string `json:"content"`
			} `json:"file"`
		}
		if json.Unmarshal(t.Content, &c) == nil && c.File.Content != "" {
			return notes("file", "Contents of "+t.Filename+" when it was mentioned:\n"+c.File.Content), nil
		}
	}
	return nil, nil
}

// notes wraps texts as the program wraps what it adds.
func notes(kind string, texts ...string) []agent.Block {
	var bs []agent.Block
	for _, t := range texts {
		if strings.TrimSpace(t) != "" {
			bs = append(bs, &agent.Text{Text: "<system-reminder>\n" + t + "\n</system-reminder>", Note: kind})
		}
	}
	return bs
}

func rendered(kind, role string, list json.RawMessage) []agent.Block {
	if kind == "" {
		kind = "note"
	}
	var parts []struct {
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(list, &parts) != nil {
		return nil
	}
	var bs []agent.Block
	for _, p := range parts {
		texts, err := Content(p.Content)
		if err != nil {
			continue
		}
		for _, b := range texts {
			t, ok := b.(*agent.Text)
			switch {
			case !ok:
				bs = append(bs, b)
			case role == "system":
				bs = append(bs, notes(kind, t.Text)...)
			case strings.TrimSpace(t.Text) != "":
				bs = append(bs, &agent.Text{Text: t.Text, Note: kind})
			}
		}
	}
	return bs
}
