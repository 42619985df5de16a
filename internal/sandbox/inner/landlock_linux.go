package inner

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seed-eb844fcb/cinch/internal/sandbox"
)

// Rights of Landlock that change something. Reading and executing are left
// to the other walls.
const (
	writeRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	refer     = 1 << 13 // ABI 2
	truncate  = 1 << 14 // ABI 3
	fileOnly  = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | truncate
	connect   = 1 << 1 // ABI 4
	scopes    = 1 | 2  // ABI 6: abstract sockets, signals
	rulePath  = 1
	rulePort  = 2
	attrLen   = 24
	versionOf = 1
)

type rulesetAttr struct{ files, net, scoped uint64 }

type portAttr struct{ access, port uint64 }

// landlockABI is the version the kernel has; 0 is none.
func landlockABI() int {
	v, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, versionOf)
	if e != 0 {
		return 0
	}
	return int(v)
}

// confineFiles puts this thread under Landlock. Under bubblewrap it is a
// second wall, and a kernel without it is no reason not to go on; on its own
// it is the wall, and the kernel must have all of it.
func confineFiles(in sandbox.Inner) error {
	abi := landlockABI()
	alone := in.Connect != 0 || in.StreamsOnly
	if abi == 0 && !alone {
		return nil
	}
	if alone && abi < 4 {
		return fmt.Errorf("this kernel's Landlock (version %d) is too old to confine a command by itself: version 4 is needed", abi)
	}
	var attr rulesetAttr
	if in.Files {
		attr.files = writeRights
		if abi >= 2 {
			attr.files |= refer
		}
		if abi >= 3 {
			attr.files |= truncate
		}
	}
	if in.Connect != 0 {
		attr.net = connect
	}
	if abi >= 6 {
		attr.scoped = scopes
	}
	size := uintptr(attrLen)
	switch {
	case abi < 4:
		size = 8
	case abi < 6:
		size = 16
	}
	r, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if e != 0 {
		return fmt.Errorf("making a Landlock ruleset: %w", e)
	}
	set := int(r)
	defer unix.Close(set)
	if in.Files {
		for _, path := range append(devices(), in.Write...) {
			if err := allowPath(set, path, attr.files); err != nil {
				return err
			}
		}
	}
	if in.Connect != 0 {
		a := portAttr{connect, uint64(in.Connect)}
		if _, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), rulePort, uintptr(unsafe.Pointer(&a)), 0, 0, 0); e != 0 {
			return fmt.Errorf("allowing port %d: %w", in.Connect, e)
		}
	}
	if _, _, e := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(set), 0, 0); e != 0 {
		return fmt.Errorf("entering Landlock: %w", e)
	}
	return nil
}

// devices are what may be written of /dev: nothing that is a disk. Of /proc
// nothing may.
func devices() []string {
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/shm"}
}

// allowPath lets path and what is below it be changed.
func allowPath(set int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
		return nil // gone or hidden by now: nothing to allow
	}
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("looking at %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileOnly
	}
	// The kernel's structure is packed: 8 bytes of rights, 4 of descriptor.
	a := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	if _, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), rulePath, uintptr(unsafe.Pointer(&a)), 0, 0, 0); e != 0 {
		return fmt.Errorf("allowing %s: %w", path, e)
	}
	return nil
}
