package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// calls runs the calls of one response in the order they came: an exclusive
// call waits for every earlier one, a concurrent call only for the last
// exclusive one before it. Waiting is on channels that close when a call is
// over, so that no lock is held while anything runs.
//
// add and wait belong to the goroutine of the turn; the rest is guarded.
type calls struct {
	l    *Loop
	ctx  context.Context // of the step: the stream ends with it too
	stop context.CancelCauseFunc
	list []*call
	wg   sync.WaitGroup

	barrier []<-chan struct{} // the last exclusive call, if any
	since   []<-chan struct{} // concurrent calls after it

	mu      sync.Mutex
	entered []*call                 // calls that are about to run or run, in that order
	failed  map[string]agent.CallID // failure domains and the call that brought each down
	held    string                  // why nothing more may start
}

type call struct {
	use       *agent.ToolUse
	tool      agent.Tool
	eff       agent.Effects
	void      *agent.Result // the result, if the call can not run
	after     []<-chan struct{}
	done      chan struct{} // closed when fin is final and told
	exclusive bool
	deferred  bool // fin is not told: the turn may end with the call open
	fin       agent.Finished
}

func (t *turn) newCalls(ctx context.Context) *calls {
	s := &calls{l: t.l, failed: map[string]agent.CallID{}}
	s.ctx, s.stop = context.WithCancelCause(ctx)
	return s
}

// add takes a call in and starts it as soon as its turn comes. void, if not
// "", is the failed result of a call that must not run.
func (s *calls) add(use *agent.ToolUse, void string) {
	c := &call{use: use, done: make(chan struct{})}
	if void != "" {
		r := agent.Failed(void)
		c.void = &r
	} else {
		c.tool, c.eff, c.void = s.inspect(use)
	}
	s.list = append(s.list, c)
	if c.void != nil || c.eff.Concurrent {
		c.after = s.barrier
		s.since = append(s.since, c.done)
	} else {
		c.exclusive = true
		c.after = append(s.since, s.barrier...)
		s.barrier, s.since = []<-chan struct{}{c.done}, nil
	}
	s.wg.Go(func() { s.work(c) })
}

// inspect checks a call before anybody is asked about it.
func (s *calls) inspect(use *agent.ToolUse) (agent.Tool, agent.Effects, *agent.Result) {
	t := s.l.Tool(use.Name)
	if t == nil {
		r := noTool(use.Name)
		return nil, agent.Effects{}, &r
	}
	if use.Malformed {
		r := badJSON(use)
		return nil, agent.Effects{}, &r
	}
	e, err := s.check(t, use.Input)
	if err != nil {
		r := badInput(use.Name, err)
		return nil, agent.Effects{}, &r
	}
	return t, e, nil
}

func (s *calls) check(t agent.Tool, input json.RawMessage) (e agent.Effects, err error) {
	defer func() {
		if p := recover(); p != nil { // an odd input must not end the session
			err = fmt.Errorf("the tool could not read its input: %v", p)
		}
	}()
	if spec := t.Spec(); s.l.Check != nil && !spec.Loose {
		if err := s.l.Check(spec, input); err != nil {
			return e, err
		}
	}
	return t.Inspect(input)
}

// work brings one call to its end and tells it.
func (s *calls) work(c *call) {
	defer close(c.done)
	begin := time.Now()
	f := &c.fin
	f.Call = agent.Call{ID: c.use.ID, Name: c.use.Name, Input: c.use.Input, Effects: c.eff, Agent: s.l.Agent}
	func() {
		defer func() {
			if p := recover(); p != nil {
				f.Result = s.panicked(f.Call, p)
			}
		}()
		if c.void != nil {
			f.Result = *c.void
			return
		}
		if why := s.admit(c, f); why != "" {
			f.Result = agent.Failed(why)
			return
		}
		f.Waited = time.Since(begin)
		s.l.Emit(agent.Started{Call: f.Call})
		f.Ran = true
		f.Result = s.run(c, f.Call)
		f.Took = time.Since(begin) - f.Waited
		f.Result = s.after(*f)
	}()
	if !f.Ran {
		f.Waited = time.Since(begin)
	}
	if f.Result.Fatal && f.Call.Effects.Domain != "" {
		s.mu.Lock()
		s.failed[f.Call.Effects.Domain] = f.Call.ID
		s.mu.Unlock()
	}
	f.Call.Progress = nil
	if !c.deferred {
		s.l.Emit(*f)
	}
}

