package app

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/ext/hook"
	"github.com/seed-eb844fcb/cinch/internal/ext/plugin"
	"github.com/seed-eb844fcb/cinch/internal/ext/skill"
	"github.com/seed-eb844fcb/cinch/internal/ext/subagent"
	"github.com/seed-eb844fcb/cinch/internal/net/mcp"
)

// readPlugins reads the plugins of --plugin-dir and of the host: manifests and
// hooks. Their agents, skills and commands are read with all others.
func (a *App) readPlugins() {
	var found []*plugin.Plugin
	if !a.o.Bare && !a.o.SafeMode && !a.o.Restricted {
		a.ext.mu.Lock()
		dirs := append(slices.Clone(a.o.PluginDirs), a.ext.pluginDirs...)
		a.ext.mu.Unlock()
		for _, dir := range dirs {
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(a.o.Cwd, dir)
			}
			ps, problems := plugin.Find(filepath.Clean(dir))
			for _, p := range problems {
				a.warn("%s", p)
			}
			for _, p := range ps {
				if i := slices.IndexFunc(found, func(x *plugin.Plugin) bool { return x.Name == p.Name }); i >= 0 {
					if found[i].Root != p.Root {
						a.warn("%s: this plugin was left out: %s is called %s, too", p.Root, found[i].Root, p.Name)
					}
					continue
				}
				if len(p.Idle) > 0 {
					a.warn("plugin %s: these parts have no effect here: %s", p.Name, strings.Join(p.Idle, ", "))
				}
				found = append(found, p)
			}
		}
	}
	a.ext.mu.Lock()
	before := a.ext.plugins
	a.ext.plugins = found
	a.ext.mu.Unlock()
	for _, p := range before {
		a.hooks.Replace("plugin:"+p.Name, nil)
	}
	for _, p := range found {
		a.pluginHooks(p)
	}
}

func (a *App) pluginHooks(p *plugin.Plugin) {
	var all []hook.Handler
	for _, b := range p.Hooks {
		hs, problems := hook.Parse(b.Raw, hook.Handler{Source: "plugin:" + p.Name, File: b.File, Root: p.Root, Data: a.pluginData(p)})
		for _, x := range problems {
			a.warn("%s", x)
		}
		all = append(all, hs...)
	}
	if len(all) > 0 {
		a.makePluginData(p)
	}
	a.hooks.Replace("plugin:"+p.Name, all)
}

// pluginData is where a plugin keeps what outlives its version.
func (a *App) pluginData(p *plugin.Plugin) string {
	if a.root == "" {
		return ""
	}
	return filepath.Join(a.root, "plugins", "data", strings.ReplaceAll(p.Name, ".", "-")+"-inline")
}

// makePluginData makes that directory, for programs that count on it.
func (a *App) makePluginData(p *plugin.Plugin) {
	if dir := a.pluginData(p); dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			a.warn("plugin %s has no directory for its data: %v", p.Name, err)
		}
	}
}

func (e *extensions) pluginList() []*plugin.Plugin {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.plugins
}

// pluginPlaces are the directories and files of the plugins' agents, skills
// and commands.
func (a *App) pluginPlaces() (agents []subagent.Place, skills []skill.Place) {
	fsys := a.fs()
	in := func(name string) (dir, shown string) {
		return strings.TrimPrefix(filepath.ToSlash(name), "/"), filepath.ToSlash(name)
	}
	for _, p := range a.ext.pluginList() {
		source, data := "plugin:"+p.Name, a.pluginData(p)
		for _, name := range p.Agents {
			dir, shown := in(name)
			agents = append(agents, subagent.Place{FS: fsys, Dir: dir, Path: shown, Source: source, Plugin: p.Name, Root: p.Root, Data: data})
		}
		for _, name := range p.Skills {
			dir, shown := in(name)
			skills = append(skills, skill.Place{FS: fsys, Dir: dir, Path: shown, Source: source, Plugin: p.Name, Root: p.Root, Data: data})
		}
		for _, name := range p.Commands {
			dir, shown := in(name)
			skills = append(skills, skill.Place{FS: fsys, Dir: dir, Path: shown, Source: source, Command: true, Plugin: p.Name, Root: p.Root, Data: data})
		}
	}
	return agents, skills
}

