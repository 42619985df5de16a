package glob

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern  string
		yes, not []string
	}{
		{"*.go", []string{"a.go", ".a.go", ".go"}, []string{"d/a.go", "a.gox"}},
		{"**/*.go", []string{"a.go", "d/a.go", "d/e/a.go", ".d/a.go"}, []string{"a.c"}},
		{"src/**", []string{"src/a", "src/a/b", "src"}, []string{"a/src"}},
		{"a/**/b", []string{"a/b", "a/x/b", "a/x/y/b"}, []string{"ab", "a/bb"}},
		{"a/**/**/b", []string{"a/b", "a/x/b"}, nil},
		{"{a,b}.{c,d{1,2}}", []string{"a.c", "b.d1", "a.d2"}, []string{"a.d"}},
		{"{src/a,lib}/*.go", []string{"src/a/x.go", "lib/x.go"}, []string{"src/x.go"}},
		{"{a}.go", []string{"{a}.go"}, []string{"a.go"}},
		{"a{b", []string{"a{b"}, []string{"ab"}},
		{`\{a,b\}`, []string{"{a,b}"}, []string{"a"}},
		{"[a-c]x", []string{"ax", "bx", "[a-c]x"}, []string{"dx"}},
		{"[!a]x", []string{"bx"}, []string{"ax"}},
		{"[[:digit:]]", []string{"1"}, []string{"a"}},
		{"app/[id]/*.tsx", []string{"app/[id]/p.tsx", "app/i/p.tsx"}, []string{"app/id/p.tsx"}},
		{"app/[[...slug]]/page.tsx", []string{"app/[[...slug]]/page.tsx"}, nil},
		{"[id]*.ts", []string{"[id].ts", "[id]x.ts", "ix.ts"}, []string{"x.ts"}},
		{"a[", []string{"a["}, []string{"a"}},
		{`a\*b`, []string{"a*b"}, []string{"axb", `a\*b`}},
		{"?", []string{"é", "x"}, []string{"", "xx"}},
		{"/etc/*", []string{"/etc/x"}, []string{"etc/x"}},
		{"./a//b", []string{"a/b"}, nil},
		{"*a*b*c", []string{"abc", "xaybzc", "aabbcc"}, []string{"acb", "ab"}},
	} {
		p, err := Compile(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, y := range c.yes {
			if !p.Match(y) {
				t.Errorf("%q does not match %q", c.pattern, y)
			}
		}
		for _, n := range c.not {
			if p.Match(n) {
				t.Errorf("%q matches %q", c.pattern, n)
			}
		}
	}
}

// Without brackets that spell a name, and malformed patterns, the answers are doublestar's.
func TestAgainstDoublestar(t *testing.T) {
	t.Parallel()
	patterns := []string{
		"*", "**", "**/*", "*/**", "a", "a/*", "a/**", "**/a", "**/a/**", "a/**/b", "*.x", "**/*.x", "a?", "?a", "a*b", "*a*", "a/*/c", "a/?/c",
		"{a,b}", "{a,b}/*", "{a,b/c}/**", "a{,b}", "{*.x,*.y}", "**/{a,b}", "[ab]", "[!ab]", "[a-z]*", "a[0-9]", "[^a]/b", `a\?`, `\a`, "a**b", "**a", "a**", "***", "a/**/*/b",
	}
	names := []string{"a", "b", "ab", "aab", "a.x", "b.y", "a/a", "a/b", "a/b/c", "a/x/c", "b/c/d", "x/a", "x/y/a", "x/y/a/z", "a1", "a?", "a/q/r/b", "é", "é/b", ".a", "x/.a.x"}
	for _, pt := range patterns {
		p, err := Compile(pt)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			want, err := doublestar.Match(pt, n)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Match(n); got != want {
				t.Errorf("%q on %q: got %v, doublestar says %v", pt, n, got, want)
			}
		}
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string][]string{
		"*.go":               {""},
		"a.go":               {""},
		"src/*.go":           {"src"},
		"src/a/b.go":         {"src/a"},
		"../x/**/*.go":       {"../x"},
		"/etc/{a,b}/*":       {"/etc/a", "/etc/b"},
		"/*":                 {"/"},
		"{src,../up}/*.go":   {"src", "../up"},
		"app/[id]/x.tsx":     {"app"},
		"./src/./*":          {"src"},
		`a\*b/*`:             {"a*b"},
		"{a,b}.go":           {"", ""},
		"*/../../etc/passwd": {""},
	} {
		p, err := Compile(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Bases(); !slices.Equal(got, want) {
			t.Errorf("Bases(%q) = %q, want %q", pattern, got, want)
		}
		for base, rest := range p.Split() {
			if !slices.Contains(want, base) {
				t.Errorf("Split(%q) has base %q", pattern, base)
			}
			if rest.Root().Dead() {
				t.Errorf("Split(%q)[%q] is dead", pattern, base)
			}
		}
	}
}

func TestCursor(t *testing.T) {
	t.Parallel()
	p, err := Compile("src/{a,b/c}/*.go")
	if err != nil {
		t.Fatal(err)
	}
	c := p.Root().Step("src")
	if c.Dead() || c.Match() || !c.Deeper() || !c.Names("a") || c.Names("c") {
		t.Errorf("after src: %+v", c)
	}
	if d := c.Step("x"); !d.Dead() {
		t.Errorf("after src/x: %+v", d)
	}
	if d := c.Step("b").Step("c").Step("m.go"); !d.Match() || d.Deeper() {
		t.Errorf("after src/b/c/m.go: %+v", d)
	}
}

func TestTooMany(t *testing.T) {
	t.Parallel()
	if _, err := Compile(strings.Repeat("{a,b}", 20)); !errors.Is(err, ErrTooMany) {
		t.Errorf("got %v, want %v", err, ErrTooMany)
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("src/**/[a-z]*.{go,c}", "src/x/a.go")
	f.Add(`[[:alpha:]\`, "[")
	f.Add("{a,{b,c}", "{a,b")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 100 || len(name) > 100 {
			return
		}
		p, err := Compile(pattern)
		if err != nil {
			return
		}
		p.Match(name)
		p.Split()
	})
}

func BenchmarkStep(b *testing.B) {
	p, err := Compile("**/*.go")
	if err != nil {
		b.Fatal(err)
	}
	c := p.Root()
	for b.Loop() {
		c.Step("segment_test.go")
	}
}
