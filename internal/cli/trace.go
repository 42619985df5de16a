package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/app"
	"github.com/seed-eb844fcb/cinch/internal/lib/jsonl"
	"github.com/seed-eb844fcb/cinch/internal/lib/termsafe"
	"github.com/seed-eb844fcb/cinch/internal/transcript"
)

// light are the options of commands that need no session.
func (p *program) light() (app.Options, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return app.Options{}, fmt.Errorf("the working directory is gone: %w", err)
	}
	return app.Options{Environ: p.environ, Cwd: cwd, Version: Version, Started: p.started, Stderr: p.stderr}, nil
}

// session finds the session that key names: an id, a title, a path, or "" and
// "last" for the newest of this directory.
func (p *program) session(key string) (transcript.Summary, error) {
	o, err := p.light()
	if err != nil {
		return transcript.Summary{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	store := app.Store(o)
	if key != "" && key != "last" {
		if strings.HasSuffix(key, ".jsonl") {
			return transcript.Summary{Path: key, ID: key}, nil
		}
		return store.Find(ctx, key, o.Cwd)
	}
	list, err := store.List(ctx, o.Cwd)
	if err != nil {
		return transcript.Summary{}, err
	}
	if len(list) == 0 {
		return transcript.Summary{}, errors.New("no session was held in this directory yet")
	}
	return list[0], nil
}

// sessions lists the conversations of this directory.
func (p *program) sessions(args []string) int {
	o, err := p.light()
	if err != nil {
		return p.fail(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	list, err := app.Store(o).List(ctx, o.Cwd)
	if len(args) == 1 && args[0] == "--all" {
		list, err = app.Store(o).ListAll(ctx)
	}
	if err != nil {
		return p.fail(err)
	}
	for _, s := range list {
		name := termsafe.String(s.Name())
		if r := []rune(name); len(r) > 70 {
			name = string(r[:69]) + "…"
		}
		fmt.Fprintf(p.stdout, "%s  %s  %7.1f KB  %s\n", s.ID, s.Active.Local().Format("2006-01-02 15:04"), float64(s.Size)/1e3, name)
	}
	return 0
}

// trace prints the newest turn of a session, or all of it, as a timeline.
func (p *program) trace(args []string) int {
	all, key := false, ""
	for _, a := range args {
		switch {
		case a == "--all":
			all = true
		case key == "" && !strings.HasPrefix(a, "-"):
			key = a
		default:
			return p.fail(usagef("usage: cinch trace [--all] [last|SESSION]"))
		}
	}
	s, err := p.session(key)
	if err != nil {
		return p.fail(err)
	}
	var skips jsonl.Skips
	var rs []transcript.Record
	for r, err := range transcript.Trace(s.Path, &skips) {
		if err != nil {
			return p.fail(fmt.Errorf("reading the trace: %w", err))
		}
		if r.Kind == "draft" {
			continue // a line that waits for its response, with no time of its own
		}
		if r.Kind == "began" && !all {
			rs = rs[:0]
		}
		rs = append(rs, r)
	}
	if len(rs) == 0 {
		return p.fail(errors.New("that session has left no trace"))
	}
	p.timeline(rs)
	if skips.Count > 0 {
		fmt.Fprintf(p.stderr, "cinch: %d lines of the trace could not be read\n", skips.Count)
	}
	return 0
}

// A span is something with a beginning and an end on the timeline.
type span struct{ from, to time.Time }

// timeline prints records, each at its time since the first.
func (p *program) timeline(rs []transcript.Record) {
	slices.SortStableFunc(rs, func(a, b transcript.Record) int { return at(a).Compare(at(b)) })
	zero := at(rs[0])
	var models, tools []span
	started := map[string]time.Time{}
	line := func(t time.Time, agent, format string, args ...any) {
		indent := ""
		if agent != "" {
			indent = "  "
		}
		fmt.Fprintf(p.stdout, "%9.3fs  %s%s\n", t.Sub(zero).Seconds(), indent, termsafe.String(fmt.Sprintf(format, args...)))
	}
	for _, r := range rs {
		switch r.Kind {
		case "began":
			line(r.At, r.Agent, "turn begins · %s · %s", r.Model, r.Mode)
		case "crossed":
			d := ""
			for _, k := range sorted(r.Detail) {
				d += " " + k + "=" + r.Detail[k]
			}
			if r.Attempt > 1 {
				d += fmt.Sprintf(" attempt=%d", r.Attempt)
			}
			line(r.Start, r.Agent, "%-12s %8s  %s %s%s", r.Boundary, r.End.Sub(r.Start).Round(10*time.Microsecond), r.Name, r.Outcome, d)
		case "responded":
			models = append(models, span{r.At.Add(-r.Took), r.At})
			text := fmt.Sprintf("response     %8s  first byte %s · stop %s", r.Took.Round(time.Millisecond), r.TTFT.Round(time.Millisecond), r.Stop)
			if u := r.Usage; u != nil {
				share := 0
				if n := u.Prompt(); n > 0 {
					share = 100 * u.CacheRead / n
				}
				text += fmt.Sprintf(" · %d in (%d%% cached), %d out · $%.4f", u.Prompt(), share, u.Out, r.Cost)
			}
			if r.Request != "" {
				text += " · request " + r.Request
			}
			line(r.At.Add(-r.Took), r.Agent, "%s", text)
		case "said":
			if r.Role == "assistant" {
				line(r.At, r.Agent, "block        %s", strings.Join(r.Blocks, ", "))
			}
		case "decided":
			line(r.At, r.Agent, "permission   %s %s by %s", r.Tool, r.Verdict, r.By)
		case "started":
			started[string(r.Call)] = r.At
			line(r.At, r.Agent, "tool starts  %s %s", r.Tool, r.Call)
		case "finished":
			if t, ok := started[string(r.Call)]; ok {
				tools = append(tools, span{t, r.At})
			}
			how := "ok"
			switch {
			case r.Unknown:
				how = "outcome unknown"
			case !r.Ran:
				how = "did not run"
			case r.IsError:
				how = "error"
			}
			line(r.At, r.Agent, "tool ends    %s %s · waited %s · ran %s", r.Tool, how, r.Waited.Round(time.Millisecond), r.Took.Round(time.Millisecond))
		case "asked", "answered", "hooked", "compacted", "changed", "noted", "rewound", "mended", "cleared":
			line(r.At, r.Agent, "%-12s %s", r.Kind, strings.TrimSpace(strings.Join([]string{r.Name, r.What, r.Level, r.Text, r.Reason}, " ")))
		case "settled":
			line(r.At, r.Agent, "turn ends    %s · %d turns · %s · $%.4f", r.Reason, r.Turns, r.Took.Round(time.Millisecond), r.Cost)
		}
	}
	if total := sum(tools); total > 0 {
		fmt.Fprintf(p.stdout, "tools hid %s of %s behind the model\n", overlap(tools, models).Round(time.Millisecond), total.Round(time.Millisecond))
	}
}

// at is when a record belongs on the timeline.
func at(r transcript.Record) time.Time {
	switch r.Kind {
	case "crossed":
		return r.Start
	case "responded":
		return r.At.Add(-r.Took)
	}
	return r.At
}

func sorted(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func sum(spans []span) time.Duration {
	var d time.Duration
	for _, s := range merged(spans) {
		d += s.to.Sub(s.from)
	}
	return d
}

// merged joins spans that touch, so that no time counts twice.
func merged(spans []span) []span {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
	var out []span
	for _, s := range spans {
		if n := len(out); n > 0 && !s.from.After(out[n-1].to) {
			if s.to.After(out[n-1].to) {
				out[n-1].to = s.to
			}
			continue
		}
		out = append(out, s)
	}
	return out
}

// overlap is how long something of both went on at one time.
func overlap(a, b []span) time.Duration {
	var d time.Duration
	b = merged(b)
	for _, x := range merged(a) {
		for _, y := range b {
			from, to := x.from, x.to
			if y.from.After(from) {
				from = y.from
			}
			if y.to.Before(to) {
				to = y.to
			}
			if to.After(from) {
				d += to.Sub(from)
			}
		}
	}
	return d
}
