package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
	"github.com/seed-eb844fcb/cinch/internal/lib/programs"
	"github.com/seed-eb844fcb/cinch/internal/net/dial"
	"github.com/seed-eb844fcb/cinch/internal/net/egress"
	"github.com/seed-eb844fcb/cinch/internal/policy"
	"github.com/seed-eb844fcb/cinch/internal/sandbox"
	"github.com/seed-eb844fcb/cinch/internal/settings"
)

// A confined is the sandbox around shell commands; nil where it is off.
type confined struct {
	box   *sandbox.Box
	proxy *egress.Proxy
	asked atomic.Int64
}

// boxSettings are the settings of one layer that name paths and hosts.
type boxSettings struct {
	Sandbox struct {
		Filesystem struct{ AllowWrite, DenyWrite, DenyRead, AllowRead []string }
		Network    struct{ AllowedDomains, DeniedDomains []string }
		Credential struct {
			Files   []struct{ Path, Mode string }
			EnvVars []struct{ Name, Mode string }
		} `json:"credentials"`
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
	for _, key := range []string{"httpProxyPort", "socksProxyPort", "tlsTerminate"} {
		if _, _, ok := v.Raw("sandbox", "network", key); ok {
			a.warn("sandbox.network.%s has no effect: commands reach the network through cinch's own proxy, which opens no TLS", key)
		}
	}
	c.proxy = egress.New(egress.Options{
		Rules: a.domains, Ask: a.askHost,
		Dial: func(ctx context.Context, address string, check func(netip.AddrPort) error) (net.Conn, error) {
			return a.dialer.Tunnel(ctx, dial.Use{Why: "sandbox", Only: a.o.OnlyHosts, Control: func(_ string, at netip.AddrPort) error { return check(at) }}, address)
		},
		Record: func(x egress.Contact) {
			a.contacted(dial.Contact{At: x.At, Host: x.Target, Why: "sandbox", Sent: x.Sent, Received: x.Received, Err: x.Err})
		},
	})
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
func (a *App) wrapCommand(command string, outside bool) (proc.Wrap, func(string) string) {
	confine, note := a.confineCommand(command, outside)
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
				return s, nil, err
			}
		}
		return s, func() {
			done()
			if snap == nil {
				return
			}
			if _, err := snap.Settle(); err != nil {
				a.note("warning", "what this command changed cannot be taken back: "+err.Error())
			}
		}, nil
	}, note
}

// confineCommand confines one command, unless it is set to run outside.
func (a *App) confineCommand(command string, outside bool) (proc.Wrap, func(string) string) {
	c := a.confined
	if c == nil || outside && a.cfg().value.Bool(true, "sandbox", "allowUnsandboxedCommands") || a.gate.Policy().Excluded(command) {
		return nil, nil
	}
	call := &egress.Call{Name: command}
	var run *sandbox.Run
	wrap := func(s proc.Spec) (proc.Spec, func(), error) {
		run = c.box.Command(a.boxRules(s.Dir), func(l net.Listener, port uint16) {
			if port == sandbox.ProxyPort {
				c.proxy.Serve(l, call)
				return
			}
			c.proxy.Forward(l, port, call)
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
func (a *App) boxRules(dir string) sandbox.Rules {
	v := a.cfg().value
	scratch := filepath.Join(filepath.Dir(a.taskDir()), "tmp")
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		scratch = ""
	}
	r := sandbox.Rules{
		Root: a.o.Cwd, Write: append(a.boxWrites(dir), a.taskDir()), Scratch: scratch,
		OpenFiles:   v.Bool(false, "sandbox", "filesystem", "disabled") && !a.env.on("CLAUDE_CODE_SUBPROCESS_ENV_SCRUB"),
		UnixSockets: v.Bool(false, "sandbox", "network", "allowAllUnixSockets"),
		Environ:     a.confined.proxy.Environ(net.JoinHostPort("127.0.0.1", strconv.Itoa(sandbox.ProxyPort))),
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
		// Masking would need to open TLS; what was to be masked is kept out.
		for _, f := range s.Sandbox.Credential.Files {
			r.DenyRead = append(r.DenyRead, a.boxPaths(l, []string{f.Path}, true)...)
		}
		for _, e := range s.Sandbox.Credential.EnvVars {
			r.Unset = append(r.Unset, e.Name)
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
	_, r.Ports = a.domains().Loopback()
	return r
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

// domains are the hosts that commands may reach, as things stand now.
func (a *App) domains() egress.Rules {
	v := a.cfg().value
	managed := v.Bool(false, "sandbox", "network", "allowManagedDomainsOnly")
	var allow, deny []string
	a.eachLayer(func(l settings.Layer, s *boxSettings) {
		if !managed || l == settings.Managed {
			allow = append(allow, s.Sandbox.Network.AllowedDomains...)
		}
		deny = append(deny, s.Sandbox.Network.DeniedDomains...)
	})
	if a.gate != nil {
		for _, r := range a.gate.Policy().Rules() {
			body, ok := strings.CutPrefix(strings.TrimSuffix(r.Text, ")"), "WebFetch(domain:")
			switch {
			case !ok:
			case r.Verdict == agent.Deny:
				deny = append(deny, body)
			case r.Verdict == agent.Allow && (!managed || r.Layer == policy.LayerManaged):
				allow = append(allow, body)
			}
		}
	}
	rules, problems := egress.NewRules(allow, deny, managed || v.Bool(false, "sandbox", "network", "strictAllowlist"))
	for _, p := range problems {
		if a.gate == nil {
			a.warn("%v; it is ignored", p)
		}
	}
	return rules
}

// askHost asks whether commands may reach a host that no rule speaks of.
func (a *App) askHost(ctx context.Context, t egress.Target) (bool, error) {
	switch a.mode() {
	case agent.ModeDontAsk:
		return false, errors.New("the mode dontAsk answers no to what no rule allows")
	case agent.ModeBypass:
		return true, nil
	}
	input, err := json.Marshal(map[string]any{"host": t.Host, "port": t.Port})
	if err != nil {
		return false, err
	}
	id := fmt.Sprintf("network-%d", a.confined.asked.Add(1))
	answer, err := a.ask(ctx, agent.Question{
		ID: id, Kind: agent.AskPermission, Name: "SandboxNetworkAccess",
		Call: agent.Call{ID: agent.CallID(id), Name: "SandboxNetworkAccess", Input: input},
		Decision: agent.Decision{
			Verdict: agent.Ask, Why: agent.WhyOther, Reason: "a command in the sandbox wants to reach " + t.String(),
			Suggest: []agent.PermissionUpdate{{
				Type: "addRules", Behavior: "allow", Destination: "localSettings",
				Rules: []agent.RuleText{{Tool: "WebFetch", Content: "domain:" + t.Host}},
			}},
		},
	})
	switch {
	case errors.Is(err, agent.ErrNoOne) || err == nil && answer.Decision.NoOne:
		return false, errors.New("no rule allows it, and nobody could be asked; to allow it, add " + strconv.Quote(t.Host) + " to sandbox.network.allowedDomains")
	case err != nil:
		return false, err
	}
	ok := answer.Decision.Verdict == agent.Allow
	if ok && len(answer.Decision.Updates) > 0 {
		if err := a.grant(ctx, answer.Decision.Updates); err != nil {
			a.note("warning", "the answer holds for this session only: "+err.Error())
		}
	}
	return ok, nil
}
