package shell

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
)

// A run is one command that was started.
type run struct {
	id      string
	dir     string // where it started
	path    string // output file
	cwdPath string // where the shell leaves its last directory
	// scriptPath holds a command that is too long for an argument, or is "".
	scriptPath string
	file       *os.File
	p          *proc.Process
	cancel     context.CancelCauseFunc
	note       func(output string) string // what the confinement refused; may be nil
	begun      time.Time
	told       int64 // size at the last Progress
}

// start starts in.Command in dir. It goes on until it ends or r.end is
// called; ctx only lends its values and its end.
func (b *bash) start(ctx context.Context, id string, in bashInput, dir string) (*run, error) {
	if err := os.MkdirAll(b.o.TaskDir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory for command output: %w", err)
	}
	r := &run{id: id, dir: dir, begun: time.Now()}
	r.path = filepath.Join(b.o.TaskDir, id+".output")
	r.cwdPath = filepath.Join(b.o.TaskDir, id+".cwd")
	// Append: a child that opens its own output again does not write over it.
	f, err := os.OpenFile(r.path, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("making a file for command output: %w", err)
	}
	r.file = f
	spec, err := b.spec(r, in.Command)
	if err != nil {
		r.close(false)
		return nil, err
	}
	opts := proc.Options{Stdout: f, Stderr: f, Guard: b.o.Guard}
	if b.o.Wrap != nil {
		opts.Wrap, r.note = b.o.Wrap(ctx, in.Command, in.Outside)
	}
	ctx, r.cancel = context.WithCancelCause(ctx)
	if r.p, err = proc.Start(ctx, spec, opts); err != nil {
		r.cancel(nil)
		r.close(false)
		if errors.Is(err, proc.ErrDir) {
			err = fmt.Errorf("%w; change to a directory that exists", err)
		}
		return nil, err
	}
	return r, nil
}

// end ends the run for that cause and returns how it went.
func (r *run) end(cause error) proc.Exit {
	r.cancel(cause)
	exit, _ := r.p.Wait()
	return exit
}

// close lets go of the run's files.
func (r *run) close(keepOutput bool) {
	if r.cancel != nil {
		r.cancel(nil)
	}
	_ = r.file.Close()
	_ = os.Remove(r.cwdPath)
	if r.scriptPath != "" {
		_ = os.Remove(r.scriptPath)
	}
	if !keepOutput {
		_ = os.Remove(r.path)
	}
}

// grown returns the size of the output and tells of its newest line if there
// is more than before.
func (r *run) grown(tell func(agent.Progress)) int64 {
	fi, err := r.file.Stat()
	if err != nil {
		return 0
	}
	size := fi.Size()
	if size != r.told && tell != nil {
		r.told = size
		tell(agent.Progress{Text: lastLine(r.file, size), Bytes: size})
	}
	return size
}

// maxArg is how long one argument may be to be sure that the system takes
// it: Linux allows 128 KB.
const maxArg = 100_000

// spec is what runs command. The command is evaluated by a plain eval as the
// last thing the shell does, and not as part of a list: so `set -e` means in
// it what it means in a script. The shell's last directory is written down by
// a trap on its exit, which is reached by `exit` and `set -e` too.
func (b *bash) spec(r *run, command string) (proc.Spec, error) {
	var s strings.Builder
	snapshot, path := b.profile.take()
	if snapshot != "" {
		s.WriteString("source " + proc.Quote(snapshot) + " 2>/dev/null; ")
	}
	if b.o.EnvFiles != nil {
		for _, f := range b.o.EnvFiles() {
			if fi, err := os.Stat(f); err == nil && fi.Size() > 0 {
				s.WriteString("source " + proc.Quote(f) + "; ")
			}
		}
	}
	trap := "{ builtin pwd -P >| " + proc.Quote(r.cwdPath) + "; } 2>/dev/null"
	s.WriteString("trap " + always(trap) + " EXIT; eval ")
	if len(command) > maxArg {
		r.scriptPath = filepath.Join(b.o.TaskDir, r.id+".sh")
		if err := os.WriteFile(r.scriptPath, []byte(command), 0o600); err != nil {
			return proc.Spec{}, fmt.Errorf("writing down a long command: %w", err)
		}
		s.WriteString(`"$(<` + proc.Quote(r.scriptPath) + `)"`)
	} else {
		s.WriteString(always(command))
	}
	shell := b.shell()
	spec := proc.Spec{Path: shell, Args: []string{shell, "-c", s.String()}, Dir: r.dir, Env: b.env(r.dir, path)}
	if b.o.Prefix != "" {
		line := always(proc.Quote(shell) + " -c " + always(s.String()))
		spec.Args[2] = b.o.Prefix + " " + line
	}
	return spec, nil
}

// always quotes s whether it needs it or not.
func always(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// shell is the program that runs commands: the one asked for, or a bash that
// is somewhere else.
func (b *bash) shell() string {
	if _, err := os.Stat(b.o.Shell); errors.Is(err, fs.ErrNotExist) {
		if p, err := proc.Look(filepath.Base(b.o.Shell), pathOf(b.o.Env())); err == nil {
			return p
		}
	}
	return b.o.Shell
}

// env is the environment of a command. Later entries win.
func (b *bash) env(dir, path string) []string {
	base := b.o.Env()
	env := make([]string, 0, len(base)+24)
	env = append(env, base...)
	self := b.self()
	env = append(env,
		"CLAUDECODE=1",
		"CLAUDE_CODE_CHILD_SESSION=1",
		"CLAUDE_PID="+strconv.Itoa(self.PID),
		// A program that finds this can tell whether the session it was
		// started from still runs.
		"CINCH_PARENT="+strconv.Itoa(self.PID)+":"+self.Start,
		"COREPACK_ENABLE_AUTO_PIN=0",
		"NoDefaultCurrentDirectoryInExePath=1",
		"GIT_EDITOR=true",
		"GIT_PAGER=cat",
		"PAGER=cat",
		"SHELL="+b.o.Shell,
		"SHLVL=0", // the shell makes it 1
		"PWD="+dir,
	)
	if path != "" {
		env = append(env, "PATH="+path)
	}
	if b.o.Marks != nil {
		env = append(env, b.o.Marks()...)
	}
	return env
}

func pathOf(env []string) string {
	path := ""
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			path = v
		}
	}
	return path
}

// newID returns nine characters that name a run and its files.
func newID() string {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyz"
	var raw [8]byte
	_, _ = rand.Read(raw[:]) // documented never to fail
	id := []byte{'b'}
	for _, c := range raw {
		id = append(id, letters[int(c)%len(letters)])
	}
	return string(id)
}
