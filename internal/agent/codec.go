package agent

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// AppendString appends s to dst as a JSON string. Invalid UTF-8 becomes
// U+FFFD; '<', '>' and '&' stay as they are; U+2028 and U+2029 are escaped
// so that a line of JSON is one line for every reader.
func AppendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' && c != 0x7f {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
			i++
			start = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			dst = append(dst, s[start:i]...)
			dst = append(dst, "\ufffd"...)
			start = i + n
		case r == '\u2028' || r == '\u2029':
			dst = append(dst, s[start:i]...)
			dst = append(dst, '\\', 'u', '2', '0', '2', hex[r&15])
			start = i + n
		}
		i += n
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// AppendBlock appends the Messages API encoding of b to dst. The bytes
// depend on b alone: the same block always has the same encoding.
func AppendBlock(dst []byte, b Block) []byte {
	switch b := b.(type) {
	case *Text:
		dst = append(dst, `{"type":"text","text":`...)
		dst = AppendString(dst, b.Text)
		if len(b.Citations) > 0 && string(b.Citations) != "null" {
			dst = append(dst, `,"citations":`...)
			dst = append(dst, b.Citations...)
		}
		return append(dst, '}')
	case *Thinking:
		dst = append(dst, `{"type":"thinking","thinking":`...)
		dst = AppendString(dst, b.Text)
		dst = append(dst, `,"signature":`...)
		dst = AppendString(dst, b.Signature)
		return append(dst, '}')
	case *Redacted:
		dst = append(dst, `{"type":"redacted_thinking","data":`...)
		dst = AppendString(dst, b.Data)
		return append(dst, '}')
	case *ToolUse:
		dst = append(dst, `{"type":"tool_use","id":`...)
		dst = AppendString(dst, string(b.ID))
		dst = append(dst, `,"name":`...)
		dst = AppendString(dst, b.Name)
		dst = append(dst, `,"input":`...)
		if len(b.Input) == 0 {
			dst = append(dst, "{}"...)
		} else {
			dst = append(dst, b.Input...)
		}
		return append(dst, '}')
	case *ToolResult:
		dst = append(dst, `{"type":"tool_result","tool_use_id":`...)
		dst = AppendString(dst, string(b.ID))
		dst = append(dst, `,"content":`...)
		if t, ok := plain(b); ok {
			dst = AppendString(dst, t)
		} else {
			dst = AppendBlocks(dst, b.Blocks)
		}
		if b.IsError {
			dst = append(dst, `,"is_error":true`...)
		}
		return append(dst, '}')
	case *Image:
		dst = append(dst, `{"type":"image","source":`...)
		dst = appendSource(dst, b.MediaType, b.Data, b.URL)
		return append(dst, '}')
	case *Document:
		dst = append(dst, `{"type":"document","source":`...)
		if b.MediaType == "text/plain" {
			dst = append(dst, `{"type":"text","media_type":"text/plain","data":`...)
			dst = AppendString(dst, b.Data)
			dst = append(dst, '}')
		} else {
			dst = appendSource(dst, b.MediaType, b.Data, "")
		}
		if b.Title != "" {
			dst = append(dst, `,"title":`...)
			dst = AppendString(dst, b.Title)
		}
		return append(dst, '}')
	case *ToolReference:
		dst = append(dst, `{"type":"tool_reference","tool_name":`...)
		dst = AppendString(dst, b.Name)
		return append(dst, '}')
	case *Opaque:
		return append(dst, b.Raw...)
	}
	panic(fmt.Sprintf("agent: unknown block %T", b))
}

// plain reports the text of a result whose content may be a plain string.
func plain(r *ToolResult) (string, bool) {
	if r.Array {
		return "", false
	}
	switch len(r.Blocks) {
	case 0:
		return "", true
	case 1:
		if t, ok := r.Blocks[0].(*Text); ok {
			return t.Text, true
		}
	}
	return "", false
}

