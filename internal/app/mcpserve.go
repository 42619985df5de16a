package app

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/net/mcp/serve"
)

// A served tool is one that makes sense without a conversation.
type served struct {
	name           string
	readOnly, open bool // it only looks; it reaches beyond this machine
}

var servedTools = [...]served{
	{"Bash", false, true}, {"Edit", false, false}, {"Glob", true, false}, {"Grep", true, false}, {"NotebookEdit", false, false},
	{"Read", true, false}, {"TaskOutput", true, false}, {"TaskStop", false, false}, {"WebFetch", true, true}, {"WebSearch", true, true},
	{"Write", false, false},
}

// Served is what other clients may be offered: the built-in tools that are on
// offer here, run under the permission rules. Nobody is asked: what would
// need an answer is refused.
func (a *App) Served() serve.Options {
	o := serve.Options{
		Version: a.o.Version, Call: a.serveCall(),
		Instructions: "Tools of Cinch on the files and commands of " + a.o.Cwd + ". Its permission rules apply: a call that nothing allows is refused, and the answer says what would allow it.",
	}
	for _, s := range servedTools {
		if t := a.tools.Lookup(s.name); t != nil {
			o.Tools = append(o.Tools, serve.Tool{Spec: t.Spec(), ReadOnly: s.readOnly, OpenWorld: s.open})
		}
	}
	return o
}

// serveCall returns the function that runs a call of a client. Calls that may
// not run side by side wait for each other.
func (a *App) serveCall() func(context.Context, string, json.RawMessage, func(agent.Progress)) agent.Result {
	alone := make(chan struct{}, 1)
	var n atomic.Int64
	return func(ctx context.Context, name string, input json.RawMessage, progress func(agent.Progress)) agent.Result {
		t := a.tools.Lookup(name)
		if t == nil || !slices.ContainsFunc(servedTools[:], func(s served) bool { return s.name == name }) {
			return agent.Failed("there is no tool " + name)
		}
		c := agent.Call{ID: agent.CallID(fmt.Sprintf("serve_%d", n.Add(1))), Name: name, Input: input, Progress: progress}
		var err error
		if c.Effects, err = a.inspect(name, input); err != nil {
			return agent.Failed(err.Error())
		}
		if !c.Effects.Concurrent {
			select {
			case alone <- struct{}{}:
				defer func() { <-alone }()
			case <-ctx.Done():
				return agent.Failed(context.Cause(ctx).Error())
			}
		}
		d, err := a.gate.Decide(ctx, c)
		if err != nil {
			return agent.Failed(err.Error())
		}
		if d.Verdict != agent.Allow {
			return agent.Failed(or(d.Reason, "Permission to use "+name+" was denied."))
		}
		if d.Input != nil {
			c.Input = d.Input
			if c.Effects, err = a.inspect(name, d.Input); err != nil {
				return agent.Failed(err.Error())
			}
		}
		return a.runServed(ctx, t, c)
	}
}

// runServed runs a call; a fault of the tool is its result.
func (a *App) runServed(ctx context.Context, t agent.Tool, c agent.Call) (r agent.Result) {
	defer func() {
		if v := recover(); v != nil {
			a.note("error", fmt.Sprintf("the tool %s panicked: %v\n%s", c.Name, v, debug.Stack()))
			r = agent.Failed(fmt.Sprintf("The tool %s failed within itself: %v. Whether it took effect is unknown.", c.Name, v))
		}
	}()
	r, err := t.Run(agent.WithCall(ctx, c.ID), c)
	if err != nil {
		return agent.Failed(err.Error())
	}
	return r
}
