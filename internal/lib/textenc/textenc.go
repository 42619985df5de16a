// Package textenc reads text in the encodings that source trees hold and
// changes parts of it without touching a byte of the rest.
//
// It owns detection (byte order marks, UTF-8, UTF-16, windows-1252), line end
// styles and splicing. It knows no files.
package textenc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/seed-eb844fcb/cinch/internal/lib/textdiff"
)

// An Encoding is a way to write characters as bytes.
type Encoding uint8

const (
	UTF8 Encoding = iota
	UTF8BOM
	UTF16LE // with a byte order mark, as is the next
	UTF16BE
	Windows1252 // and Latin-1, whose printable characters it shares
)

func (e Encoding) String() string {
	switch e {
	case UTF8BOM:
		return "UTF-8 with a byte order mark"
	case UTF16LE:
		return "UTF-16LE"
	case UTF16BE:
		return "UTF-16BE"
	case Windows1252:
		return "windows-1252"
	}
	return "UTF-8"
}

// mark returns the byte order mark that a text in e begins with.
func (e Encoding) mark() string {
	switch e {
	case UTF8BOM:
		return "\xef\xbb\xbf"
	case UTF16LE:
		return "\xff\xfe"
	case UTF16BE:
		return "\xfe\xff"
	}
	return ""
}

// An EOL is a style of line end.
type EOL uint8

const (
	LF EOL = iota
	CRLF
	CR
)

func (e EOL) String() string {
	switch e {
	case CRLF:
		return "\r\n"
	case CR:
		return "\r"
	}
	return "\n"
}

// A Text is a decoded text that remembers the bytes it came from. It is
// immutable.
type Text struct {
	raw     []byte
	enc     Encoding
	eol     EOL
	mixed   bool
	stray   int
	literal string // decoded, line ends as they are
	text    string // the same with "\n" for every line end
}

// Decode reads raw, whose encoding is found from its content. The Text keeps
// raw, which must not change. Bytes that mean nothing become U+FFFD.
func Decode(raw []byte) *Text {
	var s Stats
	s.Write(raw)
	return decode(raw, s.Encoding())
}

// DecodeAs reads a stretch from the middle of a text in an encoding that is
// known: no byte order mark is looked for.
func DecodeAs(raw []byte, e Encoding) string {
	if e == UTF8BOM {
		e = UTF8
	}
	s, _ := decodeString(raw, e)
	return s
}

func decode(raw []byte, e Encoding) *Text {
	t := &Text{raw: raw, enc: e}
	t.literal, t.stray = decodeString(raw[len(e.mark()):], e)
	t.lines()
	return t
}

func decodeString(raw []byte, e Encoding) (s string, stray int) {
	if (e == UTF8 || e == UTF8BOM) && utf8.Valid(raw) {
		return string(raw), 0
	}
	var b strings.Builder
	b.Grow(len(raw))
	for len(raw) > 0 {
		r, n, ok := e.next(raw)
		if !ok {
			stray++
		}
		b.WriteRune(r)
		raw = raw[n:]
	}
	return b.String(), stray
}

// next decodes the first character of raw; ok is false if it is U+FFFD for want of a better one.
func (e Encoding) next(raw []byte) (r rune, n int, ok bool) {
	switch e {
	case UTF16LE, UTF16BE:
		var order binary.ByteOrder = binary.LittleEndian
		if e == UTF16BE {
			order = binary.BigEndian
		}
		if len(raw) < 2 {
			return utf8.RuneError, len(raw), false
		}
		r = rune(order.Uint16(raw))
		if !utf16.IsSurrogate(r) {
			return r, 2, true
		}
		if len(raw) >= 4 {
			if both := utf16.DecodeRune(r, rune(order.Uint16(raw[2:]))); both != utf8.RuneError {
				return both, 4, true
			}
		}
		return utf8.RuneError, 2, false
	case Windows1252:
		if c := raw[0]; c >= 0x80 && c < 0xa0 {
			return windows1252[c-0x80], 1, true
		}
		return rune(raw[0]), 1, true
	}
	r, n = utf8.DecodeRune(raw)
	return r, n, r != utf8.RuneError || n > 1
}

