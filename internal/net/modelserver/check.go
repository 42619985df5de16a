package modelserver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Violation is one way in which a request breaks the API's rules.
type Violation struct {
	Path    string // such as messages.3.content.1
	Message string
}

func (v Violation) String() string { return v.Path + ": " + v.Message }

// maxMarks is how many cache marks one request may carry.
const maxMarks = 4

// Check returns every rule of the API that r breaks, in the order of the
// request. mem says which thinking was sent by the model; nil trusts none but
// that which proves itself by its signature.
func (r *Request) Check(mem *Memory) []Violation {
	c := checker{r: r, mem: mem}
	c.top()
	c.tools()
	c.system()
	c.messages()
	c.marks()
	return c.bad
}

type checker struct {
	r   *Request
	mem *Memory
	bad []Violation
}

func (c *checker) fail(path, format string, args ...any) {
	c.bad = append(c.bad, Violation{path, fmt.Sprintf(format, args...)})
}

// known lists the keys the API takes; anything else is refused by name.
const (
	knownTop     = " model messages system tools tool_choice metadata max_tokens thinking context_management output_config output_format stream temperature top_p top_k stop_sequences service_tier container mcp_servers cache_control inference_geo speed "
	knownMessage = " role content "
)

var knownBlock = map[string]string{
	"text":              " type text citations cache_control ",
	"thinking":          " type thinking signature ",
	"redacted_thinking": " type data ",
	"tool_use":          " type id name input cache_control caller ",
	"tool_result":       " type tool_use_id content is_error cache_control ",
	"image":             " type source cache_control ",
	"document":          " type source title context citations cache_control ",
	"tool_reference":    " type tool_name cache_control ",
}

