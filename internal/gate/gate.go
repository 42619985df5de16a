// Package gate decides whether a call may run, when the decision takes more
// than rules: hooks, a classifier, a person.
//
// It owns the order of those who are asked (PreToolUse hooks, policy, the
// classifier of auto mode, PermissionRequest hooks and the person at the same
// time), what becomes of their answers, the permissions they grant, and the
// words in which a denial is told to the model. It must not know front ends,
// tools, or how hooks run.
//
// A hook only tightens: its allow stands in for a missing allow rule, never
// for a person that a deny rule, an ask rule or a guard calls for.
package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/policy"
)

// Options are what a Gate works with. Policy is required; nil functions mean
// that there is no such thing.
type Options struct {
	Policy *policy.Policy
	// Hooks runs the user's hooks.
	Hooks agent.Hooker
	// Ask puts a question to the front ends. It must return soon after its
	// context ends.
	Ask agent.Asker
	// Inspect says what a call would touch once its input was replaced.
	// Required if hooks or persons may do that: without it such calls are denied.
	Inspect func(name string, input json.RawMessage) (agent.Effects, error)
	// Classify judges a call in auto mode: Allow, Deny, or Ask to leave it to
	// a person. It gets the call's conversation in words. An error means that
	// it is unavailable.
	Classify func(ctx context.Context, c agent.Call, transcript string) (agent.Decision, error)
	// NotInPlan keeps the classifier out of plan mode, where it else judges
	// shell commands once the session has been in auto mode.
	NotInPlan bool
	// Transcript tells the conversation of sub-agent agent ("": the main one)
	// to the classifier.
	Transcript func(agent string) string
	// ShellDir is the directory in which the next shell command of agent starts.
	ShellDir func(agent string) string
	// Save writes a granted permission to the settings file it belongs to.
	Save func(ctx context.Context, u agent.PermissionUpdate) error
	// ModeChanged is told when an answer switched the mode.
	ModeChanged func(agent.Mode)
	// Emit takes the facts a permission leaves: how long it took (Crossed)
	// and what went wrong on the way (Noted).
	Emit func(agent.Body)
}

// A Gate admits calls. It is safe for concurrent use: many calls may wait for
// an answer at once.
type Gate struct {
	o      Options
	policy atomic.Pointer[policy.Policy]

	mu      sync.Mutex // over the fields below; never held over a call out
	asked   int
	streak  int  // denials by the classifier in a row
	blocks  int  // and in all
	auto    bool // the session has been in auto mode
	denials []agent.Denial
}

// New returns a gate.
func New(o Options) *Gate {
	g := &Gate{o: o, auto: o.Policy.Mode() == agent.ModeAuto}
	g.policy.Store(o.Policy)
	return g
}

// Policy is the policy in force.
func (g *Gate) Policy() *policy.Policy { return g.policy.Load() }

// Update replaces the policy by what change makes of it. change may run more
// than once; its error leaves all as it was.
func (g *Gate) Update(change func(*policy.Policy) (*policy.Policy, error)) error {
	for {
		old := g.policy.Load()
		p, err := change(old)
		if err != nil {
			return err
		}
		if g.policy.CompareAndSwap(old, p) {
			return nil
		}
	}
}

// SetMode switches the permission mode.
func (g *Gate) SetMode(m agent.Mode) error {
	err := g.Update(func(p *policy.Policy) (*policy.Policy, error) { return p.WithMode(m) })
	if err == nil && m == agent.ModeAuto {
		g.mu.Lock()
		g.auto = true
		g.mu.Unlock()
	}
	return err
}

