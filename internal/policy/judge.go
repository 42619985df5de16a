package policy

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/programs"
	"github.com/seed-eb844fcb/cinch/internal/lib/shellcmd"
)

// A Step is the place in the order of decision that settled a call.
type Step string

const (
	StepDeny      Step = "deny"
	StepAsk       Step = "ask"
	StepGuard     Step = "guard"
	StepProtected Step = "protected"
	StepAllow     Step = "allow"
	StepMode      Step = "mode"
)

// A Judgement is a decision with the way that led to it.
type Judgement struct {
	agent.Decision
	Step Step
	// Person: only a person may turn this Ask into an allow; no hook and no
	// classifier.
	Person bool
	// Rule is the rule that decided, or nil.
	Rule *Rule
}

// An Explanation is a judgement with all that was found on the way to it.
type Explanation struct {
	Judgement
	// Script is the parsed command of a shell call, or nil.
	Script *shellcmd.Script
	// Parts are the commands of a shell call, in the order of their text.
	Parts []Part
}

// A Part is one simple command of a shell call and what was found about it.
type Part struct {
	Command *shellcmd.Command
	Text    string // as rules see it
	Verdict agent.Verdict
	// By says what settled it: a rule, "read-only", "mode:…", "in TEXT" for
	// what another command covers, or "" if nothing allows it.
	By   string
	Note string // why it needs approval
}

// A question is a call on its way through the steps.
type question struct {
	*Policy
	call     agent.Call
	tool     string // canonical name
	family   string // the tool under whose name rules about its subjects stand
	shell    bool
	command  string
	script   *shellcmd.Script
	parts    []part
	settled  bool
	accesses []access
	host     string
	url      bool
	name     string
	input    map[string]json.RawMessage
	parsed   bool
	boxed    bool // will run in the sandbox
	unbox    bool // asks to leave it
}

// An access is one path that the call would touch.
type access struct {
	kind  programs.Access
	text  string
	paths []string // all spellings, clean; nil: unknown
	path  programs.Path
	part  int // index of the command, or -1
}

// Judge says whether c may run, and why.
func (p *Policy) Judge(c agent.Call) Judgement { return p.question(c).judge() }

// Explain judges c and tells what was found about each part of it.
func (p *Policy) Explain(c agent.Call) Explanation {
	q := p.question(c)
	e := Explanation{Judgement: q.judge(), Script: q.script}
	if q.shell && !q.settled {
		q.settle()
	}
	e.Parts = q.report()
	return e
}

func (q *question) judge() Judgement {
	steps := [...]func(*question) (Judgement, bool){
		(*question).denied, (*question).asked, (*question).guarded, (*question).protected, (*question).allowed,
	}
	var j Judgement
	done := false
	for _, step := range steps {
		if j, done = step(q); done {
			break
		}
	}
	if !done {
		j = q.byMode()
	}
	if j.Verdict == agent.Ask && q.cfg.Mode == agent.ModeDontAsk {
		j.Verdict = agent.Deny
		if j.Step != StepMode {
			j.Reason += "; the mode dontAsk denies what needs an answer"
		}
	}
	if j.Verdict == agent.Ask || j.Verdict == agent.Deny && j.Step == StepMode {
		if !j.Person {
			j.Suggest = q.suggest()
		}
		if j.Step == StepMode && j.Reason == "" {
			j.Reason = q.missing(j.Suggest)
		}
		j.Warn = append(j.Warn, q.warnings()...)
	}
	return j
}

func (p *Policy) question(c agent.Call) *question {
	q := &question{Policy: p, call: c, tool: canonical(c.Name), family: ruleTool(c.Name)}
	q.shell = q.family == "Bash" || q.tool == "PowerShell"
	for _, s := range c.Effects.Subjects {
		switch s.Kind {
		case agent.SubjectCommand:
			q.command = s.Value
		case agent.SubjectRead:
			q.touch(programs.Reads, s.Value)
		case agent.SubjectWrite:
			q.touch(programs.Writes, s.Value)
		case agent.SubjectHost:
			q.host = cleanHost(s.Value)
		case agent.SubjectURL:
			q.url = true
			if u, err := url.Parse(s.Value); err == nil {
				q.host = cleanHost(u.Hostname())
			}
		case agent.SubjectName:
			q.name = s.Value
		}
	}
	if q.shell {
		if q.command == "" {
			q.command, _ = q.text("command")
		}
		q.inspect()
	}
	return q
}

func (q *question) touch(kind programs.Access, abs string) {
	q.accesses = append(q.accesses, access{kind: kind, text: abs, paths: q.spellings(abs), part: -1})
}

// text returns a top-level scalar of the input as text.
func (q *question) text(param string) (string, bool) {
	if !q.parsed {
		q.parsed = true
		_ = json.Unmarshal(q.call.Input, &q.input) // no object: no parameter matches
	}
	raw, ok := q.input[param]
	if !ok || len(raw) == 0 {
		return "", false
	}
	switch raw[0] {
	case '{', '[', 'n':
		return "", false
	case '"':
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return "", false
		}
		return s, true
	}
	return string(raw), true
}

