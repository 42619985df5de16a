package session

import (
	"context"
	"errors"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// Ask puts a question to the front ends and waits for the first answer: it is
// an [agent.Asker]. There is no clock on it but that of ctx: a person may
// take any time. A question still open when ctx or the session ends is
// withdrawn.
func (s *Session) Ask(ctx context.Context, q agent.Question) (agent.Answer, error) {
	if s.o.Answerable != nil && !s.o.Answerable(q.Kind) {
		return agent.Answer{}, agent.ErrNoOne
	}
	if q.ID == "" {
		q.ID = s.o.NewID()
	}
	if q.OneWay {
		s.Emit(s.parentOf(q.Agent), q.Agent, agent.Asked{Question: q})
		return agent.Answer{}, nil
	}
	ch := make(chan agent.Answer, 1)
	s.mu.Lock()
	s.asks[q.ID] = asked{q, ch}
	s.mu.Unlock()
	s.Emit(s.parentOf(q.Agent), q.Agent, agent.Asked{Question: q})
	if person(q.Kind) {
		s.waiting(+1)
		defer s.waiting(-1)
	}
	var cause error
	select {
	case a := <-ch:
		return a, nil
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-s.over:
		cause = ErrOver
	}
	s.mu.Lock()
	_, open := s.asks[q.ID]
	delete(s.asks, q.ID)
	s.mu.Unlock()
	if !open { // answered in the same moment: the answer was told, so it counts
		return <-ch, nil
	}
	s.Emit(s.parentOf(q.Agent), q.Agent, agent.Withdrawn{ID: q.ID, Reason: cause.Error()})
	return agent.Answer{}, cause
}

type asked struct {
	q  agent.Question
	ch chan agent.Answer // has room for the one answer
}

// person reports whether questions of that kind are for a person, so that the
// session waits for somebody to act.
func person(kind string) bool {
	return kind == agent.AskPermission || kind == agent.AskElicit || kind == agent.AskDialog || kind == agent.AskConfirm
}

// waiting counts the questions a person has to answer, and tells when the
// first comes and the last goes.
func (s *Session) waiting(n int) {
	s.mu.Lock()
	before := s.persons
	s.persons += n
	now, running := s.persons, s.running
	s.mu.Unlock()
	switch {
	case before == 0 && now > 0:
		s.Emit("", "", agent.State{State: "requires_action"})
	case before > 0 && now == 0 && running:
		s.Emit("", "", agent.State{State: "running"})
	}
}

// answer ends a question. An answer nobody waits for any more is dropped.
func (s *Session) answer(a agent.Answer) error {
	if a.ID == "" {
		return errors.New("an answer needs the id of its question")
	}
	s.mu.Lock()
	k, ok := s.asks[a.ID]
	delete(s.asks, a.ID)
	s.mu.Unlock()
	if !ok {
		return nil
	}
	s.Emit(s.parentOf(k.q.Agent), k.q.Agent, agent.Answered{ID: a.ID, Kind: k.q.Kind, Call: k.q.Call.ID, Decision: a.Decision})
	k.ch <- a
	return nil
}

// Open returns the questions that wait for an answer.
func (s *Session) Open() []agent.Question {
	s.mu.Lock()
	defer s.mu.Unlock()
	qs := make([]agent.Question, 0, len(s.asks))
	for _, k := range s.asks {
		qs = append(qs, k.q)
	}
	return qs
}