// admit waits for the call's place in the order and for leave to run. It
// returns why the call must not run, or "".
func (s *calls) admit(c *call, f *agent.Finished) string {
	waited := false
	for _, ch := range c.after {
		select {
		case <-ch:
			continue
		default:
		}
		waited = true
		select {
		case <-ch:
		case <-s.ctx.Done():
		}
	}
	if why := s.barred(c.eff.Domain); why != "" {
		return why
	}
	if waited {
		// What came before may have changed what this call means (cd).
		e, err := s.check(c.tool, f.Call.Input)
		if err != nil {
			return agent.TextOf(badInput(c.use.Name, err).Blocks)
		}
		f.Call.Effects = e
	}
	d, err := s.l.Gate(s.ctx, f.Call)
	if cause := context.Cause(s.ctx); cause != nil {
		return notRun(cause)
	}
	if err != nil {
		d = agent.Decision{Verdict: agent.Deny, Why: agent.WhyOther, By: "error", Reason: "The permission check failed: " + err.Error()}
	}
	if d.Verdict > agent.Defer || d.Verdict == agent.Ask { // nobody settled it
		d.Verdict, d.NoOne = agent.Deny, true
	}
	f.Decision = d
	s.l.Emit(agent.Decided{Call: f.Call, Decision: d})
	switch d.Verdict {
	case agent.Allow:
	case agent.Defer:
		c.deferred = true
		return "This call waits for a decision from outside of the session. That works for a call that stands alone in a response; ask for it again by itself."
	default:
		if d.Interrupt {
			defer s.stop(ErrInterrupted)
		}
		if d.Reason == "" {
			return "Permission to use " + c.use.Name + " was denied."
		}
		return d.Reason
	}
	if d.Input != nil {
		e, err := s.check(c.tool, d.Input)
		if err != nil {
			return agent.TextOf(badInput(c.use.Name, fmt.Errorf("the input was replaced by one that does not fit: %w", err)).Blocks)
		}
		f.Call.Input, f.Call.Effects = d.Input, e
		f.Call.UserModified = d.Why == agent.WhyUser || d.Why == agent.WhyPrompt
	}
	s.enter(c, f.Call.Effects)
	return s.barred(f.Call.Effects.Domain)
}

// enter lets a call in. The order of add already keeps exclusive calls alone;
// what is left to do here is for a call whose input was replaced and that is
// exclusive only now: it waits for all that entered before it, and all that
// enter later wait for it.
func (s *calls) enter(c *call, e agent.Effects) {
	c.exclusive = c.exclusive || !e.Concurrent
	s.mu.Lock()
	var wait []*call
	for _, o := range s.entered {
		if c.exclusive || o.exclusive {
			wait = append(wait, o)
		}
	}
	s.entered = append(s.entered, c)
	s.mu.Unlock()
	for _, o := range wait {
		select {
		case <-o.done:
		case <-s.ctx.Done():
			return
		}
	}
}

// barred returns why a call of that domain must not start now, or "".
func (s *calls) barred(domain string) string {
	if cause := context.Cause(s.ctx); cause != nil {
		return notRun(cause)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if by, ok := s.failed[domain]; ok && domain != "" {
		return notRun(fmt.Errorf("the call %s before it failed, and they stand or fall together (%s)", by, domain))
	}
	if s.held != "" {
		return notRun(errors.New(s.held))
	}
	return ""
}

// hold keeps calls that have not started from starting.
func (s *calls) hold(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = why
}

// run runs the tool. It returns when the tool has, or when the tool does not
// heed the end of its context within the grace.
func (s *calls) run(c *call, call agent.Call) agent.Result {
	begin := time.Now()
	var over atomic.Bool
	defer over.Store(true)
	call.Progress = func(p agent.Progress) {
		if !over.Load() {
			s.l.Emit(agent.Progressed{ID: call.ID, Tool: call.Name, Progress: p, Elapsed: time.Since(begin)})
		}
	}
	out := make(chan agent.Result, 1)
	go func() { // waited for below, unless it hangs
		defer func() {
			if p := recover(); p != nil {
				out <- s.panicked(call, p)
			}
		}()
		r, err := c.tool.Run(agent.WithCall(s.ctx, call.ID), call)
		if err != nil {
			r.Blocks, r.IsError = append(r.Blocks, &agent.Text{Text: s.wordError(err, call)}), true
			r.Unknown = r.Unknown || s.ctx.Err() != nil && !call.Effects.ReadOnly
		}
		out <- r
	}()
	select {
	case r := <-out:
		return r
	case <-s.ctx.Done():
	}
	grace := s.l.Grace
	if grace == 0 {
		grace = 10 * time.Second
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case r := <-out:
		return r
	case <-timer.C:
		r := agent.Failed(cutShort(context.Cause(s.ctx), call.Effects.ReadOnly) + fmt.Sprintf(" It did not end within %v after it was told to.", grace))
		r.Unknown = true
		return r
	}
}

func (s *calls) wordError(err error, call agent.Call) string {
	if cause := context.Cause(s.ctx); cause != nil && (errors.Is(err, cause) || errors.Is(err, context.Canceled)) {
		return cutShort(cause, call.Effects.ReadOnly)
	}
	return err.Error()
}

// after lets hooks see the result.
func (s *calls) after(f agent.Finished) agent.Result {
	if s.l.After == nil {
		return f.Result
	}
	ctx := s.ctx
	if ctx.Err() != nil { // hooks may see an interrupted call too, for a moment
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
	}
	return s.l.After(ctx, f)
}

func (s *calls) panicked(c agent.Call, p any) agent.Result {
	s.l.Emit(agent.Noted{Level: "error", Call: c.ID, Text: fmt.Sprintf("The tool %s failed inside: %v. This is a fault of the program; please report it.\n%s", c.Name, p, clip(string(debug.Stack()), 4000))})
	r := agent.Failed(fmt.Sprintf("The tool %s failed inside (%v). What it did until then stands: look before you repeat the call.", c.Name, p))
	r.Unknown = !c.Effects.ReadOnly
	return r
}

// wait returns the outcomes in the order of the calls, once all are over.
func (s *calls) wait() []agent.Finished {
	s.wg.Wait()
	fs := make([]agent.Finished, len(s.list))
	for i, c := range s.list {
		fs[i] = c.fin
	}
	return fs
}
