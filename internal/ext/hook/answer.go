package hook

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// An answer is what one hook said, in terms of the moment.
type answer struct {
	ran            bool
	decision       *agent.Decision
	block, halt    bool
	reason         string // of block, halt
	context, notes []string
	input, output  json.RawMessage
	extra          map[string]json.RawMessage
	code           int
	stdout, stderr string
}

// A reply is the JSON a hook may print. Unknown fields are left alone.
type reply struct {
	Continue      *bool           `json:"continue"`
	StopReason    string          `json:"stopReason"`
	SystemMessage string          `json:"systemMessage"`
	Decision      json.RawMessage `json:"decision"` // approve, block; for PermissionRequest inside Specific
	Reason        string          `json:"reason"`
	Specific      json.RawMessage `json:"hookSpecificOutput"`
	Async         bool            `json:"async"`
}

type specific struct {
	Event          string          `json:"hookEventName"`
	Permission     string          `json:"permissionDecision"`
	PermReason     string          `json:"permissionDecisionReason"`
	UpdatedInput   json.RawMessage `json:"updatedInput"`
	Context        string          `json:"additionalContext"`
	UpdatedOutput  json.RawMessage `json:"updatedToolOutput"`
	UpdatedMCP     json.RawMessage `json:"updatedMCPToolOutput"`
	Decision       json.RawMessage `json:"decision"`
	InitialMessage string          `json:"initialUserMessage"`
}

// plainContext are the events whose plain output is text for the model.
var plainContext = map[string]bool{"SessionStart": true, "UserPromptSubmit": true, "UserPromptExpansion": true}

// blocking are the events that a hook can stop.
var blocking = map[string]bool{
	"PreToolUse": true, "UserPromptSubmit": true, "UserPromptExpansion": true, "PostToolUse": true, "PostToolUseFailure": true,
	"PostToolBatch": true, "Stop": true, "SubagentStop": true, "TaskCreated": true, "TaskCompleted": true, "TeammateIdle": true,
	"PreCompact": true, "ConfigChange": true, "WorktreeCreate": true, "Elicitation": true, "ElicitationResult": true,
}

// read turns what a handler gave back into an answer to m.
func read(h *Handler, m agent.Moment, out output) answer {
	a := answer{ran: true, code: out.code, stdout: out.stdout, stderr: out.stderr}
	if out.err != nil {
		return a.failed(h, m, out)
	}
	if out.verdict != nil {
		return a.judged(h, m, out.verdict)
	}
	if out.cut {
		a.note(h, m, fmt.Sprintf("it wrote more than %d bytes; the middle is lost", maxOutput))
	}
	raw := out.json
	text := strings.TrimSpace(out.stdout)
	if out.cut && strings.HasPrefix(text, "{") && out.code != 2 {
		// What may have been a decision cannot be read any more.
		out.err = errors.New("its answer is too long")
		return a.failed(h, m, out)
	}
	if raw == nil && strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
		raw = json.RawMessage(text)
	}
	object := len(raw) > 0 && string(raw) != "null"
	var r reply
	if object {
		if err := json.Unmarshal(raw, &r); err != nil {
			a.note(h, m, "its answer does not fit: "+err.Error())
			object, r = false, reply{}
		}
	}
	if object {
		a.take(h, m, &r)
	}
	switch {
	case out.code == 0:
		if !object && text != "" && plainContext[m.Event] {
			a.context = append(a.context, text)
		}
	case out.code == 2:
		a.blocked(h, m, &r)
	case !object:
		first, _, _ := strings.Cut(strings.TrimSpace(out.stderr), "\n")
		a.note(h, m, fmt.Sprintf("exit code %d: %s", out.code, first))
		if h.FailClosed {
			a.refuse(m, fmt.Sprintf("The policy hook [%s] failed with exit code %d.", h.Name(), out.code))
		}
	}
	return a
}

func (a *answer) note(h *Handler, m agent.Moment, what string) {
	a.notes = append(a.notes, fmt.Sprintf("%s hook [%s]: %s", m.Event, h.Name(), what))
}

// refuse blocks what m is about.
func (a *answer) refuse(m agent.Moment, reason string) {
	a.block, a.reason = true, reason
	if m.Event == "PreToolUse" {
		a.decision = &agent.Decision{Verdict: agent.Deny, Why: agent.WhyHook, Reason: reason}
	}
}

// failed is the answer of a hook that gave none. It changes nothing, except
// where walking around the hook by breaking it must not be possible.
func (a answer) failed(h *Handler, m agent.Moment, out output) answer {
	a.note(h, m, "gave no answer: "+out.err.Error())
	guards := m.Event == "PreToolUse" || m.Event == "UserPromptSubmit"
	if h.FailClosed || h.Type == Callback && guards {
		a.refuse(m, fmt.Sprintf("%s hook error: the hook [%s] gave no answer: %v", label(m), h.Name(), out.err))
		if a.decision != nil {
			a.decision.By = "hook:" + h.Name()
		}
	}
	return a
}

// label is how messages to the model name the moment.
func label(m agent.Moment) string {
	if m.Match == "" || unmatched[m.Event] {
		return m.Event
	}
	return m.Event + ":" + m.Match
}

