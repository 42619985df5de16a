// Package textdiff compares texts line by line. It gives the difference as
// small edits or as hunks in the shape of the SDK's structuredPatch. It knows
// no files and no encodings.
package textdiff

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
)

// An Edit replaces the bytes from Start to End of a text by New.
type Edit struct {
	Start, End int
	New        string
}

// A Hunk is one stretch of a difference with its context. Lines begin with
// ' ', '-' or '+' and have no line end; a "\ No newline at end of file" line
// follows a last line without one and is not counted.
type Hunk struct {
	OldStart int      `json:"oldStart"`
	OldLines int      `json:"oldLines"`
	NewStart int      `json:"newStart"`
	NewLines int      `json:"newLines"`
	Lines    []string `json:"lines"`
}

// Context is the usual number of unchanged lines around a change.
const Context = 3

// Edits returns edits that turn before into after, sorted and disjoint. Lines
// that both have in common are outside every edit, and an edit of a line
// leaves out what its ends have in common.
func Edits(before, after string) []Edit {
	var out []Edit
	for _, c := range changes(splitLines(before), splitLines(after)) {
		e := trim(before, Edit{Start: c.start, End: c.end, New: c.new})
		if e.Start < e.End || e.New != "" {
			out = append(out, e)
		}
	}
	return out
}

// trim cuts off what the two sides of an edit share at their ends.
func trim(before string, e Edit) Edit {
	old := before[e.Start:e.End]
	n := commonPrefix(old, e.New)
	e.Start, old, e.New = e.Start+n, old[n:], e.New[n:]
	n = commonSuffix(old, e.New)
	e.End, e.New = e.End-n, e.New[:len(e.New)-n]
	return e
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && !(boundary(a, n) && boundary(b, n)) {
		n--
	}
	return n
}

func commonSuffix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	for n > 0 && !(boundary(a, len(a)-n) && boundary(b, len(b)-n)) {
		n--
	}
	return n
}

// boundary reports whether no character of s lies across i.
func boundary(s string, i int) bool { return i == len(s) || utf8.RuneStart(s[i]) }

// Apply returns text with the edits made. They must be sorted and disjoint.
func Apply(text string, edits []Edit) string {
	var b strings.Builder
	last := 0
	for _, e := range edits {
		b.WriteString(text[last:e.Start])
		b.WriteString(e.New)
		last = e.End
	}
	b.WriteString(text[last:])
	return b.String()
}

// A change replaces whole lines. Offsets are bytes of the old text.
type change struct {
	start, end int
	new        string
	// The same in lines of the old and the new text.
	from, to       int
	newFrom, newTo int
}

// changes compares two texts given as lines. Lines that occur once on either
// side and in the same order anchor the comparison; the stretches between
// them are compared on their own. This keeps a long rewrite from becoming one
// block, which a bounded search alone would make of it.
func changes(a, b []string) []change {
	var d differ
	d.old, d.new = a, b
	d.offsets = make([]int, len(a)+1)
	for i, l := range a {
		d.offsets[i+1] = d.offsets[i] + len(l)
	}
	d.compare(0, len(a), 0, len(b))
	return d.out
}

type differ struct {
	old, new []string
	offsets  []int
	out      []change
}

func (d *differ) compare(a0, a1, b0, b1 int) {
	for a0 < a1 && b0 < b1 && d.old[a0] == d.new[b0] {
		a0, b0 = a0+1, b0+1
	}
	for a0 < a1 && b0 < b1 && d.old[a1-1] == d.new[b1-1] {
		a1, b1 = a1-1, b1-1
	}
	if a0 == a1 || b0 == b1 {
		d.add(a0, a1, b0, b1)
		return
	}
	anchors := d.anchors(a0, a1, b0, b1)
	if len(anchors) == 0 {
		d.search(a0, a1, b0, b1)
		return
	}
	for _, p := range anchors {
		d.compare(a0, p.old, b0, p.new)
		a0, b0 = p.old+1, p.new+1
	}
	d.compare(a0, a1, b0, b1)
}

type pair struct{ old, new int }

// anchors returns the longest run of lines that are unique on both sides and
// stand in the same order.
func (d *differ) anchors(a0, a1, b0, b1 int) []pair {
	type count struct{ old, new, oldAt, newAt int }
	seen := make(map[string]*count, a1-a0)
	for i := a0; i < a1; i++ {
		c := seen[d.old[i]]
		if c == nil {
			c = &count{}
			seen[d.old[i]] = c
		}
		c.old, c.oldAt = c.old+1, i
	}
	for i := b0; i < b1; i++ {
		if c := seen[d.new[i]]; c != nil {
			c.new, c.newAt = c.new+1, i
		}
	}
	var pairs []pair
	for i := a0; i < a1; i++ {
		if c := seen[d.old[i]]; c.old == 1 && c.new == 1 {
			pairs = append(pairs, pair{i, c.newAt})
		}
	}
	return increasing(pairs)
}

// increasing returns a longest subsequence whose new positions rise.
func increasing(pairs []pair) []pair {
	var tails []int // tails[n]: index of the smallest end of a run of length n+1
	prev := make([]int, len(pairs))
	for i, p := range pairs {
		n, _ := slices.BinarySearchFunc(tails, p.new, func(t, v int) int { return pairs[t].new - v })
		prev[i] = -1
		if n > 0 {
			prev[i] = tails[n-1]
		}
		if n == len(tails) {
			tails = append(tails, i)
		} else {
			tails[n] = i
		}
	}
	if len(tails) == 0 {
		return nil
	}
	out := make([]pair, len(tails))
	for n, i := len(tails)-1, tails[len(tails)-1]; n >= 0; n, i = n-1, prev[i] {
		out[n] = pairs[i]
	}
	return out
}

func (d *differ) search(a0, a1, b0, b1 int) {
	before, after := strings.Join(d.old[a0:a1], ""), strings.Join(d.new[b0:b1], "")
	a, b := a0, b0 // how far both sides have been followed
	for _, e := range udiff.Lines(before, after) {
		from := d.lineAt(d.offsets[a0] + e.Start)
		to := d.lineAt(d.offsets[a0] + e.End)
		b += from - a
		n := len(splitLines(e.New))
		d.add(from, to, b, b+n)
		a, b = to, b+n
	}
}

func (d *differ) lineAt(offset int) int {
	i, _ := slices.BinarySearch(d.offsets, offset)
	return i
}

func (d *differ) add(a0, a1, b0, b1 int) {
	if a0 == a1 && b0 == b1 {
		return
	}
	c := change{
		start: d.offsets[a0], end: d.offsets[a1], new: strings.Join(d.new[b0:b1], ""),
		from: a0, to: a1, newFrom: b0, newTo: b1,
	}
	if n := len(d.out); n > 0 && d.out[n-1].to == a0 && d.out[n-1].newTo == b0 {
		last := &d.out[n-1]
		last.end, last.to, last.newTo = c.end, c.to, c.newTo
		last.new += c.new
		return
	}
	d.out = append(d.out, c)
}

// splitLines cuts s behind each line feed. The last line may have none.
func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	out := make([]string, 0, strings.Count(s, "\n")+1)
	for l := range strings.SplitAfterSeq(s, "\n") {
		if l != "" {
			out = append(out, l)
		}
	}
	return out
}
