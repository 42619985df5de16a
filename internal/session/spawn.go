package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/loop"
	"github.com/seed-eb844fcb/cinch/internal/window"
)

// AgentLimits cap the sub-agents of a session. Zero fields have the defaults.
type AgentLimits struct {
	Depth      int // levels below the main conversation; 3
	Concurrent int // at one time; 20
	Total      int // in the session; 500
	// Tokens, Cost and Time cap one tree: an agent that the main conversation
	// sent, and all below it. Tokens are those of all its requests and
	// answers, Cost is in US dollars. 0: no cap.
	Tokens int
	Cost   float64
	Time   time.Duration
}

func (l AgentLimits) withDefaults() AgentLimits {
	if l.Depth == 0 {
		l.Depth = 3
	}
	if l.Concurrent == 0 {
		l.Concurrent = 20
	}
	if l.Total == 0 {
		l.Total = 500
	}
	return l
}

// A Child is a sub-agent to run.
type Child struct {
	ID     string       // "" gets one
	Type   string       // agent type, for hooks
	Call   agent.CallID // the call that spawns it: the Parent of its events
	Parent string       // id of the agent that spawns it, or ""
	// History to continue (a fork, a resumption); it is mended first.
	History []agent.Message
	// Prompt is the first, or next, user message: notes first, then the task.
	Prompt   []agent.Block
	Provider agent.Provider // nil: the session's
	Tools    func(name string) agent.Tool
	Window   func(history []agent.Message) *agent.Request
	// Gate stands in for the session's; nil is the session's. Fit and Recover
	// are the child's own; nil: its history stays.
	Gate    func(ctx context.Context, c agent.Call) (agent.Decision, error)
	Fit     func(ctx context.Context, h []agent.Message) window.Outcome
	Recover func(ctx context.Context, h []agent.Message, err error) (window.Outcome, bool)
	// Load is told the deferred tools that a call of it loaded. Nil: nobody is.
	Load func(names ...string)
	// Answered is told of each of its responses. Nil: nobody is.
	Answered func(messageID string, u agent.Usage)
	MaxTurns int // requests; 0 is no bound
	// Progress is told after each call and response what was used, and the
	// last tool. Concurrent. Nil: nobody is.
	Progress func(u agent.TaskUsage, lastTool string)
}

// Spawned is what a sub-agent left.
type Spawned struct {
	ID string
	// End has the answer in Text and the History, for a resumption.
	End loop.End
	// Partial says that Text is not a finished answer; Why says why.
	Partial bool
	Why     string
	// Interrupted says that a person's denial of one of its calls was to end
	// the whole turn: whoever sent the agent should end with loop.InTools.
	Interrupted bool
	Usage       agent.TaskUsage
	Sum         agent.Usage // of all its responses, without those of agents below
	Cost        float64     // of it, without agents below
	Models      []string
}

// A node is a sub-agent that runs. It is guarded by Session.mu.
type node struct {
	id, kind string
	call     agent.CallID
	root     *node // itself for the first of a tree
	depth    int
	inbox    []agent.Said

	usage    agent.TaskUsage
	sum      agent.Usage
	cost     float64
	lastTool string
	models   []string

	// of the whole tree, at its root
	treeTokens int
	treeCost   float64
}

