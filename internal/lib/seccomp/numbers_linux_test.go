package seccomp

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// The numbers of the machine at hand are those of the kernel's headers.
func TestNumbers(t *testing.T) {
	t.Parallel()
	m, err := Here()
	if err != nil {
		t.Fatal(err)
	}
	want := []uint32{
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_PTRACE,
		unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_ADD_KEY,
		unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_SETNS, unix.SYS_MOUNT,
		unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE,
		unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_MOUNT_SETATTR,
	}
	if !slices.Equal(m.Refused, want) {
		t.Errorf("refused calls:\ngot  %v\nwant %v", m.Refused, want)
	}
	got := []uint32{m.Socket, m.Ioctl, m.Unshare, m.Clone, m.Clone3}
	if want := []uint32{unix.SYS_SOCKET, unix.SYS_IOCTL, unix.SYS_UNSHARE, unix.SYS_CLONE, unix.SYS_CLONE3}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
