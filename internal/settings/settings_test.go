package settings_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/seed-eb844fcb/cinch/internal/lib/disk"
	"github.com/seed-eb844fcb/cinch/internal/settings"
	"github.com/seed-eb844fcb/cinch/internal/test/faultfs"
)

// files builds the file system of a machine: the user lives in /home/u, the
// project is /w, which is trusted unless a file says otherwise.
func files(m map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for k, v := range m {
		fsys[strings.TrimPrefix(k, "/")] = &fstest.MapFile{Data: []byte(v), Mode: 0o600}
	}
	if _, ok := fsys["home/u/.claude.json"]; !ok {
		fsys["home/u/.claude.json"] = &fstest.MapFile{Data: []byte(`{"projects":{"/w":{"hasTrustDialogAccepted":true}}}`)}
	}
	return fsys
}

func options(m map[string]string) settings.Options {
	return settings.Options{FS: files(m), OS: "linux", Root: "/home/u/.claude", State: "/home/u/.claude.json", Cwd: "/w"}
}

const (
	user    = "/home/u/.claude/settings.json"
	project = "/w/.claude/settings.json"
	local   = "/w/.claude/settings.local.json"
	managed = "/etc/claude-code/managed-settings.json"
	drop    = "/etc/claude-code/managed-settings.d/"
	state   = "/home/u/.claude.json"
)

func problems(v *settings.Value) string {
	var b strings.Builder
	for _, p := range v.Problems() {
		fmt.Fprintf(&b, "%s %s\n", p.Severity, p)
	}
	return b.String()
}

