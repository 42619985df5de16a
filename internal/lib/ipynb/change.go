package ipynb

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"strings"
)

// Levels of indentation: the cells lie in a list in the top object.
const (
	cellLevel   = 2
	memberLevel = 3
	lineLevel   = 4
)

// Replace returns the document with the source of cell i replaced and its
// type changed to kind, "" for none. What a code cell had put out before
// goes: it belongs to the old source.
func (n *Notebook) Replace(i int, source, kind string) []byte {
	if kind == "" {
		kind = n.Cells[i].Type
	}
	ms := members(n.raw, n.elements[i])
	if kind != n.Cells[i].Type {
		return n.splice(n.elements[i], n.retyped(ms, source, kind))
	}
	// Values are replaced from the last to the first, so that offsets hold.
	out := n.raw
	for j := len(ms) - 1; j >= 0; j-- {
		m := ms[j]
		var value string
		switch {
		case m.key == "source":
			value = n.source(source, n.raw[m.value.start] == '"')
		case m.key == "outputs" && kind == "code":
			value = "[]"
		case m.key == "execution_count" && kind == "code":
			value = "null"
		default:
			continue
		}
		out = splice(out, m.value, value)
	}
	if _, ok := find(ms, "source"); !ok {
		return n.splice(n.elements[i], n.retyped(ms, source, kind))
	}
	return out
}

// Insert returns the document with a new cell at index i, and the cell's id.
func (n *Notebook) Insert(i int, source, kind string) (doc []byte, id string) {
	fields := []field{{"cell_type", quote(kind)}}
	if kind == "code" {
		fields = append(fields, field{"execution_count", "null"})
	}
	if n.ids {
		id = strings.ToLower(rand.Text()[:8])
		fields = append(fields, field{"id", quote(id)})
	}
	fields = append(fields, field{"metadata", "{}"})
	if kind == "code" {
		fields = append(fields, field{"outputs", "[]"})
	}
	fields = append(fields, field{"source", n.source(source, false)})
	text := n.object(fields)
	gap := n.style.at(cellLevel)
	switch {
	case len(n.elements) == 0:
		return n.splice(n.cells, "["+gap+text+n.style.at(cellLevel-1)+"]"), id
	case i < len(n.elements):
		at := n.elements[i].start
		return n.splice(span{at, at}, text+","+gap), id
	}
	at := n.elements[len(n.elements)-1].end
	return n.splice(span{at, at}, ","+gap+text), id
}

// Delete returns the document without cell i.
func (n *Notebook) Delete(i int) []byte {
	switch last := len(n.elements) - 1; {
	case last == 0:
		return n.splice(n.cells, "[]")
	case i < last:
		return n.splice(span{n.elements[i].start, n.elements[i+1].start}, "")
	default:
		return n.splice(span{n.elements[i-1].end, n.elements[i].end}, "")
	}
}

func (n *Notebook) splice(s span, text string) []byte { return splice(n.raw, s, text) }

func splice(raw []byte, s span, text string) []byte {
	out := make([]byte, 0, len(raw)+len(text))
	out = append(out, raw[:s.start]...)
	out = append(out, text...)
	return append(out, raw[s.end:]...)
}

type field struct{ key, value string }

// retyped writes a cell anew as one of another kind. Fields that both kinds
// have, and unknown ones, keep their bytes and their order.
func (n *Notebook) retyped(ms []member, source, kind string) string {
	var fields []field
	had := map[string]bool{}
	for _, m := range ms {
		had[m.key] = true
		value := string(m.value.of(n.raw))
		switch m.key {
		case "cell_type":
			value = quote(kind)
		case "source":
			value = n.source(source, value[0] == '"')
		case "outputs", "execution_count":
			if kind != "code" {
				continue
			}
			value = map[string]string{"outputs": "[]", "execution_count": "null"}[m.key]
		case "attachments":
			if kind == "code" {
				continue // only text cells have them
			}
		}
		fields = append(fields, field{m.key, value})
	}
	if kind == "code" && !had["execution_count"] {
		fields = append(fields, field{"execution_count", "null"})
	}
	if kind == "code" && !had["outputs"] {
		fields = append(fields, field{"outputs", "[]"})
	}
	if !had["source"] {
		fields = append(fields, field{"source", n.source(source, false)})
	}
	return n.object(fields)
}

func (n *Notebook) object(fields []field) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, f := range fields {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(n.style.at(memberLevel))
		b.WriteString(quote(f.key))
		b.WriteString(n.style.colon)
		b.WriteString(f.value)
	}
	b.WriteString(n.style.at(cellLevel))
	b.WriteByte('}')
	return b.String()
}

// source writes the text of a cell: one string, or a list of its lines.
func (n *Notebook) source(s string, single bool) string {
	if single {
		return quote(s)
	}
	if s == "" {
		return "[]"
	}
	var b strings.Builder
	b.WriteByte('[')
	first := true
	for line := range strings.SplitAfterSeq(s, "\n") {
		if line == "" {
			continue
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		b.WriteString(n.style.at(lineLevel))
		b.WriteString(quote(line))
	}
	b.WriteString(n.style.at(memberLevel))
	b.WriteByte(']')
	return b.String()
}

func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}
