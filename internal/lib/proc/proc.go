// Package proc runs child processes so that none is ever left behind, waited
// for without end, or able to take the terminal away.
//
// It owns how a child is started (in a session and process group of its own,
// with nothing on its standard input), how it is ended (the whole tree, first
// asked and then forced, each under a clock) and how its output is bounded.
// It knows nothing of tools, hooks or the sandbox; they hand in a Spec, and a
// Wrap that rewrites it.
//
// What is promised of every child:
//   - Wait ends when the child itself ends, not when the last process that
//     inherited its output does.
//   - When the context ends, the child and its descendants are dead before
//     Wait returns, those that left the process group included.
//   - When this process dies, even by SIGKILL, the child is killed by the
//     kernel (Linux, Windows) and its process group by the Guard.
//
// A process that calls setsid has asked to outlive its parent. It is killed
// with the tree it belongs to, but not hunted down after that.
package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Default clocks.
const (
	defaultGrace = time.Second            // from SIGTERM to SIGKILL
	defaultDrain = 100 * time.Millisecond // from exit to giving up on a pipe
	killLimit    = 5 * time.Second        // from SIGKILL to giving up
)

// ErrDir reports that the working directory of a Spec does not exist.
var ErrDir = errors.New("working directory does not exist")

// A Spec says what to run. It is a plain value: a sandbox rewrites it.
type Spec struct {
	// Path is the program. A name without a slash is looked up in the PATH of Env.
	Path string
	// Args are the arguments; Args[0] is the name the program sees itself
	// called by. Empty means Path alone.
	Args []string
	// Env is the whole environment. Nothing is inherited: nil is empty.
	Env []string
	// Dir is the working directory; "" is this process's.
	Dir string
	// Files become the descriptors from 3 on. The caller closes them.
	Files []*os.File
	// Deaf starts the program with the signals blocked by which a group is
	// asked to end. It is for one that starts another and passes the end of
	// that on: the other unblocks them and can end in its own way. Linux only.
	Deaf bool
}

// A Wrap rewrites a Spec just before it is started, to confine it for
// instance. The cleanup, if not nil, is called once the child has ended or
// could not be started.
type Wrap func(Spec) (s Spec, cleanup func(), err error)

// Options say how to run a Spec. The zero value runs it with no input and no
// output and ends it one second after it is asked to.
type Options struct {
	// Stdin is what the child reads; nil is the null device. Unless it is an
	// *os.File it must not block for ever.
	Stdin io.Reader
	// Stdout and Stderr receive the output; nil is the null device. Equal
	// values share one descriptor, so order is kept. An *os.File is handed to
	// the child itself; anything else is written to by one goroutine.
	Stdout, Stderr io.Writer
	// Pipes makes Process.Stdin and Process.Stdout pipes, in place of Stdin
	// and Stdout. The caller closes both.
	Pipes bool
	// Wrap, if not nil, rewrites the Spec.
	Wrap Wrap
	// Guard, if not nil, ends the child's group should this process die.
	Guard *Guard
	// Grace is the time from SIGTERM to SIGKILL; 0 is one second.
	Grace time.Duration
	// Drain is how long output is still read after the child has ended while
	// other processes hold its pipes; 0 is 100 ms.
	Drain time.Duration
	// Terminal leaves the child in this process's session, so that it can
	// use the terminal. Such a child is not killed as a group.
	Terminal bool
}

// An Exit is how a child ended.
type Exit struct {
	Code   int           // exit status; 128 + the signal's number if a signal ended it
	Signal string        // name of that signal, such as SIGKILL, or ""
	Held   bool          // pipes were given up while another process held them
	CPU    time.Duration // user and system time of the child and those it waited for
	Took   time.Duration
}

// OK reports whether the child ended by itself with status 0.
func (e Exit) OK() bool { return e.Code == 0 && e.Signal == "" }

