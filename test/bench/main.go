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
	"sync/atomic"
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
	// A short form, for when the machine is slow or the figure is in doubt.
	longTurns = flag.Int("turns", 500, "turns of the figure long")
	only      = flag.String("only", "", "run only the figure with this name")
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
		{"files", b.files}, {"long", b.long}, {"size", b.size},
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
	return measureIn(p, brain, func(string) {}, args...)
}

// measureIn is measure in a project that prepare has filled.
func measureIn(p program, brain modelserver.Brain, prepare func(project string), args ...string) run {
	dir, env := home()
	defer os.RemoveAll(dir)
	prepare(filepath.Join(dir, "project"))
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
	r.rss = maxRSS(cmd.ProcessState)
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

// files measures ours alone: what 200 instruction files, rules and skills add
// to the time from exec to the request.
func (b *bench) files() {
	write := func(name, text string) {
		err := os.MkdirAll(filepath.Dir(name), 0o777)
		if err == nil {
			err = os.WriteFile(name, []byte(text), 0o666)
		}
		if err != nil {
			fatal(err)
		}
	}
	body := strings.Repeat("Keep to the rule that stands here.\n", 10)
	fill := func(project string) {
		write(filepath.Join(project, "CLAUDE.md"), body+"@docs/0.md\n@docs/1.md\n")
		for i := range 9 {
			write(filepath.Join(project, fmt.Sprintf("docs/%d.md", i)), body)
		}
		for i := range 60 {
			write(filepath.Join(project, fmt.Sprintf(".claude/rules/a%02d.md", i)), body)
			write(filepath.Join(project, fmt.Sprintf(".claude/rules/b%02d.md", i)), fmt.Sprintf("---\npaths: \"src/p%d/**/*.go\"\n---\n%s", i, body))
		}
		for i := range 50 {
			write(filepath.Join(project, fmt.Sprintf(".claude/skills/s%02d/SKILL.md", i)), fmt.Sprintf("---\nname: s%02d\ndescription: Does the thing number %d\n---\n%s", i, i, body))
		}
		for i := range 20 {
			write(filepath.Join(project, fmt.Sprintf(".claude/agents/g%02d.md", i)), fmt.Sprintf("---\nname: g%02d\ndescription: Knows about %d\n---\n%s", i, i, body))
		}
	}
	var none, many, bare []run
	for range *runs * 4 { // taking turns, so that a change of the machine's mood hits all
		if *empty != "" {
			bare = append(bare, measure(program{"empty", abs(*empty)}, nil))
		}
		none = append(none, measure(b.sides[0], say("hello"), "-p", "hi"))
		many = append(many, measureIn(b.sides[0], say("hello"), fill, "-p", "hi"))
	}
	b.limit("-p hi: added by 200 CLAUDE.md, rules, skills, agents", median(many, request)-median(none, request), 15, ms)
	if *empty != "" { // 15 ms is twice what an empty program takes where nothing else runs
		b.compare("-p hi: CPU added by them, against an empty Go program", median(many, cpu)-median(none, cpu), median(bare, wall), 2, ms)
	}
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

// steps is turns for a conversation that outgrows its window: it counts the
// requests, as a summary takes the earlier answers out of them, and writes the
// summaries that it is asked for.
func steps(n int, tool string, input func(i int) any) modelserver.Brain {
	var done atomic.Int64
	return func(_ context.Context, r *modelserver.Request) (modelserver.Script, error) {
		if last := r.Messages[len(r.Messages)-1].Blocks; strings.Contains(last[len(last)-1].Text, "<summary>") {
			return modelserver.Script{Steps: []modelserver.Step{modelserver.Text{Text: "<summary>Commands were run one after the other.</summary>"}}}, nil
		}
		i := int(done.Add(1)) - 1
		if i >= n {
			return modelserver.Script{Steps: []modelserver.Step{modelserver.Text{Text: "done"}}}, nil
		}
		raw, err := json.Marshal(input(i))
		if err != nil {
			return modelserver.Script{}, err
		}
		return modelserver.Script{Steps: []modelserver.Step{modelserver.Tool{ID: fmt.Sprintf("toolu_%06d", i), Name: tool, Input: raw}}}, nil
	}
}

// long measures ours alone: 500 turns with 200 KB of tool output each. The
// cost of an early turn is that of the first 50, of a late one that of the
// second half: fewer would drown in the noise of the machine.
func (b *bench) long() {
	input := func(i int) any {
		return map[string]any{"command": fmt.Sprintf("head -c 200000 /dev/zero | tr '\\0' x; echo %d", i)}
	}
	args := []string{"-p", "go", "--allowedTools", "Bash", "--max-turns", "100000"}
	us := &bench{sides: b.sides[:1]}
	n, first := *longTurns, max(*longTurns/10, 1)
	at := map[int]run{}
	for _, n := range []int{0, first, n / 2, n} {
		at[n] = us.several(1, func() modelserver.Brain { return steps(n, "Bash", input) }, args...)[0][0]
		fmt.Fprintf(os.Stderr, "bench: %d turns: %.1f s, %.0f ms CPU, %.0f MB\n", n, at[n].wall.Seconds(), cpu(at[n]), rss(at[n])/1e6)
	}
	each := func(from, to int) float64 { return (cpu(at[to]) - cpu(at[from])) / float64(to-from) }
	b.limit(fmt.Sprintf("%d turns of 200 KB: peak RSS", n), rss(at[n]), 150e6, mb)
	b.compare(fmt.Sprintf("%d turns: CPU of a late turn against an early one", n), each(n/2, n), each(0, first), 1.5, per)
}

func (b *bench) size() {
	fi, err := os.Stat(b.sides[0].path)
	if err != nil {
		fatal(err)
	}
	b.limit("stripped binary", float64(fi.Size()), 25e6, mb)
}
