// Package subagent knows the kinds of sub-agents there are and lets the model
// send them: definitions from files, from the host and from the command line,
// the built-in ones, and the Agent and SendMessage tools. It does not run a
// conversation: a function in Options does.
package subagent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/frontmatter"
)

// A Definition is one kind of sub-agent.
type Definition struct {
	Name        string
	Description string // tells the model when to delegate
	Prompt      string // its system text
	// Tools are the only tools it has, by name or rule; nil means all that
	// sub-agents may have. Without are taken away first.
	Tools, Without []string
	Model          string // alias, id, or "" to inherit
	Effort         string
	Mode           agent.Mode // "" to inherit
	MaxTurns       int
	Skills         []string        // loaded in full at the start
	Servers        json.RawMessage // MCP servers: names or configurations
	Hooks          json.RawMessage // a hooks block that holds while it runs
	Memory         string          // user, project, local: it keeps notes there
	Background     bool
	Worktree       bool
	Color          string
	InitialPrompt  string // first prompt when run as the main agent

	Source string // builtin, managed, flag, sdk, project, user, plugin:…
	File   string
	// OneShot agents cannot be resumed; Bare ones see no instruction files
	// and no git status.
	OneShot, Bare bool
}

// A Problem is a definition that was left out, or a part of one, and why.
type Problem struct{ File, Text string }

func (p Problem) String() string { return p.File + ": " + p.Text }

// maxFile bounds a definition file.
const maxFile = 1 << 20

// Parse reads one definition file. name stands in where the file gives none
// and lenient is set (plugins).
func Parse(data []byte, name string, lenient bool) (Definition, error) {
	h, body, err := frontmatter.Parse(data)
	if err != nil {
		return Definition{}, err
	}
	d := Definition{
		Name: h.Text("name"), Description: h.Text("description"), Prompt: strings.TrimSpace(body),
		Model: inherit(h.Text("model")), Effort: h.Text("effort"), MaxTurns: h.Int("maxTurns"),
		Memory: h.Text("memory"), Background: h.Bool("background", false), Worktree: h.Text("isolation") == "worktree",
		Color: h.Text("color"), InitialPrompt: h.Text("initialPrompt"),
	}
	if list, ok := h.List("tools"); ok {
		d.Tools = append([]string{}, list...)
		if slices.Contains(list, "*") {
			d.Tools = nil
		}
	}
	d.Without, _ = h.List("disallowedTools")
	d.Skills, _ = h.List("skills")
	if lenient && d.Name == "" {
		d.Name = name
	}
	if m := h.Text("permissionMode"); m != "" {
		mode, ok := agent.ParseMode(m)
		if !ok {
			return d, fmt.Errorf("permissionMode %q is none of the modes", m)
		}
		d.Mode = mode
	}
	for key, to := range map[string]*json.RawMessage{"mcpServers": &d.Servers, "hooks": &d.Hooks} {
		if v, ok := h[key]; ok && v != nil {
			raw, err := json.Marshal(v)
			if err != nil {
				return d, fmt.Errorf("%s cannot be used: %w", key, err)
			}
			*to = raw
		}
	}
	return d, d.check()
}

func inherit(model string) string {
	if model == "inherit" {
		return ""
	}
	return model
}

func (d *Definition) check() error {
	switch {
	case d.Name == "":
		return errors.New("it has no name")
	case strings.ContainsAny(d.Name, ":\n") && !strings.HasPrefix(d.Source, "plugin:"), strings.HasPrefix(d.Name, "-"):
		return fmt.Errorf("the name %q may not hold ':' or begin with '-'", d.Name)
	case d.Description == "":
		return errors.New("it has no description")
	}
	return nil
}

