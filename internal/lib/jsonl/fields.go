package jsonl

import (
	"bytes"
	"errors"
)

var errSyntax = errors.New("not a JSON object")

// Fields calls f with the name and the bytes of each member of the JSON
// object data, in order, until f returns false. It looks at the structure
// only: names, values and their ends are found several times faster than by
// decoding, and a value that is wrong inside is found by who decodes it.
// Names are given as they are written, escapes and all.
func Fields(data []byte, f func(name, value []byte) bool) error {
	i := blank(data, 0)
	if i >= len(data) || data[i] != '{' {
		return errSyntax
	}
	i = blank(data, i+1)
	if i < len(data) && data[i] == '}' {
		return end(data, i+1)
	}
	for {
		if i >= len(data) || data[i] != '"' {
			return errSyntax
		}
		e := stringEnd(data, i)
		if e < 0 {
			return errSyntax
		}
		name := data[i+1 : e-1]
		i = blank(data, e)
		if i >= len(data) || data[i] != ':' {
			return errSyntax
		}
		i = blank(data, i+1)
		if e = valueEnd(data, i); e <= i {
			return errSyntax
		}
		if !f(name, data[i:e]) {
			return nil
		}
		i = blank(data, e)
		switch {
		case i >= len(data):
			return errSyntax
		case data[i] == '}':
			return end(data, i+1)
		case data[i] != ',':
			return errSyntax
		}
		i = blank(data, i+1)
	}
}

// Elements calls f with the bytes of each element of the JSON array data, as
// Fields does with the members of an object.
func Elements(data []byte, f func(value []byte) bool) error {
	i := blank(data, 0)
	if i >= len(data) || data[i] != '[' {
		return errSyntax
	}
	i = blank(data, i+1)
	if i < len(data) && data[i] == ']' {
		return end(data, i+1)
	}
	for {
		e := valueEnd(data, i)
		if e <= i {
			return errSyntax
		}
		if !f(data[i:e]) {
			return nil
		}
		i = blank(data, e)
		switch {
		case i >= len(data):
			return errSyntax
		case data[i] == ']':
			return end(data, i+1)
		case data[i] != ',':
			return errSyntax
		}
		i = blank(data, i+1)
	}
}

func end(data []byte, i int) error {
	if blank(data, i) != len(data) {
		return errSyntax
	}
	return nil
}

func blank(data []byte, i int) int {
	for i < len(data) {
		switch data[i] {
		case ' ', '\t', '\n', '\r':
			i++
		default:
			return i
		}
	}
	return i
}

// stringEnd returns the index after the string that begins at i, or -1.
func stringEnd(data []byte, i int) int {
	for i++; ; i++ {
		q := bytes.IndexByte(data[i:], '"')
		if q < 0 {
			return -1
		}
		i += q
		back := i
		for data[back-1] == '\\' {
			back--
		}
		if (i-back)%2 == 0 {
			return i + 1
		}
	}
}

// valueEnd returns the index after the value that begins at i, or i or -1 if
// there is none.
func valueEnd(data []byte, i int) int {
	if i >= len(data) {
		return -1
	}
	switch data[i] {
	case '"':
		return stringEnd(data, i)
	case '{', '[':
		depth := 0
		for i < len(data) {
			switch data[i] {
			case '"':
				if i = stringEnd(data, i); i < 0 {
					return -1
				}
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return -1
	}
	for i < len(data) {
		switch c := data[i]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c == '-', c == '+', c == '.', c == 'E':
			i++
		default:
			return i
		}
	}
	return i
}
