package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/net/dial"
	"github.com/seed-eb844fcb/cinch/internal/net/mcp"
	"github.com/seed-eb844fcb/cinch/internal/session"
	"github.com/seed-eb844fcb/cinch/internal/window"
)

// mcpOpen reads the configurations and begins to connect. Nobody waits here.
func (a *App) mcpOpen(context.Context) error {
	a.mcp = mcp.New(a.mcpOptions())
	a.onClose(a.mcp.Close)
	cs, err := a.mcpConfigs()
	if err != nil {
		return err
	}
	a.starting = cs
	return nil
}

// mcpOptions are what servers are given.
func (a *App) mcpOptions() mcp.Options {
	return mcp.Options{
		Version: a.o.Version, UserAgent: a.userAgent(), Dir: a.o.Cwd, Env: a.mcpEnv(),
		Roots: func() []string {
			if dirs := a.directories(); len(dirs) > 1 {
				return dirs[1:]
			}
			return nil
		},
		HTTP: func() *dial.HTTP { return a.dialer.Client(dial.Use{Why: "mcp"}) },
		Ask:  a.ask, Guard: &a.guard, Changed: a.mcpChanged, Note: a.note, Spill: a.spill,
		Pins:           filepath.Join(a.root, "cinch", "mcp-pins", a.slug()+".json"),
		Credentials:    filepath.Join(a.root, "cinch", "mcp-credentials.json"),
		ConnectTimeout: a.env.ms("MCP_TIMEOUT"), CallTimeout: a.env.ms("MCP_TOOL_TIMEOUT"), Idle: a.env.ms("CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT"),
		MaxTokens: a.env.number("MAX_MCP_OUTPUT_TOKENS", 0), Deferred: a.catalog != nil,
	}
}

// mcpStart begins to connect, once there is a session that servers can turn to.
func (a *App) mcpStart() { a.mcp.Add(a.starting...) }

func (a *App) mcpEnv() []string {
	return append(append([]string(nil), a.env.list...),
		"CLAUDECODE=1", "CLAUDE_CODE_ENTRYPOINT="+a.entrypoint(), "CLAUDE_PROJECT_DIR="+a.o.Cwd, "CLAUDE_CODE_SESSION_ID="+a.id)
}

func (a *App) lookupVar(name string) (string, bool) {
	_, ok := a.env.at[name]
	return a.env.get(name), ok
}

// mcpConfigs are the servers of all sources, the strongest first.
func (a *App) mcpConfigs() ([]mcp.Config, error) {
	var all []mcp.Config
	take := func(cs []mcp.Config, ps []mcp.Problem) {
		for _, p := range ps {
			a.warn("%s", p)
		}
		for _, c := range cs {
			if a.mcpAllowed(c) && !slices.ContainsFunc(all, func(x mcp.Config) bool { return x.Name == c.Name }) {
				all = append(all, c)
			}
		}
	}
	for _, arg := range a.o.MCPConfig {
		raw := []byte(arg)
		if !strings.HasPrefix(strings.TrimSpace(arg), "{") {
			b, err := os.ReadFile(arg)
			if err != nil {
				return nil, fmt.Errorf("--mcp-config: MCP config file not found: %w", err)
			}
			raw = b
		}
		cs, ps, err := mcp.Parse(raw, "cli", a.lookupVar)
		if err != nil {
			return nil, fmt.Errorf("--mcp-config: %w", err)
		}
		take(cs, ps)
	}
	if a.o.StrictMCP || a.o.Bare || a.o.SafeMode || a.o.Restricted {
		return all, nil
	}
	var local, user []mcp.Config
	for _, s := range a.cfg().value.Servers() {
		c, ps := mcp.ParseOne(s.Name, s.Config, s.Scope, a.lookupVar)
		for _, p := range ps {
			a.warn("%s", p)
		}
		switch {
		case c == nil:
		case s.Scope == "user":
			user = append(user, *c)
		default:
			local = append(local, *c)
		}
	}
	if a.source("local") {
		take(local, nil)
	}
	if a.source("project") {
		take(a.mcpProject(), nil)
	}
	if a.source("user") {
		take(user, nil)
	}
	take(a.mcpPlugins(), nil)
	return all, nil
}

