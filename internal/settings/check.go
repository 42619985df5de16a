package settings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// check takes out of s.root what has no effect, and says so.
func (v *Value) check(s *source) {
	if s.root == nil {
		return
	}
	c := &node{kind: object, src: s, off: s.root.off}
	for _, k := range s.root.names {
		if n := v.checkKey(s, k, s.root.members[k]); n != nil {
			c.set(k, n)
		}
	}
	s.root = c
}

// checkKey returns the value of a top-level key as far as it counts.
func (v *Value) checkKey(s *source, key string, n *node) *node {
	o := s.origin(n.off)
	sp, known := specOf(key)
	if !known {
		hint := ""
		if k := near(key); k != "" {
			hint = fmt.Sprintf("; is %q meant?", k)
		}
		v.problem(Info, o, key, "not a key that is known here%s", hint)
		return n
	}
	if n.kind == null {
		return nil
	}
	if !sp.place.allowed(s.layer) {
		v.problem(Warning, o, key, "has no effect here: %s", sp.place)
		return nil
	}
	switch key {
	case "permissions":
		return v.checkPermissions(s, n)
	case "hooks":
		return v.checkHooks(s, n)
	case "env":
		return v.checkEnv(s, n)
	case "sandbox":
		if n.kind != object {
			v.problem(Refuse, o, key, "is %s; it must be an object. What it was to forbid is not in effect", n.kind)
			return nil
		}
		return n
	}
	if !sp.form.fits(n) {
		return v.misfit(s, key, n, sp.form)
	}
	if sp.words != "" && !slices.Contains(strings.Fields(sp.words), n.text) {
		v.problem(Warning, o, key, "%q is none of %s; it is ignored", n.text, strings.ReplaceAll(sp.words, " ", ", "))
		return nil
	}
	if why := outOfRange(key, n); why != "" {
		v.problem(Warning, o, key, "%s; it is ignored", why)
		return nil
	}
	return n
}

// misfit is a key whose value has the wrong form. Where losing the key of a
// managed file would open something, the strictest value takes its place.
func (v *Value) misfit(s *source, key string, n *node, f form) *node {
	o := s.origin(n.off)
	strict := &node{kind: array, src: s, off: n.off}
	lists := []string{"allowedMcpServers", "availableModels"}
	locks := []string{"allowManagedHooksOnly", "allowManagedMcpServersOnly", "allowManagedPermissionRulesOnly", "disableCommandPluginSources", "enforceAvailableModels"}
	switch {
	case s.layer == Managed && slices.Contains(lists, key):
		v.problem(Error, o, key, "is %s; it must be %s. Until that is put right it allows nothing", n.kind, formNames[f])
		return strict
	case s.layer == Managed && slices.Contains(locks, key):
		v.problem(Error, o, key, "is %s; it must be %s. Until that is put right it counts as true", n.kind, formNames[f])
		return &node{kind: boolean, text: "true", src: s, off: n.off}
	case key == "deniedMcpServers" || key == "blockedMarketplaces":
		v.problem(Refuse, o, key, "is %s; it must be %s. What it was to forbid is not in effect", n.kind, formNames[f])
		return nil
	case n.kind == array && (f == formStrings || f == formObjects):
		return v.fitting(s, key, n, f)
	}
	v.problem(Warning, o, key, "is %s; it must be %s. It is ignored", n.kind, formNames[f])
	return nil
}

// fitting keeps of a list the elements that have the right form.
func (v *Value) fitting(s *source, key string, n *node, f form) *node {
	want := text
	if f == formObjects {
		want = object
	}
	c := &node{kind: array, src: s, off: n.off}
	for i, e := range n.elements {
		if e.kind == want {
			c.elements = append(c.elements, e)
			continue
		}
		v.problem(Warning, s.origin(e.off), fmt.Sprintf("%s[%d]", key, i), "is %s; it must be %s. It is ignored", e.kind, want)
	}
	return c
}

func outOfRange(key string, n *node) string {
	x, err := strconv.ParseFloat(n.text, 64)
	if n.kind != number || err != nil {
		return ""
	}
	switch key {
	case "cleanupPeriodDays":
		if x < 1 {
			return "must be 1 or more (to save no sessions at all use --no-session-persistence)"
		}
	case "autoCompactWindow":
		if x < 100_000 || x > 1_000_000 {
			return "must be from 100000 to 1000000"
		}
	case "feedbackSurveyRate", "skillListingBudgetFraction":
		if x < 0 || x > 1 {
			return "must be from 0 to 1"
		}
	}
	return ""
}

