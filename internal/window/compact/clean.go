package compact

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// Clean returns m without what every upstream refuses in a block: blank
// texts, thinking that was never signed, images without data, inputs that are
// no objects. references says that the upstream knows tool references. It
// returns m itself, Wire included, if nothing had to change; a message of
// which nothing is left has no blocks.
func Clean(m agent.Message, references bool) (agent.Message, []Cut) {
	var cuts []Cut
	k := cleaner{references: references, role: m.Role, note: func(what string) {
		cuts = append(cuts, Cut{Stage: "clean", UUID: m.UUID, What: what, Why: "no upstream takes it"})
	}}
	blocks, changed := k.blocks(m.Blocks)
	if !changed {
		return m, nil
	}
	m.Blocks, m.Wire = blocks, nil
	return m, cuts
}

type cleaner struct {
	references bool
	role       agent.Role
	inResult   bool
	note       func(string)
}

// blocks returns bs itself if nothing had to change.
func (k cleaner) blocks(bs []agent.Block) (out []agent.Block, changed bool) {
	for i, b := range bs {
		c := k.block(b)
		if c != b && !changed {
			changed = true
			out = append(out, bs[:i]...)
		}
		if changed && c != nil {
			out = append(out, c)
		}
	}
	if !changed {
		return bs, false
	}
	return out, true
}

// block returns b, what stands in its place, or nil.
func (k cleaner) block(b agent.Block) agent.Block {
	user := k.role == agent.User
	switch b := b.(type) {
	case *agent.Text:
		if strings.TrimSpace(b.Text) == "" {
			k.note("a blank text")
			return nil
		}
	case *agent.Thinking:
		if b.Signature == "" || user {
			k.note("thinking that was cut off or is not the model's")
			return nil
		}
	case *agent.Redacted:
		if user {
			k.note("thinking that is not the model's")
			return nil
		}
	case *agent.ToolUse:
		return k.call(b)
	case *agent.ToolResult:
		if k.inResult {
			k.note("a result in a result")
			return nil
		}
		in := k
		in.inResult = true
		blocks, changed := in.blocks(b.Blocks)
		if id := validID(b.ID); changed || id != b.ID {
			return &agent.ToolResult{ID: id, Blocks: blocks, Array: b.Array && len(blocks) > 0, IsError: b.IsError}
		}
	case *agent.Image:
		if b.Data == "" && b.URL == "" || !user {
			k.note("an image without data, or of the model")
			return stub("[An image without data stood here.]")
		}
	case *agent.Document:
		if b.Data == "" || !user {
			k.note("a document without data, or of the model")
			return stub("[An empty document stood here.]")
		}
	case *agent.ToolReference:
		if !k.references || !k.inResult {
			k.note("a reference to the tool " + b.Name)
			return stub(fmt.Sprintf("The definition of %s is loaded.", b.Name))
		}
	case *agent.Opaque:
		return k.opaque(b)
	}
	return b
}

func (k cleaner) call(b *agent.ToolUse) agent.Block {
	if k.inResult {
		k.note("a call in a result")
		return nil
	}
	n := *b
	n.ID = validID(b.ID)
	if n.Name = validWord(b.Name); n.Name == "" {
		n.Name = "unknown"
	}
	if !object(b.Input) && len(b.Input) > 0 {
		n.Input, _ = json.Marshal(map[string]any{"__unparsedToolInput": map[string]any{"raw": string(b.Input), "len": len(b.Input)}})
		n.Malformed = true
	}
	if n.ID == b.ID && n.Name == b.Name && n.Malformed == b.Malformed {
		return b
	}
	k.note("a part of the call of " + b.Name)
	return &n
}

// opaque takes a foreign cache mark off, as marks are counted, and drops what
// is no block.
func (k cleaner) opaque(b *agent.Opaque) agent.Block {
	if k.inResult {
		switch b.Type {
		case "search_result", "document", "image", "text":
		default:
			k.note("a block (" + b.Type + ") in a result")
			return stub("[A block (" + b.Type + ") stood here.]")
		}
	}
	if !json.Valid(b.Raw) {
		k.note("a block (" + b.Type + ") that is no JSON")
		return nil
	}
	if !strings.Contains(string(b.Raw), `"cache_control"`) {
		return b
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(b.Raw, &fields) != nil || fields["cache_control"] == nil {
		return b
	}
	delete(fields, "cache_control")
	raw, err := json.Marshal(fields) // sorted by key: the same each time
	if err != nil {
		return b
	}
	k.note("a cache mark")
	return &agent.Opaque{Type: b.Type, Raw: raw}
}

// validID maps an id of a foreign transcript to one that upstreams take. The
// call and its result map alike.
func validID(id agent.CallID) agent.CallID {
	if v := validWord(string(id)); v != "" {
		return agent.CallID(v)
	}
	return "unknown"
}

// validWord returns s with '_' for what is no letter, digit, '_' or '-'.
func validWord(s string) string {
	ok := func(c byte) bool {
		return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	for i := range len(s) {
		if ok(s[i]) {
			continue
		}
		b := []byte(s)
		for j := i; j < len(b); j++ {
			if !ok(b[j]) {
				b[j] = '_'
			}
		}
		s = string(b)
		break
	}
	return s[:min(len(s), 128)]
}

// stub is a text that stands where something was.
func stub(s string) *agent.Text { return &agent.Text{Text: s, Note: "stub"} }