// mcpProject are the servers of .mcp.json. Without a program that drives us,
// only those that the person has approved.
func (a *App) mcpProject() []mcp.Config {
	var out []mcp.Config
	for _, dir := range a.upward() {
		name := filepath.Join(dir, ".mcp.json")
		raw, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			a.warn("%v", err)
			continue
		}
		cs, ps, err := mcp.Parse(raw, "project", a.lookupVar)
		if err != nil {
			a.warn("%s: %v", name, err)
			continue
		}
		for _, p := range ps {
			a.warn("%s: %s", name, p)
		}
		v := a.cfg().value
		for _, c := range cs {
			switch {
			case slices.Contains(v.Strings("disabledMcpjsonServers"), c.Name):
			case a.o.Print, v.Bool(false, "enableAllProjectMcpServers"), slices.Contains(v.Strings("enabledMcpjsonServers"), c.Name):
				out = append(out, c)
			default:
				a.warn("the MCP server %s of %s is not started: nobody has approved it\nhint: add it to enabledMcpjsonServers in .claude/settings.local.json", c.Name, name)
			}
		}
	}
	return out
}

// An mcpRule is one entry of allowedMcpServers or deniedMcpServers.
type mcpRule struct {
	Name    string   `json:"serverName"`
	Command []string `json:"serverCommand"`
	URL     string   `json:"serverUrl"`
}

func (r mcpRule) fits(c mcp.Config) bool {
	switch {
	case r.URL != "":
		return c.URL != "" && wild(strings.ToLower(r.URL), strings.ToLower(c.URL))
	case len(r.Command) > 0:
		return c.Command != "" && slices.Equal(r.Command, append([]string{c.Command}, c.Args...))
	}
	return r.Name == c.Name
}

// mcpAllowed says whether the settings let a server be used.
func (a *App) mcpAllowed(c mcp.Config) bool {
	rules := func(key string) (rs []mcpRule, set bool) {
		raw, _, ok := a.cfg().value.Raw(key)
		if ok && json.Unmarshal(raw, &rs) != nil {
			return nil, true // an unreadable list allows nothing
		}
		return rs, ok
	}
	deny, _ := rules("deniedMcpServers")
	for _, r := range deny {
		if r.fits(c) {
			return false
		}
	}
	allow, set := rules("allowedMcpServers")
	if !set || c.Type == "sdk" {
		return true
	}
	kind := func(r mcpRule) bool { return c.URL != "" && r.URL != "" || c.Command != "" && len(r.Command) > 0 }
	specific := slices.ContainsFunc(allow, kind)
	return slices.ContainsFunc(allow, func(r mcpRule) bool { return r.fits(c) && (!specific || kind(r)) })
}

// mcpReady waits, once, for servers that a program has named: their tools
// belong to its first turn.
func (a *App) mcpReady(ctx context.Context) {
	a.mcpOnce.Do(func() {
		wait := 5 * time.Second
		if a.o.Print && (len(a.o.MCPConfig) > 0 || a.hosted) {
			if wait = a.env.ms("MCP_TIMEOUT"); wait == 0 {
				wait = 30 * time.Second
			}
		} else if !slices.ContainsFunc(a.starting, func(c mcp.Config) bool { return c.AlwaysLoad }) && !a.o.Print {
			return // a person does not wait for what the turn may not need
		}
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		a.mcp.Wait(ctx)
		a.mcpTools()
	})
}

// mcpWait lets a search for tools wait for servers that are being connected to.
func (a *App) mcpWait(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	a.mcp.Wait(ctx)
	var out []string
	for _, s := range a.mcp.Servers() {
		if s.State != mcp.Connected && s.State != mcp.Disabled {
			out = append(out, strings.TrimSpace(fmt.Sprintf("The MCP server %s is %s. %s", s.Name, s.State, s.Err)))
		}
	}
	return out
}

// mcpChanged takes a server's new state and tools.
func (a *App) mcpChanged(s mcp.Status) {
	if s.State == mcp.Failed {
		a.note("warning", fmt.Sprintf("the MCP server %s failed: %s", s.Name, s.Err))
	}
	for _, p := range s.Skipped {
		a.note("warning", p.String())
	}
	a.mcpTools()
}

