package checkpoint

import (
	"io/fs"
	"syscall"
)

func stampOf(fi fs.FileInfo) stamp {
	s := stamp{size: fi.Size(), mode: fi.Mode(), changed: fi.ModTime()}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		s.inode, s.altered = st.Ino, st.Ctim.Nano()
	}
	return s
}
