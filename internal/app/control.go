package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/session"
)

// A Control is one control request of the SDK protocol and how far it is
// answered. docs/sdk.md is made from the list.
type Control struct {
	Name  string
	State string // full, partial, refused; sent is asked of the host
	Note  string
	run   func(a *App, ctx context.Context, args json.RawMessage) (any, error)
	first bool // holds back turns until it is answered
}

// Controls lists every control request that a host may send.
func Controls() []Control {
	const own = "the session answers it"
	return []Control{
		{Name: "initialize", State: "full", run: (*App).initialize, first: true, Note: "hooks, agents, in-process MCP servers and their manifests, system prompt forms, JSON schema, title, skills"},
		{Name: "interrupt", State: "full", Note: own},
		{Name: "set_permission_mode", State: "full", Note: own},
		{Name: "set_model", State: "full", Note: own},
		{Name: "set_max_thinking_tokens", State: "full", Note: own},
		{Name: "cancel_async_message", State: "full", Note: own},
		{Name: "mcp_status", State: "full", run: (*App).mcpStatus},
		{Name: "mcp_message", State: "refused", Note: "cinch sends it to servers of the host; a host calls its own servers itself"},
		{Name: "mcp_set_servers", State: "full", run: (*App).mcpSetServers},
		{Name: "mcp_reconnect", State: "full", run: (*App).mcpReconnect},
		{Name: "mcp_toggle", State: "full", run: (*App).mcpToggle},
		{Name: "mcp_read_resource", State: "full", run: (*App).mcpReadResource, Note: "any resource, not ui:// alone"},
		{Name: "mcp_call", State: "partial", run: (*App).mcpCall, Note: "no staged files; check_permissions is refused"},
		{Name: "rewind_files", State: "full", run: (*App).rewindFiles, Note: "include_shell takes back what commands changed, too"},
		{Name: "get_context_usage", State: "full", run: (*App).contextUsage},
		{Name: "get_settings", State: "full", run: (*App).settingsQuery},
		{Name: "apply_flag_settings", State: "full", run: (*App).applyFlagSettings},
		{Name: "update_settings", State: "full", run: (*App).updateSettings, Note: "outputStyle in the local settings, effortLevel in those of the user"},
		{Name: "list_models", State: "full", run: (*App).listModels},
		{Name: "get_session_cost", State: "full", run: (*App).sessionCost},
		{Name: "get_usage", State: "partial", run: (*App).usageQuery, Note: "plan limits are what response headers said; none for API keys"},
		{Name: "get_binary_version", State: "full", run: (*App).binaryVersion},
		{Name: "get_hooks_listing", State: "full", run: (*App).hooksListing},
		{Name: "list_permission_rules", State: "full", run: (*App).permissionRules},
		{Name: "rename_session", State: "full", run: (*App).renameSession},
		{Name: "reload_skills", State: "full", run: (*App).reloadSkills},
		{Name: "reload_plugins", State: "partial", run: (*App).reloadPlugins, Note: "manifests, hooks, commands, skills and agents are read again at once; MCP servers that are connected stay as they are; hold_on_cache_impact and refuse_if_busy are not heeded"},
		{Name: "reload_output_styles", State: "full", run: (*App).reloadOutputStyles},
		{Name: "stop_task", State: "full", run: (*App).stopTask},
		{Name: "background_tasks", State: "full", run: (*App).backgroundTasks, Note: "shell commands; a sub-agent that is waited for stays in the foreground"},
		{Name: "get_task_output", State: "full", run: (*App).taskOutput},
		{Name: "read_file", State: "full", run: (*App).readFile},
		{Name: "file_suggestions", State: "full", run: (*App).fileSuggestions},
		{Name: "seed_read_state", State: "full", run: (*App).seedReadState},
		{Name: "set_color", State: "full", run: ignored, Note: "a colour has no meaning here"},
		{Name: "set_has_subscribers", State: "full", run: ignored, Note: "every event is told in any case"},
		{Name: "register_repo_root", State: "partial", run: (*App).registerRoot, Note: "the directory is added; instruction files and plugins of it are not read"},
		{Name: "can_use_tool", State: "sent", Note: "with --permission-prompt-tool stdio; the answer may change the input, add rules or end the turn"},
		{Name: "hook_callback", State: "sent", Note: "for hooks that initialize names"},
		{Name: "elicitation", State: "sent", Note: "an MCP server asks the user"},
		{Name: "request_user_dialog", State: "sent", Note: "for the kinds that initialize names"},
		{Name: "set_mcp_permission_mode_override", State: "refused", Note: "permission rules decide about MCP tools"},
	}
}

