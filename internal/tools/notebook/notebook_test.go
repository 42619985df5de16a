package notebook

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

const doc = `{"cells":[{"cell_type":"markdown","id":"m","metadata":{},"source":"# T"},{"cell_type":"code","execution_count":1,"id":"c","metadata":{},"outputs":[{"output_type":"stream","text":"x"}],"source":["1"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}`

// run makes one edit of a notebook that is kept in a string.
func run(t *testing.T, file *string, in map[string]any) (agent.Result, error) {
	t.Helper()
	tool := New(Options{
		Subjects: func(path string) (string, []agent.Subject, error) {
			return "/w/" + path, []agent.Subject{{Kind: agent.SubjectWrite, Value: "/w/" + path}}, nil
		},
		Load: func(context.Context, agent.Call, string) ([]byte, error) { return []byte(*file), nil },
		Save: func(_ context.Context, _ agent.Call, _ string, before, after []byte) error {
			if string(before) != *file {
				return errors.New("not what was loaded")
			}
			*file = string(after)
			return nil
		},
	})[0]
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	eff, err := tool.Inspect(raw)
	if err != nil {
		return agent.Result{}, err
	}
	if len(eff.Subjects) != 1 || eff.Subjects[0].Kind != agent.SubjectWrite || eff.Concurrent || eff.ReadOnly {
		t.Errorf("effects %+v", eff)
	}
	return tool.Run(t.Context(), agent.Call{Input: raw, Effects: eff})
}

func TestEdits(t *testing.T) {
	t.Parallel()
	file := doc
	for _, c := range []struct {
		in   map[string]any
		said string
		from string // the stretch of the file that changes
		to   string
		d    Detail
	}{
		{map[string]any{"cell_id": "c", "new_source": "2"}, "Cell c was replaced.",
			`"execution_count":1,"id":"c","metadata":{},"outputs":[{"output_type":"stream","text":"x"}],"source":["1"]`, `"execution_count":null,"id":"c","metadata":{},"outputs":[],"source":["2"]`,
			Detail{NewSource: "2", CellID: "c", CellType: "code", Language: "python", EditMode: "replace"}},
		{map[string]any{"cell_id": "c", "new_source": "x", "cell_type": "markdown"}, "Cell c was replaced.",
			`{"cell_type":"code","execution_count":null,"id":"c","metadata":{},"outputs":[],"source":["2"]}`, `{"cell_type":"markdown","id":"c","metadata":{},"source":["x"]}`,
			Detail{NewSource: "x", CellID: "c", CellType: "markdown", Language: "python", EditMode: "replace"}},
		{map[string]any{"cell_id": "m", "new_source": "", "edit_mode": "delete"}, "Cell m was deleted.",
			`{"cell_type":"markdown","id":"m","metadata":{},"source":"# T"},`, "",
			Detail{CellID: "m", CellType: "markdown", Language: "python", EditMode: "delete"}},
	} {
		c.in["notebook_path"] = "n.ipynb"
		before := file
		r, err := run(t, &file, c.in)
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.Replace(before, c.from, c.to, 1); file != want || before == file {
			t.Errorf("%v: got %s, want %s", c.in, file, want)
		}
		c.d.NotebookPath, c.d.OriginalFile, c.d.UpdatedFile = "/w/n.ipynb", before, file
		if d := cmp.Diff(c.d, r.Detail); d != "" || agent.TextOf(r.Blocks) != c.said {
			t.Errorf("%v: %q %s", c.in, agent.TextOf(r.Blocks), d)
		}
	}
	r, err := run(t, &file, map[string]any{"notebook_path": "n.ipynb", "new_source": "top", "cell_type": "code", "edit_mode": "insert"})
	id := r.Detail.(Detail).CellID
	if err != nil || agent.TextOf(r.Blocks) != "Cell "+id+" was inserted at position 1." || !strings.HasPrefix(file, `{"cells":[{"cell_type":"code","execution_count":null,"id":"`+id+`","metadata":{},"outputs":[],"source":["top"]},{`) {
		t.Errorf("got %v, %s", err, file)
	}
	r, err = run(t, &file, map[string]any{"notebook_path": "n.ipynb", "cell_id": "c", "new_source": "end", "cell_type": "markdown", "edit_mode": "insert"})
	if err != nil || agent.TextOf(r.Blocks) != "Cell "+r.Detail.(Detail).CellID+" was inserted at position 3." || !strings.Contains(file, `"source":["end"]}],"metadata"`) {
		t.Errorf("got %v, %v, %s", err, agent.TextOf(r.Blocks), file)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for want, in := range map[string]map[string]any{
		"new_source is missing":         {"notebook_path": "n.ipynb", "cell_id": "c"},
		"needs cell_type":               {"notebook_path": "n.ipynb", "new_source": "", "edit_mode": "insert"},
		"replace needs cell_id":         {"notebook_path": "n.ipynb", "new_source": ""},
		"delete needs cell_id":          {"notebook_path": "n.ipynb", "new_source": "", "edit_mode": "delete"},
		"Use Edit":                      {"notebook_path": "n.py", "new_source": "", "cell_id": "c"},
		"must be code or markdown":      {"notebook_path": "n.ipynb", "new_source": "", "cell_id": "c", "cell_type": "raw"},
		"must be replace":               {"notebook_path": "n.ipynb", "new_source": "", "cell_id": "c", "edit_mode": "x"},
		`no cell "z". Its cells are m`:  {"notebook_path": "n.ipynb", "new_source": "", "cell_id": "z"},
		"<tool_use_error>The notebook ": {"notebook_path": "n.ipynb", "new_source": "", "cell_id": "cell-9"},
	} {
		file := doc
		if _, err := run(t, &file, in); err == nil || !strings.Contains(err.Error(), want) || file != doc {
			t.Errorf("%v: got %v, want %q", in, err, want)
		}
	}
	for _, bad := range []string{"{", `{"nbformat":3}`} {
		file := bad
		if _, err := run(t, &file, map[string]any{"notebook_path": "n.ipynb", "new_source": "", "cell_id": "c"}); err == nil || file != bad {
			t.Errorf("%s: %v, %s", bad, err, file)
		}
	}
}
