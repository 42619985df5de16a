package window

import (
	"context"
	"slices"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/window/audit"
	"github.com/seed-eb844fcb/cinch/internal/window/compact"
	"github.com/seed-eb844fcb/cinch/internal/window/prompt"
)

// An Engine is a Builder and a Compactor that know of each other: what the
// one takes out of a history is a planned change for the other. Its methods
// are what a session asks for. Fit, Recover and Compact are called by one
// goroutine at a time, the others by any.
type Engine struct {
	*Builder
	*compact.Compactor
	// Renew returns system text and tools anew after a summary, when the
	// prefix is made again in any case. Nil keeps them.
	Renew func() ([]prompt.Section, []agent.Spec)
	// Told is handed the audit of each answered request. Nil: nobody is.
	Told func(audit.Record)
}

// NewEngine joins b with a Compactor of o. Aside, Peek and Overhead are filled in.
func NewEngine(b *Builder, o compact.Options) *Engine {
	o.Aside = func(h []agent.Message, instruction string) *agent.Request { return b.Aside(h, "compact", instruction) }
	o.Overhead, o.Peek = b.Overhead, b.Peek
	return &Engine{Builder: b, Compactor: compact.New(o)}
}

// Fit implements the session's function of that name.
func (e *Engine) Fit(ctx context.Context, h []agent.Message) compact.Outcome {
	out := e.Compactor.Fit(ctx, h)
	e.plan(out)
	return out
}

// Recover implements the session's function of that name.
func (e *Engine) Recover(ctx context.Context, h []agent.Message, err error) (compact.Outcome, bool) {
	out, ok := e.Compactor.Recover(ctx, h, err)
	e.plan(out)
	return out, ok
}

// Compact implements the session's function of that name.
func (e *Engine) Compact(ctx context.Context, h []agent.Message, focus string) agent.Compacted {
	done := e.Compactor.Compact(ctx, h, focus)
	if done.Err == "" {
		e.renew()
	}
	return done
}

// Answered implements the session's function of that name.
func (e *Engine) Answered(messageID string, u agent.Usage) {
	e.Observe(messageID, u)
	r := e.Builder.Answered(u)
	if e.Told != nil && r.N > 0 {
		e.Told(r)
	}
}

func (e *Engine) plan(out compact.Outcome) {
	if out.Compacted != nil && out.Compacted.Err == "" {
		e.renew()
		return
	}
	if !out.Changed {
		return
	}
	var stages []string
	for _, c := range out.Cuts {
		if !slices.Contains(stages, c.Stage) {
			stages = append(stages, c.Stage)
			e.Plan("history shortened: " + c.Stage)
		}
	}
}

func (e *Engine) renew() {
	if e.Renew == nil {
		e.Plan("the history was replaced by a summary")
		return
	}
	sections, tools := e.Renew()
	e.Reset("the history was replaced by a summary", sections, tools)
}
