package compact

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// A Goal says how far a stage goes: until the history has at most Tokens
// (estimated). The newest Keep tool results and the newest turn stay as they
// are.
type Goal struct{ Tokens, Keep int }

// small is the size, in bytes, below which it is not worth to clear a result.
const small = 400

// precious are tools whose results are not cleared: they cannot be had again,
// or the upstream needs them.
func precious(tool string) bool {
	switch tool {
	case "AskUserQuestion", "ExitPlanMode", "Agent", "Task", "Skill", "ToolSearch":
		return true
	}
	return false
}

// An editor makes a changed copy of a history. What is not touched keeps its
// bytes, so the prefix before the first change stays.
type editor struct {
	stage string
	scale *Scale
	in    []agent.Message
	out   []agent.Message // nil until something changes
	calls map[agent.CallID]*agent.ToolUse
	cuts  []Cut
	size  int // tokens
}

func edit(stage string, s *Scale, h []agent.Message) *editor {
	return &editor{stage: stage, scale: s, in: h, size: s.History(h).Tokens}
}

func (e *editor) history() []agent.Message {
	if e.out == nil {
		return e.in
	}
	return e.out
}

// call returns the call that a result answers, or nil.
func (e *editor) call(id agent.CallID) *agent.ToolUse {
	if e.calls == nil {
		e.calls = map[agent.CallID]*agent.ToolUse{}
		for _, m := range e.in {
			for _, b := range m.Blocks {
				if u, ok := b.(*agent.ToolUse); ok {
					e.calls[u.ID] = u
				}
			}
		}
	}
	return e.calls[id]
}

func (e *editor) tool(id agent.CallID) string {
	if u := e.call(id); u != nil {
		return u.Name
	}
	return "an unknown tool"
}

// replace puts b (nil for nothing) in the place of block j of message i and
// notes it. Positions stay valid until done.
func (e *editor) replace(i, j int, b agent.Block, c Cut) {
	if e.out == nil {
		e.out = slices.Clone(e.in)
	}
	m := &e.out[i]
	if m.Wire != nil || len(m.Blocks) == len(e.in[i].Blocks) && &m.Blocks[0] == &e.in[i].Blocks[0] {
		m.Blocks, m.Wire = slices.Clone(m.Blocks), nil
	}
	was := e.scale.Block(m.Blocks[j])
	var is Size
	if b != nil {
		is = e.scale.Block(b)
	}
	m.Blocks[j] = b
	e.size -= was.Tokens - is.Tokens
	c.Stage, c.Index, c.UUID = e.stage, i, m.UUID
	c.Tokens, c.Bytes = was.Tokens-is.Tokens, was.Bytes-is.Bytes
	e.cuts = append(e.cuts, c)
}

// done drops the holes and encodes what changed.
func (e *editor) done() ([]agent.Message, []Cut) {
	if e.out == nil {
		return e.in, nil
	}
	hole := func(b agent.Block) bool { return b == nil }
	out := e.out[:0]
	for _, m := range e.out {
		if slices.ContainsFunc(m.Blocks, hole) {
			m.Blocks = slices.DeleteFunc(m.Blocks, hole)
		}
		if len(m.Blocks) > 0 {
			out = append(out, m.Encode())
		}
	}
	return out, e.cuts
}

// Budget cuts tool results so that those of one message have at most limit
// bytes: the largest first, to their head and tail. It depends on the message
// alone, so it does the same every time.
func Budget(s *Scale, h []agent.Message, limit int) ([]agent.Message, []Cut) {
	e := edit("budget", s, h)
	for i, m := range h {
		total := 0
		var at []int
		for j, b := range m.Blocks {
			if r, ok := b.(*agent.ToolResult); ok {
				if n := textLen(r.Blocks); n > 0 {
					total += n
					at = append(at, j)
				}
			}
		}
		if total <= limit {
			continue
		}
		// The largest share that fits if nobody gets more than it.
		share, left, rest := 0, limit, slices.Clone(at)
		for len(rest) > 0 {
			share = left / len(rest)
			over := slices.DeleteFunc(slices.Clone(rest), func(j int) bool { return textLen(m.Blocks[j].(*agent.ToolResult).Blocks) <= share })
			if len(over) == len(rest) || len(over) == 0 {
				break
			}
			for _, j := range rest {
				if n := textLen(m.Blocks[j].(*agent.ToolResult).Blocks); n <= share {
					left -= n
				}
			}
			rest = over
		}
		for _, j := range at {
			r := m.Blocks[j].(*agent.ToolResult)
			if n := textLen(r.Blocks); n-share > len(shortened) { // less is not worth it
				e.replace(i, j, shorten(r, share), Cut{Call: r.ID,
					What: fmt.Sprintf("%d bytes from the middle of a result of %s", n-share, e.tool(r.ID)),
					Why:  fmt.Sprintf("the results of one step may have %d bytes together", limit)})
			}
		}
	}
	return e.done()
}

