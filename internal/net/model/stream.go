package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/sse"
	"github.com/seed-eb844fcb/cinch/internal/net/dial"
	"github.com/seed-eb844fcb/cinch/internal/net/model/catalog"
	"github.com/seed-eb844fcb/cinch/internal/net/model/limit"
	"github.com/seed-eb844fcb/cinch/internal/net/model/reply"
)

// Stream implements agent.Provider. req.Model may be an alias.
func (c *Client) Stream(ctx context.Context, req *agent.Request) iter.Seq2[agent.Delta, error] {
	return func(yield func(agent.Delta, error) bool) {
		r := &run{c: c, ctx: ctx, req: req, yield: yield, fallback: c.o.Fallback}
		r.use(c.o.Models.Resolve(req.Model))
		if err := r.loop(); err != nil && !r.left {
			yield(nil, err)
		}
	}
}

// A run is one call of Stream: attempts, one after the other, until one
// succeeds or nothing more can be done. It lives as long as the call, as its
// ctx does.
type run struct {
	c     *Client
	ctx   context.Context
	req   *agent.Request
	yield func(agent.Delta, error) bool
	left  bool // the consumer left the loop

	// What the next attempt asks for.
	spec     catalog.Spec
	whole    bool     // in one piece
	skip     []string // features left out on trial
	ceiling  int      // max_tokens that fits, or 0
	fallback []string // models still to try
	badCred  string   // credential that was refused

	// What happened. All but attempts starts anew with another model.
	attempts  int
	start     time.Time
	retries   int
	overloads int // in a row
	drops     int
	wholeUsed bool
	bareUsed  bool
	authTries int

	last *reply.Decoder // of the newest attempt
	sent plan
}

// use turns to a model, with a budget of its own.
func (r *run) use(s catalog.Spec) {
	*r = run{
		c: r.c, ctx: r.ctx, req: r.req, yield: r.yield, left: r.left, fallback: r.fallback, attempts: r.attempts, badCred: r.badCred,
		spec: s, whole: r.req.Whole, start: time.Now(),
	}
}

// emit yields a delta unless the consumer left.
func (r *run) emit(d agent.Delta) {
	if !r.left && !r.yield(d, nil) {
		r.left = true
	}
}

func (r *run) loop() error {
	for {
		f := r.attempt()
		if f == nil || r.left {
			return nil
		}
		if err := ended(r.ctx); err != nil {
			return err
		}
		f.err.Attempts = r.attempts
		if r.last.Complete > 0 {
			// Somebody may have acted on what was complete: it stands.
			f.err.Fault = agent.FaultTruncated
			return f.err
		}
		s := r.next(f, time.Since(r.start))
		if s.stop {
			return f.err
		}
		if err := r.step(f, s); err != nil || r.left {
			return err
		}
	}
}

// A step is what to do after a failure. The zero step tries again at once.
type step struct {
	stop   bool
	wait   time.Duration
	told   bool   // the retry is told by a Retrying
	model  string // switch to it
	reason string
}

// maxAsked is the longest wait that is sat out because the upstream asks for
// it; longer ones are told and end the attempt.
const maxAsked = 60 * time.Second

// next decides what to do after f, elapsed after the start.
func (r *run) next(f *failure, elapsed time.Duration) step {
	switch {
	case len(f.drop) > 0 && r.drops < 6:
		r.drops++
		for _, name := range f.drop {
			r.c.caps.Deny(name, r.spec.ID, f.err.Message)
		}
		return step{reason: "the upstream does not take " + f.drop[0]}
	case f.ceiling > 0 && r.ceiling == 0:
		r.ceiling = f.ceiling
		return step{reason: "max_tokens lowered to " + strconv.Itoa(f.ceiling)}
	case f.bare && !r.bareUsed && slices.ContainsFunc(r.sent.features, optional):
		r.bareUsed = true
		r.skip = slices.DeleteFunc(slices.Clone(r.sent.features), func(name string) bool { return !optional(name) })
		return step{reason: "trying again without optional features"}
	case f.refused != "" && r.authTries < 2 && r.c.cred.refused(f.refused):
		r.authTries++
		r.badCred = f.refused
		return step{reason: "asking for another credential", told: true}
	case f.whole && !r.wholeUsed && !r.c.o.StreamOnly && !r.whole:
		r.whole, r.wholeUsed = true, true
		return step{reason: "asking for the answer in one piece"}
	}
	r.whole = r.req.Whole
	if r.overloads++; !f.overloaded {
		r.overloads = 0
	}
	if r.overloads >= 3 {
		if to, ok := r.nextModel(); ok {
			return step{model: to, reason: "overloaded"}
		}
	}
	s := r.again(f, elapsed)
	if s.stop && f.elsewhere {
		if to, ok := r.nextModel(); ok {
			return step{model: to, reason: f.kind}
		}
	}
	return s
}

