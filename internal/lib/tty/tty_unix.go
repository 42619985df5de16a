//go:build unix

package tty

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Raw puts the terminal f into raw mode; restore, which may be called more
// than once, puts it back.
func Raw(f *os.File) (restore func(), err error) {
	fd := int(f.Fd())
	was, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, fmt.Errorf("reading the state of the terminal: %w", err)
	}
	raw := *was
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	// OPOST stays: what else writes to the terminal gets its line ends.
	if err := unix.IoctlSetTermios(fd, setTermios, &raw); err != nil {
		return nil, fmt.Errorf("setting raw mode: %w", err)
	}
	return func() { _ = unix.IoctlSetTermios(fd, setTermios, was) }, nil // a terminal that is gone needs nothing
}

// Size is the size of the terminal f: 80 by 24 if it does not say.
func Size(f *os.File) (columns, rows int) {
	ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || ws.Col == 0 || ws.Row == 0 {
		return 80, 24
	}
	return int(ws.Col), int(ws.Row)
}

// Suspend stops this process's group, as Ctrl-Z does, until the shell lets it
// go on.
func Suspend() error { return syscall.Kill(0, syscall.SIGTSTP) }

// Resized is the signal that tells of a new size.
const Resized = syscall.SIGWINCH
