package compact

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// maxRepairs bounds the repairs in a row, each of which takes a block out.
const maxRepairs = 8

// Recover answers a refused request: FaultTooLong makes the history shorter,
// once in a row; FaultTooLarge replaces media by stubs, oldest first;
// FaultBlock replaces the block that the error names. ok is false if nothing
// can be done: the error is then for the user. The Note says what was done,
// or why nothing was.
func (c *Compactor) Recover(ctx context.Context, h []agent.Message, err error) (out Outcome, ok bool) {
	out.History = h
	var me *agent.ModelError
	if !errors.As(err, &me) {
		return out, false
	}
	switch me.Fault {
	case agent.FaultTooLong:
		ok = c.shorten(ctx, &out, me)
	case agent.FaultTooLarge:
		ok = c.lighten(&out)
	case agent.FaultBlock:
		ok = c.repair(&out, me)
	}
	if ok {
		c.sending(out.History)
		c.forget()
	}
	return out, ok
}

// shorten makes room after "prompt too long".
func (c *Compactor) shorten(ctx context.Context, out *Outcome, me *agent.ModelError) bool {
	h := out.History
	switch l := c.Limits(); {
	case l.Off:
		out.Note = "The conversation is too long for the model, and compaction is switched off (DISABLE_COMPACT). Use /clear to start anew."
		return false
	case !l.Auto && l.Window > 0:
		out.Note = "The conversation is too long for the model, and automatic compaction is switched off. Use /compact to summarise it, or /clear to start anew."
		return false
	}
	if c.again(&c.tooLong) {
		out.Note = "The conversation is still too long for the model after it was shortened. Use /clear to start anew, or take the largest part out: " + Largest(&c.scale, h, 3) + "."
		return false
	}
	n := c.Tokens(h)
	if asked, limit, ok := numbers(me.Message); ok {
		n = asked
		c.learn(limit)
	}
	if c.Limits().Window == 0 {
		c.learn(n)
	}
	l := c.Limits()
	n = max(n, l.Window)
	goal := min(l.Threshold, l.Window) * 7 / 10
	if less, cuts, after := c.stages(h, n, goal); after <= goal {
		out.apply(less, cuts)
		out.Note = "The conversation was too long for the model; old tool results were taken out."
		return true
	}
	if why := c.barred(); why != "" {
		out.Note = why
		return false
	}
	done := c.compact(ctx, h, Auto, "", true)
	out.Compacted = &done
	if done.Err != "" {
		// A single exchange: all that can be done is to take less of its results.
		limit := max(l.Window/4, 2000)
		less, cuts := Budget(&c.scale, h, limit)
		out.apply(less, cuts)
		if out.Changed {
			out.Compacted = nil
			out.Note = "A single step was too long for the model; its results were shortened."
			return true
		}
		out.Note = "The conversation is too long for the model and cannot be shortened: " + done.Err + ". The largest parts are " + Largest(&c.scale, h, 3) + "."
		return false
	}
	out.History, out.Changed = done.History, true
	out.Cuts = append(out.Cuts, Cut{Stage: "summary", What: fmt.Sprintf("%d messages", len(h)), Why: "the model refused them as too long", Tokens: done.Pre - done.Post})
	c.settle(done)
	return true
}

// again sets a flag and returns whether it was set.
func (c *Compactor) again(flag *bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := *flag
	*flag = true
	return was
}

// learn takes over a window that the upstream has told.
func (c *Compactor) learn(window int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if window <= 0 || c.l.Window > 0 && window >= c.l.Window {
		return
	}
	c.l.Window = window
	t := window - min(reserve, window/5)
	if c.l.Threshold == 0 || t < c.l.Threshold {
		c.l.Threshold = t
	}
	c.l.Output = min(c.l.Output, max(window/5, 1000))
	c.l.Results = min(c.l.Results, max(window, 10_000))
}

