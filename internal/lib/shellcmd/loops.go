package shellcmd

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxChoices bounds the values of a loop variable that are followed.
const maxChoices = 16

// A trial is a loop variable under one of its values.
type trial struct{ name, value string }

// bind lets the variable of a loop stand for items; the function it returns
// ends that.
func (w *walker) bind(name string, items []Word) (unbind func()) {
	for _, it := range items {
		if !it.Known || it.Tilde || it.Split {
			items = nil
			break
		}
	}
	before, had := w.loops[name]
	if w.loops == nil {
		w.loops = make(map[string][]Word)
	}
	delete(w.loops, name)
	if n := len(items); n > 0 && n <= maxChoices {
		w.loops[name] = items
	}
	return func() {
		delete(w.loops, name)
		if had {
			w.loops[name] = before
		}
	}
}

// steady reports whether nothing in the body of loop may assign name.
func (w *walker) steady(loop *syntax.ForClause, name string) bool {
	ok := true
	syntax.Walk(loop, func(n syntax.Node) bool {
		if w.scans++; w.scans > maxScans {
			ok = false
			return false
		}
		switch n := n.(type) {
		case *syntax.Assign:
			ok = ok && n.Name != nil && n.Name.Value != name
		case *syntax.WordIter:
			ok = ok && (n.Name.Value != name || n == loop.Loop)
		case *syntax.ParamExp:
			ok = ok && !(n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull))
		case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.FuncDecl, *syntax.DeclClause:
			ok = false
		case *syntax.CallExpr:
			if len(n.Args) == 0 {
				break
			}
			switch lit := n.Args[0].Lit(); lit {
			case "", "read", "mapfile", "readarray", "getopts", "unset", "eval", "source", ".", "printf", "builtin", "command", "wait", "trap":
				ok = false
			default:
				ok = ok && !strings.ContainsAny(lit, `\{}*?[`) || lit == "["
			}
		}
		return ok
	})
	return ok
}

// choice evaluates a word that holds a loop variable, for each of its values.
// ok is false if there is none, or if that settles nothing.
func (w *walker) choice(parts []syntax.WordPart, x *syntax.Word) (out Word, ok bool) {
	name := w.loopName(parts)
	if name == "" {
		return out, false
	}
	items := w.loops[name]
	if w.scans += len(items); w.scans > maxScans {
		return out, false
	}
	out.Source = w.text(x)
	out.Text = out.Source
	if slices.ContainsFunc(items, func(it Word) bool { return it.Glob }) {
		// A name that matched stands for itself, nothing may be added to it.
		if len(items) != 1 || !onlyPart(parts) {
			return out, false
		}
		out.Glob, out.Choices, out.Prefix = true, []string{items[0].Text}, items[0].Prefix
		return out, true
	}
	loops, before := w.loops, w.trying
	w.loops = nil
	defer func() { w.loops, w.trying = loops, before }()
	for i, it := range items {
		w.trying = trial{name, it.Text}
		v := w.word(parts, x)
		if !v.Known || v.Split || v.Glob {
			return out, false
		}
		out.Choices = append(out.Choices, v.Text)
		if i == 0 {
			out.Prefix, out.Tilde = v.Text, v.Tilde
		}
		for !strings.HasPrefix(v.Text, out.Prefix) {
			out.Prefix = out.Prefix[:len(out.Prefix)-1]
		}
	}
	return out, true
}

// loopName is the one loop variable that parts hold as $name, "" if there is
// none, more than one, or anything else that runs.
func (w *walker) loopName(parts []syntax.WordPart) string {
	name := ""
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
		case *syntax.DblQuoted:
			n := w.loopName(p.Parts)
			if n == "" && !literalParts(p.Parts) || n != "" && name != "" && n != name {
				return ""
			}
			if n != "" {
				name = n
			}
		case *syntax.ParamExp:
			n := plainName(p)
			if _, bound := w.loops[n]; !bound || name != "" && n != name {
				return ""
			}
			name = n
		default:
			return ""
		}
	}
	return name
}

func literalParts(parts []syntax.WordPart) bool {
	for _, p := range parts {
		if _, ok := p.(*syntax.Lit); !ok {
			return false
		}
	}
	return true
}

// onlyPart reports whether parts are one expansion and nothing else.
func onlyPart(parts []syntax.WordPart) bool {
	if len(parts) != 1 {
		return false
	}
	switch p := parts[0].(type) {
	case *syntax.ParamExp:
		return true
	case *syntax.DblQuoted:
		return len(p.Parts) == 1
	}
	return false
}
