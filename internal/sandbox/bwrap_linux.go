package sandbox

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
)

// self is the running program. The kernel's link leads to it even after it
// was replaced or removed on disk.
const self = "/proc/self/exe"

// handLimit bounds how long the helper may take to hand its sockets out; it
// does so before the command starts.
const handLimit = 30 * time.Second

// confine rewrites s to run under p.
func (b *Box) confine(r *Run, s proc.Spec, p layout) (proc.Spec, func(), error) {
	c := &confinement{run: r, base: 3 + len(s.Files)}
	out, err := c.prepare(b, s, p)
	if err != nil {
		c.close()
		return s, nil, err
	}
	return out, c.close, nil
}

// A confinement is what one command needs while it runs.
type confinement struct {
	run   *Run
	base  int // the descriptor that the next of files becomes
	files []*os.File

	control *net.UnixConn
	work    sync.WaitGroup
	mu      sync.Mutex
	closed  bool
	open    []net.Listener
}

// pass makes f a descriptor of the child and returns its number there.
func (c *confinement) pass(f *os.File) int {
	c.files = append(c.files, f)
	return c.base + len(c.files) - 1
}

func (c *confinement) prepare(b *Box, s proc.Spec, p layout) (proc.Spec, error) {
	r := c.run.rules
	in := Inner{Path: s.Path, Control: -1, UnixSockets: r.UnixSockets, Keep: c.base}
	if !r.OpenFiles {
		in.Files, in.Write = true, p.roots()
	}
	if b.level == Weak {
		return c.weak(s, in)
	}
	exe, err := os.Open(self)
	if err != nil {
		return s, errDo("opening this program", err)
	}
	exeFD := c.pass(exe)

	if !r.OpenNetwork {
		if in.Control, err = c.openControl(); err != nil {
			return s, err
		}
		if c.run.serve != nil {
			in.Ports = append([]uint16{ProxyPort}, r.Ports...)
		}
	}
	args, err := in.Args(s.Args)
	if err != nil {
		return s, err
	}
	var show []string
	for _, f := range shown(r, p) {
		fd, err := c.memory(f.Path, string(f.Data))
		if err != nil {
			return s, err
		}
		show = append(show, "--perms", "0444", "--ro-bind-data", strconv.Itoa(fd), f.Path)
	}
	argFD, err := c.arguments(append(bwrapArgs(b.o, r, p, s.Dir), show...))
	if err != nil {
		return s, err
	}
	s.Args = append([]string{"bwrap", "--args", strconv.Itoa(argFD), "--", "/proc/self/fd/" + strconv.Itoa(exeFD)}, args...)
	s.Path = b.bwrap
	// Bubblewrap would die at once of the signals by which a group is asked
	// to end and take the command with it, which then could not end in its
	// own way. The helper hears them again.
	s.Deaf = true
	s.Files = append(append([]*os.File(nil), s.Files...), c.files...)
	return s, nil
}

// weak runs the helper without namespaces. The proxy listens out here.
func (c *confinement) weak(s proc.Spec, in Inner) (proc.Spec, error) {
	if !c.run.rules.OpenNetwork {
		in.StreamsOnly = true
		in.Connect = 1 // nobody listens there
		if c.run.serve != nil {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return s, errDo("opening the proxy's port", err)
			}
			in.Connect = uint16(l.Addr().(*net.TCPAddr).Port)
			c.start(l, ProxyPort)
			for i, kv := range s.Env {
				s.Env[i] = strings.ReplaceAll(kv, "127.0.0.1:"+strconv.Itoa(ProxyPort), l.Addr().String())
			}
		}
	}
	args, err := in.Args(s.Args)
	if err != nil {
		return s, err
	}
	s.Path, s.Args = self, append([]string{"cinch"}, args...)
	return s, nil
}

// arguments hands bubblewrap its arguments in a file: there is no limit to it,
// and they are in no process list.
func (c *confinement) arguments(args []string) (int, error) {
	return c.memory("arguments", strings.Join(args, "\x00")+"\x00")
}

