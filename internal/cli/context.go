package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/app"
	"github.com/seed-eb844fcb/cinch/internal/lib/atomicfile"
	"github.com/seed-eb844fcb/cinch/internal/lib/termsafe"
	"github.com/seed-eb844fcb/cinch/internal/net/model/catalog"
	"github.com/seed-eb844fcb/cinch/internal/transcript"
	"github.com/seed-eb844fcb/cinch/internal/window"
	"github.com/seed-eb844fcb/cinch/internal/window/compact"
)

const contextUsage = "usage: cinch context [SESSION] [--requests | --request N | --svg FILE | --html FILE]"

// context prints what fills the window of a session, what was sent for it, or
// a picture of how it grew.
func (p *program) context(args []string) int {
	key, what, value := "", "", ""
	for i := 0; i < len(args); i++ {
		name, v, joined := strings.Cut(args[i], "=")
		switch {
		case name == "--requests" && !joined && what == "":
			what = name
		case (name == "--request" || name == "--svg" || name == "--html") && what == "":
			if what = name; !joined {
				if i++; i == len(args) {
					return p.fail(usagef(contextUsage))
				}
				v = args[i]
			}
			value = v
		case key == "" && !strings.HasPrefix(args[i], "-"):
			key = args[i]
		default:
			return p.fail(usagef(contextUsage))
		}
	}
	if what == "" {
		return p.local("/context", key)
	}
	s, err := p.session(key)
	if err != nil {
		return p.fail(err)
	}
	switch what {
	case "--requests":
		err = p.listRequests(s)
	case "--request":
		err = p.printRequest(s, value)
	default:
		err = p.picture(s, what == "--html", value)
	}
	if err != nil {
		return p.fail(err)
	}
	return 0
}

// notRecorded explains why a session has no record of its requests.
const notRecorded = "no request of that session was recorded\nhint: requests are recorded since this version, unless CINCH_NO_REQUEST_RECORD is set or the session is not saved"

// printRequest writes the very bytes of a request. The record proves them by
// a checksum; what it cannot prove is an error and not printed.
func (p *program) printRequest(s transcript.Summary, which string) error {
	r, err := transcript.ReadRequests(s.Path)
	if err != nil {
		return err
	}
	all := r.All()
	if len(all) == 0 {
		return errors.New(notRecorded)
	}
	n := all[len(all)-1].N
	if which != "last" {
		if n, err = strconv.Atoi(which); err != nil || n < 1 {
			return usagef("--request takes the number of a request, or last, not %q", which)
		}
	}
	body, sent, err := r.Body(n)
	if errors.Is(err, transcript.ErrNotRecorded) {
		return fmt.Errorf("request %d: %w\nhint: the record has %d to %d; --requests lists them", n, err, all[0].N, all[len(all)-1].N)
	}
	if err != nil {
		return err
	}
	if isTerminal(p.stdout) { // bytes of others are data: no sequence of theirs may reach a terminal
		fmt.Fprintln(p.stdout, termsafe.Text(string(body)))
	} else if _, err := p.stdout.Write(body); err != nil {
		return err
	}
	fmt.Fprintf(p.stderr, "request %d of %s: %s, %s, attempt %d, %d bytes, exactly as sent (checksum verified)\n",
		n, s.ID, sent.At.Local().Format(time.DateTime), termsafe.String(purposeOf(sent.Purpose, sent.Agent)), sent.Attempt, len(body))
	return nil
}

func purposeOf(purpose, agentID string) string {
	if agentID != "" {
		return or(purpose, "main") + " of " + agentID
	}
	return or(purpose, "main")
}

// listRequests prints a line for each request that went out.
func (p *program) listRequests(s transcript.Summary) error {
	r, err := transcript.ReadRequests(s.Path)
	if err != nil {
		return err
	}
	all := r.All()
	if len(all) == 0 {
		return errors.New(notRecorded)
	}
	for _, q := range all {
		fmt.Fprintf(p.stdout, "%4d  %s  %-10s %-28s %9d bytes", q.N, q.At.Local().Format(time.DateTime), termsafe.String(purposeOf(q.Purpose, q.Agent)), termsafe.String(q.Model), q.Bytes)
		if q.Attempt > 1 {
			fmt.Fprintf(p.stdout, "  attempt %d", q.Attempt)
		}
		fmt.Fprintln(p.stdout)
	}
	if n := r.Skipped.Count; n > 0 {
		fmt.Fprintf(p.stderr, "cinch: %d lines of the record could not be read\n", n)
	}
	return nil
}

// picture writes how the window of the session grew.
func (p *program) picture(s transcript.Summary, page bool, file string) error {
	if file == "" {
		return usagef(contextUsage)
	}
	g, err := p.growth(s)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	draw := g.SVG
	if page {
		draw = g.HTML
	}
	if err := draw(&b); err != nil {
		return err
	}
	if file == "-" {
		_, err = io.Copy(p.stdout, &b)
		return err
	}
	if err := atomicfile.WriteFile(file, b.Bytes(), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "%s\n%s\n", g.Headline(), termsafe.String(file))
	return nil
}

// growth reads how the window of the main conversation grew.
func (p *program) growth(s transcript.Summary) (window.Growth, error) {
	g := window.Growth{Title: "Session " + s.ID}
	if n := s.Name(); n != "" && n != s.ID {
		g.Title += ": " + n
	}
	answers, skips, err := p.answers(s)
	if err != nil {
		return g, err
	}
	others, name := 0, ""
	summary := false
	for _, a := range answers {
		summary = summary || a.summary
		if a.agent != "" || a.purpose != "main" {
			others++
			continue
		}
		a.step.Summary = summary
		summary = false
		g.Steps = append(g.Steps, a.step)
		name = a.step.Model
	}
	if len(g.Steps) == 0 {
		return g, errors.New("that session has made no request")
	}
	g.Window, g.Threshold = p.limits(name)
	if others > 0 {
		g.Notes = append(g.Notes, fmt.Sprintf("Sub-agents, summaries and side questions are not shown: %d requests.", others))
	}
	if skips > 0 {
		g.Notes = append(g.Notes, fmt.Sprintf("%d lines of the trace could not be read.", skips))
	}
	if r, err := transcript.ReadRequests(s.Path); err == nil {
		for _, q := range r.All() {
			if q.Agent == "" && or(q.Purpose, "main") == "main" {
				if body, _, err := r.Body(q.N); err == nil {
					g.Parts = window.Parts(body)
				}
			}
		}
	}
	return g, nil
}

// limits are the window of the model, and where a conversation with it is
// shortened, as settings and environment have it now.
func (p *program) limits(name string) (size, threshold int) {
	spec := catalog.Models{}.Resolve(name)
	w := compact.Wish{Window: spec.Window, Assumed: !spec.Known, Env: p.env}
	if o, err := p.light(); err == nil {
		ctx, cancel := within(10 * time.Second)
		defer cancel()
		if v, err := app.Settings(ctx, o); err == nil {
			if n := int(v.Number(0, "autoCompactWindow")); n > 0 {
				w.Setting = strconv.Itoa(n)
			}
			on := v.Bool(true, "autoCompactEnabled")
			w.Enabled = &on
		}
	}
	l := w.Limits()
	if !l.Auto {
		return l.Window, 0
	}
	return l.Window, l.Threshold
}
