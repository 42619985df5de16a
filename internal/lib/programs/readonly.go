// Package programs says what well-known programs do with their arguments:
// which of them change nothing, and which paths they read, write and delete.
//
// It owns the tables of programs and their options. It decides nothing about
// what is permitted, parses no shell (that is package shellcmd) and touches no
// file. A program or an option that is not known here counts as one that may
// change something.
package programs

import (
	"path"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/lib/shellcmd"
)

// ReadOnly reports whether command, run by bash in cwd, changes nothing and
// runs nothing but programs that are known to change nothing. It says nothing
// about which files are read. It is safe for concurrent use.
func ReadOnly(command, cwd string) bool {
	return ScriptChanges(shellcmd.Parse(command, shellcmd.Env{Dir: cwd})) == ""
}

// ScriptChanges returns "" if nothing is changed by s, otherwise the first
// reason why that cannot be said.
func ScriptChanges(s *shellcmd.Script) string {
	if why := s.Untrusted(); why != "" {
		return why
	}
	for _, c := range s.Commands {
		if why := Changes(c); why != "" {
			return why
		}
		for _, r := range c.Redirects {
			if r.Kind == shellcmd.RedirectWrite && !harmlessTarget(r.Target) {
				return "writes to " + r.Target.Source
			}
		}
	}
	return ""
}

// harmlessTarget reports whether writing to t reaches no file.
func harmlessTarget(t shellcmd.Word) bool {
	if !t.Known {
		return strings.HasPrefix(t.Prefix, "/dev/fd/")
	}
	switch t.Text {
	case "/dev/null", "/dev/stdout", "/dev/stderr":
		return true
	}
	n, ok := strings.CutPrefix(t.Text, "/dev/fd/")
	return ok && n != "" && strings.Trim(n, "0123456789") == ""
}

// Changes returns "" if c changes nothing, apart from its redirections and
// from what the commands inside it do; otherwise why that cannot be said.
func Changes(c *shellcmd.Command) string {
	if c.Opaque != "" {
		return c.Opaque
	}
	for _, a := range c.Assigns {
		if len(c.Argv) == 0 {
			break // judged with the script
		}
		if !shellcmd.SafeVariable(a.Name) && !c.Declares() {
			return "runs with " + a.Name + " set"
		}
	}
	switch {
	case len(c.Argv) == 0, c.Defined, c.Transparent:
		return ""
	}
	program := c.Argv[0].Text
	if !shellcmd.System(program) {
		return program + " is not a program of the system"
	}
	args := c.Argv[1:]
	if c.More {
		args = append(args[:len(args):len(args)], shellcmd.Word{Source: more, Split: true})
	}
	r, ok := readerOf(path.Base(program))
	if !ok {
		return program + " may change something"
	}
	if r.options != "" || r.long != "" {
		if why := r.forbidden(args); why != "" {
			return program + " with " + why
		}
	}
	if r.check != nil {
		if why := r.check(args); why != "" {
			return program + ": " + why
		}
	}
	return ""
}

// A reader is a program that changes nothing, but for the options named here.
type reader struct {
	options string // letters of short options that disqualify
	long    string // long options that do, space separated
	check   func(args []shellcmd.Word) string
}

// forbidden returns the first of args that is, or may turn into, a forbidden option.
func (r reader) forbidden(args []shellcmd.Word) string {
	for _, a := range args {
		t := a.Prefix
		switch {
		case a.Known && !a.Glob && a.Text == "--":
			return ""
		case a.Choices != nil && !a.Optional():
			continue
		case a.Split, a.Brace, t == "" && (!a.Known || a.Glob), t == "-" && !a.Known, a.Glob && strings.HasPrefix(t, "-"):
			return "words that are not spelled out: " + a.Source
		case strings.HasPrefix(t, "--"):
			name, _, _ := strings.Cut(t[2:], "=")
			for opt := range strings.FieldsSeq(r.long) {
				// Programs take any unambiguous beginning of an option.
				if strings.HasPrefix(opt, name) || !a.Known {
					return t
				}
			}
		case len(t) > 1 && t[0] == '-':
			if strings.ContainsAny(t[1:], r.options) || !a.Known {
				return t
			}
		}
	}
	return ""
}

// readerOf looks up the read-only set.
func readerOf(name string) (reader, bool) {
	switch name {
	case "cat", "head", "tail", "wc", "stat", "du", "df", "basename", "dirname", "realpath", "readlink", "true", "false", ":",
		"nl", "cut", "tr", "paste", "comm", "fold", "expand", "unexpand", "rev", "tac", "od", "hexdump", "strings", "md5sum",
		"sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "cksum", "sum", "id", "whoami", "groups",
		"uname", "uptime", "free", "nproc", "arch", "tty", "sleep", "seq", "expr", "ls", "pwd", "echo", "cd", "which", "whereis", "type",
		"cmp", "grep", "egrep", "fgrep", "column", "jq", "exit", "return", "break", "continue", "shift", "factor",
		"numfmt", "tsort", "look", "cal", "locale", "getconf", "lsblk", "lscpu", "pgrep", "ps", "pidof":
		return reader{}, true
	case "test", "[", "set":
		return reader{}, true // what is odd about them is a hazard of the script
	case "command":
		return reader{check: commandArgs}, true
	case "diff":
		return reader{options: "l", long: "paginate"}, true
	case "sort":
		return reader{options: "oT", long: "output compress-program temporary-directory"}, true
	case "uniq":
		return reader{check: atMostOneOperand}, true
	case "xxd":
		return reader{options: "r", long: "revert", check: atMostOneOperand}, true
	case "rg":
		return reader{options: "z", long: "pre pre-glob hostname-bin search-zip"}, true
	case "fd", "fdfind":
		return reader{options: "xX", long: "exec exec-batch"}, true
	case "tree":
		return reader{options: "oR", long: "output"}, true
	case "file":
		return reader{options: "mfCzZ", long: "magic-file files-from compile uncompress uncompress-noreport"}, true
	case "date":
		return reader{options: "s", long: "set", check: dateArgs}, true
	case "yq":
		return reader{options: "is", long: "inplace in-place split-exp"}, true
	case "hostname":
		return reader{options: "bF", long: "boot file", check: noOperand}, true
	case "find":
		return reader{check: findArgs}, true
	case "sed":
		return reader{options: "if", long: "in-place file", check: sedArgs}, true
	case "awk", "gawk", "mawk", "nawk":
		return reader{check: awkArgs}, true
	case "printf":
		return reader{check: printfArgs}, true
	case "git":
		return reader{check: gitArgs}, true
	case "docker", "podman":
		return reader{check: dockerArgs}, true
	case "export", "local", "declare", "typeset", "readonly":
		return reader{check: declareArgs(name)}, true
	// Not go, cargo, yarn and the like: files of the project choose what they run, even for --version.
	case "node", "npm", "deno", "python", "python3", "ruby", "gem", "java", "javac", "gcc", "clang", "cmake", "make", "php",
		"pip", "pip3", "tsc", "perl":
		return reader{check: versionArgs(name)}, true
	}
	return reader{}, false
}
