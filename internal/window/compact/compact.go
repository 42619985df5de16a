// Package compact keeps a conversation inside its window. It owns the sizes
// (tokens, bytes, media, pages), the stages that shorten a history without a
// model, the summary that a model writes, and the repair of a history that an
// upstream refused. Stages are pure functions over histories; only the
// Compactor asks a model, through the Provider that it is given. It does not
// know files, settings or front ends: what comes back after a summary is
// handed in.
package compact

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// A Cut is one thing that a stage took away.
type Cut struct {
	Stage  string       `json:"stage"` // clean, mend, budget, snip, clear, collapse, summary, media, repair
	Index  int          `json:"index"` // of the message in the history before the stage
	UUID   string       `json:"uuid,omitempty"`
	Call   agent.CallID `json:"call,omitempty"`
	What   string       `json:"what"` // what it was, for a person
	Why    string       `json:"why"`
	Tokens int          `json:"tokens"` // estimated, saved
	Bytes  int          `json:"bytes"`  // saved
}

// Triggers of a compaction.
const (
	Auto   = "auto"
	Manual = "manual"
)

// Options is what a Compactor needs.
type Options struct {
	Provider agent.Provider
	// Aside builds a request over h with the prefix of the conversation and
	// instruction as its last user text.
	Aside  func(h []agent.Message, instruction string) *agent.Request
	Limits Limits
	// Count asks the upstream how many tokens a request has; it is asked where
	// an estimate would decide whether the history is shortened. Nil, and where
	// it fails: estimates decide.
	Count func(ctx context.Context, req *agent.Request) (int, error)
	// Peek builds the request over h without sending it. Required with Count.
	Peek func(h []agent.Message) *agent.Request
	// Overhead is the estimated size, in tokens, of system text and tools. Nil: 0.
	Overhead func() int
	// Restore returns what stands around a summary, read anew. Nil: nothing.
	Restore func(ctx context.Context, h []agent.Message) Restored
	// Hook runs PreCompact and PostCompact. Nil: no hooks.
	Hook agent.Hooker
	// Emit tells Compacting; what Provider answers it counts itself. Nil:
	// nobody is told.
	Emit func(agent.Body)
	// UUID names new messages. Required.
	UUID func() string
	// Instructions are standing wishes for summaries, such as the section
	// "Compact Instructions" of the instruction files. Nil: none.
	Instructions func() string
	// Transcript is the path of the session file, for the model to look things
	// up in; Recall the name of a tool that searches it. "" for none.
	Transcript, Recall string
	// Agent is the id of the sub-agent whose conversation it is, or "".
	Agent string
	// Clock bounds one compaction, its retries included. 0: 5 minutes.
	Clock time.Duration
	// Log takes what the journal does not hold. Nil: discarded.
	Log *slog.Logger
}

// Restored is what is put around a summary.
type Restored struct {
	Opening []agent.Block // before it: instructions, environment, …
	Behind  []agent.Block // behind it: files, plan, tasks, skills, pins
}

// An Outcome is what became of a history.
type Outcome struct {
	History []agent.Message // h itself if nothing changed
	Changed bool
	Cuts    []Cut
	// Compacted is set if a summary was made or tried; its Err is set if that
	// came to nothing. It is nil when the stages alone made room.
	Compacted *agent.Compacted
	// Note is a line for the person, or "".
	Note string
}

// A Compactor shortens the history of one conversation. Fit, Recover and
// Compact are called by one goroutine at a time, the other methods by any.
type Compactor struct {
	o     Options
	scale Scale

	mu    sync.Mutex // guards what follows, never over a request
	l     Limits
	known map[string]int // message id -> tokens of its request and itself
	// factor is how many tokens the upstream counts for one of ours.
	factor  float64
	sent    int  // our estimate of the newest request
	counted bool // the newest estimate was compared with a count
	tooLong bool // the newest refusal was answered by a compaction
	repairs int  // in a row

	// Of the goroutine that fits.
	since    int // requests since the newest summary
	thrashed int // summaries in a row that were full again at once
	failed   int // automatic summaries in a row that came to nothing
}

