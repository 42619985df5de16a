package schema

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxDepth bounds how deep a schema may be nested, maxCost what checking
	// one value against one schema may cost, in schemas that are looked at.
	maxDepth = 200
	maxCost  = 10_000
)

// Keywords whose values are schemas, by the shape of the value. Those that
// apply to the value itself, and not to a part of it, matter for what a
// check costs.
var (
	one     = []string{"additionalProperties", "unevaluatedProperties", "additionalItems", "unevaluatedItems", "contains", "propertyNames", "contentSchema"}
	list    = []string{"prefixItems"}
	named   = []string{"properties", "patternProperties", "$defs", "definitions"}
	sameOne = []string{"not", "if", "then", "else"}
	sameAll = []string{"allOf", "anyOf", "oneOf"}
	sameMap = []string{"dependentSchemas", "dependencies"}
)

// plain are the other keywords that are checked. What is in none of these
// lists is taken out: the library would read "$Ref" as "$ref", for instance.
var plain = []string{
	"$ref", "items", "type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
	"maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "maxContains", "minContains",
	"maxProperties", "minProperties", "required", "dependentRequired",
}

// known reports whether a keyword is checked.
func known(key string) bool {
	for _, keys := range [][]string{plain, one, list, named, sameOne, sameAll, sameMap} {
		if slices.Contains(keys, key) {
			return true
		}
	}
	return false
}

// each calls f for every schema directly in m; same says that it applies to
// the value that m applies to.
func each(m map[string]any, f func(sub map[string]any, same bool) error) error {
	visit := func(v any, same bool) error {
		if sub, ok := v.(map[string]any); ok {
			return f(sub, same)
		}
		return nil
	}
	visitAll := func(v any, same bool) error {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				if err := visit(e, same); err != nil {
					return err
				}
			}
		case map[string]any:
			for _, e := range v {
				if err := visit(e, same); err != nil {
					return err
				}
			}
		}
		return nil
	}
	// In an order that is always the same.
	for _, group := range []struct {
		keys  []string
		same  bool
		visit func(any, bool) error
	}{
		{one, false, visit}, {list, false, visitAll}, {named, false, visitAll},
		{sameOne, true, visit}, {sameAll, true, visitAll}, {sameMap, true, visitAll},
	} {
		for _, k := range group.keys {
			if err := group.visit(m[k], group.same); err != nil {
				return err
			}
		}
	}
	if _, many := m["items"].([]any); many {
		return visitAll(m["items"], false)
	}
	return visit(m["items"], false)
}

// prepare takes out of a schema what cannot be checked, and makes its
// references lead to where it is in the document: base.
func prepare(m map[string]any, base string) error {
	if _, ok := m["$id"]; ok {
		delete(m, "$id") // of the root; references by it lead nowhere then
	}
	return prepareAt(m, base, 0)
}

func prepareAt(m map[string]any, base string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("the schema is nested deeper than %d levels", maxDepth)
	}
	for _, k := range []string{"$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$recursiveAnchor"} {
		if _, ok := m[k]; ok {
			return fmt.Errorf("the schema uses %s, which is not supported", k)
		}
	}
	maps.DeleteFunc(m, func(key string, _ any) bool { return !known(key) })
	if ref, ok := m["$ref"].(string); ok {
		rest, inside := strings.CutPrefix(ref, "#")
		if !inside || rest != "" && rest[0] != '/' {
			return fmt.Errorf("the schema refers to %q, which is not a place in it", ref)
		}
		m["$ref"] = base + rest
	}
	if p, ok := m["pattern"].(string); ok {
		if _, err := regexp.Compile(p); err != nil {
			delete(m, "pattern")
		}
	}
	if ps, ok := m["patternProperties"].(map[string]any); ok {
		for p := range ps {
			if _, err := regexp.Compile(p); err != nil {
				delete(ps, p)
			}
		}
	}
	return each(m, func(sub map[string]any, _ bool) error { return prepareAt(sub, base, depth+1) })
}

// find returns what ref leads to in doc: a schema, which may be true or false.
func find(doc map[string]any, ref string) (any, bool) {
	rest, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, false
	}
	var at any = doc
	for step := range strings.SplitSeq(rest, "/") {
		step, err := url.PathUnescape(step)
		if err != nil {
			return nil, false
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch v := at.(type) {
		case map[string]any:
			at = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			at = v[i]
		default:
			return nil, false
		}
	}
	switch at.(type) {
	case map[string]any, bool:
		return at, true
	}
	return nil, false
}

var errEndless = errors.New("the schema refers to itself without end")

// finite reports a schema in doc with which the check of one value would
// never end, or take too long: whatever applies to the same value, followed
// through references, must not come back to where it began.
func finite(doc, root map[string]any) error {
	cost := map[uintptr]int{} // by the map's identity; -1 is being looked at
	var walk func(m map[string]any) (int, error)
	walk = func(m map[string]any) (int, error) {
		id := reflect.ValueOf(m).Pointer()
		if c, ok := cost[id]; ok {
			if c < 0 {
				return 0, errEndless
			}
			return c, nil
		}
		cost[id] = -1
		sum := 1
		add := func(sub map[string]any) error {
			c, err := walk(sub)
			if sum += c; err == nil && sum > maxCost {
				err = fmt.Errorf("the schema is too complex: a value has to be checked more than %d times", maxCost)
			}
			return err
		}
		if ref, ok := m["$ref"].(string); ok {
			to, ok := find(doc, ref)
			if !ok {
				return 0, fmt.Errorf("the schema refers to something that is not in it: %s", ref)
			}
			if to, ok := to.(map[string]any); ok {
				if err := add(to); err != nil {
					return 0, err
				}
			}
		}
		err := each(m, func(sub map[string]any, same bool) error {
			if same {
				return add(sub)
			}
			return nil
		})
		cost[id] = sum
		return sum, err
	}
	var all func(m map[string]any) error
	all = func(m map[string]any) error {
		if _, err := walk(m); err != nil {
			return err
		}
		return each(m, func(sub map[string]any, _ bool) error { return all(sub) })
	}
	return all(root)
}
