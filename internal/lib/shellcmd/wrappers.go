package shellcmd

import (
	"path"
	"strings"
)

// A wrapper is a program whose arguments are another command.
type wrapper struct {
	short string // letters of options that take a value
	long  string // names of long options that take a separate value, space separated
	skip  int    // operands before the command
	// through: the wrapper changes nothing about what the command may do, so
	// that the command alone is judged.
	through bool
	exact   bool // only an exact rule may allow it
	env     bool // NAME=VALUE operands come before the command
	number  bool // -10 is an option
}

// wrapperOf describes the wrappers whose arguments can be told apart with certainty.
func wrapperOf(name string) (wrapper, bool) {
	switch name {
	case "timeout":
		return wrapper{short: "ks", long: "kill-after signal", skip: 1, through: true}, true
	case "nice":
		return wrapper{short: "n", long: "adjustment", through: true, number: true}, true
	case "nohup", "noglob":
		return wrapper{through: true}, true
	case "stdbuf":
		return wrapper{short: "ioe", long: "input output error", through: true}, true
	case "command", "builtin":
		return wrapper{through: true}, true
	case "time":
		return wrapper{short: "fo", long: "format output"}, true
	case "exec":
		return wrapper{short: "a"}, true
	case "env":
		return wrapper{short: "uC", long: "unset chdir", env: true}, true
	case "sudo":
		return wrapper{short: "ughpCrtTUDR", long: "user group host prompt close-from role type command-timeout other-user chdir chroot", env: true}, true
	case "doas":
		return wrapper{short: "uC"}, true
	case "setsid":
		return wrapper{exact: true}, true
	case "ionice":
		return wrapper{short: "cnpPu", long: "class classdata pid pgid uid", exact: true}, true
	case "chrt":
		return wrapper{short: "TPDp", long: "sched-runtime sched-period sched-deadline", skip: 1, exact: true}, true
	case "taskset":
		return wrapper{skip: 1, exact: true}, true
	case "strace", "ltrace":
		return wrapper{short: "abeEIoOpPsSuUX", exact: true}, true
	case "busybox", "toybox", "setarch", "linux64", "i386", "x86_64", "fakeroot":
		return wrapper{exact: true}, true
	}
	return wrapper{}, false
}

// Programs that run what their arguments or input say in ways that are not
// worth telling apart: all their arguments count as code.
const runners = " su runuser ssh parallel script docker podman nerdctl kubectl npx pnpx bunx uvx pipx direnv devbox mise asdf" +
	" nix nix-shell gdb lldb unshare nsenter chroot systemd-run firejail bwrap proot tmux screen entr xvfb-run" +
	" dbus-run-session watch flock at batch crontab expect vim vi nvim ex emacs ed make gmake ninja tar rsync scp sftp zip man less more" +
	" git hg svn start-stop-daemon daemonize setpriv capsh ld.so ld-linux-x86-64.so.2 "

// base is the name of the program without its directory.
func base(program string) string { return path.Base(program) }

// unwrap adds the commands that c runs through its arguments, and notes
// what of c cannot be told.
func (w *walker) unwrap(c *Command) {
	if len(c.Argv) == 0 || c.Argv[0].Glob || !c.Argv[0].Known || c.Argv[0].Text == "" {
		if len(c.Argv) > 0 && c.Opaque == "" {
			c.Opaque = "its program is not spelled out: " + c.Argv[0].Source
		}
		return
	}
	program := c.Argv[0].Text
	name := base(program)
	switch name {
	case "bash", "sh", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish":
		w.shell(c)
	case "eval":
		w.eval(c)
	case "trap":
		if len(c.Argv) > 1 && c.Argv[1].Text != "-" && c.Argv[1].Text != "-l" && c.Argv[1].Text != "-p" {
			w.code(c, c.Argv[1], false)
		}
	case "find":
		w.find(c)
	case "xargs":
		w.xargs(c)
	case "read", "mapfile", "readarray", "getopts", "unset", "enable", "alias", "shopt", "hash", "compgen", "complete", "bind", "fc", "set", "wait", "printf", "export", "readonly", "declare", "typeset", "local":
		w.variables(c, name)
	case "test", "[":
		if testArgs(c.Argv[1:]) != "" {
			w.hazard("a test that may evaluate a subscript")
		}
	case "source", ".":
		w.anything = true
		if len(c.Argv) > 1 && (!c.Argv[1].Known || c.Argv[1].Glob || strings.HasPrefix(c.Argv[1].Text, "/dev/") || strings.HasPrefix(c.Argv[1].Text, "/proc/")) {
			c.Opaque = "what is sourced is not spelled out: " + c.Argv[1].Source
		}
	default:
		w.interpreter(c, name)
	}
	spec, ok := wrapperOf(name)
	if !ok {
		return
	}
	c.ExactOnly = spec.exact
	i, sure := skipOptions(c.Argv, spec)
	if !sure {
		c.Code += joinText(c.Argv[1:])
		c.Opaque = "what " + name + " runs is not spelled out"
		return
	}
	if i >= len(c.Argv) {
		return
	}
	switch name {
	case "command":
		if len(c.Argv) > 1 && strings.HasPrefix(c.Argv[1].Text, "-") && c.Argv[1].Text != "-p" && c.Argv[1].Text != "--" {
			return // command -v only looks
		}
	case "time":
		spec.through = i == 1 || i == 2 && c.Argv[1].Text == "-p"
	}
	c.Transparent = spec.through && System(program)
	w.wrapped(c, c.Argv[i:], i)
}