// parentOf returns the call a running sub-agent works for.
func (s *Session) parentOf(id string) agent.CallID {
	if id == "" {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.agents[id]; n != nil {
		return n.call
	}
	return ""
}

// enroll lists a sub-agent as running, unless a cap forbids it.
func (s *Session) enroll(c *Child) (*node, error) {
	l := s.o.Agents
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &node{id: c.ID, kind: c.Type, call: c.Call, depth: 1}
	n.root = n
	if c.Parent != "" {
		p := s.agents[c.Parent]
		if p == nil {
			return nil, fmt.Errorf("the agent %s that sends this one does not run any more", c.Parent)
		}
		n.root, n.depth = p.root, p.depth+1
	}
	switch {
	case n.depth > l.Depth:
		return nil, fmt.Errorf("agents may be nested %d deep, and this one would be deeper: do the work yourself", l.Depth)
	case len(s.agents) >= l.Concurrent:
		return nil, fmt.Errorf("Concurrent subagent limit reached: %d run already. Wait for one to end, or do the work yourself", l.Concurrent)
	case s.spawned >= l.Total:
		return nil, fmt.Errorf("this session has sent %d agents, and may send no more: do the work yourself", l.Total)
	case n.id != "" && s.agents[n.id] != nil:
		return nil, fmt.Errorf("the agent %s runs already: send it a message", n.id)
	}
	if why := s.treeSpent(n.root); why != "" {
		return nil, errors.New(why)
	}
	if n.id == "" {
		n.id = s.o.NewID()
	}
	c.ID = n.id
	s.agents[n.id] = n
	s.spawned++
	return n, nil
}

// treeSpent says which cap of a tree is used up, or "". The caller holds mu.
func (s *Session) treeSpent(root *node) string {
	l := s.o.Agents
	switch {
	case l.Tokens > 0 && root.treeTokens >= l.Tokens:
		return fmt.Sprintf("this agent and those below it have used the %d tokens they may", l.Tokens)
	case l.Cost > 0 && root.treeCost >= l.Cost:
		return fmt.Sprintf("this agent and those below it have used the %.2f USD they may", l.Cost)
	}
	return ""
}

var errTreeTime = errors.New("the time for this agent is used up")

// Depth is the level of a running sub-agent: 1 for one the main conversation
// sent, 0 for an unknown one.
func (s *Session) Depth(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.agents[id]; n != nil {
		return n.depth
	}
	return 0
}

// Spawn runs a sub-agent to its end in the caller's goroutine. Its error says
// why it was not started. Everything else, an end before its time included,
// is in Spawned. What it costs counts in the session; calls it was denied are
// told with the turn.
func (s *Session) Spawn(ctx context.Context, c Child) (Spawned, error) {
	n, err := s.enroll(&c)
	if err != nil {
		return Spawned{}, err
	}
	defer func() {
		s.mu.Lock()
		delete(s.agents, n.id)
		s.mu.Unlock()
	}()
	began := time.Now()
	if t := s.o.Agents.Time; t > 0 && n.depth == 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, t, errTreeTime)
		defer cancel()
	}
	b := &brood{s: s, n: n, c: c, began: began}
	h := b.open(ctx)
	l := b.loop()
	end := l.Run(ctx, h)
	for end.Reason == loop.Completed && ctx.Err() == nil {
		more := b.steer(ctx)
		if len(more) == 0 {
			break
		}
		h = end.History
		for _, said := range more {
			b.emit(said)
			h = loop.Push(h, said.Message)
		}
		next := l.Run(ctx, h)
		next.Turns += end.Turns
		next.Denials = append(end.Denials, next.Denials...)
		end = next
	}
	return b.left(ctx, end), nil
}

// Tell hands a message to a running sub-agent: it joins the results of its
// next step, or makes it go on. It reports whether such an agent runs.
func (s *Session) Tell(id string, blocks []agent.Block) bool {
	m := agent.Message{UUID: s.o.NewID(), Role: agent.User, Blocks: blocks}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.agents[id]
	if n != nil {
		n.inbox = append(n.inbox, agent.Said{Message: m})
	}
	return n != nil
}

// A brood is one run of a sub-agent.
type brood struct {
	s     *Session
	n     *node
	c     Child
	began time.Time
	hooks int
}

func (b *brood) emit(body agent.Body) { b.s.Emit(b.c.Call, b.n.id, body) }

// open returns the history with the task at its end.
func (b *brood) open(ctx context.Context) []agent.Message {
	s := b.s
	blocks := b.c.Prompt
	r := s.hook(ctx, agent.Moment{Event: "SubagentStart", Match: b.c.Type, Agent: b.n.id, AgentType: b.c.Type})
	blocks = append(hookNotes("SubagentStart", r.Context), blocks...)
	h := Mend(b.c.History, "")
	if len(blocks) == 0 {
		return h
	}
	m := agent.Message{UUID: s.o.NewID(), Role: agent.User, Blocks: blocks}.Encode()
	b.emit(agent.Said{Message: m})
	return loop.Push(h, m)
}

