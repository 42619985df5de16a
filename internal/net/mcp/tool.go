package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// maxDescription is how much of a server's description the model gets.
const maxDescription = 2048

// A tool is a server's tool as one of ours.
type tool struct {
	s      *Server
	name   string // ours
	def    *sdk.Tool
	schema json.RawMessage
	desc   string
	load   bool // never deferred
	// drift is set if the definition is another than the approved one, which
	// is then what the model is shown.
	drift *drift
	// pinned says that the definition is the approved one.
	pinned atomic.Bool
}

// adapt makes tools of definitions. One that cannot be used is left out and
// named; it costs no other.
func (s *Server) adapt(defs []*sdk.Tool) (ts []*tool, skipped []Problem) {
	// Of tools that the mapping makes equal the one that needs no mapping has
	// the plain name, whatever the order of the list.
	same := map[string]int{}
	for _, d := range defs {
		same[plainName(s.Name, d.Name)]++
	}
	pins, unread := s.pins()
	seen := map[string]bool{}
	for _, d := range defs {
		if seen[d.Name] {
			skipped = append(skipped, Problem{s.Name, "invalid_tool", fmt.Sprintf("the tool %q is left out: its name is there twice", d.Name)})
			continue
		}
		shown := Definition{Description: d.Description, InputSchema: d.InputSchema}
		var dr *drift
		old, known := pins[d.Name]
		switch now := definitionOf(d); {
		case unread != nil:
			dr = &drift{unread: unread, now: now}
		case known && !old.equal(now):
			dr, shown = &drift{old: old, now: now}, old
		}
		schema, note, err := repair(shown.InputSchema)
		if err != nil || d.Name == "" {
			if err == nil {
				err = errors.New("it has no name")
			}
			skipped = append(skipped, Problem{s.Name, "invalid_tool", fmt.Sprintf("the tool %q is left out: %v", d.Name, err)})
			continue
		}
		t := &tool{s: s, def: d, schema: schema, drift: dr, load: s.AlwaysLoad || d.Meta["anthropic/alwaysLoad"] == true}
		t.name = s.set.claim(s.Name, d.Name, same[plainName(s.Name, d.Name)] == 1 || clean(d.Name) == d.Name)
		seen[d.Name] = true
		t.desc = shown.Description
		t.pinned.Store(known && dr == nil)
		if note != "" {
			t.desc = strings.TrimSpace(t.desc + "\n" + note)
		}
		t.desc = clip(t.desc)
		if dr != nil {
			skipped = append(skipped, Problem{s.Name, "changed_tool", dr.reason(s.Name, d.Name)})
		}
		ts = append(ts, t)
	}
	return ts, skipped
}

// clip cuts what a server says to what the model gets of it.
func clip(s string) string {
	if len(s) > maxDescription {
		return strings.ToValidUTF8(s[:maxDescription-1], "") + "…"
	}
	return s
}

func (t *tool) Spec() agent.Spec {
	return agent.Spec{Name: t.name, Description: t.desc, Schema: t.schema, Deferred: t.s.set.o.Deferred && !t.load}
}

// Inspect implements agent.Tool. What a server says of its tool is a hint: it
// decides what may run side by side, never whether it may run.
func (t *tool) Inspect(raw json.RawMessage) (agent.Effects, error) {
	e := agent.Effects{Destructive: true}
	if a := t.def.Annotations; a != nil {
		e.ReadOnly, e.Concurrent = a.ReadOnlyHint, a.ReadOnlyHint
		e.Idempotent = a.IdempotentHint || a.ReadOnlyHint
		e.Destructive = !a.ReadOnlyHint && (a.DestructiveHint == nil || *a.DestructiveHint)
	}
	e.Interactive = t.def.Meta["anthropic/requiresUserInteraction"] == true
	if d := t.drift; d != nil && !d.approved.Load() {
		return agent.Effects{Destructive: true, Interactive: true, Reason: d.reason(t.s.Name, t.def.Name), Warn: d.lines()}, nil
	}
	return e, nil
}

// Run calls the tool, which somebody has allowed: its definition is approved.
func (t *tool) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	after := t.approve(ctx)
	r, err := t.call(ctx, c)
	r.After = append(r.After, after...)
	return r, err
}

