// Package plugin reads plugins: directories that bundle agents, skills,
// commands, output styles, hooks and MCP servers. It knows where a plugin's
// parts are and what its manifest says of them; what the parts mean is for
// those who read them. It runs and downloads nothing.
package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Plugin is one plugin and where its parts are. Paths are absolute. Those of
// Skills, Commands, Agents and Styles are directories or single files, and
// need not exist.
type Plugin struct {
	Name, Version, Description string

	Root                             string
	Skills, Commands, Agents, Styles []string
	Hooks, Servers                   []Block
	// Idle are the parts that this program does not use.
	Idle []string
}

// A Block is a part that is JSON.
type Block struct {
	File string // where it stands
	Raw  json.RawMessage
}

// A Problem is a plugin that was left out, or a part of one, and why.
type Problem struct{ File, Text string }

func (p Problem) String() string { return p.File + ": " + p.Text }

// maxFile bounds a manifest, and a file that one names.
const maxFile = 1 << 20

const manifestFile = ".claude-plugin/plugin.json"

// manifest is plugin.json. Keys that are not here are nobody's business.
type manifest struct {
	Name         string          `json:"name"`
	Version      string          `json:"version"`
	Description  string          `json:"description"`
	Skills       paths           `json:"skills"`
	Commands     paths           `json:"commands"`
	Agents       paths           `json:"agents"`
	OutputStyles paths           `json:"outputStyles"`
	Hooks        parts           `json:"hooks"`
	MCPServers   parts           `json:"mcpServers"`
	LSPServers   json.RawMessage `json:"lspServers"`
	UserConfig   json.RawMessage `json:"userConfig"`
	Workflows    json.RawMessage `json:"workflows"`
	Channels     json.RawMessage `json:"channels"`
	Dependencies json.RawMessage `json:"dependencies"`
}

// paths is one path or a list of them.
type paths []string

func (p *paths) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*p = paths{one}
		return nil
	}
	var list []string
	if err := json.Unmarshal(raw, &list); err != nil {
		return errors.New("must be a path or a list of paths")
	}
	*p = list
	return nil
}

// parts is a path, an object, or a list of either.
type parts []json.RawMessage

func (p *parts) UnmarshalJSON(raw []byte) error {
	switch raw[0] {
	case '"', '{':
		*p = parts{slices.Clone(raw)}
	case '[':
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
		for _, x := range list {
			if x[0] != '"' && x[0] != '{' {
				return errors.New("must be a path, an object, or a list of them")
			}
		}
		*p = list
	default:
		return errors.New("must be a path, an object, or a list of them")
	}
	return nil
}

// Find returns the plugins at dir: dir itself, or, if it holds none of a
// plugin's parts, the plugins in the directories below it.
func Find(dir string) (ps []*Plugin, problems []Problem) {
	fi, err := os.Stat(dir)
	switch {
	case err != nil:
		return nil, []Problem{{dir, "no plugin was loaded: " + err.Error()}}
	case !fi.IsDir():
		return nil, []Problem{{dir, "no plugin was loaded: it is not a directory; unpack an archive first"}}
	}
	dirs := []string{dir}
	if !isPlugin(dir) {
		dirs = nil
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, []Problem{{dir, "no plugin was loaded: " + err.Error()}}
		}
		for _, e := range entries {
			if sub := filepath.Join(dir, e.Name()); isPlugin(sub) {
				dirs = append(dirs, sub)
			}
		}
		if dirs == nil {
			return nil, []Problem{{dir, "no plugin was loaded: it holds no " + manifestFile + ", skills, commands, agents, hooks or .mcp.json"}}
		}
	}
	for _, d := range dirs {
		p, bad, err := Load(d)
		problems = append(problems, bad...)
		if err != nil {
			problems = append(problems, Problem{d, "this plugin was left out: " + err.Error()})
			continue
		}
		ps = append(ps, p)
	}
	return ps, problems
}

func isPlugin(dir string) bool {
	for _, name := range []string{manifestFile, "skills", "commands", "agents", "output-styles", "hooks/hooks.json", ".mcp.json", "SKILL.md"} {
		if there(filepath.Join(dir, filepath.FromSlash(name))) {
			return true
		}
	}
	return false
}

func there(name string) bool { _, err := os.Stat(name); return err == nil }

