package modelserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Request is one call of the Messages API, parsed. It is never changed.
type Request struct {
	N         int // counts the message requests of a server from 0
	Header    http.Header
	Raw       []byte
	Model     string
	MaxTokens int
	Stream    bool
	Thinking  Thought
	System    []Block
	Tools     []ToolDef
	Messages  []Message

	fields fields // the top level
}

// A Thought is the thinking setting of a request.
type Thought struct {
	Type   string `json:"type"`
	Budget int    `json:"budget_tokens"`
}

// On reports whether the model may think.
func (t Thought) On() bool { return t.Type != "" && t.Type != "disabled" }

// A ToolDef is one tool that a request offers. Server tools have a Type.
type ToolDef struct {
	Type         string          `json:"type"`
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	Schema       json.RawMessage `json:"input_schema"`
	Deferred     bool            `json:"defer_loading"`
	CacheControl json.RawMessage `json:"cache_control"`
	Raw          json.RawMessage `json:"-"`
}

// A Message is one entry of the conversation, as sent.
type Message struct {
	Role   string
	Blocks []Block // a content string is one text block
	fields fields
}

// A Block is one content block, as sent. Only the fields of its type are set.
type Block struct {
	Type         string
	Text         string
	Thinking     string
	Signature    string
	Data         string
	ID           string
	Name         string
	Input        json.RawMessage
	ToolUseID    string
	IsError      bool
	CacheControl json.RawMessage
	Content      []Block // of a tool_result
	Raw          json.RawMessage

	content json.RawMessage
	fields  fields
}

// A Result is one tool result that the newest user turn brings.
type Result struct {
	ID, Tool string
	Input    json.RawMessage // of the call
	Text     string          // its texts, joined by newlines
	IsError  bool
}

// errShape is a request that cannot be read at all.
type errShape struct{ path, message string }

func (e *errShape) Error() string { return e.path + ": " + e.message }

// ParseRequest reads the body of a call. Its error names the part that is not
// of the API's shape; what is well formed but not allowed is for Check.
func ParseRequest(body []byte) (*Request, error) {
	r := &Request{Raw: body}
	ok := json.Valid(body)
	if ok {
		r.fields, ok = object(body)
	}
	if !ok {
		return nil, &errShape{"body", "the request body is not a JSON object"}
	}
	for _, f := range []struct {
		key  string
		into any
	}{
		{"model", &r.Model}, {"max_tokens", &r.MaxTokens}, {"stream", &r.Stream}, {"thinking", &r.Thinking},
	} {
		if raw := r.fields.of(f.key); raw != nil && json.Unmarshal(raw, f.into) != nil {
			return nil, &errShape{f.key, "is not of the expected type"}
		}
	}
	var err error
	if r.System, err = parseContent("system", r.fields.of("system")); err != nil {
		return nil, err
	}
	if raw := r.fields.of("tools"); raw != nil {
		tools, ok := array(raw)
		if !ok {
			return nil, &errShape{"tools", "is not an array"}
		}
		for i, raw := range tools {
			t := ToolDef{Raw: raw}
			if json.Unmarshal(raw, &t) != nil {
				return nil, &errShape{fmt.Sprintf("tools.%d", i), "is not a tool definition"}
			}
			r.Tools = append(r.Tools, t)
		}
	}
	msgs, ok := array(r.fields.of("messages"))
	if !ok {
		return nil, &errShape{"messages", "is missing or not an array of messages"}
	}
	for i, raw := range msgs {
		var m Message
		path := fmt.Sprintf("messages.%d", i)
		m.fields, _ = object(raw)
		if m.Role = text(m.fields.of("role")); m.Role == "" {
			return nil, &errShape{path + ".role", "is missing"}
		}
		if m.Blocks, err = parseContent(path+".content", m.fields.of("content")); err != nil {
			return nil, err
		}
		r.Messages = append(r.Messages, m)
	}
	return r, nil
}

