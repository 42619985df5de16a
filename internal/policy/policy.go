// Package policy decides whether a call may run, from rules, a permission
// mode and what the call would touch.
//
// It owns the rule grammar, the order in which rules, guards, protected paths
// and modes are asked, and the explanation of every verdict. It is a pure
// function of its inputs: no file, process, clock or prompt. What needs the
// outside world (where a link leads, what a pattern matches) is handed in as
// functions. It must not know tools, front ends or settings files beyond the
// names that rules use.
//
// The order is: deny rules of every source; ask rules of every source; guards
// that always ask; protected paths; allow rules; the mode. A deny anywhere
// beats an allow anywhere. What cannot be understood only lowers trust.
//
// # Rules
//
//	Tool                    every call of the tool
//	Tool(*)                 the same
//	mcp__server             every tool of an MCP server; globs too: mcp__server__get_*
//	Bash(npm run build)     this command; * stands for any text, a last " *" or ":*"
//	                        for nothing or a blank and any text; \* is a star
//	Read(p), Edit(p)        gitignore patterns: //abs, ~/home, /beside the source, relative
//	WebFetch(domain:host)   *.host is any subdomain
//	Agent(name), Skill(name), Skill(name *)
//	Tool(param:value)       deny and ask only: a top-level scalar of the input
package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// A Layer is where a rule comes from, the strongest first.
type Layer string

const (
	LayerManaged Layer = "managed"
	LayerCLI     Layer = "cli"
	LayerFlag    Layer = "flag" // a --settings file
	LayerLocal   Layer = "local"
	LayerProject Layer = "project"
	LayerUser    Layer = "user"
	LayerSession Layer = "session"
)

// layerOf maps the destination of a PermissionUpdate to a layer.
func layerOf(destination string) Layer {
	switch destination {
	case "userSettings":
		return LayerUser
	case "projectSettings":
		return LayerProject
	case "localSettings":
		return LayerLocal
	case "cliArg":
		return LayerCLI
	}
	return LayerSession
}

// A Config is all that a Policy depends on. Paths are absolute and use
// slashes; on Windows they have the form /c/dir.
type Config struct {
	Mode  agent.Mode
	Rules []Rule // of every layer; within a step the first that matches decides

	Cwd  string // where the session started; relative rules are anchored here
	Home string
	// Dirs are the additional working directories.
	Dirs []string
	// ShellDir is where the next shell command starts; "" is Cwd.
	ShellDir string

	// ManagedOnly leaves only rules of LayerManaged in force.
	ManagedOnly bool
	// Untrusted workspaces do not get the allow rules of LayerProject.
	Untrusted bool
	// NoBypass and NoAuto forbid these modes.
	NoBypass, NoAuto bool
	// CanBypass says that the mode may be switched to bypassPermissions; it
	// is implied if Mode is that mode.
	CanBypass bool
	// ClassifyAll leaves every shell command that is not read-only to the
	// classifier in auto mode, whatever allow rules say.
	ClassifyAll bool
	// Sandbox describes the sandbox of shell commands. The zero value is none.
	Sandbox Sandbox

	// Tools are the known tool names, for warnings about rules that name no tool.
	Tools []string

	// Resolve returns where path, absolute and possibly with "..", leads once
	// the system has followed links: every target on the way, nil if there is
	// none. Nil: paths are taken as they are written.
	Resolve func(path string) []string
	// Expand returns the existing paths that a shell pattern matches. Nil: a
	// pattern may match anything.
	Expand func(pattern string) []string
	// Lookup returns the file that a program name runs, "" if unknown.
	Lookup func(program string) string
	// IsRepo reports whether dir is the root of a repository.
	IsRepo func(dir string) bool
	// Exported reports whether shell commands start with this variable exported.
	Exported func(name string) bool
	// Preapproved reports whether WebFetch needs no question for host.
	Preapproved func(host string) bool
	// FoldCase says that the file system does not tell A from a.
	FoldCase bool
}

