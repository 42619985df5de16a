package cli

import (
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

const (
	hangup     = syscall.SIGHUP
	brokenPipe = syscall.SIGPIPE
)

// isTerminal reports whether f is a console.
func isTerminal(f *os.File) bool {
	if f == nil {
		return false
	}
	var mode uint32
	return windows.GetConsoleMode(windows.Handle(f.Fd()), &mode) == nil
}
