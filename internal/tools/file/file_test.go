package file

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// A desk is a directory and the tools at work in it.
type desk struct {
	t     *testing.T
	dir   string
	o     Options
	ed    *Editor
	tools map[string]agent.Tool
}

func newDesk(t *testing.T, change func(*Options)) *desk {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, dir: dir, tools: map[string]agent.Tool{}}
	d.o = Options{Cwd: func() string { return dir }, State: NewState()}
	if change != nil {
		change(&d.o)
	}
	d.ed = NewEditor(d.o)
	for _, tool := range d.ed.Tools() {
		d.tools[tool.Spec().Name] = tool
	}
	return d
}

func (d *desk) path(name string) string { return filepath.Join(d.dir, name) }

func (d *desk) write(name, data string) string {
	d.t.Helper()
	path := d.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		d.t.Fatal(err)
	}
	return path
}

func (d *desk) content(name string) string {
	d.t.Helper()
	b, err := os.ReadFile(d.path(name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(b)
}

type args map[string]any

// call runs a tool as the loop does: Inspect, then Run with its effects.
func (d *desk) call(name string, in args) (agent.Result, error) {
	d.t.Helper()
	return d.callWith(name, in, nil)
}

func (d *desk) callWith(name string, in args, between func()) (agent.Result, error) {
	d.t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		d.t.Fatal(err)
	}
	eff, err := d.tools[name].Inspect(raw)
	if err != nil {
		return agent.Result{}, err
	}
	if between != nil {
		between()
	}
	return d.tools[name].Run(context.Background(), agent.Call{ID: "c", Name: name, Input: raw, Effects: eff, Progress: func(agent.Progress) {}})
}

// ok runs a tool that must succeed and returns what it says.
func (d *desk) ok(name string, in args) string {
	d.t.Helper()
	r, err := d.call(name, in)
	if err != nil || r.IsError {
		d.t.Fatalf("%s(%v): %v", name, in, err)
	}
	return agent.TextOf(r.Blocks)
}

// fails runs a tool that must fail with an error that holds each of want.
func (d *desk) fails(name string, in args, want ...string) {
	d.t.Helper()
	r, err := d.call(name, in)
	if err == nil {
		d.t.Errorf("%s(%v) succeeded: %s", name, in, agent.TextOf(r.Blocks))
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			d.t.Errorf("%s(%v) failed with\n%v\nwhich lacks %q", name, in, err, w)
		}
	}
}

