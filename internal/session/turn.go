package session

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/loop"
	"github.com/seed-eb844fcb/cinch/internal/window"
)

// work is what a turn is made of: prompts, or a compaction that was asked for.
type work struct {
	prompts []queued
	compact *agent.Compact
	start   <-chan started // what came of the session's start
	first   bool           // the first turn waits for it
}

// started is what the SessionStart hooks left.
type started struct {
	source string
	notes  []string
	prompt string // a first prompt, if a hook gives one
}

// A turn is the state of the one in progress. It belongs to its goroutine.
type turn struct {
	s       *Session
	ctx     context.Context
	began   time.Time
	origin  string
	prompts []string // uuids
	fates   []string // uuids whose end is told
	hist    []agent.Message
	quiet   []queued      // prompts to be said before the one that makes the turn
	late    []agent.Said  // what is said once the call at the end of the history has its result
	notes   []agent.Block // of hooks on the prompt's expansion
	nudged  bool          // asked for structured output
	wrong   int           // structured answers that did not fit
	hooks   int           // stop hooks that made the model go on
	told    bool          // Began was
}

// run does one turn. Settled is its last event, but for a turn that the end
// of the session leaves unfinished.
func (s *Session) run(ctx context.Context, w work) {
	t := &turn{s: s, ctx: ctx, began: time.Now(), hist: s.current()}
	s.mu.Lock()
	s.denials = nil
	s.mu.Unlock()
	out, settled := t.guarded(w)
	s.setHistory(t.hist)
	if len(t.quiet) > 0 { // nothing was said: they wait for the next prompt
		s.mu.Lock()
		s.queue = append(t.quiet, s.queue...)
		s.mu.Unlock()
	}
	if !settled {
		return
	}
	t.begin()
	out.Took = time.Since(t.began)
	out.Origin, out.Prompts = t.origin, t.prompts
	s.mu.Lock()
	out.Denials = append(out.Denials, s.denials...)
	s.mu.Unlock()
	out.Models, out.Cost = s.Totals()
	if out.Subtype == "" {
		out.Subtype = "success"
	}
	s.emit(agent.Settled{Outcome: out})
	for _, id := range t.fates {
		s.emit(agent.Lifecycle{UUID: id, State: "completed"})
	}
}

// guarded does the work; a fault of the program ends the turn, not the session.
func (t *turn) guarded(w work) (out agent.Outcome, settled bool) {
	defer func() {
		if p := recover(); p != nil {
			text := fmt.Sprintf("A fault of the program ended the turn: %v", p)
			t.s.emit(agent.Noted{Level: "error", Text: text + "\n" + string(debug.Stack())})
			t.hist = Mend(t.s.History(), "")
			out, settled = agent.Outcome{Subtype: "error_during_execution", IsError: true, Reason: "turn_setup_failed", Errors: []string{text}}, true
		}
	}()
	if w.first {
		select {
		case st := <-w.start:
			t.s.note(st)
		case <-t.ctx.Done():
		}
	} else { // it was taken before, unless that turn was interrupted
		select {
		case st := <-w.start:
			t.s.note(st)
		default:
		}
	}
	if w.compact != nil {
		return t.squeeze(w.compact.Focus)
	}
	last := len(w.prompts) - 1
	t.quiet = w.prompts[:last]
	return t.prompt(w.prompts[last])
}

// start notes that a prompt is being worked on.
func (t *turn) start(q queued) {
	t.prompts = append(t.prompts, q.UUID)
	if q.hosted {
		t.fates = append(t.fates, q.UUID)
		t.s.emit(agent.Lifecycle{UUID: q.UUID, State: "started"})
	}
}

// begin tells Began, once.
func (t *turn) begin() {
	if !t.told {
		t.told = true
		t.s.emit(agent.Began{Info: t.s.Info(), Prompts: t.prompts, Origin: t.origin})
	}
}

