package inner

import (
	"fmt"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/seed-eb844fcb/cinch/internal/lib/seccomp"
	"github.com/seed-eb844fcb/cinch/internal/sandbox"
)

// become does what in says and executes the command. It returns only errors.
func become(in sandbox.Inner, argv, environ []string) error {
	// Landlock and the filter are properties of a thread; the one that
	// executes the command is the one that survives.
	runtime.LockOSThread()
	if in.Control >= 0 {
		for _, port := range in.Ports {
			if err := handOut(in.Control, port); err != nil {
				return err
			}
		}
		_ = unix.Close(in.Control)
	}
	if in.Keep > 2 {
		if err := unix.CloseRange(uint(in.Keep), ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
			closeEach(in.Keep)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	if in.Files || in.Connect != 0 {
		if err := confineFiles(in); err != nil {
			return err
		}
	}
	m, err := seccomp.Here()
	if err != nil {
		return err
	}
	if err := seccomp.Load(seccomp.Program(m, seccomp.Options{UnixSockets: in.UnixSockets, StreamsOnly: in.StreamsOnly})); err != nil {
		return err
	}
	if err := hear(); err != nil {
		return err
	}
	if err := syscall.Exec(in.Path, argv, environ); err != nil {
		return fmt.Errorf("starting %s: %w", in.Path, err)
	}
	return nil
}

// handOut listens on a loopback port and sends the socket over control. It
// uses plain system calls: the package net would start what is not needed.
func handOut(control int, port uint16) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("making a socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return fmt.Errorf("setting up a socket: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return fmt.Errorf("taking port %d: %w", port, err)
	}
	if err := unix.Listen(fd, 512); err != nil {
		return fmt.Errorf("listening on port %d: %w", port, err)
	}
	if err := unix.Sendmsg(control, []byte{byte(port >> 8), byte(port)}, unix.UnixRights(fd), nil, 0); err != nil {
		return fmt.Errorf("handing out port %d: %w", port, err)
	}
	return nil
}

// hear unblocks the signals that bubblewrap was started with blocked.
func hear() error {
	var set unix.Sigset_t
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM} {
		set.Val[0] |= 1 << (s - 1)
	}
	if err := unix.PthreadSigmask(unix.SIG_UNBLOCK, &set, nil); err != nil {
		return fmt.Errorf("unblocking signals: %w", err)
	}
	return nil
}

// closeEach is for kernels that cannot close a range.
func closeEach(first int) {
	for fd := first; fd < 1024; fd++ {
		unix.CloseOnExec(fd)
	}
}
