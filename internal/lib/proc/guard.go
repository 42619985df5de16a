package proc

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// A Guard kills the process groups of our children should we die without
// killing them ourselves, by SIGKILL for instance. It is a small shell that
// holds one end of a pipe and waits for us to let go of the other. It starts
// with the first child that names it; the zero value is ready for use.
//
// Make one Guard for the life of the program, and Close it at the end.
type Guard struct {
	// mu is held while a line is written: the pipe has room for thousands of
	// them, and the write has a deadline.
	mu     sync.Mutex
	cmd    *exec.Cmd
	pipe   *os.File
	groups map[int]struct{}
	closed bool
}

// The script keeps the list of groups in l. A group is a session too, whose
// members job control may have put into other groups: /proc tells, where
// there is one. No program is started for it, as kill and read are builtins.
const guardScript = `trap '' HUP INT QUIT TERM PIPE
l=' '
while read -r op id; do
	case $op in
	+) l="$l$id " ;;
	-) case $l in *" $id "*) l="${l%%" $id "*} ${l#*" $id "}" ;; esac ;;
	esac
done
[ "$l" = ' ' ] && exit
for id in $l; do kill -KILL -- "-$id"; done
for f in /proc/[0-9]*/stat; do
	read -r s <"$f" || continue
	set -- ${s##*) }
	case $l in *" $4 "*) f=${f#/proc/}; kill -KILL "${f%/stat}" ;; esac
done
exit 0
`

// ready starts the guard if it does not run. One that cannot be started
// leaves the children to the parent-death signal: that is no reason not to
// work.
func (g *Guard) ready() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pipe != nil || g.closed || runtime.GOOS == "windows" {
		return
	}
	r, w, err := os.Pipe()
	if err != nil {
		return
	}
	defer func() { _ = r.Close() }()
	cmd := &exec.Cmd{
		Path:        "/bin/sh",
		Args:        []string{"cinch-guard", "-c", guardScript},
		Env:         []string{},
		Dir:         "/",
		Stdin:       r,
		SysProcAttr: detached(),
	}
	if err := cmd.Start(); err != nil {
		_ = w.Close()
		return
	}
	g.cmd, g.pipe = cmd, w
	for group := range g.groups {
		g.tell('+', group)
	}
}

// tell writes one line to the guard. A guard that does not listen is given
// up; the next child starts another.
func (g *Guard) tell(op byte, group int) {
	if g.pipe == nil {
		return
	}
	_ = g.pipe.SetWriteDeadline(time.Now().Add(time.Second))
	if _, err := fmt.Fprintf(g.pipe, "%c %d\n", op, group); err != nil {
		g.drop()
	}
}

// drop ends the guard process without letting it act.
func (g *Guard) drop() {
	_ = g.cmd.Process.Kill()
	_ = g.pipe.Close()
	_ = g.cmd.Wait()
	g.cmd, g.pipe = nil, nil
}

func (g *Guard) add(group int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.groups == nil {
		g.groups = map[int]struct{}{}
	}
	g.groups[group] = struct{}{}
	g.tell('+', group)
}

func (g *Guard) remove(group int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.groups, group)
	g.tell('-', group)
}

// Close kills the groups that are left and ends the guard. It waits for the
// guard to end, at most five seconds. No child may name it afterwards.
func (g *Guard) Close() error {
	g.mu.Lock()
	cmd, pipe := g.cmd, g.pipe
	g.cmd, g.pipe, g.closed = nil, nil, true
	g.mu.Unlock()
	if cmd == nil {
		return nil
	}
	_ = pipe.Close()
	timer := time.AfterFunc(killLimit, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("ending the guard of child processes: %w", err)
	}
	return nil
}
