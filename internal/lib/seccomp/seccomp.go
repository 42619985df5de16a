// Package seccomp builds the system call filter of confined commands, and
// loads it. The filter is a short program of the kernel's classic BPF,
// assembled here instruction by instruction, so that a test can run every
// call through it.
//
// It owns what is refused. It knows nothing of files, mounts or domains.
package seccomp

// An Instruction is one of classic BPF, as struct sock_filter.
type Instruction struct {
	Code   uint16
	Jt, Jf uint8
	K      uint32
}

// Options say what the filter lets through.
type Options struct {
	// UnixSockets allows sockets of the local family.
	UnixSockets bool
	// StreamsOnly refuses internet sockets that are not TCP. It is for
	// commands that share the machine's network.
	StreamsOnly bool
}

// Operations and return values of classic BPF and seccomp (linux/bpf_common.h,
// linux/seccomp.h).
const (
	opLoad    = 0x20 // A = data[K], 32 bits
	opAnd     = 0x54
	opEqual   = 0x15
	opAtLeast = 0x35
	opAnySet  = 0x45
	opReturn  = 0x06

	Allow = 0x7fff0000
	Kill  = 0x80000000
	errno = 0x00050000

	// EPERM and ENOSYS are the answers of refused calls.
	EPERM  = errno | 1
	ENOSYS = errno | 38
)

// Offsets in struct seccomp_data. Arguments are 64 bits wide; the kernel
// itself looks only at the lower half of those that are compared here. All
// supported machines are little-endian.
const (
	offCall = 0
	offArch = 4
	offArgs = 16
)

func arg(i uint32) uint32 { return offArgs + 8*i }

const (
	newUser    = 0x10000000 // CLONE_NEWUSER
	ttyInject  = 0x5412     // TIOCSTI
	ttyConsole = 0x541c     // TIOCLINUX

	familyUnix    = 1
	familyInet    = 2
	familyInet6   = 10
	familyNetlink = 16
	typeMask      = 0xf
	typeStream    = 1
)

// A Machine is the numbers of one architecture.
type Machine struct {
	Arch uint32 // AUDIT_ARCH_*
	// X32 says that calls with bit 30 set are another set of calls.
	X32 bool
	// The calls of which arguments are looked at.
	Socket, Ioctl, Unshare, Clone, Clone3 uint32
	// Refused are the calls that always fail.
	Refused []uint32
}

// AMD64 and ARM64 are the machines that are known. The refused calls are, in
// this order: io_uring_setup, io_uring_enter, io_uring_register, ptrace,
// process_vm_readv, process_vm_writev, pidfd_getfd, kcmp, add_key,
// request_key, keyctl, bpf, perf_event_open, userfaultfd, setns, mount,
// umount2, pivot_root, chroot, open_by_handle_at, kexec_load, init_module,
// finit_module, delete_module, move_mount, open_tree, fsopen, mount_setattr.
func AMD64() Machine {
	return Machine{
		Arch: 0xc000003e, X32: true, Socket: 41, Ioctl: 16, Unshare: 272, Clone: 56, Clone3: 435,
		Refused: []uint32{425, 426, 427, 101, 310, 311, 438, 312, 248, 249, 250, 321, 298, 323, 308, 165,
			166, 155, 161, 304, 246, 175, 313, 176, 429, 428, 430, 442},
	}
}

// ARM64 is described at AMD64.
func ARM64() Machine {
	return Machine{
		Arch: 0xc00000b7, Socket: 198, Ioctl: 29, Unshare: 97, Clone: 220, Clone3: 435,
		Refused: []uint32{425, 426, 427, 117, 270, 271, 438, 272, 217, 218, 219, 280, 241, 282, 268, 40,
			39, 41, 51, 265, 104, 105, 273, 106, 429, 428, 430, 442},
	}
}

// Program assembles the filter for m.
//
// What is not refused is allowed: the filter closes ways around the other
// walls and does not try to list what programs need. clone3 fails as if the
// kernel did not have it, since its flags cannot be seen; C libraries then
// use clone.
func Program(m Machine, o Options) []Instruction {
	p := []Instruction{
		{opLoad, 0, 0, offArch},
		{opEqual, 1, 0, m.Arch},
		{opReturn, 0, 0, Kill},
		{opLoad, 0, 0, offCall},
	}
	if m.X32 {
		p = append(p, Instruction{opAtLeast, 0, 1, 0x40000000}, Instruction{opReturn, 0, 0, EPERM})
	}
	for _, nr := range m.Refused {
		p = append(p, Instruction{opEqual, 0, 1, nr}, Instruction{opReturn, 0, 0, EPERM})
	}
	p = append(p, Instruction{opEqual, 0, 1, m.Clone3}, Instruction{opReturn, 0, 0, ENOSYS})
	flags := func(nr uint32) []Instruction {
		return call(nr, []Instruction{{opLoad, 0, 0, arg(0)}, {opAnySet, 0, 1, newUser}, {opReturn, 0, 0, EPERM}, {opReturn, 0, 0, Allow}})
	}
	p = append(p, flags(m.Unshare)...)
	p = append(p, flags(m.Clone)...)
	p = append(p, call(m.Ioctl, []Instruction{
		{opLoad, 0, 0, arg(1)},
		{opEqual, 1, 0, ttyInject}, {opEqual, 0, 1, ttyConsole}, {opReturn, 0, 0, EPERM},
		{opReturn, 0, 0, Allow},
	})...)
	p = append(p, call(m.Socket, sockets(o))...)
	return append(p, Instruction{opReturn, 0, 0, Allow})
}

// call runs body, which always returns, for one call only.
func call(nr uint32, body []Instruction) []Instruction {
	return append([]Instruction{{opEqual, 0, uint8(len(body)), nr}}, body...)
}

// sockets judges the family, and the type where that matters.
func sockets(o Options) []Instruction {
	p := []Instruction{{opLoad, 0, 0, arg(0)}}
	free := []uint32{familyNetlink}
	if o.UnixSockets {
		free = append(free, familyUnix)
	}
	inet := []uint32{familyInet, familyInet6}
	if !o.StreamsOnly {
		free, inet = append(free, inet...), nil
	}
	for _, f := range free {
		p = append(p, Instruction{opEqual, 0, 1, f}, Instruction{opReturn, 0, 0, Allow})
	}
	for _, f := range inet {
		p = append(p, call(f, []Instruction{
			{opLoad, 0, 0, arg(1)}, {opAnd, 0, 0, typeMask},
			{opEqual, 0, 1, typeStream}, {opReturn, 0, 0, Allow}, {opReturn, 0, 0, EPERM},
		})...)
	}
	return append(p, Instruction{opReturn, 0, 0, EPERM})
}
