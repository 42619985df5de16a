package shellcmd

import "strings"

// ReadOnly reports whether command, run by bash in cwd, changes nothing and
// runs nothing but programs that are known to change nothing. It says nothing
// about which files are read. It is safe for concurrent use.
func ReadOnly(command, cwd string) bool {
	return Parse(command, Env{Dir: cwd}).ReadOnly() == ""
}

// ReadOnly returns "" if nothing is changed by s, otherwise the first reason
// why that cannot be said.
func (s *Script) ReadOnly() string {
	if why := s.Untrusted(); why != "" {
		return why
	}
	for _, c := range s.Commands {
		if why := c.ReadOnly(); why != "" {
			return why
		}
		for _, r := range c.Redirects {
			if r.Kind == RedirectWrite && !harmlessTarget(r.Target) {
				return "writes to " + r.Target.Source
			}
		}
	}
	return ""
}

// Untrusted returns "" if what s does can be told from its commands alone,
// otherwise why it cannot: then only a person may approve it.
func (s *Script) Untrusted() string {
	switch {
	case s.Problem != "":
		return s.Problem
	case len(s.Source) > Trusted:
		return "longer than 10,000 characters"
	case len(s.Hazards) > 0:
		return s.Hazards[0]
	}
	for _, a := range s.Assigns {
		if why := s.lasting(a); why != "" {
			return why
		}
	}
	return ""
}

// lasting says why an assignment that stays in the shell may change what
// later commands do.
func (s *Script) lasting(a Assign) string {
	if shellVariable(a.Name) {
		return "assigns " + a.Name + ", which changes how commands run"
	}
	exported := false
	if s.env.Exported != nil {
		exported = s.env.Exported(a.Name)
	} else {
		exported = strings.ToLower(a.Name) != a.Name || strings.HasSuffix(a.Name, "_proxy") || strings.HasPrefix(a.Name, "npm_")
	}
	if exported && !SafeVariable(a.Name) {
		return "assigns " + a.Name + ", which other programs may see"
	}
	return ""
}

// shellVariable names variables that steer bash itself.
func shellVariable(name string) bool {
	switch name {
	case "", "PATH", "IFS", "ENV", "HOME", "PWD", "OLDPWD", "CDPATH", "GLOBIGNORE", "SHELLOPTS", "PROMPT_COMMAND",
		"POSIXLY_CORRECT", "EXECIGNORE", "INPUTRC", "HISTFILE", "TMPDIR", "TMOUT", "SHELL", "FIGNORE", "FPATH",
		"PS0", "PS1", "PS2", "PS3", "PS4", "TIMEFORMAT", "OPTIND", "OPTARG", "REPLY", "DIRSTACK", "FUNCNAME",
		"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "TEXTDOMAIN", "TEXTDOMAINDIR", "COPROC", "MAPFILE":
		return true
	}
	return strings.HasPrefix(name, "BASH") || strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") || strings.HasPrefix(name, "COMP_")
}

// SafeVariable reports whether setting name for a program cannot make it run,
// load, read or write anything else.
func SafeVariable(name string) bool {
	switch name {
	case "LANG", "LANGUAGE", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME", "TZ",
		"NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLORTERM", "COLUMNS", "LINES",
		"NODE_ENV", "RAILS_ENV", "RACK_ENV", "APP_ENV", "ENVIRONMENT", "CI", "DEBUG", "VERBOSE", "LOG_LEVEL",
		"RUST_BACKTRACE", "RUST_LOG", "GOOS", "GOARCH", "CGO_ENABLED", "GO111MODULE", "PYTHONUNBUFFERED",
		"PYTHONDONTWRITEBYTECODE", "PYTHONIOENCODING", "PYTHONUTF8", "NODE_NO_WARNINGS", "TERM",
		"GIT_OPTIONAL_LOCKS", "GIT_TERMINAL_PROMPT", "CARGO_TERM_COLOR", "DJANGO_DEBUG", "FLASK_DEBUG":
		return true
	}
	return false
}

// harmlessTarget reports whether writing to t reaches no file.
func harmlessTarget(t Word) bool {
	if !t.Known {
		return strings.HasPrefix(t.Prefix, "/dev/fd/")
	}
	switch t.Text {
	case "/dev/null", "/dev/stdout", "/dev/stderr":
		return true
	}
	n, ok := strings.CutPrefix(t.Text, "/dev/fd/")
	return ok && isNumber(n)
}

// ReadOnly returns "" if c changes nothing, apart from its redirections and
// from what the commands inside it do; otherwise why that cannot be said.
func (c *Command) ReadOnly() string {
	if c.Opaque != "" {
		return c.Opaque
	}
	for _, a := range c.Assigns {
		if len(c.Argv) == 0 {
			break // judged with the script
		}
		if !SafeVariable(a.Name) && !c.declares() {
			return "runs with " + a.Name + " set"
		}
	}
	switch {
	case len(c.Argv) == 0, c.Defined, c.Transparent:
		return ""
	}
	program := c.Argv[0].Text
	if !trusted(program) {
		return program + " is not a program of the system"
	}
	args := c.Argv[1:]
	if c.More {
		args = append(args[:len(args):len(args)], Word{Source: "…", Split: true})
	}
	r, ok := readerOf(base(program))
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

func (c *Command) declares() bool {
	switch c.Program() {
	case "local", "declare", "typeset", "readonly", "export":
		return true
	}
	return false
}

// A reader is a program that changes nothing, but for the options named here.
type reader struct {
	options string // letters of short options that disqualify
	long    string // long options that do, space separated
	check   func(args []Word) string
}

// forbidden returns the first of args that is, or may turn into, a forbidden option.
func (r reader) forbidden(args []Word) string {
	for _, a := range args {
		t := a.Prefix
		switch {
		case a.Known && !a.Glob && a.Text == "--":
			return ""
		case a.Choices != nil && !optional(a):
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
	case "test", "[":
		return reader{check: testArgs}, true
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
	case "set":
		return reader{check: setArgs}, true
	// Not go, cargo, yarn and the like: files of the project choose what they run, even for --version.
	case "node", "npm", "deno", "python", "python3", "ruby", "gem", "java", "javac", "gcc", "clang", "cmake", "make", "php",
		"pip", "pip3", "tsc", "perl":
		return reader{check: versionArgs(name)}, true
	}
	return reader{}, false
}
