package checkpoint

import (
	"encoding/binary"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

func stampOf(fi fs.FileInfo) stamp {
	s := stamp{size: fi.Size(), mode: fi.Mode(), changed: fi.ModTime().UnixNano()}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		s.inode, s.altered = st.Ino, st.Ctim.Nano()
	}
	return s
}

// read lists dir. It names entries by the open directory, which spares the
// kernel the way there: a snapshot stats every file of the workspace twice.
func (l *listing) read(dir string) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	buf := make([]byte, 32<<10)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		for rest := buf[:n]; len(rest) > 0; {
			name, kind, size := entry(rest)
			rest = rest[size:]
			if name == "." || name == ".." {
				continue
			}
			if kind != unix.DT_DIR && kind != unix.DT_REG && kind != unix.DT_LNK && kind != unix.DT_UNKNOWN {
				continue
			}
			if len(l.files) >= MaxScan {
				l.cut = true
				return
			}
			l.take(fd, dir, name, kind)
		}
	}
}

// entry is the first entry of a buffer that the kernel has filled, and how
// long it is there: inode, offset, length, kind, name.
func entry(b []byte) (name string, kind byte, size int) {
	size = int(binary.NativeEndian.Uint16(b[16:]))
	raw := b[19:size]
	for i, c := range raw {
		if c == 0 {
			raw = raw[:i]
			break
		}
	}
	return string(raw), b[18], size
}

func (l *listing) take(fd int, dir, name string, kind byte) {
	if kind != unix.DT_DIR {
		var st unix.Stat_t
		for {
			err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
			if err == unix.EINTR {
				continue
			}
			if err != nil {
				return // gone meanwhile
			}
			break
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG, unix.S_IFLNK:
			l.files = append(l.files, stamped{below(dir, name), stampOfStat(&st)})
			return
		case unix.S_IFDIR: // of a file system that did not say so
		default:
			return
		}
	}
	if name != ".git" {
		l.dirs = append(l.dirs, below(dir, name))
	}
}

// below is filepath.Join for a clean dir and a name.
func below(dir, name string) string {
	if dir == "/" {
		return dir + name
	}
	return dir + "/" + name
}

// stampOfStat is what stampOf makes of the same file.
func stampOfStat(st *unix.Stat_t) stamp {
	mode := fs.FileMode(st.Mode & 0o777)
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		mode |= fs.ModeSymlink
	}
	if st.Mode&unix.S_ISUID != 0 {
		mode |= fs.ModeSetuid
	}
	if st.Mode&unix.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if st.Mode&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	return stamp{size: st.Size, mode: mode, changed: st.Mtim.Nano(), inode: st.Ino, altered: st.Ctim.Nano()}
}