func (b *brood) loop() *loop.Loop {
	s, c := b.s, b.c
	l := &loop.Loop{
		Provider: c.Provider, Tool: c.Tools, Check: s.o.Check, Window: c.Window, Gate: c.Gate, After: s.o.After, Batch: s.o.Batch, Load: c.Load,
		Idle: func(ctx context.Context, answer string, _ int) (*agent.Message, string) {
			m, end := s.stopHooks(ctx, agent.Moment{Event: "SubagentStop", Match: c.Type, Agent: b.n.id, AgentType: c.Type}, answer, b.hooks > 0)
			if m != nil {
				b.hooks++
			}
			return m, end
		},
		Steer: b.steer, Explain: explain, Budget: b.spent, Cost: s.price, Emit: b.count, ID: s.o.NewID,
		MaxSteps: c.MaxTurns, Agent: b.n.id, Grace: 5 * time.Second,
	}
	if l.Provider == nil {
		l.Provider = s.o.Provider
	}
	if l.Gate == nil {
		l.Gate = s.o.Gate
	}
	if c.Fit != nil {
		l.Fit = func(ctx context.Context, h []agent.Message) []agent.Message { return b.changed(c.Fit(ctx, h), h) }
	}
	if c.Recover != nil {
		l.Recover = func(ctx context.Context, h []agent.Message, err *agent.ModelError) ([]agent.Message, bool) {
			out, ok := c.Recover(ctx, h, err)
			return b.changed(out, h), ok
		}
	}
	return l
}

func (b *brood) changed(out window.Outcome, h []agent.Message) []agent.Message {
	if c := out.Compacted; c != nil {
		b.emit(*c)
		if c.Err == "" {
			return Mend(c.History, "")
		}
	}
	if !out.Changed {
		return h
	}
	b.emit(agent.Mended{Reason: whyMended(out), History: out.History})
	return out.History
}

func (b *brood) steer(context.Context) []agent.Said {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	out := b.n.inbox
	b.n.inbox = nil
	return out
}

// spent reports why the agent may make no further request, or "".
func (b *brood) spent() string {
	if why := b.s.spent(); why != "" {
		return why
	}
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	return b.s.treeSpent(b.n.root)
}

// count tells a fact of the agent, and keeps account of it.
func (b *brood) count(body agent.Body) {
	b.emit(body)
	s, n := b.s, b.n
	s.mu.Lock()
	switch x := body.(type) {
	case agent.Responded:
		n.sum = n.sum.Add(x.Usage)
		n.cost += x.Cost
		n.usage.Tokens = x.Usage.Prompt() + x.Usage.Out
		n.root.treeTokens += x.Usage.Prompt() + x.Usage.Out
		n.root.treeCost += x.Cost
		if !slices.Contains(n.models, x.Model) {
			n.models = append(n.models, x.Model)
		}
	case agent.Finished:
		n.usage.Tools++
		n.lastTool = x.Call.Name
	default:
		s.mu.Unlock()
		return
	}
	n.usage.Took = time.Since(b.began)
	u, last := n.usage, n.lastTool
	s.mu.Unlock()
	if r, ok := body.(agent.Responded); ok && b.c.Answered != nil && r.Stop != "" {
		b.c.Answered(r.MessageID, r.Usage)
	}
	if b.c.Progress != nil {
		b.c.Progress(u, last)
	}
}

// left sums the run up.
func (b *brood) left(ctx context.Context, end loop.End) Spawned {
	s, n := b.s, b.n
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denials = append(s.denials, end.Denials...)
	n.usage.Took = time.Since(b.began)
	out := Spawned{ID: n.id, End: end, Usage: n.usage, Sum: n.sum, Cost: n.cost, Models: n.models}
	switch {
	case end.Trouble != nil:
		out.Partial, out.Why = true, "Agent terminated early due to an API error: "+end.Trouble.Text
		out.End.Text = lastText(end.History)
	case ctx.Err() != nil:
		out.Partial, out.Why = true, "it was stopped: "+context.Cause(ctx).Error()
	case end.Reason == loop.InTools:
		out.Partial, out.Interrupted, out.Why = true, true, "a call of it was denied, and the turn with it"
	case end.Reason == loop.MaxTurns:
		out.Partial, out.Why = true, fmt.Sprintf("it reached its limit of %d turns", b.c.MaxTurns)
	case end.Reason == loop.Budget:
		out.Partial, out.Why = true, "Budget limit reached"
	case end.Reason != loop.Completed:
		out.Partial, out.Why = true, end.Reason
	}
	return out
}

// lastText is the last thing the model said in h.
func lastText(h []agent.Message) string {
	for _, m := range slices.Backward(h) {
		if m.Role == agent.Assistant {
			if t := agent.TextOf(m.Blocks); t != "" {
				return t
			}
		}
	}
	return ""
}