// A Sandbox is what policy knows of the sandbox around shell commands.
type Sandbox struct {
	Enabled bool
	// AutoAllow approves commands that will run inside it.
	AutoAllow bool
	// Unsandboxed lets the input parameter dangerouslyDisableSandbox have effect.
	Unsandboxed bool
	// Excluded are bodies of Bash rules; what they match runs outside.
	Excluded []string
}

// A Policy is an immutable set of rules and a mode. It is safe for
// concurrent use; changing it makes a new one.
type Policy struct {
	cfg      Config
	deny     []*rule
	ask      []*rule
	allow    []*rule
	excluded []*rule
	work     []string // every spelling of the working directories
	home     []string
}

// New compiles c. It never fails: rules without effect are left out and
// reported as problems.
func New(c Config) (*Policy, []Problem) {
	if c.Mode == "" {
		c.Mode = agent.ModeDefault
	}
	for _, dir := range [...]*string{&c.Cwd, &c.Home} {
		if *dir != "" {
			*dir = path.Clean(*dir)
		}
	}
	c.CanBypass = c.CanBypass || c.Mode == agent.ModeBypass
	p := &Policy{cfg: c}
	if c.NoBypass && c.Mode == agent.ModeBypass || c.NoAuto && c.Mode == agent.ModeAuto {
		p.cfg.Mode = agent.ModeDefault
	}
	p.setDirs(c.Dirs)
	var problems []Problem
	for i := range c.Rules {
		r := c.Rules[i]
		if c.ManagedOnly && r.Layer != LayerManaged {
			continue
		}
		if c.Untrusted && r.Layer == LayerProject && r.Verdict == agent.Allow {
			problems = append(problems, Problem{Rule: r, Text: "not used: this workspace has not been trusted"})
			continue
		}
		compiled, why := p.compile(r)
		if why != "" {
			problems = append(problems, Problem{Rule: r, Text: why})
		}
		if compiled == nil {
			continue
		}
		switch r.Verdict {
		case agent.Deny:
			p.deny = append(p.deny, compiled)
		case agent.Allow:
			p.allow = append(p.allow, compiled)
		default:
			p.ask = append(p.ask, compiled)
		}
	}
	for _, body := range c.Sandbox.Excluded {
		r := Rule{Verdict: agent.Allow, Layer: LayerSession, Text: "Bash(" + body + ")"}
		if compiled, _ := p.compile(r); compiled != nil {
			p.excluded = append(p.excluded, compiled)
		}
	}
	return p, append(problems, p.shadowed()...)
}

func (p *Policy) setDirs(dirs []string) {
	p.cfg.Dirs = dirs
	p.work = nil
	for _, d := range append([]string{p.cfg.Cwd}, dirs...) {
		if d != "" {
			p.work = append(p.work, p.spellings(d)...)
		}
	}
	p.home = nil
	if p.cfg.Home != "" {
		p.home = p.spellings(p.cfg.Home)
	}
}