// classifies says whether the classifier judges j. In plan mode it does so for
// shell commands, of a session that has been in auto mode: whoever plans there
// is not asked about every build and test.
func (s *passage) classifies(mode agent.Mode, j policy.Judgement) bool {
	if j.Person || j.Why == agent.WhyHook {
		return false
	}
	if mode != agent.ModePlan {
		return mode == agent.ModeAuto
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.auto || s.o.NotInPlan || j.Step != policy.StepMode || s.call.Name != "Bash" {
		return false
	}
	_, err := s.Policy().WithMode(agent.ModeAuto)
	return err == nil
}

// Grant applies updates, and saves those that are not for the session only.
// What cannot be saved holds for the session; the error says so.
func (g *Gate) Grant(ctx context.Context, updates []agent.PermissionUpdate) error {
	if len(updates) == 0 {
		return nil
	}
	before := g.Policy().Mode()
	_ = g.Update(func(p *policy.Policy) (*policy.Policy, error) { return p.With(updates), nil }) // change never fails
	if m := g.Policy().Mode(); m != before && g.o.ModeChanged != nil {
		g.o.ModeChanged(m)
	}
	for _, u := range updates {
		if u.Destination == "session" || u.Destination == "cliArg" || u.Destination == "" {
			continue
		}
		if g.o.Save == nil {
			return fmt.Errorf("saving a permission to %s: nothing can be saved here; it holds for this session", u.Destination)
		}
		if err := g.o.Save(ctx, u); err != nil {
			return fmt.Errorf("saving a permission to %s (it holds for this session): %w", u.Destination, err)
		}
	}
	return nil
}

// Denials are the calls that were not allowed so far.
func (g *Gate) Denials() []agent.Denial {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.denials)
}

// Decide says whether c may run: Allow, Deny or Defer, never Ask. With Allow,
// Input is set if the call runs with another input. The error is the cause of
// ctx.
func (g *Gate) Decide(ctx context.Context, c agent.Call) (agent.Decision, error) {
	return g.decide(ctx, c, "")
}

// In returns a Decide for conversations that have a mode of their own, such
// as sub-agents. Grants are shared.
func (g *Gate) In(m agent.Mode) func(context.Context, agent.Call) (agent.Decision, error) {
	return func(ctx context.Context, c agent.Call) (agent.Decision, error) { return g.decide(ctx, c, m) }
}

// A passage is one call on its way through the gate.
type passage struct {
	*Gate
	mode    agent.Mode // in place of the policy's, or ""
	call    agent.Call // as it would run
	first   agent.Call // as the model wrote it
	context []string
	changed bool
	// blamed: the classifier said no.
	blamed bool
	noOne  bool
}

func (g *Gate) decide(ctx context.Context, c agent.Call, m agent.Mode) (agent.Decision, error) {
	start := time.Now()
	s := &passage{Gate: g, mode: m, call: c, first: c}
	d, asked, err := s.run(ctx)
	if err != nil {
		return agent.Decision{}, err
	}
	if s.changed && d.Verdict == agent.Allow {
		d.Input = s.call.Input
	}
	d.Context = append(s.context, d.Context...)
	d.NoOne = s.noOne
	if d.Verdict == agent.Deny {
		d = s.refuse(ctx, d)
	}
	if asked {
		g.emit(agent.Crossed{ID: string(c.ID), Boundary: "permission", Name: c.Name, Start: start, End: time.Now(), Attempt: 1,
			Outcome: "ok", Detail: map[string]string{"verdict": d.Verdict.String(), "by": d.By}})
	}
	return d, nil
}

func (g *Gate) emit(b agent.Body) {
	if g.o.Emit != nil {
		g.o.Emit(b)
	}
}

// judge asks the policy about the call as it is now.
func (s *passage) judge() policy.Judgement {
	p := s.Policy()
	if s.mode != "" && s.mode != p.Mode() {
		if q, err := p.WithMode(s.mode); err == nil {
			p = q
		}
	}
	if s.o.ShellDir != nil {
		p = p.WithShellDir(s.o.ShellDir(s.call.Agent))
	}
	return p.Judge(s.call)
}

