package shellcmd

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// maxBraces bounds the words that one brace expansion may give.
const maxBraces = 64

// words evaluates x, brace expansion included, and walks what is inside it.
func (w *walker) words(x *syntax.Word) []Word {
	if x == nil {
		return nil
	}
	if !hasBrace(x) {
		return []Word{w.word(x.Parts, x)}
	}
	split := syntax.Word{Parts: slices.Clone(x.Parts)}
	if !syntax.SplitBraces(&split) {
		return []Word{w.word(x.Parts, x)}
	}
	lists, ok := expandBraces(split.Parts)
	if !ok {
		for _, p := range x.Parts {
			w.part(p)
		}
		src := w.text(x)
		return []Word{{Text: src, Source: src, Split: true, Brace: true}}
	}
	brace := len(lists) > 1
	out := make([]Word, 0, len(lists))
	for _, parts := range lists {
		word := w.word(parts, x)
		if brace {
			word.Brace = true
			if word.Known {
				word.Source = quote(word.Text)
			}
		}
		out = append(out, word)
	}
	return out
}

func hasBrace(x *syntax.Word) bool {
	for _, p := range x.Parts {
		if l, ok := p.(*syntax.Lit); ok && strings.IndexByte(l.Value, '{') >= 0 {
			return true
		}
	}
	return false
}

// expandBraces multiplies parts out; ok is false if that gives too many
// words or a sequence that is not plain numbers.
func expandBraces(parts []syntax.WordPart) (lists [][]syntax.WordPart, ok bool) {
	lists = [][]syntax.WordPart{nil}
	for _, p := range parts {
		var choices [][]syntax.WordPart
		if b, is := p.(*syntax.BraceExp); !is {
			choices = [][]syntax.WordPart{{p}}
		} else if b.Sequence {
			if choices, ok = sequence(b); !ok {
				return nil, false
			}
		} else {
			for _, e := range b.Elems {
				sub, ok := expandBraces(e.Parts)
				if !ok {
					return nil, false
				}
				choices = append(choices, sub...)
			}
		}
		if len(lists)*len(choices) > maxBraces {
			return nil, false
		}
		var next [][]syntax.WordPart
		for _, l := range lists {
			for _, c := range choices {
				next = append(next, slices.Concat(l, c))
			}
		}
		lists = next
	}
	return lists, true
}

func sequence(b *syntax.BraceExp) (choices [][]syntax.WordPart, ok bool) {
	if len(b.Elems) != 2 {
		return nil, false
	}
	from, err1 := strconv.Atoi(b.Elems[0].Lit())
	to, err2 := strconv.Atoi(b.Elems[1].Lit())
	if err1 != nil || err2 != nil || strconv.Itoa(from) != b.Elems[0].Lit() || strconv.Itoa(to) != b.Elems[1].Lit() {
		return nil, false
	}
	step := 1
	if from > to {
		step = -1
	}
	if (to-from)*step >= maxBraces {
		return nil, false
	}
	for i := from; ; i += step {
		choices = append(choices, []syntax.WordPart{&syntax.Lit{Value: strconv.Itoa(i)}})
		if i == to {
			return choices, true
		}
	}
}

// word evaluates the parts of one word of x.
func (w *walker) word(parts []syntax.WordPart, x *syntax.Word) Word {
	if len(w.loops) > 0 {
		if out, ok := w.choice(parts, x); ok {
			return out
		}
	}
	v := value{walker: w}
	for i, p := range parts {
		v.add(p, i == 0)
	}
	out := Word{Source: w.text(x), Known: !v.unknown, Glob: v.glob, Split: v.split, Tilde: v.tilde}
	out.Text = v.text.String()
	out.Prefix = out.Text
	if v.unknown || v.glob {
		out.Prefix = out.Text[:v.lead]
	}
	if v.unknown {
		out.Text = out.Source
	}
	return out
}

// A value is a word under evaluation.
type value struct {
	*walker
	text    strings.Builder
	lead    int // length of text up to the first part that is not fixed
	loose   bool
	unknown bool
	glob    bool
	split   bool
	tilde   bool
}

// open notes that from here on the value is not fixed.
func (v *value) open() {
	if !v.loose {
		v.loose = true
		v.lead = v.text.Len()
	}
}

