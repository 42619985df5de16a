package transcript

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// unquote decodes a JSON string as encoding/json does, several times faster:
// nearly all bytes of a transcript are in strings. ok is false if raw is none.
func unquote(raw []byte) (s string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return "", false
	}
	in := raw[1 : len(raw)-1]
	if !utf8.Valid(in) {
		return unquoteSlow(raw)
	}
	var out strings.Builder
	out.Grow(len(in))
	for {
		n := bytes.IndexByte(in, '\\')
		if n < 0 {
			n = len(in)
		}
		for _, c := range in[:n] {
			if c < ' ' || c == '"' {
				return "", false
			}
		}
		out.Write(in[:n])
		if n == len(in) {
			return out.String(), true
		}
		if n+1 == len(in) {
			return "", false
		}
		c := in[n+1]
		in = in[n+2:]
		switch c {
		case '"', '\\', '/':
			out.WriteByte(c)
		case 'n':
			out.WriteByte('\n')
		case 't':
			out.WriteByte('\t')
		case 'r':
			out.WriteByte('\r')
		case 'b':
			out.WriteByte('\b')
		case 'f':
			out.WriteByte('\f')
		case 'u':
			r, ok := hex4(in)
			if !ok {
				return "", false
			}
			if utf8.ValidRune(r) {
				out.WriteRune(r)
				in = in[4:]
				break
			}
			return unquoteSlow(raw) // half a pair of surrogates, or a whole one
		default:
			return "", false
		}
	}
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

func unquoteSlow(raw []byte) (s string, ok bool) {
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}
