package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// maxDepth bounds how deep references are followed, maxAgain how often one of
// them within itself, and maxNodes what may come of it all.
const (
	maxDepth = 8
	maxAgain = 2
	maxNodes = 20_000
)

// repair makes of a server's input schema one that providers take: an object
// at the top, no references, no alternatives at the top. note says what was
// changed, for the tool's description. The error says why that is not possible.
func repair(in any) (schema json.RawMessage, note string, err error) {
	root, ok := in.(map[string]any)
	if in == nil {
		root = map[string]any{}
	} else if !ok {
		return nil, "", fmt.Errorf("its input schema is %T, not an object", in)
	}
	if t, ok := root["type"]; ok && t != "object" {
		if list, isList := t.([]any); !isList || len(list) == 0 || list[0] != "object" {
			return nil, "", fmt.Errorf("its input schema is of type %v, not object", t)
		}
	}
	out, err := (&inliner{root: root, open: map[string]int{}}).inline(root, 0)
	if err != nil {
		return nil, "", err
	}
	m := out.(map[string]any)
	m["type"] = "object"
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		alts, ok := m[key].([]any)
		if !ok {
			continue
		}
		delete(m, key)
		n, err := merge(m, alts, key == "allOf")
		if err != nil {
			return nil, "", err
		}
		if n != "" {
			note = strings.TrimSpace(note + " " + n)
		}
	}
	if _, ok := m["properties"].(map[string]any); !ok {
		m["properties"] = map[string]any{}
	}
	delete(m, "$defs")
	delete(m, "definitions")
	delete(m, "$id")
	schema, err = json.Marshal(m)
	return schema, note, err
}

// An inliner follows the references of one schema.
type inliner struct {
	root  map[string]any
	open  map[string]int // references that are being followed
	nodes int
}

// inline replaces references into the schema itself by what they refer to. A
// recursive one becomes a schema that takes anything from some depth on.
func (in *inliner) inline(v any, depth int) (any, error) {
	if in.nodes++; in.nodes > maxNodes {
		return nil, errors.New("its input schema is too large once references are followed")
	}
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			if depth >= maxDepth || in.open[ref] >= maxAgain {
				return map[string]any{}, nil
			}
			in.open[ref]++
			defer func() { in.open[ref]-- }()
			target, err := resolve(ref, in.root)
			if err != nil {
				return nil, err
			}
			merged := map[string]any{}
			if t, ok := target.(map[string]any); ok {
				for k, x := range t {
					merged[k] = x
				}
			}
			for k, x := range v {
				if k != "$ref" {
					merged[k] = x
				}
			}
			return in.inline(merged, depth+1)
		}
		out := make(map[string]any, len(v))
		for k, x := range v {
			if k == "$defs" || k == "definitions" {
				continue
			}
			y, err := in.inline(x, depth)
			if err != nil {
				return nil, err
			}
			out[k] = y
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			y, err := in.inline(x, depth)
			if err != nil {
				return nil, err
			}
			out[i] = y
		}
		return out, nil
	}
	return v, nil
}

func resolve(ref string, root map[string]any) (any, error) {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, fmt.Errorf("its input schema refers to %q, outside of itself", ref)
	}
	var at any = root
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if part == "" {
			continue
		}
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		m, ok := at.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("its input schema refers to %q, which is not there", ref)
		}
		if at, ok = m[part]; !ok {
			return nil, fmt.Errorf("its input schema refers to %q, which is not there", ref)
		}
	}
	return at, nil
}

// merge puts the properties of alternatives into m. all says that every one
// of them holds; otherwise nothing of them is required.
func merge(m map[string]any, alts []any, all bool) (note string, err error) {
	props, _ := m["properties"].(map[string]any)
	if props == nil {
		props = map[string]any{}
	}
	required, _ := m["required"].([]any)
	var forms []string
	for _, a := range alts {
		alt, ok := a.(map[string]any)
		if !ok {
			return "", errors.New("an alternative of its input schema is not an object")
		}
		ps, _ := alt["properties"].(map[string]any)
		for k, p := range ps {
			if _, ok := props[k]; !ok {
				props[k] = p
			}
		}
		req, _ := alt["required"].([]any)
		if all {
			required = append(required, req...)
			continue
		}
		var names []string
		for _, r := range req {
			names = append(names, fmt.Sprint(r))
		}
		if len(names) > 0 {
			forms = append(forms, strings.Join(names, " and "))
		}
	}
	m["properties"] = props
	if len(required) > 0 {
		m["required"] = required
	}
	if len(forms) > 0 {
		return "Give one of: " + strings.Join(forms, "; or ") + ".", nil
	}
	return "", nil
}