func detail(t *testing.T, r agent.Result) string {
	t.Helper()
	b, err := json.Marshal(r.Detail)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSchemas(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	for name, tool := range d.tools {
		var s struct {
			Schema     string `json:"$schema"`
			Required   []string
			Properties map[string]any
			Additional *bool `json:"additionalProperties"`
		}
		raw := tool.Spec().Schema
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if s.Additional == nil || *s.Additional || !strings.Contains(s.Schema, "2020-12") || len(s.Required) == 0 {
			t.Errorf("%s: %s", name, raw)
		}
	}
}

// The clients' own scenario: write, read, edit.
func TestWriteReadEdit(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	f := d.path("src/note.txt")
	if got, want := d.ok("Write", args{"file_path": f, "content": "one\ntwo\nthree\n"}), "File created successfully at: "+f; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := d.ok("Read", args{"file_path": f}), "1\tone\n2\ttwo\n3\tthree\n4\t"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	r, err := d.call("Edit", args{"file_path": f, "old_string": "two", "new_string": "TWO"})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"filePath":"` + f + `","oldString":"two","newString":"TWO","originalFile":"one\ntwo\nthree\n","structuredPatch":[{"oldStart":1,"oldLines":3,"newStart":1,"newLines":3,"lines":[" one","-two","+TWO"," three"]}],"userModified":false,"replaceAll":false}`
	if got := detail(t, r); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := agent.TextOf(r.Blocks), "The file "+f+" has been updated successfully. "+knownNote; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	r, err = d.call("Write", args{"file_path": "src/note.txt", "content": "x\n"})
	if err != nil {
		t.Fatal(err)
	}
	want = `{"type":"update","filePath":"` + f + `","content":"x\n","structuredPatch":[{"oldStart":1,"oldLines":3,"newStart":1,"newLines":1,"lines":["-one","-TWO","-three","+x"]}],"originalFile":"one\nTWO\nthree\n","userModified":false}`
	if got := detail(t, r); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// What was approved is what is touched.
func TestLinks(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	d.write("real/f", "old\n")
	secret := d.write("secret", "precious\n")
	if err := os.Symlink("real", d.path("l")); err != nil {
		t.Fatal(err)
	}
	for name, kind := range map[string]agent.SubjectKind{"Read": agent.SubjectRead, "Write": agent.SubjectWrite, "Edit": agent.SubjectWrite} {
		in := `{"file_path":"l/f","content":"","old_string":"a","new_string":"b"}`
		eff, err := d.tools[name].Inspect(json.RawMessage(in))
		if err != nil {
			t.Fatal(err)
		}
		if len(eff.Subjects) != 2 || eff.Subjects[0] != (agent.Subject{Kind: kind, Value: d.path("l/f")}) || eff.Subjects[1] != (agent.Subject{Kind: kind, Value: d.path("real/f")}) {
			t.Errorf("%s: %v", name, eff.Subjects)
		}
	}
	swap := func() {
		if err := os.Remove(d.path("real/f")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(secret, d.path("real/f")); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"Read", "Write", "Edit"} {
		_ = os.Remove(d.path("real/f"))
		d.write("real/f", "old\n")
		in := args{"file_path": d.path("l/f")}
		if name == "Write" {
			in["content"] = "new"
		} else if name == "Edit" {
			in["old_string"], in["new_string"] = "precious", "gone"
		}
		r, err := d.callWith(name, in, swap)
		if err == nil || !strings.Contains(err.Error(), "another file") {
			t.Errorf("%s after a swap: %v %v", name, err, r)
		}
	}
	if got := d.content("secret"); got != "precious\n" {
		t.Errorf("written through the link: %q", got)
	}
	if d.ok("Write", args{"file_path": "real/f", "content": "new\n"}); d.content("secret") != "new\n" {
		t.Error("an approved write through a link did not reach its target")
	}
	if info, err := os.Lstat(d.path("real/f")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
}

func TestDeny(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(o *Options) {
		o.Deny = func(p string) bool { return strings.HasPrefix(filepath.Base(p), ".env") }
	})
	d.write(".env", "SECRET=1\n")
	d.write(".env.local", "SECRET=1\n")
	if err := os.Symlink(".env", d.path("s")); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{".env", d.path(".env"), "sub/../.env", "s"} {
		d.fails("Read", args{"file_path": p}, "<tool_use_error>", "denies")
		d.fails("Write", args{"file_path": p, "content": ""}, "denies")
		d.fails("Edit", args{"file_path": p, "old_string": "S", "new_string": "T"}, "denies")
	}
	if _, err := d.call("Read", args{"file_path": ".ENV"}); err == nil || strings.Contains(err.Error(), ".env") {
		t.Errorf("a denied file is suggested: %v", err)
	}
}

func TestHooks(t *testing.T) {
	t.Parallel()
	var log []string
	var d *desk
	d = newDesk(t, func(o *Options) {
		o.Before = func(_ context.Context, p string) error {
			b, err := os.ReadFile(p)
			if err != nil {
				b = []byte("none")
			}
			log = append(log, "before "+filepath.Base(p)+" "+string(b))
			return nil
		}
		o.After = func(_ context.Context, p string) {
			b, _ := os.ReadFile(p)
			log = append(log, "after "+filepath.Base(p)+" "+string(b))
		}
	})
	d.ok("Write", args{"file_path": "f", "content": "a"})
	d.ok("Edit", args{"file_path": "f", "old_string": "a", "new_string": "b"})
	d.fails("Edit", args{"file_path": "f", "old_string": "zzz", "new_string": "b"})
	want := "before f none, after f a, before f a, after f b"
	if got := strings.Join(log, ", "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	for name, in := range map[string]string{
		"Read":  `{"file_path":""}|{"file_path":5}|{"file_path":"a\u0000b"}|{"file_path":"f","offset":-1}|{"file_path":"f","limit":0}|{"file_path":"f","limit":1.5}|{"file_path":"f","limit":"5"}|[]|null`,
		"Write": `{"file_path":"f"}|{"file_path":"f","content":[]}|{"content":""}`,
		"Edit":  `{"file_path":"f","old_string":"a"}|{"file_path":"f","new_string":"a"}|{"file_path":"f","old_string":"a","new_string":"b","replace_all":"yes"}`,
	} {
		for raw := range strings.SplitSeq(in, "|") {
			if eff, err := d.tools[name].Inspect(json.RawMessage(raw)); err == nil {
				t.Errorf("%s.Inspect(%s) = %v", name, raw, eff)
			}
		}
	}
	d.write("f", "a\nb")
	if got := d.ok("Read", args{"file_path": "f", "offset": 2.0}); got != "2\tb" {
		t.Errorf("got %q", got)
	}
}
