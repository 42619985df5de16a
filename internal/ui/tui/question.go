package tui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/textdiff"
	"github.com/seed-eb844fcb/cinch/internal/lib/visible"
	"github.com/seed-eb844fcb/cinch/internal/ui/tui/cell"
	"github.com/seed-eb844fcb/cinch/internal/ui/tui/markdown"
)

const yes = "Yes"

// dialogOf makes the dialog for q. A question it cannot put is answered by
// the second result.
func dialogOf(q agent.Question, cwd string) (*dialog, *agent.Answer) {
	var d *dialog
	switch {
	case q.Kind == agent.AskElicit:
		d = elicitation(q)
	case q.Kind == agent.AskConfirm:
		d = confirm(q)
	case q.Kind == agent.AskDialog && q.Name == "AskUserQuestion":
		d = askUser(q, q.Payload)
	case q.Kind == agent.AskPermission && q.Call.Name == "AskUserQuestion":
		d = askUser(q, q.Call.Input)
	case q.Kind == agent.AskPermission && q.Call.Name == "ExitPlanMode":
		d = plan(q)
	case q.Kind == agent.AskPermission:
		d = permission(q, cwd)
	}
	if d == nil {
		return nil, &agent.Answer{ID: q.ID, Err: agent.ErrNoOne.Error(), Decision: agent.Decision{Verdict: agent.Deny, NoOne: true}}
	}
	d.q, d.cancel.ID = q, q.ID
	d.begin()
	return d, nil
}

func allow(q agent.Question) agent.Decision {
	return agent.Decision{Verdict: agent.Allow, Why: agent.WhyUser, By: "user"}
}

// deny is a no: with words of the person the model goes on, without it stops.
func deny(words string) agent.Decision {
	d := agent.Decision{Verdict: agent.Deny, Why: agent.WhyUser, By: "user", Reason: words, Interrupt: words == ""}
	if words == "" {
		d.Reason = "The user does not want this call to run."
	}
	return d
}

// permission asks whether a call may run.
func permission(q agent.Question, cwd string) *dialog {
	s := step{title: who(q), head: "May " + visibleLine(title(q.Call.Name, q.Call.Input, cwd)) + " run?", body: bodyOf(q.Call, cwd)}
	switch q.Call.Name {
	case "Bash":
		s.head = "May this command run?"
	case "Edit", "MultiEdit", "Write", "NotebookEdit":
		if _, path, ok := strings.Cut(title("", q.Call.Input, cwd), "("); ok {
			s.head = "May " + visibleLine(strings.TrimSuffix(path, ")")) + " be changed?"
		}
	}
	if r := q.Decision.Reason; r != "" {
		s.notes = append(s.notes, cell.Line{{Text: "  "}, {Text: r, Style: dim}})
	}
	for _, w := range q.Decision.Warn {
		s.notes = append(s.notes, cell.Line{{Text: "  ! " + w, Style: careful}})
	}
	s.opts = []choice{{label: yes}}
	if len(q.Decision.Suggest) > 0 {
		s.opts = append(s.opts, choice{label: "Yes, and " + suggestion(q.Decision.Suggest), lasting: true})
	}
	s.opts = append(s.opts, choice{label: "No, and stop"}, choice{label: "No, and tell the model what to do instead", write: true})
	no := len(s.opts) - 2
	return &dialog{
		steps: []step{s}, cancel: agent.Answer{Decision: deny("")},
		finish: func(rs []reply) agent.Answer {
			a := agent.Answer{ID: q.ID, Decision: allow(q)}
			switch pick := rs[0].picks[0]; {
			case pick >= no:
				a.Decision = deny(rs[0].text)
			case pick == 1:
				a.Decision.Updates = q.Decision.Suggest
			}
			return a
		},
	}
}

// confirm asks for a yes or a no to what is about to be done.
func confirm(q agent.Question) *dialog {
	s := step{head: q.Title, opts: []choice{{label: yes}, {label: "No"}}}
	for _, w := range q.Decision.Warn {
		s.notes = append(s.notes, cell.Line{{Text: "  ! " + w, Style: careful}})
	}
	return &dialog{
		steps: []step{s}, cancel: agent.Answer{Decision: deny("")},
		finish: func(rs []reply) agent.Answer {
			a := agent.Answer{ID: q.ID, Decision: allow(q)}
			if rs[0].picks[0] == 1 {
				a.Decision = deny("")
			}
			return a
		},
	}
}

