package compact

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/net/modelserver"
)

// A maker makes histories as sessions leave them.
type maker struct {
	*rand.Rand
	n    int
	h    []agent.Message
	size int // of results, in words, and of pictures
}

func newMaker(seed int) *maker {
	return &maker{Rand: rand.New(rand.NewPCG(uint64(seed), 1)), size: 600}
}

func (r *maker) id() string { r.n++; return fmt.Sprintf("i%d", r.n) }

func (r *maker) words(most int) string {
	return strings.Repeat("some words ", 1+r.IntN(most))
}

func (r *maker) say(role agent.Role, blocks ...agent.Block) {
	m := agent.Message{UUID: r.id(), Role: role, Blocks: blocks}
	if role == agent.Assistant {
		m.ID = "msg_" + r.id()
	}
	r.h = append(r.h, m.Encode())
}

// history returns turns of prompts, steps of calls, notes, media and answers.
func (r *maker) history(turns int) []agent.Message {
	tools := []string{"Read", "Bash", "Grep", "Agent", "Edit"}
	for range turns {
		prompt := []agent.Block{&agent.Text{Text: r.words(20)}}
		if r.IntN(4) == 0 {
			prompt = append(prompt, &agent.Image{MediaType: "image/png", Data: strings.Repeat("QUJD", 1+r.IntN(5*r.size))})
		}
		if r.IntN(3) == 0 {
			prompt = slices.Insert(prompt, 0, agent.Block(&agent.Text{Text: "note " + r.words(3), Note: []string{"date", "mode", "instructions"}[r.IntN(3)]}))
		}
		r.say(agent.User, prompt...)
		for range r.IntN(6) {
			var calls, results []agent.Block
			if r.IntN(2) == 0 {
				calls = append(calls, &agent.Thinking{Text: r.words(5), Signature: "sig"})
			}
			if r.IntN(2) == 0 {
				calls = append(calls, &agent.Text{Text: r.words(5)})
			}
			for range 1 + r.IntN(3) {
				id := agent.CallID(r.id())
				in, _ := json.Marshal(map[string]string{"file_path": fmt.Sprintf("/f%d", r.IntN(5))})
				calls = append(calls, &agent.ToolUse{ID: id, Name: tools[r.IntN(len(tools))], Input: in})
				res := &agent.ToolResult{ID: id, Blocks: []agent.Block{&agent.Text{Text: r.words(r.size)}}, IsError: r.IntN(9) == 0}
				if r.IntN(8) == 0 {
					res.Blocks = append(res.Blocks, &agent.Image{MediaType: "image/png", Data: strings.Repeat("QUJD", 1+r.IntN(15*r.size))})
				}
				results = append(results, res)
			}
			r.say(agent.Assistant, calls...)
			switch r.IntN(6) {
			case 0:
				results = append(results, &agent.Text{Text: "said meanwhile " + r.words(3)})
			case 1:
				results = append(results, &agent.Text{Text: "note", Note: "date"})
			}
			r.say(agent.User, results...)
		}
		r.say(agent.Assistant, &agent.Text{Text: r.words(30)})
	}
	if r.IntN(2) == 0 {
		r.say(agent.User, &agent.Text{Text: "and now?"})
	}
	return r.h
}

// accepted puts h, with a next prompt, before the model server's rules, which
// are those of the API. Signatures and pictures of this test are no real ones.
func accepted(t *testing.T, seed int, h []agent.Message) {
	t.Helper()
	body := []byte(`{"model":"claude-opus-5-5","max_tokens":1000,"messages":[`)
	for _, m := range append(slices.Clip(h), agent.Message{Role: agent.User, Blocks: []agent.Block{&agent.Text{Text: "next"}}}) {
		body = append(body, `{"role":"`+string(m.Role)+`","content":`...)
		body = append(agent.AppendBlocks(body, m.Blocks), "},"...)
	}
	req, err := modelserver.ParseRequest(append(body[:len(body)-1], "]}"...))
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	for _, v := range req.Check(nil) {
		if !strings.Contains(v.Message, "signature") && !strings.Contains(v.Message, "image") {
			t.Fatalf("seed %d: %v", seed, v)
		}
	}
}