// optional features are left out when a refusal does not say what it is
// about. The cache is not among them: it is what a long session lives on.
func optional(name string) bool { return name != "cache" && name != "metadata" }

// nextModel takes the next fallback that is not the model at hand.
func (r *run) nextModel() (string, bool) {
	for len(r.fallback) > 0 {
		name := r.fallback[0]
		r.fallback = r.fallback[1:]
		if r.c.o.Models.Resolve(name).ID != r.spec.ID {
			return name, true
		}
	}
	return "", false
}

// again decides whether and when the same is tried again.
func (r *run) again(f *failure, elapsed time.Duration) step {
	o := &r.c.o
	if !f.retry {
		return step{stop: true}
	}
	most, total := o.MaxRetries, o.Clocks.Total
	longest := maxAsked
	if o.Patient {
		longest, total = 5*time.Minute, 1<<62
		if most = 300; f.kind == "rate_limit" || f.kind == "overloaded" {
			most = 1 << 30
		}
		f.wait = min(f.wait, longest)
	}
	wait := backoff(r.retries+1, f.wait)
	switch {
	case f.asked && f.wait > longest:
		f.err.Message += fmt.Sprintf(" · the server asks to wait %s, which is too long to sit out", limit.Roughly(f.wait))
		return step{stop: true}
	case r.retries >= most:
		return step{stop: true}
	case elapsed+wait > total:
		f.err.Message += fmt.Sprintf(" · given up after %s", limit.Roughly(elapsed))
		return step{stop: true}
	}
	r.retries++
	return step{wait: wait, told: true}
}

// backoff is the wait before the n'th retry: half a second, doubled each time
// up to 32 s, but not less than what the upstream asks for, and up to a
// quarter more by chance, so that clients spread out.
func backoff(n int, asked time.Duration) time.Duration {
	d := min(500*time.Millisecond<<min(n-1, 10), 32*time.Second)
	d = max(d, asked)
	return d + time.Duration(rand.Float64()*0.25*float64(d))
}

// step tells what is done after f and waits, if that is what is done.
func (r *run) step(f *failure, s step) error {
	if r.last.Begun {
		reason := s.reason
		if reason == "" {
			reason = f.err.Message
		}
		r.emit(agent.Reset{Reason: reason})
	}
	began := time.Now()
	if s.model != "" {
		from := r.spec.ID
		r.use(r.c.o.Models.Resolve(s.model))
		r.emit(agent.Switched{From: from, To: r.spec.ID, Reason: s.reason})
	} else if s.told {
		r.emit(agent.Retrying{
			Attempt: max(1, r.retries), Max: max(r.c.o.MaxRetries, r.retries), Wait: s.wait, Status: f.err.Status,
			Kind: f.kind, Err: f.err.Message, At: began.Add(s.wait),
		})
	}
	outcome := "ok"
	if s.wait > 0 && !r.left {
		t := time.NewTimer(s.wait)
		select {
		case <-t.C:
		case <-r.ctx.Done():
			t.Stop()
			outcome = "cancelled"
		}
	}
	detail := map[string]string{"kind": f.kind, "error": f.err.Message, "wait": s.wait.Round(time.Millisecond).String()}
	if s.reason != "" {
		detail["reason"] = s.reason
	}
	if f.err.Status != 0 {
		detail["status"] = strconv.Itoa(f.err.Status)
	}
	r.emit(agent.Crossed{
		ID: "model/" + strconv.FormatInt(r.c.seq.Add(1), 10), Boundary: "retry", Name: r.req.Purpose,
		Start: began, End: time.Now(), Attempt: r.attempts, Outcome: outcome, Detail: detail,
	})
	return ended(r.ctx)
}

