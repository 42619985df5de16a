package gate

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/policy"
)

// Denials by the classifier after which a person is asked instead.
const (
	maxStreak = 3
	maxBlocks = 20
)

// classify asks the classifier of auto mode. settled is false if a person has to say.
func (s *passage) classify(ctx context.Context, j *policy.Judgement) (d agent.Decision, settled bool, err error) {
	s.mu.Lock()
	tired := s.streak >= maxStreak || s.blocks >= maxBlocks
	s.mu.Unlock()
	if tired {
		j.Reason += "; auto mode blocked too many calls and leaves this one to you"
		return d, false, nil
	}
	if s.o.Classify == nil {
		return s.unavailable(j, errors.New("none is set up"))
	}
	transcript := ""
	if s.o.Transcript != nil {
		transcript = s.o.Transcript(s.call.Agent)
	}
	d, err = s.o.Classify(ctx, s.call, transcript)
	if cause := context.Cause(ctx); cause != nil {
		return d, false, cause
	}
	if err != nil {
		return s.unavailable(j, err)
	}
	d.Why = agent.WhyClassifier
	if d.By == "" {
		d.By = "classifier"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch d.Verdict {
	case agent.Allow:
		s.streak = 0
		return d, true, nil
	case agent.Deny:
		s.streak++
		s.blocks++
		s.blamed = true
		return d, true, nil
	}
	if d.Reason != "" {
		j.Reason = d.Reason
	}
	return d, false, nil
}

// unavailable leaves the call to a person.
func (s *passage) unavailable(j *policy.Judgement, err error) (agent.Decision, bool, error) {
	j.Why = agent.WhyClassifier
	j.Reason = "the classifier of auto mode is unavailable (" + err.Error() + "); " + j.Reason
	return agent.Decision{}, false, nil
}

// A reply is what a PermissionRequest hook or a person said.
type reply struct {
	decision *agent.Decision // nil: no opinion, or nobody there
	person   bool
	err      error
}

// ask puts the call to the PermissionRequest hooks and to a person at the
// same time. The first who decides is heard; the other is called off.
func (s *passage) ask(ctx context.Context, j policy.Judgement) (agent.Decision, error) {
	inner, cancel := context.WithCancelCause(ctx)
	replies := make(chan reply, 2)
	var group sync.WaitGroup
	waiting := 0
	if s.o.Hooks != nil {
		waiting++
		group.Go(func() { replies <- s.requestHooks(inner, j) })
	}
	if s.o.Ask != nil {
		waiting++
		q := s.question(j)
		group.Go(func() { replies <- s.person(inner, q) })
	}
	var answer *reply
	for ; waiting > 0 && answer == nil; waiting-- {
		if r := <-replies; r.decision != nil {
			answer = &r
		}
	}
	cancel(errAnswered)
	group.Wait()
	// A person who answered in the same moment has been told so: it counts.
	for range waiting {
		if r := <-replies; r.decision != nil && r.person {
			answer = &r
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		return agent.Decision{}, cause
	}
	if answer == nil {
		s.noOne = true
		d := j.Decision
		d.Verdict = agent.Deny
		return d, nil
	}
	return s.accept(ctx, *answer, j)
}

// errAnswered withdraws a question that somebody else has answered.
var errAnswered = errors.New("answered by another")

func (s *passage) question(j policy.Judgement) agent.Question {
	s.mu.Lock()
	s.asked++
	n := s.asked
	s.mu.Unlock()
	return agent.Question{
		ID: fmt.Sprintf("permission-%s-%d", s.call.ID, n), Kind: agent.AskPermission,
		Call: s.call, Decision: j.Decision, Name: s.call.Name, Agent: s.call.Agent,
	}
}

func (s *passage) person(ctx context.Context, q agent.Question) reply {
	a, err := s.o.Ask(ctx, q)
	switch {
	case err != nil && context.Cause(ctx) == nil && !errors.Is(err, agent.ErrNoOne):
		s.emit(agent.Noted{Level: "warning", Call: s.call.ID, Text: "asking for permission: " + err.Error()})
		return reply{err: err}
	case err != nil, a.Decision.NoOne:
		return reply{err: agent.ErrNoOne}
	}
	d := a.Decision
	if d.Verdict != agent.Allow {
		d.Verdict = agent.Deny
	}
	if d.Why == "" {
		d.Why = agent.WhyUser
	}
	if d.By == "" {
		d.By = "user"
	}
	return reply{decision: &d, person: true}
}

// requestHooks runs the PermissionRequest hooks.
func (s *passage) requestHooks(ctx context.Context, j policy.Judgement) reply {
	m := moment("PermissionRequest", s.call, false)
	if len(j.Suggest) > 0 {
		m.Fields["permission_suggestions"] = j.Suggest
	}
	r := s.o.Hooks(ctx, m)
	d := r.Decision
	if d == nil || d.Verdict != agent.Allow && d.Verdict != agent.Deny || context.Cause(ctx) != nil {
		return reply{}
	}
	if d.Verdict == agent.Allow && j.Person {
		s.emit(agent.Noted{Level: "notice", Call: s.call.ID,
			Text: "a PermissionRequest hook allowed " + s.call.Name + ", but " + j.Reason + ": a person has to say"})
		return reply{}
	}
	c := *d
	c.Why = agent.WhyHook
	if c.By == "" {
		c.By = "hook:PermissionRequest"
	}
	return reply{decision: &c}
}

// accept carries out an answer.
func (s *passage) accept(ctx context.Context, r reply, asked policy.Judgement) (agent.Decision, error) {
	d := *r.decision
	if d.Verdict != agent.Allow {
		return d, nil
	}
	if r.person {
		s.mu.Lock()
		s.streak = 0
		s.mu.Unlock()
	}
	if d.Input != nil {
		if err := s.replace(d.Input); err != nil {
			return agent.Decision{Verdict: agent.Deny, Why: d.Why, By: d.By,
				Reason: "The input that came with the approval does not fit: " + err.Error()}, nil
		}
		d.Input = nil
		// The answer approves what it wrote, but a rule still forbids; and a
		// hook approves no more than it could have before.
		j := s.judge()
		if j.Verdict == agent.Deny && j.Step == policy.StepDeny || !r.person && j.Person {
			j.Verdict = agent.Deny
			return j.Decision, nil
		}
	}
	if err := s.Grant(ctx, d.Updates); err != nil {
		s.emit(agent.Noted{Level: "warning", Call: s.call.ID, Text: err.Error()})
	}
	return d, nil
}
