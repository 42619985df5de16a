package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/atomicfile"
	"github.com/seed-eb844fcb/cinch/internal/lib/textdiff"
)

// A Definition is what a tool says of itself. It is approved by the first call
// that is allowed, and pinned from then on: a server that says something else
// later must not get it past whoever approved the first.
type Definition struct {
	Description string `json:"description"`
	InputSchema any    `json:"inputSchema"`
	Annotations any    `json:"annotations,omitempty"`
}

// definitionOf returns the definition of d in the form in which it is kept.
func definitionOf(d *sdk.Tool) Definition {
	out := Definition{Description: d.Description, InputSchema: d.InputSchema}
	if d.Annotations != nil {
		out.Annotations = d.Annotations
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return out // equal to no pinned one
	}
	var same Definition
	if json.Unmarshal(raw, &same) != nil {
		return out
	}
	return same
}

func (d Definition) equal(o Definition) bool { return reflect.DeepEqual(d, o) }

// A drift is a definition that is another than the approved one.
type drift struct {
	old, now Definition
	unread   error // nothing is known of what was approved
	approved atomic.Bool
}

// reason says in one sentence that the tool has changed. It holds nothing of
// the server's words: it may reach the model.
func (d *drift) reason(server, tool string) string {
	what := fmt.Sprintf("the tool %q has changed since it was approved here: %s", tool, strings.Join(d.parts(), ", "))
	if d.unread != nil {
		what = fmt.Sprintf("what was approved of the tool %q cannot be read (%v)", tool, d.unread)
	}
	return fmt.Sprintf("%s; to see and approve it: cinch mcp approve %s", what, server)
}

func (d *drift) parts() []string {
	var out []string
	if d.old.Description != d.now.Description {
		out = append(out, "the description")
	}
	if !reflect.DeepEqual(d.old.InputSchema, d.now.InputSchema) {
		out = append(out, "the input schema")
	}
	if !reflect.DeepEqual(d.old.Annotations, d.now.Annotations) {
		out = append(out, "the annotations")
	}
	return out
}

// lines is the difference, for people.
func (d *drift) lines() []string {
	if d.unread != nil {
		return nil
	}
	const most = 60
	var out []string
	for _, h := range textdiff.Hunks(d.old.text(), d.now.text(), 1) {
		out = append(out, h.Lines...)
	}
	if len(out) > most {
		out = append(out[:most], fmt.Sprintf("… %d more lines", len(out)-most))
	}
	return out
}

// text is the definition as lines that can be compared.
func (d Definition) text() string {
	var b bytes.Buffer
	b.WriteString(strings.TrimSpace(d.Description) + "\n")
	for _, v := range []any{d.InputSchema, d.Annotations} {
		if v == nil {
			continue
		}
		if raw, err := json.MarshalIndent(v, "", "  "); err == nil { // it came as JSON
			b.Write(append(raw, '\n'))
		}
	}
	return b.String()
}

// pinned is the content of the file: definitions by server and tool.
type pinned map[string]map[string]Definition

func decodePins(raw []byte) (pinned, error) {
	m := pinned{}
	if len(raw) == 0 {
		return m, nil
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, err
	}
	return m, nil
}

