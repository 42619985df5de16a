package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/app"
	"github.com/seed-eb844fcb/cinch/internal/lib/termsafe"
	"github.com/seed-eb844fcb/cinch/internal/policy"
	"github.com/seed-eb844fcb/cinch/internal/policy/report"
	"github.com/seed-eb844fcb/cinch/internal/settings"
	"github.com/seed-eb844fcb/cinch/internal/ui/line"
)

// within bounds what a command without a session may take.
func within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// config prints settings and where they come from.
func (p *program) config(args []string) int {
	o, err := p.light()
	if err != nil {
		return p.fail(err)
	}
	ctx, cancel := within(time.Minute)
	defer cancel()
	v, err := app.Settings(ctx, o)
	if err != nil {
		return p.fail(err)
	}
	switch {
	case len(args) == 0 || args[0] == "list" && len(args) == 1:
		for _, k := range v.Keys() {
			value, from, _ := v.Raw(v.Path(k)...)
			fmt.Fprintf(p.stdout, "%s = %s  (%s)\n", k, termsafe.String(string(value)), from)
		}
		for _, pr := range v.Problems() {
			fmt.Fprintf(p.stdout, "%s: %s\n", pr.Severity, termsafe.String(pr.String()))
		}
		return 0
	case args[0] == "why" && len(args) == 2:
		value, from := v.Why(v.Path(args[1])...)
		if len(from) == 0 {
			fmt.Fprintf(p.stdout, "%s is set nowhere\n", args[1])
			return 1
		}
		fmt.Fprintf(p.stdout, "%s = %s\n", args[1], termsafe.String(string(value)))
		for _, d := range from {
			counts := "in effect"
			if !d.Counts {
				counts = "without effect"
			}
			fmt.Fprintf(p.stdout, "  %s: %s (%s)\n", d.Origin, termsafe.String(string(d.Value)), counts)
		}
		return 0
	}
	return p.fail(usagef("usage: cinch config [list] | why KEY"))
}

// policy explains and tests permission rules.
func (p *program) policy(args []string) int {
	const usage = "usage: cinch policy explain CALL | test FILE | diff SETTINGS SETTINGS"
	o, err := p.light()
	if err != nil {
		return p.fail(err)
	}
	ctx, cancel := within(time.Minute)
	defer cancel()
	load := func(o app.Options) (*policy.Policy, bool) {
		pol, err := app.Policy(ctx, o)
		if err != nil {
			p.fail(err)
		}
		return pol, err == nil
	}
	switch {
	case len(args) >= 2 && args[0] == "explain":
		pol, ok := load(o)
		if !ok {
			return 1
		}
		c, err := report.Call(pol, strings.Join(args[1:], " "))
		if err == nil {
			err = report.Explain(p.stdout, pol, c)
		}
		if err != nil {
			return p.fail(err)
		}
		return 0
	case len(args) == 2 && args[0] == "test":
		pol, ok := load(o)
		if !ok {
			return 1
		}
		f, err := os.Open(args[1])
		if err != nil {
			return p.fail(err)
		}
		defer f.Close()
		total, missed, err := report.Test(p.stdout, pol, f, args[1])
		if err != nil {
			return p.fail(err)
		}
		fmt.Fprintf(p.stdout, "%d expectations, %d not met\n", total, missed)
		if missed > 0 {
			return 1
		}
		return 0
	case len(args) == 3 && args[0] == "diff":
		var ps [2]*policy.Policy
		for i, f := range args[1:] {
			one := o
			one.Settings, one.SourcesSet = f, true
			var ok bool
			if ps[i], ok = load(one); !ok {
				return 1
			}
		}
		differ, err := report.Diff(p.stdout, ps[0], ps[1], nil)
		if err != nil {
			return p.fail(err)
		}
		if differ {
			return 1
		}
		fmt.Fprintln(p.stdout, "no difference was found")
		return 0
	}
	return p.fail(usagef(usage))
}

// hooks tries the hooks of an event.
func (p *program) hooks(args []string) int {
	const usage = "usage: cinch hooks test EVENT [--input FILE]"
	if len(args) < 2 || args[0] != "test" {
		return p.fail(usagef(usage))
	}
	input := []byte("{}")
	var err error
	switch {
	case len(args) == 2:
	case len(args) == 4 && args[2] == "--input" && args[3] == "-":
		input, err = io.ReadAll(io.LimitReader(p.stdin, maxPiped))
	case len(args) == 4 && args[2] == "--input":
		input, err = os.ReadFile(args[3])
	default:
		return p.fail(usagef(usage))
	}
	if err != nil {
		return p.fail(fmt.Errorf("reading the input: %w", err))
	}
	o, err := p.light()
	if err != nil {
		return p.fail(err)
	}
	o.Print = true
	ctx, cancel := within(15 * time.Minute)
	defer cancel()
	var out bytes.Buffer
	err = app.TestHooks(ctx, o, args[1], input, &out)
	fmt.Fprint(p.stdout, termsafe.Text(out.String()))
	if err != nil {
		return p.fail(err)
	}
	return 0
}

// mcp changes and shows the configured MCP servers.
func (p *program) mcp(args []string) int {
	const usage = "usage: cinch mcp add [-s SCOPE] [-t TYPE] [-e K=V] [-H 'N: v'] NAME COMMAND|URL [ARGS] | add-json NAME JSON | list | get NAME | remove NAME"
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
			if len(args) == 1 {
				for _, t := range r.Tools {
					fmt.Fprintf(p.stdout, "  %s\n", termsafe.String(t.Full))
				}
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

// local runs one slash command in a resumed session and prints its answer.
func (p *program) local(command, key string) int {
	s, err := p.session(key)
	if err != nil {
		return p.fail(err)
	}
	o, err := p.light()
	if err != nil {
		return p.fail(err)
	}
	o.Print, o.Resume = true, s.ID
	o.Fork, o.NoPersistence = false, true
	return p.run(o, func(ctx context.Context, a *app.App) int {
		return line.Run(ctx, a.Session, line.Options{Out: p.stdout, Prompt: prompt(command), Once: true, Quiet: true})
	})
}