// wrapped adds the command that c runs: argv, which begins at word from of c.
func (w *walker) wrapped(c *Command, argv []Word, from int) *Command {
	inner := &Command{Argv: argv, Dirs: c.Dirs, More: c.More}
	for _, a := range c.Argv[1:from] {
		if name, val, ok := strings.Cut(a.Text, "="); ok && a.Known && isName(name) {
			inner.Assigns = append(inner.Assigns, Assign{Name: name, Source: a.Source, Plain: true, Value: Literal(val)})
		}
	}
	w.inside(c, RoleWrap, c.Covered || !c.Transparent, func() {
		w.add(inner)
		inner.Piped, inner.From = c.Piped, c.From
		w.unwrap(inner)
	})
	return inner
}

// skipOptions returns the index of the wrapped program in argv. sure is
// false if an expansion stands where that is decided.
func skipOptions(argv []Word, spec wrapper) (i int, sure bool) {
	skip := spec.skip
	for i = 1; i < len(argv); i++ {
		a := argv[i]
		if !a.Known || a.Glob || a.Brace {
			if a.Split || a.Glob || a.Brace || a.Prefix == "" || a.Prefix[0] == '-' || skip == 0 {
				return i, skip == 0 && !strings.HasPrefix(a.Prefix, "-") && a.Prefix != ""
			}
			skip--
			continue
		}
		t := a.Text
		switch {
		case t == "--":
			return i + 1 + skip, true
		case strings.HasPrefix(t, "--"):
			if strings.IndexByte(t, '=') < 0 && strings.Contains(" "+spec.long+" ", " "+t[2:]+" ") {
				i++
			}
		case len(t) > 1 && t[0] == '-':
			for k := 1; k < len(t); k++ {
				if t[k] == 'S' && spec.env {
					return i, false // env -S splits a string into a command
				}
				if strings.IndexByte(spec.short, t[k]) >= 0 {
					if k == len(t)-1 {
						i++
					}
					break
				}
			}
		case spec.env && strings.IndexByte(t, '=') > 0:
		case skip > 0:
			skip--
		default:
			return i, true
		}
	}
	return i, true
}

func isName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return s != ""
}

func (w *walker) xargs(c *Command) {
	spec := wrapper{short: "aEIidLlnPsr", long: "arg-file delimiter eof replace max-lines max-args max-procs max-chars process-slot-var"}
	spec.short = "aEIdLnPs"
	i, sure := skipOptions(c.Argv, spec)
	if !sure {
		c.Opaque = "what xargs runs is not spelled out"
		return
	}
	if i >= len(c.Argv) {
		return // runs echo
	}
	c.More = true
	c.Transparent = i == 1 && System(c.Argv[0].Text)
	argv := c.Argv[i:]
	for k := 1; k < i; k++ {
		if t := c.Argv[k].Text; strings.HasPrefix(t, "-I") || strings.HasPrefix(t, "-i") || strings.HasPrefix(t, "--replace") {
			argv = placeholder(argv, replacement(t, c.Argv[k+1:]))
		}
	}
	w.wrapped(c, argv, i)
}

