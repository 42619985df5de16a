package shellcmd

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Bounds on what one command line may unfold to. Past them it is a Problem.
const (
	maxCommands = 4000
	maxNesting  = 12
	maxScans    = 20_000 // nodes looked at ahead, for loops
)

// Parse reads src as bash would. It never fails: what could not be read is
// in Script.Problem.
func Parse(src string, env Env) *Script {
	s := &Script{Source: src, env: env}
	w := &walker{script: s, src: src, env: env}
	var at dirs
	if env.Dir != "" {
		at = dirs{path.Clean(env.Dir)}
	}
	w.parse(src, at)
	w.settle()
	return s
}

// A walker turns syntax into commands. It is used by one goroutine, once.
type walker struct {
	script *Script
	src    string // the text that node positions refer to
	env    Env
	depth  int

	parent  *Command // holder of what is walked now
	role    Role
	covered bool
	piped   bool
	from    *Command // the simple command before the pipe
	stage   *Command // the simple command walked last, its insides apart
	at      dirs     // of the statement that is walked now

	numbers   map[string]bool   // variables assigned in the script: only ever a number?
	sums      []sum             // arithmetic over variables, judged at the end
	anything  bool              // any variable may hold anything
	functions map[string]bool   // defined so far, unconditionally; true: moves
	loops     map[string][]Word // what the variables of the loops around hold
	trying    trial
	full      bool
	scans     int // nodes looked at ahead so far
	read      int // bytes parsed so far
}

// A sum is arithmetic that is harmless if its variables only hold numbers.
type sum struct {
	names  []string
	source string
}

func (w *walker) problem(text string) {
	if w.script.Problem == "" {
		w.script.Problem = text
	}
}

func (w *walker) hazard(text string) {
	if len(w.script.Hazards) < 16 && !slices.Contains(w.script.Hazards, text) {
		w.script.Hazards = append(w.script.Hazards, text)
	}
}

// parse reads text, a whole script of its own, and walks it.
func (w *walker) parse(text string, at dirs) (ok, fail dirs) {
	if why := unreadable(text); why != "" {
		w.problem(why)
		if len(text) > limit || strings.ContainsRune(text, 0) {
			return nil, nil
		}
	}
	if w.read += len(text); w.read > 4*(len(w.script.Source)+1024) {
		w.problem("nested too deeply")
		return nil, nil
	}
	old := w.src
	w.src = text
	defer func() { w.src = old }()
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		w.problem("not valid bash: " + err.Error())
	}
	if f == nil {
		return nil, nil
	}
	return w.top(f.Stmts, at)
}

// top walks the statements that run unconditionally, one after another.
func (w *walker) top(list []*syntax.Stmt, at dirs) (ok, fail dirs) {
	ok, fail = at, at
	for _, st := range list {
		ok, fail = w.stmt(st, at)
		at = ok.or(fail)
		if f, is := st.Cmd.(*syntax.FuncDecl); is && f.Name != nil && !st.Background && w.parent == nil {
			if w.functions == nil {
				w.functions = make(map[string]bool)
			}
			w.functions[f.Name.Value] = w.functions[f.Name.Value] || w.moves(f.Body)
		}
	}
	return ok, fail
}

// unreadable names what in text bash and the parser here may read differently.
func unreadable(text string) string {
	if len(text) > limit {
		return "too long to be read"
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && text[i+1] == '\n':
			// A continuation may join the halves of any token, "$" and "(" among them.
			if i > 0 && text[i-1] != ' ' && text[i-1] != '\t' && text[i-1] != '\n' {
				return "a line ends with a backslash inside a word"
			}
		case c < ' ' && c != '\n' && c != '\t', c == 0x7f:
			return "contains control characters"
		}
	}
	return ""
}

func (w *walker) stmts(list []*syntax.Stmt, at dirs) (ok, fail dirs) {
	ok, fail = at, at
	for _, st := range list {
		ok, fail = w.stmt(st, at)
		at = ok.or(fail)
	}
	return ok, fail
}

