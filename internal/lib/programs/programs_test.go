package programs

import (
	"strings"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/lib/shellcmd"
)

var testEnv = shellcmd.Env{Dir: "/w", Home: "/h"}

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
			t.Errorf("ReadOnly(%q) = %v: %s", c, got, ScriptChanges(shellcmd.Parse(c, testEnv)))
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
		{"find . -name a | head -3 | xargs grep x", "reads /w/., reads /w/. tree, reads /w/. tree"},
		{"find /b | xargs cat", "reads /b, reads /b tree, reads /w/. tree"},
		{"rg -l x | xargs wc", "reads /w/. tree, reads /w/. tree, reads /w/. tree"},
		{"git ls-files | grep -v x | xargs head", "reads /w/. tree"},
		{"echo /etc/passwd | xargs cat", "reads ?"},
		{"find . | (cat /x; cat) | xargs cat", "reads /w/., reads /x, reads ?"},
		{"find . | sed s/a/b/ | xargs cat", "reads /w/., reads ?"},
		{"find . -printf /etc/passwd | xargs cat", "reads /w/., reads ?"},
		{"find . | xargs rm", "reads /w/., deletes ?"},
		{"cat $(find .) | xargs cat", "reads ?, reads /w/., reads ?"},
		{"cd sub && cat x", "enters /w/sub, reads /w/sub/x"},
		{"rsync -a --delete a b", "reads /w/a tree, writes /w/b/a tree, writes /w/b tree, deletes /w/b tree"},
		{"test -f /x && [ -d y ]", "reads /x, reads /w/y"},
		{"uniq a b", "reads /w/a, reads /w/b, writes /w/b"},
	} {
		s := shellcmd.Parse(c.src, testEnv)
		var got []string
		for _, k := range s.Commands {
			for _, p := range Paths(s, k) {
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

func FuzzPrograms(f *testing.F) {
	for _, s := range []string{
		"find . -exec sh -c 'a {}' \\;", "for f in *; do rm -rf \"$f\"; done", "sed -n -e '1,/x/!s/a\\/b/c/gp;w f' a", "git -C a -c b=c log --outp", "printf %n x",
		"awk -F: '{print}' a", "cp -t d a", "rg -f /p x", "date -s", "tar xf a", "test -f a -a b", "curl -o a -d @b u", "git clean -fd", "uniq a b", "grep -e", "find", "sed", "cd --",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		s := shellcmd.Parse(src, testEnv)
		why := ScriptChanges(s)
		for _, c := range s.Commands {
			for _, p := range Paths(s, c) {
				for _, a := range p.Abs {
					if !strings.HasPrefix(a, "/") {
						t.Fatalf("%q: the path %q is not absolute", src, a)
					}
				}
				if why == "" && p.Access >= Writes {
					t.Fatalf("%q is read-only and %s %s", src, p.Access, p.Text)
				}
			}
			if why == "" && (c.Opaque != "" || len(c.Argv) > 0 && !c.Argv[0].Known) {
				t.Fatalf("%q is read-only with %q", src, c.Opaque)
			}
		}
	})
}
