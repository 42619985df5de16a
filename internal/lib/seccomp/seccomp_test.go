package seccomp

import (
	"encoding/binary"
	"testing"
)

// run is the kernel's part: it interprets p for one call.
func run(t *testing.T, p []Instruction, arch, nr uint32, args ...uint64) uint32 {
	t.Helper()
	data := make([]byte, 64)
	binary.LittleEndian.PutUint32(data, nr)
	binary.LittleEndian.PutUint32(data[4:], arch)
	for i, a := range args {
		binary.LittleEndian.PutUint64(data[16+8*i:], a)
	}
	var a uint32
	for pc := 0; pc < len(p); pc++ {
		jump := func(yes bool) {
			if yes {
				pc += int(p[pc].Jt)
			} else {
				pc += int(p[pc].Jf)
			}
		}
		switch in := p[pc]; in.Code {
		case opLoad:
			a = binary.LittleEndian.Uint32(data[in.K:])
		case opAnd:
			a &= in.K
		case opEqual:
			jump(a == in.K)
		case opAtLeast:
			jump(a >= in.K)
		case opAnySet:
			jump(a&in.K != 0)
		case opReturn:
			return in.K
		default:
			t.Fatalf("instruction %d has the unknown code %#x", pc, in.Code)
		}
	}
	t.Fatal("the program runs off its end")
	return 0
}

func TestFilter(t *testing.T) {
	t.Parallel()
	const unixStream, dgram, raw, closeOnExec = 1, 2, 3, 0x80000
	type c struct {
		name string
		o    Options
		arch uint32 // 0 is the right one
		nr   func(Machine) uint32
		args []uint64
		want uint32
	}
	fixed := func(n uint32) func(Machine) uint32 { return func(Machine) uint32 { return n } }
	socket := func(m Machine) uint32 { return m.Socket }
	ioctl := func(m Machine) uint32 { return m.Ioctl }
	unshare := func(m Machine) uint32 { return m.Unshare }
	clone := func(m Machine) uint32 { return m.Clone }
	tests := []c{
		{name: "other architecture", arch: 0x40000003, nr: socket, want: Kill},
		{name: "unknown call", nr: fixed(9999), want: Allow},
		{name: "local socket", nr: socket, args: []uint64{1, unixStream}, want: EPERM},
		{name: "local socket, high half set", nr: socket, args: []uint64{1 | 1<<40, unixStream}, want: EPERM},
		{name: "local socket allowed", o: Options{UnixSockets: true}, nr: socket, args: []uint64{1, unixStream}, want: Allow},
		{name: "tcp", nr: socket, args: []uint64{2, 1 | closeOnExec}, want: Allow},
		{name: "tcp over ipv6", nr: socket, args: []uint64{10, 1}, want: Allow},
		{name: "udp", nr: socket, args: []uint64{2, dgram}, want: Allow},
		{name: "netlink", nr: socket, args: []uint64{16, raw}, want: Allow},
		{name: "packet", nr: socket, args: []uint64{17, raw}, want: EPERM},
		{name: "vsock", nr: socket, args: []uint64{40, 1}, want: EPERM},
		{name: "alg", nr: socket, args: []uint64{38, 5}, want: EPERM},
		{name: "bluetooth", nr: socket, args: []uint64{31, raw}, want: EPERM},
		{name: "streams only: tcp", o: Options{StreamsOnly: true}, nr: socket, args: []uint64{2, 1 | closeOnExec}, want: Allow},
		{name: "streams only: udp", o: Options{StreamsOnly: true}, nr: socket, args: []uint64{2, dgram | closeOnExec}, want: EPERM},
		{name: "streams only: raw v6", o: Options{StreamsOnly: true}, nr: socket, args: []uint64{10, raw}, want: EPERM},
		{name: "streams only: netlink", o: Options{StreamsOnly: true}, nr: socket, args: []uint64{16, raw}, want: Allow},
		{name: "streams only: local", o: Options{StreamsOnly: true}, nr: socket, args: []uint64{1, 1}, want: EPERM},
		{name: "push a character into the terminal", nr: ioctl, args: []uint64{0, 0x5412}, want: EPERM},
		{name: "same, high half set", nr: ioctl, args: []uint64{0, 0x5412 | 1<<32}, want: EPERM},
		{name: "console", nr: ioctl, args: []uint64{0, 0x541c}, want: EPERM},
		{name: "window size", nr: ioctl, args: []uint64{0, 0x5413}, want: Allow},
		{name: "new user namespace", nr: unshare, args: []uint64{0x10000000}, want: EPERM},
		{name: "new user and mount namespace", nr: unshare, args: []uint64{0x10020000}, want: EPERM},
		{name: "unshare files", nr: unshare, args: []uint64{0x400}, want: Allow},
		{name: "clone into a user namespace", nr: clone, args: []uint64{0x10000000 | 17}, want: EPERM},
		{name: "fork", nr: clone, args: []uint64{17}, want: Allow},
		{name: "clone3", nr: func(m Machine) uint32 { return m.Clone3 }, want: ENOSYS},
	}
	for name, m := range map[string]Machine{"amd64": AMD64(), "arm64": ARM64()} {
		for _, tc := range tests {
			arch := tc.arch
			if arch == 0 {
				arch = m.Arch
			}
			if got := run(t, Program(m, tc.o), arch, tc.nr(m), tc.args...); got != tc.want {
				t.Errorf("%s: %s: got %#x, want %#x", name, tc.name, got, tc.want)
			}
		}
		seen := map[uint32]bool{}
		for _, nr := range m.Refused {
			if seen[nr] {
				t.Errorf("%s: call %d is listed twice", name, nr)
			}
			seen[nr] = true
			if got := run(t, Program(m, Options{UnixSockets: true}), m.Arch, nr); got != EPERM {
				t.Errorf("%s: call %d: got %#x, want EPERM", name, nr, got)
			}
		}
	}
	if got := run(t, Program(AMD64(), Options{}), AMD64().Arch, 0x40000000+41, 2, 1); got != EPERM {
		t.Errorf("x32 call: got %#x, want EPERM", got)
	}
}
