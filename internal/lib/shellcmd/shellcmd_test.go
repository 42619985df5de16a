package shellcmd

import (
	"fmt"
	"strings"
	"testing"
)

var testEnv = Env{Dir: "/w", Home: "/h"}

// programs lists the commands of s: depth, role, text.
func programs(s *Script) string {
	var b strings.Builder
	for i, c := range s.Commands {
		if i > 0 {
			b.WriteString(" | ")
		}
		b.WriteString(strings.Repeat(">", c.Depth()))
		for k, w := range c.Argv {
			if k > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(w.Canonical())
		}
		if len(c.Argv) == 0 {
			b.WriteByte('-')
		}
	}
	return b.String()
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ src, want string }{
		{"ls -la", "ls -la"},
		{`git diff --stat | grep -E '\.(md|mdx)'`, `git diff --stat | grep -E '\.(md|mdx)'`},
		{"a; b && c || d & e", "a | b | c | d | e"},
		{`\rm "x y" r""m $'\x61\n'`, "rm 'x y' rm 'a\n'"},
		{"echo $(a `b`) <(c) ${x:-$(d)} \"$(e)\"", "echo $(a `b`) <(c) ${x:-$(d)} \"$(e)\" | >a `b` | >>b | >c | >d | >e"},
		{"cat <<E\n$(a)\nE", "cat | >a"},
		{"cat <<'E'\n$(a)\nE", "cat"},
		{"cat <<\\E\n$(a)\nE\nb", "cat | b"},
		{"f() { a; }; f", "a | f"},
		{"X=$(a) b c", "b c | >a"},
		{"X=1", "-"},
		{"> out", "-"},
		{"{ a; } > out", "- | a"},
		{"timeout -k 5 10 a b", "timeout -k 5 10 a b | >a b"},
		{"nice -5 a", "nice -5 a | >a"},
		{"env -i X=1 -u Y a", "env -i X=1 -u Y a | >a"},
		{"sudo -u root X=1 a -b", "sudo -u root X=1 a -b | >a -b"},
		{"xargs -n 1 -I{} a {} b", "xargs -n 1 '-I{}' a '{}' b | >a {} b"},
		{"find . -exec a {} \\; -o -exec b {} +", "find . -exec a '{}' ';' -o -exec b '{}' + | >a {} | >b {}"},
		{"bash -c 'a; b' x", "bash -c 'a; b' x | >a | >b"},
		{"bash -o pipefail -ec \"a | b\"", "bash -o pipefail -ec 'a | b' | >a | >b"},
		{"eval a 'b; c'", "eval a 'b; c' | >a b | >c"},
		{"bash <<< 'a b'", "bash | >a b"},
		{"bash -s <<'E'\na\nb\nE", "bash -s | >a | >b"},
		{"trap 'a' EXIT", "trap a EXIT | >a"},
		{"{a,b} x{1..3}", "a b x1 x2 x3"},
		{"time a | b", "a | b"},
		{"command -v a", "command -v a"},
		{"export X=$(a) Y", "export X=$(a) Y | >a"},
		{"if a; then b; elif c; then d; else e; fi", "a | b | c | d | e"},
		{"for i in $(a); do b; done", ">a | b"},
		{"case $(a) in $(b)) c;; esac", ">a | >b | c"},
		{"[[ -n $(a) && x =~ $(b) ]]", ">a | >b"},
		{"exec a b", "exec a b | >a b"},
		{"(cd x; a) 2>&1", "- | cd x | a"},
	} {
		s := Parse(c.src, testEnv)
		// Substitutions outside any command have no holder, so no depth.
		want := strings.NewReplacer("for i in", "").Replace(c.want)
		if strings.HasPrefix(c.src, "for") || strings.HasPrefix(c.src, "case") || strings.HasPrefix(c.src, "[[") {
			want = strings.ReplaceAll(want, ">", "")
		}
		if got := programs(s); got != want || s.Problem != "" {
			t.Errorf("%q:\n got %s\nwant %s\n%s", c.src, got, want, s.Problem)
		}
	}
}

