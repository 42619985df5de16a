package search

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

type args map[string]any

// A bench is a directory and the tools at work in it, with either engine.
type bench struct {
	t   *testing.T
	dir string
	o   Options
}

func newBench(t *testing.T, files map[string]string) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, dir: dir, o: Options{Cwd: func() string { return dir }}}
	begin := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, data := range files {
		b.write(name, data)
	}
	// Later in the alphabet is newer.
	for i, name := range sortedKeys(files) {
		at := begin.Add(time.Duration(i) * time.Minute)
		if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func sortedKeys(m map[string]string) []string {
	var l newest
	for k := range m {
		l.add(k, time.Time{})
	}
	return l.sorted()
}

func (b *bench) write(name, data string) {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// rg returns the path of ripgrep.
func rg(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("rg")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("ripgrep is not installed")
		}
		t.Skip("ripgrep is not installed")
	}
	return path
}

func run(ctx context.Context, dir string, argv []string, stdout io.Writer) (int, []byte, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdout = dir, stdout
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), stderr.Bytes(), nil
	}
	return 0, stderr.Bytes(), err
}

// call runs a tool as the loop does: Inspect, then Run with its effects.
func (b *bench) call(ripgrep, name string, in args) (agent.Result, error) {
	b.t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		b.t.Fatal(err)
	}
	o := b.o
	o.Ripgrep, o.Exec = ripgrep, run
	for _, tool := range New(o) {
		if tool.Spec().Name == name {
			eff, err := tool.Inspect(raw)
			if err != nil {
				return agent.Result{}, err
			}
			return tool.Run(b.t.Context(), agent.Call{Input: raw, Effects: eff, Progress: func(agent.Progress) {}})
		}
	}
	b.t.Fatalf("no tool %s", name)
	return agent.Result{}, nil
}

// grep runs both engines, which must agree, and returns the answer.
func (b *bench) grep(in args) (string, GrepDetail, error) {
	b.t.Helper()
	ours, oerr := b.call("", "Grep", in)
	theirs, terr := b.call(rg(b.t), "Grep", in)
	if (oerr == nil) != (terr == nil) {
		b.t.Errorf("%v: built-in: %v, rg: %v", in, oerr, terr)
	}
	if oerr != nil {
		return "", GrepDetail{}, terr
	}
	if d := cmp.Diff(agent.TextOf(theirs.Blocks), agent.TextOf(ours.Blocks)); d != "" {
		b.t.Errorf("%v: rg and built-in differ:\n%s", in, d)
	}
	if terr == nil {
		if d := cmp.Diff(theirs.Detail, ours.Detail); d != "" {
			b.t.Errorf("%v: rg and built-in differ in detail:\n%s", in, d)
		}
	}
	return agent.TextOf(ours.Blocks), ours.Detail.(GrepDetail), nil
}

var project = map[string]string{
	"a/one.js":        "const needle = 1;\n",
	"a/two.js":        "const hay = 2;\n",
	"b/three.ts":      "needle();\nneedle();\n",
	"b/ctx.txt":       "1\n2\n3 hit\n4\n5\n6 hit\n7 hit\n8\n9\n10\n11\n12\n13\n14 hit",
	"crlf.txt":        "first foo\r\nsecond bar\r\nfoo\r\n",
	"dash.txt":        "a->b\n--release\n-e\n(paren)\n",
	"uni.txt":         "Straße ２\nnaïve café\nИван\n",
	"latin.txt":       "caf\xe9 needle\n",
	"utf16.txt":       "\xff\xfen\x00e\x00e\x00d\x00l\x00e\x00\n\x00",
	"bin.dat":         "needle\x00\xff\n",
	"empty.txt":       "",
	"blank.txt":       "\n\nx\n\n",
	"multi.go":        "func a() {\n\treturn 1\n}\n\nfunc b() {\n\treturn 2\n}\n",
	"long.txt":        strings.Repeat("x", 900) + "needle" + strings.Repeat("y", 900) + "\n",
	".hidden/h.txt":   "needle hidden\n",
	".git/config":     "needle in git\n",
	".gitignore":      "ignored/\n*.log\n!keep.log\n/b/root.tmp\n",
	"ignored/i.txt":   "needle ignored\n",
	"x.log":           "needle log\n",
	"keep.log":        "needle kept\n",
	"b/.gitignore":    "*.tmp\n!ok.tmp\n",
	"b/root.tmp":      "needle tmp\n",
	"b/ok.tmp":        "needle ok tmp\n",
	"sub/.git/HEAD":   "needle\n",
	"sub/own.log":     "needle of a nested repository\n",
	"dot/.ignore":     "!y.log\nz.txt\n",
	"dot/y.log":       "needle dot\n",
	"dot/z.txt":       "needle dot z\n",
	"-v":              "needle in a file called -v\n",
	"sp ace/n\nl.txt": "needle newline name\n",
}

