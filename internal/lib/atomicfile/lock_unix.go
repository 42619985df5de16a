//go:build unix

package atomicfile

import (
	"errors"
	"os"
	"syscall"
)

// lockFile locks f without waiting. It fails with errHeld if the lock is
// taken and with another error if the file system has no locks.
func lockFile(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errHeld
		default:
			return err
		}
	}
}
