package jsonscan

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// Unquote appends what a JSON string says to dst. in is the string without
// its quotes. Invalid UTF-8 and half surrogates become U+FFFD, as
// encoding/json does it; ok is false for what is no JSON string.
func Unquote(dst, in []byte) (_ []byte, ok bool) {
	for {
		n := bytes.IndexByte(in, '\\')
		plain := in
		if n >= 0 {
			plain = in[:n]
		}
		for _, c := range plain {
			if c < ' ' {
				return dst, false
			}
		}
		if utf8.Valid(plain) {
			dst = append(dst, plain...)
		} else {
			// Byte by byte, as encoding/json does: one U+FFFD for each.
			for len(plain) > 0 {
				r, size := utf8.DecodeRune(plain)
				dst = utf8.AppendRune(dst, r)
				plain = plain[size:]
			}
		}
		if n < 0 {
			return dst, true
		}
		if in = in[n+1:]; len(in) == 0 {
			return dst, false
		}
		c := in[0]
		in = in[1:]
		switch c {
		case '"', '\\', '/':
			dst = append(dst, c)
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, ok := hex4(in)
			if !ok {
				return dst, false
			}
			in = in[4:]
			if utf16.IsSurrogate(r) {
				pair := rune(utf8.RuneError)
				if len(in) >= 6 && in[0] == '\\' && in[1] == 'u' {
					if low, ok := hex4(in[2:]); ok {
						pair = utf16.DecodeRune(r, low)
					}
				}
				if r = pair; pair != utf8.RuneError {
					in = in[6:]
				}
			}
			dst = utf8.AppendRune(dst, r)
		default:
			return dst, false
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
