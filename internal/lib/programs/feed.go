package programs

import (
	"path"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/lib/shellcmd"
)

// more stands for the words that xargs appends.
const more = "…"

// fed returns the trees from which c, the command before a pipe, lists names;
// nil if that is not certain.
func fed(s *shellcmd.Script, c *shellcmd.Command) []Path {
	for c != nil && filters(c) {
		c = c.From
	}
	if c == nil || c.Opaque != "" || c.More || Changes(c) != "" {
		return nil
	}
	has := func(options ...string) bool {
		return slices.ContainsFunc(c.Argv[1:], func(a shellcmd.Word) bool { return slices.Contains(options, a.Text) })
	}
	switch path.Base(c.Program()) {
	case "find":
		if has("-printf", "-files0-from") {
			return nil
		}
	case "fd", "fdfind":
	case "rg":
		if !has("-l", "--files", "--files-with-matches") {
			return nil
		}
	case "grep":
		if !has("-l", "-rl", "-lr", "-rL", "--files-with-matches") {
			return nil
		}
	case "git":
		if !has("ls-files", "--name-only") {
			return nil
		}
	default:
		return nil
	}
	list := append(Paths(s, c), pathOf(s, c, shellcmd.Literal("."), Reads))
	for i := range list {
		if list[i].Access > Enters || len(list[i].Abs) == 0 {
			return nil
		}
		list[i].Access, list[i].Tree, list[i].Redirect = Reads, true, false
	}
	return list
}

// filters reports whether c passes on some of the lines it reads, unchanged.
func filters(c *shellcmd.Command) bool {
	if !c.Piped || c.Opaque != "" || c.More || len(c.Redirects) > 0 || len(c.Argv) == 0 {
		return false
	}
	operands := 0
	for _, a := range c.Argv[1:] {
		if a.Optional() {
			return false
		}
		if !a.IsOption() && strings.Trim(a.Text, "0123456789") != "" {
			operands++
		}
	}
	switch path.Base(c.Program()) {
	case "head", "tail", "sort", "uniq":
		return operands == 0
	case "grep":
		return operands <= 1 && !slices.ContainsFunc(c.Argv[1:], func(a shellcmd.Word) bool { return a.Text == "-o" || a.Text == "-f" || a.Text == "-r" })
	}
	return false
}