func (v *value) add(p syntax.WordPart, first bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		v.bare(p.Value, first)
	case *syntax.SglQuoted:
		s := p.Value
		if p.Dollar {
			var ok bool
			if s, ok = ansiC(s); !ok {
				v.open()
				v.unknown = true
			}
		}
		v.text.WriteString(s)
	case *syntax.DblQuoted:
		if p.Dollar {
			v.open()
			v.unknown = true // translated by locale
		}
		for _, q := range p.Parts {
			if l, ok := q.(*syntax.Lit); ok {
				unescapeInto(&v.text, l.Value)
				continue
			}
			v.expansion(q, true)
		}
	default:
		v.expansion(p, false)
	}
}

// bare takes unquoted text.
func (v *value) bare(s string, first bool) {
	if first && strings.HasPrefix(s, "~") {
		v.tilde = true
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			if i++; i < len(s) {
				v.text.WriteByte(s[i])
			}
			continue
		case '[':
			if strings.IndexByte(s[i:], ']') < 0 && i == len(s)-1 && first {
				break // the program [
			}
			fallthrough
		case '*', '?':
			v.open()
			v.glob = true
		}
		v.text.WriteByte(s[i])
	}
}

func (v *value) expansion(p syntax.WordPart, quoted bool) {
	if pe, ok := p.(*syntax.ParamExp); ok {
		if s, ok := v.variable(pe); ok && (quoted || !strings.ContainsAny(s, " \t\n*?[\\")) {
			v.text.WriteString(s)
			return
		}
		if quoted && pe.Param != nil && (pe.Param.Value == "@" || listIndex(pe.Index)) {
			v.split = true
		}
	}
	v.open()
	v.unknown = true
	if ps, ok := p.(*syntax.ProcSubst); ok {
		if v.text.Len() == 0 {
			v.text.WriteString("/dev/fd/")
			v.lead = v.text.Len()
		}
		v.part(ps)
		return
	}
	if _, sum := p.(*syntax.ArithmExp); !quoted && !sum {
		v.split = true
	}
	v.part(p)
}

// variable is the value of a plain $HOME, or of the loop variable that is
// tried out now, where that is certain.
func (w *walker) variable(p *syntax.ParamExp) (string, bool) {
	name := plainName(p)
	switch {
	case name == "":
		return "", false
	case name == w.trying.name:
		return w.trying.value, true
	case name == "HOME" && w.env.Home != "" && w.homeStays():
		return w.env.Home, true
	}
	return "", false
}

// homeStays reports whether nothing in the script can change HOME: it is
// mentioned only to be read.
func (w *walker) homeStays() bool {
	src := w.script.Source
	return !w.anything && strings.Count(src, "HOME") == strings.Count(src, "$HOME")+strings.Count(src, "${HOME}")
}

// plainName is the name in $name or ${name}, "" for all other forms.
func plainName(p *syntax.ParamExp) string {
	if p.Param == nil || p.Excl || p.Length || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Names != 0 || p.Exp != nil {
		return ""
	}
	return p.Param.Value
}

// unescapeInto appends the text of a double-quoted literal.
func unescapeInto(b *strings.Builder, s string) {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\", s[i+1]) >= 0 {
			i++
		}
		b.WriteByte(s[i])
	}
}

// ansiC decodes the inside of $'…'. ok is false for forms whose result
// depends on more than the text.
func ansiC(s string) (out string, ok bool) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, true
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if k := strings.IndexByte(`abeEfnrtv\'"?`, s[i]); k >= 0 {
			b.WriteByte("\a\b\x1b\x1b\f\n\r\t\v\\'\"?"[k])
			continue
		}
		base, width := 16, 0
		switch c := s[i]; {
		case c >= '0' && c <= '7':
			base, width = 8, 3
			i--
		case c == 'x':
			width = 2
		case c == 'u':
			width = 4
		case c == 'U':
			width = 8
		default:
			return s, false
		}
		j := i + 1
		for j < len(s) && j <= i+width && digit(s[j]) < base {
			j++
		}
		n, err := strconv.ParseUint(s[i+1:j], base, 32)
		if err != nil || n == 0 || (width > 3 && n > utf8.MaxRune) {
			return s, false
		}
		if width > 3 {
			b.WriteRune(rune(n))
		} else {
			b.WriteByte(byte(n))
		}
		i = j - 1
	}
	return b.String(), true
}

func digit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return 99
}

func isNumber(s string) bool {
	if s == "" || len(s) > 18 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// quote returns s as a shell word: bare if that is the same, else in single quotes.
func quote(s string) string {
	plain := s != ""
	for i := 0; i < len(s) && plain; i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c >= 0x80,
			strings.IndexByte("_-./:=@%+,^", c) >= 0:
		default:
			plain = false
		}
	}
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
