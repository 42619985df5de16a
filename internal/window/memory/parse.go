package memory

import (
	"strings"
)

// A fence tells which lines of a Markdown text are fenced code.
type fence struct {
	char byte
	n    int
}

// code reports whether line, the next of the text, is part of a fenced block,
// the fences included.
func (f *fence) code(line string) bool {
	t := strings.TrimLeft(line, " ")
	if len(line)-len(t) > 3 || t == "" || t[0] != '`' && t[0] != '~' {
		return f.n > 0
	}
	n := len(t) - len(strings.TrimLeft(t, t[:1]))
	switch {
	case f.n > 0:
		if t[0] == f.char && n >= f.n && strings.TrimSpace(t[n:]) == "" {
			f.n = 0
		}
		return true
	case n >= 3 && (t[0] == '~' || !strings.Contains(t[n:], "`")):
		f.char, f.n = t[0], n
		return true
	}
	return false
}

// stripComments removes HTML comments that begin a line, outside of code. One
// that is never closed stays.
func stripComments(text string) string {
	if !strings.Contains(text, "<!--") {
		return text
	}
	var out strings.Builder
	var f fence
	for rest := text; rest != ""; {
		line, after := cutLine(rest)
		t := strings.TrimLeft(line, " ")
		if f.code(line) || len(line)-len(t) > 3 || !strings.HasPrefix(t, "<!--") {
			out.WriteString(line)
			rest = after
			continue
		}
		start := len(line) - len(t)
		end := strings.Index(rest[start+len("<!--"):], "-->")
		if end < 0 {
			out.WriteString(rest)
			break
		}
		rest = rest[start+len("<!--")+end+len("-->"):]
		if tail, after := cutLine(rest); strings.TrimSpace(tail) == "" {
			rest = after
		}
	}
	return out.String()
}

// cutLine splits text behind its first line, which keeps its line end.
func cutLine(text string) (line, after string) {
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		return text[:i+1], text[i+1:]
	}
	return text, ""
}

// references returns the paths that text imports: words that begin with @,
// outside of code.
func references(text string) []string {
	if !strings.Contains(text, "@") {
		return nil
	}
	var refs []string
	seen := map[string]bool{}
	var f fence
	for line := range strings.Lines(text) {
		if f.code(line) || !strings.Contains(line, "@") {
			continue
		}
		line = blankCode(line)
		for i := 0; i < len(line); i++ {
			if line[i] != '@' || i > 0 && !strings.ContainsRune(" \t(", rune(line[i-1])) {
				continue
			}
			if ref := word(line[i+1:]); ref != "" && !seen[ref] {
				seen[ref] = true
				refs = append(refs, ref)
			}
		}
	}
	return refs
}

// blankCode replaces code spans of a line by blanks.
func blankCode(line string) string {
	for at := 0; ; {
		i := strings.IndexByte(line[at:], '`')
		if i < 0 {
			return line
		}
		i += at
		n := len(line[i:]) - len(strings.TrimLeft(line[i:], "`"))
		end := closing(line[i+n:], n)
		if end < 0 {
			at = i + n
			continue
		}
		stop := i + n + end + n
		line = line[:i] + strings.Repeat(" ", stop-i) + line[stop:]
		at = stop
	}
}

// closing returns where the next run of exactly n backticks begins, or -1.
func closing(s string, n int) int {
	for at := 0; ; {
		i := strings.IndexByte(s[at:], '`')
		if i < 0 {
			return -1
		}
		i += at
		m := len(s[i:]) - len(strings.TrimLeft(s[i:], "`"))
		if m == n {
			return i
		}
		at = i + m
	}
}

// word returns the path at the start of s, up to a blank; "\ " is a blank in
// the path. Punctuation behind it belongs to the sentence.
func word(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && s[i+1] == ' ' {
			b.WriteByte(' ')
			i++
			continue
		}
		if s[i] <= ' ' {
			break
		}
		b.WriteByte(s[i])
	}
	w := strings.TrimRight(b.String(), ".,;:!?)]}>\"'*")
	if strings.HasPrefix(w, "@") || w == "~" || w == "/" || len(w) > 1024 || strings.IndexByte(w, 0) >= 0 {
		return ""
	}
	return w
}

// frontmatter returns the globs of a rule and its text without the frontmatter.
func frontmatter(text string) (globs []string, body string) {
	head, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return nil, text
	}
	head, body, ok = cutFence(head)
	if !ok {
		return nil, text
	}
	inPaths := false
	for line := range strings.Lines(head) {
		line = strings.TrimRight(line, " \t\n")
		t := strings.TrimSpace(line)
		switch {
		case t == "" || strings.HasPrefix(t, "#"):
		case inPaths && strings.HasPrefix(t, "- "):
			globs = append(globs, globList(strings.TrimPrefix(t, "- "), false)...)
		case line == t: // a key at the outer level
			key, value, _ := strings.Cut(line, ":")
			inPaths = key == "paths"
			if inPaths {
				globs = append(globs, globList(value, true)...)
			}
		}
	}
	return globs, body
}

// cutFence splits s at the line "---".
func cutFence(s string) (head, body string, ok bool) {
	for at := 0; at < len(s); {
		line, _ := cutLine(s[at:])
		if strings.TrimRight(line, " \t\n") == "---" {
			return s[:at], s[at+len(line):], true
		}
		at += len(line)
	}
	return "", s, false
}

// globList reads one glob, or, with list, several: a,b or "a, b" or [a, "b"].
// Commas inside braces and quotes do not separate.
func globList(s string, list bool) []string {
	s = strings.TrimSpace(s)
	if !list {
		return appendGlob(nil, s)
	}
	if t, ok := strings.CutPrefix(s, "["); ok && strings.HasSuffix(t, "]") {
		s = strings.TrimSuffix(t, "]")
	} else {
		s = unquote(s)
	}
	var out []string
	var quote byte
	depth, start := 0, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == ',' && depth <= 0:
			out = appendGlob(out, s[start:i])
			start = i + 1
		}
	}
	return appendGlob(out, s[start:])
}

func appendGlob(out []string, s string) []string {
	if s = unquote(strings.TrimSpace(s)); s != "" {
		out = append(out, s)
	}
	return out
}

func unquote(s string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] && strings.Count(s, s[:1]) == 2 {
		return s[1 : len(s)-1]
	}
	return s
}

// section returns what stands under a heading up to the next one of the same
// or a higher level.
func section(text, heading string) string {
	var out []string
	level := 0
	var f fence
	for line := range strings.Lines(text) {
		if !f.code(line) {
			n := len(line) - len(strings.TrimLeft(line, "#"))
			if n > 0 && n <= 6 && strings.HasPrefix(line[n:], " ") {
				if level > 0 && n <= level {
					level = 0
				}
				if level == 0 && strings.EqualFold(strings.TrimSpace(strings.TrimRight(strings.TrimSpace(line[n:]), "#")), heading) {
					level = n
					continue
				}
			}
		}
		if level > 0 {
			out = append(out, line)
		}
	}
	return strings.TrimSpace(strings.Join(out, ""))
}
