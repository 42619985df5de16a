// Package line is the plain terminal front end: lines in, lines out, no
// cursor movement. It serves terminals that can do no more, the demo, and
// everybody who pipes a conversation. It is a fold over events plus the
// question that is open, and knows nothing of how the session does its work.
package line

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/termsafe"
)

// Options says how to talk. Out is required.
type Options struct {
	In  io.Reader // lines of the person; nil if there is nobody to answer
	Out io.Writer
	// Prompt, if not nil, is submitted first.
	Prompt []agent.Block
	// Once ends after the turn of Prompt; In then only answers questions, and a
	// line that came before its question answers none.
	Once bool
	// Person says that In is a terminal: only then is anything asked that
	// would go through unasked without a person.
	Person bool
	// Quiet leaves out the line of figures at the end of a turn.
	Quiet bool
	// Color allows SGR sequences; nothing else is ever written as a sequence.
	Color bool
}

// Run talks until the person has nothing more to say. It returns the exit
// code: 0, or 1 if the last turn failed. ctx ends it early.
func Run(ctx context.Context, s agent.Session, o Options) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t := &talk{o: o, s: s, answers: make(chan answer), events: make(chan result)}
	if o.Prompt != nil {
		if err := s.Submit(ctx, agent.Prompt{Blocks: o.Prompt}); err != nil {
			return t.fail(err)
		}
	}
	if o.Once {
		if err := s.Submit(ctx, agent.Finish{}); err != nil {
			return t.fail(err)
		}
	} else if o.Prompt == nil {
		t.cue()
	}
	if o.In != nil {
		// The reader may sit in a Read of the terminal that nothing can end;
		// it holds nothing, so it is not waited for.
		go t.read(ctx, cancel)
	}
	go t.follow(ctx)
	for {
		r, ok := t.next()
		if !ok && ctx.Err() != nil {
			return t.fail(context.Cause(ctx))
		}
		if !ok || errors.Is(r.err, io.EOF) {
			break
		}
		if r.err != nil {
			return t.fail(r.err)
		}
		t.event(ctx, r.event)
		if t.werr != nil {
			_ = s.Submit(context.Background(), agent.Stop{Reason: t.werr.Error()})
			return 1
		}
	}
	return t.code
}

// A talk is one run of this front end.
type talk struct {
	o       Options
	s       agent.Session
	events  chan result            // closed at the end
	later   []result               // what came while a question was open
	waiting atomic.Pointer[string] // the id of the question that waits for a line
	answers chan answer            // closed when the input ended
	code    int
	werr    error
	open    bool   // the cursor is inside a line of streamed text
	told    bool   // the running text block was shown while it came
	noted   string // the newest note
}

// A result is what the session's events come to: the next one, or why there
// is none.
type result struct {
	event agent.Event
	err   error
}

// follow hands events on until they or ctx end.
func (t *talk) follow(ctx context.Context) {
	defer close(t.events)
	for e, err := range t.s.Events(ctx, 0) {
		select {
		case t.events <- result{e, err}:
		case <-ctx.Done():
			return
		}
	}
}

// next is the event to show next, in order.
func (t *talk) next() (r result, ok bool) {
	if len(t.later) > 0 {
		r, t.later = t.later[0], t.later[1:]
		return r, true
	}
	r, ok = <-t.events
	return r, ok
}

func (t *talk) fail(err error) int {
	t.line("cinch: " + err.Error())
	return 1
}

// read hands the person's lines on: to the question that waits, else to the
// session. The end of the input ends the conversation once all is settled.
func (t *talk) read(ctx context.Context, cancel context.CancelCauseFunc) {
	sc := bufio.NewScanner(t.o.In)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		text := sc.Text()
		if q := t.waiting.Swap(nil); q != nil {
			select {
			case t.answers <- answer{*q, text}:
			case <-ctx.Done():
				return
			}
			continue
		}
		if t.o.Once {
			continue // typed before anything was asked: consent to nothing
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		if w := strings.TrimSpace(text); w == "/exit" || w == "/quit" {
			break
		}
		if err := t.s.Submit(ctx, agent.Prompt{Blocks: []agent.Block{&agent.Text{Text: text}}}); err != nil {
			cancel(err)
			return
		}
	}
	close(t.answers)
	if !t.o.Once {
		_ = t.s.Submit(ctx, agent.Finish{})
	}
}

func (t *talk) write(s string) {
	if t.werr == nil && s != "" {
		_, t.werr = io.WriteString(t.o.Out, s)
	}
}

// line writes s on lines of its own.
func (t *talk) line(s string) {
	if t.open {
		t.write("\n")
		t.open = false
	}
	t.write(s + "\n")
}

func (t *talk) paint(sgr, s string) string {
	if !t.o.Color || s == "" {
		return s
	}
	return "\x1b[" + sgr + "m" + s + "\x1b[0m"
}

