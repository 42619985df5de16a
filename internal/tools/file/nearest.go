package file

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	searchLimit = 4 << 20 // text in which a near miss is looked for
	showLimit   = 1200    // bytes of the file shown
)

// nearest says how old misses text by little: what kind of difference there
// is, and where. What the file has is shown with escapes, so that tabs,
// blanks and look-alike characters can be told apart. It returns "" if
// nothing in the text is near.
func nearest(text, old string) string {
	if len(text) > searchLimit || strings.TrimSpace(old) == "" {
		return ""
	}
	if plain, ok := unnumbered(old); ok && strings.Contains(text, plain) {
		return "It has the line numbers that Read puts before each line; they and the tab behind them are not part of the file. Leave them out."
	}
	if at, end, ok := foldedIndex(text, old, foldSpace); ok {
		return spaceHint(text[at:end], old, lineOf(text, at))
	}
	if plain := unescaped(old); plain != old && strings.Contains(text, plain) {
		return fmt.Sprintf(`It has escape sequences, such as \n or \", where the file has the characters themselves (line %d). Give them unescaped.`, lineOf(text, strings.Index(text, plain)))
	}
	if at, end, ok := foldedIndex(text, old, foldLook); ok {
		return fmt.Sprintf("It is there but for characters that look alike, at line %d%s. %s", lineOf(text, at), lookAlike(text[at:end], old), shown(text[at:end]))
	}
	if at, end, ok := foldedIndex(text, old, foldCase); ok {
		return fmt.Sprintf("It is there in other upper and lower case, at line %d. %s", lineOf(text, at), shown(text[at:end]))
	}
	return sharedLines(text, old)
}

// unnumbered removes the prefixes of Read's lines, if every line has one.
func unnumbered(s string) (string, bool) {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		number, rest, ok := strings.Cut(strings.TrimLeft(l, " "), "\t")
		if !ok {
			number, rest, ok = strings.Cut(strings.TrimLeft(l, " "), "→")
		}
		if _, err := strconv.Atoi(number); !ok || err != nil {
			if l == "" && i == len(lines)-1 && i > 0 {
				continue
			}
			return "", false
		}
		lines[i] = rest
	}
	return strings.Join(lines, "\n"), true
}

func unescaped(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r", `\"`, `"`, `\'`, `'`, "\\`", "`").Replace(s)
}

// A fold maps a character to what counts for a comparison, -1 for nothing.
type fold func(rune) rune

func foldSpace(r rune) rune {
	if unicode.IsSpace(r) || r == 0x200b || r == 0xfeff {
		return -1
	}
	return r
}

func foldLook(r rune) rune {
	switch r {
	case '‘', '’', '‚', '‛', '`', '´', '′':
		return '\''
	case '“', '”', '„', '‟', '″', '«', '»':
		return '"'
	case '‐', '‑', '‒', '–', '—', '―', '−':
		return '-'
	}
	return foldSpace(r)
}

func foldCase(r rune) rune { return unicode.ToLower(foldLook(r)) }

// foldedIndex finds old in text by what f leaves of both. The stretch of text
// it returns begins and ends with characters that count.
func foldedIndex(text, old string, f fold) (start, end int, ok bool) {
	want, _ := folded(old, f)
	have, offsets := folded(text, f)
	i := strings.Index(have, want)
	if want == "" || i < 0 {
		return 0, 0, false
	}
	last := offsets[i+len(want)-1]
	_, w := utf8.DecodeRuneInString(text[last:])
	start, end = offsets[i], last+w
	// Blanks at the ends belong to the stretch where old has some.
	if r, _ := utf8.DecodeRuneInString(old); unicode.IsSpace(r) {
		start = strings.LastIndexByte(text[:start], '\n') + 1
	}
	if r, _ := utf8.DecodeLastRuneInString(old); unicode.IsSpace(r) {
		if j := strings.IndexByte(text[end:], '\n'); j >= 0 {
			end += j
		} else {
			end = len(text)
		}
	}
	return start, end, true
}

