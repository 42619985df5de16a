// Package arch tests the shape of the program: which package may import
// which, who may touch the outside world, and what the binary links.
package arch

import (
	"encoding/json"
	"io"
	"os/exec"
	"path"
	"strings"
	"testing"
)

const module = "github.com/seed-eb844fcb/cinch/"

// layers lists what each package may import from this module. The first
// pattern that matches a package applies; a package in no row fails the test,
// so that placing one is a decision. docs/ARCHITECTURE.md explains the rows.
var layers = []struct{ pkg, may string }{
	{"agent", ""},
	{"lib/*", "lib/*"},
	{"journal", "agent"},
	{"loop", "agent"},
	{"policy", "agent lib/*"},
	{"policy/*", "agent policy lib/*"},
	{"gate", "agent policy lib/*"},
	{"transcript", "agent lib/* transcript/*"},
	{"transcript/*", "agent lib/*"},
	{"settings", "agent lib/*"},
	{"job", "agent lib/*"},
	{"window", "agent lib/* window/*"},
	{"window/*", "agent lib/* window/*"},
	{"checkpoint", "agent lib/*"},
	{"sandbox", "agent lib/*"},
	{"sandbox/*", "agent lib/* sandbox"},
	{"net/*", "agent lib/* net/* net/*/*"},
	{"net/*/*", "agent lib/* net/* net/*/*"},
	{"tools/*", "agent lib/*"},
	{"ext/*", "agent lib/*"},
	{"session", "agent journal loop gate window lib/*"},
	{"ui/tui/cell", "lib/*"},
	{"ui/tui/editor", "ui/tui/cell"},
	{"ui/tui/markdown", "ui/tui/cell"},
	{"ui/tui", "agent lib/* ui/frame ui/tui/*"},
	{"ui/*", "agent lib/* ui/frame"},
	{"ui/*/*", "agent lib/*"},
	{"test/*", "agent lib/* net/modelserver net/mcp/serve"},
	{"demo", "lib/* net/modelserver"},
	{"app", "*"},
	{"cli", "*"},
	{"arch", ""},
}

// only lists who may import a sensitive package from outside the module.
var only = map[string]string{
	"net/http":  "net/* net/*/* ui/web ui/slack test/*",
	"os/exec":   "lib/proc sandbox sandbox/* arch test/*",
	"os/signal": "cli lib/proc test/*",
}

// match reports whether any of the space-separated patterns matches s.
func match(patterns, s string) bool {
	for p := range strings.FieldsSeq(patterns) {
		if ok, _ := path.Match(p, s); ok || p == "*" {
			return true
		}
	}
	return false
}

type pkg struct {
	ImportPath  string
	Imports     []string
	TestImports []string
	GoFiles     []string
	Dir         string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,GoFiles,Dir", module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var ps []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); err == io.EOF {
			return ps
		} else if err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
}

func TestImports(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		name, inside := strings.CutPrefix(p.ImportPath, module+"internal/")
		if !inside {
			continue // cmd/* and test are programs, not layers
		}
		may, known := "", false
		for _, l := range layers {
			if match(l.pkg, name) && !(l.pkg == "lib/*" && !strings.HasPrefix(name, "lib/")) {
				may, known = l.may, true
				break
			}
		}
		if !known {
			t.Errorf("%s is in no layer: add it to the table and to docs/ARCHITECTURE.md", name)
		}
		for _, imp := range p.Imports {
			if in, ok := strings.CutPrefix(imp, module+"internal/"); ok && !match(may, in) {
				t.Errorf("%s may not import %s", name, in)
			}
			if who, ok := only[imp]; ok && !match(who, name) {
				t.Errorf("%s may not import %s", name, imp)
			}
		}
	}
}

// The vocabulary stays a vocabulary: types, contracts, one encoding.
func TestVocabularyIsPure(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if p.ImportPath != module+"internal/agent" {
			continue
		}
		for _, imp := range p.Imports {
			switch first, _, _ := strings.Cut(imp, "/"); {
			case strings.Contains(first, "."):
				t.Errorf("agent imports %s: standard library only", imp)
			case first == "os", first == "net", imp == "log/slog":
				t.Errorf("agent imports %s: it performs no I/O", imp)
			}
		}
	}
}