// checkPermissions looks at each rule. A rule that forbids and cannot be read
// is a reason not to run without a person.
func (v *Value) checkPermissions(s *source, n *node) *node {
	o := s.origin(n.off)
	if n.kind != object {
		v.problem(Refuse, o, "permissions", "is %s; it must be an object. The rules in it are not in effect", n.kind)
		return nil
	}
	c := &node{kind: object, src: s, off: n.off}
	for _, k := range n.names {
		m := n.members[k]
		o, key := s.origin(m.off), "permissions."+k
		if m.kind == null {
			continue
		}
		switch k {
		case "allow", "deny", "ask":
			if m = v.checkRules(s, k, m); m == nil {
				continue
			}
		case "additionalDirectories":
			if m.kind != array {
				v.problem(Warning, o, key, "is %s; it must be a list of strings. It is ignored", m.kind)
				continue
			}
			m = v.fitting(s, key, m, formStrings)
		case "defaultMode":
			mode, ok := parseMode(m.text)
			switch {
			case m.kind != text || !ok:
				v.problem(Warning, o, key, "names no permission mode; it is ignored")
				continue
			case mode == "auto" && (s.layer == Project || s.layer == Local):
				v.problem(Warning, o, key, "auto has no effect in a project's files")
				continue
			}
		case "disableBypassPermissionsMode", "disableAutoMode":
			if m.kind != text || m.text != "disable" {
				v.problem(Error, o, key, "the only value it takes is \"disable\"; it counts as that")
				m = &node{kind: text, text: "disable", src: s, off: m.off}
			}
		default:
			v.problem(Info, o, key, "not a key that is known here")
		}
		c.set(k, m)
	}
	return c
}

func (v *Value) checkRules(s *source, kind string, n *node) *node {
	key := "permissions." + kind
	sev, lost := Warning, "It is ignored"
	if kind != "allow" {
		sev, lost = Refuse, "What it was to forbid is not in effect"
	}
	if n.kind != array {
		v.problem(sev, s.origin(n.off), key, "is %s; it must be a list of strings. %s", n.kind, lost)
		return nil
	}
	c := &node{kind: array, src: s, off: n.off}
	for i, e := range n.elements {
		o, key := s.origin(e.off), fmt.Sprintf("%s[%d]", key, i)
		if e.kind != text || strings.TrimSpace(e.text) == "" {
			v.problem(sev, o, key, "is %s; a rule must be a string like \"Bash(git status)\". %s", e.kind, lost)
			continue
		}
		if v.o.CheckRule != nil {
			if err := v.o.CheckRule(kind, e.text); err != nil {
				v.problem(sev, o, key, "%q: %v. %s", e.text, err, lost)
				continue
			}
		}
		c.elements = append(c.elements, e)
	}
	return c
}

// checkHooks keeps the events whose hooks have the right shape. What is in
// them is for the hook engine to judge.
func (v *Value) checkHooks(s *source, n *node) *node {
	if n.kind != object {
		v.problem(Warning, s.origin(n.off), "hooks", "is %s; it must be an object of events. It is ignored", n.kind)
		return nil
	}
	c := &node{kind: object, src: s, off: n.off}
	for _, event := range n.names {
		m := n.members[event]
		key := "hooks." + event
		if m.kind != array {
			v.problem(Warning, s.origin(m.off), key, "is %s; it must be a list of matchers. It is ignored", m.kind)
			continue
		}
		c.set(event, v.fitting(s, key, m, formObjects))
	}
	return c
}

// Variables that no settings file may set, and those that a project may not.
const (
	neverSet   = "CLAUDE_CODE_REMOTE CLAUDE_CODE_ACCOUNT_UUID CLAUDE_CODE_MESSAGING_SOCKET CLAUDE_CODE_MESSAGING_TOKEN CLAUDE_CODE_PROJECT_DIR_NAME"
	neverByAll = "CLAUDE_CODE_PROCESS_WRAPPER CLAUDE_CODE_SYNC_SKILLS CLAUDE_CODE_SYNC_PLUGINS CLAUDE_CODE_PLUGIN_CACHE_DIR CLAUDE_CODE_PLUGIN_SEED_DIR"
)

// checkEnv makes the variables strings.
func (v *Value) checkEnv(s *source, n *node) *node {
	if n.kind != object {
		v.problem(Warning, s.origin(n.off), "env", "is %s; it must be an object of strings. It is ignored", n.kind)
		return nil
	}
	c := &node{kind: object, src: s, off: n.off}
	for _, k := range n.names {
		m := n.members[k]
		o, key := s.origin(m.off), "env."+k
		shared := s.layer == Project || s.layer == Local
		switch {
		case k == "" || strings.ContainsAny(k, "=\x00") || strings.Contains(m.text, "\x00"):
			v.problem(Warning, o, key, "no variable can have this name or value; it is ignored")
		case slices.Contains(strings.Fields(neverSet), k), shared && slices.Contains(strings.Fields(neverByAll), k):
			v.problem(Warning, o, key, "cannot be set from this file; it is ignored")
		case m.kind == text:
			c.set(k, m)
		case m.kind == number || m.kind == boolean:
			c.set(k, &node{kind: text, text: m.text, src: s, off: m.off})
		case m.kind != null:
			v.problem(Warning, o, key, "is %s; it must be a string. It is ignored", m.kind)
		}
	}
	return c
}