func TestGrepEnginesAgree(t *testing.T) {
	t.Parallel()
	b := newBench(t, project)
	for _, in := range []args{
		{"pattern": "needle"},
		{"pattern": "needle", "output_mode": "content"},
		{"pattern": "needle", "output_mode": "count"},
		{"pattern": "needle", "output_mode": "content", "-n": false},
		{"pattern": "NEEDLE", "-i": true, "output_mode": "content"},
		{"pattern": "NEEDLE"},
		{"pattern": "needle", "path": "b"},
		{"pattern": "needle", "path": "ignored", "output_mode": "content"},
		{"pattern": "needle", "path": "ignored/i.txt", "output_mode": "content"},
		{"pattern": "needle", "path": "-v", "output_mode": "content"},
		{"pattern": "needle", "path": "bin.dat", "output_mode": "content"},
		{"pattern": "needle", "path": "bin.dat"},
		{"pattern": "needle", "path": "utf16.txt", "output_mode": "content"},
		{"pattern": "needle", "path": ".git", "output_mode": "count"},
		{"pattern": "needle", "path": b.dir, "glob": "*.{js,ts}"},
		{"pattern": "needle", "glob": "*.js *.ts"},
		{"pattern": "needle", "glob": "*.js,*.log"},
		{"pattern": "needle", "glob": "!*.js"},
		{"pattern": "needle", "glob": "b/**"},
		{"pattern": "needle", "glob": "/a/*"},
		{"pattern": "needle", "glob": "**/*.js", "output_mode": "count"},
		{"pattern": "needle", "type": "js"},
		{"pattern": "needle", "type": "typescript"},
		{"pattern": "hit", "output_mode": "content", "-C": 1},
		{"pattern": "hit", "output_mode": "content", "context": 2},
		{"pattern": "hit", "output_mode": "content", "-A": 1},
		{"pattern": "hit", "output_mode": "content", "-B": 2},
		{"pattern": "hit", "output_mode": "content", "-A": 1, "-B": 3, "-n": false},
		{"pattern": "hit", "output_mode": "content", "-A": 99},
		{"pattern": "needle|hit", "output_mode": "content", "-C": 1},
		{"pattern": "hit", "output_mode": "content", "-C": 1, "head_limit": 4},
		{"pattern": "hit", "output_mode": "content", "-C": 1, "head_limit": 3, "offset": 3},
		{"pattern": "needle", "output_mode": "content", "head_limit": 3},
		{"pattern": "needle", "output_mode": "content", "head_limit": 3, "offset": 2},
		{"pattern": "needle", "output_mode": "content", "offset": 500},
		{"pattern": "needle", "head_limit": 2},
		{"pattern": "needle", "head_limit": 2, "offset": 1},
		{"pattern": "needle", "head_limit": 0},
		{"pattern": "needle", "output_mode": "count", "head_limit": 1},
		{"pattern": "nowhere-to-be-found"},
		{"pattern": "nowhere-to-be-found", "output_mode": "content"},
		{"pattern": "nowhere-to-be-found", "output_mode": "count"},
		{"pattern": `n\w+e`, "output_mode": "content", "-o": true},
		{"pattern": "hit|[0-9]", "output_mode": "content", "-o": true, "path": "b/ctx.txt"},
		{"pattern": `x*`, "output_mode": "content", "-o": true, "path": "blank.txt"},
		{"pattern": "->", "output_mode": "content"},
		{"pattern": "--release", "output_mode": "content"},
		{"pattern": "-e", "output_mode": "content"},
		{"pattern": `\(`, "output_mode": "content"},
		{"pattern": "foo$", "output_mode": "content"},
		{"pattern": "^foo$", "output_mode": "content"},
		{"pattern": "^$", "output_mode": "count", "path": "blank.txt"},
		{"pattern": "^", "output_mode": "count"},
		{"pattern": "", "output_mode": "count"},
		{"pattern": "$", "output_mode": "count", "path": "multi.go"},
		{"pattern": `^\s+return`, "output_mode": "content"},
		{"pattern": `\s+`, "output_mode": "count"},
		{"pattern": `[^a]`, "output_mode": "count"},
		{"pattern": `o\r`, "output_mode": "content"},
		{"pattern": `[o\r]$`, "output_mode": "content"},
		{"pattern": `\d`, "output_mode": "content", "path": "uni.txt"},
		{"pattern": `\w+`, "output_mode": "content", "-o": true, "path": "uni.txt"},
		{"pattern": `[\w]+[^\d]`, "output_mode": "content", "-o": true, "path": "uni.txt"},
		{"pattern": `\W`, "output_mode": "count", "path": "uni.txt"},
		{"pattern": `иван`, "-i": true, "output_mode": "content"},
		{"pattern": `STRASSE|NAÏVE`, "-i": true, "output_mode": "content"},
		{"pattern": "a.*\\n.*return", "multiline": true, "output_mode": "content"},
		{"pattern": `func \w+\(\) \{.return \d`, "multiline": true, "output_mode": "content"},
		{"pattern": `\{\n\s+return \d\n\}`, "multiline": true, "output_mode": "content"},
		{"pattern": `\{\n\s+return \d\n\}`, "multiline": true, "output_mode": "count"},
		{"pattern": `\{\n\s+return \d\n\}`, "multiline": true},
		{"pattern": `return \d\n`, "multiline": true, "output_mode": "content", "-o": true},
		{"pattern": `^\}$`, "multiline": true, "output_mode": "content", "-B": 1},
		{"pattern": `a\(.*?\}`, "multiline": true, "output_mode": "content", "-A": 1},
		{"pattern": `a\nb`, "output_mode": "content"},
		{"pattern": "("},
		{"pattern": "(", "path": "ignored", "glob": "*.none"},
		{"pattern": "[", "output_mode": "content"},
		{"pattern": "*"},
		{"pattern": "a(?=b)"},
		{"pattern": "needle", "type": "nosuchtype"},
		{"pattern": "needle", "path": "nosuchpath"},
		{"pattern": "needle", "output_mode": "lines"},
		{"pattern": "needle", "-A": -1},
	} {
		b.grep(in)
	}
}

