package gitignore

import "strings"

// wildmatch matches pattern with the whole of text, byte by byte as git does.
// With paths set, '*', '?' and classes do not match a slash, and "**" as a
// whole segment matches any number of them.
func wildmatch(pattern, text string, paths bool) bool {
	m := matcher{pattern: pattern, text: text, paths: paths}
	return m.match(0, 0) == matched
}

// outcome lets a failure that no longer tail can repair end the search early,
// which keeps patterns with many stars from taking exponential time.
type outcome uint8

const (
	matched  outcome = iota
	failed           // not here
	hopeless         // nor with any star above taking more
	toSlash          // nor with a one-segment star above taking more
)

type matcher struct {
	pattern, text string
	paths         bool
}

// match matches pattern[p:] with text[t:].
func (m *matcher) match(p, t int) outcome {
	for ; p < len(m.pattern); p++ {
		c := m.pattern[p]
		if t == len(m.text) && c != '*' {
			return hopeless
		}
		switch c {
		case '*':
			return m.star(p, t)
		case '?':
			if m.paths && m.text[t] == '/' {
				return failed
			}
		case '[':
			in, end, ok := class(m.pattern, p, m.text[t])
			if !ok {
				return hopeless
			}
			if !in || m.paths && m.text[t] == '/' {
				return failed
			}
			p = end
		case '\\':
			if p++; p == len(m.pattern) || m.pattern[p] != m.text[t] {
				return failed
			}
		default:
			if c != m.text[t] {
				return failed
			}
		}
		t++
	}
	if t < len(m.text) {
		return failed
	}
	return matched
}

func (m *matcher) star(p, t int) outcome {
	first := p
	for p < len(m.pattern) && m.pattern[p] == '*' {
		p++
	}
	rest := m.pattern[p:]
	slashes := false // the star may take slashes
	if p-first > 1 {
		opens := first == 0 || m.pattern[first-1] == '/'
		closes := rest == "" || rest[0] == '/' || strings.HasPrefix(rest, `\/`)
		switch {
		case !m.paths:
			slashes = true
		case opens && closes:
			// "**/" may stand for no directory at all.
			if rest != "" && rest[0] == '/' && m.match(p+1, t) == matched {
				return matched
			}
			slashes = true
		}
	} else {
		slashes = !m.paths
	}
	if rest == "" {
		if !slashes && strings.Contains(m.text[t:], "/") {
			return toSlash
		}
		return matched
	}
	if !slashes && rest[0] == '/' {
		i := strings.IndexByte(m.text[t:], '/')
		if i < 0 {
			return hopeless
		}
		return m.match(p+1, t+i+1)
	}
	for ; t < len(m.text); t++ {
		switch r := m.match(p, t); {
		case r == failed:
		case r == toSlash && slashes:
		default:
			return r
		}
		if !slashes && m.text[t] == '/' {
			return toSlash
		}
	}
	return hopeless
}

// class matches c with the bracket expression at pattern[p]. end is the
// position of its ']'; ok is false if there is none.
func class(pattern string, p int, c byte) (in bool, end int, ok bool) {
	p++
	negate := p < len(pattern) && (pattern[p] == '!' || pattern[p] == '^')
	if negate {
		p++
	}
	low := byte(0) // the start of a possible range; 0 for none
	for first := true; ; first = false {
		if p >= len(pattern) {
			return false, 0, false
		}
		ch := pattern[p]
		switch {
		case ch == ']' && !first:
			return in != negate, p, true
		case ch == '\\':
			if p++; p == len(pattern) {
				return false, 0, false
			}
			low = pattern[p]
			in = in || c == low
		case ch == '-' && low != 0 && p+1 < len(pattern) && pattern[p+1] != ']':
			if p++; pattern[p] == '\\' {
				if p++; p == len(pattern) {
					return false, 0, false
				}
			}
			in = in || low <= c && c <= pattern[p]
			low = 0
		case ch == '[' && p+1 < len(pattern) && pattern[p+1] == ':':
			close := strings.IndexByte(pattern[p+2:], ']')
			if close < 0 {
				return false, 0, false
			}
			name, named := strings.CutSuffix(pattern[p+2:p+2+close], ":")
			if !named {
				low = '['
				in = in || c == '['
				break
			}
			member, known := posix(name, c)
			if !known {
				return false, 0, false
			}
			in = in || member
			low = 0
			p += 2 + close
		default:
			low = ch
			in = in || c == ch
		}
		p++
	}
}

func posix(name string, c byte) (in, known bool) {
	lower, upper, digit := 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9'
	graph := ' ' < c && c < 0x7f
	switch name {
	case "alpha":
		in = lower || upper
	case "digit":
		in = digit
	case "alnum":
		in = lower || upper || digit
	case "upper":
		in = upper
	case "lower":
		in = lower
	case "space":
		in = c == ' ' || '\t' <= c && c <= '\r'
	case "blank":
		in = c == ' ' || c == '\t'
	case "punct":
		in = graph && !lower && !upper && !digit
	case "cntrl":
		in = c < ' ' || c == 0x7f
	case "print":
		in = graph || c == ' '
	case "graph":
		in = graph
	case "xdigit":
		in = digit || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
	default:
		return false, false
	}
	return in, true
}
