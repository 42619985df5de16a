// Package settings reads the layers of settings — managed, command line, local,
// project, user — and merges them into one immutable value in which every
// key knows the layer, file and place it came from.
//
// It owns the files' places and syntax, the keys' types and where each may be
// set, the merge, what an untrusted project may not say, and the edits of
// settings files that keep every other byte. A wrong key disables itself only
// and is told as a Problem. It does not know what the keys are for, it reads no
// environment and runs no program.
package settings

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// A Layer is a source of settings.
type Layer string

// The layers, highest first, and State, which is none: ~/.claude.json.
const (
	Managed Layer = "managed"
	Flag    Layer = "cli"
	Local   Layer = "local"
	Project Layer = "project"
	User    Layer = "user"
	State   Layer = "state"
)

var order = [...]Layer{Managed, Flag, Local, Project, User}

// An Origin is where something was set. Line and Col count from 1; they are 0
// for what stands in no file.
type Origin struct {
	Layer     Layer
	File      string
	Line, Col int
}

func (o Origin) String() string {
	if o.Line == 0 {
		return fmt.Sprintf("%s (%s)", o.File, o.Layer)
	}
	return fmt.Sprintf("%s:%d:%d (%s)", o.File, o.Line, o.Col, o.Layer)
}

// A Severity says what a Problem means for the run.
type Severity uint8

const (
	// Info is worth a line in doctor only.
	Info Severity = iota
	// Warning is something that was set and has no effect.
	Warning
	// Error is a file that could not be used, which holds no deny or ask rule
	// as far as can be told.
	Error
	// Refuse means that a rule which was to forbid something may be lost:
	// without a person to decide, the run must not start.
	Refuse
)

func (s Severity) String() string { return [...]string{"info", "warning", "error", "refuse"}[s] }

// A Problem is something in the settings that is not as it should be.
type Problem struct {
	Severity Severity
	Origin
	Key  string // with dots; "" for a whole file
	Text string
}

func (p Problem) String() string {
	if p.Key == "" {
		return p.Origin.String() + ": " + p.Text
	}
	return p.Origin.String() + ": " + p.Key + ": " + p.Text
}

// Options says where to look.
type Options struct {
	// FS is the machine's file system from its root: names are absolute paths
	// with slashes and without the leading one. Nil is the machine's.
	FS fs.FS
	// OS is a runtime.GOOS value; "" is this machine's. It only decides where
	// managed settings are.
	OS string
	// Root is the configuration root, see Root. "" reads no user layer.
	Root string
	// State is the name of .claude.json, see StateFile. "" reads none.
	State string
	// Cwd is the directory the program was started in. Required.
	Cwd string
	// ProjectRoot is where .claude is looked for; "" is Cwd.
	ProjectRoot string
	// Repo is the root of the git checkout Cwd is in, Main that of the main
	// checkout if it is a linked worktree. "" if there is none.
	Repo, Main string
	// ManagedDir is the directory of managed settings; "" is the system's.
	ManagedDir string
	// Flag is the value of --settings: a file or JSON.
	Flag string
	// Host is JSON that an embedding host gives as managed settings.
	Host string
	// Extra is a further layer of JSON objects above Flag (apply_flag_settings).
	Extra []json.RawMessage
	// Sources are the layers among user, project and local that are read;
	// SourcesSet says that it was given. Managed and Flag always are.
	Sources    []Layer
	SourcesSet bool
	// Interactive says that a person can be asked to trust the project. Until
	// then nothing of it that runs or allows something counts. Without a
	// person, hooks, env and helpers of the project count and allow rules do not.
	Interactive bool
	// Trusted overrides what State says about the project.
	Trusted bool
	// LocalTracked says that the local file is under version control, and so
	// is the project's word, not the person's.
	LocalTracked bool
	// CheckRule says what is wrong with a permission rule; kind is allow, deny
	// or ask. Nil accepts every string.
	CheckRule func(kind, rule string) error
}

// Root returns the configuration root: $CLAUDE_CONFIG_DIR, else ~/.claude,
// and "" if there is no home.
func Root(env func(string) string) string {
	if d := env("CLAUDE_CONFIG_DIR"); d != "" {
		return d
	}
	if h := home(env); h != "" {
		return filepath.Join(h, ".claude")
	}
	return ""
}

// StateFile returns the name of the file of program state: .claude.json in
// $CLAUDE_CONFIG_DIR or else in the home directory.
func StateFile(env func(string) string) string {
	d := env("CLAUDE_CONFIG_DIR")
	if d == "" {
		d = home(env)
	}
	if d == "" {
		return ""
	}
	return filepath.Join(d, ".claude.json")
}

func home(env func(string) string) string {
	if h := env("HOME"); h != "" || runtime.GOOS != "windows" {
		return h
	}
	return env("USERPROFILE")
}

