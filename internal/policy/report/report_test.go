package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/policy"
)

func sample(t *testing.T, mode agent.Mode, texts ...string) *policy.Policy {
	t.Helper()
	var rules []policy.Rule
	for i, l := range texts {
		verb, rule, _ := strings.Cut(l, " ")
		v, _ := verdict(verb)
		rules = append(rules, policy.Rule{Verdict: v, Layer: policy.LayerProject, Text: rule, File: ".claude/settings.json", Line: i + 3})
	}
	p, problems := policy.New(policy.Config{Mode: mode, Rules: rules, Cwd: "/w", Home: "/home/u", Lookup: func(s string) string { return "/usr/bin/" + s }})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return p
}

func explain(t *testing.T, p *policy.Policy, s string) string {
	t.Helper()
	c, err := Call(p, s)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Explain(&b, p, c); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestExplain(t *testing.T) {
	t.Parallel()
	p := sample(t, "", "allow Bash(go test *)", "deny Bash(git push *)")
	for _, c := range []struct{ call, want string }{
		{"go test ./... | tee log $(git push)", `
verdict   deny
decided   deny rule Bash(git push *), .claude/settings.json:4 (project)
because   denied by the rule Bash(git push *) (.claude/settings.json:4)
mode      default
command
  allow go test ./...: rule:project:Bash(go test *)
  ask   tee log $(git push): tee may change something
        writes /w/log
        writes (cannot be told)
  deny    git push (substitution): rule:project:Bash(git push *)
`},
		{"timeout 5 go test ./... > out", `
verdict   ask
decided   mode:default
because   nothing allows timeout 5 go test ./...: it writes /w/out; the rule Edit(//w/out) would allow it
mode      default
command
  ask   timeout 5 go test ./...: it writes /w/out
        writes /w/out
  allow   go test ./... (wrapped): rule:project:Bash(go test *)
to allow it
  allow Edit(//w/out) (localSettings)
a person would be shown
  runs /usr/bin/timeout
  runs /usr/bin/go
  writes /w/out
`},
		{"@Read /etc/passwd", `
verdict   ask
decided   mode:default
because   /etc/passwd lies outside the working directories; the rule Read(//etc/passwd) would allow it
mode      default
to allow it
  allow Read(//etc/passwd) (session)
a person would be shown
  reads /etc/passwd, outside the working directories
`},
	} {
		got := "\n" + explain(t, p, c.call)
		want := strings.Replace(c.want, "        writes (cannot be told)\n", "        writes $(git push) (cannot be told)\n", 1)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.call, d)
		}
	}
}

func TestTest(t *testing.T) {
	t.Parallel()
	p := sample(t, "", "allow Bash(go test *)", "deny Bash(git push *)", "deny Read(.env)", "allow WebFetch(domain:go.dev)", "deny mcp__t__create")
	file := "\ufeff# ours\n\nallow go test ./...\ndeny\tgit push --force\nask make\ndeny @Read sub/.env\nallow @WebFetch https://go.dev/doc\ndeny @mcp__t__create {\"a\":1}\nask \"make\\nmake x\"\nallow make\nallow rm -rf ~\n"
	var b bytes.Buffer
	total, missed, err := Test(&b, p, strings.NewReader(file), "t.policy")
	if total != 9 || missed != 2 || err != nil {
		t.Errorf("total %d, missed %d, %v", total, missed, err)
	}
	want := `t.policy:10: want allow, got ask: make
  nothing allows make: make: only asking for its version changes nothing; the rule Bash(make) would allow it
t.policy:11: want allow, got ask: rm -rf ~
  it deletes /home/u, which is or holds the home directory
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, bad := range []string{"maybe x", "allow", "deny \"x", "ask @"} {
		if _, _, err := Test(&b, p, strings.NewReader("ask make\n"+bad), "t"); err == nil || !strings.HasPrefix(err.Error(), "t:2: ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	a := sample(t, "", "allow Bash(go test *)", "allow Bash(git *)")
	b := sample(t, "", "allow Bash(go test *)", "deny Bash(git push *)", "allow Bash(git *)", "allow Edit(gen/**)")
	var w bytes.Buffer
	differ, err := Diff(&w, a, b, []string{"git status && git push origin"})
	if !differ || err != nil {
		t.Error(differ, err)
	}
	want := `+ deny  Bash(git push *)  (.claude/settings.json:4)
+ allow Edit(gen/**)  (.claude/settings.json:6)
ask -> allow: @Edit gen/x/x
  before: nothing allows Edit here
  after:  allow rule Edit(gen/**), .claude/settings.json:6
allow -> deny: git push x
  before: allow rule Bash(git *), .claude/settings.json:4
  after:  deny rule Bash(git push *), .claude/settings.json:4
allow -> deny: git status && git push origin
  before: allow rule Bash(git *), .claude/settings.json:4
  after:  deny rule Bash(git push *), .claude/settings.json:4
`
	if d := cmp.Diff(want, w.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if differ, err := Diff(&w, a, a, nil); differ || err != nil {
		t.Error("a policy differs from itself", err)
	}
}