// call makes a call. One whose answer was lost is made again only if that
// does no harm; else its outcome is unknown, and said to be.
func (t *tool) call(ctx context.Context, c agent.Call) (agent.Result, error) {
	var args map[string]any
	if len(c.Input) > 0 {
		if err := json.Unmarshal(c.Input, &args); err != nil {
			return agent.Result{}, fmt.Errorf("the arguments are not an object: %w", err)
		}
	}
	cs, err := t.s.live(ctx)
	if err != nil {
		return agent.Failed(err.Error()), nil
	}
	r, err := t.once(ctx, cs, c, args)
	for try := 0; err != nil && ctx.Err() == nil && try < 1; try++ {
		// A server that forgot the session did so before it looked at the call,
		// and a connection found closed never took it.
		forgotten := errors.Is(err, sdk.ErrSessionMissing) || unsent(err)
		if !forgotten && !lost(err) {
			break
		}
		e, _ := t.Inspect(c.Input)
		if !forgotten && !e.Idempotent {
			return t.unknown(err), nil
		}
		if forgotten {
			t.s.lose(cs, err)
		}
		if cs, err = t.s.live(ctx); err == nil {
			r, err = t.once(ctx, cs, c, args)
		}
	}
	if clock, ok := errors.AsType[*clockError](err); ok {
		if e, _ := t.Inspect(c.Input); !e.Idempotent {
			return t.unknown(clock), nil
		}
	}
	if err != nil {
		if ctx.Err() != nil {
			return agent.Result{}, context.Cause(ctx)
		}
		if e, ok := rpcError(err); ok {
			return agent.Failed(fmt.Sprintf("MCP error %d: %s", e.Code, e.Message)), nil
		}
		return agent.Failed(fmt.Sprintf("The MCP server %s did not answer the call of %s: %v", t.s.Name, t.def.Name, err)), nil
	}
	return t.result(r), nil
}

// unknown is the result of a call that may have taken effect.
func (t *tool) unknown(err error) agent.Result {
	res := agent.Failed(fmt.Sprintf("The answer of the MCP server %s to %s did not arrive: %v. Whether the call took effect is unknown; look before you call it again.", t.s.Name, t.def.Name, err))
	res.Unknown = true
	return res
}

