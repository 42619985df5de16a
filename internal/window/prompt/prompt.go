// Package prompt is the system prompt: our own text, output styles and the
// forms in which a host may extend or replace it. It owns the wording and its
// order; docs/prompt.md gives the reason of each sentence. It does no I/O and
// knows nothing of a session: everything that differs between two sessions of
// one setting (directory, date, git, memory) stands in the first user message.
package prompt

// Boundary is the element of a custom prompt that splits its constant head
// from a part that differs between sessions.
const Boundary = "__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__"

// A Section is one text block of the system prompt.
type Section struct {
	Name string // identity, work, style, append, custom, …
	Text string // never blank
	// Mark asks for a cache mark behind this section, so that other sessions
	// can share what stands up to here.
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
	// Custom, if not nil, replaces our prompt: its elements joined, the
	// Boundary among them. Only blank elements ask for the minimal prompt.
	Custom []string
	// Minimal asks for the one-sentence prompt.
	Minimal bool
	Append  string // text at the very end, in every form
	Style   Style  // zero: the default style
	// Tools are the names of the tools on offer: sentences about a tool that
	// is not there are left out.
	Tools []string
	// Agent, if not "", makes the prompt of a sub-agent from that text.
	Agent string
	// Unattended says that nobody can answer questions (print mode).
	Unattended bool
	// Plan holds a host's own instructions for plan mode, if any.
	Plan string
}
