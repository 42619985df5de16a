package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/seed-eb844fcb/cinch/internal/app"
	"github.com/seed-eb844fcb/cinch/internal/lib/termsafe"
	"github.com/seed-eb844fcb/cinch/internal/net/mcp"
)

// mcpCost tells what the servers take of the context window.
func (p *program) mcpCost(o app.Options, args []string) int {
	asJSON, name := false, ""
	for _, a := range args {
		switch {
		case a == "--json":
			asJSON = true
		case name == "" && a != "" && a[0] != '-':
			name = a
		default:
			return p.fail(usagef("usage: cinch mcp cost [NAME] [--json]"))
		}
	}
	o.Print, o.NoPersistence = true, true
	return p.run(o, func(ctx context.Context, a *app.App) int {
		costs, err := a.ServerCosts(ctx)
		if err != nil {
			return p.fail(err)
		}
		if name != "" {
			costs = slices.DeleteFunc(costs, func(c mcp.Cost) bool { return c.Name != name })
			if len(costs) == 0 {
				return p.fail(fmt.Errorf("no MCP server %q is configured", name))
			}
		}
		total, deferred := 0, 0
		for _, c := range costs {
			total += c.Tokens
			deferred += c.Deferred
		}
		if asJSON {
			if costs == nil {
				costs = []mcp.Cost{}
			}
			return p.printJSON(map[string]any{"servers": costs, "tokens": total, "deferredTokens": deferred, "estimate": true})
		}
		if len(costs) == 0 {
			fmt.Fprintln(p.stdout, "no MCP servers are configured")
			return 0
		}
		for _, c := range costs {
			fmt.Fprintf(p.stdout, "%s: about %d tokens, %d while deferred, %d tools (%s)\n", termsafe.String(c.Name), c.Tokens, c.Deferred, len(c.Tools), c.State)
			if c.Err != "" {
				fmt.Fprintf(p.stdout, "  %s\n", termsafe.String(c.Err))
			}
			if c.Instructions > 0 {
				fmt.Fprintf(p.stdout, "%8d  instructions\n", c.Instructions)
			}
			for _, t := range c.Tools {
				more := ""
				if t.AlwaysLoad {
					more = "  always loaded"
				}
				fmt.Fprintf(p.stdout, "%8d  %s%s\n", t.Tokens, termsafe.String(t.Name), more)
			}
		}
		fmt.Fprintf(p.stdout, "all: about %d tokens, %d while deferred\n", total, deferred)
		return 0
	})
}

// printJSON writes v for programs.
func (p *program) printJSON(v any) int {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return p.fail(err)
	}
	fmt.Fprintf(p.stdout, "%s\n", raw)
	return 0
}
