package app

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/programs"
	"github.com/seed-eb844fcb/cinch/internal/lib/shellcmd"
	"github.com/seed-eb844fcb/cinch/internal/net/egress"
	"github.com/seed-eb844fcb/cinch/internal/net/egress/credential"
	"github.com/seed-eb844fcb/cinch/internal/net/egress/reach"
	"github.com/seed-eb844fcb/cinch/internal/policy"
	"github.com/seed-eb844fcb/cinch/internal/policy/report"
	"github.com/seed-eb844fcb/cinch/internal/sandbox"
	"github.com/seed-eb844fcb/cinch/internal/ui/frame"
)

// A Reach is a question about the way to a host.
type Reach struct {
	// What is a host, HOST:PORT or a URL, or else a command line.
	What string
	// Fetch asks about WebFetch in place of commands.
	Fetch bool
	// NoProbe connects to nobody.
	NoProbe bool
}

// Reachable answers q for a session that would begin now: a report for each
// host. unsure says what cannot be told.
func Reachable(ctx context.Context, o Options, q Reach) (reports []reach.Report, unsure string, err error) {
	a, err := prepare(ctx, o)
	if err != nil {
		return nil, "", err
	}
	defer a.Close()
	a.id = frame.UUID()
	a.onClose(func() { _ = os.RemoveAll(filepath.Dir(a.taskDir())) })
	for _, step := range []func(context.Context) error{a.connect, a.judge} {
		if err := step(ctx); err != nil {
			return nil, "", err
		}
	}
	t, scheme, err := targetOf(q.What)
	if err == nil {
		r, err := a.reach(ctx, q, t, scheme, "")
		return []reach.Report{r}, "", err
	}
	if q.Fetch || !isCommand(q.What) && strings.ContainsAny(q.What, ".:/") {
		return nil, "", err
	}
	s := shellcmd.Parse(q.What, shellcmd.Env{Dir: a.cwd(), Home: a.home})
	hosts, unsure := programs.Hosts(s, programs.HostEnv{Remote: remoteURL, Getenv: a.env.get})
	for _, h := range hosts {
		t, err := egress.NewTarget(h.Name, h.Port)
		if err != nil {
			unsure = fmt.Sprintf("%s is no host: %v", h.Name, err)
			continue
		}
		r, err := a.reach(ctx, q, t, h.Scheme, q.What)
		if err != nil {
			return reports, unsure, err
		}
		r.By += " (" + h.Why + ")"
		reports = append(reports, r)
	}
	return reports, unsure, nil
}

// isCommand tells a command from a host that cannot be read.
func isCommand(s string) bool { return strings.ContainsAny(s, " \t\n;|&<>$()'\"`") }

// targetOf reads HOST, HOST:PORT or a URL. A single word without a dot is a
// command, unless it is localhost or has a port.
func targetOf(s string) (t egress.Target, scheme string, err error) {
	if isCommand(s) {
		return t, "", errors.New("it is a command")
	}
	host, port := s, ""
	if u, err := url.Parse(s); err == nil && u.Host != "" {
		scheme, host, port = strings.ToLower(u.Scheme), u.Hostname(), u.Port()
	} else if h, p, ok := strings.Cut(s, ":"); ok && !strings.Contains(p, ":") {
		host, port = h, p
	} else if rest, ok := strings.CutPrefix(s, "["); ok {
		host, port, _ = strings.Cut(rest, "]")
		port = strings.TrimPrefix(port, ":")
	}
	if scheme == "" && port == "" && host != "localhost" && !strings.ContainsAny(host, ".:") {
		return t, "", fmt.Errorf("%q is taken for a command; write %s:443 for a host of that name", s, s)
	}
	schemes := map[string]string{"": "443", "https": "443", "http": "80", "ssh": "22", "wss": "443", "ws": "80", "git": "9418"}
	if port == "" {
		if port = schemes[scheme]; port == "" {
			return t, "", fmt.Errorf("the port of %s is not known: write it as %s://HOST:PORT", scheme, scheme)
		}
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return t, "", fmt.Errorf("%q is no port", port)
	}
	switch {
	case scheme == "wss", scheme == "" && n == 443:
		scheme = "https"
	case scheme == "ws", scheme == "" && n == 80:
		scheme = "http"
	case scheme == "" && n == 22:
		scheme = "ssh"
	case scheme == "":
		scheme = "tcp"
	}
	t, err = egress.NewTarget(host, uint16(n))
	return t, scheme, err
}

