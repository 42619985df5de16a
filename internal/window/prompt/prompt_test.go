package prompt

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func render(ss []Section) string {
	var b strings.Builder
	for _, s := range ss {
		fmt.Fprintf(&b, "== %s", s.Name)
		if s.Mark {
			b.WriteString(" (mark)")
		}
		fmt.Fprintf(&b, "\n%s\n", s.Text)
	}
	return b.String()
}

func TestSections(t *testing.T) {
	t.Parallel()
	all := []string{"Agent", "Bash", "Edit", "Read", "TodoWrite", "ToolSearch", "Write"}
	for name, o := range map[string]Options{
		"default":    {Tools: all},
		"unattended": {Tools: []string{"Bash"}, Unattended: true},
		"no-tools":   {},
		"append":     {Tools: all, Append: "  Speak of the sea.\n"},
		"style":      {Tools: all, Style: Style{Name: "Pirate", Text: "Talk like a pirate."}},
		"style-code": {Tools: all, Style: Style{Name: "Teach", Text: "Explain each step.", KeepCoding: true}, Append: "And this."},
		"minimal":    {Tools: all, Minimal: true, Append: "More."},
		"empty":      {Custom: []string{""}},
		"custom":     {Custom: []string{"One.\n", "", "Two."}, Tools: all, Append: "End."},
		"boundary":   {Custom: []string{"Constant.", Boundary, "Varying."}, Append: "End."},
		"agent":      {Tools: []string{"Read", "Grep", "Bash"}, Agent: "You look for things."},
		"lead":       {Tools: []string{"Read", "Bash"}, Agent: "You keep the garden.", Lead: true},
	} {
		got := render(Sections(o))
		file := filepath.Join("testdata", name+".golden")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}

// At most two marks: the request adds two more, and four is the limit.
func TestMarks(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{
		{}, {Append: "a"}, {Minimal: true, Append: "a"}, {Custom: []string{"a", Boundary, "b"}, Append: "c"},
		{Custom: []string{Boundary, "b"}, Append: "c"}, {Custom: []string{"a", Boundary}}, {Custom: []string{Boundary}},
		{Agent: "x", Append: "y"},
	} {
		n, ss := 0, Sections(o)
		for _, s := range ss {
			if s.Mark {
				n++
			}
			if strings.TrimSpace(s.Text) == "" {
				t.Errorf("%+v: blank section %q", o, s.Name)
			}
		}
		if n < 1 || n > 2 || !ss[len(ss)-1].Mark {
			t.Errorf("%+v: %d marks in %v", o, n, ss)
		}
	}
}

// Every line of ours stands in docs/prompt.md with its reason.
func TestDocumented(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../../docs/prompt.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{minimal, identity, work, attended, unattended, care, tools, fileTools, agentTool, toolSearch, taskList, notes, answers, handback} {
		for line := range strings.Lines(text) {
			line = strings.TrimPrefix(strings.TrimSpace(line), "- ")
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			for s := range strings.SplitSeq(line, ". ") {
				if s = strings.TrimSuffix(s, "."); !strings.Contains(string(doc), s) {
					t.Errorf("docs/prompt.md gives no reason for %q", s)
				}
			}
		}
	}
	for line := range strings.Lines(string(doc)) {
		if cells := strings.Split(line, "|"); strings.HasPrefix(line, "| ") && (len(cells) != 4 || strings.TrimSpace(cells[2]) == "") {
			t.Errorf("docs/prompt.md: a row without a reason: %q", line)
		}
	}
}
