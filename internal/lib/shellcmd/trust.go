package shellcmd

import "strings"

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