func (t *talk) cue() {
	if t.o.In != nil && !t.o.Once {
		if t.open {
			t.line("")
		}
		t.write(t.paint("1", "> "))
	}
}

func (t *talk) event(ctx context.Context, e agent.Event) {
	indent := ""
	if e.Agent != "" {
		indent = "  "
	}
	switch b := e.Body.(type) {
	case agent.Wrote:
		t.wrote(e, b.Delta)
	case agent.Said:
		t.said(e, b)
	case agent.Started:
		t.line(indent + t.paint("36", "● "+title(b.Call)))
	case agent.Finished:
		t.finished(indent, b)
	case agent.Asked:
		t.ask(ctx, b.Question)
	case agent.Noted:
		t.noted = b.Text
		t.line(t.paint("33", b.Level+": "+termsafe.String(b.Text)))
	case agent.Mended:
		if e.Agent == "" && b.Reason != "" && b.Reason != t.noted { // else it was told
			t.line(t.paint("2", termsafe.String(b.Reason)))
		}
	case agent.Local:
		t.line(termsafe.Text(b.Text))
	case agent.Compacting:
		t.line(t.paint("2", "shortening the conversation …"))
	case agent.Worked:
		if b.Stage == "started" || b.Stage == "ended" {
			t.line(indent + t.paint("2", fmt.Sprintf("[%s %s] %s", b.Task.ID, or(b.Task.Status, b.Stage), termsafe.String(b.Task.Description))))
		}
	case agent.Settled:
		t.settled(b.Outcome)
	}
}

func (t *talk) wrote(e agent.Event, d agent.Delta) {
	switch d := d.(type) {
	case agent.Retrying:
		t.line(t.paint("33", fmt.Sprintf("retrying in %s · attempt %d/%d · %s", d.Wait.Round(100*time.Millisecond), d.Attempt, d.Max, termsafe.String(d.Err))))
	case agent.Waiting:
		t.line(t.paint("2", fmt.Sprintf("waiting for %s: %s of %s", d.For, d.Since.Round(time.Second), d.Limit.Round(time.Second))))
	case agent.Switched:
		t.line(t.paint("33", "the model "+termsafe.String(d.From)+" did not answer; "+termsafe.String(d.To)+" goes on"))
	case agent.Chunk:
		if e.Agent == "" && d.Kind == "text_delta" {
			t.write(termsafe.Text(d.Text))
			t.open, t.told = true, true
		}
	case agent.Reset:
		if t.told {
			t.line(t.paint("2", "… that answer broke off and is asked for again"))
			t.told = false
		}
	}
}

func (t *talk) said(e agent.Event, b agent.Said) {
	if b.Hidden || e.Agent != "" || b.Message.Role != agent.Assistant {
		return
	}
	text := agent.TextOf(b.Message.Blocks)
	if text == "" {
		return
	}
	if b.Err != nil {
		t.line(t.paint("31", termsafe.Text(text)))
		return
	}
	if t.told {
		t.line("")
	} else {
		t.line(termsafe.Text(text))
	}
	t.told = false
}

func (t *talk) finished(indent string, b agent.Finished) {
	mark, sgr := "✓", "32"
	if b.Result.IsError {
		mark, sgr = "✗", "31"
	}
	first, more := summary(agent.TextOf(b.Result.Blocks))
	if !b.Ran {
		t.line(indent + t.paint("36", "● "+title(b.Call)))
	}
	s := fmt.Sprintf("  %s %s", mark, first)
	switch {
	case more == 1:
		s += " … 1 more line"
	case more > 1:
		s += fmt.Sprintf(" … %d more lines", more)
	}
	t.line(indent + t.paint(sgr, s) + t.paint("2", " ("+rounded(b.Took)+")"))
}

// rounded tells a time as exactly as a person cares.
func rounded(d time.Duration) string {
	if d >= 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// summary is the first line of a result, and how many follow.
func summary(text string) (line string, more int) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	line = strings.ReplaceAll(strings.TrimSpace(lines[0]), "\t", "  ")
	if r := []rune(termsafe.String(line)); len(r) > 100 {
		return string(r[:99]) + "…", len(lines) - 1
	}
	return termsafe.String(line), len(lines) - 1
}

func (t *talk) settled(o agent.Outcome) {
	t.code = 0
	if o.IsError || o.Subtype != "success" {
		t.code = 1
		for _, e := range o.Errors {
			t.line(t.paint("31", termsafe.Text(e)))
		}
	}
	if len(o.Denials) > 0 {
		t.line(t.paint("2", fmt.Sprintf("%d calls were not permitted", len(o.Denials))))
	}
	if t.o.Quiet {
		return
	}
	t.line(t.paint("2", fmt.Sprintf("— %s · %d in, %d out, %d from cache · $%.4f", rounded(o.Took), o.Usage.Prompt(), o.Usage.Out, o.Usage.CacheRead, o.Cost)))
	t.cue()
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
