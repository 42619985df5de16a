package sandbox_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/sandbox"
)

// program writes an executable script and returns its path.
func program(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(tempDir(t), "bwrap")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// A bubblewrap that does not work is found out by running something in it,
// whatever its way to fail, and is never mistaken for a sandbox.
func TestBrokenBubblewrap(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, script, blocker string }{
		{"refuses", `echo "bwrap: Can't mount proc on /newroot/proc" >&2; exit 1`, "/proc"},
		{"confines nothing", `for a; do shift; [ "$a" = -- ] && exec "$@"; done`, "our own net namespace"},
		{"does nothing and is content", `exit 0`, "no socket came out"},
		{"dies", `kill -9 $$`, ""},
	} {
		b := sandbox.Open(t.Context(), sandbox.Options{Bwrap: program(t, tc.script)})
		s := b.Status()
		if b.Level() == sandbox.Full || s.Blocker == "" || s.Fix == "" || !strings.Contains(s.Blocker, tc.blocker) {
			t.Errorf("%s: %+v", tc.name, s)
		}
		if b.Level() == sandbox.Weak && s.Weaker == "" {
			t.Errorf("%s: the weaker confinement does not say so", tc.name)
		}
	}
}

// With Landlock alone nothing outside is written, no network is reached but
// the proxy, and the status says what is not promised.
func TestLandlockAlone(t *testing.T) {
	t.Parallel()
	b := sandbox.Open(t.Context(), sandbox.Options{Bwrap: "/nowhere/bwrap"})
	s := b.Status()
	if b.Level() != sandbox.Weak {
		if os.Getenv("CI") != "" {
			t.Fatal(s)
		}
		t.Skip(s)
	}
	if !strings.Contains(s.Blocker, "not installed") || !strings.Contains(s.Weaker, "Landlock alone") {
		t.Errorf("%+v", s)
	}
	need(t, "python3", "timeout")
	base := tempDir(t)
	root, out := filepath.Join(base, "p"), filepath.Join(base, "out")
	for _, d := range []string{root, out} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(out, "file"), []byte("outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	u, err := net.Listen("unix", filepath.Join(out, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	r := sandbox.Rules{Root: root, Write: []string{root}, Environ: []string{fmt.Sprintf("PROXY=127.0.0.1:%d", sandbox.ProxyPort)}}
	env := fmt.Sprintf("OUT=%s PORT=%d; ", out, l.Addr().(*net.TCPAddr).Port)
	for _, tc := range []struct {
		script, out string
		code        int
	}{
		{"exit 77", "", 77},
		{"kill -TERM $$", "", 143},
		{"echo x > made && cat made; echo $CINCH_SANDBOX", "x\nlandlock", 0},
		{"exec 3<>/dev/tcp/${PROXY%:*}/${PROXY#*:}; cat <&3", "from outside", 0},
		{"(echo x > $OUT/file) 2>/dev/null || echo no", "no", 0},
		{"(echo x > $OUT/new) 2>/dev/null || echo no", "no", 0},
		{"ln -s $OUT l; (echo x > l/new) 2>/dev/null || echo no", "no", 0},
		{"rm -f $OUT/file 2>/dev/null || echo no", "no", 0},
		{"mv $OUT/file taken 2>/dev/null || echo no", "no", 0},
		{"truncate -s 0 $OUT/file 2>/dev/null || echo no", "no", 0},
		{"timeout 5 bash -c \"exec 3<>/dev/tcp/127.0.0.1/$PORT\" 2>/dev/null || echo no", "no", 0},
		{"timeout 5 bash -c \"exec 3<>/dev/tcp/192.0.2.1/80\" 2>/dev/null || echo no", "no", 0},
		{"(echo x > /dev/udp/127.0.0.1/53) 2>/dev/null || echo no", "no", 0},
		{"python3 -c \"import socket;socket.socket(socket.AF_UNIX).connect('$OUT/sock')\" 2>/dev/null || echo no", "no", 0},
		{"python3 -c \"import ctypes,sys;sys.exit(ctypes.CDLL(None).ptrace(0,0,0,0)<0)\" || echo no", "no", 0},
	} {
		got, exit := run(t, b, r, env+tc.script)
		if got != tc.out || exit.Code != tc.code {
			t.Errorf("%s: got %q, %v; want %q, %d", tc.script, got, exit, tc.out, tc.code)
		}
	}
	if got, err := os.ReadFile(filepath.Join(out, "file")); string(got) != "outside" {
		t.Errorf("the file outside is %q, %v", got, err)
	}
}
