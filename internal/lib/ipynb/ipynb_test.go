package ipynb

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const small = `{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "aa",
   "metadata": {"x": [1, "}", 2]},
   "source": [
    "# Title\n",
    "text"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "bb",
   "metadata": {},
   "zzz": {"unknown": true},
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": ["hi\n"]
    },
    {"output_type": "display_data", "data": {"image/png": "aGk=\n", "text/plain": ["<Figure>"]}},
    {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\u001b[31mE\u001b[0m: v"]}
   ],
   "source": "print('hi')"
  }
 ],
 "metadata": {
  "language_info": {"name": "julia"}
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
`

func parse(t *testing.T, raw string) *Notebook {
	t.Helper()
	n, err := Parse([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestParse(t *testing.T) {
	t.Parallel()
	three := 3
	want := &Notebook{Language: "julia", Cells: []Cell{
		{ID: "aa", Type: "markdown", Source: "# Title\ntext"},
		{ID: "bb", Type: "code", Source: "print('hi')", Execution: &three, Outputs: []Output{
			{Kind: "stream", Text: "hi\n"},
			{Kind: "display_data", ImageType: "image/png", Image: "aGk="},
			{Kind: "error", Text: "E: v"},
		}},
	}}
	if d := cmp.Diff(want, parse(t, small), cmpopts.IgnoreUnexported(Notebook{})); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{"", "{}", "[]", "{", `{"nbformat":3,"worksheets":[]}`, `{"nbformat":4}`, `{"nbformat":4,"cells":{}}`, `{"nbformat":4,"cells":null}`, `{"nbformat":4,"cells":[null]}`} {
		if _, err := Parse([]byte(bad)); err == nil {
			t.Errorf("Parse(%q) succeeded", bad)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	n := parse(t, small)
	for id, want := range map[string]int{"aa": 0, "bb": 1, "cell-1": 1, "cell-2": -1, "cell--1": -1, "x": -1} {
		i, ok := n.Find(id)
		if !ok {
			i = -1
		}
		if i != want {
			t.Errorf("Find(%q) = %d, want %d", id, i, want)
		}
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	n := parse(t, small)
	cut := func(from, to string) string { // small with what lies between replaced
		i := strings.Index(small, from)
		j := i + len(from)
		return small[:i] + to + small[j:]
	}
	code := small[strings.Index(small, "  {\n   \"cell_type\": \"code\""):strings.Index(small, "\n ],\n \"meta")]
	replaced := strings.NewReplacer(`"execution_count": 3`, `"execution_count": null`, `"source": "print('hi')"`, `"source": "a <b>\n& é"`).Replace(code)
	o := strings.Index(replaced, `"outputs": [`)
	replaced = replaced[:o] + `"outputs": []` + replaced[strings.Index(replaced, ",\n   \"source\""):]
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"replace text", n.Replace(0, "one\ntwo\n", ""), cut("\"# Title\\n\",\n    \"text\"", "\"one\\n\",\n    \"two\\n\"")},
		{"replace code", n.Replace(1, "a <b>\n& é", ""), cut(code, replaced)},
		{"empty", n.Replace(0, "", ""), cut("[\n    \"# Title\\n\",\n    \"text\"\n   ]", "[]")},
		{"delete first", n.Delete(0), cut(small[strings.Index(small, "{\n   \"cell_type\": \"markdown\""):strings.Index(small, "{\n   \"cell_type\": \"code\"")], "")},
		{"delete last", n.Delete(1), cut(",\n"+code, "")},
		{"to code", n.Replace(0, "x", "code"), cut(small[strings.Index(small, "{\n   \"cell_type\": \"markdown\""):strings.Index(small, ",\n  {\n   \"cell_type\": \"code\"")],
			"{\n   \"cell_type\": \"code\",\n   \"id\": \"aa\",\n   \"metadata\": {\"x\": [1, \"}\", 2]},\n   \"source\": [\n    \"x\"\n   ],\n   \"execution_count\": null,\n   \"outputs\": []\n  }")},
		{"to markdown", n.Replace(1, "x", "markdown"), cut(code, "  {\n   \"cell_type\": \"markdown\",\n   \"id\": \"bb\",\n   \"metadata\": {},\n   \"zzz\": {\"unknown\": true},\n   \"source\": \"x\"\n  }")},
	} {
		if d := cmp.Diff(c.want, string(c.got)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		if !json.Valid(c.got) {
			t.Errorf("%s: not valid JSON: %s", c.name, c.got)
		}
	}
}

func TestInsert(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"indented": small,
		"crlf":     strings.ReplaceAll(small, "\n", "\r\n"),
		"tabs":     "\xef\xbb\xbf{\n\t\"nbformat\": 4,\n\t\"nbformat_minor\": 5,\n\t\"cells\": [],\n\t\"metadata\": {}\n}",
		"compact":  `{"cells":[{"cell_type":"raw","metadata":{},"source":"x"}],"metadata":{},"nbformat":4,"nbformat_minor":2}`,
	} {
		n := parse(t, raw)
		for at := 0; at <= len(n.Cells); at++ {
			got, id := n.Insert(at, "new\nsource", "code")
			m := parse(t, string(got))
			if len(m.Cells) != len(n.Cells)+1 || m.Cells[at].Source != "new\nsource" || id != "" && m.Cells[at].ID != id || (id == "") == n.ids {
				t.Errorf("%s, at %d: id %q in\n%s", name, at, id, got)
			}
			if back := m.Delete(at); len(n.Cells) > 0 && !bytes.Equal(back, []byte(raw)) {
				t.Errorf("%s, at %d: inserted and deleted again:\n%s", name, at, back)
			}
		}
	}
	n := parse(t, `{"cells":[],"nbformat":4,"nbformat_minor":2}`)
	got, _ := n.Insert(0, "a", "markdown")
	if want := `{"cells":[{"cell_type":"markdown","metadata":{},"source":["a"]}],"nbformat":4,"nbformat_minor":2}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Every change leaves valid JSON in which the other cells are the same bytes.
func FuzzChange(f *testing.F) {
	f.Add([]byte(small), 1, "x\ny", "code")
	f.Add([]byte(`{"cells":[{"source":1}],"nbformat":4}`), 0, "", "markdown")
	f.Fuzz(func(t *testing.T, raw []byte, i int, source, kind string) {
		n, err := Parse(raw)
		if err != nil || len(n.Cells) == 0 {
			return
		}
		i = (i%len(n.Cells) + len(n.Cells)) % len(n.Cells)
		inserted, _ := n.Insert(i, source, "markdown")
		for _, out := range [][]byte{n.Replace(i, source, ""), n.Replace(i, source, kind), n.Delete(i), inserted} {
			if !json.Valid(bytes.TrimPrefix(out, []byte("\xef\xbb\xbf"))) {
				t.Fatalf("not valid JSON: %q from %q", out, raw)
			}
			if !bytes.HasPrefix(out, raw[:n.cells.start]) || !bytes.HasSuffix(out, raw[n.cells.end:]) {
				t.Fatalf("changed outside the cells: %q from %q", out, raw)
			}
			for j, e := range n.elements {
				if j != i && !bytes.Contains(out, e.of(raw)) {
					t.Fatalf("changed cell %d: %q from %q", j, out, raw)
				}
			}
		}
	})
}
