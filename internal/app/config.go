package app

import (
	"context"
	"encoding/json"
	"runtime"

	"github.com/seed-eb844fcb/cinch/internal/lib/price"
	"github.com/seed-eb844fcb/cinch/internal/policy"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// A config is what the settings say, in the terms of the parts that need it.
// Only this file knows settings files.
type config struct {
	files []string // that were read

	model, effort, outputStyle, agent string
	fallback                          []string
	modelOverrides                    map[string]string
	keyHelper                         string
	noThinking                        bool
	prices                            price.Table

	mode                                       agent.Mode
	rules                                      []policy.Rule
	dirs                                       []string
	trusted                                    bool
	managedOnly, noBypass, noAuto, classifyAll bool
	autoRules                                  autoRules

	hooks                      []hookSource
	noHooks, managedHooks      bool
	allowHookURL, allowHookVar func(string) bool
	noSkillShell               bool
	skillChars                 int
	skillShow                  map[string]string
	autoMemory, noGit          bool
	memoryDir, managedMemory   string
	memoryExcludes             []string
	autoCompact                *bool
	autoCompactWindow          string
	checkpoints                bool
	cleanupDays                int
}

type hookSource struct {
	layer, file string
	raw         json.RawMessage
}

// autoRules are what settings tell the classifier of auto mode.
type autoRules struct{ environment, allow, softDeny, hardDeny []string }

func (a *App) readSettings(context.Context) error {
	a.env = newEnvironment(a.o.Environ, nil)
	a.cfg = &config{trusted: true, autoMemory: true, checkpoints: true, cleanupDays: 30}
	return nil
}

// managedDir is where the machine's administrator keeps settings.
func managedDir() string {
	switch runtime.GOOS {
	case "darwin":
		return "/Library/Application Support/ClaudeCode"
	case "windows":
		return `C:\Program Files\ClaudeCode`
	}
	return "/etc/claude-code"
}

// applyFlagSettings merges settings of the host over those of the flags.
func (a *App) applyFlagSettings(ctx context.Context, raw json.RawMessage) (any, error) {
	return nil, unsupported{"settings cannot be changed yet"}
}

func (a *App) updateSettings(ctx context.Context, raw json.RawMessage) (any, error) {
	return nil, unsupported{"settings cannot be changed yet"}
}

func (a *App) savePermission(ctx context.Context, u agent.PermissionUpdate) error { return nil }

func (c *config) effective() any { return map[string]any{} }
func (c *config) sources() any   { return []any{} }