type stage struct {
	name string
	run  func(*Scale, []agent.Message) ([]agent.Message, []Cut)
}

func stagesFor(size Size, r *maker) []stage {
	g := Goal{Tokens: size.Tokens * r.IntN(100) / 100, Keep: r.IntN(8)}
	return []stage{
		{"budget", func(s *Scale, h []agent.Message) ([]agent.Message, []Cut) { return Budget(s, h, 1000+g.Tokens/4) }},
		{"media", func(s *Scale, h []agent.Message) ([]agent.Message, []Cut) {
			return Media(s, h, Size{Bytes: size.Bytes / 2, Media: 3, Pages: 10})
		}},
		{"snip", func(s *Scale, h []agent.Message) ([]agent.Message, []Cut) { return Snip(s, h, g) }},
		{"clear", func(s *Scale, h []agent.Message) ([]agent.Message, []Cut) { return Clear(s, h, g) }},
		{"collapse", func(s *Scale, h []agent.Message) ([]agent.Message, []Cut) { return Collapse(s, h, g) }},
	}
}

func wires(h []agent.Message) []string {
	var out []string
	for _, m := range h {
		out = append(out, string(m.Role)+" "+string(agent.AppendBlocks(nil, m.Blocks)))
	}
	return out
}

// Whatever the history: pairs hold after each stage and after all of them,
// each stage does nothing the second time, what it does not report it does
// not change, and its input stays as it was.
func TestStagesHold(t *testing.T) {
	t.Parallel()
	for seed := range 60 {
		// Half of them small: what matters there is the order of things.
		r := newMaker(seed)
		if seed%2 == 0 {
			r.size = 100
		}
		h := r.history(1 + r.IntN(8))
		before := wires(h)
		s := &Scale{}
		all := h
		for _, st := range stagesFor(s.History(h), r) {
			for _, in := range [][]agent.Message{h, all} {
				out, cuts := st.run(s, in)
				if !sound(out) {
					t.Fatalf("seed %d: %s broke a pair", seed, st.name)
				}
				for i, m := range out {
					if string(m.Wire) != string(agent.AppendBlocks(nil, m.Blocks)) {
						t.Fatalf("seed %d: %s left message %d with other bytes than blocks", seed, st.name, i)
					}
				}
				if again, more := st.run(s, out); len(more) != 0 {
					t.Fatalf("seed %d: %s cuts again: %+v\n%s", seed, st.name, more, cmp.Diff(wires(out), wires(again)))
				}
				first := len(in)
				saved := 0
				for _, c := range cuts {
					first = min(first, c.Index)
					saved += c.Bytes
					if c.What == "" || c.Why == "" || c.Stage != st.name {
						t.Fatalf("seed %d: %s says nothing about a cut: %+v", seed, st.name, c)
					}
				}
				if d := cmp.Diff(wires(in[:first]), wires(out[:min(first, len(out))])); d != "" {
					t.Fatalf("seed %d: %s changed the prefix: %s", seed, st.name, d)
				}
				if (saved > 0) != (s.History(out).Bytes < s.History(in).Bytes) {
					t.Fatalf("seed %d: %s tells of %d bytes, the size went from %d to %d", seed, st.name, saved, s.History(in).Bytes, s.History(out).Bytes)
				}
				if len(in) == len(all) && &in[0] == &all[0] {
					all = out
				}
			}
		}
		if seed%4 == 0 {
			accepted(t, seed, Sendable(all, false))
		}
		if d := cmp.Diff(before, wires(h)); d != "" {
			t.Fatalf("seed %d: the input changed: %s", seed, d)
		}
	}
}

