package sandbox

import (
	"fmt"
	"strings"
)

// Profile is the Seatbelt profile for r under p: everything is refused but
// what is listed, later lines win. port is where the proxy listens.
func profile(r Rules, p layout, port uint16) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("(version 1)")
	line("(deny default)")
	for _, op := range []string{
		"process-exec", "process-fork", "process-info* (target same-sandbox)", "signal (target same-sandbox)", "mach-priv-task-port (target same-sandbox)",
		"user-preference-read", "sysctl-read", "iokit-open (iokit-registry-entry-class \"RootDomainUserClient\")", "ipc-posix-shm", "ipc-posix-sem", "pseudo-tty",
		`mach-lookup (global-name "com.apple.system.logger") (global-name "com.apple.system.notification_center") (global-name "com.apple.bsd.dirhelper") (global-name "com.apple.system.opendirectoryd.libinfo")`,
		`file-ioctl (literal "/dev/tty") (literal "/dev/null")`,
	} {
		line("(allow %s)", op)
	}
	if r.OpenFiles {
		line("(allow file-read* file-write*)")
	} else {
		line("(allow file-read*)")
		line(`(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/stdout") (literal "/dev/stderr") (regex #"^/dev/ttys[0-9]+$"))`)
		for _, m := range p.mounts {
			place := "literal"
			if m.dir {
				place = "subpath"
			}
			q := quoteProfile(m.path)
			switch m.kind {
			case writable:
				line("(allow file-write* (%s %s))", place, q)
			case readOnly:
				line("(allow file-read* (%s %s))", place, q)
				line("(deny file-write* (%s %s))", place, q)
			case hidden:
				line("(deny file-read* file-write* (%s %s))", place, q)
			}
			if m.kind != hidden { // nothing on the way to it may be renamed
				line("(deny file-write-unlink (literal %s))", q)
			}
		}
		for _, w := range p.watched {
			line("(deny file-write* (subpath %s))", quoteProfile(w.Path))
		}
	}
	switch {
	case r.OpenNetwork:
		line("(allow network*)")
	default:
		line("(deny network*)")
		line(`(allow network-bind (local ip "localhost:*"))`)
		line(`(allow network-inbound (local ip "localhost:*"))`)
		if port != 0 {
			line(`(allow network-outbound (remote ip "localhost:%d"))`, port)
		}
		if r.UnixSockets {
			line(`(allow network-outbound (remote unix-socket))`)
		}
	}
	return b.String()
}

// quoteProfile writes s as a string of the profile language.
func quoteProfile(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
