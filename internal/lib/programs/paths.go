package programs

import (
	"path"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/lib/shellcmd"
)

// An Access is what a command does to a path.
type Access uint8

const (
	Reads   Access = iota
	Enters         // cd: later commands run there
	Writes         // creates, changes or truncates
	Deletes        // removes
)

func (a Access) String() string {
	return [...]string{"reads", "enters", "writes", "deletes"}[a]
}

// A Path is one path that a command names.
type Path struct {
	Access Access
	Text   string // as written
	// Abs are the absolute paths it may stand for, one for each directory the
	// command may run in. They may hold "..": what that means depends on
	// links. Nil is unknown. For a pattern they are the places that hold all
	// that matches.
	Abs []string
	// Pattern, if not "", is the glob whose matches are meant; relative to Abs.
	Pattern string
	// Tree accesses reach everything below the path.
	Tree bool
	// Redirect: a redirection, not an argument.
	Redirect bool
	// Some: of the tree only what passes a test (find -name).
	Some bool
}

// Paths returns what c does to which paths, redirections included. Paths of
// programs that are not known here are missing.
func Paths(s *shellcmd.Script, c *shellcmd.Command) []Path {
	var out []Path
	for _, r := range c.Redirects {
		switch {
		case r.Kind == shellcmd.RedirectWrite && !harmlessTarget(r.Target):
			out = append(out, pathOf(s, c, r.Target, Writes))
		case r.Kind == shellcmd.RedirectRead && !harmlessTarget(r.Target):
			out = append(out, pathOf(s, c, r.Target, Reads))
		}
	}
	for i := range out {
		out[i].Redirect = true
	}
	if len(c.Argv) == 0 || c.Opaque != "" || c.Defined {
		return out
	}
	p := pather{script: s, command: c, args: c.Argv[1:]}
	if c.More {
		p.args = append(p.args[:len(p.args):len(p.args)], shellcmd.Word{Source: more, Split: true})
	}
	p.collect(path.Base(c.Argv[0].Text))
	return append(out, p.out...)
}

// path resolves one word against the directories of c.
func pathOf(s *shellcmd.Script, c *shellcmd.Command, w shellcmd.Word, a Access) Path {
	p := Path{Access: a, Text: w.Source}
	if w.Choices != nil {
		for _, text := range w.Choices {
			one := pathOf(s, c, shellcmd.Word{Text: text, Source: w.Source, Known: true, Glob: w.Glob, Tilde: w.Tilde}, a)
			if len(one.Abs) == 0 {
				return Path{Access: a, Text: w.Source}
			}
			p.Abs = append(p.Abs, one.Abs...)
			p.Pattern = one.Pattern
		}
		return p
	}
	if !w.Known || w.Split {
		if w.Glob {
			p.Pattern = "*"
		}
		return p
	}
	text := w.Text
	if w.Tilde {
		if text = s.Tilde(text); text == "" {
			return p
		}
	}
	if w.Glob {
		cut := strings.LastIndexByte(text[:strings.IndexAny(text, "*?[")], '/') + 1
		dir, pattern := text[:cut], text[cut:]
		if strings.Contains(pattern, "..") {
			return p
		}
		p.Pattern = pattern
		if text = dir; text == "" {
			text = "."
		}
	}
	if text == "" {
		text = "."
	}
	if path.IsAbs(text) {
		p.Abs = []string{text}
		return p
	}
	for _, d := range c.Dirs {
		p.Abs = append(p.Abs, strings.TrimSuffix(d, "/")+"/"+text)
	}
	return p
}

// A pather collects the paths of one command.
type pather struct {
	script  *shellcmd.Script
	command *shellcmd.Command
	args    []shellcmd.Word
	out     []Path
}

func (p *pather) add(w shellcmd.Word, a Access) *Path {
	if a == Reads && p.command.More && w.Source == more {
		if list := fed(p.script, p.command.From); len(list) > 0 {
			p.out = append(p.out, list...)
			return &p.out[len(p.out)-1]
		}
	}
	p.out = append(p.out, pathOf(p.script, p.command, w, a))
	return &p.out[len(p.out)-1]
}

// operands returns the words that are no options, and those behind --.
func (p *pather) operands() []shellcmd.Word {
	var out []shellcmd.Word
	for i, a := range p.args {
		if a.Known && a.Text == "--" {
			return append(out, p.args[i+1:]...)
		}
		if !a.IsOption() {
			out = append(out, a)
		}
	}
	return out
}

// all adds every operand, and every option value that looks like a path.
func (p *pather) all(a Access, operands []shellcmd.Word) {
	for _, w := range operands {
		p.add(w, a)
	}
	p.values()
}

