//go:build unix

package procid

import (
	"errors"
	"os"
	"runtime"
	"syscall"
)

// exists reports whether some process has the number pid. A zombie counts as
// gone where the platform's start could tell that it is one.
func exists(pid int) bool {
	if runtime.GOOS == "linux" {
		if _, err := os.Stat("/proc/self/stat"); err == nil {
			return false // start looked there and did not find it alive
		}
	}
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
