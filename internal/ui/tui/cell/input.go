package cell

import (
	"bytes"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A Key is a key on a keyboard: a letter as itself, or one of the names below.
type Key rune

// Keys that are no letters. Control characters stand for what they mean.
const (
	Enter     Key = '\r'
	Tab       Key = '\t'
	Escape    Key = 0x1b
	Backspace Key = 0x7f
	Up        Key = -iota - 1
	Down
	Left
	Right
	Home
	End
	PageUp
	PageDown
	Insert
	Delete
	Other // a key without a meaning here
)

// Mod says which modifiers are held.
type Mod uint8

// The modifiers, in the order terminals count them.
const (
	Shift Mod = 1 << iota
	Alt
	Ctrl
	Super
)

// An Input is what came from the keyboard: a key, or, if Paste is set, a text
// that was pasted or that an input method composed in one piece.
type Input struct {
	Key   Key
	Mod   Mod
	Text  string // what a letter writes; the pasted text
	Paste bool
}

// How long the rest of something may take to come. A terminal may send the
// bytes of one key with pauses between them; a person who pressed Escape
// waits for the first.
const (
	EscapeWait   = 60 * time.Millisecond
	sequenceWait = 400 * time.Millisecond
	pasteGap     = 30 * time.Millisecond
	maxSequence  = 256
)

// A Decoder turns the bytes of a terminal into inputs. Reports about the
// mouse, the focus and the terminal itself are taken out: none of them is
// ever text. The zero value is ready for use.
type Decoder struct {
	buf    []byte
	paste  []byte // of a bracketed paste that has not ended
	inside bool   // such a paste
	raw    bool   // the last bytes were a paste without brackets
	last   time.Time
	skip   byte // the rest of a string sequence is dropped until its end

	escaped time.Time // when a lone Escape was taken for a key
	late    bool      // the buffer begins with that Escape once more
}

// Wait is how long to wait for more bytes before Flush is called; 0 is for ever.
func (d *Decoder) Wait() time.Duration {
	switch {
	case d.inside || len(d.buf) == 0 && d.skip == 0:
		return 0
	case len(d.buf) == 1 && d.buf[0] == 0x1b:
		return EscapeWait
	}
	return sequenceWait
}

// Flush says that no more bytes came in time: a lone Escape is one, and what
// is left of anything else is dropped.
func (d *Decoder) Flush() []Input {
	if d.inside {
		return nil
	}
	b := d.buf
	d.buf, d.skip = nil, 0
	if d.late { // it was a key, and what followed are letters
		d.late = false
		d.buf = append(d.buf, b[1:]...)
		return d.decode(nil)
	}
	switch {
	case len(b) == 1 && b[0] == 0x1b:
		d.escaped = d.last
		return []Input{{Key: Escape}}
	case len(b) == 2 && b[0] == 0x1b && (b[1] == '[' || b[1] == 'O'):
		return []Input{{Key: Key(b[1]), Mod: Alt}}
	}
	return nil
}

var (
	pasteBegin = []byte("\x1b[200~")
	pasteEnd   = []byte("\x1b[201~")
)

// Feed takes bytes that came at now and returns the inputs that are complete.
func (d *Decoder) Feed(now time.Time, b []byte) (out []Input) {
	since := now.Sub(d.last)
	d.last = now
	if !d.inside && d.skip == 0 && (d.raw && since < pasteGap || len(d.buf) == 0 && bulk(b)) {
		d.raw = true
		b = append(d.buf, b...)
		// Letters may be cut in two where reads end.
		whole := b[:len(b)-cutRune(b)]
		d.buf = append([]byte(nil), b[len(whole):]...)
		return append(out, pasted(whole))
	}
	d.raw = false
	if d.inside {
		return d.more(out, b)
	}
	// The rest of a sequence may come later than anybody waits: it is no text.
	if len(d.buf) == 0 && d.skip == 0 && len(b) > 0 && b[0] == '[' && !d.escaped.IsZero() && now.Sub(d.escaped) < sequenceWait {
		d.buf, d.late = append(d.buf, 0x1b), true
	}
	d.escaped = time.Time{}
	d.buf = append(d.buf, b...)
	return d.decode(out)
}

// bulk says whether b is more than a person types at once: several lines, and
// nothing but text. Line ends in it must not send anything.
func bulk(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\r' && c != '\n' && c != '\t' || c == 0x7f {
			return false // keys
		}
	}
	i := bytes.IndexAny(b, "\r\n")
	return i > 0 && len(bytes.TrimRight(b, "\r\n")) > i || len(b) >= 512
}

