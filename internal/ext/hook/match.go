package hook

import (
	"regexp"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// unmatched are the events whose matchers are ignored.
var unmatched = map[string]bool{
	"UserPromptSubmit": true, "PostToolBatch": true, "Stop": true, "TeammateIdle": true, "TaskCreated": true,
	"TaskCompleted": true, "WorktreeCreate": true, "WorktreeRemove": true, "MessageDisplay": true, "CwdChanged": true,
}

// compile turns a matcher into a predicate. Nothing and "*" match all; plain
// words, split by '|' or ',', match exactly; anything else is a regular
// expression that may match anywhere.
func compile(event, matcher string) (func(string) bool, error) {
	if matcher == "" || matcher == "*" || unmatched[event] {
		return func(string) bool { return true }, nil
	}
	listed := event == "FileChanged" || event == "StopFailure"
	plain := true
	for _, r := range matcher {
		word := r == '_' || r == '|' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !word && (listed || r != '-' && r != ' ' && r != ',') {
			plain = false
			break
		}
	}
	if event == "FileChanged" {
		// compat: its segments are file names, dots and all.
		names := strings.Split(matcher, "|")
		return func(s string) bool { return slices.Contains(names, s) }, nil
	}
	if plain {
		words := strings.FieldsFunc(matcher, func(r rune) bool { return r == '|' || r == ',' })
		for i := range words {
			words[i] = strings.TrimSpace(words[i])
		}
		return func(s string) bool {
			if slices.Contains(words, s) {
				return true
			}
			// compat: matchers written for the Agent tool's first name.
			return s == "Agent" && slices.Contains(words, "Task")
		}, nil
	}
	re, err := regexp.Compile(matcher)
	if err != nil {
		return nil, err
	}
	return re.MatchString, nil
}

// Matching returns the hooks that would run at m, in order.
func (s *Set) Matching(m agent.Moment) []Handler {
	var out []Handler
	for _, h := range s.Handlers() {
		if h.Event != m.Event {
			continue
		}
		ok, err := compile(h.Event, h.Matcher)
		if err != nil || !ok(m.Match) {
			continue
		}
		if h.If != "" && (m.Call == nil || s.o.Matches == nil || !s.o.Matches(h.If, *m.Call)) {
			continue
		}
		out = append(out, h)
	}
	return out
}
