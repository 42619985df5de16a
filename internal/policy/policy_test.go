package policy

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// rules reads "allow Bash(x)" lines; a leading "LAYER " names the layer.
func rules(lines ...string) []Rule {
	var out []Rule
	for i, l := range lines {
		r := Rule{Layer: LayerUser, File: "settings.json", Line: i + 1}
		for _, layer := range []Layer{LayerManaged, LayerCLI, LayerLocal, LayerProject, LayerUser, LayerSession} {
			if rest, ok := strings.CutPrefix(l, string(layer)+" "); ok {
				r.Layer, l = layer, rest
				break
			}
		}
		verb, text, _ := strings.Cut(l, " ")
		r.Text = text
		switch verb {
		case "allow":
			r.Verdict = agent.Allow
		case "deny":
			r.Verdict = agent.Deny
		}
		if r.Layer == LayerUser {
			r.Base = "/home/u/.claude"
		}
		out = append(out, r)
	}
	return out
}

func must(t testing.TB, c Config) *Policy {
	t.Helper()
	if c.Cwd == "" {
		c.Cwd = "/work/proj"
	}
	if c.Home == "" {
		c.Home = "/home/u"
	}
	p, problems := New(c)
	for _, b := range problems {
		t.Errorf("New: unexpected problem: %s", b)
	}
	return p
}

func bash(command string) agent.Call {
	in, _ := json.Marshal(map[string]string{"command": command})
	return agent.Call{ID: "c", Name: "Bash", Input: in, Effects: agent.Effects{Subjects: []agent.Subject{{Kind: agent.SubjectCommand, Value: command}}}}
}

// file is a call of a file tool; p is relative to the project.
func file(tool, p string) agent.Call {
	if !path.IsAbs(p) {
		p = "/work/proj/" + p
	}
	kind := agent.SubjectWrite
	if tool == "Read" || tool == "Grep" || tool == "Glob" {
		kind = agent.SubjectRead
	}
	in, _ := json.Marshal(map[string]string{"file_path": p})
	return agent.Call{Name: tool, Input: in, Effects: agent.Effects{ReadOnly: kind == agent.SubjectRead, Subjects: []agent.Subject{{Kind: kind, Value: p}}}}
}

func tool(name, input string, subjects ...agent.Subject) agent.Call {
	return agent.Call{Name: name, Input: json.RawMessage(input), Effects: agent.Effects{Subjects: subjects}}
}

func fetch(url string) agent.Call {
	return tool("WebFetch", `{}`, agent.Subject{Kind: agent.SubjectURL, Value: url})
}

