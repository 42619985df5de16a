package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/net/modelserver"
)

// A worker talks to the demo's model over HTTP and does what it asks for, in
// dir, with real commands and files.
type worker struct {
	t     *testing.T
	dir   string
	url   string
	tools []string
	deny  string // calls of this tool are refused
	log   []string
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Thinking  string          `json:"thinking,omitempty"`
	Signature string          `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   *string         `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// talk runs one conversation and returns the last words.
func (w *worker) talk(prompt string) string {
	w.t.Helper()
	type tool struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"input_schema"`
	}
	var tools []tool
	for _, n := range w.tools {
		tools = append(tools, tool{n, json.RawMessage(`{"type":"object","properties":{"run_in_background":{"type":"boolean"}}}`)})
	}
	msgs := []message{{"user", []block{{Type: "text", Text: "<system-reminder>\nWorking directory: " + w.dir + "\n</system-reminder>"}, {Type: "text", Text: prompt}}}}
	for range 20 {
		body, err := json.Marshal(map[string]any{"model": "offline", "max_tokens": 4096, "thinking": map[string]string{"type": "adaptive"}, "tools": tools, "messages": msgs})
		if err != nil {
			w.t.Fatal(err)
		}
		req, _ := http.NewRequest("POST", w.url+"/v1/messages", bytes.NewReader(body))
		req.Header.Set("anthropic-version", "2023-06-01")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			w.t.Fatal(err)
		}
		var answer struct {
			Content []block
			Error   struct{ Message string }
		}
		err = json.NewDecoder(resp.Body).Decode(&answer)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 {
			w.t.Fatalf("%s: %v %s", resp.Status, err, answer.Error.Message)
		}
		msgs = append(msgs, message{"assistant", answer.Content})
		var results []block
		text := ""
		for _, b := range answer.Content {
			switch b.Type {
			case "text":
				text = b.Text
			case "tool_use":
				out, err := w.do(b.Name, b.Input)
				if err != nil {
					out = err.Error()
				}
				results = append(results, block{Type: "tool_result", ToolUseID: b.ID, Content: &out, IsError: err != nil})
			}
		}
		if results == nil {
			return text
		}
		msgs = append(msgs, message{"user", results})
	}
	w.t.Fatal("the conversation does not end")
	return ""
}

func (w *worker) do(name string, input json.RawMessage) (string, error) {
	var in struct {
		Command, Prompt, Pattern, Glob string
		Path                           string `json:"file_path"`
		Old                            string `json:"old_string"`
		New                            string `json:"new_string"`
		Background                     *bool  `json:"run_in_background"`
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return "", err
	}
	entry := name
	for _, s := range []string{in.Command, in.Path, in.Pattern} {
		if s != "" {
			entry += " " + strings.TrimPrefix(s, w.dir+"/")
		}
	}
	w.log = append(w.log, entry)
	if name == w.deny {
		return "", fmt.Errorf("permission denied")
	}
	switch name {
	case "Bash":
		cmd := exec.Command("sh", "-c", in.Command)
		cmd.Dir = w.dir
		// Without vet and symbols the many runs of this test cost half.
		cmd.Env = append(append(os.Environ(), Environ()...), "GOFLAGS=-mod=mod -vet=off -ldflags=-s")
		out, err := cmd.CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("Exit code %d\n%s", cmd.ProcessState.ExitCode(), out)
		}
		return string(out), nil
	case "Read":
		b, err := os.ReadFile(in.Path)
		var out strings.Builder
		for i, l := range strings.Split(string(b), "\n") {
			fmt.Fprintf(&out, "%d\t%s\n", i+1, l)
		}
		return out.String(), err
	case "Edit":
		b, err := os.ReadFile(in.Path)
		if err != nil {
			return "", err
		}
		if n := strings.Count(string(b), in.Old); n != 1 {
			return "", fmt.Errorf("old_string occurs %d times", n)
		}
		return "updated", os.WriteFile(in.Path, []byte(strings.Replace(string(b), in.Old, in.New, 1)), 0o666)
	case "Grep":
		re := regexp.MustCompile(in.Pattern)
		var out strings.Builder
		err := filepath.WalkDir(w.dir, func(p string, d os.DirEntry, err error) error {
			if ok, _ := filepath.Match(in.Glob, filepath.Base(p)); err != nil || !ok {
				return err
			}
			b, err := os.ReadFile(p)
			rel, _ := filepath.Rel(w.dir, p)
			for i, l := range strings.Split(string(b), "\n") {
				if re.MatchString(l) {
					fmt.Fprintf(&out, "%s:%d:%s\n", rel, i+1, l)
				}
			}
			return err
		})
		return out.String(), err
	case "Agent":
		if in.Background == nil || *in.Background {
			w.t.Error("the agent is not asked to stay in the foreground")
		}
		sub := *w
		sub.tools = slices.DeleteFunc(slices.Clone(w.tools), func(n string) bool { return n == "Agent" || n == "Edit" })
		sub.log = nil
		report := sub.talk(in.Prompt)
		for _, l := range sub.log {
			w.log = append(w.log, "  "+l)
		}
		return "Report:\n  " + strings.ReplaceAll(report, "\n", "\n  "), nil
	}
	return "", fmt.Errorf("no tool is called %s", name)
}

// change replaces text in a file of the sample.
type change struct{ file, old, new string }

func start(t *testing.T, changes ...change) *worker {
	t.Helper()
	dir := t.TempDir()
	if err := Copy(dir); err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		p := filepath.Join(dir, c.file)
		b, err := os.ReadFile(p)
		if err != nil || !strings.Contains(string(b), c.old) {
			t.Fatalf("%s holds no %q (%v)", c.file, c.old, err)
		}
		if err := os.WriteFile(p, []byte(strings.ReplaceAll(string(b), c.old, c.new)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	s := modelserver.New(modelserver.Options{Brain: Brain(0)})
	url, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	t.Cleanup(func() {
		if v := s.Violations(); len(v) > 0 {
			t.Errorf("violations: %q", v)
		}
	})
	return &worker{t: t, dir: dir, url: url, tools: []string{"Agent", "Bash", "Edit", "Grep", "Read"}}
}

const summary = "The tests pass. Before: 3 failing tests in 1 package. Now: 2 packages ok.\n\n" +
	"- auth/role.go: `return rank[r] > rank[need]` is now `return rank[r] >= rank[need]`\n" +
	"- auth/session.go: `return now.After(s.Expires.Add(-leeway))` is now `return now.After(s.Expires.Add(leeway))`"

func TestRepair(t *testing.T) {
	t.Parallel()
	w := start(t)
	got := w.talk(Prompt)
	if got != summary {
		t.Errorf("got  %s\nwant %s", got, summary)
	}
	want := []string{
		"Bash go test ./...",
		"Agent",
		`  Grep ^func (TestRoleAllowsItself|TestSessionLivesUntilItExpires|TestSessionSurvivesClockSkew)\(`,
		"  Read auth/role_test.go",
		"  Read auth/session_test.go",
		`  Grep ^func (\(\w+ \*?\w+\) )?(Add|Allows|Expired|Start)\(`,
		"Read auth/role.go",
		"Read auth/session.go",
		"Edit auth/role.go",
		"Edit auth/session.go",
		"Bash go test ./...",
	}
	if !slices.Equal(w.log, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(w.log, "\n"), strings.Join(want, "\n"))
	}
}

// With fewer tools the job is the same.
func TestRepairWithFewerTools(t *testing.T) {
	t.Parallel()
	for _, tools := range [][]string{{"Bash", "Edit", "Grep", "Read"}, {"Bash", "Edit", "Read"}} {
		w := start(t)
		w.tools = tools
		if got := w.talk(Prompt); got != summary {
			t.Errorf("%v: got %s", tools, got)
		}
	}
}

// Another sample makes another run.
func TestChangedSample(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		changes []change
		deny    string
		want    string // regular expression for the last words
		edits   int
	}{
		{"nothing is wrong", []change{{"auth/role.go", "> rank[need]", ">= rank[need]"}, {"auth/session.go", "Add(-leeway)", "Add(leeway)"}}, "",
			`^All tests pass already: 2 packages ok\. There is nothing to repair\.$`, 0},
		{"one mistake", []change{{"auth/role.go", "> rank[need]", ">= rank[need]"}}, "",
			`^The tests pass\. Before: 2 failing tests in 1 package\. Now: 2 packages ok\.\n\n- auth/session\.go: [^\n]*$`, 1},
		{"other names and places", []change{
			{"auth/session.go", "leeway", "grace"}, {"auth/session.go", "Expired", "Over"}, {"auth/session_test.go", "Expired", "Over"},
			{"auth/session.go", "// A Session says", "// Line\n// A Session says"}, {"auth/role.go", "rank", "height"}}, "",
			"^The tests pass[^`]*`return height\\[r\\] > height\\[need\\]` is now `return height\\[r\\] >= height\\[need\\]`\n.*Add\\(grace\\)", 2},
		{"the line stands twice", []change{{"auth/role.go", "// Allows reports", "func (r Role) Above(need Role) bool {\n\treturn rank[r] > rank[need]\n}\n\n// Allows reports"}}, "",
			`^The tests pass\. Before: 3`, 2},
		{"a mistake it does not know", []change{{"auth/role.go", "> rank[need]", "== 9"}, {"auth/session.go", "Add(-leeway)", "Add(leeway)"}}, "",
			`I read auth/role\.go and found no mistake that I know how to repair, so I change nothing\.$`, 0},
		{"half of it is beyond it", []change{{"auth/role.go", "> rank[need]", "== 9"}}, "",
			`^Not all is well\. Before: 4 failing tests in 1 package\. Now: 2 failing tests in 1 package\.`, 1},
		{"a test fails elsewhere", []change{{"tickets/tickets.go", "n/10", "n/9"}, {"auth/role.go", "> rank[need]", ">= rank[need]"}, {"auth/session.go", "Add(-leeway)", "Add(leeway)"}}, "",
			`^1 failing test in 1 package\. I read tickets/tickets\.go and found no mistake`, 0},
		{"it does not build", []change{{"auth/role.go", "import \"fmt\"", ""}}, "",
			`^example\.com/ferry/auth does not build`, 0},
		{"edits are refused", nil, "Edit", `^The edit was refused: permission denied\nThe project is as it was: 3 failing tests in 1 package\.$`, 2},
		{"commands are refused", nil, "Bash", `^I could not run the tests: permission denied$`, 0},
		{"files cannot be read", nil, "Read", `I could not find the code they test|could not read`, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := start(t, tt.changes...)
			w.deny = tt.deny
			got := w.talk(Prompt)
			if !regexp.MustCompile(tt.want).MatchString(got) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			edits := 0
			for _, l := range w.log {
				if strings.HasPrefix(l, "Edit ") {
					edits++
				}
			}
			if edits != tt.edits {
				t.Errorf("got %d edits, want %d:\n%s", edits, tt.edits, strings.Join(w.log, "\n"))
			}
		})
	}
}

func TestOtherPrompts(t *testing.T) {
	t.Parallel()
	w := start(t)
	if got := w.talk("write me a poem"); !strings.HasPrefix(got, "I am the built-in offline model.") || len(w.log) > 0 {
		t.Errorf("got %s after %q", got, w.log)
	}
}

func TestCopyOverwritesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Copy(dir); err == nil {
		t.Error("a file was in the way, and there is no error")
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "main.go")); string(b) != "mine" {
		t.Errorf("got %q, want the file as it was", b)
	}
}