// ParseJSON reads {"name":{"description":…,"prompt":…}}, as --agents and the
// host give it, in the order of the names.
func ParseJSON(raw json.RawMessage, source string) (ds []Definition, ps []Problem, err error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, nil, fmt.Errorf("reading agents: %w", err)
	}
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		var w struct {
			Description     string          `json:"description"`
			Prompt          string          `json:"prompt"`
			Tools           *[]string       `json:"tools"`
			DisallowedTools []string        `json:"disallowedTools"`
			Model           string          `json:"model"`
			Effort          json.RawMessage `json:"effort"`
			PermissionMode  string          `json:"permissionMode"`
			MaxTurns        int             `json:"maxTurns"`
			Skills          []string        `json:"skills"`
			MCPServers      json.RawMessage `json:"mcpServers"`
			Hooks           json.RawMessage `json:"hooks"`
			Memory          string          `json:"memory"`
			Background      bool            `json:"background"`
			Isolation       string          `json:"isolation"`
			InitialPrompt   string          `json:"initialPrompt"`
		}
		if err := json.Unmarshal(m[n], &w); err != nil {
			ps = append(ps, Problem{source + " agent " + n, err.Error()})
			continue
		}
		d := Definition{
			Name: n, Description: w.Description, Prompt: w.Prompt, Without: w.DisallowedTools, Model: inherit(w.Model),
			Effort: strings.Trim(string(w.Effort), `"`), MaxTurns: w.MaxTurns, Skills: w.Skills, Servers: w.MCPServers, Hooks: w.Hooks,
			Memory: w.Memory, Background: w.Background, Worktree: w.Isolation == "worktree", InitialPrompt: w.InitialPrompt, Source: source,
		}
		if w.Tools != nil {
			d.Tools = append([]string{}, *w.Tools...)
		}
		if w.PermissionMode != "" {
			mode, ok := agent.ParseMode(w.PermissionMode)
			if !ok {
				ps = append(ps, Problem{source + " agent " + n, fmt.Sprintf("permissionMode %q is none of the modes", w.PermissionMode)})
				continue
			}
			d.Mode = mode
		}
		if err := d.check(); err != nil {
			ps = append(ps, Problem{source + " agent " + n, err.Error()})
			continue
		}
		ds = append(ds, d)
	}
	return ds, ps, nil
}

// A Place is a directory of definition files.
type Place struct {
	FS     fs.FS
	Dir    string // inside FS
	Path   string // what messages call it
	Source string
	Plugin string // prefix of names, for plugins
	Root   string // of the plugin
	Data   string // of the plugin
}

// Discover reads all definitions under the places, nearest first: of two with
// one name the first counts. A place that is not there holds none.
func Discover(places []Place) (ds []Definition, ps []Problem) {
	for _, p := range places {
		err := fs.WalkDir(p.FS, p.Dir, func(name string, e fs.DirEntry, err error) error {
			if err != nil {
				if name == p.Dir {
					return fs.SkipAll
				}
				return nil // an unreadable directory hides no other
			}
			if e.IsDir() || path.Ext(name) != ".md" {
				return nil
			}
			file := path.Join(p.Path, strings.TrimPrefix(name, p.Dir))
			data, err := readFile(p.FS, name)
			if err != nil {
				ps = append(ps, Problem{file, err.Error()})
				return nil
			}
			base := strings.TrimSuffix(path.Base(name), ".md")
			d, err := Parse(data, base, p.Plugin != "")
			if err != nil {
				ps = append(ps, Problem{file, "this agent was left out: " + err.Error()})
				return nil
			}
			d.Source, d.File = p.Source, file
			if p.Plugin != "" {
				d.Name = strings.ReplaceAll(path.Join(p.Plugin, path.Dir(strings.Trim(strings.TrimPrefix(name, p.Dir), "/")), d.Name), "/", ":")
				d.Prompt = strings.NewReplacer("${CLAUDE_PLUGIN_ROOT}", p.Root, "${CLAUDE_PLUGIN_DATA}", p.Data).Replace(d.Prompt)
				d.Mode, d.Servers, d.Hooks = "", nil, nil // plugins may not set these
			}
			ds = append(ds, d)
			return nil
		})
		if err != nil {
			ps = append(ps, Problem{p.Path, err.Error()})
		}
	}
	return Merge(ds), ps
}

func readFile(fsys fs.FS, name string) ([]byte, error) {
	fi, err := fs.Stat(fsys, name)
	switch {
	case err != nil:
		return nil, err
	case !fi.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case fi.Size() > maxFile:
		return nil, fmt.Errorf("larger than %d bytes", maxFile)
	}
	return fs.ReadFile(fsys, name)
}

// Merge keeps the first definition of each name, in order.
func Merge(lists ...[]Definition) []Definition {
	var out []Definition
	seen := map[string]bool{}
	for _, l := range lists {
		for _, d := range l {
			if !seen[d.Name] {
				seen[d.Name] = true
				out = append(out, d)
			}
		}
	}
	return out
}

// Infos lists definitions for front ends.
func Infos(ds []Definition) []agent.AgentInfo {
	out := make([]agent.AgentInfo, 0, len(ds))
	for _, d := range ds {
		out = append(out, agent.AgentInfo{Name: d.Name, Description: d.Description, Model: d.Model})
	}
	return out
}
