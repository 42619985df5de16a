package session

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// An account is what a session has used. It is guarded by Session.mu.
type account struct {
	models []agent.ModelUsage // in order of first use
	cost   float64
	api    time.Duration
}

func (a *account) add(r agent.Responded) {
	a.cost += r.Cost
	a.api += r.Took
	i := slices.IndexFunc(a.models, func(m agent.ModelUsage) bool { return m.Model == r.Model })
	if i < 0 {
		i = len(a.models)
		a.models = append(a.models, agent.ModelUsage{Model: r.Model})
	}
	a.models[i].Usage = a.models[i].Usage.Add(r.Usage)
	a.models[i].Cost += r.Cost
}

// Totals returns what was used in the session so far, by model in order of
// first use, and what it cost in US dollars.
func (s *Session) Totals() (models []agent.ModelUsage, cost float64) {
	s.mu.Lock()
	models, cost = slices.Clone(s.account.models), s.account.cost
	s.mu.Unlock()
	if s.o.Limits != nil {
		for i := range models {
			models[i].ContextWindow, models[i].MaxOutput = s.o.Limits(models[i].Model)
		}
	}
	return models, cost
}

func (s *Session) price(model string, u agent.Usage) float64 {
	if s.o.Price == nil {
		return 0
	}
	return s.o.Price(model, u)
}

// spent reports why no further request may be made, or "".
func (s *Session) spent() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.MaxBudget > 0 && s.account.cost >= s.o.MaxBudget {
		return reasonBudget
	}
	return ""
}

// Metered returns p with its responses counted in the session: for requests
// beside the conversation (summaries, titles, page answers).
func (s *Session) Metered(p agent.Provider) agent.Provider { return metered{p, s} }

type metered struct {
	p agent.Provider
	s *Session
}

func (m metered) Stream(ctx context.Context, req *agent.Request) iter.Seq2[agent.Delta, error] {
	return func(yield func(agent.Delta, error) bool) {
		var r agent.Responded
		start := time.Now()
		told := func() {
			if r.MessageID == "" && r.Model == "" {
				return
			}
			if r.Model == "" {
				r.Model = req.Model
			}
			r.Took, r.Purpose, r.Cost = time.Since(start), req.Purpose, m.s.price(r.Model, r.Usage)
			m.s.Emit("", req.Agent, r)
			r = agent.Responded{}
		}
		defer told()
		for d, err := range m.p.Stream(ctx, req) {
			switch d := d.(type) {
			case agent.Begin:
				r = agent.Responded{MessageID: d.MessageID, RequestID: d.RequestID, Model: d.Model, Usage: d.Usage, TTFT: time.Since(start)}
			case agent.Stopped:
				r.Stop, r.Usage = d.Stop, d.Usage
			case agent.Reset:
				told()
			}
			if !yield(d, err) {
				return
			}
		}
	}
}
