package memory

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func tree(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		if to, ok := strings.CutPrefix(text, "-> "); ok {
			m[name] = &fstest.MapFile{Data: []byte(to), Mode: os.ModeSymlink | 0o777}
			continue
		}
		m[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return m
}

func options(files map[string]string) Options {
	return Options{FS: tree(files), Cwd: "/r/a/b", Root: "/r", Home: "/home/u", ConfigDir: "/home/u/.claude", ManagedDir: "/etc/claude-code"}
}

// brief is one line for each file: kind, reason, path, text.
func brief(fs []File) []string {
	var out []string
	for _, f := range fs {
		s := fmt.Sprintf("%s %s %s", f.Kind, f.Reason, f.Path)
		if f.Parent != "" {
			s += " < " + f.Parent
		}
		out = append(out, s+": "+strings.TrimSpace(f.Text))
	}
	return out
}

func told(ps []Problem) []string {
	var out []string
	for _, p := range ps {
		out = append(out, p.Path+": "+p.Text)
	}
	return out
}

func TestLoadOrder(t *testing.T) {
	t.Parallel()
	o := options(map[string]string{
		"etc/claude-code/CLAUDE.md":             "managed",
		"home/u/.claude/CLAUDE.md":              "user\n@~/more.md",
		"home/u/more.md":                        "more",
		"home/u/.claude/rules/b.md":             "user rule b",
		"home/u/.claude/rules/sub/a.md":         "user rule a",
		"home/u/.claude/rules/not.txt":          "no",
		"CLAUDE.md":                             "root of the disk",
		"r/CLAUDE.md":                           "\ufeffproject\r\n@docs/x.md",
		"r/docs/x.md":                           "x",
		"r/.claude/CLAUDE.md":                   "hidden",
		"r/AGENTS.md":                           "not read beside CLAUDE.md",
		"r/.claude/rules/r.md":                  "---\ndescription: d\n---\nrule",
		"r/.claude/rules/api.md":                "---\npaths: src/api/**\n---\nscoped",
		"r/CLAUDE.local.md":                     "local",
		"r/a/AGENTS.md":                         "agents",
		"r/a/b/.claude/CLAUDE.md":               "b",
		"r/a/b/AGENTS.md":                       "not read beside .claude/CLAUDE.md",
		"r/a/b/c/CLAUDE.md":                     "below",
		"home/u/.claude/projects/r/m/MEMORY.md": "- one",
	})
	o.ManagedText, o.AutoDir = "from settings", "/home/u/.claude/projects/r/m"
	s := Load(t.Context(), o)
	want := []string{
		"Managed session_start /etc/claude-code/CLAUDE.md: managed",
		"Managed session_start managed settings: from settings",
		"User session_start /home/u/.claude/CLAUDE.md: user\n@~/more.md",
		"User include /home/u/more.md < /home/u/.claude/CLAUDE.md: more",
		"User session_start /home/u/.claude/rules/b.md: user rule b",
		"User session_start /home/u/.claude/rules/sub/a.md: user rule a",
		"Project session_start /CLAUDE.md: root of the disk",
		"Project session_start /r/CLAUDE.md: project\n@docs/x.md",
		"Project include /r/docs/x.md < /r/CLAUDE.md: x",
		"Project session_start /r/.claude/CLAUDE.md: hidden",
		"Project session_start /r/.claude/rules/r.md: rule",
		"Local session_start /r/CLAUDE.local.md: local",
		"Project session_start /r/a/AGENTS.md: agents",
		"Project session_start /r/a/b/.claude/CLAUDE.md: b",
		"AutoMem session_start /home/u/.claude/projects/r/m/MEMORY.md: - one",
	}
	if d := cmp.Diff(want, brief(s.Files)); d != "" {
		t.Error(d)
	}
	if len(s.Problems) != 0 {
		t.Errorf("problems: %v", s.Problems)
	}
}

func TestSources(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"etc/claude-code/CLAUDE.md": "managed", "home/u/.claude/CLAUDE.md": "user", "home/u/CLAUDE.md": "home",
		"home/u/r/CLAUDE.md": "project", "home/u/r/CLAUDE.local.md": "local", "home/u/add/CLAUDE.md": "added", "auto/MEMORY.md": "auto",
	}
	for name, tc := range map[string]struct {
		change func(*Options)
		want   []string
	}{
		"all":        {func(*Options) {}, []string{"managed", "user", "home", "project", "local"}},
		"no user":    {func(o *Options) { o.NoUser = true }, []string{"managed", "home", "project", "local"}},
		"no project": {func(o *Options) { o.NoProject = true }, []string{"managed", "user", "local"}},
		"no local":   {func(o *Options) { o.NoLocal = true }, []string{"managed", "user", "home", "project"}},
		"none":       {func(o *Options) { o.NoUser, o.NoProject, o.NoLocal = true, true, true }, []string{"managed"}},
		"off":        {func(o *Options) { o.Off, o.AutoDir = true, "/auto" }, []string{"auto"}},
		"added":      {func(o *Options) { o.AddDirs = []string{"/home/u/add/"} }, []string{"managed", "user", "home", "project", "local", "added"}},
		"excluded":   {func(o *Options) { o.Excludes = []string{"/home/u/CLAUDE.md", "/etc/**", "**/r"} }, []string{"managed", "user"}},
		"denied": {func(o *Options) { o.Denied = func(p string) bool { return strings.Contains(p, "local") } },
			[]string{"managed", "user", "home", "project"}},
	} {
		o := options(files)
		o.Cwd, o.Root = "/home/u/r", "/home/u/r"
		tc.change(&o)
		var got []string
		for _, f := range Load(t.Context(), o).Files {
			got = append(got, f.Text)
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestImports(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"r/CLAUDE.md": "See @docs/a.md and `@docs/b.md` ``or ` @docs/b.md``, (@docs/c\\ d.md) me@docs/b.md @team @gone.md.\n```\n@docs/b.md\n```\n" +
			"<!-- @docs/b.md\n -->\n@~/secret.md @docs @link.md @/home/u/ok.md",
		"r/docs/a.md":      "A @../CLAUDE.md @1.md",
		"r/docs/b.md":      "B",
		"r/docs/c d.md":    "C @a.md",
		"r/docs/1.md":      "1 @2.md",
		"r/docs/2.md":      "2 @3.md",
		"r/docs/3.md":      "3 @4.md",
		"r/docs/4.md":      "4 @5.md @1.md",
		"r/docs/5.md":      "5",
		"r/link.md":        "-> ../home/u/secret.md",
		"home/u/secret.md": "S",
		"home/u/ok.md":     "OK",
	}
	o := options(files)
	o.Cwd = "/r"
	var asked []string
	o.AllowImport = func(from, p string) bool {
		asked = append(asked, from+" "+p)
		return p == "/home/u/ok.md"
	}
	s := Load(t.Context(), o)
	var got []string
	for _, f := range s.Files {
		got = append(got, f.Path)
	}
	want := []string{"/r/CLAUDE.md", "/r/docs/a.md", "/r/docs/1.md", "/r/docs/2.md", "/r/docs/3.md", "/r/docs/c d.md", "/home/u/ok.md"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"/r/CLAUDE.md /home/u/secret.md", "/r/CLAUDE.md /r/link.md", "/r/CLAUDE.md /home/u/ok.md"}, asked); d != "" {
		t.Error(d)
	}
	wantTold := []string{
		"/r/docs/4.md: /r/docs/3.md imports it, which is more than 4 imports deep",
		"/r/gone.md: /r/CLAUDE.md imports it, and it is not there",
		"/home/u/secret.md: /r/CLAUDE.md imports it from outside the project, and nobody has allowed that",
		"/r/docs: it is a directory, not a file",
		"/r/link.md: /r/CLAUDE.md imports it from outside the project, and nobody has allowed that",
	}
	if d := cmp.Diff(wantTold, told(s.Problems)); d != "" {
		t.Error(d)
	}
}

func TestTouched(t *testing.T) {
	t.Parallel()
	o := options(map[string]string{
		"r/CLAUDE.md":               "top",
		"r/.claude/rules/api.md":    "---\npaths: [\"src/api/**/*.{ts,tsx}\", '[bad']\n---\napi @../../docs/api.md",
		"r/.claude/rules/root.md":   "---\npaths:\n  - \"*.md\"\n  - Makefile\n---\nroot only",
		"r/.claude/rules/go.md":     "---\npaths: \"**/*.go, **/*.mod\"\n---\ngo",
		"r/docs/api.md":             "imported",
		"home/u/.claude/rules/t.md": "---\npaths: \"**/*_test.go\"\n---\ntests",
		"r/src/CLAUDE.md":           "src",
		"r/src/api/AGENTS.md":       "api agents",
		"r/src/api/CLAUDE.local.md": "api local",
		"r/src/.claude/rules/n.md":  "nested rule",
		"r/src/.claude/rules/m.md":  "---\npaths: api/*\n---\nnested scoped",
		"r/src/api/x.ts":            "",
		"r/alias.ts":                "-> src/api/x.ts",
	})
	o.Cwd = "/r"
	s := Load(t.Context(), o)
	if d := cmp.Diff([]string{"Project session_start /r/CLAUDE.md: top"}, brief(s.Files)); d != "" {
		t.Fatal(d)
	}
	for _, step := range []struct {
		path string
		want []string
	}{
		{"/elsewhere/x.go", nil},
		{"/r/sub/README.md", nil},
		{"/r/README.md", []string{"Project path_glob_match /r/.claude/rules/root.md: root only"}},
		{"/r/README.md", nil},
		{"/r/alias.ts", []string{
			"Project path_glob_match /r/.claude/rules/api.md: api @../../docs/api.md",
			"Project include /r/docs/api.md < /r/.claude/rules/api.md: imported"}},
		{"/r/src/api/x.ts", []string{
			"Project nested_traversal /r/src/CLAUDE.md: src",
			"Project nested_traversal /r/src/.claude/rules/n.md: nested rule",
			"Project nested_traversal /r/src/api/AGENTS.md: api agents",
			"Local nested_traversal /r/src/api/CLAUDE.local.md: api local",
			"Project path_glob_match /r/src/.claude/rules/m.md: nested scoped"}},
		{"/r/x_test.go", []string{
			"User path_glob_match /home/u/.claude/rules/t.md: tests",
			"Project path_glob_match /r/.claude/rules/go.md: go"}},
		{"/r/src/api/x.ts", nil},
	} {
		got := s.Touched(t.Context(), step.path)
		for _, f := range got {
			if f.Trigger != step.path {
				t.Errorf("%s: trigger of %s is %q", step.path, f.Path, f.Trigger)
			}
		}
		if d := cmp.Diff(step.want, brief(got)); d != "" {
			t.Errorf("%s: %s", step.path, d)
		}
	}
}

func TestAutoLimits(t *testing.T) {
	t.Parallel()
	lines := strings.Repeat("- m\n", 300)
	long := strings.Repeat(strings.Repeat("ä", 200)+"\n", 100)
	for text, want := range map[string]int{
		"- one\n":                    6,
		lines:                        200 * 4,
		strings.Repeat("- m\n", 200): 200 * 4,
		long:                         25 << 10 / 401 * 401,
		strings.Repeat("é", 20_000):  25 << 10,
	} {
		o := options(map[string]string{"m/MEMORY.md": text})
		o.AutoDir = "/m"
		s := Load(t.Context(), o)
		if len(s.Files) != 1 || len(s.Files[0].Text) != want && want != 25<<10/401*401 {
			t.Fatalf("%.20q: %d files, %d bytes", text, len(s.Files), len(s.Files[0].Text))
		}
		f := s.Files[0]
		if cut := len(f.Text) < len(text); cut != (f.Cut != "") || cut != (len(s.Problems) == 1) {
			t.Errorf("%.20q: cut %q, problems %v", text, f.Cut, s.Problems)
		}
		if len(f.Text) > 25<<10 || !strings.HasPrefix(text, f.Text) {
			t.Errorf("%.20q: %d bytes kept", text, len(f.Text))
		}
	}
}

func TestCheckIndex(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                            " false",
		strings.Repeat("- m\n", 180):  " false",
		strings.Repeat("- m\n", 181):  "nearly full false",
		strings.Repeat("- m\n", 200):  "nearly full false",
		strings.Repeat("- m\n", 201):  "too long true",
		strings.Repeat("x", 24<<10):   "nearly full false",
		strings.Repeat("long ", 6000): "too long true",
	} {
		note, over := CheckIndex(text)
		words, _, _ := strings.Cut(want, " false")
		words, _, _ = strings.Cut(words, " true")
		if !strings.Contains(note, words) || (words == "") != (note == "") || over != strings.HasSuffix(want, "true") {
			t.Errorf("%d bytes: %q, %v", len(text), note, over)
		}
	}
}

func TestLoadStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := Load(ctx, options(map[string]string{"r/CLAUDE.md": "x"}))
	if len(s.Files) != 0 || len(s.Problems) != 1 {
		t.Errorf("files %v, problems %v", s.Files, s.Problems)
	}
}

func TestSection(t *testing.T) {
	t.Parallel()
	o := options(map[string]string{
		"home/u/.claude/CLAUDE.md": "# compact instructions\nkeep names\n## more\nyes\n# Other\nno",
		"r/CLAUDE.md":              "```\n# Compact Instructions\nno\n```\n## Compact Instructions ##\nkeep tests\n# x\nno",
	})
	if got, want := Load(t.Context(), o).Section("Compact Instructions"), "keep names\n## more\nyes\n\nkeep tests"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStripComments(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a\n<!-- x -->\nb\n":            "a\nb\n",
		"a\n  <!-- x\ny\n --> z\nb\n":   "a\n z\nb\n",
		"a <!-- inline --> b\n":         "a <!-- inline --> b\n",
		"```\n<!-- code -->\n```\n":     "```\n<!-- code -->\n```\n",
		"a\n<!-- open\nb\n":             "a\n<!-- open\nb\n",
		"<!-- a --><!-- b -->\nc":       "c",
		"    <!-- indented code -->\nc": "    <!-- indented code -->\nc",
	} {
		if got := stripComments(in); got != want {
			t.Errorf("stripComments(%q) = %q, want %q", in, got, want)
		}
	}
}

// Every parser of this package takes any text: no panic, no growth.
func FuzzText(f *testing.F) {
	for _, s := range []string{"---\npaths: [a, \"b,c\", {d,e}]\n---\nx @a.md `@b` ``@c`", "<!-- a\n```\n-->\n~~~\n@x\n~~~", "@~/a\\ b.md, @@ @/ (@c)", "# Compact Instructions\n<!---->"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		globs, body := frontmatter(s)
		if len(body) > len(s) || len(globs) > len(s) {
			t.Errorf("frontmatter grew: %q", s)
		}
		if c := stripComments(s); len(c) > len(s) {
			t.Errorf("comments grew: %q", s)
		}
		for _, r := range references(s) {
			if r == "" || len(r) > 1024 {
				t.Errorf("reference %q of %q", r, s)
			}
		}
		section(s, "Compact Instructions")
	})
}

// 200 files may add 15 ms to a start.
func BenchmarkLoad200(b *testing.B) {
	dir := b.TempDir()
	for i := range 200 {
		p := filepath.Join(dir, ".claude/rules", fmt.Sprintf("d%d", i%10), fmt.Sprintf("r%d.md", i))
		os.MkdirAll(filepath.Dir(p), 0o755)
		if err := os.WriteFile(p, []byte(fmt.Sprintf("---\npaths: src/%d/**\n---\n%s", i, strings.Repeat("some rule\n", 200))), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		Load(context.Background(), Options{FS: os.DirFS("/"), Cwd: dir})
	}
}
