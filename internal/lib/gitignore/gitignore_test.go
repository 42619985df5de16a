package gitignore

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tree is every path of the work trees below; a trailing slash is a directory.
var tree = []string{
	"a", "b.log", "ab", "a.b", "[a]", "a]b", "-", "!", "!a", "#a", "a ", "a  ", ".hid", "A", "é.txt", "1", "a*b", `a\b`, "foo", "tail\r",
	"d/", "d/a", "d/b.log", "d/foo", "d/foo.txt", "d/e/", "d/e/a", "d/e/foo", "d/e/b.log", "d/e/f/", "d/e/f/a", "d/e/f/foo",
	"foo.d/", "foo.d/bar", "foo.d/x/", "foo.d/x/bar", "foobar/", "foobar/a", "foobar/bar", "node_modules/", "node_modules/p/", "node_modules/p/a",
	"x/", "x/foo/", "x/foo/bar", "x/foo/a", "x/y/", "x/y/foo/", "x/y/foo/bar", ".d/", ".d/a", "b/", "b/a", "b/d/", "b/d/e/", "b/d/e/a",
}

// patterns are single lines; each is a .gitignore of its own.
var patterns = []string{
	"a", "/a", "a/", "/a/", "*", "/*", "**", "/**", "**/", "*/", "!a", "d", "d/", "/d", "/d/", "d/*", "d/**", "/d/**", "d/*/", "d/**/",
	"**/a", "**/foo", "**/foo/", "foo/**", "foo/", "foo", "d/**/a", "d/**/foo", "d/**/**/foo", "**/e/**", "x/**/bar", "x/*/bar", "**/foo/bar",
	"*.log", "/*.log", "d/*.log", "**/*.log", "**.log", "d/**.log", "?", "??", "[a]", "[!a]", "[^a]", "[a-b]", "[!a-b].log", "a[", "a[b", "[]a]b", "[]", "a]b",
	`\[a]`, `\[a\]`, "[[]a]", "[a-]", "[-a]", "[]-]", `a\*b`, `a\\b`, `a\`, `\a`, `\!a`, `\#a`, "#a", `\!`, "!", "!!a", "a ", `a\ `, `a \ `, `a\  `, "a  ",
	"[[:alpha:]]", "[[:upper:]]", "[[:digit:]]", "[[:nope:]]", "[[:alpha:]", "[[:alpha]", "[[:alnum:]-]", "[![:alpha:]]", "[[:space:]]", "a[[:space:]]", "a[[:blank:]]",
	"foo*", "foo*/", "foo**", "foo**/bar", "foo**/", "foo*/bar", "*foo", "**foo", "*o*", "f*o", "f**o", "foo.?", "foo.d/**/bar", "foo//bar", "foo.d//bar", "//a", "a//", "./a", "d/./a", "d/../a", "../a",
	"é.txt", "?.txt", "??.txt", "[é].txt", ".*", ".*/", ".hid", "*.b", "a.*", "a?b", "a[!x]b", "a[/]b", "d[/]a", "d?a", "d*a", "d**a", "*/a", "*/*/a", "**/**/a", "*/**/a", "d/e/f/**", "d/e/**/f", "d/e/**f", "d/e/f**",
	"node_modules", "node_modules/", "/node_modules/*", "node_modules/p", "b/d/e/a", "/b/d", "d/e", "e", "e/", "**/d/e", "**/d/**", "b/**/a", "[a-", "[a-]]", "[z-a]", `[\a]`, `[\]]`, `[a\]]b`, "[a-c-e]", "[!!]", "[^!]", "[!^]", "[*]", "a[*]b", "[?]", "**a**", "***", "a***b", "d/***/a", "d/***", "*/", "\t", "a\t", " a", "tail", "tail\r\r",
}

func TestAgainstGit(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	files := make([]map[string]string, 0, 600)
	for _, p := range patterns {
		files = append(files, map[string]string{"": p + "\n"})
		files = append(files, map[string]string{"": p + "\r\n!d/\n!a", "d": "!" + p + "\n"})
	}
	files = append(files,
		map[string]string{"": "*.log\n", "d": "!b.log\n", "d/e": "*.log\n"},
		map[string]string{"": "d/\n", "d": "!a\n!*\n"},
		map[string]string{"": "\xef\xbb\xbfa\n\n#x\n  \n!d/a\n"},
		map[string]string{"": "/*\n!/d\n/d/*\n!/d/e\n", "x": "*\n!y/\n"},
	)
	r := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		files = append(files, map[string]string{"": randomPatterns(r), "d": randomPatterns(r), "x": randomPatterns(r)})
	}
	pairs := g.compare(t, files)
	t.Logf("%d sets of ignore files, %d pairs", len(files), pairs)
	if pairs < 2000 {
		t.Errorf("compared %d pairs, want at least 2000", pairs)
	}
}

