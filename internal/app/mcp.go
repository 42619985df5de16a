package app

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/session"
)

var errNoMCP = errors.New("no MCP server of that name is known")

func (a *App) mcpStart() {}

func (a *App) mcpWait(context.Context) []string { return nil }

func (a *App) servers() []agent.Server { return nil }

func (a *App) mcpPrompts() []agent.CommandInfo { return nil }

func (a *App) mcpPrompt(context.Context, agent.Prompt, string, string) (session.Expansion, bool, error) {
	return session.Expansion{}, false, nil
}

func (a *App) mcpHost(context.Context, []string, map[string]sdkServerConfig, map[string]json.RawMessage) any {
	return nil
}

func (a *App) mcpAdd(context.Context, json.RawMessage) error { return errNoMCP }

func (a *App) mcpStatus(context.Context, json.RawMessage) (any, error) {
	return map[string]any{"mcpServers": []any{}}, nil
}

func (a *App) mcpSetServers(context.Context, json.RawMessage) (any, error)   { return nil, errNoMCP }
func (a *App) mcpReconnect(context.Context, json.RawMessage) (any, error)    { return nil, errNoMCP }
func (a *App) mcpToggle(context.Context, json.RawMessage) (any, error)       { return nil, errNoMCP }
func (a *App) mcpReadResource(context.Context, json.RawMessage) (any, error) { return nil, errNoMCP }
func (a *App) mcpCall(context.Context, json.RawMessage) (any, error)         { return nil, errNoMCP }

func (a *App) slashMCP(context.Context, string) (session.Expansion, error) {
	return session.Expansion{Local: "There are no MCP servers."}, nil
}

// hookTool runs a tool of a connected server for a hook.
func (a *App) hookTool(context.Context, string, string, json.RawMessage) (string, bool, error) {
	return "", false, errNoMCP
}