func (s *passage) modeNow() agent.Mode {
	if s.mode != "" {
		return s.mode
	}
	return s.Policy().Mode()
}

// run passes the call through the stages. asked reports whether anybody had
// to be waited for.
func (s *passage) run(ctx context.Context) (d agent.Decision, asked bool, err error) {
	hook, err := s.preHooks(ctx)
	if err != nil {
		return d, false, err
	}
	if hook != nil && (hook.Verdict == agent.Deny || hook.Verdict == agent.Defer) {
		return *hook, false, nil
	}
	j := s.judge()
	mode := s.modeNow()
	if hook != nil {
		s.combine(hook, &j, mode)
	}
	if j.Verdict != agent.Ask {
		return j.Decision, false, nil
	}
	if s.classifies(mode, j) {
		d, settled, err := s.classify(ctx, &j)
		if err != nil || settled {
			return d, true, err
		}
	}
	d, err = s.ask(ctx, j)
	return d, true, err
}

// preHooks runs the PreToolUse hooks. The decision is nil if they have no opinion.
func (s *passage) preHooks(ctx context.Context) (*agent.Decision, error) {
	if s.o.Hooks == nil {
		return nil, nil
	}
	r := s.o.Hooks(ctx, moment("PreToolUse", s.call, true))
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	s.context = append(s.context, r.Context...)
	d := r.Decision
	if r.Block && (d == nil || d.Verdict != agent.Deny) {
		d = &agent.Decision{Verdict: agent.Deny, Why: agent.WhyHook, By: "hook:PreToolUse", Reason: r.Reason}
	}
	if r.Halt {
		if d == nil || d.Verdict != agent.Deny {
			d = &agent.Decision{Verdict: agent.Deny, Why: agent.WhyHook, By: "hook:PreToolUse", Reason: r.Reason}
		}
		d.Interrupt = true
	}
	input := r.Input
	if d != nil && d.Input != nil {
		input = d.Input
	}
	if input != nil && (d == nil || d.Verdict != agent.Deny) {
		if err := s.replace(input); err != nil {
			return &agent.Decision{Verdict: agent.Deny, Why: agent.WhyHook, By: "hook:PreToolUse",
				Reason: "A hook replaced the input of this call by one that does not fit: " + err.Error()}, nil
		}
	}
	if d != nil {
		c := *d
		c.Input, c.Context = nil, nil
		c.Why = agent.WhyHook
		return &c, nil
	}
	return nil, nil
}

// replace gives the call another input.
func (s *passage) replace(input json.RawMessage) error {
	if s.o.Inspect == nil {
		return fmt.Errorf("nothing here can check it")
	}
	e, err := s.o.Inspect(s.call.Name, input)
	if err != nil {
		return err
	}
	s.call.Input, s.call.Effects, s.changed = input, e, true
	return nil
}

// combine lets a hook's opinion count where it may.
func (s *passage) combine(hook *agent.Decision, j *policy.Judgement, mode agent.Mode) {
	switch hook.Verdict {
	case agent.Allow:
		// It stands for an allow rule, so it reaches as far as one.
		if j.Step == policy.StepMode && !j.Person && !(mode == agent.ModePlan && j.Why == agent.WhyMode) {
			j.Decision = *hook
		}
	case agent.Ask:
		if j.Verdict != agent.Allow {
			return
		}
		warn, suggest := j.Warn, j.Suggest
		j.Decision = *hook
		j.Warn, j.Suggest = warn, suggest
		if mode == agent.ModeDontAsk {
			j.Verdict = agent.Deny
		}
	}
}

// moment is the point at which hooks run for c.
func moment(event string, c agent.Call, id bool) agent.Moment {
	fields := map[string]any{"tool_name": c.Name, "tool_input": c.Input}
	if id {
		fields["tool_use_id"] = string(c.ID)
	}
	return agent.Moment{Event: event, Match: c.Name, Fields: fields, Call: &c, Agent: c.Agent}
}
