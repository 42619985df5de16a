// Package report puts policies into words for a terminal: why a call gets its
// verdict, whether a list of calls gets the verdicts a team expects, and what
// two policies decide differently.
//
// It owns the layout and the format of test files. It decides nothing itself,
// opens no file and knows no settings; that is for the command that calls it.
//
// # Test files
//
// One expectation a line: allow, ask or deny, then a shell command, or @ and
// the name of another tool with its path, URL or name:
//
//	# what our builds need
//	allow  go test ./...
//	deny   git push --force
//	ask    curl https://example.org
//	deny   @Read .env
//	allow  @WebFetch https://go.dev/doc
//	ask    @mcp__tracker__create
//	deny   "rm -rf build\nrm x"
//
// A line that begins with a quote after the verdict is a Go string.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/programs"
	"github.com/seed-eb844fcb/cinch/internal/lib/shellcmd"
	"github.com/seed-eb844fcb/cinch/internal/lib/visible"
	"github.com/seed-eb844fcb/cinch/internal/policy"
)

// Call reads what a user wrote as a call: a shell command, or @Tool and what
// it touches. Relative paths start in the first directory of p.
func Call(p *policy.Policy, text string) (agent.Call, error) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, `"`) {
		s, err := strconv.Unquote(text)
		if err != nil {
			return agent.Call{}, fmt.Errorf("reading %s: not a Go string", text)
		}
		text = s
	}
	rest, ok := strings.CutPrefix(text, "@")
	if !ok {
		return call("Bash", "command", text, agent.SubjectCommand), nil
	}
	name, arg, _ := strings.Cut(rest, " ")
	arg = strings.TrimSpace(arg)
	switch name {
	case "":
		return agent.Call{}, fmt.Errorf("reading %q: no tool name after @", text)
	case "Bash", "PowerShell", "Monitor":
		return call(name, "command", arg, agent.SubjectCommand), nil
	case "Read", "Grep", "Glob", "LSP":
		return call(name, "file_path", absolute(p, arg), agent.SubjectRead), nil
	case "Write", "Edit", "MultiEdit", "NotebookEdit":
		return call(name, "file_path", absolute(p, arg), agent.SubjectWrite), nil
	case "WebFetch":
		return call(name, "url", arg, agent.SubjectURL), nil
	case "Agent", "Task":
		return call(name, "subagent_type", arg, agent.SubjectName), nil
	case "Skill":
		return call(name, "skill", arg, agent.SubjectName), nil
	}
	c := agent.Call{Name: name, Input: json.RawMessage("{}")}
	if strings.HasPrefix(arg, "{") {
		if !json.Valid([]byte(arg)) {
			return c, fmt.Errorf("reading the input of %s: not JSON: %s", name, arg)
		}
		c.Input = json.RawMessage(arg)
	}
	return c, nil
}

func absolute(p *policy.Policy, arg string) string {
	if path.IsAbs(arg) {
		return arg
	}
	return path.Join(p.Dirs()[0], arg)
}

func call(name, param, value string, kind agent.SubjectKind) agent.Call {
	in := append([]byte("{"), agent.AppendString(nil, param)...)
	in = append(agent.AppendString(append(in, ':'), value), '}')
	return agent.Call{Name: name, Input: in, Effects: agent.Effects{
		ReadOnly: kind == agent.SubjectRead, Subjects: []agent.Subject{{Kind: kind, Value: value}},
	}}
}

// text makes s safe for a terminal, on one line.
func text(s string) string {
	s, _ = visible.Text(s)
	return strings.ReplaceAll(s, "\n", `\n`)
}

// Explain writes the verdict on c and the way to it: the parts of a command,
// what is touched, the rule that decided with its file and line, and the
// smallest change that would turn it.
func Explain(w io.Writer, p *policy.Policy, c agent.Call) error {
	j := p.Explain(c)
	o := &output{w: w}
	o.line("verdict   %s", j.Verdict)
	switch {
	case j.Rule != nil:
		o.line("decided   %s rule %s, %s (%s)", j.Rule.Verdict, text(j.Rule.Text), j.Rule.Where(), j.Rule.Layer)
	default:
		o.line("decided   %s", text(j.By))
	}
	if j.Reason != "" {
		o.line("because   %s", text(j.Reason))
	}
	o.line("mode      %s", p.Mode())
	if j.Script != nil {
		explainScript(o, &j)
	}
	if len(j.Suggest) > 0 {
		o.line("to allow it")
		for _, u := range j.Suggest {
			o.line("  %s", text(update(u)))
		}
	}
	if len(j.Warn) > 0 {
		o.line("a person would be shown")
		for _, l := range j.Warn {
			o.line("  %s", text(l))
		}
	}
	return o.err
}

func explainScript(o *output, j *policy.Explanation) {
	o.line("command")
	for _, part := range j.Parts {
		note := part.By
		if part.Note != "" {
			note = part.Note
		}
		if part.Command.Opaque != "" {
			note = part.Command.Opaque
		}
		indent := strings.Repeat("  ", part.Command.Depth())
		role := ""
		if part.Command.Role != shellcmd.RoleTop {
			role = " (" + string(part.Command.Role) + ")"
		}
		body := part.Text
		if body == "" {
			body = "redirection"
		}
		o.line("  %-6s%s%s%s: %s", part.Verdict, indent, text(body), role, text(note))
		for _, a := range programs.Paths(j.Script, part.Command) {
			where := strings.Join(a.Abs, " or ")
			switch {
			case where == "":
				where = a.Text + " (cannot be told)"
			case a.Pattern != "" && !strings.HasSuffix(where, a.Pattern):
				where = strings.TrimSuffix(where, "/") + "/" + a.Pattern
			}
			if a.Tree {
				where += " and all below"
			}
			o.line("        %s%s %s", indent, a.Access, text(where))
		}
	}
	if j.Script.Problem != "" {
		o.line("  not understood: %s", text(j.Script.Problem))
	}
	for _, h := range j.Script.Hazards {
		o.line("  hazard: %s", text(h))
	}
}

func update(u agent.PermissionUpdate) string {
	switch u.Type {
	case "addRules":
		names := policy.RuleNames([]agent.PermissionUpdate{u})
		return u.Behavior + " " + strings.Join(names, ", ") + " (" + u.Destination + ")"
	case "addDirectories":
		return "add the directory " + strings.Join(u.Directories, ", ") + " (" + u.Destination + ")"
	case "setMode":
		return "mode " + string(u.Mode) + " (" + u.Destination + ")"
	}
	return u.Type
}

// An output remembers the first error, so that writing needs no check a line.
type output struct {
	w   io.Writer
	err error
}

func (o *output) line(format string, args ...any) {
	if o.err == nil {
		_, o.err = fmt.Fprintf(o.w, format+"\n", args...)
	}
}
