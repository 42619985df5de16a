package mcp

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// A Prompt is one prompt of a server, as a command.
type Prompt struct {
	Server, Name, Command, Description string
	Arguments                          []Argument
}

// An Argument is one that a prompt takes.
type Argument struct {
	Name     string
	Required bool
}

// Prompts lists the prompts of all connected servers. Of two that have one
// command the first counts.
func (s *Set) Prompts() []Prompt {
	var out []Prompt
	seen := map[string]bool{}
	for _, x := range s.list() {
		x.mu.Lock()
		for _, p := range x.prompts {
			pr := Prompt{Server: x.Name, Name: p.Name, Command: "mcp__" + clean(x.Name) + "__" + clean(p.Name), Description: p.Description}
			for _, a := range p.Arguments {
				pr.Arguments = append(pr.Arguments, Argument{a.Name, a.Required})
			}
			if !seen[pr.Command] && x.state == Connected {
				seen[pr.Command] = true
				out = append(out, pr)
			}
		}
		x.mu.Unlock()
	}
	return out
}

// Prompt returns what a prompt says with the arguments of a command line.
// They are separated by spaces unless they stand in quotes; what is left over
// belongs to the last.
func (s *Set) Prompt(ctx context.Context, p Prompt, line string) ([]agent.Block, error) {
	x, err := s.find(p.Server)
	if err != nil {
		return nil, err
	}
	args, err := p.assign(words(line))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.ConnectTimeout, fmt.Errorf("the MCP server %s did not answer within %s", p.Server, s.o.ConnectTimeout))
	defer cancel()
	cs, err := x.live(ctx)
	if err != nil {
		return nil, err
	}
	r, err := cs.GetPrompt(ctx, &sdk.GetPromptParams{Name: p.Name, Arguments: args})
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("asking the MCP server %s for its prompt %s: %w", p.Server, p.Name, err)
	}
	var out []agent.Block
	for _, m := range r.Messages {
		if m == nil || m.Content == nil {
			continue
		}
		bs := blocks([]sdk.Content{m.Content})
		if t, ok := first(bs).(*agent.Text); ok && m.Role == "assistant" {
			t.Text = "(an answer that the prompt gives as an example)\n" + t.Text
		}
		out = append(out, bs...)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the prompt %s of the MCP server %s is empty", p.Name, p.Server)
	}
	return out, nil
}

func first(bs []agent.Block) agent.Block {
	if len(bs) == 0 {
		return nil
	}
	return bs[0]
}

// assign gives the words of a command line to the arguments in their order.
func (p Prompt) assign(ws []string) (map[string]string, error) {
	out := map[string]string{}
	var missing []string
	for i, a := range p.Arguments {
		switch {
		case i >= len(ws) && a.Required:
			missing = append(missing, a.Name)
		case i >= len(ws):
		case i == len(p.Arguments)-1:
			out[a.Name] = strings.Join(ws[i:], " ")
		default:
			out[a.Name] = ws[i]
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("/%s needs %s\nusage: /%s %s", p.Command, strings.Join(missing, " and "), p.Command, p.Hint())
	}
	return out, nil
}

// Hint is how the arguments are written, for people.
func (p Prompt) Hint() string {
	var out []string
	for _, a := range p.Arguments {
		if a.Required {
			out = append(out, "<"+a.Name+">")
		} else {
			out = append(out, "["+a.Name+"]")
		}
	}
	return strings.Join(out, " ")
}

// words splits a line at spaces; quotes of either kind keep them, and a
// backslash takes the meaning from what follows it, but not within single quotes.
// A quote that is not closed reaches to the end.
func words(line string) []string {
	var out []string
	var b strings.Builder
	var quote rune
	open, escaped := false, false
	for _, r := range line {
		switch {
		case escaped:
			b.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			open, escaped = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\'' && !open): // an apostrophe within a word is one
			open, quote = true, r
		case quote == 0 && unicode.IsSpace(r):
			if open {
				out = append(out, b.String())
				b.Reset()
				open = false
			}
		default:
			b.WriteRune(r)
			open = true
		}
	}
	if escaped {
		b.WriteByte('\\')
	}
	if open {
		out = append(out, b.String())
	}
	return out
}
