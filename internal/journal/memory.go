package journal

import (
	"encoding/json"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// keep adds a durable event, and takes the bulk off old ones when there is
// too much of it and every reader has passed them.
func (j *Journal) keep(e agent.Event) {
	j.durable = append(j.durable, e)
	j.bulk += weight(e.Body)
	switch b := e.Body.(type) {
	case agent.Said, agent.Settled:
		j.cover(e)
	case agent.Finished:
		if b.Result.Detail != nil {
			j.details = append(j.details, len(j.durable)-1)
		}
	}
	passed := j.passed()
	switch e.Body.(type) {
	case agent.Compacted, agent.Mended, agent.Rewound:
		// The newest history is the session's own; older ones are nobody's.
		if i := j.replaced; i >= 0 && j.durable[i].Seq < passed {
			j.durable[i].Body = thinned(j.durable[i].Body)
		}
		j.replaced = len(j.durable) - 1
	}
	for len(j.details) > maxDetails && j.durable[j.details[0]].Seq < passed {
		old := &j.durable[j.details[0]]
		if f, ok := old.Body.(agent.Finished); ok {
			f.Result.Detail = nil
			old.Body = f
		}
		j.details = j.details[1:]
	}
	for j.bulk > maxBulk && j.thin < len(j.durable)-1 && j.durable[j.thin].Seq < passed {
		old := &j.durable[j.thin]
		j.bulk -= weight(old.Body)
		old.Body = thinned(old.Body)
		j.thin++
	}
}

// passed returns the first sequence number that some live reader has yet to read.
func (j *Journal) passed() uint64 {
	first := j.seq
	for c := range j.readers {
		if *c < first {
			first = *c
		}
	}
	return first
}

// cover drops ephemeral events that e makes redundant: those of the same
// Parent, or all of them once a turn of the main conversation has settled.
func (j *Journal) cover(e agent.Event) {
	if _, ok := e.Body.(agent.Settled); ok && e.Parent == "" {
		clear(j.covered)
		for _, l := range j.live {
			j.covered[l.Parent] = e.Seq
		}
	} else {
		j.covered[e.Parent] = e.Seq
	}
	if len(j.live) < j.trimAt && j.liveN <= maxCovered {
		return
	}
	passed := j.passed()
	if len(j.readers) == 0 {
		passed = 0 // the first reader may be about to come
	}
	free := j.liveN > maxCovered
	kept, n := j.live[:0], 0
	for _, l := range j.live {
		if l.Seq < j.covered[l.Parent] && (free || l.Seq < passed) {
			continue
		}
		kept = append(kept, l)
		n += weight(l.Body)
	}
	clear(j.live[len(kept):])
	j.live, j.liveN = kept, n
	j.trimAt = max(minTrim, 2*len(kept))
}

// entry is about what an event takes without what its body points at.
const entry = 256

// weight estimates the bytes that b keeps alive.
func weight(b agent.Body) int {
	switch b := b.(type) {
	case agent.Wrote:
		if c, ok := b.Delta.(agent.Chunk); ok {
			return entry + len(c.Text)
		}
	case agent.Said:
		return entry + blocks(b.Message.Blocks) + len(b.Message.Wire)
	case agent.Started:
		return entry + len(b.Call.Input)
	case agent.Decided:
		return entry + len(b.Call.Input)
	case agent.Finished:
		return entry + len(b.Call.Input) + blocks(b.Result.Blocks)
	case agent.Replied:
		return 16 * entry
	case agent.Local:
		return entry + len(b.Text)
	case agent.Hooked:
		return entry + len(b.Output) + len(b.Stdout) + len(b.Stderr)
	case agent.Asked:
		return entry + len(b.Question.Payload) + len(b.Question.Call.Input)
	}
	return entry
}

func blocks(bs []agent.Block) int {
	n := 0
	for _, b := range bs {
		switch b := b.(type) {
		case *agent.Text:
			n += len(b.Text)
		case *agent.Thinking:
			n += len(b.Text) + len(b.Signature)
		case *agent.ToolUse:
			n += len(b.Input)
		case *agent.ToolResult:
			n += blocks(b.Blocks)
		case *agent.Image:
			n += len(b.Data)
		case *agent.Document:
			n += len(b.Data)
		case *agent.Redacted:
			n += len(b.Data)
		case *agent.Opaque:
			n += len(b.Raw)
		}
	}
	return n
}

// small is the size up to which a part is no bulk.
const small = 1024

// thinned returns b without its bulk. The parts it shares are not changed.
func thinned(b agent.Body) agent.Body {
	switch b := b.(type) {
	case agent.Said:
		b.Message.Blocks, b.Message.Wire = thinBlocks(b.Message.Blocks), nil
		return b
	case agent.Started:
		b.Call = thinCall(b.Call)
		return b
	case agent.Decided:
		b.Call = thinCall(b.Call)
		return b
	case agent.Finished:
		b.Call, b.Result.Blocks = thinCall(b.Call), thinBlocks(b.Result.Blocks)
		b.Result.Detail, b.Result.After, b.Decision.Input = nil, nil, nil
		return b
	case agent.Compacted:
		b.History = nil
		return b
	case agent.Rewound:
		b.History = nil
		return b
	case agent.Mended:
		b.History = nil
		return b
	case agent.Replied:
		b.Value = nil
		return b
	case agent.Local:
		b.Text = cut(b.Text)
		return b
	case agent.Hooked:
		b.Output, b.Stdout, b.Stderr = cut(b.Output), cut(b.Stdout), cut(b.Stderr)
		return b
	case agent.Asked:
		b.Question.Payload, b.Question.Call = nil, thinCall(b.Question.Call)
		return b
	}
	return b
}

func thinCall(c agent.Call) agent.Call {
	if len(c.Input) > small {
		c.Input = json.RawMessage("{}")
	}
	c.Progress = nil
	return c
}

func thinBlocks(bs []agent.Block) []agent.Block {
	if blocks(bs) <= small {
		return bs
	}
	out := make([]agent.Block, len(bs))
	for i, b := range bs {
		switch b := b.(type) {
		case *agent.Text:
			t := *b
			t.Text = cut(t.Text)
			out[i] = &t
		case *agent.ToolUse:
			u := *b
			if len(u.Input) > small {
				u.Input = json.RawMessage("{}")
			}
			out[i] = &u
		case *agent.ToolResult:
			r := *b
			r.Blocks = thinBlocks(r.Blocks)
			out[i] = &r
		default:
			if blocks([]agent.Block{b}) > small {
				b = &agent.Text{Text: "(in the session file)", Note: "left out"}
			}
			out[i] = b
		}
	}
	return out
}

// cut returns a copy of the head of s: a copy, so that s itself can go.
func cut(s string) string {
	if len(s) <= small {
		return s
	}
	return string([]byte(s[:small])) + " … (the rest is in the session file)"
}
