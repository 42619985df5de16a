package proc

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes puts a child into a session of its own, which has no terminal to
// read from. What outlives us is the Guard's business here.
func attributes(terminal bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: !terminal}
}

// detached is how the Guard runs: it outlives us.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func lockThread() (unlock func()) { return func() {} }

const zombie = 5 // SZOMB of sys/proc.h

// processes lists the live processes. The system does not tell sessions.
func processes() ([]entry, error) {
	ks, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	all := make([]entry, 0, len(ks))
	for _, k := range ks {
		if k.Proc.P_stat == zombie {
			continue
		}
		t := k.Proc.P_starttime
		all = append(all, entry{
			pid:   int(k.Proc.P_pid),
			ppid:  int(k.Eproc.Ppid),
			group: int(k.Eproc.Pgid),
			start: uint64(t.Sec)*1e6 + uint64(t.Usec),
		})
	}
	return all, nil
}
