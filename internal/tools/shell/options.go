// Package shell holds the tools that run commands: Bash, and TaskStop and
// TaskOutput for what runs in the background.
//
// It owns how a command is run (a fresh shell each time, the profile's aliases
// and functions, nothing to read, one file for all output), the directory
// that carries over from one command to the next, the clocks, and how output
// of any size or kind becomes a text of bounded size. It does not decide
// whether a command may run, does not keep the list of background work, and
// knows no settings; functions in Options do.
package shell

import (
	"context"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
)

// Options are what the tools stand on. Functions may be called concurrently.
type Options struct {
	// Shell is the program that runs commands: bash, or a zsh. "" is /bin/bash.
	Shell string
	// Prefix, if not "", is a command that runs every command: it gets the
	// whole command line as one quoted argument.
	Prefix string
	// Env returns the environment commands start with, credentials removed
	// where they must be. The tool adds its own few variables. Required.
	Env func() []string
	// EnvFiles returns the files that are sourced before each command. May be nil.
	EnvFiles func() []string
	// Marks are further variables of ours, as NAME=value: CLAUDE_CODE_SESSION_ID,
	// CLAUDE_CODE_ENTRYPOINT, CLAUDE_EFFORT, … May be nil.
	Marks func() []string

	// Root is the project directory, absolute. Required.
	Root string
	// Dirs returns the directories a command may leave the shell in, absolute.
	// Root is always one. May be nil.
	Dirs func() []string
	// Cwd returns the directory the next command starts in; Chdir changes it.
	// Both nil: the tool keeps it. A sub-agent's commands start in what
	// AgentDir returns for its id, or in Cwd, and never change it.
	Cwd      func() string
	Chdir    func(dir string)
	AgentDir func(id string) string
	// Stay makes every command start in Root.
	Stay bool

	// TaskDir is where output files are made; it is created when needed.
	// Required. ResultDir is where output too long to be shown is kept for
	// the session; "" leaves it in TaskDir.
	TaskDir, ResultDir string
	// SnapshotDir keeps what was learned from the user's shell profile. ""
	// runs commands without it.
	SnapshotDir string

	// ReadOnly reports whether command, run in cwd, changes nothing. Nil: no
	// command is known to.
	ReadOnly func(command, cwd string) bool
	// Wrap confines a command, unless it returns nil. outside says that the
	// caller asked to run it unconfined. After a failed run note, if not nil, is
	// given what the command wrote, as far as it is shown, and
	// says what the confinement refused. May be nil.
	Wrap func(ctx context.Context, command string, outside bool) (w proc.Wrap, note func(output string) string)
	// Guard ends commands should the program die. May be nil.
	Guard *proc.Guard
	// Jobs is the list of background work. Its zero value has none: then a
	// command cannot go to the background.
	Jobs Jobs
	// ToBackground returns a channel that is closed when the person wants the
	// call to go on in the background. May be nil.
	ToBackground func(agent.CallID) <-chan struct{}

	// Timeout is the default and MaxTimeout the longest that may be asked
	// for; 0 is two and ten minutes. A default above MaxTimeout raises it.
	Timeout, MaxTimeout time.Duration
	// AgentLimit ends background commands of sub-agents; 0 is one hour.
	AgentLimit time.Duration
	// MaxText is how many characters of output are shown; 0 is 30,000, and
	// more than 150,000 is that. MaxTaskText is the same for TaskOutput; 0 is
	// 32,000, at most 160,000.
	MaxText, MaxTaskText int
	// MaxOutput ends a command whose output grows beyond it, in bytes; 0 is 5 GB.
	MaxOutput int64
}

// Jobs are functions of the list of background work.
type Jobs struct {
	// Start lists t, whose ID is set, as running. A quiet job's end is not
	// told to the model. The context it returns has the values of ctx and
	// ends only when somebody stops the job. end must be called exactly once,
	// with the job as it ended.
	Start func(ctx context.Context, t agent.Task, quiet bool) (job context.Context, end func(agent.Task), err error)
	// Find returns the job with that id, ended ones included.
	Find func(id string) (agent.Task, bool)
	// Stop stops a job and waits for its end, or that of ctx.
	Stop func(ctx context.Context, id string) error
	// Done returns a channel that is closed when the job has ended; nil if
	// no job with that id runs.
	Done func(id string) <-chan struct{}
}
