package app

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/checkpoint"
	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
	"github.com/seed-eb844fcb/cinch/internal/lib/programs"
	"github.com/seed-eb844fcb/cinch/internal/net/egress"
	"github.com/seed-eb844fcb/cinch/internal/net/egress/authority"
	"github.com/seed-eb844fcb/cinch/internal/net/egress/credential"
	"github.com/seed-eb844fcb/cinch/internal/net/egress/mask"
	"github.com/seed-eb844fcb/cinch/internal/policy"
	"github.com/seed-eb844fcb/cinch/internal/sandbox"
	"github.com/seed-eb844fcb/cinch/internal/settings"
)

// A confined is the sandbox around shell commands; nil where it is off.
type confined struct {
	box      *sandbox.Box
	proxy    *egress.Proxy
	inside   egress.Inside
	passed   map[uint16]uint16    // ports inside that lead to proxies of others
	ssh      *sandbox.Shown       // the ssh configuration, or nil
	ca       *authority.Authority // nil: no TLS is opened
	key      string               // file of a key of the user's, or ""
	trustDir string
	asked    atomic.Int64

	mu     sync.Mutex
	plan   *credential.Plan
	of     *config // the settings that plan was made of
	trust  string  // the bundle that commands trust, or ""
	masked atomic.Pointer[mask.Set]
}

// boxSettings are the settings of one layer that name paths and hosts.
type boxSettings struct {
	Sandbox struct {
		Filesystem struct{ AllowWrite, DenyWrite, DenyRead, AllowRead []string }
		Network    struct{ AllowedDomains, DeniedDomains []string }
		Credential struct{ Files, EnvVars []credential.Entry } `json:"credentials"`
	}
}

// openSandbox finds out what confinement there is, if the settings want one.
func (a *App) openSandbox(ctx context.Context) error {
	v := a.cfg().value
	if !v.Bool(false, "sandbox", "enabled") {
		return nil
	}
	bwrap, from, _ := v.String("sandbox", "bwrapPath")
	if from.Layer != settings.Managed {
		bwrap = ""
	}
	c := &confined{box: sandbox.Open(ctx, sandbox.Options{
		Bwrap: bwrap, Path: a.env.get("PATH"), Home: a.home, Config: a.root, State: settings.StateFile(a.env.get),
		Journal:    filepath.Join(a.root, "cinch", "sandbox"),
		NestedProc: v.Bool(false, "sandbox", "enableWeakerNestedSandbox"),
	})}
	s := c.box.Status()
	for _, m := range s.Moved {
		a.warn("%s", m)
	}
	if s.Level != sandbox.Full && s.Level != sandbox.Seatbelt {
		if v.Bool(false, "sandbox", "failIfUnavailable") {
			return fmt.Errorf("the settings demand a sandbox (sandbox.failIfUnavailable), and there is none: %s\nhint: %s", s.Blocker, s.Fix)
		}
		if s.Level == sandbox.None {
			a.warn("commands run WITHOUT a sandbox: %s; to mend it: %s", s.Blocker, s.Fix)
			return nil
		}
		a.warn("commands run in a weaker sandbox, and still need approval (%s): %s; to mend it: %s", s.Weaker, s.Blocker, s.Fix)
	}
	if err := a.openProxy(c); err != nil {
		return err
	}
	a.confined = c
	a.domains() // so that rules that cannot be read are told of now
	return nil
}

// boxPolicy is what the permission rules know of the sandbox.
func (a *App) boxPolicy() policy.Sandbox {
	if a.confined == nil {
		return policy.Sandbox{}
	}
	v := a.cfg().value
	level := a.confined.box.Level()
	return policy.Sandbox{
		Enabled: true,
		AutoAllow: v.Bool(true, "sandbox", "autoAllowBashIfSandboxed") && (level == sandbox.Full || level == sandbox.Seatbelt) &&
			!a.env.on("CLAUDE_CODE_SUBPROCESS_ENV_SCRUB"),
		Unsandboxed: v.Bool(true, "sandbox", "allowUnsandboxedCommands"),
		Excluded:    v.Strings("sandbox", "excludedCommands"),
	}
}

