package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/checkpoint"
	"github.com/seed-eb844fcb/cinch/internal/lib/atomicfile"
	"github.com/seed-eb844fcb/cinch/internal/transcript"
	"github.com/seed-eb844fcb/cinch/internal/ui/frame"
)

// A notFound is a conversation that --resume names and nobody has.
type notFound struct{ key string }

func (e notFound) Error() string { return "No conversation found with session ID: " + e.key }

// openSession finds the conversation to go on with, or begins a new one, and
// opens its files. A file that cannot be written costs the saving, not the
// session.
func (a *App) openSession(ctx context.Context) error {
	a.store = transcript.NewStore(a.root)
	if name := a.env.get("CLAUDE_CODE_PROJECT_DIR_NAME"); name != "" && a.env.get("CLAUDE_CONFIG_DIR") != "" {
		a.store.Name = name
	}
	a.id = a.o.SessionID
	if a.id != "" && !isUUID(a.id) {
		return fmt.Errorf("--session-id takes a UUID, not %q", a.id)
	}
	if a.id == "" {
		a.id = frame.UUID()
	}
	found, err := a.find(ctx)
	if err != nil {
		return err
	}
	path := a.store.Path(a.o.Cwd, a.id)
	if found != nil {
		if path, err = a.take(*found); err != nil {
			return err
		}
	}
	if err := a.keep(ctx, path); err != nil {
		return err
	}
	if a.checkpointing() {
		s, err := checkpoint.Open(filepath.Join(a.root, "cinch", "checkpoints", a.id))
		if err != nil {
			a.warn("changes to files cannot be taken back in this session: %v", err)
		} else {
			a.points = s
			a.onClose(func() { s.Close() })
		}
	}
	return nil
}

// find returns the session that --resume or --continue means; nil for a new one.
func (a *App) find(ctx context.Context) (*transcript.Summary, error) {
	switch {
	case a.o.Resume != "":
		m, err := a.store.Find(ctx, a.o.Resume, a.o.Cwd)
		var nf *transcript.NotFoundError
		if errors.As(err, &nf) {
			return nil, notFound{a.o.Resume}
		}
		if err != nil {
			return nil, err
		}
		return &m, nil
	case a.o.ResumeSet:
		return nil, errors.New("--resume without an id needs a terminal to choose in\nhint: 'cinch sessions' lists the conversations of this directory")
	case a.o.Continue:
		m, ok, err := a.store.Continue(ctx, a.o.Cwd, a.o.Print)
		if err != nil || !ok {
			return nil, err
		}
		return &m, nil
	}
	return nil, nil
}

// take loads the session m, under its own id or a new one, and returns the
// path that is written to.
func (a *App) take(m transcript.Summary) (path string, err error) {
	path = m.Path
	if a.o.Fork {
		path = a.store.Path(a.o.Cwd, a.id)
		if err := transcript.Fork(m.Path, path); err != nil {
			return "", err
		}
		a.forkPins(m.ID)
	} else {
		a.id = m.ID
	}
	a.loaded, err = transcript.Load(path, transcript.LoadOptions{At: a.o.ResumeAt, Drop: a.o.DropsTurn})
	if err != nil {
		return "", err
	}
	if n := a.loaded.Skipped.Count; n > 0 {
		a.warn("%d lines of %s could not be read and were passed over; the file is as it was", n, path)
	}
	for _, l := range a.loaded.Unknown {
		a.warn("the outcome of %s (%s) is unknown: it had started when the session ended", l.Tool, l.Call)
	}
	return path, nil
}

// keep opens the files of the session for writing.
func (a *App) keep(ctx context.Context, path string) error {
	if a.o.NoPersistence || a.env.on("CLAUDE_CODE_SKIP_PROMPT_HISTORY") || a.root == "" {
		return nil
	}
	o := transcript.Options{
		Path: path, Cwd: a.o.Cwd, Version: a.o.Version, Entrypoint: a.entrypoint(),
		Branch: func() string { return branch(a.o.Cwd) }, Resume: a.loaded, Sync: a.env.on("CINCH_FSYNC"), NewID: frame.UUID,
	}
	lock, err := a.store.Lock(ctx, a.id)
	var held *atomicfile.HeldError
	switch {
	case errors.As(err, &held):
		return fmt.Errorf("the session %s is open elsewhere (%w)\nhint: end it there, or go on in a copy with --fork-session", a.id, err)
	case err != nil:
		a.warn("the session is not locked against a second opening: %v", err)
	default:
		o.Guard = transcript.Taken(lock)
		a.onClose(func() { _ = lock.Release() })
	}
	w, err := transcript.Open(o)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("session id %s is already in use\nhint: go on with it by --resume %s", a.id, a.id)
	}
	if err != nil {
		a.warn("this session is not saved: %v", err)
		return nil
	}
	a.record = w
	a.onClose(func() {
		if err := w.Close(); err != nil {
			fmt.Fprintln(a.o.Stderr, "cinch: saving the session: "+err.Error())
		}
	})
	if a.o.Name != "" && a.loaded != nil {
		if err := transcript.Rename(path, a.o.Name); err != nil {
			a.warn("naming the session: %v", err)
		}
	}
	return nil
}

