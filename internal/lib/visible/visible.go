// Package visible makes text safe to look at: what a terminal would act on,
// hide or reorder is shown as an escape. It owns the list of such characters
// and nothing else.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s with every character that does not show, moves the cursor or
// changes direction written as an escape, and how many there were. Newlines
// stay; a tab becomes \t. Nothing is cut.
func Text(s string) (shown string, hidden int) {
	if plain(s) {
		return s, 0
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
			hidden++
		case r == '\n':
			b.WriteByte('\n')
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
			hidden++
		case Hidden(r):
			if r < 0x100 {
				fmt.Fprintf(&b, `\x%02x`, r)
			} else {
				fmt.Fprintf(&b, `\u{%x}`, r)
			}
			hidden++
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String(), hidden
}

func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 0x7f || c < ' ' && c != '\n' {
			return false
		}
	}
	return true
}

// Hidden reports whether r leaves no mark of its own on a screen, or changes
// what the marks around it look like. Blank and newline are not hidden.
func Hidden(r rune) bool {
	switch {
	case r == ' ' || r == '\n' || r == '\t':
		return false
	case r < ' ', r >= 0x7f && r <= 0xa0: // C0, DEL, C1, no-break space
		return true
	case r >= 0xe0000 && r <= 0xe0fff: // tags, variation selectors
		return true
	case r >= 0xfe00 && r <= 0xfe0f:
		return true
	case r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0, r == 0x2800: // fillers that look like blanks
		return true
	}
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zs, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) || unicode.Is(unicode.Co, r)
}

// Blanks returns the length of the longest run of blanks and tabs in s.
func Blanks(s string) int {
	longest, run := 0, 0
	for i := 0; i < len(s); i++ {
		if s[i] == ' ' || s[i] == '\t' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	return longest
}
