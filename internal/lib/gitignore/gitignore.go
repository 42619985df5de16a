// Package gitignore decides which paths git's ignore files leave out.
//
// It owns the file format, the matching rules and their precedence, to the
// letter of `git check-ignore`, quirks included. It reads files only through
// the fs.FS it is given and knows nothing of git's index or configuration.
//
// All paths are slash-separated and relative to one root, that of the work tree.
package gitignore

import (
	"bytes"
	"strings"
)

// A Verdict is what the last matching pattern says of a path.
type Verdict uint8

const (
	None    Verdict = iota // no pattern matches
	Ignore                 // left out
	Include                // a ! pattern takes it back in
)

// A List holds the patterns of one ignore file. It is immutable.
type List struct {
	dir      string // "" or with a trailing slash
	patterns []pattern
}

type pattern struct {
	text    string // without "!", leading and trailing slash
	literal int    // length of the prefix without special characters
	verdict Verdict
	dirOnly bool
	base    bool // matches the last path segment, whatever its directory
	suffix  bool // "*" and plain text
}

// Parse reads an ignore file that lies in dir ("" for the root).
func Parse(dir string, data []byte) *List {
	l := &List{}
	if dir = strings.Trim(dir, "/"); dir != "" && dir != "." {
		l.dir = dir + "/"
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		if p, ok := parsePattern(trimSpaces(string(line))); ok {
			l.patterns = append(l.patterns, p)
		}
	}
	return l
}

// trimSpaces cuts trailing spaces that no backslash protects.
func trimSpaces(s string) string {
	end := len(s)
	for i, blank := 0, false; i < len(s); i++ {
		switch s[i] {
		case ' ':
			if !blank {
				blank, end = true, i
			}
			continue
		case '\\':
			if i++; i == len(s) {
				return s
			}
		}
		blank, end = false, len(s)
	}
	return s[:end]
}

func parsePattern(s string) (p pattern, ok bool) {
	p.verdict = Ignore
	if strings.HasPrefix(s, "!") {
		p.verdict, s = Include, s[1:]
	}
	if strings.HasSuffix(s, "/") {
		p.dirOnly, s = true, s[:len(s)-1]
	}
	p.base = !strings.Contains(s, "/")
	s = strings.TrimPrefix(s, "/")
	p.text = s
	p.literal = plainLen(s)
	p.suffix = strings.HasPrefix(s, "*") && plainLen(s[1:]) == len(s)-1
	return p, s != ""
}

// plainLen returns the length of the prefix of s that holds no special character.
func plainLen(s string) int {
	if i := strings.IndexAny(s, `*?[\`); i >= 0 {
		return i
	}
	return len(s)
}

// Empty reports whether the list can match nothing.
func (l *List) Empty() bool { return l == nil || len(l.patterns) == 0 }

// Match returns the verdict of the last pattern that matches path itself.
// It does not look at the directories above path: see Repo for that.
func (l *List) Match(path string, isDir bool) Verdict {
	if l == nil || !strings.HasPrefix(path, l.dir) {
		return None
	}
	name := path[len(l.dir):]
	base := name[strings.LastIndexByte(name, '/')+1:]
	for i := len(l.patterns) - 1; i >= 0; i-- {
		p := &l.patterns[i]
		if p.dirOnly && !isDir {
			continue
		}
		if p.base && p.matchBase(base) || !p.base && p.matchPath(name) {
			return p.verdict
		}
	}
	return None
}

func (p *pattern) matchBase(base string) bool {
	switch {
	case p.literal == len(p.text):
		return p.text == base
	case p.suffix:
		return strings.HasSuffix(base, p.text[1:])
	}
	return wildmatch(p.text, base, false)
}

func (p *pattern) matchPath(name string) bool {
	if !strings.HasPrefix(name, p.text[:p.literal]) {
		return false
	}
	// The literal prefix goes first, so that a "**" right behind it stands
	// at the start of what is left: foo**/bar matches foo/x/bar, as in git.
	return wildmatch(p.text[p.literal:], name[p.literal:], true)
}

// A Scope is the ignore files in force at a place, the nearest first. The nil
// Scope has none. It is immutable.
type Scope struct {
	list  *List
	outer *Scope
}

// Enter returns the scope in which l comes before what s holds.
func (s *Scope) Enter(l *List) *Scope {
	if l.Empty() {
		return s
	}
	return &Scope{list: l, outer: s}
}

// Match returns the verdict of the nearest list that has one.
func (s *Scope) Match(path string, isDir bool) Verdict {
	for ; s != nil; s = s.outer {
		if v := s.list.Match(path, isDir); v != None {
			return v
		}
	}
	return None
}
