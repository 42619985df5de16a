package transcript

import (
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/jsonl"
)

// A Record is one line of the boundary record: what happened at which moment,
// with no content of the conversation in it, except in drafts. Fields that say
// nothing about its Kind are zero.
type Record struct {
	// Kind is opened, began, said, draft, responded, asked, answered, decided,
	// started, finished, hooked, worked, crossed, compacted, changed, cleared,
	// rewound, mended, noted or settled.
	Kind   string       `json:"k"`
	At     time.Time    `json:"at"`
	Seq    uint64       `json:"seq,omitempty"`
	Agent  string       `json:"agent,omitempty"`
	Parent agent.CallID `json:"parent,omitempty"`

	Call       agent.CallID `json:"call,omitempty"`
	Tool       string       `json:"tool,omitempty"`
	ReadOnly   bool         `json:"readOnly,omitempty"`
	Idempotent bool         `json:"idempotent,omitempty"`
	Domain     string       `json:"domain,omitempty"`
	Ran        bool         `json:"ran,omitempty"`
	IsError    bool         `json:"isError,omitempty"`
	Unknown    bool         `json:"unknown,omitempty"`
	Fatal      bool         `json:"fatal,omitempty"`
	Verdict    string       `json:"verdict,omitempty"`
	By         string       `json:"by,omitempty"`
	Reason     string       `json:"reason,omitempty"`

	UUID    string         `json:"uuid,omitempty"` // of a message
	Role    agent.Role     `json:"role,omitempty"`
	Blocks  []string       `json:"blocks,omitempty"`  // their types
	Message string         `json:"message,omitempty"` // id of a response
	Request string         `json:"request,omitempty"`
	Model   string         `json:"model,omitempty"`
	Stop    string         `json:"stop,omitempty"`
	Usage   *agent.Usage   `json:"usage,omitempty"`
	Cost    float64        `json:"cost,omitempty"`
	Purpose string         `json:"purpose,omitempty"`
	TTFT    time.Duration  `json:"ttft,omitempty"`
	Took    time.Duration  `json:"took,omitempty"`
	Waited  time.Duration  `json:"waited,omitempty"`
	Trouble *agent.Trouble `json:"trouble,omitempty"`

	ID       string            `json:"id,omitempty"` // of a question, hook, task or boundary; of a message, its last line
	Boundary string            `json:"boundary,omitempty"`
	Name     string            `json:"name,omitempty"`
	Start    time.Time         `json:"start,omitzero"`
	End      time.Time         `json:"end,omitzero"`
	Attempt  int               `json:"attempt,omitempty"`
	Outcome  string            `json:"outcome,omitempty"`
	Detail   map[string]string `json:"detail,omitempty"`

	Text    string     `json:"text,omitempty"`
	Level   string     `json:"level,omitempty"`
	What    string     `json:"what,omitempty"`
	Mode    agent.Mode `json:"mode,omitempty"`
	Effort  string     `json:"effort,omitempty"`
	Cwd     string     `json:"cwd,omitempty"`
	Session string     `json:"session,omitempty"`
	Version string     `json:"version,omitempty"`
	Pre     int        `json:"pre,omitempty"`
	Post    int        `json:"post,omitempty"`
	Turns   int        `json:"turns,omitempty"`

	// Line is a line of the transcript of Agent that waits for the end of its
	// response, in a draft.
	Line json.RawMessage `json:"line,omitempty"`
}

// draft returns the encoded record of a line that is held back.
func draft(agentID string, l []byte) []byte {
	b := append([]byte(nil), `{"k":"draft"`...)
	if agentID != "" {
		b = append(b, `,"agent":`...)
		b = agent.AppendString(b, agentID)
	}
	b = append(b, `,"line":`...)
	b = append(b, l...)
	return append(b, '}')
}

func (r *Record) encode() []byte {
	b, err := json.Marshal(r)
	if err != nil { // a cost that is no number, at most
		b, _ = json.Marshal(&Record{Kind: r.Kind, At: r.At, Seq: r.Seq, Agent: r.Agent, Call: r.Call, Tool: r.Tool, Text: err.Error()})
	}
	return b
}

