package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/price"
	"github.com/seed-eb844fcb/cinch/internal/policy"
	"github.com/seed-eb844fcb/cinch/internal/settings"
)

// A config is what the settings say, in the terms of the parts that need it.
// Only this file knows settings files.
type config struct {
	value *settings.Value
	files []string // that were read

	model, effort, outputStyle, agent string
	fallback                          []string
	modelOverrides                    map[string]string
	keyHelper                         string
	noThinking                        bool
	prices                            price.Table

	mode                                       agent.Mode
	rules                                      []policy.Rule
	dirs                                       []string
	trusted                                    bool
	managedOnly, noBypass, noAuto, classifyAll bool
	autoRules                                  autoRules

	hooks                      []hookSource
	noHooks, managedHooks      bool
	allowHookURL, allowHookVar func(string) bool
	noSkillShell               bool
	skillChars                 int
	skillShow                  map[string]string
	autoMemory, noGit          bool
	memoryDir, managedMemory   string
	memoryExcludes             []string
	autoCompact                *bool
	autoCompactWindow          string
	checkpoints                bool
	cleanupDays                int
}

type hookSource struct {
	layer, file string
	raw         json.RawMessage
}

// autoRules are what settings tell the classifier of auto mode.
type autoRules struct{ environment, allow, softDeny, hardDeny []string }

// readSettings reads all layers. A run without a person does not start where
// a rule that was to forbid something may have been lost.
func (a *App) readSettings(context.Context) error {
	a.env = newEnvironment(a.o.Environ, nil)
	root := a.projectRoot()
	o := settings.Options{
		Root: a.root, State: settings.StateFile(a.env.get), Cwd: a.o.Cwd, ProjectRoot: a.o.ProjectRoot,
		Repo: gitRoot(a.o.Cwd), Main: mainCheckout(root), Flag: a.o.Settings, Host: a.o.ManagedSettings,
		ManagedDir: a.env.get("CINCH_MANAGED_DIR"), Interactive: !a.o.Print, SourcesSet: a.o.SourcesSet,
	}
	for _, s := range a.o.Sources {
		o.Sources = append(o.Sources, settings.Layer(s))
	}
	if a.o.Restricted {
		o.SourcesSet, o.Sources = true, nil
	}
	a.sources = o
	v := settings.Load(o)
	for _, p := range v.Problems() {
		if p.Severity > settings.Info {
			a.warn("%s", p)
		}
	}
	if bad := v.Refusal(); len(bad) > 0 && a.o.Print {
		return fmt.Errorf("the settings hold a rule that cannot be read, so what it forbids may be lost: %s\nhint: mend that file, or leave its source out with --setting-sources", bad[0])
	}
	over := map[string]string{}
	for _, x := range v.Env() {
		over[x.Name] = x.Value
	}
	a.env = newEnvironment(a.o.Environ, over)
	a.conf.Store(read(v))
	return nil
}

// read takes from v what the parts need.
func read(v *settings.Value) *config {
	text := func(path ...string) string {
		s, _, _ := v.String(path...)
		return s
	}
	p := v.Permissions()
	c := &config{
		value: v, model: text("model"), effort: text("effortLevel"), outputStyle: text("outputStyle"), agent: text("agent"),
		fallback: v.Strings("fallbackModel"), noThinking: !v.Bool(true, "alwaysThinkingEnabled"),
		mode: p.Mode, trusted: true, managedOnly: p.ManagedOnly, noBypass: p.NoBypass, noAuto: p.NoAuto,
		classifyAll: v.Bool(false, "autoMode", "classifyAllShell"),
		autoRules: autoRules{
			v.Strings("autoMode", "environment"), v.Strings("autoMode", "allow"), v.Strings("autoMode", "soft_deny"), v.Strings("autoMode", "hard_deny"),
		},
		noSkillShell: v.Bool(false, "disableSkillShellExecution"), skillChars: int(v.Number(0, "skillListingMaxDescChars")),
		autoMemory: v.Bool(true, "autoMemoryEnabled"), noGit: !v.Bool(true, "includeGitInstructions"),
		memoryDir: text("autoMemoryDirectory"), managedMemory: text("claudeMd"), memoryExcludes: v.Strings("claudeMdExcludes"),
		checkpoints: v.Bool(true, "fileCheckpointingEnabled"), cleanupDays: int(v.Number(30, "cleanupPeriodDays")),
		managedHooks: v.Bool(false, "allowManagedHooksOnly"),
	}
	c.keyHelper, _ = v.Helper("apiKeyHelper")
	for _, l := range []struct {
		verdict agent.Verdict
		list    []settings.Rule
	}{{agent.Deny, p.Deny}, {agent.Ask, p.Ask}, {agent.Allow, p.Allow}} {
		for _, r := range l.list {
			c.rules = append(c.rules, policy.Rule{Verdict: l.verdict, Layer: layerOf(r.Layer), Text: r.Text, File: r.File, Line: r.Line, Base: baseOf(r.Origin)})
		}
	}
	for _, d := range p.Directories {
		c.dirs = append(c.dirs, d.Path)
	}
	if raw, _, ok := v.Raw("modelOverrides"); ok {
		_ = json.Unmarshal(raw, &c.modelOverrides) // its type was checked when it was read
	}
	if raw, _, ok := v.Raw("skillOverrides"); ok {
		_ = json.Unmarshal(raw, &c.skillShow)
	}
	if raw, _, ok := v.Raw("cinch", "prices"); ok {
		_ = json.Unmarshal(raw, &c.prices)
	}
	if _, _, ok := v.Raw("autoCompactEnabled"); ok {
		on := v.Bool(true, "autoCompactEnabled")
		c.autoCompact = &on
	}
	if n := int(v.Number(0, "autoCompactWindow")); n > 0 {
		c.autoCompactWindow = fmt.Sprint(n)
	}
	all, off := v.Hooks()
	c.noHooks = off && len(all) == 0
	for _, h := range all {
		c.hooks = append(c.hooks, hookSource{string(h.Layer), h.File, h.Events})
	}
	c.allowHookURL, c.allowHookVar = hookLimits(v)
	for _, s := range v.Sources() {
		if s.Found {
			c.files = append(c.files, s.File)
		}
	}
	return c
}