func who(q agent.Question) string {
	if q.Agent != "" {
		return "sub-agent:"
	}
	return ""
}

// visibleLine is s on one line with everything shown that hides.
func visibleLine(s string) string {
	s, _ = visible.Text(s)
	return strings.ReplaceAll(s, "\n", `\n`)
}

// suggestion words what would be allowed from then on, and how long.
func suggestion(list []agent.PermissionUpdate) string {
	var out []string
	for _, u := range list {
		where := map[string]string{"session": "in this session", "localSettings": "in this project (local settings)", "projectSettings": "in this project (shared settings)", "userSettings": "everywhere"}[u.Destination]
		switch u.Type {
		case "setMode":
			out = append(out, "switch to "+modeName(u.Mode))
		case "addDirectories":
			out = append(out, "allow the directories "+strings.Join(u.Directories, ", ")+" "+where)
		default:
			var rules []string
			for _, r := range u.Rules {
				rules = append(rules, r.String())
			}
			behavior := u.Behavior
			if behavior == "" {
				behavior = "allow"
			}
			out = append(out, behavior+" "+strings.Join(rules, ", ")+" "+where)
		}
	}
	return visibleLine(strings.Join(out, "; "))
}

// bodyOf shows what a call would do, whole and with nothing hidden.
func bodyOf(c agent.Call, cwd string) func(int) []cell.Row {
	var in map[string]any
	_ = json.Unmarshal(c.Input, &in) // what is no object is shown as it stands
	str := func(key string) string { s, _ := in[key].(string); return s }
	switch c.Name {
	case "Bash":
		return func(w int) []cell.Row {
			var rows []cell.Row
			if d := str("description"); d != "" {
				rows = textRows(d, "  ", dim, w, 0)
			}
			return append(rows, letters(str("command"), w)...) // its warnings tell what cannot be seen
		}
	case "Edit":
		return func(w int) []cell.Row {
			return patch(textdiff.Hunks(ended(str("old_string")), ended(str("new_string")), textdiff.Context)).rows("  ", w, 0)
		}
	case "Write":
		return func(w int) []cell.Row {
			return patch(textdiff.Hunks("", ended(str("content")), textdiff.Context)).rows("  ", w, 0)
		}
	case "WebFetch":
		return func(w int) []cell.Row {
			return append(exact(str("url"), w), textRows(str("prompt"), "  ", dim, w, 0)...)
		}
	}
	return func(w int) []cell.Row {
		var b bytes.Buffer
		if json.Indent(&b, c.Input, "", "  ") != nil {
			b.Reset()
			b.Write(c.Input)
		}
		return exact(b.String(), w)
	}
}