// folded returns what f leaves of s, and for each byte of it the offset in s
// of the character it comes from.
func folded(s string, f fold) (string, []int) {
	out := make([]byte, 0, len(s))
	offsets := make([]int, 0, len(s))
	for i, r := range s {
		if r = f(r); r < 0 {
			continue
		}
		n := len(out)
		out = utf8.AppendRune(out, r)
		for range len(out) - n {
			offsets = append(offsets, i)
		}
	}
	return string(out), offsets
}

func lineOf(text string, at int) int { return strings.Count(text[:at], "\n") + 1 }

// spaceHint says where the blanks of a stretch of the file differ from old's.
func spaceHint(have, old string, line int) string {
	a, b := strings.Split(strings.Trim(have, "\n"), "\n"), strings.Split(strings.Trim(old, "\n"), "\n")
	if len(a) != len(b) {
		b = nil // lines do not correspond
	}
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		at := line + i
		left, right := leading(a[i]), leading(b[i])
		if left != right {
			return fmt.Sprintf("It is there with other whitespace: the file begins line %d with %s, old_string has %s there. %s", at, blanks(left), blanks(right), shown(have))
		}
		if left, right = trailing(a[i]), trailing(b[i]); left != right {
			return fmt.Sprintf("It is there with other whitespace: the file ends line %d with %s, old_string has %s there. %s", at, blanks(left), blanks(right), shown(have))
		}
		return fmt.Sprintf("It is there with other whitespace inside line %d. %s", at, shown(have))
	}
	return fmt.Sprintf("It is there with other line breaks, at line %d. %s", line, shown(have))
}

func leading(s string) string  { return s[:len(s)-len(strings.TrimLeftFunc(s, unicode.IsSpace))] }
func trailing(s string) string { return s[len(strings.TrimRightFunc(s, unicode.IsSpace)):] }

// blanks names a run of blanks: "2 tabs", "4 spaces", else with escapes.
func blanks(s string) string {
	for c, name := range map[string]string{"\t": "tab", " ": "space"} {
		if n := strings.Count(s, c); s != "" && n == len(s) {
			if n > 1 {
				name += "s"
			}
			return fmt.Sprintf("%d %s", n, name)
		}
	}
	if s == "" {
		return "no whitespace"
	}
	return strconv.Quote(s)
}

// shown quotes a stretch of the file line by line.
func shown(s string) string {
	var b strings.Builder
	b.WriteString("The file has, escaped:")
	for l := range strings.SplitSeq(s, "\n") {
		q := strconv.Quote(l)
		if b.Len()+len(q) > showLimit {
			b.WriteString("\n…")
			break
		}
		b.WriteByte('\n')
		b.WriteString(q)
	}
	return b.String()
}

// lookAlike names the first character that differs.
func lookAlike(have, old string) string {
	a, b := []rune(have), []rune(strings.TrimSpace(old))
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf(" (%U %q in the file, %U %q in old_string)", a[i], a[i], b[i], b[i])
		}
	}
	return ""
}

// sharedLines finds the place that has the most lines in common with the
// beginning of old and says where the two part.
func sharedLines(text, old string) string {
	want := strings.Split(strings.Trim(old, "\n"), "\n")
	first := strings.TrimSpace(want[0])
	if first == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	best, at := 0, 0
	for i := range lines {
		n := 0
		for n < len(want) && i+n < len(lines) && strings.TrimSpace(lines[i+n]) == strings.TrimSpace(want[n]) {
			n++
		}
		if n > best {
			best, at = n, i
		}
	}
	switch {
	case best == 0 || best == len(want):
		return ""
	case at+best >= len(lines):
		return fmt.Sprintf("Its first %d lines are at line %d, but there the file ends.", best, at+1)
	}
	return fmt.Sprintf("Its first lines are at line %d, but line %d differs: the file has %s, old_string has %s.", at+1, at+best+1, clipQuote(lines[at+best]), clipQuote(want[best]))
}

func clipQuote(s string) string {
	if len(s) > 200 {
		s = s[:200] + "…"
	}
	return strconv.Quote(s)
}