// record returns the boundary record of e, or nil if it has none.
func record(e agent.Event) *Record {
	r := &Record{At: e.At, Seq: e.Seq, Agent: e.Agent, Parent: e.Parent}
	switch b := e.Body.(type) {
	case agent.Opened:
		r.Kind = "opened"
		r.info(b.Info)
	case agent.Began:
		r.Kind = "began"
		r.info(b.Info)
	case agent.Said:
		r.Kind, r.UUID, r.Role, r.Message, r.Request, r.Model, r.Trouble = "said", b.Message.UUID, b.Message.Role, b.Message.ID, b.RequestID, b.Model, b.Err
		for _, bl := range b.Message.Blocks {
			r.Blocks = append(r.Blocks, blockType(bl))
		}
	case agent.Responded:
		r.Kind, r.Message, r.Request, r.Model, r.Stop, r.Usage = "responded", b.MessageID, b.RequestID, b.Model, b.Stop, &b.Usage
		r.Cost, r.TTFT, r.Took, r.Purpose = b.Cost, b.TTFT, b.Took, b.Purpose
	case agent.Asked:
		r.Kind, r.ID, r.What, r.Call, r.Tool = "asked", b.Question.ID, b.Question.Kind, b.Question.Call.ID, b.Question.Call.Name
	case agent.Answered:
		r.Kind, r.ID, r.What, r.Call = "answered", b.ID, b.Kind, b.Call
		if b.Kind == agent.AskPermission {
			r.Verdict = b.Decision.Verdict.String()
		}
	case agent.Decided:
		r.Kind, r.Verdict, r.By, r.Reason = "decided", b.Decision.Verdict.String(), b.Decision.By, clip(b.Decision.Reason, 1000)
		r.call(b.Call)
	case agent.Started:
		r.Kind = "started"
		r.call(b.Call)
	case agent.Finished:
		r.Kind, r.Ran, r.Waited, r.Took = "finished", b.Ran, b.Waited, b.Took
		r.IsError, r.Unknown, r.Fatal = b.Result.IsError, b.Result.Unknown, b.Result.Fatal
		r.call(b.Call)
	case agent.Hooked:
		r.Kind, r.ID, r.What, r.Name, r.Outcome, r.Took = "hooked", b.ID, b.Stage, b.Name, b.Outcome, b.Took
	case agent.Worked:
		r.Kind, r.ID, r.What, r.Name, r.Outcome, r.Call = "worked", b.Task.ID, b.Stage, b.Task.Type, b.Task.Status, b.Task.Call
	case agent.Crossed:
		r.Kind, r.ID, r.Boundary, r.Name, r.Start, r.End = "crossed", b.ID, b.Boundary, b.Name, b.Start, b.End
		r.Attempt, r.Outcome, r.Detail = b.Attempt, b.Outcome, b.Detail
	case agent.Compacted:
		r.Kind, r.Name, r.Pre, r.Post, r.Took, r.Text = "compacted", b.Trigger, b.Pre, b.Post, b.Took, b.Err
	case agent.Changed:
		r.Kind, r.What = "changed", b.What
		r.info(b.Info)
	case agent.Cleared:
		r.Kind, r.Session = "cleared", b.Session
	case agent.Rewound:
		r.Kind, r.UUID = "rewound", b.To
	case agent.Mended:
		r.Kind, r.Reason = "mended", clip(b.Reason, 1000)
	case agent.Noted:
		r.Kind, r.Level, r.Text, r.Call = "noted", b.Level, clip(b.Text, 1000), b.Call
	case agent.Settled:
		r.Kind, r.Outcome, r.Reason, r.IsError, r.Took = "settled", b.Outcome.Subtype, b.Outcome.Reason, b.Outcome.IsError, b.Outcome.Took
		r.Usage, r.Cost, r.Turns, r.Stop = &b.Outcome.Usage, b.Outcome.Cost, b.Outcome.Turns, b.Outcome.Stop
	default:
		return nil
	}
	return r
}

func (r *Record) info(i agent.Info) {
	r.Session, r.Cwd, r.Model, r.Version, r.Mode, r.Effort = i.Session, i.Cwd, i.Model, i.Version, i.Mode, i.Effort
}

func (r *Record) call(c agent.Call) {
	r.Call, r.Tool = c.ID, c.Name
	r.ReadOnly, r.Idempotent, r.Domain = c.Effects.ReadOnly, c.Effects.Idempotent, c.Effects.Domain
}

func blockType(b agent.Block) string {
	switch b := b.(type) {
	case *agent.Text:
		if b.Note != "" {
			return "note:" + b.Note
		}
		return "text"
	case *agent.Thinking:
		return "thinking"
	case *agent.Redacted:
		return "redacted_thinking"
	case *agent.ToolUse:
		return "tool_use:" + b.Name
	case *agent.ToolResult:
		return "tool_result"
	case *agent.Image:
		return "image"
	case *agent.Document:
		return "document"
	case *agent.ToolReference:
		return "tool_reference"
	case *agent.Opaque:
		return b.Type
	}
	return ""
}

// Trace yields the records of the transcript path in the order they were
// made. Lines that cannot be read are passed over and counted in skips. A
// session without a boundary record has none; any other failure ends it with
// an error.
func Trace(path string, skips *jsonl.Skips) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		f, err := os.Open(TracePath(path))
		if err != nil {
			if !os.IsNotExist(err) {
				yield(Record{}, fmt.Errorf("reading the boundary record: %w", err))
			}
			return
		}
		defer func() { _ = f.Close() }() // only read
		for l, err := range jsonl.Read(f, skips) {
			var r Record
			if err == nil && json.Unmarshal(l.Data, &r) != nil {
				skips.Add(l.N, "not a record")
				continue
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