func appendSource(dst []byte, media, data, url string) []byte {
	if data == "" && url != "" {
		dst = append(dst, `{"type":"url","url":`...)
		dst = AppendString(dst, url)
		return append(dst, '}')
	}
	dst = append(dst, `{"type":"base64","media_type":`...)
	dst = AppendString(dst, media)
	dst = append(dst, `,"data":`...)
	dst = AppendString(dst, data)
	return append(dst, '}')
}

// AppendBlocks appends bs to dst as a JSON array.
func AppendBlocks(dst []byte, bs []Block) []byte {
	dst = append(dst, '[')
	for i, b := range bs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendBlock(dst, b)
	}
	return append(dst, ']')
}

// Encode returns m with Wire set.
func (m Message) Encode() Message {
	if m.Wire == nil {
		m.Wire = AppendBlocks(nil, m.Blocks)
	}
	return m
}

// DecodeBlock reads one content block. A type it does not know, or a known
// one with fields it does not know, is kept as *Opaque where sending it back
// needs the very bytes. The error names JSON that is no block at all.
func DecodeBlock(raw json.RawMessage) (Block, error) {
	var w struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Citations json.RawMessage `json:"citations"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		Data      string          `json:"data"`
		ID        CallID          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
		ToolUseID CallID          `json:"tool_use_id"`
		ToolName  string          `json:"tool_name"`
		Content   json.RawMessage `json:"content"`
		IsError   bool            `json:"is_error"`
		Title     string          `json:"title"`
		Source    *struct {
			Type      string `json:"type"`
			MediaType string `json:"media_type"`
			Data      string `json:"data"`
			URL       string `json:"url"`
		} `json:"source"`
	}
	opaque := func() *Opaque { return &Opaque{Type: w.Type, Raw: append(json.RawMessage(nil), raw...)} }
	if err := json.Unmarshal(raw, &w); err != nil {
		var t struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(raw, &t) == nil && t.Type != "" {
			w.Type = t.Type
			return opaque(), nil
		}
		return nil, fmt.Errorf("decoding content block: %w", err)
	}
	switch w.Type {
	case "":
		return nil, fmt.Errorf("decoding content block: no type in %.80q", raw)
	case "text":
		return &Text{Text: w.Text, Citations: w.Citations}, nil
	case "thinking":
		return &Thinking{Text: w.Thinking, Signature: w.Signature}, nil
	case "redacted_thinking":
		return &Redacted{Data: w.Data}, nil
	case "tool_use":
		return &ToolUse{ID: w.ID, Name: w.Name, Input: w.Input}, nil
	case "tool_result":
		r := &ToolResult{ID: w.ToolUseID, IsError: w.IsError}
		bs, array, err := DecodeContent(w.Content)
		if err != nil {
			return opaque(), nil
		}
		r.Blocks, r.Array = bs, array
		return r, nil
	case "tool_reference":
		return &ToolReference{Name: w.ToolName}, nil
	case "image":
		if s := w.Source; s != nil && s.Type == "base64" {
			return &Image{MediaType: s.MediaType, Data: s.Data}, nil
		} else if s != nil && s.Type == "url" {
			return &Image{URL: s.URL}, nil
		}
	case "document":
		if s := w.Source; s != nil && (s.Type == "base64" || s.Type == "text") {
			return &Document{MediaType: s.MediaType, Data: s.Data, Title: w.Title}, nil
		}
	}
	return opaque(), nil
}

// DecodeContent reads message or tool_result content: nothing, a string, or
// an array of blocks; array reports the last form. A lone string is one Text.
func DecodeContent(raw json.RawMessage) (bs []Block, array bool, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, false, nil
	}
	if raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, false, fmt.Errorf("decoding content: %w", err)
		}
		return []Block{&Text{Text: s}}, false, nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, false, fmt.Errorf("decoding content: %w", err)
	}
	for _, p := range parts {
		b, err := DecodeBlock(p)
		if err != nil {
			return nil, true, err
		}
		bs = append(bs, b)
	}
	return bs, true, nil
}
