package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/jsonl"
)

// Synthetic is the model of what no model wrote.
const Synthetic = "<synthetic>"

// A kind is what a line of a transcript is.
type kind uint8

const (
	other kind = iota
	userLine
	assistantLine
	attachmentLine
	systemLine
)

// A row is what the first pass keeps of a line: enough to find the lines
// that make up the conversation, so that only those are decoded.
type row struct {
	n    int
	off  int64
	size int
	data []byte // the line, if it is a draft

	kind     kind
	uuid     string
	parent   string
	root     bool // has a parent, and that is null
	side     bool
	meta     bool
	failed   bool // stands in place of an answer
	boundary bool
	viewOnly bool // shown, never sent
	summary  bool
	result   bool
	before   bool   // belongs in front of the user line it follows
	msg      string // id of the response
}

// A Scan is the outcome of the first pass over the lines of a session file:
// what they say about the session, and where the conversation is in them.
type Scan struct {
	// Agent says that the file is a sub-agent's: all its lines are its
	// conversation. In a session's file such lines are beside it.
	Agent bool

	Session, Cwd, Version, Entrypoint string // the first three as first said
	Branch                            string // at the end
	Model                             string
	ModelAt                           time.Time
	Mode                              agent.Mode
	Tag, Last                         string // Last is the last prompt, as noted
	First, Newest                     time.Time
	FileHistory                       []json.RawMessage
	Forked                            string // the first forkedFrom, as JSON

	Lines   int // that could be read
	Skipped jsonl.Skips

	custom, ai, summary string
	rows                []row
	index               map[string]int // rows by uuid
}

// Read makes the first pass over r.
func Read(r io.Reader, agentFile bool) (*Scan, error) {
	s := &Scan{Agent: agentFile}
	for l, err := range jsonl.Read(r, &s.Skipped) {
		if err != nil {
			return nil, err
		}
		s.Add(l)
	}
	return s, nil
}

// Add takes in one line. talks says that it is one of a conversation, asks
// that it holds what a person asked.
func (s *Scan) Add(l jsonl.Line) (talks, asks bool) {
	r := s.line(l.N, l.Off, l.Data, false)
	if r == nil {
		return false, false
	}
	return r.kind == userLine || r.kind == assistantLine, r.asks()
}

// Draft takes in a line that is not in the file yet. It reports false for one
// that is in it already, or can be of no use.
func (s *Scan) Draft(data []byte) bool {
	n := len(s.rows)
	s.line(0, 0, data, true)
	return len(s.rows) > n
}

// asks reports whether r holds what a person asked.
func (r *row) asks() bool {
	return r.kind == userLine && !r.meta && !r.side && !r.result && !r.viewOnly && !r.summary
}

// line takes in one line and returns what is known of it. A draft is kept
// whole.
func (s *Scan) line(n int, off int64, data []byte, draft bool) *row {
	r := row{n: n, off: off, size: len(data)}
	var l head
	if err := l.read(data, &r); err != nil {
		s.Skipped.Add(n, "not JSON")
		return nil
	}
	s.note(l, data)
	if !draft {
		s.Lines++
	}
	if r.uuid == "" {
		if r.kind == other || r.kind == systemLine || draft {
			return &r
		}
		r.uuid = fmt.Sprintf("line-%d", n) // by position then
	}
	if _, twice := s.index[r.uuid]; twice {
		return &r
	}
	if draft {
		r.data = bytes.Clone(data)
	}
	if s.index == nil {
		s.index = map[string]int{}
	}
	s.index[r.uuid] = len(s.rows)
	s.rows = append(s.rows, r)
	return &r
}

// A head holds the strings of a line that are about the session.
type head struct {
	typ, time, session, cwd, branch, version, entrypoint, mode, model string
	customTitle, aiTitle, summary, tag, forked, lastPrompt            string
}

