// Package skill knows the skills and custom commands that users keep as
// Markdown files: where they are, what their heads say, how a body becomes a
// prompt, which of them the model is told of, and the Skill tool. A command
// file is a skill without a directory of its own.
//
// It reads through an fs.FS, runs no command itself and does not know the
// session: what it needs of them are functions in Options.
package skill

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/frontmatter"
)

// A Skill is one skill or custom command.
type Skill struct {
	Name        string // without the slash; plugin ones are plugin:name
	Description string
	WhenToUse   string
	Hint        string   // of the arguments, for people
	Arguments   []string // names of the arguments, for $name
	Body        string

	Allow, Deny   []string // permission rules for the turn that invokes it
	Model, Effort string   // for the rest of that turn; "" leaves them
	Fork          bool     // runs as a sub-agent
	Agent         string   // of a fork; "" is general-purpose
	Background    bool     // of a fork
	Paths         []string // globs; it is listed once such a file was touched
	Shell         string
	Hooks         any // a hooks block that holds from its invocation on

	// Hidden skills are the user's only (disable-model-invocation); Internal
	// ones the model's only (user-invocable: false).
	Hidden, Internal bool

	Command bool   // from a commands directory
	Source  string // managed, user, project, plugin:…, bundled
	File    string // absolute; "" for bundled ones
	Dir     string // directory of SKILL.md, for ${CLAUDE_SKILL_DIR}
	Root    string // of the plugin
	Data    string // of the plugin
}

// A Problem is a file that was left out, or a part of one, and why.
type Problem struct{ File, Text string }

func (p Problem) String() string { return p.File + ": " + p.Text }

// maxFile bounds a skill file.
const maxFile = 1 << 20

// Parse reads one file. A head that is not YAML is told by err; the body is
// usable all the same.
func Parse(data []byte, name string, command bool) (Skill, error) {
	h, body, err := frontmatter.Parse(data)
	s := Skill{Name: name, Body: body, Command: command}
	s.Description = h.Text("description")
	if s.Description == "" {
		s.Description = firstParagraph(body)
	}
	s.WhenToUse, s.Hint = h.Text("when_to_use"), h.Text("argument-hint")
	if s.Hint == "" {
		if list, ok := h.List("argument-hint"); ok {
			s.Hint = "[" + strings.Join(list, "] [") + "]" // [a] is a YAML list too
		}
	}
	s.Arguments, _ = h.List("arguments")
	s.Allow, _ = h.List("allowed-tools")
	s.Deny, _ = h.List("disallowed-tools")
	s.Allow, s.Deny = spaced(s.Allow), spaced(s.Deny)
	if s.Model = h.Text("model"); s.Model == "inherit" {
		s.Model = ""
	}
	s.Effort, s.Shell, s.Agent = h.Text("effort"), h.Text("shell"), h.Text("agent")
	s.Fork, s.Background = h.Text("context") == "fork", h.Bool("background", true)
	s.Hidden, s.Internal = h.Bool("disable-model-invocation", false), !h.Bool("user-invocable", true)
	s.Hooks = h["hooks"]
	if !command {
		s.Paths, _ = h.List("paths")
	}
	return s, err
}

// spaced splits entries at spaces outside of parentheses: both separators are
// in use for tool lists.
func spaced(list []string) []string {
	var out []string
	for _, s := range list {
		depth, start := 0, 0
		for i := 0; i <= len(s); i++ {
			switch {
			case i == len(s) || s[i] == ' ' && depth == 0:
				if w := strings.TrimSpace(s[start:i]); w != "" {
					out = append(out, w)
				}
				start = i + 1
			case s[i] == '(':
				depth++
			case s[i] == ')':
				depth--
			}
		}
	}
	return out
}

func firstParagraph(body string) string {
	for para := range strings.SplitSeq(strings.ReplaceAll(body, "\r\n", "\n"), "\n\n") {
		if p := strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(para), "#")); p != "" {
			return strings.Join(strings.Fields(p), " ")
		}
	}
	return ""
}

// A Place is a directory that holds skills or command files.
type Place struct {
	FS      fs.FS
	Dir     string // inside FS
	Path    string // absolute; what messages and ${CLAUDE_SKILL_DIR} say
	Source  string
	Command bool
	Plugin  string // prefix of names
	Root    string // of the plugin
	Data    string // of the plugin
}

