package policy

import (
	"path"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/programs"
)

// maxSuggested is the number of rules that a person can still take in.
const maxSuggested = 5

// maxRule is the length in bytes of a command that is offered as a rule.
const maxRule = 1000

// suggest returns the smallest changes that would let the very same call
// pass without a question; nil if there are none or too many.
func (q *question) suggest() []agent.PermissionUpdate {
	if q.cfg.ManagedOnly || q.call.Effects.Interactive {
		return nil
	}
	switch {
	case q.shell:
		return q.suggestShell()
	case q.family == "Edit":
		return q.suggestEdit()
	case q.family == "Read":
		var rules []agent.RuleText
		for _, a := range q.accesses {
			for _, x := range a.paths {
				if _, ok := q.covered([]string{x}, true, "Read", "Edit"); !ok {
					rules = append(rules, pathText("Read", x))
				}
			}
		}
		return grant("session", rules)
	case q.tool == "WebFetch":
		if q.host == "" {
			return nil
		}
		return grant("localSettings", []agent.RuleText{{Tool: "WebFetch", Content: "domain:" + q.host}})
	case q.tool == "Skill" && q.name != "":
		return grant("localSettings", []agent.RuleText{{Tool: "Skill", Content: escape(q.name)}})
	}
	return grant("localSettings", []agent.RuleText{{Tool: q.tool}})
}

func grant(destination string, rules []agent.RuleText) []agent.PermissionUpdate {
	if len(rules) == 0 || len(rules) > maxSuggested {
		return nil
	}
	return []agent.PermissionUpdate{{Type: "addRules", Rules: rules, Behavior: "allow", Destination: destination}}
}

func pathText(tool, abs string) agent.RuleText {
	return agent.RuleText{Tool: tool, Content: "/" + escapePath(abs)}
}

func (q *question) suggestEdit() []agent.PermissionUpdate {
	var dirs []string
	for _, a := range q.accesses {
		for _, x := range a.paths {
			if protectedPath(q.relative(x)) {
				return q.suggestProtected(x)
			}
			if !within(x, append(q.work, dirs...), q.cfg.FoldCase) {
				dirs = append(dirs, path.Dir(x))
			}
		}
	}
	mode := agent.PermissionUpdate{Type: "setMode", Mode: agent.ModeAcceptEdits, Destination: "session"}
	if q.cfg.Mode == agent.ModeAcceptEdits {
		mode.Type = ""
	}
	var out []agent.PermissionUpdate
	if len(dirs) > 0 {
		out = append(out, agent.PermissionUpdate{Type: "addDirectories", Directories: dirs, Destination: "session"})
	}
	if mode.Type != "" && q.cfg.Mode != agent.ModePlan && q.cfg.Mode != agent.ModeDontAsk {
		out = append(out, mode)
	}
	return out
}

// suggestProtected offers an approval for the session: only for .claude.
func (q *question) suggestProtected(x string) []agent.PermissionUpdate {
	i := strings.Index(x, "/.claude/")
	if i < 0 {
		return nil
	}
	return grant("session", []agent.RuleText{{Tool: "Edit", Content: "/" + escapePath(x[:i]) + "/.claude/**"}})
}

func (q *question) suggestShell() []agent.PermissionUpdate {
	if q.unbox || q.cfg.Mode == agent.ModePlan || q.script != nil && q.script.Untrusted() != "" {
		return nil
	}
	var rules []agent.RuleText
	add := func(r agent.RuleText) {
		for _, have := range rules {
			if have == r {
				return
			}
		}
		rules = append(rules, r)
	}
	for i := range q.parts {
		p := &q.parts[i]
		if p.ok {
			continue
		}
		if p.Opaque != "" || len(rules) > maxSuggested {
			return nil
		}
		if p.path == "" {
			text := p.text
			if !p.Declares() {
				text = withAssigns(p.Command, text)
			}
			if len(text) > maxRule {
				return nil
			}
			add(agent.RuleText{Tool: q.family, Content: escape(text)})
		}
		for _, a := range q.accesses[p.from:p.to] {
			if q.pathNeeds(a) == "" || p.path == "" && !a.path.Redirect {
				continue
			}
			writes := a.kind == programs.Writes || a.kind == programs.Deletes
			if len(a.paths) == 0 || q.hidden(a) != "" || writes && a.path.Pattern != "" {
				return nil
			}
			for _, x := range a.paths {
				one := a
				if one.paths = []string{x}; q.pathNeeds(one) != "" {
					add(accessRule(a, x))
				}
			}
		}
	}
	return grant("localSettings", rules)
}

// accessRule is the rule that lets a shell command touch x.
func accessRule(a access, x string) agent.RuleText {
	tool := "Read"
	if a.kind == programs.Writes || a.kind == programs.Deletes {
		tool = "Edit"
	}
	r := pathText(tool, x)
	if a.kind == programs.Enters || a.path.Pattern != "" || a.path.Tree {
		r.Content = strings.TrimSuffix(r.Content, "/") + "/**"
	}
	return r
}

// missing says what a call that no rule settled lacks.
func (q *question) missing(s []agent.PermissionUpdate) string {
	var b strings.Builder
	b.WriteString(q.lacks())
	rules := RuleNames(s)
	switch {
	case len(rules) == 1:
		b.WriteString("; the rule " + rules[0] + " would allow it")
	case len(rules) > 1:
		b.WriteString("; the rules " + strings.Join(rules, ", ") + " would allow it")
	}
	return b.String()
}

// RuleNames are the rules that updates add, as settings write them.
func RuleNames(updates []agent.PermissionUpdate) []string {
	var out []string
	for _, u := range updates {
		for _, r := range u.Rules {
			out = append(out, r.String())
		}
	}
	return out
}

func (q *question) lacks() string {
	if q.shell {
		for i := range q.parts {
			if p := &q.parts[i]; !p.ok && p.note != "" {
				return "nothing allows " + clip(q.parts[i].text) + ": " + p.note
			}
		}
		return "nothing allows this command"
	}
	for _, a := range q.accesses {
		if len(a.paths) > 0 && !q.inside(a.paths) {
			return q.farthest(a.paths) + " lies outside the working directories"
		}
	}
	return "nothing allows " + q.tool + " here"
}