// wrapCommand keeps what the workspace was before a command that may write,
// and confines the command where it is to be confined.
func (a *App) wrapCommand(ctx context.Context, command string, outside bool) (proc.Wrap, func(string) string) {
	confine, note := a.confineCommand(ctx, command, outside)
	if a.points == nil || programs.ReadOnly(command, a.cwd()) {
		return confine, note
	}
	return func(s proc.Spec) (proc.Spec, func(), error) {
		snap, err := a.points.Snap(a.boxWrites(s.Dir))
		if err != nil {
			a.note("warning", "what this command changes cannot be taken back: "+err.Error())
		}
		done := func() {}
		if confine != nil {
			if s, done, err = confine(s); err != nil {
				a.settle(snap)
				return s, nil, err
			}
		}
		return s, func() {
			done()
			a.settle(snap)
		}, nil
	}, note
}

// settle notes what a command has changed; snap may be nil.
func (a *App) settle(snap *checkpoint.Snapshot) {
	if snap == nil {
		return
	}
	for _, t := range snap.Tell {
		a.note("warning", t)
	}
	settled, err := snap.Settle()
	if err != nil {
		a.note("warning", "what this command changed cannot be taken back: "+err.Error())
	}
	for _, l := range settled.Lost {
		a.note("warning", "this command changed "+l.Path+", which cannot be taken back: "+l.Why)
	}
}

// confineCommand confines one command, unless it is set to run outside.
func (a *App) confineCommand(ctx context.Context, command string, outside bool) (proc.Wrap, func(string) string) {
	c := a.confined
	if c == nil || outside && a.cfg().value.Bool(true, "sandbox", "allowUnsandboxedCommands") || a.gate.Policy().Excluded(command) {
		return nil, nil
	}
	call := &egress.Call{ID: agent.CallOf(ctx), Command: command}
	var run *sandbox.Run
	wrap := func(s proc.Spec) (proc.Spec, func(), error) {
		rules, err := a.boxRules(s.Dir)
		if err != nil {
			return s, nil, err
		}
		run = c.box.Command(rules, func(l net.Listener, port uint16) {
			switch to, passed := c.passed[port]; {
			case port == sandbox.ProxyPort:
				c.proxy.Serve(l, call)
			case passed:
				c.proxy.Pass(l, to, call)
			default:
				c.proxy.Forward(l, port, call)
			}
		})
		return run.Wrap(s)
	}
	return wrap, func(output string) string {
		var parts []string
		if n := call.Note(); n != "" {
			parts = append(parts, n)
		}
		if run != nil {
			parts = append(parts, run.Removed()...)
		}
		if strings.Contains(output, "Read-only file system") || strings.Contains(output, "Operation not permitted") || strings.Contains(output, "Permission denied") || strings.Contains(output, "EROFS") {
			parts = append(parts, "The sandbox may have refused this: only "+strings.Join(a.boxWrites(""), ", ")+" can be written, less what is protected there.")
		}
		if len(parts) > 0 && a.boxPolicy().Unsandboxed {
			parts = append(parts, "If the command cannot do without, it can be run again with dangerouslyDisableSandbox; the user will be asked.")
		}
		return strings.Join(parts, "\n")
	}
}

// boxWrites are the directories commands may write to.
func (a *App) boxWrites(dir string) []string {
	out := append([]string{a.o.Cwd}, a.directories()...)
	a.mu.Lock()
	if slices.Contains(slices.Collect(maps.Values(a.agents)), dir) {
		out = append(out, dir) // the worktree of a sub-agent
	}
	a.mu.Unlock()
	slices.Sort(out)
	return slices.Compact(out)
}