// prompt works a prompt off.
func (t *turn) prompt(q queued) (agent.Outcome, bool) {
	s := t.s
	t.origin = q.Origin
	t.start(q)
	if s.o.Checkpoint != nil {
		s.o.Checkpoint(t.ctx, q.UUID)
	}
	msgs := []agent.Message{q.message()}
	local, failed := "", false
	if s.o.Expand != nil && !q.Verbatim {
		exp, err := s.o.Expand(t.ctx, q.Prompt)
		if err != nil && t.ctx.Err() == nil {
			return t.refused(q, err.Error())
		}
		if err == nil {
			if err := t.act(exp); err != nil {
				return t.refused(q, err.Error())
			}
			if why := t.expanded(q, exp); why != "" {
				return t.refused(q, why)
			}
			msgs, local, failed = exp.Messages, exp.Local, exp.Failed
			for i := range msgs {
				msgs[i] = named(msgs[i], q, i, s.o.NewID)
			}
		}
	}
	if stopped(t.ctx) {
		return agent.Outcome{}, false
	}
	notes, why := t.submitted(q)
	if why != "" {
		t.begin()
		s.emit(agent.Noted{Level: "warning", Text: why, Stops: true})
		return agent.Outcome{Reason: loop.Completed}, true
	}
	t.begin()
	if local != "" {
		s.emit(agent.Local{Text: local})
	}
	if len(msgs) == 0 {
		return agent.Outcome{Reason: loop.Completed, Text: local, IsError: failed}, true
	}
	t.say(msgs, append(t.notes, notes...), q.Replay)
	return t.converse()
}

// named gives a message that an expansion made the name and origin of its prompt.
func named(m agent.Message, q queued, i int, id func() string) agent.Message {
	if m.Role == "" {
		m.Role = agent.User
	}
	if i == 0 {
		m.UUID = q.UUID // checkpoints and echoes go by it
	} else if m.UUID == "" {
		m.UUID = id()
	}
	if m.Origin == "" {
		m.Origin = q.Origin
	}
	return m
}

func (t *turn) refused(q queued, why string) (agent.Outcome, bool) {
	t.begin()
	t.s.emit(agent.Local{Text: why})
	return agent.Outcome{Reason: loop.Completed, Text: why, IsError: true}, true
}

// act does what a command asks for besides words to the model.
func (t *turn) act(exp Expansion) error {
	if exp.Clear {
		if err := t.clear(); err != nil {
			return err
		}
	}
	for _, in := range exp.Inputs {
		c, ok := in.(agent.Compact)
		if !ok {
			if err := t.s.apply(t.ctx, in); err != nil {
				return err
			}
			continue
		}
		t.begin()
		if out, _ := t.squeeze(c.Focus); out.IsError {
			return errors.New(out.Text)
		}
	}
	return nil
}

// clear starts the conversation anew.
func (t *turn) clear() error {
	s := t.s
	if s.o.Clear == nil {
		return errors.New("the conversation cannot be cleared here")
	}
	s.hook(t.ctx, agent.Moment{Event: "SessionEnd", Match: "clear", Fields: map[string]any{"reason": "clear"}})
	id, err := s.o.Clear(t.ctx)
	if err != nil {
		return fmt.Errorf("clearing the conversation: %w", err)
	}
	s.mu.Lock()
	s.id = id
	s.mu.Unlock()
	t.hist = nil
	s.setHistory(nil)
	s.emit(agent.Cleared{Session: id})
	s.note(s.begin(t.ctx, "clear"))
	return nil
}

// squeeze compacts because a person asked for it.
func (t *turn) squeeze(focus string) (agent.Outcome, bool) {
	s := t.s
	t.begin()
	if s.o.Compact == nil || len(t.hist) == 0 {
		return agent.Outcome{Reason: loop.Completed, IsError: true, Text: "There is nothing to compact."}, true
	}
	c := s.o.Compact(t.ctx, t.hist, focus)
	if stopped(t.ctx) {
		return agent.Outcome{}, false
	}
	t.hist = t.compacted(t.ctx, c, t.hist)
	s.setHistory(t.hist)
	if c.Err != "" {
		return agent.Outcome{Reason: loop.Completed, IsError: true, Text: "The conversation could not be compacted: " + c.Err}, true
	}
	return agent.Outcome{Reason: loop.Completed, Text: "Compacted."}, true
}