// windows1252 holds the characters of 0x80 to 0x9f. The five bytes that the
// code page leaves open stand for the control characters of the same number,
// so that every byte survives a round trip.
var windows1252 = [32]rune{
	'€', 0x81, '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', 0x8d, 'Ž', 0x8f,
	0x90, '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', 0x9d, 'ž', 'Ÿ',
}

// lines finds the style of line ends and makes the text without them.
func (t *Text) lines() {
	lf := strings.Count(t.literal, "\n")
	cr := strings.Count(t.literal, "\r")
	if cr == 0 {
		t.text = t.literal
		return
	}
	crlf := strings.Count(t.literal, "\r\n")
	switch {
	case lf == 0:
		t.eol = CR
		t.text = strings.ReplaceAll(t.literal, "\r", "\n")
		return
	case crlf*2 > lf:
		t.eol = CRLF
	}
	t.mixed = crlf > 0 && crlf < lf
	t.text = strings.ReplaceAll(t.literal, "\r\n", "\n")
}

// String returns the text with "\n" for every line end.
func (t *Text) String() string { return t.text }

// Literal returns the text with its line ends as they are.
func (t *Text) Literal() string { return t.literal }

// Encoding returns the encoding of the bytes.
func (t *Text) Encoding() Encoding { return t.enc }

// EOL returns the style of most line ends; LF if there are none.
func (t *Text) EOL() EOL { return t.eol }

// Mixed reports whether some lines end in CRLF and others in LF alone.
func (t *Text) Mixed() bool { return t.mixed }

// Stray counts the bytes, or units of UTF-16, that mean nothing in the encoding.
func (t *Text) Stray() int { return t.stray }

// Raw returns the bytes. They must not be changed.
func (t *Text) Raw() []byte { return t.raw }

// An UnencodableError reports a character that a text's encoding cannot write.
type UnencodableError struct {
	Rune     rune
	Encoding Encoding
}

func (e *UnencodableError) Error() string {
	if e.Rune == utf8.RuneError {
		return "U+FFFD stands for bytes that are not valid " + e.Encoding.String() + " and cannot be written back"
	}
	return fmt.Sprintf("the character %q (%U) does not exist in %s, the encoding of the file", e.Rune, e.Rune, e.Encoding)
}

