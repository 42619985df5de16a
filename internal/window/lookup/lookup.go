// Package lookup holds tool definitions back until the model asks for them.
// It owns the catalogue of deferred tools, the ranking of a search and the
// ToolSearch tool. It does not build requests and does not know where tools
// come from.
package lookup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// Name is the name of the search tool.
const Name = "ToolSearch"

// A When says when tools are deferred.
type When struct {
	Off bool
	// Percent, if not 0, defers only once the definitions take that share of
	// the window.
	Percent int
}

// ParseWhen reads the forms of ENABLE_TOOL_SEARCH: true, false, auto, auto:N
// and "", which is true where the upstream is known to take tool references.
// An error names the forms; the When beside it is the one for "".
func ParseWhen(s string, known bool) (When, error) {
	word := strings.ToLower(strings.TrimSpace(s))
	switch word {
	case "":
		return When{Off: !known}, nil
	case "true", "1", "yes", "on":
		return When{}, nil
	case "false", "0", "no", "off":
		return When{Off: true}, nil
	case "auto":
		return When{Percent: 10}, nil
	}
	if n, ok := strings.CutPrefix(word, "auto:"); ok {
		switch p, err := strconv.Atoi(n); {
		case err != nil || p < 0 || p > 100:
		case p == 0:
			return When{}, nil
		default:
			return When{Percent: p}, nil
		}
	}
	return When{Off: !known}, fmt.Errorf("tool search %q: use true, false, auto or auto:N with N from 0 to 100", s)
}

// Defer reports whether the Deferred ones among specs are held back in a
// window of that many tokens.
func (w When) Defer(specs []agent.Spec, window int) bool {
	if w.Off {
		return false
	}
	n, any := 0, false
	for _, s := range specs {
		if s.Deferred {
			any = true
			n += len(s.Name) + len(s.Description) + len(s.Schema)
		}
	}
	return any && n/4 >= window*w.Percent/100
}

// A Catalog is the set of deferred tools. Its methods may be called concurrently.
type Catalog struct {
	wait func(context.Context) []string

	mu    sync.RWMutex
	tools []indexed // sorted by name
}

// An indexed tool is one with the words that a search compares.
type indexed struct {
	spec              agent.Spec
	name, description string // lower case
	words             []string
}

// New returns a catalogue of specs. wait, if not nil, waits, within its own
// clock and ctx, for tool servers that are still connecting, and returns a
// line for each one that failed or is still not there.
func New(wait func(context.Context) []string, specs ...agent.Spec) *Catalog {
	c := &Catalog{wait: wait}
	c.Set(specs...)
	return c
}

// Set replaces the tools on offer.
func (c *Catalog) Set(specs ...agent.Spec) {
	tools := make([]indexed, 0, len(specs))
	for _, s := range specs {
		tools = append(tools, indexed{s, strings.ToLower(s.Name), strings.ToLower(s.Description), wordsOf(s.Name)})
	}
	slices.SortStableFunc(tools, func(a, b indexed) int { return cmp.Compare(a.spec.Name, b.spec.Name) })
	tools = slices.CompactFunc(tools, func(a, b indexed) bool { return a.spec.Name == b.spec.Name })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tools = tools
}

// Names returns the names of all deferred tools, sorted.
func (c *Catalog) Names() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var ns []string
	for _, t := range c.tools {
		ns = append(ns, t.spec.Name)
	}
	return ns
}

// Spec returns the definition of the tool of that name.
func (c *Catalog) Spec(name string) (agent.Spec, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, t := range c.tools {
		if t.spec.Name == name {
			return t.spec, true
		}
	}
	return agent.Spec{}, false
}

// Hint tells the model what a tool takes that it called without having loaded
// it. "" if the tool is not in the catalogue.
func (c *Catalog) Hint(name string) string {
	s, ok := c.Spec(name)
	if !ok {
		return ""
	}
	return fmt.Sprintf("The definition of %s was not loaded. Its input has this schema:\n%s\nTo load it, call %s with the query \"select:%s\".", name, s.Schema, Name, name)
}

// find returns the tools that query asks for, best first, and the names that
// it selects in vain.
func (c *Catalog) find(query string, limit int) (found []agent.Spec, missing []string) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	query = strings.TrimSpace(query)
	if list, ok := strings.CutPrefix(query, "select:"); ok {
		for n := range strings.SplitSeq(list, ",") {
			if n = strings.Trim(strings.TrimSpace(n), "`\"'"); n == "" {
				continue
			}
			i := slices.IndexFunc(c.tools, func(t indexed) bool { return t.spec.Name == n })
			if i < 0 {
				i = slices.IndexFunc(c.tools, func(t indexed) bool { return strings.EqualFold(t.spec.Name, n) })
			}
			if i < 0 {
				missing = append(missing, n)
			} else if !slices.ContainsFunc(found, func(s agent.Spec) bool { return s.Name == c.tools[i].spec.Name }) {
				found = append(found, c.tools[i].spec)
			}
		}
		return found, missing
	}
	type hit struct {
		spec  agent.Spec
		score int
	}
	var hits []hit
	terms := termsOf(query)
	for _, t := range c.tools {
		if n := t.score(terms); n > 0 {
			hits = append(hits, hit{t.spec, n})
		}
	}
	// Equal scores stay in the order of names, so that the same search has
	// the same answer.
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	for _, h := range hits[:min(limit, len(hits))] {
		found = append(found, h.spec)
	}
	return found, nil
}

// A term is one word of a search; a leading + makes it a condition.
type term struct {
	word string
	must bool
}

func termsOf(query string) []term {
	var ts []term
	for f := range strings.FieldsSeq(strings.ToLower(query)) {
		w, must := strings.CutPrefix(f, "+")
		if w = strings.TrimFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }); w != "" {
			ts = append(ts, term{w, must})
		}
	}
	return ts
}

// score ranks t: a word of its name counts most, then a part of the name,
// then a mention in the description. 0 is no match.
func (t indexed) score(terms []term) int {
	sum := 0
	for _, q := range terms {
		n := 0
		switch {
		case t.name == q.word:
			n = 100
		case slices.Contains(t.words, q.word):
			n = 10
		case strings.Contains(t.name, q.word):
			n = 5
		}
		if strings.Contains(t.description, q.word) {
			n += 2
		}
		if q.must && n == 0 {
			return 0
		}
		sum += n
	}
	return sum
}

// wordsOf splits a name such as mcp__gitHub__create_issue into lower-case words.
func wordsOf(name string) []string {
	var ws []string
	start := 0
	var last rune
	cut := func(end int) {
		if end > start {
			ws = append(ws, strings.ToLower(name[start:end]))
		}
	}
	for i, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			cut(i)
			start = i + 1
		case unicode.IsUpper(r) && unicode.IsLower(last):
			cut(i)
			start = i
		}
		last = r
	}
	cut(len(name))
	return ws
}