// compacted takes the outcome of a compaction in, and what SessionStart hooks
// have to say about it.
func (t *turn) compacted(ctx context.Context, c agent.Compacted, h []agent.Message) []agent.Message {
	t.s.emit(c)
	if c.Err != "" {
		return h
	}
	t.s.note(t.s.begin(ctx, "compact"))
	return Mend(c.History, "")
}

// expanded asks the UserPromptExpansion hooks about a command. why, if not "",
// says that it must not be carried out.
func (t *turn) expanded(q queued, exp Expansion) (why string) {
	if exp.Name == "" || len(exp.Messages) == 0 {
		return ""
	}
	kind := exp.Kind
	if kind == "" {
		kind = "slash_command"
	}
	r := t.s.hook(t.ctx, agent.Moment{Event: "UserPromptExpansion", Match: exp.Name, Fields: map[string]any{
		"expansion_type": kind, "command_name": exp.Name, "command_args": exp.Args, "command_source": exp.Source, "prompt": agent.TextOf(q.Blocks)}})
	if r.Block || r.Halt {
		if r.Reason == "" {
			return "A hook blocked the command /" + exp.Name + "."
		}
		return r.Reason
	}
	t.notes = hookNotes("UserPromptExpansion", r.Context)
	return ""
}

// submitted asks the UserPromptSubmit hooks. why, if not "", says that the
// prompt must not be sent.
func (t *turn) submitted(q queued) (notes []agent.Block, why string) {
	if q.Meta || q.Origin != "" && q.Origin != "human" {
		return nil, ""
	}
	r := t.s.hook(t.ctx, agent.Moment{Event: "UserPromptSubmit", Fields: map[string]any{"prompt": agent.TextOf(q.Blocks)}})
	if r.Block || r.Halt {
		if r.Reason == "" {
			r.Reason = "A hook blocked the prompt."
		}
		return nil, r.Reason
	}
	t.s.retitle(r)
	return hookNotes("UserPromptSubmit", r.Context), ""
}

// say puts the prompt before the model, behind the notes that belong there.
func (t *turn) say(msgs []agent.Message, notes []agent.Block, replay bool) {
	s := t.s
	st := s.notes()
	var head []agent.Block
	if len(t.hist) == 0 && s.o.Opening != nil {
		// An interrupt must not leave the conversation without its instructions.
		head = s.o.Opening(context.WithoutCancel(t.ctx), st.source, st.notes)
	} else {
		head = hookNotes("SessionStart:"+st.source, st.notes)
	}
	if s.o.Remind != nil {
		head = append(head, s.o.Remind(t.ctx)...)
	}
	var all []agent.Said
	for _, q := range t.quiet {
		t.start(q)
		all = append(all, agent.Said{Message: q.message(), Replay: q.Replay})
	}
	t.quiet = nil
	for i, m := range msgs {
		all = append(all, agent.Said{Message: m, Replay: replay && i == 0})
		if i == 0 {
			m.Blocks = append(notes, m.Blocks...)
			all[len(all)-1].Message = m
		}
	}
	all[0].Message.Blocks = append(head, all[0].Message.Blocks...)
	if openCall(t.hist) {
		t.late = all
		return
	}
	for _, said := range all {
		said.Message = said.Message.Encode()
		t.hist = loop.Push(t.hist, said.Message)
		s.emit(said)
	}
}

// openCall reports whether h ends with a call that has no result.
func openCall(h []agent.Message) bool {
	return len(h) > 0 && h[len(h)-1].Role == agent.Assistant &&
		slices.ContainsFunc(h[len(h)-1].Blocks, func(b agent.Block) bool { _, ok := b.(*agent.ToolUse); return ok })
}

