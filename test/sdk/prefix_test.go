//go:build unix

package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/net/modelserver"
)

// What a request holds up to its last mark, the next one begins with, byte
// for byte: over a session with tools, instructions that are read on the way,
// skills, another mode and another model.
func TestPrefixThroughASession(t *testing.T) {
	t.Parallel()
	home, project := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"CLAUDE.md":                      "Tabs, not blanks.\n",
		"deep/CLAUDE.md":                 "In here, blanks.\n",
		"deep/a.txt":                     "a\n",
		".claude/rules/text.md":          "---\npaths: \"**/*.txt\"\n---\nTexts end with a full stop.\n",
		".claude/skills/brew/SKILL.md":   "---\nname: brew\ndescription: Makes tea\n---\nBoil water.\n",
		".claude/agents/scout.md":        "---\nname: scout\ndescription: Looks ahead\ntools: Read\n---\nYou look ahead.\n",
		".claude/commands/greet.md":      "Greet $ARGUMENTS.\n",
		".claude/output-styles/terse.md": "---\nname: terse\ndescription: Few words\n---\nUse few words.\n",
	} {
		file := filepath.Join(project, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	// Each turn calls one tool, then answers; request numbers tell them apart.
	calls := []string{
		`Read {"file_path":"` + project + `/deep/a.txt"}`, `Bash {"command":"echo hello"}`, `Skill {"skill":"brew"}`, `Glob {"pattern":"**/*"}`,
		`Write {"file_path":"` + project + `/new.txt","content":"new\n"}`, `Grep {"pattern":"a"}`, `Bash {"command":"exit 3"}`, `Read {"file_path":"nowhere"}`,
	}
	n := 0
	h := begin(t, home, project, func(_ context.Context, r *modelserver.Request) (modelserver.Script, error) {
		if len(r.Results()) > 0 {
			return modelserver.ParseScript(fmt.Sprintf("thinking Hm.\ntext Answer %d.", r.N))
		}
		n++
		return modelserver.ParseScript(fmt.Sprintf("text Let me see.\ntool t%%n %s", calls[n%len(calls)]))
	}, "--model", "claude-sonnet-4-5", "--allowedTools=Bash,Read,Skill,Glob,Grep,Write", "--permission-prompt-tool=stdio")
	h.ask(t, "initialize", "{}")
	for turn := range 20 {
		switch turn {
		case 5:
			h.must(t, "set_permission_mode", `{"mode":"acceptEdits"}`)
		case 8:
			h.must(t, "set_permission_mode", `{"mode":"plan"}`)
		case 11:
			h.must(t, "set_permission_mode", `{"mode":"default"}`)
		case 13:
			h.must(t, "set_model", `{"model":"claude-haiku-4-5"}`)
		case 16:
			h.must(t, "set_model", `{"model":"claude-sonnet-4-5"}`)
		case 18:
			// A skill that comes later is told later.
			if err := os.MkdirAll(filepath.Join(project, ".claude/skills/bake"), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(project, ".claude/skills/bake/SKILL.md"), []byte("---\nname: bake\ndescription: Bakes bread\n---\nHeat the oven.\n"), 0o666); err != nil {
				t.Fatal(err)
			}
			h.must(t, "reload_skills", "{}")
		}
		prompt := fmt.Sprintf("Turn %d.", turn)
		if turn == 3 {
			prompt = "/greet everybody"
		}
		h.say(t, prompt)
		h.wait(t, func(f frame) bool { return f.Type == "result" })
	}
	h.end(t)
	if v := h.srv.Violations(); len(v) > 0 {
		t.Errorf("the model was asked what the API refuses: %q", v)
	}
	rs := h.srv.Requests()
	if len(rs) < 40 {
		t.Fatalf("only %d requests", len(rs))
	}
	// Each model has a cache of its own: back at a model, a request goes on
	// where the last one to that model ended.
	last := map[string]int{}
	for i, r := range rs {
		if j, ok := last[r.Model]; ok {
			if err := r.Extends(rs[j]); err != nil {
				t.Errorf("request %d does not go on where %d ended: %v", i, j, err)
			}
		}
		last[r.Model] = i
	}
	if len(last) != 2 {
		t.Errorf("got %d models, want 2", len(last))
	}
}

// must asks for what may not fail.
func (h *dialogue) must(t *testing.T, subtype, fields string) {
	t.Helper()
	if a := h.ask(t, subtype, fields); a.Subtype != "success" {
		t.Fatalf("%s: %s", subtype, a.Error)
	}
}

func (h *dialogue) say(t *testing.T, text string) {
	t.Helper()
	b, err := json.Marshal(map[string]any{"type": "user", "message": map[string]string{"role": "user", "content": text}})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(h.in, "%s\n", b)
}
