package app

import (
	"context"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/net/mcp"
)

// ApproveTools pins the definitions of a server's tools as they are now: of
// those that have changed, or of tools. It returns the changes there were and
// the tools that were pinned.
func (a *App) ApproveTools(ctx context.Context, server string, tools ...string) ([]mcp.Change, []string, error) {
	if err := a.mcpConnected(ctx, server); err != nil {
		return nil, nil, err
	}
	changes := a.mcp.Changes(server)
	names, err := a.mcp.Approve(ctx, server, tools...)
	return changes, names, err
}

// ToolChanges are the tools of a server that are others than was approved.
func (a *App) ToolChanges(server string) []mcp.Change { return a.mcp.Changes(server) }

// mcpConnected waits until a server is connected.
func (a *App) mcpConnected(ctx context.Context, server string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return a.mcp.Connected(ctx, server)
}

// ServerCosts connects to all servers and returns what each takes of the
// context window.
func (a *App) ServerCosts(ctx context.Context) ([]mcp.Cost, error) {
	if _, err := a.Servers(ctx); err != nil {
		return nil, err
	}
	return a.mcp.Costs(), nil
}

// CheckServer looks at a server that is not part of the session.
func (a *App) CheckServer(ctx context.Context, c mcp.Config) *mcp.Report {
	o := a.mcpOptions()
	o.Ask, o.Changed, o.Note, o.Pins = nil, nil, nil, ""
	return mcp.Check(ctx, o, c)
}
