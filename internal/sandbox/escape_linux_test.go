package sandbox_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/sandbox"
)

// attempts are ways out. Each is a script in the project, which holds a git
// repository, .claude/settings.json and .bashrc; $OUT is a directory beside
// it, $SECRET a hidden directory, $PID a process outside, $PORT a port of the
// machine, $SOCK a socket on its disk. One that ends with status 0 has got out.
var attempts = []struct{ name, script string }{
	// Files outside.
	{"write outside", `echo x > $OUT/new`},
	{"write over a file outside", `echo x > $OUT/file`},
	{"append outside", `echo x >> $OUT/file`},
	{"truncate outside", `truncate -s 0 $OUT/file`},
	{"delete outside", `rm -f $OUT/file`},
	{"make a directory outside", `mkdir $OUT/d`},
	{"change a mode outside", `chmod 777 $OUT/file`},
	{"change a time outside", `touch -d 2000-01-01 $OUT/file`},
	{"write by dot dot", `echo x > ../out/new`},
	{"write through a link", `ln -s $OUT l1 && echo x > l1/new`},
	{"write through a link to a file", `ln -s $OUT/file l2 && echo x > l2`},
	{"write through a chain of links", `ln -s $OUT l3 && ln -s l3 l4 && echo x > l4/new`},
	{"hard link from outside", `ln $OUT/file h1`},
	{"hard link to outside", `echo x > f1 && ln f1 $OUT/new`},
	{"rename to outside", `echo x > f2 && mv -T f2 $OUT/new`},
	{"rename from outside", `mv $OUT/file taken`},
	{"write by /proc/self/root", `echo x > /proc/self/root$OUT/new`},
	{"write by the root of pid 1", `echo x > /proc/1/root$OUT/new`},
	{"write by the directory of pid 1", `echo x > /proc/1/cwd/$OUT/new`},
	{"write to /etc", `echo x > /etc/cinch-escape`},
	{"write to /usr", `echo x > /usr/bin/cinch-escape`},
	{"write to home", `echo x > $HOME/new`},
	{"write to /var/tmp", `echo x > /var/tmp/cinch-escape`},
	{"device node", `mknod sda b 8 0`},
	{"kernel memory", `head -c1 /dev/mem`},
	{"disks", `ls /dev/sd* /dev/vd* /dev/nvme* 2>/dev/null`},
	{"sysctl", `echo 0 > /proc/sys/kernel/randomize_va_space`},
	{"core pattern", `echo '|/bin/sh' > /proc/sys/kernel/core_pattern`},
	{"sysrq", `echo h > /proc/sysrq-trigger`},
	{"cgroups", `mkdir /sys/fs/cgroup/cinch-escape`},
	// Mounts and namespaces.
	{"remount", `mount -o remount,rw /`},
	{"mount a tmpfs", `mkdir -p m && mount -t tmpfs none m`},
	{"bind mount", `mount --bind /tmp $OUT`},
	{"unmount a protection", `umount .git/config || umount -l .git/config`},
	{"unmount lazily", `umount -l $SECRET`},
	{"user namespace", `unshare -Ur true`},
	{"user and mount namespace", `unshare -Urm mount -o remount,rw /`},
	{"mount namespace", `unshare -m true`},
	{"enter the namespaces of pid 1", `nsenter -t 1 -m true`},
	{"change the root", `mkdir -p r && chroot . /bin/true`},
	{"setuid program", `cp /bin/true s && chown 1:1 s`},
	// Hidden files.
	{"read a hidden file", `cat $SECRET/key`},
	{"list a hidden directory", `ls $SECRET | grep -q .`},
	{"read through a link", `ln -s $SECRET s1; cat s1/key`},
	{"read by /proc/self/root", `cat /proc/self/root$SECRET/key`},
	{"read by the root of pid 1", `cat /proc/1/root$SECRET/key`},
	{"write into a hidden directory", `echo x > $SECRET/new`},
	{"rename a hidden directory", `mv $SECRET moved`},
	{"read a hidden single file", `grep -q secret $OUT/token`},
	// Protected files inside.
	{"settings", `echo x > .claude/settings.json`},
	{"replace settings", `echo x > n1 && mv -f n1 .claude/settings.json`},
	{"delete settings", `rm -f .claude/settings.json`},
	{"rename the directory of settings", `mv .claude .old`},
	{"git config", `echo x >> .git/config`},
	{"git config by git", `git config core.fsmonitor evil`},
	{"replace the git config", `echo x > n2 && mv -f n2 .git/config`},
	{"git hook", `echo x > .git/hooks/pre-commit`},
	{"rename hooks", `mv .git/hooks .git/h`},
	{"rename the git directory", `mv .git .g`},
	{"delete the git directory", `rm -rf .git/config`},
	{"hard link to the git config", `ln .git/config h2 && echo x >> h2`},
	{"shell profile", `echo x >> .bashrc`},
	{"exchange by a link", `rm -f .bashrc && ln -s /dev/null .bashrc`},
	// Processes.
	{"see a process outside", `kill -0 $PID`},
	{"kill a process outside", `kill -9 $PID`},
	{"kill everything", `test "$(ls -d /proc/[0-9]* | wc -l)" -gt 40`},
	{"environment of the parent", `tr '\0' '\n' < /proc/$PPID/environ | grep CINCH_OUTSIDE_MARK`},
	{"raise the priority", `nice -n -5 true 2>&1 | grep -q cannot && exit 1; renice -n -5 -p $$`},
	// Network.
	{"address on the internet", `timeout 2 bash -c 'exec 3<>/dev/tcp/1.1.1.1/80'`},
	{"a port of the machine", `timeout 2 bash -c "exec 3<>/dev/tcp/127.0.0.1/$PORT"`},
	{"a port of the machine by IPv6", `timeout 2 bash -c "exec 3<>/dev/tcp/::1/$PORT"`},
	{"metadata address", `timeout 2 bash -c 'exec 3<>/dev/tcp/169.254.169.254/80'`},
	{"name server", `timeout 2 bash -c 'exec 3<>/dev/tcp/8.8.8.8/53'`},
	{"datagram", `timeout 2 bash -c 'echo x > /dev/udp/8.8.8.8/53'`},
	{"name lookup", `timeout 3 getent hosts example.com`},
	{"interfaces", `ls /sys/class/net | grep -vq '^lo$'; test "$(grep -c : /proc/net/dev)" -gt 1`},
	{"ping", `timeout 2 ping -c1 -W1 1.1.1.1`},
	{"local socket", `timeout 2 python3 -c "import socket,os;socket.socket(socket.AF_UNIX).connect(os.environ['SOCK'])"`},
	{"abstract socket", `timeout 2 python3 -c "import socket,os;socket.socket(socket.AF_UNIX).connect(chr(0)+'cinch-'+os.environ['PORT'])"`},
	{"packet socket", `python3 -c "import socket;socket.socket(17,3)"`},
	{"vsock", `python3 -c "import socket;socket.socket(40,1)"`},
	// System calls.
	{"io_uring", `python3 -c "import ctypes,sys;sys.exit(ctypes.CDLL(None).syscall(425,1,0)<0)"`},
	{"ptrace", `python3 -c "import ctypes,sys;sys.exit(ctypes.CDLL(None).ptrace(0,0,0,0)<0)"`},
	{"keyring", `python3 -c "import ctypes,sys;sys.exit(ctypes.CDLL(None).syscall(250,0,-3,1)<0)"`},
	{"bpf", `python3 -c "import ctypes,sys;sys.exit(ctypes.CDLL(None).syscall(321,0,0,0)<0)"`},
	{"write into the terminal", `python3 -c "import fcntl;fcntl.ioctl(0,0x5412,b'x')"`},
}

