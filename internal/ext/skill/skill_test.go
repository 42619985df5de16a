package skill

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestArguments(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, body, args string
		names            []string
		want             string
	}{
		{name: "all", body: "say $ARGUMENTS now", args: "a  b", want: "say a  b now"},
		{name: "by index from 0", body: "$0 and $1, $2", args: `one "two words"`, want: "one and two words, $2"},
		{name: "bracketed", body: "$ARGUMENTS[1]/$ARGUMENTS[7]", args: "a b", want: "b/$ARGUMENTS[7]"},
		{name: "named", body: "$num of $base, $basement", args: "12 main", names: []string{"num", "base"}, want: "12 of main, $basement\n\nARGUMENTS-FREE"},
		{name: "named but missing", body: "[$num][$base]", args: "12", names: []string{"num", "base"}, want: "[12][]"},
		{name: "escaped", body: `\$1 \\$0`, args: "x y", want: `$1 \x`},
		{name: "not named", body: "do it", args: "fast", want: "do it\n\nARGUMENTS: fast"},
		{name: "no arguments", body: "do it $ARGUMENTS.", want: "do it ."},
		{name: "placeholder", body: "in ${CLAUDE_SKILL_DIR}/x ${UNKNOWN}", want: "in /s/x ${UNKNOWN}"},
		{name: "price", body: "costs $ 5 and $five", want: "costs $ 5 and $five"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := Invocation{Skill: Skill{Body: tt.body, Arguments: tt.names, Dir: "/s"}, Args: tt.args}
			got, err := v.Render(t.Context())
			if want := strings.TrimSuffix(tt.want, "\n\nARGUMENTS-FREE"); err != nil || got != want {
				t.Errorf("got %q, %v want %q", got, err, want)
			}
		})
	}
}

func TestInjection(t *testing.T) {
	t.Parallel()
	body := "Diff:\n!`git diff $0`\nand a!`b` stays\n```\n!`in code`\n```\n```!\none\ntwo\n```\nend !`x`"
	var ran []string
	v := Invocation{Skill: Skill{Body: body, Allow: []string{"Bash(git diff *)"}}, Args: "HEAD", Run: func(_ context.Context, c string, allow []string) (string, error) {
		ran = append(ran, c)
		return "<!`" + c + "`>\n", nil
	}}
	got, err := v.Render(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := "Diff:\n<!`git diff HEAD`>\nand a!`b` stays\n```\n!`in code`\n```\n<!`one\ntwo`>\nend <!`x`>"
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if d := cmp.Diff([]string{"git diff HEAD", "one\ntwo", "x"}, ran); d != "" {
		t.Error(d)
	}
	v.Run = func(context.Context, string, []string) (string, error) { return "", errors.New("no") }
	if _, err := v.Render(t.Context()); !errors.Is(err, errInjection) {
		t.Errorf("a failed command ends the invocation, got %v", err)
	}
	v.Run = nil
	if got, err := v.Render(t.Context()); err != nil || strings.Count(got, "disabled by policy") != 3 {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestDiscover(t *testing.T) {
	t.Parallel()
	fsys := fstest.MapFS{
		"p/.claude/skills/pack/SKILL.md":   {Data: []byte("---\nname: Packing\ndescription: How to pack\nallowed-tools: Bash(git log *) Read\n---\nbody")},
		"p/.claude/skills/broken/SKILL.md": {Data: []byte("---\nname: [x\n - y\n---\nstill here")},
		"p/.claude/skills/empty/readme.md": {Data: []byte("x")},
		"p/.claude/commands/git/pack.md":   {Data: []byte("hidden by the skill")},
		"p/.claude/commands/git/greet.md":  {Data: []byte("\ufeff---\ndescription: Greets\nargument-hint: [who]\n---\nhello $ARGUMENTS")},
		"u/commands/greet.md":              {Data: []byte("the user's")},
	}
	ss, ps := Discover([]Place{
		{FS: fsys, Dir: "u/commands", Path: "/u/commands", Source: "user", Command: true},
		{FS: fsys, Dir: "p/.claude/skills", Path: "/p/.claude/skills", Source: "project"},
		{FS: fsys, Dir: "p/.claude/commands", Path: "/p/.claude/commands", Source: "project", Command: true},
		{FS: fsys, Dir: "nowhere", Path: "/nowhere", Source: "project"},
	})
	var got []string
	for _, s := range ss {
		got = append(got, s.Name+"|"+s.Source+"|"+s.Description+"|"+s.Hint+"|"+strings.Join(s.Allow, ","))
	}
	want := []string{"broken|project|still here||", "pack|project|How to pack||Bash(git log *),Read", "greet|user|the user's||"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if len(ps) != 1 || ps[0].File != "/p/.claude/skills/broken/SKILL.md" {
		t.Errorf("problems: %v", ps)
	}
}

func TestListing(t *testing.T) {
	t.Parallel()
	ss := []Skill{{Name: "a", Description: "first"}, {Name: "b", Description: "second one"}, {Name: "h", Description: "x", Hidden: true}, {Name: "c", Description: "third"}}
	got, dropped := Listing(ss, Budget{})
	if want := "- a: first\n- b: second one\n- c: third"; got != want || dropped != 0 {
		t.Errorf("got %q, %d want %q", got, dropped, want)
	}
	got, dropped = Listing(ss, Budget{Total: 34, Uses: map[string]int{"c": 3}})
	if want := "- a: first\n- b\n- c: third"; got != want || dropped != 1 {
		t.Errorf("got %q, %d want %q", got, dropped, want)
	}
}
