// Package audit watches the cached prefix of a conversation. It owns the
// fingerprints of what was sent (a hash tree: chunks in segments), finds the
// first byte of an already sent prefix that is different in the next request,
// and compares the cache reads an upstream reports with those that the bytes
// allow. It knows nothing of prices, files or the network, and never changes
// a request.
package audit

import "time"

// Kinds of Segment, in the order in which an upstream caches them.
const (
	Tools    = "tools"
	System   = "system"
	Messages = "message"
)

// A Segment is one part of a prefix: all tool definitions, the system text,
// or one message. Bytes is what is sent, without the moving cache mark.
type Segment struct {
	Kind  string
	UUID  string // of a message, if it has one
	Bytes []byte
}

// A Sent is one request as the audit sees it.
type Sent struct {
	At       time.Time
	Key      string // what else the cache depends on: model, effort, thinking
	Segments []Segment
}

// A Break is a change of bytes that had been sent before.
type Break struct {
	Kind   string `json:"segment"`
	Index  int    `json:"index"` // of the message; 0 for tools and system
	UUID   string `json:"uuid,omitempty"`
	Offset int    `json:"offset"` // of the first byte that differs, within the segment
	// Near says that Offset is the start of the chunk that holds the byte:
	// the old bytes were overwritten in place, so no more can be told.
	Near          bool   `json:"near,omitempty"`
	Before, After string // some bytes around Offset, as they were and as they are
	Planned       bool   `json:"planned"`
	Reason        string `json:"reason"`
	// Kept and Lost are the bytes of the earlier prefix before and behind the break.
	Kept int `json:"kept"`
	Lost int `json:"lost"`
}

// A Record is one request and what became of its cache.
type Record struct {
	N     int           `json:"n"` // counts from 1
	At    time.Time     `json:"at"`
	Bytes int           `json:"bytes"`
	Break *Break        `json:"break,omitempty"`
	Gap   time.Duration `json:"gap"` // since the previous request of the chain
	// Expected is how many tokens the upstream should read from its cache;
	// it is an estimate if a break lies inside the earlier prefix.
	Expected int    `json:"expected"`
	Read     int    `json:"read"`
	Written  int    `json:"written"`
	Prompt   int    `json:"prompt"` // tokens in the request
	Answered bool   `json:"answered"`
	Verdict  string `json:"verdict"` // one of the Verdict constants
}

// Verdicts on a Record.
const (
	Pending   = "pending"   // not answered yet
	First     = "first"     // nothing was cached before
	Hit       = "hit"       // read what the bytes allow
	Planned   = "planned"   // a change with a reason cost the rest
	Unplanned = "unplanned" // our bytes changed and nobody said why
	Expired   = "expired"   // the bytes held, the entry was too old
	Missed    = "missed"    // the bytes held and the entry was young: the upstream did not read it
)