// No attempt gets out, and nothing outside has changed.
func TestEscapes(t *testing.T) {
	t.Parallel()
	need(t, "git", "python3", "unshare", "nsenter", "mount", "getent", "timeout", "setsid")
	b := box(t, sandbox.Options{})
	base := tempDir(t)
	at := func(p string) string { return filepath.Join(base, p) }
	file := func(p, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(at(p)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(p), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file("out/file", "outside")
	file("out/token", "secret")
	file("secret/key", "secret")
	file("home/x", "")
	file("project/.claude/settings.json", "{}")
	file("project/.bashrc", "#")
	if out, err := exec.Command("git", "init", "-q", at("project")).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	config, err := os.ReadFile(at("project/.git/config"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	for _, name := range []string{at("out/sock"), fmt.Sprintf("@cinch-%d", port)} {
		u, err := net.Listen("unix", name)
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
	}
	victim := exec.Command("sleep", "60")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = victim.Process.Kill(); _ = victim.Wait() }()
	var s strings.Builder
	fmt.Fprintf(&s, "export OUT=%s SECRET=%s HOME=%s PID=%d PORT=%d SOCK=%s\n", at("out"), at("secret"), at("home"), victim.Process.Pid, port, at("out/sock"))
	seen := map[string]bool{}
	for _, a := range attempts {
		if seen[a.name] {
			t.Errorf("two attempts are named %q", a.name)
		}
		seen[a.name] = true
		fmt.Fprintf(&s, "( %s\n) </dev/null >/dev/null 2>&1 && echo 'OUT: %s'\n", a.script, a.name)
	}
	s.WriteString("echo done\n")
	out, exit := run(t, b, sandbox.Rules{
		Root: at("project"), Write: []string{at("project")}, DenyRead: []string{at("secret"), at("out/token")},
	}, s.String())
	if out != "done" || !exit.OK() {
		t.Errorf("%v:\n%s", exit, out)
	}
	for p, want := range map[string]string{
		"out/file": "outside", "out/token": "secret", "secret/key": "secret", "project/.claude/settings.json": "{}", "project/.bashrc": "#", "project/.git/config": string(config),
	} {
		if got, err := os.ReadFile(at(p)); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v", p, got, err)
		}
	}
	for _, p := range []string{"out/new", "out/d", "secret/new", "home/new"} {
		if _, err := os.Lstat(at(p)); err == nil {
			t.Errorf("%s is there", p)
		}
	}
	t.Logf("%d attempts", len(attempts))
}

// What appears at protected places is moved away; a link in the way hits
// nothing behind it; what git makes may stay.
func TestSweep(t *testing.T) {
	t.Parallel()
	b := box(t, sandbox.Options{})
	for _, tc := range []struct{ name, script, gone, stays string }{
		{"new settings", `mkdir .claude && echo x > .claude/settings.json`, ".claude/settings.json", ".claude"},
		{"mcp servers", `echo x > .mcp.json`, ".mcp.json", ""},
		{"link to elsewhere", `ln -s ../other .claude`, ".claude", "../other/settings.json"},
		{"hook in a new repository", `git init -q . && echo x > .git/hooks/pre-commit`, ".git/hooks", ".git/HEAD"},
		{"program in a new config", `git init -q . && git config core.fsmonitor x`, ".git/config", ".git/HEAD"},
		{"new repository", `git init -q .`, "", ".git/config"},
		{"bare repository", `mkdir objects refs && echo 'ref: refs/heads/x' > HEAD && echo '[core]' > config`, "HEAD", "objects"},
		{"a file HEAD", `echo x > HEAD`, "", "HEAD"},
	} {
		base := tempDir(t)
		root := filepath.Join(base, "p")
		for _, d := range []string{root, filepath.Join(base, "other")} {
			if err := os.Mkdir(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(base, "other/settings.json"), []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, exit := run(t, b, sandbox.Rules{Root: root, Write: []string{root}}, tc.script); !exit.OK() {
			t.Errorf("%s: %v %s", tc.name, exit, out)
		}
		if tc.gone != "" {
			if _, err := os.Lstat(filepath.Join(root, tc.gone)); err == nil {
				t.Errorf("%s: %s is still there", tc.name, tc.gone)
			}
		}
		if _, err := os.Lstat(filepath.Join(root, tc.stays)); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// git works in a worktree and in a submodule, whose directories lie elsewhere;
// a .git file that names a repository which does not name it opens nothing.
func TestWorktrees(t *testing.T) {
	t.Parallel()
	b := box(t, sandbox.Options{})
	base := tempDir(t)
	setup := exec.Command("bash", "-ec", `
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a
git init -q main; cd main; echo a > a; git add a; git commit -qm a; git worktree add -q ../tree; cd ..
git init -q sub; cd sub; echo b > b; git add b; git commit -qm b; cd ../main
git -c protocol.file.allow=always submodule --quiet add ../sub sub; git commit -qm sub; cd ..
git init -q victim; mkdir evil; echo "gitdir: ../victim/.git" > evil/.git`)
	setup.Dir = base
	if out, err := setup.CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	commit := `export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a; echo z > z && git add z && git commit -qm z && ! git config x.y z 2>/dev/null && echo done`
	for _, tc := range []struct {
		dir string
		ok  bool
	}{{"main", true}, {"tree", true}, {"main/sub", true}, {"evil", false}} {
		root := filepath.Join(base, tc.dir)
		out, exit := run(t, b, sandbox.Rules{Root: root, Write: []string{root}}, commit)
		if (out == "done" && exit.OK()) != tc.ok {
			t.Errorf("%s: %v %s", tc.dir, exit, out)
		}
	}
}