func TestMerge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		in   map[string]string
		flag string
		want string
	}{
		{"higher scalars win", map[string]string{user: `{"model":"u","theme":"dark"}`, project: `{"model":"p"}`, local: `{"model":"l"}`}, "", `{"model":"l","theme":"dark"}`},
		{"the command line beats files", map[string]string{local: `{"model":"l"}`}, `{"model":"f"}`, `{"model":"f"}`},
		{"managed beats all", map[string]string{managed: `{"model":"m"}`}, `{"model":"f"}`, `{"model":"m"}`},
		{"lists are joined without duplicates", map[string]string{user: `{"companyAnnouncements":["a","b"]}`, project: `{"companyAnnouncements":["b","c"]}`}, "", `{"companyAnnouncements":["b","c","a"]}`},
		{"objects are merged key by key", map[string]string{user: `{"attribution":{"commit":"u","pr":"u"}}`, local: `{"attribution":{"pr":""}}`}, "", `{"attribution":{"pr":"","commit":"u"}}`},
		{"a fallback chain is whole", map[string]string{user: `{"fallbackModel":["a"]}`, project: `{"fallbackModel":["b"]}`}, "", `{"fallbackModel":["b"]}`},
		{"a managed list of models stands alone", map[string]string{user: `{"availableModels":["a"]}`, managed: `{"availableModels":["b"]}`}, "", `{"availableModels":["b"]}`},
		{"marketplaces are whole by name", map[string]string{user: `{"extraKnownMarketplaces":{"a":{"source":{"x":1},"autoUpdate":true},"b":{}}}`, project: `{"extraKnownMarketplaces":{"a":{"source":{"y":2}}}}`}, "",
			`{"extraKnownMarketplaces":{"a":{"source":{"y":2}},"b":{}}}`},
		{"drop-ins: the last counts most, lists join", map[string]string{managed: `{"model":"0","permissions":{"deny":["A"]}}`, drop + "10-a.json": `{"model":"1","permissions":{"deny":["B"]}}`,
			drop + "20-b.json": `{"model":"2","permissions":{"deny":["C"]}}`, drop + ".hidden.json": `{"model":"no"}`, drop + "note.txt": `x`}, "", `{"model":"2","permissions":{"deny":["C","B","A"]}}`},
		{"the stricter wins where it must", map[string]string{user: `{"crossSessionInbound":"accept","disableClaudeAiConnectors":true}`, project: `{"crossSessionInbound":"hold"}`, local: `{"crossSessionInbound":"refuse","disableClaudeAiConnectors":false}`}, "",
			`{"crossSessionInbound":"refuse","disableClaudeAiConnectors":true}`},
		{"null says nothing", map[string]string{user: `{"model":"u"}`, project: `{"model":null}`}, "", `{"model":"u"}`},
		{"unknown keys are kept", map[string]string{user: `{"tomorrow":{"a":[1]}}`}, "", `{"tomorrow":{"a":[1]}}`},
	} {
		o := options(c.in)
		o.Flag = c.flag
		if got := string(settings.Load(o).JSON()); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

// One bad key disables itself only, is told with its place, and a file that
// people have written as people write is read (BOM, comments, commas).
func TestProblems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file, in string
		json           string // in effect
		want           string // problems
	}{
		{"as people write", project, "\ufeff{\n  // mine\n  \"model\": \"m\", /* x */\n  \"env\": {\"A\": \"1\",},\n}\n", `{"model":"m","env":{"A":"1"}}`, ""},
		{"wrong type", project, "{\n  \"model\": 3,\n  \"theme\": \"dark\"\n}", `{"theme":"dark"}`,
			"warning /w/.claude/settings.json:2:12 (project): model: is a number; it must be a string. It is ignored\n"},
		{"unknown key", user, `{"modle":"x"}`, `{"modle":"x"}`, `info /home/u/.claude/settings.json:1:10 (user): modle: not a key that is known here; is "model" meant?` + "\n"},
		{"not its file", project, `{"allowManagedHooksOnly":true}`, `{}`, "warning /w/.claude/settings.json:1:26 (project): allowManagedHooksOnly: has no effect here: only managed settings may set it\n"},
		{"a list with one bad entry", user, `{"companyAnnouncements":["a",2]}`, `{"companyAnnouncements":["a"]}`,
			"warning /home/u/.claude/settings.json:1:30 (user): companyAnnouncements[1]: is a number; it must be a string. It is ignored\n"},
		{"deny is no list", project, `{"permissions":{"deny":"Bash(rm *)","allow":["A"]}}`, `{"permissions":{"allow":["A"]}}`,
			"refuse /w/.claude/settings.json:1:24 (project): permissions.deny: is a string; it must be a list of strings. What it was to forbid is not in effect\n"},
		{"one bad deny rule", local, `{"permissions":{"deny":["A",7,"bad("]}}`, `{"permissions":{"deny":["A"]}}`,
			"refuse /w/.claude/settings.local.json:1:29 (local): permissions.deny[1]: is a number; a rule must be a string like \"Bash(git status)\". What it was to forbid is not in effect\n" +
				"refuse /w/.claude/settings.local.json:1:31 (local): permissions.deny[2]: \"bad(\": odd. What it was to forbid is not in effect\n"},
		{"one bad allow rule", user, `{"permissions":{"allow":["A",7]}}`, `{"permissions":{"allow":["A"]}}`,
			"warning /home/u/.claude/settings.json:1:30 (user): permissions.allow[1]: is a number; a rule must be a string like \"Bash(git status)\". It is ignored\n"},
		{"no JSON", project, "{\n  \"permissions\": {\"deny\": [\"A\"]\n  \"model\": \"x\"\n}", `{}`,
			"refuse /w/.claude/settings.json:3:3 (project): a comma should stand here; nothing of this file is in effect\n"},
		{"no object", user, `[1]`, `{}`, "refuse /home/u/.claude/settings.json:1:1 (user): holds a list where an object should stand; nothing of it is in effect\n"},
		{"a managed lock that cannot be read is locked", managed, `{"allowManagedHooksOnly":"yes","allowedMcpServers":7}`, `{"allowManagedHooksOnly":true,"allowedMcpServers":[]}`,
			"error /etc/claude-code/managed-settings.json:1:26 (managed): allowManagedHooksOnly: is a string; it must be true or false. Until that is put right it counts as true\n" +
				"error /etc/claude-code/managed-settings.json:1:52 (managed): allowedMcpServers: is a number; it must be a list of objects. Until that is put right it allows nothing\n"},
		{"out of range", user, `{"cleanupPeriodDays":0}`, `{}`,
			"warning /home/u/.claude/settings.json:1:22 (user): cleanupPeriodDays: must be 1 or more (to save no sessions at all use --no-session-persistence); it is ignored\n"},
		{"auto is not the project's to choose", project, `{"permissions":{"defaultMode":"auto"}}`, `{"permissions":{}}`,
			"warning /w/.claude/settings.json:1:31 (project): permissions.defaultMode: auto has no effect in a project's files\n"},
		{"variables", project, `{"env":{"A":1,"B":true,"C":[],"CLAUDE_CODE_REMOTE":"1","CLAUDE_CODE_PROCESS_WRAPPER":"x"}}`, `{"env":{"A":"1","B":"true"}}`,
			"warning /w/.claude/settings.json:1:28 (project): env.C: is a list; it must be a string. It is ignored\n" +
				"warning /w/.claude/settings.json:1:52 (project): env.CLAUDE_CODE_REMOTE: cannot be set from this file; it is ignored\n" +
				"warning /w/.claude/settings.json:1:86 (project): env.CLAUDE_CODE_PROCESS_WRAPPER: cannot be set from this file; it is ignored\n"},
		{"empty", user, "", `{}`, ""},
		{"too large", user, `{"model":"` + strings.Repeat("x", 2<<20) + `"}`, `{}`, "refuse /home/u/.claude/settings.json (user): cannot be read: larger than 2 MiB\n"},
		{"hooks", user, `{"hooks":{"Stop":[{"hooks":[]},3],"PreToolUse":{}}}`, `{"hooks":{"Stop":[{"hooks":[]}]}}`,
			"warning /home/u/.claude/settings.json:1:32 (user): hooks.Stop[1]: is a number; it must be an object. It is ignored\n" +
				"warning /home/u/.claude/settings.json:1:48 (user): hooks.PreToolUse: is an object; it must be a list of matchers. It is ignored\n"},
		{"state that cannot be read", state, `{"projects":`, `{}`,
			"error /home/u/.claude.json:1:13 (state): the document ends where a value should stand; nothing of this file is in effect\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := options(map[string]string{c.file: c.in})
			o.CheckRule = func(_, rule string) error {
				if rule == "bad(" {
					return errors.New("odd")
				}
				return nil
			}
			v := settings.Load(o)
			if got := string(v.JSON()); got != c.json {
				t.Errorf("in effect: %s, want %s", got, c.json)
			}
			if got := problems(v); got != c.want {
				t.Errorf("problems:\n%swant:\n%s", got, c.want)
			}
			if got, want := len(v.Refusal()) > 0, strings.Contains(c.want, "refuse "); got != want {
				t.Errorf("refuses: %v", got)
			}
		})
	}
	o := options(nil)
	o.Flag = "no/such.json"
	if got := problems(settings.Load(o)); got != "refuse /w/no/such.json (cli): there is no such file; --settings takes the name of a file, or JSON\n" {
		t.Errorf("a --settings file that is not there: %s", got)
	}
}

