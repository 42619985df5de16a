package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
	"github.com/seed-eb844fcb/cinch/internal/lib/termsafe"
	"github.com/seed-eb844fcb/cinch/internal/net/dial"
	"github.com/seed-eb844fcb/cinch/internal/net/egress"
	"github.com/seed-eb844fcb/cinch/internal/net/egress/authority"
	"github.com/seed-eb844fcb/cinch/internal/net/egress/credential"
	"github.com/seed-eb844fcb/cinch/internal/net/egress/mask"
	"github.com/seed-eb844fcb/cinch/internal/sandbox"
)

const sandboxUsage = "usage: cinch sandbox run [--allow-domain D] [--deny-domain D] [--write DIR] [--deny-read PATH] [--mask NAME@HOST,…] [--open-network] -- COMMAND …\n       cinch sandbox check"

// sandbox runs one command confined, or says what confinement there is.
func (p *program) sandbox(args []string) int {
	switch {
	case len(args) == 1 && args[0] == "check":
		ctx, cancel := within(30 * time.Second)
		defer cancel()
		return p.sandboxCheck(sandbox.Open(ctx, p.sandboxOptions()).Status())
	case len(args) > 1 && args[0] == "run":
		return p.sandboxRun(args[1:])
	}
	return p.fail(usagef("%s", sandboxUsage))
}

func (p *program) sandboxOptions() sandbox.Options {
	home := p.env("HOME")
	config := p.env("CLAUDE_CONFIG_DIR")
	if config == "" && home != "" {
		config = filepath.Join(home, ".claude")
	}
	o := sandbox.Options{Path: p.env("PATH"), Home: home, Config: config}
	if home != "" {
		o.State = filepath.Join(home, ".claude.json")
	}
	if config != "" {
		o.Journal = filepath.Join(config, "cinch", "sandbox")
	}
	return o
}

func (p *program) sandboxCheck(s sandbox.Status) int {
	fmt.Fprintln(p.stdout, termsafe.String(s.String()))
	if s.Weaker != "" {
		fmt.Fprintln(p.stdout, "weaker: "+s.Weaker)
	}
	p.tellMoved(s.Moved)
	if s.Level == sandbox.Full || s.Level == sandbox.Seatbelt {
		return 0
	}
	return 1
}

// A sandboxRequest is the command line of sandbox run.
type sandboxRequest struct {
	rules       sandbox.Rules
	allow, deny []string
	masked      []credential.Entry
	argv        []string
}

func parseSandboxRun(args []string) (r sandboxRequest, err error) {
	for len(args) > 0 {
		name, value, joined := strings.Cut(args[0], "=")
		args = args[1:]
		switch name {
		case "--":
			r.argv = args
			if len(args) == 0 {
				return r, usagef("%s", sandboxUsage)
			}
			return r, nil
		case "--open-network":
			r.rules.OpenNetwork = true
			continue
		case "--allow-domain", "--deny-domain", "--write", "--deny-read", "--mask":
		default:
			if strings.HasPrefix(name, "-") {
				return r, usagef("unknown flag %s\n%s", name, sandboxUsage)
			}
			r.argv = append([]string{name}, args...)
			if joined {
				r.argv[0] += "=" + value
			}
			return r, nil
		}
		if !joined {
			if len(args) == 0 {
				return r, usagef("%s needs a value\n%s", name, sandboxUsage)
			}
			value, args = args[0], args[1:]
		}
		switch name {
		case "--allow-domain":
			r.allow = append(r.allow, value)
			continue
		case "--deny-domain":
			r.deny = append(r.deny, value)
			continue
		case "--mask":
			name, hosts, ok := strings.Cut(value, "@")
			if !ok || name == "" || hosts == "" {
				return r, usagef("--mask takes the name of a variable and the hosts that its value is for: NAME@HOST,HOST\n%s", sandboxUsage)
			}
			r.masked = append(r.masked, credential.Entry{Name: name, Mode: "mask", InjectHosts: strings.Split(hosts, ","), CanMask: true})
			continue
		}
		if value, err = filepath.Abs(value); err != nil {
			return r, err
		}
		if name == "--write" {
			r.rules.Write = append(r.rules.Write, value)
		} else {
			r.rules.DenyRead = append(r.rules.DenyRead, value)
		}
	}
	return r, usagef("%s", sandboxUsage)
}

