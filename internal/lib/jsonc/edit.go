package jsonc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Set returns data with the value at path replaced by value, which must be
// JSON. Objects that are missing on the way are made; a new member goes behind
// the last one of its object, indented like it. Every other byte stays:
// comments, order, blanks, line ends. An empty document becomes an object.
func Set(data []byte, path []string, value json.RawMessage) ([]byte, error) {
	if len(path) == 0 {
		return nil, errors.New("no key to set")
	}
	root, err := parseObject(data)
	if err != nil {
		return nil, err
	}
	if root == nil {
		return empty(data, path, value)
	}
	at := root
	for i, name := range path {
		if at.Kind != Object {
			return nil, &NotObjectError{Path: path[:i], Kind: at.Kind}
		}
		next := at.Member(name)
		if next == nil {
			return insertMember(data, at, name, wrap(path[i+1:], value))
		}
		at = next
	}
	ind := indentAt(data, at.Off)
	return splice(data, at.Off, at.End, pretty(value, ind.prefix, ind.unit(), lineEnd(data))), nil
}

// Delete returns data without the member at path, and whether it was there.
func Delete(data []byte, path []string) ([]byte, bool, error) {
	root, err := parseObject(data)
	if err != nil || root == nil || len(path) == 0 {
		return data, false, err
	}
	parent := root
	for _, name := range path[:len(path)-1] {
		if parent = parent.Member(name); parent == nil || parent.Kind != Object {
			return data, false, nil
		}
	}
	found := false
	// Of a name that comes twice all go, or the earlier one would come to count.
	for parent.Member(path[len(path)-1]) != nil {
		found = true
		i := slices.IndexFunc(parent.Members, func(m Member) bool { return m.Name == path[len(path)-1] })
		m := parent.Members[i]
		data = cut(data, m.Off, m.Value.End, i == len(parent.Members)-1)
		if root, err = parseObject(data); err != nil {
			return nil, false, fmt.Errorf("jsonc: a deletion broke the document: %w", err)
		}
		parent = root
		for _, name := range path[:len(path)-1] {
			parent = parent.Member(name)
		}
	}
	return data, found, nil
}

// Append returns data with value as the last element of the array at path,
// which is made if it is not there.
func Append(data []byte, path []string, value json.RawMessage) ([]byte, error) {
	root, err := parseObject(data)
	if err != nil {
		return nil, err
	}
	at := root
	for _, name := range path {
		at = at.Member(name)
	}
	if at == nil {
		return Set(data, path, append(append([]byte{'['}, value...), ']'))
	}
	if at.Kind != Array {
		return nil, &NotObjectError{Path: path, Kind: at.Kind, Want: Array}
	}
	if len(at.Elements) == 0 {
		return insertFirst(data, at, value, "")
	}
	last := at.Elements[len(at.Elements)-1]
	return insertAfter(data, last.Off, last.End, value, ""), nil
}

// Remove returns data without the elements of the array at path for which
// drop reports true, and how many there were.
func Remove(data []byte, path []string, drop func(*Value) bool) ([]byte, int, error) {
	for n := 0; ; n++ {
		root, err := parseObject(data)
		if err != nil {
			return nil, 0, err
		}
		at := root
		for _, name := range path {
			at = at.Member(name)
		}
		if at == nil || at.Kind != Array {
			return data, n, nil
		}
		i := slices.IndexFunc(at.Elements, drop)
		if i < 0 {
			return data, n, nil
		}
		data = cut(data, at.Elements[i].Off, at.Elements[i].End, i == len(at.Elements)-1)
	}
}

// A NotObjectError reports that a value on the way to a key has another kind.
type NotObjectError struct {
	Path []string
	Kind Kind
	Want Kind // Array, or else an object is wanted
}

func (e *NotObjectError) Error() string {
	want := Object
	if e.Want == Array {
		want = Array
	}
	name := "the document"
	if len(e.Path) > 0 {
		name = strings.Join(e.Path, ".")
	}
	return fmt.Sprintf("%s is %s, not %s", name, e.Kind, want)
}

// parseObject parses data; nil means that the document is empty.
func parseObject(data []byte) (*Value, error) {
	root, err := Parse(data)
	if err != nil {
		return nil, err
	}
	if root != nil && root.Kind != Object {
		return nil, &NotObjectError{Kind: root.Kind}
	}
	return root, nil
}

// wrap puts value into one object for each name.
func wrap(names []string, value json.RawMessage) json.RawMessage {
	for _, name := range slices.Backward(names) {
		key, _ := json.Marshal(name) // a string always can be
		value = slices.Concat([]byte{'{'}, key, []byte{':'}, value, []byte{'}'})
	}
	return value
}

// empty writes the first object of a document that holds none, behind what
// comments it has.
func empty(data []byte, path []string, value json.RawMessage) ([]byte, error) {
	eol := lineEnd(data)
	out := slices.Clone(data)
	if trimmed := bytes.TrimPrefix(out, []byte(bom)); len(bytes.TrimSpace(trimmed)) > 0 {
		if out[len(out)-1] != '\n' {
			out = append(out, eol...)
		}
	} else {
		out = out[:len(out)-len(trimmed)]
	}
	out = append(out, pretty(wrap(path, value), "", "  ", eol)...)
	return append(out, eol...), nil
}

func insertMember(data []byte, at *Value, name string, value json.RawMessage) ([]byte, error) {
	key, _ := json.Marshal(name) // a string always can be
	head := string(key) + ": "
	if len(at.Members) == 0 {
		return insertFirst(data, at, value, head)
	}
	last := at.Members[len(at.Members)-1]
	return insertAfter(data, last.Off, last.Value.End, value, head), nil
}

