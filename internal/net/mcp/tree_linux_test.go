package mcp

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
)

func gone(t *testing.T, pids ...int) {
	t.Helper()
	end := time.Now().Add(30 * time.Second)
	for _, pid := range pids {
		for alive(pid) {
			if time.Now().After(end) {
				t.Fatalf("process %d is still there", pid)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// Close ends a server that ignores the end of its input and SIGTERM, and the
// process it started.
func TestCloseEndsTheTree(t *testing.T) {
	t.Parallel()
	c, _ := reach(t, "stdio", "stubborn", nil)
	o := options(t)
	o.Guard = &proc.Guard{}
	t.Cleanup(func() { _ = o.Guard.Close() })
	set := start(t, o, c)
	var a, b int
	if _, err := fmt.Sscan(agent.TextOf(call(t, set, "pids", `{}`).Blocks), &a, &b); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	set.Close()
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("closing took %s", took)
	}
	gone(t, a, b)
}

// A program that is killed leaves no server behind.
func TestKilledOwnerLeavesNoChild(t *testing.T) {
	t.Parallel()
	for range 3 {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), childVar+"=owner")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		var a, b int
		if _, serr := fmt.Sscan(line, &a, &b); err != nil || serr != nil {
			_ = cmd.Process.Kill()
			t.Fatalf("the owner said %q (%v)", line, err)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		gone(t, a, b)
	}
}

func alive(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}
