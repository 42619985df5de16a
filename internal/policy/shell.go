package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/programs"
	"github.com/seed-eb844fcb/cinch/internal/lib/shellcmd"
)

// A part is one simple command of a shell call.
type part struct {
	*shellcmd.Command
	text  string   // canonical: words quoted where needed
	forms []string // other ways to say it; for rules that forbid
	from  int      // its accesses are question.accesses[from:to]
	to    int
	// state of the judgement
	by   string
	note string
	ok   bool
	path string // what keeps it from being allowed is not the command but this path
}

// inspect parses the command of a shell call.
func (q *question) inspect() {
	q.unbox = false
	if v, ok := q.text("dangerouslyDisableSandbox"); ok && v == "true" && q.cfg.Sandbox.Enabled && q.cfg.Sandbox.Unsandboxed {
		q.unbox = true
	}
	if q.tool == "PowerShell" {
		q.inspectPowerShell()
		return
	}
	dir := q.cfg.ShellDir
	if dir == "" {
		dir = q.cfg.Cwd
	}
	q.script = shellcmd.Parse(q.command, shellcmd.Env{Dir: dir, Home: q.cfg.Home, Exported: q.cfg.Exported})
	q.parts = make([]part, len(q.script.Commands))
	for i, c := range q.script.Commands {
		q.parts[i] = part{Command: c, text: render(c), from: len(q.accesses)}
		for _, p := range programs.Paths(q.script, c) {
			a := access{kind: p.Access, text: p.Text, path: p, part: i}
			for _, abs := range p.Abs {
				a.paths = append(a.paths, q.spellings(abs)...)
			}
			q.accesses = append(q.accesses, a)
		}
		q.parts[i].to = len(q.accesses)
	}
	q.boxed = q.cfg.Sandbox.Enabled && !q.unbox && !q.excluded()
}

// excluded reports whether a part of the command is set to run outside the sandbox.
func (q *question) excluded() bool {
	for _, r := range q.Policy.excluded {
		for i := range q.parts {
			if r.shell != nil && q.matches(r, &q.parts[i]) {
				return true
			}
		}
	}
	return false
}

// Excluded reports whether command is set to run outside the sandbox.
func (p *Policy) Excluded(command string) bool {
	q := p.question(agent.Call{Name: "Bash", Effects: agent.Effects{Subjects: []agent.Subject{{Kind: agent.SubjectCommand, Value: command}}}})
	return q.excluded()
}

// PowerShell has no parser here: a command is one part, and only if it holds
// nothing that could join it to another is it open to rules that allow.
func (q *question) inspectPowerShell() {
	c := &shellcmd.Command{}
	for w := range strings.FieldsSeq(q.command) {
		c.Argv = append(c.Argv, shellcmd.Word{Text: w, Source: w, Known: true, Prefix: w})
	}
	if strings.ContainsAny(q.command, ";|&\n\r`$(){}@<>") {
		c.Opaque = "PowerShell commands are judged only if they are simple"
	}
	q.parts = []part{{Command: c, text: strings.ToLower(strings.Join(strings.Fields(q.command), " "))}}
}

// render is the text of c that rules are compared with: one blank between
// words, quotes only where they are needed.
func render(c *shellcmd.Command) string {
	var b strings.Builder
	for i, w := range c.Argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.Canonical())
	}
	return b.String()
}

// withAssigns puts the assignments in front of the program before text.
func withAssigns(c *shellcmd.Command, text string) string {
	if len(c.Assigns) == 0 {
		return text
	}
	var b strings.Builder
	for i, a := range c.Assigns {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(a.Source)
	}
	if text != "" {
		b.WriteByte(' ')
		b.WriteString(text)
	}
	return b.String()
}

// allForms are all the ways in which a rule that forbids may name p.
func (p *part) allForms(fold bool) []string {
	if p.forms != nil || len(p.Argv) == 0 {
		return p.forms
	}
	plain := make([]string, len(p.Argv))
	source := make([]string, len(p.Argv))
	for i, w := range p.Argv {
		plain[i], source[i] = w.Text, w.Source
	}
	add := func(s string) {
		if fold {
			s = strings.ToLower(s)
		}
		if s != "" && !slices.Contains(p.forms, s) {
			p.forms = append(p.forms, s)
		}
	}
	joined := strings.Join(plain, " ")
	add(p.text)
	add(joined)
	add(strings.Join(source, " "))
	if strings.IndexByte(plain[0], '/') >= 0 {
		short := slices.Clone(plain)
		short[0] = path.Base(plain[0])
		add(strings.Join(short, " "))
		plain = short
	}
	if short := withoutOptions(plain); len(short) < len(plain) {
		add(strings.Join(short, " "))
	}
	if len(p.Assigns) > 0 && !p.Declares() {
		add(withAssigns(p.Command, p.text))
		add(withAssigns(p.Command, joined))
	}
	return p.forms
}

