package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// A Rule is a permission rule and where it was written.
type Rule struct {
	Verdict agent.Verdict // Allow, Ask or Deny
	Layer   Layer
	Text    string
	// File and Line name the place, if there is one.
	File string
	Line int
	// Base is the directory that /path patterns are anchored at; "" is Config.Cwd.
	Base string
}

// String names r as Decision.By does.
func (r Rule) String() string { return "rule:" + string(r.Layer) + ":" + r.Text }

// Where is FILE:LINE, or the layer if r has no file.
func (r Rule) Where() string {
	switch {
	case r.File == "":
		return string(r.Layer)
	case r.Line == 0:
		return r.File
	}
	return fmt.Sprintf("%s:%d", r.File, r.Line)
}

// A Problem is a rule that does not do what it seems to.
type Problem struct {
	Rule Rule
	Text string
}

func (b Problem) String() string {
	return fmt.Sprintf("%s: %s rule %s: %s", b.Rule.Where(), b.Rule.Verdict, b.Rule.Text, b.Text)
}

// A rule is a compiled Rule. Exactly one of the fields behind tool is set,
// or none: then it is about every call of the tool.
type rule struct {
	Rule
	tool   string // canonical; may hold *
	whole  bool   // no specifier
	shell  *pattern
	path   *pathPattern
	domain string
	name   *pattern
	param  *param
}

// A param is the form Tool(param:value).
type param struct {
	name  string
	value pattern
}

// canonical returns the name that rules and decisions use for a tool.
func canonical(tool string) string {
	if tool == "Task" {
		return "Agent"
	}
	return tool
}

// ruleTool is the tool under whose name rules about a call's subjects stand.
func ruleTool(tool string) string {
	switch tool {
	case "Write", "NotebookEdit", "MultiEdit":
		return "Edit"
	case "Grep", "Glob", "LSP", "NotebookRead":
		return "Read"
	case "Monitor":
		return "Bash"
	}
	return canonical(tool)
}

// split takes Tool(content) apart.
func split(text string) (tool, content string, scoped bool, why string) {
	text = strings.TrimSpace(text)
	i := strings.IndexByte(text, '(')
	if i < 0 {
		if strings.IndexByte(text, ')') >= 0 {
			return "", "", false, "a closing parenthesis without an opening one"
		}
		return text, "", false, ""
	}
	if !strings.HasSuffix(text, ")") {
		return "", "", false, "the closing parenthesis is missing"
	}
	return strings.TrimSpace(text[:i]), text[i+1 : len(text)-1], true, ""
}

// compile returns nil if r has no effect; why then says so. why may also
// accompany a rule that works but looks wrong.
func (p *Policy) compile(r Rule) (*rule, string) {
	tool, content, scoped, why := split(r.Text)
	switch {
	case why != "":
		return nil, why
	case tool == "":
		return nil, "no tool name"
	case strings.ContainsAny(tool, " \t\n"):
		return nil, "a tool name holds no blanks"
	}
	c := &rule{Rule: r, tool: canonical(tool)}
	if star := strings.IndexByte(tool, '*'); star >= 0 && r.Verdict == agent.Allow && !serverGlob(tool[:star]) {
		return nil, "an allow rule takes * in a tool name only after mcp__<server>__"
	}
	if scoped && content == "" {
		return nil, "nothing between the parentheses"
	}
	if !scoped || content == "*" {
		c.whole = true
		return c, p.unknownTool(tool)
	}
	if strings.IndexByte(tool, '*') >= 0 {
		return nil, "a specifier needs one tool, not a pattern of tools"
	}
	return p.scoped(c, tool, content)
}

// scoped compiles the specifier of a rule.
func (p *Policy) scoped(c *rule, tool, content string) (*rule, string) {
	if c.param = paramOf(tool, content); c.param != nil {
		switch {
		case c.Verdict == agent.Allow:
			return nil, "a rule about a parameter can only deny or ask"
		case c.param.name == primary(tool):
			return nil, "the parameter " + c.param.name + " has its own form of rule"
		}
		return c, p.unknownTool(tool)
	}
	switch tool {
	case "Bash", "PowerShell", "Monitor":
		c.tool = ruleTool(tool)
		if strings.TrimSpace(content) == ":*" || strings.TrimSpace(content) == "" {
			return nil, "no command before the star; Bash alone is every command"
		}
		c.shell = compilePattern(content)
		return c, p.unknownTool(tool) // PowerShell is one that may be missing
	case "Read", "Edit":
		pp, why := p.compilePath(c.Rule, content)
		if why != "" {
			return nil, why
		}
		c.path = pp
		return c, ""
	case "Write", "NotebookEdit", "MultiEdit":
		return nil, "path rules are looked up under Edit: write Edit(" + content + ")"
	case "Glob", "Grep", "LSP", "NotebookRead":
		return nil, "path rules are looked up under Read: write Read(" + content + ")"
	case "WebFetch":
		host, ok := strings.CutPrefix(content, "domain:")
		if !ok {
			return nil, "the form is WebFetch(domain:HOST)"
		}
		if c.domain = cleanHost(strings.TrimSpace(host)); c.domain == "" || strings.ContainsAny(c.domain, "/ ") {
			return nil, "a host name only, without scheme or path"
		}
		return c, ""
	case "Agent", "Task", "Skill":
		c.name = compilePattern(content)
		return c, ""
	case "Cd":
		return nil, "rules for Cd have no effect here"
	}
	if strings.HasPrefix(tool, "mcp__") {
		return nil, "an MCP tool takes no specifier but (parameter:value)"
	}
	return nil, orText(p.unknownTool(tool), "this tool takes no specifier")
}

