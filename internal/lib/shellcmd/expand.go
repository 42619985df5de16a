package shellcmd

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// part walks an expansion: what runs inside it, and what it evaluates.
func (w *walker) part(p syntax.WordPart) {
	switch p := p.(type) {
	case *syntax.Lit, *syntax.SglQuoted:
	case *syntax.DblQuoted:
		for _, q := range p.Parts {
			w.part(q)
		}
	case *syntax.CmdSubst:
		if p.Backquotes && strings.IndexByte(w.text(p), '\\') >= 0 {
			// The backslashes are taken off before the inside is read.
			w.hazard("backslashes inside backquotes")
		}
		w.substitution(p.Stmts)
	case *syntax.ProcSubst:
		w.substitution(p.Stmts)
	case *syntax.ParamExp:
		w.param(p)
	case *syntax.ArithmExp:
		w.arithmetic(p.X)
	case *syntax.ExtGlob:
		w.hazard("an extended pattern")
	default:
		w.hazard("an expansion that is not known here")
	}
}

// substitution walks commands that run in a subshell of their own.
func (w *walker) substitution(list []*syntax.Stmt) {
	at := w.at
	if w.parent != nil {
		at = w.parent.Dirs
	}
	w.inside(w.parent, RoleSubst, w.covered && w.role == RoleCode, func() { w.stmts(list, at) })
}

func (w *walker) param(p *syntax.ParamExp) {
	if p.Flags != nil || p.NestedParam != nil || p.Width || p.IsSet || len(p.Modifiers) > 0 ||
		p.Split != 0 || p.GlobSubst != 0 || p.RcExpand != 0 {
		w.hazard("an expansion that only other shells know")
	}
	if p.Excl && p.Names == 0 && !listIndex(p.Index) {
		w.hazard("an indirect expansion")
	}
	if p.Index != nil {
		w.subscript(p.Index)
	}
	if p.Slice != nil {
		w.arithmetic(p.Slice.Offset)
		w.arithmetic(p.Slice.Length)
	}
	if p.Repl != nil {
		w.operand(p.Repl.Orig)
		w.operand(p.Repl.With)
	}
	if p.Exp == nil {
		return
	}
	w.operand(p.Exp.Word)
	switch p.Exp.Op {
	case syntax.OtherParamOps:
		if op := p.Exp.Word.Lit(); op == "" || strings.Trim(op, "QEAaUuLKk") != "" {
			w.hazard("an expansion that evaluates the value again")
		}
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if p.Param != nil {
			w.assigned(p.Param.Value, false)
			w.script.Assigns = append(w.script.Assigns, Assign{Name: p.Param.Value, Source: w.text(p), Plain: true, Value: Word{Source: "…", Split: true}})
		}
	}
}

func (w *walker) operand(x *syntax.Word) {
	if x != nil {
		for _, p := range x.Parts {
			w.part(p)
		}
	}
}

func listIndex(x syntax.ArithmExpr) bool {
	word, ok := x.(*syntax.Word)
	if !ok {
		return false
	}
	lit := word.Lit()
	return lit == "@" || lit == "*"
}

// subscript walks the index of an array, which is arithmetic unless it is @ or *.
func (w *walker) subscript(x syntax.ArithmExpr) {
	if !listIndex(x) {
		w.arithmetic(x)
	}
}

// arithmetic walks x. A variable in it is evaluated as an expression in its
// turn, subscripts and the substitutions in them included; so all of its
// variables must only ever hold numbers.
func (w *walker) arithmetic(x syntax.ArithmExpr) {
	if x == nil {
		return
	}
	s := sum{}
	w.term(x, &s)
	if len(s.names) > 0 {
		s.source = w.text(x)
		w.sums = append(w.sums, s)
	}
}

// Variables that the shell itself keeps numeric.
const shellNumbers = " # ? $ ! RANDOM SECONDS LINENO PPID UID EUID BASHPID SRANDOM EPOCHSECONDS "

