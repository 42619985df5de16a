package hook

import (
	"encoding/json"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// rank orders verdicts by strictness.
func rank(v agent.Verdict) int {
	switch v {
	case agent.Deny:
		return 3
	case agent.Defer:
		return 2
	case agent.Ask:
		return 1
	}
	return 0
}

// merge makes one answer of several: the strictest decision counts, whoever
// gave it; among equals the first. Texts stand in the order of the hooks.
func merge(event string, answers []answer) agent.HookResult {
	var r agent.HookResult
	for _, a := range answers {
		if !a.ran {
			continue
		}
		r.Ran++
		r.Context = append(r.Context, a.context...)
		r.Notes = append(r.Notes, a.notes...)
		if d := a.decision; d != nil && (r.Decision == nil || rank(d.Verdict) > rank(r.Decision.Verdict)) {
			c := *d
			r.Decision = &c
		}
		if a.input != nil && r.Input == nil {
			r.Input = a.input
		}
		if a.output != nil && r.Output == nil {
			r.Output = a.output
		}
		if a.block || a.halt {
			if !r.Block && !r.Halt {
				r.Reason = a.reason
			} else if a.block && a.reason != "" {
				r.Reason += "\n" + a.reason
			}
			r.Block = r.Block || a.block
			r.Halt = r.Halt || a.halt
		}
		for k, v := range a.extra {
			if r.Extra == nil {
				r.Extra = map[string]json.RawMessage{}
			}
			if _, ok := r.Extra[k]; !ok {
				r.Extra[k] = v
			}
		}
	}
	// What is refused does not run with any input.
	if r.Decision != nil && r.Decision.Verdict == agent.Deny {
		r.Input = nil
	}
	if r.Decision != nil && r.Decision.Input == nil && event == "PreToolUse" {
		r.Decision.Input = r.Input
	}
	return r
}