func (c *checker) extra(path, known string, fs fields) {
	for _, f := range fs {
		if !strings.Contains(known, " "+f.key+" ") {
			c.fail(join(path, f.key), "extra inputs are not permitted")
		}
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func (c *checker) top() {
	r := c.r
	if err := checkText(r.Raw); err != nil {
		c.fail("body", "%v", err)
	}
	c.extra("", knownTop, r.fields)
	if r.Model == "" {
		c.fail("model", "a model is required")
	}
	if r.MaxTokens <= 0 {
		c.fail("max_tokens", "must be greater than 0")
	}
	switch t := r.Thinking; t.Type {
	case "", "adaptive", "disabled":
	case "enabled":
		if t.Budget < 1024 {
			c.fail("thinking.enabled.budget_tokens", "must be at least 1024")
		}
		if t.Budget >= r.MaxTokens {
			c.fail("max_tokens", "must be greater than thinking.budget_tokens")
		}
	default:
		c.fail("thinking.type", "%q is not one of adaptive, enabled, disabled", t.Type)
	}
	if raw := r.fields.of("tool_choice"); raw != nil {
		var tc struct{ Type, Name string }
		if json.Unmarshal(raw, &tc) != nil || !strings.Contains(" auto any tool none ", " "+tc.Type+" ") {
			c.fail("tool_choice.type", "is not one of auto, any, tool, none")
		}
		if tc.Type == "tool" && !r.Offers(tc.Name) {
			c.fail("tool_choice.name", "no tool is called %q", tc.Name)
		}
		if r.Thinking.On() && (tc.Type == "any" || tc.Type == "tool") {
			c.fail("tool_choice.type", "thinking cannot be combined with a forced tool")
		}
	}
}

func (c *checker) tools() {
	seen := map[string]bool{}
	for i, t := range c.r.Tools {
		path := fmt.Sprintf("tools.%d", i)
		if !nameOK(t.Name, 128) {
			c.fail(path+".name", "%q does not match ^[a-zA-Z0-9_-]{1,128}$", t.Name)
		}
		if seen[t.Name] {
			c.fail(path+".name", "tool names must be unique: %q", t.Name)
		}
		seen[t.Name] = true
		if t.Type != "" && t.Type != "custom" {
			continue // a server tool: its definition is the server's
		}
		var schema map[string]json.RawMessage
		if json.Unmarshal(t.Schema, &schema) != nil || schema == nil {
			c.fail(path+".input_schema", "must be a JSON schema")
			continue
		}
		if string(schema["type"]) != `"object"` {
			c.fail(path+".input_schema.type", "must be object")
		}
		for _, k := range []string{"oneOf", "allOf", "anyOf"} {
			if _, ok := schema[k]; ok {
				c.fail(path+".input_schema", "does not support %s at the top level", k)
			}
		}
		if raw, ok := schema["properties"]; ok {
			var props map[string]json.RawMessage
			if json.Unmarshal(raw, &props) != nil {
				c.fail(path+".input_schema.properties", "must be an object")
			}
			for _, name := range slices.Sorted(maps.Keys(props)) {
				if !propertyOK(name) {
					c.fail(path+".input_schema.properties", "property %q does not match ^[a-zA-Z0-9_.-]{1,64}$", name)
				}
			}
		}
	}
}

func (c *checker) system() {
	for i, b := range c.r.System {
		path := fmt.Sprintf("system.%d", i)
		if b.Type != "text" {
			c.fail(path+".type", "must be text")
			continue
		}
		c.text(path, &b)
	}
}

func (c *checker) text(path string, b *Block) {
	c.extra(path, knownBlock["text"], b.fields)
	switch {
	case strings.TrimSpace(b.Text) != "":
	case len(b.CacheControl) > 0:
		c.fail(path, "cache_control cannot be set for an empty text block")
	default:
		c.fail(path, "text content blocks must be non-empty and contain more than whitespace")
	}
}

// A placed block knows where it stood before neighbours were joined.
type placed struct {
	*Block
	path string
}

// A joined turn holds the blocks of neighbouring messages of one role.
type joined struct {
	role   string
	path   string
	blocks []placed
}

func (c *checker) messages() {
	r := c.r
	if len(r.Messages) == 0 {
		c.fail("messages", "at least one message is required")
		return
	}
	var turns []joined
	for i := range r.Messages {
		m := &r.Messages[i]
		path := fmt.Sprintf("messages.%d", i)
		c.extra(path, knownMessage, m.fields)
		if m.Role != "user" && m.Role != "assistant" {
			c.fail(path+".role", "%q is not one of user, assistant", m.Role)
			continue
		}
		if len(m.Blocks) == 0 {
			c.fail(path, "all messages must have non-empty content")
		}
		if len(turns) == 0 || turns[len(turns)-1].role != m.Role {
			turns = append(turns, joined{role: m.Role, path: path})
		}
		t := &turns[len(turns)-1]
		for j := range m.Blocks {
			t.blocks = append(t.blocks, placed{&m.Blocks[j], fmt.Sprintf("%s.content.%d", path, j)})
		}
	}
	if len(turns) == 0 {
		return
	}
	if turns[0].role != "user" {
		c.fail("messages.0.role", "the first message must have the role user")
	}
	ids := map[string]bool{}
	for k := range turns {
		for _, b := range turns[k].blocks {
			c.block(turns[k].role, b, ids)
		}
		switch turns[k].role {
		case "assistant":
			c.pairs(turns, k)
		case "user":
			c.results(turns, k)
		}
	}
	if last := turns[len(turns)-1]; last.role != "user" {
		c.fail(last.path, "the conversation must end with a user message")
	}
	c.loop(turns)
}

func (c *checker) block(role string, b placed, ids map[string]bool) {
	if known, ok := knownBlock[b.Type]; ok && b.Type != "text" {
		c.extra(b.path, known, b.fields)
	}
	only := func(want string) {
		if role != want {
			c.fail(b.path+".type", "%s is not allowed in a message of the %s", b.Type, role)
		}
	}
	switch b.Type {
	case "text":
		c.text(b.path, b.Block)
	case "thinking":
		only("assistant")
		if !c.mem.thought(b.Thinking, b.Signature) {
			c.fail(b.path, "invalid signature in thinking block: text or signature is not what the model sent")
		}
	case "redacted_thinking":
		only("assistant")
		if !c.mem.redacted(b.Data) {
			c.fail(b.path, "invalid data in redacted_thinking block: it is not what the model sent")
		}
	case "tool_use":
		only("assistant")
		if !nameOK(b.ID, 256) {
			c.fail(b.path+".id", "%q does not match ^[a-zA-Z0-9_-]+$", b.ID)
		}
		if ids[b.ID] {
			c.fail(b.path, "tool_use ids must be unique: %s", b.ID)
		}
		ids[b.ID] = true
		if !nameOK(b.Name, 200) {
			c.fail(b.path+".name", "%q does not match ^[a-zA-Z0-9_-]{1,200}$", b.Name)
		}
		if in := bytes.TrimSpace(b.Input); len(in) == 0 || in[0] != '{' {
			c.fail(b.path+".input", "must be an object")
		}
	case "tool_result":
		only("user")
		for i := range b.Content {
			in := placed{&b.Content[i], fmt.Sprintf("%s.content.%d", b.path, i)}
			switch in.Type {
			case "text":
				// An empty string is a result without output, an empty block is not.
				if b.content[0] == '[' {
					c.text(in.path, in.Block)
				}
			case "image":
				c.image(in)
			case "document", "tool_reference", "search_result":
			default:
				c.fail(in.path+".type", "%s is not allowed in a tool_result", in.Type)
			}
		}
	case "image":
		c.image(b)
	}
}

// image checks that the bytes of a picture are what they are said to be.
func (c *checker) image(b placed) {
	var src struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
		URL       string `json:"url"`
	}
	if json.Unmarshal(b.fields.of("source"), &src) != nil {
		c.fail(b.path+".image.source", "is missing")
		return
	}
	if src.Type != "base64" {
		return
	}
	data, err := base64.StdEncoding.DecodeString(src.Data)
	if err != nil || len(data) == 0 {
		c.fail(b.path+".image.source.base64", "invalid base64 data")
		return
	}
	magic := map[string]string{"image/png": "\x89PNG\r\n\x1a\n", "image/jpeg": "\xff\xd8\xff", "image/gif": "GIF8", "image/webp": "RIFF"}
	want, ok := magic[src.MediaType]
	if !ok {
		c.fail(b.path+".image.source.base64.media_type", "%q is not one of image/jpeg, image/png, image/gif, image/webp", src.MediaType)
	} else if !bytes.HasPrefix(data, []byte(want)) {
		c.fail(b.path+".image.source.base64.data", "could not process image")
	}
}

// pairs checks that every tool_use of turn k has one result in the next turn.
func (c *checker) pairs(turns []joined, k int) {
	for _, u := range turns[k].blocks {
		if u.Type != "tool_use" {
			continue
		}
		n := 0
		if k+1 < len(turns) {
			for _, b := range turns[k+1].blocks {
				if b.Type == "tool_result" && b.ToolUseID == u.ID {
					n++
				}
			}
		}
		switch {
		case n == 0:
			c.fail(u.path, "tool_use %s has no tool_result in the next message", u.ID)
		case n > 1:
			c.fail(u.path, "tool_use %s has %d tool_result blocks: exactly one is allowed", u.ID, n)
		}
	}
}

// results checks that the results of turn k answer the turn before, and
// stand in front of anything else.
func (c *checker) results(turns []joined, k int) {
	called := map[string]bool{}
	if k > 0 {
		for _, b := range turns[k-1].blocks {
			if b.Type == "tool_use" {
				called[b.ID] = true
			}
		}
	}
	other := ""
	for _, b := range turns[k].blocks {
		if b.Type != "tool_result" {
			other = b.path
			continue
		}
		if !called[b.ToolUseID] {
			c.fail(b.path, "tool_result %s answers no tool_use of the previous message", b.ToolUseID)
		} else if other != "" {
			c.fail(b.path, "tool_result blocks must come before other content (%s)", other)
		}
	}
}

// loop checks that thinking which came with the calls of the running tool
// loop is still there: from the last user turn without results on.
func (c *checker) loop(turns []joined) {
	if !c.r.Thinking.On() || c.mem == nil {
		return
	}
	start := 0
	for k, t := range turns {
		plain := t.role == "user"
		for _, b := range t.blocks {
			plain = plain && b.Type != "tool_result"
		}
		if plain {
			start = k
		}
	}
	for _, t := range turns[start:] {
		have := map[string]bool{}
		for _, b := range t.blocks {
			switch b.Type {
			case "thinking":
				have[b.Signature] = true
			case "redacted_thinking":
				have[b.Data] = true
			}
		}
		for _, b := range t.blocks {
			if b.Type != "tool_use" {
				continue
			}
			for _, want := range c.mem.before(b.ID) {
				if !have[want] {
					c.fail(b.path, "the thinking block that came with tool_use %s is missing", b.ID)
					break
				}
			}
		}
	}
}

// marks counts and checks the cache marks, wherever they stand.
func (c *checker) marks() {
	n, short := 0, false
	mark := func(path string, raw json.RawMessage) {
		if len(raw) == 0 || string(raw) == "null" {
			return
		}
		n++
		var cc struct{ Type, TTL string }
		switch json.Unmarshal(raw, &cc); {
		case cc.Type != "ephemeral":
			c.fail(path+".cache_control.type", "must be ephemeral")
		case cc.TTL != "" && cc.TTL != "5m" && cc.TTL != "1h":
			c.fail(path+".cache_control.ttl", "is not one of 5m, 1h")
		case cc.TTL == "1h" && short:
			c.fail(path+".cache_control.ttl", "a 1h mark must not come after a 5m mark")
		}
		short = short || cc.TTL != "1h"
	}
	for i, t := range c.r.Tools {
		mark(fmt.Sprintf("tools.%d", i), t.CacheControl)
	}
	for i, b := range c.r.System {
		mark(fmt.Sprintf("system.%d", i), b.CacheControl)
	}
	for i, m := range c.r.Messages {
		for j, b := range m.Blocks {
			path := fmt.Sprintf("messages.%d.content.%d", i, j)
			for k, in := range b.Content {
				mark(fmt.Sprintf("%s.content.%d", path, k), in.CacheControl)
			}
			mark(path, b.CacheControl)
		}
	}
	if n > maxMarks {
		c.fail("cache_control", "a maximum of %d blocks with cache_control may be provided, found %d", maxMarks, n)
	}
}

// nameOK reports whether s is 1 to limit letters, digits, '_' or '-'.
func nameOK(s string, limit int) bool {
	return len(s) <= limit && strings.IndexFunc(s, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-')
	}) < 0 && s != ""
}

func propertyOK(s string) bool { return nameOK(strings.ReplaceAll(s, ".", "_"), 64) }