func TestTrust(t *testing.T) {
	t.Parallel()
	repo := `{"permissions":{"allow":["A"],"deny":["D"],"ask":["Q"],"additionalDirectories":["/x"],"defaultMode":"acceptEdits"},
		"hooks":{"Stop":[{}]},"apiKeyHelper":"h","env":{"ANTHROPIC_MODEL":"m","PATH":"p"},"model":"m",
		"sandbox":{"enabled":true,"filesystem":{"denyRead":["/a"],"allowWrite":["/b"]},"excludedCommands":["docker"]}}`
	all := `{"permissions":{"allow":["A"],"deny":["D"],"ask":["Q"],"additionalDirectories":["/x"],"defaultMode":"acceptEdits"},"hooks":{"Stop":[{}]},"apiKeyHelper":"h","env":{"ANTHROPIC_MODEL":"m","PATH":"p"},"model":"m","sandbox":{"enabled":true,"filesystem":{"denyRead":["/a"],"allowWrite":["/b"]},"excludedCommands":["docker"]}}`
	some := `{"permissions":{"deny":["D"],"ask":["Q"]},"hooks":{"Stop":[{}]},"apiKeyHelper":"h","env":{"ANTHROPIC_MODEL":"m","PATH":"p"},"model":"m","sandbox":{"enabled":true,"filesystem":{"denyRead":["/a"],"allowWrite":["/b"]},"excludedCommands":["docker"]}}`
	few := `{"permissions":{"deny":["D"],"ask":["Q"]},"env":{"ANTHROPIC_MODEL":"m"},"model":"m","sandbox":{"enabled":true,"filesystem":{"denyRead":["/a"]}}}`
	const none = `{"projects":{"/w":{"hasTrustDialogAccepted":false},"/":{"hasTrustDialogAccepted":true}}}`
	for _, c := range []struct {
		name string
		in   map[string]string
		edit func(*settings.Options)
		want string
	}{
		{"trusted", map[string]string{project: repo}, nil, all},
		{"not trusted, nobody to ask", map[string]string{project: repo, state: none}, nil, some},
		{"not trusted, a person", map[string]string{project: repo, state: none}, func(o *settings.Options) { o.Interactive = true }, few},
		{"by the root of the checkout", map[string]string{project: repo, state: `{"projects":{"/r":{"hasTrustDialogAccepted":true}}}`}, func(o *settings.Options) { o.Repo = "/r" }, all},
		{"state that cannot be read trusts nothing", map[string]string{project: repo, state: `{`}, nil, some},
		{"for this run", map[string]string{project: repo, state: none}, func(o *settings.Options) { o.Trusted, o.Interactive = true, true }, all},
		{"the person's own local file", map[string]string{local: repo, state: none}, func(o *settings.Options) { o.Interactive = true }, all},
		{"a local file under version control", map[string]string{local: repo, state: none}, func(o *settings.Options) { o.LocalTracked, o.Interactive = true, true }, few},
	} {
		o := options(c.in)
		if c.edit != nil {
			c.edit(&o)
		}
		v := settings.Load(o)
		if got := string(v.JSON()); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
		if untold := c.want != all && !strings.Contains(problems(v), "permissions.allow: is not used: this workspace has not been trusted"); untold {
			t.Errorf("%s: nothing was said: %s", c.name, problems(v))
		}
	}
}