func (w *walker) stmt(st *syntax.Stmt, at dirs) (ok, fail dirs) {
	if w.full {
		return nil, nil
	}
	if st.Coprocess || st.Disown {
		w.hazard("a form that only other shells know")
	}
	w.at = at
	if call, is := st.Cmd.(*syntax.CallExpr); is {
		ok, fail = w.call(call, st.Redirs, at)
	} else {
		if len(st.Redirs) > 0 {
			c := w.add(&Command{Dirs: at})
			w.redirects(c, st.Redirs)
		}
		ok, fail = at, at
		if st.Cmd != nil {
			ok, fail = w.command(st.Cmd, at)
		}
	}
	switch {
	case st.Background:
		return at, at
	case st.Negated:
		return fail, ok
	}
	return ok, fail
}

func (w *walker) command(cmd syntax.Command, at dirs) (ok, fail dirs) {
	switch x := cmd.(type) {
	case *syntax.BinaryCmd:
		return w.binary(x, at)
	case *syntax.Subshell:
		w.stmts(x.Stmts, at)
		return at, at
	case *syntax.Block:
		return w.stmts(x.Stmts, at)
	case *syntax.IfClause:
		return w.conditional(x, at)
	case *syntax.WhileClause:
		if w.moves(x) {
			at = nil
		}
		w.stmts(x.Cond, at)
		w.stmts(x.Do, at)
		return at, at
	case *syntax.ForClause:
		return w.loop(x, at)
	case *syntax.CaseClause:
		w.words(x.Word)
		all := at
		for _, it := range x.Items {
			for _, p := range it.Patterns {
				w.words(p)
			}
			from := at
			if it.Op != syntax.Break {
				from = all // falls into the next
			}
			o, f := w.stmts(it.Stmts, from)
			all = all.or(o).or(f)
		}
		return all, all
	case *syntax.TestClause:
		w.test(x.X)
	case *syntax.ArithmCmd:
		w.arithmetic(x.X)
	case *syntax.LetClause:
		for _, e := range x.Exprs {
			w.arithmetic(e)
		}
	case *syntax.DeclClause:
		w.declare(x, at)
	case *syntax.TimeClause:
		if x.Stmt != nil {
			return w.stmt(x.Stmt, at)
		}
	case *syntax.CoprocClause:
		w.hazard("a coprocess")
		w.stmt(x.Stmt, at)
	case *syntax.FuncDecl:
		if _, piped := x.Body.Cmd.(*syntax.BinaryCmd); piped {
			// Bash defines the function inside the pipeline, that is, nowhere.
			w.hazard("a function defined in a pipeline")
		}
		role := w.role
		w.role = RoleFunc
		w.stmt(x.Body, nil) // it runs wherever it is called
		w.role = role
	default:
		w.hazard("a construct that is not known here")
	}
	return at, at
}

func (w *walker) binary(x *syntax.BinaryCmd, at dirs) (ok, fail dirs) {
	switch x.Op {
	case syntax.AndStmt:
		s1, f1 := w.stmt(x.X, at)
		s2, f2 := w.stmt(x.Y, s1)
		return s2, f1.or(f2)
	case syntax.OrStmt:
		s1, f1 := w.stmt(x.X, at)
		s2, f2 := w.stmt(x.Y, f1)
		return s1.or(s2), f2
	}
	// Both sides of a pipe are subshells.
	w.stage = nil
	w.stmt(x.X, at)
	piped, from := w.piped, w.from
	w.piped, w.from = true, nil
	if simple(x.X) {
		w.from = w.stage
	}
	w.stmt(x.Y, at)
	w.piped, w.from = piped, from
	return at, at
}

// simple reports whether what st writes is written by one simple command.
func simple(st *syntax.Stmt) bool {
	switch c := st.Cmd.(type) {
	case *syntax.CallExpr:
		return true
	case *syntax.BinaryCmd:
		return (c.Op == syntax.Pipe || c.Op == syntax.PipeAll) && simple(c.Y)
	}
	return false
}

func (w *walker) conditional(x *syntax.IfClause, at dirs) (ok, fail dirs) {
	s, f := at, at
	if len(x.Cond) > 0 {
		s, f = w.stmts(x.Cond, at)
	}
	o1, f1 := w.stmts(x.Then, s)
	all := o1.or(f1)
	if x.Else != nil {
		o2, f2 := w.conditional(x.Else, f)
		all = all.or(o2).or(f2)
	} else {
		all = all.or(f)
	}
	return all, all
}