// pins are the approved definitions of s. Tools in a host's own process are
// as good as its word: they are not pinned.
func (s *Server) pins() (map[string]Definition, error) {
	path := s.set.o.Pins
	if path == "" || s.Type == "sdk" {
		return nil, nil
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := decodePins(raw)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return m[s.Name], nil
}

// pin keeps the definitions of tools, by name. replace says that a file that
// cannot be read is given up.
func (s *Server) pin(ctx context.Context, defs map[string]Definition, replace bool) error {
	path := s.set.o.Pins
	if path == "" || s.Type == "sdk" || len(defs) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Writer{}.Update(ctx, atomicfile.Update{
		Name: path, Perm: 0o600, Lock: path + ".lock", Wait: 10 * time.Second,
		Change: func(old []byte) ([]byte, error) {
			m, err := decodePins(old)
			if err != nil && !replace {
				return nil, err
			}
			if err != nil || m == nil {
				m = pinned{}
			}
			if m[s.Name] == nil {
				m[s.Name] = map[string]Definition{}
			}
			for name, d := range defs {
				m[s.Name][name] = d
			}
			return json.MarshalIndent(m, "", " ")
		},
	})
}

// approve pins the definition of a tool that may run, and returns what the
// model is to be told if that is another than it knows.
func (t *tool) approve(ctx context.Context) []agent.Block {
	if t.pinned.Swap(true) {
		return nil
	}
	now := definitionOf(t.def)
	if err := t.s.pin(ctx, map[string]Definition{t.def.Name: now}, false); err != nil {
		t.s.set.note("warning", fmt.Sprintf("MCP server %s: that its tool %s was approved could not be kept: %v", t.s.Name, t.def.Name, err))
	}
	if t.drift == nil || t.drift.approved.Swap(true) {
		return nil
	}
	schema, note, err := repair(now.InputSchema)
	if err != nil {
		return nil
	}
	t.renew(schema, note)
	text := "The definition of " + t.name + " has changed, and the change was approved. It now takes:\n" + string(schema) + "\n" + strings.TrimSpace(clip(now.Description)+"\n"+note)
	return []agent.Block{&agent.Text{Text: "<system-reminder>\n" + strings.ReplaceAll(text, "</system-reminder", "<\\/system-reminder") + "\n</system-reminder>", Note: "tools"}}
}

// renew puts a tool with the definition of now in the place of t.
func (t *tool) renew(schema json.RawMessage, note string) {
	n := &tool{s: t.s, name: t.name, def: t.def, load: t.load, schema: schema}
	n.desc = clip(strings.TrimSpace(t.def.Description + "\n" + note))
	n.pinned.Store(true)
	why := t.drift.reason(t.s.Name, t.def.Name)
	t.s.mu.Lock()
	for i, x := range t.s.tools {
		if x == t {
			t.s.tools[i] = n
		}
	}
	t.s.skipped = slices.DeleteFunc(slices.Clone(t.s.skipped), func(p Problem) bool { return p.Kind == "changed_tool" && p.Text == why })
	t.s.mu.Unlock()
	t.s.set.changed(t.s)
}

// A Change is a tool whose definition is another than the approved one.
type Change struct {
	Tool string
	// Lines is the difference, as a patch shows it.
	Lines []string
}

// Changes returns the changed tools of a server.
func (s *Set) Changes(server string) []Change {
	x, err := s.find(server)
	if err != nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []Change
	for _, t := range x.tools {
		if t.drift != nil && !t.drift.approved.Load() {
			out = append(out, Change{t.def.Name, t.drift.lines()})
		}
	}
	return out
}

// Approve pins the definitions of a server's changed tools as they are now,
// and of tools if named. It returns those it pinned.
func (s *Set) Approve(ctx context.Context, server string, tools ...string) ([]string, error) {
	x, err := s.find(server)
	if err != nil {
		return nil, err
	}
	want := map[string]bool{}
	for _, n := range tools {
		want[n] = true
	}
	defs, unread := map[string]Definition{}, false
	var names []string
	x.mu.Lock()
	for _, t := range x.tools {
		d := t.drift
		if named := want[t.def.Name] || want[t.name]; len(tools) == 0 && (d == nil || d.approved.Load()) || len(tools) > 0 && !named {
			continue
		}
		unread = unread || d != nil && d.unread != nil
		defs[t.def.Name] = definitionOf(t.def)
		names = append(names, t.def.Name)
	}
	x.mu.Unlock()
	if len(tools) > 0 && len(names) < len(want) {
		return nil, fmt.Errorf("the MCP server %s does not have all of the tools %s", server, strings.Join(tools, ", "))
	}
	return names, x.pin(ctx, defs, unread)
}
