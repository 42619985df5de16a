package app

import (
	"context"
	"slices"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/net/mcp"
	"github.com/seed-eb844fcb/cinch/internal/window"
)

// agreed asks the person at the terminal about a change that would make the
// warm cache useless, and says whether to go on with it. Without a person, and
// with a cold cache, it goes on. what is the change, next the model after it.
func (a *App) agreed(ctx context.Context, what, next string) (bool, error) {
	warm := a.warm()
	if warm == 0 {
		return true, nil
	}
	s := window.Switch{
		What: what, Warm: warm, Stay: a.price(a.Session.Model(), agent.Usage{CacheRead: warm}),
		Break: a.price(next, agent.Usage{CacheWrite5m: warm}),
	}
	answer, err := a.ask(ctx, agent.Question{Kind: agent.AskConfirm, Title: s.Question()})
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil || answer.Err != "":
		return true, nil // nobody is there
	}
	return answer.Decision.Verdict == agent.Allow, nil
}

// warm is how many tokens of the conversation the upstream should have in its
// cache: as told by the last answer, also by that of a run before this one.
func (a *App) warm() int {
	l := a.layout
	l.mu.Lock()
	e, fresh := l.engine, l.fresh
	l.mu.Unlock()
	switch {
	case e != nil:
		return e.Warm()
	case a.loaded != nil && !fresh && !a.o.Fork && time.Since(a.loaded.Answered) < 5*time.Minute:
		return a.loaded.Cached
	}
	return 0
}

// agreedTools is agreed for a server whose definitions would join the request:
// they stand before everything else in it. Definitions that are held back, and
// those that are part of it already, change nothing.
func (a *App) agreedTools(ctx context.Context, verb, server string) (bool, error) {
	eager := a.catalog == nil || slices.ContainsFunc(a.starting, func(c mcp.Config) bool { return c.Name == server && c.AlwaysLoad })
	known := slices.ContainsFunc(a.mcp.Servers(), func(s mcp.Status) bool { return s.Name == server })
	a.layout.mu.Lock()
	e := a.layout.engine
	a.layout.mu.Unlock()
	if verb != "enable" && verb != "reconnect" || !eager || !known || e == nil || e.Offers(server) {
		return true, nil
	}
	return a.agreed(ctx, "The tools of "+server+" join the request", a.Session.Model())
}
