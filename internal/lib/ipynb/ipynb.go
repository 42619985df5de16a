// Package ipynb reads Jupyter notebooks and changes single cells in them. A
// change replaces the bytes of the cell it is about and leaves all others
// alone: unknown fields, their order and the layout of the file stay.
//
// It owns the notebook format, version 4. It knows no files.
package ipynb

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A Notebook is a parsed document. It is immutable.
type Notebook struct {
	Cells    []Cell
	Language string // of the code cells, such as "python"

	raw      []byte
	style    style
	cells    span // the array
	elements []span
	ids      bool // cells of this version have ids
}

// A Cell is one cell.
type Cell struct {
	// ID is the cell's id, or cell-N, N counting from 0, where the version
	// of the format has none.
	ID        string
	Type      string // code, markdown, raw
	Source    string
	Execution *int
	Outputs   []Output
}

// An Output is one result of a code cell.
type Output struct {
	Kind string // stream, execute_result, display_data, error
	Text string
	// ImageType and Image, base64, are set for a picture.
	ImageType, Image string
}

// text is a string that the format also writes as a list of strings.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	var lines []string
	if json.Unmarshal(b, &lines) == nil {
		*t = text(strings.Join(lines, ""))
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return nil // a JSON value as data: not shown as text
	}
	*t = text(s)
	return nil
}

type document struct {
	Cells    []cell `json:"cells"`
	Format   int    `json:"nbformat"`
	Minor    int    `json:"nbformat_minor"`
	Metadata struct {
		Kernel struct {
			Language string `json:"language"`
		} `json:"kernelspec"`
		Language struct {
			Name string `json:"name"`
		} `json:"language_info"`
	} `json:"metadata"`
}

type cell struct {
	ID        string `json:"id"`
	Type      string `json:"cell_type"`
	Source    text   `json:"source"`
	Execution *int   `json:"execution_count"`
	Outputs   []struct {
		Kind      string          `json:"output_type"`
		Text      text            `json:"text"`
		Data      map[string]text `json:"data"`
		Name      string          `json:"ename"`
		Value     string          `json:"evalue"`
		Traceback []string        `json:"traceback"`
	} `json:"outputs"`
}

// Parse reads a notebook, which keeps raw; raw must not change.
func Parse(raw []byte) (*Notebook, error) {
	n := &Notebook{raw: raw}
	body := bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	var doc document
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, fmt.Errorf("the notebook is not valid JSON: %w", err)
	}
	if doc.Format != 4 {
		return nil, fmt.Errorf("the notebook has format version %d; only version 4 is understood", doc.Format)
	}
	n.ids = doc.Minor >= 5
	n.Language = doc.Metadata.Language.Name
	if n.Language == "" {
		n.Language = doc.Metadata.Kernel.Language
	}
	if n.Language == "" {
		n.Language = "python"
	}
	start := skipSpace(raw, len(raw)-len(body))
	top := members(raw, span{start, len(raw)})
	m, ok := find(top, "cells")
	if !ok || raw[m.value.start] != '[' {
		return nil, errors.New("the notebook has no list of cells")
	}
	n.style = styleOf(raw[start:], shift(top, -start))
	n.cells = m.value
	n.elements = elements(raw, n.cells)
	if len(n.elements) != len(doc.Cells) {
		return nil, errors.New("the notebook has its cells twice")
	}
	for i, c := range doc.Cells {
		if raw[n.elements[i].start] != '{' {
			return nil, fmt.Errorf("cell %d of the notebook is no object", i)
		}
		n.Cells = append(n.Cells, c.plain(i))
	}
	return n, nil
}

func shift(ms []member, by int) []member {
	out := make([]member, len(ms))
	for i, m := range ms {
		out[i] = member{m.key, span{m.name.start + by, m.name.end + by}, span{m.value.start + by, m.value.end + by}}
	}
	return out
}

func (c *cell) plain(i int) Cell {
	out := Cell{ID: c.ID, Type: c.Type, Source: string(c.Source), Execution: c.Execution}
	if out.ID == "" {
		out.ID = "cell-" + strconv.Itoa(i)
	}
	for _, o := range c.Outputs {
		p := Output{Kind: o.Kind, Text: string(o.Text)}
		if o.Kind == "error" {
			p.Text = plainText(strings.Join(o.Traceback, "\n"))
			if p.Text == "" {
				p.Text = o.Name + ": " + o.Value
			}
		}
		for _, kind := range []string{"image/png", "image/jpeg", "image/gif", "image/webp"} {
			if d := o.Data[kind]; d != "" && p.Image == "" {
				p.ImageType, p.Image = kind, strings.Join(strings.Fields(string(d)), "")
			}
		}
		for _, kind := range []string{"text/plain", "text/markdown", "text/latex", "text/html", "application/json"} {
			if d := o.Data[kind]; d != "" && p.Text == "" && p.Image == "" {
				p.Text = string(d)
			}
		}
		p.Text = plainText(p.Text)
		out.Outputs = append(out.Outputs, p)
	}
	return out
}

// plainText drops the colour sequences that kernels put in tracebacks.
func plainText(s string) string {
	if !strings.Contains(s, "\x1b[") {
		return s
	}
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(s, "\x1b[")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		end := strings.IndexFunc(after, func(r rune) bool { return r >= '@' && r <= '~' })
		s = after[end+1:]
	}
}

// Find returns the index of the cell with that id. cell-N, N counting from 0,
// also names a cell whose id is another.
func (n *Notebook) Find(id string) (int, bool) {
	for i, c := range n.Cells {
		if c.ID == id {
			return i, true
		}
	}
	if num, ok := strings.CutPrefix(id, "cell-"); ok {
		if i, err := strconv.Atoi(num); err == nil && i >= 0 && i < len(n.Cells) {
			return i, true
		}
	}
	return 0, false
}

func unquote(b []byte) string {
	var s string
	if json.Unmarshal(b, &s) != nil {
		return string(b)
	}
	return s
}
