package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/app"
	"github.com/seed-eb844fcb/cinch/internal/net/mcp/serve"
)

// A door is how clients reach what is served.
type door struct {
	http  bool
	addr  string
	token string // "" is none
}

// doorOf takes the options of serve out of args; the rest are those of a run.
func doorOf(args []string) (d door, rest []string) {
	d.token = rand.Text()
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "--http":
			d.http = true
			if i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				i++
				d.addr = args[i]
			}
		case strings.HasPrefix(a, "--http="):
			d.http, d.addr = true, strings.TrimPrefix(a, "--http=")
		case a == "--no-token":
			d.token = ""
		default:
			rest = append(rest, a)
		}
	}
	return d, rest
}

// mcpServe offers our tools to the clients of others.
func (p *program) mcpServe(_ app.Options, args []string) int {
	d, rest := doorOf(args)
	flags, err := parse(rest)
	if err != nil {
		return p.fail(err)
	}
	if len(flags.args) > 0 {
		return p.fail(usagef("usage: cinch mcp serve [--http [ADDRESS]] [--no-token] [OPTIONS]"))
	}
	o, err := p.appOptions(flags, true)
	if err != nil {
		return p.fail(err)
	}
	o.NoPersistence, o.StrictMCP, o.NoPrompts, o.PromptTool, o.MCPConfig = true, true, true, "", nil
	return p.run(o, func(ctx context.Context, a *app.App) int {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() { // ends with the session, which a signal ends
			for range a.Session.Events(ctx, 0) {
			}
			cancel()
		}()
		s := serve.New(a.Served())
		if !d.http {
			if err := serve.Stdio(ctx, s, p.stdin, p.stdout); err != nil {
				return p.fail(err)
			}
			return 0
		}
		l, err := serve.Listen(d.addr)
		if err != nil {
			return p.fail(err)
		}
		fmt.Fprintf(p.stderr, "serving at http://%s/mcp\n", l.Addr())
		if d.token != "" {
			fmt.Fprintf(p.stderr, "clients must send the header Authorization: Bearer %s\n", d.token)
		}
		if err := serve.HTTP(ctx, l, serve.Handler(s, d.token)); err != nil {
			return p.fail(err)
		}
		return 0
	})
}
