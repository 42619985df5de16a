package shellcmd

import (
	"slices"
	"strings"
)

// The functions here return "" if a program with these arguments changes
// nothing, otherwise what speaks against it.

const notSpelled = "words that are not spelled out"

// optional reports whether a may turn into an option or into several words.
func optional(a Word) bool {
	if a.Choices != nil && !a.Glob {
		return slices.ContainsFunc(a.Choices, func(s string) bool { return s == "" || s[0] == '-' })
	}
	return a.Split || a.Brace || (!a.Known || a.Glob) && (a.Prefix == "" || a.Prefix[0] == '-')
}

func anyOptional(args []Word) bool {
	for _, a := range args {
		if optional(a) {
			return true
		}
	}
	return false
}

func isOption(a Word) bool { return len(a.Prefix) > 1 && a.Prefix[0] == '-' }

func atMostOneOperand(args []Word) string {
	n := 0
	for _, a := range args {
		if optional(a) || a.Glob {
			return notSpelled
		}
		if !isOption(a) {
			n++
		}
	}
	// Values of options count too; that only makes it stricter.
	if n > 1 {
		return "a second operand is written to"
	}
	return ""
}

func noOperand(args []Word) string {
	for _, a := range args {
		if optional(a) || !isOption(a) {
			return "an operand sets it"
		}
	}
	return ""
}

func dateArgs(args []Word) string {
	for i, a := range args {
		switch {
		case optional(a):
			return notSpelled
		case isOption(a), strings.HasPrefix(a.Prefix, "+"):
		case i > 0 && (args[i-1].Text == "-d" || args[i-1].Text == "-r" || args[i-1].Text == "-f" ||
			args[i-1].Text == "--date" || args[i-1].Text == "--reference" || args[i-1].Text == "--file"):
		default:
			return "an operand sets the clock"
		}
	}
	return ""
}

func findArgs(args []Word) string {
	for _, a := range args {
		switch {
		case optional(a):
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

func sedArgs(args []Word) string {
	script, explicit := "", false
	for i := 0; i < len(args); i++ {
		a := args[i]
		if optional(a) {
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

func awkArgs(args []Word) string {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch t := a.Prefix; {
		case optional(a):
			return notSpelled
		case t == "-F" || t == "-v":
			if i++; i < len(args) && optional(args[i]) {
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

func printfArgs(args []Word) string {
	if len(args) == 0 {
		return ""
	}
	if optional(args[0]) || strings.HasPrefix(args[0].Prefix, "-") {
		return "its format may be an option"
	}
	if !args[0].Known || strings.Contains(args[0].Text, "n") && strings.Contains(args[0].Text, "%") && hasPercentN(args[0].Text) {
		return "its format may assign a variable"
	}
	return ""
}

func hasPercentN(f string) bool {
	for i := strings.IndexByte(f, '%'); i >= 0 && i < len(f); {
		j := i + 1
		for j < len(f) && strings.IndexByte("0123456789.-+ #*hlLqjzt'", f[j]) >= 0 {
			j++
		}
		if j < len(f) && f[j] == 'n' {
			return true
		}
		k := strings.IndexByte(f[min(j+1, len(f)):], '%')
		if k < 0 {
			return false
		}
		i = min(j+1, len(f)) + k
	}
	return false
}

func commandArgs(args []Word) string {
	if len(args) > 0 && (args[0].Text == "-v" || args[0].Text == "-V") && args[0].Known {
		return ""
	}
	return "it runs its arguments"
}

// testArgs judges test and [, where an operand in the place of an operator
// may evaluate a subscript.
func testArgs(args []Word) string {
	if n := len(args); n > 0 && args[n-1].Text == "]" {
		args = args[:n-1]
	}
	spelled := true
	for _, a := range args {
		if a.Split {
			return notSpelled
		}
		spelled = spelled && a.Known
	}
	for i, a := range args {
		if a.Known && (a.Text == "-v" || a.Text == "-R") && (i+1 >= len(args) || !args[i+1].Known || !isName(args[i+1].Text)) {
			return a.Text
		}
	}
	if spelled {
		return ""
	}
	for len(args) > 0 && args[0].Known && args[0].Text == "!" {
		args = args[1:]
	}
	switch {
	case len(args) < 2:
		return ""
	case len(args) == 2 && args[0].Known && isOption(args[0]), len(args) == 3 && args[1].Known && binaryTest(args[1].Text):
		return ""
	}
	return notSpelled
}

func binaryTest(op string) bool {
	switch op {
	case "=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef":
		return true
	}
	return false
}

func declareArgs(name string) func([]Word) string {
	return func(args []Word) string {
		for _, a := range args {
			switch {
			case optional(a), strings.HasPrefix(a.Text, "-"):
				return "with options"
			}
			n, _, assigns := strings.Cut(a.Text, "=")
			if !isName(n) {
				return "with a subscript"
			}
			if (name == "export" && !SafeVariable(n)) || assigns && shellVariable(n) {
				return "changes what programs see"
			}
		}
		return ""
	}
}

func setArgs(args []Word) string {
	for i, a := range args {
		switch {
		case !a.Known:
			return notSpelled
		case i > 0 && strings.HasSuffix(args[i-1].Text, "o"):
			if a.Text != "pipefail" && a.Text != "errexit" && a.Text != "nounset" && a.Text != "noglob" {
				return a.Text
			}
		case len(a.Text) > 1 && (a.Text[0] == '-' || a.Text[0] == '+') && strings.Trim(a.Text[1:], "eufo") == "":
		default:
			return a.Text
		}
	}
	return ""
}

// versionArgs judges programs that are only asked for their version.
func versionArgs(name string) func([]Word) string {
	return func(args []Word) string {
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

func dockerArgs(args []Word) string {
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
		if optional(a) {
			return notSpelled
		}
		if t := a.Prefix; t == "-H" || strings.HasPrefix(t, "--host") || strings.HasPrefix(t, "--context") || strings.HasPrefix(t, "--config") {
			return t
		}
	}
	return ""
}
