package linkpath

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestTargets(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(p string) string { return filepath.Join(dir, p) }
	for _, d := range []string{"ws/sub", "out/deep"} {
		if err := os.MkdirAll(at(d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"ws/abs": at("out"), "ws/rel": "../out/deep", "ws/dangling": at("nowhere/x"), "ws/one": "two", "ws/two": "rel",
		"ws/loop": "loop", "ws/in": "sub",
	} {
		if err := os.Symlink(target, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		path string
		want []string
	}{
		{"ws/sub/x", nil},
		{"ws/none/x", nil},
		{"ws/abs", []string{"out"}},
		{"ws/abs/new", []string{"out/new"}},
		{"ws/rel/../x", []string{"out/x"}},
		{"ws/dangling", []string{"nowhere/x"}},
		{"ws/one/f", []string{"ws/two/f", "out/deep/f"}},
		{"ws/in/f", []string{"ws/sub/f"}},
	} {
		got := Targets(dir + "/" + c.path)
		var want []string
		for _, w := range c.want {
			want = append(want, at(w))
		}
		// What comes in between may be more; the last is where it leads.
		if len(want) == 0 && len(got) > 0 || len(want) > 0 && (len(got) == 0 || got[len(got)-1] != want[len(want)-1]) {
			t.Errorf("Targets(%s) = %v, want %v", c.path, got, want)
		}
		for _, w := range want {
			if !slices.Contains(got, w) {
				t.Errorf("Targets(%s) = %v lacks %s", c.path, got, w)
			}
		}
	}
	if got := Targets(at("ws/loop/x")); !slices.Contains(got, "/") {
		t.Errorf("a loop leads to %v", got)
	}
	real, err := filepath.EvalSymlinks(at("ws/one"))
	if got := Targets(at("ws/one")); err != nil || got[len(got)-1] != real {
		t.Errorf("got %v, the system says %s, %v", got, real, err)
	}
}
