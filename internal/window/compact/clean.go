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
	blocks, changed := cleanBlocks(m.Blocks, references, func(what string) {
		cuts = append(cuts, Cut{Stage: "clean", UUID: m.UUID, What: what, Why: "no upstream takes it"})
	})
	if !changed {
		return m, nil
	}
	m.Blocks, m.Wire = blocks, nil
	return m, cuts
}

// cleanBlocks returns bs itself if nothing had to change.
func cleanBlocks(bs []agent.Block, references bool, note func(string)) (out []agent.Block, changed bool) {
	for i, b := range bs {
		c := cleanBlock(b, references, note)
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

// cleanBlock returns b, what stands in its place, or nil.
func cleanBlock(b agent.Block, references bool, note func(string)) agent.Block {
	switch b := b.(type) {
	case *agent.Text:
		if strings.TrimSpace(b.Text) == "" {
			note("a blank text")
			return nil
		}
	case *agent.Thinking:
		if b.Signature == "" {
			note("thinking that was cut off")
			return nil
		}
	case *agent.ToolUse:
		if !object(b.Input) && len(b.Input) > 0 {
			note("the input of " + b.Name + ", which is no object")
			raw, _ := json.Marshal(map[string]any{"__unparsedToolInput": map[string]any{"raw": string(b.Input), "len": len(b.Input)}})
			return &agent.ToolUse{ID: b.ID, Name: b.Name, Input: raw, Malformed: true}
		}
	case *agent.ToolResult:
		blocks, changed := cleanBlocks(b.Blocks, references, note)
		if changed {
			return &agent.ToolResult{ID: b.ID, Blocks: blocks, Array: b.Array && len(blocks) > 0, IsError: b.IsError}
		}
	case *agent.Image:
		if b.Data == "" && b.URL == "" {
			note("an image without data")
			return stub("[An image without data stood here.]")
		}
	case *agent.Document:
		if b.Data == "" {
			note("a document without data")
			return stub("[An empty document stood here.]")
		}
	case *agent.ToolReference:
		if !references {
			note("a reference to the tool " + b.Name)
			return stub(fmt.Sprintf("The definition of %s is loaded.", b.Name))
		}
	}
	return b
}

// stub is a text that stands where something was.
func stub(s string) *agent.Text { return &agent.Text{Text: s, Note: "stub"} }