// ended is s with a line end behind it: whether there is one is not asked.
func ended(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// exact shows text letter by letter, broken where the row ends, and says what
// could not be seen in it.
func exact(s string, w int) []cell.Row {
	return append(letters(s, w), unseen(s, w)...)
}

func letters(s string, w int) []cell.Row {
	shown, _ := visible.Text(s)
	var rows []cell.Row
	lead := cell.Styled("  │ ", dim)
	for line := range strings.SplitSeq(shown, "\n") {
		rows = append(rows, append(lead[:1:1], cell.Span{Text: line}).Fold(w, lead)...)
	}
	return rows
}

// unseen says what nobody could see in s.
func unseen(s string, w int) (rows []cell.Row) {
	_, hidden := visible.Text(s)
	if hidden > 0 {
		rows = append(rows, cell.Styled(fmt.Sprintf("  ! it holds %s that cannot be seen, shown as escapes", plural(hidden, "character")), careful).Wrap(w, nil)...)
	}
	if n := visible.Blanks(s); n >= 40 {
		rows = append(rows, cell.Styled(fmt.Sprintf("  ! it holds %d blanks in a row", n), careful).Wrap(w, nil)...)
	}
	return rows
}

// plan asks whether a plan is to be carried out.
func plan(q agent.Question) *dialog {
	var in struct {
		Plan string `json:"plan"`
	}
	_ = json.Unmarshal(q.Call.Input, &in) // an empty plan is refused by the tool
	s := step{head: "Is this the plan to carry out?", body: func(w int) []cell.Row {
		var md markdown.Renderer
		var rows []cell.Row
		for line := range strings.SplitSeq(in.Plan, "\n") {
			rows = append(rows, md.Line(line, w-2)...)
		}
		rows = append(rows, md.End(w-2)...)
		for i := range rows {
			rows[i] = append(cell.Plain("  ").Cells(), rows[i]...)
		}
		return rows
	}}
	s.opts = []choice{
		{label: "Yes, and accept edits", lasting: true},
		{label: "Yes, and ask before each edit"},
		{label: "No, keep planning"},
		{label: "No, and tell what should change", write: true},
	}
	return &dialog{
		steps: []step{s}, cancel: agent.Answer{Decision: deny("")},
		finish: func(rs []reply) agent.Answer {
			a := agent.Answer{ID: q.ID, Decision: allow(q)}
			mode := agent.ModeDefault
			switch rs[0].picks[0] {
			case 0:
				mode = agent.ModeAcceptEdits
			case 2:
				a.Decision = deny("")
				return a
			case 3:
				a.Decision = deny(rs[0].text)
				return a
			}
			a.Decision.Updates = []agent.PermissionUpdate{{Type: "setMode", Mode: mode, Destination: "session"}}
			return a
		},
	}
}

// askUser puts the questions of the model.
func askUser(q agent.Question, input json.RawMessage) *dialog {
	var in struct {
		Questions []struct {
			Question string `json:"question"`
			Header   string `json:"header"`
			Options  []struct {
				Label       string `json:"label"`
				Description string `json:"description"`
				Preview     string `json:"preview"`
			} `json:"options"`
			Multi bool `json:"multiSelect"`
		} `json:"questions"`
	}
	if json.Unmarshal(input, &in) != nil || len(in.Questions) == 0 {
		return nil
	}
	d := &dialog{cancel: agent.Answer{Err: "dismissed", Decision: agent.Decision{Verdict: agent.Deny, Why: agent.WhyUser, By: "user", Reason: "The user did not want to answer."}}}
	for _, x := range in.Questions {
		s := step{title: x.Header, head: x.Question, multi: x.Multi}
		for _, o := range x.Options {
			hint := o.Description
			if o.Preview != "" {
				hint += "\n" + o.Preview
			}
			s.opts = append(s.opts, choice{label: o.Label, hint: strings.ReplaceAll(strings.TrimSpace(hint), "\n", " ⏎ ")})
		}
		s.opts = append(s.opts, choice{label: "Something else", write: true})
		d.steps = append(d.steps, s)
	}
	d.finish = func(rs []reply) agent.Answer {
		answers := map[string]any{}
		for i, r := range rs {
			x := in.Questions[i]
			var labels []string
			for _, p := range r.picks {
				if p < len(x.Options) {
					labels = append(labels, x.Options[p].Label)
				} else if r.text != "" {
					labels = append(labels, r.text)
				}
			}
			answers[x.Question] = strings.Join(labels, ", ")
		}
		a := agent.Answer{ID: q.ID, Decision: allow(q)}
		a.Payload = encode(map[string]any{"answers": answers})
		if q.Kind == agent.AskPermission {
			var whole map[string]any
			_ = json.Unmarshal(input, &whole) // it was an object above
			whole["answers"] = answers
			a.Payload, a.Decision.Input = nil, encode(whole)
		}
		return a
	}
	return d
}

// encode is v as JSON. What is encoded here always can be.
func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("{}")
	}
	return raw
}