func (w *walker) term(x syntax.ArithmExpr, s *sum) {
	switch x := x.(type) {
	case nil:
	case *syntax.BinaryArithm:
		switch x.Op {
		case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn,
			syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn,
			syntax.AndBoolAssgn, syntax.OrBoolAssgn, syntax.XorBoolAssgn, syntax.PowAssgn:
			w.target(x.X)
			if x.Op != syntax.Assgn {
				w.term(x.X, s)
			}
		default:
			w.term(x.X, s)
		}
		w.term(x.Y, s)
	case *syntax.UnaryArithm:
		if x.Op == syntax.Inc || x.Op == syntax.Dec {
			w.target(x.X)
		}
		w.term(x.X, s)
	case *syntax.ParenArithm:
		w.term(x.X, s)
	case *syntax.Word:
		w.atom(x, s)
	default:
		w.hazard("arithmetic that only other shells know")
	}
}

// target notes that arithmetic assigns a number to x.
func (w *walker) target(x syntax.ArithmExpr) {
	word, ok := x.(*syntax.Word)
	if !ok {
		return
	}
	if name := word.Lit(); syntax.ValidName(name) {
		w.assigned(name, true)
		w.script.Assigns = append(w.script.Assigns, Assign{Name: name, Source: name, Plain: true, Value: Word{Source: "…"}})
	}
}

func (w *walker) atom(x *syntax.Word, s *sum) {
	if len(x.Parts) != 1 {
		w.unsafe(x)
		return
	}
	switch p := x.Parts[0].(type) {
	case *syntax.Lit:
		switch {
		case isNumber(p.Value) || isHex(p.Value):
		case syntax.ValidName(p.Value):
			s.names = append(s.names, p.Value)
		default:
			w.unsafe(x)
		}
	case *syntax.ParamExp:
		w.param(p)
		switch {
		case p.Length:
		case p.Param != nil && !p.Excl && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Exp == nil && p.Names == 0:
			if !strings.Contains(shellNumbers, " "+p.Param.Value+" ") {
				s.names = append(s.names, p.Param.Value)
			}
		default:
			w.hazard("arithmetic over a value that is not known: " + w.text(x))
		}
	case *syntax.ArithmExp:
		w.term(p.X, s)
	default:
		w.unsafe(x)
	}
}

func (w *walker) unsafe(x *syntax.Word) {
	w.operand(x)
	w.hazard("arithmetic over a value that is not known: " + w.text(x))
}

func isHex(s string) bool {
	rest, ok := strings.CutPrefix(strings.ToLower(s), "0x")
	if !ok || rest == "" {
		return false
	}
	for i := 0; i < len(rest); i++ {
		if digit(rest[i]) > 15 {
			return false
		}
	}
	return true
}

// test walks the expression of [[ … ]].
func (w *walker) test(x syntax.TestExpr) {
	switch x := x.(type) {
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			for _, side := range []syntax.TestExpr{x.X, x.Y} {
				word, ok := side.(*syntax.Word)
				if !ok {
					w.hazard("a comparison of numbers that are not known")
					continue
				}
				w.number(word)
			}
		default:
			w.test(x.X)
			w.test(x.Y)
		}
	case *syntax.UnaryTest:
		if word, ok := x.X.(*syntax.Word); ok && (x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar) && !syntax.ValidName(word.Lit()) {
			w.hazard("a test that evaluates a subscript")
		}
		w.test(x.X)
	case *syntax.ParenTest:
		w.test(x.X)
	case *syntax.Word:
		w.operand(x)
	}
}

// number walks a word that is evaluated as arithmetic, quotes taken off.
func (w *walker) number(x *syntax.Word) {
	if len(x.Parts) == 1 {
		if q, ok := x.Parts[0].(*syntax.DblQuoted); ok && len(q.Parts) == 1 && !q.Dollar {
			x = &syntax.Word{Parts: q.Parts}
		}
	}
	if v := x.Lit(); len(v) > 1 && v[0] == '-' && isNumber(v[1:]) {
		return
	}
	w.arithmetic(x)
}

// assigned notes an assignment to name.
func (w *walker) assigned(name string, number bool) {
	if w.numbers == nil {
		w.numbers = make(map[string]bool)
	}
	before, seen := w.numbers[name]
	w.numbers[name] = number && (before || !seen)
}

// settle judges the arithmetic seen, now that all assignments are known.
func (w *walker) settle() {
	for _, s := range w.sums {
		if slices.ContainsFunc(s.names, func(n string) bool { return w.anything || !w.numbers[n] }) {
			w.hazard("arithmetic over a value that is not known: " + s.source)
		}
	}
}