// Load reads the plugin at root, which is absolute. A manifest that cannot be
// read, or has a known key of a wrong type, is an error; a part that cannot be
// used is a Problem.
func Load(root string) (*Plugin, []Problem, error) {
	m, err := read(filepath.Join(root, filepath.FromSlash(manifestFile)))
	if err != nil {
		return nil, nil, err
	}
	p := &Plugin{Name: m.Name, Version: m.Version, Description: m.Description, Root: root}
	if p.Name == "" {
		p.Name = filepath.Base(root)
	}
	if !nameable(p.Name) {
		return nil, nil, fmt.Errorf("the name %q may hold letters, digits, '-', '_' and '.' only", p.Name)
	}
	var ps []Problem
	bad := func(format string, args ...any) {
		ps = append(ps, Problem{root, "plugin " + p.Name + ": " + fmt.Sprintf(format, args...)})
	}
	at := func(key string, list paths) (out []string) {
		for _, s := range list {
			file, err := inside(root, s)
			if err != nil {
				bad("%s: %v", key, err)
				continue
			}
			if !there(file) {
				bad("%s: %s is not there", key, s)
				continue
			}
			out = append(out, file)
		}
		return out
	}
	instead := func(key string, list paths, usual string) []string {
		if list == nil {
			return []string{filepath.Join(root, usual)}
		}
		return at(key, list)
	}
	p.Commands = instead("commands", m.Commands, "commands")
	p.Agents = instead("agents", m.Agents, "agents")
	p.Styles = instead("outputStyles", m.OutputStyles, "output-styles")
	// Skills that the manifest names stand beside the usual ones.
	switch usual := filepath.Join(root, "skills"); {
	case there(usual):
		p.Skills = append([]string{usual}, at("skills", m.Skills)...)
	case m.Skills != nil:
		p.Skills = at("skills", m.Skills)
	case there(filepath.Join(root, "SKILL.md")):
		p.Skills = []string{root}
	}
	blocks := func(key string, list parts, usual string) (out []Block) {
		if file := filepath.Join(root, filepath.FromSlash(usual)); there(file) {
			list = append(parts{json.RawMessage(`"./` + usual + `"`)}, list...)
		}
		seen := map[string]bool{}
		for _, raw := range list {
			b := Block{File: filepath.Join(root, filepath.FromSlash(manifestFile)), Raw: raw}
			var name string
			if json.Unmarshal(raw, &name) == nil {
				file, err := inside(root, name)
				if err == nil && seen[file] {
					continue // many manifests name the usual file, too
				}
				seen[file] = true
				if err == nil {
					b.File = file
					b.Raw, err = readFile(file)
				}
				if err != nil {
					bad("%s: %v", key, err)
					continue
				}
			}
			out = append(out, b)
		}
		return out
	}
	p.Hooks = blocks("hooks", m.Hooks, "hooks/hooks.json")
	for i, b := range p.Hooks {
		p.Hooks[i].Raw = unwrap(b.Raw)
	}
	p.Servers = blocks("mcpServers", m.MCPServers, ".mcp.json")
	p.Idle = idle(root, &m)
	return p, ps, nil
}

// unwrap returns the events of {"description":…,"hooks":{…}}.
func unwrap(raw json.RawMessage) json.RawMessage {
	var w struct {
		Hooks json.RawMessage `json:"hooks"`
	}
	if json.Unmarshal(raw, &w) == nil && len(w.Hooks) > 0 {
		return w.Hooks
	}
	return raw
}

// idle names the parts that have no effect.
func idle(root string, m *manifest) (out []string) {
	for _, x := range []struct {
		what string
		raw  json.RawMessage
		file string
	}{
		{"LSP servers", m.LSPServers, ".lsp.json"}, {"monitors", nil, "monitors/monitors.json"}, {"themes", nil, "themes"},
		{"workflows", m.Workflows, "workflows"}, {"channels", m.Channels, ""}, {"userConfig", m.UserConfig, ""},
		{"dependencies", m.Dependencies, ""}, {"bin", nil, "bin"}, {"settings.json", nil, "settings.json"},
	} {
		if len(x.raw) > 0 && string(x.raw) != "null" || x.file != "" && there(filepath.Join(root, filepath.FromSlash(x.file))) {
			out = append(out, x.what)
		}
	}
	return out
}

func read(file string) (m manifest, err error) {
	raw, err := readFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	return parse(raw)
}

// parse reads a manifest.
func parse(raw []byte) (m manifest, err error) {
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("%s: %w", manifestFile, err)
	}
	if m.Name == "" {
		return m, fmt.Errorf("%s: it has no name", manifestFile)
	}
	return m, nil
}

func nameable(s string) bool {
	return s != "" && s[0] != '-' && s[0] != '.' && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
	})
}

// inside returns where a path of a manifest is. It may not leave the plugin.
func inside(root, s string) (string, error) {
	rel := filepath.FromSlash(strings.TrimPrefix(s, "./"))
	if rel == "" {
		rel = "."
	}
	if s == "" || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("%q is not a path inside the plugin", s)
	}
	return filepath.Join(root, rel), nil
}

func readFile(name string) ([]byte, error) {
	fi, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !fi.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", name)
	case fi.Size() > maxFile:
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxFile)
	}
	return os.ReadFile(name)
}
