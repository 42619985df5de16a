package demo

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// pattern is an expression that is compiled when it is first used: most
// starts of the program are not demos.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// A run is what the output of a test run says.
type run struct {
	text   string
	failed []string // tests, subtests left out
	passed []string // packages
	broken []string // packages with a failure
}

var (
	failLine    = pattern(`(?m)^--- FAIL: (\w+)`)
	okLine      = pattern(`(?m)^ok\s+(\S+)`)
	failPackage = pattern(`(?m)^FAIL\s+(\S+)`)
)

func parseRun(text string) run {
	r := run{text: text}
	for _, m := range failLine().FindAllStringSubmatch(text, -1) {
		r.failed = append(r.failed, m[1])
	}
	for _, m := range okLine().FindAllStringSubmatch(text, -1) {
		r.passed = append(r.passed, m[1])
	}
	for _, m := range failPackage().FindAllStringSubmatch(text, -1) {
		r.broken = append(r.broken, m[1])
	}
	return r
}

// understood reports whether the text is the output of a test run.
func (r run) understood() bool { return len(r.passed)+len(r.failed)+len(r.broken) > 0 }

func (r run) count() string { return count(len(r.passed), "package") + " ok" }

func (r run) summary() string {
	return fmt.Sprintf("%s in %s", count(len(r.failed), "failing test"), count(len(r.broken), "package"))
}

var numberedLine = pattern(`^\s*(\d+)[\t→](.*)$`)

// numbered reads the numbered lines of a file as Read gives them, by number.
func numbered(text string) map[int]string {
	out := map[int]string{}
	for l := range strings.Lines(text) {
		if m := numberedLine().FindStringSubmatch(strings.TrimRight(l, "\r\n")); m != nil {
			if n, err := strconv.Atoi(m[1]); err == nil {
				out[n] = m[2]
			}
		}
	}
	return out
}

// body returns the numbers of the lines of the function with that name: from
// its func to the closing brace at the margin.
func body(lines map[int]string, name string) (numbers []int) {
	in := false
	for n := 1; n <= len(lines); n++ {
		if m := funcLine().FindStringSubmatch(lines[n]); m != nil {
			in = m[1] == name
		}
		if in {
			numbers = append(numbers, n)
		}
		if strings.HasPrefix(lines[n], "}") {
			in = false
		}
	}
	return numbers
}

var (
	callExpr   = pattern(`(?:(\w+)\.)?\b([A-Z]\w*)\(`)
	importLine = pattern(`^(?:import\s+|\t)"(?:[^"]*/)?(\w+)"$`)
)

// called lists the exported functions and methods that the tests call, but
// those of the testing value and of imported packages.
func called(lines map[int]string, tests []string) []string {
	foreign := []string{"t"}
	for _, l := range lines {
		if m := importLine().FindStringSubmatch(l); m != nil {
			foreign = append(foreign, m[1])
		}
	}
	var out []string
	for _, name := range tests {
		for _, n := range body(lines, name) {
			if strings.HasPrefix(lines[n], "func ") {
				continue
			}
			for _, m := range callExpr().FindAllStringSubmatch(lines[n], -1) {
				if !slices.Contains(foreign, m[1]) {
					out = append(out, m[2])
				}
			}
		}
	}
	return out
}

// A fix is one exact edit.
type fix struct {
	file     string
	line     int
	old, new string
	why      string
}

// mistakes are what this model knows to be wrong in a function under a
// failing test.
var mistakes = []struct {
	wrong func() *regexp.Regexp
	right string
	why   string
}{
	{pattern(`\.Add\(-(leeway|skew|grace|slack|tolerance)\)`), `.Add($1)`, "takes the $1 off where it should grant it"},
	{pattern(`^(\s*return \S+) > (\S+)$`), `$1 >= $2`, "leaves out the equal case"},
	{pattern(`^(\s*return \S+) < (\S+)$`), `$1 <= $2`, "leaves out the equal case"},
}

// faults looks for known mistakes in the named functions of a file.
func faults(file string, lines map[int]string, functions []string) (out []fix) {
	for _, name := range functions {
		for _, n := range body(lines, name) {
			for _, m := range mistakes {
				loc := m.wrong().FindStringSubmatchIndex(lines[n])
				if loc == nil {
					continue
				}
				f := fix{file: file, line: n, new: m.wrong().ReplaceAllString(lines[n], m.right)}
				f.why = string(m.wrong().ExpandString(nil, m.why, lines[n], loc))
				f.old = lines[n]
				for up := n - 1; up > 0 && times(lines, f.old) > 1; up-- {
					f.old, f.new = lines[up]+"\n"+f.old, lines[up]+"\n"+f.new
				}
				if !slices.ContainsFunc(out, func(g fix) bool { return g.line == n }) {
					out = append(out, f)
				}
				break
			}
		}
	}
	return out
}

// times counts how often text occurs in the file.
func times(lines map[int]string, text string) int {
	all := make([]string, 0, len(lines))
	for n := 1; n <= len(lines); n++ {
		all = append(all, lines[n])
	}
	return strings.Count(strings.Join(all, "\n"), text)
}
