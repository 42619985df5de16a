// Package agent is the vocabulary of the program: the types that every other
// package speaks, and nothing else. It owns the shape of messages, deltas,
// tools, decisions, events and inputs, and the one encoding of content
// blocks. It imports only the standard library, performs no I/O, starts no
// goroutine and knows no other package of the program.
package agent

import "encoding/json"

// A CallID names one tool call; it is the id the model gave the tool_use block.
type CallID string

// A Role says who speaks a Message on the wire.
type Role string

const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// A Message is one entry of the conversation as the model sees it.
// Once a message is part of a history it is never changed: a new history is made.
type Message struct {
	// ID is the upstream's id of a response. Every Said of one response
	// shares it. It is empty for user messages.
	ID string
	// UUID is ours and names the message in transcripts and frames.
	UUID   string
	Role   Role
	Blocks []Block
	// Meta marks a message that the program wrote, not a person or a model.
	Meta bool
	// Origin says what caused a user message: "" or "human", "task-notification", "hook", "resume".
	Origin string
	// Wire, if not nil, is the encoded content array. It is made once, when
	// the message becomes durable, so that the cached prefix cannot drift.
	Wire json.RawMessage
}

// A Block is one content block: *Text, *Thinking, *Redacted, *ToolUse,
// *ToolResult, *Image, *Document, *ToolReference or *Opaque.
type Block interface{ block() }

type (
	// Text is what somebody said, or a note that the program adds for the model.
	Text struct {
		Text string
		// Note is not sent. It names the kind of a note the program wrote
		// ("instructions", "git", "environment", "date", "hook", "memory",
		// "skills", "reminder", …) and is empty for what a person or a model said.
		Note      string
		Citations json.RawMessage // kept and sent back byte for byte
	}
	// Thinking is sent back unchanged, its signature byte for byte.
	Thinking struct{ Text, Signature string }
	// Redacted is thinking that only the upstream can read.
	Redacted struct{ Data string }
	// ToolUse is one request by the model to run a tool.
	ToolUse struct {
		ID   CallID
		Name string
		// Input is a complete JSON value. When the streamed bytes were not
		// JSON it is {"__unparsedToolInput":{"raw":…,"len":…}} and Malformed is set.
		Input     json.RawMessage
		Malformed bool
	}
	// ToolResult answers exactly one ToolUse.
	ToolResult struct {
		ID     CallID
		Blocks []Block
		// Array asks for array content even when a single text would do;
		// MCP tools and sub-agents answer so.
		Array   bool
		IsError bool
	}
	// Image holds base64 Data, or a URL when Data is empty.
	Image struct{ MediaType, Data, URL string }
	// Document holds base64 Data (a PDF), or plain text when MediaType is text/plain.
	Document struct{ MediaType, Data, Title string }
	// ToolReference makes one deferred tool definition known to the model.
	ToolReference struct{ Name string }
	// Opaque is a block of a type this program does not know, server tool
	// blocks among them. It is kept and sent back byte for byte.
	Opaque struct {
		Type string
		Raw  json.RawMessage
	}
)

func (*Text) block()          {}
func (*Thinking) block()      {}
func (*Redacted) block()      {}
func (*ToolUse) block()       {}
func (*ToolResult) block()    {}
func (*Image) block()         {}
func (*Document) block()      {}
func (*ToolReference) block() {}
func (*Opaque) block()        {}

// TextOf joins the text blocks among bs, notes left out.
func TextOf(bs []Block) string {
	var s string
	for _, b := range bs {
		if t, ok := b.(*Text); ok && t.Note == "" {
			if s != "" {
				s += "\n"
			}
			s += t.Text
		}
	}
	return s
}

// Usage counts tokens and server tool requests, as the upstream reported them.
type Usage struct {
	In, Out, CacheRead         int
	CacheWrite5m, CacheWrite1h int
	WebSearches, WebFetches    int
	ServiceTier                string
}

// Add returns the sum of u and v; the service tier is v's if it has one.
func (u Usage) Add(v Usage) Usage {
	u.In += v.In
	u.Out += v.Out
	u.CacheRead += v.CacheRead
	u.CacheWrite5m += v.CacheWrite5m
	u.CacheWrite1h += v.CacheWrite1h
	u.WebSearches += v.WebSearches
	u.WebFetches += v.WebFetches
	if v.ServiceTier != "" {
		u.ServiceTier = v.ServiceTier
	}
	return u
}

// CacheWrite is the number of tokens written to the cache, whatever their life.
func (u Usage) CacheWrite() int { return u.CacheWrite5m + u.CacheWrite1h }

// Prompt is the number of tokens the request held.
func (u Usage) Prompt() int { return u.In + u.CacheRead + u.CacheWrite() }
