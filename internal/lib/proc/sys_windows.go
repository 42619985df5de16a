package proc

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// platform holds the job object that keeps a child and its descendants
// together. The system ends all of them when the last handle closes, which
// it does when this process ends, however it ends.
type platform struct{ job windows.Handle }

func (s *platform) started(cmd *exec.Cmd) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err == nil {
		var h windows.Handle
		h, err = windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(cmd.Process.Pid))
		if err == nil {
			err = windows.AssignProcessToJobObject(job, h)
			_ = windows.CloseHandle(h)
		}
	}
	if err != nil {
		_ = windows.CloseHandle(job)
		return
	}
	s.job = job
}

func (s *platform) release() {
	if s.job != 0 {
		_ = windows.CloseHandle(s.job)
		s.job = 0
	}
}

func (s *platform) left(int) bool { return false }

func attributes(terminal bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{}
	if !terminal {
		a.CreationFlags = windows.CREATE_NEW_PROCESS_GROUP
	}
	return a
}

func detached() *syscall.SysProcAttr { return nil }

func lockThread() (unlock func()) { return func() {} }

func processes() ([]entry, error) { return nil, errors.ErrUnsupported }

func groupAlive(int) bool { return false }

func exitOf(s *os.ProcessState) Exit {
	if s == nil {
		return Exit{Code: -1}
	}
	return Exit{Code: s.ExitCode(), CPU: s.UserTime() + s.SystemTime()}
}

// ask does nothing: a job cannot be asked.
func (p *Process) ask([]entry, bool) {}

// force ends the job.
func (p *Process) force(tree, bool) {
	if p.sys.job != 0 {
		_ = windows.TerminateJobObject(p.sys.job, 137)
		return
	}
	if h, err := os.FindProcess(p.pid); err == nil {
		_ = h.Kill()
	}
}

func (p *Process) killOne(time.Duration) error {
	p.force(tree{}, false)
	timer := time.NewTimer(killLimit)
	defer timer.Stop()
	select {
	case <-p.exited:
		return nil
	case <-timer.C:
		return errors.New("child does not die")
	}
}

// Interrupt sends Ctrl-Break to the child's group.
func (p *Process) Interrupt() error {
	if p.reaped() {
		return nil
	}
	return windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(p.pid))
}
