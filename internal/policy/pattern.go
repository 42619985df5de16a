package policy

import "strings"

// A pattern is text in which * stands for any run of characters.
type pattern struct {
	pieces []string // between the stars
	// boundary: the text may also end where a last " *" begins.
	boundary bool
	exact    bool // no star
}

// compilePattern reads the specifier of a Bash rule: a last ":*" is " *",
// and \* and \\ stand for themselves.
func compilePattern(s string) *pattern {
	s = strings.TrimSpace(s)
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
	p.boundary = n > 1 && p.pieces[n-1] == "" && strings.HasSuffix(p.pieces[n-2], " ") && strings.TrimSpace(p.pieces[n-2]) != ""
	return p
}

// escape returns s so that compilePattern takes it literally.
func escape(s string) string {
	return strings.NewReplacer(`\*`, `\\\*`, `\\`, `\\\\`, `*`, `\*`).Replace(s)
}

func (p *pattern) match(s string) bool {
	if p.exact {
		return s == p.pieces[0]
	}
	if p.boundary && p.matchPieces(s, true) {
		return true
	}
	return p.matchPieces(s, false)
}

// matchPieces matches greedily from the left. short matches the form in
// which the last " *" is left out.
func (p *pattern) matchPieces(s string, short bool) bool {
	pieces := p.pieces
	if short {
		pieces = append([]string(nil), pieces[:len(pieces)-1]...)
		pieces[len(pieces)-1] = strings.TrimSuffix(pieces[len(pieces)-1], " ")
		if len(pieces) == 1 {
			return s == pieces[0]
		}
	}
	if !strings.HasPrefix(s, pieces[0]) {
		return false
	}
	s = s[len(pieces[0]):]
	for _, m := range pieces[1 : len(pieces)-1] {
		i := strings.Index(s, m)
		if i < 0 {
			return false
		}
		s = s[i+len(m):]
	}
	return strings.HasSuffix(s, pieces[len(pieces)-1])
}

// lead is the text before the first star.
func (p *pattern) lead() string { return p.pieces[0] }