// remoteURL is where a git remote of the repository around dir is; "" if that
// cannot be told. The customary remote is origin, or the only one.
func remoteURL(dir, name string) string {
	root := gitRoot(dir)
	if root == "" {
		return ""
	}
	config := filepath.Join(root, ".git", "config")
	if main := mainCheckout(root); main != "" {
		config = filepath.Join(main, ".git", "config")
	}
	data, err := readSmall(config)
	if err != nil {
		return ""
	}
	urls, section := map[string]string{}, ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section, _ = strings.CutPrefix(line, `[remote "`)
			section, _, _ = strings.Cut(section, `"`)
			continue
		}
		if k, v, ok := strings.Cut(line, "="); ok && strings.TrimSpace(k) == "url" && section != "" && urls[section] == "" {
			urls[section] = strings.TrimSpace(v)
		}
	}
	switch {
	case name != "":
		return urls[name]
	case urls["origin"] == "" && len(urls) == 1:
		for _, u := range urls {
			return u
		}
	}
	return urls["origin"]
}

// reach answers for one host. command is "" if the question is about a host.
func (a *App) reach(ctx context.Context, r Reach, t egress.Target, scheme, command string) (reach.Report, error) {
	q := reach.Question{Target: t, Scheme: scheme, Dialer: a.dialer, Probe: !r.NoProbe}
	if r.Fetch {
		q.By, q.Check = "WebFetch", webAddress
		u := scheme + "://" + t.String() + "/"
		c, err := report.Call(a.gate.Policy(), "@WebFetch "+u)
		if err != nil {
			return reach.Report{}, err
		}
		q.Before = []reach.Layer{a.permitted(c), {Name: reach.Sandbox, Verdict: reach.None, Why: "WebFetch runs in cinch itself"}}
		return reach.Evaluate(ctx, q), nil
	}
	q.By = "a command"
	permission := reach.Layer{Name: reach.Permission, Verdict: reach.None, Why: "that is a question about the command; name it to have it answered"}
	if command != "" {
		q.By = "the command"
		c, err := report.Call(a.gate.Policy(), strconv.Quote(command))
		if err != nil {
			return reach.Report{}, err
		}
		permission = a.permitted(c)
	}
	box := reach.Layer{Name: reach.Sandbox, Verdict: reach.None}
	c := a.confined
	switch {
	case c == nil && a.cfg().value.Bool(false, "sandbox", "enabled"):
		box.Why = "it does not work here, so commands run outside and no domain rule holds ('cinch sandbox check' says why)"
	case c == nil:
		box.Why = "it is off (sandbox.enabled), so commands run outside and no domain rule holds"
	case command != "" && a.gate.Policy().Excluded(command):
		box.Why = "sandbox.excludedCommands has this one run outside, where no domain rule holds"
	default:
		box.Verdict, box.Why = reach.Yes, "it runs inside ("+string(c.box.Level())+"), where the network is reached through the proxy that HTTPS_PROXY and its kin name"
		q.Judged = true
	}
	q.Before = []reach.Layer{permission, box}
	q.Loose = !q.Judged
	if q.Judged {
		q.Rules = a.domains()
		q.Unknown, q.UnknownWhy = a.unknownHost()
		if other := c.passed[c.inside.Web]; c.inside.Web != 0 && (scheme == "http" || scheme == "https" || scheme == "ssh") {
			q.Other = other
		}
		if p, err := a.credentialPlan(c); err == nil {
			q.Opened = scheme == "https" && c.ca != nil && p.Set.Swap(t.Host, t.Port, true) != nil
		}
		after, err := a.visible(c, t, scheme, command)
		if err != nil {
			return reach.Report{}, err
		}
		q.After = after
	}
	return reach.Evaluate(ctx, q), nil
}

