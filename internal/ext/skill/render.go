package skill

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// An Invocation is a skill with what it is rendered for.
type Invocation struct {
	Skill Skill
	Args  string // as they were typed
	// Vars are the ${NAME} placeholders besides those of the skill itself:
	// CLAUDE_SESSION_ID, CLAUDE_EFFORT, CLAUDE_PROJECT_DIR.
	Vars map[string]string
	// Run runs an injected command after its permission was checked, and
	// returns its output. allow are the rules that hold for it. Nil: a note
	// that it is switched off stands in its place.
	Run func(ctx context.Context, command string, allow []string) (string, error)
}

// Render returns the text that goes to the model: arguments are put in first,
// then the injected commands run, once, over what was there before any of
// them. An error ends the invocation: its text is for the person.
func (v Invocation) Render(ctx context.Context) (string, error) {
	vars := map[string]string{"CLAUDE_SKILL_DIR": v.Skill.Dir, "CLAUDE_PLUGIN_ROOT": v.Skill.Root, "CLAUDE_PLUGIN_DATA": v.Skill.Data}
	for k, x := range v.Vars {
		vars[k] = x
	}
	body, used := arguments(v.Skill.Body, v.Args, v.Skill.Arguments, vars)
	if !used && strings.TrimSpace(v.Args) != "" {
		body = strings.TrimRight(body, "\n") + "\n\nARGUMENTS: " + v.Args
	}
	allow := make([]string, len(v.Skill.Allow))
	for i, rule := range v.Skill.Allow {
		allow[i] = placeholders(rule, vars)
	}
	return inject(ctx, body, func(ctx context.Context, command string) (string, error) {
		if v.Run == nil {
			return "[shell command execution disabled by policy]", nil
		}
		return v.Run(ctx, command, allow)
	})
}

// placeholders replaces ${NAME} where NAME is known and has a value.
func placeholders(s string, vars map[string]string) string {
	for k, x := range vars {
		if x != "" {
			s = strings.ReplaceAll(s, "${"+k+"}", x)
		}
	}
	return s
}

// arguments puts args into body. used reports whether the body named them.
func arguments(body, args string, names []string, vars map[string]string) (out string, used bool) {
	words := split(args)
	var b strings.Builder
	for i := 0; i < len(body); {
		c := body[i]
		if c == '\\' && i+1 < len(body) {
			// \$1 is a plain $1; \\$1 is a backslash and the argument.
			if strings.HasPrefix(body[i+1:], "$") {
				b.WriteByte('$')
				i += 2
				continue
			}
			if strings.HasPrefix(body[i+1:], `\$`) {
				b.WriteByte('\\')
				i += 2
				continue
			}
		}
		if c != '$' {
			b.WriteByte(c)
			i++
			continue
		}
		rest := body[i+1:]
		text, n, arg := one(rest, args, words, names, vars)
		if n == 0 {
			b.WriteByte('$')
			i++
			continue
		}
		used = used || arg
		b.WriteString(text)
		i += 1 + n
	}
	return b.String(), used
}

// one reads the placeholder at the start of rest, the text after a '$'. n is
// its length, 0 if there is none; arg says that it stands for arguments.
func one(rest, args string, words, names []string, vars map[string]string) (text string, n int, arg bool) {
	if strings.HasPrefix(rest, "{") {
		if end := strings.IndexByte(rest, '}'); end > 0 {
			if v := vars[rest[1:end]]; v != "" {
				return v, end + 1, false
			}
		}
		return "", 0, false
	}
	if strings.HasPrefix(rest, "ARGUMENTS") && !letter(rest, 9) {
		n = len("ARGUMENTS")
		if strings.HasPrefix(rest[n:], "[") {
			if end := strings.IndexByte(rest[n:], ']'); end > 0 {
				if k, err := strconv.Atoi(rest[n+1 : n+end]); err == nil && k >= 0 {
					if k < len(words) {
						return words[k], n + end + 1, true
					}
					return "", 0, false // compat: a missing index stays as it is
				}
			}
		}
		return args, n, true
	}
	d := 0
	for d < len(rest) && rest[d] >= '0' && rest[d] <= '9' {
		d++
	}
	if d > 0 {
		if k, err := strconv.Atoi(rest[:d]); err == nil && k < len(words) {
			return words[k], d, true
		}
		return "", 0, false
	}
	// The longest name first: $base_url is not $base.
	best := -1
	for i, name := range names {
		if strings.HasPrefix(rest, name) && !letter(rest, len(name)) && (best < 0 || len(name) > len(names[best])) {
			best = i
		}
	}
	if best >= 0 {
		if best < len(words) {
			text = words[best]
		}
		return text, len(names[best]), true
	}
	return "", 0, false
}

// letter reports whether s has a character of a name at i.
func letter(s string, i int) bool {
	if i >= len(s) {
		return false
	}
	c := s[i]
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// split splits arguments as a shell would, without expanding anything. An
// open quote goes to the end.
func split(s string) []string {
	var words []string
	var w strings.Builder
	in, open := byte(0), false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\' && in != '\'' && i+1 < len(s):
			i++
			w.WriteByte(s[i])
			open = true
		case in == 0 && (c == '"' || c == '\''):
			in, open = c, true
		case c == in && in != 0:
			in = 0
		case in == 0 && (c == ' ' || c == '\t' || c == '\n'):
			if open {
				words = append(words, w.String())
				w.Reset()
				open = false
			}
		default:
			w.WriteByte(c)
			open = true
		}
	}
	if open {
		words = append(words, w.String())
	}
	return words
}

// errInjection marks the failure of an injected command.
var errInjection = errors.New("a command in the text failed")

// inject replaces !`command` at the start of a line or after a space, and
// fenced blocks opened with ```!, by what the commands print. What they print
// is not looked at again.
func inject(ctx context.Context, body string, run func(context.Context, string) (string, error)) (string, error) {
	var b strings.Builder
	do := func(command string) error {
		out, err := run(ctx, command)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", errInjection, command, err)
		}
		b.WriteString(strings.TrimRight(out, "\n"))
		return nil
	}
	fence := ""
	for i := 0; i < len(body); {
		atLine := i == 0 || body[i-1] == '\n'
		if atLine {
			line, _, _ := strings.Cut(body[i:], "\n")
			trimmed := strings.TrimSpace(line)
			switch {
			case fence == "" && strings.HasPrefix(trimmed, "```!"):
				end := strings.Index(body[i+len(line):], "\n```")
				if end >= 0 {
					command := strings.TrimSpace(strings.TrimPrefix(trimmed, "```!") + body[i+len(line):i+len(line)+end])
					if err := do(command); err != nil {
						return "", err
					}
					i += len(line) + end + len("\n```")
					continue
				}
			case fence == "" && strings.HasPrefix(trimmed, "```"):
				fence = "```"
				b.WriteString(line)
				i += len(line)
				continue
			case fence != "" && strings.HasPrefix(trimmed, fence):
				fence = ""
				b.WriteString(line)
				i += len(line)
				continue
			}
		}
		if fence == "" && strings.HasPrefix(body[i:], "!`") && (atLine || body[i-1] == ' ' || body[i-1] == '\t') {
			if end := strings.IndexByte(body[i+2:], '`'); end > 0 && !strings.Contains(body[i+2:i+2+end], "\n") {
				if err := do(body[i+2 : i+2+end]); err != nil {
					return "", err
				}
				i += 2 + end + 1
				continue
			}
		}
		b.WriteByte(body[i])
		i++
	}
	return b.String(), nil
}
