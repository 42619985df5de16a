package shellcmd

import "strings"

// The functions here return "" if a builtin with these arguments only does
// what it says, otherwise what speaks against it.

const notSpelled = "words that are not spelled out"

func printfArgs(args []Word) string {
	if len(args) == 0 {
		return ""
	}
	if args[0].Optional() || strings.HasPrefix(args[0].Prefix, "-") {
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
	case len(args) == 2 && args[0].Known && args[0].IsOption(), len(args) == 3 && args[1].Known && binaryTest(args[1].Text):
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
