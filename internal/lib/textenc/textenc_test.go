package textenc

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed-eb844fcb/cinch/internal/lib/textdiff"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	type facts struct {
		text  string
		enc   Encoding
		eol   EOL
		mixed bool
		stray int
	}
	for raw, want := range map[string]facts{
		"":                              {},
		"a\nb":                          {text: "a\nb"},
		"a\r\nb\r\n":                    {text: "a\nb\n", eol: CRLF},
		"a\r\nb\r\nc\n":                 {text: "a\nb\nc\n", eol: CRLF, mixed: true},
		"a\r\nb\nc\n":                   {text: "a\nb\nc\n", mixed: true},
		"a\rb\r":                        {text: "a\nb\n", eol: CR},
		"a\rb\n":                        {text: "a\rb\n"},
		"é€😀\n":                         {text: "é€😀\n"},
		"\xef\xbb\xbfa\r\n":             {text: "a\n", enc: UTF8BOM, eol: CRLF},
		"\xff\xfea\x00\r\x00\n\x00":     {text: "a\n", enc: UTF16LE, eol: CRLF},
		"\xfe\xff\x00a\xd8\x3d\xde\x00": {text: "a😀", enc: UTF16BE},
		"\xff\xfe\x00\xd8a\x00x":        {text: "\ufffda\ufffd", enc: UTF16LE, stray: 2},
		"caf\xe9 \x99\x81\n":            {text: "café ™\u0081\n", enc: Windows1252},
		"é é \xff\n":                    {text: "é é \ufffd\n", stray: 1},
		"\xef\xbb\xbfa\xff":             {text: "a\ufffd", enc: UTF8BOM, stray: 1},
		"a\xe2\x82":                     {text: "aâ‚", enc: Windows1252},
	} {
		x := Decode([]byte(raw))
		if got := (facts{x.String(), x.Encoding(), x.EOL(), x.Mixed(), x.Stray()}); got != want {
			t.Errorf("Decode(%q) = %+v, want %+v", raw, got, want)
		}
	}
}

func TestBinary(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		"":                                false,
		"plain":                           false,
		"\x7fELF\x02\x01\x01\x00\x00\x00": true,
		"a log line with one \x00 byte in it, as happens\n": false,
		"\xff\xfea\x00b\x00":            false,
		"a\x00b\x00c\x00":               true,
		"\x1b[31mred\x1b[0m\n":          false,
		"caf\xe9\n":                     false,
		"\x89PNG\r\n\x1a\n\x00\x00\x00": true,
	} {
		var s Stats
		s.Write([]byte(raw))
		if got := s.Binary(); got != want {
			t.Errorf("Binary(%q) = %v, want %v", raw, got, want)
		}
	}
}

func TestStatsInPieces(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("é€😀 x\n", 50) + "\xff")
	for size := 3; size < 40; size++ {
		var s Stats
		for p := text; len(p) > 0; p = p[min(size, len(p)):] {
			s.Write(p[:min(size, len(p))])
		}
		if s.Encoding() != UTF8 || s.bad != 1 || s.Lines != 50 || s.Size != int64(len(text)) {
			t.Errorf("in pieces of %d: %+v", size, s)
		}
	}
}