func (w *walker) loop(x *syntax.ForClause, at dirs) (ok, fail dirs) {
	if w.moves(x) {
		at = nil
	}
	if x.Select {
		w.hazard("select")
	}
	var items []Word
	switch l := x.Loop.(type) {
	case *syntax.WordIter:
		for _, it := range l.Items {
			items = append(items, w.words(it)...)
		}
		number := len(items) > 0
		for _, it := range items {
			number = number && it.Known && isNumber(it.Text)
		}
		w.assigned(l.Name.Value, number)
		w.script.Assigns = append(w.script.Assigns, Assign{Name: l.Name.Value, Source: l.Name.Value, Plain: true, Value: Word{Source: "…", Split: true}})
	case *syntax.CStyleLoop:
		for _, e := range []syntax.ArithmExpr{l.Init, l.Cond, l.Post} {
			w.arithmetic(e)
		}
	}
	if l, ok := x.Loop.(*syntax.WordIter); ok && w.functions == nil && w.steady(x, l.Name.Value) {
		defer w.bind(l.Name.Value, items)()
	}
	w.stmts(x.Do, at)
	return at, at
}

// add appends c to the script as a part of what is walked now.
func (w *walker) add(c *Command) *Command {
	c.Parent, c.Role, c.Covered, c.Piped, c.From = w.parent, w.role, w.covered, w.piped, w.from
	if c.Parent != nil {
		c.depth = c.Parent.depth + 1
	}
	if len(w.script.Commands) >= maxCommands {
		w.full = true
		w.problem("too many commands")
		return c
	}
	w.script.Commands = append(w.script.Commands, c)
	return c
}

// inside runs f with c as the holder of what f walks.
func (w *walker) inside(c *Command, role Role, covered bool, f func()) {
	if w.depth >= maxNesting {
		w.problem("nested too deeply")
		return
	}
	outer := *w
	w.parent, w.role, w.covered, w.piped, w.from = c, role, covered, false, nil
	w.depth++
	f()
	w.depth--
	w.parent, w.role, w.covered, w.piped, w.from, w.stage = outer.parent, outer.role, outer.covered, outer.piped, outer.from, outer.stage
}

// call walks a simple command.
func (w *walker) call(x *syntax.CallExpr, redirs []*syntax.Redirect, at dirs) (ok, fail dirs) {
	c := w.add(&Command{Dirs: at})
	holder := w.parent
	w.parent = c // substitutions in its words are its own
	for _, a := range x.Assigns {
		c.Assigns = append(c.Assigns, w.assign(a))
	}
	for _, a := range x.Args {
		c.Argv = append(c.Argv, w.words(a)...)
	}
	w.parent = holder
	w.redirects(c, redirs)
	if len(x.Args) == 0 {
		w.script.Assigns = append(w.script.Assigns, c.Assigns...)
		return at, at
	}
	ok, fail = w.run(c, at)
	w.stage = c
	return ok, fail
}

// run works out what c, whose words are known, would do to the shell.
func (w *walker) run(c *Command, at dirs) (ok, fail dirs) {
	if len(c.Argv) == 0 {
		return at, at
	}
	first := c.Argv[0]
	switch {
	case !first.Known || first.Glob || first.Split:
		c.Opaque = "its program is not spelled out: " + first.Source
		w.anything = true
		return nil, nil
	case first.Brace:
		c.Opaque = "its program comes out of a brace expansion"
	case first.Text == "":
		c.Opaque = "its program is an empty word"
	}
	if m, defined := w.functions[first.Text]; defined {
		c.Defined = true
		if m {
			return nil, nil
		}
		return at, at
	}
	w.unwrap(c)
	return w.moved(c, at)
}