// history is the conversation to go on with, and how the session came to be.
func (a *App) history() ([]agent.Message, string) {
	switch {
	case a.loaded == nil:
		return nil, "startup"
	case a.o.Fork:
		return a.loaded.History, "fork"
	}
	return a.loaded.History, "resume"
}

// checkpointing says whether changes to files are kept.
func (a *App) checkpointing() bool {
	if a.root == "" || a.env.on("CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING") {
		return false
	}
	// compat: programs get checkpoints only when they ask for them.
	if a.o.Print {
		return a.env.on("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING") || a.o.RewindFiles != ""
	}
	return a.cfg().checkpoints
}

func (a *App) sessionID() string {
	if a.Session != nil {
		return a.Session.ID()
	}
	return a.id
}

func (a *App) transcriptPath() string {
	if a.record != nil {
		return a.record.Path()
	}
	return a.store.Path(a.o.Cwd, a.sessionID())
}

// slug is the name of the project's directory.
func (a *App) slug() string { return filepath.Base(a.store.Dir(a.o.Cwd)) }

// resultDir keeps tool results that are too long to be shown.
func (a *App) resultDir() string {
	if a.root == "" || a.o.NoPersistence {
		return ""
	}
	return filepath.Join(transcript.SideDir(a.transcriptPath()), "tool-results")
}

// spill keeps a text that is too long to be shown.
func (a *App) spill(text string) (string, error) {
	dir := or(a.resultDir(), os.TempDir())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	name := filepath.Join(dir, frame.UUID()+".txt")
	return name, os.WriteFile(name, []byte(text), 0o600)
}

// clear begins a new conversation: /clear.
func (a *App) clear(context.Context) (string, error) {
	a.id = frame.UUID()
	a.layout.forget()
	return a.id, nil
}

func (a *App) rename(title string) error {
	a.Session.SetTitle(title)
	if a.record == nil {
		return nil
	}
	return transcript.Rename(a.record.Path(), title)
}

// sweep removes sessions that are older than the settings keep them. It is
// housekeeping: nobody waits for it, and what fails is tried next time.
func (a *App) sweep() {
	if a.o.NoPersistence || a.root == "" || a.cfg().cleanupDays <= 0 {
		return
	}
	stamp := filepath.Join(a.root, ".last-cleanup")
	if fi, err := os.Stat(stamp); err == nil && time.Since(fi.ModTime()) < 24*time.Hour {
		return
	}
	if err := os.WriteFile(stamp, []byte(time.Now().UTC().Format(time.RFC3339)+"\n"), 0o600); err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	done := make(chan struct{})
	go func() {
		defer close(done)
		before := time.Now().AddDate(0, 0, -a.cfg().cleanupDays)
		gone, _ := a.store.Sweep(ctx, before)
		for _, id := range gone { // what stands elsewhere and is of no use without the session
			_ = os.Remove(filepath.Join(a.root, "cinch", "pins", id+".txt"))
			_ = os.Remove(filepath.Join(a.root, "plans", id+".md"))
			_ = os.RemoveAll(filepath.Join(a.root, "tasks", id))
		}
		checkpoint.Sweep(filepath.Join(a.root, "cinch", "checkpoints"), before)
	}()
	a.onClose(func() { cancel(); <-done })
}

// branch is the git branch of dir, read from its HEAD; "" if there is none.
func branch(dir string) string {
	root := gitRoot(dir)
	if root == "" {
		return ""
	}
	git := filepath.Join(root, ".git")
	if b, err := os.ReadFile(git); err == nil { // a worktree or submodule: "gitdir: PATH"
		if p, ok := cutLine(string(b), "gitdir: "); ok {
			if !filepath.IsAbs(p) {
				p = filepath.Join(root, p)
			}
			git = p
		}
	}
	b, err := os.ReadFile(filepath.Join(git, "HEAD"))
	if err != nil {
		return ""
	}
	name, _ := cutLine(string(b), "ref: refs/heads/")
	return name
}