// TestOrder covers the examples of the rule grammar and the order of decision.
func TestOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		rules []string
		mode  agent.Mode
		call  agent.Call
		want  agent.Verdict
		by    string
	}{
		{"deny beats allow", []string{"allow Bash(git *)", "deny Bash(git push *)"}, "", bash("git status && git push"), agent.Deny, "rule:user:Bash(git push *)"},
		{"every part must be allowed", []string{"allow Bash(npm test *)"}, "", bash("timeout 30 npm test -- a && curl x"), agent.Ask, ""},
		{"wrapper stripped", []string{"allow Bash(npm test *)"}, "", bash("timeout 30 npm test -- a"), agent.Allow, "rule:user:Bash(npm test *)"},
		{"read deny covers edits, any depth", []string{"deny Read(secrets/**)"}, "", file("Edit", "pkg/secrets/k"), agent.Deny, "rule:user:Read(secrets/**)"},
		{"allow of a directory is anchored", []string{"allow Edit(src/**)"}, "", file("Write", "vendor/src/a.go"), agent.Ask, ""},
		{"allow of a directory", []string{"allow Edit(src/**)"}, "", file("Write", "src/x/a.go"), agent.Allow, "rule:user:Edit(src/**)"},
		{"user file anchors at its directory", []string{"deny Read(/secrets/**)"}, "", file("Read", "secrets/x"), agent.Allow, "working-directory"},
		{"user file anchors at its directory 2", []string{"deny Read(/secrets/**)"}, "", file("Read", "/home/u/.claude/secrets/x"), agent.Deny, "rule:user:Read(/secrets/**)"},
		{"ask in bypass", []string{"ask Bash(gh pr create *)"}, agent.ModeBypass, bash("gh pr create -t x"), agent.Ask, "rule:user:Bash(gh pr create *)"},
		{"ask beats allow", []string{"allow Bash", "ask Bash(rm *)"}, "", bash("rm x"), agent.Ask, "rule:user:Bash(rm *)"},
		{"ask is deny in dontAsk", []string{"allow Bash", "ask Bash(rm *)"}, agent.ModeDontAsk, bash("rm x"), agent.Deny, "rule:user:Bash(rm *)"},
		{"deny from any layer", []string{"managed allow Bash(ls *)", "user deny Bash(ls *)"}, "", bash("ls"), agent.Deny, "rule:user:Bash(ls *)"},
		{"bare deny", []string{"deny WebSearch"}, agent.ModeBypass, tool("WebSearch", `{"query":"x"}`), agent.Deny, "rule:user:WebSearch"},
		{"server", []string{"allow mcp__gh"}, "", tool("mcp__gh__list", `{}`), agent.Allow, "rule:user:mcp__gh"},
		{"server glob", []string{"allow mcp__gh__get_*"}, "", tool("mcp__gh__get_issue", `{}`), agent.Allow, "rule:user:mcp__gh__get_*"},
		{"server glob misses", []string{"allow mcp__gh__get_*"}, "", tool("mcp__gh__put", `{}`), agent.Ask, ""},
		{"another server", []string{"allow mcp__gh"}, "", tool("mcp__ghx__list", `{}`), agent.Ask, ""},
		{"deny glob", []string{"deny mcp__*"}, agent.ModeBypass, tool("mcp__gh__list", `{}`), agent.Deny, "rule:user:mcp__*"},
		{"parameter", []string{"deny Agent(model:opus)"}, "", tool("Agent", `{"model":"opus"}`), agent.Deny, "rule:user:Agent(model:opus)"},
		{"parameter absent", []string{"deny Agent(model:opus)"}, "", tool("Agent", `{"prompt":"x"}`), agent.Allow, "no question needed"},
		{"parameter of Bash", []string{"deny Bash(run_in_background: true)"}, agent.ModeBypass, agent.Call{Name: "Bash", Input: json.RawMessage(`{"command":"sleep 9","run_in_background":true}`)}, agent.Deny, "rule:user:Bash(run_in_background: true)"},
		{"colon that is no parameter", []string{"deny Bash(npm run test:unit)"}, agent.ModeBypass, bash("npm run test:unit"), agent.Deny, "rule:user:Bash(npm run test:unit)"},
		{"agent by name", []string{"deny Agent(Explore)"}, "", tool("Task", `{}`, agent.Subject{Kind: agent.SubjectName, Value: "Explore"}), agent.Deny, "rule:user:Agent(Explore)"},
		{"legacy alias", []string{"deny Task(Explore)"}, "", tool("Agent", `{}`, agent.Subject{Kind: agent.SubjectName, Value: "Explore"}), agent.Deny, "rule:user:Task(Explore)"},
		{"skill", []string{"allow Skill(pdf)"}, "", tool("Skill", `{"skill":"pdf","args":"x"}`, agent.Subject{Kind: agent.SubjectName, Value: "pdf"}), agent.Allow, "rule:user:Skill(pdf)"},
		{"skill with arguments", []string{"allow Skill(deploy staging *)"}, "", tool("Skill", `{"skill":"deploy","args":"staging now"}`, agent.Subject{Kind: agent.SubjectName, Value: "deploy"}), agent.Allow, "rule:user:Skill(deploy staging *)"},
		{"domain", []string{"allow WebFetch(domain:Go.dev)"}, "", fetch("https://go.dev./x"), agent.Allow, "rule:user:WebFetch(domain:Go.dev)"},
		{"subdomain", []string{"allow WebFetch(domain:*.go.dev)"}, "", fetch("https://pkg.go.dev/"), agent.Allow, "rule:user:WebFetch(domain:*.go.dev)"},
		{"apex is no subdomain", []string{"allow WebFetch(domain:*.go.dev)"}, "", fetch("https://go.dev/"), agent.Ask, ""},
		{"suffix is no subdomain", []string{"allow WebFetch(domain:*.go.dev)"}, "", fetch("https://evilgo.dev/"), agent.Ask, ""},
		{"star within a label", []string{"allow WebFetch(domain:api-*.x.com)"}, "", fetch("https://api-1.y.x.com/"), agent.Ask, ""},
		{"user info is no host", []string{"allow WebFetch(domain:good.com)"}, "", fetch("https://good.com@evil.com/"), agent.Ask, ""},
		{"edit allow grants read", []string{"allow Edit(//etc/x)"}, "", file("Read", "/etc/x"), agent.Allow, "rule:user:Edit(//etc/x)"},
		{"read allow grants no edit", []string{"allow Read(//etc/x)"}, "", file("Write", "/etc/x"), agent.Ask, ""},
		{"interactive in bypass", nil, agent.ModeBypass, agent.Call{Name: "ExitPlanMode", Effects: agent.Effects{Interactive: true}}, agent.Ask, "guard:interactive"},
		{"interactive in dontAsk", nil, agent.ModeDontAsk, agent.Call{Name: "AskUserQuestion"}, agent.Deny, "guard:interactive"},
		{"protected despite allow", []string{"allow Edit(.claude/**)"}, "", file("Write", ".claude/settings.json"), agent.Ask, "protected:/work/proj/.claude/settings.json"},
		{"protected after a session approval", []string{"session allow Edit(.claude/**)"}, "", file("Write", ".claude/settings.json"), agent.Allow, "rule:session:Edit(.claude/**)"},
		{"worktrees are not protected", []string{"allow Edit(.claude/**)"}, "", file("Write", ".claude/worktrees/a/x.go"), agent.Allow, "rule:user:Edit(.claude/**)"},
		{"protected by redirection", []string{"allow Bash(echo *)", "allow Edit"}, "", bash("echo x > .git/hooks/pre-commit"), agent.Ask, "protected:/work/proj/.git/hooks/pre-commit"},
		{"redirection needs an edit rule", []string{"allow Bash(echo *)"}, "", bash("echo x > out"), agent.Ask, ""},
		{"redirection with an edit rule", []string{"allow Bash(echo *)", "allow Edit(out)"}, "", bash("echo x > out"), agent.Allow, "read-only"},
		{"redirection denied", []string{"allow Bash", "deny Edit(gen/**)"}, agent.ModeBypass, bash("echo x >> gen/a"), agent.Deny, "rule:user:Edit(gen/**)"},
		{"tee denied", []string{"allow Bash", "deny Edit(gen/**)"}, agent.ModeBypass, bash("echo x | tee gen/a"), agent.Deny, "rule:user:Edit(gen/**)"},
		{"exact", []string{"allow Bash(npm run build)"}, "", bash("npm run build"), agent.Allow, "rule:user:Bash(npm run build)"},
		{"exact is exact", []string{"allow Bash(npm run build)"}, "", bash("npm run build:all"), agent.Ask, ""},
		{"boundary", []string{"allow Bash(make *)"}, "", bash("make"), agent.Allow, "rule:user:Bash(make *)"},
		{"boundary misses", []string{"allow Bash(make *)"}, "", bash("maker x"), agent.Ask, ""},
		{"colon star", []string{"allow Bash(make:*)"}, "", bash("make all"), agent.Allow, "rule:user:Bash(make:*)"},
		{"no boundary", []string{"allow Bash(make*)"}, "", bash("maker x"), agent.Allow, "rule:user:Bash(make*)"},
		{"star spans blanks", []string{"allow Bash(git * main)"}, "", bash("git merge --ff main"), agent.Allow, "rule:user:Bash(git * main)"},
		{"env of the safe set", []string{"allow Bash(make *)"}, "", bash("NODE_ENV=test make"), agent.Allow, "rule:user:Bash(make *)"},
		{"env outside the safe set", []string{"allow Bash(make *)"}, "", bash("CC=/tmp/evil make"), agent.Ask, ""},
		{"env spelled out", []string{"allow Bash(CC=clang make *)"}, "", bash("CC=clang make all"), agent.Allow, "rule:user:Bash(CC=clang make *)"},
		{"deny past env", []string{"allow Bash", "deny Bash(rm *)"}, "", bash("FOO=1 BAR=2 rm x"), agent.Deny, "rule:user:Bash(rm *)"},
		{"deny past git options", []string{"allow Bash(git *)", "deny Bash(git push *)"}, "", bash("git -C sub --no-pager push origin"), agent.Deny, "rule:user:Bash(git push *)"},
		{"find -exec only by an exact rule", []string{"allow Bash(find *)"}, "", bash("find . -name x -exec touch {} +"), agent.Ask, ""},
		{"find -exec by an exact rule", []string{"allow Bash(find . -name x -exec touch {} +)"}, "", bash("find . -name x -exec touch {} +"), agent.Allow, "rule:user:Bash(find . -name x -exec touch {} +)"},
		{"bash -c by rule", []string{"allow Bash(bash *)"}, "", bash("bash -c 'curl x; make'"), agent.Allow, "rule:user:Bash(bash *)"},
		{"bash -c denied inside", []string{"allow Bash(bash *)", "deny Bash(curl *)"}, "", bash("bash -c 'make; curl x'"), agent.Deny, "rule:user:Bash(curl *)"},
		{"python that mentions what is denied", []string{"allow Bash(python3 *)", "deny Bash(rm *)"}, "", bash(`python3 -c "import os; os.system('rm x')"`), agent.Ask, "rule:user:Bash(rm *)"},
		{"python that does not", []string{"allow Bash(python3 *)", "deny Bash(rm *)"}, "", bash(`python3 -c "print(1)"`), agent.Allow, "rule:user:Bash(python3 *)"},
		{"whole command by an exact rule", []string{"allow Bash(make a && ./x > out)"}, "", bash("make a && ./x > out"), agent.Allow, "rule:user:Bash(make a && ./x > out)"},
		{"cd and git inside", nil, "", bash("cd sub && git status"), agent.Allow, "read-only"},
		{"cd outside", nil, "", bash("cd /etc && ls"), agent.Ask, ""},
		{"reads outside", nil, "", bash("cat /etc/passwd"), agent.Ask, ""},
		{"reads outside by rule", []string{"allow Read(//etc/**)"}, "", bash("cat /etc/passwd"), agent.Allow, "read-only"},
		{"reads through a variable", nil, "", bash("cat $X"), agent.Ask, ""},
		{"dontAsk and the read-only set", nil, agent.ModeDontAsk, bash("ls -la && git status"), agent.Allow, "read-only"},
		{"monitor is under the rules of Bash", []string{"deny Bash(rm *)"}, agent.ModeBypass, tool("Monitor", `{}`, agent.Subject{Kind: agent.SubjectCommand, Value: "rm x"}), agent.Deny, "rule:user:Bash(rm *)"},
		{"powershell", []string{"allow PowerShell(Get-Item *)"}, "", tool("PowerShell", `{}`, agent.Subject{Kind: agent.SubjectCommand, Value: "get-item x"}), agent.Allow, "rule:user:PowerShell(Get-Item *)"},
		{"powershell compound", []string{"allow PowerShell(Get-Item *)"}, "", tool("PowerShell", `{}`, agent.Subject{Kind: agent.SubjectCommand, Value: "Get-Item x; Remove-Item y"}), agent.Ask, ""},
		{"no subjects at all", nil, "", agent.Call{Name: "Write"}, agent.Ask, ""},
		{"unknown tool", nil, "", agent.Call{Name: "Strange"}, agent.Ask, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := must(t, Config{Mode: c.mode, Rules: rules(c.rules...)})
			j := p.Judge(c.call)
			if j.Verdict != c.want || c.by != "" && j.By != c.by {
				t.Errorf("got %s by %q (%s), want %s by %q", j.Verdict, j.By, j.Reason, c.want, c.by)
			}
			if j.Verdict == agent.Ask && j.Reason == "" {
				t.Error("asked without a reason")
			}
		})
	}
}

