// Package termsafe makes text from outside safe to show on a terminal: from a
// model, a tool, a file, the network. Nothing that moves the cursor, changes
// the terminal's state, makes it answer, reorders what is read, or hides
// between the letters gets through: it is shown as an escape instead. It
// decides about characters only, knows no agent types, and writes nothing.
//
// Escapes are those of Go strings: \r, \x1b, \u202e. A backslash in the text
// is not doubled: the result is for eyes, not for parsers.
package termsafe

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// String returns s as one line: line ends and tabs are escaped, too.
func String(s string) string { return clean(s, false) }

// Text returns s with its lines and tabs kept. CRLF becomes LF; a lone CR,
// which would overwrite the line, is escaped.
func Text(s string) string { return clean(s, true) }

func clean(s string, lines bool) string {
	i := 0
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !plain(r, n, lines) {
			break
		}
		i += n
	}
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	b.WriteString(s[:i])
	prev, _ := utf8.DecodeLastRuneInString(s[:i])
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case plain(r, n, lines):
			b.WriteString(s[i : i+n])
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case joiner(r) && joins(prev, s[i+n:]):
			b.WriteRune(r)
		case r == '\r' && lines && strings.HasPrefix(s[i:], "\r\n"):
			// The LF that follows ends the line.
		default:
			b.WriteString(escape(r))
		}
		prev = r
		i += n
	}
	return b.String()
}

// plain reports whether r stands for itself wherever it is.
func plain(r rune, size int, lines bool) bool {
	switch {
	case r >= ' ' && r < 0x7f:
		return true
	case r == '\n' || r == '\t':
		return lines
	case r == utf8.RuneError && size == 1:
		return false
	case r < 0xa0:
		return false // C0, DEL, C1
	}
	return !unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs)
}

// joiner reports whether r is one of the two format characters that honest
// text needs: they build emoji, and letters of Persian and the Indic scripts.
func joiner(r rune) bool { return r == 0x200c || r == 0x200d }

// joins reports whether a joiner between prev and rest joins anything. Beside
// ASCII it can only hide.
func joins(prev rune, rest string) bool {
	next, _ := utf8.DecodeRuneInString(rest)
	ok := func(r rune) bool { return r >= 0x300 && r != utf8.RuneError && !joiner(r) }
	return ok(prev) && ok(next)
}

func escape(r rune) string {
	switch r {
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	switch {
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}
