package loop

import (
	"context"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// results waits for the calls of a response and puts their outcomes before
// the model, in one message and in the order of the calls.
func (t *turn) results(ctx context.Context, r *reply) bool {
	l, s := t.l, r.calls
	fs := s.wait()
	cause := context.Cause(s.ctx)
	s.stop(nil)

	m := agent.Message{UUID: l.ID(), Role: agent.User}
	var behind []agent.Block
	var end string
	for _, f := range fs {
		m.Blocks = append(m.Blocks, &agent.ToolResult{ID: f.Call.ID, Blocks: f.Result.Blocks, Array: f.Result.Array, IsError: f.Result.IsError})
		for _, c := range f.Decision.Context {
			behind = append(behind, reminder("A hook says about the call "+string(f.Call.ID)+" of "+f.Call.Name+": "+c))
		}
		behind = append(behind, f.Result.After...)
		if l.Load != nil && len(f.Result.Loaded) > 0 {
			l.Load(f.Result.Loaded...)
		}
		if f.Decision.Verdict == agent.Deny {
			t.end.Denials = append(t.end.Denials, agent.Denial{Tool: f.Call.Name, ID: f.Call.ID, Input: f.Call.Input})
		}
		if f.Result.Structured != nil && !f.Result.IsError {
			t.end.Structured = f.Result.Structured
		}
		if end == "" {
			end = f.Result.End
		}
	}
	if c := s.list[0]; c.deferred && len(fs) == 1 && cause == nil {
		// The call keeps its place at the end of the history, without a result.
		t.end.Deferred = c.use
		return t.finish(Deferred)
	}
	for _, c := range s.list {
		if c.deferred {
			l.Emit(c.fin)
		}
	}
	t.end.Turns += len(fs)
	if cause == nil && l.Batch != nil {
		more, why := l.Batch(ctx, fs)
		behind = append(behind, more...)
		if end == "" {
			end = why
		}
	}
	if t.repeats(fs) && t.same >= warnSame {
		behind = append(behind, reminder(fmt.Sprintf(sameAgain, ordinal(t.same))))
	}
	m.Blocks = append(m.Blocks, behind...)
	t.say(agent.Said{Message: m})

	switch {
	case cause != nil:
		return t.abort(cause, true)
	case t.end.Structured != nil:
		return t.finish(Completed)
	case end != "":
		return t.finish(end)
	case t.same >= maxSame:
		return t.finish(Identical)
	case t.garbled(s.list):
		return t.finish(Malformed)
	}
	if r.err != nil {
		if t.cuts++; t.cuts > maxCuts {
			return t.fail(r.err)
		}
		l.Emit(agent.Crossed{ID: l.ID(), Boundary: "response", Name: "continue", Start: time.Now(), End: time.Now(), Attempt: t.cuts,
			Outcome: "ok", Detail: map[string]string{"error": r.err.Error(), "calls": fmt.Sprint(len(fs))}})
	} else {
		t.cuts, t.tried = 0, nil
	}
	t.long, t.pauses, t.empty, t.before, t.whole = 0, 0, false, "", ""
	if l.Steer != nil {
		for _, said := range l.Steer(ctx) {
			t.same = 0
			t.say(said)
		}
	}
	return true
}

// repeats compares a step with the one before it, outcomes included.
func (t *turn) repeats(fs []agent.Finished) bool {
	var h maphash.Hash
	h.SetSeed(t.seed)
	for _, f := range fs {
		h.WriteString(f.Call.Name)
		h.WriteByte(0)
		h.Write(f.Call.Input)
		h.WriteByte(0)
		for _, b := range f.Result.Blocks {
			h.Write(agent.AppendBlock(nil, b))
		}
	}
	sig := h.Sum64()
	if sig == t.lastSig {
		t.same++
		return true
	}
	t.lastSig, t.same = sig, 1
	return false
}

// garbled counts steps in which no call could be read.
func (t *turn) garbled(cs []*call) bool {
	for _, c := range cs {
		if !c.use.Malformed {
			t.malformed = 0
			return false
		}
	}
	t.malformed++
	return t.malformed >= maxMalformed
}
