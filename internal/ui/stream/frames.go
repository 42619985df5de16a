package stream

import (
	"encoding/json"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/sdkwire"
	"github.com/seed-eb844fcb/cinch/internal/ui/frame"
)

// capabilities are the optional parts of the protocol that hosts may rely on.
var capabilities = [...]string{"interrupt_receipt_v1", "interrupt_cancel_queued_v1"}

// write sends one frame: one line, one Write.
func (h *host) write(f any) error {
	line, err := sdkwire.Append(h.line[:0], f)
	if err != nil {
		return err
	}
	if cap(line) <= maxKept {
		h.line = line
	}
	_, err = h.o.Out.Write(line)
	return err
}

// maxKept bounds the buffer that is kept between frames.
const maxKept = 1 << 20

// A control frame goes either way; only one of its parts is set.
type control struct {
	Type      string    `json:"type"`
	RequestID string    `json:"request_id,omitempty"`
	Request   any       `json:"request,omitempty"`
	Response  *response `json:"response,omitempty"`
}

type response struct {
	Subtype   string `json:"subtype"` // success, error
	RequestID string `json:"request_id"`
	Response  any    `json:"response,omitempty"`
	Error     string `json:"error,omitempty"`
	Code      string `json:"error_code,omitempty"`
}

// A toolRequest asks whether a call may run.
type toolRequest struct {
	Subtype     string                   `json:"subtype"` // can_use_tool
	Tool        string                   `json:"tool_name"`
	DisplayName string                   `json:"display_name"`
	Title       string                   `json:"title,omitempty"`
	Description string                   `json:"description,omitempty"`
	Input       json.RawMessage          `json:"input"`
	ToolUseID   string                   `json:"tool_use_id"`
	Suggestions []agent.PermissionUpdate `json:"permission_suggestions"`
	Blocked     string                   `json:"blocked_path,omitempty"`
	Reason      string                   `json:"decision_reason,omitempty"`
	ReasonType  string                   `json:"decision_reason_type,omitempty"`
	AgentID     string                   `json:"agent_id,omitempty"`
	Interactive bool                     `json:"requires_user_interaction,omitempty"`
}

type hookRequest struct {
	Subtype    string          `json:"subtype"` // hook_callback
	CallbackID string          `json:"callback_id"`
	Input      json.RawMessage `json:"input"`
	ToolUseID  string          `json:"tool_use_id,omitempty"`
}

type mcpRequest struct {
	Subtype string          `json:"subtype"` // mcp_message
	Server  string          `json:"server_name"`
	Message json.RawMessage `json:"message"`
}

// request is the control request that puts q to the host.
func request(q agent.Question) (any, error) {
	switch q.Kind {
	case agent.AskPermission:
		d := q.Decision
		suggest := d.Suggest
		if suggest == nil {
			suggest = []agent.PermissionUpdate{}
		}
		return toolRequest{
			Subtype: "can_use_tool", Tool: q.Call.Name, DisplayName: q.Call.Name, Title: q.Title,
			Description: strings.Join(d.Warn, "\n"), Input: q.Call.Input, ToolUseID: string(q.Call.ID),
			Suggestions: suggest, Blocked: d.Blocked, Reason: d.Reason, ReasonType: string(d.Why),
			AgentID: q.Agent, Interactive: q.Call.Effects.Interactive,
		}, nil
	case agent.AskHook:
		return hookRequest{"hook_callback", q.Name, q.Payload, string(q.Call.ID)}, nil
	case agent.AskMCP:
		return mcpRequest{"mcp_message", q.Name, q.Payload}, nil
	case agent.AskElicit, agent.AskDialog:
		r := map[string]any{}
		if err := json.Unmarshal(q.Payload, &r); err != nil {
			return nil, err
		}
		r["subtype"] = "elicitation"
		if q.Kind == agent.AskDialog {
			r["subtype"], r["dialog_kind"] = "request_user_dialog", q.Name
		}
		return r, nil
	}
	return nil, errKind
}

// local tells the output of a command that ran without the model, in both
// the forms that clients look for.
func (h *host) local(e agent.Event, text string) error {
	err := h.write(sdkwire.LocalOutput{Type: "system", Subtype: "local_command_output", Content: text, SessionID: h.session, UUID: frame.UUID()})
	if err != nil {
		return err
	}
	return h.write(frame.User(h.session, e, agent.Said{Replay: true, Message: agent.Message{
		Role: agent.User, Blocks: []agent.Block{&agent.Text{Text: "<local-command-stdout>" + text + "</local-command-stdout>"}},
	}}))
}