// hookLimits are the settings' limits on where HTTP hooks may go and what
// their headers may hold.
func hookLimits(v *settings.Value) (url, variable func(string) bool) {
	if _, _, ok := v.Raw("allowedHttpHookUrls"); ok {
		list := v.Strings("allowedHttpHookUrls")
		url = func(u string) bool {
			for _, p := range list {
				if wild(p, u) {
					return true
				}
			}
			return false
		}
	}
	if _, _, ok := v.Raw("httpHookAllowedEnvVars"); ok {
		list := v.Strings("httpHookAllowedEnvVars")
		variable = func(n string) bool { return contains(list, n) }
	}
	return url, variable
}

// wild reports whether s fits pattern, in which * stands for any text.
func wild(pattern, s string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	if !strings.HasPrefix(s, head) {
		return false
	}
	s = s[len(head):]
	for {
		if wild(rest, s) {
			return true
		}
		if s == "" {
			return false
		}
		s = s[1:]
	}
}

func layerOf(l settings.Layer) policy.Layer {
	switch l {
	case settings.Managed:
		return policy.LayerManaged
	case settings.Flag:
		return policy.LayerFlag
	case settings.Local:
		return policy.LayerLocal
	case settings.Project:
		return policy.LayerProject
	}
	return policy.LayerUser
}

// baseOf is the directory that /path rules of a file are anchored at: the
// project for its files, the file's own directory else.
func baseOf(o settings.Origin) string {
	switch o.Layer {
	case settings.Project, settings.Local:
		return "" // where the session started
	}
	if !filepath.IsAbs(o.File) {
		return ""
	}
	return filepath.Dir(o.File)
}

// mainCheckout is the root of the main checkout that a linked worktree belongs
// to; "" if root is no linked worktree.
func mainCheckout(root string) string {
	b, err := readSmall(filepath.Join(root, ".git"))
	if err != nil {
		return ""
	}
	dir, ok := cutLine(string(b), "gitdir: ")
	if !ok {
		return ""
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(root, dir)
	}
	b, err = readSmall(filepath.Join(dir, "commondir"))
	if err != nil {
		return ""
	}
	common, _ := cutLine(string(b), "")
	if !filepath.IsAbs(common) {
		common = filepath.Join(dir, common)
	}
	if filepath.Base(common) != ".git" {
		return ""
	}
	return filepath.Dir(common)
}

// managedDir is where the machine's administrator keeps settings.
func managedDir() string { return settings.ManagedDir(runtime.GOOS) }

// reread applies what may change in a running session: hooks and permission
// rules. Settings with a rule that cannot be read, which was not there before,
// are refused, and all stays as it was.
func (a *App) reread(v *settings.Value) error {
	if bad := v.Refusal(); len(bad) > len(a.cfg().value.Refusal()) {
		return fmt.Errorf("the settings hold a rule that cannot be read: %s", bad[len(bad)-1])
	}
	a.conf.Store(read(v))
	a.setHooks()
	return a.setRules()
}

