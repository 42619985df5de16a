package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/net/model/catalog"
	"github.com/seed-eb844fcb/cinch/internal/net/model/reply"
)

// ErrNoCount reports an upstream that cannot count tokens: estimate.
var ErrNoCount = errors.New("model: the upstream does not count tokens")

// CountTokens asks the upstream how many tokens req would send. Errors are
// *agent.ModelError, ErrNoCount or the cause of ctx.
func (c *Client) CountTokens(ctx context.Context, req *agent.Request) (int, error) {
	spec := c.o.Models.Resolve(req.Model)
	if !c.caps.Allows("count-tokens", spec.ID) {
		return 0, ErrNoCount
	}
	r := c.silent(ctx, req, spec)
	for {
		p := c.plan(req, spec, true, 0, nil)
		p.counting = true
		r.attempts++
		r.sent = p
		data, f := r.once("/v1/messages/count_tokens", p)
		if err := ended(ctx); err != nil {
			return 0, err
		}
		var w struct {
			Tokens *int `json:"input_tokens"`
		}
		switch {
		case f == nil && json.Unmarshal(data, &w) == nil && w.Tokens != nil:
			return *w.Tokens, nil
		case f == nil || slices.Contains([]int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented}, f.err.Status):
			why := "no such path"
			if f != nil {
				why = f.err.Message
			}
			c.caps.Deny("count-tokens", "", why)
			return 0, ErrNoCount
		}
		f.err.Attempts = r.attempts
		f.bare, f.whole = false, false
		s := r.next(f, time.Since(r.start))
		if s.stop || s.model != "" || r.retries > 2 {
			return 0, f.err
		}
		if err := r.step(f, s); err != nil {
			return 0, err
		}
	}
}

// silent is a run whose deltas nobody hears.
func (c *Client) silent(ctx context.Context, req *agent.Request, spec catalog.Spec) *run {
	r := &run{c: c, ctx: ctx, req: req, yield: func(agent.Delta, error) bool { return true }}
	r.use(spec)
	return r
}

// once makes one request and returns the body of an answer that says 200.
func (r *run) once(path string, p plan) ([]byte, *failure) {
	d := &reply.Decoder{Emit: r.emit}
	r.last = d
	x := r.c.start(r.ctx, path, r.c.body(r.req, p), p, r.req, r.attempts, r.badCred)
	defer x.finish(false)
	_, body, f := r.answer(x, p, d)
	if f != nil {
		return nil, f
	}
	data, err := io.ReadAll(io.LimitReader(body, reply.MaxSize))
	if err != nil {
		return nil, r.broken(err, d, "")
	}
	return data, nil
}

// A Probe is one line of a gateway's report.
type Probe struct {
	Name   string // "streaming", "one piece", "count tokens", or the name of a feature
	OK     bool
	Detail string // what came, or the refusal
	Took   time.Duration
}

// Doctor asks the upstream one small question after the other to find out
// what it takes, and yields each finding as it comes. What it learns holds
// for this client from then on. It costs a few hundred tokens.
func (c *Client) Doctor(ctx context.Context, name string) iter.Seq[Probe] {
	return func(yield func(Probe) bool) {
		for _, probe := range c.probes(name) {
			start := time.Now()
			p := probe.run(ctx)
			p.Name, p.Took = probe.name, time.Since(start)
			if !yield(p) || ctx.Err() != nil {
				return
			}
		}
	}
}

type probe struct {
	name string
	run  func(context.Context) Probe
}

func (c *Client) probes(name string) []probe {
	spec := c.o.Models.Resolve(name)
	ask := func(change func(*agent.Request)) *agent.Request {
		req := &agent.Request{
			Model: name, MaxTokens: 64, Purpose: "doctor", Thinking: agent.Thought{Type: "disabled"}, Effort: "low",
			Messages: []agent.Message{{Role: agent.User, Blocks: []agent.Block{&agent.Text{Text: "Answer with the word ok."}}}},
		}
		if change != nil {
			change(req)
		}
		return req
	}
	ps := []probe{
		{"streaming", func(ctx context.Context) Probe { return c.probeStream(ctx, ask(nil), false) }},
		{"one piece", func(ctx context.Context) Probe {
			return c.probeStream(ctx, ask(func(r *agent.Request) { r.Whole = true }), true)
		}},
		{"count tokens", func(ctx context.Context) Probe {
			n, err := c.CountTokens(ctx, ask(nil))
			if err != nil {
				return Probe{Detail: err.Error()}
			}
			return Probe{OK: true, Detail: fmt.Sprintf("%d tokens", n)}
		}},
	}
	tool := func(extra string) json.RawMessage {
		return json.RawMessage(`[{"name":"probe","description":"Not to be called.","input_schema":{"type":"object","properties":{}` +
			map[bool]string{true: `,"additionalProperties":false`}[strings.Contains(extra, "strict")] + `}` + extra + `}]`)
	}
	for _, f := range []struct {
		name   string
		change func(*agent.Request)
	}{
		{"cache", func(r *agent.Request) { r.Mark = true }},
		{"thinking", func(r *agent.Request) {
			r.MaxTokens, r.Thinking = 2048, agent.Thought{}
		}},
		{"effort", nil},
		{"context-management", func(r *agent.Request) {
			r.Extra = map[string]json.RawMessage{"context_management": json.RawMessage(`{"edits":[]}`)}
		}},
		{"tool-search", func(r *agent.Request) { r.Tools = tool(`,"defer_loading":true`) }},
		{"strict-tools", func(r *agent.Request) { r.Tools = tool(`,"strict":true`) }},
		{"eager-input", func(r *agent.Request) { r.Tools = tool(`,"eager_input_streaming":true`) }},
	} {
		ps = append(ps, probe{f.name, func(ctx context.Context) Probe {
			if !c.caps.Allows(f.name, spec.ID) {
				return Probe{Detail: "not used: " + c.caps.Why(f.name, spec.ID)}
			}
			p := c.probeStream(ctx, ask(f.change), true)
			if p.OK && !c.caps.Allows(f.name, spec.ID) {
				return Probe{Detail: c.caps.Why(f.name, spec.ID)}
			}
			return p
		}})
	}
	return ps
}

// probeStream asks req and says how the answer came.
func (c *Client) probeStream(ctx context.Context, req *agent.Request, wholeIsFine bool) Probe {
	var detail []string
	note := func(s string) {
		if !slices.Contains(detail, s) {
			detail = append(detail, s)
		}
	}
	ok := false
	for d, err := range c.Stream(ctx, req) {
		if err != nil {
			note(err.Error())
			return Probe{Detail: strings.Join(detail, "; ")}
		}
		switch d := d.(type) {
		case agent.Begin:
			if d.Whole && !wholeIsFine {
				note("the answer came in one piece")
			} else if d.RequestID == "" {
				note("no request id")
			}
			ok = wholeIsFine || !d.Whole
			if d.Usage.Prompt() == 0 {
				note("no token counts at the start")
			}
		case agent.Retrying:
			note("tried again: " + d.Err)
		case agent.Stopped:
			note(fmt.Sprintf("stop %s, %d tokens in, %d out", d.Stop, d.Usage.Prompt(), d.Usage.Out))
		}
	}
	return Probe{OK: ok, Detail: strings.Join(detail, "; ")}
}