// elicitation puts what an MCP server asks: a form, or an address to visit.
func elicitation(q agent.Question) *dialog {
	var in struct {
		Server  string `json:"mcp_server_name"`
		Message string `json:"message"`
		Mode    string `json:"mode"`
		URL     string `json:"url"`
		Schema  struct {
			Properties map[string]property `json:"properties"`
			Required   []string            `json:"required"`
		} `json:"requested_schema"`
	}
	if json.Unmarshal(q.Payload, &in) != nil {
		return nil
	}
	answer := func(action string, content map[string]any) agent.Answer {
		m := map[string]any{"action": action}
		if content != nil {
			m["content"] = content
		}
		return agent.Answer{ID: q.ID, Payload: encode(m)}
	}
	d := &dialog{cancel: answer("cancel", nil)}
	who := "The MCP server " + in.Server + " asks:"
	if in.Mode == "url" {
		d.steps = []step{{title: who, head: in.Message, body: func(w int) []cell.Row { return exact(in.URL, w) },
			opts: []choice{{label: "Go on: I have opened the address myself"}, {label: "No"}}}}
		d.finish = func(rs []reply) agent.Answer {
			return answer([]string{"accept", "decline"}[rs[0].picks[0]], nil)
		}
		return d
	}
	keys := slices.Sorted(maps.Keys(in.Schema.Properties))
	d.steps = []step{{title: who, head: in.Message, opts: []choice{{label: "Answer"}, {label: "No"}}}}
	for _, k := range keys {
		d.steps = append(d.steps, in.Schema.Properties[k].step(who, k, slices.Contains(in.Schema.Required, k)))
	}
	finish := func(rs []reply) agent.Answer {
		content := map[string]any{}
		for i, k := range keys {
			if v, ok := in.Schema.Properties[k].value(rs[i+1]); ok {
				content[k] = v
			}
		}
		return answer("accept", content)
	}
	d.finish = finish
	d.declines = func(r reply) *agent.Answer {
		if d.at != 0 || r.picks[0] == 0 {
			return nil
		}
		a := answer("decline", nil)
		return &a
	}
	return d
}

// A property is one field of a server's form.
type property struct {
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Enum        []string        `json:"enum"`
	EnumNames   []string        `json:"enumNames"`
	Default     json.RawMessage `json:"default"`
	Minimum     *float64        `json:"minimum"`
	Maximum     *float64        `json:"maximum"`
}

func (p property) step(who, key string, required bool) step {
	s := step{title: who, head: key}
	if p.Title != "" {
		s.head = p.Title + " (" + key + ")"
	}
	if p.Description != "" {
		s.notes = []cell.Line{{{Text: "  "}, {Text: p.Description, Style: dim}}}
	}
	switch {
	case len(p.Enum) > 0:
		for i, e := range p.Enum {
			o := choice{label: e}
			if i < len(p.EnumNames) && p.EnumNames[i] != e {
				o.label = p.EnumNames[i]
				o.hint = e
			}
			s.opts = append(s.opts, o)
		}
	case p.Type == "boolean":
		s.opts = []choice{{label: "true"}, {label: "false"}}
	default:
		s.opts = []choice{{write: true}}
		var text string
		if json.Unmarshal(p.Default, &text) != nil && len(p.Default) > 0 {
			text = string(p.Default)
		}
		s.value = text
		s.check = func(text string) error { return p.check(text, required) }
	}
	return s
}

func (p property) check(text string, required bool) error {
	if text == "" {
		if required {
			return errors.New("This is required.")
		}
		return nil
	}
	if p.Type != "number" && p.Type != "integer" {
		return nil
	}
	n, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil, math.IsNaN(n), math.IsInf(n, 0), p.Type == "integer" && n != math.Trunc(n):
		return fmt.Errorf("This must be a number (%s).", p.Type)
	case p.Minimum != nil && n < *p.Minimum:
		return fmt.Errorf("This must be at least %v.", *p.Minimum)
	case p.Maximum != nil && n > *p.Maximum:
		return fmt.Errorf("This may be at most %v.", *p.Maximum)
	}
	return nil
}

// value is what a reply says, if anything.
func (p property) value(r reply) (any, bool) {
	switch {
	case len(p.Enum) > 0:
		return p.Enum[r.picks[0]], true
	case p.Type == "boolean":
		return r.picks[0] == 0, true
	case r.text == "":
		return nil, false
	case p.Type == "number", p.Type == "integer":
		n, err := strconv.ParseFloat(r.text, 64)
		return n, err == nil
	}
	return r.text, true
}
