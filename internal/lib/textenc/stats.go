package textenc

import (
	"bytes"
	"unicode/utf8"
)

// Stats collect what the encoding of a text can be told from, as its bytes go
// by. The zero value is ready. It is an io.Writer that never fails.
type Stats struct {
	Size  int64 // bytes seen
	Lines int64 // line feeds seen
	NUL   int64 // zero bytes seen

	marked   bool
	mark     Encoding
	controls int64  // bytes that no text holds, NUL among them
	multi    int64  // valid sequences of several bytes
	bad      int64  // bytes outside any valid sequence
	tail     []byte // an unfinished sequence
}

// Write looks at the next bytes.
func (s *Stats) Write(p []byte) (int, error) {
	n := len(p)
	if s.Size == 0 && n > 0 {
		s.mark, s.marked = hasMark(p)
	}
	s.Size += int64(n)
	s.Lines += int64(bytes.Count(p, []byte{'\n'}))
	s.countControls(p)
	if len(s.tail) > 0 {
		p = append(s.tail, p...)
		s.tail = nil
	}
	if utf8.Valid(p) && s.multi > 0 {
		return n, nil // nothing new to learn
	}
	for len(p) > 0 {
		if p[0] < utf8.RuneSelf {
			p = p[1:]
			continue
		}
		if !utf8.FullRune(p) {
			s.tail = bytes.Clone(p)
			break
		}
		r, w := utf8.DecodeRune(p)
		if r == utf8.RuneError && w == 1 {
			s.bad++
		} else {
			s.multi++
		}
		p = p[w:]
	}
	return n, nil
}

func (s *Stats) countControls(p []byte) {
	for _, c := range p {
		if c >= ' ' && c != 0x7f {
			continue
		}
		switch c {
		case '\t', '\n', '\v', '\f', '\r', '\b', 0x1b:
		case 0:
			s.NUL++
			s.controls++
		default:
			s.controls++
		}
	}
}

// Encoding returns the likeliest encoding of what has been seen.
func (s *Stats) Encoding() Encoding {
	if s.marked {
		return s.mark
	}
	// Text in windows-1252 hardly ever holds sequences that are valid UTF-8;
	// UTF-8 with a few broken bytes holds mostly such.
	if bad := s.bad + int64(len(s.tail)); bad > s.multi {
		return Windows1252
	}
	return UTF8
}

// Binary reports whether what has been seen is no text in any encoding that
// this package knows.
func (s *Stats) Binary() bool {
	if s.marked && s.mark != UTF8BOM {
		return false
	}
	if s.NUL > 0 && s.bad+int64(len(s.tail)) > 0 {
		return true
	}
	return s.controls*10 > s.Size
}
