// Package jsonscan walks over JSON without decoding it, and cuts members out
// of it without touching any other byte. It owns finding where values begin
// and end; it must not know what they mean.
//
// It is lenient: on text that is no JSON its functions stop early, and never
// panic. Offsets and slices are of the bytes that were given.
package jsonscan

import "bytes"

// Spaces returns the index of the first byte at or behind i that is no space.
func Spaces(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// String returns the index behind the string whose quote is at i, or -1.
func String(b []byte, i int) int {
	for j := i + 1; ; {
		n := bytes.IndexByte(b[j:], '"')
		if n < 0 {
			return -1
		}
		j += n
		slashes := 0
		for b[j-1-slashes] == '\\' && j-1-slashes > i {
			slashes++
		}
		j++
		if slashes%2 == 0 {
			return j
		}
	}
}

// Skip returns the index behind the value at i, or -1.
func Skip(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return String(b, i)
	case '{', '[':
		depth := 0
		for i < len(b) {
			switch b[i] {
			case '"':
				if i = String(b, i); i < 0 {
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
	start := i
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

// A Member is one member of an object: obj[Start:End] is all of it, Key its
// name without quotes, still escaped, Val the bytes of its value.
type Member struct {
	Key, Val   []byte
	Start, End int
}

// Members calls f for each member of obj until it returns false. It reports
// whether obj was walked to its end or f stopped it.
func Members(obj []byte, f func(Member) bool) bool {
	i := Spaces(obj, 0)
	if i >= len(obj) || obj[i] != '{' {
		return false
	}
	if i = Spaces(obj, i+1); i < len(obj) && obj[i] == '}' {
		return true
	}
	for i < len(obj) && obj[i] == '"' {
		m := Member{Start: i}
		k := String(obj, i)
		if k < 0 {
			return false
		}
		m.Key = obj[i+1 : k-1]
		if i = Spaces(obj, k); i >= len(obj) || obj[i] != ':' {
			return false
		}
		i = Spaces(obj, i+1)
		end := Skip(obj, i)
		if end < 0 {
			return false
		}
		m.Val, m.End = obj[i:end], end
		if !f(m) {
			return true
		}
		if i = Spaces(obj, end); i >= len(obj) {
			return false
		}
		if obj[i] == '}' {
			return true
		}
		if obj[i] != ',' {
			return false
		}
		i = Spaces(obj, i+1)
	}
	return false
}

// Elements calls f with the bounds of each element of arr until it returns false.
func Elements(arr []byte, f func(start, end int) bool) bool {
	i := Spaces(arr, 0)
	if i >= len(arr) || arr[i] != '[' {
		return false
	}
	if i = Spaces(arr, i+1); i < len(arr) && arr[i] == ']' {
		return true
	}
	for i < len(arr) {
		end := Skip(arr, i)
		if end < 0 {
			return false
		}
		if !f(i, end) {
			return true
		}
		if i = Spaces(arr, end); i >= len(arr) {
			return false
		}
		if arr[i] == ']' {
			return true
		}
		if arr[i] != ',' {
			return false
		}
		i = Spaces(arr, i+1)
	}
	return false
}

// Without returns obj without the members that drop names, and whether there
// were any. obj itself is not changed.
func Without(obj []byte, drop func(Member) bool) ([]byte, bool) {
	var out []byte
	last, first := 0, true // obj[:last] is in out, or dropped
	hit := false
	Members(obj, func(m Member) bool {
		if !drop(m) {
			first = false
			return true
		}
		hit = true
		// The comma to take along is the one behind a leading Member, or the
		// one in front of any other.
		start, end := m.Start, m.End
		if first {
			if j := Spaces(obj, end); j < len(obj) && obj[j] == ',' {
				end = Spaces(obj, j+1)
			}
		} else {
			for start > 0 && obj[start-1] != ',' {
				start--
			}
			start--
		}
		if start > last {
			out = append(out, obj[last:start]...)
		}
		last = end
		return true
	})
	if !hit {
		return obj, false
	}
	return append(out, obj[last:]...), true
}

// EachWithout applies Without to every element of an array of objects.
func EachWithout(arr []byte, drop func(i int, m Member) bool) []byte {
	var out []byte
	last, i := 0, 0
	Elements(arr, func(start, end int) bool {
		if el, hit := Without(arr[start:end], func(m Member) bool { return drop(i, m) }); hit {
			out = append(append(out, arr[last:start]...), el...)
			last = end
		}
		i++
		return true
	})
	if last == 0 {
		return arr
	}
	return append(out, arr[last:]...)
}