// replacement is the string that xargs replaces, from option t.
func replacement(t string, rest []Word) string {
	if _, v, ok := strings.Cut(t, "="); ok {
		return v
	}
	if strings.HasPrefix(t, "--") || t == "-i" {
		return "{}"
	}
	if len(t) > 2 {
		return t[2:]
	}
	if len(rest) > 0 {
		return rest[0].Text
	}
	return "{}"
}

// placeholder returns argv with the words that hold mark made unknown.
func placeholder(argv []Word, mark string) []Word {
	out := make([]Word, len(argv))
	for i, a := range argv {
		if k := strings.Index(a.Text, mark); mark != "" && k >= 0 {
			a.Known, a.Prefix = false, a.Text[:k]
		}
		out[i] = a
	}
	return out
}

func (w *walker) find(c *Command) {
	for i := 1; i < len(c.Argv); i++ {
		a := c.Argv[i]
		if !a.Known {
			continue
		}
		switch a.Text {
		case "-exec", "-execdir", "-ok", "-okdir":
		case "-delete", "-fls", "-fprint", "-fprint0", "-fprintf":
			c.ExactOnly = true
			continue
		default:
			continue
		}
		c.ExactOnly = true
		end := i + 1
		for end < len(c.Argv) && c.Argv[end].Text != ";" && c.Argv[end].Text != "+" {
			end++
		}
		if end == i+1 {
			continue
		}
		inner := &Command{Argv: placeholder(c.Argv[i+1:end], "{}"), Dirs: c.Dirs}
		if strings.HasSuffix(a.Text, "dir") {
			inner.Dirs = nil
		}
		w.inside(c, RoleWrap, true, func() {
			w.add(inner)
			w.unwrap(inner)
		})
		i = end
	}
}

// shell handles bash -c and its kin.
func (w *walker) shell(c *Command) {
	c.ExactOnly = false
	i := 1
	for ; i < len(c.Argv); i++ {
		a := c.Argv[i]
		if !a.Known || a.Glob || a.Split {
			c.Opaque = "what the shell runs is not spelled out: " + a.Source
			return
		}
		if len(a.Text) < 2 || a.Text[0] != '-' && a.Text[0] != '+' {
			break
		}
		if strings.HasPrefix(a.Text, "--") {
			if a.Text == "--rcfile" || a.Text == "--init-file" {
				i++
			}
			continue
		}
		if strings.IndexByte(a.Text, 'c') > 0 {
			for i++; i < len(c.Argv) && len(c.Argv[i].Text) > 1 && (c.Argv[i].Text[0] == '-' || c.Argv[i].Text[0] == '+'); i++ {
				if strings.HasSuffix(c.Argv[i].Text, "o") || strings.HasSuffix(c.Argv[i].Text, "O") {
					i++
				}
			}
			if i < len(c.Argv) {
				w.code(c, c.Argv[i], true)
			}
			return
		}
		if strings.HasSuffix(a.Text, "o") || strings.HasSuffix(a.Text, "O") {
			i++
		}
	}
	if i < len(c.Argv) && c.Argv[i].Text != "-" && !strings.HasPrefix(c.Argv[i].Text, "/dev/") && !strings.HasPrefix(c.Argv[i].Text, "/proc/") {
		return // a script file
	}
	w.stdin(c)
}

// stdin handles a shell that reads its commands from its input.
func (w *walker) stdin(c *Command) {
	for _, r := range c.Redirects {
		if r.Kind == RedirectData {
			if r.Op == "<<<" || r.Target.Known {
				w.code(c, r.Target, true)
				return
			}
			c.Opaque = "the shell runs text that is not spelled out"
			return
		}
		if r.Kind == RedirectRead {
			return // a script file
		}
	}
	if c.Piped || c.More || c.Role == RoleWrap {
		c.Opaque = "the shell runs what it reads"
	}
}

