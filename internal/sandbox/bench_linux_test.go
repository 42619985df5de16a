package sandbox_test

import (
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
	"github.com/seed-eb844fcb/cinch/internal/sandbox"
)

// BenchmarkTrue runs a program that does nothing: confined, and under plain
// bubblewrap with the same namespaces and mounts, taking turns. The helper is
// this test program, which starts about as fast as a small one.
func BenchmarkTrue(b *testing.B) {
	box := sandbox.Open(b.Context(), sandbox.Options{Path: os.Getenv("PATH")})
	if box.Level() != sandbox.Full {
		b.Fatal(box.Status())
	}
	dir := b.TempDir()
	args := strings.Fields("bwrap --die-with-parent --unshare-user --unshare-pid --unshare-ipc --unshare-uts --cap-drop ALL --unshare-net --ro-bind / / --dev /dev --proc /proc --remount-ro /proc --bind " + dir + " " + dir + " --chdir " + dir + " -- /bin/true")
	env := []string{"PATH=" + os.Getenv("PATH")}
	confined := func() {
		w := box.Command(sandbox.Rules{Root: dir, Write: []string{dir}}, func(l net.Listener, _ uint16) {
			if c, err := l.Accept(); err == nil {
				_ = c.Close()
			}
		})
		if out, err := proc.Run(b.Context(), proc.Spec{Path: "/bin/true", Dir: dir, Env: env}, proc.Options{Wrap: w.Wrap}, 1<<10); err != nil || !out.OK() {
			b.Fatal(err, out.Exit, string(out.Stderr))
		}
	}
	plain := func() {
		if out, err := proc.Run(b.Context(), proc.Spec{Path: "bwrap", Args: args, Dir: dir, Env: env}, proc.Options{}, 1<<10); err != nil || !out.OK() {
			b.Fatal(err, out.Exit, string(out.Stderr))
		}
	}
	var ours, theirs []time.Duration
	for b.Loop() {
		start := time.Now()
		confined()
		middle := time.Now()
		plain()
		ours, theirs = append(ours, middle.Sub(start)), append(theirs, time.Since(middle))
	}
	median := func(list []time.Duration) float64 {
		slices.Sort(list)
		return list[len(list)/2].Seconds() * 1000
	}
	b.ReportMetric(median(ours), "ms-confined")
	b.ReportMetric(median(theirs), "ms-bwrap")
	b.ReportMetric(median(ours)/median(theirs), "ratio")
}
