package model

import "bytes"

// The functions in this file walk over JSON without decoding it. They are
// lenient: on text that is no JSON they stop early, and never panic.

// spaces returns the index of the first byte at or behind i that is no space.
func spaces(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipString returns the index behind the string whose quote is at i, or -1.
func skipString(b []byte, i int) int {
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

// skip returns the index behind the value at i, or -1.
func skip(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		depth := 0
		for i < len(b) {
			switch b[i] {
			case '"':
				if i = skipString(b, i); i < 0 {
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

// A member is one member of an object: obj[start:end] is all of it, key its
// name without quotes, val the bytes of its value.
type member struct {
	key, val   []byte
	start, end int
}

// members calls f for each member of obj until it returns false. It reports
// whether obj was walked to its end or f stopped it.
func members(obj []byte, f func(member) bool) bool {
	i := spaces(obj, 0)
	if i >= len(obj) || obj[i] != '{' {
		return false
	}
	if i = spaces(obj, i+1); i < len(obj) && obj[i] == '}' {
		return true
	}
	for i < len(obj) && obj[i] == '"' {
		m := member{start: i}
		k := skipString(obj, i)
		if k < 0 {
			return false
		}
		m.key = obj[i+1 : k-1]
		if i = spaces(obj, k); i >= len(obj) || obj[i] != ':' {
			return false
		}
		i = spaces(obj, i+1)
		end := skip(obj, i)
		if end < 0 {
			return false
		}
		m.val, m.end = obj[i:end], end
		if !f(m) {
			return true
		}
		if i = spaces(obj, end); i >= len(obj) {
			return false
		}
		if obj[i] == '}' {
			return true
		}
		if obj[i] != ',' {
			return false
		}
		i = spaces(obj, i+1)
	}
	return false
}

// elements calls f with the bounds of each element of arr until it returns false.
func elements(arr []byte, f func(start, end int) bool) bool {
	i := spaces(arr, 0)
	if i >= len(arr) || arr[i] != '[' {
		return false
	}
	if i = spaces(arr, i+1); i < len(arr) && arr[i] == ']' {
		return true
	}
	for i < len(arr) {
		end := skip(arr, i)
		if end < 0 {
			return false
		}
		if !f(i, end) {
			return true
		}
		if i = spaces(arr, end); i >= len(arr) {
			return false
		}
		if arr[i] == ']' {
			return true
		}
		if arr[i] != ',' {
			return false
		}
		i = spaces(arr, i+1)
	}
	return false
}

// without returns obj without the members that drop names, and whether there
// were any. obj itself is not changed.
func without(obj []byte, drop func(member) bool) ([]byte, bool) {
	var out []byte
	last, first := 0, true // obj[:last] is in out, or dropped
	hit := false
	members(obj, func(m member) bool {
		if !drop(m) {
			first = false
			return true
		}
		hit = true
		// The comma to take along is the one behind a leading member, or the
		// one in front of any other.
		start, end := m.start, m.end
		if first {
			if j := spaces(obj, end); j < len(obj) && obj[j] == ',' {
				end = spaces(obj, j+1)
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

// eachWithout applies without to every element of an array of objects.
func eachWithout(arr []byte, drop func(i int, m member) bool) []byte {
	var out []byte
	last, i := 0, 0
	elements(arr, func(start, end int) bool {
		if el, hit := without(arr[start:end], func(m member) bool { return drop(i, m) }); hit {
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
