package file

import (
	"fmt"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/lib/textdiff"
	"github.com/seed-eb844fcb/cinch/internal/lib/textenc"
)

// A matcher finds the text of an edit in a file and makes the edit.
type matcher struct {
	text     *textenc.Text
	old, new string
	all      bool
}

// apply returns the bytes of the file with the edit made. stale says that the
// model last saw other content. The error words for the model why it cannot
// be made.
func (m *matcher) apply(abs string, stale bool) ([]byte, error) {
	if m.old == "" {
		if m.text.String() != "" {
			return nil, refuse("old_string is empty, which creates a file, but %s exists and is not empty. To replace all of it use Write.", abs)
		}
		data, err := m.text.Rewrite(m.new)
		return data, m.explain(abs, err)
	}
	// A carriage return in old_string means the very bytes, where they are
	// there. In all other cases line ends match in any style.
	if strings.Contains(m.old, "\r") {
		if at := m.find(m.text.Literal(), m.old); len(at) > 0 {
			return m.splice(abs, m.text.Literal(), at, m.old, m.new, m.text.SpliceLiteral)
		}
	}
	text := m.text.String()
	old, new := strings.ReplaceAll(m.old, "\r\n", "\n"), strings.ReplaceAll(m.new, "\r\n", "\n")
	if strings.Contains(old, nulSymbol) && strings.Contains(text, "\x00") && !strings.Contains(text, nulSymbol) {
		// Read shows zero bytes by this symbol.
		old, new = strings.ReplaceAll(old, nulSymbol, "\x00"), strings.ReplaceAll(new, nulSymbol, "\x00")
	}
	at := m.find(text, old)
	if len(at) == 0 {
		hint := nearest(text, old)
		if hint == "" && stale {
			hint = "The file has changed since you last saw it: read it again."
		}
		if hint == "" {
			hint = "Read the part of the file that you mean to change and copy it exactly."
		}
		return nil, refuse("old_string was not found in %s, so nothing was changed. %s\nString: %s", abs, hint, m.old)
	}
	return m.splice(abs, text, at, old, new, m.text.Splice)
}

// find returns where old is: the places to replace, or, when more than one
// place matches and one was asked for, all of them, overlapping ones too.
func (m *matcher) find(text, old string) []int {
	var at []int
	for i := 0; i <= len(text)-len(old); {
		j := strings.Index(text[i:], old)
		if j < 0 {
			break
		}
		at = append(at, i+j)
		if i += j + len(old); !m.all {
			i = at[len(at)-1] + 1
		}
	}
	return at
}

// splice makes the edit at every offset of text, the form that splice takes offsets of.
func (m *matcher) splice(abs, text string, at []int, old, new string, splice func([]textdiff.Edit) ([]byte, error)) ([]byte, error) {
	if len(at) > 1 && !m.all {
		return nil, refuse("old_string is in %s %d times (%s), and replace_all is not set. Add lines around it until it is unique, or set replace_all to change them all.\nString: %s",
			abs, len(at), linesOf(text, at), m.old)
	}
	// Only what differs is replaced, so that the bytes of what both have in
	// common stay even where they could not be written back.
	diff := textdiff.Edits(old, new)
	edits := make([]textdiff.Edit, 0, len(at)*len(diff))
	for _, i := range at {
		for _, e := range diff {
			edits = append(edits, textdiff.Edit{Start: i + e.Start, End: i + e.End, New: e.New})
		}
	}
	data, err := splice(edits)
	return data, m.explain(abs, err)
}

func (m *matcher) explain(abs string, err error) error {
	if err == nil {
		return nil
	}
	return refuse("%s was not changed: %v. Use characters that it has, or convert the file first.", abs, err)
}

// linesOf names the lines that the first few matches begin in.
func linesOf(text string, at []int) string {
	const most = 8
	var b strings.Builder
	line, last := 1, 0
	for n, i := range at {
		if n == most {
			b.WriteString(", …")
			break
		}
		line += strings.Count(text[last:i], "\n")
		last = i
		if n == 0 {
			b.WriteString("line ")
		} else {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, line)
	}
	return b.String()
}
