//go:build unix

package memory

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Bad input is bounded, told, and costs only itself. Real files, as the
// kinds in question do not exist in memory.
func TestBadInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if r, err := filepath.EvalSymlinks(dir); err == nil {
		dir = r
	}
	write := func(name, text string) {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("CLAUDE.md", "rules @pipe.md @big.md @bad.md @binary.md @/dev/zero @CLAUDE.md/x.md @"+strings.Repeat("n", 300)+".md")
	write("big.md", strings.Repeat("x", 5<<20))
	write("bad.md", "b\xffd")
	write("binary.md", "a\x00b")
	write(".claude/rules/deep/r.md", "deep")
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.md"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, link := range [][2]string{{"..", ".claude/rules/deep/up"}, {"loop", "loop"}, {"loop", ".claude/rules/l.md"}} {
		if err := os.Symlink(link[0], filepath.Join(dir, link[1])); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan *Set)
	go func() {
		done <- Load(context.Background(), Options{FS: os.DirFS("/"), Cwd: dir, AllowImport: func(_, _ string) bool { return true }})
	}()
	var s *Set
	select {
	case s = <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("Load hangs")
	}
	var texts []string
	for _, f := range s.Files {
		if strings.HasPrefix(f.Path, dir) && filepath.Base(f.Path) != "CLAUDE.md" {
			texts = append(texts, f.Text)
		}
	}
	if d := cmp.Diff([]string{"b\ufffdd", "deep"}, texts); d != "" {
		t.Error(d)
	}
	for _, name := range []string{"pipe.md", "big.md", "bad.md", "binary.md", "/dev/zero"} {
		if !slices.ContainsFunc(s.Problems, func(p Problem) bool { return strings.HasSuffix(p.Path, name) }) {
			t.Errorf("nothing told about %s: %v", name, s.Problems)
		}
	}
}