// memory makes a file in memory that holds text, for the child to read.
func (c *confinement) memory(name, text string) (int, error) {
	fd, err := unix.MemfdCreate(filepath.Base(name), unix.MFD_CLOEXEC)
	if err != nil {
		return 0, errDo("making room for "+name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	n := c.pass(f)
	if _, err := io.WriteString(f, text); err != nil {
		return 0, errDo("writing "+name, err)
	}
	_, err = f.Seek(0, io.SeekStart)
	return n, err
}

// openControl makes the socket pair over which listening sockets come out,
// and starts to wait for them.
func (c *confinement) openControl() (int, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, errDo("making a socket pair", err)
	}
	inner := c.pass(os.NewFile(uintptr(pair[1]), "control inside"))
	ours := os.NewFile(uintptr(pair[0]), "control")
	conn, err := net.FileConn(ours)
	_ = ours.Close()
	if err != nil {
		return 0, errDo("opening the control socket", err)
	}
	c.control = conn.(*net.UnixConn)
	c.work.Go(c.receive)
	return inner, nil
}

// receive takes the listening sockets, each in a message that holds its port.
func (c *confinement) receive() {
	_ = c.control.SetReadDeadline(time.Now().Add(handLimit))
	data, oob := make([]byte, 2), make([]byte, unix.CmsgSpace(4))
	for {
		n, on, _, _, err := c.control.ReadMsgUnix(data, oob)
		if err != nil || n != 2 {
			return
		}
		msgs, err := unix.ParseSocketControlMessage(oob[:on])
		if err != nil || len(msgs) != 1 {
			return
		}
		fds, err := unix.ParseUnixRights(&msgs[0])
		if err != nil || len(fds) != 1 {
			return
		}
		unix.CloseOnExec(fds[0])
		f := os.NewFile(uintptr(fds[0]), "listener")
		l, err := net.FileListener(f)
		_ = f.Close()
		if err != nil {
			return
		}
		c.start(l, uint16(data[0])<<8|uint16(data[1]))
	}
}

// start serves l until the command has ended.
func (c *confinement) start(l net.Listener, port uint16) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.run.serve == nil {
		_ = l.Close()
		return
	}
	c.run.started.Store(true)
	c.open = append(c.open, l)
	c.work.Go(func() { c.run.serve(l, port) })
}

// close lets go of everything and waits for those who serve.
func (c *confinement) close() {
	c.mu.Lock()
	c.closed = true
	for _, l := range c.open {
		_ = l.Close()
	}
	c.mu.Unlock()
	if c.control != nil {
		_ = c.control.Close()
	}
	for _, f := range c.files {
		_ = f.Close()
	}
	c.work.Wait()
}

// bwrapArgs are the arguments that make the confinement.
func bwrapArgs(o Options, r Rules, p layout, dir string) []string {
	a := []string{"--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--cap-drop", "ALL"}
	if !r.OpenNetwork {
		a = append(a, "--unshare-net")
	}
	if r.OpenFiles {
		a = append(a, "--dev-bind", "/", "/")
	} else {
		a = append(a, "--ro-bind", "/", "/", "--dev", "/dev")
	}
	if o.NestedProc {
		a = append(a, "--ro-bind", "/proc", "/proc")
	} else {
		// Read-only: root inside is root to /proc/sys.
		a = append(a, "--proc", "/proc", "--remount-ro", "/proc")
	}
	for i, m := range p.mounts {
		switch {
		case m.kind == writable:
			a = append(a, "--bind", m.path, m.path)
		case m.kind == readOnly:
			a = append(a, "--ro-bind", m.path, m.path)
		case !m.dir:
			a = append(a, "--ro-bind", "/dev/null", m.path)
		default:
			perms := "0000"
			for _, n := range p.mounts[i+1:] {
				if n.kind != hidden && within(n.path, m.path) {
					perms = "0111" // something inside is to be reached
				}
			}
			a = append(a, "--perms", perms, "--tmpfs", m.path)
		}
	}
	// What is made to hide something is no place to write to either.
	for _, m := range p.mounts {
		if m.kind == hidden && m.dir {
			a = append(a, "--remount-ro", m.path)
		}
	}
	return append(a, "--chdir", dir)
}
