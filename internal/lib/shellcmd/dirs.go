package shellcmd

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// dirs are the directories a shell may be in. Nil is anywhere.
type dirs []string

const maxDirs = 8

func (d dirs) or(e dirs) dirs {
	if d == nil || e == nil {
		return nil
	}
	out := d
	for _, x := range e {
		if !slices.Contains(out, x) {
			out = append(slices.Clip(out), x)
		}
	}
	if len(out) > maxDirs {
		return nil
	}
	return out
}

// moved returns where the shell is after c succeeded and after it failed.
func (w *walker) moved(c *Command, at dirs) (ok, fail dirs) {
	argv := c.Argv
	for len(argv) > 0 && (argv[0].Text == "builtin" || argv[0].Text == "command") && argv[0].Known {
		argv = argv[1:]
	}
	if len(argv) == 0 {
		return at, at
	}
	if !argv[0].Known {
		return nil, nil
	}
	switch argv[0].Text {
	case "pushd", "popd", "eval", "source", ".", "trap":
		return nil, nil
	case "cd":
		return w.changed(argv[1:], at), at
	}
	return at, at
}

// changed is where cd with these arguments leads.
func (w *walker) changed(args []Word, at dirs) dirs {
	for len(args) > 0 && args[0].Known && (args[0].Text == "--" || args[0].Text == "-L") {
		args = args[1:]
	}
	var to Word
	switch {
	case len(args) == 0:
		if w.env.Home == "" || !w.homeStays() {
			return nil
		}
		return dirs{path.Clean(w.env.Home)}
	case len(args) > 1:
		return nil
	default:
		to = args[0]
	}
	if !to.Known || to.Glob || to.Split || to.Text == "" || strings.HasPrefix(to.Text, "-") {
		return nil
	}
	if to.Tilde {
		abs := w.env.tilde(to.Text)
		if abs == "" {
			return nil
		}
		return dirs{path.Clean(abs)}
	}
	if path.IsAbs(to.Text) {
		return dirs{path.Clean(to.Text)}
	}
	if at == nil {
		return nil
	}
	out := make(dirs, 0, len(at))
	for _, d := range at {
		if p := path.Join(d, to.Text); !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// tilde expands the tilde that text begins with; "" if that cannot be told.
func (e Env) tilde(text string) string {
	if e.Home == "" {
		return ""
	}
	if text == "~" {
		return e.Home
	}
	if rest, ok := strings.CutPrefix(text, "~/"); ok {
		return strings.TrimSuffix(e.Home, "/") + "/" + rest
	}
	return "" // ~user, ~+, ~-
}

// moves reports whether running n may leave the shell in another directory.
func (w *walker) moves(n syntax.Node) bool {
	found := false
	syntax.Walk(n, func(n syntax.Node) bool {
		if w.scans++; w.scans > maxScans {
			found = true
			return false
		}
		if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 {
			switch lit := c.Args[0].Lit(); lit {
			case "", "cd", "pushd", "popd", "eval", "source", ".", "builtin", "command", "trap":
				found = true
			default:
				if strings.ContainsAny(lit, `\{}*?[`) {
					found = true
				}
			}
		}
		return !found
	})
	return found
}
