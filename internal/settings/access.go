package settings

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// Raw returns the value in effect at path as JSON and where the strongest
// part of it stands. ok is false if nothing sets it.
func (v *Value) Raw(path ...string) (value json.RawMessage, from Origin, ok bool) {
	n := v.merged.at(path...)
	if n == nil {
		return nil, Origin{}, false
	}
	return n.json(), n.origin(), true
}

// String returns the string in effect at path.
func (v *Value) String(path ...string) (s string, from Origin, ok bool) {
	n := v.merged.at(path...)
	if n == nil || n.kind != text {
		return "", Origin{}, false
	}
	return n.text, n.origin(), true
}

// Strings returns the strings of the list in effect at path; a single string
// is a list of one.
func (v *Value) Strings(path ...string) []string {
	n := v.merged.at(path...)
	if n == nil {
		return nil
	}
	if n.kind == text {
		return []string{n.text}
	}
	var l []string
	for _, e := range n.elements {
		if e.kind == text {
			l = append(l, e.text)
		}
	}
	return l
}

// Bool returns the boolean in effect at path, or otherwise if none is.
func (v *Value) Bool(otherwise bool, path ...string) bool {
	n := v.merged.at(path...)
	if n == nil || n.kind != boolean {
		return otherwise
	}
	return n.text == "true"
}

// Number returns the number in effect at path, or otherwise if none is.
func (v *Value) Number(otherwise float64, path ...string) float64 {
	n := v.merged.at(path...)
	if n == nil || n.kind != number {
		return otherwise
	}
	f, err := strconv.ParseFloat(n.text, 64)
	if err != nil {
		return otherwise
	}
	return f
}

// Locked reports whether managed settings set key, so that nothing else can.
func (v *Value) Locked(path ...string) bool {
	n := v.merged.at(path...)
	return n != nil && n.src != nil && n.src.layer == Managed
}

// A Rule is a permission rule and where it was written.
type Rule struct {
	Text string
	Origin
}

func (r Rule) String() string { return r.Text }

// A Directory is a working directory beside the one the program was started in.
type Directory struct {
	Path string // as written
	Origin
}

func (d Directory) String() string { return d.Path }

// Permissions are the rules and locks of all layers.
type Permissions struct {
	Allow, Deny, Ask []Rule
	Directories      []Directory
	// Mode is the mode to start in; "" if none is set.
	Mode     agent.Mode
	ModeFrom Origin
	// NoBypass and NoAuto say that the mode must not be entered.
	NoBypass, NoAuto bool
	// ManagedOnly says that rules of other sources, flags and answers
	// included, do not count. It has been applied to the rules here.
	ManagedOnly bool
}

// Permissions returns the permission settings in effect.
func (v *Value) Permissions() Permissions {
	p := Permissions{ManagedOnly: v.Bool(false, "allowManagedPermissionRulesOnly")}
	for _, s := range v.sources {
		off := func(path ...string) bool { n := s.at(path...); return n != nil && n.text == "disable" }
		p.NoBypass = p.NoBypass || off("permissions", "disableBypassPermissionsMode")
		p.NoAuto = p.NoAuto || off("permissions", "disableAutoMode") || off("disableAutoMode")
		for _, e := range elements(s.at("permissions", "additionalDirectories")) {
			p.Directories = append(p.Directories, Directory{e.text, e.origin()})
		}
		for _, l := range []struct {
			name string
			to   *[]Rule
		}{{"allow", &p.Allow}, {"deny", &p.Deny}, {"ask", &p.Ask}} {
			if p.ManagedOnly && s.layer != Managed {
				continue
			}
			for _, e := range elements(s.at("permissions", l.name)) {
				*l.to = append(*l.to, Rule{e.text, e.origin()})
			}
		}
	}
	if n := v.merged.at("permissions", "defaultMode"); n != nil {
		p.Mode, _ = parseMode(n.text)
		p.ModeFrom = n.origin()
	}
	return p
}

func elements(n *node) []*node {
	if n == nil {
		return nil
	}
	return n.elements
}

// Hooks are the hooks of one file.
type Hooks struct {
	Origin
	Events json.RawMessage // {"Event":[{…}]}
}

// Hooks returns the hooks of each file in effect, the strongest layer first.
// off says that no hooks but these run, where settings switch hooks off.
func (v *Value) Hooks() (all []Hooks, off bool) {
	managed := v.Bool(false, "allowManagedHooksOnly")
	none := false
	for _, s := range v.sources {
		if n := s.at("disableAllHooks"); n != nil && n.text == "true" {
			off = true
			none = none || s.layer == Managed
		}
	}
	for _, s := range v.sources {
		n := s.at("hooks")
		if n == nil || len(n.names) == 0 || none || (managed || off) && s.layer != Managed {
			continue
		}
		all = append(all, Hooks{n.origin(), n.json()})
	}
	return all, off || managed
}

// A Variable is one of the env block.
type Variable struct {
	Name, Value string
	Origin
}

// Env returns the variables that settings put into the environment.
func (v *Value) Env() []Variable {
	n := v.merged.at("env")
	if n == nil {
		return nil
	}
	var l []Variable
	for _, k := range n.names {
		if m := n.members[k]; m.kind == text {
			l = append(l, Variable{k, m.text, m.origin()})
		}
	}
	return l
}

// Helper returns a command that settings name, such as apiKeyHelper, and
// whether it comes from the project's own files.
func (v *Value) Helper(key string) (command string, ofProject bool) {
	s, from, _ := v.String(key)
	return s, from.Layer == Project || from.Layer == Local && v.o.LocalTracked
}

// A Server is an MCP server of the program state.
type Server struct {
	Name   string
	Scope  string // user, or local: of this project
	Config json.RawMessage
	Origin
}

// Servers returns the MCP servers that the person added, those of this project
// first. One of this project hides one of the same name.
func (v *Value) Servers() []Server {
	var l []Server
	add := func(scope string, n *node) {
		if n == nil || n.kind != object {
			return
		}
		for _, name := range n.names {
			if slices.ContainsFunc(l, func(s Server) bool { return s.Name == name }) {
				continue
			}
			l = append(l, Server{name, scope, n.members[name].json(), n.members[name].origin()})
		}
	}
	for _, d := range v.projects() {
		add("local", v.state.at("projects", d, "mcpServers"))
	}
	add("user", v.state.at("mcpServers"))
	return l
}

// projects are the names under which the state may know this project.
func (v *Value) projects() []string {
	var l []string
	for _, d := range []string{v.o.Cwd, v.o.Repo, v.o.Main} {
		if d != "" && !slices.Contains(l, filepath.Clean(d)) {
			l = append(l, filepath.Clean(d))
		}
	}
	return l
}

// ProjectState returns a value that the state keeps for this project, such as
// disabledMcpServers. ok is false if there is none.
func (v *Value) ProjectState(key string) (value json.RawMessage, ok bool) {
	for _, d := range v.projects() {
		if n := v.state.at("projects", d, key); n != nil {
			return n.json(), true
		}
	}
	return nil, false
}

// Global returns a value of the program state, such as autoConnectIde.
func (v *Value) Global(path ...string) (value json.RawMessage, ok bool) {
	n := v.state.at(path...)
	if n == nil {
		return nil, false
	}
	return n.json(), true
}

// Keys returns the names of all top-level keys that are set, sorted.
func (v *Value) Keys() []string {
	l := slices.Clone(v.merged.names)
	slices.SortFunc(l, strings.Compare)
	return l
}
