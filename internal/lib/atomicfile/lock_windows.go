package atomicfile

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockFile locks one byte of f far behind its content, so that the content
// can be read by those who wait. It does not wait itself.
func lockFile(f *os.File) error {
	o := windows.Overlapped{Offset: 1 << 30}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &o)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return errHeld
	}
	return err
}
