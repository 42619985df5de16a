// Package history reads the lines of a session file into a history that the
// Messages API accepts. It owns which lines make up the conversation, what
// becomes of each, and how what is missing is put right. It reads what others
// wrote and never fails over a line. It does not know where files are.
package history

import (
	"errors"

	"github.com/seed-eb844fcb/cinch/internal/lib/jsonscan"
)

var errSyntax = errors.New("not JSON")

// Fields calls f with the name and the bytes of each member of the object
// data until it returns false. It fails if data is no object from its first
// byte to its last, as far as its structure tells; what is wrong inside a
// value is found by who decodes that.
func Fields(data []byte, f func(name, value []byte) bool) error {
	end, stopped := 0, false
	ok := jsonscan.Members(data, func(m jsonscan.Member) bool {
		end, stopped = m.End, !f(m.Key, m.Val)
		return !stopped
	})
	switch {
	case !ok:
		return errSyntax
	case stopped:
		return nil
	case end == 0: // no members: the bracket is behind the opening one
		end = jsonscan.Spaces(data, jsonscan.Spaces(data, 0)+1)
	default:
		end = jsonscan.Spaces(data, end)
	}
	if jsonscan.Spaces(data, end+1) != len(data) {
		return errSyntax
	}
	return nil
}

// elements calls f with the bytes of each element of the array data.
func elements(data []byte, f func(value []byte)) error {
	if !jsonscan.Elements(data, func(from, to int) bool { f(data[from:to]); return true }) {
		return errSyntax
	}
	return nil
}

// Unquote decodes a JSON string. ok is false if raw, a value that was found
// by Fields, is none.
func Unquote(raw []byte) (s string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	in := raw[1 : len(raw)-1]
	out, ok := jsonscan.Unquote(make([]byte, 0, len(in)), in)
	if !ok {
		return "", false
	}
	return string(out), true
}
