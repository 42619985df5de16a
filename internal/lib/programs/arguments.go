package programs

import (
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/lib/shellcmd"
)

// The functions here return "" if a program with these arguments changes
// nothing, otherwise what speaks against it.

const notSpelled = "words that are not spelled out"

func anyOptional(args []shellcmd.Word) bool {
	for _, a := range args {
		if a.Optional() {
			return true
		}
	}
	return false
}

func atMostOneOperand(args []shellcmd.Word) string {
	n := 0
	for _, a := range args {
		if a.Optional() || a.Glob {
			return notSpelled
		}
		if !a.IsOption() {
			n++
		}
	}
	// Values of options count too; that only makes it stricter.
	if n > 1 {
		return "a second operand is written to"
	}
	return ""
}

func noOperand(args []shellcmd.Word) string {
	for _, a := range args {
		if a.Optional() || !a.IsOption() {
			return "an operand sets it"
		}
	}
	return ""
}

func dateArgs(args []shellcmd.Word) string {
	for i, a := range args {
		switch {
		case a.Optional():
			return notSpelled
		case a.IsOption(), strings.HasPrefix(a.Prefix, "+"):
		case i > 0 && (args[i-1].Text == "-d" || args[i-1].Text == "-r" || args[i-1].Text == "-f" ||
			args[i-1].Text == "--date" || args[i-1].Text == "--reference" || args[i-1].Text == "--file"):
		default:
			return "an operand sets the clock"
		}
	}
	return ""
}

func findArgs(args []shellcmd.Word) string {
	for _, a := range args {
		switch {
		case a.Optional():
			return notSpelled
		case !strings.HasPrefix(a.Prefix, "-"):
			continue
		case !a.Known:
			return notSpelled
		}
		switch a.Text {
		case "-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls", "-files0-from":
			return a.Text
		}
	}
	return ""
}

func sedArgs(args []shellcmd.Word) string {
	script, explicit := "", false
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a.Optional() {
			return notSpelled
		}
		switch t := a.Prefix; {
		case t == "-e" || t == "--expression":
			if i++; i >= len(args) || !args[i].Known || args[i].Glob {
				return "its script is not spelled out"
			}
			script, explicit = script+"\n"+args[i].Text, true
		case strings.HasPrefix(t, "--"):
			name, val, _ := strings.Cut(t[2:], "=")
			switch {
			case strings.HasPrefix("expression", name):
				if !a.Known {
					return "its script is not spelled out"
				}
				script, explicit = script+"\n"+val, true
			case name == "quiet", name == "silent", name == "regexp-extended", name == "null-data", name == "separate",
				name == "posix", name == "sandbox", name == "unbuffered", name == "debug", name == "version", name == "help":
			default:
				return t
			}
		case len(t) > 1 && t[0] == '-':
			if strings.Trim(t[1:], "nErsuz") != "" || !a.Known {
				return t
			}
		case !explicit && script == "":
			if !a.Known || a.Glob {
				return "its script is not spelled out"
			}
			script = "\n" + a.Text
		}
	}
	return SedRuns(script)
}

// SedRuns says what of a sed script may write or run something, "" for
// nothing. It knows the forms that are common in one-liners, and lets no
// others pass.
func SedRuns(script string) string {
	const odd = "its script does more than print, delete and substitute"
	for line := range strings.FieldsFuncSeq(script, func(r rune) bool { return r == '\n' || r == ';' }) {
		rest := strings.TrimLeft(strings.TrimSpace(line), " \t{")
		rest, ok := skipAddress(rest)
		if !ok {
			return odd
		}
		rest = strings.TrimLeft(rest, " \t!{")
		rest, ok = skipAddress(rest)
		if !ok {
			return odd
		}
		rest = strings.TrimSpace(strings.TrimRight(rest, " \t}"))
		switch {
		case rest == "":
		case strings.Trim(rest[:1], "pdDgGhHxnNPq=") == "" && strings.Trim(rest[1:], "0123456789") == "":
		case rest[0] == 's' && len(rest) > 1:
			parts := strings.Split(rest[2:], rest[1:2])
			if strings.ContainsAny(rest[1:2], " \\") || strings.IndexByte(rest, '\\') >= 0 && hasEscaped(rest, rest[1]) ||
				len(parts) != 3 || strings.Trim(parts[2], "gpIi0123456789") != "" {
				return odd
			}
		default:
			return odd
		}
	}
	return ""
}

