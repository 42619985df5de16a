//go:build unix && !linux && !darwin

package proc

import (
	"errors"
	"syscall"
)

func attributes(terminal bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: !terminal}
}

// detached is how the Guard runs: it outlives us.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func lockThread() (unlock func()) { return func() {} }

func processes() ([]entry, error) { return nil, errors.ErrUnsupported }