// applyFlagSettings merges settings of the host over those of the flags.
func (a *App) applyFlagSettings(ctx context.Context, raw json.RawMessage) (any, error) {
	in, err := arguments[struct {
		Settings map[string]json.RawMessage `json:"settings"`
	}](raw)
	if err != nil {
		return nil, err
	}
	var model string
	if m, ok := in.Settings["model"]; ok && json.Unmarshal(m, &model) != nil {
		return nil, errors.New("model must be a text")
	}
	a.mu.Lock()
	flag := maps.Clone(a.flag)
	a.mu.Unlock()
	if flag == nil {
		flag = map[string]json.RawMessage{}
	}
	for k, v := range in.Settings {
		if string(v) == "null" {
			delete(flag, k)
		} else {
			flag[k] = v
		}
	}
	merged, err := json.Marshal(flag)
	if err != nil {
		return nil, err
	}
	o := a.sources
	o.Extra = []json.RawMessage{merged}
	if err := a.reread(settings.Load(o)); err != nil {
		return nil, err
	}
	a.mu.Lock()
	a.flag = flag
	a.mu.Unlock()
	if _, ok := in.Settings["model"]; ok {
		return nil, a.Session.Submit(ctx, agent.SetModel{Model: model})
	}
	return nil, nil
}

// updateSettings changes the user's or the local settings file. A host may
// choose only what changes no permission: anything else is the user's to write.
func (a *App) updateSettings(ctx context.Context, raw json.RawMessage) (any, error) {
	in, err := arguments[struct {
		Source   string                     `json:"source"`
		Settings map[string]json.RawMessage `json:"settings"`
	}](raw)
	if err != nil {
		return nil, err
	}
	layer, err := layerNamed(in.Source)
	if err != nil {
		return nil, err
	}
	var changes []settings.Change
	for k, v := range in.Settings {
		var value string
		switch {
		case !(layer == settings.Local && k == "outputStyle" || layer == settings.User && k == "effortLevel"):
			return nil, fmt.Errorf("%s in %s is not for a host to set: only outputStyle in localSettings and effortLevel in userSettings are", k, in.Source)
		case json.Unmarshal(v, &value) != nil || value == "":
			return nil, fmt.Errorf("%s must be a text", k)
		}
		changes = append(changes, settings.Change{Op: settings.Set, Path: []string{k}, Value: v})
	}
	if err := a.edit(ctx, layer, changes...); err != nil {
		return nil, err
	}
	return nil, a.reread(a.cfg().value.Reload())
}

func layerNamed(source string) (settings.Layer, error) {
	switch source {
	case "userSettings":
		return settings.User, nil
	case "projectSettings":
		return settings.Project, nil
	case "localSettings":
		return settings.Local, nil
	}
	return "", fmt.Errorf("%q is no settings file that can be changed", source)
}

// edit changes a settings file, every other byte kept.
func (a *App) edit(ctx context.Context, l settings.Layer, changes ...settings.Change) error {
	file, err := a.cfg().value.File(l)
	if err != nil {
		return err
	}
	return settings.Editor{Root: a.root}.Edit(ctx, file, changes...)
}

// savePermission writes a granted permission to the file it belongs to.
func (a *App) savePermission(ctx context.Context, u agent.PermissionUpdate) error {
	l, err := layerNamed(u.Destination)
	if err != nil {
		return err
	}
	var changes []settings.Change
	add := func(op settings.Op, key string, values []string) {
		if op == settings.Set {
			changes = append(changes, settings.Change{Op: op, Path: []string{"permissions", key}, Value: values})
			return
		}
		for _, v := range values {
			changes = append(changes, settings.Change{Op: op, Path: []string{"permissions", key}, Value: v})
		}
	}
	var rules []string
	for _, r := range u.Rules {
		rules = append(rules, r.String())
	}
	switch u.Type {
	case "addRules":
		add(settings.Add, u.Behavior, rules)
	case "removeRules":
		add(settings.Remove, u.Behavior, rules)
	case "replaceRules":
		add(settings.Set, u.Behavior, rules)
	case "addDirectories":
		add(settings.Add, "additionalDirectories", u.Directories)
	case "removeDirectories":
		add(settings.Remove, "additionalDirectories", u.Directories)
	default:
		return nil // a mode is never saved
	}
	return a.edit(ctx, l, changes...)
}

func (c *config) effective() any { return c.value.JSON() }

func (c *config) sources() any {
	out := []map[string]any{}
	for _, l := range []settings.Layer{settings.User, settings.Project, settings.Local, settings.Flag, settings.Managed} {
		raw := c.value.LayerJSON(l)
		if len(raw) > 0 && string(raw) != "{}" {
			out = append(out, map[string]any{"source": string(l), "settings": raw})
		}
	}
	return out
}
