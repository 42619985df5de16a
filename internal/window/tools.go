package window

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// A toolset is the tools of a conversation: those that are sent, in the order
// of their arrival, and those that are held back.
type toolset struct {
	sent   []definition
	held   map[string]agent.Spec
	wire   json.RawMessage // all that is sent; nil for none
	cached json.RawMessage // what of it is part of the cached prefix
}

// A definition is one tool as it is sent. Deferred ones are not part of the
// prefix that an upstream renders, so they may join without breaking it.
type definition struct {
	spec     agent.Spec
	raw      []byte
	deferred bool
}

// AppendTools adds tools behind those that are there; one with a known name
// stays as it was. Deferred ones wait until they are loaded; of the others the
// audit is told, as they change the prefix.
func (b *Builder) AppendTools(specs ...agent.Spec) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var names []string
	for _, s := range order(specs) {
		if b.add(s) && !(b.o.ToolSearch && s.Deferred) {
			names = append(names, s.Name)
		}
	}
	if len(names) > 0 {
		b.planned = append(b.planned, "tools joined: "+strings.Join(names, ", "))
		b.tools.encode()
	}
}

// Load adds the definitions of deferred tools that were looked up. Unknown
// names and those that are there are left alone.
func (b *Builder) Load(names ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.load(names)
}

// Loaded reports whether the definition of the tool is part of the requests.
func (b *Builder) Loaded(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.tools.sent, func(d definition) bool { return d.spec.Name == name })
}

// Offers reports whether a tool of that server is part of the requests.
func (b *Builder) Offers(server string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.tools.sent, func(d definition) bool { return strings.HasPrefix(d.spec.Name, "mcp__"+server+"__") })
}

func (b *Builder) load(names []string) {
	n := len(b.tools.sent)
	for _, name := range names {
		if s, ok := b.tools.held[name]; ok {
			delete(b.tools.held, name)
			b.tools.sent = append(b.tools.sent, definition{s, b.encode(s, true), true})
		}
	}
	if len(b.tools.sent) > n {
		b.tools.encode()
	}
}

// define makes sure that every reference in msgs has its definition: an
// upstream refuses one that has none. After a resume the tool may be gone.
func (b *Builder) define(msgs []agent.Message) {
	if !b.o.ToolSearch {
		return
	}
	var names []string
	for _, m := range msgs {
		if m.Role != agent.User {
			continue
		}
		for _, x := range m.Blocks {
			r, ok := x.(*agent.ToolResult)
			if !ok {
				continue
			}
			for _, x := range r.Blocks {
				if t, ok := x.(*agent.ToolReference); ok {
					names = append(names, t.Name)
				}
			}
		}
	}
	for _, name := range names {
		if _, ok := b.tools.held[name]; !ok && !b.tools.has(name) {
			b.add(agent.Spec{Name: name, Deferred: true, Description: "This tool is not available at the moment."})
		}
	}
	b.load(names)
}

// retool starts the set anew.
func (b *Builder) retool(specs []agent.Spec) {
	b.tools = toolset{held: map[string]agent.Spec{}}
	b.problems = nil
	for _, s := range order(specs) {
		b.add(s)
	}
	b.tools.encode()
}

// order sorts specs: our own by name, then those of tool servers by name.
func order(specs []agent.Spec) []agent.Spec {
	specs = slices.Clone(specs)
	slices.SortStableFunc(specs, func(x, y agent.Spec) int {
		mx, my := strings.HasPrefix(x.Name, "mcp__"), strings.HasPrefix(y.Name, "mcp__")
		if mx != my {
			if mx {
				return 1
			}
			return -1
		}
		return cmp.Compare(x.Name, y.Name)
	})
	return specs
}

// add takes one tool in and reports whether it is new.
func (b *Builder) add(s agent.Spec) bool {
	if !validName(s.Name) {
		b.problems = append(b.problems, fmt.Sprintf("tool %q: the name cannot be sent: letters, digits, '_' and '-' only, 128 at most", s.Name))
		return false
	}
	if _, ok := b.tools.held[s.Name]; ok || b.tools.has(s.Name) {
		return false
	}
	if b.o.ToolSearch && s.Deferred {
		b.tools.held[s.Name] = s
		return true
	}
	b.tools.sent = append(b.tools.sent, definition{s, b.encode(s, false), false})
	return true
}

func validName(s string) bool {
	for _, c := range []byte(s) {
		if !(c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
			return false
		}
	}
	return s != "" && len(s) <= 128
}

// encode returns the definition as it is sent. One bad schema must not cost
// the session all its tools, so it becomes one that takes any object.
func (b *Builder) encode(s agent.Spec, deferred bool) []byte {
	schema, err := compactSchema(s.Schema)
	if err != nil {
		b.problems = append(b.problems, fmt.Sprintf("tool %q: %v; any object is taken", s.Name, err))
		schema = []byte(`{"type":"object"}`)
	}
	dst := append([]byte(nil), `{"name":`...)
	dst = agent.AppendString(dst, s.Name)
	if strings.TrimSpace(s.Description) != "" {
		dst = append(dst, `,"description":`...)
		dst = agent.AppendString(dst, s.Description)
	}
	dst = append(dst, `,"input_schema":`...)
	dst = append(dst, schema...)
	if deferred {
		dst = append(dst, `,"defer_loading":true`...)
	}
	return append(dst, '}')
}

func compactSchema(raw json.RawMessage) ([]byte, error) {
	if len(raw) == 0 {
		return []byte(`{"type":"object"}`), nil
	}
	var top struct {
		Type json.RawMessage `json:"type"`
	}
	if err := json.Unmarshal(raw, &top); err != nil {
		return nil, fmt.Errorf("its schema is not a JSON object")
	}
	if string(top.Type) != `"object"` {
		return nil, fmt.Errorf("its schema does not describe an object")
	}
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		return nil, fmt.Errorf("its schema: %w", err)
	}
	return out.Bytes(), nil
}

func (t *toolset) has(name string) bool {
	return slices.ContainsFunc(t.sent, func(d definition) bool { return d.spec.Name == name })
}

// deferred reports whether tool search is in use.
func (t *toolset) deferred() bool {
	return len(t.held) > 0 || slices.ContainsFunc(t.sent, func(d definition) bool { return d.deferred })
}

// all returns the specs of all tools, sent or held.
func (t *toolset) all() []agent.Spec {
	var ss []agent.Spec
	for _, d := range t.sent {
		ss = append(ss, d.spec)
	}
	for _, s := range t.held {
		ss = append(ss, s)
	}
	return ss
}

// encode renews the bytes. Earlier ones are never written to: requests hold them.
func (t *toolset) encode() {
	t.wire, t.cached = nil, nil
	for _, d := range t.sent {
		t.wire = element(t.wire, d.raw)
	}
	if t.wire != nil {
		t.wire = append(t.wire, ']')
	}
	if !slices.ContainsFunc(t.sent, func(d definition) bool { return d.deferred }) {
		t.cached = t.wire // the audit sees the very bytes that go out
		return
	}
	for _, d := range t.sent {
		if !d.deferred {
			t.cached = element(t.cached, d.raw)
		}
	}
	if t.cached != nil {
		t.cached = append(t.cached, ']')
	}
}

func element(dst, raw []byte) []byte {
	if dst == nil {
		return append(append(dst, '['), raw...)
	}
	return append(append(dst, ','), raw...)
}
