package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/net/modelserver"
)

// Brain returns the offline model of the demo. It writes as fast as a person
// can follow if pace, the time between two pieces, is not 0.
func Brain(pace time.Duration) modelserver.Brain {
	return func(_ context.Context, r *modelserver.Request) (modelserver.Script, error) {
		t := &turn{r: r, work: r.Work()}
		switch {
		case len(r.Tools) == 0:
			t.say("A Go project whose tests are repaired.") // a title, a summary
		case strings.HasPrefix(r.Prompt(), cue):
			t.explore()
		default:
			t.repair()
		}
		steps := t.steps
		if pace > 0 {
			steps = append([]modelserver.Step{modelserver.Pace{Every: pace}}, steps...)
		}
		return modelserver.Script{Steps: steps}, nil
	}
}

// A turn is the making of one answer.
type turn struct {
	r     *modelserver.Request
	work  []modelserver.Result // since the prompt, oldest first
	steps []modelserver.Step
	calls int
}

func (t *turn) say(format string, args ...any) {
	t.steps = append(t.steps, modelserver.Text{Text: fmt.Sprintf(format, args...)})
}

func (t *turn) think(text string) {
	if t.r.Thinking.On() {
		t.steps = append(t.steps, modelserver.Thinking{Text: text})
	}
}

// call asks for a tool. Ids differ between requests, and between a session
// and its continuation.
func (t *turn) call(name string, input any) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(input); err != nil {
		panic(err) // inputs are structs of strings
	}
	t.calls++
	t.steps = append(t.steps, modelserver.Tool{
		ID:    fmt.Sprintf("toolu_demo_%%n_%d_%d", len(t.r.Messages), t.calls),
		Name:  name,
		Input: bytes.TrimSpace(buf.Bytes()),
	})
}

type bashInput struct {
	Command     string `json:"command"`
	Description string `json:"description"`
	Timeout     int    `json:"timeout,omitempty"` // ms
}

// The first run on a machine compiles the standard library.
const testTimeout = 600_000

type agentInput struct {
	Description string `json:"description"`
	Prompt      string `json:"prompt"`
	Type        string `json:"subagent_type"`
	Background  *bool  `json:"run_in_background,omitempty"`
}

type readInput struct {
	Path string `json:"file_path"`
}

type editInput struct {
	Path string `json:"file_path"`
	Old  string `json:"old_string"`
	New  string `json:"new_string"`
}

const testCommand = "go test ./..."

// repair is the main conversation: test, look, read, edit, test, tell.
func (t *turn) repair() {
	if !aboutTests(t.r.Prompt()) {
		t.say("I am the built-in offline model. I know one job: find out why the tests of a small Go project fail, and repair it. Ask me for that, or set ANTHROPIC_API_KEY to talk to a real model.")
		return
	}
	runs := t.runs()
	if len(runs) == 0 {
		t.think("I should see the failures before I guess at causes.")
		t.say("I run the tests first; the first build on a machine can take a minute.")
		t.call("Bash", bashInput{testCommand, "Run all tests", testTimeout})
		return
	}
	first := runs[0]
	switch {
	case !first.understood():
		t.say("I could not run the tests: %s", firstLine(first.text))
		return
	case len(first.failed) == 0 && len(first.broken) == 0:
		t.say("All tests pass already: %s. There is nothing to repair.", first.count())
		return
	case len(first.failed) == 0:
		t.say("%s does not build, so no test of it runs. That is beyond me.", strings.Join(first.broken, ", "))
		return
	case len(runs) > 1:
		t.tell(first, runs[len(runs)-1])
		return
	}
	places, found := t.places(first)
	if !found {
		return // still looking
	}
	t.mend(first, places)
}

// places says where the code under the failing tests is. While that is not
// known it makes the calls that find out, and found is false.
func (t *turn) places(first run) (places []place, found bool) {
	if t.r.Offers("Agent") {
		report, asked := t.last("Agent")
		if !asked {
			t.ask(first)
			return nil, false
		}
		if places = parseReport(report.Text); len(places) > 0 {
			return places, true
		}
	}
	if places, found = t.locate(first.failed); found && len(places) == 0 {
		t.say("%s. I could not find the code they test, so I change nothing.", first.summary())
		return nil, false
	}
	return places, found
}

// ask sends a sub-agent to explore.
func (t *turn) ask(first run) {
	t.say("%s: %s. I send an agent to find the code they test.", first.summary(), strings.Join(first.failed, ", "))
	in := agentInput{
		Description: "Find the code under test",
		Prompt: cue + " which functions do these failing Go tests call, and where are they defined? " + strings.Join(first.failed, " ") +
			"\nReport one line for each function, in the form NAME: FILE:LINE.",
		Type: "Explore",
	}
	for _, tool := range t.r.Tools {
		if tool.Name == "Agent" && bytes.Contains(tool.Schema, []byte(`"run_in_background"`)) {
			in.Background = new(bool)
		}
	}
	t.call("Agent", in)
}