// maxFailures is how many automatic summaries in a row may come to nothing,
// or fill up at once, before no more are tried.
const maxFailures = 3

// New returns a Compactor.
func New(o Options) *Compactor {
	if o.Clock == 0 {
		o.Clock = 5 * time.Minute
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Compactor{o: o, l: o.Limits.filled(), known: map[string]int{}, factor: 1, since: maxFailures}
}

// SetLimits replaces the limits, after a change of model or settings.
func (c *Compactor) SetLimits(l Limits) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.l = l.filled()
}

// Limits returns the limits in force. They may be lower than those set, where
// a refusal has told the true ones.
func (c *Compactor) Limits() Limits {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.l
}

// Observe notes the usage that the upstream reported for a response to the
// newest request.
func (c *Compactor) Observe(messageID string, u agent.Usage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tooLong, c.repairs = false, 0
	if u.Prompt() == 0 {
		return // nothing was counted
	}
	c.counted = false
	if messageID != "" {
		c.known[messageID] = u.Prompt() + u.Out
	}
	if c.sent > 0 {
		c.factor = min(max(float64(u.Prompt())/float64(c.sent), 0.5), 3)
	}
}

// Tokens estimates the size of a request over h: what the upstream reported
// for its newest response, and an estimate of what came after.
func (c *Compactor) Tokens(h []agent.Message) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := 0
	for i := len(h) - 1; i >= 0; i-- {
		if n, ok := c.known[h[i].ID]; ok && h[i].ID != "" && h[i].Role == agent.Assistant {
			return n + int(float64(rest)*c.factor)
		}
		rest += c.scale.Message(h[i]).Tokens
	}
	return int(float64(rest+c.overhead()) * c.factor)
}

// scaled turns our estimate into what the upstream would count, unscaled does
// the reverse.
func (c *Compactor) scaled(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int(float64(n) * c.factor)
}

func (c *Compactor) unscaled(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int(float64(n) / c.factor)
}

// forget drops what was reported for a history that is no more.
func (c *Compactor) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.known)
}

// sending notes our estimate of the next request.
func (c *Compactor) sending(h []agent.Message) {
	n := c.scale.History(h).Tokens + c.overhead()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = n
}

func (c *Compactor) overhead() int {
	if c.o.Overhead == nil {
		return 0
	}
	return c.o.Overhead()
}

// Fit returns h, or what has to be sent in its place so that the next request
// keeps the limits. It asks a model only when nothing else suffices.
func (c *Compactor) Fit(ctx context.Context, h []agent.Message) Outcome {
	out := Outcome{History: h}
	l := c.Limits()
	c.since++
	out.apply(Budget(&c.scale, out.History, l.Results))
	out.apply(Media(&c.scale, out.History, l.media(c.overhead())))
	if n := c.Tokens(out.History); l.Auto && l.Window > 0 {
		if n = c.count(ctx, out.History, n); n >= l.Threshold {
			c.reduce(ctx, &out, n, Auto)
		}
	}
	c.sending(out.History)
	return out
}

// countClock bounds the wait for a count.
const countClock = 10 * time.Second

// count asks the upstream how many tokens the request over h has, if that may
// change what is done: n, our estimate, is within a quarter of the threshold,
// and more than a tenth of it was never counted. Estimates learn from it.
func (c *Compactor) count(ctx context.Context, h []agent.Message, n int) int {
	l := c.Limits()
	if c.o.Count == nil || c.o.Peek == nil || n < l.Threshold*3/4 || n > l.Threshold*5/4 || c.guessed(h) < n/10 {
		return n
	}
	if c.again(&c.counted) {
		return n // once for a response: what comes of it holds for the rest
	}
	ctx, cancel := context.WithTimeout(ctx, countClock)
	defer cancel()
	exact, err := c.o.Count(ctx, c.o.Peek(h))
	if err != nil || exact <= 0 {
		c.o.Log.Debug("counting tokens", "error", err)
		return n
	}
	ours := c.scale.History(h).Tokens + c.overhead()
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.known) // what was reported for parts of it says less
	c.factor = min(max(float64(exact)/float64(max(ours, 1)), 0.5), 3)
	return exact
}