// values adds what options carry along: --file=/x, -f/x.
func (p *pather) values() {
	for _, w := range p.args {
		if !w.IsOption() {
			continue
		}
		if w.Text == "--" {
			return
		}
		_, val, eq := strings.Cut(w.Text, "=")
		if !eq && strings.HasPrefix(w.Text, "--") {
			continue
		}
		if !eq {
			if len(w.Text) < 3 {
				continue
			}
			if val = w.Text[2:]; !strings.ContainsAny(val, "/~") && !strings.HasPrefix(val, "..") {
				continue
			}
			if i := strings.IndexByte(val, '/'); i > 0 && val[0] != '.' {
				val = val[i:]
			}
		}
		if val == "" || eq && !strings.ContainsAny(val, "/~") && val != ".." {
			continue
		}
		v := shellcmd.Word{Text: val, Source: w.Source, Known: w.Known, Glob: w.Glob && strings.ContainsAny(val, "*?["), Split: w.Split}
		p.add(v, Reads)
	}
}

func (p *pather) option(letters string, long ...string) bool {
	for _, a := range p.args {
		if !a.Known {
			continue
		}
		if a.Text == "--" {
			return false
		}
		if strings.HasPrefix(a.Text, "--") {
			name, _, _ := strings.Cut(a.Text[2:], "=")
			for _, l := range long {
				if name != "" && strings.HasPrefix(l, name) {
					return true
				}
			}
		} else if len(a.Text) > 1 && a.Text[0] == '-' && strings.ContainsAny(a.Text[1:], letters) {
			return true
		}
	}
	return false
}

func (p *pather) collect(name string) {
	switch name {
	case "echo", "printf", "true", "false", ":", "pwd", "seq", "sleep", "expr", "id", "whoami", "groups", "uname", "uptime", "free",
		"nproc", "arch", "tty", "which", "whereis", "type", "cal", "locale", "getconf", "ps", "pgrep", "pidof", "lsblk", "lscpu",
		"exit", "return", "break", "continue", "shift", "basename", "dirname", "factor", "tr", "export", "local", "declare",
		"typeset", "readonly", "set", "command", "date", "hostname", "numfmt", "docker", "podman", "test", "[":
		p.quiet(name)
	case "cd":
		if ops := p.operands(); len(ops) > 0 {
			p.add(ops[len(ops)-1], Enters)
		} else {
			p.add(shellcmd.Word{Text: "~", Source: "~", Known: true, Tilde: true}, Enters)
		}
	case "cat", "head", "tail", "wc", "stat", "du", "df", "realpath", "readlink", "nl", "cut", "paste", "comm", "fold", "expand",
		"unexpand", "rev", "tac", "od", "hexdump", "xxd", "strings", "md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum",
		"sha512sum", "b2sum", "cksum", "sum", "ls", "cmp", "column", "uniq", "diff", "sort", "tree", "file", "tsort", "look", "less", "more", "bat",
		"base64", "base32", "zcat", "gzcat", "xzcat", "bzcat", "zless", "vim", "vi", "nano", "source", ".":
		p.reader(name)
	case "grep", "egrep", "fgrep", "rg", "zgrep", "ag", "fd", "fdfind", "jq", "yq":
		p.search(name)
	case "awk", "gawk", "mawk", "nawk":
		p.afterProgram()
	case "sed", "gsed":
		p.sed()
	case "find":
		p.find()
	case "git":
		p.git()
	default:
		p.writer(name)
	}
}

// quiet handles programs whose arguments are mostly no paths.
func (p *pather) quiet(name string) {
	switch name {
	case "date":
		for i, a := range p.args {
			if i > 0 && (p.args[i-1].Text == "-r" || p.args[i-1].Text == "-f" || p.args[i-1].Text == "--reference" || p.args[i-1].Text == "--file") {
				p.add(a, Reads)
			}
		}
		p.values()
	case "test", "[":
		for i, a := range p.args {
			if i > 0 && len(p.args[i-1].Text) == 2 && p.args[i-1].Text[0] == '-' && strings.IndexByte("edfrwxsLhbcpSugkGON", p.args[i-1].Text[1]) >= 0 && a.Text != "]" {
				p.add(a, Reads)
			}
		}
	}
}

func (p *pather) reader(name string) {
	from := len(p.out)
	ops := p.operands()
	p.all(Reads, ops)
	switch {
	case name == "diff" && p.option("r", "recursive"):
		for i := from; i < len(p.out); i++ {
			p.out[i].Tree = true
		}
	case name == "sort":
		for i, a := range p.args {
			if a.Text == "-o" && i+1 < len(p.args) {
				p.add(p.args[i+1], Writes)
			} else if v, ok := strings.CutPrefix(a.Text, "--output="); ok && a.Known {
				p.add(shellcmd.Literal(v), Writes)
			} else if v, ok := strings.CutPrefix(a.Text, "-o"); ok && v != "" && a.Known {
				p.add(shellcmd.Literal(v), Writes)
			}
		}
	case name == "uniq" && len(ops) > 1, name == "xxd" && len(ops) > 1:
		p.add(ops[len(ops)-1], Writes)
	case name == "vim", name == "vi", name == "nano":
		for _, o := range ops {
			p.add(o, Writes)
		}
	}
}