// withoutOptions drops the options between a program and its command word:
// git -C x push is git push.
func withoutOptions(argv []string) []string {
	values := ""
	switch argv[0] {
	case "git":
		values = " -C -c --git-dir --work-tree --namespace --exec-path --config-env "
	case "docker", "podman":
		values = " -H --host -c --context --config -l --log-level "
	case "kubectl", "helm":
		values = " -n --namespace --context --kubeconfig -s --server --cluster --user "
	case "npm", "pnpm", "yarn", "go", "cargo", "gh", "aws", "gcloud", "terraform", "pip", "pip3", "apt", "apt-get", "brew", "systemctl", "make":
		values = " --prefix -C --dir --cwd -F -R --repo --profile --region --project -chdir -f "
	default:
		return argv
	}
	i := 1
	for i < len(argv) && strings.HasPrefix(argv[i], "-") {
		if strings.Contains(values, " "+argv[i]+" ") {
			i++
		}
		i++
	}
	if i == 1 || i >= len(argv) {
		return argv
	}
	return append([]string{argv[0]}, argv[i:]...)
}

// anyPart reports whether r, a rule that forbids, names a part of the command.
func (q *question) anyPart(r *rule) bool {
	for i := range q.parts {
		if q.matches(r, &q.parts[i]) {
			return true
		}
	}
	return r.shell.match(trim(q.command))
}

func (q *question) matches(r *rule, p *part) bool {
	fold := q.cfg.FoldCase || q.tool == "PowerShell"
	pat := r.shell
	if fold {
		pat = pat.lower()
	}
	for _, f := range p.allForms(fold) {
		if pat.match(f) {
			return true
		}
	}
	return false
}

// lower returns p with all text in lower case.
func (p *pattern) lower() *pattern {
	l := *p
	l.pieces, l.short = slices.Clone(p.pieces), slices.Clone(p.short)
	for _, list := range [...][]string{l.pieces, l.short} {
		for i := range list {
			list[i] = strings.ToLower(list[i])
		}
	}
	return &l
}

// unresolved returns a rule about commands that the call may break without
// it showing, and what hides it.
func (q *question) unresolved() (*rule, string) {
	if !q.shell || q.script == nil {
		return nil, ""
	}
	var first *rule
	for _, rules := range [...][]*rule{q.deny, q.ask} {
		for _, r := range rules {
			if r.shell == nil {
				continue
			}
			if first == nil {
				first = r
			}
			if program, _, _ := strings.Cut(r.shell.lead(), " "); program != "" {
				for i := range q.parts {
					if mentions(q.parts[i].Code, program) && programs.Changes(q.parts[i].Command) != "" {
						return r, q.parts[i].Argv[0].Text + " runs code that mentions " + program
					}
				}
			}
		}
	}
	if first == nil {
		return nil, ""
	}
	switch {
	case q.script.Problem != "":
		return first, "the command is " + q.script.Problem
	case len(q.script.Hazards) > 0:
		return first, "the command holds " + q.script.Hazards[0]
	}
	for i := range q.parts {
		if q.parts[i].Opaque != "" {
			return first, q.parts[i].Opaque
		}
	}
	return nil, ""
}

// mentions reports whether code holds word as a word of its own.
func mentions(code, word string) bool {
	for from := 0; ; {
		i := strings.Index(code[from:], word)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(word)
		if (i == 0 || !wordByte(code[i-1])) && (end == len(code) || !wordByte(code[end])) {
			return true
		}
		from = end
	}
}