func TestUntrusted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ src, want string }{
		{"a (", "not valid bash: 1:1: "},
		{"a\rb", "contains control characters"},
		{"a\\\nb", "a line ends with a backslash inside a word"},
		{"a \\\n b", ""},
		{"echo ${!x}", "an indirect expansion"},
		{"echo ${!x@} ${!a[@]}", ""},
		{`echo "${v@P}"`, "an expansion that evaluates the value again"},
		{`echo "${v@Q}"`, ""},
		{"echo $((x))", "arithmetic over a value that is not known: x"},
		{"x=1; echo $((x+2)) $(( ${#y} * 3 ))", ""},
		{"x=$y; echo $((x))", "arithmetic over a value that is not known: x"},
		{"x=1; read x; echo $((x))", "arithmetic over a value that is not known: x"},
		{"for x in 1 2; do echo $((x)); done", ""},
		{"for x in 1 a; do echo $((x)); done", "arithmetic over a value that is not known: x"},
		{"for ((i=0;i<3;i++)); do echo $i; done", ""},
		{"[[ $x -eq 1 ]]", "arithmetic over a value that is not known: $x"},
		{"[[ $x == 1 ]]", ""},
		{"echo ${a[$(b)]}", "arithmetic over a value that is not known: $(b)"},
		{"echo ${a[@]} ${a[0]}", ""},
		{"echo `a \\`b\\``", "backslashes inside backquotes"},
		{"PATH=/x; ls", "assigns PATH, which changes how commands run"},
		{"x=1; FILES=2; ls", "assigns FILES, which other programs may see"},
		{"IFS=x; ls", "assigns IFS, which changes how commands run"},
		{"echo ${PATH:=x}", "assigns PATH, which changes how commands run"},
		{"for PATH in x; do ls; done", "assigns PATH, which changes how commands run"},
		{"exec {fd}>x", "a redirection that assigns a variable"},
		{"echo *(x)", "an extended pattern"},
		{"coproc a", "a coprocess"},
		{"[ $x ]", "a test that may evaluate a subscript"},
		{"[ -n \"$x\" ] && test \"$a\" = \"$b\"", ""},
		{"printf -v 'a[$(b)]' x", "printf may assign a variable"},
		{"printf '%s' x", ""},
		{"unset 'a[$(b)]'", "unset may evaluate a subscript"},
		{"declare -i x=y", "a declaration that evaluates what it assigns"},
		{"set -x", "set may change how the shell reads commands"},
		{"set -euo pipefail", ""},
		{"echo " + strings.Repeat("x", Trusted), "longer than 10,000 characters"},
	} {
		got := Parse(c.src, testEnv).Untrusted()
		if got != c.want && !(c.want != "" && strings.HasPrefix(c.want, "not valid") && strings.HasPrefix(got, c.want)) {
			t.Errorf("%.60q: got %q, want %q", c.src, got, c.want)
		}
	}
	e := testEnv
	e.Exported = func(name string) bool { return name == "low" }
	if got := Parse("FILES=1; low=2", e).Untrusted(); got != "assigns low, which other programs may see" {
		t.Errorf("with a known environment: %q", got)
	}
}

func TestDirs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ src, want string }{
		{"cd a && x", "[/w/a]"},
		{"cd a; x", "[/w/a /w]"},
		{"cd a || x", "[/w]"},
		{"cd a && cd .. && x", "[/w]"},
		{"cd /b && x", "[/b]"},
		{"cd && x", "[/h]"},
		{"cd ~/c && x", "[/h/c]"},
		{"cd $y && x", "[]"},
		{"cd - && x", "[]"},
		{"(cd a); x", "[/w]"},
		{"cd a | cat; x", "[/w]"},
		{"cd a & x", "[/w]"},
		{"if cd a; then x; fi", "[/w/a]"},
		{"! cd a && x", "[/w]"},
		{"for i in 1 2; do cd a; x; done", "[]"},
		{"while :; do c\\d a; x; done", "[]"},
		{"f() { cd a; }; f; x", "[]"},
		{"f() { ls; }; f; x", "[/w]"},
		{"pushd a; x", "[]"},
		{"eval 'cd a'; x", "[]"},
		{"command cd a && x", "[/w/a]"},
		{"{ cd a; } && x", "[/w/a]"},
		{"{ cd a; ls; } && x", "[/w/a /w]"},
		{"cd a* && x", "[]"},
		{"$y; x", "[]"},
		{"case y in a) cd b;; *) :;; esac; x", "[/w /w/b]"},
		{"bash -c 'cd a'; x", "[/w]"},
	} {
		s := Parse(c.src, testEnv)
		got := "none"
		for _, k := range s.Commands {
			if k.Program() == "x" {
				got = fmt.Sprint(k.Dirs)
			}
		}
		if got != c.want {
			t.Errorf("%q: got %s, want %s", c.src, got, c.want)
		}
	}
}

var typical = []string{
	"git status", "go test ./... 2>&1 | tail -20", `cd sub && git log --oneline -5 && grep -rn "func main" --include='*.go' .`,
	"npm run build && npm test -- --watch=false", `for f in *.go; do wc -l "$f"; done`,
}

func BenchmarkParseTypical(b *testing.B) {
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		Parse(typical[i%len(typical)], testEnv).Untrusted()
	}
}

func BenchmarkParseLong(b *testing.B) {
	var s strings.Builder
	for i := 0; s.Len() < 9900; i++ {
		fmt.Fprintf(&s, "grep -n 'p%d' src/file%d.go | head -%d && echo \"$(date) $X\"; ", i, i, i)
	}
	long := s.String()[:strings.LastIndexByte(s.String(), ';')]
	b.ReportAllocs()
	for b.Loop() {
		Parse(long, testEnv).Untrusted()
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range typical {
		f.Add(s)
	}
	for _, s := range []string{
		"a $(b `c` <(d)) ${x:-$((y[$(z)]))} {a,b}{1..3}", "cat <<E\n$(a)\nE", "bash -c 'eval \"a\"'", "for f in *; do rm -rf \"$f\"; done",
		"find . -exec sh -c 'a {}' \\;", "sudo -u x env -i A=1 timeout 5 xargs -I% rm %", "$'\\x41\\u1234' \"${v@P}\"", "case $x in a) b;& *) c;; esac", "[ -v 'a[$(b)]' ] && [[ x -eq y ]]",
		"sed -n -e '1,/x/!s/a\\/b/c/gp;w f' a", "printf %n x", "git -C a -c b=c log --outp", "((((((((((", "a\\\nb \\\n c", "{{{a,b},c},d}", "x() { x; }; x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		s := Parse(src, testEnv)
		s.Untrusted()
		for _, c := range s.Commands {
			for _, d := range c.Dirs {
				if !strings.HasPrefix(d, "/") {
					t.Fatalf("%q: the directory %q is not absolute", src, d)
				}
			}
			if c.Parent != nil && c.Depth() != c.Parent.Depth()+1 {
				t.Fatalf("%q: wrong depth", src)
			}
		}
	})
}
