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

func TestReadOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []string{
		"ls", "cat a b", "git status", "git -C sub log --oneline -5", "git diff HEAD~1 -- a.go", "git branch", "git branch -a", "git branch --show-current", "git tag -l 'v*'",
		"git remote -v", "git stash list", "git config --get user.name", "git worktree list", "git show HEAD:a.go", "git rev-parse --show-toplevel", "git blame a.go", "git grep x",
		"find . -name '*.go' -type f", "find . -maxdepth 2 | head", "grep -rn x . | sort | uniq -c", "sed -n '1,5p' a", "sed 's/a/b/g' a", "sed -e 1d -e '$p' a", "awk '{print $1}' a",
		"rg -n x", "sort -k2 -n a", "date +%s", "date -d yesterday", "file a", "tree -L 2", "node --version", "docker ps -a", "wc -l *.go", "cat *.go", "grep x *.go", "diff a b",
		"cd sub && git status && ls", "echo hi > /dev/null", "ls 2>&1 | head", "cat < a", "for f in a b; do cat $f; done", "for f in *.go; do wc -l \"$f\"; done", "if [ -f a ]; then cat a; fi",
		"timeout 5 ls", "nice -n 3 cat a", "echo \"$HOME\" $USER", "x=1; echo $x", "LANG=C ls", "true && false || :", "test -f a && echo yes", "jq .a b.json", "type ls", "command -v git",
		"(cd a && ls)", "{ ls; pwd; }", "! grep -q x a", "f() { ls; }; f", "printf '%s\\n' a", "set -e; ls", "export LANG=C; ls", "local=1; echo $local", "while read -r; do :; done < a && false || true",
		"sort src/*.go", "git diff src/*.go", "find src/* -name x", "ps aux | grep go", "xxd a | head", "uniq a", "stat a; du -sh .", "[ \"$a\" = b ]", "ls | xargs cat", "exit 1",
	} {
		want := !strings.Contains(c, "read -r")
		if got := ReadOnly(c, "/w"); got != want {
			t.Errorf("ReadOnly(%q) = %v: %s", c, got, Parse(c, testEnv).ReadOnly())
		}
	}
	for _, c := range []string{
		"rm a", "touch a", "git push", "git branch new", "git branch -d a", "git tag v1", "git stash", "git config a b", "git checkout a", "git -c x=y log", "git --git-dir=x log", "git log --output=a",
		"git diff --ext-diff", "git grep -O x", "git log --outp=a", "git remote add a b", "git diff --no-index a b", "git reflog expire", "git worktree add x", "git cat-file --textconv x",
		"find . -exec ls {} +", "find . -delete", "find . -fprintf a x", "find $x", "find *", "sort -o a b", "sort -ro a b", "sort --output=a b", "sort $x", "sort *", "sort --compress-program=x a",
		"sed -i s/a/b/ c", "sed --in-place s/a/b/ c", "sed -n 'w a' b", "sed s/a/b/e c", "sed 's/a/b/w x' c", "sed 1e a", "sed -f x a", "sed $x", "sed -ni p a", "sed 'r x;w y' a", "sed -s '1!G;h;$!w x' a",
		"awk '{print > \"a\"}' b", "awk 'BEGIN{system(\"x\")}'", "awk '\"x\" | getline' a", "awk -f x a", "awk $x", "awk -i inplace 1 a", "uniq a b", "xxd -r a", "tree -o a", "date -s x", "date 0101", "date --s=x",
		"file -C", "file -m x a", "rg --pre x a", "rg -z x", "fd -x a", "fd --exec a", "yq -i . a", "yq --in . a", "hostname x", "docker run x", "docker -H x ps", "docker ps --context x", "node x.js", "node -e 1",
		"ls > a", "ls >> a", "ls 2> a", "ls &> a", "{ ls; } > a", "ls | tee a", "xargs rm", "ls | xargs", "env ls", "sudo ls", "bash -c ls", "eval ls", "exec ls", "$x", "$(echo ls)", "./ls", "/tmp/ls", "ls; $x",
		"FOO=1 ls", "PATH=. ls", "alias ls=rm", "f() { rm a; }; f", "g; g() { ls; }", "if x; then f() { ls; }; fi; f", "export FOO=1", "declare -x A=1", "source a", ". a", "man ls", "man -P x ls", "less a", "vim a",
		"tar tf a", "tar xf a", "cargo --version", "go version", "go test", "npm test", "yarn --version", "make", "curl x", "wget x", "time -o a ls; /usr/bin/time -o a ls", "nohup rm a", "cat <(rm a)", "echo `rm a`", "test -v 'a[$(b)]'",
		"diff --paginate a b", "diff -l a b", "set -x", "PS4=x", "cd a; PATH=b ls", "trap ls EXIT", "kill 1", "ls &\nrm a", "printf -v x y", "printf \"$x\"", "read x", "unset x",
	} {
		if ReadOnly(c, "/w") {
			t.Errorf("ReadOnly(%q) = true", c)
		}
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

func TestPaths(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ src, want string }{
		{"cat a /b ../c ~/d", "reads /w/a, reads /b, reads /w/../c, reads /h/d"},
		{"cat '~' \"$x\" a*", "reads /w/~, reads ?, reads /w/. [a*]"},
		{"head -n 5 a", "reads /w/5, reads /w/a"},
		{"grep -f /p x a", "reads /p, reads /w/x, reads /w/a"},
		{"grep -e x a --include=*.go", "reads /w/a"},
		{"grep --file=/p a", "reads /w/a, reads /p"},
		{"grep -r x", "reads /w/. tree"},
		{"rg x sub", "reads /w/sub tree"},
		{"sed -i s/a/b/ c", "reads /w/c, writes /w/c"},
		{"touch a; mkdir -p b/c", "writes /w/a, writes /w/b/c"},
		{"rm -rf a b", "deletes /w/a tree, deletes /w/b tree"},
		{"rm -f a", "deletes /w/a"},
		{"rm -rf -- -a", "deletes /w/-a tree"},
		{"rm -rf *.o x/*", "deletes /w/./*.o [*.o] tree, deletes /w/x/ [*] tree"},
		{"rm $x a", "deletes ? tree, deletes /w/a tree"},
		{"rm \"$x\"", "deletes ?"},
		{"mv a b", "reads /w/a, deletes /w/a, writes /w/b/a, writes /w/b"},
		{"cp -t d a", "reads /w/a, writes /w/d/a, writes /w/d"},
		{"cp -r a b", "reads /w/a tree, writes /w/b/a tree, writes /w/b tree"},
		{"echo x > a 2>> b < c", "writes /w/a, writes /w/b, reads /w/c"},
		{"echo > $x", "writes ?"},
		{"ls > /dev/null 2>&1", ""},
		{"find . /b -name x -delete", "reads /w/., deletes /w/. tree some, reads /b, deletes /b tree some"},
		{"find a -exec rm {} +", "reads /w/a tree, deletes /w/a tree, deletes ?"},
		{"git clean -fdx", "deletes /w/. tree"},
		{"git clean -n", ""},
		{"git -C /x status", "enters /x"},
		{"dd if=/a of=b", "reads /a, writes /w/b"},
		{"curl -o a -T b u", "writes /w/a, reads /w/b"},
		{"sort -o a b", "reads /w/a, reads /w/b, writes /w/a"},
		{"tee a b", "writes /w/a, writes /w/b"},
		{"for f in a b; do cat $f.go; done", "reads /w/a.go /w/b.go"},
		{"for f in *.go; do cat \"$f\"; done", "reads /w/. [*.go]"},
		{"for f in a $x; do cat $f; done", "reads ?"},
		{"for f in a b; do f=/etc; cat $f; done", "reads ?"},
		{"for f in a b; do read f; cat $f; done", "reads ?"},
		{"for f in 'a b' c; do rm $f; done", "deletes ? tree"},
		{"for f in '-rf' c; do rm $f /x; done", "deletes /w/-rf /w/c tree, deletes /x tree"},
		{"ls | xargs rm -rf", "deletes ? tree"},
		{"cd sub && cat x", "enters /w/sub, reads /w/sub/x"},
		{"rsync -a --delete a b", "reads /w/a tree, writes /w/b/a tree, writes /w/b tree, deletes /w/b tree"},
		{"test -f /x && [ -d y ]", "reads /x, reads /w/y"},
		{"uniq a b", "reads /w/a, reads /w/b, writes /w/b"},
	} {
		s := Parse(c.src, testEnv)
		var got []string
		for _, k := range s.Commands {
			for _, p := range s.Paths(k) {
				text := p.Access.String() + " " + strings.Join(p.Abs, " ")
				if p.Abs == nil {
					text += "?"
				}
				if p.Pattern != "" {
					text += " [" + p.Pattern + "]"
				}
				if p.Tree {
					text += " tree"
				}
				if p.Some {
					text += " some"
				}
				got = append(got, text)
			}
		}
		if g := strings.Join(got, ", "); g != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.src, g, c.want)
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
		Parse(typical[i%len(typical)], testEnv).ReadOnly()
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
		Parse(long, testEnv).ReadOnly()
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
		why := s.ReadOnly()
		for _, c := range s.Commands {
			for _, p := range s.Paths(c) {
				for _, a := range p.Abs {
					if !strings.HasPrefix(a, "/") {
						t.Fatalf("%q: the path %q is not absolute", src, a)
					}
				}
			}
			if c.Parent != nil && c.Depth() != c.Parent.Depth()+1 {
				t.Fatalf("%q: wrong depth", src)
			}
			if why == "" && (c.Opaque != "" || len(c.Argv) > 0 && !c.Argv[0].Known) {
				t.Fatalf("%q is read-only with %q", src, c.Opaque)
			}
		}
	})
}
