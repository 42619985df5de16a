// Package schema checks JSON values against JSON Schemas that strangers wrote.
//
// It owns which schemas are safe to check with (ones that refer to themselves
// without end would take the program down), what is left out of them because
// it cannot be checked, and where in a value a violation lies. It knows
// nothing of tools.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

// A Schema is one that values can be checked against. It may be used
// concurrently.
type Schema struct {
	whole *jsonschema.Resolved
	// doc is a schema document that holds the root schema as a definition, so
	// that parts of it can be checked against on their own; see part.
	doc  map[string]any
	root map[string]any
}

// A Violation says where a value is not as its schema wants it, and why.
type Violation struct {
	Pointer string // JSON pointer to the smallest part at fault; "" is the whole
	Reason  string
}

func (v *Violation) Error() string {
	at := v.Pointer
	if at == "" {
		at = "root"
	}
	return at + ": " + v.Reason
}

// Compile makes a Schema of raw, of draft 7 or 2020-12; other versions are
// read as the latter. References must stay inside the schema. Patterns that
// only another regular expression engine understands are not checked.
func Compile(raw json.RawMessage) (*Schema, error) {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("the schema is no JSON: %w", err)
	}
	root, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("the schema is not an object")
	}
	version, definitions := "https://json-schema.org/draft/2020-12/schema", "$defs"
	if s, ok := root["$schema"].(string); ok && strings.Contains(s, "draft-07") {
		version, definitions = "http://json-schema.org/draft-07/schema#", "definitions"
	}
	if err := prepare(root, "#/"+definitions+"/root"); err != nil {
		return nil, err
	}
	doc := map[string]any{"$schema": version, definitions: map[string]any{"root": root}}
	if err := finite(doc, root); err != nil {
		return nil, err
	}
	s := &Schema{doc: doc, root: root}
	var err error
	if s.whole, err = s.part("#/" + definitions + "/root"); err != nil {
		return nil, fmt.Errorf("the schema cannot be used: %w", err)
	}
	return s, nil
}

// part compiles what ref stands for in the document.
func (s *Schema) part(ref string) (r *jsonschema.Resolved, err error) {
	defer recovered(&err)
	doc := maps.Clone(s.doc)
	doc["allOf"] = []any{map[string]any{"$ref": ref}}
	data, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	var js jsonschema.Schema
	if err := json.Unmarshal(data, &js); err != nil {
		return nil, err
	}
	return js.Resolve(nil)
}

// recovered turns a panic of the library into an error: it asserts things
// that a stranger's schema may well violate.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("checking a schema: %v", p)
	}
}

// Check returns a *Violation if raw is not as s wants it, or says why that
// cannot be told.
func (s *Schema) Check(raw json.RawMessage) error {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return &Violation{Reason: "no JSON: " + err.Error()}
	}
	err := validate(s.whole, v)
	if err == nil {
		return nil
	}
	l := locator{s: s, left: maxProbes}
	at, err := l.locate(place{s.root, "#" + rootPointer(s.doc)}, v, "", err)
	return &Violation{Pointer: at, Reason: reason(err)}
}

func rootPointer(doc map[string]any) string {
	if _, ok := doc["$defs"]; ok {
		return "/$defs/root"
	}
	return "/definitions/root"
}

func validate(r *jsonschema.Resolved, v any) (err error) {
	defer recovered(&err)
	return r.Validate(v)
}

// maxProbes bounds how many parts are looked at to find the one at fault.
const maxProbes = 200

type locator struct {
	s    *Schema
	left int
}

// A place is a schema and the reference that leads to it.
type place struct {
	m   map[string]any
	ref string
}

// locate finds the smallest part of v, which violates p as err says, that
// violates the schema for that part.
func (l *locator) locate(p place, v any, at string, err error) (string, error) {
	for hops := 0; hops < maxDepth; hops++ { // references are finite, see finite
		ref, ok := p.m["$ref"].(string)
		if !ok {
			break
		}
		to, _ := find(l.s.doc, ref)
		m, ok := to.(map[string]any)
		if !ok {
			return at, err
		}
		p = place{m, ref}
	}
	step := func(key string, sub any, name string, e any) (string, error, bool) {
		m, ok := sub.(map[string]any)
		if !ok || l.left == 0 {
			return "", nil, false
		}
		l.left--
		q := place{m, p.ref + key}
		r, cerr := l.s.part(q.ref)
		if cerr != nil {
			return "", nil, false
		}
		verr := validate(r, e)
		if verr == nil {
			return "", nil, false
		}
		at, err := l.locate(q, e, at+"/"+escape(name), verr)
		return at, err, true
	}
	switch v := v.(type) {
	case map[string]any:
		props, _ := p.m["properties"].(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(v)) {
			sub, known := props[k]
			key := "/properties/" + fragment(k)
			if !known && p.m["patternProperties"] == nil {
				sub, key = p.m["additionalProperties"], "/additionalProperties"
			}
			if at, err, found := step(key, sub, k, v[k]); found {
				return at, err
			}
		}
	case []any:
		prefix, _ := p.m["prefixItems"].([]any)
		if old, ok := p.m["items"].([]any); ok {
			prefix = old
		}
		for i, e := range v {
			key, sub := "/items", p.m["items"]
			if i < len(prefix) {
				key, sub = "/prefixItems/"+strconv.Itoa(i), prefix[i]
				if p.m["prefixItems"] == nil {
					key = "/items/" + strconv.Itoa(i)
				}
			}
			if at, err, found := step(key, sub, strconv.Itoa(i), e); found {
				return at, err
			}
		}
	}
	return at, err
}

// escape writes a name as a step of a JSON pointer.
func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// fragment writes a name as a step of the pointer in a reference.
func fragment(name string) string { return url.PathEscape(escape(name)) }

// maxReason is how much of a reason is told: it may quote the value.
const maxReason = 500

// reason is the innermost of the errors that the validator has wrapped.
func reason(err error) string {
	s := err.Error()
	for {
		rest, ok := strings.CutPrefix(s, "validating ")
		if !ok {
			break
		}
		_, inner, ok := strings.Cut(rest, ": ")
		if !ok {
			break
		}
		s = inner
	}
	if utf8.RuneCountInString(s) > maxReason {
		s = string([]rune(s)[:maxReason]) + "…"
	}
	return s
}
