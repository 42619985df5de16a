package stream

import (
	"context"
	"slices"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/sdkwire"
	"github.com/seed-eb844fcb/cinch/internal/ui/frame"
)

// event writes the frames of one event.
func (h *host) event(ctx context.Context, e agent.Event) error {
	switch b := e.Body.(type) {
	case agent.Opened:
		h.session = b.Info.Session
	case agent.Began:
		h.session = b.Info.Session
		f := frame.Init(b.Info)
		f.Capabilities = capabilities[:]
		return h.write(f)
	case agent.Wrote:
		return h.wrote(e, b.Delta)
	case agent.Said:
		return h.said(e, b)
	case agent.Finished:
		return h.write(frame.Finished(h.session, e, b))
	case agent.Asked:
		return h.ask(ctx, b.Question)
	case agent.Withdrawn:
		return h.withdrawn(b)
	case agent.Decided:
		// What a person or a hook refused is told by their own frames.
		if d := b.Decision; d.Verdict == agent.Deny && !slices.Contains([]agent.Why{agent.WhyPrompt, agent.WhyUser, agent.WhyHook}, d.Why) {
			return h.denied(b)
		}
	case agent.Noted:
		return h.write(sdkwire.Informational{
			Type: "system", Subtype: "informational", Content: b.Text, Level: b.Level, ToolUseID: string(b.Call),
			PreventContinuation: b.Stops, SessionID: h.session, UUID: frame.UUID(),
		})
	case agent.Local:
		return h.local(e, b.Text)
	case agent.Hooked:
		if b.Event == "SessionStart" || b.Event == "Setup" || h.o.HookEvents && !b.Quiet {
			return h.hooked(b)
		}
	case agent.Worked:
		return h.worked(b)
	case agent.Compacting:
		busy := "compacting"
		return h.write(sdkwire.Status{Type: "system", Subtype: "status", Status: &busy, SessionID: h.session, UUID: frame.UUID()})
	case agent.Compacted:
		return h.compacted(e, b)
	case agent.Changed:
		return h.changed(b)
	case agent.Cleared:
		old := h.session
		h.session = b.Session
		return h.write(sdkwire.Reset{Type: "conversation_reset", NewConversationID: b.Session, SessionID: old, UUID: frame.UUID()})
	case agent.Lifecycle:
		return h.write(sdkwire.Lifecycle{Type: "command_lifecycle", CommandUUID: b.UUID, State: b.State, SessionID: h.session, UUID: frame.UUID()})
	case agent.Replied:
		return h.replied(b)
	case agent.State:
		if h.o.States {
			return h.write(sdkwire.SessionState{Type: "system", Subtype: "session_state_changed", State: b.State, SDKHostOnly: true, SessionID: h.session, UUID: frame.UUID()})
		}
	case agent.Progressed:
		return h.write(sdkwire.ToolProgress{
			Type: "tool_progress", ToolUseID: string(b.ID), ToolName: b.Tool, ParentToolUseID: sdkwire.OrNull(string(e.Parent)),
			ElapsedSeconds: b.Elapsed.Seconds(), SessionID: h.session, UUID: frame.UUID(),
		})
	case agent.Settled:
		h.code = 0
		if b.Outcome.IsError || b.Outcome.Subtype != "success" {
			h.code = 1
		}
		return h.write(frame.Result(h.session, b.Outcome))
	}
	return nil
}

// said tells a finished part of the conversation, where the host is to know it.
func (h *host) said(e agent.Event, b agent.Said) error {
	if b.Hidden {
		return nil
	}
	if b.Message.Role == agent.Assistant {
		if e.Agent != "" && !h.o.ForwardText {
			// Of a sub-agent only calls are told, unless more was asked for.
			b.Message.Blocks = slices.DeleteFunc(slices.Clone(b.Message.Blocks), func(blk agent.Block) bool {
				_, use := blk.(*agent.ToolUse)
				return !use
			})
			b.Message.Wire = nil
			if len(b.Message.Blocks) == 0 {
				return nil
			}
		}
		return h.write(frame.Assistant(h.session, e, b))
	}
	results, others := 0, 0
	for _, blk := range b.Message.Blocks {
		switch blk := blk.(type) {
		case *agent.ToolResult:
			results++ // told by Finished, as each one ended
		case *agent.Text:
			if blk.Note == "" {
				others++
			}
		default:
			others++
		}
	}
	if results == 0 && others > 0 && (b.Replay || b.Message.Meta || e.Agent != "") {
		return h.write(frame.User(h.session, e, b))
	}
	return nil
}

func (h *host) withdrawn(b agent.Withdrawn) error {
	h.mu.Lock()
	_, open := h.asked[b.ID]
	delete(h.asked, b.ID)
	h.mu.Unlock()
	if !open {
		return nil
	}
	return h.write(control{Type: "control_cancel_request", RequestID: b.ID})
}

// replied answers a control request of the host, unless it gave up on it.
func (h *host) replied(b agent.Replied) error {
	h.mu.Lock()
	mine, dropped := h.seen[b.ID], h.dropped[b.ID]
	delete(h.dropped, b.ID)
	h.mu.Unlock()
	if !mine || dropped {
		return nil
	}
	r := &response{Subtype: "success", RequestID: b.ID, Response: b.Value}
	if b.Value == nil {
		r.Response = struct{}{}
	}
	if b.Err != "" {
		r = &response{Subtype: "error", RequestID: b.ID, Error: b.Err, Code: b.Code}
	}
	f := control{Type: "control_response", Response: r}
	if _, err := sdkwire.Append(nil, f); err != nil {
		// A value that cannot be encoded is our fault, and an answer all the same.
		f.Response = &response{Subtype: "error", RequestID: b.ID, Error: err.Error()}
	}
	return h.write(f)
}
