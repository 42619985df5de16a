package window_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/net/model"
	"github.com/seed-eb844fcb/cinch/internal/net/modelserver"
	"github.com/seed-eb844fcb/cinch/internal/window"
	"github.com/seed-eb844fcb/cinch/internal/window/compact"
	"github.com/seed-eb844fcb/cinch/internal/window/prompt"
)

// A rig is a conversation with the model server over real HTTP, without
// session and loop: builder, compactor, provider and a history.
type rig struct {
	t       *testing.T
	srv     *modelserver.Server
	client  *model.Client
	e       *window.Engine
	h       []agent.Message
	run     func(agent.ToolUse) []agent.Block // what a call answers
	done    []agent.Compacted
	notes   []string
	cuts    []compact.Cut
	emitted []agent.Body
	n       int
	reads   struct{ expected, read int } // of requests without a planned break
}

type setup struct {
	modelserver.Options
	limits  compact.Limits
	change  func(*compact.Options)
	builder window.Options
}

func newRig(t *testing.T, s setup) *rig {
	t.Helper()
	r := &rig{t: t, srv: modelserver.New(s.Options)}
	t.Cleanup(r.srv.Close)
	url, err := r.srv.Listen()
	if err != nil {
		t.Fatal(err)
	}
	r.client, err = model.New(model.Options{HTTP: &http.Client{}, BaseURL: url, MaxRetries: -1, Auth: model.Auth{Key: "k"}, With: []string{"tool-search"}})
	if err != nil {
		t.Fatal(err)
	}
	o := s.builder
	o.Model, o.MaxTokens = "claude-opus-4-5", 1000
	if o.Sections == nil {
		o.Sections = []prompt.Section{{Text: "You help.", Mark: true}}
	}
	if o.Tools == nil {
		o.Tools = []agent.Spec{{Name: "Bash", Description: "Runs a command.", Schema: json.RawMessage(`{"type":"object"}`)}}
	}
	co := compact.Options{
		Provider: r.client, Limits: s.limits, UUID: r.id,
		Emit: func(b agent.Body) { r.emitted = append(r.emitted, b) },
	}
	if s.change != nil {
		s.change(&co)
	}
	r.e = window.NewEngine(window.New(o), co)
	r.e.Told = r.told
	return r
}

func (r *rig) id() string { r.n++; return fmt.Sprint("u", r.n) }

func (r *rig) say(role agent.Role, id string, blocks ...agent.Block) {
	r.h = append(r.h, agent.Message{ID: id, UUID: r.id(), Role: role, Blocks: blocks}.Encode())
}

func text(s string) agent.Block { return &agent.Text{Text: s} }

// turn runs one prompt to its answer, as a loop would.
func (r *rig) turn(prompt string) (string, error) {
	r.say(agent.User, "", text(prompt))
	return r.goOn()
}

// goOn runs what is asked last to its answer.
func (r *rig) goOn() (string, error) {
	for range 200 {
		r.take(r.e.Fit(r.t.Context(), r.h))
		blocks, err := r.step()
		if err != nil {
			out, ok := r.e.Recover(r.t.Context(), r.h, err)
			r.take(out)
			if !ok {
				return "", err
			}
			continue
		}
		var results []agent.Block
		for _, b := range blocks {
			if u, ok := b.(*agent.ToolUse); ok {
				results = append(results, &agent.ToolResult{ID: u.ID, Blocks: r.run(*u)})
			}
		}
		if results == nil {
			return agent.TextOf(blocks), nil
		}
		r.say(agent.User, "", results...)
	}
	r.t.Fatal("the turn does not end")
	return "", nil
}

func (r *rig) take(out compact.Outcome) {
	r.h = out.History
	r.cuts = append(r.cuts, out.Cuts...)
	if out.Compacted != nil {
		r.done = append(r.done, *out.Compacted)
	}
	if out.Note != "" {
		r.notes = append(r.notes, out.Note)
	}
}

// step sends one request and appends the answer.
func (r *rig) step() ([]agent.Block, error) {
	var blocks []agent.Block
	var id string
	var usage agent.Usage
	for d, err := range r.client.Stream(r.t.Context(), r.e.Request(r.h)) {
		if err != nil {
			return nil, err
		}
		switch d := d.(type) {
		case agent.Begin:
			id, usage = d.MessageID, d.Usage
		case agent.BlockEnd:
			blocks = append(blocks, d.Block)
		case agent.Stopped:
			usage = d.Usage
		}
	}
	r.say(agent.Assistant, id, blocks...)
	r.e.Answered(id, usage)
	return blocks, nil
}

func (r *rig) told(rec window.Record) {
	if rec.Break == nil {
		r.reads.expected += rec.Prompt
		r.reads.read += rec.Read
	} else if !rec.Break.Planned {
		r.t.Errorf("request %d: %v", rec.N, rec.Break)
	}
}

// fine checks that the server had nothing to object to.
func (r *rig) fine() {
	r.t.Helper()
	for _, v := range r.srv.Violations() {
		r.t.Error(v)
	}
}

func (r *rig) all() string {
	var b strings.Builder
	for _, m := range r.h {
		b.Write(m.Wire)
	}
	return b.String()
}

func answer(words string) modelserver.Script {
	return modelserver.Script{Steps: []modelserver.Step{modelserver.Text{Text: words}}}
}

// brain answers summary requests with summary and all others with words.
func brain(summary, words string) modelserver.Brain {
	return func(_ context.Context, q *modelserver.Request) (modelserver.Script, error) {
		if strings.Contains(q.Last(), "<summary>") {
			return answer(summary), nil
		}
		return answer(words), nil
	}
}

func picture(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 300, 300))); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}