func hasEscaped(s string, c byte) bool { return strings.Contains(s, `\`+string(c)) }

// skipAddress drops an address or a range from the front of s.
func skipAddress(s string) (rest string, ok bool) {
	for range 2 {
		switch {
		case s == "":
			return "", true
		case s[0] == '$':
			s = s[1:]
		case s[0] >= '0' && s[0] <= '9':
			s = strings.TrimLeft(s, "0123456789~")
		case s[0] == '/':
			end := strings.IndexByte(s[1:], '/')
			if end < 0 || strings.IndexByte(s[1:end+1], '\\') >= 0 && strings.HasSuffix(s[1:end+1], `\`) {
				return s, false
			}
			s = s[end+2:]
		default:
			return s, s[0] != '\\'
		}
		s = strings.TrimLeft(s, " \t")
		if !strings.HasPrefix(s, ",") {
			return s, true
		}
		s = strings.TrimLeft(s[1:], " \t+~")
	}
	return s, true
}

func awkArgs(args []shellcmd.Word) string {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch t := a.Prefix; {
		case a.Optional():
			return notSpelled
		case t == "-F" || t == "-v":
			if i++; i < len(args) && args[i].Optional() {
				return notSpelled
			}
		case strings.HasPrefix(t, "-F") || strings.HasPrefix(t, "-v"):
		case strings.HasPrefix(t, "-"):
			return t
		default:
			if !a.Known || a.Glob {
				return "its program is not spelled out"
			}
			return AwkRuns(a.Text)
		}
	}
	return "it has no program"
}

// AwkRuns says what of an awk program may write or run something, "" for nothing.
func AwkRuns(program string) string {
	for _, word := range []string{"system", "getline", "|", ">", "@", "close", "fflush", "extension"} {
		if strings.Contains(program, word) {
			return "its program holds " + word
		}
	}
	return ""
}

func commandArgs(args []shellcmd.Word) string {
	if len(args) > 0 && (args[0].Text == "-v" || args[0].Text == "-V") && args[0].Known {
		return ""
	}
	return "it runs its arguments"
}

func declareArgs(name string) func([]shellcmd.Word) string {
	return func(args []shellcmd.Word) string {
		for _, a := range args {
			switch {
			case a.Optional(), strings.HasPrefix(a.Text, "-"):
				return "with options"
			}
			n, _, _ := strings.Cut(a.Text, "=")
			if name == "export" && !shellcmd.SafeVariable(n) {
				return "changes what programs see"
			}
		}
		return ""
	}
}

// versionArgs judges programs that are only asked for their version.
func versionArgs(name string) func([]shellcmd.Word) string {
	return func(args []shellcmd.Word) string {
		if len(args) == 1 && args[0].Known {
			switch t := args[0].Text; {
			case t == "--version", t == "-version" && strings.HasPrefix(name, "java"),
				t == "-V" && (name == "python" || name == "python3"), t == "-v" && (name == "node" || name == "npm" || name == "php" || name == "perl"):
				return ""
			}
		}
		return "only asking for its version changes nothing"
	}
}

func dockerArgs(args []shellcmd.Word) string {
	if len(args) == 0 {
		return ""
	}
	if !args[0].Known {
		return notSpelled
	}
	switch args[0].Text {
	case "ps", "images", "logs", "inspect", "version", "info", "top", "port", "history", "--version":
	default:
		return "not a command that only looks"
	}
	for _, a := range args {
		if a.Optional() {
			return notSpelled
		}
		if t := a.Prefix; t == "-H" || strings.HasPrefix(t, "--host") || strings.HasPrefix(t, "--context") || strings.HasPrefix(t, "--config") {
			return t
		}
	}
	return ""
}

func printfArgs(args []shellcmd.Word) string {
	if len(args) > 0 && (args[0].Optional() || strings.HasPrefix(args[0].Prefix, "-")) {
		return "its format may be an option"
	}
	return ""
}

// SedEdits returns "" if c is a sed whose script only prints, deletes and
// substitutes, whether or not in place; otherwise what speaks against it.
func SedEdits(c *shellcmd.Command) string {
	var args []shellcmd.Word
	for _, a := range c.Argv[1:] {
		if a.Known && (a.Text == "-i" || a.Text == "--in-place") {
			continue
		}
		args = append(args, a)
	}
	return sedArgs(args)
}