// guessed is how many of the tokens of h no response has reported.
func (c *Compactor) guessed(h []agent.Message) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := 0
	for i := len(h) - 1; i >= 0; i-- {
		if _, ok := c.known[h[i].ID]; ok && h[i].ID != "" && h[i].Role == agent.Assistant {
			return int(float64(rest) * c.factor)
		}
		rest += c.scale.Message(h[i]).Tokens
	}
	return int(float64(rest+c.overhead()) * c.factor)
}

// apply takes the result of a stage over.
func (o *Outcome) apply(h []agent.Message, cuts []Cut) {
	if len(cuts) > 0 {
		o.History, o.Changed = h, true
		o.Cuts = append(o.Cuts, cuts...)
	}
}

// reduce makes room: by the stages if they free a quarter of the threshold,
// so that it is not for a few requests only; else by a summary.
func (c *Compactor) reduce(ctx context.Context, out *Outcome, n int, trigger string) {
	full, l := out.History, c.Limits()
	goal := l.Threshold * 3 / 4
	less, cuts, after := c.stages(full, n, goal)
	if after <= goal {
		out.apply(less, cuts)
		c.forget()
		return
	}
	if why := c.barred(); why != "" {
		if len(cuts) > 0 {
			out.apply(less, cuts)
			c.forget()
		}
		out.Note = why
		return
	}
	done := c.compact(ctx, full, trigger, "", n > l.Window-l.Output)
	out.Compacted = &done
	if done.Err == "" {
		out.History, out.Changed = done.History, true
		out.Cuts = append(out.Cuts, Cut{Stage: "summary", What: fmt.Sprintf("%d messages", len(full)), Why: "the window is nearly full", Tokens: done.Pre - done.Post})
		c.settle(done)
		return
	}
	if len(cuts) > 0 {
		out.apply(less, cuts)
		c.forget()
	}
	if ctx.Err() != nil {
		return // interrupted: no failure, and nothing to tell
	}
	c.failed++
	out.Note = "The conversation could not be summarised: " + done.Err + "."
}

// settle notes a summary that took effect.
func (c *Compactor) settle(done agent.Compacted) {
	c.forget()
	c.failed = 0
	// A window that is full again within two requests was not helped.
	if c.since <= 2 || done.Post >= c.Limits().Threshold {
		c.thrashed++
	} else {
		c.thrashed = 0
	}
	c.since = 0
}

// barred returns why no automatic summary is made any more, or "".
func (c *Compactor) barred() string {
	switch {
	case c.thrashed >= maxFailures:
		return fmt.Sprintf("The window filled up again at once after %d summaries in a row, so no more are made. "+
			"Something large comes back with each step, such as a big file or tool output. Clear the conversation, or ask for smaller parts of it.", c.thrashed)
	case c.failed >= maxFailures:
		return fmt.Sprintf("The last %d summaries came to nothing, so no more are tried. Use /compact to try again, or /clear to start anew.", c.failed)
	}
	return ""
}

// stages runs the stages over h, whose request has n tokens, until it has at
// most goal. It returns how many it then has.
func (c *Compactor) stages(h []agent.Message, n, goal int) ([]agent.Message, []Cut, int) {
	before := c.scale.History(h).Tokens
	after := n
	target := before - c.unscaled(n-goal)
	var cuts []Cut
	for _, stage := range []func(*Scale, []agent.Message, Goal) ([]agent.Message, []Cut){Snip, Clear, Collapse} {
		next, cs := stage(&c.scale, h, Goal{Tokens: target, Keep: 6})
		h, cuts = next, append(cuts, cs...)
		if after = n - c.scaled(before-c.scale.History(h).Tokens); after <= goal {
			break
		}
	}
	return h, cuts, after
}

// Preview tells what Fit would take out next if the window were full now.
func (c *Compactor) Preview(h []agent.Message) []Cut {
	n := c.Tokens(h)
	_, cuts, _ := c.stages(h, n, n*3/4)
	return cuts
}

