package proc

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes puts a child into a session of its own, which has no terminal to
// read from, and has the kernel kill it when our thread ends.
func attributes(terminal bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: !terminal, Pdeathsig: syscall.SIGKILL}
}

// detached is how the Guard runs: it outlives us.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func lockThread() (unlock func()) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}

// deafen blocks the signals of Spec.Deaf for this thread, and so for what it
// starts, until hear is called.
func deafen() (hear func(), err error) {
	var block, old unix.Sigset_t
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM} {
		block.Val[0] |= 1 << (s - 1)
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &block, &old); err != nil {
		return nil, fmt.Errorf("blocking signals: %w", err)
	}
	return func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil) }, nil
}

// processes lists the live processes; zombies are dead.
func processes() ([]entry, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	all := make([]entry, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		data, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // it ended just now
		}
		if e, ok := parseStat(pid, data); ok {
			all = append(all, e)
		}
	}
	return all, nil
}

// parseStat reads the content of /proc/PID/stat. The second field is a name
// in brackets that may hold blanks and brackets: fields are counted from the
// last bracket, where the third, the state, stands. ok is false for a process
// that is dead already.
func parseStat(pid int, data []byte) (e entry, ok bool) {
	f := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(f) < 20 || len(f[0]) != 1 {
		return entry{}, false
	}
	switch f[0][0] {
	case 'Z', 'X', 'x':
		return entry{}, false
	}
	number := func(i int) int {
		n, err := strconv.Atoi(string(f[i]))
		ok = ok && err == nil
		return n
	}
	ok = true
	e = entry{pid: pid, ppid: number(1), group: number(2), session: number(3)}
	start, err := strconv.ParseUint(string(f[19]), 10, 64)
	e.start = start
	return e, ok && err == nil
}
