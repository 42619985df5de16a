package ipynb

import "bytes"

// A span is a stretch of a document, from the first byte to behind the last.
type span struct{ start, end int }

func (s span) of(raw []byte) []byte { return raw[s.start:s.end] }

// A member is one key and value of a JSON object.
type member struct {
	key   string
	name  span // the key, with its quotes
	value span
}

// The functions below walk a document that is known to be valid JSON.

func skipSpace(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\r' || raw[i] == '\t') {
		i++
	}
	return i
}

// skipValue returns the offset behind the value that begins at i.
func skipValue(raw []byte, i int) int {
	depth := 0
	for i < len(raw) {
		switch raw[i] {
		case '"':
			i = skipString(raw, i)
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
			if depth < 0 {
				return i
			}
		case ',', ' ', '\n', '\r', '\t':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return i
}

func skipString(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return i
}

// elements returns the values of the array that s covers.
func elements(raw []byte, s span) []span {
	var out []span
	i := skipSpace(raw, s.start+1)
	for i < s.end && raw[i] != ']' {
		end := skipValue(raw, i)
		out = append(out, span{i, end})
		i = skipSpace(raw, end)
		if raw[i] == ',' {
			i = skipSpace(raw, i+1)
		}
	}
	return out
}

// members returns the keys and values of the object that s covers.
func members(raw []byte, s span) []member {
	var out []member
	i := skipSpace(raw, s.start+1)
	for i < s.end && raw[i] != '}' {
		m := member{name: span{i, skipString(raw, i)}}
		m.key = unquote(m.name.of(raw))
		i = skipSpace(raw, m.name.end)
		i = skipSpace(raw, i+1) // the colon
		m.value = span{i, skipValue(raw, i)}
		out = append(out, m)
		i = skipSpace(raw, m.value.end)
		if raw[i] == ',' {
			i = skipSpace(raw, i+1)
		}
	}
	return out
}

// find returns the last member called key, as decoders do.
func find(ms []member, key string) (member, bool) {
	for i := len(ms) - 1; i >= 0; i-- {
		if ms[i].key == key {
			return ms[i], true
		}
	}
	return member{}, false
}

// A style is how a document is laid out.
type style struct {
	newline string // "" for a document in one line
	unit    string // one level of indentation
	colon   string // between key and value
}

func styleOf(raw []byte, top []member) style {
	st := style{newline: "\n", unit: " ", colon: ": "}
	if len(top) == 0 {
		return st
	}
	m := top[0]
	st.colon = string(raw[m.name.end:m.value.start])
	open := bytes.IndexByte(raw, '{')
	lead := raw[open+1 : m.name.start]
	switch i := bytes.LastIndexByte(lead, '\n'); {
	case i < 0:
		return style{colon: st.colon}
	case i > 0 && lead[i-1] == '\r':
		st.newline, st.unit = "\r\n", string(lead[i+1:])
	default:
		st.unit = string(lead[i+1:])
	}
	return st
}

// at returns the line end and indentation of a level.
func (s style) at(level int) string {
	if s.newline == "" {
		return ""
	}
	return s.newline + string(bytes.Repeat([]byte(s.unit), level))
}
