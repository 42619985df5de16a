package session

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/window"
)

// hookNotes are what hooks said to the model, one note each.
func hookNotes(from string, texts []string) []agent.Block {
	notes := make([]window.Note, 0, len(texts))
	for _, t := range texts {
		notes = append(notes, window.Note{Kind: "hook", Text: from + " hook success: " + t})
	}
	return window.Remind(notes...)
}

// hook runs the hooks of a moment and tells their notes.
func (s *Session) hook(ctx context.Context, m agent.Moment) agent.HookResult {
	if s.o.Hook == nil {
		return agent.HookResult{}
	}
	r := s.o.Hook(ctx, m)
	for _, n := range r.Notes {
		s.Emit(s.parentOf(m.Agent), m.Agent, agent.Noted{Level: "info", Text: n})
	}
	return r
}

// stopHooks asks the hooks of a stop. A message in return makes the model go on.
func (s *Session) stopHooks(ctx context.Context, m agent.Moment, answer string, active bool) (*agent.Message, string) {
	if s.o.Hook == nil {
		return nil, ""
	}
	m.Fields = map[string]any{"stop_hook_active": active, "last_assistant_message": answer, "background_tasks": s.tasks(), "session_crons": []any{}}
	r := s.hook(ctx, m)
	switch {
	case r.Halt:
		if r.Reason != "" {
			s.Emit(s.parentOf(m.Agent), m.Agent, agent.Noted{Level: "notice", Text: r.Reason, Stops: true})
		}
		return nil, "stop_hook_prevented"
	case r.Block:
		return note(s.o.NewID(), "hook", m.Event+" hook feedback: "+strings.Join(append([]string{r.Reason}, r.Context...), "\n")), ""
	case len(r.Context) > 0:
		return note(s.o.NewID(), "hook", m.Event+" hook feedback: "+strings.Join(r.Context, "\n")), ""
	}
	return nil, ""
}

// tasks describes the background work for hooks.
func (s *Session) tasks() []map[string]any {
	out := []map[string]any{}
	if s.o.Tasks == nil {
		return out
	}
	for _, t := range s.o.Tasks() {
		m := map[string]any{"id": t.ID, "type": "shell", "status": t.Status, "description": clip(t.Description, 1000)}
		if t.Type == "local_agent" {
			m["type"], m["agent_type"] = "subagent", t.Agent
		}
		if t.Command != "" {
			m["command"] = clip(t.Command, 1000)
		}
		out = append(out, m)
	}
	return out
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// begin runs the SessionStart hooks.
func (s *Session) begin(ctx context.Context, source string) started {
	r := s.hook(ctx, agent.Moment{Event: "SessionStart", Match: source, Fields: map[string]any{"source": source, "model": s.Model()}})
	s.retitle(r)
	return started{source: source, notes: r.Context, prompt: extra(r, "initialUserMessage")}
}

// note keeps what SessionStart hooks said for the next prompt or request.
func (s *Session) note(st started) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending.source = st.source
	s.pending.notes = append(s.pending.notes, st.notes...)
}

// notes takes what note kept.
func (s *Session) notes() started {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.pending
	s.pending.notes = nil
	return st
}

// retitle gives the session the title a hook wants for it.
func (s *Session) retitle(r agent.HookResult) {
	if title := extra(r, "sessionTitle"); title != "" {
		s.SetTitle(title)
	}
}

func extra(r agent.HookResult, name string) string {
	var v string
	if raw, ok := r.Extra[name]; ok && json.Unmarshal(raw, &v) == nil {
		return v
	}
	return ""
}
