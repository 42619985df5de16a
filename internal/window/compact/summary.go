package compact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// instruction asks for the summary. It stands behind the conversation, so
// that all before it is read from the cache.
const instruction = `The conversation is close to the end of its window. Write a summary of it that will stand in its place. You will go on with the work from the summary alone, so leave out nothing that you need for it, and call no tools now.

Think in <analysis> tags first if that helps. Then write the summary in <summary> tags, under these headings, without those that would be empty:

1. What the user wants: each request and wish that still counts, in their own words where the wording matters, and what they said against.
2. State of the work: what is done and verified, what is half done, what was tried and did not work, and why.
3. Files and places: paths with what was found or changed in each, with short pieces of code only where their exact text is needed.
4. Facts: names, commands, versions, errors and decisions, with their reasons, that took effort to find out.
5. Next: the step you were about to take, and what is open.

Be exact and brief. Do not invent anything, and do not address the user.`

// again asks once more, of a model that answered with something else.
const again = "\n\nAnswer with text alone: no tool calls, and the summary between <summary> and </summary>."

// summarise asks for a summary of h: whole, or in parts if it is too long for
// a request.
func (c *Compactor) summarise(ctx context.Context, h []agent.Message, instruction string) (string, error) {
	if c.o.Provider == nil || c.o.Aside == nil {
		return "", errors.New("there is no model to ask")
	}
	s, err := c.ask(ctx, h, instruction)
	if tooLong(err) {
		return c.inParts(ctx, h, instruction)
	}
	return s, err
}

func tooLong(err error) bool {
	var me *agent.ModelError
	return errors.As(err, &me) && (me.Fault == agent.FaultTooLong || me.Fault == agent.FaultTooLarge)
}

// ask asks for a summary of h, and a second time if the answer has none. A
// text without tags counts the second time.
func (c *Compactor) ask(ctx context.Context, h []agent.Message, instruction string) (string, error) {
	most := c.Limits().Output
	for try := range 2 {
		text := instruction
		if try > 0 {
			text += again
		}
		req := c.o.Aside(h, text)
		if most > 0 && req.Thinking.Type != "enabled" && (req.MaxTokens == 0 || req.MaxTokens > most) {
			req.MaxTokens = most
		}
		if try > 0 && req.Tools != nil {
			extra := map[string]json.RawMessage{"tool_choice": json.RawMessage(`{"type":"none"}`)}
			for k, v := range req.Extra {
				if k != "tool_choice" {
					extra[k] = v
				}
			}
			req.Extra = extra
		}
		answer, stop, err := c.answer(ctx, req)
		if s, ok := extract(answer); ok {
			return s, nil
		}
		if err != nil {
			return "", err
		}
		if stop == "refusal" {
			return "", errors.New("the model refused to write it")
		}
		if try > 0 {
			if answer = strings.TrimSpace(answer); answer != "" {
				return answer, nil
			}
		}
	}
	return "", errors.New("the model gave no summary when asked twice")
}

// answer returns the text of the response to req. On an error it is what had
// come complete.
func (c *Compactor) answer(ctx context.Context, req *agent.Request) (text, stop string, err error) {
	var b strings.Builder
	for d, err := range c.o.Provider.Stream(ctx, req) {
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return b.String(), stop, err
		}
		switch d := d.(type) {
		case agent.BlockEnd:
			if t, ok := d.Block.(*agent.Text); ok {
				b.WriteString(t.Text)
			}
		case agent.Reset: // the attempt is void; another follows
			b.Reset()
		case agent.Stopped:
			stop = d.Stop
		}
	}
	if err := context.Cause(ctx); err != nil {
		return b.String(), stop, err
	}
	return b.String(), stop, nil
}

// extract returns what stands in the summary element. An element that the
// answer's end cut off counts; an empty one does not.
func extract(answer string) (string, bool) {
	i := strings.LastIndex(answer, "<summary>")
	if i < 0 {
		return "", false
	}
	s := answer[i+len("<summary>"):]
	if j := strings.LastIndex(s, "</summary>"); j >= 0 {
		s = s[:j]
	}
	s = strings.TrimSpace(s)
	return s, s != ""
}

// maxParts bounds the requests for one summary in parts.
const maxParts = 24

// inParts summarises h piece by piece, each together with the summary of
// those before. Pieces are halved as often as the upstream finds them too long.
func (c *Compactor) inParts(ctx context.Context, h []agent.Message, instruction string) (string, error) {
	room := c.scale.History(h).Tokens / 2
	if w := c.Limits().Window; w > 0 {
		room = min(room, c.unscaled(w/2))
	}
	summary := ""
	for i, asked := 0, 0; i < len(h); asked++ {
		if asked == maxParts {
			return "", fmt.Errorf("the conversation is too long to be summarised, also in %d parts", maxParts)
		}
		if room < 500 {
			return "", errors.New("the conversation is too long to be summarised, also in small parts")
		}
		j := c.piece(h, i, room)
		part := c.fitted(h[i:j], room)
		if summary != "" {
			before := agent.Message{Role: agent.User, Meta: true, Blocks: []agent.Block{
				&agent.Text{Text: "What came before, in a summary:\n\n" + summary, Note: "summary"}}}
			part = append([]agent.Message{before.Encode()}, part...)
		}
		s, err := c.ask(ctx, part, instruction)
		if tooLong(err) {
			room /= 2
			continue
		}
		if err != nil {
			return "", err
		}
		summary, i = s, j
	}
	return summary, nil
}

// piece returns the end of the piece of h that begins at i: as many messages
// as fit, at least one, and never a call without its result.
func (c *Compactor) piece(h []agent.Message, i, room int) int {
	end, n, open := i, 0, 0
	for j := i; j < len(h); j++ {
		n += c.scale.Message(h[j]).Tokens
		for _, b := range h[j].Blocks {
			switch b.(type) {
			case *agent.ToolUse:
				open++
			case *agent.ToolResult:
				open--
			}
		}
		if open > 0 {
			continue
		}
		if n > room && end > i {
			return end
		}
		end = j + 1
	}
	return len(h)
}

// fitted returns part in a size that can be sent: one exchange alone may be
// larger than a window.
func (c *Compactor) fitted(part []agent.Message, room int) []agent.Message {
	if c.scale.History(part).Tokens <= room {
		return part
	}
	part, _ = Clear(&c.scale, part, Goal{Tokens: room, Keep: 1})
	part, _ = Budget(&c.scale, part, room)
	part, _ = Media(&c.scale, part, Size{Bytes: room * 4, Media: 4, Pages: 10})
	if c.scale.History(part).Tokens <= room {
		return part
	}
	e := edit("part", &c.scale, part)
	most := max(room*4/max(len(part), 1), 400)
	for i, m := range part {
		for j, b := range m.Blocks {
			if t, ok := b.(*agent.Text); ok && len(t.Text) > most {
				e.replace(i, j, stub(utf8Cut(t.Text, most)+"\n[… the rest is left out …]"), Cut{What: "the end of a text", Why: "it does not fit into a request"})
			}
		}
	}
	out, _ := e.done()
	return out
}