// parseContent reads content: nothing, a string, or an array of blocks.
func parseContent(path string, raw json.RawMessage) ([]Block, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if raw[0] == '"' {
		fs := fields{{"text", raw}, {"type", json.RawMessage(`"text"`)}}
		return []Block{{Type: "text", Text: text(raw), Raw: fs.encode(nil), fields: fs}}, nil
	}
	parts, ok := array(raw)
	if !ok {
		return nil, &errShape{path, "is neither a string nor an array of blocks"}
	}
	bs := make([]Block, 0, len(parts))
	for i, p := range parts {
		at := fmt.Sprintf("%s.%d", path, i)
		b, err := parseBlock(at, p)
		if err != nil {
			return nil, err
		}
		bs = append(bs, b)
	}
	return bs, nil
}

func parseBlock(path string, raw json.RawMessage) (b Block, err error) {
	fs, ok := object(raw)
	if !ok {
		return b, &errShape{path, "is not a content block"}
	}
	b = Block{
		Type: text(fs.of("type")), Text: text(fs.of("text")), Thinking: text(fs.of("thinking")), Signature: text(fs.of("signature")),
		Data: text(fs.of("data")), ID: text(fs.of("id")), Name: text(fs.of("name")), Input: fs.of("input"), ToolUseID: text(fs.of("tool_use_id")),
		IsError: string(fs.of("is_error")) == "true", CacheControl: fs.of("cache_control"), Raw: raw, fields: fs,
	}
	if b.Type == "" {
		return b, &errShape{path + ".type", "is missing"}
	}
	if b.Type == "tool_result" {
		b.content = fs.of("content")
		b.Content, err = parseContent(path+".content", b.content)
	}
	return b, err
}

// Offers reports whether the request offers the tool with that name.
func (r *Request) Offers(name string) bool {
	for _, t := range r.Tools {
		if t.Name == name {
			return true
		}
	}
	return false
}

// Turn returns the blocks of the newest user turn: what stands behind the
// last assistant message.
func (r *Request) Turn() []Block {
	i := len(r.Messages)
	for i > 0 && r.Messages[i-1].Role != "assistant" {
		i--
	}
	var bs []Block
	for _, m := range r.Messages[i:] {
		if m.Role == "user" {
			bs = append(bs, m.Blocks...)
		}
	}
	return bs
}

// Results returns the tool results of the newest user turn.
func (r *Request) Results() []Result {
	var out []Result
	for _, b := range r.Turn() {
		if b.Type == "tool_result" {
			out = append(out, r.result(b))
		}
	}
	return out
}

// Work returns the tool results since the prompt, oldest first: what the job
// that is being done has brought so far.
func (r *Request) Work() []Result {
	start := 0
	for i, m := range r.Messages {
		if m.Role == "user" && !hasResult(m.Blocks) && !onlyReminders(m.Blocks) {
			start = i
		}
	}
	var out []Result
	for _, m := range r.Messages[start:] {
		for _, b := range m.Blocks {
			if b.Type == "tool_result" {
				out = append(out, r.result(b))
			}
		}
	}
	return out
}

func (r *Request) result(b Block) Result {
	res := Result{ID: b.ToolUseID, IsError: b.IsError, Text: textOf(b.Content)}
	for _, m := range r.Messages {
		for _, u := range m.Blocks {
			if u.Type == "tool_use" && u.ID == b.ToolUseID {
				res.Tool, res.Input = u.Name, u.Input
			}
		}
	}
	return res
}

// Prompt returns what a person asked: the last text block of the last user
// turn that brought no tool results, reminders left out.
func (r *Request) Prompt() string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		m := r.Messages[i]
		if m.Role != "user" || hasResult(m.Blocks) {
			continue
		}
		for j := len(m.Blocks) - 1; j >= 0; j-- {
			if b := m.Blocks[j]; b.Type == "text" && !strings.HasPrefix(b.Text, "<system-reminder>") {
				return b.Text
			}
		}
	}
	return ""
}

// Last returns all text of the newest user turn, tool results included.
func (r *Request) Last() string { return textOf(r.Turn()) }