func TestGrep(t *testing.T) {
	t.Parallel()
	b := newBench(t, project)
	for _, c := range []struct {
		in   args
		want string
	}{
		{args{"pattern": "needle", "glob": "*.{js,ts}"}, "Found 2 files\nb/three.ts\na/one.js"},
		{args{"pattern": "needle", "glob": "*.ts", "output_mode": "content"}, "b/three.ts:1:needle();\nb/three.ts:2:needle();"},
		{args{"pattern": "needle", "glob": "*.ts", "output_mode": "content", "-n": false}, "b/three.ts:needle();\nb/three.ts:needle();"},
		{args{"pattern": "needle", "glob": "*.ts", "output_mode": "count"}, "b/three.ts:2\n\nFound 2 matching lines in 1 file."},
		{args{"pattern": "no such"}, "No files found"},
		{args{"pattern": "no such", "output_mode": "content"}, "No matches found"},
		{args{"pattern": "no such", "output_mode": "count"}, "No matches found"},
		{args{"pattern": "z*", "output_mode": "content", "-o": true, "path": "blank.txt"}, "No matches found"},
		{args{"pattern": "needle", "offset": 99}, "No entries at this offset (99)."},
		{args{"pattern": "needle", "glob": "*.{js,ts}", "output_mode": "count", "head_limit": 1}, "a/one.js:1\n\nFound 3 matching lines in 2 files.\n\n(Cut after 1 entries, as head_limit says. Go on with offset 1.)"},
		{args{"pattern": "hit", "output_mode": "content", "-C": 1}, "b/ctx.txt-2-2\nb/ctx.txt:3:3 hit\nb/ctx.txt-4-4\nb/ctx.txt-5-5\nb/ctx.txt:6:6 hit\nb/ctx.txt:7:7 hit\nb/ctx.txt-8-8\n--\nb/ctx.txt-13-13\nb/ctx.txt:14:14 hit"},
		{args{"pattern": "->", "output_mode": "content"}, "dash.txt:1:a->b"},
		{args{"pattern": "-e", "output_mode": "content"}, "dash.txt:3:-e"},
		{args{"pattern": "needle", "path": "-v", "output_mode": "content"}, "-v:1:needle in a file called -v"},
		{args{"pattern": "needle", "path": "bin.dat", "output_mode": "content"}, "bin.dat: binary file matches"},
		{args{"pattern": "foo$", "output_mode": "content"}, "crlf.txt:1:first foo\ncrlf.txt:3:foo"},
		{args{"pattern": "needle", "path": "b/../ignored", "output_mode": "content"}, "ignored/i.txt:1:needle ignored"},
		{args{"pattern": "newline name"}, "Found 1 file\n\"sp ace/n\\nl.txt\""},
		{args{"pattern": "needle", "glob": "long.txt", "output_mode": "content"}, "long.txt:1:… " + strings.Repeat("x", 100) + "needle" + strings.Repeat("y", 394) + " … (1306 more bytes in this line)"},
	} {
		got, _, err := b.grep(c.in)
		if err != nil || got != c.want {
			t.Errorf("%v: %v\n%s", c.in, err, cmp.Diff(c.want, got))
		}
	}
	// What is left out, and what is not.
	got, d, err := b.grep(args{"pattern": "needle"})
	want := []string{"utf16.txt", "sub/own.log", "sp ace/n\nl.txt", "long.txt", "latin.txt", "keep.log", "dot/y.log", "b/three.ts", "b/ok.tmp", "a/one.js", ".hidden/h.txt", "-v"}
	if diff := cmp.Diff(want, d.Filenames); err != nil || diff != "" {
		t.Errorf("%v\n%s\n%s", err, got, diff)
	}
}