// appendRunes appends s in the encoding of t.
func (t *Text) appendRunes(dst []byte, s string) ([]byte, error) {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && (n == 1 || t.stray > 0) {
			return nil, &UnencodableError{r, t.enc}
		}
		i += n
		switch t.enc {
		case UTF16LE:
			for _, u := range utf16.AppendRune(nil, r) {
				dst = binary.LittleEndian.AppendUint16(dst, u)
			}
		case UTF16BE:
			for _, u := range utf16.AppendRune(nil, r) {
				dst = binary.BigEndian.AppendUint16(dst, u)
			}
		case Windows1252:
			c, ok := windows1252Byte(r)
			if !ok {
				return nil, &UnencodableError{r, t.enc}
			}
			dst = append(dst, c)
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst, nil
}

func windows1252Byte(r rune) (byte, bool) {
	if r < 0x80 || 0xa0 <= r && r < 0x100 {
		return byte(r), true
	}
	for i, w := range windows1252 {
		if w == r {
			return byte(0x80 + i), true
		}
	}
	return 0, false
}

// SpliceLiteral returns the bytes with edits made to Literal, which must be
// sorted and disjoint. Bytes outside the edits are those of Raw. It fails
// with an *UnencodableError.
func (t *Text) SpliceLiteral(edits []textdiff.Edit) ([]byte, error) {
	out := make([]byte, 0, len(t.raw))
	m := rawMapper{t: t, raw: len(t.enc.mark())}
	last := 0
	for _, e := range edits {
		start, end := m.offset(e.Start), m.offset(e.End)
		out = append(out, t.raw[last:start]...)
		var err error
		if out, err = t.appendRunes(out, e.New); err != nil {
			return nil, err
		}
		last = end
	}
	return append(out, t.raw[last:]...), nil
}

// A rawMapper turns rising offsets of Literal into offsets of Raw.
type rawMapper struct {
	t            *Text
	literal, raw int
}

func (m *rawMapper) offset(literal int) int {
	t := m.t
	if t.stray == 0 && (t.enc == UTF8 || t.enc == UTF8BOM) {
		return literal + len(t.enc.mark())
	}
	for m.literal < literal {
		r, n, _ := t.enc.next(t.raw[m.raw:])
		m.literal += utf8.RuneLen(r)
		m.raw += n
	}
	return m.raw
}

// Splice returns the bytes with edits made to String, which must be sorted and
// disjoint. A new line end takes the style of the one it replaces, else that
// of the line before it, else that of the text. Bytes outside the edits are
// those of Raw. It fails with an *UnencodableError.
func (t *Text) Splice(edits []textdiff.Edit) ([]byte, error) {
	if len(t.text) == len(t.literal) && t.eol != CR {
		return t.SpliceLiteral(edits) // no line end but LF
	}
	literal := make([]textdiff.Edit, len(edits))
	m := literalMapper{t: t}
	for i, e := range edits {
		start := m.offset(e.Start)
		end := m.offset(e.End)
		literal[i] = textdiff.Edit{Start: start, End: end, New: t.lineEnds(start, end, e.New)}
	}
	return t.SpliceLiteral(literal)
}

// A literalMapper turns rising offsets of String into offsets of Literal.
type literalMapper struct {
	t             *Text
	text, literal int
}

func (m *literalMapper) offset(text int) int {
	t := m.t
	if t.eol == CR {
		return text
	}
	for m.text < text {
		rest := t.literal[m.literal:]
		i := strings.Index(rest, "\r\n")
		if i < 0 || m.text+i >= text {
			m.literal += text - m.text
			m.text = text
			break
		}
		m.text += i + 1
		m.literal += i + 2
	}
	return m.literal
}

// lineEnds gives each line end of s, which replaces Literal from start to
// end, its style.
func (t *Text) lineEnds(start, end int, s string) string {
	if !strings.Contains(s, "\n") {
		return s
	}
	style, known := t.lastEnd(t.literal[:start])
	if _, next, ok := t.firstEnd(t.literal[start:]); ok && !known {
		style = next
	}
	old := t.literal[start:end]
	var b strings.Builder
	for {
		line, rest, more := strings.Cut(s, "\n")
		b.WriteString(line)
		if !more {
			return b.String()
		}
		if i, replaced, ok := t.firstEnd(old); ok {
			style = replaced
			old = old[i+len(style.String()):]
		}
		b.WriteString(style.String())
		s = rest
	}
}

// firstEnd finds the first line end in s, a part of Literal. A lone CR is one
// only in a text that has no other.
func (t *Text) firstEnd(s string) (i int, style EOL, ok bool) {
	if t.eol == CR {
		i = strings.IndexByte(s, '\r')
		return i, CR, i >= 0
	}
	switch i = strings.IndexByte(s, '\n'); {
	case i < 0:
		return 0, t.eol, false
	case i > 0 && s[i-1] == '\r':
		return i - 1, CRLF, true
	}
	return i, LF, true
}

// lastEnd returns the style of the last line end in s, a head of Literal.
func (t *Text) lastEnd(s string) (style EOL, ok bool) {
	if t.eol == CR {
		return CR, true
	}
	switch i := strings.LastIndexByte(s, '\n'); {
	case i < 0:
		return t.eol, false
	case i > 0 && s[i-1] == '\r':
		return CRLF, true
	}
	return LF, true
}

// Rewrite returns bytes that read as content, which has "\n" or CRLF line
// ends, in the encoding of t. Lines that t has too keep their bytes; new ones
// take the line ends of t, unless every line of content ends in CRLF: then
// content is taken at its word. It fails with an *UnencodableError.
func (t *Text) Rewrite(content string) ([]byte, error) {
	if t.enc.mark() != "" {
		content = strings.TrimPrefix(content, "\ufeff")
	}
	if n := strings.Count(content, "\n"); n > 0 && n == strings.Count(content, "\r\n") {
		return t.SpliceLiteral(textdiff.Edits(t.literal, content))
	}
	return t.Splice(textdiff.Edits(t.text, strings.ReplaceAll(content, "\r\n", "\n")))
}

// hasMark returns the encoding whose byte order mark raw begins with.
func hasMark(raw []byte) (Encoding, bool) {
	for _, e := range []Encoding{UTF8BOM, UTF16LE, UTF16BE} {
		if bytes.HasPrefix(raw, []byte(e.mark())) {
			return e, true
		}
	}
	return UTF8, false
}