func wordByte(c byte) bool {
	return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// settle finds for every part what allows it, and reports whether all are.
func (q *question) settle() bool {
	q.settled = true
	if q.script == nil && q.tool != "PowerShell" {
		return false
	}
	all := true
	whole := q.exactRule(trim(q.command))
	untrusted := ""
	if q.script != nil {
		untrusted = q.script.Untrusted()
	}
	for i := range q.parts {
		p := &q.parts[i]
		switch {
		case whole != nil && q.cfg.Mode != agent.ModePlan:
			p.ok, p.by = true, whole.String()
		default:
			q.settlePart(p)
		}
		if p.ok {
			q.settlePaths(p, whole != nil)
		}
		all = all && p.ok
	}
	if untrusted != "" && whole == nil {
		return false
	}
	return all && len(q.parts) > 0
}

// exactRule returns an allow rule that spells out the whole of text.
func (q *question) exactRule(text string) *rule {
	for _, r := range q.allow {
		if r.shell != nil && r.tool == q.family && r.shell.exact && r.shell.match(text) && !q.suspended(r) {
			return r
		}
	}
	return nil
}

func (q *question) settlePart(p *part) {
	switch {
	case p.Covered:
		p.ok, p.by = true, "in "+clip(q.holder(p).text)
		return
	case len(p.Argv) == 0, p.Defined, p.Transparent:
		p.ok, p.by = true, "nothing of its own"
		return
	}
	why := "it is not in the read-only set"
	if q.tool != "PowerShell" {
		if why = programs.Changes(p.Command); why == "" {
			p.ok, p.by = true, "read-only"
			return
		}
	}
	if q.cfg.Mode == agent.ModePlan {
		p.note = why + "; plan mode only looks"
		return
	}
	if r := q.allowRule(p); r != nil {
		p.ok, p.by = true, r.String()
		return
	}
	if q.editCommand(p) {
		p.ok, p.by = true, "mode:"+string(q.cfg.Mode)
		return
	}
	p.note = why
}

// holder is the outermost command that covers p.
func (q *question) holder(p *part) *part {
	c := p.Command
	for c.Covered && c.Parent != nil {
		c = c.Parent
	}
	for i := range q.parts {
		if q.parts[i].Command == c {
			return &q.parts[i]
		}
	}
	return p
}

// allowRule returns the first rule that allows p.
func (q *question) allowRule(p *part) *rule {
	texts := make([]string, 0, 4)
	safe := true
	for _, a := range p.Assigns {
		safe = safe && a.Plain && shellcmd.SafeVariable(a.Name)
	}
	source := p.SourceText()
	if len(p.Assigns) == 0 || safe || p.Declares() {
		texts = append(texts, p.text)
		if source != p.text {
			texts = append(texts, source)
		}
	}
	if len(p.Assigns) > 0 && !p.Declares() {
		texts = append(texts, withAssigns(p.Command, p.text), withAssigns(p.Command, source))
	}
	for _, r := range q.allow {
		switch {
		case q.suspended(r):
		case r.whole && (r.names(q.tool) || r.names(q.family)):
			return r
		case r.shell == nil || r.tool != q.family || !r.shell.exact && (p.ExactOnly || p.Opaque != ""):
		default:
			pat := r.shell
			if q.tool == "PowerShell" {
				pat = pat.lower()
			}
			if slices.ContainsFunc(texts, pat.match) {
				return r
			}
		}
	}
	return nil
}

// suspended reports whether auto mode puts r aside, since it would run any code.
func (q *question) suspended(r *rule) bool {
	if q.cfg.Mode != agent.ModeAuto || r.Layer == LayerSession {
		return false
	}
	switch r.tool {
	case "Agent", "Monitor":
		return true
	case "Bash", "PowerShell":
	default:
		return false
	}
	if q.cfg.ClassifyAll || r.whole {
		return true
	}
	if r.shell == nil || r.shell.exact {
		return false
	}
	program, rest, _ := strings.Cut(r.shell.lead(), " ")
	switch strings.TrimRight(program, "0123456789.") {
	case "", "python", "pypy", "node", "deno", "bun", "ruby", "perl", "php", "lua", "bash", "sh", "zsh", "dash", "ksh", "fish", "eval",
		"exec", "env", "sudo", "doas", "xargs", "npx", "pnpx", "bunx", "uvx", "ssh", "docker", "podman", "make", "osascript", "pwsh", "powershell":
		return true
	case "npm", "pnpm", "yarn", "uv", "poetry", "cargo", "go", "gradle", "mvn":
		sub, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		return sub == "" || sub == "run" || sub == "exec" || sub == "x" || sub == "dlx" || sub == "run-script"
	}
	return false
}

// editCommand reports whether acceptEdits approves p: one of a few commands
// that edit files, inside the working directories.
func (q *question) editCommand(p *part) bool {
	if !q.editsFree() || p.Opaque != "" || p.More {
		return false
	}
	switch p.Program() {
	case "mkdir", "touch", "rm", "rmdir", "mv", "sed":
	case "cp":
		for _, a := range q.accesses[p.from:p.to] {
			// A tree whose root is the directory itself may hold anything.
			if a.path.Tree && a.kind == programs.Reads && (path.Base(a.text) == "." || a.text == ".." || strings.HasSuffix(a.text, "/")) {
				return false
			}
		}
	default:
		return false
	}
	for _, a := range p.Assigns {
		if !shellcmd.SafeVariable(a.Name) {
			return false
		}
	}
	if p.Program() == "sed" && programs.SedEdits(p.Command) != "" {
		return false
	}
	for _, a := range q.accesses[p.from:p.to] {
		if len(a.paths) == 0 || !q.inside(a.paths) {
			return false
		}
	}
	return p.to > p.from
}

func clip(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:57], "") + "…"
	}
	return s
}
