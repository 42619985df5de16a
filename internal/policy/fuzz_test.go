package policy

import (
	"path"
	"strings"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// strict orders verdicts by how much they permit.
func strict(v agent.Verdict) int {
	return map[agent.Verdict]int{agent.Allow: 0, agent.Ask: 1, agent.Deny: 2}[v]
}

// FuzzJudge checks what must hold for every command: a rule that forbids
// never makes it easier, one that allows never makes it harder, and what is
// appended is judged too.
func FuzzJudge(f *testing.F) {
	g := newGenerator(99)
	for range 40 {
		f.Add(g.next())
	}
	f.Add("rm -rf \"$X\"/* && cd .. # x")
	base, _ := New(Config{Cwd: "/w", Home: "/h", Rules: rules("allow Bash(echo *)", "allow Bash(git:*)")})
	more, _ := New(Config{Cwd: "/w", Home: "/h", Rules: rules("allow Bash(echo *)", "allow Bash(git:*)", "allow Bash(make *)", "allow Edit(//w/**)", "allow Read")})
	less, _ := New(Config{Cwd: "/w", Home: "/h", Rules: rules("allow Bash(echo *)", "allow Bash(git:*)", "deny Bash(git push *)", "ask Bash(echo a*)", "deny Read(.env)")})
	deny, _ := New(Config{Cwd: "/w", Home: "/h", Mode: agent.ModeBypass, Rules: rules("deny Bash(evil *)")})
	f.Fuzz(func(t *testing.T, command string) {
		d := base.Judge(bash(command))
		if v := more.Judge(bash(command)).Verdict; strict(v) > strict(d.Verdict) {
			t.Errorf("%q: %s, with more rules that allow %s", command, d.Verdict, v)
		}
		if v := less.Judge(bash(command)).Verdict; strict(v) < strict(d.Verdict) {
			t.Errorf("%q: %s, with rules that forbid %s", command, d.Verdict, v)
		}
		if d.Verdict == agent.Ask && d.Reason == "" {
			t.Errorf("%q: asked without a reason", command)
		}
		if len(d.Suggest) > 0 {
			if again := base.With(d.Suggest).Judge(bash(command)); again.Verdict != agent.Allow {
				t.Errorf("%q: with %v it is still %s: %s", command, RuleNames(d.Suggest), again.Verdict, again.Reason)
			}
		}
		if v := deny.Judge(bash("evil\n" + command)).Verdict; v == agent.Allow {
			t.Errorf("%q behind a denied command is allowed", command)
		}
		base.Explain(bash(command))
	})
}

func FuzzRule(f *testing.F) {
	for _, s := range []string{"Bash(a *)", "Read(//x/**)", "mcp__a__*", "WebFetch(domain:*.a.b)", "Agent(model:x)", "Edit(~/[a-b]/*.go)", "Bash(\\*:*)", "Skill(a *)"} {
		f.Add(s, "/w/x")
	}
	f.Fuzz(func(t *testing.T, text, arg string) {
		for _, v := range []agent.Verdict{agent.Allow, agent.Ask, agent.Deny} {
			p, problems := New(Config{Cwd: "/w", Home: "/h", Tools: []string{"Bash", "Read"}, Rules: []Rule{{Verdict: v, Layer: LayerUser, Text: text}}})
			for _, b := range problems {
				if b.Text == "" {
					t.Errorf("%q: a problem without words", text)
				}
			}
			p.Judge(bash(arg))
			p.Judge(file("Write", "/"+arg))
			p.DeniedPath("/" + arg)
		}
		if s := trim(arg); !compilePattern(escape(s)).match(s) && !strings.ContainsRune(s, 0) {
			t.Errorf("escape(%q) = %q does not match it", s, escape(s))
		}
		if strings.HasPrefix(arg, "/") && path.Clean(arg) == arg && strings.TrimSpace(arg) == arg {
			p, _ := New(Config{Cwd: "/w", Rules: []Rule{{Verdict: agent.Deny, Text: pathText("Read", arg).String()}}})
			if len(p.deny) == 1 && !p.DeniedPath(arg) {
				t.Errorf("the escaped rule for %q does not match it", arg)
			}
		}
	})
}
