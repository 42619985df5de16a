package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/loop"
)

// A queued prompt waits for its turn.
type queued struct {
	agent.Prompt
	hosted bool // the uuid came from outside: its fate is told
}

// An owner is the state of Run's goroutine.
type owner struct {
	s      *Session
	ctx    context.Context // of everything the session does; ends at a Stop
	cancel context.CancelCauseFunc

	start   chan started // SessionStart hooks, read by the first turn
	turn    context.CancelCauseFunc
	settled chan struct{} // a turn is over
	first   bool          // there was a turn

	compact []agent.Compact // asked for, to be done between turns
	queries sync.WaitGroup
	barrier int           // queries that hold everything back
	cleared chan struct{} // one of them is answered
	held    []agent.Query // behind a barrier

	finish   bool
	stop     bool
	waiting  bool          // for background agents
	waited   bool          // since the last turn
	stale    bool          // a turn that ended since may have sent others
	awake    chan struct{} // that wait is over
	deadline time.Time     // for all such waits
}

// Run serves inputs until a Finish or Stop has been worked off, or ctx ends,
// which is a Stop. When it returns, no goroutine and no call of the session
// runs any more and the events have ended. It is called once.
func (s *Session) Run(ctx context.Context) {
	o := &owner{s: s, start: make(chan started, 1), settled: make(chan struct{}, 1), cleared: make(chan struct{}, 16), awake: make(chan struct{}, 1)}
	o.ctx, o.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	s.emit(agent.Opened{Info: s.Info()})
	o.queries.Go(func() {
		st := s.begin(o.ctx, s.o.Source)
		if st.prompt != "" {
			_ = s.send(o.ctx, submission{do: func(o *owner) error { return o.prompt(first(st.prompt)) }}) // fails only at the end
		}
		o.start <- st
	})
	quit := ctx.Done()
	for !o.done() {
		o.next()
		if o.done() {
			break
		}
		select {
		case sub := <-s.inputs:
			if sub.do != nil {
				sub.done <- sub.do(o)
			} else {
				sub.done <- o.take(sub.in)
			}
		case <-o.settled:
			o.turn(nil)
			o.turn, o.waited, o.stale = nil, false, true
		case <-o.cleared:
			o.unbar()
		case <-o.awake:
			o.waiting, o.waited = false, !o.stale
		case <-quit:
			quit = nil
			o.halt()
		}
	}
	o.close()
}

func first(text string) agent.Prompt {
	return agent.Prompt{Origin: "hook", Blocks: []agent.Block{&agent.Text{Text: text}}}
}

// done reports whether there is nothing left to wait for.
func (o *owner) done() bool {
	switch {
	case o.turn != nil:
		return false
	case o.stop:
		return true
	}
	return o.finish && !o.waiting && o.waited && o.barrier == 0 && len(o.compact) == 0 && !o.s.waitingPrompt()
}

// waitingPrompt reports whether a prompt is queued that makes a turn.
func (s *Session) waitingPrompt() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.queue, func(q queued) bool { return !q.Quiet })
}

// next starts what can be started.
func (o *owner) next() {
	if o.turn != nil || o.barrier > 0 || o.stop {
		return
	}
	s := o.s
	w := work{}
	switch {
	case len(o.compact) > 0:
		w.compact = &o.compact[0]
		o.compact = o.compact[1:]
	case s.waitingPrompt():
		w.prompts = s.dequeue()
	case o.finish && !o.waited && !o.waiting:
		o.await()
		return
	default:
		return
	}
	w.start, w.first = o.start, !o.first
	o.first = true
	var ctx context.Context
	ctx, o.turn = context.WithCancelCause(o.ctx)
	s.setRunning()
	go func() { // Run does not end before it has read settled
		s.run(ctx, w)
		s.rest()
		o.settled <- struct{}{}
	}()
}

// dequeue takes the next prompt, and the quiet ones before it.
func (s *Session) dequeue() []queued {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.queue, func(q queued) bool { return !q.Quiet })
	out := slices.Clone(s.queue[:i+1])
	s.queue = slices.Delete(s.queue, 0, i+1)
	return out
}

// setRunning notes that a turn begins; rest notes its end.
func (s *Session) setRunning() {
	s.mu.Lock()
	s.running = true
	s.turns++
	s.mu.Unlock()
	s.emit(agent.State{State: "running"})
}

// rest ends a turn: the session is idle unless a prompt waits already.
func (s *Session) rest() {
	s.mu.Lock()
	s.running = false
	more := slices.ContainsFunc(s.queue, func(q queued) bool { return !q.Quiet })
	s.mu.Unlock()
	if !more {
		s.emit(agent.State{State: "idle"})
	}
}