func (h *host) denied(b agent.Decided) error {
	d := b.Decision
	return h.write(sdkwire.PermissionDenied{
		Type: "system", Subtype: "permission_denied", ToolName: b.Call.Name, ToolUseID: string(b.Call.ID),
		AgentID: b.Call.Agent, DecisionReasonType: string(d.Why), DecisionReason: d.By, Message: d.Reason,
		SessionID: h.session, UUID: frame.UUID(),
	})
}

func (h *host) hooked(b agent.Hooked) error {
	f := sdkwire.Hook{
		Type: "system", Subtype: "hook_" + b.Stage, HookID: b.ID, HookName: b.Name, HookEvent: b.Event,
		SessionID: h.session, UUID: frame.UUID(),
	}
	if b.Stage != "started" {
		f.Output, f.Stdout, f.Stderr = &b.Output, &b.Stdout, &b.Stderr
	}
	if b.Stage == "response" {
		f.ExitCode, f.Outcome = &b.ExitCode, b.Outcome
	}
	return h.write(f)
}

func (h *host) worked(b agent.Worked) error {
	t, id := b.Task, frame.UUID()
	use := sdkwire.TaskUsage{TotalTokens: t.Usage.Tokens, ToolUses: t.Usage.Tools, DurationMS: t.Usage.Took.Milliseconds()}
	call := sdkwire.OrNull(string(t.Call))
	switch b.Stage {
	case "started":
		return h.write(sdkwire.TaskStarted{
			Type: "system", Subtype: "task_started", TaskID: t.ID, ToolUseID: call, Description: t.Description,
			SubagentType: t.Agent, IsBackgrounded: t.Background, SpawnDepth: t.Depth, TaskType: t.Type, Prompt: t.Prompt,
			SessionID: h.session, UUID: id,
		})
	case "progress":
		return h.write(sdkwire.TaskProgress{
			Type: "system", Subtype: "task_progress", TaskID: t.ID, ToolUseID: call, Description: t.Description,
			LastToolName: t.LastTool, Usage: use, Summary: t.Summary, SessionID: h.session, UUID: id,
		})
	case "updated":
		p := sdkwire.TaskPatch{Status: t.Status, Error: t.Err, IsBackgrounded: &t.Background}
		if !t.Ended.IsZero() {
			p.EndTime = t.Ended.UnixMilli()
		}
		return h.write(sdkwire.TaskUpdated{Type: "system", Subtype: "task_updated", TaskID: t.ID, Patch: p, SessionID: h.session, UUID: id})
	}
	status := t.Status
	if status == "killed" {
		status = "stopped" // compat: the word of the notification differs from the patch's
	}
	return h.write(sdkwire.TaskNotification{
		Type: "system", Subtype: "task_notification", TaskID: t.ID, ToolUseID: call, Status: status,
		OutputFile: t.Output, Summary: t.Summary, Usage: &use, SessionID: h.session, UUID: id,
	})
}

func (h *host) compacted(e agent.Event, b agent.Compacted) error {
	st := sdkwire.Status{Type: "system", Subtype: "status", CompactResult: "success", SessionID: h.session, UUID: frame.UUID()}
	if b.Err != "" {
		st.CompactResult, st.CompactError = "failed", b.Err
	}
	if err := h.write(st); err != nil || b.Err != "" {
		return err
	}
	err := h.write(sdkwire.CompactBoundary{
		Type: "system", Subtype: "compact_boundary", SessionID: h.session, UUID: frame.UUID(),
		Metadata: sdkwire.CompactMetadata{Trigger: b.Trigger, PreTokens: b.Pre, PostTokens: b.Post, DurationMS: b.Took.Milliseconds()},
	})
	if err != nil || b.Summary == "" {
		return err
	}
	return h.write(frame.User(h.session, e, agent.Said{Message: agent.Message{
		Role: agent.User, Meta: true, Blocks: []agent.Block{&agent.Text{Text: b.Summary}},
	}}))
}

type commandsChanged struct {
	Type      string            `json:"type"`
	Subtype   string            `json:"subtype"`
	Commands  []sdkwire.Command `json:"commands"`
	SessionID string            `json:"session_id"`
	UUID      string            `json:"uuid"`
}

func (h *host) changed(b agent.Changed) error {
	switch b.What {
	case "mode":
		return h.write(sdkwire.Status{Type: "system", Subtype: "status", PermissionMode: string(b.Info.Mode), SessionID: h.session, UUID: frame.UUID()})
	case "commands":
		return h.write(commandsChanged{"system", "commands_changed", frame.Commands(b.Info.Commands), h.session, frame.UUID()})
	}
	return nil
}
