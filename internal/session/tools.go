package session

import (
	"sync"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// Tools is the set of tools of a session. It grows at the end and is never
// reordered, so that what was sent of it stays a prefix of what will be. Its
// methods may be called concurrently.
type Tools struct {
	mu     sync.RWMutex
	order  []string
	byName map[string]agent.Tool
}

// NewTools returns a set of ts in that order. Of two with one name the last counts.
func NewTools(ts ...agent.Tool) *Tools {
	t := &Tools{byName: map[string]agent.Tool{}}
	t.Add(ts...)
	return t
}

// Add appends tools and returns the names that were not there before. A tool
// whose name is there takes the place of the old one: its position stays.
func (t *Tools) Add(ts ...agent.Tool) (added []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range ts {
		name := x.Spec().Name
		if _, ok := t.byName[name]; !ok {
			t.order = append(t.order, name)
			added = append(added, name)
		}
		t.byName[name] = x
	}
	return added
}

// Remove takes tools away. Their names keep their positions, so that a tool
// that comes back stands where it was.
func (t *Tools) Remove(names ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range names {
		if _, ok := t.byName[n]; ok {
			t.byName[n] = nil
		}
	}
}

// Lookup returns the tool of that name, or nil.
func (t *Tools) Lookup(name string) agent.Tool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byName[name]
}

// Names returns the names of the tools that are there, in order.
func (t *Tools) Names() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make([]string, 0, len(t.order))
	for _, n := range t.order {
		if t.byName[n] != nil {
			out = append(out, n)
		}
	}
	return out
}

// Specs returns the definitions of the tools that are there, in order.
func (t *Tools) Specs() []agent.Spec {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make([]agent.Spec, 0, len(t.order))
	for _, n := range t.order {
		if x := t.byName[n]; x != nil {
			out = append(out, x.Spec())
		}
	}
	return out
}
