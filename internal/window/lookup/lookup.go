// Package lookup holds tool definitions back until the model asks for them.
// It owns the catalogue of deferred tools and the ToolSearch tool. It does
// not build requests and does not know where tools come from.
package lookup

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// Name is the name of the search tool.
const Name = "ToolSearch"

// A When says when tools are deferred.
type When struct {
	Mode    string // on, off, auto
	Percent int    // for auto: the share of the window that definitions may take
}

// ParseWhen reads the forms of ENABLE_TOOL_SEARCH: true, false, auto, auto:N,
// and "" (on). Any other word is an error that names the forms.
func ParseWhen(s string) (When, error) {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "", "true", "1", "yes", "on":
		return When{Mode: "on"}, nil
	case "false", "0", "no", "off":
		return When{Mode: "off"}, nil
	case "auto":
		return When{Mode: "auto", Percent: 10}, nil
	}
	if n, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(s)), "auto:"); ok {
		if p, err := strconv.Atoi(n); err == nil && p >= 0 && p <= 100 {
			return When{Mode: "auto", Percent: p}, nil
		}
	}
	return When{Mode: "on"}, fmt.Errorf("tool search %q: want true, false, auto or auto:N with N from 0 to 100", s)
}

// Catalog is the set of deferred tools. Its methods may be called concurrently.
type Catalog struct {
	wait func(context.Context) []string

	mu    sync.Mutex
	specs []agent.Spec // sorted by name
}

// New returns a catalogue of specs. wait, if not nil, waits (within its own
// clock and ctx) for tool servers that are still connecting and returns a
// line for each that failed or is still not there.
func New(wait func(context.Context) []string, specs ...agent.Spec) *Catalog {
	c := &Catalog{wait: wait}
	c.Set(specs)
	return c
}

// Set replaces the tools on offer.
func (c *Catalog) Set(specs []agent.Spec) {}

// Names returns the names of all deferred tools, sorted.
func (c *Catalog) Names() []string { return nil }

// Specs returns the definitions of names, in their order; unknown names are left out.
func (c *Catalog) Specs(names ...string) []agent.Spec { return nil }

// Tool returns the ToolSearch tool over c.
func (c *Catalog) Tool() agent.Tool { return searchTool{c} }

type searchTool struct{ c *Catalog }

func (t searchTool) Spec() agent.Spec { return agent.Spec{Name: Name} }

func (t searchTool) Inspect(input json.RawMessage) (agent.Effects, error) {
	return agent.Effects{Concurrent: true, ReadOnly: true, Idempotent: true}, nil
}

func (t searchTool) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	return agent.Result{}, nil
}