// attempt makes one request and yields what comes of it. It returns nil after
// a Done and when the consumer left.
func (r *run) attempt() *failure {
	r.attempts++
	p := r.c.plan(r.req, r.spec, r.whole, r.ceiling, r.skip)
	d := &reply.Decoder{Emit: r.emit}
	r.sent, r.last = p, d
	pieces := r.c.pieces(r.req, p)
	if r.c.o.Sent != nil {
		r.c.o.Sent(Sending{At: time.Now(), Purpose: r.req.Purpose, Agent: r.req.Agent, Model: p.spec.ID, Attempt: r.attempts, Pieces: pieces})
	}
	x := r.c.start(r.ctx, "/v1/messages", bytes.Join(pieces, nil), p, r.req, r.attempts, r.badCred)
	defer x.finish(false) // should the consumer panic
	f := r.receive(x, p, d)
	x.finish(d.Done)
	r.tell(x)
	if d.Done && r.bareUsed {
		for _, name := range r.skip {
			r.c.caps.Deny(name, r.spec.ID, "accepted only without it")
		}
	}
	return f
}

// receive waits for the answer and yields it.
func (r *run) receive(x *exchange, p plan, d *reply.Decoder) *failure {
	resp, body, f := r.answer(x, p, d)
	if f != nil || resp == nil {
		return f
	}
	d.RequestID = dial.RequestID(resp.Header)
	if err := r.decode(body, d); err != nil && !r.left {
		return r.broken(err, d, resp.Header.Get("Content-Type"))
	}
	return nil
}

// answer waits for the headers of an answer that says 200. A refusal is read
// to its end. Both results are nil if the consumer left.
func (r *run) answer(x *exchange, p plan, d *reply.Decoder) (*http.Response, *bodyReader, *failure) {
	n, err := r.head(x, p)
	r.tell(x)
	switch {
	case r.left, errors.Is(err, errLeft):
		return nil, nil, nil
	case errors.Is(err, errSameCredential):
		return nil, nil, &failure{kind: "authentication_failed", err: &agent.ModelError{
			Op: "send", Fault: agent.FaultAuth, Status: 401, Message: err.Error(), Gateway: r.c.base.Host,
		}}
	case err != nil:
		return nil, nil, r.c.unsent(err, "connect")
	}
	now := time.Now()
	body := &bodyReader{r: r, x: x, last: now, progress: now}
	if n.resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(body, 1<<20)) // as much as there is of it
		return nil, nil, r.c.refusal(readAnswer(n.resp, b), p, n.cred)
	}
	r.c.noteLimits(n.resp.Header)
	return n.resp, body, nil
}

// tell yields the boundaries that x crossed.
func (r *run) tell(x *exchange) {
	for _, c := range x.take() {
		r.emit(c)
	}
}

// helperClock bounds how long a credential may take.
const helperClock = 60 * time.Second

// head waits for the headers of the answer, one clock after the other.
func (r *run) head(x *exchange, p plan) (news, error) {
	clocks := &r.c.o.Clocks
	what, limit := "connect", clocks.Connect
	if r.c.o.Auth.Source() == "helper" {
		what, limit = "credential", helperClock
	}
	for {
		now := time.Now()
		told := now
		n, _, err := wait(r, x.news, &told, clock{what, now, limit})
		if err != nil {
			return n, err
		}
		switch n.stage {
		case credentialed:
			what, limit = "connect", clocks.Connect
		case connected:
			if what, limit = "first byte", clocks.FirstByte; p.whole {
				limit = clocks.Whole
			}
		case answered:
			return n, n.err
		}
	}
}

// A clock bounds one wait.
type clock struct {
	what  string // is waited for
	since time.Time
	limit time.Duration
}

// visible is the wait that people are told about, over and over.
const visible = 10 * time.Second

// wait receives from ch. It tells of a long wait whenever ten seconds have
// passed since told, gives up when the first of the clocks runs out, and when
// the caller or the consumer is gone.
func wait[T any](r *run, ch <-chan T, told *time.Time, clocks ...clock) (v T, open bool, err error) {
	select {
	case v, open = <-ch:
		return v, open, nil
	default:
	}
	first := slices.MinFunc(clocks, func(a, b clock) int { return a.since.Add(a.limit).Compare(b.since.Add(b.limit)) })
	due := first.since.Add(first.limit)
	grace := false
	for {
		at := told.Add(visible)
		if due.Before(at) {
			at = due
		}
		t := time.NewTimer(time.Until(at))
		select {
		case v, open = <-ch:
			t.Stop()
			return v, open, nil
		case <-r.ctx.Done():
			t.Stop()
			return v, false, context.Cause(r.ctx)
		case <-t.C:
		}
		now := time.Now()
		switch {
		case now.Before(due):
			*told = now
			for _, c := range clocks {
				if past := now.Sub(c.since); past >= visible {
					r.emit(agent.Waiting{For: c.what, Since: past.Round(time.Second), Limit: c.limit})
					break
				}
			}
			if r.left {
				return v, false, errLeft
			}
		case !grace && now.Sub(due) > visible:
			// The process was stopped for a while, and what came meanwhile was
			// not read yet.
			grace, due = true, now.Add(5*time.Second)
		default:
			return v, false, &clockError{what: first.what, limit: first.limit}
		}
	}
}

