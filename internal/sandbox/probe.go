package sandbox

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
)

// A Status is what the probe found.
type Status struct {
	Level Level
	// Blocker says what keeps bubblewrap from working, and Fix the smallest
	// change that would let it. Both are "" at Full.
	Blocker, Fix string
	// Weaker says what is not promised at this level; "" at Full.
	Weaker string
	// Moved lists what was left at protected places by commands of a program
	// that was killed, and has been moved away now.
	Moved []string
}

// String is one line about s.
func (s Status) String() string {
	out := "sandbox: " + string(s.Level)
	if s.Blocker != "" {
		out += ": " + s.Blocker
	}
	if s.Fix != "" {
		out += "; to mend it: " + s.Fix
	}
	return out
}

const weaker = "Landlock alone: protected files inside writable directories can be changed, files cannot be hidden, other processes can be seen, and TCP to the proxy's port number is possible at any address"

// probeLimit bounds one attempt of the probe.
const probeLimit = 10 * time.Second

// Open finds out what works here by running something, tidies up after
// programs that were killed, and returns a Box. It is never nil; at level None
// it confines nothing and its runs fail.
func Open(ctx context.Context, o Options) *Box {
	b := &Box{o: o, level: None, status: Status{Moved: tidy(o.Journal)}}
	defer func() { b.status.Level = b.level }()
	switch runtime.GOOS {
	case "linux":
		b.openLinux(ctx)
	case "darwin":
		if _, err := os.Stat(seatbelt); err != nil {
			b.status.Blocker = "there is no " + seatbelt
			return b
		}
		b.level = Seatbelt
	default:
		b.status.Blocker = "commands cannot be confined on " + runtime.GOOS
		b.status.Fix = "use Linux, macOS or WSL 2"
	}
	return b
}

// Try returns a Box without a probe: of level Full where bubblewrap is, of None
// where it is not. It is for one command, which finds out for itself.
func Try(o Options) *Box {
	b := &Box{o: o, level: None}
	switch runtime.GOOS {
	case "linux":
		path, err := o.bwrap()
		if err == nil {
			b.level, b.bwrap = Full, path
			break
		}
		b.status.Blocker, b.status.Fix = facts{system: readFact}.explain()
	case "darwin":
		b.level = Seatbelt
	default:
		b.status.Blocker = "commands cannot be confined on " + runtime.GOOS
	}
	b.status.Level = b.level
	b.status.Moved = tidy(o.Journal)
	return b
}

const seatbelt = "/usr/bin/sandbox-exec"

func (b *Box) openLinux(ctx context.Context) {
	f := facts{system: readFact}
	path, err := b.o.bwrap()
	if err == nil {
		b.bwrap = path
		f.bwrap = path
		f.stderr, err = b.attempt(ctx, Full)
	}
	if err == nil {
		b.level = Full
		return
	}
	f.err = err.Error()
	b.status.Blocker, b.status.Fix = f.explain()
	if _, err := b.attempt(ctx, Weak); err == nil {
		b.level = Weak
		b.status.Weaker = weaker
	}
}

// bwrap is the path of the bubblewrap program, which is there.
func (o Options) bwrap() (string, error) {
	path, err := proc.Look(or(o.Bwrap, "bwrap"), o.Path)
	if err == nil {
		_, err = os.Stat(path)
	}
	return path, err
}

// spaces are the namespaces that a confined command must not share with us.
var spaces = [...]string{"net", "pid", "mnt", "user"}

