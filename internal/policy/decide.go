package policy

import (
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/programs"
)

// allowed looks for rules that allow the call, and for what needs no rule.
func (q *question) allowed() (Judgement, bool) {
	if q.shell {
		return q.allowedShell()
	}
	if q.cfg.Mode == agent.ModePlan && q.writes() {
		return Judgement{}, false
	}
	for _, r := range q.allow {
		hit := false
		switch {
		case q.suspended(r):
		case r.whole:
			hit = r.names(q.tool)
		case r.domain != "":
			hit = q.tool == "WebFetch" && matchDomain(r.domain, q.host)
		case r.name != nil:
			hit = r.tool == q.tool && q.matchName(r)
		}
		if hit {
			return byRule(r), true
		}
	}
	if r := q.pathsAllowed(); r != nil {
		return byRule(r), true
	}
	return Judgement{}, false
}

func byRule(r *rule) Judgement {
	return Judgement{Step: StepAllow, Rule: &r.Rule, Decision: agent.Decision{Verdict: agent.Allow, Why: agent.WhyRule, By: r.String()}}
}

// writes reports whether the call edits files.
func (q *question) writes() bool {
	if q.family == "Edit" {
		return true
	}
	for _, a := range q.accesses {
		if a.kind == programs.Writes || a.kind == programs.Deletes {
			return true
		}
	}
	return false
}

// pathsAllowed returns a rule if rules cover every path of a file tool that
// is not free anyway, and at least one is needed.
func (q *question) pathsAllowed() *rule {
	var last *rule
	for _, a := range q.accesses {
		free, tools := true, []string{"Read", "Edit"}
		if a.kind == programs.Writes {
			free, tools = q.editsFree(), tools[1:]
		}
		r, ok := q.covered(a.paths, free, tools...)
		if !ok {
			return nil
		}
		if r != nil {
			last = r
		}
	}
	return last
}

func (q *question) allowedShell() (Judgement, bool) {
	plan := q.cfg.Mode == agent.ModePlan
	if !plan {
		for _, r := range q.allow {
			if r.whole && (r.names(q.tool) || r.names(q.family)) && !q.suspended(r) {
				return byRule(r), true
			}
		}
	}
	done := q.settle()
	if q.boxed && q.cfg.Sandbox.AutoAllow && !plan {
		return Judgement{Step: StepAllow, Decision: agent.Decision{Verdict: agent.Allow, Why: agent.WhyOther, By: "sandbox"}}, true
	}
	if !done {
		return Judgement{}, false
	}
	j := Judgement{Step: StepAllow, Decision: agent.Decision{Verdict: agent.Allow, Why: agent.WhyOther, By: "read-only"}}
	bys := 0
	for i := range q.parts {
		switch by := q.parts[i].by; {
		case by == "read-only", by == "nothing of its own", strings.HasPrefix(by, "in "):
		case by != j.By:
			j.By = by
			bys++
		}
	}
	switch {
	case bys > 1:
		j.Why, j.By = agent.WhyParts, "every part: "+j.By
	case strings.HasPrefix(j.By, "rule:"):
		j.Why = agent.WhyRule
		for _, r := range q.allow {
			if r.String() == j.By {
				j.Rule = &r.Rule
				break
			}
		}
	case strings.HasPrefix(j.By, "mode:"):
		j.Why, j.Step = agent.WhyMode, StepMode
	}
	return j, true
}

// byMode is the last step: what the mode says about a call that no rule settled.
func (q *question) byMode() Judgement {
	j := Judgement{Step: StepMode, Decision: agent.Decision{Verdict: agent.Allow, Why: agent.WhyMode, By: "mode:" + string(q.cfg.Mode)}}
	if q.cfg.Mode == agent.ModeBypass {
		return j
	}
	if by := q.free(); by != "" {
		j.By = by
		if !strings.HasPrefix(by, "mode:") {
			j.Why = agent.WhyOther
		}
		return j
	}
	j.Verdict = agent.Ask
	if q.cfg.Mode == agent.ModeDefault || q.cfg.Mode == agent.ModeAcceptEdits {
		j.Why = agent.WhyOther
	}
	switch {
	case q.unbox:
		j.Why = agent.WhySandbox
		j.Reason = "it asks to run outside the sandbox"
	case q.shell && q.script != nil && q.script.Untrusted() != "":
		j.Why, j.Reason = agent.WhySafety, "the command needs a look: "+q.script.Untrusted()
	case q.shell && len(q.parts) > 1:
		j.Why = agent.WhyParts
	}
	if out := q.outside(); out != "" {
		j.Blocked = out
		if !q.shell {
			j.Why = agent.WhyDir
		}
	}
	if q.cfg.Mode == agent.ModePlan && (q.writes() || q.shell) {
		j.Why = agent.WhyMode
		j.Reason = "plan mode only looks; nothing is changed before the plan is approved"
	}
	return j
}

