//go:build unix

package proc

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// platform is what a Process needs to remember here: nothing.
type platform struct{}

func (platform) started(*exec.Cmd) {}
func (platform) release()          {}
func (platform) left(pid int) bool { return groupAlive(pid) }

// exitOf reads the state of a reaped child.
func exitOf(s *os.ProcessState) Exit {
	if s == nil {
		return Exit{Code: -1}
	}
	e := Exit{Code: s.ExitCode(), CPU: s.UserTime() + s.SystemTime()}
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.Code = 128 + int(ws.Signal())
		e.Signal = unix.SignalName(ws.Signal())
	}
	return e
}

// groupAlive reports whether any process, a zombie perhaps, is in the group.
func groupAlive(group int) bool {
	err := syscall.Kill(-group, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// ask sends SIGTERM to members that were not asked yet; at first to the whole
// group, in one stroke. A stopped process is woken, or it could not obey.
func (p *Process) ask(fresh []entry, first bool) {
	if first {
		_ = syscall.Kill(-p.pid, syscall.SIGTERM)
	}
	for _, e := range fresh {
		if !first || e.group != p.pid {
			_ = syscall.Kill(e.pid, syscall.SIGTERM)
		}
		_ = syscall.Kill(e.pid, syscall.SIGCONT)
	}
}

// force sends SIGKILL to the group and to the members of t outside of it.
func (p *Process) force(t tree, gone bool) {
	if !gone || len(t.known) > 0 {
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	}
	for pid, e := range t.known {
		if e.group != p.pid {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// killOne ends a child that shares our session.
func (p *Process) killOne(grace time.Duration) error {
	for _, step := range []struct {
		sig  syscall.Signal
		wait time.Duration
	}{{syscall.SIGTERM, grace}, {syscall.SIGKILL, killLimit}} {
		if p.reaped() {
			return nil
		}
		_ = syscall.Kill(p.pid, step.sig)
		timer := time.NewTimer(step.wait)
		select {
		case <-p.exited:
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
	return errors.New("child does not die")
}

// Interrupt sends SIGINT to the child's group, as Ctrl-C does.
func (p *Process) Interrupt() error {
	if p.reaped() {
		return nil
	}
	if p.terminal {
		return syscall.Kill(p.pid, syscall.SIGINT)
	}
	return syscall.Kill(-p.pid, syscall.SIGINT)
}
