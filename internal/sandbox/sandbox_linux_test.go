package sandbox_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
	"github.com/seed-eb844fcb/cinch/internal/sandbox"
	"github.com/seed-eb844fcb/cinch/internal/sandbox/inner"
)

// The test program is the helper, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Verb {
		os.Exit(inner.Main(os.Args[1:], os.Environ(), os.Stderr))
	}
	if dir := os.Getenv(hostVar); dir != "" {
		os.Exit(host(dir))
	}
	os.Exit(m.Run())
}

// box returns a working Box. Where commands cannot be confined the test does
// not pass in CI.
func box(t *testing.T, o sandbox.Options) *sandbox.Box {
	t.Helper()
	o.Path = os.Getenv("PATH")
	b := sandbox.Open(t.Context(), o)
	if b.Level() != sandbox.Full {
		if os.Getenv("CI") != "" {
			t.Fatal(b.Status())
		}
		t.Skip(b.Status())
	}
	return b
}

// need ends the test if a program is missing: an attempt to get out that
// fails for want of its tool proves nothing.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("%s is not installed", p)
			}
			t.Skipf("%s is not installed", p)
		}
	}
}

// run runs a script confined and returns what it wrote and how it ended.
func run(t *testing.T, b *sandbox.Box, r sandbox.Rules, script string) (string, proc.Exit) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	dir := r.Root
	if dir == "" {
		dir = "/"
	}
	w := b.Command(r, func(l net.Listener, _ uint16) {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("from outside\n"))
			_ = c.Close()
		}
	})
	spec := proc.Spec{Path: "bash", Args: []string{"bash", "-c", script}, Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}}
	c := &proc.Capture{Max: 1 << 20}
	p, err := proc.Start(ctx, spec, proc.Options{Wrap: w.Wrap, Stdout: c, Stderr: c})
	if err != nil {
		t.Fatal(err)
	}
	exit, err := p.Wait()
	if err != nil {
		t.Fatalf("%v: %s", err, c.Bytes())
	}
	return strings.TrimSpace(string(c.Bytes())), exit
}

func tempDir(t *testing.T) string {
	t.Helper()
	d, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestExits(t *testing.T) {
	t.Parallel()
	b := box(t, sandbox.Options{})
	dir := tempDir(t)
	r := sandbox.Rules{Root: dir, Write: []string{dir}}
	for _, tc := range []struct {
		script, out string
		code        int
	}{
		{"exit 0", "", 0},
		{"exit 77", "", 77},
		{"exit 255", "", 255},
		{"kill -TERM $$", "", 143},
		{"kill -KILL $$", "", 137},
		{"trap 'echo bye; exit 9' TERM; kill -TERM $$; sleep 1", "bye", 9},
		{"echo out; echo err >&2", "out\nerr", 0},
		{"pwd", dir, 0},
		{"exec 3<>/dev/tcp/127.0.0.1/3128; cat <&3", "from outside", 0},
		{"ls /proc/self/fd | wc -l", "4", 0}, // 0, 1, 2 and the directory itself
		{"echo $CINCH_SANDBOX", "bubblewrap", 0},
	} {
		out, exit := run(t, b, r, tc.script)
		if out != tc.out || exit.Code != tc.code {
			t.Errorf("%s: got %q, %v; want %q, %d", tc.script, out, exit, tc.out, tc.code)
		}
	}
}

// A command that is asked to end can do so in its own way: bubblewrap does not
// die before it and take it along.
func TestAskedToEnd(t *testing.T) {
	t.Parallel()
	b := box(t, sandbox.Options{})
	dir := tempDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := b.Command(sandbox.Rules{Root: dir, Write: []string{dir}}, nil)
	script := `trap 'echo bye > end; exit 9' TERM; echo > ready; while :; do sleep 0.05; done`
	p, err := proc.Start(ctx, proc.Spec{Path: "bash", Args: []string{"bash", "-c", script}, Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH")}},
		proc.Options{Wrap: w.Wrap, Grace: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, "ready")); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the command did not start")
		}
	}
	cancel()
	exit, _ := p.Wait() // the error is that of ctx
	if got, err := os.ReadFile(filepath.Join(dir, "end")); string(got) != "bye\n" || exit.Code != 9 {
		t.Errorf("got %q, %v; %v", got, err, exit)
	}
}

// A file that is shown with other contents is so by each of its names, cannot
// be changed or uncovered, and is what it was outside.
func TestShownFiles(t *testing.T) {
	t.Parallel()
	b := box(t, sandbox.Options{})
	dir, elsewhere := tempDir(t), tempDir(t)
	secret, link, other := filepath.Join(dir, "sub", "secret"), filepath.Join(dir, "link"), filepath.Join(elsewhere, "config")
	if err := os.Mkdir(filepath.Dir(secret), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{secret, other} {
		if err := os.WriteFile(f, []byte("the real one\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(secret, link); err != nil {
		t.Fatal(err)
	}
	r := sandbox.Rules{Root: dir, Write: []string{dir}, Show: []sandbox.Shown{
		{Path: link, Data: []byte("a stand-in\n")}, {Path: other, Data: []byte("another\n")}, {Path: filepath.Join(dir, "missing"), Data: []byte("x")}, {Path: dir},
	}}
	out, _ := run(t, b, r, `cat sub/secret link `+other+` /proc/self/root`+secret+`
echo x 2>/dev/null > sub/secret || echo kept
rm -f sub/secret 2>/dev/null || echo kept
umount sub/secret 2>/dev/null || echo kept
mv sub moved && cat moved/secret
ls missing 2>/dev/null; ls /proc/self/fd | wc -l`)
	want := "a stand-in\na stand-in\nanother\na stand-in\nkept\nkept\nkept\na stand-in\n4"
	if out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	for _, f := range []string{filepath.Join(dir, "moved", "secret"), other} {
		if data, err := os.ReadFile(f); err != nil || string(data) != "the real one\n" {
			t.Errorf("%s: %q %v", f, data, err)
		}
	}
	if v := b.View(r, other); v != sandbox.Other {
		t.Errorf("the view is %s", v)
	}
	if v := b.View(r, "/etc/passwd"); v != sandbox.AsIs {
		t.Errorf("the view of another file is %s", v)
	}
	// What is hidden stays hidden.
	r.DenyRead = []string{elsewhere}
	if v := b.View(r, other); v != sandbox.Hidden {
		t.Errorf("the view is %s", v)
	}
	if out, exit := run(t, b, r, "cat "+other); exit.Code == 0 {
		t.Errorf("got %q", out)
	}
}
