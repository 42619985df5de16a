// Package jsonc reads JSON as people write it in settings files — with
// comments, trailing commas and a byte order mark — and changes one value in
// it without touching another byte.
//
// It owns the syntax and the places of things: every value knows where it
// stands, every error names line and column. It does not know what keys mean.
package jsonc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Kind is what a Value is.
type Kind uint8

const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

func (k Kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "a list", "an object"}[k]
}

// A Value is one value of a document.
type Value struct {
	Kind     Kind
	Off, End int // its bytes in the document
	Text     string
	// Text is the decoded string, or the number, true, false or null as written.

	Members  []Member // of an Object, in order; a name may come twice
	Elements []*Value // of an Array
}

// A Member is one name and value of an object.
type Member struct {
	Name  string
	Off   int // of the name
	Value *Value
}

// Member returns the value of the member that counts: the last of that name,
// or nil.
func (v *Value) Member(name string) *Value {
	if v == nil {
		return nil
	}
	for i := len(v.Members) - 1; i >= 0; i-- {
		if v.Members[i].Name == name {
			return v.Members[i].Value
		}
	}
	return nil
}

// JSON returns v as compact JSON without comments. Of members with one name
// only the last is there, in the place of the first.
func (v *Value) JSON() json.RawMessage { return v.append(nil) }

func (v *Value) append(dst []byte) []byte {
	switch v.Kind {
	case String:
		b, _ := json.Marshal(v.Text) // a string always can be
		return append(dst, b...)
	case Array:
		dst = append(dst, '[')
		for i, e := range v.Elements {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = e.append(dst)
		}
		return append(dst, ']')
	case Object:
		dst = append(dst, '{')
		last := make(map[string]*Value, len(v.Members))
		for _, m := range v.Members {
			last[m.Name] = m.Value
		}
		first := true
		for _, m := range v.Members {
			value := last[m.Name]
			if value == nil {
				continue // written already
			}
			last[m.Name] = nil
			if !first {
				dst = append(dst, ',')
			}
			first = false
			b, _ := json.Marshal(m.Name) // a string always can be
			dst = append(append(dst, b...), ':')
			dst = value.append(dst)
		}
		return append(dst, '}')
	}
	return append(dst, v.Text...)
}

// An Error is a place in a document that cannot be read.
type Error struct {
	Line, Col int // from 1; columns count characters
	Text      string
}

func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Col, e.Text) }

// Position returns the line and column, from 1, of the byte at off.
func Position(data []byte, off int) (line, col int) {
	off = min(off, len(data))
	before := strings.TrimPrefix(string(data[:off]), bom)
	last := strings.LastIndexByte(before, '\n')
	return 1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(before[last+1:])
}

const (
	bom   = "\ufeff"
	depth = 500 // of nesting; far more than any settings file has
)