func (p *program) sandboxRun(args []string) int {
	r, err := parseSandboxRun(args)
	if err != nil {
		return p.fail(err)
	}
	cwd, err := os.Getwd()
	if err != nil {
		return p.fail(err)
	}
	rules, problems := egress.NewRules(r.allow, r.deny, true)
	if len(problems) > 0 {
		return p.fail(errors.Join(problems...))
	}
	base, err := os.MkdirTemp("", "cinch-sandbox-")
	if err != nil {
		return p.fail(err)
	}
	defer os.RemoveAll(base)
	scratch := filepath.Join(base, "tmp")
	if err := os.Mkdir(scratch, 0o700); err != nil {
		return p.fail(err)
	}
	ctx, stop := p.ending()
	defer stop()
	// The command itself is the probe: another would cost as much again.
	box := sandbox.Try(p.sandboxOptions())
	p.tellMoved(box.Status().Moved)
	if box.Level() == sandbox.None {
		return p.fail(errors.New(box.Status().String()))
	}
	d, err := dial.New(dial.Options{Env: p.env})
	if err != nil {
		return p.fail(err)
	}
	o := egress.Options{Rules: func() egress.Rules { return rules }}.Over(d)
	if err := p.maskRun(&r, &o, base); err != nil {
		return p.fail(err)
	}
	proxy := egress.New(o)
	r.rules.Root, r.rules.Scratch = cwd, scratch
	r.rules.Write = append(r.rules.Write, cwd)
	inside := egress.Inside{Port: sandbox.ProxyPort, Env: p.env}
	inside.Program, _ = os.Executable() // without it SSH has no way out
	r.rules.Environ = append(proxy.Environ(inside), r.rules.Environ...)
	if config, err := os.ReadFile(sshConfig); err == nil && inside.Program != "" {
		r.rules.Show = append(r.rules.Show, sandbox.Shown{Path: sshConfig, Data: egress.SSHConfig(inside.Program, config)})
	}
	_, r.rules.Ports = rules.Loopback()
	call := &egress.Call{Command: strings.Join(r.argv, " ")}
	run := box.Command(r.rules, func(l net.Listener, port uint16) {
		if port == sandbox.ProxyPort {
			proxy.Serve(l, call)
			return
		}
		proxy.Forward(l, port, call)
	})
	child, err := proc.Start(ctx, proc.Spec{Path: r.argv[0], Args: r.argv, Env: p.environ, Dir: cwd}, proc.Options{
		Stdin: p.stdin, Stdout: p.stdout, Stderr: p.stderr, Wrap: run.Wrap, Terminal: isTerminal(p.stdin),
	})
	if err != nil {
		return p.fail(err)
	}
	exit, err := child.Wait()
	p.tellMoved(run.Removed())
	if n := call.Note(); n != "" {
		fmt.Fprintln(p.stderr, "cinch: "+n)
	}
	if exit.Code == sandboxFailed && !run.Started() {
		s, cancel := within(30 * time.Second)
		defer cancel()
		p.sandboxCheck(sandbox.Open(s, p.sandboxOptions()).Status())
	}
	if err != nil && exit.Code == 0 {
		return p.fail(err)
	}
	return exit.Code
}

// sshConfig is the configuration of ssh for the whole machine.
const sshConfig = "/etc/ssh/ssh_config"

// maskRun puts stand-ins in for variables of the command, and what opens the
// connections that they go out on. base holds the certificates.
func (p *program) maskRun(r *sandboxRequest, o *egress.Options, base string) error {
	if len(r.masked) == 0 {
		return nil
	}
	plan, err := credential.New(r.masked, credential.Options{Environ: p.environ})
	if err != nil {
		return err
	}
	if len(plan.Problems) > 0 {
		return errors.New(strings.Join(plan.Problems, "\n"))
	}
	ca, err := authority.New()
	if err != nil {
		return err
	}
	var files []string
	for _, name := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"} {
		if f := p.env(name); f != "" {
			files = append(files, f)
		}
	}
	bundle, err := ca.Bundle(files...)
	if err != nil {
		return err
	}
	file := filepath.Join(base, "ca.pem")
	if err := os.WriteFile(file, bundle, 0o600); err != nil {
		return fmt.Errorf("writing the certificates that the command is to trust: %w", err)
	}
	o.Authority, o.Secrets = ca, func() *mask.Set { return plan.Set }
	r.rules.Environ = append(plan.Environ, authority.Environ(file)...)
	r.rules.DenyWrite = append(r.rules.DenyWrite, file)
	return nil
}

// tellMoved says what commands left at protected places.
func (p *program) tellMoved(list []string) {
	for _, m := range list {
		fmt.Fprintln(p.stderr, "cinch: "+termsafe.String(m))
	}
}

// sandboxFailed is bubblewrap's exit status when it cannot set up.
const sandboxFailed = 1

// ending is a context that ends when the program is asked to. Of a terminal's
// interrupt the command hears itself.
func (p *program) ending() (context.Context, context.CancelFunc) {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt)
	if !isTerminal(p.stdin) {
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt)
		return ctx, func() { stop(); cancel(); signal.Stop(c) }
	}
	return ctx, func() { cancel(); signal.Stop(c) }
}