// search handles programs whose first operand is a pattern, unless an option gives it.
func (p *pather) search(name string) {
	given := false
	var ops []shellcmd.Word
	rest := false
	for i := 0; i < len(p.args); i++ {
		a := p.args[i]
		switch t := a.Text; {
		case rest || !a.IsOption():
			ops = append(ops, a)
		case t == "--":
			rest = true
		case (t == "-e" || t == "--regexp") && name != "jq":
			given = true
			i++ // its value
		case (t == "-f" || t == "--file" || t == "--from-file") && name != "fd":
			given = true
			if i++; i < len(p.args) {
				p.add(p.args[i], Reads)
			}
		case (strings.HasPrefix(t, "-e") || strings.HasPrefix(t, "--regexp=") || strings.HasPrefix(t, "-f") || strings.HasPrefix(t, "--file=")) && name != "jq" && name != "fd" && name != "fdfind":
			given = true
		case name == "jq" && (t == "--arg" || t == "--argjson"):
			i += 2
		case takesValue(t):
			i++
		}
	}
	if !given && len(ops) > 0 {
		ops = ops[1:]
	}
	from := len(p.out)
	p.all(Reads, ops)
	tree := name == "rg" || name == "ag" || name != "jq" && name != "yq" && name != "fd" && name != "fdfind" && p.option("rR", "recursive", "dereference-recursive")
	if tree && len(ops) == 0 && !p.command.Piped {
		p.add(shellcmd.Literal("."), Reads)
	}
	for i := from; tree && i < len(p.out); i++ {
		p.out[i].Tree = true
	}
}

// takesValue names options of search programs whose value is no path.
func takesValue(t string) bool {
	switch t {
	case "-A", "-B", "-C", "-m", "--max-count", "--after-context", "--before-context", "--context", "-g", "--glob", "--iglob",
		"-t", "--type", "-T", "--type-not", "--include", "--exclude", "--exclude-dir", "-d", "-D", "--color", "--indent", "--max-depth":
		return true
	}
	return false
}

// afterProgram handles awk: the first operand is the program.
func (p *pather) afterProgram() {
	for i := 0; i < len(p.args); i++ {
		switch t := p.args[i].Text; {
		case t == "-F" || t == "-v":
			i++
		case t == "-f" && i+1 < len(p.args):
			i++
			p.add(p.args[i], Reads)
		case strings.HasPrefix(t, "-") && len(t) > 1:
		default:
			for _, a := range p.args[min(i+1, len(p.args)):] {
				p.add(a, Reads)
			}
			return
		}
	}
}

func (p *pather) sed() {
	inPlace := p.option("i", "in-place")
	given := false
	var ops []shellcmd.Word
	for i := 0; i < len(p.args); i++ {
		switch t := p.args[i].Text; {
		case t == "-e" || t == "--expression":
			given = true
			i++
		case t == "-f" || t == "--file":
			given = true
			if i++; i < len(p.args) {
				p.add(p.args[i], Reads)
			}
		case strings.HasPrefix(t, "--expression="), strings.HasPrefix(t, "-e"):
			given = true
		case p.args[i].IsOption():
		default:
			ops = append(ops, p.args[i])
		}
	}
	if !given && len(ops) > 0 {
		ops = ops[1:]
	}
	for _, o := range ops {
		p.add(o, Reads)
		if inPlace {
			p.add(o, Writes)
		}
	}
}

func (p *pather) git() {
	i, why := gitCommand(p.args)
	for k := 0; k+1 < len(p.args) && k < i; k++ {
		if p.args[k].Text == "-C" {
			p.add(p.args[k+1], Enters)
		}
	}
	if why != "" || i >= len(p.args) {
		return
	}
	sub, rest := p.args[i].Text, p.args[i+1:]
	switch sub {
	case "clean":
		p.args = rest
		if p.option("n", "dry-run") || !p.option("f", "force") {
			return
		}
		p.deletes(p.operands(), p.option("dxX", "directories"))
	case "rm", "mv", "checkout", "restore":
		for _, a := range rest {
			if !a.IsOption() && a.Known && sub != "checkout" {
				p.add(a, Writes)
			}
		}
	case "show", "cat-file", "blame":
		for _, a := range rest {
			if _, file, ok := strings.Cut(a.Text, ":"); ok && a.Known && file != "" {
				p.add(shellcmd.Literal(file), Reads)
			} else if sub == "blame" && !a.IsOption() {
				p.add(a, Reads)
			}
		}
	}
}