func TestSplice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, raw, old, new, want string }{
		{"crlf", "a\r\nb\r\nc\r\n", "a\nb", "a\nB", "a\r\nB\r\nc\r\n"},
		{"crlf gains lines", "a\r\nb\r\n", "a", "a\nx\ny", "a\r\nx\r\ny\r\nb\r\n"},
		{"mixed keeps each", "a\r\nb\nc\r\n", "a\nb\nc", "A\nB\nC", "A\r\nB\nC\r\n"},
		{"mixed takes the line before", "a\r\nb\nc\r\n", "b\n", "b\nx\n", "a\r\nb\nx\nc\r\n"},
		{"mixed, first line", "a\r\nb\n", "a", "z\na", "z\r\na\r\nb\n"},
		{"joins lines", "a\r\nb\r\nc\r\n", "a\nb", "ab", "ab\r\nc\r\n"},
		{"cr", "a\rb\r", "b", "x\ny", "a\rx\ry\r"},
		{"lone cr is a character", "a\rb\r\nc\r\n", "c", "c\nd", "a\rb\r\nc\r\nd\r\n"},
		{"no final newline", "a\nb", "b", "c", "a\nc"},
		{"bom", "\xef\xbb\xbfa\n", "a", "é", "\xef\xbb\xbfé\n"},
		{"utf-16le", "\xff\xfea\x00\r\x00\n\x00b\x00", "b", "😀\nc", "\xff\xfea\x00\r\x00\n\x00\x3d\xd8\x00\xde\r\x00\n\x00c\x00"},
		{"utf-16be", "\xfe\xff\x00a\x00b", "b", "é", "\xfe\xff\x00a\x00\xe9"},
		{"windows-1252", "x\n\x99\xe9\n", "x", "€", "\x80\n\x99\xe9\n"},
		{"stray byte stays", "é é x \xff\n", "x \ufffd", "y \ufffd", "é é y \xff\n"},
		{"lone surrogate stays", "\xff\xfe\x00\xd8a\x00", "a", "b", "\xff\xfe\x00\xd8b\x00"},
	} {
		x := Decode([]byte(c.raw))
		i := strings.Index(x.String(), c.old)
		if i < 0 {
			t.Errorf("%s: %q not in %q", c.name, c.old, x.String())
			continue
		}
		got, err := x.Splice(shifted(textdiff.Edits(c.old, c.new), i))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

func shifted(es []textdiff.Edit, by int) []textdiff.Edit {
	for i := range es {
		es[i].Start += by
		es[i].End += by
	}
	return es
}

func TestUnencodable(t *testing.T) {
	t.Parallel()
	for raw, bad := range map[string]string{
		"caf\xe9":      "☺",
		"é é x \xff\n": "\ufffd",
	} {
		_, err := Decode([]byte(raw)).Splice([]textdiff.Edit{{Start: 0, End: 1, New: bad}})
		var ue *UnencodableError
		if !errors.As(err, &ue) || string(ue.Rune) != bad {
			t.Errorf("%q into %q: got %v", bad, raw, err)
		}
	}
}

func TestRewrite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, raw, content, want string }{
		{"same", "a\r\nb\n", "a\nb\n", "a\r\nb\n"},
		{"crlf", "a\r\nb\r\n", "a\nx\n", "a\r\nx\r\n"},
		{"crlf longer", "a\r\n", "a\nb\nc\n", "a\r\nb\r\nc\r\n"},
		{"to crlf at its word", "a\nb\n", "a\r\nb\r\n", "a\r\nb\r\n"},
		{"no final newline stays off", "a\nb", "a\nc", "a\nc"},
		{"final newline stays on", "a\n", "b\n", "b\n"},
		{"trailing blanks stay", "a\n", "a  \nb \n", "a  \nb \n"},
		{"empty", "", "a\r\nb\n", "a\nb\n"},
		{"mark not doubled", "\xef\xbb\xbfa\n", "\ufeffb\n", "\xef\xbb\xbfb\n"},
		{"mixed lines keep theirs", "a\r\nb\nc\r\nd\n", "a\nb\nnew\nc\nd\n", "a\r\nb\nnew\nc\r\nd\n"},
		{"windows-1252", "\xe9\nx\n", "é\n™\n", "\xe9\n\x99\n"},
	} {
		got, err := Decode([]byte(c.raw)).Rewrite(c.content)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

// Whatever the bytes and the edit: nothing outside the edit changes, and what
// is read back is what was asked for.
func FuzzSplice(f *testing.F) {
	f.Add([]byte("a\r\nb\r\nc\n"), 1, 2, "x\ny")
	f.Add([]byte("\xff\xfea\x00\x00\xd8\n\x00"), 0, 1, "é")
	f.Add([]byte("caf\xe9\x81\r"), 2, 3, "™\n")
	f.Add([]byte("é\xffé\n"), 0, 2, "y")
	f.Fuzz(func(t *testing.T, raw []byte, start, end int, s string) {
		x := Decode(raw)
		text := x.String()
		if start < 0 || start > end || end > len(text) || !utf8.ValidString(s) || strings.Contains(s, "\r") ||
			start < len(text) && !utf8.RuneStart(text[start]) || end < len(text) && !utf8.RuneStart(text[end]) {
			return
		}
		got, err := x.Splice([]textdiff.Edit{{Start: start, End: end, New: s}})
		if err != nil {
			return
		}
		m := literalMapper{t: x}
		la, lb := m.offset(start), m.offset(end)
		r := rawMapper{t: x, raw: len(x.enc.mark())}
		a, b := r.offset(la), r.offset(lb)
		if !bytes.HasPrefix(got, raw[:a]) || !bytes.HasSuffix(got, raw[b:]) || len(got) < a+len(raw)-b {
			t.Fatalf("bytes outside [%d,%d) changed: %q to %q", a, b, raw, got)
		}
		back, _ := decodeString(got[a:len(got)-(len(raw)-b)], x.enc)
		if want := x.lineEnds(la, lb, s); back != want {
			t.Fatalf("wrote %q, reads %q", want, back)
		}
		same, err := x.Splice(nil)
		if err != nil || !bytes.Equal(same, raw) {
			t.Fatalf("no edit: got %q, %v, want %q", same, err, raw)
		}
	})
}

func FuzzRewrite(f *testing.F) {
	f.Add([]byte("a\r\nb\nc\r\n"), "a\nb\nx\n")
	f.Fuzz(func(t *testing.T, raw []byte, content string) {
		if !utf8.ValidString(content) {
			return
		}
		x := Decode(raw)
		got, err := x.Rewrite(content)
		if err != nil || strings.Contains(content, "\r") || strings.HasPrefix(content, "\ufeff") || x.stray > 0 || x.eol == CR {
			return
		}
		y := decode(got, x.enc)
		if strings.ReplaceAll(y.Literal(), "\r\n", "\n") != content && !strings.Contains(x.text, "\r") {
			t.Errorf("Rewrite(%q, %q) = %q, which reads %q", raw, content, got, y.Literal())
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	raw := []byte(strings.Repeat("func main() { println(1) }\n", 4000))
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		Decode(raw)
	}
}
