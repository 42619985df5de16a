package settings

import (
	"encoding/json"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/seed-eb844fcb/cinch/internal/lib/jsonc"
)

// The kinds of a node are those of jsonc.
const (
	null    = jsonc.Null
	boolean = jsonc.Bool
	number  = jsonc.Number
	text    = jsonc.String
	array   = jsonc.Array
	object  = jsonc.Object
)

// A node is a value of the settings that knows where it stands. Nodes are
// never changed once they are part of a Value.
type node struct {
	kind jsonc.Kind
	text string
	src  *source
	off  int

	names    []string // of members, in order
	members  map[string]*node
	elements []*node
}

// build makes nodes of what was parsed from s.
func build(s *source, v *jsonc.Value) *node {
	if v == nil {
		return nil
	}
	n := &node{kind: v.Kind, text: v.Text, src: s, off: v.Off}
	for _, e := range v.Elements {
		n.elements = append(n.elements, build(s, e))
	}
	for _, m := range v.Members {
		n.set(m.Name, build(s, m.Value))
	}
	return n
}

func (n *node) set(name string, m *node) {
	if n.members == nil {
		n.members = map[string]*node{}
	}
	if _, ok := n.members[name]; !ok {
		n.names = append(n.names, name)
	}
	n.members[name] = m
}

// without returns n without the named member.
func (n *node) without(name string) *node {
	c := &node{kind: n.kind, src: n.src, off: n.off}
	for _, k := range n.names {
		if k != name {
			c.set(k, n.members[k])
		}
	}
	return c
}

// with returns n with the value at path replaced; nil removes it.
func (n *node) with(path []string, m *node) *node {
	if len(path) == 1 && m == nil {
		return n.without(path[0])
	}
	c := n.without("")
	if len(path) == 1 {
		c.set(path[0], m)
	} else if sub := n.members[path[0]]; sub != nil && sub.kind == object {
		c.set(path[0], sub.with(path[1:], m))
	}
	return c
}

// at returns the node at path, or nil. n may be nil.
func (n *node) at(path ...string) *node {
	for _, p := range path {
		if n == nil || n.kind != object {
			return nil
		}
		n = n.members[p]
	}
	return n
}

// find returns the names that lead to the dotted key, or nil.
func (n *node) find(key string) []string {
	if n == nil {
		return nil
	}
	for _, k := range n.names {
		if k == key {
			return []string{k}
		}
		if rest, ok := strings.CutPrefix(key, k+"."); ok {
			if p := n.members[k].find(rest); p != nil {
				return append([]string{k}, p...)
			}
		}
	}
	return nil
}

// has reports whether a part of n comes from s.
func (n *node) has(s *source) bool {
	if n.src == s {
		return true
	}
	for _, m := range n.members {
		if m.has(s) {
			return true
		}
	}
	return slices.ContainsFunc(n.elements, func(e *node) bool { return e.has(s) })
}

func (n *node) json() json.RawMessage {
	if n == nil {
		return nil
	}
	return n.append(nil)
}

func (n *node) append(b []byte) []byte {
	quote := func(s string) {
		q, _ := json.Marshal(s) // a string always can be
		b = append(b, q...)
	}
	switch n.kind {
	case text:
		quote(n.text)
		return b
	case array:
		b = append(b, '[')
		for i, e := range n.elements {
			if i > 0 {
				b = append(b, ',')
			}
			b = e.append(b)
		}
		return append(b, ']')
	case object:
		b = append(b, '{')
		for i, k := range n.names {
			if i > 0 {
				b = append(b, ',')
			}
			quote(k)
			b = append(b, ':')
			b = n.members[k].append(b)
		}
		return append(b, '}')
	}
	return append(b, n.text...)
}

// merge puts low under high: members that high lacks are added, lists are
// joined without duplicates, and of all else high stays. path is where it is.
func merge(high, low *node, path []string) *node {
	switch {
	case low == nil:
		return high
	case high == nil:
		return low
	case high.kind == object && low.kind == object && !whole(path):
		c := &node{kind: object, src: high.src, off: high.off}
		for _, k := range high.names {
			c.set(k, merge(high.members[k], low.members[k], append(path, k)))
		}
		for _, k := range low.names {
			if high.members[k] == nil {
				c.set(k, low.members[k])
			}
		}
		return c
	case high.kind == array && low.kind == array && !whole(path) && !replaces(path, high):
		c := &node{kind: array, src: high.src, off: high.off, elements: slices.Clone(high.elements)}
		seen := map[string]bool{}
		for _, e := range high.elements {
			seen[string(e.json())] = true
		}
		for _, e := range low.elements {
			if j := string(e.json()); !seen[j] {
				seen[j] = true
				c.elements = append(c.elements, e)
			}
		}
		return c
	}
	return high
}

// whole reports whether the highest layer that sets path gives all of it.
func whole(path []string) bool {
	switch {
	case len(path) == 1:
		return path[0] == "fallbackModel" || path[0] == "spellcheck"
	case len(path) == 2:
		return path[0] == "extraKnownMarketplaces" || path[0] == "additionalMarketplaces"
	}
	return false
}

// replaces reports whether a list of the managed layer stands alone.
func replaces(path []string, high *node) bool {
	return len(path) == 1 && path[0] == "availableModels" && high.src != nil && high.src.layer == Managed
}

// A source is one file, or text, of settings.
type source struct {
	layer Layer
	file  string
	data  []byte
	lines []int // offsets at which lines begin
	whole *node // as it was read; nil if it could not be
	root  *node // as far as it counts
}

func (s *source) at(path ...string) *node {
	if s == nil {
		return nil
	}
	return s.root.at(path...)
}

// origin returns the place of the byte at off.
func (s *source) origin(off int) Origin {
	o := Origin{Layer: s.layer, File: s.file}
	if s.lines == nil {
		return o
	}
	o.Line = sort.SearchInts(s.lines, off+1)
	from := s.lines[o.Line-1]
	if o.Line == 1 && len(s.data) >= 3 && string(s.data[:3]) == "\ufeff" {
		from = 3
	}
	o.Col = 1 + utf8.RuneCount(s.data[min(from, off):off])
	return o
}

func (n *node) origin() Origin {
	if n == nil || n.src == nil {
		return Origin{}
	}
	return n.src.origin(n.off)
}
