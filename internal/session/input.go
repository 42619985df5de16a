package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// apply does what an input asks at once, from whatever goroutine: it holds
// from the next call or request on.
func (s *Session) apply(ctx context.Context, in agent.Input) error {
	switch in := in.(type) {
	case agent.SetMode:
		return s.setMode(in.Mode)
	case agent.SetModel:
		return s.setModel(in.Model)
	case agent.SetThinking:
		return s.setThinking(in)
	case agent.Grant:
		return s.grant(ctx, in.Updates)
	}
	return fmt.Errorf("an input of type %T has no place here", in)
}

func (s *Session) setMode(m agent.Mode) error {
	if s.o.AllowMode != nil {
		if err := s.o.AllowMode(m); err != nil {
			return err
		}
	}
	s.mu.Lock()
	same := s.mode == m
	s.mode = m
	s.mu.Unlock()
	if !same {
		s.emit(agent.Changed{What: "mode", Info: s.Info()})
	}
	return nil
}

func (s *Session) setModel(name string) error {
	id := name
	if s.o.Resolve != nil {
		var err error
		if id, err = s.o.Resolve(name); err != nil {
			return err
		}
	} else if name == "" {
		id = s.o.Model
	}
	s.mu.Lock()
	same := s.model == id
	s.model = id
	t, effort := s.thought, s.effort
	s.mu.Unlock()
	if same {
		return nil
	}
	if s.o.Changed != nil {
		s.o.Changed(id, t, effort)
	}
	s.emit(agent.Changed{What: "model", Info: s.Info()})
	return nil
}

func (s *Session) setThinking(in agent.SetThinking) error {
	s.mu.Lock()
	what := "thinking"
	if in.Effort != "" && in.Effort != s.effort {
		s.effort, what = in.Effort, "effort"
	}
	if in.Thought != (agent.Thought{}) {
		s.thought = in.Thought
	}
	m, t, effort := s.model, s.thought, s.effort
	s.mu.Unlock()
	if s.o.Changed != nil {
		s.o.Changed(m, t, effort)
	}
	s.emit(agent.Changed{What: what, Info: s.Info()})
	return nil
}

// grant applies permission updates; those of the mode are the session's own.
func (s *Session) grant(ctx context.Context, us []agent.PermissionUpdate) error {
	var rest []agent.PermissionUpdate
	var errs []error
	for _, u := range us {
		if u.Type == "setMode" {
			errs = append(errs, s.setMode(u.Mode))
		} else {
			rest = append(rest, u)
		}
	}
	if len(rest) > 0 {
		if s.o.Grant == nil {
			errs = append(errs, errors.New("permission rules cannot be changed here"))
		} else if err := s.o.Grant(ctx, rest); err != nil {
			errs = append(errs, err)
		} else {
			s.emit(agent.Changed{What: "rules", Info: s.Info()})
		}
	}
	return errors.Join(errs...)
}

// query answers q: what the session knows itself at once, so that the answer
// keeps its place before what it causes; the rest in a goroutine of its own.
func (o *owner) query(q agent.Query) {
	if o.barrier > 0 {
		o.held = append(o.held, q)
		return
	}
	s := o.s
	h, ok := s.o.Queries[q.Name]
	if !ok {
		if v, then, err, ok := o.own(q.Name, q.Args); ok {
			s.reply(q.ID, v, err)
			if err == nil {
				then()
			}
			return
		}
		s.reply(q.ID, nil, coded{"Unsupported control request subtype: " + q.Name, "unsupported_request"})
		return
	}
	if h.First {
		o.barrier++
	}
	o.queries.Go(func() {
		v, err := safely(func() (any, error) { return h.Run(o.ctx, q.Args) })
		s.reply(q.ID, v, err)
		if h.First {
			o.cleared <- struct{}{}
		}
	})
}

// unbar lets in what a query had held back.
func (o *owner) unbar() {
	o.barrier--
	held := o.held
	o.held = nil
	for _, q := range held {
		o.query(q)
	}
}

type coded struct{ text, code string }

func (e coded) Error() string { return e.text }
func (e coded) Code() string  { return e.code }

func (s *Session) reply(id string, v any, err error) {
	r := agent.Replied{ID: id, Value: v}
	if err != nil {
		r.Value, r.Err = nil, err.Error()
		var c interface{ Code() string }
		if errors.As(err, &c) {
			r.Code = c.Code()
		}
	}
	s.emit(r)
}

// safely turns a panic of f into an error: one odd request must not end the session.
func safely(f func() (any, error)) (v any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a fault of the program: %v", p)
		}
	}()
	return f()
}

// own answers the queries that the session knows itself. What then holds is
// done once the answer is told. ok is false for any other name.
func (o *owner) own(name string, args json.RawMessage) (v any, then func(), err error, ok bool) {
	var a struct {
		Cancel  bool    `json:"cancel_queued"`
		Mode    string  `json:"mode"`
		Model   *string `json:"model"`
		Max     *int    `json:"max_thinking_tokens"`
		Display string  `json:"thinking_display"`
		UUID    string  `json:"message_uuid"`
	}
	switch name {
	case "interrupt", "set_permission_mode", "set_model", "set_max_thinking_tokens", "cancel_async_message":
	default:
		return nil, nil, nil, false
	}
	if len(args) > 0 {
		if err := json.Unmarshal(args, &a); err != nil {
			return nil, nil, fmt.Errorf("reading the request: %w", err), true
		}
	}
	then = func() {}
	switch name {
	case "interrupt":
		then = o.interrupt
		v = o.queue(a.Cancel)
	case "set_permission_mode":
		m, known := agent.ParseMode(a.Mode)
		if err = fmt.Errorf("%q is no permission mode", a.Mode); known {
			err = o.s.setMode(m)
		}
		v = map[string]any{"mode": o.s.Mode()}
	case "set_model":
		want := ""
		if a.Model != nil && *a.Model != "default" {
			want = *a.Model
		}
		err = o.s.setModel(want)
		v = map[string]any{"model": o.s.Model()}
	case "set_max_thinking_tokens":
		t := agent.Thought{Type: "adaptive", Display: a.Display}
		switch {
		case a.Max == nil:
		case *a.Max == 0:
			t.Type = "disabled"
		case *a.Max < 0:
			return nil, then, errors.New("max_thinking_tokens is negative"), true
		default:
			t.Type, t.Budget = "enabled", *a.Max
		}
		err = o.s.setThinking(agent.SetThinking{Thought: t})
	case "cancel_async_message":
		v = map[string]any{"cancelled": o.s.unqueue(a.UUID)}
	}
	return v, then, err, true
}

// queue says which prompts wait, or takes them back.
func (o *owner) queue(cancel bool) any {
	s := o.s
	s.mu.Lock()
	ids := []string{}
	for _, q := range s.queue {
		ids = append(ids, q.UUID)
	}
	s.mu.Unlock()
	if !cancel {
		return map[string]any{"still_queued": ids}
	}
	for _, id := range ids {
		s.unqueue(id)
	}
	return map[string]any{"still_queued": []string{}, "cancelled": ids}
}
