package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/app"
	"github.com/seed-eb844fcb/cinch/internal/lib/termsafe"
	"github.com/seed-eb844fcb/cinch/internal/policy"
	"github.com/seed-eb844fcb/cinch/internal/policy/report"
	"github.com/seed-eb844fcb/cinch/internal/ui/line"
)

// within bounds what a command without a session may take.
func within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// config prints settings and where they come from.
func (p *program) config(args []string) int {
	o, err := p.light()
	if err != nil {
		return p.fail(err)
	}
	ctx, cancel := within(time.Minute)
	defer cancel()
	v, err := app.Settings(ctx, o)
	if err != nil {
		return p.fail(err)
	}
	switch {
	case len(args) == 0 || args[0] == "list" && len(args) == 1:
		for _, k := range v.Keys() {
			value, from, _ := v.Raw(v.Path(k)...)
			fmt.Fprintf(p.stdout, "%s = %s  (%s)\n", k, termsafe.String(string(value)), from)
		}
		for _, pr := range v.Problems() {
			fmt.Fprintf(p.stdout, "%s: %s\n", pr.Severity, termsafe.String(pr.String()))
		}
		return 0
	case args[0] == "why" && len(args) == 2:
		value, from := v.Why(v.Path(args[1])...)
		if len(from) == 0 {
			fmt.Fprintf(p.stdout, "%s is set nowhere\n", args[1])
			return 1
		}
		fmt.Fprintf(p.stdout, "%s = %s\n", args[1], termsafe.String(string(value)))
		for _, d := range from {
			counts := "in effect"
			if !d.Counts {
				counts = "without effect"
			}
			fmt.Fprintf(p.stdout, "  %s: %s (%s)\n", d.Origin, termsafe.String(string(d.Value)), counts)
		}
		return 0
	}
	return p.fail(usagef("usage: cinch config [list] | why KEY"))
}

// policy explains and tests permission rules.
func (p *program) policy(args []string) int {
	const usage = "usage: cinch policy explain CALL | test FILE | diff SETTINGS SETTINGS"
	o, err := p.light()
	if err != nil {
		return p.fail(err)
	}
	ctx, cancel := within(time.Minute)
	defer cancel()
	load := func(o app.Options) (*policy.Policy, bool) {
		pol, err := app.Policy(ctx, o)
		if err != nil {
			p.fail(err)
		}
		return pol, err == nil
	}
	switch {
	case len(args) >= 2 && args[0] == "explain":
		pol, ok := load(o)
		if !ok {
			return 1
		}
		c, err := report.Call(pol, strings.Join(args[1:], " "))
		if err == nil {
			err = report.Explain(p.stdout, pol, c)
		}
		if err != nil {
			return p.fail(err)
		}
		return 0
	case len(args) == 2 && args[0] == "test":
		pol, ok := load(o)
		if !ok {
			return 1
		}
		f, err := os.Open(args[1])
		if err != nil {
			return p.fail(err)
		}
		defer f.Close()
		total, missed, err := report.Test(p.stdout, pol, f, args[1])
		if err != nil {
			return p.fail(err)
		}
		fmt.Fprintf(p.stdout, "%d expectations, %d not met\n", total, missed)
		if missed > 0 {
			return 1
		}
		return 0
	case len(args) == 3 && args[0] == "diff":
		var ps [2]*policy.Policy
		for i, f := range args[1:] {
			one := o
			one.Settings, one.SourcesSet = f, true
			var ok bool
			if ps[i], ok = load(one); !ok {
				return 1
			}
		}
		differ, err := report.Diff(p.stdout, ps[0], ps[1], nil)
		if err != nil {
			return p.fail(err)
		}
		if differ {
			return 1
		}
		fmt.Fprintln(p.stdout, "no difference was found")
		return 0
	}
	return p.fail(usagef(usage))
}

// hooks tries the hooks of an event.
func (p *program) hooks(args []string) int {
	const usage = "usage: cinch hooks test EVENT [--input FILE]"
	if len(args) < 2 || args[0] != "test" {
		return p.fail(usagef(usage))
	}
	input := []byte("{}")
	var err error
	switch {
	case len(args) == 2:
	case len(args) == 4 && args[2] == "--input" && args[3] == "-":
		input, err = io.ReadAll(io.LimitReader(p.stdin, maxPiped))
	case len(args) == 4 && args[2] == "--input":
		input, err = os.ReadFile(args[3])
	default:
		return p.fail(usagef(usage))
	}
	if err != nil {
		return p.fail(fmt.Errorf("reading the input: %w", err))
	}
	o, err := p.light()
	if err != nil {
		return p.fail(err)
	}
	o.Print = true
	ctx, cancel := within(15 * time.Minute)
	defer cancel()
	var out bytes.Buffer
	err = app.TestHooks(ctx, o, args[1], input, &out)
	fmt.Fprint(p.stdout, termsafe.Text(out.String()))
	if err != nil {
		return p.fail(err)
	}
	return 0
}

// local runs one slash command in a resumed session and prints its answer.
func (p *program) local(command, key string) int {
	s, err := p.session(key)
	if err != nil {
		return p.fail(err)
	}
	o, err := p.light()
	if err != nil {
		return p.fail(err)
	}
	o.Print, o.Resume = true, s.ID
	o.Fork, o.NoPersistence = false, true
	return p.run(o, func(ctx context.Context, a *app.App) int {
		return line.Run(ctx, a.Session, line.Options{Out: p.stdout, Prompt: prompt(command), Once: true, Quiet: true})
	})
}
