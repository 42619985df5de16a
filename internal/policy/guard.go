package policy

import (
	"path"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/programs"
)

// guarded stops what is never approved by a rule or a mode.
func (q *question) guarded() (Judgement, bool) {
	if e := q.call.Effects; e.Interactive || q.tool == "AskUserQuestion" {
		if e.Reason != "" {
			return Judgement{Step: StepGuard, Person: true, Decision: agent.Decision{
				Verdict: agent.Ask, Why: agent.WhySafety, By: "guard:changed", Reason: e.Reason, Warn: e.Warn,
			}}, true
		}
		return Judgement{Step: StepGuard, Person: true, Decision: agent.Decision{
			Verdict: agent.Ask, Why: agent.WhyOther, By: "guard:interactive", Reason: q.tool + " needs an answer from a person",
		}}, true
	}
	why, blocked := q.destroys()
	if why == "" {
		return Judgement{}, false
	}
	return Judgement{Step: StepGuard, Person: true, Decision: agent.Decision{
		Verdict: agent.Ask, Why: agent.WhySafety, By: "guard:delete", Blocked: blocked, Reason: why,
	}}, true
}

// destroys says which deletion of the command is one that cannot be let
// pass: its target is not known, lies outside the working directories, or is
// a directory that too much depends on.
func (q *question) destroys() (why, blocked string) {
	if !q.shell {
		return "", ""
	}
	for _, a := range q.accesses {
		if a.kind != programs.Deletes {
			continue
		}
		if len(a.paths) == 0 {
			if a.path.Tree || a.path.Pattern != "" {
				return "it deletes " + a.text + ", and what that is cannot be told", ""
			}
			continue
		}
		for _, x := range a.paths {
			if why := q.critical(x, a); why != "" {
				return why, x
			}
		}
	}
	if q.script != nil && q.script.Problem != "" && deletesRoughly(q.command) {
		return "the command is " + q.script.Problem + ", and it may delete", ""
	}
	return "", ""
}

// critical says why deleting x is not to be let pass, "" if it may be.
func (q *question) critical(x string, a access) string {
	fold := q.cfg.FoldCase
	contains := func(dirs []string) bool {
		for _, d := range dirs {
			if within(d, []string{x}, fold) {
				return true
			}
		}
		return false
	}
	what := "it deletes " + x
	if a.path.Pattern != "" && path.Clean(x) == x && !strings.HasSuffix(x, a.path.Pattern) {
		what = "it deletes everything in " + x
	}
	if a.path.Some {
		// Only what passes a test: the start itself stays.
		if a.path.Tree && !q.insideAny(x) {
			return "it deletes below " + x + ", outside the working directories"
		}
		return ""
	}
	switch {
	case x == "/":
		return what + ", the root of the file system"
	case strings.Count(x, "/") == 1:
		return what + ", a top-level directory of the system"
	case len(x) == 3 && x[1] == ':':
		return what + ", a whole drive"
	case contains(q.home):
		return what + ", which is or holds the home directory"
	case contains(q.work):
		return what + ", which is or holds a working directory"
	case !a.path.Tree:
		return ""
	case q.cfg.IsRepo != nil && q.cfg.IsRepo(x):
		return what + ", the root of a repository"
	case !q.insideAny(x):
		return what + ", outside the working directories"
	}
	return ""
}

func (q *question) insideAny(x string) bool { return within(x, q.work, q.cfg.FoldCase) }

// deletesRoughly reports whether text that could not be parsed names a
// program that deletes.
func deletesRoughly(text string) bool {
	for _, word := range [...]string{"rm", "rmdir", "unlink", "shred", "-delete", "clean", "rmtree"} {
		if mentions(text, word) {
			return true
		}
	}
	return strings.Contains(text, "-delete")
}
