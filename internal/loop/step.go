package loop

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// How often in a row a turn tries to mend what went wrong.
const (
	maxCuts      = 3  // responses that broke off
	maxLength    = 3  // answers that reached the output limit
	maxPauses    = 20 // pause_turn
	maxMalformed = 5  // steps with nothing but unreadable calls
	maxIdle      = 8  // stop hooks that make the model go on
	warnSame     = 3  // identical steps before the model is told
	maxSame      = 10 // identical steps before the turn ends
)

// A turn is the state of one Run. It belongs to one goroutine.
type turn struct {
	l   *Loop
	end End

	seen   map[agent.CallID]*agent.ToolUse // every call of the history, by its first id
	sloppy bool                            // the upstream gives one id to different calls

	cuts, long, pauses, malformed, idle int
	empty, refused                      bool
	free                                int // requests that mend another and count as none
	tried                               map[agent.Fault]bool
	before                              string // text of the answer before a continuation
	whole                               string

	same    int
	lastSig uint64
	seed    maphash.Seed
}

// A reply is one response of the model, as far as it came.
type reply struct {
	begin   agent.Begin
	stopped agent.Stopped
	done    bool
	blocks  []agent.Block // finished ones
	uuid    string        // of the newest Said
	open    int           // index of the open text block
	partial strings.Builder
	opened  bool
	calls   *calls
	ready   []func() // calls of a response in one piece, to start once it was told
	err     error
}

func (t *turn) finish(reason string) bool {
	t.end.Reason = reason
	return false
}

// say adds m to the history and tells it.
func (t *turn) say(s agent.Said) {
	if s.Message.UUID == "" {
		s.Message.UUID = t.l.ID()
	}
	s.Message = s.Message.Encode()
	t.end.History = Push(t.end.History, s.Message)
	t.l.Emit(s)
}

// nudge puts a note of the program before the model.
func (t *turn) nudge(text string) {
	t.end.Turns++
	t.say(agent.Said{Message: agent.Message{Role: agent.User, Meta: true, Blocks: []agent.Block{
		&agent.Text{Text: "<system-reminder>\n" + text + "\n</system-reminder>"}}}})
}

// step makes one request and does what comes of it. It reports whether the
// turn goes on.
func (t *turn) step(ctx context.Context) bool {
	l := t.l
	if ctx.Err() != nil {
		return t.abort(context.Cause(ctx), false)
	}
	if l.MaxSteps > 0 && t.end.Steps-t.free >= l.MaxSteps {
		return t.finish(MaxTurns)
	}
	if l.Budget != nil {
		if why := l.Budget(); why != "" {
			return t.finish(why)
		}
	}
	if l.Fit != nil {
		t.end.History = slices.Clip(l.Fit(ctx, t.end.History))
		if ctx.Err() != nil {
			return t.abort(context.Cause(ctx), false)
		}
	}
	r := t.respond(ctx)
	t.keep(r)
	if l.Budget != nil && len(r.calls.list) > 0 {
		if why := l.Budget(); why != "" {
			r.calls.hold("no budget is left for this session")
		}
	}
	if len(r.calls.list) > 0 {
		return t.results(ctx, r)
	}
	r.calls.stop(nil)
	switch {
	case ctx.Err() != nil:
		return t.abort(context.Cause(ctx), false)
	case r.err != nil && r.stopped.Stop == "":
		return t.mend(ctx, r)
	}
	// With its stop reason a response is whole, even if its last event is lost.
	t.cuts, t.tried = 0, nil
	return t.rest(ctx, r)
}

// respond makes the request and takes the response in. Calls start while it runs.
func (t *turn) respond(ctx context.Context) *reply {
	l := t.l
	r := &reply{calls: t.newCalls(ctx)}
	t.end.Steps++
	start := time.Now()
	var first time.Duration
	req := l.Window(t.end.History)
	for d, err := range l.Provider.Stream(r.calls.ctx, req) {
		if err != nil {
			r.err = err
			break
		}
		if c, ok := d.(agent.Crossed); ok {
			l.Emit(c)
			continue
		}
		switch d := d.(type) {
		case agent.Begin:
			if first == 0 {
				first = time.Since(start)
			}
			if d.MessageID == "" {
				d.MessageID = "msg_" + l.ID()
			}
			r.begin = d
		case agent.BlockBegin:
			_, r.opened = d.Block.(*agent.Text)
			r.open = d.Index
			r.partial.Reset()
		case agent.Chunk:
			if r.opened && d.Index == r.open && d.Kind == "text_delta" {
				r.partial.WriteString(d.Text)
			}
		case agent.BlockEnd:
			r.opened = false
			t.block(r, d)
			continue
		case agent.Stopped:
			r.stopped = d
			t.flush(r)
		case agent.Done:
			r.done = true
		case agent.Reset:
			// A void attempt is paid for all the same.
			t.responded(r, req, 0, 0)
			r.opened, r.begin, r.stopped = false, agent.Begin{}, agent.Stopped{}
			r.partial.Reset()
		}
		l.Emit(agent.Wrote{Delta: d})
	}
	t.flush(r)
	if r.err == nil && !r.done && r.calls.ctx.Err() == nil {
		r.err = &agent.ModelError{Op: "read", Fault: agent.FaultTruncated, Message: "the response ended without its last event"}
	}
	took := time.Since(start)
	t.end.API += took
	if t.end.TTFT == 0 {
		t.end.TTFT = first
	}
	t.responded(r, req, first, took)
	return r
}

