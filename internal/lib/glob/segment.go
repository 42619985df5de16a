package glob

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MatchSegment reports whether pattern, which holds no slash and no braces,
// matches the whole of name. A '[' that opens no class stands for itself.
func MatchSegment(pattern, name string) bool {
	// On a mismatch behind a '*', that star takes one more character and
	// the rest is tried again; only the last star ever needs to.
	star, mark := -1, 0
	p, n := 0, 0
	for n < len(name) || p < len(pattern) {
		if p < len(pattern) {
			if pattern[p] == '*' {
				star, mark = p, n
				p++
				continue
			}
			if n < len(name) {
				if pl, nl, ok := matchOne(pattern[p:], name[n:]); ok {
					p += pl
					n += nl
					continue
				}
			}
		}
		if star < 0 || mark >= len(name) {
			return false
		}
		_, w := utf8.DecodeRuneInString(name[mark:])
		mark += w
		p, n = star+1, mark
	}
	return true
}

// matchOne matches one pattern element, not '*', with one character of name.
func matchOne(pattern, name string) (plen, nlen int, ok bool) {
	r, w := utf8.DecodeRuneInString(name)
	switch pattern[0] {
	case '?':
		return 1, w, true
	case '[':
		if n := classLen(pattern); n > 0 {
			return n, w, inClass(pattern[1:n-1], r)
		}
	case '\\':
		if len(pattern) > 1 {
			pr, pw := utf8.DecodeRuneInString(pattern[1:])
			return 1 + pw, w, pr == r && strings.HasPrefix(name, pattern[1:1+pw])
		}
	}
	_, pw := utf8.DecodeRuneInString(pattern)
	return pw, w, strings.HasPrefix(name, pattern[:pw])
}

// classLen returns the length of the bracket expression that s begins with,
// or 0 if s begins with none.
func classLen(s string) int {
	i := 1
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		i++
	}
	for first := true; i < len(s); first = false {
		switch {
		case s[i] == ']' && !first:
			return i + 1
		case s[i] == '[' && strings.HasPrefix(s[i:], "[:"):
			if end := strings.Index(s[i+2:], ":]"); end >= 0 {
				i += end + 4
				continue
			}
			i++
		case s[i] == '\\':
			i += 2
		default:
			i++
		}
	}
	return 0
}

// inClass reports whether r is in the class whose inside is set.
func inClass(set string, r rune) bool {
	negate := false
	if set != "" && (set[0] == '!' || set[0] == '^') {
		negate, set = true, set[1:]
	}
	in := false
	for set != "" {
		if name, rest, ok := posixClass(set); ok {
			in = in || inPosix(name, r)
			set = rest
			continue
		}
		lo, rest := classRune(set)
		hi := lo
		if len(rest) > 1 && rest[0] == '-' {
			hi, rest = classRune(rest[1:])
		}
		in = in || lo <= r && r <= hi
		set = rest
	}
	return in != negate
}

func posixClass(set string) (name, rest string, ok bool) {
	if !strings.HasPrefix(set, "[:") {
		return "", set, false
	}
	name, rest, ok = strings.Cut(set[2:], ":]")
	return name, rest, ok
}

func classRune(set string) (rune, string) {
	if set[0] == '\\' && len(set) > 1 {
		set = set[1:]
	}
	r, w := utf8.DecodeRuneInString(set)
	return r, set[w:]
}

func inPosix(name string, r rune) bool {
	switch name {
	case "alpha":
		return unicode.IsLetter(r)
	case "digit":
		return '0' <= r && r <= '9'
	case "alnum":
		return unicode.IsLetter(r) || unicode.IsDigit(r)
	case "upper":
		return unicode.IsUpper(r)
	case "lower":
		return unicode.IsLower(r)
	case "space":
		return unicode.IsSpace(r)
	case "blank":
		return r == ' ' || r == '\t'
	case "punct":
		return r < utf8.RuneSelf && unicode.IsGraphic(r) && r > ' ' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	case "cntrl":
		return unicode.IsControl(r)
	case "print":
		return unicode.IsPrint(r)
	case "graph":
		return unicode.IsGraphic(r) && r != ' '
	case "xdigit":
		return '0' <= r && r <= '9' || 'a' <= r && r <= 'f' || 'A' <= r && r <= 'F'
	}
	return false
}
