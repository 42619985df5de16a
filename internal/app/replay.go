package app

import (
	"context"
	"fmt"
	"iter"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/net/recording"
)

// A replayed tool answers from a recording instead of running.
type replayed struct {
	agent.Tool
	from *recording.Recording
}

func (t replayed) Run(_ context.Context, c agent.Call) (agent.Result, error) {
	raw, ok := t.from.Result(string(c.ID))
	if !ok {
		return agent.Result{}, fmt.Errorf("the recording has no result of the call %s", c.ID)
	}
	b, err := agent.DecodeBlock(raw)
	if err != nil {
		return agent.Result{}, err
	}
	r, ok := b.(*agent.ToolResult)
	if !ok {
		return agent.Result{}, fmt.Errorf("what the recording has for the call %s is no result", c.ID)
	}
	return agent.Result{Blocks: r.Blocks, Array: r.Array, IsError: r.IsError}, nil
}

// fromRecording puts the recording in the place of every tool.
func (a *App) fromRecording(ts []agent.Tool) []agent.Tool {
	if a.o.Replay == nil {
		return ts
	}
	for i, t := range ts {
		ts[i] = replayed{t, a.o.Replay}
	}
	return ts
}

// keyless is the provider where nothing says who pays: it asks nobody.
type keyless struct{}

func (keyless) Stream(context.Context, *agent.Request) iter.Seq2[agent.Delta, error] {
	return func(yield func(agent.Delta, error) bool) {
		yield(nil, &agent.ModelError{
			Op: "send", Fault: agent.FaultAuth,
			Message: "there is no credential for the public API. Set ANTHROPIC_API_KEY, point ANTHROPIC_BASE_URL at a gateway or a local server, or try 'cinch demo', which needs neither",
		})
	}
}

// provider is what the main conversation asks.
func (a *App) provider() agent.Provider {
	if a.firstParty() && a.model.Credential() == "none" {
		return keyless{}
	}
	return a.model
}