// await waits for background agents, within the ceiling for all such waits.
func (o *owner) await() {
	if o.s.o.Busy == nil {
		o.waited = true
		return
	}
	ctx, cancel := context.WithCancel(o.ctx)
	if c := o.s.o.Ceiling; c > 0 {
		if o.deadline.IsZero() {
			o.deadline = time.Now().Add(c)
		}
		ctx, cancel = context.WithDeadline(o.ctx, o.deadline)
	}
	o.waiting, o.stale = true, false
	o.queries.Go(func() {
		defer cancel()
		if err := o.s.o.Busy(ctx); errors.Is(err, context.DeadlineExceeded) {
			o.s.emit(agent.Noted{Level: "warning", Text: "Background agents were still at work after " + o.s.o.Ceiling.String() + " and are stopped."})
		}
		o.awake <- struct{}{}
	})
}

// take acts on one input.
func (o *owner) take(in agent.Input) error {
	s := o.s
	switch in := in.(type) {
	case agent.Prompt:
		return o.prompt(in)
	case agent.Interrupt:
		o.interrupt()
	case agent.Compact:
		if s.o.Compact == nil {
			return errors.New("this conversation cannot be compacted")
		}
		o.compact = append(o.compact, in)
	case agent.Unqueue:
		if !s.unqueue(in.UUID) {
			return errors.New("no prompt with that uuid waits")
		}
	case agent.Query:
		o.query(in)
	case agent.Finish:
		o.finish = true
	case agent.Stop:
		o.halt()
	default:
		return s.apply(o.ctx, in)
	}
	return nil
}

func (o *owner) prompt(p agent.Prompt) error {
	if o.finish && p.Origin != "task-notification" || o.stop {
		return ErrOver
	}
	s := o.s
	if len(p.Blocks) == 0 && !openCall(s.History()) {
		return errors.New("the prompt is empty")
	}
	q := queued{Prompt: p, hosted: p.UUID != ""}
	if !q.hosted {
		q.UUID = s.o.NewID()
	}
	s.mu.Lock()
	s.queue = append(s.queue, q)
	s.mu.Unlock()
	if q.hosted {
		s.emit(agent.Lifecycle{UUID: q.UUID, State: "queued"})
	}
	return nil
}

func (s *Session) unqueue(id string) bool {
	s.mu.Lock()
	i := slices.IndexFunc(s.queue, func(q queued) bool { return q.UUID == id })
	if i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
	}
	s.mu.Unlock()
	if i >= 0 {
		s.emit(agent.Lifecycle{UUID: id, State: "cancelled"})
	}
	return i >= 0
}

func (o *owner) interrupt() {
	if o.turn != nil {
		o.turn(loop.ErrInterrupted)
	}
}

// halt leaves everything as it is: the turn can be taken up again.
func (o *owner) halt() {
	o.stop = true
	if o.turn != nil {
		o.turn(loop.ErrStopped)
	}
	o.cancel(loop.ErrStopped)
}

// close ends what is left. Each step has a clock, so that the end comes.
func (o *owner) close() {
	s := o.s
	close(s.closing)
	if !o.stop {
		s.flush()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(o.ctx), time.Minute)
	defer cancel()
	if !o.first { // its notes have no prompt to stand before
		o.cancel(ErrOver)
		<-o.start
	}
	s.hook(ctx, agent.Moment{Event: "SessionEnd", Match: "other", Fields: map[string]any{"reason": "other"}})
	if s.o.Close != nil {
		s.o.Close(ctx)
	}
	o.cancel(ErrOver)
	close(s.over)
	ended := make(chan struct{})
	go func() { // does not outlive a query that heeds its context
		o.queries.Wait()
		close(ended)
	}()
	timer := time.NewTimer(5 * time.Second)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		s.emit(agent.Noted{Level: "warning", Text: "A request of the host did not end in time and was left behind."})
	}
	s.log.Close()
}

// flush records quiet prompts that no prompt followed.
func (s *Session) flush() {
	s.mu.Lock()
	rest := s.queue
	s.queue = nil
	h := s.history
	s.mu.Unlock()
	for _, q := range rest {
		m := q.message()
		h = loop.Push(h, m)
		s.emit(agent.Said{Message: m, Replay: q.Replay})
	}
	s.setHistory(h)
}

func (q queued) message() agent.Message {
	return agent.Message{UUID: q.UUID, Role: agent.User, Blocks: q.Blocks, Meta: q.Meta, Origin: q.Origin}
}
