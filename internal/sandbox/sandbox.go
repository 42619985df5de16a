// Package sandbox confines commands and all their children: what they may
// write, what they may not read, and that the network is reached only through
// a proxy of ours. On Linux a command runs under bubblewrap, with Landlock and
// a system call filter as further walls; where bubblewrap cannot work there is
// a weaker confinement by Landlock alone, which says so.
//
// It owns the walls: mounts, namespaces, the filter, protected paths, the
// probe that finds out what works here, and the way a listening socket gets
// out of the network namespace. It does not know settings, permission rules
// or domains: Rules say which paths, and a function is handed the connections.
//
// How the network works: a confined command has a network namespace with
// nothing in it but a loopback. Before it starts, a helper (our own program,
// run again inside; package inner) listens there, hands the listening socket
// out to us over an inherited socket pair, and becomes the command. A
// connection that the command makes to that port is accepted out here. There
// is no bridge process, no socket on disk and nothing unfiltered inside.
package sandbox

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
)

// A Level is how well commands are confined here.
type Level string

const (
	// Full is bubblewrap with everything on top.
	Full Level = "bubblewrap"
	// Weak is Landlock and the filter without namespaces. See Status.Weaker.
	Weak Level = "landlock"
	// Seatbelt is macOS's sandbox-exec.
	Seatbelt Level = "seatbelt"
	// None means that nothing works.
	None Level = "none"
)

// Verb is the argument that makes our program the helper inside.
const Verb = "__inner"

// ProxyPort is the port inside at which the proxy is found.
const ProxyPort = 3128

// Options describe the surroundings. The zero value looks bubblewrap up in
// no PATH and so finds it in the usual places only.
type Options struct {
	// Bwrap is the bubblewrap program; "" looks it up in Path.
	Bwrap, Path string
	// Home and Config are the user's home and the configuration root; both
	// are protected wherever they could be written. State is the program
	// state file beside it.
	Home, Config, State string
	// Journal is a directory for notes on commands under way, by which the
	// next start tidies up after a program that was killed. "" keeps none.
	Journal string
	// NestedProc binds the surrounding /proc in place of a new one, for
	// containers in which none can be mounted. Processes outside are then
	// visible, so it is weaker.
	NestedProc bool
}

// Rules are what one command may do. Paths are absolute; those that do not
// exist are skipped, or watched where they are forbidden.
type Rules struct {
	// Root is the project directory: its protected paths are protected.
	Root string
	// Write lists what may be written, Root included if it may.
	Write []string
	// DenyWrite wins over Write. DenyRead hides; AllowRead reopens what lies
	// inside of something hidden.
	DenyWrite, DenyRead, AllowRead []string
	// Show lists files that are seen with other contents.
	Show []Shown
	// OpenFiles leaves all files as they are to anybody.
	OpenFiles bool
	// OpenNetwork leaves the command in the machine's network.
	OpenNetwork bool
	// Ports are loopback ports inside that are handed out, too.
	Ports []uint16
	// UnixSockets allows local sockets. A socket on disk may lead to a
	// service that does anything, so this is weaker.
	UnixSockets bool
	// Scratch is the directory for temporary files, written and made TMPDIR.
	Scratch string
	// Unset lists environment variables the command must not see.
	Unset []string
	// Environ is added to the environment.
	Environ []string
}

// A Box confines commands. Its methods may be called concurrently.
type Box struct {
	o      Options
	level  Level
	bwrap  string
	status Status

	seq atomic.Int64
}

// Level is how well b confines.
func (b *Box) Level() Level { return b.level }

// Status is what the probe found.
func (b *Box) Status() Status { return b.status }

// A Run is one confined command.
type Run struct {
	box   *Box
	rules Rules
	serve func(l net.Listener, port uint16)

	started atomic.Bool

	mu      sync.Mutex
	removed []string
}

// Command makes a Run under r. serve, if not nil, is called in a goroutine
// for each listening socket that comes out: the one on ProxyPort, then those
// of Rules.Ports. It returns when the listener is closed, and only after the
// connections it accepted are; the end of the command waits for it.
func (b *Box) Command(r Rules, serve func(l net.Listener, port uint16)) *Run {
	return &Run{box: b, rules: r, serve: serve}
}

