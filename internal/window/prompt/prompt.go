// Package prompt is the system prompt: our own text, output styles and the
// forms in which a host may extend or replace it. It owns the wording and its
// order; docs/prompt.md gives the reason of each sentence. It does no I/O and
// knows nothing of a session: everything that differs between two sessions of
// one setting (directory, date, git, memory) stands in the first user message.
package prompt

import (
	"slices"
	"strings"
)

// Boundary is the element of a custom prompt that splits its constant head
// from a part that differs between sessions.
const Boundary = "__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__"

// A Section is one part of the system prompt.
type Section struct {
	Name string // identity, work, style, append, custom, …
	Text string // never blank
	// Mark asks for a cache mark behind this section, so that other sessions
	// can share what stands up to here. At most two sections are marked.
	Mark bool
}

// A Style is an output style.
type Style struct {
	Name, Text string
	// KeepCoding keeps our instructions for software work beside the style's own.
	KeepCoding bool
}

// Options says which form the prompt takes.
type Options struct {
	// Custom, if not nil, replaces our prompt: its elements, the Boundary
	// among them. Only blank elements ask for the minimal prompt.
	Custom []string
	// Minimal asks for the one-sentence prompt.
	Minimal bool
	Append  string // text at the very end, in every form
	Style   Style  // zero: the default style; not used with Custom, Minimal or Agent
	// Tools are the names of the tools on offer: sentences about a tool that
	// is not there are left out.
	Tools []string
	// Agent, if not "", makes the prompt of an agent from that text: of a
	// sub-agent, or with Lead of the one that leads the main conversation.
	Agent string
	Lead  bool
	// Unattended says that nobody can answer questions (print mode).
	Unattended bool
}

// Sections returns the system prompt of o: at least one section, the last
// one marked. Equal options give equal bytes.
func Sections(o Options) []Section {
	var ss []Section
	add := func(name, text string) {
		if text = strings.TrimSpace(text); text != "" {
			ss = append(ss, Section{Name: name, Text: text})
		}
	}
	switch {
	case !blank(o.Custom):
		ss = custom(o.Custom)
	case o.Minimal, o.Custom != nil:
		add("identity", minimal)
	case o.Agent != "":
		add("agent", o.Agent)
		if o.Lead {
			add("care", care)
		} else {
			add("handback", handback)
		}
		add("tools", o.tools())
		add("notes", notes)
	default:
		plain := o.Style.Text == ""
		add("identity", identity)
		if plain || o.Style.KeepCoding {
			add("work", o.work())
		}
		add("care", care)
		add("tools", o.tools())
		add("notes", notes)
		if plain || o.Style.KeepCoding {
			add("answers", answers)
		}
		if !plain {
			add("style", "# Style: "+o.Style.Name+"\n\n"+strings.TrimSpace(o.Style.Text))
		}
	}
	if strings.TrimSpace(o.Append) != "" {
		// What stands before the addition is the same for everyone who adds
		// something else; two marks are the most this prompt may take.
		if !slices.ContainsFunc(ss, func(s Section) bool { return s.Mark }) {
			ss[len(ss)-1].Mark = true
		}
		add("append", o.Append)
	}
	ss[len(ss)-1].Mark = true
	return ss
}

// custom keeps a host's own text as it is, split at the first Boundary.
func custom(parts []string) []Section {
	var ss []Section
	add := func(name string, parts []string) {
		parts = slices.DeleteFunc(slices.Clone(parts), func(s string) bool {
			return s == Boundary || strings.TrimSpace(s) == ""
		})
		if len(parts) > 0 {
			ss = append(ss, Section{Name: name, Text: strings.Join(parts, "\n\n")})
		}
	}
	if i := slices.Index(parts, Boundary); i >= 0 {
		add("custom", parts[:i])
		if len(ss) > 0 {
			ss[0].Mark = true
		}
		add("session", parts[i+1:])
		return ss
	}
	add("custom", parts)
	return ss
}

func blank(parts []string) bool {
	for _, p := range parts {
		if p != Boundary && strings.TrimSpace(p) != "" {
			return false
		}
	}
	return true
}

func (o Options) has(names ...string) bool {
	for _, n := range names {
		if !slices.Contains(o.Tools, n) {
			return false
		}
	}
	return true
}

func (o Options) work() string {
	if o.Unattended {
		return work + "\n" + unattended
	}
	return work + "\n" + attended
}

// tools returns the advice for the tools that are there, or "" without any.
func (o Options) tools() string {
	if len(o.Tools) == 0 {
		return ""
	}
	s := tools
	if o.has("Bash") && (o.has("Read") || o.has("Edit") || o.has("Grep")) {
		s += "\n" + fileTools
	}
	if o.has("Agent") {
		s += "\n" + agentTool
	}
	if o.has("ToolSearch") {
		s += "\n" + toolSearch
	}
	if o.has("TodoWrite") || o.has("TaskCreate", "TaskUpdate") {
		s += "\n" + taskList
	}
	return s
}