// mcpTools makes the tools of the connected servers ours: new ones stand
// behind those that are there, lost ones are no longer called.
func (a *App) mcpTools() {
	a.mcpMu.Lock()
	defer a.mcpMu.Unlock()
	now := map[string]bool{}
	var fresh []agent.Tool
	for _, t := range a.mcp.Tools() {
		name := t.Spec().Name
		if len(a.gate.Policy().Removed([]string{name})) > 0 {
			continue
		}
		now[name] = true
		fresh = append(fresh, t)
	}
	a.tools.Add(fresh...)
	for _, name := range a.tools.Names() {
		if mcp.Ours(name) && !now[name] {
			a.tools.Remove(name)
		}
	}
	a.recatalog()
	a.layout.mu.Lock()
	e := a.layout.engine
	a.layout.mu.Unlock()
	if e == nil {
		return
	}
	var specs []agent.Spec
	for _, t := range fresh {
		specs = append(specs, t.Spec())
	}
	e.AppendTools(specs...)
}

// Servers connects to all servers and returns how that went.
func (a *App) Servers(ctx context.Context) ([]mcp.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	a.mcp.Wait(ctx)
	return a.mcp.Servers(), ctx.Err()
}

func (a *App) servers() []agent.Server {
	var out []agent.Server
	for _, s := range a.mcp.Servers() {
		out = append(out, agent.Server{Name: s.Name, Status: s.State, Source: s.Source, Err: s.Err})
	}
	return out
}

// mcpInstructions are what the servers say about themselves.
func (a *App) mcpInstructions() []window.Note {
	var out []window.Note
	for _, s := range a.mcp.Servers() {
		if text := strings.TrimSpace(s.Instructions); text != "" {
			const most = 2048
			if len(text) > most {
				text = strings.ToValidUTF8(text[:most-1], "") + "…"
			}
			out = append(out, window.Note{Kind: "mcp", Text: "The MCP server " + s.Name + " says how to use it:\n" + text})
		}
	}
	return out
}

func (a *App) mcpPrompts() []agent.CommandInfo {
	var out []agent.CommandInfo
	for _, p := range a.mcp.Prompts() {
		out = append(out, agent.CommandInfo{Name: p.Command, Description: p.Description, Hint: p.Hint()})
	}
	return out
}

// mcpPrompt is a server's prompt that the person typed as a command.
func (a *App) mcpPrompt(ctx context.Context, p agent.Prompt, name, args string) (session.Expansion, bool, error) {
	for _, x := range a.mcp.Prompts() {
		if x.Command != name {
			continue
		}
		bs, err := a.mcp.Prompt(ctx, x, args)
		if err != nil {
			return session.Expansion{Local: err.Error(), Failed: true, Name: name}, true, nil
		}
		return session.Expansion{Name: name, Messages: []agent.Message{{UUID: p.UUID, Role: agent.User, Origin: p.Origin, Blocks: bs}}}, true, nil
	}
	return session.Expansion{}, false, nil
}

// mcpHost takes the servers that live in the host's process.
func (a *App) mcpHost(_ context.Context, names []string, configs map[string]sdkServerConfig, manifests map[string]json.RawMessage) any {
	parked := map[string]string{}
	for _, n := range names {
		c := mcp.Config{Name: n, Type: "sdk", Source: "sdk", Raw: json_(`{"type":"sdk"}`), Timeout: time.Duration(configs[n].Timeout) * time.Millisecond}
		// compat: hosts mark servers whose tools the model must see at once
		// in the tools' own data; the manifest carries it.
		c.AlwaysLoad = true
		if raw, ok := manifests[n]; ok {
			var m mcp.Manifest
			if json.Unmarshal(raw, &m) == nil && len(m.Initialize) > 0 {
				c.Manifest = &m
				parked[n] = "parked"
			} else {
				parked[n] = "malformed"
			}
		}
		for _, t := range configs[n].Tools {
			behavior := map[string]string{"always_ask": "ask", "always_deny": "deny"}[t.Policy]
			if behavior == "" {
				continue
			}
			u := agent.PermissionUpdate{Type: "addRules", Behavior: behavior, Rules: []agent.RuleText{{Tool: "mcp__" + n + "__" + t.Name}}, Destination: "session"}
			if err := a.gate.Grant(context.Background(), []agent.PermissionUpdate{u}); err != nil {
				a.warn("%v", err)
			}
		}
		a.hosted = true
		a.mcp.Add(c)
	}
	if len(manifests) == 0 {
		return nil
	}
	return parked
}

