package window

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// A Part is what of a request is of one kind.
type Part struct {
	Name  string
	Bytes int
}

// Parts says what the body of a request is made of, the largest first. A body
// that it cannot read has none.
func Parts(body []byte) []Part {
	type content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	var r struct {
		System   json.RawMessage   `json:"system"`
		Tools    []json.RawMessage `json:"tools"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if json.Unmarshal(body, &r) != nil {
		return nil
	}
	sum := map[string]int{"System prompt": len(r.System)}
	for _, t := range r.Tools {
		var d struct {
			Name string `json:"name"`
		}
		name := "Tool definitions"
		if json.Unmarshal(t, &d) == nil && strings.HasPrefix(d.Name, "mcp__") {
			name = "Tool definitions of servers"
		}
		sum[name] += len(t)
	}
	for _, m := range r.Messages {
		var blocks []json.RawMessage
		var kinds content
		if json.Unmarshal(m.Content, &blocks) != nil || json.Unmarshal(m.Content, &kinds) != nil {
			sum[spoken(m.Role)] += len(m.Content)
			continue
		}
		for i, raw := range blocks {
			name := "Other blocks"
			switch kinds[i].Type {
			case "text":
				name = spoken(m.Role)
				if m.Role == "user" && strings.HasPrefix(strings.TrimSpace(kinds[i].Text), "<system-reminder>") {
					name = "Notes: instructions, surroundings, reminders"
				}
			case "thinking", "redacted_thinking":
				name = "Thinking"
			case "tool_use", "server_tool_use":
				name = "Calls"
			case "tool_result":
				name = "Results of calls"
			case "image", "document":
				name = "Images and documents"
			}
			sum[name] += len(raw)
		}
	}
	var out []Part
	for name, n := range sum {
		if n > 0 {
			out = append(out, Part{name, n})
		}
	}
	slices.SortFunc(out, func(a, b Part) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name)) })
	return out
}

func spoken(role string) string {
	if role == "assistant" {
		return "Answers"
	}
	return "Prompts"
}