func (w *walker) declare(x *syntax.DeclClause, at dirs) {
	c := w.add(&Command{Dirs: at, Argv: []Word{Literal(x.Variant.Value)}})
	holder := w.parent
	w.parent = c
	for _, a := range x.Args {
		if a.Naked && a.Name == nil {
			words := w.words(a.Value)
			c.Argv = append(c.Argv, words...)
			for _, word := range words {
				if !word.Known {
					w.anything = true // may expand to an assignment
				}
				if word.Optional() || strings.ContainsAny(word.Text, "[(") {
					w.hazard("a declaration that may evaluate a subscript")
				}
			}
			continue
		}
		as := w.assign(a)
		c.Argv = append(c.Argv, Word{Text: as.Source, Source: as.Source, Known: as.Value.Known || a.Naked, Prefix: as.Name})
		if !a.Naked {
			w.script.Assigns = append(w.script.Assigns, as)
		}
		c.Assigns = append(c.Assigns, as)
	}
	w.parent = holder
	if x.Variant.Value == "nameref" {
		w.anything = true
	}
	for _, word := range c.Argv[1:] {
		if strings.HasPrefix(word.Text, "-") && strings.ContainsAny(word.Text, "naiA") {
			w.anything = true
			w.hazard("a declaration that evaluates what it assigns")
		}
	}
}

func (w *walker) assign(a *syntax.Assign) Assign {
	as := Assign{Source: w.text(a), Plain: a.Index == nil && a.Array == nil && !a.Append}
	if a.Name != nil {
		as.Name = a.Name.Value
	}
	if a.Index != nil {
		w.subscript(a.Index)
	}
	switch {
	case a.Array != nil:
		for _, e := range a.Array.Elems {
			if e.Index != nil {
				w.subscript(e.Index)
			}
			if e.Value != nil {
				w.words(e.Value)
			}
		}
	case a.Value != nil:
		as.Value = w.word(a.Value.Parts, a.Value)
		as.Value.Glob = false
	default:
		as.Value = Literal("")
	}
	if !a.Naked {
		w.assigned(as.Name, as.Plain && isNumeric(a.Value, as.Value))
	}
	return as
}

// isNumeric reports whether a value is a number whatever happens.
func isNumeric(x *syntax.Word, v Word) bool {
	if v.Known {
		return isNumber(v.Text)
	}
	if x != nil && len(x.Parts) == 1 {
		_, sum := x.Parts[0].(*syntax.ArithmExp)
		return sum
	}
	return false
}

func (w *walker) redirects(c *Command, list []*syntax.Redirect) {
	holder := w.parent
	w.parent = c
	defer func() { w.parent = holder }()
	for _, r := range list {
		out := Redirect{Op: r.Op.String()}
		if r.N != nil && !isNumber(r.N.Value) {
			w.hazard("a redirection that assigns a variable")
		}
		var target []Word
		if r.Word != nil && r.Op != syntax.Hdoc && r.Op != syntax.DashHdoc {
			target = w.words(r.Word)
		}
		switch r.Op {
		case syntax.RdrIn:
			out.Kind = RedirectRead
		case syntax.Hdoc, syntax.DashHdoc:
			out.Kind = RedirectData
			if r.Hdoc != nil {
				out.Target = w.heredoc(r.Hdoc)
			}
		case syntax.WordHdoc:
			out.Kind = RedirectData
		case syntax.DplIn, syntax.DplOut:
			out.Kind = RedirectDup
			if len(target) != 1 || !isDescriptor(target[0]) {
				out.Kind = RedirectWrite // >&word opens a file
			}
		default:
			out.Kind = RedirectWrite
		}
		if len(target) == 0 {
			c.Redirects = append(c.Redirects, out)
		}
		for _, t := range target {
			out.Target = t
			c.Redirects = append(c.Redirects, out)
		}
	}
}

// heredoc walks the body of a here-document. A quoted delimiter leaves one
// literal, which expands nothing.
func (w *walker) heredoc(body *syntax.Word) Word {
	word := Word{Known: true, Source: w.text(body)}
	for _, p := range body.Parts {
		if l, ok := p.(*syntax.Lit); ok {
			word.Text += l.Value
			continue
		}
		word.Known = false
		w.part(p)
	}
	if !word.Known {
		word.Text = word.Source
	}
	return word
}

func isDescriptor(t Word) bool {
	s := strings.TrimSuffix(t.Text, "-")
	return t.Known && !t.Glob && (s == "" || isNumber(s))
}

// text is the source of n.
func (w *walker) text(n syntax.Node) string {
	from, to := n.Pos().Offset(), n.End().Offset()
	if from > to || to > uint(len(w.src)) {
		return ""
	}
	return w.src[from:to]
}