func TestGrepDetail(t *testing.T) {
	t.Parallel()
	b := newBench(t, project)
	for want, in := range map[string]args{
		`{"mode":"files_with_matches","numFiles":1,"filenames":["a/one.js"]}`:                                                          {"pattern": "needle", "type": "js"},
		`{"mode":"content","numFiles":1,"filenames":["a/one.js"],"content":"a/one.js:1:const needle = 1;","numLines":1}`:               {"pattern": "needle", "type": "js", "output_mode": "content"},
		`{"mode":"count","numFiles":1,"filenames":["a/one.js"],"content":"a/one.js:1","numMatches":1}`:                                 {"pattern": "needle", "type": "js", "output_mode": "count"},
		`{"mode":"content","numFiles":1,"filenames":["b/three.ts"],"content":"b/three.ts:1:needle();","numLines":1,"appliedLimit":1}`:  {"pattern": "needle", "type": "ts", "output_mode": "content", "head_limit": 1},
		`{"mode":"content","numFiles":1,"filenames":["b/three.ts"],"content":"b/three.ts:2:needle();","numLines":1,"appliedOffset":1}`: {"pattern": "needle", "type": "ts", "output_mode": "content", "head_limit": 1, "offset": 1},
		`{"mode":"content","numFiles":0,"filenames":[],"content":"","numLines":0}`:                                                     {"pattern": "no such", "output_mode": "content"},
	} {
		_, d, err := b.grep(in)
		if err != nil {
			t.Error(err)
		}
		if got, _ := json.Marshal(d); string(got) != want {
			t.Errorf("%v: got %s, want %s", in, got, want)
		}
	}
}

func TestGrepErrors(t *testing.T) {
	t.Parallel()
	b := newBench(t, project)
	for want, in := range map[string]args{
		"Set multiline":           {"pattern": `a\nb`},
		"<tool_use_error>":        {"pattern": "("},
		"unclosed":                {"pattern": "(", "path": "empty.txt"},
		"is not known":            {"pattern": "x", "type": "nope"},
		"does not exist":          {"pattern": "x", "path": "nope"},
		"zero byte":               {"pattern": "x", "path": "a\x00"},
		"must not be negative":    {"pattern": "x", "head_limit": -5},
		"must not be a array":     {"pattern": []string{"x"}},
		"pattern is missing":      {},
		"neither a file":          {"pattern": "x", "path": "/dev/null"},
		"too many brace":          {"pattern": "x", "glob": strings.Repeat("{a,b}", 20)},
		"must be content, files_": {"pattern": "x", "output_mode": "y"},
	} {
		if _, _, err := b.grep(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", in, err, want)
		}
	}
}