// block takes a finished block in: it is told before its end is, and a call
// starts after that.
func (t *turn) block(r *reply, d agent.BlockEnd) {
	void := ""
	if u, ok := d.Block.(*agent.ToolUse); ok {
		d.Block, void = t.adopt(u)
	}
	r.blocks = append(r.blocks, d.Block)
	if !r.begin.Whole {
		t.told(r, []agent.Block{d.Block})
	}
	t.l.Emit(agent.Wrote{Delta: d})
	if u, ok := d.Block.(*agent.ToolUse); ok {
		if r.begin.Whole {
			r.ready = append(r.ready, func() { r.calls.add(u, void) })
		} else {
			r.calls.add(u, void)
		}
	}
}

// flush tells a response that came in one piece, and starts its calls.
func (t *turn) flush(r *reply) {
	if r.begin.Whole && r.uuid == "" {
		t.told(r, r.blocks)
	}
	for _, start := range r.ready {
		start()
	}
	r.ready = nil
}

// told emits blocks of the response.
func (t *turn) told(r *reply, bs []agent.Block) {
	if bs = slices.DeleteFunc(slices.Clone(bs), blank); len(bs) == 0 {
		return
	}
	r.uuid = t.l.ID()
	usage := r.begin.Usage
	if r.stopped.Stop != "" {
		usage = r.stopped.Usage
	}
	t.l.Emit(agent.Said{Message: agent.Message{ID: r.begin.MessageID, UUID: r.uuid, Role: agent.Assistant, Blocks: bs},
		RequestID: r.begin.RequestID, Model: r.begin.Model, Usage: usage, Stop: r.stopped.Stop})
}

// responded closes the account of a response, or of an attempt.
func (t *turn) responded(r *reply, req *agent.Request, first, took time.Duration) {
	if r.begin.MessageID == "" {
		return
	}
	usage := r.begin.Usage
	if r.stopped.Stop != "" {
		usage = r.stopped.Usage
		t.end.Stop = r.stopped.Stop
	}
	t.end.Usage = t.end.Usage.Add(usage)
	model := r.begin.Model
	if model == "" {
		model = req.Model
	}
	var cost float64
	if t.l.Cost != nil {
		cost = t.l.Cost(model, usage)
	}
	t.l.Emit(agent.Responded{MessageID: r.begin.MessageID, RequestID: r.begin.RequestID, Model: model,
		Stop: r.stopped.Stop, Usage: usage, Cost: cost, TTFT: first, Took: took, Purpose: req.Purpose})
}

// keep adds what came of the response to the history. Thinking that nothing
// follows can not be sent back, and half a block never is.
func (t *turn) keep(r *reply) {
	bs := r.blocks
	if t.interrupted(r) && r.opened {
		if p := r.partial.String(); strings.TrimSpace(p) != "" {
			text := &agent.Text{Text: p}
			bs = append(bs, text)
			r.uuid = t.l.ID()
			t.l.Emit(agent.Said{Message: agent.Message{ID: r.begin.MessageID, UUID: r.uuid, Role: agent.Assistant, Blocks: []agent.Block{text}},
				RequestID: r.begin.RequestID, Model: r.begin.Model, Usage: r.begin.Usage, Aborted: true})
		}
	}
	for n := len(bs); n > 0 && thinking(bs[n-1]); n-- {
		bs = bs[:n-1]
	}
	t.end.History = Push(t.end.History, agent.Message{ID: r.begin.MessageID, UUID: r.uuid, Role: agent.Assistant, Blocks: bs})
	if s := agent.TextOf(bs); s != "" {
		t.end.Text = t.before + s
		t.end.Whole = ""
		if t.whole != t.before {
			t.end.Whole = t.whole + s
		}
	}
}

func thinking(b agent.Block) bool {
	switch b.(type) {
	case *agent.Thinking, *agent.Redacted:
		return true
	}
	return false
}

func (t *turn) interrupted(r *reply) bool {
	cause := context.Cause(r.calls.ctx)
	return cause != nil && !errors.Is(cause, ErrStopped)
}

// adopt gives the call an id that no other has. A call that was made before,
// in id and input, is not made again: void says so.
func (t *turn) adopt(u *agent.ToolUse) (use *agent.ToolUse, void string) {
	if t.seen == nil {
		t.seen = map[agent.CallID]*agent.ToolUse{}
		for _, m := range t.end.History {
			for _, b := range m.Blocks {
				if u, ok := b.(*agent.ToolUse); ok {
					t.seen[u.ID] = u
				}
			}
		}
	}
	first, dup := t.seen[u.ID]
	if !dup && validID(u.ID) {
		t.seen[u.ID] = u
		return u, ""
	}
	n := *u
	n.ID = agent.CallID("toolu_" + strings.ReplaceAll(t.l.ID(), "-", ""))
	t.seen[n.ID] = &n
	if !dup {
		t.seen[u.ID] = &n
		return &n, ""
	}
	if !t.sloppy && first.Name == u.Name && string(first.Input) == string(u.Input) {
		return &n, repeated
	}
	t.sloppy = true
	return &n, ""
}

func validID(id agent.CallID) bool {
	if id == "" || len(id) > 256 {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
