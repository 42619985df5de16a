// Package cli turns argv and the environment into a program and runs it: it
// parses flags, picks the front end or the subcommand, handles signals and
// gives the exit code. It is the only reader of the environment; what the
// program consists of is app's to know.
package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/net/egress/connector"
	"github.com/seed-eb844fcb/cinch/internal/sandbox"
	"github.com/seed-eb844fcb/cinch/internal/sandbox/inner"
)

// A program is one invocation: the outside world as it was handed in.
type program struct {
	environ []string
	stdin   *os.File
	stdout  *os.File
	stderr  io.Writer
	started time.Time
	args    []string
	once    bool    // a talk with a screen ends after its first turn
	draft   string  // what the editor holds at the beginning
	replay  *replay // what is run once more, or nil
}

// env returns the value of the last entry for name, or "".
func (p *program) env(name string) string {
	for _, kv := range slices.Backward(p.environ) {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			return v
		}
	}
	return ""
}

// A command is a subcommand.
type command struct {
	name, args, help string
	run              func(p *program, args []string) int
}

// Main runs the program and returns its exit code: 0, 1 for a failed run or
// a bad command line, 130 after SIGINT, 143 after SIGTERM.
func Main(args, environ []string, stdin, stdout *os.File, stderr io.Writer) int {
	if len(args) > 0 && args[0] == sandbox.Verb { // before all else: every confined command starts here
		return inner.Main(args, environ, stderr)
	}
	if len(args) > 0 && args[0] == connector.Verb { // every SSH connection out of the sandbox is one
		proxy := (&program{environ: environ}).env(connector.Variable)
		return connector.Main(args[1:], proxy, stdin, stdout, stderr)
	}
	p := &program{environ: environ, stdin: stdin, stdout: stdout, stderr: stderr, started: time.Now(), args: args}
	if len(args) == 1 && (args[0] == "--version" || args[0] == "-v" || args[0] == "version") {
		fmt.Fprintln(stdout, Version+" (Cinch)")
		return 0
	}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		if code, ok := p.sub(args); ok {
			return code
		}
	}
	o, err := parse(args)
	if err != nil {
		return p.fail(err)
	}
	switch {
	case o.on("version"):
		fmt.Fprintln(stdout, Version+" (Cinch)")
		return 0
	case o.on("help"):
		p.help()
		return 0
	}
	return p.converse(o)
}

// sub runs the subcommand args[0] names. ok is false if it names none and is
// to be taken as a prompt. A single word close to a subcommand is taken for a
// slip of the finger: no session starts.
func (p *program) sub(args []string) (code int, ok bool) {
	list := commands()
	for _, c := range list {
		if c.name == args[0] {
			if len(args) == 2 && (args[1] == "--help" || args[1] == "-h") {
				fmt.Fprintf(p.stdout, "usage: cinch %s %s\n\n%s\n", c.name, c.args, c.help)
				return 0, true
			}
			return c.run(p, args[1:]), true
		}
	}
	if len(args) > 1 || strings.ContainsAny(args[0], " \t\n/.?!") {
		return 0, false
	}
	for _, c := range list {
		if near(args[0], c.name) {
			return p.fail(usagef("unknown command '%s': did you mean 'cinch %s'?", args[0], c.name)), true
		}
	}
	return 0, false
}

// near reports whether a and b differ by one inserted, deleted, changed or
// swapped letter.
func near(a, b string) bool {
	if a == b || len(a) < 3 || len(b) < 3 {
		return false
	}
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	x, y := a[i:], b[i:]
	switch {
	case len(x) > 1 && len(y) > 1 && x[0] == y[1] && x[1] == y[0] && x[2:] == y[2:]:
		return true
	case x != "" && y != "" && x[1:] == y[1:]:
		return true
	case x != "" && x[1:] == y, y != "" && y[1:] == x:
		return true
	}
	return false
}

// fail reports err and returns the exit code for it.
func (p *program) fail(err error) int {
	msg := err.Error()
	if ue := (*usageError)(nil); errors.As(err, &ue) {
		fmt.Fprintln(p.stderr, "error: "+msg)
		if !strings.Contains(msg, "did you mean") {
			fmt.Fprintln(p.stderr, "hint: 'cinch --help' lists what there is")
		}
		return 1
	}
	fmt.Fprintln(p.stderr, "cinch: "+msg)
	return 1
}

func (p *program) help() {
	w := p.stdout
	fmt.Fprint(w, `cinch is an agent harness for coding: a model thinks, cinch does the rest.

usage:
  cinch -p "PROMPT"        answer and exit; piped input is added to the prompt
  cinch ["PROMPT"]         talk in the terminal
  cinch COMMAND …          one of the commands below

`)
	fmt.Fprintln(w, "commands:")
	for _, c := range commands() {
		if c.help != "" {
			first, _, _ := strings.Cut(c.help, "\n")
			fmt.Fprintf(w, "  %-36s %s\n", strings.TrimSpace(c.name+" "+c.args), first)
		}
	}
	fmt.Fprintln(w, "\nflags:")
	for _, f := range flags {
		if f.help == "" || f.not != "" {
			continue
		}
		s := "    --" + f.name
		if f.short != 0 {
			s = "-" + string(f.short) + ", --" + f.name
		}
		if f.arg != "" {
			s += " " + f.arg
		}
		fmt.Fprintf(w, "  %-44s %s\n", s, f.help)
	}
	fmt.Fprint(w, `
credentials: ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for a gateway or a local
server that speaks the Messages API. No key yet? 'cinch demo' runs the real
loop on a sample project with a built-in offline model.
`)
}