func orText(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// serverGlob reports whether lead is mcp__<server>__ and more.
func serverGlob(lead string) bool {
	rest, ok := strings.CutPrefix(lead, "mcp__")
	return ok && strings.Index(rest, "__") > 0
}

// primary is the parameter that a tool's own rules are about.
func primary(tool string) string {
	switch tool {
	case "Bash", "PowerShell", "Monitor":
		return "command"
	case "Read", "Edit", "Write", "MultiEdit":
		return "file_path"
	case "NotebookEdit":
		return "notebook_path"
	case "Grep", "Glob":
		return "path"
	case "WebFetch":
		return "url"
	}
	return ""
}

// paramOf reads the form (param:value), nil if content is not that.
func paramOf(tool, content string) *param {
	name, value, ok := strings.Cut(content, ":")
	name = strings.TrimSpace(name)
	if !ok || !identifier(name) || !strings.HasPrefix(tool, "mcp__") && !hasParam(tool, name) {
		return nil
	}
	if value = strings.TrimSpace(value); value == "" {
		return nil
	}
	c := compilePattern(value)
	c.short = nil
	return &param{name: name, value: *c}
}

func identifier(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c == '_' || c == '-' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return s != ""
}

// hasParam knows the parameters of built-in tools that take specifiers of
// another form, so that Bash(npm:install) is not taken for a parameter.
func hasParam(tool, name string) bool {
	var known string
	switch canonical(tool) {
	case "Bash", "Monitor", "PowerShell":
		known = "command timeout description run_in_background dangerouslyDisableSandbox"
	case "Agent":
		known = "description prompt subagent_type model effort run_in_background isolation name"
	case "Read":
		known = "file_path offset limit pages allow_large"
	case "Edit", "Write", "MultiEdit":
		known = "file_path content old_string new_string replace_all"
	case "NotebookEdit":
		known = "notebook_path cell_id new_source cell_type edit_mode"
	case "Grep", "Glob":
		known = "pattern path glob type output_mode multiline head_limit"
	case "WebFetch":
		known = "url prompt offset"
	case "WebSearch":
		known = "query"
	case "Skill":
		known = "skill args"
	default:
		return true
	}
	return slices.Contains(strings.Fields(known), name)
}

// unknownTool warns of a name that no tool has.
func (p *Policy) unknownTool(tool string) string {
	if len(p.cfg.Tools) == 0 || strings.ContainsAny(tool, "_*") {
		return ""
	}
	name := canonical(tool)
	near, best := "", 3
	for _, t := range p.cfg.Tools {
		if canonical(t) == name {
			return ""
		}
		if d := distance(strings.ToLower(t), strings.ToLower(name)); d < best {
			near, best = t, d
		}
	}
	switch name {
	case "Bash", "Read", "Edit", "Write", "MultiEdit", "NotebookEdit", "Grep", "Glob", "WebFetch", "WebSearch", "Agent", "Skill":
		return "" // known, though not offered in this session
	}
	if near != "" {
		return "there is no tool " + tool + "; " + near + " is near"
	}
	return "there is no tool " + tool + " here, so the rule has no effect"
}

// distance is the edit distance of a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(diagonal+cost, row[j]+1, row[j+1]+1)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

// shadowed reports allow rules that a deny of the whole tool makes void.
func (p *Policy) shadowed() []Problem {
	var out []Problem
	for _, a := range p.allow {
		if d := p.named(p.deny, a.tool); d != nil {
			out = append(out, Problem{Rule: a.Rule, Text: "has no effect: " + d.Where() + " denies " + d.Text})
		}
	}
	return out
}

// named returns the first of rules that is about every call of tool.
func (p *Policy) named(rules []*rule, tool string) *rule {
	name := canonical(tool)
	for _, r := range rules {
		if r.whole && r.names(name) {
			return r
		}
	}
	return nil
}

// names reports whether r is about the tool called name.
func (r *rule) names(name string) bool {
	if r.tool == name {
		return true
	}
	if strings.IndexByte(r.tool, '*') >= 0 {
		ok, _ := path.Match(strings.NewReplacer("[", `\[`, "?", `\?`, `\`, `\\`).Replace(r.tool), name)
		return ok
	}
	// mcp__server is every tool of the server.
	rest, ok := strings.CutPrefix(name, r.tool+"__")
	return ok && rest != "" && strings.HasPrefix(r.tool, "mcp__") && strings.Count(r.tool, "__") == 1
}
