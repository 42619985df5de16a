package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/atomicfile"
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
func (a *App) cached(r window.Record) { a.cachedOf("", "", a.Session.Model(), r) }

// cachedOf is cached for the sub-agent id, which works on the call parent.
func (a *App) cachedOf(parent agent.CallID, id, model string, r window.Record) {
	if r.Verdict == "first" || r.Verdict == "hit" || r.Verdict == "pending" {
		return
	}
	d := map[string]string{
		"verdict": string(r.Verdict), "request": fmt.Sprint(r.N), "expected": fmt.Sprint(r.Expected), "read": fmt.Sprint(r.Read), "lost": fmt.Sprint(r.Lost()),
	}
	if n := r.Lost(); n > 0 {
		d["price"] = fmt.Sprintf("$%.4f", a.price(model, agent.Usage{CacheWrite5m: n})-a.price(model, agent.Usage{CacheRead: n}))
	}
	if b := r.Break; b != nil {
		d["break"], d["reason"], d["before"], d["after"] = b.String(), b.Reason, b.Before, b.After
	}
	a.emit(parent, id, agent.Crossed{ID: frame.UUID(), Boundary: "cache", Name: string(r.Verdict), Start: r.At, End: time.Now(), Attempt: 1, Outcome: "ok", Detail: d})
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
		var list strings.Builder
		for i, p := range a.pins() {
			fmt.Fprintf(&list, "%d. %s\n", i+1, p)
		}
		return session.Expansion{Local: or(strings.TrimRight(list.String(), "\n"), "Nothing is pinned.")}, nil
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
	a.pinned = append(a.pinned, window.Note{Kind: window.NotePins, Text: "The user has pinned a fact, which holds until it is unpinned: " + fact})
	a.mu.Unlock()
	return session.Expansion{Local: "Pinned: " + fact}, nil
}

// slashUnpin takes a pin away, by its number in the list of /pin.
func (a *App) slashUnpin(_ context.Context, args string) (session.Expansion, error) {
	pins := a.pins()
	n, err := strconv.Atoi(strings.TrimSpace(args))
	if err != nil || n < 1 || n > len(pins) {
		return session.Expansion{}, fmt.Errorf("usage: /unpin NUMBER; /pin lists the %d pins", len(pins))
	}
	fact := pins[n-1]
	rest := strings.Join(slices.Delete(pins, n-1, n), "\n")
	if rest != "" {
		rest += "\n"
	}
	if err := atomicfile.WriteFile(a.pinFile(), []byte(rest), 0o600); err != nil {
		return session.Expansion{}, err
	}
	a.mu.Lock()
	a.pinned = append(a.pinned, window.Note{Kind: window.NotePins, Text: "The user has unpinned a fact; it holds no more because it was pinned: " + fact})
	a.mu.Unlock()
	return session.Expansion{Local: "Unpinned: " + fact}, nil
}

// forkPins lets a copy of the session old keep what is pinned there.
func (a *App) forkPins(old string) {
	data, err := os.ReadFile(filepath.Join(a.root, "cinch", "pins", filepath.Base(old)+".txt"))
	if err != nil || len(data) == 0 {
		return
	}
	if err = os.MkdirAll(filepath.Dir(a.pinFile()), 0o700); err == nil {
		err = atomicfile.WriteFile(a.pinFile(), data, 0o600)
	}
	if err != nil {
		a.warn("what is pinned in the session was not taken over: %v", err)
	}
}

// newPins are notes on what was pinned since they were last asked for.
func (a *App) newPins() []agent.Block {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := window.Remind(a.pinned...)
	a.pinned = nil
	return out
}