// cutRune is the number of bytes at the end of b that begin a letter whose
// rest has not come.
func cutRune(b []byte) int {
	for n := 1; n <= min(utf8.UTFMax-1, len(b)); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

func pasted(b []byte) Input { return Input{Paste: true, Text: clean(b)} }

// clean is pasted text as an editor takes it: lines end with LF, and what no
// keyboard writes is left out.
func clean(b []byte) string {
	s := strings.ToValidUTF8(string(b), "\ufffd")
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, s)
}

// more adds b to a paste that goes on. The mark of its end may be part of
// what was copied: of several that come at once the last counts.
func (d *Decoder) more(out []Input, b []byte) []Input {
	from := max(0, len(d.paste)-len(pasteEnd))
	d.paste = append(d.paste, b...)
	i := bytes.LastIndex(d.paste[from:], pasteEnd)
	if i < 0 {
		return out
	}
	i += from
	text := bytes.ReplaceAll(d.paste[:i], pasteEnd, nil)
	rest := d.paste[i+len(pasteEnd):]
	d.inside, d.paste = false, nil
	out = append(out, pasted(text))
	d.buf = append(d.buf[:0], rest...)
	return d.decode(out)
}

// decode takes what is complete from the buffer.
func (d *Decoder) decode(out []Input) []Input {
	for len(d.buf) > 0 {
		if d.skip != 0 {
			if !d.skipped() {
				return out
			}
			continue
		}
		if bytes.HasPrefix(d.buf, pasteBegin) {
			rest := append([]byte(nil), d.buf[len(pasteBegin):]...)
			d.buf, d.inside, d.paste = nil, true, nil
			return d.more(out, rest)
		}
		in, n := d.one()
		if n == 0 {
			if len(d.buf) > maxSequence {
				d.buf, d.late = nil, false
			}
			return out
		}
		d.buf, d.late = d.buf[n:], false
		if in.Key != 0 {
			out = append(out, in)
		}
	}
	d.buf = nil
	return out
}

// skipped drops the text of a string sequence; it reports whether its end came.
func (d *Decoder) skipped() bool {
	for i, c := range d.buf {
		if c == 0x07 || c == 0x18 || c == 0x1a || c == '\\' && i > 0 && d.buf[i-1] == 0x1b {
			d.buf, d.skip = d.buf[i+1:], 0
			return true
		}
	}
	if n := len(d.buf); d.buf[n-1] == 0x1b {
		d.buf = d.buf[n-1:]
	} else {
		d.buf = nil
	}
	return false
}

// one decodes what the buffer begins with: n is its length, 0 if more has to
// come. The key is 0 if it means nothing.
func (d *Decoder) one() (in Input, n int) {
	b := d.buf
	if b[0] != 0x1b {
		return letter(b)
	}
	if len(b) == 1 {
		return in, 0
	}
	switch b[1] {
	case '[':
		return sequence(b)
	case 'O':
		if len(b) < 3 {
			return in, 0
		}
		return Input{Key: named(b[2])}, 3
	case 'P', ']', '_', '^', 'X':
		d.skip = b[1]
		return in, 2
	case 0x1b:
		// Escape, and something that begins with one. Two alone are two keys.
		if len(b) == 2 {
			return Input{Key: Escape}, 1
		}
		if b[2] != '[' && b[2] != 'O' {
			return Input{Key: Escape}, 1
		}
		d.buf = b[1:]
		in, n = d.one()
		d.buf = b
		if n == 0 {
			return Input{}, 0
		}
		in.Mod |= Alt
		return in, n + 1
	}
	in, n = letter(b[1:])
	if n == 0 {
		return in, 0
	}
	in.Mod |= Alt
	in.Text = ""
	return in, n + 1
}

