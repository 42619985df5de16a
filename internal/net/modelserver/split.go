package modelserver

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// A body is checked once to be JSON; from then on it is only cut up. These
// functions take valid JSON and copy nothing.

// A field is one member of an object.
type field struct {
	key string
	raw json.RawMessage
}

// fields are the members of an object, sorted by key.
type fields []field

// of returns the value for key, or nil.
func (fs fields) of(key string) json.RawMessage {
	for i := len(fs) - 1; i >= 0; i-- { // of two the last counts, as everywhere
		if fs[i].key == key {
			return fs[i].raw
		}
	}
	return nil
}

// object cuts an object into its members. ok is false for any other value.
func object(raw []byte) (fs fields, ok bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' {
		return nil, false
	}
	fs = make(fields, 0, 8)
	for i := space(raw, 1); raw[i] != '}'; {
		end := skip(raw, i)
		key := text(raw[i:end])
		i = space(raw, space(raw, end)+1) // behind the colon
		end = skip(raw, i)
		fs = append(fs, field{key, raw[i:end]})
		if i = space(raw, end); raw[i] == ',' {
			i = space(raw, i+1)
		}
	}
	slices.SortStableFunc(fs, func(a, b field) int { return strings.Compare(a.key, b.key) })
	return fs, true
}

// array cuts an array into its elements. ok is false for any other value.
func array(raw []byte) (vs []json.RawMessage, ok bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '[' {
		return nil, false
	}
	for i := space(raw, 1); raw[i] != ']'; {
		end := skip(raw, i)
		vs = append(vs, raw[i:end])
		if i = space(raw, end); raw[i] == ',' {
			i = space(raw, i+1)
		}
	}
	return vs, true
}

// text is the string that raw stands for, or "" if it is none.
func text(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// space returns the index of the first byte at or behind i that is no space.
func space(raw []byte, i int) int {
	for raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\t' || raw[i] == '\r' {
		i++
	}
	return i
}

// skip returns the index behind the value that starts at i.
func skip(raw []byte, i int) int {
	switch raw[i] {
	case '"':
		return skipString(raw, i)
	case '{', '[':
		depth := 0
		for {
			switch raw[i] {
			case '"':
				i = skipString(raw, i)
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
	}
	for i < len(raw) && bytes.IndexByte([]byte(",]} \n\t\r"), raw[i]) < 0 {
		i++
	}
	return i
}

func skipString(raw []byte, i int) int {
	for i++; ; {
		i += bytes.IndexByte(raw[i:], '"')
		n := 0 // backslashes in front of the quote
		for raw[i-1-n] == '\\' {
			n++
		}
		i++
		if n%2 == 0 {
			return i
		}
	}
}