// Discover reads everything under the places, the strongest first: of two
// with one name the first counts, and a skill comes before a command file.
func Discover(places []Place) (ss []Skill, ps []Problem) {
	for _, commands := range []bool{false, true} {
		for _, p := range places {
			if p.Command == commands {
				found, problems := p.read()
				ss, ps = append(ss, found...), append(ps, problems...)
			}
		}
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(ss, func(s Skill) bool {
		dup := seen[s.Name]
		seen[s.Name] = true
		return dup
	}), ps
}

func (p Place) read() (ss []Skill, ps []Problem) {
	if p.Command {
		_ = fs.WalkDir(p.FS, p.Dir, func(name string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() && path.Ext(name) == ".md" {
				p.add(&ss, &ps, name, strings.TrimSuffix(path.Base(name), ".md"))
			}
			return nil // what cannot be read hides nothing else
		})
		return ss, ps
	}
	if p.Plugin != "" { // a plugin may be, or name, a single skill
		if name := path.Join(p.Dir, "SKILL.md"); regular(p.FS, name) {
			p.add(&ss, &ps, name, path.Base(p.Dir))
			return ss, ps
		}
	}
	entries, err := fs.ReadDir(p.FS, p.Dir)
	if err != nil {
		return nil, nil // not there
	}
	for _, e := range entries {
		name := path.Join(p.Dir, e.Name(), "SKILL.md")
		if _, err := fs.Stat(p.FS, name); err == nil {
			p.add(&ss, &ps, name, e.Name())
		}
	}
	return ss, ps
}

func (p Place) add(ss *[]Skill, ps *[]Problem, name, base string) {
	file := path.Join(p.Path, strings.TrimPrefix(strings.TrimPrefix(name, p.Dir), "/"))
	data, err := readFile(p.FS, name)
	if err != nil {
		*ps = append(*ps, Problem{file, "this skill was left out: " + err.Error()})
		return
	}
	s, err := Parse(data, base, p.Command)
	if err != nil {
		*ps = append(*ps, Problem{file, err.Error() + "; its text is used without it"})
	}
	if strings.ContainsAny(s.Name, " \t\n/") {
		*ps = append(*ps, Problem{file, fmt.Sprintf("this skill was left out: %q cannot be typed as a command", s.Name)})
		return
	}
	if p.Plugin != "" {
		if h, _, err := frontmatter.Parse(data); err == nil && !p.Command && h.Text("name") != "" {
			s.Name = h.Text("name")
		}
		s.Name = p.Plugin + ":" + s.Name
	}
	s.Source, s.File, s.Dir, s.Root, s.Data = p.Source, file, path.Dir(file), p.Root, p.Data
	*ss = append(*ss, s)
}

func regular(fsys fs.FS, name string) bool {
	fi, err := fs.Stat(fsys, name)
	return err == nil && fi.Mode().IsRegular()
}

func readFile(fsys fs.FS, name string) ([]byte, error) {
	fi, err := fs.Stat(fsys, name)
	switch {
	case err != nil:
		return nil, err
	case !fi.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case fi.Size() > maxFile:
		return nil, fmt.Errorf("larger than %d bytes", maxFile)
	}
	return fs.ReadFile(fsys, name)
}

// Infos lists what a person can type.
func Infos(ss []Skill) []agent.CommandInfo {
	out := make([]agent.CommandInfo, 0, len(ss))
	for _, s := range ss {
		if !s.Internal {
			out = append(out, agent.CommandInfo{Name: s.Name, Description: s.Description, Hint: s.Hint, Skill: !s.Command})
		}
	}
	return out
}

// Budget bounds the listing.
type Budget struct {
	Total int // characters; 0 is 8,000
	Each  int // characters of one description; 0 is 1,536
	// Uses counts how often a skill was used: the least used lose their
	// descriptions first. May be nil.
	Uses map[string]int
	// Show overrides by name: on, name-only, user-invocable-only, off.
	Show map[string]string
}

// Listing is what the model is told of the skills: the names and, as far as
// the budget goes, the descriptions. dropped counts those without one.
func Listing(ss []Skill, b Budget) (text string, dropped int) {
	if b.Total == 0 {
		b.Total = 8000
	}
	if b.Each == 0 {
		b.Each = 1536
	}
	type line struct {
		name, text string
		uses       int
	}
	var lines []line
	size := 0
	for _, s := range ss {
		show := b.Show[s.Name]
		if s.Hidden || show == "off" || show == "user-invocable-only" || len(s.Paths) > 0 {
			continue
		}
		d := strings.Join(strings.Fields(s.Description+" "+s.WhenToUse), " ")
		if r := []rune(d); len(r) > b.Each {
			d = string(r[:b.Each-1]) + "…"
		}
		if show == "name-only" {
			d = ""
		}
		lines = append(lines, line{s.Name, d, b.Uses[s.Name]})
		size += len(s.Name) + len(d) + 5
	}
	order := make([]int, len(lines))
	for i := range order {
		order[i] = i
	}
	for n := len(order) - 1; n >= 0 && size > b.Total; n-- {
		// Among the equally little used, those that stand last lose first.
		i := leastUsed(order[:n+1], func(i int) int { return lines[i].uses })
		at := order[i]
		order = slices.Delete(order, i, i+1)
		if lines[at].text != "" {
			size -= len(lines[at].text)
			lines[at].text = ""
			dropped++
		}
	}
	var sb strings.Builder
	for _, l := range lines {
		sb.WriteString("- " + l.name)
		if l.text != "" {
			sb.WriteString(": " + l.text)
		}
		sb.WriteByte('\n')
	}
	return strings.TrimRight(sb.String(), "\n"), dropped
}

// leastUsed returns the index of the last of those with the lowest count.
func leastUsed(order []int, uses func(int) int) int {
	best := len(order) - 1
	for i := len(order) - 1; i >= 0; i-- {
		if uses(order[i]) < uses(order[best]) {
			best = i
		}
	}
	return best
}
