// Package notebook holds the tool NotebookEdit.
//
// It owns what an edit of a cell means. It neither opens nor writes files:
// Load and Save do, so that every file tool shares one way to change a file.
package notebook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/ipynb"
)

// Options are what the tool stands on. All fields are required; the methods
// of a file.Editor fit.
type Options struct {
	// Subjects resolves a path as given and names what a change of it touches.
	Subjects func(path string) (abs string, subjects []agent.Subject, err error)
	// Load returns the content of a file that the model has read and nobody
	// has changed since; for any other its error tells the model what to do.
	Load func(ctx context.Context, c agent.Call, path string) ([]byte, error)
	// Save replaces what Load returned.
	Save func(ctx context.Context, c agent.Call, path string, before, after []byte) error
}

// New returns NotebookEdit.
func New(o Options) []agent.Tool { return []agent.Tool{&edit{o}} }

type edit struct{ o Options }

type input struct {
	Path     string  `json:"notebook_path"`
	CellID   string  `json:"cell_id"`
	Source   *string `json:"new_source"`
	CellType string  `json:"cell_type"`
	Mode     string  `json:"edit_mode"`
}

// A Detail is the Detail of a NotebookEdit: the SDK's tool_use_result.
type Detail struct {
	NewSource    string `json:"new_source"`
	CellID       string `json:"cell_id,omitempty"`
	CellType     string `json:"cell_type"`
	Language     string `json:"language"`
	EditMode     string `json:"edit_mode"`
	NotebookPath string `json:"notebook_path"`
	OriginalFile string `json:"original_file"`
	UpdatedFile  string `json:"updated_file"`
}

func (*edit) Spec() agent.Spec {
	return agent.Spec{
		Name: "NotebookEdit",
		Description: `Changes one cell of a Jupyter notebook (.ipynb); all other cells stay as they are, byte for byte.

- Read the notebook first: the ids of its cells are shown there.
- edit_mode replace (the default) puts new_source in the place of the cell's source and, for code, clears its outputs. insert adds a cell behind the one named by cell_id, or at the top without cell_id, and needs cell_type. delete removes the cell; new_source is then not used and may be empty.`,
		Schema: json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{` +
			`"notebook_path":{"description":"Path of the notebook, best absolute","type":"string"},` +
			`"cell_id":{"description":"Id of the cell; for insert, of the cell to insert behind","type":"string"},` +
			`"new_source":{"description":"The new source of the cell","type":"string"},` +
			`"cell_type":{"description":"Type of the cell: needed for insert, else it stays as it is","type":"string","enum":["code","markdown"]},` +
			`"edit_mode":{"description":"What to do with the cell","type":"string","enum":["replace","insert","delete"]}},` +
			`"required":["notebook_path","new_source"],"additionalProperties":false}`),
		Deferred: true,
	}
}

func parse(raw json.RawMessage) (in input, err error) {
	if err := json.Unmarshal(raw, &in); err != nil {
		return in, err
	}
	if in.Mode == "" {
		in.Mode = "replace"
	}
	switch {
	case in.Source == nil:
		return in, errors.New("new_source is missing")
	case in.CellType != "" && in.CellType != "code" && in.CellType != "markdown":
		return in, fmt.Errorf("cell_type is %q; it must be code or markdown", in.CellType)
	case in.Mode != "replace" && in.Mode != "insert" && in.Mode != "delete":
		return in, fmt.Errorf("edit_mode is %q; it must be replace, insert or delete", in.Mode)
	case in.Mode == "insert" && in.CellType == "":
		return in, errors.New("edit_mode insert needs cell_type")
	case in.Mode != "insert" && in.CellID == "":
		return in, fmt.Errorf("edit_mode %s needs cell_id", in.Mode)
	case !strings.EqualFold(filepath.Ext(in.Path), ".ipynb"):
		return in, fmt.Errorf("%q is no notebook: its name does not end in .ipynb. Use Edit", in.Path)
	}
	return in, nil
}

func (t *edit) Inspect(raw json.RawMessage) (agent.Effects, error) {
	in, err := parse(raw)
	if err != nil {
		return agent.Effects{}, err
	}
	_, subjects, err := t.o.Subjects(in.Path)
	return agent.Effects{Subjects: subjects}, err
}

func (t *edit) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	in, err := parse(c.Input)
	if err != nil {
		return agent.Result{}, err
	}
	abs, _, err := t.o.Subjects(in.Path)
	if err != nil {
		return agent.Result{}, err
	}
	before, err := t.o.Load(ctx, c, in.Path)
	if err != nil {
		return agent.Result{}, err
	}
	n, err := ipynb.Parse(before)
	if err != nil {
		return agent.Result{}, refuse("%s: %v.", abs, err)
	}
	d := Detail{NewSource: *in.Source, CellID: in.CellID, CellType: in.CellType, Language: n.Language, EditMode: in.Mode, NotebookPath: abs, OriginalFile: string(before)}
	after, said, err := change(n, &in, &d)
	if err != nil {
		return agent.Result{}, err
	}
	if err := t.o.Save(ctx, c, in.Path, before, after); err != nil {
		return agent.Result{}, err
	}
	d.UpdatedFile = string(after)
	if c.UserModified {
		said += " The user modified the content before accepting it: read the notebook to see what it holds."
	}
	return agent.Result{Blocks: []agent.Block{&agent.Text{Text: said}}, Detail: d}, nil
}

// change makes the edit and completes d.
func change(n *ipynb.Notebook, in *input, d *Detail) (after []byte, said string, err error) {
	at, found := -1, true
	if in.CellID != "" {
		at, found = n.Find(in.CellID)
	}
	if !found {
		return nil, "", refuse("The notebook has no cell %q.%s", in.CellID, known(n))
	}
	if in.Mode == "insert" {
		after, id := n.Insert(at+1, *in.Source, in.CellType)
		if d.CellID = id; id == "" {
			d.CellID = fmt.Sprintf("cell-%d", at+1)
		}
		return after, fmt.Sprintf("Cell %s was inserted at position %d.", d.CellID, at+2), nil
	}
	if d.CellType == "" {
		d.CellType = n.Cells[at].Type
	}
	if in.Mode == "delete" {
		return n.Delete(at), fmt.Sprintf("Cell %s was deleted.", in.CellID), nil
	}
	return n.Replace(at, *in.Source, in.CellType), fmt.Sprintf("Cell %s was replaced.", in.CellID), nil
}

// known lists the ids that there are, if not too many.
func known(n *ipynb.Notebook) string {
	const most = 20
	if len(n.Cells) == 0 {
		return " It has no cells: insert one without cell_id."
	}
	ids := make([]string, 0, most)
	for _, c := range n.Cells[:min(most, len(n.Cells))] {
		ids = append(ids, c.ID)
	}
	s := " Its cells are " + strings.Join(ids, ", ")
	if len(n.Cells) > most {
		s += ", …"
	}
	return s + "."
}

// refuse words a failure that lies in the call. compat: the tag is what
// clients and models know such failures by.
func refuse(format string, args ...any) error {
	return errors.New("<tool_use_error>" + fmt.Sprintf(format, args...) + "</tool_use_error>")
}
