package atomicfile

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/lib/procid"
)

// TestMain lets the test binary be the other process: it takes the lock that
// its environment names, says so, and holds it until its stdin ends.
func TestMain(m *testing.M) {
	if path := os.Getenv("ATOMICFILE_TEST_HOLD"); path != "" {
		l, err := Acquire(context.Background(), path, 0, "child")
		if err != nil {
			os.Exit(3)
		}
		_, _ = os.Stdout.WriteString("held\n")
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = l.Release()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func hold(t *testing.T, path string) (cmd *exec.Cmd, stdin io.Closer) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(exe)
	cmd.Env = append(os.Environ(), "ATOMICFILE_TEST_HOLD="+path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	return cmd, in
}

func TestLockOfAnotherProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sub", "lock")
	cmd, in := hold(t, path)
	_, err := Acquire(t.Context(), path, 30*time.Millisecond, "")
	var held *HeldError
	if !errors.As(err, &held) || held.Holder.PID != cmd.Process.Pid || held.Holder.Note != "child" {
		t.Fatalf("got %v, want to be told of process %d", err, cmd.Process.Pid)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	cancel(why)
	if _, err := Acquire(ctx, path, time.Minute, ""); !errors.Is(err, why) {
		t.Errorf("got %v, want the cause of the context", err)
	}
	_ = in.Close()
	l, err := Acquire(t.Context(), path, 10*time.Second, "")
	if err != nil {
		t.Fatalf("after its release: %v", err)
	}
	_ = cmd.Wait()
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	// One that dies without a word leaves no lock behind.
	cmd, _ = hold(t, path)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if l, err = Acquire(t.Context(), path, 10*time.Second, ""); err != nil {
		t.Fatalf("after the holder was killed: %v", err)
	}
	_ = l.Release()
}

func TestSeize(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Acquire(t.Context(), path, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	if first.Lost() {
		t.Error("lost while held")
	}
	second, err := Seize(t.Context(), path, "")
	if err != nil {
		t.Fatal(err)
	}
	if !first.Lost() || second.Lost() {
		t.Errorf("after a seizure the first lost: %v, the second: %v", first.Lost(), second.Lost())
	}
	_ = first.Release()
	if second.Lost() {
		t.Error("the release of a lost lock took the lock of its taker")
	}
	if _, err := Acquire(t.Context(), path, 0, ""); err == nil {
		t.Error("two hold it")
	}
	_ = second.Release()
}

// Where the file system has no locks the lock is a record of who made it.
func TestRecord(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	l, err := tryRecord(path, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tryRecord(path, ""); !errors.Is(err, errHeld) {
		t.Errorf("got %v, want it held", err)
	}
	if l.Lost() {
		t.Error("lost while held")
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	host, _ := os.Hostname()
	gone := procid.Self()
	gone.Start += "0" // the process that had our number before us
	for name, c := range map[string]struct {
		h    Holder
		free bool
	}{
		"dead":               {Holder{ID: gone, Host: host}, true},
		"alive":              {Holder{ID: procid.Self(), Host: host}, false},
		"dead on other host": {Holder{ID: gone, Host: "other." + host}, false},
	} {
		data, _ := json.Marshal(c.h)
		if err := os.WriteFile(path+recordSuffix, data, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := tryRecord(path, "")
		if (err == nil) != c.free {
			t.Errorf("%s: got %v, want free: %v", name, err, c.free)
		}
		if err == nil {
			_ = l.Release()
		}
		_ = os.Remove(path + recordSuffix)
	}
	if err := os.WriteFile(path+recordSuffix, []byte(`{"pid":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := tryRecord(path, ""); !errors.Is(err, errHeld) {
		t.Errorf("a record that is being written is free: %v", err)
	}
	old := time.Now().Add(-time.Minute)
	if err := os.Chtimes(path+recordSuffix, old, old); err != nil {
		t.Fatal(err)
	}
	if _, err := tryRecord(path, ""); err != nil {
		t.Errorf("a record that was never finished holds for ever: %v", err)
	}
}