// Parse reads the one value of a document. A document without any, be it
// empty or all comment, is nil without an error. An error is an *Error.
func Parse(data []byte) (*Value, error) {
	p := parser{data: data}
	if bytes.HasPrefix(data, []byte(bom)) {
		p.i = len(bom)
	}
	if !utf8.Valid(data) {
		off := 0
		for off < len(data) {
			r, n := utf8.DecodeRune(data[off:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			off += n
		}
		return nil, p.fail(off, "not UTF-8 text")
	}
	if err := p.blank(); err != nil {
		return nil, err
	}
	if p.i == len(data) {
		return nil, nil
	}
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if err := p.blank(); err != nil {
		return nil, err
	}
	if p.i < len(data) {
		return nil, p.fail(p.i, "something follows the end of the document")
	}
	return v, nil
}

type parser struct {
	data []byte
	i    int
}

func (p *parser) fail(off int, text string) error {
	line, col := Position(p.data, off)
	return &Error{line, col, text}
}

// peek returns the byte at hand, or 0 at the end.
func (p *parser) peek() byte {
	if p.i < len(p.data) {
		return p.data[p.i]
	}
	return 0
}

// blank passes over blanks and comments.
func (p *parser) blank() error {
	for p.i < len(p.data) {
		switch p.data[p.i] {
		case ' ', '\t', '\n', '\r':
			p.i++
		case '/':
			rest := p.data[p.i:]
			switch {
			case bytes.HasPrefix(rest, []byte("//")):
				if n := bytes.IndexByte(rest, '\n'); n >= 0 {
					p.i += n
				} else {
					p.i = len(p.data)
				}
			case bytes.HasPrefix(rest, []byte("/*")):
				n := bytes.Index(rest[2:], []byte("*/"))
				if n < 0 {
					return p.fail(p.i, "this comment has no end")
				}
				p.i += n + 4
			default:
				return p.fail(p.i, "a stray slash")
			}
		default:
			return nil
		}
	}
	return nil
}

func (p *parser) value(level int) (*Value, error) {
	if level > depth {
		return nil, p.fail(p.i, "nested too deeply")
	}
	v := &Value{Off: p.i}
	var err error
	switch c := p.peek(); {
	case c == '{':
		err = p.object(v, level)
	case c == '[':
		err = p.array(v, level)
	case c == '"':
		v.Kind = String
		v.Text, err = p.str()
	case c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		err = p.word(v)
	case p.i == len(p.data):
		err = p.fail(p.i, "the document ends where a value should stand")
	default:
		err = p.fail(p.i, "a value should stand here")
	}
	v.End = p.i
	return v, err
}

// word reads a number or one of the three names.
func (p *parser) word(v *Value) error {
	start := p.i
	for p.i < len(p.data) && strings.IndexByte("+-.", p.data[p.i]) >= 0 || isAlnum(p.peek()) {
		p.i++
	}
	v.Text = string(p.data[start:p.i])
	switch v.Text {
	case "null":
		v.Kind = Null
	case "true", "false":
		v.Kind = Bool
	default:
		if !json.Valid([]byte(v.Text)) {
			return p.fail(start, fmt.Sprintf("%.20q is no value", v.Text))
		}
		v.Kind = Number
	}
	return nil
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (p *parser) str() (string, error) {
	start := p.i
	for p.i++; p.i < len(p.data); p.i++ {
		switch c := p.data[p.i]; {
		case c == '\\':
			p.i++
		case c == '"':
			p.i++
			var s string
			if err := json.Unmarshal(p.data[start:p.i], &s); err != nil {
				return "", p.fail(start, "this string holds an escape that means nothing")
			}
			return s, nil
		case c == '\n':
			return "", p.fail(start, "this string has no closing quote on its line")
		case c < ' ':
			return "", p.fail(p.i, "a control character in a string; write it as an escape")
		}
	}
	return "", p.fail(start, "this string has no end")
}

func (p *parser) object(v *Value, level int) error {
	v.Kind = Object
	open := p.i
	p.i++
	for {
		if err := p.blank(); err != nil {
			return err
		}
		switch {
		case p.peek() == '}':
			p.i++
			return nil
		case p.i == len(p.data):
			return p.fail(open, "this { is never closed")
		case p.peek() != '"':
			return p.fail(p.i, "a name in double quotes should stand here")
		}
		m := Member{Off: p.i}
		var err error
		if m.Name, err = p.str(); err != nil {
			return err
		}
		if err := p.blank(); err != nil {
			return err
		}
		if p.peek() != ':' {
			return p.fail(p.i, fmt.Sprintf("a colon should follow the name %.40q", m.Name))
		}
		p.i++
		if err := p.blank(); err != nil {
			return err
		}
		if m.Value, err = p.value(level + 1); err != nil {
			return err
		}
		v.Members = append(v.Members, m)
		if done, err := p.separator('}', open); done || err != nil {
			return err
		}
	}
}

func (p *parser) array(v *Value, level int) error {
	v.Kind = Array
	open := p.i
	p.i++
	for {
		if err := p.blank(); err != nil {
			return err
		}
		switch {
		case p.peek() == ']':
			p.i++
			return nil
		case p.i == len(p.data):
			return p.fail(open, "this [ is never closed")
		}
		e, err := p.value(level + 1)
		if err != nil {
			return err
		}
		v.Elements = append(v.Elements, e)
		if done, err := p.separator(']', open); done || err != nil {
			return err
		}
	}
}

// separator passes the comma after a member or element, or the closing mark.
func (p *parser) separator(closing byte, open int) (done bool, err error) {
	if err := p.blank(); err != nil {
		return false, err
	}
	switch {
	case p.peek() == ',':
		p.i++
		return false, nil
	case p.peek() == closing:
		p.i++
		return true, nil
	case p.i == len(p.data):
		return false, p.fail(open, fmt.Sprintf("this %c is never closed", p.data[open]))
	}
	return false, p.fail(p.i, "a comma should stand here")
}