// read finds in data what r and l keep.
func (l *head) read(data []byte, r *row) error {
	var message []byte
	var bad error
	text := func(value []byte) string {
		t, ok := Unquote(value)
		if !ok && string(value) != "null" {
			bad = errSyntax
		}
		return t
	}
	loose := func(value []byte) string { // a member whose form is not ours to judge
		t, _ := Unquote(value)
		return t
	}
	yes := func(value []byte) bool { return string(value) == "true" }
	err := Fields(data, func(name, value []byte) bool {
		switch string(name) {
		case "type":
			l.typ = text(value)
		case "subtype":
			r.boundary = string(value) == `"compact_boundary"`
		case "uuid":
			r.uuid = text(value)
		case "parentUuid":
			r.parent, r.root = text(value), string(value) == "null"
		case "isSidechain":
			r.side = yes(value)
		case "isMeta":
			r.meta = yes(value)
		case "isApiErrorMessage":
			r.failed = yes(value)
		case "isVisibleInTranscriptOnly":
			r.viewOnly = yes(value)
		case "isCompactSummary":
			r.summary = yes(value)
		case "toolUseResult", "sourceToolAssistantUUID":
			r.result = true
		case "cinchBefore":
			r.before = yes(value)
		case "message":
			message = value
		case "timestamp":
			l.time = loose(value)
		case "sessionId":
			l.session = loose(value)
		case "cwd":
			l.cwd = loose(value)
		case "gitBranch":
			l.branch = loose(value)
		case "version":
			l.version = loose(value)
		case "entrypoint":
			l.entrypoint = loose(value)
		case "permissionMode":
			l.mode = loose(value)
		case "lastPrompt":
			l.lastPrompt = loose(value)
		case "customTitle":
			l.customTitle = loose(value)
		case "aiTitle":
			l.aiTitle = loose(value)
		case "summary":
			l.summary = loose(value)
		case "tag":
			l.tag = loose(value)
		case "forkedFrom":
			l.forked = string(value)
		}
		return true
	})
	if err != nil || bad != nil {
		return errSyntax
	}
	switch l.typ {
	case "user":
		r.kind = userLine
		r.result = r.result || bytes.Contains(message[:min(len(message), 200)], []byte(`"tool_result"`))
	case "assistant":
		r.kind = assistantLine
		return Fields(message, func(name, value []byte) bool {
			switch string(name) {
			case "id":
				r.msg = loose(value)
			case "model":
				l.model = loose(value)
			}
			return r.msg == "" || l.model == ""
		})
	case "attachment":
		r.kind = attachmentLine
	case "system":
		r.kind = systemLine
	}
	r.boundary = r.boundary && r.kind == systemLine
	return nil
}

// note takes over what a line says about the session.
func (s *Scan) note(l head, data []byte) {
	at, _ := time.Parse(time.RFC3339, l.time)
	if !at.IsZero() {
		if s.First.IsZero() {
			s.First = at
		}
		if at.After(s.Newest) {
			s.Newest = at
		}
	}
	set := func(at *string, v string) {
		if v != "" {
			*at = v
		}
	}
	if s.Session == "" {
		s.Session = l.session
	}
	if s.Cwd == "" {
		s.Cwd = l.cwd
	}
	if s.Entrypoint == "" {
		s.Entrypoint = l.entrypoint
	}
	set(&s.Branch, l.branch)
	set(&s.Version, l.version)
	if m, ok := agent.ParseMode(l.mode); ok && l.mode != "" {
		s.Mode = m
	}
	if l.model != "" && l.model != Synthetic {
		s.Model, s.ModelAt = l.model, at
	}
	switch l.typ {
	case "custom-title":
		set(&s.custom, l.customTitle)
	case "ai-title":
		set(&s.ai, l.aiTitle)
	case "summary":
		set(&s.summary, l.summary)
	case "tag":
		s.Tag = l.tag
	case "last-prompt":
		set(&s.Last, l.lastPrompt)
	case "file-history-snapshot":
		s.FileHistory = append(s.FileHistory, bytes.Clone(data))
	}
	if s.Forked == "" {
		set(&s.Forked, l.forked)
	}
}

// Title is the session's name: given by a person, else made.
func (s *Scan) Title() string {
	for _, t := range []string{s.custom, s.ai, s.summary} {
		if t != "" {
			return t
		}
	}
	return ""
}

// bytes returns the line of r, in buf if there is room for it.
func (r *row) bytes(f io.ReaderAt, buf []byte) ([]byte, error) {
	if r.data != nil {
		return r.data, nil
	}
	buf = slices.Grow(buf[:0], r.size)[:r.size]
	_, err := f.ReadAt(buf, r.off)
	return buf, err
}