// mend reads the places, edits what it knows to be wrong, and tests again.
func (t *turn) mend(first run, places []place) {
	var unread []string
	for _, p := range places {
		if _, ok := t.read(p.file); !ok && !slices.Contains(unread, p.file) {
			unread = append(unread, p.file)
		}
	}
	if len(unread) > 0 {
		t.say("The tests lead to %s. I read %s.", names(unread), them(len(unread)))
		for _, f := range unread {
			t.call("Read", readInput{t.abs(f)})
		}
		return
	}
	if edits := t.edits(); len(edits) > 0 {
		done := 0
		for _, e := range edits {
			if !e.IsError {
				done++
			}
		}
		if done == 0 {
			t.say("The edit was refused: %s\nThe project is as it was: %s.", firstLine(edits[0].Text), first.summary())
			return
		}
		t.say("I run the tests again.")
		t.call("Bash", bashInput{testCommand, "Run all tests again", testTimeout})
		return
	}
	var fixes []fix
	for _, file := range files(places) {
		res, _ := t.read(file)
		if res.IsError {
			t.say("I could not read %s: %s", file, firstLine(res.Text))
			return
		}
		fixes = append(fixes, faults(file, numbered(res.Text), functionsIn(places, file))...)
	}
	if len(fixes) == 0 {
		t.say("%s. I read %s and found no mistake that I know how to repair, so I change nothing.", first.summary(), names(files(places)))
		return
	}
	t.think("Each of these lines does the opposite of what the comment above it promises.")
	var why []string
	for _, f := range fixes {
		why = append(why, fmt.Sprintf("%s:%d %s", base(f.file), f.line, f.why))
	}
	t.say("I found %s:\n- %s", count(len(fixes), "mistake"), strings.Join(why, "\n- "))
	for _, f := range fixes {
		t.call("Edit", editInput{t.abs(f.file), f.old, f.new})
	}
}

// tell ends the job with what the results say.
func (t *turn) tell(before, after run) {
	var b strings.Builder
	switch {
	case !after.understood():
		fmt.Fprintf(&b, "I could not run the tests again: %s\n", firstLine(after.text))
	case len(after.failed)+len(after.broken) == 0:
		fmt.Fprintf(&b, "The tests pass. Before: %s. Now: %s.\n", before.summary(), after.count())
	default:
		fmt.Fprintf(&b, "Not all is well. Before: %s. Now: %s.\n", before.summary(), after.summary())
	}
	for _, e := range t.edits() {
		var in editInput
		if json.Unmarshal(e.Input, &in) != nil {
			continue
		}
		if e.IsError {
			fmt.Fprintf(&b, "\n- %s: not changed: %s", base(in.Path), firstLine(e.Text))
			continue
		}
		fmt.Fprintf(&b, "\n- %s: `%s` is now `%s`", base(in.Path), strings.TrimSpace(lastLine(in.Old)), strings.TrimSpace(lastLine(in.New)))
	}
	t.say("%s", strings.TrimSpace(b.String()))
}

// runs are the test runs so far.
func (t *turn) runs() []run {
	var out []run
	for _, w := range t.work {
		var in bashInput
		if w.Tool == "Bash" && json.Unmarshal(w.Input, &in) == nil && strings.Contains(in.Command, testCommand) {
			out = append(out, parseRun(w.Text))
		}
	}
	return out
}

func (t *turn) edits() (out []modelserver.Result) {
	for _, w := range t.work {
		if w.Tool == "Edit" {
			out = append(out, w)
		}
	}
	return out
}

// last is the newest result of a tool.
func (t *turn) last(tool string) (res modelserver.Result, ok bool) {
	for _, w := range t.work {
		if w.Tool == tool {
			res, ok = w, true
		}
	}
	return res, ok
}

// read is what reading a file gave.
func (t *turn) read(file string) (res modelserver.Result, ok bool) {
	for _, w := range t.work {
		var in readInput
		if w.Tool == "Read" && json.Unmarshal(w.Input, &in) == nil && in.Path == t.abs(file) {
			res, ok = w, true
		}
	}
	return res, ok
}

var cwdLine = pattern(`(?i)working directory:? (/\S+)`)

// abs makes a path of a result absolute where the request says what it is
// relative to: tools want absolute paths.
func (t *turn) abs(file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	if m := cwdLine().FindStringSubmatch(t.r.All()); m != nil {
		return filepath.Join(m[1], file)
	}
	return file
}

func aboutTests(prompt string) bool {
	p := strings.ToLower(prompt)
	return strings.Contains(p, "test") || strings.Contains(p, "repair") || strings.Contains(p, "fix")
}

func them(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// base names a file by its folder and name.
func base(file string) string {
	return filepath.ToSlash(filepath.Join(filepath.Base(filepath.Dir(file)), filepath.Base(file)))
}

func names(files []string) string {
	var out []string
	for _, f := range files {
		out = append(out, base(f))
	}
	return strings.Join(out, " and ")
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

func lastLine(s string) string { return s[strings.LastIndexByte(s, '\n')+1:] }
