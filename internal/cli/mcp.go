package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/app"
	"github.com/seed-eb844fcb/cinch/internal/lib/termsafe"
	"github.com/seed-eb844fcb/cinch/internal/net/mcp"
	"github.com/seed-eb844fcb/cinch/internal/settings"
)

// mcp changes and shows the configured MCP servers.
func (p *program) mcp(args []string) int {
	const usage = "usage: cinch mcp add [-s SCOPE] [-t TYPE] [-e K=V] [-H 'N: v'] NAME COMMAND|URL [ARGS] | add-json NAME JSON | list | get NAME | remove NAME | approve NAME [TOOL]... | login NAME | logout NAME" +
		" | cost [NAME] [--json] | serve [--http [ADDRESS]] [OPTIONS] | check [--json] COMMAND [ARGS]... | check [--json] URL"
	if len(args) == 0 {
		return p.fail(usagef(usage))
	}
	o, err := p.light()
	if err != nil {
		return p.fail(err)
	}
	ctx, cancel := within(2 * time.Minute)
	defer cancel()
	switch verb := args[0]; verb {
	case "add":
		return p.mcpAdd(ctx, o, args[1:])
	case "add-json":
		scope, rest, err := scopeOf(args[1:])
		if err != nil || len(rest) != 2 || !json.Valid([]byte(rest[1])) {
			return p.fail(usagef("usage: cinch mcp add-json [-s local|user|project] NAME JSON"))
		}
		return p.mcpSave(ctx, o, scope, rest[0], json.RawMessage(rest[1]))
	case "list", "get":
		return p.mcpShow(o, args[1:])
	case "remove":
		scope, rest, err := scopeOf(args[1:])
		if err != nil || len(rest) != 1 {
			return p.fail(usagef("usage: cinch mcp remove [-s local|user|project] NAME"))
		}
		return p.mcpSave(ctx, o, scope, rest[0], nil)
	case "cost":
		return p.mcpCost(o, args[1:])
	case "serve":
		return p.mcpServe(o, args[1:])
	case "check":
		return p.mcpCheck(o, args[1:])
	case "approve":
		if len(args) < 2 {
			return p.fail(usagef("usage: cinch mcp approve NAME [TOOL]..."))
		}
		return p.mcpApprove(o, args[1], args[2:])
	case "login", "logout", "conformance":
		if len(args) != 2 {
			return p.fail(usagef(usage))
		}
		return p.mcpSignIn(o, verb, args[1])
	}
	return p.fail(usagef(usage))
}

// scopeOf takes -s SCOPE out of args.
func scopeOf(args []string) (scope string, rest []string, err error) {
	scope = "local"
	for i := 0; i < len(args); i++ {
		if args[i] == "-s" || args[i] == "--scope" {
			if i+1 == len(args) {
				return "", nil, errors.New("no scope")
			}
			i++
			scope = args[i]
			continue
		}
		rest = append(rest, args[i])
	}
	if scope != "local" && scope != "user" && scope != "project" {
		err = fmt.Errorf("the scope %q is none of local, user, project", scope)
	}
	return scope, rest, err
}

func (p *program) mcpAdd(ctx context.Context, o app.Options, args []string) int {
	entry := map[string]any{}
	env, header := map[string]string{}, map[string]string{}
	kind, scope := "stdio", "local"
	var words []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			words = append(words, args[i+1:]...)
			break
		}
		if !strings.HasPrefix(a, "-") || len(words) > 1 {
			words = append(words, a)
			continue
		}
		if i+1 == len(args) {
			return p.fail(usagef("option '%s' argument missing", a))
		}
		i++
		v := args[i]
		switch a {
		case "-t", "--transport", "--type":
			kind = v
		case "-s", "--scope":
			scope = v
		case "-e", "--env":
			k, x, ok := strings.Cut(v, "=")
			if !ok {
				return p.fail(usagef("option '-e' takes KEY=VALUE, not %q", v))
			}
			env[k] = x
		case "-H", "--header":
			k, x, ok := strings.Cut(v, ":")
			if !ok {
				return p.fail(usagef("option '-H' takes 'Name: value', not %q", v))
			}
			header[strings.TrimSpace(k)] = strings.TrimSpace(x)
		default:
			return p.fail(usagef("unknown option '%s'", a))
		}
	}
	if _, _, err := scopeOf([]string{"-s", scope}); err != nil {
		return p.fail(usagef("%v", err))
	}
	if len(words) < 2 {
		return p.fail(usagef("usage: cinch mcp add [options] NAME COMMAND|URL [ARGS]"))
	}
	entry["type"] = kind
	switch kind {
	case "stdio":
		entry["command"] = words[1]
		entry["args"] = words[2:]
		if len(env) > 0 {
			entry["env"] = env
		}
	case "http", "sse", "ws":
		entry["url"] = words[1]
		if len(header) > 0 {
			entry["headers"] = header
		}
	default:
		return p.fail(usagef("the type %q is none of stdio, http, sse, ws", kind))
	}
	raw, err := json.Marshal(entry)
	if err != nil {
		return p.fail(err)
	}
	return p.mcpSave(ctx, o, scope, words[0], raw)
}