func (e Exit) String() string {
	if e.Signal != "" {
		return "killed by " + e.Signal
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// A Process is a running child. Its methods may be called concurrently.
type Process struct {
	// Stdin and Stdout are set if Options.Pipes was.
	Stdin  io.WriteCloser
	Stdout io.ReadCloser

	pid      int
	terminal bool
	deaf     bool
	grace    time.Duration
	guard    *Guard
	cleanup  func()
	sys      platform

	exited chan struct{} // closed once the child is reaped; exit and err are set then
	done   chan struct{} // closed when nothing of this package works for the child any more
	exit   Exit
	err    error
	once   sync.Once
}

// Start starts s. When ctx ends the child's tree is killed. The caller must
// Wait, or let ctx end, for the resources to be released.
func Start(ctx context.Context, s Spec, o Options) (*Process, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	cleanup := func() {}
	if o.Wrap != nil {
		w, done, err := o.Wrap(s)
		if err != nil {
			return nil, fmt.Errorf("preparing to run %s: %w", s.Path, err)
		}
		if done != nil {
			cleanup = done
		}
		s = w
	}
	p, err := start(ctx, s, o, cleanup)
	if err != nil {
		cleanup()
	}
	return p, err
}

func start(ctx context.Context, s Spec, o Options, cleanup func()) (*Process, error) {
	cmd, err := command(s)
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = o.Stdin, o.Stdout, o.Stderr
	cmd.WaitDelay = orDefault(o.Drain, defaultDrain)
	p := &Process{
		terminal: o.Terminal,
		deaf:     s.Deaf,
		grace:    orDefault(o.Grace, defaultGrace),
		guard:    o.Guard,
		cleanup:  cleanup,
		exited:   make(chan struct{}),
		done:     make(chan struct{}),
	}
	var ends []*os.File // the child's ends of our pipes
	if o.Pipes {
		if ends, err = p.pipes(cmd); err != nil {
			return nil, err
		}
	}
	cmd.SysProcAttr = attributes(o.Terminal)
	if p.guard != nil && !o.Terminal {
		p.guard.ready()
	}
	started := make(chan error)
	go p.run(cmd, started)
	err = <-started
	for _, f := range ends {
		_ = f.Close()
	}
	if err != nil {
		if o.Pipes {
			_ = p.Stdin.Close()
			_ = p.Stdout.Close()
		}
		return nil, explain(s, err)
	}
	go p.watch(ctx)
	return p, nil
}

// pipes gives cmd pipes for its input and output and returns the child's ends.
// They are made here and not by os/exec, whose Wait would close the output
// before the caller has read it.
func (p *Process) pipes(cmd *exec.Cmd) ([]*os.File, error) {
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		_, _ = inR.Close(), inW.Close()
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	cmd.Stdin, cmd.Stdout = inR, outW
	p.Stdin, p.Stdout = inW, outR
	return []*os.File{inR, outW}, nil
}

// command makes the exec.Cmd of s.
func command(s Spec) (*exec.Cmd, error) {
	path, err := Look(s.Path, lookup(s.Env, "PATH"))
	if err != nil {
		return nil, err
	}
	args := s.Args
	if len(args) == 0 {
		args = []string{s.Path}
	}
	env := s.Env
	if env == nil {
		env = []string{} // nil would inherit ours
	}
	return &exec.Cmd{Path: path, Args: args, Env: env, Dir: s.Dir, ExtraFiles: s.Files}, nil
}

// explain tells a missing directory from a missing program: the kernel's
// answer to a failed start names neither.
func explain(s Spec, err error) error {
	if s.Dir != "" {
		if fi, serr := os.Stat(s.Dir); serr != nil || !fi.IsDir() {
			return fmt.Errorf("starting %s in %s: %w", s.Path, s.Dir, ErrDir)
		}
	}
	return fmt.Errorf("starting %s: %w", s.Path, err)
}

// run starts cmd, reports how that went, and reaps the child.
func (p *Process) run(cmd *exec.Cmd, started chan<- error) {
	// The parent-death signal is bound to the thread that forks, so that
	// thread may not end before the child does.
	unlock := lockThread()
	defer unlock()
	begin := time.Now()
	if err := p.start(cmd); err != nil {
		started <- err
		return
	}
	p.pid = cmd.Process.Pid
	p.sys.started(cmd)
	if p.guard != nil && !p.terminal {
		p.guard.add(p.pid)
	}
	started <- nil
	err := cmd.Wait()
	p.exit = exitOf(cmd.ProcessState)
	p.exit.Took = time.Since(begin)
	p.exit.Held = errors.Is(err, exec.ErrWaitDelay)
	if _, isExit := errors.AsType[*exec.ExitError](err); err != nil && !isExit && !p.exit.Held {
		p.err = fmt.Errorf("running %s: %w", cmd.Path, err)
	}
	close(p.exited)
}

// start starts cmd; the thread is locked.
func (p *Process) start(cmd *exec.Cmd) error {
	if p.deaf {
		hear, err := deafen()
		if err != nil {
			return err
		}
		defer hear()
	}
	return cmd.Start()
}

// watch kills the tree when ctx ends, and lets go of everything at the end.
func (p *Process) watch(ctx context.Context) {
	defer close(p.done)
	select {
	case <-p.exited:
	case <-ctx.Done():
		if p.reaped() {
			break // both are true; what it left running is the caller's to judge
		}
		_ = p.Kill(p.grace)
		<-p.exited
		if p.err == nil {
			p.err = context.Cause(ctx)
		}
	}
	if p.Remaining() == 0 {
		p.release()
	}
	p.cleanup()
}

// release forgets the group.
func (p *Process) release() {
	p.once.Do(func() {
		if p.guard != nil && !p.terminal {
			p.guard.remove(p.pid)
		}
		p.sys.release()
	})
}

// PID is the number of the child, and of its session and group.
func (p *Process) PID() int { return p.pid }

// Exited is closed when the child has ended and been reaped.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Wait returns how the child ended, once it has. The error is the cause of
// the context if that ended the child, or says what broke its input or
// output; a child that failed is no error.
func (p *Process) Wait() (Exit, error) {
	<-p.done
	return p.exit, p.err
}

// orDefault returns d, or def if d is not set.
func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}

// lookup returns the value of the last entry for name in env.
func lookup(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(env[i], "="); ok && k == name {
			return v
		}
	}
	return ""
}
