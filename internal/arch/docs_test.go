package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A promise whose test was renamed or removed is a promise no more: every
// test and script that docs/safety.md names is there.
func TestPromisesAreTested(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "safety.md"))
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, p := range packages(t) {
		files, err := filepath.Glob(filepath.Join(p.Dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(text)
		}
	}
	names := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`").FindAllStringSubmatch(string(page), -1)
	scripts := regexp.MustCompile(`[a-z]+/[a-z-]+\.txtar`).FindAllString(string(page), -1)
	if len(names) < 20 || len(scripts) == 0 {
		t.Errorf("the page names %d tests and %d scripts", len(names), len(scripts))
	}
	for _, n := range names {
		if !strings.Contains(tests.String(), "\nfunc "+n[1]+"(") {
			t.Errorf("docs/safety.md names %s, and there is none", n[1])
		}
	}
	for _, s := range scripts {
		if _, err := os.Stat(filepath.Join(root, "test", "testdata", s)); err != nil {
			t.Errorf("docs/safety.md names %s: %v", s, err)
		}
	}
}
