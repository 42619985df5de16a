// Package mcp is the second network plane: MCP servers and their tools. It
// owns the configuration of servers, how each is reached (a child process, an
// HTTP endpoint, a web socket, a host's own process), when a connection is
// made again, and how a server's tools become tools of ours. The protocol
// itself is the official SDK's; what stands here is what it leaves open: junk
// on standard output, process trees, content of unknown kinds, names and
// schemas that a model's provider refuses.
//
// It does not know sessions, permissions or settings files.
package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Config is one server as it was configured.
type Config struct {
	Name    string
	Type    string // stdio, http, sse, ws, sdk
	Command string
	Args    []string
	Env     map[string]string
	URL     string
	Headers map[string]string
	// HeadersHelper is a command that prints further headers as a JSON object.
	HeadersHelper string
	OAuth         OAuth
	// Timeout bounds one call; 0 is the default of the set.
	Timeout time.Duration
	// AlwaysLoad keeps the tools out of deferred loading.
	AlwaysLoad bool
	// Source says where it was configured: project, user, local, dynamic, sdk, …
	Source string
	// Manifest, for sdk servers, answers the handshake without a round trip.
	Manifest *Manifest
	// Raw is the entry as it was written.
	Raw json.RawMessage
}

// OAuth says how one signs in to a server, where the server leaves it open.
type OAuth struct {
	ClientID     string `json:"clientId"`
	CallbackPort int    `json:"callbackPort"`
	Scopes       string `json:"scopes"` // separated by spaces
	ClientSecret string `json:"-"`      // of the client; never in a configuration file
	Document     string `json:"-"`      // URL of a client metadata document
}

// A Manifest is what a host knows of its own server already.
type Manifest struct {
	Initialize json.RawMessage `json:"initializeResult"`
	Tools      json.RawMessage `json:"toolsListResult"`
}

// A Problem is an entry that was left out, or something odd about one.
type Problem struct {
	Name, Kind, Text string // Kind: unknown_type, url_missing_type, invalid_config, reserved_name
}

func (p Problem) String() string { return "MCP server " + p.Name + ": " + p.Text }

type wireConfig struct {
	Type          string            `json:"type"`
	Command       string            `json:"command"`
	Args          []string          `json:"args"`
	Env           map[string]string `json:"env"`
	URL           *string           `json:"url"`
	Headers       map[string]string `json:"headers"`
	HeadersHelper string            `json:"headersHelper"`
	Timeout       float64           `json:"timeout"` // milliseconds
	AlwaysLoad    bool              `json:"alwaysLoad"`
	OAuth         OAuth             `json:"oauth"`
}

// reserved names belong to servers of the reference.
var reserved = [...]string{"workspace", "claude-in-chrome", "computer-use", "Claude Preview", "Claude Browser"}

// Parse reads {"mcpServers":{name:{…}}}, or the inner object alone. Bad
// entries are left out and named; the others stand. lookup expands ${VAR} and
// ${VAR:-default}; a variable without a value stays as it is written.
func Parse(raw json.RawMessage, source string, lookup func(string) (string, bool)) ([]Config, []Problem, error) {
	var file struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, nil, fmt.Errorf("reading MCP servers: %w", err)
	}
	if file.Servers == nil {
		if err := json.Unmarshal(raw, &file.Servers); err != nil {
			return nil, nil, fmt.Errorf("reading MCP servers: %w", err)
		}
	}
	names := make([]string, 0, len(file.Servers))
	for n := range file.Servers {
		names = append(names, n)
	}
	slices.Sort(names)
	var cs []Config
	var ps []Problem
	for _, n := range names {
		c, p := ParseOne(n, file.Servers[n], source, lookup)
		ps = append(ps, p...)
		if c != nil {
			cs = append(cs, *c)
		}
	}
	return cs, ps, nil
}

// ParseOne reads one entry; the Config is nil if it cannot be used.
func ParseOne(name string, raw json.RawMessage, source string, lookup func(string) (string, bool)) (*Config, []Problem) {
	var ps []Problem
	bad := func(kind, format string, args ...any) (*Config, []Problem) {
		return nil, append(ps, Problem{name, kind, "it was left out: " + fmt.Sprintf(format, args...)})
	}
	if slices.Contains(reserved[:], name) {
		return bad("reserved_name", "the name is reserved")
	}
	if strings.TrimSpace(name) == "" {
		return bad("invalid_config", "it has no name")
	}
	var w wireConfig
	if err := json.Unmarshal(raw, &w); err != nil {
		return bad("invalid_config", "%v", err)
	}
	missing := map[string]bool{}
	ex := func(s string) string {
		out, lost := Expand(s, lookup)
		for _, v := range lost {
			missing[v] = true
		}
		return out
	}
	c := &Config{Name: name, Type: w.Type, Command: ex(w.Command), HeadersHelper: w.HeadersHelper, AlwaysLoad: w.AlwaysLoad, OAuth: w.OAuth, Source: source, Raw: raw}
	for _, a := range w.Args {
		c.Args = append(c.Args, ex(a))
	}
	c.Env, c.Headers = map[string]string{}, map[string]string{}
	for k, v := range w.Env {
		c.Env[k] = ex(v)
	}
	for k, v := range w.Headers {
		c.Headers[k] = ex(v)
	}
	if w.Timeout >= 1000 {
		c.Timeout = time.Duration(w.Timeout) * time.Millisecond
	}
	if w.URL != nil {
		c.URL = ex(*w.URL)
	}
	switch c.Type {
	case "streamable-http", "streamableHttp":
		c.Type = "http"
	case "":
		if w.URL != nil {
			return bad("url_missing_type", "it has a url and no type: add \"type\": \"http\" (or sse, ws)")
		}
		c.Type = "stdio"
	}
	for v := range missing {
		ps = append(ps, Problem{name, "invalid_config", "the variable " + v + " is not set and has no default"})
	}
	switch c.Type {
	case "stdio":
		if c.Command == "" {
			return bad("invalid_config", "it has no command")
		}
	case "http", "sse", "ws":
		if c.URL == "" {
			return bad("invalid_config", "its url is empty")
		}
	case "sdk":
	default:
		return bad("unknown_type", "the type %q is none of stdio, http, sse, ws, sdk", c.Type)
	}
	return c, ps
}

// Expand replaces ${VAR} and ${VAR:-default} in s; lost names the variables
// that have neither value nor default, which stay as they are written.
func Expand(s string, lookup func(string) (string, bool)) (out string, lost []string) {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "${")
		b.WriteString(before)
		if !ok {
			return b.String(), lost
		}
		body, after, ok := strings.Cut(rest, "}")
		if !ok {
			b.WriteString("${" + rest)
			return b.String(), lost
		}
		name, def, has := strings.Cut(body, ":-")
		v, set := lookup(name)
		switch {
		case set && v != "":
			b.WriteString(v)
		case has:
			b.WriteString(def)
		case set:
		default:
			lost = append(lost, name)
			b.WriteString("${" + body + "}")
		}
		s = after
	}
}

// ErrUnknown reports a server that nobody configured.
var ErrUnknown = errors.New("no MCP server of that name is known")
