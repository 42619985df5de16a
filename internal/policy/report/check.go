package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/policy"
)

// maxLine is the longest line of a test file in bytes.
const maxLine = 1 << 20

// Test reads expectations from r, called name in messages, and writes every
// one that p does not meet. It returns how many there were and how many of
// them were not met. The error is a line that cannot be read, or one of r or w.
func Test(w io.Writer, p *policy.Policy, r io.Reader, name string) (total, missed int, err error) {
	o := &output{w: w}
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxLine)
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimSpace(sc.Text())
		if n == 1 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		if line == "" || line[0] == '#' {
			continue
		}
		word, rest, _ := strings.Cut(strings.Replace(line, "\t", " ", 1), " ")
		want, ok := verdict(word)
		if !ok || strings.TrimSpace(rest) == "" {
			return total, missed, fmt.Errorf("%s:%d: expected allow, ask or deny and a command, got %q", name, n, line)
		}
		c, err := Call(p, rest)
		if err != nil {
			return total, missed, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		total++
		j := p.Judge(c)
		if j.Verdict == want {
			continue
		}
		missed++
		o.line("%s:%d: want %s, got %s: %s", name, n, want, j.Verdict, text(strings.TrimSpace(rest)))
		o.line("  %s", text(because(&j)))
	}
	if err := sc.Err(); err != nil {
		return total, missed, fmt.Errorf("reading %s: %w", name, err)
	}
	return total, missed, o.err
}

func verdict(word string) (agent.Verdict, bool) {
	switch word {
	case "allow":
		return agent.Allow, true
	case "ask":
		return agent.Ask, true
	case "deny":
		return agent.Deny, true
	}
	return agent.Ask, false
}

// because is what settled j, in one line.
func because(j *policy.Judgement) string {
	switch {
	case j.Rule != nil:
		return fmt.Sprintf("%s rule %s, %s", j.Rule.Verdict, j.Rule.Text, j.Rule.Where())
	case j.Reason != "":
		return j.Reason
	}
	return j.By
}

// Diff writes the rules that only one of a and b has, and the calls on which
// they differ: samples of all their rules, and probes (written as in a test
// file, without the verdict). It reports whether there was any difference.
func Diff(w io.Writer, a, b *policy.Policy, probes []string) (differ bool, err error) {
	o := &output{w: w}
	if a.Mode() != b.Mode() {
		differ = true
		o.line("mode %s -> %s", a.Mode(), b.Mode())
	}
	for _, side := range []struct {
		sign      string
		from, not *policy.Policy
	}{{"-", a, b}, {"+", b, a}} {
		for _, r := range side.from.Rules() {
			if !slices.ContainsFunc(side.not.Rules(), func(x policy.Rule) bool { return x.Text == r.Text && x.Verdict == r.Verdict }) {
				differ = true
				o.line("%s %-5s %s  (%s)", side.sign, r.Verdict, text(r.Text), r.Where())
			}
		}
	}
	calls := slices.Concat(probes, samples(a), samples(b))
	slices.Sort(calls)
	for _, s := range slices.Compact(calls) {
		ca, err := Call(a, s)
		if err != nil {
			return differ, err
		}
		cb, err := Call(b, s)
		if err != nil {
			return differ, err
		}
		ja, jb := a.Judge(ca), b.Judge(cb)
		if ja.Verdict == jb.Verdict {
			continue
		}
		differ = true
		o.line("%s -> %s: %s", ja.Verdict, jb.Verdict, text(s))
		o.line("  before: %s", text(because(&ja)))
		o.line("  after:  %s", text(because(&jb)))
	}
	return differ, o.err
}

// samples are calls that the rules of p are about.
func samples(p *policy.Policy) []string {
	var out []string
	for _, r := range p.Rules() {
		tool, content, scoped := strings.Cut(strings.TrimSpace(r.Text), "(")
		content = strings.TrimSuffix(content, ")")
		if tool == "" || strings.ContainsAny(tool, "* \t") {
			continue
		}
		if !scoped || content == "*" {
			content = ""
		}
		fill := strings.NewReplacer(":*", " x", `\*`, "*", "**", "x/x", "*", "x").Replace(content)
		switch tool {
		case "Bash", "PowerShell", "Monitor":
			if fill == "" {
				fill = "make"
			}
			if tool != "Bash" {
				fill = "@" + tool + " " + fill
			} else if strings.HasPrefix(fill, "@") || strings.HasPrefix(fill, `"`) {
				continue
			}
		case "Read", "Edit", "Write", "NotebookEdit":
			switch {
			case strings.HasPrefix(fill, "//"):
				fill = fill[1:]
			case strings.HasPrefix(fill, "~"):
				continue // home is not known here
			case fill == "":
				fill = "x"
			default:
				fill = strings.TrimPrefix(fill, "/")
			}
			fill = "@" + tool + " " + fill
		case "WebFetch":
			fill = "@WebFetch https://" + strings.TrimPrefix(fill, "domain:") + "/"
		default:
			fill = strings.TrimSpace("@" + tool + " " + fill)
		}
		out = append(out, fill)
	}
	return out
}