func randomPatterns(r *rand.Rand) string {
	pieces := []string{"*", "**", "/", "/", "?", "a", "b", "d", "e", "f", "foo", "bar", ".log", "[a-e]", "[!d]", "!", "x", "y", `\`, "[", "]", " ", "**/", "/**"}
	var b strings.Builder
	for range r.IntN(5) {
		for range 1 + r.IntN(5) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

type git struct {
	dir   string
	paths []string
	isDir map[string]bool
}

func newGit(t *testing.T) *git {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("git is not installed")
		}
		t.Skip("git is not installed")
	}
	g := &git{dir: t.TempDir(), isDir: map[string]bool{}}
	for _, p := range tree {
		name, isDir := strings.CutSuffix(p, "/")
		g.paths = append(g.paths, name)
		g.isDir[name] = isDir
	}
	g.run(t, nil, "init", "-q")
	return g
}

func (g *git) run(t *testing.T, stdin []byte, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_DIR="+filepath.Join(g.dir, ".git"), "GIT_WORK_TREE="+g.dir)
	cmd.Stdin = bytes.NewReader(stdin)
	out, err := cmd.Output()
	if err != nil {
		// check-ignore exits 1 when nothing is ignored.
		if x, ok := err.(*exec.ExitError); !ok || x.ExitCode() != 1 || len(x.Stderr) > 0 {
			t.Fatalf("git %v: %v", args, err)
		}
	}
	return out
}

// compare gives each set of ignore files a tree of its own, so that one run
// of git answers for all. Only directories need to exist for that.
func (g *git) compare(t *testing.T, sets []map[string]string) (pairs int) {
	t.Helper()
	var ask strings.Builder
	for i, files := range sets {
		for _, p := range g.paths {
			full := filepath.Join(g.dir, fmt.Sprint(i), p)
			if g.isDir[p] {
				if err := os.MkdirAll(full, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			fmt.Fprintf(&ask, "%d/%s\x00", i, p)
		}
		for dir, text := range files {
			if err := os.WriteFile(filepath.Join(g.dir, fmt.Sprint(i), dir, FileName), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	out := g.run(t, []byte(ask.String()), "check-ignore", "--no-index", "-z", "--stdin")
	want := map[string]bool{}
	for p := range strings.SplitSeq(string(out), "\x00") {
		want[p] = true
	}
	for i, files := range sets {
		repo := Open(os.DirFS(filepath.Join(g.dir, fmt.Sprint(i))))
		for _, p := range g.paths {
			pairs++
			if got, want := repo.Ignored(p, g.isDir[p]), want[fmt.Sprintf("%d/%s", i, p)]; got != want {
				t.Errorf("%s\nIgnored(%q, %v) = %v, git says %v", show(files), p, g.isDir[p], got, want)
			}
		}
	}
	return pairs
}

func show(files map[string]string) string {
	var s []string
	for dir, text := range files {
		s = append(s, fmt.Sprintf("%s: %q", filepath.Join(dir, FileName), text))
	}
	return strings.Join(s, "\n")
}

func TestLists(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte("!keep.tmp\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := Open(os.DirFS(dir), Parse("", []byte("*.tmp\n!b.o\n")), Parse("", []byte("*.o\n")))
	for name, want := range map[string]bool{"a.tmp": true, "keep.tmp": false, "a.o": true, "b.o": false, "c": false} {
		if got := r.Ignored(name, false); got != want {
			t.Errorf("Ignored(%q) = %v, want %v", name, got, want)
		}
	}
}

// Many stars must not take exponential time.
func TestManyStars(t *testing.T) {
	t.Parallel()
	l := Parse("", []byte(strings.Repeat("*a", 40)+"b\n**/"+strings.Repeat("**/*a", 12)+"b\n"))
	if v := l.Match(strings.Repeat("a", 200)+"/"+strings.Repeat("a", 200), false); v != None {
		t.Errorf("got %v, want no match", v)
	}
}

func FuzzParse(f *testing.F) {
	for _, p := range []string{"d/**/foo", `[]a-\]*`, "!**/e/", "[[:alpha:]", `a\ `} {
		f.Add(p, "d/e/foo")
	}
	f.Fuzz(func(t *testing.T, data, name string) {
		if len(data) > 200 || len(name) > 200 {
			return
		}
		l := Parse("d", []byte(data))
		l.Match(name, false)
		l.Match(name, true)
	})
}
