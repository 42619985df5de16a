package programs

import (
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/lib/shellcmd"
)

// gitArgs judges git: which of its commands only look, and which options
// make even those run or write something.
func gitArgs(args []shellcmd.Word) string {
	i, why := gitCommand(args)
	if why != "" {
		return why
	}
	if i >= len(args) {
		return ""
	}
	sub, rest := args[i].Text, args[i+1:]
	spelled := reader{long: "output ext-diff textconv open-files-in-pager exec upload-pack no-index show-signature"}
	switch sub {
	case "status", "log", "show", "diff", "ls-files", "ls-tree", "rev-parse", "rev-list", "describe", "blame", "annotate",
		"shortlog", "merge-base", "name-rev", "for-each-ref", "show-ref", "diff-tree", "diff-index", "diff-files", "count-objects",
		"check-ignore", "check-attr", "cherry", "range-diff", "show-branch", "whatchanged", "version", "var", "merge-tree", "patch-id":
		if why := spelled.forbidden(rest); why != "" {
			return why
		}
		if sub == "merge-tree" || sub == "rev-parse" && hasWord(rest, "--parseopt") {
			return sub + " is not judged"
		}
		return ""
	case "grep":
		spelled.options = "O"
		return spelled.forbidden(rest)
	case "cat-file":
		spelled.long = "textconv filters"
		return spelled.forbidden(rest)
	}
	if anyOptional(rest) {
		return notSpelled
	}
	return gitListing(sub, rest)
}

// gitListing judges commands that look only in some of their forms.
func gitListing(sub string, rest []shellcmd.Word) string {
	const no = "not a command that only looks"
	first := ""
	if len(rest) > 0 {
		first = rest[0].Text
	}
	switch sub {
	case "branch", "tag":
		list := len(rest) == 0
		for _, a := range rest {
			switch t := a.Text; {
			case t == "-l", t == "--list", t == "--show-current":
				list = true
			case t == "-a", t == "-r", t == "-v", t == "-vv", t == "-n", t == "--all", t == "--remotes", t == "--verbose", t == "--no-color":
				list = list || len(rest) == 1 || sub == "branch" && allOptions(rest)
			case strings.HasPrefix(t, "--sort="), strings.HasPrefix(t, "--format="), strings.HasPrefix(t, "--contains="), strings.HasPrefix(t, "--merged="), strings.HasPrefix(t, "--points-at="):
				list = list || allOptions(rest)
			case strings.HasPrefix(t, "-"):
				return t
			}
		}
		if list {
			return ""
		}
	case "remote":
		if first == "" || first == "-v" && len(rest) == 1 || first == "get-url" {
			return ""
		}
	case "stash":
		if first == "list" || first == "show" && !hasRunning(rest) {
			return ""
		}
	case "reflog":
		if first == "" || first == "show" || first == "HEAD" {
			return ""
		}
	case "worktree":
		if first == "list" {
			return ""
		}
	case "config":
		switch first {
		case "--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list":
			for _, a := range rest {
				if strings.HasPrefix(a.Text, "--f") || a.Text == "-f" || strings.HasPrefix(a.Text, "--blob") {
					return a.Text
				}
			}
			return ""
		}
	}
	return no
}

func allOptions(args []shellcmd.Word) bool {
	for _, a := range args {
		if !a.IsOption() {
			return false
		}
	}
	return true
}

func hasWord(args []shellcmd.Word, text string) bool {
	for _, a := range args {
		if a.Text == text {
			return true
		}
	}
	return false
}

func hasRunning(args []shellcmd.Word) bool {
	return reader{long: "output ext-diff textconv"}.forbidden(args) != ""
}

// gitCommand returns the index of git's command word in args. why names an
// option before it that may make git run or read something else.
func gitCommand(args []shellcmd.Word) (i int, why string) {
	for i = 0; i < len(args); i++ {
		a := args[i]
		switch {
		case !a.Known || a.Glob || a.Brace:
			return i, notSpelled
		case a.Text == "-C":
			if i++; i >= len(args) || !args[i].Known || args[i].Glob {
				return i, notSpelled
			}
		case a.Text == "--no-pager", a.Text == "-P", a.Text == "--no-optional-locks", a.Text == "--literal-pathspecs",
			a.Text == "--glob-pathspecs", a.Text == "--noglob-pathspecs", a.Text == "--icase-pathspecs", a.Text == "--version":
		case strings.HasPrefix(a.Text, "-"):
			return i, a.Text
		default:
			return i, ""
		}
	}
	return i, ""
}