// insertAfter puts head and value behind the member or element that stands at
// off..end. If a comma follows already the new one gets one too: the style of
// trailing commas is kept.
func insertAfter(data []byte, off, end int, value json.RawMessage, head string) []byte {
	ind := indentAt(data, off)
	comma := commaAfter(data, end)
	gap, eol := " ", lineEnd(data)
	if ind.own {
		gap = eol + ind.prefix
	}
	text := head + string(pretty(value, ind.prefix, ind.unit(), eol))
	if comma >= 0 {
		// behind the comma and a comment that stands on its line
		at := comma + 1
		if ind.own {
			at = lineRest(data, at)
		}
		return splice(data, at, at, []byte(gap+text+","))
	}
	if ind.own {
		if at := lineRest(data, end); at > end {
			out := splice(data, at, at, []byte(gap+text))
			return splice(out, end, end, []byte{','})
		}
	}
	return splice(data, end, end, []byte(","+gap+text))
}

// insertFirst puts head and value into the object or array at that holds
// nothing but perhaps comments.
func insertFirst(data []byte, at *Value, value json.RawMessage, head string) ([]byte, error) {
	ind := indentAt(data, at.Off)
	eol := lineEnd(data)
	inner := ind.prefix + ind.unit()
	text := eol + inner + head + string(pretty(value, inner, ind.unit(), eol))
	close := at.End - 1
	// What stands before the closing mark stays; blanks directly before it
	// are ours to lay out.
	from := close
	for from > at.Off+1 && strings.IndexByte(" \t\r\n", data[from-1]) >= 0 {
		from--
	}
	return splice(data, from, close, []byte(text+eol+ind.prefix)), nil
}

// cut removes the member or element at off..end with its comma, and with its
// line if nothing else stands on it. Comments stay.
func cut(data []byte, off, end int, last bool) []byte {
	if comma := commaAfter(data, end); comma >= 0 {
		data = splice(data, comma, comma+1, nil)
	} else if last {
		if comma := commaBefore(data, off); comma >= 0 {
			data = splice(data, comma, comma+1, nil)
			off, end = off-1, end-1
		}
	}
	for off > 0 && (data[off-1] == ' ' || data[off-1] == '\t') {
		off--
	}
	after := end
	for after < len(data) && strings.IndexByte(" \t\r", data[after]) >= 0 {
		after++
	}
	if off > 0 && data[off-1] == '\n' && after < len(data) && data[after] == '\n' {
		return splice(data, off, after+1, nil)
	}
	return splice(data, off, end, nil)
}

func splice(data []byte, from, to int, with []byte) []byte {
	return slices.Concat(data[:from], with, data[to:])
}

// commaAfter returns the index of the comma that follows end, or -1.
func commaAfter(data []byte, end int) int {
	p := parser{data: data, i: end}
	if p.blank() == nil && p.peek() == ',' {
		return p.i
	}
	return -1
}

// commaBefore returns the index of the comma that separates what stands at
// off from what is before it, or -1. It looks from the front, since comments
// can only be told from there.
func commaBefore(data []byte, off int) int {
	found := -1
	p := parser{data: data}
	if bytes.HasPrefix(data, []byte(bom)) {
		p.i = len(bom)
	}
	for p.i < off {
		if p.blank() != nil || p.i >= off {
			break
		}
		switch p.peek() {
		case '"':
			if _, err := p.str(); err != nil {
				return -1
			}
			found = -1
			continue
		case ',':
			found = p.i
		default:
			found = -1
		}
		p.i++
	}
	return found
}

// lineRest returns the end of the line that at stands on if nothing but
// blanks and a comment is between, else at.
func lineRest(data []byte, at int) int {
	i := at
	for i < len(data) {
		switch c := data[i]; {
		case c == ' ' || c == '\t':
			i++
		case c == '\n' || c == '\r':
			return i
		case c == '/' && i+1 < len(data) && data[i+1] == '/':
			for i < len(data) && data[i] != '\n' {
				i++
			}
			if i > at && data[i-1] == '\r' {
				i--
			}
			return i
		case c == '/' && i+1 < len(data) && data[i+1] == '*':
			n := bytes.Index(data[i+2:], []byte("*/"))
			if n < 0 || bytes.IndexByte(data[i:i+n+4], '\n') >= 0 {
				return at
			}
			i += n + 4
		default:
			return at
		}
	}
	return at
}

// An indent is how the line begins on which something stands.
type indent struct {
	prefix string
	own    bool // it is the first on its line
	tab    bool
}

func (n indent) unit() string {
	if n.tab {
		return "\t"
	}
	return "  "
}

func indentAt(data []byte, off int) indent {
	start := bytes.LastIndexByte(data[:off], '\n') + 1
	if start == 0 && bytes.HasPrefix(data, []byte(bom)) {
		start = len(bom)
	}
	end := start
	for end < off && (data[end] == ' ' || data[end] == '\t') {
		end++
	}
	prefix := string(data[start:end])
	return indent{prefix, end == off && start > 0, strings.Contains(prefix, "\t") || bytes.Contains(data, []byte("\n\t"))}
}

func lineEnd(data []byte) string {
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// pretty lays value out as it would stand on a line that begins with prefix.
func pretty(value json.RawMessage, prefix, unit, eol string) []byte {
	var b bytes.Buffer
	if json.Indent(&b, value, prefix, unit) != nil {
		return value
	}
	if eol != "\n" {
		return bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte(eol))
	}
	return b.Bytes()
}