// spellings returns path, clean, and where it leads.
func (p *Policy) spellings(abs string) []string {
	out := []string{path.Clean(abs)}
	if p.cfg.Resolve != nil {
		for _, t := range p.cfg.Resolve(abs) {
			if t = path.Clean(t); !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	return out
}

// Mode is the permission mode.
func (p *Policy) Mode() agent.Mode { return p.cfg.Mode }

// Dirs are the working directories, the first being where the session started.
func (p *Policy) Dirs() []string { return append([]string{p.cfg.Cwd}, p.cfg.Dirs...) }

// Rules are the rules as they were given, whether or not they have effect.
func (p *Policy) Rules() []Rule { return slices.Clone(p.cfg.Rules) }

// WithMode returns a policy in mode m. The error says why m is not to be had.
func (p *Policy) WithMode(m agent.Mode) (*Policy, error) {
	switch {
	case m == agent.ModeBypass && p.cfg.NoBypass:
		return p, fmt.Errorf("the mode %s is disabled by policy", m)
	case m == agent.ModeBypass && !p.cfg.CanBypass:
		return p, fmt.Errorf("the mode %s was not enabled when the session started", m)
	case m == agent.ModeAuto && p.cfg.NoAuto:
		return p, fmt.Errorf("the mode %s is disabled by policy", m)
	}
	if _, ok := agent.ParseMode(string(m)); !ok {
		return p, fmt.Errorf("there is no permission mode %q", m)
	}
	q := *p
	q.cfg.Mode = m
	return &q, nil
}

// WithShellDir returns a policy for which shell commands start in dir.
func (p *Policy) WithShellDir(dir string) *Policy {
	if dir == p.cfg.ShellDir {
		return p
	}
	q := *p
	q.cfg.ShellDir = dir
	return &q
}

// With returns a policy that updates have changed. Updates that policy does
// not permit or that mean nothing are left out.
func (p *Policy) With(updates []agent.PermissionUpdate) *Policy {
	c := p.cfg
	c.Rules = slices.Clone(c.Rules)
	c.Dirs = slices.Clone(c.Dirs)
	mode := c.Mode
	for _, u := range updates {
		switch u.Type {
		case "addRules", "replaceRules", "removeRules":
			c.Rules = updated(c.Rules, u, p.cfg.Cwd)
		case "setMode":
			if m, ok := agent.ParseMode(string(u.Mode)); ok {
				mode = m
			}
		case "addDirectories":
			for _, d := range u.Directories {
				if d = p.absolute(d); d != "" && !slices.Contains(c.Dirs, d) {
					c.Dirs = append(c.Dirs, d)
				}
			}
		case "removeDirectories":
			c.Dirs = slices.DeleteFunc(c.Dirs, func(d string) bool {
				return slices.ContainsFunc(u.Directories, func(x string) bool { return p.absolute(x) == d })
			})
		}
	}
	q, _ := New(c)
	if m, err := q.WithMode(mode); err == nil {
		return m
	}
	return q
}

func (p *Policy) absolute(dir string) string {
	switch {
	case dir == "":
		return ""
	case strings.HasPrefix(dir, "~/") && p.cfg.Home != "":
		return path.Join(p.cfg.Home, dir[2:])
	case path.IsAbs(dir):
		return path.Clean(dir)
	}
	return path.Join(p.cfg.Cwd, dir)
}

// updated applies one change of rules.
func updated(rules []Rule, u agent.PermissionUpdate, cwd string) []Rule {
	layer := layerOf(u.Destination)
	verdict := agent.Ask
	switch u.Behavior {
	case "allow":
		verdict = agent.Allow
	case "deny":
		verdict = agent.Deny
	case "ask":
	default:
		return rules
	}
	same := func(r Rule) bool { return r.Layer == layer && r.Verdict == verdict }
	switch u.Type {
	case "replaceRules":
		rules = slices.DeleteFunc(rules, same)
	case "removeRules":
		return slices.DeleteFunc(rules, func(r Rule) bool {
			return same(r) && slices.ContainsFunc(u.Rules, func(t agent.RuleText) bool { return t.String() == r.Text })
		})
	}
	for _, t := range u.Rules {
		r := Rule{Verdict: verdict, Layer: layer, Text: t.String(), Base: cwd}
		if !slices.ContainsFunc(rules, func(o Rule) bool { return same(o) && o.Text == r.Text }) {
			rules = append(rules, r)
		}
	}
	return rules
}

// Removed returns those of tools that a rule denies as a whole: the model
// does not get to see them.
func (p *Policy) Removed(tools []string) []string {
	var out []string
	for _, t := range tools {
		if p.named(p.deny, t) != nil {
			out = append(out, t)
		}
	}
	return out
}

// Decide says whether c may run. Ask means that a person, or a classifier in
// auto mode, has to say; Reason, Warn and Suggest are then filled.
func (p *Policy) Decide(c agent.Call) agent.Decision { return p.Judge(c).Decision }
