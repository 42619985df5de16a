package plugin

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// lay writes files below a new directory and returns it.
func lay(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sample")
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLoad(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		files    map[string]string
		want     string // name; skills; commands; agents; number of hook blocks and servers, as below
		problems string
	}{
		{"no manifest", map[string]string{"skills/a/SKILL.md": "x"}, "sample|skills|commands|agents|0|0", ""},
		{"single skill", map[string]string{"SKILL.md": "x"}, "sample|.|commands|agents|0|0", ""},
		{
			"named parts", map[string]string{
				manifestFile:        `{"name":"p","skills":"./more","commands":["./cmd/a.md"],"agents":"./helpers","x":1}`,
				"skills/a/SKILL.md": "x", "more/b/SKILL.md": "y", "cmd/a.md": "z", "helpers/h.md": "h",
			}, "p|skills more|cmd/a.md|helpers|0|0", "",
		},
		{
			"hooks and servers", map[string]string{
				manifestFile:       `{"name":"p","hooks":["./hooks/hooks.json",{"Stop":[]}],"mcpServers":{"s":{"command":"x"}}}`,
				"hooks/hooks.json": `{"description":"d","hooks":{"Stop":[]}}`, ".mcp.json": `{"mcpServers":{}}`,
			}, "p||commands|agents|2|2", "",
		},
		{"outside", map[string]string{manifestFile: `{"name":"p","commands":["../x","/etc"],"hooks":"./none.json"}`}, "p|||agents|0|0", "not a path inside the plugin"},
		{"wrong type", map[string]string{manifestFile: `{"name":"p","commands":7}`}, "", "must be a path or a list of paths"},
		{"wrong name", map[string]string{manifestFile: `{"name":"a:b"}`}, "", `the name "a:b"`},
		{"no name", map[string]string{manifestFile: `{}`}, "", "it has no name"},
		{"not JSON", map[string]string{manifestFile: `{`}, "", "unexpected end of JSON"},
		{"nothing", map[string]string{"README.md": "x"}, "", "no plugin was loaded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := lay(t, tt.files)
			found, problems := Find(dir)
			got := ""
			if len(found) > 0 {
				p := found[0]
				rel := func(list []string) string {
					out := make([]string, 0, len(list))
					for _, s := range list {
						r, err := filepath.Rel(dir, s)
						if err != nil {
							t.Fatal(err)
						}
						out = append(out, filepath.ToSlash(r))
					}
					return strings.Join(out, " ")
				}
				n := func(b []Block) string { return string(rune('0' + len(b))) }
				got = strings.Join([]string{p.Name, rel(p.Skills), rel(p.Commands), rel(p.Agents), n(p.Hooks), n(p.Servers)}, "|")
				for _, h := range p.Hooks {
					if string(h.Raw) != `{"Stop":[]}` {
						t.Errorf("hooks are %s", h.Raw)
					}
				}
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			var told []string
			for _, p := range problems {
				told = append(told, p.String())
			}
			if text := strings.Join(told, "\n"); (tt.problems == "") != (text == "") || !strings.Contains(text, tt.problems) {
				t.Errorf("problems are %q, want %q", text, tt.problems)
			}
		})
	}
}

// A folder of plugins loads each; a broken one hides no other.
func TestFolder(t *testing.T) {
	t.Parallel()
	dir := lay(t, map[string]string{"a/commands/x.md": "x", "b/" + manifestFile: "{", "c/SKILL.md": "y", "d/README.md": "no"})
	found, problems := Find(dir)
	var names []string
	for _, p := range found {
		names = append(names, p.Name)
	}
	if want := []string{"a", "c"}; !slices.Equal(names, want) || len(problems) != 1 {
		t.Errorf("got %v and %v, want %v and one problem", names, problems, want)
	}
}

func FuzzManifest(f *testing.F) {
	for _, s := range []string{`{"name":"p"}`, `{"name":"p","hooks":[{},"x"],"skills":["./a"]}`, `{"name":"p","mcpServers":[[]]}`, `{"hooks":null}`, `[`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := parse([]byte(s))
		if err != nil {
			return
		}
		if m.Name == "" {
			t.Error("a manifest without a name was taken")
		}
		for _, list := range []paths{m.Skills, m.Commands, m.Agents, m.OutputStyles} {
			for _, x := range list {
				if file, err := inside("/srv/p", x); err == nil && file != filepath.FromSlash("/srv/p") && !strings.HasPrefix(file, filepath.FromSlash("/srv/p/")) {
					t.Errorf("%q leads to %q", x, file)
				}
			}
		}
	})
}