func (w *walker) eval(c *Command) {
	w.anything = true
	args := c.Argv[1:]
	var b strings.Builder
	for i, a := range args {
		if !a.Known || a.Glob {
			c.Opaque = "eval runs text that is not spelled out: " + a.Source
			return
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(a.Text)
	}
	w.code(c, Literal(b.String()), false)
}

// code parses text, which c hands to a shell; fresh if that is a new one.
func (w *walker) code(c *Command, text Word, fresh bool) {
	if !text.Known {
		c.Opaque = "the shell runs text that is not spelled out: " + text.Source
		return
	}
	functions, anything := w.functions, w.anything
	if fresh {
		w.functions = nil
	}
	w.inside(c, RoleCode, true, func() {
		hazards := len(w.script.Hazards)
		w.parse(text.Text, c.Dirs)
		if fresh {
			// What is odd in there is for the rule that allows c to take.
			w.script.Hazards = w.script.Hazards[:hazards]
		}
	})
	w.functions = functions
	if fresh {
		w.anything = anything
	}
}

// variables handles builtins that assign variables or change the shell
// itself. A name with a subscript is evaluated, substitutions included.
func (w *walker) variables(c *Command, name string) {
	args := c.Argv[1:]
	switch name {
	case "printf":
		if len(args) == 0 || printfArgs(args[:1]) == "" {
			return
		}
		args = args[:min(2, len(args))]
		if len(args) == 2 && args[0].Known && args[0].Text == "-v" && args[1].Known && isName(args[1].Text) && !shellVariable(args[1].Text) {
			w.anything = true
			return
		}
		w.hazard("printf may assign a variable")
	case "enable", "alias", "shopt", "hash", "compgen", "complete", "bind", "fc":
		w.hazard(name + " may change what commands do")
	case "set":
		if setArgs(args) != "" {
			w.hazard("set may change how the shell reads commands")
		}
		return
	case "mapfile", "readarray":
		if len(args) > 0 {
			w.hazard(name + " may run code")
		}
	}
	w.anything = true
	for _, a := range args {
		if a.Optional() || strings.IndexByte(a.Text, '[') >= 0 {
			w.hazard(name + " may evaluate a subscript")
		}
		if before, _, _ := strings.Cut(a.Text, "="); before != "" && shellVariable(before) {
			w.hazard(name + " changes " + before)
		}
	}
}

// interpreter notes program text handed to an interpreter of another language.
func (w *walker) interpreter(c *Command, name string) {
	stem := strings.TrimRight(name, "0123456789.")
	args := c.Argv[1:]
	switch stem {
	case "python", "pypy", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "luajit", "osascript", "Rscript", "R",
		"awk", "gawk", "mawk", "nawk", "sed", "gsed", "jq", "tclsh", "guile", "ghc", "julia", "swift", "pwsh", "powershell", "elixir", "erl", "sqlite", "psql", "mysql":
	default:
		if !strings.Contains(runners, " "+name+" ") {
			for _, a := range args {
				if opt, _, ok := strings.Cut(a.Text, "="); ok && hasRunOption(opt) || hasRunOption(a.Text) {
					c.Code += joinText(args)
					return
				}
			}
			return
		}
		if name == "git" && !gitRuns(args) {
			return
		}
	}
	c.Code += joinText(args)
	for _, r := range c.Redirects {
		if r.Kind == RedirectData {
			c.Code += "\n" + r.Target.Text
		}
	}
}

func hasRunOption(opt string) bool {
	switch opt {
	case "--pre", "--exec", "--exec-batch", "--command", "--run", "--use-compress-program", "--to-command",
		"--checkpoint-action", "--compress-program", "--rsh", "--hostname-bin":
		return true
	}
	return false
}

// gitRuns reports whether git is told to run something of the caller's choice.
func gitRuns(args []Word) bool {
	for _, a := range args {
		switch t := a.Text; {
		case t == "-c", strings.HasPrefix(t, "-c"), strings.HasPrefix(t, "--config-env"), strings.HasPrefix(t, "--exec"),
			t == "-x", t == "foreach", t == "bisect", t == "filter-branch", t == "config", strings.HasPrefix(t, "--upload-pack"),
			strings.HasPrefix(t, "--receive-pack"), strings.HasPrefix(t, "-O"), strings.HasPrefix(t, "--open-files"),
			strings.HasPrefix(t, "ext::"), t == "difftool", t == "mergetool":
			return true
		}
	}
	return false
}

func joinText(words []Word) string {
	var b strings.Builder
	for i, a := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(a.Text)
	}
	return b.String()
}