// converse runs the loop over the history and words its end.
func (t *turn) converse() (agent.Outcome, bool) {
	s := t.s
	l := &loop.Loop{
		Provider: s.o.Provider, Tool: s.o.Tools.Lookup, Check: s.o.Check, Gate: s.o.Gate, After: s.o.After,
		Window: func(h []agent.Message) *agent.Request {
			s.setHistory(h)
			return s.o.Window(h)
		},
		Fit: t.fit, Recover: t.recover, Batch: t.batch, Idle: t.idle, Steer: t.steer, Load: s.o.Load,
		Explain: explain, Budget: s.spent, Cost: s.price, ID: s.o.NewID, MaxSteps: s.o.MaxTurns, Grace: 5 * time.Second,
		Emit: func(b agent.Body) {
			s.emit(b)
			if r, ok := b.(agent.Responded); ok && s.o.Answered != nil && r.Stop != "" {
				s.o.Answered(r.MessageID, r.Usage)
			}
		},
	}
	end := l.Run(t.ctx, t.hist)
	t.hist = end.History
	for _, said := range t.late { // the turn ended before they had their place
		if openCall(t.hist) {
			s.emit(agent.Noted{Level: "warning", Text: "The prompt was not sent: the call before it still waits for its decision."})
			break
		}
		t.hist = loop.Push(t.hist, said.Message)
		s.emit(said)
	}
	if stopped(t.ctx) {
		return agent.Outcome{}, false
	}
	if end.Trouble != nil {
		s.hook(t.ctx, agent.Moment{Event: "StopFailure", Match: end.Trouble.Kind, Fields: map[string]any{
			"error": end.Trouble.Kind, "error_details": end.Trouble.Text, "last_assistant_message": end.Trouble.Text}})
	}
	return s.outcome(end), true
}

// stopped reports whether the session ends, and the turn stays as it is.
func stopped(ctx context.Context) bool { return errors.Is(context.Cause(ctx), loop.ErrStopped) }

// outcome words the end of a turn. compat: subtypes and texts are those that
// hosts and scripts look for.
func (s *Session) outcome(end loop.End) agent.Outcome {
	o := agent.Outcome{Subtype: "success", Reason: end.Reason, Stop: end.Stop, Text: end.Text, Whole: end.Whole, Turns: end.Turns,
		API: end.API, TTFT: end.TTFT, Usage: end.Usage, Denials: end.Denials, Structured: end.Structured}
	fail := func(subtype, text string) {
		o.Subtype, o.IsError, o.Errors = subtype, true, []string{text}
	}
	switch end.Reason {
	case loop.MaxTurns:
		fail("error_max_turns", fmt.Sprintf("Reached maximum number of turns (%d)", s.o.MaxTurns))
		o.Turns = s.o.MaxTurns + 1
	case loop.Budget:
		fail("error_max_budget_usd", fmt.Sprintf("Exceeded USD budget (%v)", s.o.MaxBudget))
	case loop.InTools, loop.InStream:
		fail("error_during_execution", "The request was interrupted.")
	case reasonStructured:
		fail("error_max_structured_output_retries", fmt.Sprintf("No valid structured output after %d attempts", s.o.StructuredRetries))
	case loop.Malformed:
		fail("error_during_execution", "The model kept sending tool calls that could not be read.")
	case loop.Identical:
		fail("error_during_execution", "The model kept repeating the same tool calls with the same results, so the turn was stopped.")
	case loop.Deferred:
		o.Stop, o.Deferred = "tool_deferred", end.Deferred
	}
	if end.Trouble != nil {
		o.IsError, o.APIStatus = true, end.Trouble.Status
		o.Errors = []string{end.Trouble.Text}
	}
	if end.Structured != nil {
		o.Text = string(end.Structured)
	}
	return o
}

const reasonStructured = "structured_output_retry_exhausted"

// fit shortens the history before a request.
func (t *turn) fit(ctx context.Context, h []agent.Message) []agent.Message {
	if t.s.o.Fit != nil {
		h = t.changed(ctx, t.s.o.Fit(ctx, h), h)
	}
	st := t.s.notes() // of the hooks of a compaction
	if bs := hookNotes("SessionStart:"+st.source, st.notes); len(bs) > 0 {
		m := agent.Message{UUID: t.s.o.NewID(), Role: agent.User, Meta: true, Blocks: bs}
		t.s.emit(agent.Said{Message: m, Hidden: true})
		h = loop.Push(h, m)
	}
	return h
}

