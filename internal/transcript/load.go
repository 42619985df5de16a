package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/jsonl"
	"github.com/seed-eb844fcb/cinch/internal/transcript/history"
)

// LoadOptions narrow what Load returns.
type LoadOptions struct {
	// At ends the history with the message of that uuid.
	At string
	// Drop ends it before the turn that the prompt of that uuid began.
	Drop string
}

// ErrNoMessage reports a uuid that names no message of a session.
var ErrNoMessage = errors.New("no such message in this session")

// A Prompt is what a person has asked for.
type Prompt = history.Prompt

// A Lost is a call whose outcome is not known.
type Lost struct {
	Call     agent.CallID
	Tool     string
	Input    json.RawMessage
	Started  time.Time
	ReadOnly bool // it may be repeated
}

// Loaded is a session as its files tell it.
type Loaded struct {
	Path    string
	Session string // the id that its lines carry, or that of the file
	// History is ready to be sent: see history.Mender.
	History []agent.Message
	// Deferred is the call at the end of History that waits for a decision
	// from outside. It has no result.
	Deferred agent.CallID
	// Unfinished says that the last turn was cut off before its answer.
	Unfinished bool

	Title, Tag      string
	Model, Effort   string
	Mode            agent.Mode
	Cwd, Branch     string
	Version, Forked string // Forked is the forkedFrom of its lines, as JSON
	Created, Active time.Time

	Prompts []Prompt // of History, in order
	// Unknown are the calls that had started and have no outcome. History
	// tells the model of each.
	Unknown []Lost
	// System is the system prompt that was recorded, in its parts; nil if none was.
	System []string
	// FileHistory are the file-history-snapshot lines, in order.
	FileHistory []json.RawMessage
	// Agents are the ids of the sub-agents that have transcripts.
	Agents []string
	// Answered is when the newest response of the main conversation came, and
	// Cached how many tokens of its request are in the upstream's cache.
	Answered time.Time
	Cached   int

	Lines   int         // that could be read
	Skipped jsonl.Skips // lines that could not be read

	index   map[string]int // line or message uuid -> place in History
	leaf    string
	entries []entry
	open    map[agent.CallID]string
	drafts  [][]byte
	closed  []*agent.ToolResult
}

// Place returns the place in History of the message that the uuid of a line
// or message belongs to.
func (l *Loaded) Place(uuid string) (int, bool) {
	i, ok := l.index[uuid]
	return i, ok
}

