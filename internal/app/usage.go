package app

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/checkpoint"
	"github.com/seed-eb844fcb/cinch/internal/session"
	"github.com/seed-eb844fcb/cinch/internal/window"
)

// report is the account of what fills the window.
func (a *App) report() window.Report {
	l, warm := a.layout, a.warm()
	e := l.made()
	l.mu.Lock()
	set, last := l.memory, l.last
	l.mu.Unlock()
	r := window.Account{
		Builder: e.Builder, Compactor: e.Compactor, History: a.Session.History(), Memory: set, Agents: a.agentInfos(), Model: a.Session.Model(), Usage: last,
	}.Report()
	r.Warm = warm
	return r
}

func (a *App) contextUsage(context.Context, json.RawMessage) (any, error) { return a.report(), nil }

func (a *App) slashContext(context.Context, string) (session.Expansion, error) {
	return session.Expansion{Local: a.report().Text()}, nil
}

// slashRewind takes changes to files back, to the last prompt that changed
// some or to the one that is named.
func (a *App) slashRewind(_ context.Context, args string) (session.Expansion, error) {
	if a.points == nil {
		return session.Expansion{}, fmt.Errorf("changes to files are not kept in this session")
	}
	to := args
	if to == "" {
		for _, p := range a.points.Points() {
			if p.Files > 0 {
				to = p.ID
			}
		}
	}
	if to == "" {
		return session.Expansion{Local: "No file was changed."}, nil
	}
	r := a.rewind(checkpoint.Rewind{To: to})
	if r.Err != "" {
		return session.Expansion{}, fmt.Errorf("%s", r.Err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d files went back.\n", len(r.Files))
	for _, f := range r.Files {
		b.WriteString("  " + f + "\n")
	}
	for _, k := range r.Kept {
		b.WriteString("kept: " + k + "\n")
	}
	for _, s := range r.Shell {
		b.WriteString("changed by a command and left: " + s + "\n")
	}
	return session.Expansion{Local: strings.TrimRight(b.String(), "\n")}, nil
}

// backgroundTasks sends commands that are waited for to the background.
func (a *App) backgroundTasks(_ context.Context, raw json.RawMessage) (any, error) {
	in, err := arguments[struct {
		Call agent.CallID `json:"tool_use_id"`
	}](raw)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, ch := range a.behind {
		if in.Call == "" || in.Call == id {
			close(ch)
			delete(a.behind, id)
		}
	}
	return nil, nil
}

// toBackground is closed when somebody wants a call to go on in the background.
func (a *App) toBackground(id agent.CallID) <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	ch := a.behind[id]
	if ch == nil {
		ch = make(chan struct{})
		a.behind[id] = ch
	}
	return ch
}

// allTools are the names of the tools of the session, in order.
func (a *App) allTools() []string { return a.tools.Names() }
