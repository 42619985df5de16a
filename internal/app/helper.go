package app

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/ext/skill"
	"github.com/seed-eb844fcb/cinch/internal/ext/subagent"
	"github.com/seed-eb844fcb/cinch/internal/lib/price"
	"github.com/seed-eb844fcb/cinch/internal/window"
)

const priceDate = price.Date

// invoked are the skills that h has used, newest first: as they were rendered
// in this run, or, where an earlier one did that, as they are on disk now.
// Nothing is run for it.
func (a *App) invoked(ctx context.Context, h []agent.Message) []window.Note {
	a.mu.Lock()
	out := slices.Clone(a.used)
	a.mu.Unlock()
	slices.Reverse(out)
	for _, i := range window.Invoked(h) {
		if slices.ContainsFunc(out, func(n window.Note) bool { return n.Kind == i.Name }) {
			continue
		}
		for _, s := range a.ext.list() {
			if s.Name != i.Name || s.Fork {
				continue
			}
			v := skill.Invocation{Skill: s, Args: i.Args, Vars: map[string]string{"CLAUDE_SESSION_ID": a.sessionID(), "CLAUDE_PROJECT_DIR": a.o.Cwd}}
			if text, err := v.Render(ctx); err == nil {
				out = append(out, window.Note{Kind: s.Name, Text: text})
			}
		}
	}
	return out
}

// remember keeps the text of a skill for what stands behind a summary.
func (a *App) remember(s skill.Skill, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, n := range a.used {
		if n.Kind == s.Name {
			a.used = append(a.used[:i], a.used[i+1:]...)
			break
		}
	}
	a.used = append(a.used, window.Note{Kind: s.Name, Text: text})
}

// plan is the plan that was approved in this session, or "".
func (a *App) plan() string {
	data, err := os.ReadFile(filepath.Join(a.root, "plans", a.sessionID()+".md"))
	if err != nil {
		return ""
	}
	return string(data)
}

// openTasks is the list of what is still to do, or "".
func (a *App) openTasks() string { return a.taskList().Reminder("") }

// hookAgent lets an agent with read tools answer a hook's question.
func (a *App) hookAgent(ctx context.Context, model, prompt string) (string, error) {
	d := subagent.Definition{
		Name: "hook", Prompt: "You check one condition on a code base for a hook. Look at the files you need; change nothing. Your last message is the answer, in the form that the question asks for.",
		Tools: []string{"Read", "Glob", "Grep"}, Model: model, MaxTurns: 50, Bare: true,
	}
	out, err := a.runAgent(ctx, subagent.Launch{ID: newAgentID(), Definition: d, Prompt: prompt})
	return out.Text, err
}

// cutLine returns the rest of the first line of s if it begins with prefix.
func cutLine(s, prefix string) (string, bool) {
	line, _, _ := strings.Cut(s, "\n")
	return strings.CutPrefix(strings.TrimSpace(line), prefix)
}

// isUUID reports whether s has the form of a UUID.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range []byte(s) {
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if !strings.ContainsRune("0123456789abcdefABCDEF", rune(c)) {
				return false
			}
		}
	}
	return true
}

// osRelease names the system for the model.
func osRelease() string {
	if data, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		return "Linux " + strings.TrimSpace(string(data))
	}
	return runtime.GOOS
}

// readSmall reads a file that is known to be short.
func readSmall(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return nil, fs.ErrInvalid
	}
	return io.ReadAll(io.LimitReader(f, 64<<10))
}
