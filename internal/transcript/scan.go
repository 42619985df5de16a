package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/jsonl"
)

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

// A scan is the outcome of the first pass over a transcript.
type scan struct {
	rows  []row
	index map[string]int // rows by uuid
	skips jsonl.Skips
	lines int

	session, cwd, branch, version, entrypoint string
	model                                     string
	modelAt                                   time.Time
	mode                                      agent.Mode
	custom, ai, summary, tag                  string
	first, last                               time.Time
	history                                   []json.RawMessage
	forked                                    string
}

// scanFile makes the first pass over the file path.
func scanFile(path string) (*scan, *os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	if info, err := f.Stat(); err != nil || info.IsDir() {
		_ = f.Close() // only read
		return nil, nil, errors.Join(err, &fs.PathError{Op: "read", Path: path, Err: errors.New("is a directory")})
	}
	s := &scan{index: map[string]int{}}
	for l, err := range jsonl.Read(f, &s.skips) {
		if err != nil {
			_ = f.Close() // only read
			return nil, nil, fmt.Errorf("reading %s: %w", path, err)
		}
		s.line(l.N, l.Off, l.Data, false)
	}
	return s, f, nil
}

// line takes in one line. A draft is kept whole.
func (s *scan) line(n int, off int64, data []byte, draft bool) {
	r := row{n: n, off: off, size: len(data)}
	var l head
	if err := l.read(data, &r); err != nil {
		s.skips.Add(n, "not JSON")
		return
	}
	s.note(l, data)
	if !draft {
		s.lines++
	}
	if r.uuid == "" {
		if r.kind == other || r.kind == systemLine || draft {
			return
		}
		r.uuid = fmt.Sprintf("line-%d", n) // by position then
	}
	if _, twice := s.index[r.uuid]; twice {
		return
	}
	if draft {
		r.data = bytes.Clone(data)
	}
	s.index[r.uuid] = len(s.rows)
	s.rows = append(s.rows, r)
}

// A head holds the strings of a line that are about the session.
type head struct {
	typ, time, session, cwd, branch, version, entrypoint, mode, model string
	customTitle, aiTitle, summary, tag, forked                        string
}

// read finds in data what r and l keep.
func (l *head) read(data []byte, r *row) error {
	var message []byte
	var bad error
	text := func(value []byte) string {
		t, ok := unquote(value)
		if !ok && string(value) != "null" {
			bad = errSyntax
		}
		return t
	}
	loose := func(value []byte) string { // a member whose form is not ours to judge
		t, _ := unquote(value)
		return t
	}
	yes := func(value []byte) bool { return string(value) == "true" }
	err := fields(data, func(name, value []byte) bool {
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
		return fields(message, func(name, value []byte) bool {
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
func (s *scan) note(l head, data []byte) {
	at, _ := time.Parse(time.RFC3339, l.time)
	if !at.IsZero() {
		if s.first.IsZero() {
			s.first = at
		}
		if at.After(s.last) {
			s.last = at
		}
	}
	set := func(at *string, v string) {
		if v != "" {
			*at = v
		}
	}
	if s.session == "" {
		s.session = l.session
	}
	if s.cwd == "" {
		s.cwd = l.cwd
	}
	if s.entrypoint == "" {
		s.entrypoint = l.entrypoint
	}
	set(&s.branch, l.branch)
	set(&s.version, l.version)
	if m, ok := agent.ParseMode(l.mode); ok && l.mode != "" {
		s.mode = m
	}
	if l.model != "" && l.model != synthetic {
		s.model, s.modelAt = l.model, at
	}
	switch l.typ {
	case "custom-title":
		set(&s.custom, l.customTitle)
	case "ai-title":
		set(&s.ai, l.aiTitle)
	case "summary":
		set(&s.summary, l.summary)
	case "tag":
		s.tag = l.tag
	case "file-history-snapshot":
		s.history = append(s.history, bytes.Clone(data))
	}
	if s.forked == "" {
		set(&s.forked, l.forked)
	}
}

// title is the session's name: given by a person, else made.
func (s *scan) title() string {
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
