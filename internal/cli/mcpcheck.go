package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/app"
	"github.com/seed-eb844fcb/cinch/internal/lib/termsafe"
	"github.com/seed-eb844fcb/cinch/internal/net/mcp"
)

// mcpCheck looks at a server the way its author should.
func (p *program) mcpCheck(o app.Options, args []string) int {
	const usage = "usage: cinch mcp check [--json] [--sse] COMMAND [ARGS]... | URL"
	asJSON, kind := false, "http"
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		switch a {
		case "--json":
			asJSON = true
		case "--sse":
			kind = "sse"
		default:
			return p.fail(usagef(usage))
		}
	}
	if len(args) == 0 {
		return p.fail(usagef(usage))
	}
	c := mcp.Config{Name: "server", Type: "stdio", Command: args[0], Args: args[1:], Source: "cli"}
	if scheme, _, ok := strings.Cut(args[0], "://"); ok {
		if scheme == "ws" || scheme == "wss" {
			kind = "ws"
		}
		if len(args) > 1 {
			return p.fail(usagef(usage))
		}
		c = mcp.Config{Name: "server", Type: kind, URL: args[0], Source: "cli"}
	}
	o.Print, o.NoPersistence, o.StrictMCP = true, true, true
	return p.run(o, func(ctx context.Context, a *app.App) int {
		r := a.CheckServer(ctx, c)
		code := 0
		if r.Failed() {
			code = 1
		}
		if asJSON {
			if p.printJSON(r) != 0 {
				return 1
			}
			return code
		}
		fmt.Fprintf(p.stdout, "%s\n", termsafe.String(strings.TrimSpace(r.Server+" "+r.Version)))
		counts := map[string]int{}
		for _, f := range r.Findings {
			counts[f.Weight]++
			fmt.Fprintf(p.stdout, "%-8s %-9s %s\n", f.Weight, f.About, termsafe.String(f.Text))
		}
		fmt.Fprintf(p.stdout, "%d errors, %d warnings\n", counts[mcp.Error], counts[mcp.Warning])
		return code
	})
}