// cleanHost is the form in which hosts are compared.
func cleanHost(h string) string { return strings.ToLower(strings.TrimSuffix(h, ".")) }

// matchDomain matches host against a pattern: a leading *. is any subdomain,
// a star elsewhere stays within one label, a lone star is every host.
func matchDomain(pat, host string) bool {
	if host == "" {
		return false
	}
	if pat == "*" {
		return true
	}
	if suffix, ok := strings.CutPrefix(pat, "*."); ok && strings.IndexByte(suffix, '*') < 0 {
		return strings.HasSuffix(host, "."+suffix) && len(host) > len(suffix)+1
	}
	labels, hosts := strings.Split(pat, "."), strings.Split(host, ".")
	if len(labels) != len(hosts) {
		return false
	}
	for i := range labels {
		p := pattern{pieces: strings.Split(labels[i], "*")}
		p.exact = len(p.pieces) == 1
		if !p.match(hosts[i]) {
			return false
		}
	}
	return true
}

// hit returns the first of rules that is about this call as a whole, or
// about what it touches; strict rules need only one part to match.
func (q *question) hit(rules []*rule) *rule {
	for _, r := range rules {
		switch {
		case r.whole:
			if r.names(q.tool) || q.tool == "Monitor" && r.names("Bash") {
				return r
			}
		case r.param != nil:
			if v, ok := q.text(r.param.name); ok && r.names(q.tool) && r.param.value.match(v) {
				return r
			}
		case r.shell != nil:
			if q.shell && r.tool == q.family && q.anyPart(r) {
				return r
			}
		case r.path != nil:
			if q.anyPath(r) {
				return r
			}
		case r.domain != "":
			if q.tool == "WebFetch" && matchDomain(r.domain, q.host) {
				return r
			}
		case r.name != nil:
			if r.tool == q.tool && q.matchName(r) {
				return r
			}
		}
	}
	return nil
}

func (q *question) matchName(r *rule) bool {
	if r.name.match(q.name) {
		return true
	}
	if args, ok := q.text("args"); ok && q.tool == "Skill" {
		return r.name.match(q.name + " " + args)
	}
	return false
}

// anyPath reports whether the rule, one that forbids, covers anything the
// call touches. A Read rule also covers what would be written.
func (q *question) anyPath(r *rule) bool {
	for _, a := range q.accesses {
		if r.tool == "Edit" && a.kind != programs.Writes && a.kind != programs.Deletes {
			continue
		}
		for _, path := range q.existing(a) {
			if r.path.match(path) {
				return true
			}
		}
	}
	return false
}

// existing returns the paths that a stands for: the matches of a pattern, if
// they can be told, else a's own spellings.
func (q *question) existing(a access) []string {
	if a.path.Pattern == "" || q.cfg.Expand == nil {
		return a.paths
	}
	out := a.paths
	for _, d := range a.path.Abs {
		for _, m := range q.cfg.Expand(strings.TrimSuffix(d, "/") + "/" + a.path.Pattern) {
			out = append(out[:len(out):len(out)], q.spellings(m)...)
		}
	}
	return out
}

func (q *question) denied() (Judgement, bool) {
	r := q.hit(q.deny)
	if r == nil {
		return Judgement{}, false
	}
	return Judgement{Step: StepDeny, Rule: &r.Rule, Decision: agent.Decision{
		Verdict: agent.Deny, Why: agent.WhyRule, By: r.String(),
		Reason:  "denied by the rule " + r.Text + " (" + r.Where() + ")",
		Blocked: q.blocked(r),
	}}, true
}

// blocked is the path on account of which r matched.
func (q *question) blocked(r *rule) string {
	if r.path == nil {
		return ""
	}
	for _, a := range q.accesses {
		for _, p := range q.existing(a) {
			if r.path.match(p) {
				return p
			}
		}
	}
	return ""
}

func (q *question) asked() (Judgement, bool) {
	rules := q.ask
	if q.boxed && q.cfg.Sandbox.AutoAllow && q.cfg.Mode != agent.ModePlan {
		rules = scopedOnly(rules)
	}
	if r := q.hit(rules); r != nil {
		return Judgement{Step: StepAsk, Rule: &r.Rule, Person: true, Decision: agent.Decision{
			Verdict: agent.Ask, Why: agent.WhyRule, By: r.String(),
			Reason:  "the rule " + r.Text + " (" + r.Where() + ") asks",
			Blocked: q.blocked(r),
		}}, true
	}
	if r, why := q.unresolved(); r != nil {
		return Judgement{Step: StepAsk, Rule: &r.Rule, Person: true, Decision: agent.Decision{
			Verdict: agent.Ask, Why: agent.WhySafety, By: r.String(),
			Reason: why + ", so it cannot be told whether the rule " + r.Text + " (" + r.Where() + ") forbids it",
		}}, true
	}
	return Judgement{}, false
}

func scopedOnly(rules []*rule) []*rule {
	var out []*rule
	for _, r := range rules {
		if !r.whole {
			out = append(out, r)
		}
	}
	return out
}