// Said by a person and answered by a person or an agent: that stays.
func TestStagesKeepWords(t *testing.T) {
	t.Parallel()
	for seed := range 60 {
		r := newMaker(seed)
		h := r.history(6)
		s := &Scale{}
		out := h
		for _, st := range []func(*Scale, []agent.Message, Goal) ([]agent.Message, []Cut){Snip, Clear, Collapse} {
			out, _ = st(s, out, Goal{})
		}
		var was, is []string
		collect := func(h []agent.Message) (words []string) {
			for _, m := range h {
				for _, b := range m.Blocks {
					if x, ok := b.(*agent.Text); ok && x.Note == "" && m.Role == agent.User {
						words = append(words, x.Text)
					}
				}
			}
			slices.Sort(words)
			return words
		}
		was, is = collect(h), collect(out)
		if d := cmp.Diff(was, is); d != "" {
			t.Fatalf("seed %d: %s", seed, d)
		}
	}
}

// mutate breaks a history in one of the ways in which files and programs do.
func mutate(r *maker, h []agent.Message) []agent.Message {
	h = slices.Clone(h)
	i := r.IntN(len(h))
	m := h[i]
	m.Blocks = slices.Clone(m.Blocks)
	j := r.IntN(len(m.Blocks))
	switch r.IntN(12) {
	case 0:
		return slices.Delete(h, i, i+1)
	case 1:
		return slices.Insert(h, i, h[i])
	case 2:
		k := r.IntN(len(h))
		h[i], h[k] = h[k], h[i]
		return h
	case 3:
		return h[:i+1]
	case 4:
		return h[i:]
	case 5:
		m.Blocks = slices.Delete(m.Blocks, j, j+1)
	case 6:
		m.Blocks = append(m.Blocks, m.Blocks[j])
	case 7:
		slices.Reverse(m.Blocks)
	case 8:
		m.Role = map[agent.Role]agent.Role{agent.User: agent.Assistant, agent.Assistant: agent.User}[m.Role]
	case 9:
		m.Blocks[j] = &agent.Text{Text: " \n"}
	case 10:
		m.Blocks[j] = &agent.ToolUse{ID: "odd id/§", Name: "No Such.Tool", Input: json.RawMessage(`[1]`)}
	case 11:
		m.Blocks[j] = &agent.Opaque{Type: "odd", Raw: json.RawMessage(`{"type":"odd","cache_control":{"type":"ephemeral"}}`)}
	}
	m.Wire = nil
	h[i] = m
	return h
}

func TestMendHolds(t *testing.T) {
	t.Parallel()
	for seed := range 1000 {
		r := newMaker(seed)
		r.size = 3
		h := r.history(1 + r.IntN(4))
		for range 1 + r.IntN(4) {
			if len(h) > 0 && len(h[0].Blocks) > 0 {
				h = slices.DeleteFunc(mutate(r, h), func(m agent.Message) bool { return len(m.Blocks) == 0 })
			}
			if len(h) == 0 {
				break
			}
		}
		out := Sendable(h, false)
		if !sound(out) {
			t.Fatalf("seed %d: not sound", seed)
		}
		if len(out) > 0 {
			accepted(t, seed, out)
		}
		if again, cuts := Mend(out); len(cuts) != 0 || len(again) != len(out) {
			t.Fatalf("seed %d: mended twice: %+v", seed, cuts)
		}
	}
	whole := newMaker(7).history(3)
	if out := Sendable(whole, false); &out[0].Wire[0] != &whole[0].Wire[0] {
		t.Error("a sound history was changed")
	}
}

// The stages over a history of 10 MB: at most 50 ms.
func BenchmarkStages10MB(b *testing.B) {
	r := newMaker(1)
	var h []agent.Message
	s := &Scale{}
	for s.History(h).Bytes < 10<<20 {
		h = r.history(20)
	}
	size := s.History(h)
	b.SetBytes(int64(size.Bytes))
	for b.Loop() {
		out := h
		for _, st := range []func(*Scale, []agent.Message, Goal) ([]agent.Message, []Cut){Snip, Clear, Collapse} {
			out, _ = st(s, out, Goal{Tokens: size.Tokens / 10, Keep: 6})
		}
		out, _ = Budget(s, out, 10_000)
		Media(s, out, Size{Bytes: size.Bytes / 4, Media: 20, Pages: 20})
	}
}
