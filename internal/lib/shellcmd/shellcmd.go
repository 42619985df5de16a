// Package shellcmd says what a bash command line would do, without running it.
//
// It owns the reading of shell text: the simple commands at every depth
// (pipelines, substitutions, here-documents, functions, code strings of bash
// -c and eval), the wrappers around them (timeout, env, xargs, sudo, …) and the
// directories they may run in. What the programs do with their arguments is
// for package programs. It must not know rules, modes or tools, and it touches
// no file, process or network.
//
// One principle holds throughout: what cannot be understood lowers trust. A
// Script never claims less than the command does; where it is not sure it
// says so (Problem, Hazards, Word.Known, Command.Dirs, Command.Opaque).
package shellcmd

import (
	"path"
	"slices"
	"strings"
)

// Trusted is the length in bytes up to which a command may be approved
// without a person. Longer ones are still read, so that rules which forbid
// keep their hold.
const Trusted = 10_000

// limit is the length in bytes beyond which a command is not parsed at all.
const limit = 1 << 20

// An Env is what a command finds around it. The zero value knows nothing.
type Env struct {
	// Dir is the directory the command starts in, absolute; "" is unknown.
	Dir string
	// Home is what ~ stands for, absolute; "" is unknown.
	Home string
	// Exported reports whether the shell starts with name exported, so that
	// assigning it changes what child processes see. Nil: any name that is
	// not all lower case may be.
	Exported func(name string) bool
}

// A Script is a command line, understood as far as possible. It is
// immutable once Parse has returned.
type Script struct {
	Source string
	// Commands are the simple commands in the order of their text, those
	// inside substitutions, functions, wrappers and code strings included:
	// each after the command that holds it.
	Commands []*Command
	// Problem is "" if all of Source was parsed. Otherwise it says why not,
	// and Commands are those found up to there.
	Problem string
	// Hazards are constructs that may run or change what the text does not
	// show: arithmetic over unknown values, prompt expansion, indirection.
	Hazards []string
	// Assigns are assignments that stay in the shell, outside any command.
	Assigns []Assign

	env Env
}

// A Role says how a command stands to the one that holds it.
type Role string

const (
	RoleTop   Role = ""             // in the script itself
	RoleSubst Role = "substitution" // $(…), `…`, <(…), or an expanded here-document
	RoleWrap  Role = "wrapped"      // what a wrapper such as timeout or xargs runs
	RoleCode  Role = "code"         // in a string handed to a shell
	RoleFunc  Role = "function"     // in the body of a function
)

// A Command is one simple command.
type Command struct {
	// Argv are the words after brace expansion and quote removal; the first
	// is the program. It is empty for redirections on their own.
	Argv []Word
	// Assigns are the assignments in front of the program.
	Assigns []Assign
	// Redirects include those of the groups, loops and pipelines around it.
	Redirects []Redirect
	Parent    *Command // the command that holds this one, or nil
	Role      Role
	// Dirs are the directories it may run in, absolute and clean; nil is unknown.
	Dirs []string
	// Piped commands read what another command of the line writes.
	Piped bool
	// From is the simple command whose output c reads, if that is certain.
	From *Command
	// More says that further words, unknown here, are appended to Argv (xargs, find -exec).
	More bool
	// Transparent commands only run what they wrap: timeout, nice, bare
	// xargs. The wrapped command stands for them.
	Transparent bool
	// Defined commands call a function of this script, whose body is in
	// Script.Commands.
	Defined bool
	// Covered commands lie inside one that itself needs approval (sudo,
	// bash -c, find -exec): approving that one approves them.
	Covered bool
	// ExactOnly commands run others in ways that a prefix of their text does not tell.
	ExactOnly bool
	// Code is program text in another language that the command runs (python -c).
	Code string
	// Opaque says why what the command runs cannot be told; "" if it can.
	Opaque string

	depth int
}

// Depth is the number of commands around c.
func (c *Command) Depth() int { return c.depth }

// Program is the literal first word, or "" if there is none or it is not known.
func (c *Command) Program() string {
	if len(c.Argv) == 0 || !c.Argv[0].Known {
		return ""
	}
	return c.Argv[0].Text
}

// A Word is one argument.
type Word struct {
	// Text is the value after quote removal if Known, else the text as written.
	Text string
	// Source is the text as written.
	Source string
	// Known is false if the value depends on an expansion.
	Known bool
	// Prefix is the part of an unknown or globbed value that is known to lead it.
	Prefix string
	// Choices, if not nil, are the values that an unknown word may have: it
	// holds the variable of a loop. With Glob they are patterns.
	Choices []string
	// Glob words hold unquoted *, ? or [ and stand for the names that match.
	Glob bool
	// Brace words came out of a brace expansion.
	Brace bool
	// Split words may turn into any number of words.
	Split bool
	// Tilde words begin with an unquoted ~.
	Tilde bool
}

// An Assign is one assignment.
type Assign struct {
	Name   string
	Value  Word
	Source string
	// Plain assignments have a simple name: no subscript, no array, no +=.
	Plain bool
}

// A RedirectKind says what a redirection does to its target.
type RedirectKind uint8

const (
	RedirectRead  RedirectKind = iota
	RedirectWrite              // creates, truncates or appends
	RedirectData               // here-document, here-string: no file
	RedirectDup                // to another descriptor: no file
)

// A Redirect is one redirection.
type Redirect struct {
	Kind   RedirectKind
	Op     string
	Target Word
}

// Canonical is w as rules are written: quoted only where it has to be.
func (w Word) Canonical() string {
	if w.Known && !w.Glob && !w.Tilde {
		return quote(w.Text)
	}
	return w.Source
}

// SourceText is c as it was written, with one blank between words.
func (c *Command) SourceText() string {
	n := 0
	for _, w := range c.Argv {
		n += len(w.Source) + 1
	}
	b := make([]byte, 0, n)
	for i, w := range c.Argv {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, w.Source...)
	}
	return string(b)
}

// Optional reports whether w may turn into an option or into several words.
func (w Word) Optional() bool {
	if w.Choices != nil && !w.Glob {
		return slices.ContainsFunc(w.Choices, func(s string) bool { return s == "" || s[0] == '-' })
	}
	return w.Split || w.Brace || (!w.Known || w.Glob) && (w.Prefix == "" || w.Prefix[0] == '-')
}

// IsOption reports whether w begins as options do.
func (w Word) IsOption() bool { return len(w.Prefix) > 1 && w.Prefix[0] == '-' }

// Literal returns the word that is s and nothing else.
func Literal(s string) Word { return Word{Text: s, Source: s, Known: true, Prefix: s} }

// Declares reports whether c is export, declare or one of their kin, whose
// assignments are arguments.
func (c *Command) Declares() bool {
	switch c.Program() {
	case "local", "declare", "typeset", "readonly", "export", "nameref":
		return true
	}
	return false
}

// Tilde expands the tilde that text begins with; "" if that cannot be told.
func (s *Script) Tilde(text string) string { return s.env.tilde(text) }

// System reports whether program is looked up in PATH, or lies where the
// system keeps its programs.
func System(program string) bool {
	if strings.IndexByte(program, '/') < 0 {
		return true
	}
	switch path.Dir(program) {
	case "/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin":
		return path.Clean(program) == program
	}
	return false
}
