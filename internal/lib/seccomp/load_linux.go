package seccomp

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Here returns the machine the program runs on.
func Here() (Machine, error) {
	switch runtime.GOARCH {
	case "amd64":
		return AMD64(), nil
	case "arm64":
		return ARM64(), nil
	}
	return Machine{}, errors.New("there is no system call filter for " + runtime.GOARCH)
}

// Load puts the calling thread, and what it executes, under p, for good. The
// caller holds the thread with runtime.LockOSThread.
func Load(p []Instruction) error {
	if len(p) == 0 {
		return errors.New("the system call filter is empty")
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	// An Instruction is laid out as a SockFilter.
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: (*unix.SockFilter)(unsafe.Pointer(&p[0]))}
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, 1 /* SECCOMP_SET_MODE_FILTER */, 0, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(p)
	if e != 0 {
		return fmt.Errorf("loading the system call filter: %w", e)
	}
	return nil
}