func TestSources(t *testing.T) {
	t.Parallel()
	in := map[string]string{user: `{"model":"u"}`, project: `{"model":"p"}`, local: `{"model":"l"}`, managed: `{"theme":"m"}`,
		"/main/.claude/settings.local.json": `{"model":"main","permissions":{"allow":["A"]}}`}
	for _, c := range []struct {
		edit func(*settings.Options)
		want string
	}{
		{func(o *settings.Options) { o.SourcesSet, o.Sources = true, []settings.Layer{settings.User} }, `{"theme":"m","model":"u"}`},
		{func(o *settings.Options) { o.SourcesSet = true; o.Flag = `{"model":"f"}` }, `{"theme":"m","model":"f"}`},
		{func(o *settings.Options) { o.Repo, o.Main = "/w", "/main" }, `{"theme":"m","model":"main","permissions":{"allow":["A"]}}`},
		{func(o *settings.Options) { o.Host = `{"theme":"h","permissions":{"deny":["D"]}}` }, `{"theme":"m","model":"l"}`},
		{func(o *settings.Options) {
			o.Extra = []json.RawMessage{[]byte(`{"model":"x"}`), []byte(`{"model":"y"}`)}
		}, `{"theme":"m","model":"y"}`},
		{func(o *settings.Options) { o.ProjectRoot = "/elsewhere" }, `{"theme":"m","model":"u"}`},
		{func(o *settings.Options) { o.Root, o.State = "", "" }, `{"theme":"m","model":"l"}`},
	} {
		o := options(in)
		c.edit(&o)
		if got := string(settings.Load(o).JSON()); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	in[managed] = `{"theme":"m","parentSettingsBehavior":"merge"}`
	o := options(in)
	o.Host = `{"theme":"h","permissions":{"deny":["D"],"allow":["A"]},"disableAllHooks":true}`
	if got, want := string(settings.Load(o).LayerJSON(settings.Managed)), `{"theme":"m","parentSettingsBehavior":"merge","permissions":{"deny":["D"]},"disableAllHooks":true}`; got != want {
		t.Errorf("a host beside an admin: got %s, want %s", got, want)
	}
	delete(in, managed)
	o = options(in)
	o.Host = `{"theme":"h"}`
	if got := string(settings.Load(o).LayerJSON(settings.Managed)); got != `{"theme":"h"}` {
		t.Errorf("a host alone: got %s", got)
	}
	// Started in the home directory, the user's file is not the project's.
	o = options(map[string]string{user: `{"permissions":{"allow":["A"]}}`, state: `{}`})
	o.Cwd = "/home/u"
	v := settings.Load(o)
	if p := v.Permissions(); len(p.Allow) != 1 || p.Allow[0].Layer != settings.User {
		t.Errorf("in the home directory: %+v", p)
	}
}

func TestWhy(t *testing.T) {
	t.Parallel()
	v := settings.Load(options(map[string]string{
		user: "{\n  \"model\": \"u\",\n  \"permissions\": {\"allow\": [\"A\"]}\n}", project: "{\n\n  \"model\": \"p\"\n}",
		local: `{"model": 7, "permissions": {"allow": ["B"]}, "env": {"a.b": "1"}}`}))
	show := func(key string) string {
		value, from := v.Why(v.Path(key)...)
		s := string(value)
		for _, d := range from {
			s += fmt.Sprintf(" | %s %s %v", d.Origin, d.Value, d.Counts)
		}
		return s
	}
	for key, want := range map[string]string{
		"model":             `"p" | /w/.claude/settings.local.json:1:11 (local) 7 false | /w/.claude/settings.json:3:12 (project) "p" true | /home/u/.claude/settings.json:2:12 (user) "u" false`,
		"permissions.allow": `["B","A"] | /w/.claude/settings.local.json:1:39 (local) ["B"] true | /home/u/.claude/settings.json:3:28 (user) ["A"] true`,
		"theme":             "",
		"env.a.b":           `"1" | /w/.claude/settings.local.json:1:62 (local) "1" true`,
	} {
		if got := show(key); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", key, got, want)
		}
	}
}

