package file

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/ipynb"
)

const (
	notebookLimit = 100 << 20
	outputLimit   = 10_000 // characters shown of one output
)

// A NotebookCell is a cell in a ReadDetail of type notebook.
type NotebookCell struct {
	CellType  string           `json:"cellType"`
	Source    string           `json:"source"`
	Execution *int             `json:"execution_count,omitempty"`
	CellID    string           `json:"cell_id"`
	Language  string           `json:"language,omitempty"`
	Outputs   []NotebookOutput `json:"outputs,omitempty"`
}

// A NotebookOutput is an output in a NotebookCell.
type NotebookOutput struct {
	Kind  string         `json:"output_type"`
	Text  string         `json:"text,omitempty"`
	Image *NotebookImage `json:"image,omitempty"`
}

// A NotebookImage is a picture in a NotebookOutput.
type NotebookImage struct {
	Data string `json:"image_data"`
	Type string `json:"media_type"`
}

func (t *readTool) readNotebook(s *source, in *readInput) (agent.Result, error) {
	data, err := s.all(notebookLimit)
	if err != nil {
		return agent.Result{}, err
	}
	n, err := ipynb.Parse(data)
	if err != nil {
		return agent.Result{}, refuse("%s cannot be read as a notebook: %v. Use a program such as jq or head to look at its text.", s.abs, err)
	}
	total, first := len(n.Cells), in.first()
	if first > total && total > 0 {
		return agent.Result{Blocks: textual(fmt.Sprintf("(%s has %d cells: there is none from cell %d on.)", s.abs, total, first))}, nil
	}
	budget := t.o.MaxTokens
	if in.AllowLarge {
		budget *= 4
	}
	v := notebookView{language: n.Language}
	last := first - 1
	for last < total && (in.limit() == 0 || last-first+1 < in.limit()) {
		text := v.render(&n.Cells[last])
		if end := fit(text, budget); end < len(text) {
			text = text[:end] + "\n(This cell is too long to show whole.)\n"
		}
		if v.spent += tokens(text); v.spent > budget && last >= first {
			break
		}
		v.add(&n.Cells[last], text)
		last++
	}
	v.flush()
	if total == 0 {
		v.blocks = textual(fmt.Sprintf("(%s is a notebook without cells.)", s.abs))
	} else if last < total && in.limit() == 0 {
		v.blocks = append(v.blocks, &agent.Text{Text: fmt.Sprintf("PARTIAL view: cells %d to %d of %d are shown. Go on with offset %d (cells count from 1 here).", first, last, total, last+1)})
	}
	t.o.State.put(s.real, s.info, data, span{first, last}, total)
	return agent.Result{
		Blocks: v.blocks,
		Detail: ReadDetail{Type: "notebook", File: NotebookFile{FilePath: s.abs, Cells: v.cells}},
	}, nil
}

// A notebookView collects what is shown of a notebook.
type notebookView struct {
	language string
	spent    int // tokens
	text     strings.Builder
	blocks   []agent.Block
	cells    []NotebookCell
}

// render writes a cell and the text of its outputs.
func (v *notebookView) render(c *ipynb.Cell) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<cell id=%q type=%q", c.ID, c.Type)
	if c.Execution != nil {
		fmt.Fprintf(&b, " execution_count=\"%d\"", *c.Execution)
	}
	fmt.Fprintf(&b, ">\n%s\n</cell>\n", c.Source)
	for _, o := range c.Outputs {
		if o.Text != "" {
			fmt.Fprintf(&b, "<output type=%q>\n%s\n</output>\n", o.Kind, clipOutput(o.Text))
		}
	}
	return b.String()
}

func clipOutput(s string) string {
	s = strings.TrimRight(s, "\n")
	if len(s) <= outputLimit {
		return s
	}
	head := s[:fit(s[:outputLimit], outputLimit)]
	return fmt.Sprintf("%s\n(%d more bytes of this output are not shown)", strings.ToValidUTF8(head, ""), len(s)-len(head))
}

// add shows a cell, its pictures behind its text.
func (v *notebookView) add(c *ipynb.Cell, text string) {
	out := NotebookCell{CellType: c.Type, Source: c.Source, Execution: c.Execution, CellID: c.ID}
	if c.Type == "code" {
		out.Language = v.language
	}
	v.text.WriteString(text)
	for _, o := range c.Outputs {
		d := NotebookOutput{Kind: o.Kind, Text: o.Text}
		if o.Image != "" {
			d.Image = v.picture(o)
		}
		out.Outputs = append(out.Outputs, d)
	}
	v.cells = append(v.cells, out)
}

func (v *notebookView) picture(o ipynb.Output) *NotebookImage {
	data, err := base64.StdEncoding.DecodeString(o.Image)
	var p picture
	if err == nil {
		p, err = prepare(o.ImageType, data)
	}
	if err != nil {
		fmt.Fprintf(&v.text, "<output type=%q>(a picture that cannot be shown: %v)</output>\n", o.Kind, err)
		return nil
	}
	v.flush()
	encoded := base64.StdEncoding.EncodeToString(p.data)
	v.blocks = append(v.blocks, &agent.Image{MediaType: p.kind, Data: encoded})
	return &NotebookImage{Data: encoded, Type: p.kind}
}

func (v *notebookView) flush() {
	if v.text.Len() > 0 {
		v.blocks = append(v.blocks, &agent.Text{Text: strings.TrimSuffix(v.text.String(), "\n")})
		v.text.Reset()
	}
}
