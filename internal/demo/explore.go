package demo

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// cue opens the prompt of the sub-agent that explores.
const cue = "Explore this project:"

// A place is where a function is defined.
type place struct {
	name, file string
	line       int
}

var testName = pattern(`\bTest\w+`)

// explore is the sub-agent's conversation: find, read, report.
func (t *turn) explore() {
	tests := testName().FindAllString(t.r.Prompt(), -1)
	places, found := t.locate(tests)
	if !found {
		return
	}
	if len(places) == 0 {
		t.say("I found no function of this project that %s call.", strings.Join(tests, ", "))
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "The %s call %s of this project:\n", count(len(tests), "failing test"), count(len(places), "function"))
	for _, p := range places {
		fmt.Fprintf(&b, "- %s: %s:%d\n", p.name, p.file, p.line)
	}
	t.say("%s", strings.TrimSpace(b.String()))
}

var reportLine = pattern(`(?m)^\W*(\w+): (\S+\.go):(\d+)\s*$`)

// parseReport reads what explore says.
func parseReport(text string) (places []place) {
	for _, m := range reportLine().FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[3])
		if err == nil {
			places = append(places, place{m[1], m[2], n})
		}
	}
	return places
}

// locate finds the functions that tests call: it looks for the tests, reads
// their files, takes the calls out of their bodies, and looks for those.
// While it needs another call for that, it makes it, and found is false.
func (t *turn) locate(tests []string) (places []place, found bool) {
	if len(tests) == 0 {
		return nil, true
	}
	want := `^func (` + strings.Join(tests, "|") + `)\(`
	hits, ok := t.grep(want)
	if !ok {
		t.say("I look for the tests.")
		t.search(want)
		return nil, false
	}
	var unread []string
	for _, f := range files(hits) {
		if _, ok := t.read(f); !ok {
			unread = append(unread, f)
		}
	}
	if len(unread) > 0 {
		for _, f := range unread {
			t.call("Read", readInput{t.abs(f)})
		}
		return nil, false
	}
	var calls []string
	for _, f := range files(hits) {
		res, _ := t.read(f)
		calls = append(calls, called(numbered(res.Text), tests)...)
	}
	slices.Sort(calls)
	calls = slices.Compact(calls)
	if len(calls) == 0 {
		return nil, true
	}
	want = `^func (\(\w+ \*?\w+\) )?(` + strings.Join(calls, "|") + `)\(`
	hits, ok = t.grep(want)
	if !ok {
		t.say("They call %s. I look for those.", strings.Join(calls, ", "))
		t.search(want)
		return nil, false
	}
	return slices.DeleteFunc(hits, func(p place) bool { return strings.HasSuffix(p.file, "_test.go") }), true
}

type grepInput struct {
	Pattern string `json:"pattern"`
	Glob    string `json:"glob"`
	Mode    string `json:"output_mode"`
	Numbers bool   `json:"-n"`
}

// search looks for a pattern in the Go files of the project.
func (t *turn) search(pattern string) {
	if t.r.Offers("Grep") {
		t.call("Grep", grepInput{pattern, "*.go", "content", true})
		return
	}
	t.call("Bash", bashInput{Command: "grep -rnE --include='*.go' '" + pattern + "' .", Description: "Search the Go files"})
}

var (
	hitLine  = pattern(`(?m)^(\S+\.go)[:-](\d+)[:-](.*)$`)
	funcLine = pattern(`^func (?:\([^)]*\) )?(\w+)\(`)
)

// grep is what the search for a pattern found; ok says that it was made.
func (t *turn) grep(pattern string) (hits []place, ok bool) {
	for _, w := range t.work {
		var g grepInput
		var b bashInput
		switch {
		case w.Tool == "Grep" && json.Unmarshal(w.Input, &g) == nil && g.Pattern == pattern:
		case w.Tool == "Bash" && json.Unmarshal(w.Input, &b) == nil && strings.Contains(b.Command, pattern):
		default:
			continue
		}
		ok, hits = true, nil
		for _, m := range hitLine().FindAllStringSubmatch(w.Text, -1) {
			n, err := strconv.Atoi(m[2])
			f := funcLine().FindStringSubmatch(m[3])
			if err == nil && f != nil {
				hits = append(hits, place{f[1], strings.TrimPrefix(m[1], "./"), n})
			}
		}
	}
	// Searches that run in parallel find files in any order.
	slices.SortFunc(hits, func(a, b place) int { return cmp.Or(strings.Compare(a.file, b.file), a.line-b.line) })
	return hits, ok
}

// files are the files of places, each once, in order.
func files(places []place) []string {
	var out []string
	for _, p := range places {
		if !slices.Contains(out, p.file) {
			out = append(out, p.file)
		}
	}
	return out
}

// functionsIn are the functions among places that stand in file.
func functionsIn(places []place, file string) []string {
	var out []string
	for _, p := range places {
		if p.file == file {
			out = append(out, p.name)
		}
	}
	return out
}