func TestGrepTimeout(t *testing.T) {
	t.Parallel()
	b := newBench(t, project)
	b.o.Timeout = time.Nanosecond
	for _, engine := range []string{"", rg(t)} {
		r, err := b.call(engine, "Grep", args{"pattern": "needle"})
		if err != nil || !strings.Contains(agent.TextOf(r.Blocks), "was ended after 1ns") {
			t.Errorf("engine %q: %v, %v", engine, err, r)
		}
	}
}

// A byte order mark is no part of the first line.
func TestGrepMark(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{"a": "\xef\xbb\xbfneedle\n", "b": "\xff\xfen\x00e\x00e\x00d\x00l\x00e\x00"})
	for _, in := range []args{{"pattern": "^needle"}, {"pattern": "^.+$", "output_mode": "content"}, {"pattern": "^needle$", "output_mode": "content", "multiline": true}} {
		if got, _, err := b.grep(in); err != nil || !strings.Contains(got, "a") || !strings.Contains(got, "b") {
			t.Errorf("%v: %q, %v", in, got, err)
		}
	}
}

// A denied file is in no listing of either tool.
func TestDeny(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{".env": "SECRET\n", "sub/.env.local": "SECRET\n", "a.txt": "SECRET\n", "vault/x.txt": "SECRET\n"})
	b.o.Deny = func(p string) bool {
		return strings.HasPrefix(filepath.Base(p), ".env") || filepath.Base(p) == "vault"
	}
	for _, mode := range []string{modeFiles, modeContent, modeCount} {
		if got, _, err := b.grep(args{"pattern": "SECRET", "output_mode": mode}); err != nil || strings.Contains(got, "env") || strings.Contains(got, "vault") || !strings.Contains(got, "a.txt") {
			t.Errorf("%s: got %q, %v", mode, got, err)
		}
	}
	for _, path := range []string{".env", "vault"} {
		if _, _, err := b.grep(args{"pattern": "SECRET", "path": path}); err == nil || !strings.Contains(err.Error(), "denies") {
			t.Errorf("%s: %v", path, err)
		}
	}
	r, err := b.call("", "Glob", args{"pattern": "**/*"})
	if got := agent.TextOf(r.Blocks); err != nil || got != "a.txt" {
		t.Errorf("got %q, %v", got, err)
	}
	if r, err := b.call("", "Glob", args{"pattern": "vault/*"}); err == nil {
		t.Errorf("got %q", agent.TextOf(r.Blocks))
	}
}