func textLen(bs []agent.Block) int {
	n := 0
	for _, b := range bs {
		if t, ok := b.(*agent.Text); ok {
			n += len(t.Text)
		}
	}
	return n
}

const shortened = "\n[… %d bytes are left out here. Ask for a smaller part if you need them …]\n"

// shorten returns r with at most limit bytes of text: two thirds from the
// head, the rest from the tail, and a line that says so. Media stay.
func shorten(r *agent.ToolResult, limit int) *agent.ToolResult {
	var all strings.Builder
	var blocks []agent.Block
	at := -1
	for _, b := range r.Blocks {
		if t, ok := b.(*agent.Text); ok {
			if at < 0 {
				at = len(blocks)
				blocks = append(blocks, nil)
			}
			all.WriteString(t.Text)
			continue
		}
		blocks = append(blocks, b)
	}
	text := all.String()
	note := fmt.Sprintf(shortened, len(text)-limit)
	room := max(limit-len(note), 0)
	head := utf8Cut(text, room*2/3)
	tail := text[len(text)-(room-room*2/3):]
	for tail != "" && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	if room == 0 {
		note = utf8Cut(note, limit)
	}
	blocks[at] = &agent.Text{Text: head + note + tail, Note: "stub"}
	return &agent.ToolResult{ID: r.ID, Blocks: blocks, Array: r.Array, IsError: r.IsError}
}