// gated are the keys of a project that run something or let something in:
// without trust they count in a run without a person only, who then answers
// for the directory they started in.
var gated = [...]string{"hooks", "apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "gcpAuthRefresh", "otelHeadersHelper",
	"statusLine", "subagentStatusLine", "fileSuggestion", "extraKnownMarketplaces", "additionalMarketplaces", "enabledPlugins",
	"enableAllProjectMcpServers", "enabledMcpjsonServers", "autoMemoryDirectory", "sandbox", "worktree"}

// gate takes out of the files of a project that is not trusted what would
// raise its rights.
func (v *Value) gate() {
	if v.trusted {
		return
	}
	for _, s := range v.sources {
		if s.root == nil || s.layer != Project && !(s.layer == Local && v.o.LocalTracked) {
			continue
		}
		v.untrust(s)
	}
}

func (v *Value) untrust(s *source) {
	drop := func(path ...string) {
		n := s.root.at(path...)
		if n == nil {
			return
		}
		v.problem(Warning, s.origin(n.off), strings.Join(path, "."), "is not used: this workspace has not been trusted")
		s.root = s.root.with(path, nil)
	}
	drop("permissions", "allow")
	drop("permissions", "additionalDirectories")
	if n := s.root.at("permissions", "defaultMode"); n != nil && n.text != "plan" && n.text != "default" && n.text != "manual" && n.text != "dontAsk" {
		drop("permissions", "defaultMode")
	}
	if !v.o.Interactive {
		return
	}
	for _, k := range gated {
		if k == "sandbox" { // what it forbids counts; what it opens does not
			v.closeSandbox(s, drop)
			continue
		}
		drop(k)
	}
	if env := s.root.at("env"); env != nil {
		for _, k := range env.names {
			if !safeVariable(k) {
				drop("env", k)
			}
		}
	}
}

// closeSandbox keeps of a project's sandbox settings what is stricter.
func (v *Value) closeSandbox(s *source, drop func(...string)) {
	box := s.root.at("sandbox")
	if box == nil || box.kind != object {
		return
	}
	for _, k := range box.names {
		m := box.members[k]
		switch {
		case k == "enabled" && m.text == "true", k == "allowUnsandboxedCommands" && m.text == "false", k == "failIfUnavailable" && m.text == "true":
		case (k == "filesystem" || k == "network") && m.kind == object:
			for _, sub := range m.names {
				if !strings.HasPrefix(sub, "deny") && !strings.HasPrefix(sub, "denied") {
					drop("sandbox", k, sub)
				}
			}
		default:
			drop("sandbox", k)
		}
	}
}

// safeVariable reports whether an untrusted project may set a variable: it
// chooses a model, a limit or a display, and names no program, host or secret.
func safeVariable(name string) bool {
	for _, p := range []string{"ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_", "ANTHROPIC_SMALL_FAST_MODEL", "MAX_THINKING_TOKENS", "MAX_MCP_OUTPUT_TOKENS",
		"BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_", "MCP_TIMEOUT", "MCP_TOOL_TIMEOUT", "API_TIMEOUT_MS", "DISABLE_", "CLAUDE_CODE_DISABLE_",
		"CLAUDE_CODE_MAX_", "CLAUDE_CODE_EFFORT_LEVEL", "CLAUDE_CODE_SUBAGENT_MODEL", "NO_COLOR", "FORCE_COLOR", "TZ", "LANG", "LC_"} {
		if strings.HasPrefix(name, p) {
			return !strings.Contains(name, "DISABLE_UNKNOWN_MODEL")
		}
	}
	return false
}

// strictest applies the keys of which the stricter value counts, whichever
// layer it is in.
func (v *Value) strictest() {
	for _, k := range []struct {
		name, value string
		layers      []Layer
	}{
		{"disableClaudeAiConnectors", "true", order[:]},
		{"isolatePeerMachines", "true", order[:]},
		{"remoteControlAtStartup", "false", []Layer{Project, Local}},
		{"useAutoModeDuringPlan", "false", []Layer{Managed, Flag, User, Local}},
		{"syncClaudeAiSkills", "false", []Layer{Managed, Flag, User, Local}},
		{"crossSessionInbound", "hold", []Layer{Project, Local}},
		{"crossSessionInbound", "refuse", []Layer{Project, Local}},
	} {
		for _, s := range v.sources {
			n := s.at(k.name)
			if n == nil || n.text != k.value || !slices.Contains(k.layers, s.layer) {
				continue
			}
			if m := v.merged.at(k.name); m != nil && m.text == "refuse" {
				continue
			}
			v.merged = v.merged.with([]string{k.name}, n)
		}
	}
}
