package stream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// maxLine bounds one line from the host: images and files come inline.
const maxLine = 256 << 20

// A hostLine is one line from the host. Only what every frame may have is here;
// fields of other types and versions are ignored.
type hostLine struct {
	Type      string          `json:"type"`
	RequestID string          `json:"request_id"`
	Request   json.RawMessage `json:"request"`
	Response  *struct {
		Subtype   string          `json:"subtype"`
		RequestID string          `json:"request_id"`
		Response  json.RawMessage `json:"response"`
		Error     string          `json:"error"`
	} `json:"response"`
	Message *struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`
	UUID           string `json:"uuid"`
	ShouldQuery    *bool  `json:"shouldQuery"`
	Priority       string `json:"priority"`
	IsSynthetic    bool   `json:"isSynthetic"`
	ClientComposed bool   `json:"client_composed"`
	Origin         *struct {
		Kind string `json:"kind"`
	} `json:"origin"`
}

// errJunk reports a line that is no JSON object. The host and this program
// no longer agree on the framing, so the session ends.
var errJunk = errors.New("the line is not a JSON object")

// lines calls f for each line of r: split at LF only, CR before it dropped,
// blank lines left out. The slice is f's to keep. It ends with the first
// error of f or of r; io.EOF is nil, an unfinished last line counts.
func lines(r io.Reader, f func([]byte) error) error {
	br := bufio.NewReaderSize(r, 64<<10)
	var long []byte
	for {
		part, err := br.ReadSlice('\n')
		if len(long)+len(part) > maxLine {
			return fmt.Errorf("a line is longer than %d bytes", maxLine)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, part...)
			continue
		}
		line := append(long, part...) // a copy: part is the reader's
		long = nil
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if ferr := f(line); ferr != nil {
				return ferr
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// take acts on one line from the host.
func (h *host) take(ctx context.Context, line []byte) error {
	var f hostLine
	if err := json.Unmarshal(line, &f); err != nil {
		return fmt.Errorf("%w: %.120q", errJunk, line)
	}
	switch f.Type {
	case "user":
		return h.user(ctx, &f)
	case "control_request":
		return h.control(ctx, &f)
	case "control_response":
		h.answer(ctx, &f)
	case "control_cancel_request":
		h.cancelQuery(f.RequestID)
	}
	return nil // keep_alive, environment updates, types to come
}

func (h *host) user(ctx context.Context, f *hostLine) error {
	if f.Message == nil {
		h.complain("a user line without a message was ignored")
		return nil
	}
	if r := f.Message.Role; r != "" && r != "user" {
		h.complain(fmt.Sprintf("a user line with role %q was ignored", r))
		return nil
	}
	blocks, _, err := agent.DecodeContent(f.Message.Content)
	if err != nil {
		h.complain("a user line was ignored: " + err.Error())
		return nil
	}
	p := agent.Prompt{
		UUID: f.UUID, Blocks: blocks, Meta: f.IsSynthetic, Later: f.Priority == "later",
		Verbatim: f.ClientComposed, Replay: h.o.Replay,
		Quiet: f.ShouldQuery != nil && !*f.ShouldQuery,
	}
	if f.Origin != nil {
		p.Origin = f.Origin.Kind
	}
	return h.s.Submit(ctx, p)
}

// control hands a request of the host to the session as a query. The answer
// comes back as an event, so that it keeps its place among the other frames.
// A request id that was seen is not acted on again.
func (h *host) control(ctx context.Context, f *hostLine) error {
	var r struct {
		Subtype string `json:"subtype"`
	}
	if json.Unmarshal(f.Request, &r) != nil || f.RequestID == "" {
		h.complain("a control request without id or subtype was ignored")
		return nil
	}
	h.mu.Lock()
	seen := h.seen[f.RequestID]
	h.seen[f.RequestID] = true
	h.mu.Unlock()
	if seen {
		return nil
	}
	return h.s.Submit(ctx, agent.Query{ID: f.RequestID, Name: r.Subtype, Args: f.Request})
}

// cancelQuery forgets a request that the host gave up: its answer is dropped.
func (h *host) cancelQuery(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen[id] {
		h.dropped[id] = true
	}
}

// answer hands the host's answer to the session. Late answers to questions
// that were withdrawn are ignored by the session.
func (h *host) answer(ctx context.Context, f *hostLine) {
	if f.Response == nil {
		return
	}
	h.mu.Lock()
	q, ok := h.asked[f.Response.RequestID]
	delete(h.asked, f.Response.RequestID)
	h.mu.Unlock()
	if !ok {
		return
	}
	a := agent.Answer{ID: q.ID, Payload: f.Response.Response}
	if f.Response.Subtype == "error" {
		a.Err = or(f.Response.Error, "the host answered with an error")
	}
	if q.Kind == agent.AskPermission {
		a.Decision, a.Payload = permission(q, a), nil
	}
	if q.Kind == agent.AskMCP && a.Err == "" {
		var w struct {
			Response json.RawMessage `json:"mcp_response"`
		}
		if json.Unmarshal(f.Response.Response, &w) == nil {
			a.Payload = w.Response
		}
	}
	h.submitAnswer(ctx, a)
}

// permission reads the host's answer to can_use_tool. Whatever is not a
// clear yes is a no.
func permission(q agent.Question, a agent.Answer) agent.Decision {
	d := agent.Decision{Verdict: agent.Deny, Why: agent.WhyPrompt, By: "host"}
	if a.Err != "" {
		d.Reason = "The permission request failed: " + a.Err
		return d
	}
	var w struct {
		Behavior  string                   `json:"behavior"`
		Input     json.RawMessage          `json:"updatedInput"`
		Updates   []agent.PermissionUpdate `json:"updatedPermissions"`
		Message   string                   `json:"message"`
		Interrupt bool                     `json:"interrupt"`
	}
	if err := json.Unmarshal(a.Payload, &w); err != nil {
		d.Reason = "The host's answer to the permission request could not be read: " + err.Error()
		return d
	}
	d.Reason, d.Interrupt = w.Message, w.Interrupt
	if w.Behavior != "allow" {
		if d.Reason == "" {
			d.Reason = "The host denied permission for this call."
		}
		return d
	}
	d.Verdict, d.Updates = agent.Allow, w.Updates
	if len(w.Input) > 0 && string(w.Input) != "null" && !sameJSON(w.Input, q.Call.Input) {
		d.Input = w.Input
	}
	return d
}

// sameJSON reports whether a and b hold the same value, written the same but
// for blanks, escapes and the order of members. Numbers are compared as they
// are written: as floats, long integers that differ would be the same.
func sameJSON(a, b json.RawMessage) bool {
	x, errX := value(a)
	y, errY := value(b)
	if errX != nil || errY != nil {
		return bytes.Equal(a, b)
	}
	return reflect.DeepEqual(x, y)
}

func value(raw json.RawMessage) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
