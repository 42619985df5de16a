// Package frontmatter reads the YAML head of Markdown files that define
// agents, skills, commands and rules. It owns where the head ends and how
// loosely its values may be written; what the fields mean is its callers'.
package frontmatter

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// A Head is the decoded head of a file. Methods on a nil Head see no fields.
type Head map[string]any

// MaxHead bounds the head; a longer one is no head.
const MaxHead = 256 << 10

// Parse splits data into head and body. A leading byte order mark is dropped
// and CRLF taken for LF in the head. Without a head, body is all of data. If
// the head is not YAML, err says where and the body still comes without it.
func Parse(data []byte) (h Head, body string, err error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	rest, ok := cutFence(data)
	if !ok {
		return nil, string(data), nil
	}
	head, body, ok := closing(rest)
	if !ok {
		return nil, string(data), nil
	}
	text := strings.ReplaceAll(string(head), "\r\n", "\n")
	m, err := decode(text)
	if err != nil {
		// Descriptions are prose, and prose has colons: fields that are not
		// YAML are read as they stand, line by line.
		if loose := lines(text); loose != nil {
			return loose, body, nil
		}
		return nil, body, err
	}
	return m, body, nil
}

func cutFence(data []byte) (rest []byte, ok bool) {
	line, rest, ok := bytes.Cut(data, []byte("\n"))
	return rest, ok && string(bytes.TrimRight(line, " \t\r")) == "---"
}

func closing(data []byte) (head []byte, body string, ok bool) {
	for at := 0; at < len(data) && at < MaxHead; {
		line, _, more := bytes.Cut(data[at:], []byte("\n"))
		next := at + len(line) + 1
		if string(bytes.TrimRight(line, " \t\r")) == "---" {
			if !more {
				return data[:at], "", true
			}
			return data[:at], string(data[next:]), true
		}
		at = next
	}
	return nil, "", false
}

func decode(text string) (h Head, err error) {
	defer func() {
		if r := recover(); r != nil { // the parser has panicked on odd input before
			h, err = nil, fmt.Errorf("reading front matter: %v", r)
		}
	}()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return nil, fmt.Errorf("reading front matter: %s", first)
	}
	return m, nil
}

// lines reads "key: value" lines, or returns nil if the text is more than that.
func lines(text string) Head {
	h := Head{}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok || key == "" || strings.ContainsAny(key, " \t\"'{[") || value != "" && value[0] != ' ' {
			return nil
		}
		value = strings.TrimSpace(value)
		if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		h[key] = value
	}
	return h
}

// Text returns the field as text; numbers and booleans in their usual form.
func (h Head) Text(key string) string {
	switch v := h[key].(type) {
	case nil:
		return ""
	case string:
		return strings.TrimSpace(v)
	case map[string]any, []any:
		return ""
	default:
		return fmt.Sprint(v)
	}
}

// Bool returns the field as a truth value, or def if it is not there or none.
func (h Head) Bool(key string, def bool) bool {
	switch v := h[key].(type) {
	case bool:
		return v
	case nil:
		return def
	default:
		switch strings.ToLower(strings.TrimSpace(fmt.Sprint(v))) {
		case "true", "yes", "on", "1":
			return true
		case "false", "no", "off", "0":
			return false
		}
		return def
	}
}

// Int returns the field as a number, or 0.
func (h Head) Int(key string) int {
	n, err := strconv.Atoi(h.Text(key))
	if err != nil {
		return 0
	}
	return n
}

// List returns the field as a list: a YAML list, or a string split at commas
// outside of parentheses and braces. ok tells an empty list from none.
func (h Head) List(key string) (list []string, ok bool) {
	v, ok := h[key]
	if !ok || v == nil {
		return nil, ok
	}
	if items, isList := v.([]any); isList {
		for _, x := range items {
			if s := strings.TrimSpace(fmt.Sprint(x)); s != "" {
				list = append(list, s)
			}
		}
		return list, true
	}
	s := h.Text(key)
	depth, start := 0, 0
	add := func(end int) {
		if w := strings.TrimSpace(s[start:end]); w != "" {
			list = append(list, w)
		}
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c == '(' || c == '{':
			depth++
		case (c == ')' || c == '}') && depth > 0:
			depth--
		case c == ',' && depth == 0:
			add(i)
			start = i + 1
		}
	}
	add(len(s))
	return list, true
}