// mcpSave writes or removes an entry in the file of its scope.
func (p *program) mcpSave(ctx context.Context, o app.Options, scope, name string, entry json.RawMessage) int {
	path := []string{"mcpServers", name}
	if scope == "local" {
		path = append([]string{"projects", o.Cwd}, path...)
	}
	ch := settings.Change{Op: settings.Set, Path: path, Value: entry}
	if entry == nil {
		ch = settings.Change{Op: settings.Delete, Path: path}
	}
	var file string
	var err error
	if scope == "project" {
		file = filepath.Join(o.Cwd, ".mcp.json")
		err = settings.Editor{}.Edit(ctx, file, ch)
	} else {
		file, err = app.EditState(ctx, o, ch)
	}
	if err != nil {
		return p.fail(err)
	}
	what := "added to"
	if entry == nil {
		what = "removed from"
	}
	fmt.Fprintf(p.stdout, "%s %s %s (%s)\n", name, what, file, scope)
	return 0
}

// mcpShow connects to the servers and tells how that went.
func (p *program) mcpShow(o app.Options, args []string) int {
	o.Print, o.NoPersistence = true, true
	return p.run(o, func(ctx context.Context, a *app.App) int {
		rows, err := a.Servers(ctx)
		if err != nil {
			return p.fail(err)
		}
		found := len(args) == 0
		for _, r := range rows {
			if len(args) == 1 && args[0] != r.Name {
				continue
			}
			found = true
			fmt.Fprintf(p.stdout, "%s: %s, %d tools (%s)\n", termsafe.String(r.Name), r.State, len(r.Tools), r.Source)
			if r.Err != "" {
				fmt.Fprintf(p.stdout, "  %s\n", termsafe.String(r.Err))
			}
			for _, s := range r.Skipped {
				fmt.Fprintf(p.stdout, "  %s\n", termsafe.String(s.Text))
			}
			if len(args) == 1 {
				for _, t := range r.Tools {
					fmt.Fprintf(p.stdout, "  %s\n", termsafe.String(t.Full))
				}
				p.changes(a.ToolChanges(r.Name))
			}
		}
		if !found {
			return p.fail(fmt.Errorf("no MCP server %q is configured", args[0]))
		}
		if len(rows) == 0 {
			fmt.Fprintln(p.stdout, "no MCP servers are configured")
		}
		return 0
	})
}

// changes prints what is different about tools.
func (p *program) changes(list []mcp.Change) {
	for _, c := range list {
		fmt.Fprintf(p.stdout, "%s has changed:\n", termsafe.String(c.Tool))
		for _, line := range c.Lines {
			fmt.Fprintf(p.stdout, "  %s\n", termsafe.String(line))
		}
	}
}

// mcpApprove pins the definitions of a server's tools as they are now.
func (p *program) mcpApprove(o app.Options, name string, tools []string) int {
	o.Print, o.NoPersistence = true, true
	return p.run(o, func(ctx context.Context, a *app.App) int {
		changes, names, err := a.ApproveTools(ctx, name, tools...)
		if err != nil {
			return p.fail(err)
		}
		p.changes(changes)
		if len(names) == 0 {
			fmt.Fprintf(p.stdout, "%s: no tool has changed since it was approved\n", termsafe.String(name))
		}
		for _, n := range names {
			fmt.Fprintf(p.stdout, "%s: %s is approved as it is now\n", termsafe.String(name), termsafe.String(n))
		}
		return 0
	})
}

// mcpSignIn signs in to or out of a server. The hidden verb conformance runs
// a client scenario of the conformance suite.
func (p *program) mcpSignIn(o app.Options, verb, name string) int {
	o.Print, o.NoPersistence = true, true
	o.StrictMCP = verb == "conformance" // only the server that is named
	return p.run(o, func(ctx context.Context, a *app.App) int {
		var err error
		switch verb {
		case "logout":
			err = a.SignOut(ctx, name)
		case "login":
			pasted := make(chan string)
			go func() { // ends with the input, or with the program
				in := bufio.NewScanner(p.stdin)
				for in.Scan() {
					if line := strings.TrimSpace(in.Text()); line != "" {
						pasted <- line
					}
				}
			}()
			err = a.SignIn(ctx, name, func(page string) {
				fmt.Fprintf(p.stderr, "Open this page to sign in to %s:\n\n%s\n\nIf the browser is on another machine, paste the address of the page it ends at.\n", termsafe.String(name), termsafe.String(page))
			}, pasted)
		default:
			var dir string
			if dir, err = os.MkdirTemp("", "cinch-conformance-"); err != nil {
				return p.fail(err)
			}
			defer os.RemoveAll(dir)
			err = a.Conform(ctx, name, dir)
		}
		if err != nil {
			return p.fail(err)
		}
		fmt.Fprintf(p.stdout, "%s: %s done\n", termsafe.String(name), verb)
		return 0
	})
}
