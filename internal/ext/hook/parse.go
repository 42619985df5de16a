package hook

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// events are the names a hook may listen to, each with the types of handlers
// it takes: a for all five, c for command, http and mcp_tool, s for command
// and mcp_tool. Source: the documented hook reference.
var events = map[string]byte{
	"SessionStart": 's', "Setup": 's', "SessionEnd": 'c', "UserPromptSubmit": 'a', "UserPromptExpansion": 'a',
	"PreToolUse": 'a', "PermissionRequest": 'a', "PermissionDenied": 'a', "PostToolUse": 'a', "PostToolUseFailure": 'a',
	"PostToolBatch": 'a', "Stop": 'a', "StopFailure": 'c', "SubagentStart": 'c', "SubagentStop": 'a', "Notification": 'c',
	"TaskCreated": 'a', "TaskCompleted": 'a', "TeammateIdle": 'a', "PreCompact": 'c', "PostCompact": 'c',
	"InstructionsLoaded": 'c', "ConfigChange": 'c', "CwdChanged": 'c', "DirectoryAdded": 'c', "FileChanged": 'c',
	"WorktreeCreate": 'c', "WorktreeRemove": 'c', "Elicitation": 'c', "ElicitationResult": 'c', "MessageDisplay": 'c',
}

// A Problem is a hook that was left out, and why.
type Problem struct{ File, Where, Text string }

func (p Problem) String() string {
	s := p.Where + ": " + p.Text
	if p.File != "" {
		s = p.File + ": " + s
	}
	return s
}

type wireGroup struct {
	Matcher *string           `json:"matcher"`
	Hooks   []json.RawMessage `json:"hooks"`
}

type wireHandler struct {
	Type            string            `json:"type"`
	Command         string            `json:"command"`
	Args            []string          `json:"args"`
	Shell           string            `json:"shell"`
	URL             string            `json:"url"`
	Headers         map[string]string `json:"headers"`
	AllowedEnvVars  []string          `json:"allowedEnvVars"`
	Server          string            `json:"server"`
	Tool            string            `json:"tool"`
	Input           json.RawMessage   `json:"input"`
	Prompt          string            `json:"prompt"`
	Model           string            `json:"model"`
	ContinueOnBlock bool              `json:"continueOnBlock"`
	If              string            `json:"if"`
	Timeout         float64           `json:"timeout"` // seconds
	Async           bool              `json:"async"`
	AsyncRewake     bool              `json:"asyncRewake"`
	Once            bool              `json:"once"`
	FailClosed      bool              `json:"failClosed"`
	StatusMessage   string            `json:"statusMessage"`
}

// Parse reads a hooks block: {"Event":[{"matcher":…,"hooks":[…]}]}. A bad
// entry is left out and named; the others stand. from is copied into every
// handler for what the block itself does not say (Source, File, Root, Data).
func Parse(raw json.RawMessage, from Handler) (hs []Handler, ps []Problem) {
	bad := func(where, format string, args ...any) {
		ps = append(ps, Problem{from.File, where, fmt.Sprintf(format, args...)})
	}
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var block map[string]json.RawMessage
	if err := json.Unmarshal(raw, &block); err != nil {
		bad("hooks", "not an object of events: %v", err)
		return nil, ps
	}
	names := make([]string, 0, len(block))
	for name := range block {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		takes, known := events[name]
		if !known {
			bad("hooks."+name, "there is no such event%s", hint(name))
			continue
		}
		var groups []wireGroup
		if err := json.Unmarshal(block[name], &groups); err != nil {
			bad("hooks."+name, "not a list of {matcher, hooks}: %v", err)
			continue
		}
		for i, g := range groups {
			for j, hraw := range g.Hooks {
				where := fmt.Sprintf("hooks.%s[%d].hooks[%d]", name, i, j)
				h := from
				h.Event = name
				if g.Matcher != nil {
					h.Matcher = *g.Matcher
				}
				if err := h.read(hraw, takes); err != nil {
					bad(where, "%v", err)
					continue
				}
				if _, err := compile(name, h.Matcher); err != nil {
					bad(where, "matcher %q: %v", h.Matcher, err)
					continue
				}
				hs = append(hs, h)
			}
		}
	}
	return hs, ps
}