// attempt runs a program at a level, all the way through, which says in which
// namespaces it is: a wrapper that starts it and confines nothing is no
// sandbox.
func (b *Box) attempt(ctx context.Context, l Level) (stderr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	try := &Box{o: b.o, level: l, bwrap: b.bwrap}
	try.o.Journal = ""
	var got atomic.Bool
	r := try.Command(Rules{}, func(l net.Listener, _ uint16) {
		got.Store(true)
		if c, err := l.Accept(); err == nil {
			_ = c.Close()
		}
	})
	spec := proc.Spec{Path: "/bin/true", Env: []string{}, Dir: "/"}
	if l == Full {
		spec.Path, spec.Env = "/bin/sh", []string{"PATH=" + b.o.Path + ":/usr/bin:/bin"}
		spec.Args = []string{"sh", "-c", "cd /proc/self/ns && exec readlink " + strings.Join(spaces[:], " ")}
	}
	out, err := proc.Run(ctx, spec, proc.Options{Wrap: r.Wrap}, 4096)
	stderr = strings.TrimSpace(string(out.Stderr))
	switch {
	case err != nil:
		return stderr, err
	case !out.OK():
		return stderr, fmt.Errorf("%s: %s", out.Exit, stderr)
	case !got.Load():
		return stderr, fmt.Errorf("no socket came out: %s", stderr)
	}
	if l == Full {
		return stderr, apart(strings.Fields(string(out.Stdout)))
	}
	return stderr, nil
}

// apart reports an error if one of the namespaces inside is ours.
func apart(inside []string) error {
	if len(inside) != len(spaces) {
		return fmt.Errorf("the namespaces inside cannot be told: %q", inside)
	}
	for i, name := range spaces {
		ours, err := os.Readlink("/proc/self/ns/" + name)
		if err == nil && ours == inside[i] {
			return fmt.Errorf("it starts programs in our own %s namespace", name)
		}
	}
	return nil
}

// facts are what an explanation of a failure is drawn from.
type facts struct {
	bwrap       string // "" if there is none
	stderr, err string
	system      func(name string) string // content of a file, or ""
}

func readFact(name string) string {
	data, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// explain names what keeps bubblewrap from working and what to do about it.
func (f facts) explain() (blocker, fix string) {
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(f.stderr, p) {
				return true
			}
		}
		return false
	}
	contained := f.system("/run/.containerenv") != "" || f.system("/.dockerenv") != "" || strings.Contains(f.system("/proc/1/cgroup"), "docker")
	filtered := strings.Contains(f.system("/proc/self/status"), "Seccomp:\t2")
	noNamespace := has("No permissions to create", "setting up uid map", "Creating new namespace failed", "Operation not permitted", "Permission denied")
	switch {
	case f.bwrap == "":
		return "bubblewrap (bwrap) is not installed", "install it: apt install bubblewrap, dnf install bubblewrap, or pacman -S bubblewrap"
	case noNamespace && f.system("/proc/sys/user/max_user_namespaces") == "0":
		return "this system allows no user namespaces (user.max_user_namespaces is 0)", "sysctl -w user.max_user_namespaces=15000"
	case noNamespace && f.system("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return "user namespaces are for root only (kernel.unprivileged_userns_clone is 0)", "sysctl -w kernel.unprivileged_userns_clone=1"
	case f.system("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" && (noNamespace || has("RTM_NEWADDR", "loopback")):
		return "AppArmor keeps programs from using user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1)",
			"give bwrap a profile: write 'abi <abi/4.0>, include <tunables/global> profile bwrap " + f.bwrap + " flags=(unconfined) { userns, }' to /etc/apparmor.d/bwrap and run apparmor_parser -r /etc/apparmor.d/bwrap"
	case has("mount proc", "mounting proc", "Can't mount proc"):
		return "no new /proc can be mounted here, as in a container without privileges", "set sandbox.enableWeakerNestedSandbox to true, which leaves other processes visible, or start the container with --security-opt systempaths=unconfined"
	case noNamespace && (contained || filtered):
		return "the container's system call filter forbids namespaces", "start the container with --security-opt seccomp=unconfined, or with a profile that allows clone, unshare, mount and pivot_root"
	case has("RTM_NEWADDR", "loopback"):
		return "no network namespace can be set up here", "run where network namespaces are allowed"
	case strings.Contains(f.stderr, "cinch: sandbox:"):
		return "the helper inside failed: " + f.stderr, "update the kernel, or report this line"
	}
	return "bubblewrap does not work here: " + f.err, "run '" + or(f.bwrap, "bwrap") + " --ro-bind / / true' to see why"
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