// All returns all text of the request, wherever it stands.
func (r *Request) All() string {
	var b strings.Builder
	b.WriteString(textOf(r.System))
	for _, m := range r.Messages {
		b.WriteByte('\n')
		b.WriteString(textOf(m.Blocks))
	}
	return b.String()
}

func hasResult(bs []Block) bool {
	for _, b := range bs {
		if b.Type == "tool_result" {
			return true
		}
	}
	return false
}

func onlyReminders(bs []Block) bool {
	for _, b := range bs {
		if b.Type != "text" || !strings.HasPrefix(b.Text, "<system-reminder>") {
			return false
		}
	}
	return true
}

func textOf(bs []Block) string {
	var parts []string
	for _, b := range bs {
		switch b.Type {
		case "text":
			parts = append(parts, b.Text)
		case "tool_result":
			parts = append(parts, textOf(b.Content))
		}
	}
	return strings.Join(parts, "\n")
}

// encode appends the object of fs to dst: sorted keys, values as they were
// sent, no cache mark. It is what the cache compares.
func (fs fields) encode(dst []byte) []byte {
	dst = append(dst, '{')
	n := 0
	for _, f := range fs {
		if f.key == "cache_control" {
			continue
		}
		if n > 0 {
			dst = append(dst, ',')
		}
		n++
		dst = append(dst, '"')
		dst = append(dst, f.key...)
		dst = append(dst, '"', ':')
		dst = append(dst, f.raw...)
	}
	return append(dst, '}')
}

// bare appends the block without its cache marks.
func (b *Block) bare(dst []byte) []byte {
	if len(b.content) == 0 || b.content[0] != '[' {
		return b.fields.encode(dst)
	}
	fs := slices.Clone(b.fields)
	inner := []byte{'['}
	for i := range b.Content {
		if i > 0 {
			inner = append(inner, ',')
		}
		inner = b.Content[i].bare(inner)
	}
	for i := range fs {
		if fs[i].key == "content" {
			fs[i].raw = append(inner, ']')
		}
	}
	return fs.encode(dst)
}

// bare appends the definition without its cache mark.
func (t *ToolDef) bare(dst []byte) []byte {
	fs, _ := object(t.Raw)
	return fs.encode(dst)
}

// encode is json.Marshal without the escapes for HTML.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// checkText reports bytes that are no text: bad UTF-8, or half a surrogate
// pair written as an escape.
func checkText(body []byte) error {
	if !utf8.Valid(body) {
		return errors.New("the request body is not valid UTF-8")
	}
	for i := 0; i+5 < len(body); i++ {
		if body[i] != '\\' {
			continue
		}
		if body[i+1] != 'u' {
			i++ // an escaped character, perhaps a backslash
			continue
		}
		switch u := unit(body[i:]); {
		case u >= 0xd800 && u < 0xdc00:
			if low := unit(body[i+6:]); low < 0xdc00 || low > 0xdfff {
				return fmt.Errorf("the request body is not valid JSON: no low surrogate in string at byte %d", i)
			}
			i += 11
		case u >= 0xdc00 && u < 0xe000:
			return fmt.Errorf("the request body is not valid JSON: no high surrogate in string at byte %d", i)
		default:
			i += 5
		}
	}
	return nil
}

// unit decodes \uXXXX at the start of b, or returns -1.
func unit(b []byte) int {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	n := 0
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | int(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			n = n<<4 | int(c|0x20-'a'+10)
		default:
			return -1
		}
	}
	return n
}

// Extends checks that r goes on where old ended: that tools, system and every
// block of old up to its last cache mark stand at the same place in r, byte
// for byte but for the marks. The error names the first block that does not.
func (r *Request) Extends(old *Request) error {
	was, is := segments(old), segments(r)
	last := -1
	for i, s := range was {
		if s.mark != "" {
			last = i
		}
	}
	for i := range last + 1 {
		if i >= len(is) {
			return fmt.Errorf("%s is gone", was[i].path)
		}
		// The keys are running hashes: the first that differs is the break.
		if was[i].key != is[i].key {
			return fmt.Errorf("%s is not what it was (it is %s now)", was[i].path, is[i].path)
		}
	}
	return nil
}