func (h *Handler) read(raw json.RawMessage, takes byte) error {
	var w wireHandler
	if err := json.Unmarshal(raw, &w); err != nil {
		return fmt.Errorf("not a hook: %w", err)
	}
	h.Type = w.Type
	missing := ""
	switch w.Type {
	case Command:
		if w.Command == "" {
			missing = "command"
		}
	case HTTP:
		if w.URL == "" {
			missing = "url"
		}
	case MCPTool:
		if w.Server == "" || w.Tool == "" {
			missing = "server and tool"
		}
	case Prompt, Agent:
		if w.Prompt == "" {
			missing = "prompt"
		}
	case "":
		return fmt.Errorf("no type: one of command, http, mcp_tool, prompt, agent")
	default:
		return fmt.Errorf("unknown type %q: one of command, http, mcp_tool, prompt, agent", w.Type)
	}
	if missing != "" {
		return fmt.Errorf("a hook of type %s needs %s", w.Type, missing)
	}
	if takes != 'a' && (w.Type == Prompt || w.Type == Agent) || takes == 's' && w.Type == HTTP {
		return fmt.Errorf("%s does not take hooks of type %s", h.Event, w.Type)
	}
	h.Command, h.Args, h.Shell = w.Command, w.Args, w.Shell
	h.URL, h.Headers, h.AllowedVars = w.URL, w.Headers, w.AllowedEnvVars
	h.Server, h.Tool, h.Input = w.Server, w.Tool, w.Input
	h.Prompt, h.Model, h.ContinueOnBlock = w.Prompt, w.Model, w.ContinueOnBlock || w.Type == Agent
	h.If, h.Async, h.Rewake = w.If, w.Async || w.AsyncRewake, w.AsyncRewake
	h.FailClosed, h.StatusMessage = w.FailClosed, w.StatusMessage
	h.Once = w.Once && strings.HasPrefix(h.Source, "skill:")
	if w.Timeout > 0 {
		h.Timeout = time.Duration(w.Timeout * float64(time.Second))
	}
	return nil
}

// hint names the event somebody may have meant.
func hint(name string) string {
	for e := range events {
		if strings.EqualFold(e, name) {
			return ", did you mean " + e + "?"
		}
	}
	return ""
}

// ParseCallbacks reads the hooks of an initialize request:
// {"Event":[{"matcher":…,"hookCallbackIds":[…],"timeout":…}]}.
func ParseCallbacks(raw json.RawMessage) (hs []Handler, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var block map[string][]struct {
		Matcher string   `json:"matcher"`
		IDs     []string `json:"hookCallbackIds"`
		Timeout float64  `json:"timeout"`
	}
	if err := json.Unmarshal(raw, &block); err != nil {
		return nil, fmt.Errorf("reading the host's hooks: %w", err)
	}
	for name, groups := range block {
		for _, g := range groups {
			for _, id := range g.IDs {
				h := Handler{Event: name, Matcher: g.Matcher, Type: Callback, CallbackID: id, Source: "sdk"}
				if g.Timeout > 0 {
					h.Timeout = time.Duration(g.Timeout * float64(time.Second))
				}
				if _, err := compile(name, g.Matcher); err != nil {
					return nil, fmt.Errorf("reading the host's hooks: %s: matcher %q: %w", name, g.Matcher, err)
				}
				hs = append(hs, h)
			}
		}
	}
	slices.SortStableFunc(hs, func(a, b Handler) int { return strings.Compare(a.CallbackID, b.CallbackID) })
	return hs, nil
}
