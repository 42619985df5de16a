package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/seed-eb844fcb/cinch/internal/lib/shellcmd"
)

// mayChangeDir reports whether command may leave the shell in another
// directory. It looks for words, so it errs on the side of yes.
func mayChangeDir(command string) bool {
	for _, w := range []string{"cd", "pushd", "popd", "source", "eval", ".", "autojump", "z"} {
		for rest := command; ; {
			i := strings.Index(rest, w)
			if i < 0 {
				break
			}
			if edge(rest, i-1) && edge(rest, i+len(w)) {
				return true
			}
			rest = rest[i+len(w):]
		}
	}
	return false
}

// edge reports whether no word goes on at s[i].
func edge(s string, i int) bool {
	return i < 0 || i >= len(s) || strings.IndexByte(" \t\n;&|(){}`\"'\\$", s[i]) >= 0
}

// program is the name of the program c runs, or "".
func program(c *syntax.CallExpr) string {
	if len(c.Args) == 0 {
		return ""
	}
	return path.Base(c.Args[0].Lit())
}

// benign says what exit status 1 of command means if it is an answer and not
// a failure; "" if it is a failure or may be one.
func benign(command string) string {
	f, err := syntax.NewParser().Parse(strings.NewReader(command), "")
	if err != nil || len(f.Stmts) == 0 {
		return ""
	}
	c := last(f.Stmts[len(f.Stmts)-1])
	if c == nil {
		return ""
	}
	name := program(c)
	if name == "git" && len(c.Args) > 1 {
		name += " " + c.Args[1].Lit()
	}
	switch name {
	case "grep", "egrep", "fgrep", "rg", "git grep":
		return "nothing matched"
	case "diff", "git diff":
		return "the two differ"
	case "find":
		return "some directories could not be searched"
	case "test", "[":
		return "the condition is false"
	}
	return ""
}

// last is the simple command whose status is that of s, or nil if that cannot
// be told: the last of a pipeline, and of a list whose earlier parts only
// change the directory.
func last(s *syntax.Stmt) *syntax.CallExpr {
	if s.Negated || s.Background {
		return nil
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		return c
	case *syntax.BinaryCmd:
		switch c.Op {
		case syntax.Pipe, syntax.PipeAll:
			return last(c.Y)
		case syntax.AndStmt:
			if l := last(c.X); l != nil && program(l) == "cd" {
				return last(c.Y)
			}
		}
	}
	return nil
}

// mayGoOn reports whether a command that ran out of time may go on in the
// background. One that only sleeps has nothing to finish, one that runs git
// may hold its lock, and one that cannot be read may be anything.
func (b *bash) mayGoOn(in bashInput) bool {
	if b.o.Jobs.Start == nil {
		return false
	}
	s := shellcmd.Parse(in.Command, shellcmd.Env{})
	if s.Problem != "" || len(s.Commands) == 0 {
		return false
	}
	for i, c := range s.Commands {
		switch name := path.Base(c.Program()); {
		case name == "git", i == 0 && name == "sleep":
			return false
		}
	}
	return true
}

// readers are programs that, without an argument, read their input.
var readers = []string{"cat", "read", "sort", "wc", "head", "tail", "uniq", "tee", "bash", "sh", "python", "python3", "node", "ruby", "perl", "bc", "mapfile", "readarray"}

// complaints are what programs say when they find no terminal or no input.
var complaints = []string{
	"a terminal is required", "EOF when reading a line", "is not a TTY", "not a tty", "not a terminal", "no tty present",
	"Inappropriate ioctl for device", "could not read Username", "could not read Password", "cannot open /dev/tty",
	"can't open /dev/tty", "/dev/tty: No such device",
}

// inputHint says that there was nothing to read, if it looks as if the
// command wanted to.
func inputHint(command, text string, failed bool) string {
	const hint = "Note: this tried to read standard input, which is empty here; pass what it needs as arguments, in a file or through a pipe."
	if failed {
		for _, c := range complaints {
			if strings.Contains(text, c) {
				return hint
			}
		}
	}
	if text != "" || !mentionsReader(command) {
		return ""
	}
	for _, c := range shellcmd.Parse(command, shellcmd.Env{}).Commands {
		name := c.Program()
		alone := len(c.Argv) == 1 || name == "read" || name == "mapfile" || name == "readarray"
		if !alone || c.Piped || !slices.Contains(readers, name) || feeds(c.Redirects) {
			continue
		}
		return hint
	}
	return ""
}

// feeds reports whether one of rs gives a command something to read.
func feeds(rs []shellcmd.Redirect) bool {
	return slices.ContainsFunc(rs, func(r shellcmd.Redirect) bool {
		return r.Kind == shellcmd.RedirectRead || r.Kind == shellcmd.RedirectData
	})
}

func mentionsReader(command string) bool {
	return slices.ContainsFunc(readers, func(r string) bool { return strings.Contains(command, r) })
}