// Compact summarises h because a person asked for it. On failure Err is set
// and History is h.
func (c *Compactor) Compact(ctx context.Context, h []agent.Message, focus string) agent.Compacted {
	if c.Limits().Off {
		return agent.Compacted{Trigger: Manual, History: h, Err: "compaction is switched off (DISABLE_COMPACT)"}
	}
	done := c.compact(ctx, h, Manual, focus, false)
	if done.Err == "" {
		c.settle(done)
		c.thrashed = 0
	}
	return done
}

// compact replaces h by a summary. must says that h can not be sent as it is:
// then it does without a model rather than fail.
func (c *Compactor) compact(ctx context.Context, h []agent.Message, trigger, focus string, must bool) agent.Compacted {
	begin := time.Now()
	done := agent.Compacted{Trigger: trigger, Pre: c.Tokens(h), History: h}
	defer func() { done.Took = time.Since(begin) }()
	plan := split(&c.scale, h, c.tailRoom())
	if len(plan.head) == 0 || !spoken(plan.head) {
		done.Err = "there is nothing to summarise yet"
		return done
	}
	focus, stop := c.preHook(ctx, trigger, focus)
	if stop != "" {
		done.Err = stop
		return done
	}
	c.emit(agent.Compacting{Trigger: trigger})
	ctx, cancel := context.WithTimeoutCause(ctx, c.o.Clock, fmt.Errorf("the summary took longer than %s", c.o.Clock))
	defer cancel()
	summary, err := c.summarise(ctx, h, c.instruction(focus))
	if err == nil {
		err = c.plausible(summary, plan.head)
	}
	if err != nil {
		c.o.Log.Warn("compaction", "error", err)
		if !must {
			done.Err = err.Error()
			return done
		}
		summary = outline(h, c.Limits().Output*2)
	}
	done.Summary = summary
	done.History = c.assemble(ctx, h, plan, summary)
	done.Post = c.scaled(c.scale.History(done.History).Tokens + c.overhead())
	if done.Post >= done.Pre && trigger != Manual {
		// What is put back is larger than what was taken out.
		done.History = c.bare(plan, summary)
		done.Post = c.scaled(c.scale.History(done.History).Tokens + c.overhead())
	}
	c.postHook(ctx, trigger, summary)
	return done
}

// plausible rejects a summary that saves nothing.
func (c *Compactor) plausible(summary string, head []agent.Message) error {
	if n, was := TokensOf(len(summary)), c.scale.History(head).Tokens; n > was && n > 1000 {
		return fmt.Errorf("the summary (%d tokens) is longer than what it would replace (%d)", n, was)
	}
	return nil
}

func (c *Compactor) tailRoom() int {
	if t := c.Limits().Threshold; t > 0 {
		return t / 5
	}
	return 20_000
}

func (c *Compactor) instruction(focus string) string {
	var parts []string
	if c.o.Instructions != nil {
		parts = append(parts, c.o.Instructions())
	}
	parts = append(parts, focus)
	s := instruction
	for _, p := range parts {
		if p = strings.TrimSpace(p); p != "" {
			s += "\n\nWishes for this summary:\n" + p
		}
	}
	return s
}

func (c *Compactor) preHook(ctx context.Context, trigger, focus string) (string, string) {
	if c.o.Hook == nil {
		return focus, ""
	}
	r := c.o.Hook(ctx, agent.Moment{Event: "PreCompact", Match: trigger, Agent: c.o.Agent,
		Fields: map[string]any{"trigger": trigger, "custom_instructions": focus}})
	if r.Block || r.Halt {
		why := r.Reason
		if why == "" {
			why = "no reason given"
		}
		return "", "a PreCompact hook stopped it: " + why
	}
	return strings.TrimSpace(focus + "\n" + strings.Join(r.Context, "\n")), ""
}

func (c *Compactor) postHook(ctx context.Context, trigger, summary string) {
	if c.o.Hook != nil {
		c.o.Hook(ctx, agent.Moment{Event: "PostCompact", Match: trigger, Agent: c.o.Agent,
			Fields: map[string]any{"trigger": trigger, "compact_summary": summary}})
	}
}

func (c *Compactor) emit(b agent.Body) {
	if c.o.Emit != nil {
		c.o.Emit(b)
	}
}
