package policy

import "strings"

// A pattern is text in which * stands for any run of characters.
type pattern struct {
	pieces []string // between the stars
	// short, if not nil, are the pieces without a last " *", which may be missing.
	short []string
	exact bool // no star
}

// compilePattern reads the specifier of a Bash rule: a last ":*" is " *",
// and \* and \\ stand for themselves.
func compilePattern(s string) *pattern {
	s = trim(s)
	if rest, ok := strings.CutSuffix(s, ":*"); ok {
		s = rest + " *"
	}
	p := &pattern{}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == '*' || s[i+1] == '\\'):
			i++
			b.WriteByte(s[i])
		case s[i] == '*':
			if b.Len() > 0 || len(p.pieces) == 0 {
				p.pieces = append(p.pieces, b.String())
				b.Reset()
			}
			if i == len(s)-1 {
				p.pieces = append(p.pieces, "")
			}
		default:
			b.WriteByte(s[i])
		}
	}
	if b.Len() > 0 || len(p.pieces) == 0 {
		p.pieces = append(p.pieces, b.String())
	}
	p.exact = len(p.pieces) == 1
	n := len(p.pieces)
	if n > 1 && p.pieces[n-1] == "" && strings.HasSuffix(p.pieces[n-2], " ") && strings.TrimSpace(p.pieces[n-2]) != "" {
		p.short = append(p.short, p.pieces[:n-1]...)
		p.short[n-2] = strings.TrimSuffix(p.short[n-2], " ")
	}
	return p
}

// trim takes off what the shell takes for blanks, and nothing else.
func trim(s string) string { return strings.Trim(s, " \t\n") }

// escape returns s so that compilePattern takes it literally.
func escape(s string) string {
	if !strings.ContainsAny(s, `\*`) {
		return s
	}
	return strings.NewReplacer(`\*`, `\\\*`, `\\`, `\\\\`, `*`, `\*`).Replace(s)
}

func (p *pattern) match(s string) bool {
	return matchPieces(p.pieces, s) || p.short != nil && matchPieces(p.short, s)
}

// matchPieces matches greedily from the left.
func matchPieces(pieces []string, s string) bool {
	last := len(pieces) - 1
	if last == 0 {
		return s == pieces[0]
	}
	if !strings.HasPrefix(s, pieces[0]) {
		return false
	}
	s = s[len(pieces[0]):]
	for _, m := range pieces[1:last] {
		i := strings.Index(s, m)
		if i < 0 {
			return false
		}
		s = s[i+len(m):]
	}
	return strings.HasSuffix(s, pieces[last])
}

// lead is the text before the first star.
func (p *pattern) lead() string { return p.pieces[0] }