func TestAccessors(t *testing.T) {
	t.Parallel()
	v := settings.Load(options(map[string]string{
		managed: `{"permissions":{"deny":["D"],"disableBypassPermissionsMode":"disable"},"hooks":{"Stop":[{"hooks":[]}]}}`,
		user:    `{"permissions":{"allow":["A"],"defaultMode":"manual","additionalDirectories":["/d"]},"hooks":{"Stop":[{}]},"cleanupPeriodDays":7,"apiKeyHelper":"u"}`,
		project: `{"apiKeyHelper":"p","env":{"B":"2"},"disableAllHooks":true}`,
		state:   `{"projects":{"/w":{"hasTrustDialogAccepted":true,"mcpServers":{"a":{"command":"x"}},"disabledMcpServers":["z"]}},"mcpServers":{"a":{"command":"y"},"b":{}},"autoConnectIde":true}`,
	}))
	p := v.Permissions()
	got := fmt.Sprintln(p.Allow, p.Deny, p.Directories, p.Mode, p.NoBypass, p.NoAuto, p.ManagedOnly, p.Allow[0].Origin, p.Deny[0].Origin, p.ModeFrom)
	if want := "[A] [D] [/d] default true false false /home/u/.claude/settings.json:1:26 (user) /etc/claude-code/managed-settings.json:1:25 (managed) /home/u/.claude/settings.json:1:45 (user)\n"; got != want {
		t.Errorf("permissions: %s, want %s", got, want)
	}
	hooks, off := v.Hooks()
	if len(hooks) != 1 || hooks[0].Layer != settings.Managed || !off {
		t.Errorf("hooks: %+v, %v", hooks, off)
	}
	if c, mine := v.Helper("apiKeyHelper"); c != "p" || !mine {
		t.Errorf("helper %q of the project: %v", c, mine)
	}
	if n := v.Number(30, "cleanupPeriodDays"); n != 7 {
		t.Errorf("days: %v", n)
	}
	var s []string
	for _, m := range v.Servers() {
		s = append(s, fmt.Sprint(m.Name, " ", m.Scope, " ", string(m.Config)))
	}
	if want := []string{`a local {"command":"x"}`, `b user {}`}; !slices.Equal(s, want) {
		t.Errorf("servers %q, want %q", s, want)
	}
	if j, ok := v.ProjectState("disabledMcpServers"); !ok || string(j) != `["z"]` {
		t.Errorf("project state %s", j)
	}
	if j, ok := v.Global("autoConnectIde"); !ok || string(j) != "true" {
		t.Errorf("global %s", j)
	}
	if e := v.Env(); len(e) != 1 || e[0].Name != "B" || e[0].Value != "2" {
		t.Errorf("env %+v", e)
	}
	if !v.Locked("permissions", "disableBypassPermissionsMode") || v.Locked("cleanupPeriodDays") {
		t.Error("locks")
	}
	env := map[string]string{"HOME": "/home/u"}
	get := func(k string) string { return env[k] }
	if r, s := settings.Root(get), settings.StateFile(get); r != "/home/u/.claude" || s != state {
		t.Errorf("%s %s", r, s)
	}
	env["CLAUDE_CONFIG_DIR"] = "/c"
	if r, s := settings.Root(get), settings.StateFile(get); r != "/c" || s != "/c/.claude.json" {
		t.Errorf("%s %s", r, s)
	}
	clear(env)
	if r, s := settings.Root(get), settings.StateFile(get); r != "" || s != "" {
		t.Errorf("no home: %q %q", r, s)
	}
}

