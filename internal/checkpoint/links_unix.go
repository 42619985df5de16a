//go:build unix

package checkpoint

import (
	"errors"
	"io/fs"
	"syscall"
)

// links is the number of names the file has.
func links(fi fs.FileInfo) uint64 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

// isNotDir reports that a parent of the path is no directory.
func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }
