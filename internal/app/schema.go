package app

import (
	"errors"
	"fmt"
	"sync"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/schema"
)

// A schemaCache holds the compiled schemas of tools, by their text.
type schemaCache struct {
	sync.Mutex
	m map[string]*schema.Schema // nil: it cannot be used
}

// check compares input with a tool's schema.
func (a *App) check(spec agent.Spec, input json_) error {
	s := a.compiled(spec)
	if s == nil {
		return nil
	}
	var v any
	if err := unmarshal(input, &v); err != nil {
		return err
	}
	err := s.Check(input)
	var wrong *schema.Violation
	if errors.As(err, &wrong) {
		err = explain(spec, v, err)
		if spec.Deferred && a.catalog != nil && !a.layout.knows(spec.Name) {
			// The model guessed the input of a tool it knows by name only.
			err = fmt.Errorf("%w\n%s", err, a.catalog.Hint(spec.Name))
		}
		return err
	}
	return nil // a schema that cannot be applied checks nothing
}

// compiled compiles the schema of a tool once. One that cannot be compiled
// checks nothing: the tool looks at its input itself.
func (a *App) compiled(spec agent.Spec) *schema.Schema {
	if spec.Loose || len(spec.Schema) == 0 {
		return nil
	}
	a.schemas.Lock()
	defer a.schemas.Unlock()
	if s, ok := a.schemas.m[string(spec.Schema)]; ok {
		return s
	}
	s, err := schema.Compile(spec.Schema)
	if err != nil {
		s = nil
	}
	if a.schemas.m == nil {
		a.schemas.m = map[string]*schema.Schema{}
	}
	a.schemas.m[string(spec.Schema)] = s
	return s
}
