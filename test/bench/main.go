// Command bench measures cinch beside a peer on one machine in one run, both
// against the same instant scripted Messages server on loopback, and prints
// the figures as ratios. It is started by scripts/bench.sh.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/net/modelserver"
)

// A program is one side of the comparison.
type program struct {
	name, path string
}

// A run is one measured process.
type run struct {
	wall, request, cpu time.Duration // request: from exec to the arrival of the first request
	rss                int64         // peak, in bytes
	out                string
	code               int
}

var (
	runs    = flag.Int("runs", 5, "measured runs of each short figure; the median counts")
	ours    = flag.String("cinch", "bin/cinch", "our binary")
	peer    = flag.String("peer", "", "the peer's binary; empty leaves it out")
	empty   = flag.String("empty", "", "an empty Go program")
	jsonOut = flag.String("json", "", "write the figures to this file")
	only    = flag.String("only", "", "run only the figure with this name")
)

func main() {
	flag.Parse()
	b := &bench{}
	b.sides = append(b.sides, program{"cinch", abs(*ours)})
	if *peer != "" {
		b.sides = append(b.sides, program{"peer", abs(*peer)})
	}
	for _, f := range []struct {
		name string
		do   func()
	}{
		{"version", b.version}, {"hi", b.hi}, {"read", func() { b.loop("Read") }}, {"bash", func() { b.loop("Bash") }},
		{"long", b.long}, {"size", b.size},
	} {
		if *only == "" || *only == f.name {
			f.do()
		}
	}
	b.print()
	if b.failed {
		os.Exit(1)
	}
}

func abs(p string) string {
	a, err := filepath.Abs(p)
	if err != nil {
		fatal(err)
	}
	return a
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

// A figure is one line of the table. Ratio is ours to the other's.
type figure struct {
	Name, Ours, Other, Bar string
	Ratio                  float64
	Met                    bool
}

type bench struct {
	sides   []program
	figures []figure
	failed  bool
}

// compare adds a line: ours against other, which may be at most bar times it.
func (b *bench) compare(name string, ours, other, bar float64, show func(float64) string) {
	f := figure{Name: name, Ours: show(ours), Other: "-", Bar: "-"}
	if other > 0 {
		f.Other, f.Ratio, f.Bar = show(other), ours/other, fmt.Sprintf("≤ %.3g×", bar)
		f.Met = f.Ratio <= bar
	} else {
		f.Met = true
	}
	b.figures = append(b.figures, f)
}

// limit adds a line with an absolute bar.
func (b *bench) limit(name string, v, bar float64, show func(float64) string) {
	b.figures = append(b.figures, figure{Name: name, Ours: show(v), Other: "-", Bar: "≤ " + show(bar), Met: v <= bar})
}

func (b *bench) print() {
	fmt.Println("| figure | cinch | other | ratio | bar | met |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, f := range b.figures {
		ratio := "-"
		if f.Ratio > 0 {
			ratio = fmt.Sprintf("%.3f (1/%.1f)", f.Ratio, 1/f.Ratio)
		}
		met := "yes"
		if !f.Met {
			met, b.failed = "**no**", true
		}
		fmt.Printf("| %s | %s | %s | %s | %s | %s |\n", f.Name, f.Ours, f.Other, ratio, f.Bar, met)
	}
	if *jsonOut != "" {
		data, err := json.MarshalIndent(b.figures, "", "\t")
		if err == nil {
			err = os.WriteFile(*jsonOut, append(data, '\n'), 0o666)
		}
		if err != nil {
			fatal(err)
		}
	}
}

func ms(v float64) string  { return fmt.Sprintf("%.1f ms", v) }
func mb(v float64) string  { return fmt.Sprintf("%.1f MB", v/1e6) }
func per(v float64) string { return fmt.Sprintf("%.2f ms CPU", v) }

func median(rs []run, f func(run) float64) float64 {
	v := make([]float64, 0, len(rs))
	for _, r := range rs {
		v = append(v, f(r))
	}
	slices.Sort(v)
	return v[len(v)/2]
}

func wall(r run) float64    { return float64(r.wall.Microseconds()) / 1e3 }
func request(r run) float64 { return float64(r.request.Microseconds()) / 1e3 }
func cpu(r run) float64     { return float64(r.cpu.Microseconds()) / 1e3 }
func rss(r run) float64     { return float64(r.rss) }

// home makes a fresh home and a project with a file to read.
func home() (dir string, env []string) {
	dir, err := os.MkdirTemp("", "cinch-bench-")
	if err != nil {
		fatal(err)
	}
	for _, d := range []string{"home", "project"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o777); err != nil {
			fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "project", "file.txt"), []byte(strings.Repeat("a line of text\n", 40)), 0o666); err != nil {
		fatal(err)
	}
	return dir, []string{
		"HOME=" + filepath.Join(dir, "home"), "PATH=" + os.Getenv("PATH"), "SHELL=/bin/bash", "LANG=C.UTF-8", "TERM=dumb",
		"ANTHROPIC_API_KEY=sk-ant-bench", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "IS_SANDBOX=1",
	}
}

