//go:build unix

package policy

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// cpu is the processor time of this process in nanoseconds.
func cpu(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func benchmark(b *testing.B, commands ...string) {
	var rs []string
	for i := range 60 {
		rs = append(rs, fmt.Sprintf("allow Bash(tool%d *)", i), fmt.Sprintf("deny Bash(bad%d *)", i))
	}
	p := must(b, Config{Rules: rules(append(rs, "allow Bash(go test *)", "allow Bash(npm *)", "deny Read(.env)")...)})
	calls := make([]agent.Call, len(commands))
	for i, c := range commands {
		calls[i] = bash(c)
	}
	b.ReportAllocs()
	start := cpu(b)
	for i := 0; b.Loop(); i++ {
		p.Judge(calls[i%len(calls)])
	}
	b.ReportMetric(float64(cpu(b)-start)/float64(b.N), "cpu-ns/op")
}

func BenchmarkJudgeTypical(b *testing.B) {
	benchmark(b, "git status", "go test ./... 2>&1 | tail -20", `cd sub && git log --oneline -5 && grep -n "func main" a.go`, "npm run build && npm test -- --watch=false", "make all")
}

// BenchmarkJudgeOdd holds the shapes that could make the work grow faster
// than the text.
func BenchmarkJudgeOdd(b *testing.B) {
	for name, command := range map[string]string{
		"tiny":    strings.Repeat("a;", 4900),
		"pipes":   strings.Repeat("ls|", 3200) + "ls",
		"and":     strings.Repeat("ls&&", 2400) + "ls",
		"subst":   strings.Repeat("$(a ", 2000) + strings.Repeat(")", 2000),
		"parens":  strings.Repeat("( ", 4000) + "a" + strings.Repeat(")", 1900),
		"while":   strings.Repeat("while a;do ", 600) + "b;" + strings.Repeat("done;", 600),
		"for":     strings.Repeat("for i in a b c;do ", 400) + "b $i;" + strings.Repeat("done;", 400),
		"items":   "for i in " + strings.Repeat("a ", 60) + ";do " + strings.Repeat("cat $i;", 1300) + "done",
		"words":   "cat " + strings.Repeat("a ", 4900),
		"braces":  strings.Repeat("{a,b}", 1900),
		"stars":   "tool1 " + strings.Repeat("ab", 4900),
		"redirs":  "echo " + strings.Repeat(">a ", 3000),
		"quotes":  "echo " + strings.Repeat("'a'", 3000),
		"assigns": strings.Repeat("a=1 ", 2400) + "b",
		"evals":   strings.Repeat("eval ", 1900) + "a",
		"sudos":   strings.Repeat("sudo ", 1900) + "a",
	} {
		b.Run(name, func(b *testing.B) { benchmark(b, command) })
	}
}

func BenchmarkJudgeLong(b *testing.B) {
	var s strings.Builder
	for i := 0; s.Len() < 9900; i++ {
		fmt.Fprintf(&s, "grep -n 'p%d' src/file%d.go | head -%d && echo \"$(date) $X\"; ", i, i, i)
	}
	benchmark(b, s.String()[:strings.LastIndexByte(s.String(), ';')])
}
