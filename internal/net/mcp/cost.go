package mcp

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// A Cost is what a server takes of the context window, in tokens as estimated
// from the bytes that are sent: four to a token.
type Cost struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Err   string `json:"error,omitempty"`
	// Tokens is all of it, Deferred what is left of it while the definitions
	// wait to be looked up: the names, the instructions, and the tools that
	// are always loaded.
	Tokens       int        `json:"tokens"`
	Deferred     int        `json:"deferredTokens"`
	Instructions int        `json:"instructionTokens"`
	Tools        []ToolCost `json:"tools"`
}

// A ToolCost is what the definition of one tool takes.
type ToolCost struct {
	Name        string `json:"name"`
	Tokens      int    `json:"tokens"`
	Description int    `json:"descriptionTokens"`
	Schema      int    `json:"schemaTokens"`
	AlwaysLoad  bool   `json:"alwaysLoad,omitempty"`
}

func tokens(bytes int) int { return (bytes + 3) / 4 }

// cost is what t takes.
func (t *tool) cost() ToolCost {
	def := struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"input_schema"`
	}{t.name, t.desc, t.schema}
	raw, err := json.Marshal(def)
	if err != nil { // the schema was made by Marshal
		raw = append([]byte(t.name+t.desc), t.schema...)
	}
	return ToolCost{Name: t.name, Tokens: tokens(len(raw)), Description: tokens(len(t.desc)), Schema: tokens(len(t.schema)), AlwaysLoad: t.load}
}

// Costs returns what each server takes, its dearest tools first.
func (s *Set) Costs() []Cost {
	var out []Cost
	for _, x := range s.list() {
		x.mu.Lock()
		c := Cost{Name: x.Name, State: x.state, Err: x.err, Tools: []ToolCost{}}
		if x.info != nil {
			c.Instructions = tokens(len(clip(strings.TrimSpace(x.info.Instructions))))
		}
		names := 0
		for _, t := range x.tools {
			tc := t.cost()
			c.Tools = append(c.Tools, tc)
			c.Tokens += tc.Tokens
			if t.load {
				c.Deferred += tc.Tokens
			} else {
				names += len(t.name) + 1
			}
		}
		x.mu.Unlock()
		c.Tokens += c.Instructions
		c.Deferred += tokens(names) + c.Instructions
		slices.SortStableFunc(c.Tools, func(a, b ToolCost) int { return cmp.Compare(b.Tokens, a.Tokens) })
		out = append(out, c)
	}
	return out
}
