package app

import (
	"context"
	"encoding/json"
	"os"

	"github.com/seed-eb844fcb/cinch/internal/ext/hook"
	"github.com/seed-eb844fcb/cinch/internal/ext/subagent"
	"github.com/seed-eb844fcb/cinch/internal/tools/ask"
	"github.com/seed-eb844fcb/cinch/internal/ui/frame"
	"github.com/seed-eb844fcb/cinch/internal/window/prompt"
)

// initializeRequest is what a host says before the first prompt.
type initializeRequest struct {
	Hooks            json.RawMessage            `json:"hooks"`
	Agents           json.RawMessage            `json:"agents"`
	SystemPrompt     *promptForm                `json:"systemPrompt"`
	AppendPrompt     *string                    `json:"appendSystemPrompt"`
	ExcludeDynamic   bool                       `json:"excludeDynamicSections"`
	PlanInstructions string                     `json:"planModeInstructions"`
	JSONSchema       json.RawMessage            `json:"jsonSchema"`
	Title            string                     `json:"title"`
	Skills           []string                   `json:"skills"`
	SDKServers       []string                   `json:"sdkMcpServers"`
	SDKConfigs       map[string]sdkServerConfig `json:"sdkMcpServerConfigs"`
	Manifests        map[string]json.RawMessage `json:"sdkMcpServerManifests"`
	Servers          json.RawMessage            `json:"mcpServers"`
	Plugins          []json.RawMessage          `json:"plugins"`
}

// sdkServerConfig is what a host says of a server in its own process.
type sdkServerConfig struct {
	Timeout int `json:"timeout"` // milliseconds of one call
	Tools   []struct {
		Name   string `json:"name"`
		Policy string `json:"policy"` // always_ask, always_deny, …
	} `json:"tools"`
}

// A promptForm is a system prompt as hosts give it: a list, or one text.
type promptForm []string

func (f *promptForm) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*f = promptForm{one}
		return nil
	}
	var many []string
	err := json.Unmarshal(raw, &many)
	*f = many
	return err
}

type initializeAnswer struct {
	Commands     any      `json:"commands"`
	Agents       []any    `json:"agents"`
	Style        string   `json:"output_style"`
	Styles       []string `json:"available_output_styles"`
	Models       any      `json:"models"`
	Account      any      `json:"account"`
	PID          int      `json:"pid"`
	Version      string   `json:"claude_code_version"`
	Mode         string   `json:"current_permission_mode"`
	State        string   `json:"session_state"`
	FastMode     string   `json:"fast_mode_state"`
	Capabilities []string `json:"capabilities"`
	HooksApplied *bool    `json:"hooks_applied,omitempty"`
	OnFailure    bool     `json:"hook_on_failure_supported"`
	Servers      *bool    `json:"mcp_servers_applied,omitempty"`
	PluginsUsed  *bool    `json:"plugins_applied,omitempty"`
	Parked       any      `json:"sdk_mcp_manifests_parked,omitempty"`
}

// initialize takes what a host brings and tells what there is.
func (a *App) initialize(ctx context.Context, raw json.RawMessage) (any, error) {
	in, err := arguments[initializeRequest](raw)
	if err != nil {
		return nil, err
	}
	yes := true
	ans := initializeAnswer{}
	if len(in.Hooks) > 0 && string(in.Hooks) != "null" {
		hs, err := hook.ParseCallbacks(in.Hooks)
		if err != nil {
			return nil, err
		}
		a.hooks.Replace("sdk", hs)
		ans.HooksApplied = &yes
	}
	if len(in.Agents) > 0 && string(in.Agents) != "null" {
		ds, ps, err := subagent.ParseJSON(in.Agents, "sdk")
		if err != nil {
			return nil, err
		}
		for _, p := range ps {
			a.warn("%s", p)
		}
		a.ext.mu.Lock()
		a.ext.host = subagent.Merge(ds, a.ext.host)
		a.ext.mu.Unlock()
	}
	a.layout.take(&in)
	if len(in.JSONSchema) > 0 && string(in.JSONSchema) != "null" && a.schema == nil {
		if err := ask.CheckSchema(in.JSONSchema); err != nil {
			return nil, err
		}
		a.schema = in.JSONSchema
		a.tools.Add(ask.New(ask.Options{Schema: in.JSONSchema})...)
	}
	if in.Title != "" {
		if err := a.rename(in.Title); err != nil {
			a.warn("naming the session: %v", err)
		}
	}
	if len(in.SDKServers) > 0 {
		ans.Parked = a.mcpHost(ctx, in.SDKServers, in.SDKConfigs, in.Manifests)
	}
	if len(in.Servers) > 0 && string(in.Servers) != "null" {
		ok := a.o.AwaitInitialize && a.mcpAdd(ctx, in.Servers) == nil
		ans.Servers = &ok
	}
	if in.Plugins != nil {
		if err := a.addPlugins(in.Plugins); err != nil {
			return nil, err
		}
		ans.PluginsUsed = &yes
	}
	ans.Commands, ans.Agents = frame.Commands(a.commands()), []any{}
	for _, d := range a.agentInfos() {
		row := map[string]any{"name": d.Name, "description": d.Description}
		if d.Model != "" {
			row["model"] = d.Model
		}
		ans.Agents = append(ans.Agents, row)
	}
	ans.Style, ans.Styles = or(a.cfg().outputStyle, "default"), a.styleNames()
	ans.Models, ans.PID, ans.Version = a.models(), os.Getpid(), a.o.Version
	provider := "firstParty"
	if !a.firstParty() {
		provider = "gateway"
	}
	ans.Account = map[string]any{"apiKeySource": a.keySource(), "tokenSource": a.keySource(), "apiProvider": provider}
	ans.Mode, ans.State, ans.FastMode = string(a.mode()), "idle", "off"
	ans.Capabilities = []string{"interrupt_receipt_v1", "interrupt_cancel_queued_v1"}
	return ans, nil
}

// take sets what the model will see, as far as it was not seen yet.
func (l *layout) take(in *initializeRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if in.SystemPrompt != nil {
		l.custom = append([]string{}, *in.SystemPrompt...)
	}
	if in.AppendPrompt != nil {
		l.add = in.AppendPrompt
	}
	l.exclude = l.exclude || in.ExcludeDynamic
	l.plan = in.PlanInstructions
	if in.Skills != nil {
		l.skills = in.Skills
	}
}

func (a *App) styleNames() []string {
	out := []string{"default"}
	a.ext.mu.Lock()
	defer a.ext.mu.Unlock()
	for _, s := range a.ext.styles {
		if s.Name != "default" {
			out = append(out, s.Name)
		}
	}
	return out
}

var _ prompt.Style