// mcpAdd takes servers that the host gives at the start.
func (a *App) mcpAdd(_ context.Context, raw json.RawMessage) error {
	cs, ps, err := mcp.Parse(raw, "dynamic", a.lookupVar)
	if err != nil {
		return err
	}
	for _, p := range ps {
		a.warn("%s", p)
	}
	for _, c := range cs {
		if a.mcpAllowed(c) {
			a.mcp.Add(c)
			a.hosted = true
		}
	}
	return nil
}

type serverRow struct {
	Name   string          `json:"name"`
	Status string          `json:"status"`
	Info   *serverInfo     `json:"serverInfo,omitempty"`
	Err    string          `json:"error,omitempty"`
	Config json.RawMessage `json:"config,omitempty"`
	Scope  string          `json:"scope,omitempty"`
	Tools  []toolRow       `json:"tools,omitempty"`
}

type serverInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type toolRow struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Annotations map[string]bool `json:"annotations,omitempty"`
}

func (a *App) mcpStatus(context.Context, json.RawMessage) (any, error) {
	rows := []serverRow{}
	for _, s := range a.mcp.Servers() {
		r := serverRow{Name: s.Name, Status: s.State, Err: s.Err, Config: s.Config, Scope: s.Source}
		if r.Scope == "cli" {
			r.Scope = "dynamic" // what the protocol calls both
		}
		if s.ServerName != "" {
			r.Info = &serverInfo{s.ServerName, s.ServerVersion}
		}
		for _, t := range s.Tools {
			row := toolRow{Name: t.Name, Description: t.Description, Annotations: map[string]bool{}}
			if t.HasReadOnly {
				row.Annotations["readOnly"] = t.ReadOnly
			}
			if t.HasDestructive {
				row.Annotations["destructive"] = t.Destructive
			}
			if t.HasOpen {
				row.Annotations["openWorld"] = t.OpenWorld
			}
			r.Tools = append(r.Tools, row)
		}
		rows = append(rows, r)
	}
	return map[string]any{"mcpServers": rows}, nil
}

// mcpSetServers replaces the servers that the host has added, and those in its
// own process. Servers of --mcp-config stay until a call has named them.
func (a *App) mcpSetServers(ctx context.Context, raw json.RawMessage) (any, error) {
	in, err := arguments[struct {
		Servers map[string]json.RawMessage `json:"servers"`
	}](raw)
	if err != nil {
		return nil, err
	}
	added, removed, failed := []string{}, []string{}, map[string]string{}
	for _, s := range a.mcp.Servers() {
		if s.Source != "dynamic" && s.Source != "sdk" {
			continue
		}
		if _, stays := in.Servers[s.Name]; !stays && a.mcp.Remove(s.Name) {
			removed = append(removed, s.Name)
		}
	}
	for name, cfg := range in.Servers {
		c, ps := mcp.ParseOne(name, cfg, "dynamic", a.lookupVar)
		for _, p := range ps {
			failed[name] = p.Text
		}
		if c == nil {
			continue
		}
		if !a.mcpAllowed(*c) {
			failed[name] = "the settings do not allow this server"
			continue
		}
		if c.Type == "sdk" {
			c.Source, c.AlwaysLoad = "sdk", true
		}
		if len(a.mcp.ToolsOf(name)) == 0 {
			added = append(added, name)
		}
		a.mcp.Add(*c)
	}
	wait, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	a.mcp.Wait(wait)
	for _, s := range a.mcp.Servers() {
		if _, named := in.Servers[s.Name]; named && s.State == mcp.Failed {
			failed[s.Name] = s.Err
		}
	}
	a.mcpTools()
	slices.Sort(added)
	return map[string]any{"added": added, "removed": removed, "errors": failed}, nil
}

