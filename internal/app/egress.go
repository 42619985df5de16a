package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/net/egress"
	"github.com/seed-eb844fcb/cinch/internal/net/egress/authority"
	"github.com/seed-eb844fcb/cinch/internal/net/egress/credential"
	"github.com/seed-eb844fcb/cinch/internal/policy"
	"github.com/seed-eb844fcb/cinch/internal/sandbox"
	"github.com/seed-eb844fcb/cinch/internal/settings"
)

// openProxy makes the way out of the sandbox, with the credentials that are
// put in on it.
func (a *App) openProxy(c *confined) error {
	c.inside = egress.Inside{Port: sandbox.ProxyPort, Env: a.env.get}
	if self, err := os.Executable(); err == nil {
		c.inside.Program = self
	}
	a.otherProxies(c)
	o := egress.Options{Rules: a.domains, Ask: a.askHost, Ledger: a.ledger, Secrets: c.masked.Load}.Over(a.dialer)
	var err error
	if c.ca, err = a.authority(c); err != nil {
		return err
	}
	if o.Authority = c.ca; c.ca != nil {
		c.trustDir = filepath.Join(filepath.Dir(a.taskDir()), "trust") // commands read it and cannot change it
		a.onClose(func() { _ = os.RemoveAll(c.trustDir) })
	}
	if _, err := a.credentialPlan(c); err != nil {
		return err
	}
	if config, err := os.ReadFile(sshConfig); err == nil && c.box.Level() == sandbox.Full && c.inside.Program != "" {
		c.ssh = &sandbox.Shown{Path: sshConfig, Data: egress.SSHConfig(c.inside.Program, config)}
	}
	c.proxy = egress.New(o)
	return nil
}

// credentialPlan is what becomes of credentials, as the settings and the files
// stand now.
func (a *App) credentialPlan(c *confined) (*credential.Plan, error) {
	p, tell, err := a.planCredentials(c)
	for _, text := range tell {
		a.warn("%s", text)
	}
	return p, err
}

// planCredentials is credentialPlan, with what is to be told of it.
func (a *App) planCredentials(c *confined) (_ *credential.Plan, tell []string, _ error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := a.cfg()
	if c.plan != nil && c.of == now && !c.plan.Masked {
		return c.plan, nil, nil
	}
	plaintext, from, _ := now.value.Raw("sandbox", "credentials", "allowPlaintextInject")
	p, err := credential.New(a.credentials(), credential.Options{
		Environ: a.env.list, Files: c.box.Level() == sandbox.Full, Before: c.masked.Load(),
		Plaintext: string(plaintext) == "true" && own(from.Layer),
		Allowed:   func(t egress.Target) bool { d, _ := a.domains().Decide(t); return d == egress.Allowed },
	})
	if err != nil {
		return nil, nil, err
	}
	if c.of != now {
		tell = p.Problems
		if p.Masked && c.ca == nil {
			tell = append(tell, "sandbox.credentials: what is masked is put in nowhere over TLS, since sandbox.network.tlsTerminate was not set at the start: commands that need it will not be let in")
		}
	}
	if p.Masked && c.ca != nil && c.trust == "" {
		missing, err := a.writeTrust(c)
		if err != nil {
			return nil, tell, err
		}
		if missing != nil {
			tell = append(tell, "certificates that commands are to trust are missing: "+missing.Error())
		}
	}
	c.masked.Store(p.Set)
	c.plan, c.of = p, now
	return p, tell, nil
}

// sshConfig is the configuration of ssh for the whole machine.
const sshConfig = "/etc/ssh/ssh_config"

// own reports whether a layer is the user's or an administrator's, and never
// part of a repository.
func own(l settings.Layer) bool {
	return l == settings.User || l == settings.Flag || l == settings.Managed
}

