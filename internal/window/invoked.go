package window

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// An Invocation is a skill that a conversation has called.
type Invocation struct{ Name, Args string }

// What a skill that is put back behind a summary begins with.
const skillHead, skillTail = "The skill ", " was invoked earlier and still applies:\n\n"

// Invoked returns the skills that h has called, by the tool, by a command, or
// in the part that a summary replaced, newest first and each once.
func Invoked(h []agent.Message) []Invocation {
	failed := map[agent.CallID]bool{}
	for _, m := range h {
		for _, b := range m.Blocks {
			if r, ok := b.(*agent.ToolResult); ok && r.IsError {
				failed[r.ID] = true
			}
		}
	}
	var out []Invocation
	add := func(name, args string) {
		name = strings.TrimPrefix(strings.TrimSpace(name), "/")
		if name != "" && !slices.ContainsFunc(out, func(i Invocation) bool { return i.Name == name }) {
			out = append(out, Invocation{name, args})
		}
	}
	for _, m := range slices.Backward(h) {
		var back []string // within a message the newest stand first
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case *agent.ToolUse:
				var in struct{ Skill, Args string }
				if b.Name == "Skill" && !failed[b.ID] && json.Unmarshal(b.Input, &in) == nil {
					add(in.Skill, in.Args)
				}
			case *agent.Text:
				if m.Role != agent.User {
					continue
				}
				if name, ok := inside(b.Text, "command-name"); ok && strings.HasPrefix(b.Text, "<command-") {
					args, _ := inside(b.Text, "command-args")
					add(name, args)
				}
				if _, rest, ok := strings.Cut(b.Text, skillHead); ok && strings.HasPrefix(b.Text, "<system-reminder>") {
					if name, _, ok := strings.Cut(rest, skillTail); ok && !strings.ContainsAny(name, " \n") {
						back = append(back, name)
					}
				}
			}
		}
		for _, name := range back {
			add(name, "")
		}
	}
	return out
}

// inside is what stands in the first element of that name.
func inside(s, name string) (string, bool) {
	_, rest, ok := strings.Cut(s, "<"+name+">")
	if !ok {
		return "", false
	}
	text, _, ok := strings.Cut(rest, "</"+name+">")
	return text, ok
}