func (a *App) mcpReconnect(ctx context.Context, raw json.RawMessage) (any, error) {
	in, err := arguments[struct {
		Name string `json:"serverName"`
	}](raw)
	if err != nil {
		return nil, err
	}
	return nil, a.mcp.Reconnect(ctx, in.Name)
}

func (a *App) mcpToggle(ctx context.Context, raw json.RawMessage) (any, error) {
	in, err := arguments[struct {
		Name string `json:"serverName"`
		On   bool   `json:"enabled"`
	}](raw)
	if err != nil {
		return nil, err
	}
	return nil, a.mcp.Toggle(ctx, in.Name, in.On)
}

func (a *App) mcpReadResource(ctx context.Context, raw json.RawMessage) (any, error) {
	in, err := arguments[struct {
		Name string `json:"serverName"`
		URI  string `json:"uri"`
	}](raw)
	if err != nil {
		return nil, err
	}
	r, err := a.mcp.Read(ctx, in.Name, in.URI)
	if err != nil {
		return nil, err
	}
	return map[string]any{"contents": r.Contents}, nil
}

func (a *App) mcpCall(ctx context.Context, raw json.RawMessage) (any, error) {
	in, err := arguments[struct {
		Server  string            `json:"serverName"`
		Tool    string            `json:"tool"`
		Args    json.RawMessage   `json:"arguments"`
		Soft    bool              `json:"soft_error_result"`
		Check   bool              `json:"check_permissions"`
		Inputs  []json.RawMessage `json:"input_files"`
		Outputs []json.RawMessage `json:"output_files"`
	}](raw)
	if err != nil {
		return nil, err
	}
	if in.Check || len(in.Inputs)+len(in.Outputs) > 0 {
		return nil, unsupported{"mcp_call with check_permissions, input_files or output_files is not supported."}
	}
	if in.Server == "" {
		for _, s := range a.mcp.Servers() {
			for _, t := range s.Tools {
				if t.Full == in.Tool {
					in.Server, in.Tool = s.Name, t.Name
				}
			}
		}
	}
	if in.Server == "" {
		return nil, fmt.Errorf("no connected MCP server has the tool %q", in.Tool)
	}
	r, err := a.mcp.Call(ctx, in.Server, in.Tool, in.Args)
	if err != nil {
		return nil, err
	}
	if r.IsError && !in.Soft {
		return nil, errors.New(agent.TextOf(r.Blocks))
	}
	return map[string]any{"content": json.RawMessage(agent.AppendBlocks(nil, r.Blocks)), "isError": r.IsError}, nil
}

// slashMCP shows the servers, or changes the state of one.
func (a *App) slashMCP(ctx context.Context, args string) (session.Expansion, error) {
	if verb, name, ok := strings.Cut(args, " "); ok {
		name = strings.TrimSpace(name)
		if ok, err := a.agreedTools(ctx, verb, name); err != nil || !ok {
			return session.Expansion{Local: "The server " + name + " stays as it is."}, err
		}
		var err error
		switch verb {
		case "reconnect":
			err = a.mcp.Reconnect(ctx, name)
		case "enable":
			err = a.mcp.Toggle(ctx, name, true)
		case "disable":
			err = a.mcp.Toggle(ctx, name, false)
		default:
			err = fmt.Errorf("usage: /mcp [reconnect|enable|disable SERVER]")
		}
		if err != nil {
			return session.Expansion{}, err
		}
	}
	var b strings.Builder
	for _, s := range a.mcp.Servers() {
		fmt.Fprintf(&b, "%s: %s, %d tools (%s)\n", s.Name, s.State, len(s.Tools), s.Source)
		if s.Err != "" {
			fmt.Fprintf(&b, "  %s\n", s.Err)
		}
		for _, p := range s.Skipped {
			fmt.Fprintf(&b, "  %s\n", p.Text)
		}
	}
	return session.Expansion{Local: or(strings.TrimRight(b.String(), "\n"), "There are no MCP servers.")}, nil
}

// hookTool runs a tool of a connected server for a hook.
func (a *App) hookTool(ctx context.Context, server, tool string, input json.RawMessage) (string, bool, error) {
	r, err := a.mcp.Call(ctx, server, tool, input)
	if err != nil {
		return "", false, err
	}
	return agent.TextOf(r.Blocks), r.IsError, nil
}
