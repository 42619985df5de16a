// Package glob matches slash-separated paths against shell patterns.
//
// It owns the pattern grammar, brace expansion and step-wise matching (a
// Cursor walks down a tree and tells which branches cannot match). It touches
// no file system.
//
//   - any run of characters inside one path segment
//     **       any number of whole segments, as a segment of its own
//     ?        one character
//     [a-z]    one character of a class; [!a] and [^a] negate; [[:alpha:]] too
//     {a,b}    either alternative; may hold slashes and nest
//     \c       the character c itself
//
// A segment with brackets also matches the name it spells, so that
// app/[id]/page.tsx finds the file of that name beside app/i/page.tsx.
// A leading dot needs no special mention in the pattern.
package glob

import (
	"errors"
	"fmt"
	"strings"
)

// maxAlternatives bounds what brace expansion may produce.
const maxAlternatives = 1024

// ErrTooMany reports a pattern whose braces expand beyond reason.
var ErrTooMany = errors.New("too many brace alternatives")

// A Pattern is a compiled glob. It is immutable and safe for concurrent use.
type Pattern struct {
	alts []alternative
}

type alternative struct {
	segs     []segment
	absolute bool
}

type segment struct {
	text    string // as written
	literal string // the only name it matches, when plain
	plain   bool
	any     bool // **
}

// Compile parses pattern. Text that is no valid class or brace stands for
// itself, so the only error is ErrTooMany.
func Compile(pattern string) (*Pattern, error) {
	texts, err := Expand(pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern %.80q: %w", pattern, err)
	}
	p := &Pattern{alts: make([]alternative, 0, len(texts))}
	for _, t := range texts {
		p.alts = append(p.alts, compileAlternative(t))
	}
	return p, nil
}

func compileAlternative(text string) alternative {
	a := alternative{absolute: strings.HasPrefix(text, "/")}
	for s := range strings.SplitSeq(text, "/") {
		switch {
		case s == "" || s == ".":
			continue
		case s == "**":
			if n := len(a.segs); n > 0 && a.segs[n-1].any {
				continue // ** twice in a row says nothing new
			}
			a.segs = append(a.segs, segment{text: s, any: true})
		default:
			lit, plain := unescape(s)
			a.segs = append(a.segs, segment{text: s, literal: lit, plain: plain})
		}
	}
	return a
}

// unescape returns the name that s spells and whether it is the only one s matches.
func unescape(s string) (name string, plain bool) {
	if !strings.ContainsAny(s, `*?[\`) {
		return s, true
	}
	var b strings.Builder
	plain = true
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i+1 < len(s) {
				i++
			}
		case '*', '?', '[':
			plain = false
		}
		b.WriteByte(s[i])
	}
	return b.String(), plain
}

// match reports whether the segment, not **, matches name.
func (s *segment) match(name string) bool {
	if s.plain {
		return s.literal == name
	}
	return MatchSegment(s.text, name) || s.literal == name || matchBrackets(s.text, name)
}

// matchBrackets matches with every '[' of the segment taken as itself.
func matchBrackets(text, name string) bool {
	if !strings.Contains(text, "[") || !strings.ContainsAny(text, "*?") {
		return false
	}
	return MatchSegment(strings.ReplaceAll(text, "[", `\[`), name)
}

// Match reports whether the whole of path matches. A leading slash counts:
// an absolute pattern matches absolute paths only.
func (p *Pattern) Match(path string) bool {
	c := p.Root()
	if strings.HasPrefix(path, "/") {
		c = p.AbsoluteRoot()
	}
	for s := range strings.SplitSeq(path, "/") {
		if s == "" {
			continue
		}
		if c = c.Step(s); c.Dead() {
			return false
		}
	}
	return c.Match()
}

// Bases returns, for each alternative, the directory that its literal prefix
// names, as written: relative, absolute ("/etc"), or "" for the root of the
// walk. The last segment is never part of it. ".." can only stand there: an
// alternative with a ".." after a wildcard matches nothing.
func (p *Pattern) Bases() []string {
	out := make([]string, len(p.alts))
	for i := range p.alts {
		out[i], _ = p.alts[i].split()
	}
	return out
}

// Split returns one pattern for each distinct base, relative to that base.
func (p *Pattern) Split() map[string]*Pattern {
	out := map[string]*Pattern{}
	for i := range p.alts {
		base, n := p.alts[i].split()
		q := out[base]
		if q == nil {
			q = &Pattern{}
			out[base] = q
		}
		q.alts = append(q.alts, alternative{segs: p.alts[i].segs[n:]})
	}
	return out
}

func (a *alternative) split() (base string, n int) {
	var b strings.Builder
	if a.absolute {
		b.WriteByte('/')
	}
	for n < len(a.segs)-1 && a.segs[n].plain {
		if n > 0 {
			b.WriteByte('/')
		}
		b.WriteString(a.segs[n].literal)
		n++
	}
	return b.String(), n
}

// Expand returns the alternatives that the braces of pattern stand for, in
// order. Unbalanced braces and braces without a comma stand for themselves.
func Expand(pattern string) ([]string, error) {
	out := []string{""}
	for len(pattern) > 0 {
		open, parts, rest := nextBrace(pattern)
		if parts == nil {
			for i := range out {
				out[i] += pattern
			}
			return out, nil
		}
		var tails []string
		for _, p := range parts {
			t, err := Expand(p)
			if err != nil {
				return nil, err
			}
			tails = append(tails, t...)
			if len(out)*len(tails) > maxAlternatives {
				return nil, ErrTooMany
			}
		}
		grown := make([]string, 0, len(out)*len(tails))
		for _, o := range out {
			for _, t := range tails {
				grown = append(grown, o+pattern[:open]+t)
			}
		}
		out, pattern = grown, rest
	}
	return out, nil
}

// nextBrace finds the first balanced brace group with a comma: its position,
// its alternatives and what stands behind it. parts is nil if there is none.
func nextBrace(s string) (open int, parts []string, rest string) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			if n := classLen(s[i:]); n > 0 {
				i += n - 1
			}
		case '{':
			if parts, n := braceGroup(s[i:]); len(parts) > 1 {
				return i, parts, s[i+n:]
			}
		}
	}
	return 0, nil, ""
}

// braceGroup splits the group that s begins with; n is its length, braces included.
func braceGroup(s string) (parts []string, n int) {
	depth, start := 0, 1
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '{':
			depth++
		case ',':
			if depth == 1 {
				parts = append(parts, s[start:i])
				start = i + 1
			}
		case '}':
			if depth--; depth == 0 {
				return append(parts, s[start:i]), i + 1
			}
		}
	}
	return nil, 0
}
