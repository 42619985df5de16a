package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
	"github.com/seed-eb844fcb/cinch/internal/settings"
	"github.com/seed-eb844fcb/cinch/internal/transcript"
	"github.com/seed-eb844fcb/cinch/internal/transcript/typed"
)

// What follows is for a front end with a screen.

// Past is the conversation that was resumed.
func (a *App) Past() []agent.Message { return a.Session.History() }

// typedFile is where prompts are kept; "" if they are not.
func (a *App) typedFile() string {
	if a.root == "" || a.o.NoPersistence || a.env.on("CLAUDE_CODE_SKIP_PROMPT_HISTORY") {
		return ""
	}
	return filepath.Join(a.root, "history.jsonl")
}

// Typed are the prompts of earlier sessions of this directory, the newest last.
func (a *App) Typed() []string {
	file := a.typedFile()
	if file == "" {
		return nil
	}
	list, err := typed.Load(file, a.o.Cwd)
	if err != nil {
		a.warn("earlier prompts cannot be read: %v", err)
	}
	return list
}

// Remember keeps a prompt for later sessions.
func (a *App) Remember(text string) {
	file := a.typedFile()
	if file == "" {
		return
	}
	if err := typed.Append(file, a.o.Cwd, a.sessionID(), text, time.Now()); err != nil {
		a.warn("the prompt is not kept for later: %v", err)
	}
}

// Sessions are those of this directory that a person has begun, the newest first.
func (a *App) Sessions(ctx context.Context) ([]transcript.Summary, error) {
	all, err := a.store.List(ctx, a.o.Cwd)
	if err != nil {
		return nil, err
	}
	var out []transcript.Summary
	for _, s := range all {
		if !s.Headless() {
			out = append(out, s)
		}
	}
	return out, nil
}

// Status is the command that makes the status line: nil if the settings name
// none, or one that this directory has set and nobody has trusted.
func (a *App) Status() (run func(ctx context.Context, document []byte, width int) (string, error), every time.Duration) {
	v := a.cfg().value
	raw, from, ok := v.Raw("statusLine")
	var line struct {
		Type    string  `json:"type"`
		Command string  `json:"command"`
		Every   float64 `json:"refreshInterval"` // seconds
	}
	if !ok || json.Unmarshal(raw, &line) != nil || line.Type != "command" || line.Command == "" || a.o.SafeMode || a.o.Bare || a.cfg().noHooks {
		return nil, 0
	}
	if (from.Layer == settings.Project || from.Layer == settings.Local) && !v.Trusted() {
		return nil, 0
	}
	return func(ctx context.Context, document []byte, width int) (string, error) {
		s := proc.Shell("", line.Command)
		s.Dir = a.cwd()
		s.Env = append(slices.Clone(a.env.list), fmt.Sprintf("COLUMNS=%d", width))
		out, err := proc.Run(ctx, s, proc.Options{Stdin: bytes.NewReader(document)}, 16<<10)
		if err == nil && !out.OK() {
			err = fmt.Errorf("the status line command ended with %s", out.Exit)
		}
		return string(out.Stdout), err
	}, time.Duration(line.Every * float64(time.Second))
}

// Facts are what a status line is told besides what front ends know.
func (a *App) Facts() map[string]any {
	return map[string]any{"transcript_path": a.transcriptPath(), "project_dir": a.projectRoot(), "thinking": map[string]any{"enabled": a.thinks()}}
}

func (a *App) thinks() bool {
	t, _ := a.Session.Thinking()
	return t.Type != "disabled"
}

// Still reports whether the settings ask for nothing that moves by itself.
func (a *App) Still() bool { return a.cfg().value.Bool(false, "prefersReducedMotion") }

// Bell reports whether the settings ask to ring when a person is waited for.
func (a *App) Bell() bool {
	s, _, _ := a.cfg().value.String("preferredNotifChannel")
	return s == "terminal_bell" || s == "iterm2_with_bell"
}