// TestModes is the table of verdicts by mode.
func TestModes(t *testing.T) {
	t.Parallel()
	modes := []agent.Mode{agent.ModeDefault, agent.ModeAcceptEdits, agent.ModePlan, agent.ModeDontAsk, agent.ModeAuto, agent.ModeBypass}
	for _, c := range []struct {
		name string
		call agent.Call
		want string // a letter for each mode: allow, deny, ask
	}{
		{"write in the project", file("Write", "a.go"), "? + ? - + +"},
		{"edit in the project", file("Edit", "a.go"), "? + ? - + +"},
		{"touch in the project", bash("touch a"), "? + ? - + +"},
		{"git status, ls", bash("git status; ls"), "+ + + + + +"},
		{"curl", bash("curl x"), "? ? ? - ? +"},
		{"write settings", file("Write", ".claude/settings.json"), "? ? ? - ? +"},
		{"write outside", file("Write", "/etc/x"), "? ? ? - ? +"},
		{"read outside", file("Read", "/etc/hostname"), "? ? ? - ? +"},
		{"read inside", file("Read", "a"), "+ + + + + +"},
		{"grep inside", file("Grep", "."), "+ + + + + +"},
		{"mkdir and mv inside", bash("mkdir -p a/b && mv x a/b && cp y z"), "? + ? - + +"},
		{"mv outside", bash("mv x /tmp/x"), "? ? ? - ? +"},
		{"rm inside", bash("rm -f a.o"), "? + ? - + +"},
		{"rm -rf inside", bash("rm -rf build"), "? + ? - + +"},
		{"rm -rf outside", bash("rm -rf /opt/x/y"), "? ? ? - ? ?"},
		{"redirect inside", bash("echo hi > a"), "? + ? - + +"},
		{"redirect outside", bash("echo hi > /opt/x"), "? ? ? - ? +"},
		{"sed in place", bash("sed -i s/a/b/ x"), "? + ? - + +"},
		{"sed that runs", bash("sed -i 's/a/b/e' x"), "? ? ? - ? +"},
		{"agent", tool("Agent", `{}`), "+ + + + ? +"},
		{"web search", tool("WebSearch", `{}`), "? ? ? - ? +"},
		{"mcp", tool("mcp__a__b", `{}`), "? ? ? - ? +"},
		{"todo", tool("TodoWrite", `{}`), "+ + + + + +"},
	} {
		var got []string
		for _, m := range modes {
			p := must(t, Config{Mode: m})
			got = append(got, map[agent.Verdict]string{agent.Allow: "+", agent.Ask: "?", agent.Deny: "-"}[p.Decide(c.call).Verdict])
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%s:\n got %s\nwant %s\n     (%v)", c.name, g, c.want, modes)
		}
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	p := must(t, Config{Mode: agent.ModePlan, Rules: rules("allow Bash(touch:*)", "allow Edit", "allow WebFetch")})
	for _, c := range []struct {
		call agent.Call
		want agent.Verdict
	}{
		{bash("touch x"), agent.Ask},
		{file("Edit", "x"), agent.Ask},
		{bash("ls | grep x"), agent.Allow},
		{fetch("https://x.com"), agent.Allow},
	} {
		if d := p.Decide(c.call); d.Verdict != c.want || d.Verdict == agent.Ask && (d.Why != agent.WhyMode || len(d.Suggest) > 0) {
			t.Errorf("%s: got %s (%s, %v), want %s", c.call.Name, d.Verdict, d.Why, d.Suggest, c.want)
		}
	}
	q, err := p.WithMode(agent.ModeDefault)
	if err != nil {
		t.Fatal(err)
	}
	if d := q.Decide(bash("touch x")); d.Verdict != agent.Allow {
		t.Errorf("after the plan: got %s (%s)", d.Verdict, d.Reason)
	}
}

func TestAutoSuspendsRulesThatRunCode(t *testing.T) {
	t.Parallel()
	p := must(t, Config{Mode: agent.ModeAuto, Rules: rules("allow Bash(python3 *)", "allow Bash(npm run *)", "allow Bash(make)", "allow Bash(gofmt *)", "allow Agent")})
	for command, want := range map[string]agent.Verdict{
		"python3 x.py": agent.Ask, "npm run x": agent.Ask, "make": agent.Allow, "gofmt -l .": agent.Allow,
	} {
		if d := p.Decide(bash(command)); d.Verdict != want {
			t.Errorf("%s: got %s by %s, want %s", command, d.Verdict, d.By, want)
		}
	}
	if d := p.Decide(tool("Agent", `{}`)); d.Verdict != agent.Ask {
		t.Errorf("Agent: got %s by %s", d.Verdict, d.By)
	}
	c := must(t, Config{Mode: agent.ModeAuto, ClassifyAll: true, Rules: rules("allow Bash(gofmt *)")})
	if d := c.Decide(bash("gofmt -l .")); d.Verdict != agent.Ask {
		t.Errorf("classify all: got %s by %s", d.Verdict, d.By)
	}
}

func TestLocks(t *testing.T) {
	t.Parallel()
	p, problems := New(Config{Cwd: "/w", ManagedOnly: true, Rules: rules("managed deny WebFetch", "user allow Bash", "session allow Edit")})
	if len(problems) > 0 {
		t.Error(problems)
	}
	if d := p.Decide(bash("make")); d.Verdict != agent.Ask || d.Suggest != nil {
		t.Errorf("managed only: got %s, %v", d.Verdict, d.Suggest)
	}
	q := p.With([]agent.PermissionUpdate{{Type: "addRules", Behavior: "allow", Destination: "session", Rules: []agent.RuleText{{Tool: "Bash"}}}})
	if d := q.Decide(bash("make")); d.Verdict != agent.Ask {
		t.Errorf("managed only after a grant: got %s by %s", d.Verdict, d.By)
	}
	if _, err := must(t, Config{NoBypass: true, CanBypass: true}).WithMode(agent.ModeBypass); err == nil {
		t.Error("a disabled mode was switched on")
	}
	if m := must(t, Config{NoBypass: true, Mode: agent.ModeBypass}).Mode(); m != agent.ModeDefault {
		t.Errorf("started in a disabled mode: %s", m)
	}
	if _, err := must(t, Config{}).WithMode(agent.ModeBypass); err == nil {
		t.Error("bypass was switched on though not enabled at the start")
	}
	if _, err := must(t, Config{CanBypass: true}).WithMode(agent.ModeBypass); err != nil {
		t.Error(err)
	}
	u, problems := New(Config{Cwd: "/w", Untrusted: true, Rules: rules("project allow Bash(make)", "project deny Bash(curl *)")})
	if len(problems) != 1 || u.Decide(bash("make")).Verdict != agent.Ask || u.Decide(bash("curl x")).Verdict != agent.Deny {
		t.Errorf("untrusted: %v", problems)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	tools := []string{"Bash", "Read", "Edit", "Write", "WebFetch", "Agent", "Glob"}
	for _, c := range []struct{ rule, want string }{
		{"deny Bsah", "there is no tool Bsah; Bash is near"},
		{"deny bash(rm *)", "there is no tool bash; Bash is near"},
		{"deny Zzzzzzzz", "there is no tool Zzzzzzzz here, so the rule has no effect"},
		{"deny Bassh(rm *)", "there is no tool Bassh; Bash is near"},
		{"allow Zzzzzzzz(rm *)", "there is no tool Zzzzzzzz here, so the rule has no effect"},
		{"deny PowerShell(Remove-Item *)", "there is no tool PowerShell here, so the rule has no effect"},
		{"deny my_tool", ""},
		{"deny Bash(rm *", "the closing parenthesis is missing"},
		{"deny Bash rm)", "a closing parenthesis without an opening one"},
		{"deny Bash()", "nothing between the parentheses"},
		{"allow *", "an allow rule takes * in a tool name only after mcp__<server>__"},
		{"allow mcp__*", "an allow rule takes * in a tool name only after mcp__<server>__"},
		{"allow mcp__gh__*", ""},
		{"deny mcp__*(x)", "a specifier needs one tool, not a pattern of tools"},
		{"allow Write(src/**)", "path rules are looked up under Edit: write Edit(src/**)"},
		{"deny Glob(src/**)", "path rules are looked up under Read: write Read(src/**)"},
		{"allow Agent(model:opus)", "a rule about a parameter can only deny or ask"},
		{"deny Read(file_path:x)", "the parameter file_path has its own form of rule"},
		{"deny Bash(command:rm)", "the parameter command has its own form of rule"},
		{"allow Bash(:*)", "no command before the star; Bash alone is every command"},
		{"allow WebFetch(go.dev)", "the form is WebFetch(domain:HOST)"},
		{"allow WebFetch(domain:https://go.dev)", "a host name only, without scheme or path"},
		{"deny Read(!x)", "a pattern cannot be negated; use a deny rule"},
		{"deny Read(a/../b)", "a pattern holds .. only at its start"},
		{"deny mcp__a__b(x)", "an MCP tool takes no specifier but (parameter:value)"},
		{"deny mcp__a__b(x:y)", ""},
		{"allow ", "no tool name"},
	} {
		_, problems := New(Config{Cwd: "/w", Home: "/h", Tools: tools, Rules: rules(c.rule)})
		got := ""
		if len(problems) > 0 {
			got = problems[0].Text
		}
		if got != c.want || len(problems) > 1 {
			t.Errorf("%s: got %v, want %q", c.rule, problems, c.want)
		}
	}
	_, problems := New(Config{Cwd: "/w", Rules: rules("allow Bash(ls *)", "managed deny Bash")})
	if len(problems) != 1 || problems[0].String() != "settings.json:1: allow rule Bash(ls *): has no effect: settings.json:2 denies Bash" {
		t.Errorf("shadowed: %v", problems)
	}
}

func TestRemoved(t *testing.T) {
	t.Parallel()
	p := must(t, Config{Rules: rules("deny WebSearch", "deny mcp__gh", "deny Bash(rm *)", "deny Task", "deny mcp__x__get_*")})
	got := p.Removed([]string{"Bash", "WebSearch", "Agent", "mcp__gh__list", "mcp__x__get_a", "mcp__x__put", "Read"})
	want := []string{"WebSearch", "Agent", "mcp__gh__list", "mcp__x__get_a"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestWith(t *testing.T) {
	t.Parallel()
	p := must(t, Config{})
	add := agent.PermissionUpdate{Type: "addRules", Behavior: "allow", Destination: "session", Rules: []agent.RuleText{{Tool: "Bash", Content: "mkdir:*"}}}
	q := p.With([]agent.PermissionUpdate{add, {Type: "addDirectories", Directories: []string{"/opt/x", "rel"}}, {Type: "setMode", Mode: agent.ModeAcceptEdits}})
	if d := q.Decide(bash("mkdir made2 && ls /opt/x")); d.Verdict != agent.Allow {
		t.Errorf("got %s: %s", d.Verdict, d.Reason)
	}
	if d := p.Decide(bash("mkdir made2")); d.Verdict != agent.Ask {
		t.Error("the old policy changed")
	}
	if got := q.Dirs(); !slices.Equal(got, []string{"/work/proj", "/opt/x", "/work/proj/rel"}) || q.Mode() != agent.ModeAcceptEdits {
		t.Errorf("dirs %v, mode %s", got, q.Mode())
	}
	r := q.With([]agent.PermissionUpdate{{Type: "removeRules", Behavior: "allow", Destination: "session", Rules: add.Rules}, {Type: "removeDirectories", Directories: []string{"/opt/x"}}, {Type: "setMode", Mode: "default"}})
	if d := r.Decide(bash("mkdir made2")); d.Verdict != agent.Ask || len(r.Dirs()) != 2 {
		t.Errorf("after removal: %s, %v", d.Verdict, r.Dirs())
	}
	s := q.With([]agent.PermissionUpdate{{Type: "replaceRules", Behavior: "allow", Destination: "session", Rules: []agent.RuleText{{Tool: "Bash", Content: "make"}}}})
	if len(s.Rules()) != 1 || s.Rules()[0].Text != "Bash(make)" {
		t.Errorf("replaced: %v", s.Rules())
	}
}

// Commands that will run in the sandbox need no question, but rules, guards
// and plan mode hold all the same.
func TestSandbox(t *testing.T) {
	t.Parallel()
	box := Sandbox{Enabled: true, AutoAllow: true, Unsandboxed: true, Excluded: []string{"docker *"}}
	out := func(c agent.Call) agent.Call {
		c.Input = json.RawMessage(`{"command":"make","dangerouslyDisableSandbox":true}`)
		return c
	}
	for _, c := range []struct {
		name  string
		box   Sandbox
		mode  agent.Mode
		rules []string
		call  agent.Call
		want  agent.Verdict
		why   agent.Why
	}{
		{"inside", box, "", nil, bash("make; curl x > out"), agent.Allow, agent.WhyOther},
		{"not set", Sandbox{Enabled: true}, "", nil, bash("make"), agent.Ask, agent.WhyOther},
		{"denied", box, "", []string{"deny Bash(make *)"}, bash("make"), agent.Deny, agent.WhyRule},
		{"asked", box, "", []string{"ask Bash(make *)"}, bash("make"), agent.Ask, agent.WhyRule},
		{"asked about every command", box, "", []string{"ask Bash"}, bash("make"), agent.Allow, agent.WhyOther},
		{"asked about every command in plan mode", box, agent.ModePlan, []string{"ask Bash"}, bash("make"), agent.Ask, agent.WhyRule},
		{"guard", box, "", nil, bash("rm -rf ~"), agent.Ask, agent.WhySafety},
		{"plan", box, agent.ModePlan, nil, bash("make"), agent.Ask, agent.WhyMode},
		{"excluded part", box, "", nil, bash("ls && docker run x"), agent.Ask, agent.WhyParts},
		{"asks to leave", box, "", nil, out(bash("make")), agent.Ask, agent.WhySandbox},
		{"may not leave", Sandbox{Enabled: true, AutoAllow: true}, "", nil, out(bash("make")), agent.Allow, agent.WhyOther},
		{"leaves by rule", box, "", []string{"allow Bash(make)"}, out(bash("make")), agent.Allow, agent.WhyRule},
	} {
		p := must(t, Config{Mode: c.mode, Rules: rules(c.rules...), Sandbox: c.box})
		if d := p.Decide(c.call); d.Verdict != c.want || d.Why != c.why {
			t.Errorf("%s: got %s (%s, %s), want %s (%s)", c.name, d.Verdict, d.Why, d.Reason, c.want, c.why)
		}
	}
	p := must(t, Config{Sandbox: box})
	if !p.Excluded("x; docker ps") || p.Excluded("echo docker") {
		t.Error("Excluded")
	}
}

func TestPreapproved(t *testing.T) {
	t.Parallel()
	docs := func(h string) bool { return h == "go.dev" }
	if d := must(t, Config{Preapproved: docs}).Decide(fetch("https://go.dev/x")); d.Verdict != agent.Allow {
		t.Errorf("got %s", d.Verdict)
	}
	if d := must(t, Config{Preapproved: docs, Rules: rules("allow WebFetch(domain:x.com)")}).Decide(fetch("https://go.dev/x")); d.Verdict != agent.Ask {
		t.Errorf("with rules of one's own: got %s", d.Verdict)
	}
}