// A Value is the settings of one moment. It never changes; Load makes another.
type Value struct {
	o        Options
	sources  []*source // highest first
	state    *source   // nil: none, or it cannot be read
	merged   *node
	problems []Problem
	trusted  bool
	stamps   map[string]string
}

// Load reads all layers. It never fails: what is wrong is in Problems.
func Load(o Options) *Value {
	if o.FS == nil {
		o.FS = machine{}
	}
	if o.OS == "" {
		o.OS = runtime.GOOS
	}
	if o.ProjectRoot == "" {
		o.ProjectRoot = o.Cwd
	}
	v := &Value{o: o, stamps: map[string]string{}}
	v.read()
	v.trusted = o.Trusted || v.trusts()
	for _, s := range v.sources {
		v.check(s)
	}
	v.gate()
	v.merged = &node{kind: object}
	for _, s := range v.sources {
		v.merged = merge(v.merged, s.root, nil)
	}
	v.strictest()
	slices.SortStableFunc(v.problems, func(a, b Problem) int { return int(b.Severity) - int(a.Severity) })
	return v
}

func (v *Value) problem(sev Severity, o Origin, key, format string, args ...any) {
	v.problems = append(v.problems, Problem{sev, o, key, fmt.Sprintf(format, args...)})
}

// Problems returns what is wrong, the gravest first.
func (v *Value) Problems() []Problem { return slices.Clone(v.problems) }

// Refusal returns the problems because of which a run without a person must
// not start.
func (v *Value) Refusal() []Problem {
	return slices.DeleteFunc(v.Problems(), func(p Problem) bool { return p.Severity < Refuse })
}

// Trusted reports whether the person has accepted this project.
func (v *Value) Trusted() bool { return v.trusted }

// trusts looks the project up in the program state.
func (v *Value) trusts() bool {
	for _, d := range []string{v.o.Cwd, v.o.Repo, v.o.Main} {
		if d == "" {
			continue
		}
		if n := v.state.at("projects", filepath.Clean(d), "hasTrustDialogAccepted"); n != nil && n.kind == boolean && n.text == "true" {
			return true
		}
	}
	return false
}

// A Source is a file, or a text, that settings were looked for in.
type Source struct {
	Layer Layer
	File  string
	Found bool // and readable
}

// Sources lists them, highest first.
func (v *Value) Sources() []Source {
	var l []Source
	for _, s := range v.sources {
		l = append(l, Source{s.layer, s.file, s.root != nil})
	}
	return l
}

// JSON returns the merged settings.
func (v *Value) JSON() json.RawMessage { return v.merged.json() }

// LayerJSON returns what the files of a layer say, merged, as far as it counts.
func (v *Value) LayerJSON(l Layer) json.RawMessage {
	n := &node{kind: object}
	for _, s := range v.sources {
		if s.layer == l {
			n = merge(n, s.root, nil)
		}
	}
	return n.json()
}

// A Definition is one place where a key is set.
type Definition struct {
	Origin
	Value json.RawMessage
	// Counts says that the value, or a part of it, is in effect.
	Counts bool
}

// Path splits a key that is written with dots into names. Names may have dots
// in them: what some source sets is understood so.
func (v *Value) Path(key string) []string {
	for _, s := range v.sources {
		if p := s.whole.find(key); p != nil {
			return p
		}
	}
	return strings.Split(key, ".")
}

// Why returns all places where the key at path is set, the strongest first,
// and the value in effect, nil if none is.
func (v *Value) Why(names ...string) (value json.RawMessage, from []Definition) {
	if n := v.merged.at(names...); n != nil {
		value = n.json()
	}
	for _, s := range v.sources {
		n := s.whole.at(names...)
		if n == nil {
			continue
		}
		d := Definition{Origin: s.origin(n.off), Value: n.json()}
		if use := s.root.at(names...); use != nil && value != nil {
			d.Counts = v.holds(names, s, use)
		}
		from = append(from, d)
	}
	return value, from
}

// holds reports whether what s says about a key is part of what is in effect.
func (v *Value) holds(names []string, s *source, n *node) bool {
	m := v.merged.at(names...)
	if m == nil {
		return false
	}
	if n.kind != object && n.kind != array {
		return m.src == s && m.off == n.off
	}
	return m.has(s)
}

// Changed returns the files whose content is not what it was when v was
// loaded. It looks at their size and time only.
func (v *Value) Changed() []string {
	var l []string
	for f, stamp := range v.stamps {
		if stampOf(v.o.FS, f) != stamp {
			l = append(l, f)
		}
	}
	slices.Sort(l)
	return l
}

// Reload reads the layers again, with the same options.
func (v *Value) Reload() *Value { return Load(v.o) }

// slashed returns the name of an absolute path in an fs.FS of the machine.
func slashed(name string) string {
	name = path.Clean(filepath.ToSlash(name))
	return strings.TrimLeft(name, "/")
}

// parseMode returns the mode that a settings file names. ok is false for words
// no mode.
func parseMode(s string) (agent.Mode, bool) { return agent.ParseMode(s) }
