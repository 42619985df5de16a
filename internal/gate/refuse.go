package gate

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/policy"
)

// refuse finishes a denial: it puts it in words for the model, keeps it for
// the result of the turn, and tells the hooks if it was the classifier's.
func (s *passage) refuse(ctx context.Context, d agent.Decision) agent.Decision {
	s.mu.Lock()
	s.denials = append(s.denials, agent.Denial{Tool: s.first.Name, ID: s.first.ID, Input: s.first.Input})
	s.mu.Unlock()
	switch d.Why {
	case agent.WhyUser, agent.WhyPrompt, agent.WhyHook:
		if !s.noOne && d.Reason != "" {
			return d // their own words
		}
	}
	why := d.Reason
	d.Reason = words(s.call, d, s.modeNow(), s.noOne, s.blamed)
	if s.blamed && s.o.Hooks != nil {
		m := moment("PermissionDenied", s.call, true)
		m.Fields["reason"] = why
		r := s.o.Hooks(ctx, m)
		d.Context = append(d.Context, r.Context...)
		if string(r.Extra["retry"]) == "true" {
			d.Reason += " A hook says that this call may be tried again."
		}
	}
	return d
}

// words says in full sentences that c was denied, why, and what would change it.
func words(c agent.Call, d agent.Decision, mode agent.Mode, noOne, blamed bool) string {
	var b strings.Builder
	b.WriteString(opening(c, d))
	rule := strings.HasPrefix(d.By, "rule:") && d.Why == agent.WhyRule
	switch {
	case blamed:
		b.WriteString(" Blocked by classifier: auto mode judged that the call goes beyond what was asked for.")
	case rule && !noOne && mode != agent.ModeDontAsk:
	case mode == agent.ModePlan && d.Why == agent.WhyMode:
		b.WriteString(" Plan mode is on: look and plan only, and end with ExitPlanMode.")
	case mode == agent.ModeDontAsk && !rule:
		b.WriteString(" The mode dontAsk denies whatever no rule allows, without a question.")
	case noOne:
		b.WriteString(" No one can be asked for it in this session.")
	}
	if why := strings.TrimSpace(d.Reason); why != "" {
		b.WriteString(" Reason: " + sentence(why))
	}
	if rules := policy.RuleNames(d.Suggest); len(rules) > 0 && !strings.Contains(d.Reason, rules[0]) {
		b.WriteString(" Missing: " + strings.Join(rules, ", ") + ".")
	}
	b.WriteString(" Do not try to reach the same by another way; go on without it, or say what is needed.")
	return b.String()
}

func sentence(s string) string {
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "!") || strings.HasSuffix(s, "?") {
		return s
	}
	return s + "."
}

// opening is the first sentence, by the kind of tool.
func opening(c agent.Call, d agent.Decision) string {
	path := d.Blocked
	if path == "" {
		path = subject(c, agent.SubjectWrite, agent.SubjectRead)
	}
	switch c.Name {
	case "Bash", "PowerShell", "Monitor":
		if d.Why == agent.WhyRule && strings.HasPrefix(d.By, "rule:") {
			return "This command was not run."
		}
		// compat: clients look for this phrase in a denied Bash call.
		return "This command requires approval."
	case "Write", "Edit", "MultiEdit", "NotebookEdit":
		return "No permission to write " + orWord(path, "this file") + "."
	case "Read", "Grep", "Glob", "LSP":
		return "No permission to read " + orWord(path, "this path") + "."
	}
	return "No permission to use " + c.Name + "."
}

func orWord(s, or string) string {
	if s == "" {
		return or
	}
	return s
}

// subject is the first path that the call names.
func subject(c agent.Call, kinds ...agent.SubjectKind) string {
	for _, k := range kinds {
		for _, s := range c.Effects.Subjects {
			if s.Kind == k {
				return s.Value
			}
		}
	}
	var in struct {
		Path string `json:"file_path"`
	}
	_ = json.Unmarshal(c.Input, &in) // no such field: no path
	return in.Path
}