func TestGlob(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{
		"a/one.js": "", "a/two.js": "", "b/three.ts": "", "app/[id]/page.tsx": "", "app/i/page.tsx": "", ".dot/x.js": "", "top.js": "",
		".git/hook.js": "", "ign/x.js": "", ".gitignore": "ign/\n", "b/{x}.js": "",
	})
	for link, target := range map[string]string{"la": "a", "lone.js": "a/one.js", "broken.js": "nowhere", "ldir.js": "a"} {
		if err := os.Symlink(target, filepath.Join(b.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		in   args
		want string
	}{
		{args{"pattern": "a/*.js"}, "a/two.js\na/one.js"},
		{args{"pattern": "*.js", "path": "a"}, "a/two.js\na/one.js"},
		{args{"pattern": "*.{js,ts}", "path": b.dir + "/b"}, "b/{x}.js\nb/three.ts"},
		{args{"pattern": "app/[id]/*"}, "app/i/page.tsx\napp/[id]/page.tsx"},
		{args{"pattern": "app/[id]/page.tsx"}, "app/i/page.tsx\napp/[id]/page.tsx"},
		{args{"pattern": "app/[[]id]/*"}, "app/[id]/page.tsx"},
		{args{"pattern": "*/x.js"}, "ign/x.js\n.dot/x.js"},
		{args{"pattern": ".git/*.js"}, ".git/hook.js"},
		{args{"pattern": "**/hook.js"}, "No files found"},
		{args{"pattern": "la/*"}, "la/two.js\nla/one.js"},
		{args{"pattern": "**/two.js"}, "a/two.js"},
		{args{"pattern": "a"}, "No files found"},
		{args{"pattern": "nope/**"}, "No files found"},
		{args{"pattern": "../*/a/*.js", "path": "a"}, "No files found"},
		{args{"pattern": "../a/one.js", "path": "b"}, "a/one.js"},
		{args{"pattern": b.dir + "/a/one.*"}, "a/one.js"},
		{args{"pattern": "{a/one,b/three}.*"}, "b/three.ts\na/one.js"},
	} {
		r, err := b.call("", "Glob", c.in)
		if got := agent.TextOf(r.Blocks); err != nil || got != c.want {
			t.Errorf("%v: got %q, %v, want %q", c.in, got, err, c.want)
		}
	}
	r, err := b.call("", "Glob", args{"pattern": "l*.js"})
	if got := agent.TextOf(r.Blocks); err != nil || got != "lone.js" {
		t.Errorf("links: got %q, %v", got, err)
	}
	for want, in := range map[string]args{
		"zero byte":          {"pattern": "a\x00"},
		"must not be a":      {"pattern": 5},
		"missing":            {},
		"does not exist":     {"pattern": "*", "path": "nope"},
		"is not a directory": {"pattern": "*", "path": "top.js"},
		"too many brace":     {"pattern": strings.Repeat("{a,b}", 20)},
	} {
		if _, err := b.call("", "Glob", in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", in, err, want)
		}
	}
	b.o.HideDot, b.o.Ignore = true, true
	r, err = b.call("", "Glob", args{"pattern": "*/x.js"})
	if got := agent.TextOf(r.Blocks); err != nil || got != "No files found" {
		t.Errorf("hidden and ignored: got %q, %v", got, err)
	}
	r, err = b.call("", "Glob", args{"pattern": ".dot/x.js"})
	if got := agent.TextOf(r.Blocks); err != nil || got != ".dot/x.js" {
		t.Errorf("named: got %q, %v", got, err)
	}
}

func TestGlobMany(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 130 {
		files[fmt.Sprintf("d%d/f%03d.x", i%7, i)] = ""
	}
	b := newBench(t, files)
	r, err := b.call("", "Glob", args{"pattern": "**/*.x"})
	if err != nil {
		t.Fatal(err)
	}
	d := r.Detail.(GlobDetail)
	if d.NumFiles != 100 || len(d.Filenames) != 100 || !d.Truncated || d.TotalMatches != 130 || !d.CountIsComplete || !strings.Contains(agent.TextOf(r.Blocks), "100 newest of 130") {
		t.Errorf("got %+v", d)
	}
	b.o.Timeout = time.Nanosecond
	r, err = b.call("", "Glob", args{"pattern": "**/*.x"})
	if d := r.Detail.(GlobDetail); err != nil || d.CountIsComplete || !strings.Contains(agent.TextOf(r.Blocks), "was ended after") {
		t.Errorf("got %v, %+v", err, d)
	}
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{"real/f": "x"})
	if err := os.Symlink("real", filepath.Join(b.dir, "l")); err != nil {
		t.Fatal(err)
	}
	tools := New(b.o)
	for in, want := range map[string][]string{
		`{"pattern":"*.go"}`:               {b.dir},
		`{"pattern":"x","path":"l"}`:       {b.dir + "/l", b.dir + "/real"},
		`{"pattern":"/etc/{a,b}/*"}`:       {"/etc/a", "/etc/b", b.dir},
		`{"pattern":"../../x/*"}`:          {filepath.Dir(filepath.Dir(b.dir)) + "/x", b.dir},
		`{"pattern":"l/**"}`:               {b.dir, b.dir + "/l", b.dir + "/real"},
		`{"pattern":"*/../../etc/passwd"}`: {b.dir},
	} {
		eff, err := tools[0].Inspect(json.RawMessage(in))
		if err != nil || !eff.ReadOnly || !eff.Concurrent {
			t.Errorf("%s: %v, %v", in, err, eff)
		}
		got := map[string]bool{}
		for _, s := range eff.Subjects {
			if s.Kind != agent.SubjectRead {
				t.Errorf("%s: %v", in, s)
			}
			got[s.Value] = true
		}
		wanted := map[string]bool{}
		for _, w := range want {
			wanted[w] = true
		}
		if d := cmp.Diff(wanted, got); d != "" {
			t.Errorf("%s: %s", in, d)
		}
	}
}