// queries are the controls that the app answers.
func (a *App) queries() map[string]session.Query {
	out := map[string]session.Query{}
	for _, c := range Controls() {
		switch {
		case c.run != nil:
			out[c.Name] = session.Query{First: c.first, Run: func(ctx context.Context, args json.RawMessage) (any, error) { return c.run(a, ctx, args) }}
		case c.State == "refused":
			out[c.Name] = session.Query{Run: func(context.Context, json.RawMessage) (any, error) {
				return nil, unsupported{fmt.Sprintf("The control request %s is not supported: %s.", c.Name, c.Note)}
			}}
		}
	}
	return out
}

// unsupported is the typed refusal of a request.
type unsupported struct{ text string }

func (e unsupported) Error() string { return e.text }
func (unsupported) Code() string    { return "unsupported_request" }

func ignored(*App, context.Context, json.RawMessage) (any, error) { return nil, nil }

// arguments reads the fields of a request.
func arguments[T any](raw json.RawMessage) (T, error) {
	var v T
	if len(raw) == 0 {
		return v, nil
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return v, fmt.Errorf("reading the request: %w", err)
	}
	return v, nil
}

func (a *App) listModels(context.Context, json.RawMessage) (any, error) {
	return map[string]any{"models": a.models()}, nil
}

// A modelRow is one model a host can offer.
type modelRow struct {
	Value       string   `json:"value"`
	Resolved    string   `json:"resolvedModel"`
	DisplayName string   `json:"displayName"`
	Description string   `json:"description"`
	Effort      bool     `json:"supportsEffort"`
	Efforts     []string `json:"supportedEffortLevels,omitempty"`
	Adaptive    bool     `json:"supportsAdaptiveThinking"`
}

func (a *App) models() []modelRow {
	var out []modelRow
	for _, m := range []struct{ name, title, text string }{
		{"default", "Default", "What is used when no model is chosen"},
		{"opus", "Opus", "The most thorough"},
		{"sonnet", "Sonnet", "For everyday work"},
		{"haiku", "Haiku", "The quickest"},
		{"fable", "Fable", "For long tasks"},
	} {
		s := a.model.Resolve(m.name)
		out = append(out, modelRow{m.name, s.ID, m.title, m.text, len(s.Efforts) > 0, s.Efforts, s.Adaptive})
	}
	return out
}

func (a *App) sessionCost(context.Context, json.RawMessage) (any, error) {
	_, cost := a.Session.Totals()
	return map[string]any{"text": a.costText(), "total_cost_usd": cost}, nil
}

type modelUsage struct {
	In         int     `json:"inputTokens"`
	Out        int     `json:"outputTokens"`
	CacheRead  int     `json:"cacheReadInputTokens"`
	CacheWrite int     `json:"cacheCreationInputTokens"`
	Searches   int     `json:"webSearchRequests"`
	Cost       float64 `json:"costUSD"`
	Window     int     `json:"contextWindow"`
	MaxOutput  int     `json:"maxOutputTokens"`
}

func usageOf(m agent.ModelUsage) modelUsage {
	u := m.Usage
	return modelUsage{u.In, u.Out, u.CacheRead, u.CacheWrite(), u.WebSearches, m.Cost, m.ContextWindow, m.MaxOutput}
}

func (a *App) usageQuery(context.Context, json.RawMessage) (any, error) {
	models, cost := a.Session.Totals()
	by := map[string]modelUsage{}
	for _, m := range models {
		by[m.Model] = usageOf(m)
	}
	return map[string]any{
		"session": map[string]any{
			"total_cost_usd": cost, "total_api_duration_ms": 0, "total_duration_ms": a.age().Milliseconds(),
			"total_lines_added": 0, "total_lines_removed": 0, "model_usage": by,
		},
		"subscription_type": nil, "rate_limits_available": false, "rate_limits": nil, "behaviors": nil,
	}, nil
}

func (a *App) binaryVersion(context.Context, json.RawMessage) (any, error) {
	return map[string]any{"version": a.o.Version, "buildTime": ""}, nil
}

func (a *App) stopTask(ctx context.Context, raw json.RawMessage) (any, error) {
	in, err := arguments[struct {
		ID string `json:"task_id"`
	}](raw)
	if err != nil {
		return nil, err
	}
	if _, ok := a.jobs.Find(in.ID); !ok {
		return nil, fmt.Errorf("no task %q is known", in.ID)
	}
	return nil, a.jobs.Stop(ctx, in.ID)
}

func (a *App) renameSession(ctx context.Context, raw json.RawMessage) (any, error) {
	in, err := arguments[struct {
		Title string `json:"title"`
	}](raw)
	if err != nil {
		return nil, err
	}
	if in.Title == "" {
		return nil, errors.New("a session needs a title of at least one letter")
	}
	return nil, a.rename(in.Title)
}