// utf8Cut returns the longest prefix of s with at most n bytes and whole runes.
func utf8Cut(s string, n int) string {
	if n >= len(s) {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Snip removes what a later message has made void: results of calls that
// were made again with the same input, notes that a later note of their kind
// replaces, and the thinking of finished turns.
func Snip(s *Scale, h []agent.Message, g Goal) ([]agent.Message, []Cut) {
	e := edit("snip", s, h)
	last := lastTurn(h)
	again := map[string]agent.CallID{} // tool and input -> the newest call
	for _, m := range h {
		for _, b := range m.Blocks {
			if u, ok := b.(*agent.ToolUse); ok {
				again[u.Name+"\x00"+string(u.Input)] = u.ID
			}
		}
	}
	newest := map[string]int{} // kind of note -> the newest message that holds one
	for i, m := range h {
		for _, b := range m.Blocks {
			if t, ok := b.(*agent.Text); ok && fleeting(t.Note) {
				newest[t.Note] = i
			}
		}
	}
	for i, m := range h[:last] {
		for j, b := range m.Blocks {
			if e.size <= g.Tokens {
				return e.done()
			}
			switch b := b.(type) {
			case *agent.ToolResult:
				u := e.call(b.ID)
				if u == nil || precious(u.Name) || cleared(b) || e.scale.Block(b).Bytes < small {
					continue
				}
				if id := again[u.Name+"\x00"+string(u.Input)]; id != u.ID {
					e.replace(i, j, clearedResult(b, "The same call was made again later. See its result there."), Cut{Call: b.ID,
						What: "a result of " + u.Name, Why: "the same call was made again later"})
				}
			case *agent.Text:
				if fleeting(b.Note) && i > 0 && newest[b.Note] > i {
					e.replace(i, j, nil, Cut{What: "a note (" + b.Note + ")", Why: "a later note replaces it"})
				}
			case *agent.Thinking, *agent.Redacted:
				e.replace(i, j, nil, Cut{What: "thinking", Why: "its turn is over"})
			}
		}
	}
	return e.done()
}

// fleeting reports whether a later note of the kind replaces an earlier one.
func fleeting(kind string) bool {
	switch kind {
	case "date", "mode", "environment", "reminder":
		return true
	}
	return false
}

// lastTurn returns where the newest turn begins: the newest user turn, its
// messages taken together, that holds no results.
func lastTurn(h []agent.Message) int {
	for end := len(h); end > 0; {
		at := end - 1
		plain := h[at].Role == agent.User && !hasResult(h[at])
		for at > 0 && h[at-1].Role == h[at].Role {
			at--
			plain = plain && !hasResult(h[at])
		}
		if plain {
			return at
		}
		end = at
	}
	return 0
}

func hasResult(m agent.Message) bool {
	return slices.ContainsFunc(m.Blocks, func(b agent.Block) bool { _, ok := b.(*agent.ToolResult); return ok })
}

func hasCall(m agent.Message) bool {
	return slices.ContainsFunc(m.Blocks, func(b agent.Block) bool { _, ok := b.(*agent.ToolUse); return ok })
}

// Clear replaces old tool results by stubs, oldest first.
func Clear(s *Scale, h []agent.Message, g Goal) ([]agent.Message, []Cut) {
	e := edit("clear", s, h)
	type place struct{ i, j int }
	var results []place
	for i, m := range h {
		for j, b := range m.Blocks {
			if _, ok := b.(*agent.ToolResult); ok {
				results = append(results, place{i, j})
			}
		}
	}
	for _, p := range results[:max(0, len(results)-g.Keep)] {
		if e.size <= g.Tokens {
			break
		}
		r := h[p.i].Blocks[p.j].(*agent.ToolResult)
		n := e.scale.Block(r).Bytes
		tool := e.tool(r.ID)
		if n < small || cleared(r) || precious(tool) {
			continue
		}
		e.replace(p.i, p.j, clearedResult(r, fmt.Sprintf("An old result of %s (%d bytes) was cleared to save room. Run the call again if you need it.", tool, n)),
			Cut{Call: r.ID, What: "a result of " + tool, Why: "it is among the oldest, and the window is nearly full"})
	}
	return e.done()
}

const clearedMark = "[Cleared] "

func clearedResult(r *agent.ToolResult, why string) *agent.ToolResult {
	return &agent.ToolResult{ID: r.ID, Blocks: []agent.Block{stub(clearedMark + why)}, IsError: r.IsError}
}

func cleared(r *agent.ToolResult) bool {
	if len(r.Blocks) != 1 {
		return false
	}
	t, ok := r.Blocks[0].(*agent.Text)
	return ok && strings.HasPrefix(t.Text, clearedMark)
}

// Collapse takes the calls and results out of finished turns, oldest first,
// and leaves the prompt, a list of the calls, and the answer.
func Collapse(s *Scale, h []agent.Message, g Goal) ([]agent.Message, []Cut) {
	size := s.History(h).Tokens
	last := lastTurn(h)
	var out []agent.Message
	var cuts []Cut
	i := 0
	for i < last && size > g.Tokens {
		end := i + 1
		for end < last && (h[end].Role != agent.User || hasResult(h[end])) {
			end++
		}
		turn := h[i:end]
		short, what := collapsed(turn)
		before, after := s.History(turn), s.History(short)
		if what == "" || after.Tokens >= before.Tokens {
			out = append(out, turn...)
		} else {
			out = append(out, short...)
			size -= before.Tokens - after.Tokens
			cuts = append(cuts, Cut{Stage: "collapse", Index: i, UUID: turn[0].UUID, What: what, Why: "the turn is finished, its answer stays",
				Tokens: before.Tokens - after.Tokens, Bytes: before.Bytes - after.Bytes})
		}
		i = end
	}
	if cuts == nil {
		return h, nil
	}
	return append(out, h[i:]...), cuts
}

// collapsed returns the short form of a turn and what was taken out, or "".
func collapsed(turn []agent.Message) ([]agent.Message, string) {
	if turn[0].Role != agent.User || hasResult(turn[0]) || len(turn) < 3 {
		return turn, ""
	}
	var list strings.Builder
	var added, answer []agent.Block
	calls, results := 0, false
	for k, m := range turn[1:] {
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case *agent.ToolUse:
				calls++
				if calls <= 40 {
					fmt.Fprintf(&list, "- %s %s\n", b.Name, utf8Cut(strings.Join(strings.Fields(string(b.Input)), " "), 160))
				}
			case *agent.ToolResult:
				results = true
				if precious(nameOf(turn, b.ID)) {
					return turn, "" // an answer of the user or an agent is worth its room
				}
			case *agent.Text:
				if m.Role == agent.User && b.Note == "" { // said while the turn ran
					added = append(added, b)
				}
				if m.Role == agent.Assistant && k == len(turn)-2 {
					answer = append(answer, b)
				}
			case *agent.Image, *agent.Document:
				if m.Role == agent.User {
					added = append(added, b)
				}
			}
		}
	}
	if calls == 0 || !results || len(answer) == 0 || hasCall(turn[len(turn)-1]) {
		return turn, ""
	}
	if calls > 40 {
		fmt.Fprintf(&list, "and %d more\n", calls-40)
	}
	prompt := turn[0]
	if len(added) > 0 {
		prompt.Blocks, prompt.Wire = append(slices.Clip(prompt.Blocks), added...), nil
	}
	final := turn[len(turn)-1]
	final.ID = ""
	note := stub(fmt.Sprintf("[%d calls of this turn were taken out with their results to save room:\n%s]", calls, strings.TrimRight(list.String(), "\n")))
	final.Blocks, final.Wire = append([]agent.Block{note}, answer...), nil
	return []agent.Message{prompt.Encode(), final.Encode()}, fmt.Sprintf("%d calls and their results", calls)
}

func nameOf(turn []agent.Message, id agent.CallID) string {
	for _, m := range turn {
		for _, b := range m.Blocks {
			if u, ok := b.(*agent.ToolUse); ok && u.ID == id {
				return u.Name
			}
		}
	}
	return ""
}
