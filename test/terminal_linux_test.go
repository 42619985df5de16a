package test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// answer runs a command on a terminal whose person types a line each time
// something new is asked: FILE holds a line for each "n(o): ", and for each
// "> " that waits for a prompt.
func answer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: answer FILE CODE COMMAND [ARGS…]")
	}
	m := serverOf(ts)
	path, err := lookIn(m.env.Getenv("PATH"), args[2])
	ts.Check(err)
	ptm, tty, err := terminal()
	ts.Check(err)
	defer ptm.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args[3:]...)
	cmd.Dir, cmd.Env = m.env.Cd, append(slices.Clip(m.env.Vars), "TERM=dumb")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = cmd.Start()
	tty.Close()
	ts.Check(err)

	lines := strings.Split(strings.TrimSuffix(ts.ReadFile(args[0]), "\n"), "\n")
	var out bytes.Buffer
	asked, cues, cue := 0, 0, 0
	for buf := make([]byte, 4096); ; {
		n, err := ptm.Read(buf) // EIO once the other side is closed
		out.Write(buf[:n])
		if out.Len() > cue && bytes.HasSuffix(bytes.TrimSuffix(out.Bytes(), []byte("\x1b[0m")), []byte("> ")) {
			cues, cue = cues+1, out.Len()
		}
		for n := bytes.Count(out.Bytes(), []byte("n(o): ")) + cues; asked < n && asked < len(lines); asked++ {
			ptm.WriteString(lines[asked] + "\n")
		}
		if err != nil {
			break
		}
	}
	cmd.Wait()
	ts.Check(os.WriteFile(filepath.Join(m.env.WorkDir, "out"), out.Bytes(), 0o666))
	if got, want := cmd.ProcessState.ExitCode(), number(ts, args[1]); got != want || asked < len(lines) {
		ts.Fatalf("%s exited with %d, want %d, after %d of %d answers\n%s", args[2], got, want, asked, len(lines), &out)
	}
}

// terminal opens a pseudo-terminal: the side of the person, and that of the
// program.
func terminal() (ptm, tty *os.File, err error) {
	ptm, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	if err = unix.IoctlSetPointerInt(int(ptm.Fd()), unix.TIOCSPTLCK, 0); err == nil {
		var n uint32
		if n, err = unix.IoctlGetUint32(int(ptm.Fd()), unix.TIOCGPTN); err == nil {
			tty, err = os.OpenFile("/dev/pts/"+strconv.Itoa(int(n)), os.O_RDWR|syscall.O_NOCTTY, 0)
		}
	}
	if err != nil {
		ptm.Close()
		return nil, nil, err
	}
	return ptm, tty, nil
}
