package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/session"
	"github.com/seed-eb844fcb/cinch/internal/ui/frame"
	"github.com/seed-eb844fcb/cinch/internal/window"
	"github.com/seed-eb844fcb/cinch/internal/window/recall"
)

// recallName is the tool that searches the conversation behind a summary; ""
// where nothing is saved that could be searched, or few tools were asked for.
func (a *App) recallName() string {
	if a.record == nil || a.o.ToolsSet || a.o.Bare {
		return ""
	}
	return recall.Name
}

// cached tells, in the trace, of a request whose cache was not what it could
// have been: where the bytes broke and why, and what that cost.
func (a *App) cached(r window.Record) {
	if r.Verdict == "first" || r.Verdict == "hit" || r.Verdict == "pending" {
		return
	}
	d := map[string]string{
		"verdict": string(r.Verdict), "request": fmt.Sprint(r.N), "expected": fmt.Sprint(r.Expected), "read": fmt.Sprint(r.Read), "lost": fmt.Sprint(r.Lost()),
	}
	if b := r.Break; b != nil {
		d["break"], d["reason"], d["before"], d["after"] = b.String(), b.Reason, b.Before, b.After
	}
	a.emit("", "", agent.Crossed{ID: frame.UUID(), Boundary: "cache", Name: string(r.Verdict), Start: r.At, End: time.Now(), Attempt: 1, Outcome: "ok", Detail: d})
}

// pinFile holds the facts that survive every summary, one a line.
func (a *App) pinFile() string { return filepath.Join(a.root, "cinch", "pins", a.sessionID()+".txt") }

// pins are the facts that the person wants kept.
func (a *App) pins() []string {
	data, err := os.ReadFile(a.pinFile())
	if err != nil {
		return nil
	}
	return strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' })
}

// slashPin keeps a fact: it is told to the model now and after each summary.
func (a *App) slashPin(_ context.Context, args string) (session.Expansion, error) {
	if args == "" {
		return session.Expansion{Local: or(strings.Join(a.pins(), "\n"), "Nothing is pinned.")}, nil
	}
	fact := strings.Join(strings.Fields(args), " ")
	if err := os.MkdirAll(filepath.Dir(a.pinFile()), 0o700); err != nil {
		return session.Expansion{}, err
	}
	f, err := os.OpenFile(a.pinFile(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return session.Expansion{}, err
	}
	_, err = f.WriteString(fact + "\n")
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return session.Expansion{}, err
	}
	a.mu.Lock()
	a.pinned = append(a.pinned, window.Note{Kind: window.NoteReminder, Text: "The user has pinned a fact: " + fact})
	a.mu.Unlock()
	return session.Expansion{Local: "Pinned: " + fact}, nil
}

// newPins are notes on what was pinned since they were last asked for.
func (a *App) newPins() []agent.Block {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := window.Remind(a.pinned...)
	a.pinned = nil
	return out
}