var tokenCounts = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(\d{3,9}) tokens > (\d{3,9})`) })

// numbers reads how long the request was and may be, where the error says so.
func numbers(message string) (asked, limit int, ok bool) {
	m := tokenCounts().FindStringSubmatch(message)
	if m == nil {
		return 0, 0, false
	}
	asked, _ = strconv.Atoi(m[1])
	limit, _ = strconv.Atoi(m[2])
	return asked, limit, asked > 0 && limit > 0
}

// lighten makes the request smaller after 413.
func (c *Compactor) lighten(out *Outcome) bool {
	h := out.History
	total, l := c.scale.History(h), c.Limits()
	limit := min(total.Bytes*3/5, l.Bytes)
	biggest := Largest(&c.scale, h, 3)
	less, cuts := Media(&c.scale, h, Size{Bytes: limit, Media: l.Media, Pages: l.Pages})
	out.apply(less, cuts)
	if !out.Changed {
		less, cuts := Budget(&c.scale, h, max(limit/max(len(h), 1), 20_000))
		out.apply(less, cuts)
	}
	said := fmt.Sprintf("The request was too large for the upstream (%s; the largest parts: %s).", count(total.Bytes), biggest)
	if !out.Changed {
		out.Note = said + " There is nothing left in it to take out: use /clear to start anew."
		return false
	}
	out.Note = fmt.Sprintf("%s %s taken out.", said, plural(len(out.Cuts), "block was", "blocks were"))
	return true
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// repair replaces the block that the upstream refused.
func (c *Compactor) repair(out *Outcome, me *agent.ModelError) bool {
	c.mu.Lock()
	c.repairs++
	many := c.repairs > maxRepairs
	c.mu.Unlock()
	if many {
		out.Note = "The upstream refuses one block after the other; no more are taken out."
		return false
	}
	// References to tools stay as they are: turning them into text, where
	// that is needed, moves no block.
	h, cuts := Repair(Sendable(out.History, true), me.Path, me.Message)
	out.apply(h, cuts)
	if !out.Changed {
		return false
	}
	var what []string
	for _, x := range cuts {
		what = append(what, x.What)
	}
	out.Note = fmt.Sprintf("The upstream refused a part of the conversation (%s). Taken out for good: %s.", utf8Cut(me.Message, 200), strings.Join(slices.Compact(what), ", "))
	return true
}

// Sendable returns what of h is sent, as requests hold it: paths in errors
// count its messages and blocks.
func Sendable(h []agent.Message, references bool) []agent.Message {
	out := make([]agent.Message, 0, len(h))
	for _, m := range h {
		if m, _ = Clean(m, references); len(m.Blocks) > 0 {
			out = append(out, m)
		}
	}
	out, _ = Mend(out)
	return out
}

// Repair replaces the block of h that path names, such as
// "messages.3.content.1", by a text that says so. h is what was sent. Without
// a usable path the newest block of the kind that message speaks of is taken.
// It returns h itself if it finds nothing to repair.
func Repair(h []agent.Message, path, message string) ([]agent.Message, []Cut) {
	e := edit("repair", &Scale{}, h)
	ps := locate(h, longer(path, message))
	if len(ps) == 0 {
		ps = guess(h, path+" "+message)
	}
	why := "the upstream refused it: " + utf8Cut(strings.Join(strings.Fields(message), " "), 200)
	for _, p := range ps {
		e.takeOut(p, why)
	}
	if e.out == nil {
		return h, nil
	}
	cuts := e.cuts
	out, _ := e.done()
	out, more := Mend(out)
	for i := range out {
		out[i] = out[i].Encode()
	}
	return out, append(cuts, more...)
}

// longer returns the path in message if it goes on where path ends.
func longer(path, message string) string {
	i := strings.Index(message, "messages.")
	if i < 0 {
		return path
	}
	end := i + strings.IndexFunc(message[i:]+" ", func(r rune) bool {
		return r != '.' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	})
	if p := message[i:end]; strings.HasPrefix(p, path) {
		return p
	}
	return path
}

// takeOut replaces one block so that pairs stay pairs.
func (e *editor) takeOut(p place, why string) {
	b := p.block(e.history())
	note := func(what string) *agent.Text { return stub(fmt.Sprintf("[%s was taken out: %s]", what, why)) }
	switch b := b.(type) {
	case *agent.Image, *agent.Document:
		e.put(p, note(mediaName(b)), Cut{What: mediaName(b), Why: why})
	case *agent.Thinking, *agent.Redacted:
		// One bad signature voids the thinking of the whole message.
		for j, x := range e.history()[p.I].Blocks {
			switch x.(type) {
			case *agent.Thinking, *agent.Redacted:
				e.put(place{p.I, j, -1}, nil, Cut{What: "thinking", Why: why})
			}
		}
	case *agent.ToolResult:
		e.replace(p.I, p.J, &agent.ToolResult{ID: b.ID, IsError: b.IsError, Blocks: []agent.Block{note("This result")}}, Cut{Call: b.ID, What: "a tool result", Why: why})
	case *agent.ToolUse:
		e.replace(p.I, p.J, note("A call of "+b.Name), Cut{Call: b.ID, What: "a call of " + b.Name, Why: why})
	case *agent.Text:
		if strings.TrimSpace(b.Text) == "" {
			e.put(p, nil, Cut{What: "a blank text", Why: why})
			return
		}
		if b.Citations != nil {
			e.put(p, &agent.Text{Text: b.Text, Note: b.Note}, Cut{What: "citations", Why: why})
			return
		}
		if b.Note != "stub" {
			e.put(p, note("A text"), Cut{What: "a text", Why: why})
		}
	case *agent.Opaque:
		// Server tools come in pairs within one message; half a pair is
		// refused again, so all of them go.
		for j, x := range e.history()[p.I].Blocks {
			if o, ok := x.(*agent.Opaque); ok {
				e.put(place{p.I, j, -1}, note("A block ("+o.Type+")"), Cut{What: "a block (" + o.Type + ")", Why: why})
			}
		}
	case *agent.ToolReference:
		e.put(p, stub("The definition of "+b.Name+" is not there."), Cut{What: "a reference to " + b.Name, Why: why})
	}
}

// locate reads a path of an error. A path that names a message only stands
// for all blocks of it that are no plain text.
func locate(h []agent.Message, path string) []place {
	at := -1
	p := place{-1, -1, -1}
	for seg := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		n, err := strconv.Atoi(seg)
		switch {
		case err != nil:
			if seg == "messages" && at < 0 {
				at = 0
			}
		case at == 0:
			p.I, at = n, 1
		case at == 1:
			p.J, at = n, 2
		case at == 2:
			p.K, at = n, 3
		}
	}
	if p.I < 0 || p.I >= len(h) {
		return nil
	}
	blocks := h[p.I].Blocks
	if p.J < 0 {
		var ps []place
		for j, b := range blocks {
			switch b.(type) {
			case *agent.Text, *agent.ToolUse, *agent.ToolResult:
			default:
				ps = append(ps, place{p.I, j, -1})
			}
		}
		return ps
	}
	if p.J >= len(blocks) {
		return nil
	}
	if p.K >= 0 {
		r, ok := blocks[p.J].(*agent.ToolResult)
		if !ok || p.K >= len(r.Blocks) {
			p.K = -1
		}
	}
	return []place{p}
}

// guess finds the newest block of the kind that the words speak of.
func guess(h []agent.Message, words string) []place {
	words = strings.ToLower(words)
	has := func(ws ...string) bool {
		return slices.ContainsFunc(ws, func(w string) bool { return strings.Contains(words, w) })
	}
	ms := media(h)
	switch {
	case has("image", "pdf", "document", "media", "base64") && len(ms) > 0:
		return ms[len(ms)-1:]
	case has("thinking", "signature"):
		for i, m := range slices.Backward(h) {
			for j, b := range m.Blocks {
				switch b.(type) {
				case *agent.Thinking, *agent.Redacted:
					return []place{{i, j, -1}}
				}
			}
		}
	case has("tool_reference"):
		for i, m := range slices.Backward(h) {
			for j, b := range m.Blocks {
				if r, ok := b.(*agent.ToolResult); ok {
					for k, x := range r.Blocks {
						if _, ok := x.(*agent.ToolReference); ok {
							return []place{{i, j, k}}
						}
					}
				}
			}
		}
	}
	return nil
}
