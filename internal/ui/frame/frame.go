// Package frame turns facts about a session into the frames that a host of
// the SDK reads. It owns the mapping from the vocabulary to the wire, so that
// print's json and stream's lines cannot differ. It writes nothing, keeps no
// state, and does not decide which frame goes out when: that is its callers'.
package frame

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/sdkwire"
)

// UUID returns a new random version 4 UUID, the name of a frame.
func UUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Time formats at as frames carry it: UTC with milliseconds.
func Time(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// Usage returns u as the Messages API counts it.
func Usage(u agent.Usage) sdkwire.Usage {
	return sdkwire.Usage{
		InputTokens:         u.In,
		CacheCreationTokens: u.CacheWrite(),
		CacheReadTokens:     u.CacheRead,
		OutputTokens:        u.Out,
		ServerToolUse:       sdkwire.ServerToolUse{WebSearches: u.WebSearches, WebFetches: u.WebFetches},
		ServiceTier:         sdkwire.OrNull(u.ServiceTier),
		CacheCreation:       sdkwire.CacheCreation{OneHour: u.CacheWrite1h, FiveMinutes: u.CacheWrite5m},
	}
}

// Result returns the frame that ends a turn of session.
func Result(session string, o agent.Outcome) sdkwire.Result {
	r := sdkwire.Result{
		Type:              "result",
		Subtype:           o.Subtype,
		IsError:           o.IsError,
		DurationMS:        o.Took.Milliseconds(),
		DurationAPIMS:     o.API.Milliseconds(),
		NumTurns:          o.Turns,
		StopReason:        sdkwire.OrNull(o.Stop),
		SessionID:         session,
		TotalCostUSD:      o.Cost,
		Usage:             Usage(o.Usage),
		ModelUsage:        map[string]sdkwire.ModelUsage{},
		PermissionDenials: []sdkwire.Denial{},
		StructuredOutput:  o.Structured,
		TerminalReason:    o.Reason,
		FastModeState:     "off",
		UUID:              UUID(),
		UserMessageUUIDs:  o.Prompts,
	}
	if o.APIStatus != 0 {
		r.APIErrorStatus = &o.APIStatus
	}
	if o.TTFT > 0 {
		ms := o.TTFT.Milliseconds()
		r.TTFTMS = &ms
	}
	// compat: a failed request is still subtype success, with its text as the
	// result; only the error_ subtypes carry errors instead.
	if o.Subtype == "success" {
		r.Result = &o.Text
	} else {
		r.Errors = o.Errors
	}
	for _, m := range o.Models {
		r.ModelUsage[m.Model] = sdkwire.ModelUsage{
			InputTokens:         m.Usage.In,
			OutputTokens:        m.Usage.Out,
			CacheReadTokens:     m.Usage.CacheRead,
			CacheCreationTokens: m.Usage.CacheWrite(),
			WebSearches:         m.Usage.WebSearches,
			CostUSD:             m.Cost,
			ContextWindow:       m.ContextWindow,
			MaxOutputTokens:     m.MaxOutput,
		}
	}
	for _, d := range o.Denials {
		r.PermissionDenials = append(r.PermissionDenials,
			sdkwire.Denial{ToolName: d.Tool, ToolUseID: string(d.ID), ToolInput: object(d.Input)})
	}
	if d := o.Deferred; d != nil {
		r.DeferredToolUse = &sdkwire.DeferredToolUse{ID: string(d.ID), Name: d.Name, Input: object(d.Input)}
	}
	if o.Origin != "" && o.Origin != "human" {
		r.Origin = &sdkwire.Origin{Kind: o.Origin}
	}
	return r
}

// Init returns the frame that opens a turn.
func Init(in agent.Info) sdkwire.Init {
	f := sdkwire.Init{
		Type: "system", Subtype: "init",
		Cwd:                   in.Cwd,
		SessionID:             in.Session,
		Tools:                 make([]string, 0, len(in.Tools)),
		MCPServers:            make([]sdkwire.Server, 0, len(in.Servers)),
		Model:                 in.Model,
		PermissionMode:        string(in.Mode),
		SlashCommands:         make([]string, 0, len(in.Commands)),
		APIKeySource:          in.KeySource,
		ClaudeCodeVersion:     in.Version,
		OutputStyle:           in.OutputStyle,
		Agents:                make([]string, 0, len(in.Agents)),
		Skills:                append([]string{}, in.Skills...),
		Plugins:               make([]sdkwire.Plugin, 0, len(in.Plugins)),
		AnalyticsDisabled:     true,
		UUID:                  UUID(),
		SandboxEnabled:        in.Sandboxed,
		AdditionalDirectories: in.Directories,
		FastModeState:         "off",
	}
	for _, t := range in.Tools {
		// compat: hosts know the Agent tool as Task in this list, and only here.
		if t == "Agent" {
			t = "Task"
		}
		f.Tools = append(f.Tools, t)
	}
	for _, s := range in.Servers {
		f.MCPServers = append(f.MCPServers, sdkwire.Server{Name: s.Name, Status: s.Status, Source: s.Source})
	}
	for _, c := range in.Commands {
		f.SlashCommands = append(f.SlashCommands, c.Name)
	}
	for _, a := range in.Agents {
		f.Agents = append(f.Agents, a.Name)
	}
	for _, p := range in.Plugins {
		f.Plugins = append(f.Plugins, sdkwire.Plugin{Name: p.Name, Path: p.Path, Source: p.Source})
	}
	if in.OutputStyle == "" {
		f.OutputStyle = "default"
	}
	if in.KeySource == "" {
		f.APIKeySource = "none"
	}
	if in.MemoryDir != "" {
		f.MemoryPaths = &sdkwire.MemoryPaths{Auto: in.MemoryDir}
	}
	return f
}

// Assistant returns the frame of what the model said: e's body is said.
func Assistant(session string, e agent.Event, said agent.Said) sdkwire.Assistant {
	f := sdkwire.Assistant{
		Type: "assistant",
		Message: sdkwire.Message{
			ID: said.Message.ID, Type: "message", Role: "assistant", Model: said.Model,
			Content:    said.Message.Encode().Wire,
			StopReason: sdkwire.OrNull(said.Stop),
			Usage:      Usage(said.Usage),
		},
		ParentToolUseID: sdkwire.OrNull(string(e.Parent)),
		AgentID:         e.Agent,
		SessionID:       session,
		UUID:            said.Message.UUID,
		Timestamp:       Time(e.At),
		RequestID:       said.RequestID,
		Aborted:         said.Aborted,
	}
	if f.UUID == "" {
		f.UUID = UUID()
	}
	if t := said.Err; t != nil {
		f.Message.Model = "<synthetic>"
		f.Error, f.IsAPIErrorMessage, f.APIErrorType = t.Kind, true, t.Type
		if t.Status != 0 {
			f.APIErrorStatus = &t.Status
		}
	}
	return f
}

// User returns the frame of a user message: e's body is said. Notes the
// program added for the model are left out.
func User(session string, e agent.Event, said agent.Said) sdkwire.User {
	f := sdkwire.User{
		Type:            "user",
		Message:         sdkwire.UserMessage{Role: "user", Content: shown(said.Message)},
		ParentToolUseID: sdkwire.OrNull(string(e.Parent)),
		AgentID:         e.Agent,
		SessionID:       session,
		UUID:            said.Message.UUID,
		Timestamp:       Time(e.At),
		IsSynthetic:     said.Message.Meta,
		IsReplay:        said.Replay,
	}
	if f.UUID == "" {
		f.UUID = UUID()
	}
	if e.Parent != "" {
		// compat: consumers go through the blocks of a sub-agent's messages.
		f.Message.Content = agent.AppendBlocks(nil, visible(said.Message.Blocks))
	}
	if o := said.Message.Origin; o != "" && o != "human" {
		f.Origin = &sdkwire.Origin{Kind: o}
	}
	return f
}

// Finished returns the frame that echoes one tool result.
func Finished(session string, e agent.Event, fin agent.Finished) sdkwire.User {
	res := &agent.ToolResult{ID: fin.Call.ID, Blocks: fin.Result.Blocks, Array: fin.Result.Array, IsError: fin.Result.IsError}
	f := sdkwire.User{
		Type:            "user",
		Message:         sdkwire.UserMessage{Role: "user", Content: agent.AppendBlocks(nil, []agent.Block{res})},
		ParentToolUseID: sdkwire.OrNull(string(e.Parent)),
		AgentID:         e.Agent,
		SessionID:       session,
		UUID:            UUID(),
		Timestamp:       Time(e.At),
		ToolUseResult:   fin.Result.Detail,
		ToolResultMeta:  []sdkwire.ToolResult{verdict(fin)},
	}
	// compat: hosts tell a failure by this form of the structured result.
	if fin.Result.IsError && f.ToolUseResult == nil {
		f.ToolUseResult = "Error: " + agent.TextOf(fin.Result.Blocks)
	}
	return f
}

// verdict says how the call of fin came to run, or why it did not.
func verdict(fin agent.Finished) sdkwire.ToolResult {
	d := fin.Decision
	r := sdkwire.ToolResult{ID: string(fin.Call.ID)}
	byPerson := d.Why == agent.WhyUser || d.Why == agent.WhyPrompt
	switch {
	case d.Verdict == agent.Allow:
		r.Decision = &sdkwire.PermissionDecision{Decision: "accept", Source: "config"}
		if byPerson {
			r.Decision.Source = "user_temporary"
		}
	case d.Verdict == agent.Deny:
		r.Decision = &sdkwire.PermissionDecision{Decision: "reject", Source: "config"}
		r.NonExecutionKind = "permission-rule"
		if byPerson && !d.NoOne {
			r.Decision.Source = "user_reject"
			r.NonExecutionKind = "user-rejected"
		}
	default:
		return r
	}
	switch d.Why {
	case agent.WhyMode, agent.WhyParts, agent.WhyClassifier:
		r.Decision.ReasonType = string(d.Why)
	}
	return r
}

// shown is the content of m as a host sees it: a lone text is a string.
func shown(m agent.Message) json.RawMessage {
	bs := visible(m.Blocks)
	if len(bs) == 1 {
		if t, ok := bs[0].(*agent.Text); ok {
			return agent.AppendString(nil, t.Text)
		}
	}
	return agent.AppendBlocks(nil, bs)
}

// visible leaves out the notes that were added for the model.
func visible(all []agent.Block) []agent.Block {
	var bs []agent.Block
	for _, b := range all {
		if t, ok := b.(*agent.Text); !ok || t.Note == "" {
			bs = append(bs, b)
		}
	}
	return bs
}

// object returns raw, or {} in place of nothing.
func object(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}
