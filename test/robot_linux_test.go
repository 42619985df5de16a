package test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/seed-eb844fcb/cinch/internal/test/screen"
)

// A robot is a person at a terminal: it looks, waits and presses keys.
//
//	size W H        of the terminal (80 24), env NAME=VALUE: these come first
//	resize W H      while it runs
//	wait TEXT       until TEXT can be seen
//	gone TEXT       until it cannot be seen any more
//	see TEXT        it can be seen now; unseen TEXT: it cannot
//	past TEXT       it can be seen or scrolled back to; never TEXT: it cannot
//	once TEXT       exactly once, the scrollback included
//	cursor X Y      the cursor is there, from 0
//	type TEXT       letters, one after the other
//	key NAMES…      enter, esc, ctrl+c, up, …
//	paste TEXT      as a bracketed paste; \n is a line end
//	bytes "QUOTED"  as they are; slow "QUOTED" with 40 ms between them
//	think           what a person takes to read a question
//	await N         until the model got N requests, or the file N is there
//	shot FILE       write what can be seen, times as 0ms; all FILE: the scrollback too
//	echo N          type N letters, each once the one before can be seen; $ECHO50 and $ECHO99 are the
//	                milliseconds that half of them, and all but one in a hundred, took at most
//	interrupt       send SIGINT
//	hangup          close the terminal
type robot struct {
	ts  *testscript.TestScript
	ptm *os.File
	vt  *screen.Screen
	cmd *exec.Cmd

	first time.Duration // from the start to the first bytes
}

const patience = 30 * time.Second