// Started reports whether the helper inside has handed a socket out, after
// which only the command itself is left to fail.
func (r *Run) Started() bool { return r.started.Load() }

// Removed lists what the command left at protected places and was moved away,
// once it has ended.
func (r *Run) Removed() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.removed
}

// Wrap is the proc.Wrap of the run. A Run is for one command.
func (r *Run) Wrap(s proc.Spec) (proc.Spec, func(), error) {
	path, err := proc.Look(s.Path, valueOf(s.Env, "PATH"))
	if err != nil {
		return s, nil, err
	}
	s.Path = path
	if len(s.Args) == 0 {
		s.Args = []string{s.Path}
	}
	if s.Dir == "" {
		if s.Dir, err = os.Getwd(); err != nil {
			return s, nil, err
		}
	}
	s.Env = r.environ(s.Env)
	p := layOut(r.box.o, r.rules)
	note, err := r.box.noteDown(p.watched)
	if err != nil {
		return s, nil, err
	}
	out, done, err := r.box.confine(r, s, p)
	if err != nil {
		note()
		return s, nil, err
	}
	return out, func() {
		done()
		gone := sweep(p.watched)
		note()
		r.mu.Lock()
		r.removed = append(r.removed, gone...)
		r.mu.Unlock()
	}, nil
}

// environ is env as the command gets it. Later entries win.
func (r *Run) environ(env []string) []string {
	out := make([]string, 0, len(env)+len(r.rules.Environ)+3)
next:
	for _, kv := range env {
		for _, name := range r.rules.Unset {
			if len(kv) > len(name) && kv[len(name)] == '=' && kv[:len(name)] == name {
				continue next
			}
		}
		out = append(out, kv)
	}
	out = append(out, "SANDBOX_RUNTIME=1", "CINCH_SANDBOX="+string(r.box.level))
	if r.rules.Scratch != "" {
		out = append(out, "TMPDIR="+r.rules.Scratch)
	}
	return append(out, r.rules.Environ...)
}

func valueOf(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if kv := env[i]; len(kv) > len(name) && kv[len(name)] == '=' && kv[:len(name)] == name {
			return kv[len(name)+1:]
		}
	}
	return ""
}

// An Inner is what the helper is told. It travels as JSON in its second
// argument; the command follows.
type Inner struct {
	// Path is the program; its arguments, the name it is called by first,
	// are those of the helper after the second.
	Path string `json:"path"`
	// Control is the descriptor that listening sockets are sent over, or -1.
	Control int      `json:"control"`
	Ports   []uint16 `json:"ports,omitempty"`
	// Keep is the first descriptor that the command must not have.
	Keep int `json:"keep"`
	// Files puts the command under Landlock: Write may be written.
	Files bool     `json:"files,omitempty"`
	Write []string `json:"write,omitempty"`
	// Connect, if not 0, is the only TCP port that may be connected to.
	Connect     uint16 `json:"connect,omitempty"`
	UnixSockets bool   `json:"unix,omitempty"`
	StreamsOnly bool   `json:"streams,omitempty"`
}

// Args are the helper's arguments for i.
func (i Inner) Args(argv []string) ([]string, error) {
	data, err := json.Marshal(i)
	if err != nil {
		return nil, err
	}
	return append([]string{Verb, string(data)}, argv...), nil
}

// within reports whether path is dir or below it; both are clean.
func within(path, dir string) bool {
	if dir == "/" || path == dir {
		return true
	}
	return len(path) > len(dir) && path[:len(dir)] == dir && path[len(dir)] == '/'
}

// real is path with all links resolved; ok is false if nothing is there.
func real(path string) (string, bool) {
	p, err := filepath.EvalSymlinks(path)
	if err != nil || !filepath.IsAbs(p) {
		return "", false
	}
	return p, true
}

func errDo(what string, err error) error { return fmt.Errorf("%s: %w", what, err) }