// lost says whether err means that the connection went away, as against an
// answer that is an error, or a clock that ran out.
func lost(err error) bool {
	if _, ok := rpcError(err); ok {
		return false
	}
	if _, ok := errors.AsType[*clockError](err); ok {
		return false
	}
	return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// unsent says whether err is that of a call made on a connection that had
// already ended. The SDK keeps the cause as text only.
func unsent(err error) bool {
	return errors.Is(err, sdk.ErrConnectionClosed) && strings.Contains(err.Error(), "client is closing")
}

// A clockError says which clock of a call ran out.
type clockError struct {
	after time.Duration
	idle  bool
}

func (e *clockError) Error() string {
	if e.idle {
		return fmt.Sprintf("nothing was heard of it for %s", e.after)
	}
	return fmt.Sprintf("it took longer than %s", e.after)
}

// once makes the call under its clocks; progress winds the idle clock up.
func (t *tool) once(ctx context.Context, cs *sdk.ClientSession, c agent.Call, args map[string]any) (*sdk.CallToolResult, error) {
	o := t.s.set.o
	total, idle := o.CallTimeout, o.Idle
	if t.s.Timeout > 0 {
		total = t.s.Timeout
	}
	if idle == 0 {
		if idle = 5 * time.Minute; t.s.Type == "stdio" || t.s.Type == "sdk" {
			idle = 30 * time.Minute
		}
	}
	idle = max(idle, t.s.Timeout)
	ctx, cancelTotal := context.WithTimeoutCause(ctx, total, &clockError{after: total})
	defer cancelTotal()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var clock *time.Timer
	wound := make(chan struct{})
	clock = time.AfterFunc(idle, func() {
		<-wound
		if t.s.asking.Load() > 0 { // a person takes the time a person takes
			clock.Reset(idle)
			return
		}
		cancel(&clockError{after: idle, idle: true})
	})
	close(wound)
	defer clock.Stop()
	token, done := t.s.set.expect(func(text string) {
		clock.Reset(idle)
		c.Progress(agent.Progress{Text: text})
	})
	defer done()
	p := &sdk.CallToolParams{Name: t.def.Name, Arguments: args, Meta: sdk.Meta{"claudecode/toolUseId": string(c.ID)}}
	if args == nil {
		p.Arguments = map[string]any{}
	}
	p.SetProgressToken(token)
	r, err := cs.CallTool(ctx, p)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return r, err
}

// result makes blocks of an answer, at most as many as fit.
func (t *tool) result(r *sdk.CallToolResult) agent.Result {
	bs := blocks(r.Content)
	if len(bs) == 0 && r.StructuredContent != nil {
		if raw, err := json.Marshal(r.StructuredContent); err == nil {
			bs = []agent.Block{&agent.Text{Text: string(raw)}}
		}
	}
	limit := t.s.set.o.MaxTokens * 4
	if n, ok := t.def.Meta["anthropic/maxResultSizeChars"].(float64); ok && n > 0 {
		limit = min(int(n), 500_000)
	}
	bs = t.s.set.fit(bs, limit)
	if len(bs) == 0 {
		bs = []agent.Block{&agent.Text{Text: "(" + t.def.Name + " completed with no output)"}}
	}
	res := agent.Result{Blocks: bs, Array: true, IsError: r.IsError}
	if r.StructuredContent != nil {
		res.Detail = map[string]any{"structuredContent": r.StructuredContent, "isError": r.IsError}
	}
	return res
}

// fit returns bs; if their texts are longer than limit, these are kept in a
// file, and their beginning here.
func (s *Set) fit(bs []agent.Block, limit int) []agent.Block {
	size := 0
	for _, b := range bs {
		if x, ok := b.(*agent.Text); ok {
			size += len(x.Text)
		}
	}
	if size <= limit {
		return bs
	}
	var all strings.Builder
	var out []agent.Block
	for _, b := range bs {
		if x, ok := b.(*agent.Text); ok {
			all.WriteString(x.Text + "\n")
		} else {
			out = append(out, b)
		}
	}
	where := "the rest was dropped"
	if f := s.o.Spill; f != nil {
		if path, err := f(all.String()); err == nil {
			where = "all of it is in " + path
		}
	}
	const head = 8000
	text := all.String()
	if len(text) > min(limit, head) {
		text = strings.ToValidUTF8(text[:min(limit, head)], "")
	}
	return append([]agent.Block{&agent.Text{Text: fmt.Sprintf("%s\n[The result has %d characters, more than the %d that fit; %s]", text, size, limit, where)}}, out...)
}

// blocks translates content.
func blocks(content []sdk.Content) []agent.Block {
	var out []agent.Block
	for _, c := range content {
		switch c := c.(type) {
		case *sdk.TextContent:
			if c.Text != "" {
				out = append(out, &agent.Text{Text: c.Text})
			}
		case *sdk.ImageContent:
			out = append(out, image(c.MIMEType, c.Data))
		case *sdk.AudioContent:
			out = append(out, &agent.Text{Text: fmt.Sprintf("[audio of type %s, %d bytes]", c.MIMEType, len(c.Data))})
		case *sdk.ResourceLink:
			out = append(out, &agent.Text{Text: fmt.Sprintf("[resource %s: %s %s]", c.Name, c.URI, c.Description)})
		case *sdk.EmbeddedResource:
			out = append(out, embedded(c.Resource))
		default:
			if raw, err := json.Marshal(c); err == nil {
				out = append(out, &agent.Text{Text: string(raw)})
			}
		}
	}
	return out
}

func embedded(r *sdk.ResourceContents) agent.Block {
	if r == nil {
		return &agent.Text{Text: "[an empty resource]"}
	}
	if len(r.Blob) > 0 {
		if strings.HasPrefix(r.MIMEType, "image/") {
			return image(r.MIMEType, r.Blob)
		}
		return &agent.Text{Text: fmt.Sprintf("[resource %s of type %s, %d bytes]", r.URI, r.MIMEType, len(r.Blob))}
	}
	return &agent.Text{Text: fmt.Sprintf("[resource %s]\n%s", r.URI, r.Text)}
}

// image is an image block, if the bytes are of a kind that models take.
func image(media string, data []byte) agent.Block {
	kind := ""
	switch {
	case len(data) > 8 && string(data[:8]) == "\x89PNG\r\n\x1a\n":
		kind = "image/png"
	case len(data) > 3 && string(data[:3]) == "\xff\xd8\xff":
		kind = "image/jpeg"
	case len(data) > 6 && (string(data[:6]) == "GIF87a" || string(data[:6]) == "GIF89a"):
		kind = "image/gif"
	case len(data) > 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		kind = "image/webp"
	}
	if kind == "" || len(data) > 5<<20 {
		return &agent.Text{Text: fmt.Sprintf("[an image said to be %s, %d bytes, that cannot be shown]", media, len(data))}
	}
	return &agent.Image{MediaType: kind, Data: base64.StdEncoding.EncodeToString(data)}
}

// elicit puts a server's question to the person. Without one it is cancelled.
func (s *Server) elicit(ctx context.Context, p *sdk.ElicitParams) *sdk.ElicitResult {
	cancelled := &sdk.ElicitResult{Action: "cancel"}
	if s.set.o.Ask == nil {
		return cancelled
	}
	mode := p.Mode
	if mode == "" {
		mode = "form"
		if p.URL != "" {
			mode = "url"
		}
	}
	raw, err := json.Marshal(map[string]any{
		"mcp_server_name": s.Name, "message": p.Message, "mode": mode, "url": p.URL, "elicitation_id": p.ElicitationID, "requested_schema": p.RequestedSchema,
	})
	if err != nil {
		return cancelled
	}
	s.asking.Add(1)
	defer s.asking.Add(-1)
	a, err := s.set.o.Ask(ctx, agent.Question{Kind: agent.AskElicit, Name: s.Name, Payload: raw, Title: p.Message})
	if err != nil || a.Err != "" {
		return cancelled
	}
	var w struct {
		Action  string         `json:"action"`
		Content map[string]any `json:"content"`
	}
	if json.Unmarshal(a.Payload, &w) != nil || w.Action == "" {
		return cancelled
	}
	return &sdk.ElicitResult{Action: w.Action, Content: w.Content}
}