// permitted is the layer of permission rules.
func (a *App) permitted(c agent.Call) reach.Layer {
	j := a.gate.Policy().Judge(c)
	l := reach.Layer{Name: reach.Permission, Why: "by " + j.By}
	switch {
	case j.Rule != nil:
		l.Why = fmt.Sprintf("the %s rule %s (%s)", j.Rule.Verdict, j.Rule.Text, j.Rule.Where())
	case j.Reason != "":
		l.Why = j.Reason
	}
	switch j.Verdict {
	case agent.Allow:
		l.Verdict = reach.Yes
		return l
	case agent.Deny:
		l.Verdict = reach.No
		if j.Rule != nil && j.Step == policy.StepDeny {
			l.Change = "take the deny rule " + j.Rule.Text + " out (" + j.Rule.Where() + ")"
			return l
		}
	default:
		if l.Verdict = reach.Ask; a.o.NoPrompts || a.o.Print {
			l.Verdict, l.Why = reach.No, l.Why+"; nobody could be asked"
		}
	}
	var rules []string
	for _, u := range j.Suggest {
		for _, r := range u.Rules {
			rules = append(rules, r.String())
		}
	}
	if len(rules) > 0 {
		l.Change = "allow " + strings.Join(rules, ", ")
	}
	return l
}

// unknownHost is what becomes of a host that no domain rule speaks of; askHost
// does it.
func (a *App) unknownHost() (reach.Verdict, string) {
	switch m := a.mode(); {
	case m == agent.ModeDontAsk:
		return reach.No, "the mode dontAsk answers no"
	case m == agent.ModeBypass:
		return reach.Yes, "the mode bypassPermissions lets it pass"
	case a.o.NoPrompts || a.o.Print:
		return reach.No, "nobody could be asked"
	}
	return reach.Ask, "somebody is asked, and in -p without a host the answer is no"
}

// visible is the layer of credentials: of those that the command names or its
// programs look for, and, where the question is about a host, of those that are for it.
func (a *App) visible(c *confined, t egress.Target, scheme, command string) (reach.Layer, error) {
	p, err := a.credentialPlan(c)
	if err != nil {
		return reach.Layer{}, err
	}
	secure := scheme != "http"
	names := p.Set.Names(t.Host, t.Port)
	var list []reach.Credential
	if command == "" {
		for _, name := range names {
			list = append(list, reach.Credential{Name: name, Masked: true, For: true})
		}
	} else if list, err = a.usedBy(c, p, names, command); err != nil {
		return reach.Layer{}, err
	}
	plaintext := !secure && p.Set.Swap(t.Host, t.Port, false) != nil
	return reach.Visibility(list, t, scheme, c.ca != nil, plaintext), nil
}

// usedBy are the credentials of a command.
func (a *App) usedBy(c *confined, p *credential.Plan, names []string, command string) ([]reach.Credential, error) {
	s := shellcmd.Parse(command, shellcmd.Env{Dir: a.cwd(), Home: a.home})
	files, variables := programs.Credentials(s, a.home)
	spoken := slices.Clone(p.Unset)
	stand := map[string]string{}
	for _, kv := range p.Environ {
		name, value, _ := strings.Cut(kv, "=")
		spoken, stand[name] = append(spoken, name), value
	}
	var out []reach.Credential
	for _, name := range spoken {
		if a.env.get(name) == "" || !slices.Contains(variables, name) && !programs.Mentions(command, name) {
			continue
		}
		x := reach.Credential{Name: "$" + name, Hidden: slices.Contains(p.Unset, name), By: "sandbox.credentials"}
		if !x.Hidden {
			x.Masked = true
			x.For = slices.ContainsFunc(names, func(n string) bool { return strings.Contains(stand[name], p.Set.StandIn(n)) })
		}
		out = append(out, x)
	}
	for _, cmd := range s.Commands {
		for _, path := range programs.Paths(s, cmd) {
			if path.Access == programs.Reads && path.Pattern == "" {
				files = append(files, path.Abs...)
			}
		}
	}
	rules, err := a.boxRules(a.cwd())
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	for _, f := range slices.Compact(files) {
		if fi, err := os.Stat(f); err != nil || !fi.Mode().IsRegular() {
			continue
		}
		x := reach.Credential{Name: f, File: true, By: "sandbox.filesystem.denyRead, sandbox.credentials or a Read rule"}
		switch c.box.View(rules, f) {
		case sandbox.Hidden:
			x.Hidden = true
		case sandbox.Other:
			x.Masked = true
			x.For = slices.ContainsFunc(names, func(n string) bool { return n == f || strings.HasPrefix(n, f+" (") })
		case sandbox.AsIs:
		}
		out = append(out, x)
	}
	return out, nil
}
