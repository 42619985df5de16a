//go:build unix

package atomicfile

import (
	"io/fs"
	"os"
	"syscall"
)

// foreign reports who owns the file of info if a file that this process
// makes would belong to somebody else.
func foreign(info fs.FileInfo) (uid, gid int, ok bool) {
	st, is := info.Sys().(*syscall.Stat_t)
	if !is || int(st.Uid) == os.Geteuid() {
		return 0, 0, false
	}
	return int(st.Uid), int(st.Gid), true
}