// The user's rg configuration changes nothing, and cancelling ends the search.
func TestRipgrepIsAlone(t *testing.T) {
	b := newBench(t, map[string]string{"a.txt": "needle\n", "b.txt": "NEEDLE\n"})
	conf := filepath.Join(b.dir, "conf")
	if err := os.WriteFile(conf, []byte("--ignore-case\n--invert-match\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("RIPGREP_CONFIG_PATH", conf)
	if got, _, err := b.grep(args{"pattern": "needle", "glob": "*.txt"}); err != nil || got != "Found 1 file\na.txt" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, engine := range []string{"", rg(t)} {
		o := b.o
		o.Ripgrep, o.Exec = engine, run
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := New(o)[1].Run(ctx, agent.Call{Input: json.RawMessage(`{"pattern":"x"}`)}); !errors.Is(err, context.Canceled) {
			t.Errorf("engine %q: %v", engine, err)
		}
	}
}

// Random patterns over random text: both engines find the same.
func TestRandomPatterns(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	pieces := func(all []string, n int) string {
		var b strings.Builder
		for range 1 + r.IntN(n) {
			b.WriteString(all[r.IntN(len(all))])
		}
		return b.String()
	}
	texts := []string{"a", "b", "ab", "foo", "Foo", " ", "\t", "\n", "\n", "\r\n", "1", "２", "é", "_", "-", ".", "x"}
	patterns := []string{"a", "b", "foo", ".", ".*", "a+", "b?", "[ab]", "[^a]", `\w`, `\d`, `\s`, `\W`, `\D`, `\S`, "^", "$", "(a|b)", "(?i:FOO)", `\.`, "é", `[\w.]`, `[^\s]`, "x{1,2}", " "}
	for range 40 {
		b := newBench(t, map[string]string{"f1": pieces(texts, 60), "f2": pieces(texts, 60), "f3": pieces(texts, 10)})
		in := args{"pattern": pieces(patterns, 5), "output_mode": modeContent}
		if !valid(in["pattern"].(string)) {
			continue
		}
		for _, flag := range []string{"-i", "-o", "multiline"} {
			if r.IntN(4) == 0 {
				in[flag] = true
			}
		}
		if in["-o"] == nil {
			in["-A"], in["-B"] = r.IntN(3), r.IntN(3)
		}
		before := t.Failed()
		b.grep(in)
		if !before && t.Failed() {
			for _, f := range []string{"f1", "f2", "f3"} {
				data, _ := os.ReadFile(filepath.Join(b.dir, f))
				t.Logf("%s: %q", f, data)
			}
		}
	}
}

func valid(pattern string) bool {
	_, _, err := compile(pattern, false, false)
	return err == nil
}

func FuzzCompile(f *testing.F) {
	f.Add(`[\w-]+\s*$`, "a b\r\n\nc", true, false)
	f.Add(`(?i)x|[^y]`, "X\n", false, true)
	f.Fuzz(func(t *testing.T, pattern, text string, fold, multiline bool) {
		re, must, err := compile(pattern, fold, multiline)
		if err != nil || len(text) > 1000 {
			return
		}
		for _, loc := range re.FindAllStringIndex(text, 20) {
			if !multiline && !spansLines(pattern) && strings.Contains(text[loc[0]:loc[1]], "\n") {
				t.Errorf("%q matches %q across lines", pattern, text[loc[0]:loc[1]])
			}
			if !strings.Contains(text[loc[0]:loc[1]], must) {
				t.Errorf("%q matches %q without %q", pattern, text[loc[0]:loc[1]], must)
			}
		}
	})
}

// The trees below are the toolchain's own sources: some 10,000 files.
func benchmark(b *testing.B, ripgrep, name, in string) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatal(err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "src")
	tools := New(Options{Cwd: func() string { return dir }, Ripgrep: ripgrep, Exec: run})
	for b.Loop() {
		for _, tool := range tools {
			if tool.Spec().Name != name {
				continue
			}
			if _, err := tool.Run(b.Context(), agent.Call{Input: json.RawMessage(in)}); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkGlob(b *testing.B) { benchmark(b, "", "Glob", `{"pattern":"**/*_test.go"}`) }

func BenchmarkGrep(b *testing.B) {
	path, err := exec.LookPath("rg")
	for name, in := range map[string]string{
		"literal": `{"pattern":"ErrUnexpectedEOF"}`,
		"regexp":  `{"pattern":"func \\(\\w+ \\*\\w+\\) Close","output_mode":"content"}`,
		"fold":    `{"pattern":"nosuchwordhere","-i":true,"output_mode":"count"}`,
	} {
		b.Run(name+"/built-in", func(b *testing.B) { benchmark(b, "", "Grep", in) })
		if err == nil {
			b.Run(name+"/rg", func(b *testing.B) { benchmark(b, path, "Grep", in) })
		}
	}
}