// A bodyReader reads the body of an answer under the clocks.
type bodyReader struct {
	r    *run
	x    *exchange
	last time.Time // when bytes came last
	// progress is when the last event came that was no ping, told when the
	// wait for the next one was told last.
	progress, told time.Time
	buf            []byte // the whole buffer
	rest           []byte // what is unread of it
	eof            error
}

// fill gets the next piece.
func (b *bodyReader) fill() error {
	if b.eof != nil {
		return b.eof
	}
	if b.buf != nil {
		b.x.free <- b.buf
		b.buf = nil
	}
	if b.told.Before(b.progress) {
		b.told = b.progress
	}
	clocks := &b.r.c.o.Clocks
	buf, open, err := wait(b.r, b.x.data, &b.told, clock{"next byte", b.last, clocks.Idle}, clock{"next event", b.progress, clocks.Events})
	switch {
	case err != nil:
		b.eof = err
	case !open:
		b.eof = b.x.err
	default:
		b.buf, b.rest, b.last = buf, buf, time.Now()
	}
	return b.eof
}

func (b *bodyReader) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		if err := b.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// peek returns the first byte of the body that is not white space, or 0.
func (b *bodyReader) peek() byte {
	if len(b.rest) == 0 && b.fill() != nil {
		return 0
	}
	s := bytes.TrimLeft(bytes.TrimPrefix(b.rest, []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(s) == 0 {
		return 0
	}
	return s[0]
}

// decode reads the answer, as what it is rather than as what it says it is.
func (r *run) decode(body *bodyReader, d *reply.Decoder) error {
	switch body.peek() {
	case '{':
		data, err := io.ReadAll(io.LimitReader(body, reply.MaxSize))
		if err != nil {
			return err
		}
		return d.Whole(data)
	case '<':
		data, err := io.ReadAll(io.LimitReader(body, 64<<10))
		if err != nil {
			return err
		}
		return fmt.Errorf("%w: %s", reply.ErrNoMessage, answer{body: data}.words())
	}
	for ev, err := range sse.Decode(body) {
		if err != nil {
			return err
		}
		if ev.Comment || len(ev.Data) == 0 {
			continue
		}
		if err := d.Event(ev.Data, ev.Tail); err != nil {
			return err
		}
		if d.Done || r.left {
			return nil
		}
		if !d.Idle {
			body.progress = body.last
		}
	}
	return io.EOF
}

// broken classifies the end of an answer that began well.
func (r *run) broken(err error, d *reply.Decoder, contentType string) *failure {
	var clock *clockError
	var inside *reply.StreamError
	f := &failure{kind: "unknown", retry: true, err: &agent.ModelError{
		Op: "read", Fault: agent.FaultTransient, RequestID: d.RequestID, Gateway: r.c.base.Host, Err: err,
	}}
	switch {
	case errors.As(err, &inside):
		a := answer{status: statusOf(inside.Type), APIError: inside.APIError, requestID: d.RequestID}
		if a.requestID == "" {
			a.requestID = inside.RequestID
		}
		f = r.c.refusal(a, r.sent, "")
		f.err.Op, f.err.Err = "read", err
		f.whole = d.Begun && f.retry
	case errors.As(err, &clock):
		f.err.Message = "The response stalled: " + clock.Error()
		f.whole = true
	case errors.Is(err, reply.ErrProtocol), errors.Is(err, sse.ErrTooLong), errors.Is(err, reply.ErrNoMessage):
		f.err.Op, f.err.Message = "decode", err.Error()
		f.whole = true
		if errors.Is(err, reply.ErrNoMessage) {
			f.retry, f.err.Fault = false, agent.FaultOther
			f.err.Message += " (" + reply.Clip(contentType, 80) + ")"
		}
	case errors.Is(err, io.EOF) && !d.Begun:
		f.err.Op, f.err.Message = "decode", "the server answered 200 and sent no message"
		f.whole = true
	default:
		p := dial.Explain(err)
		f.err.Message = "Connection lost before the response was complete (" + p.Code + "): " + p.Text
		f.retry = !p.Lasting
	}
	return f
}
