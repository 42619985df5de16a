package textdiff

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEdits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		before, after string
		want          []Edit
	}{
		{"", "", nil},
		{"a\n", "a\n", nil},
		{"", "a\n", []Edit{{0, 0, "a\n"}}},
		{"a\n", "", []Edit{{0, 2, ""}}},
		{"f(bar)\n", "f(baz)\n", []Edit{{4, 5, "z"}}},
		{"a\nb\nc\n", "a\nB\nc\n", []Edit{{2, 3, "B"}}},
		{"a\nb\nc\n", "a\nc\n", []Edit{{2, 4, ""}}},
		{"a\nc\n", "a\nb\nc\n", []Edit{{2, 2, "b\n"}}},
		{"é\n", "è\n", []Edit{{0, 2, "è"}}},
		{"a", "a\n", []Edit{{1, 1, "\n"}}},
		{"x\nk\ny\n", "X\nk\nY\n", []Edit{{0, 1, "X"}, {4, 5, "Y"}}},
	} {
		got := Edits(c.before, c.after)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("Edits(%q, %q): %s", c.before, c.after, d)
		}
		if s := Apply(c.before, got); s != c.after {
			t.Errorf("applied: got %q, want %q", s, c.after)
		}
	}
}

func TestHunks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		before, after string
		want          []Hunk
	}{
		{"a\n", "a\n", []Hunk{}},
		{"one\ntwo\nthree\n", "one\nTWO\nthree\n", []Hunk{{1, 3, 1, 3, []string{" one", "-two", "+TWO", " three"}}}},
		{"", "a\nb", []Hunk{{1, 0, 1, 2, []string{"+a", "+b", noNewline}}}},
		{"a", "a\n", []Hunk{{1, 1, 1, 1, []string{"-a", noNewline, "+a"}}}},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n3\n4\n5\n6\n7\n8\n9\nX\n", []Hunk{
			{1, 5, 1, 4, []string{" 1", "-2", " 3", " 4", " 5"}},
			{7, 3, 6, 4, []string{" 7", " 8", " 9", "+X"}},
		}},
	} {
		if d := cmp.Diff(c.want, Hunks(c.before, c.after, Context)); d != "" {
			t.Errorf("Hunks(%q, %q): %s", c.before, c.after, d)
		}
	}
}

func randomText(r *rand.Rand, n int) string {
	var b strings.Builder
	for range r.IntN(n) {
		fmt.Fprintf(&b, "%c\n", 'a'+rune(r.IntN(8)))
	}
	if r.IntN(3) == 0 {
		b.WriteString("end")
	}
	return b.String()
}

// git apply must turn the old text into the new one by what Format writes.
func TestGitApplies(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("git is not installed")
		}
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(3, 4))
	var patch strings.Builder
	want := map[string]string{}
	for i := range 300 {
		before, after := randomText(r, 40), randomText(r, 40)
		if before == "" || after == "" || before == after {
			continue
		}
		name := fmt.Sprintf("f%d", i)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(before), 0o644); err != nil {
			t.Fatal(err)
		}
		want[name] = after
		fmt.Fprintf(&patch, "--- a/%s\n+++ b/%s\n%s", name, name, Format(Hunks(before, after, Context)))
	}
	cmd := exec.Command("git", "apply", "-")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	cmd.Stdin = strings.NewReader(patch.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git apply: %v\n%s", err, out)
	}
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != text {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, text)
		}
	}
}

// A long rewrite with many separate changes keeps the lines between them.
func TestManyChanges(t *testing.T) {
	t.Parallel()
	var a, b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&a, "line %d\n", i)
		if i%3 == 0 {
			fmt.Fprintf(&b, "LINE %d\n", i)
		} else {
			fmt.Fprintf(&b, "line %d\n", i)
		}
	}
	if n := len(Edits(a.String(), b.String())); n != 667 {
		t.Errorf("got %d edits, want 667", n)
	}
}

func FuzzEdits(f *testing.F) {
	f.Add("a\nb\nc", "a\nc\nb\n")
	f.Add("é\xff\n", "è\xff")
	f.Fuzz(func(t *testing.T, before, after string) {
		es := Edits(before, after)
		if got := Apply(before, es); got != after {
			t.Errorf("Edits(%q, %q) = %v, which gives %q", before, after, es, got)
		}
		Hunks(before, after, Context)
	})
}

func BenchmarkHunks(b *testing.B) {
	old := strings.Repeat("some line of text\nand another\n\tthird %d\n", 2000)
	after := strings.Replace(old, "third", "3rd", 1)
	for b.Loop() {
		Hunks(old, after, Context)
	}
}
