// Package stream is the front end for programs: the stream-json host that
// the published Agent SDKs drive. It reads user messages and control frames,
// one JSON object a line, and writes the session's events as the SDK's
// messages. It owns the framing and the wire names of that protocol, and
// knows nothing of how the session does its work.
//
// Output order is event order: one goroutine folds events into frames and
// writes them, control responses included. A slow host slows only this
// goroutine; a host that is gone ends the session.
package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// Options says what a host asked for. In, Out and Err are required.
type Options struct {
	In       io.Reader // stream-json lines; nil if Prompt is all there is
	Out, Err io.Writer
	// Prompt, if not nil, is submitted first.
	Prompt []agent.Block
	// Partial adds stream_event frames; HookEvents those of all hooks;
	// Replay echoes user messages; ForwardText adds what sub-agents say.
	Partial, HookEvents, Replay, ForwardText bool
	// States adds session_state_changed frames.
	States bool
	// Host says that permission questions go to the host as can_use_tool.
	Host bool
	// Version is told in init frames.
	Version string
}

// Run drives s until the host has nothing more to say and everything is
// settled. It returns the exit code: 0, or 1 if the last result was an error
// or the protocol broke. ctx ends it early.
func Run(ctx context.Context, s agent.Session, o Options) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	h := &host{
		o: o, s: s,
		seen: map[string]bool{}, dropped: map[string]bool{}, asked: map[string]agent.Question{},
	}
	if o.Prompt != nil {
		if err := s.Submit(ctx, agent.Prompt{Blocks: o.Prompt, Replay: o.Replay}); err != nil {
			h.complain(err.Error())
			return 1
		}
	}
	// The reader may sit in a Read that nothing can end, on a terminal or a
	// pipe that stays open; it holds nothing, so it is not waited for.
	junk := make(chan error, 1)
	go func() {
		var err error
		if o.In != nil {
			err = lines(o.In, func(l []byte) error { return h.take(ctx, l) })
		}
		if err != nil && ctx.Err() == nil {
			junk <- err
			cancel(err)
			return
		}
		h.eof(ctx)
	}()
	err := h.follow(ctx)
	select {
	case jerr := <-junk:
		h.complain("reading from the host: " + jerr.Error())
		h.stop(jerr.Error())
		return 1
	default:
	}
	if err != nil {
		h.stop(err.Error())
		return 1
	}
	return h.code
}

// A host is one connection to a program that drives the session.
type host struct {
	o Options
	s agent.Session

	// What follows belongs to the goroutine that runs follow.
	session string
	part    partial // the running response, if partial messages are wanted
	line    []byte  // the buffer of write
	code    int

	mu      sync.Mutex
	seen    map[string]bool           // control requests of the host, by id
	dropped map[string]bool           // those it gave up
	asked   map[string]agent.Question // our requests that wait for the host, by id
	ended   bool                      // the host closed its side
}

func (h *host) complain(s string) { fmt.Fprintln(h.o.Err, "cinch: "+s) }

// stop ends the session; ctx may be over already.
func (h *host) stop(reason string) {
	_ = h.s.Submit(context.Background(), agent.Stop{Reason: reason}) // a session that is over needs no stop
}

// eof tells the session that nothing more comes. Questions that wait for the
// host can no longer be answered.
func (h *host) eof(ctx context.Context) {
	h.mu.Lock()
	h.ended = true
	open := h.asked
	h.asked = map[string]agent.Question{}
	h.mu.Unlock()
	for _, q := range open {
		h.refuse(ctx, q, "The stream was closed before a response came.")
	}
	if err := h.s.Submit(ctx, agent.Finish{}); err != nil && ctx.Err() == nil {
		h.complain(err.Error())
	}
}

func (h *host) submitAnswer(ctx context.Context, a agent.Answer) {
	// An answer to a question that was withdrawn meanwhile is nobody's fault.
	_ = h.s.Submit(ctx, a)
}

func (h *host) refuse(ctx context.Context, q agent.Question, why string) {
	a := agent.Answer{ID: q.ID, Err: why}
	if q.Kind == agent.AskPermission {
		a.Decision = agent.Decision{Verdict: agent.Deny, Why: agent.WhyPrompt, By: "host", Reason: why}
	}
	h.submitAnswer(ctx, a)
}

// follow writes frames until the session is over or the host is gone.
func (h *host) follow(ctx context.Context) error {
	for e, err := range h.s.Events(ctx, 0) {
		if err != nil {
			return err
		}
		if err := h.event(ctx, e); err != nil {
			return fmt.Errorf("writing to the host: %w", err)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// ask puts a question to the host, or refuses it where the host cannot answer.
func (h *host) ask(ctx context.Context, q agent.Question) error {
	if q.Kind == agent.AskPermission && !h.o.Host {
		h.submitAnswer(ctx, agent.Answer{ID: q.ID, Decision: agent.Decision{Verdict: agent.Deny, NoOne: true}, Err: agent.ErrNoOne.Error()})
		return nil
	}
	req, err := request(q)
	if err != nil {
		h.refuse(ctx, q, err.Error())
		return nil
	}
	h.mu.Lock()
	ended := h.ended
	if !ended {
		h.asked[q.ID] = q
	}
	h.mu.Unlock()
	if ended {
		h.refuse(ctx, q, "The stream was closed before a response came.")
		return nil
	}
	return h.write(control{Type: "control_request", RequestID: q.ID, Request: req})
}

// errKind reports a question this protocol has no frame for.
var errKind = errors.New("a host cannot be asked this")