// letter decodes a control character or a letter.
func letter(b []byte) (Input, int) {
	switch c := b[0]; {
	case c == '\r', c == '\t', c == 0x7f:
		return Input{Key: Key(c)}, 1
	case c == '\n':
		return Input{Key: 'j', Mod: Ctrl}, 1
	case c == 0x08:
		return Input{Key: Backspace}, 1
	case c == 0:
		return Input{Key: ' ', Mod: Ctrl}, 1
	case c <= 26:
		return Input{Key: Key('a' + c - 1), Mod: Ctrl}, 1
	case c < ' ':
		return Input{Key: Key(c + '@'), Mod: Ctrl}, 1
	}
	if !utf8.FullRune(b) {
		return Input{}, 0
	}
	r, n := utf8.DecodeRune(b)
	if r == utf8.RuneError || r >= 0x80 && r < 0xa0 {
		return Input{}, n
	}
	return Input{Key: Key(r), Text: string(r)}, n
}

// sequence decodes ESC [ ….
func sequence(b []byte) (Input, int) {
	i := 2
	for i < len(b) && b[i] >= 0x20 && b[i] < 0x40 {
		i++
	}
	if i == len(b) {
		return Input{}, 0
	}
	n, final, params := i+1, b[i], string(b[2:i])
	if final < 0x40 || final > 0x7e { // broken off by something else
		return Input{}, i
	}
	if final == 'M' && params == "" { // a mouse report of old: three more bytes
		if len(b) < n+3 {
			return Input{}, 0
		}
		return Input{}, n + 3
	}
	if params != "" && strings.ContainsRune("<>?=", rune(params[0])) {
		return Input{}, n // the mouse, or the terminal about itself
	}
	f := strings.Split(params, ";")
	at := func(i, or int) int {
		if i >= len(f) {
			return or
		}
		s, _, _ := strings.Cut(f[i], ":")
		v, err := strconv.Atoi(s)
		if err != nil {
			return or
		}
		return v
	}
	mod := Mod(max(at(1, 1)-1, 0)) & (Shift | Alt | Ctrl | Super)
	switch final {
	case 'u':
		if _, kind, _ := strings.Cut(strings.Join(f[min(1, len(f)-1):], ""), ":"); strings.HasPrefix(kind, "3") && len(f) > 1 {
			return Input{}, n // a key that was let go
		}
		return unicodeKey(at(0, 0), mod), n
	case '~':
		switch at(0, 0) {
		case 27:
			return unicodeKey(at(2, 0), mod), n
		case 1, 7:
			return Input{Key: Home, Mod: mod}, n
		case 4, 8:
			return Input{Key: End, Mod: mod}, n
		case 2:
			return Input{Key: Insert, Mod: mod}, n
		case 3:
			return Input{Key: Delete, Mod: mod}, n
		case 5:
			return Input{Key: PageUp, Mod: mod}, n
		case 6:
			return Input{Key: PageDown, Mod: mod}, n
		}
		return Input{}, n
	case 'Z':
		return Input{Key: Tab, Mod: Shift}, n
	case 'I', 'O', 'R':
		return Input{}, n // focus, a report of the cursor
	}
	k := named(final)
	if k == 0 {
		return Input{}, n
	}
	return Input{Key: k, Mod: mod}, n
}

func named(final byte) Key {
	switch final {
	case 'A':
		return Up
	case 'B':
		return Down
	case 'C':
		return Right
	case 'D':
		return Left
	case 'H':
		return Home
	case 'F':
		return End
	case 'M':
		return Enter
	}
	return 0
}

// unicodeKey is a key that a terminal names by its code point.
func unicodeKey(code int, mod Mod) Input {
	switch code {
	case 13, 57414:
		return Input{Key: Enter, Mod: mod}
	case 9:
		return Input{Key: Tab, Mod: mod}
	case 27:
		return Input{Key: Escape, Mod: mod}
	case 8, 127:
		return Input{Key: Backspace, Mod: mod}
	}
	if code < ' ' || code > utf8.MaxRune || code >= 0x7f && code < 0xa0 || code >= 57344 && code <= 63743 || !utf8.ValidRune(rune(code)) {
		return Input{}
	}
	in := Input{Key: Key(code), Mod: mod}
	if mod&^Shift == 0 {
		in.Mod = 0
		in.Text = string(rune(code))
		if mod == Shift {
			in.Text = strings.ToUpper(in.Text)
			in.Key = Key([]rune(in.Text)[0])
		}
	}
	return in
}
