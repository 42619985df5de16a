package search

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
)

// compile turns a pattern in ripgrep's dialect into one for whole files, with
// ^ and $ at line ends, and \d, \w and \s in their Unicode sense. Unless
// multiline, no part of it matches a line end, so that a match lies in one
// line. The CR of a CRLF belongs to the line end if crlf says so.
func compile(pattern string, fold, multiline bool) (*regexp.Regexp, string, error) {
	flags := syntax.Perl &^ syntax.OneLine
	if fold {
		flags |= syntax.FoldCase
	}
	if multiline {
		flags |= syntax.DotNL
	}
	tree, err := syntax.Parse(unicodeClasses(pattern), flags)
	if err != nil {
		return nil, "", invalid(pattern, err)
	}
	rewrite(tree, multiline, crlf(pattern, multiline))
	re, err := regexp.Compile(tree.String())
	if err != nil {
		return nil, "", invalid(pattern, err)
	}
	return re, required(tree), nil
}

func invalid(pattern string, err error) error {
	return refuse("The pattern %q is not a valid regular expression: %s", pattern, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
}

// unicodeClasses writes \d, \w and \s as the classes that ripgrep means by them.
func unicodeClasses(pattern string) string {
	if !strings.Contains(pattern, `\`) {
		return pattern
	}
	const (
		digit = `\p{Nd}`
		word  = `\p{L}\p{M}\p{Nd}\p{Pc}`
		space = `\s\v\x{85}\x{a0}\p{Z}`
	)
	var b strings.Builder
	class := false
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		if c != '\\' || i+1 == len(pattern) {
			switch {
			case c == '[' && !class:
				class = true
				// A ] that comes first stands for itself.
				b.WriteByte(c)
				if strings.HasPrefix(pattern[i+1:], "^") {
					i++
					b.WriteByte('^')
				}
				if strings.HasPrefix(pattern[i+1:], "]") {
					i++
					b.WriteString(`\]`)
				}
				continue
			case c == '[' && strings.HasPrefix(pattern[i:], "[:"):
				if end := strings.Index(pattern[i:], ":]"); end > 0 {
					b.WriteString(pattern[i : i+end+2])
					i += end + 1
					continue
				}
			case c == ']':
				class = false
			}
			b.WriteByte(c)
			continue
		}
		i++
		set := map[byte]string{'d': digit, 'w': word, 's': space}[pattern[i]|0x20]
		negated := pattern[i]&0x20 == 0
		switch {
		case set == "":
			b.WriteString(pattern[i-1 : i+1])
		case class && negated:
			b.WriteString(pattern[i-1 : i+1]) // cannot be written as a part of a class
		case class:
			b.WriteString(set)
		case negated:
			b.WriteString("[^" + set + "]")
		default:
			b.WriteString("[" + set + "]")
		}
	}
	return b.String()
}

// crlf reports whether the CR of a CRLF is a part of the line end: not if the
// pattern names CR, and not in multiline. compat: ripgrep 13 crashes on some
// patterns when told both --crlf and --multiline.
func crlf(pattern string, multiline bool) bool {
	return !multiline && !names(pattern, 'r', true)
}

// rewrite keeps a pattern inside lines, unless multiline. With crlf the CR
// before a line end is not a part of the line. compat: so ripgrep with --crlf.
func rewrite(re *syntax.Regexp, multiline, crlf bool) {
	for _, sub := range re.Sub {
		rewrite(sub, multiline, crlf)
	}
	switch re.Op {
	case syntax.OpEndLine:
		if !crlf {
			return
		}
		end := &syntax.Regexp{Op: syntax.OpEndLine, Flags: re.Flags}
		cr := &syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune{'\r'}}
		maybe := &syntax.Regexp{Op: syntax.OpQuest, Sub: []*syntax.Regexp{cr}}
		*re = syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{maybe, end}}
	case syntax.OpAnyCharNotNL:
		if crlf {
			*re = syntax.Regexp{Op: syntax.OpCharClass, Rune: without(without([]rune{0, unicode.MaxRune}, '\n'), '\r')}
		}
	case syntax.OpCharClass:
		if multiline {
			return
		}
		if re.Rune = without(re.Rune, '\n'); crlf {
			re.Rune = without(re.Rune, '\r')
		}
		if len(re.Rune) == 0 {
			*re = syntax.Regexp{Op: syntax.OpNoMatch}
		}
	}
}

// without removes a character from pairs of a lowest and a highest one.
func without(ranges []rune, r rune) []rune {
	var out []rune
	for i := 0; i < len(ranges); i += 2 {
		lo, hi := ranges[i], ranges[i+1]
		if r < lo || r > hi {
			out = append(out, lo, hi)
			continue
		}
		if lo < r {
			out = append(out, lo, r-1)
		}
		if r < hi {
			out = append(out, r+1, hi)
		}
	}
	return out
}

// required returns a text that is in everything the pattern matches, the
// longest it can tell: a file without it need not be searched.
func required(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return string(re.Rune)
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		best := ""
		for _, sub := range re.Sub {
			if s := required(sub); len(s) > len(best) {
				best = s
			}
		}
		return best
	}
	return ""
}

// spansLines reports whether a pattern names a line end outright.
func spansLines(pattern string) bool {
	return strings.Contains(pattern, "\n") || names(pattern, 'n', false)
}

// names reports whether a pattern has the escape \c in it, in classes too if asked.
func names(pattern string, c byte, classes bool) bool {
	inClass := false
	for i := 0; i < len(pattern); i++ {
		switch {
		case pattern[i] == '\\' && i+1 < len(pattern):
			if i++; pattern[i] == c && (classes || !inClass) {
				return true
			}
		case pattern[i] == '[':
			inClass = true
		case pattern[i] == ']':
			inClass = false
		}
	}
	return false
}