// disked is a project and a home on the real disk.
func disked(t *testing.T) (o settings.Options, write func(name, data string)) {
	dir := t.TempDir()
	o = settings.Options{Root: filepath.Join(dir, "home", ".claude"), State: filepath.Join(dir, "home", ".claude.json"), Cwd: filepath.Join(dir, "w"), ManagedDir: filepath.Join(dir, "etc")}
	return o, func(name, data string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func slurp(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestEdit(t *testing.T) {
	t.Parallel()
	o, write := disked(t)
	write("w/.claude/settings.local.json", "{\n  // my rules\n  \"permissions\": {\n    \"allow\": [\n      \"A\"\n    ]\n  },\n}\n")
	v := settings.Load(o)
	if got := problems(v); got != "" {
		t.Error(got)
	}
	file, err := v.File(settings.Local)
	if err != nil {
		t.Fatal(err)
	}
	e := settings.Editor{Root: o.Root}
	if err := e.Edit(t.Context(), file,
		settings.Change{Op: settings.Add, Path: []string{"permissions", "allow"}, Value: "Bash(git status)"},
		settings.Change{Op: settings.Add, Path: []string{"permissions", "allow"}, Value: "A"},
		settings.Change{Path: []string{"model"}, Value: "m"}); err != nil {
		t.Fatal(err)
	}
	want := "{\n  // my rules\n  \"permissions\": {\n    \"allow\": [\n      \"A\",\n      \"Bash(git status)\"\n    ]\n  },\n  \"model\": \"m\",\n}\n"
	if got := slurp(t, file); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if c := v.Changed(); !slices.Equal(c, []string{file}) {
		t.Errorf("changed: %v", c)
	}
	v = v.Reload()
	if p := v.Permissions(); len(p.Allow) != 2 || len(v.Changed()) != 0 {
		t.Errorf("after a reload: %+v, %v", p, v.Changed())
	}
	if err := e.Edit(t.Context(), file, settings.Change{Op: settings.Remove, Path: []string{"permissions", "allow"}, Value: "A"},
		settings.Change{Op: settings.Delete, Path: []string{"model"}}); err != nil {
		t.Fatal(err)
	}
	if got, want := string(v.Reload().JSON()), `{"permissions":{"allow":["Bash(git status)"]}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// A file that is wrong stays as it is, and the error says where.
	write("w/.claude/settings.json", "{\n  \"a\": }")
	shared, _ := v.File(settings.Project)
	err = e.Edit(t.Context(), shared, settings.Change{Path: []string{"model"}, Value: "m"})
	if err == nil || !strings.Contains(err.Error(), "line 2, column 8") || slurp(t, shared) != "{\n  \"a\": }" {
		t.Errorf("got %v", err)
	}
	for _, l := range []settings.Layer{settings.Managed, settings.Flag} {
		if _, err := v.File(l); err == nil {
			t.Errorf("%s settings can be changed", l)
		}
	}
}

// The state file of a person who also uses the other program: only our key
// changes, a copy is kept, and twelve at a time lose nothing.
func TestEditState(t *testing.T) {
	t.Parallel()
	o, write := disked(t)
	write("home/.claude.json", "{\n  \"userID\": \"x\",\n  \"tipsHistory\": {\"a\":  1 }\n}")
	e := settings.Editor{Root: o.Root}
	const n = 12
	done := make(chan error)
	for i := range n {
		go func() {
			done <- e.EditState(context.Background(), o.State, settings.Change{Path: []string{"mcpServers", fmt.Sprint("s", i)}, Value: map[string]any{"command": "c"}})
		}()
	}
	for range n {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	got := slurp(t, o.State)
	if !strings.HasPrefix(got, "{\n  \"userID\": \"x\",\n  \"tipsHistory\": {\"a\":  1 },\n  \"mcpServers\": {\n") {
		t.Errorf("other keys were touched: %s", got)
	}
	if s := settings.Load(o).Servers(); len(s) != n {
		t.Errorf("%d servers of %d: %s", len(s), n, got)
	}
	es, err := os.ReadDir(filepath.Join(o.Root, "backups"))
	if err != nil || len(es) == 0 || len(es) > 5 {
		t.Errorf("%d copies, %v", len(es), err)
	}
}

// Whatever operation fails, the file holds the old settings or the new.
func TestEditFailing(t *testing.T) {
	t.Parallel()
	for n := int64(1); ; n++ {
		o, write := disked(t)
		write("home/.claude.json", `{"a":1}`)
		f := &faultfs.FS{FS: disk.OS{}, Fail: n, Err: syscall.EIO}
		err := settings.Editor{Root: o.Root, FS: f}.EditState(t.Context(), o.State, settings.Change{Path: []string{"a"}, Value: 2})
		got := slurp(t, o.State)
		if got != `{"a":1}` && got != `{"a":2}` || err == nil && got != `{"a":2}` {
			t.Fatalf("operation %d failed: %q, %v", n, got, err)
		}
		if f.Ran() < n {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
	}
}

// A home that cannot be written or is no directory costs its settings only.
func TestOddHome(t *testing.T) {
	t.Parallel()
	o, write := disked(t)
	write("home/.claude", "a file")
	write("w/.claude/settings.json", `{"model":"p"}`)
	if v := settings.Load(o); string(v.JSON()) != `{"model":"p"}` || problems(v) != "" {
		t.Errorf("%s %s", v.JSON(), problems(v))
	}
	o, write = disked(t)
	write("home/.claude/settings.json/x", "a directory in place of a file")
	if v := settings.Load(o); len(v.Refusal()) != 1 {
		t.Errorf("%s", problems(v))
	}
}

func TestExclude(t *testing.T) {
	t.Parallel()
	f := filepath.Join(t.TempDir(), "git", "ignore")
	for range 2 {
		if err := settings.Exclude(f); err != nil {
			t.Fatal(err)
		}
	}
	if got := slurp(t, f); got != "**/.claude/settings.local.json\n" {
		t.Errorf("got %q", got)
	}
}

func FuzzLoad(f *testing.F) {
	for _, s := range []string{`{}`, `{"permissions":{"deny":[1,"A"],"allow":{}},"env":{"A":1},"hooks":{"Stop":[{}]}}`, `{"model":null,"fallbackModel":"x","sandbox":3}`, `[]`, "\ufeff{//x\n}"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		o := options(map[string]string{user: a, project: b, state: a})
		o.Interactive = true
		v := settings.Load(o)
		if !json.Valid(v.JSON()) {
			t.Fatalf("not JSON: %s", v.JSON())
		}
		v.Permissions()
		v.Hooks()
		v.Servers()
		for _, k := range v.Keys() {
			if value, from := v.Why(v.Path(k)...); value == nil || len(from) == 0 {
				t.Fatalf("nobody set %q", k)
			}
		}
	})
}
