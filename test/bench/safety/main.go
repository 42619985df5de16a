// Safety measures what it costs to run a program that does nothing in a
// sandbox: under plain bubblewrap, by cinch sandbox run, and by the peer's
// command, all in one run and taking turns.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// A runner is one way to run /bin/true.
type runner struct {
	name      string
	argv      []string
	every     int // it takes part in each nth turn
	wall, cpu []time.Duration
}

func main() {
	cinch := flag.String("cinch", "bin/cinch", "the program to measure")
	srt := flag.String("srt", "", "the peer's command; none is compared with if it is empty")
	n := flag.Int("n", 30, "turns")
	flag.Parse()
	if err := measure(*cinch, *srt, *n); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func measure(cinch, srt string, n int) error {
	dir, err := os.MkdirTemp("", "cinch-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// The namespaces and mounts that cinch asks for.
	bwrap := strings.Fields("bwrap --die-with-parent --unshare-user --unshare-pid --unshare-ipc --unshare-uts --cap-drop ALL --unshare-net" +
		" --ro-bind / / --dev /dev --proc /proc --remount-ro /proc --bind " + dir + " " + dir + " --chdir " + dir + " -- /bin/true")
	list := []*runner{{name: "bwrap", argv: bwrap, every: 1}, {name: "cinch", argv: []string{cinch, "sandbox", "run", "--", "/bin/true"}, every: 1}}
	if srt != "" {
		list = append(list, &runner{name: "srt", argv: []string{srt, "true"}, every: 3})
	}
	for i := range n + 1 {
		for _, r := range list {
			if i%r.every != 0 {
				continue
			}
			cmd := exec.Command(r.argv[0], r.argv[1:]...)
			cmd.Dir = dir
			start := time.Now()
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w\n%s", r.name, err, out)
			}
			if i > 0 { // the first turn warms
				r.wall = append(r.wall, time.Since(start))
				r.cpu = append(r.cpu, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
			}
		}
	}
	for _, r := range list {
		slices.Sort(r.wall)
		slices.Sort(r.cpu)
		fmt.Printf("%-6s wall median %6.1f ms, least %6.1f ms; processor %6.1f ms; against bwrap %.1f, cinch/%s %.2f\n",
			r.name, ms(middle(r.wall)), ms(r.wall[0]), ms(middle(r.cpu)), ms(middle(r.wall))/ms(middle(list[0].wall)), r.name, ms(middle(list[1].wall))/ms(middle(r.wall)))
	}
	return nil
}

func middle(d []time.Duration) time.Duration { return d[len(d)/2] }

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