// play runs a command on a terminal before which a robot sits.
func play(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: robot FILE CODE COMMAND [ARGS…]")
	}
	m := serverOf(ts)
	path, err := lookIn(m.env.Getenv("PATH"), args[2])
	ts.Check(err)
	ptm, tty, err := pollable()
	ts.Check(err)
	defer ptm.Close()
	steps := strings.Split(strings.TrimSpace(ts.ReadFile(filepath.Join(ts.Getenv("WORK"), args[0]))), "\n")
	w, h := 80, 24
	var vars []string
	for len(steps) > 0 {
		f := strings.Fields(steps[0])
		if len(f) == 3 && f[0] == "size" {
			w, h = number(ts, f[1]), number(ts, f[2])
		} else if len(f) == 2 && f[0] == "env" {
			vars = append(vars, f[1])
		} else {
			break
		}
		steps = steps[1:]
	}
	ts.Check(setSize(ptm, w, h))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args[3:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = m.env.Cd, tty, tty, tty
	cmd.Env = append(slices.Clip(m.env.Vars), vars...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	begun := time.Now()
	err = cmd.Start()
	tty.Close()
	ts.Check(err)
	r := &robot{ts: ts, ptm: ptm, vt: screen.New(w, h), cmd: cmd}
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 32<<10)
		for {
			n, err := ptm.Read(buf)
			if r.first == 0 && n > 0 {
				r.first = time.Since(begun)
			}
			r.vt.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	defer func() { // whatever a step found wrong
		cmd.Process.Kill()
		ptm.Close()
		<-read
	}()
	for i, s := range steps {
		if s = strings.TrimLeft(s, " \t"); s != "" && !strings.HasPrefix(s, "#") {
			if err := r.step(s); err != nil {
				ts.Fatalf("step %d: %s: %v\n%s", i+1, s, err, r.vt.All())
			}
		}
	}
	start := time.Now()
	select {
	case <-done:
	case <-time.After(patience):
		ts.Fatalf("%s did not end after the last step\n%s", args[2], r.vt.Text())
	}
	ts.Setenv("TOOK", strconv.FormatInt(time.Since(start).Milliseconds(), 10))
	ptm.SetReadDeadline(time.Now().Add(time.Second))
	<-read
	a := r.vt.Account()
	ts.Setenv("WRITTEN", strconv.Itoa(a.Bytes))
	ts.Logf("first frame after %v, %d bytes in %d frames", r.first, a.Bytes, a.Frames)
	if len(a.Strange) > 0 || a.Clears > 0 || a.Loose > 0 {
		ts.Fatalf("%d screens were cleared, %d bytes of text were outside of an update, and these sequences came: %q\n%s", a.Clears, a.Loose, a.Strange, r.vt.All())
	}
	if got, want := cmd.ProcessState.ExitCode(), number(ts, args[1]); got != want {
		ts.Fatalf("%s exited with %d, want %d\n%s", args[2], got, want, r.vt.All())
	}
}

// keyBytes are what terminals send.
var keyBytes = map[string]string{
	"enter": "\r", "esc": "\x1b", "tab": "\t", "shift+tab": "\x1b[Z", "backspace": "\x7f", "space": " ",
	"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F",
	"pgup": "\x1b[5~", "pgdown": "\x1b[6~", "delete": "\x1b[3~", "alt+enter": "\x1b\r", "shift+enter": "\x1b[13;2u",
}

// times are what differs from run to run.
var version = regexp.MustCompile(`cinch \S+ ·`)
var times = regexp.MustCompile(`\b\d+(\.\d)?(ms|s)\b`)

// step does one thing.
func (r *robot) step(s string) error {
	verb, arg, _ := strings.Cut(s, " ")
	switch verb {
	case "wait":
		return r.until(func() error { return has(r.vt.Text(), arg, true) })
	case "gone":
		return r.until(func() error { return has(r.vt.Text(), arg, false) })
	case "see":
		return has(r.vt.Text(), arg, true)
	case "unseen":
		return has(r.vt.Text(), arg, false)
	case "past":
		return r.until(func() error { return has(r.vt.All(), arg, true) })
	case "never":
		return has(r.vt.All(), arg, false)
	case "once":
		if n := strings.Count(r.vt.All(), arg); n != 1 {
			return fmt.Errorf("it is there %d times", n)
		}
	case "cursor":
		return r.until(func() error {
			x, y, visible := r.vt.Cursor()
			if got := fmt.Sprintf("%d %d", x, y); got != arg || !visible {
				return fmt.Errorf("the cursor is at %s (visible: %t)", got, visible)
			}
			return nil
		})
	case "type":
		return r.send(arg)
	case "paste":
		return r.send("\x1b[200~" + strings.ReplaceAll(arg, `\n`, "\n") + "\x1b[201~")
	case "bytes", "slow":
		b, err := strconv.Unquote(arg)
		if err != nil || verb == "bytes" {
			return errors.Join(err, r.send(b))
		}
		for i := range len(b) {
			if _, err := r.ptm.WriteString(b[i : i+1]); err != nil {
				return err
			}
			time.Sleep(40 * time.Millisecond)
		}
	case "key":
		for _, k := range strings.Fields(arg) {
			b, ok := keyBytes[k]
			if len(k) == 1 {
				b, ok = k, true
			} else if c, is := strings.CutPrefix(k, "ctrl+"); is && len(c) == 1 {
				b, ok = string(c[0]&0x1f), true
			} else if c, is := strings.CutPrefix(k, "alt+"); is && len(c) == 1 {
				b, ok = "\x1b"+c, true
			}
			if !ok {
				return fmt.Errorf("no key is called %s", k)
			}
			if err := r.send(b); err != nil {
				return err
			}
			if k == "esc" { // else it is the beginning of the next key
				time.Sleep(80 * time.Millisecond)
			}
		}
	case "think":
		time.Sleep(250 * time.Millisecond)
	case "await":
		await(r.ts, false, []string{arg})
	case "shot", "all":
		text := r.vt.Text()
		if verb == "all" {
			text = r.vt.All()
		}
		text = version.ReplaceAllString(text, "cinch 0 ·")
		text = times.ReplaceAllString(strings.ReplaceAll(text, r.ts.Getenv("WORK"), "$WORK"), "0ms") + "\n"
		return os.WriteFile(filepath.Join(r.ts.Getenv("WORK"), arg), []byte(text), 0o666)
	case "resize":
		var w, h int
		if _, err := fmt.Sscanf(arg, "%d %d", &w, &h); err != nil {
			return err
		}
		r.vt.Resize(w, h)
		return setSize(r.ptm, w, h)
	case "echo":
		n, err := strconv.Atoi(arg)
		if err != nil {
			return err
		}
		return r.echo(n)
	case "interrupt":
		return r.cmd.Process.Signal(syscall.SIGINT)
	case "hangup":
		return r.ptm.Close()
	default:
		return errors.New("no such step")
	}
	return nil
}

// send types s, and waits for the program to have seen it: nobody presses
// two keys in the same instant.
func (r *robot) send(s string) error {
	before := r.vt.Account().Bytes
	_, err := r.ptm.WriteString(s)
	for deadline := time.Now().Add(200 * time.Millisecond); err == nil && r.vt.Account().Bytes == before && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	return err
}

// echo measures how long a letter takes from the keyboard to the screen.
func (r *robot) echo(n int) error {
	var took []time.Duration
	for i := range n {
		text := "> " + strings.Repeat("xo", n)[:i+1]
		start := time.Now()
		if _, err := r.ptm.WriteString(text[len(text)-1:]); err != nil {
			return err
		}
		for !strings.Contains(r.vt.Text(), text) {
			if time.Since(start) > patience {
				return fmt.Errorf("letter %d did not come", i+1)
			}
			time.Sleep(200 * time.Microsecond)
		}
		took = append(took, time.Since(start))
		time.Sleep(5 * time.Millisecond)
	}
	slices.Sort(took)
	r.ts.Setenv("ECHO50", strconv.FormatInt(took[n/2].Milliseconds(), 10))
	r.ts.Setenv("ECHO99", strconv.FormatInt(took[n*99/100].Milliseconds(), 10))
	r.ts.Logf("echo: %v at the median, %v at p99", took[n/2], took[n*99/100])
	return nil
}

// pollable is a terminal whose near side may be closed while it is read.
func pollable() (ptm, tty *os.File, err error) {
	p, tty, err := terminal()
	if err != nil {
		return nil, nil, err
	}
	defer p.Close()
	fd, err := unix.Dup(int(p.Fd()))
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		tty.Close()
		return nil, nil, err
	}
	unix.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "ptmx"), tty, nil
}

func setSize(f *os.File, w, h int) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	err = c.Control(func(fd uintptr) {
		serr = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(w), Row: uint16(h)})
	})
	return errors.Join(err, serr)
}

func has(text, what string, want bool) error {
	if strings.Contains(text, what) != want {
		return fmt.Errorf("it is there: %t", !want)
	}
	return nil
}

// until waits for f to find nothing wrong.
func (r *robot) until(f func() error) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		err := f()
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
