package app

import (
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// A schemaCache holds the compiled schemas of tools, by their text.
type schemaCache struct {
	sync.Mutex
	m map[string]*jsonschema.Resolved // nil: it cannot be used
}

// check compares input with a tool's schema.
func (a *App) check(spec agent.Spec, input json_) error {
	r := a.resolved(spec)
	if r == nil {
		return nil
	}
	var v any
	if err := unmarshal(input, &v); err != nil {
		return err
	}
	return explain(spec, v, r.Validate(v))
}

// resolved compiles the schema of a tool once. A schema that cannot be
// compiled checks nothing: the tool looks at its input itself.
func (a *App) resolved(spec agent.Spec) *jsonschema.Resolved {
	if spec.Loose || len(spec.Schema) == 0 {
		return nil
	}
	a.schemas.Lock()
	defer a.schemas.Unlock()
	if r, ok := a.schemas.m[string(spec.Schema)]; ok {
		return r
	}
	var s jsonschema.Schema
	var r *jsonschema.Resolved
	if unmarshal(spec.Schema, &s) == nil {
		r, _ = s.Resolve(nil) // nil with an error
	}
	if a.schemas.m == nil {
		a.schemas.m = map[string]*jsonschema.Resolved{}
	}
	a.schemas.m[string(spec.Schema)] = r
	return r
}