// outside is the first path of the call that lies outside the working directories.
func (q *question) outside() string {
	for _, a := range q.accesses {
		if len(a.paths) == 0 || a.part >= 0 && q.parts[a.part].ok {
			continue
		}
		if _, ok := q.covered(a.paths, true, "Read", "Edit"); !ok {
			return q.farthest(a.paths)
		}
	}
	return ""
}

// free says why a call needs no rule, "" if it does.
func (q *question) free() string {
	if q.shell {
		return ""
	}
	inside := true
	for _, a := range q.accesses {
		inside = inside && q.inside(a.paths)
	}
	switch {
	case q.family == "Read":
		if inside && len(q.accesses) > 0 {
			return "working-directory"
		}
		return ""
	case q.family == "Edit":
		if inside && len(q.accesses) > 0 && q.editsFree() {
			return "mode:" + string(q.cfg.Mode)
		}
		return ""
	case q.tool == "WebFetch":
		if q.cfg.Preapproved != nil && q.host != "" && q.cfg.Preapproved(q.host) && !q.ruled("WebFetch") {
			return "preapproved:" + q.host
		}
		return ""
	case strings.HasPrefix(q.tool, "mcp__"), q.tool == "WebSearch", q.tool == "Skill", q.writes():
		return ""
	case q.tool == "Agent":
		if q.cfg.Mode == agent.ModeAuto {
			return ""
		}
		return "no question needed"
	case harmlessTool(q.tool), q.call.Effects.ReadOnly && inside && !q.url:
		return "no question needed"
	}
	return ""
}

// harmlessTool names built-in tools that only touch the session itself.
func harmlessTool(tool string) bool {
	switch tool {
	case "TodoWrite", "TaskCreate", "TaskUpdate", "TaskGet", "TaskList", "TaskStop", "TaskOutput", "BashOutput", "KillShell",
		"ToolSearch", "EnterPlanMode", "ListMcpResourcesTool", "ReadMcpResourceTool", "ReadMcpResourceDirTool", "StructuredOutput",
		"ListAgents", "SendMessage", "CronCreate", "CronDelete", "CronList", "ScheduleWakeup", "ReportFindings", "EnterWorktree", "ExitWorktree":
		return true
	}
	return false
}

// ruled reports whether any rule is about tool.
func (q *question) ruled(tool string) bool {
	for _, rules := range [...][]*rule{q.deny, q.ask, q.Policy.allow} {
		for _, r := range rules {
			if r.names(tool) {
				return true
			}
		}
	}
	return false
}

// report turns the parts into their exported form.
func (q *question) report() []Part {
	if len(q.parts) == 0 {
		return nil
	}
	out := make([]Part, len(q.parts))
	for i := range q.parts {
		p := &q.parts[i]
		out[i] = Part{Command: p.Command, Text: withAssigns(p.Command, p.text), By: p.by, Note: p.note}
		if p.Declares() {
			out[i].Text = p.text
		}
		if r := q.hitPart(q.deny, p); r != nil {
			out[i].Verdict, out[i].By, out[i].Note = agent.Deny, r.String(), ""
		} else if r := q.hitPart(q.ask, p); r != nil {
			out[i].By, out[i].Note = r.String(), ""
		} else if p.ok {
			out[i].Verdict = agent.Allow
		}
	}
	return out
}

// hitPart returns the first of rules, ones that forbid, that is about p.
func (q *question) hitPart(rules []*rule, p *part) *rule {
	for _, r := range rules {
		switch {
		case r.shell != nil && r.tool == q.family:
			if q.matches(r, p) {
				return r
			}
		case r.path != nil:
			for _, a := range q.accesses[p.from:p.to] {
				if r.tool == "Edit" && a.kind != programs.Writes && a.kind != programs.Deletes {
					continue
				}
				for _, x := range q.existing(a) {
					if r.path.match(x) {
						return r
					}
				}
			}
		}
	}
	return nil
}