// measure runs p to its end against a server with that brain.
func measure(p program, brain modelserver.Brain, args ...string) run {
	dir, env := home()
	defer os.RemoveAll(dir)
	var srv *modelserver.Server
	if brain != nil {
		srv = modelserver.New(modelserver.Options{Brain: brain, Lenient: true, Forget: true})
		url, err := srv.Listen()
		if err != nil {
			fatal(err)
		}
		defer srv.Close()
		env = append(env, "ANTHROPIC_BASE_URL="+url)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Env, cmd.Dir = env, filepath.Join(dir, "project")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	begin := time.Now()
	err := cmd.Run()
	r := run{wall: time.Since(begin), out: out.String()}
	if cmd.ProcessState == nil {
		fatal(fmt.Errorf("%s: %w", p.name, err))
	}
	r.code = cmd.ProcessState.ExitCode()
	r.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.rss = u.Maxrss * 1024
	}
	if srv != nil {
		for _, e := range srv.Exchanges() {
			if e.N == 0 {
				r.request = e.At.Sub(begin)
				break
			}
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %s %v: %v\n%.2000s\n", p.name, args, err, r.out)
	}
	return r
}

// several takes the median's raw material; the sides take turns, so that a
// change of the machine's mood hits both.
func (b *bench) several(n int, brain func() modelserver.Brain, args ...string) [][]run {
	all := make([][]run, len(b.sides))
	for range n {
		for i, p := range b.sides {
			var br modelserver.Brain
			if brain != nil {
				br = brain()
			}
			all[i] = append(all[i], measure(p, br, args...))
		}
	}
	return all
}

// pick returns the median of f for both sides; 0 for a peer that is not there.
func pick(all [][]run, f func(run) float64) (ours, other float64) {
	ours = median(all[0], f)
	if len(all) > 1 {
		other = median(all[1], f)
	}
	return ours, other
}

func (b *bench) version() {
	if *empty == "" {
		return
	}
	both := &bench{sides: []program{b.sides[0], {"empty", abs(*empty)}}}
	all := both.several(*runs*8, nil, "--version")
	o, e := pick(all, wall)
	b.compare("--version wall, against an empty Go program", o, e, 2, ms)
}

func say(text string) modelserver.Brain {
	return modelserver.Play(modelserver.Script{Repeat: -1, Steps: []modelserver.Step{modelserver.Text{Text: text}}})
}

func (b *bench) hi() {
	all := b.several(*runs, func() modelserver.Brain { return say("hello") }, "-p", "hi")
	o, p := pick(all, request)
	b.compare("-p hi: exec to request arriving", o, p, 1.0/20, ms)
	o, p = pick(all, wall)
	b.compare("-p hi: exec to exit", o, p, 1.0/20, ms)
	o, p = pick(all, cpu)
	b.compare("-p hi: CPU", o, p, 1.0/30, ms)
	o, p = pick(all, rss)
	b.compare("-p hi: peak RSS", o, p, 1.0/5, mb)
	b.limit("-p hi: peak RSS", o, 40e6, mb)
}

// turns answers n requests with a call of tool, then ends.
func turns(n int, tool string, input func(i int) any) modelserver.Brain {
	return func(_ context.Context, r *modelserver.Request) (modelserver.Script, error) {
		done := 0
		for _, m := range r.Messages {
			if m.Role == "assistant" {
				done++
			}
		}
		if done >= n {
			return modelserver.Script{Steps: []modelserver.Step{modelserver.Text{Text: "done"}}}, nil
		}
		raw, err := json.Marshal(input(done))
		if err != nil {
			return modelserver.Script{}, err
		}
		return modelserver.Script{Steps: []modelserver.Step{modelserver.Tool{ID: fmt.Sprintf("toolu_%06d", done), Name: tool, Input: raw}}}, nil
	}
}

func toolInput(tool string) func(int) any {
	if tool == "Read" {
		// Another offset each time: a repeated call is not the same work.
		return func(i int) any { return map[string]any{"file_path": "file.txt", "offset": i%30 + 1, "limit": 5} }
	}
	return func(i int) any { return map[string]any{"command": fmt.Sprintf("true %d", i)} }
}

// loop measures the CPU of one turn: the difference between a run of 50
// turns and one of none, by 50.
func (b *bench) loop(tool string) {
	const n = 50
	bar := 1.0 / 30
	if tool == "Bash" {
		bar = 1.0 / 10
	}
	args := []string{"-p", "go", "--allowedTools", "Read,Bash", "--max-turns", "100"}
	zero := b.several(3, func() modelserver.Brain { return say("done") }, args...)
	many := b.several(3, func() modelserver.Brain { return turns(n, tool, toolInput(tool)) }, args...)
	z0, z1 := pick(zero, cpu)
	m0, m1 := pick(many, cpu)
	b.compare(fmt.Sprintf("CPU per %s turn, %d turns", tool, n), (m0-z0)/n, (m1-z1)/n, bar, per)
}

// long measures ours alone: 500 turns with 200 KB of tool output each. The
// cost of turn 500 is that of the last 50 turns, turn 50 the first 50.
func (b *bench) long() {
	input := func(i int) any {
		return map[string]any{"command": fmt.Sprintf("head -c 200000 /dev/zero | tr '\\0' x; echo %d", i)}
	}
	args := []string{"-p", "go", "--allowedTools", "Bash", "--max-turns", "1000"}
	us := &bench{sides: b.sides[:1]}
	at := map[int]run{}
	for _, n := range []int{50, 450, 500} {
		at[n] = us.several(1, func() modelserver.Brain { return turns(n, "Bash", input) }, args...)[0][0]
	}
	early := cpu(at[50]) / 50
	late := (cpu(at[500]) - cpu(at[450])) / 50
	b.limit("500 turns of 200 KB: peak RSS", rss(at[500]), 150e6, mb)
	b.compare("500 turns: CPU of a late turn against an early one", late, early, 1.5, per)
}

func (b *bench) size() {
	fi, err := os.Stat(b.sides[0].path)
	if err != nil {
		fatal(err)
	}
	b.limit("stripped binary", float64(fi.Size()), 25e6, mb)
}