// boxRules are the rules for a command that starts in dir, as the settings
// and the permission rules stand now.
func (a *App) boxRules(dir string) (sandbox.Rules, error) {
	v := a.cfg().value
	scratch := filepath.Join(filepath.Dir(a.taskDir()), "tmp")
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		scratch = ""
	}
	r := sandbox.Rules{
		Root: a.o.Cwd, Write: append(a.boxWrites(dir), a.taskDir()), Scratch: scratch,
		OpenFiles:   v.Bool(false, "sandbox", "filesystem", "disabled") && !a.env.on("CLAUDE_CODE_SUBPROCESS_ENV_SCRUB"),
		UnixSockets: v.Bool(false, "sandbox", "network", "allowAllUnixSockets"),
	}
	if err := a.addEgress(&r); err != nil {
		return r, err
	}
	managedReads := v.Bool(false, "sandbox", "filesystem", "allowManagedReadPathsOnly")
	a.eachLayer(func(l settings.Layer, s *boxSettings) {
		fs := s.Sandbox.Filesystem
		r.Write = append(r.Write, a.boxPaths(l, fs.AllowWrite, false)...)
		r.DenyWrite = append(r.DenyWrite, a.boxPaths(l, fs.DenyWrite, false)...)
		r.DenyRead = append(r.DenyRead, a.boxPaths(l, fs.DenyRead, true)...)
		if !managedReads || l == settings.Managed {
			r.AllowRead = append(r.AllowRead, a.boxPaths(l, fs.AllowRead, true)...)
		}
	})
	for _, rule := range a.gate.Policy().Rules() {
		tool, body, ok := strings.Cut(strings.TrimSuffix(rule.Text, ")"), "(")
		if !ok {
			continue
		}
		path := a.rulePath(rule, body)
		plain := !strings.ContainsAny(path, "*?[")
		switch {
		case path == "":
		case tool == "Edit" && rule.Verdict == agent.Allow && plain:
			r.Write = append(r.Write, path)
		case tool == "Edit" && rule.Verdict == agent.Deny && plain:
			r.DenyWrite = append(r.DenyWrite, path)
		case tool == "Read" && rule.Verdict == agent.Deny:
			r.DenyRead = append(r.DenyRead, path)
		}
	}
	_, ports := a.domains().Loopback()
	r.Ports = append(r.Ports, ports...)
	slices.Sort(r.Ports)
	r.Ports = slices.DeleteFunc(slices.Compact(r.Ports), func(p uint16) bool { return p == sandbox.ProxyPort })
	return r, nil
}

// eachLayer shows f what each layer of the settings says about the sandbox.
func (a *App) eachLayer(f func(settings.Layer, *boxSettings)) {
	for _, l := range []settings.Layer{settings.User, settings.Project, settings.Local, settings.Flag, settings.Managed} {
		var s boxSettings
		_ = json.Unmarshal(a.cfg().value.LayerJSON(l), &s) // one member of a wrong type leaves the others
		f(l, &s)
	}
}

// boxPaths makes the paths of a layer's setting absolute. Patterns are kept
// only where they can be expanded.
func (a *App) boxPaths(l settings.Layer, list []string, patterns bool) []string {
	base := a.o.Cwd
	if l == settings.User {
		base = a.root
	}
	var out []string
	for _, p := range list {
		p = strings.TrimSuffix(p, "/**")
		if p == "" || !patterns && strings.ContainsAny(p, "*?[") {
			continue
		}
		switch rest, home := strings.CutPrefix(p, "~/"); {
		case home:
			p = filepath.Join(a.home, rest)
		case p == "~":
			p = a.home
		case !filepath.IsAbs(p):
			p = filepath.Join(base, p)
		}
		out = append(out, filepath.Clean(p))
	}
	return out
}

// rulePath is the absolute path, or pattern, of a rule about files.
func (a *App) rulePath(r policy.Rule, body string) string {
	body = strings.TrimSuffix(body, "/**")
	switch {
	case body == "" || body == "*" || body == "**":
		return ""
	case strings.HasPrefix(body, "//"):
		return filepath.Clean(body[1:])
	case strings.HasPrefix(body, "~/"):
		return filepath.Join(a.home, body[2:])
	case strings.HasPrefix(body, "/"):
		return filepath.Join(or(r.Base, a.o.Cwd), body)
	case strings.HasPrefix(body, "./"):
		return filepath.Join(a.cwd(), body)
	case !strings.Contains(body, "/"):
		return filepath.Join(a.cwd(), "**", body) // a name, at any depth
	}
	return filepath.Join(a.cwd(), body)
}
