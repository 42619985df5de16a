package compact

import (
	"encoding/json"
	"slices"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// pathOf returns the file that a call of a file tool is about, or "".
func pathOf(u *agent.ToolUse) string {
	switch u.Name {
	case "Read", "Edit", "MultiEdit", "Write", "NotebookEdit":
	default:
		return ""
	}
	var in struct {
		File     string `json:"file_path"`
		Notebook string `json:"notebook_path"`
	}
	if json.Unmarshal(u.Input, &in) != nil {
		return ""
	}
	if in.File == "" {
		return in.Notebook
	}
	return in.File
}

// RecentFiles returns the files that the model read or changed last, newest
// first, each once, at most n.
func RecentFiles(h []agent.Message, n int) []string {
	failed := map[agent.CallID]bool{}
	for _, m := range h {
		for _, b := range m.Blocks {
			if r, ok := b.(*agent.ToolResult); ok && r.IsError {
				failed[r.ID] = true
			}
		}
	}
	var out []string
	for _, m := range slices.Backward(h) {
		for _, b := range slices.Backward(m.Blocks) {
			u, ok := b.(*agent.ToolUse)
			if !ok || failed[u.ID] {
				continue
			}
			if p := pathOf(u); p != "" && !slices.Contains(out, p) {
				if out = append(out, p); len(out) == n {
					return out
				}
			}
		}
	}
	return out
}