// otherProxies notes the proxies of others that settings put in place of ours.
func (a *App) otherProxies(c *confined) {
	v := a.cfg().value
	managed := v.Bool(false, "sandbox", "network", "allowManagedDomainsOnly")
	for i, key := range []string{"httpProxyPort", "socksProxyPort"} {
		_, from, ok := v.Raw("sandbox", "network", key)
		if !ok {
			continue
		}
		port := v.Number(0, "sandbox", "network", key)
		switch {
		case port < 1 || port > 65535:
			a.warn("sandbox.network.%s has no effect: it is no port", key)
		case managed && from.Layer != settings.Managed:
			a.warn("sandbox.network.%s has no effect: with allowManagedDomainsOnly only managed settings may name another proxy", key)
		case a.o.OnlyHosts != nil:
			a.warn("sandbox.network.%s has no effect: --net does not hold at another proxy", key)
		case c.box.Level() != sandbox.Full:
			a.warn("sandbox.network.%s has no effect in this sandbox: commands use cinch's own proxy", key)
		default:
			at := uint16(sandbox.ProxyPort + 1 + i)
			if c.passed == nil {
				c.passed = map[uint16]uint16{}
			}
			c.passed[at] = uint16(port)
			if i == 0 {
				c.inside.Web = at
			} else {
				c.inside.Socks = at
			}
		}
	}
}

// authority signs for hosts that a credential is for; nil if no TLS is to be
// opened.
func (a *App) authority(c *confined) (*authority.Authority, error) {
	raw, from, ok := a.cfg().value.Raw("sandbox", "network", "tlsTerminate")
	if !ok || string(raw) == "null" || string(raw) == "false" {
		return nil, nil
	}
	if !own(from.Layer) {
		a.warn("sandbox.network.tlsTerminate has no effect in %s: only user, managed and --settings settings may have TLS opened", from)
		return nil, nil
	}
	var files struct{ CACertPath, CAKeyPath string }
	if err := json.Unmarshal(raw, &files); err != nil {
		return nil, fmt.Errorf("sandbox.network.tlsTerminate is no object: %w", err)
	}
	if files.CACertPath == "" && files.CAKeyPath == "" {
		return authority.New()
	}
	paths := a.boxPaths(from.Layer, []string{files.CACertPath, files.CAKeyPath}, false)
	if len(paths) != 2 {
		return nil, errors.New("sandbox.network.tlsTerminate needs both caCertPath and caKeyPath, or neither")
	}
	c.key = paths[1]
	ca, err := authority.Load(paths[0], paths[1])
	if err != nil {
		return nil, fmt.Errorf("sandbox.network.tlsTerminate: %w", err)
	}
	return ca, nil
}

// credentials are the entries of all layers.
func (a *App) credentials() []credential.Entry {
	var out []credential.Entry
	a.eachLayer(func(l settings.Layer, s *boxSettings) {
		for _, e := range s.Sandbox.Credential.EnvVars {
			e.Path, e.CanMask = "", own(l)
			out = append(out, e)
		}
		for _, e := range s.Sandbox.Credential.Files {
			e.Name, e.CanMask = "", own(l)
			if paths := a.boxPaths(l, []string{e.Path}, true); len(paths) == 1 {
				e.Path = paths[0]
			}
			out = append(out, e)
		}
	})
	return out
}

// writeTrust writes the bundle by which commands trust c.ca. It holds no key.
func (a *App) writeTrust(c *confined) (missing, err error) {
	var files []string
	for _, name := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"} {
		if f := a.env.get(name); f != "" {
			files = append(files, f)
		}
	}
	bundle, missing := c.ca.Bundle(files...)
	file := filepath.Join(c.trustDir, "ca.pem")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return missing, fmt.Errorf("making a place for certificates: %w", err)
	}
	if err := os.WriteFile(file, bundle, 0o600); err != nil {
		return missing, fmt.Errorf("writing the certificates that commands are to trust: %w", err)
	}
	c.trust = file
	return missing, nil
}

// addEgress adds to r what the way out needs.
func (a *App) addEgress(r *sandbox.Rules) error {
	c := a.confined
	p, err := a.credentialPlan(c)
	if err != nil {
		return err
	}
	r.Environ = append(c.proxy.Environ(c.inside), p.Environ...)
	for port := range c.passed {
		r.Ports = append(r.Ports, port)
	}
	r.Unset = append(r.Unset, p.Unset...)
	r.DenyRead = append(r.DenyRead, p.Deny...)
	for _, f := range p.Files {
		r.Show = append(r.Show, sandbox.Shown(f))
	}
	if c.ssh != nil {
		r.Show = append(r.Show, *c.ssh)
	}
	c.mu.Lock()
	trust := c.trust
	c.mu.Unlock()
	if trust != "" {
		r.Environ = append(r.Environ, authority.Environ(trust)...)
		r.DenyWrite = append(r.DenyWrite, filepath.Dir(trust))
	}
	if c.key != "" {
		r.DenyRead = append(r.DenyRead, c.key)
	}
	return nil
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
