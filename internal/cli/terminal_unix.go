//go:build unix

package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"sync"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/app"
	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
	"github.com/seed-eb844fcb/cinch/internal/lib/tty"
	"github.com/seed-eb844fcb/cinch/internal/ui/tui"
)

// screen reports whether the terminal can take more than lines, and is to.
func (p *program) screen(o *options) bool {
	term := p.env("TERM")
	return isTerminal(p.stdin) && isTerminal(p.stdout) && !o.on("plain") && !o.on("ax-screen-reader") &&
		!truthy(p.env("CLAUDE_AX_SCREEN_READER")) && term != "" && term != "dumb"
}

// talk runs the front end with a screen, and says how that ended.
func (p *program) talk(ctx context.Context, a *app.App, prompt []agent.Block) (tui.Result, error) {
	restore, err := tty.Raw(p.stdin)
	if err != nil {
		return tui.Result{}, err
	}
	defer func() { restore() }()
	keys, err := tty.NewReader(p.stdin)
	if err != nil {
		return tui.Result{}, err
	}
	defer keys.Close()
	resized := make(chan struct{}, 1)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, tty.Resized)
	done := make(chan struct{})
	var group sync.WaitGroup
	defer func() { signal.Stop(signals); close(done); group.Wait() }()
	group.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-signals:
				select {
				case resized <- struct{}{}:
				default: // one is on its way
				}
			}
		}
	})
	// again puts the terminal back into raw mode after f had it.
	again := func(f func()) {
		keys.Pause()
		defer keys.Resume()
		restore()
		f()
		if r, err := tty.Raw(p.stdin); err == nil {
			restore = r
		}
	}
	status, every := a.Status()
	to := tui.Options{
		In: keys, Out: p.stdout, Size: func() (int, int) { return tty.Size(p.stdout) }, Resized: resized,
		Suspend: func() { again(func() { _ = tty.Suspend() }) }, // where that is not possible the program just goes on
		Prompt:  prompt, Once: p.once, Past: a.Past(), Draft: p.draft, Fork: a.ForkBefore, Typed: a.Typed(), Remember: a.Remember,
		Status: status, StatusEvery: every, Facts: a.Facts,
		Version: Version, Color: p.color(), Still: truthy(p.env("CINCH_REDUCED_MOTION")) || a.Still(),
		Kitty: p.env("TERM") != "linux", Bell: a.Bell(),
		Sessions: func() ([]tui.Session, error) {
			all, err := a.Sessions(ctx)
			var out []tui.Session
			for _, s := range all {
				out = append(out, tui.Session{ID: s.ID, Title: s.Name(), Branch: s.Branch, When: s.Active, Bytes: s.Size})
			}
			return out, err
		},
	}
	if editor := or(p.env("VISUAL"), p.env("EDITOR")); editor != "" {
		to.Edit = func(text string) (out string, err error) {
			again(func() { out, err = p.edit(ctx, editor, text) })
			return out, err
		}
	}
	return tui.Run(ctx, a.Session, to), nil
}

// edit lets editor, a command line, change text in a file of its own.
func (p *program) edit(ctx context.Context, editor, text string) (string, error) {
	f, err := os.CreateTemp("", "cinch-*.md")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	s := proc.Shell("", editor+` "$1"`, f.Name())
	s.Env = p.environ
	c, err := proc.Start(ctx, s, proc.Options{Stdin: p.stdin, Stdout: p.stdout, Stderr: p.stdout, Terminal: true})
	if err != nil {
		return "", err
	}
	exit, err := c.Wait()
	if err == nil && !exit.OK() {
		err = errors.New(strings.Fields(editor)[0] + " ended with " + exit.String())
	}
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(f.Name())
	return string(data), err
}
