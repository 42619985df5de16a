package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// mend goes on after a request that failed without a call to run.
func (t *turn) mend(ctx context.Context, r *reply) bool {
	var me *agent.ModelError
	errors.As(r.err, &me)
	text := slices.ContainsFunc(r.blocks, func(b agent.Block) bool { return !thinking(b) && !blank(b) })
	if t.cuts++; len(r.blocks) > 0 && t.cuts <= maxCuts && (text || t.cuts < maxCuts) {
		if text {
			// compat: after an error event the next text alone is the answer.
			t.carry(r, me != nil && me.Fault == agent.FaultTruncated && me.Type == "")
			t.nudge(goOnCut)
		}
		t.free++
		return true
	}
	if len(r.blocks) == 0 {
		t.cuts--
	}
	if me != nil && t.recover(ctx, me) {
		return true
	}
	if ctx.Err() != nil {
		return t.abort(context.Cause(ctx), false)
	}
	return t.fail(r.err)
}

// carry remembers the text of a response that the next one continues. joined
// texts are one answer; else the next text is the answer, and both together
// are the whole.
func (t *turn) carry(r *reply, joined bool) {
	s := agent.TextOf(r.blocks)
	t.whole += s
	if joined {
		t.before += s
	}
}

// recover asks for another history after a refused request.
func (t *turn) recover(ctx context.Context, me *agent.ModelError) bool {
	switch me.Fault {
	case agent.FaultTooLong, agent.FaultTooLarge, agent.FaultBlock:
	default:
		return false
	}
	if t.l.Recover == nil || t.tried[me.Fault] {
		return false
	}
	if t.tried == nil {
		t.tried = map[agent.Fault]bool{}
	}
	t.tried[me.Fault] = true
	h, ok := t.l.Recover(ctx, t.end.History, me)
	if ok {
		t.end.History = slices.Clip(h)
		t.free++
	}
	return ok
}

// fail ends the turn with a message that stands in for an answer. It is shown
// and recorded, and never sent to the model.
func (t *turn) fail(err error) bool {
	tr := explain(err)
	if t.l.Explain != nil {
		tr = t.l.Explain(err)
	}
	reason := APIError
	var me *agent.ModelError
	if errors.As(err, &me) {
		switch me.Fault {
		case agent.FaultTooLong:
			reason = TooLong
		case agent.FaultTooLarge:
			reason = TooLarge
		}
	}
	return t.trouble(tr, reason)
}

func (t *turn) trouble(tr agent.Trouble, reason string) bool {
	t.end.Trouble = &tr
	t.end.Text, t.end.Whole = tr.Text, ""
	t.l.Emit(agent.Said{Message: agent.Message{ID: t.l.ID(), UUID: t.l.ID(), Role: agent.Assistant, Blocks: []agent.Block{&agent.Text{Text: tr.Text}}},
		Model: "<synthetic>", Err: &tr})
	return t.finish(reason)
}

// rest decides what follows a whole response without calls.
func (t *turn) rest(ctx context.Context, r *reply) bool {
	content := slices.ContainsFunc(r.blocks, func(b agent.Block) bool { return !thinking(b) && !blank(b) })
	switch r.stopped.Stop {
	case "max_tokens", "model_context_window_exceeded":
		if r.stopped.Stop != "max_tokens" && t.recover(ctx, &agent.ModelError{Op: "read", Fault: agent.FaultTooLong, Message: "the answer did not fit into the window"}) {
			return true
		}
		if t.long++; t.long > maxLength {
			return t.trouble(agent.Trouble{Kind: "max_output_tokens", Text: "API Error: " + limitTold}, APIError)
		}
		if content {
			t.carry(r, true)
		}
		t.free++
		t.nudge(goOnLength)
		return true
	case "refusal":
		if t.refused {
			return t.trouble(agent.Trouble{Kind: "invalid_request", Text: "API Error: " + refuseTold}, Refused)
		}
		t.refused = true
		t.free++
		t.nudge(goOnRefuse)
		return true
	case "pause_turn":
		if t.pauses++; t.pauses <= maxPauses && len(r.blocks) > 0 {
			t.free++
			return true
		}
	}
	t.long, t.pauses = 0, 0
	if !content {
		if !t.empty {
			t.empty = true
			t.free++
			t.nudge(goOnEmpty)
			return true
		}
		if t.before == "" {
			t.end.Text = ""
		}
	}
	return t.goOn(ctx)
}

// goOn asks the stop hooks whether the turn may end.
func (t *turn) goOn(ctx context.Context) bool {
	if t.l.Idle == nil {
		return t.finish(Completed)
	}
	if t.idle >= maxIdle {
		t.l.Emit(agent.Noted{Level: "warning", Text: fmt.Sprintf("Stop hooks made the model go on %d times in a row; the turn ends here.", t.idle)})
		return t.finish(Completed)
	}
	m, end := t.l.Idle(ctx, t.end.Text, t.idle)
	switch {
	case ctx.Err() != nil:
		return t.abort(context.Cause(ctx), false)
	case m != nil:
		t.idle++
		t.end.Turns++
		t.empty, t.before, t.whole = false, "", ""
		t.say(agent.Said{Message: *m})
		return true
	case end != "":
		return t.finish(end)
	}
	return t.finish(Completed)
}

// abort ends the turn whose context, or that of its calls, has ended. Unless the program stops, the
// history says so to the model.
func (t *turn) abort(cause error, tools bool) bool {
	reason, mark := InStream, interrupted
	if tools {
		reason, mark = InTools, interruptedTools
	}
	if !errors.Is(cause, ErrStopped) {
		t.say(agent.Said{Message: agent.Message{Role: agent.User, Meta: true, Blocks: []agent.Block{&agent.Text{Text: mark}}}})
	}
	return t.finish(reason)
}
