package window

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// Facts are what the model was told about its surroundings. When one is
// different later, the model gets a note behind what it has: what was sent
// stays as it was.
type Facts struct {
	Date  string // 2006-01-02
	Cwd   string
	Model string
	Mode  agent.Mode
	// Tools are the names the model can call, Deferred those of them that are
	// not loaded.
	Tools    []string
	Deferred []string
	Agents   []agent.AgentInfo
	Servers  []agent.Server // of which failures are told
}

// Changes returns notes on what is different in next. Fields that next leaves
// zero are not compared.
func (f Facts) Changes(next Facts) []agent.Block {
	var notes []Note
	if next.Date != "" && f.Date != "" && next.Date != f.Date {
		notes = append(notes, Note{NoteDate, "The date is now " + next.Date + "."})
	}
	if next.Cwd != "" && next.Cwd != f.Cwd {
		notes = append(notes, Note{NoteEnvironment, "The working directory is now " + next.Cwd + "."})
	}
	if next.Model != "" && f.Model != "" && next.Model != f.Model {
		notes = append(notes, Note{NoteEnvironment, "The model is now " + next.Model + "."})
	}
	if next.Mode != "" && next.Mode != f.Mode {
		notes = append(notes, Note{NoteMode, modeNote(f.Mode, next.Mode)})
	}
	if next.Tools != nil || next.Deferred != nil {
		notes = append(notes, Note{NoteTools, toolChanges(f, next)})
	}
	if next.Agents != nil && !slices.Equal(names(f.Agents), names(next.Agents)) {
		notes = append(notes, Note{NoteAgents, "The kinds of sub-agents changed.\n\n" + agentsNote(next.Agents)})
	}
	for _, s := range next.Servers {
		if s.Status == "failed" && !slices.ContainsFunc(f.Servers, func(o agent.Server) bool { return o.Name == s.Name && o.Status == s.Status }) {
			notes = append(notes, Note{NoteTools, fmt.Sprintf("The tool server %s cannot be reached: %s. Its tools are not there.", s.Name, orElse(s.Err, "no reason given"))})
		}
	}
	return Remind(notes...)
}

func toolChanges(f, next Facts) string {
	was, is := slices.Concat(f.Tools, f.Deferred), slices.Concat(next.Tools, next.Deferred)
	var joined, held, left []string
	for _, n := range is {
		if slices.Contains(was, n) {
			continue
		}
		if slices.Contains(next.Deferred, n) {
			held = append(held, n)
		} else {
			joined = append(joined, n)
		}
	}
	for _, n := range was {
		if !slices.Contains(is, n) {
			left = append(left, n)
		}
	}
	var b strings.Builder
	line := func(text string, names []string) {
		if len(names) > 0 {
			slices.Sort(names)
			fmt.Fprintf(&b, "%s: %s.\n", text, strings.Join(slices.Compact(names), ", "))
		}
	}
	line("New tools", joined)
	line("New tools, to be loaded with ToolSearch before use", held)
	line("Tools that are not there any more", left)
	return b.String()
}

// modeNote tells what a permission mode means for the model's work.
func modeNote(was, is agent.Mode) string {
	switch is {
	case agent.ModePlan:
		return "Plan mode is on. Look and think, but change nothing: no edits, no commands with effects, whatever else was said before. " +
			"Work out a plan, settle open questions with the user, and hand it in with ExitPlanMode."
	case agent.ModeAcceptEdits:
		return "The permission mode is now acceptEdits: edits of files in the working directories need no approval."
	case agent.ModeAuto:
		return "The permission mode is now auto: calls are approved by the program where they are safe. Work on without waiting for the user, and take no step that would be hard to undo."
	case agent.ModeDontAsk:
		return "The permission mode is now dontAsk: what no rule allows is refused without a question."
	case agent.ModeBypass:
		return "The permission mode is now bypassPermissions: nothing asks before it runs. The care is yours."
	}
	if was == agent.ModePlan {
		return "Plan mode is off. You may change things again, with the usual approvals."
	}
	return "The permission mode is now default: what changes things needs an approval."
}

// Mode is the note for a session that starts in mode, or nil if it needs none.
func Mode(mode agent.Mode) []agent.Block {
	if mode == "" || mode == agent.ModeDefault {
		return nil
	}
	return Remind(Note{NoteMode, modeNote("", mode)})
}

// FileChanged is the note that a file which the model has read is different
// on disk. diff may be "".
func FileChanged(path, diff string) []agent.Block {
	text := "The file " + path + " was changed on disk since you read it, by the user or a program. Take that as wanted; read it again before you edit it."
	if diff != "" {
		text += " The difference:\n\n" + diff
	}
	return Remind(Note{NoteFile, text})
}

func names(as []agent.AgentInfo) []string {
	var ns []string
	for _, a := range as {
		ns = append(ns, a.Name)
	}
	slices.Sort(ns)
	return ns
}

func orElse(s, t string) string {
	if s == "" {
		return t
	}
	return s
}
