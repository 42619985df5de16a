package sandbox_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
	"github.com/seed-eb844fcb/cinch/internal/sandbox"
)

// hostVar makes the test program one that confines a command and waits for it.
const hostVar = "CINCH_TEST_HOST"

// host runs a command in dir/p that makes protected names and goes on for ever.
func host(dir string) int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	b := sandbox.Open(ctx, sandbox.Options{Path: os.Getenv("PATH"), Journal: filepath.Join(dir, "journal")})
	root := filepath.Join(dir, "p")
	w := b.Command(sandbox.Rules{Root: root, Write: []string{root}}, nil)
	script := `mkdir .claude; echo x > .claude/settings.json; echo x > .mcp.json; ln -s /etc/passwd .bashrc
(setsid bash -c 'while :; do echo x >> beat; sleep 0.05; done' &)
while :; do echo x >> beat; : > ready; sleep 0.05; done`
	p, err := proc.Start(ctx, proc.Spec{Path: "bash", Args: []string{"bash", "-c", script}, Dir: root, Env: []string{"PATH=" + os.Getenv("PATH")}}, proc.Options{Wrap: w.Wrap})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, _ = p.Wait()
	return 1
}

// names lists what is below dir.
func names(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, path); rel != "." {
			out = append(out, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A program that is killed takes the command with it, whatever its children
// do, and leaves no file that the command has not made; what that left at
// protected places is moved away by the next start, once.
func TestKilled(t *testing.T) {
	t.Parallel()
	box(t, sandbox.Options{})
	need(t, "setsid")
	dir := tempDir(t)
	root := filepath.Join(dir, "p")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), hostVar+"="+dir)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	defer func() { _ = cmd.Process.Kill(); <-ended }()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(root, "ready")); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the command did not start")
		}
	}
	made := []string{".bashrc", ".claude", ".claude/settings.json", ".mcp.json", "beat", "ready"}
	if got := names(t, root); !slices.Equal(got, made) {
		t.Errorf("while it runs: got %q, want %q", got, made)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	// Nobody writes any more.
	size := func() int64 {
		fi, err := os.Stat(filepath.Join(root, "beat"))
		if err != nil {
			t.Fatal(err)
		}
		return fi.Size()
	}
	last, still := size(), 0
	for end := time.Now().Add(30 * time.Second); still < 10; time.Sleep(100 * time.Millisecond) {
		if now := size(); now != last {
			last, still = now, 0
		} else {
			still++
		}
		if time.Now().After(end) {
			t.Fatal("the command goes on after the end of the program that started it")
		}
	}
	if got := names(t, root); !slices.Equal(got, made) {
		t.Errorf("after it: got %q, want %q", got, made)
	}
	o := sandbox.Options{Path: os.Getenv("PATH"), Journal: filepath.Join(dir, "journal")}
	if moved := sandbox.Try(o).Status().Moved; len(moved) != 3 {
		t.Errorf("moved: %q", moved)
	}
	for _, n := range []string{".bashrc", ".claude/settings.json", ".mcp.json"} {
		if _, err := os.Lstat(filepath.Join(root, n)); err == nil {
			t.Errorf("%s is still there", n)
		}
	}
	if moved := sandbox.Try(o).Status().Moved; len(moved) != 0 {
		t.Errorf("moved once more: %q", moved)
	}
	if left, err := os.ReadDir(o.Journal); err != nil || len(left) != 0 {
		t.Errorf("the journal holds %v, %v", left, err)
	}
}

// In every layout of a repository git works, and nothing that git runs or
// obeys can be changed, wherever it lies.
func TestGitIsProtected(t *testing.T) {
	t.Parallel()
	need(t, "git")
	b := box(t, sandbox.Options{})
	base := tempDir(t)
	const who = "export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a\n"
	setup := exec.Command("bash", "-ec", who+`
git init -q main; cd main; echo a > a; mkdir -p .claude/commands; echo c > .claude/commands/c.md; git add .; git commit -qm a
git worktree add -q ../tree; git worktree add -q ../rel; cd ..
echo 'gitdir: ../main/.git/worktrees/rel' > rel/.git
git init -q sub; cd sub; echo b > b; git add b; git commit -qm b; cd ../main
git -c protocol.file.allow=always submodule --quiet add ../sub deep/sub; git commit -qm sub; cd ..
git clone -q --bare main bare.git; git -C bare.git worktree add -q ../bt -b bt
git init -q linked; mkdir hooks-elsewhere; rm -rf linked/.git/hooks; ln -s ../../hooks-elsewhere linked/.git/hooks
ln -s nowhere linked/.mcp.json; ln -s /etc/passwd linked/.bashrc
git init -q wt; cd wt; git commit -q --allow-empty -m a; git config extensions.worktreeConfig true; git worktree add -q inside`)
	setup.Dir = base
	if out, err := setup.CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	script := who + `g=$(git rev-parse --absolute-git-dir); c=$(cd "$(git rev-parse --git-common-dir)" && pwd)
echo z > z && git add z && git commit -qm z || echo 'git does not work'
(
	git config evil.evil evil; git config --worktree evil.evil evil
	[ -f .git ] && { echo 'gitdir: evil' > .git; mv .git evil; ln -sf evil .git; }
	for f in $c/hooks/pre-commit $c/config $c/config.worktree $g/config.worktree $g/commondir $g/gitdir $g/hooks/evil $c/modules/deep/sub/config $c/modules/deep/sub/hooks/evil; do
		case $f in $c/modules/*) [ -d $c/modules/deep/sub ] || continue ;; esac # a new one leads nowhere
		mkdir -p ${f%/*}; echo '# evil' >> $f; echo '# evil' > n && mv -f n $f
	done
	mv $c/hooks $c/evil-hooks; mv $g $g-evil
) >/dev/null 2>&1
echo done`
	for _, dir := range []string{"main", "tree", "rel", "main/deep/sub", "bt", "linked", "wt", "wt/inside"} {
		root := filepath.Join(base, dir)
		if out, exit := run(t, b, sandbox.Rules{Root: root, Write: []string{root}}, script); out != "done" || !exit.OK() {
			t.Errorf("%s: %v %s", dir, exit, out)
		}
		if out, err := exec.Command("git", "-C", root, "status").CombinedOutput(); err != nil {
			t.Errorf("%s: afterwards: %s", dir, out)
		}
	}
	err := filepath.WalkDir(base, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		name := filepath.Base(path)
		if strings.Contains(path, sandbox.Aside) || name == "n" || name == "index" || strings.Contains(path, "/objects/") || strings.Contains(path, "/logs/") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.Contains(path, "evil") || strings.Contains(string(data), "evil") {
			rel, _ := filepath.Rel(base, path)
			t.Errorf("%s was changed: %.200s", rel, data)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
