// Package print is the -p front end: one prompt in, the answer out. It owns
// what stands on standard output and the exit code, in the text and json
// formats; frames in ui/frame give json its shape. It has nobody to ask, and
// knows nothing of how the session does its work.
package print

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/sdkwire"
	"github.com/seed-eb844fcb/cinch/internal/lib/termsafe"
	"github.com/seed-eb844fcb/cinch/internal/ui/frame"
)

// Options says what to ask and how to answer. Out and Err are required.
type Options struct {
	// Prompt is what is asked. Nil asks nothing: the session works off what
	// it has and ends.
	Prompt []agent.Block
	// Format is text (the zero value stands for it) or json.
	Format string
	// Verbose makes json an array of all messages, the result last.
	Verbose  bool
	Out, Err io.Writer
	// Terminal says that Out is a terminal: what would steer it is escaped.
	Terminal bool
	// Budget is the limit in US dollars that a run over budget names. 0: the
	// session's own words stand.
	Budget float64
}

// Run submits the prompt, waits until the session is over, and writes the
// last turn's answer to Out. It returns the exit code: 0, or 1 if that turn
// failed, the session broke off, or Out could not be written, which also
// stops the session. ctx ends it early.
func Run(ctx context.Context, s agent.Session, o Options) int {
	p := &printer{o: o, s: s}
	if err := p.follow(ctx); err != nil {
		fmt.Fprintln(o.Err, "cinch: "+err.Error())
		// The session may be busy with what nobody will read. Its reader is
		// gone, and with it the reason to wait for an acceptance.
		_ = s.Submit(context.WithoutCancel(ctx), agent.Stop{Reason: err.Error()})
		return 1
	}
	return p.code
}

type printer struct {
	o       Options
	s       agent.Session
	session string
	last    *agent.Outcome    // of the newest turn that ended
	frames  []json.RawMessage // all messages so far, for Verbose
	local   []string          // output of commands since the turn began
	code    int
}

// follow folds the events of the session until it is over, then prints.
func (p *printer) follow(ctx context.Context) error {
	if p.o.Prompt != nil {
		if err := p.s.Submit(ctx, agent.Prompt{Blocks: p.o.Prompt}); err != nil {
			return err
		}
	}
	if err := p.s.Submit(ctx, agent.Finish{}); err != nil {
		return err
	}
	err := p.read(ctx)
	switch {
	case p.last != nil:
		// An answer that is there is given, however the session ended.
		return errors.Join(err, p.print(*p.last))
	case err != nil || p.o.Prompt == nil:
		return err
	}
	return errors.New("the session ended before there was an answer")
}

func (p *printer) read(ctx context.Context) error {
	for e, err := range p.s.Events(ctx, 0) {
		if err != nil {
			return err
		}
		if err := p.event(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// event takes note of one event. Only the last turn counts: background work
// that ends after the answer starts another one.
func (p *printer) event(ctx context.Context, e agent.Event) error {
	switch b := e.Body.(type) {
	case agent.Opened:
		p.session = b.Info.Session
	case agent.Cleared:
		p.session = b.Session
	case agent.Began:
		p.session, p.local = b.Info.Session, nil
		return p.keep(frame.Init(b.Info))
	case agent.Asked:
		return p.decline(ctx, b.Question)
	case agent.Said:
		if b.Hidden || b.Message.Role != agent.Assistant {
			return nil
		}
		return p.keep(frame.Assistant(p.session, e, b))
	case agent.Finished:
		return p.keep(frame.Finished(p.session, e, b))
	case agent.Local:
		p.local = append(p.local, b.Text)
	case agent.Noted:
		// Standard output is for the answer; what the person must know of
		// goes beside it.
		if b.Level == "error" || b.Level == "warning" {
			fmt.Fprintln(p.o.Err, "cinch: "+termsafe.Text(b.Text))
		}
	case agent.Settled:
		o := b.Outcome
		if o.Text == "" && len(p.local) > 0 && o.Subtype == "success" {
			o.Text = strings.Join(p.local, "\n")
		}
		p.last = &o
		p.refused(o.Denials)
		return p.keep(frame.Result(p.session, o))
	}
	return nil
}

// refused says which calls were not permitted, where the answer alone would
// hide it.
func (p *printer) refused(ds []agent.Denial) {
	if len(ds) == 0 || p.o.Format == "json" {
		return
	}
	var names []string
	for _, d := range ds {
		if !slices.Contains(names, d.Tool) {
			names = append(names, d.Tool)
		}
	}
	fmt.Fprintf(p.o.Err, "cinch: not permitted: %s\nhint: --allowedTools or --permission-mode allows more; 'cinch policy explain COMMAND' says why.\n", termsafe.String(strings.Join(names, ", ")))
}

// keep remembers a message for the array that Verbose asks for.
func (p *printer) keep(f any) error {
	if !p.o.Verbose || p.o.Format != "json" {
		return nil
	}
	line, err := sdkwire.Append(nil, f)
	if err != nil {
		return err
	}
	p.frames = append(p.frames, line[:len(line)-1])
	return nil
}

// decline says that nobody can be asked.
func (p *printer) decline(ctx context.Context, q agent.Question) error {
	if q.OneWay {
		return nil
	}
	a := agent.Answer{ID: q.ID, Err: agent.ErrNoOne.Error()}
	if q.Kind == agent.AskPermission {
		a.Decision = agent.Decision{Verdict: agent.Deny, NoOne: true}
	}
	// Someone else's answer may have come first; that is no failure.
	_ = p.s.Submit(ctx, a)
	return nil
}

// print writes the outcome and sets the exit code.
func (p *printer) print(o agent.Outcome) error {
	if o.IsError || o.Subtype != "success" {
		p.code = 1
	}
	if p.o.Format != "json" && strings.HasPrefix(o.Reason, "aborted_") {
		// Who interrupted knows; a pipe must not take the words for an answer.
		fmt.Fprint(p.o.Err, "cinch: ", termsafe.Text(p.text(o)))
		return nil
	}
	var out []byte
	if p.o.Format == "json" {
		var f any = frame.Result(p.session, o)
		if p.o.Verbose {
			f = p.frames
		}
		line, err := sdkwire.Append(nil, f)
		if err != nil {
			return err
		}
		out = line
	} else {
		text := p.text(o)
		if p.o.Terminal {
			text = termsafe.Text(strings.TrimSuffix(text, "\n")) + "\n"
		}
		out = []byte(text)
	}
	if len(out) == 0 {
		return nil
	}
	if _, err := p.o.Out.Write(out); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// text is what the text format prints: the answer and a newline, or why
// there is none.
func (p *printer) text(o agent.Outcome) string {
	switch {
	case o.Subtype == "success" && o.Text == "" && o.Structured != nil:
		return string(o.Structured) + "\n"
	case o.Subtype == "success":
		// compat: a failed request is a success with the failure as its text.
		if o.Whole != "" {
			return o.Whole + "\n"
		}
		return o.Text + "\n"
	case o.Subtype == "error_max_turns":
		// compat: scripts look for these words; the turn that was not begun
		// is counted, and no newline follows.
		return fmt.Sprintf("Error: Reached max turns (%d)", o.Turns-1)
	case o.Subtype == "error_max_budget_usd" && p.o.Budget > 0:
		return fmt.Sprintf("Error: Exceeded USD budget (%v)", p.o.Budget)
	case len(o.Errors) > 0:
		return "Error: " + strings.Join(o.Errors, "\nError: ") + "\n"
	case o.Text != "":
		return o.Text + "\n"
	}
	return "Error: the run ended early (" + o.Subtype + ")\n"
}
