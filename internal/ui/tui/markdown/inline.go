package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-eb844fcb/cinch/internal/ui/tui/cell"
)

// maxInline is how long a line may be in which marks are looked for: each may
// be compared with the whole rest of it.
const maxInline = 4096

// inline shows emphasis, code and links of one line. A mark without its
// partner is text.
func inline(s string, base cell.Style) cell.Line {
	var out cell.Line
	text := func(t string, st cell.Style) {
		if t != "" {
			out = append(out, cell.Span{Text: t, Style: st})
		}
	}
	start := 0
	for i := 0; i < len(s) && len(s) <= maxInline; {
		n, spans := construct(s, i, base)
		if n == 0 {
			i++
			continue
		}
		text(s[start:i], base)
		out = append(out, spans...)
		i += n
		start = i
	}
	text(s[start:], base)
	return out
}

// construct shows what begins at s[i]: n is its length, 0 if it is just text.
func construct(s string, i int, base cell.Style) (n int, spans cell.Line) {
	rest := s[i:]
	switch rest[0] {
	case '\\':
		if len(rest) > 1 && strings.IndexByte("\\`*_{}[]()#+-.!~|>", rest[1]) >= 0 {
			return 2, cell.Styled(rest[1:2], base)
		}
	case '`':
		ticks := len(rest) - len(strings.TrimLeft(rest, "`"))
		if end := strings.Index(rest[ticks:], rest[:ticks]); end > 0 {
			code := rest[ticks : ticks+end]
			if len(code) > 2 && code[0] == ' ' && code[len(code)-1] == ' ' {
				code = code[1 : len(code)-1]
			}
			st := base
			st.FG = inCode.FG
			return 2*ticks + end, cell.Styled(code, st)
		}
		return ticks, cell.Styled(rest[:ticks], base)
	case '*', '_', '~':
		return emphasis(s, i, base)
	case '[':
		return link(rest, base)
	case '!':
		if len(rest) > 1 && rest[1] == '[' {
			if n, spans = link(rest[1:], base); n > 0 {
				return n + 1, append(cell.Styled("image: ", dim), spans...)
			}
		}
	}
	return 0, nil
}

func emphasis(s string, i int, base cell.Style) (int, cell.Line) {
	rest := s[i:]
	c := rest[0]
	run := 0
	for run < len(rest) && rest[run] == c {
		run++
	}
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	if run > 3 || len(rest) == run || rest[run] == ' ' || c == '~' && run != 2 || c == '_' && letter(before) {
		return run, cell.Styled(rest[:run], base)
	}
	mark := rest[:run]
	for at := run; ; {
		end := strings.Index(rest[at:], mark)
		if end < 0 {
			return run, cell.Styled(mark, base)
		}
		at += end
		after, _ := utf8.DecodeRuneInString(rest[at+run:])
		if at > run && rest[at-1] != ' ' && rest[at-1] != '\\' && rest[at-1] != c && !(c == '_' && letter(after)) && !strings.HasPrefix(rest[at+run:], string(c)) {
			st := base
			switch {
			case c == '~':
				st.Strike = true
			case run == 1:
				st.Italic = true
			case run == 2:
				st.Bold = true
			default:
				st.Bold, st.Italic = true, true
			}
			return at + run, inline(rest[run:at], st)
		}
		at += run
		for at < len(rest) && rest[at] == c {
			at++
		}
	}
}

func letter(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// link shows [text](target): the text, and where it goes.
func link(s string, base cell.Style) (int, cell.Line) {
	end := strings.Index(s, "](")
	if end < 1 || strings.ContainsAny(s[1:end], "[]") {
		return 0, nil
	}
	stop := strings.IndexByte(s[end:], ')')
	if stop < 0 {
		return 0, nil
	}
	text, target := s[1:end], s[end+2:end+stop]
	st := base
	st.Underline = true
	n := end + stop + 1
	if text == target {
		return n, cell.Styled(text, st)
	}
	return n, append(inline(text, st), cell.Span{Text: " (" + target + ")", Style: dim})
}