// blocked is exit code 2: the words of the JSON answer, else standard error.
func (a *answer) blocked(h *Handler, m agent.Moment, r *reply) {
	if m.Event == "PreToolUse" && a.decision != nil && a.decision.Verdict == agent.Deny {
		a.block = true
		return // the JSON answer has said so already, in its own words
	}
	words := or(a.reason, or(r.Reason, strings.TrimSpace(a.stderr)))
	if words == "" {
		words = "no reason was given"
	}
	switch m.Event {
	case "PreToolUse":
		a.reason = fmt.Sprintf("%s hook error: [%s]: %s", label(m), h.Name(), words)
		a.block = true
		a.decision = &agent.Decision{Verdict: agent.Deny, Why: agent.WhyHook, By: "hook:" + h.Name(), Reason: a.reason}
	case "Stop", "SubagentStop":
		a.block, a.reason = true, fmt.Sprintf("%s hook feedback:\n[%s]: %s", m.Event, h.Name(), words)
	case "PermissionRequest":
		// compat: exit code 2 has no meaning there.
	default:
		if blocking[m.Event] {
			a.block, a.reason = true, fmt.Sprintf("%s hook blocking error: [%s]: %s", label(m), h.Name(), words)
		} else {
			a.note(h, m, words)
		}
	}
}

// take reads the JSON answer.
func (a *answer) take(h *Handler, m agent.Moment, r *reply) {
	if r.Continue != nil && !*r.Continue {
		a.halt, a.reason = true, or(r.StopReason, or(r.Reason, "a hook ended the turn"))
	}
	if r.SystemMessage != "" {
		a.notes = append(a.notes, r.SystemMessage)
	}
	var word string
	if json.Unmarshal(r.Decision, &word) == nil {
		switch word {
		case "block", "deny":
			reason := or(r.Reason, "a hook said no")
			if m.Event == "PreToolUse" {
				reason = label(m) + " hook error: " + reason
			}
			a.refuse(m, reason)
		case "approve", "allow":
			if m.Event == "PreToolUse" {
				a.decision = &agent.Decision{Verdict: agent.Allow, Why: agent.WhyHook, Reason: r.Reason}
			}
		}
	}
	var sp specific
	if len(r.Specific) > 0 {
		if err := json.Unmarshal(r.Specific, &sp); err != nil {
			a.note(h, m, "its hookSpecificOutput does not fit: "+err.Error())
			return
		}
		if err := json.Unmarshal(r.Specific, &a.extra); err != nil {
			a.extra = nil
		}
	}
	if sp.Event != "" && sp.Event != m.Event {
		a.note(h, m, fmt.Sprintf("its answer is for %s", sp.Event))
		return
	}
	if sp.Context != "" {
		a.context = append(a.context, sp.Context)
	}
	switch m.Event {
	case "PreToolUse":
		a.permission(m, &sp)
	case "PermissionRequest":
		a.request(h, m, sp.Decision)
	case "PostToolUse":
		a.output = sp.UpdatedOutput
		if a.output == nil {
			a.output = sp.UpdatedMCP
		}
	}
	if a.decision != nil && a.decision.By == "" {
		a.decision.By = "hook:" + h.Name()
	}
}

func (a *answer) permission(m agent.Moment, sp *specific) {
	d := agent.Decision{Why: agent.WhyHook, Reason: sp.PermReason}
	switch sp.Permission {
	case "allow":
		d.Verdict = agent.Allow
	case "deny":
		d.Verdict = agent.Deny
		d.Reason = label(m) + " hook error: " + or(sp.PermReason, "a hook said no")
	case "ask":
		d.Verdict = agent.Ask
	case "defer":
		d.Verdict = agent.Defer
	default:
		if len(sp.UpdatedInput) > 0 {
			a.input = sp.UpdatedInput
		}
		return
	}
	if len(sp.UpdatedInput) > 0 && d.Verdict != agent.Deny {
		a.input = sp.UpdatedInput
		d.Input = sp.UpdatedInput
	}
	a.decision = &d
}

// request reads the decision object of a PermissionRequest hook.
func (a *answer) request(h *Handler, m agent.Moment, raw json.RawMessage) {
	if len(raw) == 0 {
		return
	}
	var w struct {
		Behavior  string                   `json:"behavior"`
		Input     json.RawMessage          `json:"updatedInput"`
		Updates   []agent.PermissionUpdate `json:"updatedPermissions"`
		Message   string                   `json:"message"`
		Interrupt bool                     `json:"interrupt"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		a.note(h, m, "its decision does not fit: "+err.Error())
		return
	}
	d := &agent.Decision{Why: agent.WhyHook, Reason: w.Message}
	switch w.Behavior {
	case "allow":
		d.Verdict, d.Updates = agent.Allow, w.Updates
		if len(w.Input) > 0 {
			d.Input = w.Input
		}
	case "deny":
		d.Verdict, d.Interrupt = agent.Deny, w.Interrupt
		d.Reason = or(w.Message, "A hook denied this call.")
	default:
		a.note(h, m, fmt.Sprintf("its behavior is %q, neither allow nor deny", w.Behavior))
		return
	}
	a.decision = d
}

// judged is the answer of a model.
func (a answer) judged(h *Handler, m agent.Moment, v *verdict) answer {
	if *v.OK {
		return a
	}
	reason := or(v.Reason, "the condition does not hold")
	switch m.Event {
	case "Stop", "SubagentStop":
		if !v.Impossible {
			a.block, a.reason = true, reason
		}
	case "PreToolUse":
		a.refuse(m, label(m)+" hook error: "+reason)
		if !h.ContinueOnBlock {
			a.halt = true
		}
	case "PermissionRequest", "PermissionDenied":
	case "PostToolUseFailure", "TaskCreated", "TaskCompleted":
		a.block, a.reason = true, reason
	default:
		a.block, a.reason = true, reason
		if !h.ContinueOnBlock {
			a.halt = true
		}
	}
	return a
}