// pluginStyles are the files of the plugins' output styles, with the prefix
// of their names.
func (a *App) pluginStyles() (files [][2]string) {
	for _, p := range a.ext.pluginList() {
		for _, place := range p.Styles {
			names := []string{place}
			if isDir(place) {
				names = nil
				entries, err := os.ReadDir(place)
				if err != nil {
					a.warn("%v", err)
				}
				for _, e := range entries {
					if path.Ext(e.Name()) == ".md" {
						names = append(names, filepath.Join(place, e.Name()))
					}
				}
			} else if _, err := os.Stat(place); err != nil {
				continue // the usual directory need not be there
			}
			for _, n := range names {
				files = append(files, [2]string{n, p.Name + ":"})
			}
		}
	}
	return files
}

// mcpPlugins are the MCP servers of the plugins.
func (a *App) mcpPlugins() []mcp.Config {
	var out []mcp.Config
	for _, p := range a.ext.pluginList() {
		vars := map[string]string{"CLAUDE_PLUGIN_ROOT": p.Root, "CLAUDE_PLUGIN_DATA": a.pluginData(p), "CLAUDE_PROJECT_DIR": a.o.Cwd}
		lookup := func(name string) (string, bool) {
			if v := vars[name]; v != "" {
				return v, true
			}
			return a.lookupVar(name)
		}
		a.ext.mu.Lock()
		owned := a.ext.hostOwned[p.Root]
		a.ext.mu.Unlock()
		if owned {
			continue
		}
		for _, b := range p.Servers {
			cs, problems, err := mcp.Parse(b.Raw, "plugin:"+p.Name, lookup)
			if err != nil {
				a.warn("%s: %v", b.File, err)
				continue
			}
			for _, x := range problems {
				a.warn("%s: %s", b.File, x)
			}
			for _, c := range cs {
				c.Name = "plugin:" + p.Name + ":" + c.Name
				if c.Command != "" {
					a.makePluginData(p)
					for k, v := range vars {
						if _, set := c.Env[k]; !set && v != "" {
							c.Env[k] = v
						}
					}
				}
				out = append(out, c)
			}
		}
	}
	return out
}

func (a *App) pluginInfos() []agent.PluginInfo {
	list := a.ext.pluginList()
	out := make([]agent.PluginInfo, 0, len(list))
	for _, p := range list {
		out = append(out, agent.PluginInfo{Name: p.Name, Path: p.Root, Source: p.Name + "@inline"})
	}
	return out
}

// addPlugins takes plugins of the host, each {"type":"local","path":…}. Those
// servers of theirs that are new are connected to.
func (a *App) addPlugins(list []json.RawMessage) error {
	dirs, skip := make([]string, 0, len(list)), map[string]bool{}
	for i, raw := range list {
		var w struct {
			Type, Path string
			SkipMCP    bool `json:"skipMcpDiscovery"`
		}
		if err := json.Unmarshal(raw, &w); err != nil {
			return fmt.Errorf("plugin %d: %w", i, err)
		}
		if w.Type != "" && w.Type != "local" || w.Path == "" {
			return fmt.Errorf("plugin %d: only plugins of type local, with a path, can be loaded", i)
		}
		if !filepath.IsAbs(w.Path) {
			w.Path = filepath.Join(a.o.Cwd, w.Path)
		}
		w.Path = filepath.Clean(w.Path)
		dirs = append(dirs, w.Path)
		skip[w.Path] = w.SkipMCP
	}
	a.ext.mu.Lock()
	if a.ext.hostOwned == nil {
		a.ext.hostOwned = map[string]bool{}
	}
	for _, d := range dirs {
		a.ext.hostOwned[d] = skip[d]
		if !slices.Contains(a.ext.pluginDirs, d) {
			a.ext.pluginDirs = append(a.ext.pluginDirs, d)
		}
	}
	a.ext.mu.Unlock()
	a.reloadAll()
	return nil
}

// reloadAll reads plugins anew, and with them all extensions.
func (a *App) reloadAll() {
	a.readPlugins()
	a.reload()
	known := a.mcp.Servers()
	for _, c := range a.mcpPlugins() {
		if !a.o.StrictMCP && a.mcpAllowed(c) && !slices.ContainsFunc(known, func(s mcp.Status) bool { return s.Name == c.Name }) {
			a.mcp.Add(c)
		}
	}
}