// Load reads the session whose transcript is path. It changes nothing. Only a
// file that cannot be read at all, and a uuid of o that is not in it, are
// errors: lines that cannot be read are left out and counted.
func Load(path string, o LoadOptions) (*Loaded, error) {
	l, err := load(path, TracePath(path), "", o)
	if err != nil {
		return nil, fmt.Errorf("loading session: %w", err)
	}
	es, err := os.ReadDir(filepath.Join(SideDir(path), "subagents"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("loading session: %w", err)
	}
	for _, e := range es {
		if id, ok := strings.CutPrefix(e.Name(), "agent-"); ok && strings.HasSuffix(id, ext) {
			l.Agents = append(l.Agents, strings.TrimSuffix(id, ext))
		}
	}
	return l, nil
}

// LoadAgent reads the conversation of sub-agent id of the session path.
func LoadAgent(path, id string) (*Loaded, error) {
	l, err := load(AgentPath(path, id), TracePath(path), id, LoadOptions{})
	if err != nil {
		return nil, fmt.Errorf("loading sub-agent %s: %w", id, err)
	}
	return l, nil
}

// A past is what the boundary record knows that the transcript does not.
type past struct {
	drafts   [][]byte
	calls    map[agent.CallID]Record // the newest started, finished or deferring decision
	started  map[agent.CallID]time.Time
	names    map[string]string // message uuid -> line
	model    string
	modelAt  time.Time
	effort   string
	answered time.Time
	cached   int
	settled  bool // nothing began after the last end of a turn
	sawTurns bool
}

// recall reads what concerns the agent id from a boundary record. What
// cannot be read of it is missing, no more.
func recall(trace, id string) past {
	p := past{calls: map[agent.CallID]Record{}, started: map[agent.CallID]time.Time{}, names: map[string]string{}}
	var skips jsonl.Skips
	f, err := os.Open(trace)
	if err != nil {
		return p
	}
	defer func() { _ = f.Close() }() // only read
	for l, err := range jsonl.Read(f, &skips) {
		if err != nil {
			return p
		}
		var r Record
		kind := ""
		_ = history.Fields(l.Data, func(name, value []byte) bool { // Unmarshal will tell
			if string(name) == "k" {
				kind, _ = history.Unquote(value)
			}
			return kind == ""
		})
		switch kind {
		case "draft", "said", "decided", "started", "finished", "changed", "opened", "began", "settled", "responded":
		default:
			continue
		}
		if json.Unmarshal(l.Data, &r) != nil {
			continue
		}
		if r.Kind == "opened" || r.Kind == "changed" && r.What == "model" {
			p.model, p.modelAt = r.Model, r.At
		}
		if r.Effort != "" {
			p.effort = r.Effort
		}
		if r.Agent != id {
			continue
		}
		switch r.Kind {
		case "draft":
			p.drafts = append(p.drafts, r.Line)
		case "said":
			p.names[r.UUID] = r.ID
		case "responded":
			if r.Usage != nil && (r.Purpose == "" || r.Purpose == "main") {
				p.answered, p.cached = r.At, r.Usage.CacheRead+r.Usage.CacheWrite()
			}
		case "began", "settled":
			p.settled, p.sawTurns = r.Kind == "settled", true
		case "started":
			p.started[r.Call] = r.At
			p.calls[r.Call] = r
		case "finished":
			p.calls[r.Call] = r
		case "decided":
			if r.Verdict == agent.Defer.String() {
				p.calls[r.Call] = r
			}
		}
	}
	return p
}

// scan makes the first pass over the file path, which stays open.
func scan(path string, agentFile bool) (*history.Scan, *os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	s, err := history.Read(f, agentFile)
	if err != nil {
		_ = f.Close() // only read
		return nil, nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return s, f, nil
}

func load(path, trace, id string, o LoadOptions) (*Loaded, error) {
	s, f, err := scan(path, id != "")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	p := recall(trace, id)
	l := &Loaded{Path: path, Session: s.Session, Title: s.Title(), Tag: s.Tag, Mode: s.Mode, Model: s.Model,
		Cwd: s.Cwd, Branch: s.Branch, Version: s.Version, Forked: s.Forked, Created: s.First, Active: s.Newest,
		Effort: p.effort, Answered: p.answered, Cached: p.cached, Lines: s.Lines, FileHistory: s.FileHistory, open: map[agent.CallID]string{}}
	if l.Session == "" {
		l.Session = strings.TrimSuffix(filepath.Base(path), ext)
	}
	if p.modelAt.After(s.ModelAt) && p.model != "" {
		l.Model = p.model
	}
	for _, d := range p.drafts {
		if s.Draft(d) {
			l.drafts = append(l.drafts, d)
		}
	}
	if l.leaf, err = end(s, o, p); err != nil {
		return nil, err
	}
	talk, err := s.Talk(f, l.leaf)
	if err != nil {
		return nil, err
	}
	l.Prompts, l.System = talk.Prompts, talk.System
	l.mend(talk.Messages, p)
	l.Skipped = s.Skipped
	l.Unfinished = l.unfinished(p)
	for uuid, line := range p.names {
		if i, ok := l.index[line]; ok && uuid != "" {
			if _, taken := l.index[uuid]; !taken {
				l.index[uuid] = i
			}
		}
	}
	return l, nil
}

// end returns the line with which the history is to end.
func end(s *history.Scan, o LoadOptions, p past) (string, error) {
	name := o.At
	if name == "" {
		name = o.Drop
	}
	if name == "" {
		return s.Leaf(), nil
	}
	if !s.Has(name) {
		if !s.Has(p.names[name]) {
			return "", fmt.Errorf("%s: %w", name, ErrNoMessage)
		}
		name = p.names[name]
	}
	if o.At != "" {
		return s.Through(name), nil
	}
	return s.Before(name), nil
}

// mend puts h right and makes it the history.
func (l *Loaded) mend(h []history.Message, p past) {
	d := history.Mender{Closing: func(u *agent.ToolUse) *agent.ToolResult { return l.closing(u, p) }}
	if last := lastUse(h); p.calls[last].Kind == "decided" {
		d.Deferred = last
	}
	h = d.Mend(h)
	l.closed = d.Closed
	l.index = map[string]int{}
	for i, m := range h {
		l.History = append(l.History, m.Message)
		l.entries = append(l.entries, entry{id: m.UUID, role: m.Role, lines: m.Lines, leaf: m.Leaf})
		for _, line := range m.Lines {
			l.index[line] = i
		}
		if m.UUID != "" {
			l.index[m.UUID] = i
		}
	}
	if l.Deferred = d.Open; d.Open != "" {
		l.open[d.Open] = h[len(h)-1].Leaf
	}
}

// lastUse returns the call that h ends with, if it ends with one.
func lastUse(h []history.Message) agent.CallID {
	if n := len(h); n > 0 && h[n-1].Role == agent.Assistant && len(h[n-1].Blocks) > 0 {
		if u, ok := h[n-1].Blocks[len(h[n-1].Blocks)-1].(*agent.ToolUse); ok {
			return u.ID
		}
	}
	return ""
}

// What the model is told of calls that a crash or an interrupt left without a
// result.
const (
	neverRan = "This call did not run: the session ended before it started."
	unknown  = "This call had started when the session ended, and its outcome is unknown: it may have done all of its work, some, or none. " +
		"Look at the state of things before you do it again."
	harmless = "This call was running when the session ended. It changes nothing; make it again if its answer is still needed."
	noAnswer = "This call ran to its end, but its answer was lost when the session ended. Look at what it did before you do it again."
)

// closing makes the result of a call that has none.
func (l *Loaded) closing(u *agent.ToolUse, p past) *agent.ToolResult {
	text := neverRan
	switch r := p.calls[u.ID]; {
	case r.Kind == "started" && (r.ReadOnly || r.Idempotent):
		text = harmless
		l.Unknown = append(l.Unknown, Lost{u.ID, u.Name, u.Input, p.started[u.ID], true})
	case r.Kind == "started":
		text = unknown
		l.Unknown = append(l.Unknown, Lost{u.ID, u.Name, u.Input, p.started[u.ID], false})
	case r.Kind == "finished" && r.Ran:
		text = noAnswer
		l.Unknown = append(l.Unknown, Lost{u.ID, u.Name, u.Input, p.started[u.ID], r.ReadOnly})
	}
	return &agent.ToolResult{ID: u.ID, IsError: true, Blocks: []agent.Block{&agent.Text{Text: text}}}
}

// unfinished reports whether the last turn has no end. A session whose record
// does not tell ends with something the model has not answered.
func (l *Loaded) unfinished(p past) bool {
	if p.sawTurns {
		return !p.settled
	}
	n := len(l.History)
	return n > 0 && l.History[n-1].Role == agent.User
}