func (t *turn) changed(ctx context.Context, out window.Outcome, h []agent.Message) []agent.Message {
	if out.Note != "" {
		t.s.emit(agent.Noted{Level: "notice", Text: out.Note})
	}
	if c := out.Compacted; c != nil {
		if h = t.compacted(ctx, *c, h); c.Err == "" {
			return h
		}
		// No summary came of it; what the stages took out counts all the same.
	}
	if !out.Changed {
		return h
	}
	t.s.emit(agent.Mended{Reason: whyMended(out), History: out.History})
	return out.History
}

// whyMended says what was done to the history, where the note does not.
func whyMended(out window.Outcome) string {
	if out.Note == "" || out.Compacted != nil {
		return out.Told()
	}
	return out.Note
}

// recover answers a refused request with a shorter or mended history.
func (t *turn) recover(ctx context.Context, h []agent.Message, err *agent.ModelError) ([]agent.Message, bool) {
	if t.s.o.Recover == nil {
		return h, false
	}
	out, ok := t.s.o.Recover(ctx, h, err)
	return t.changed(ctx, out, h), ok
}

// batch adds what stands behind the results of a step.
func (t *turn) batch(ctx context.Context, fs []agent.Finished) (behind []agent.Block, end string) {
	s := t.s
	if s.o.Batch != nil {
		behind, end = s.o.Batch(ctx, fs)
	}
	if s.o.Remind != nil {
		behind = append(behind, s.o.Remind(ctx)...)
	}
	for _, f := range fs {
		if s.o.Structured && f.Call.Name == "StructuredOutput" && f.Result.IsError {
			t.wrong++
		}
	}
	if end == "" && t.wrong > s.o.StructuredRetries {
		end = reasonStructured
	}
	return behind, end
}

// idle asks whether the turn may end.
func (t *turn) idle(ctx context.Context, answer string, _ int) (*agent.Message, string) {
	s := t.s
	if s.o.Structured && !t.nudged {
		t.nudged = true
		return note(s.o.NewID(), "", "[structured-output-enforce] The answer of this session must come as a call of the StructuredOutput tool with input that fits its schema. Make that call now."), ""
	}
	m, end := s.stopHooks(ctx, agent.Moment{Event: "Stop"}, answer, t.hooks > 0)
	if m != nil {
		t.hooks++
	}
	return m, end
}

func note(id, origin, text string) *agent.Message {
	return &agent.Message{UUID: id, Role: agent.User, Meta: true, Origin: origin, Blocks: []agent.Block{
		&agent.Text{Text: "<system-reminder>\n" + text + "\n</system-reminder>"}}}
}

// steer takes the prompts that came while the turn runs. One that is a command
// waits for its own turn, and so do those behind it.
func (t *turn) steer(ctx context.Context) []agent.Said {
	s := t.s
	s.mu.Lock()
	var taken, rest []queued
	for i, q := range s.queue {
		if !q.Verbatim && strings.HasPrefix(strings.TrimSpace(agent.TextOf(q.Blocks)), "/") && s.o.Expand != nil {
			rest = append(rest, s.queue[i:]...)
			break
		}
		if q.Later {
			rest = append(rest, q)
		} else {
			taken = append(taken, q)
		}
	}
	s.queue = rest
	s.mu.Unlock()
	out := t.late
	t.late = nil
	for _, q := range taken {
		t.start(q)
		notes, why := t.submitted(q)
		if why != "" {
			s.emit(agent.Noted{Level: "warning", Text: why, Stops: true})
			continue
		}
		m := q.message()
		if q.Origin == "" || q.Origin == "human" {
			notes = append(notes, window.Remind(window.Note{Kind: "steer", Text: "The user sent the message below while you were at work. Take it into account from here on, and finish what is still to be done."})...)
		}
		m.Blocks = append(notes, m.Blocks...)
		out = append(out, agent.Said{Message: m, Replay: q.Replay})
	}
	return out
}
