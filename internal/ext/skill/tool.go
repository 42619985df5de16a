package skill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// Options are what the Skill tool stands on.
type Options struct {
	// Skills returns what there is now.
	Skills func() []Skill
	// Invoke renders s and applies what its head says (rules, model, hooks).
	// For a fork it runs the sub-agent and returns its report.
	Invoke func(ctx context.Context, c agent.Call, s Skill, args string) (text string, err error)
}

// New returns the Skill tool.
func New(o Options) agent.Tool { return &tool{o: o, loaded: map[string]bool{}} }

type tool struct {
	o Options

	mu     sync.Mutex
	loaded map[string]bool // by agent, name and arguments
}

const schema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"skill":{"type":"string","description":"Name of the skill, without a slash"},"args":{"type":"string","description":"Its arguments"}},"required":["skill"],"additionalProperties":false}`

type input struct {
	Skill string `json:"skill"`
	Args  string `json:"args"`
}

func (t *tool) Spec() agent.Spec {
	return agent.Spec{
		Name: "Skill", Schema: json.RawMessage(schema),
		Description: "Load a skill: instructions that somebody wrote for a kind of task. Which skills there are is listed in the conversation. When one fits the task, load it before you begin and follow it. When a message already holds the text of the skill, do not load it again.",
	}
}

func (t *tool) find(name string) (Skill, error) {
	name = strings.TrimPrefix(strings.TrimSpace(name), "/")
	var names []string
	for _, s := range t.o.Skills() {
		if s.Name == name {
			if s.Hidden {
				return s, fmt.Errorf("the skill %s may be used only when the user types /%s; do not do its work in another way", name, name)
			}
			return s, nil
		}
		if !s.Hidden {
			names = append(names, s.Name)
		}
	}
	return Skill{}, fmt.Errorf("there is no skill %q; there are: %s", name, strings.Join(names, ", "))
}

func (t *tool) Inspect(raw json.RawMessage) (agent.Effects, error) {
	var in input
	if err := json.Unmarshal(raw, &in); err != nil {
		return agent.Effects{}, err
	}
	if strings.TrimSpace(in.Skill) == "" {
		return agent.Effects{}, errors.New("skill is empty")
	}
	name := strings.TrimPrefix(strings.TrimSpace(in.Skill), "/")
	subject := name
	if in.Args != "" {
		subject += " " + in.Args
	}
	return agent.Effects{Subjects: []agent.Subject{{Kind: agent.SubjectName, Value: subject}}}, nil
}

func (t *tool) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	var in input
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return agent.Result{}, err
	}
	s, err := t.find(in.Skill)
	if err != nil {
		return agent.Result{}, err
	}
	key := c.Agent + "\x00" + s.Name + "\x00" + in.Args + "\x00" + s.Body
	t.mu.Lock()
	again := t.loaded[key]
	t.mu.Unlock()
	if again && !s.Fork {
		return agent.Textual(fmt.Sprintf("The skill %s is already loaded: its text stands above.", s.Name)), nil
	}
	text, err := t.o.Invoke(ctx, c, s, in.Args)
	if err != nil {
		return agent.Result{}, err
	}
	t.mu.Lock()
	t.loaded[key] = true
	t.mu.Unlock()
	detail := map[string]any{"success": true, "commandName": s.Name}
	if s.Fork {
		r := agent.Textual(text)
		r.Detail = detail
		return r, nil
	}
	// The body stands behind the results as a message of the user's side, so
	// that it keeps its weight when old results are cleared.
	r := agent.Textual("The skill " + s.Name + " is loaded; its text follows.")
	r.After = []agent.Block{&agent.Text{Text: text, Note: "skill"}}
	r.Detail = detail
	return r, nil
}

// Forget makes every skill loadable again: after the history was shortened.
func Forget(t agent.Tool) {
	if t, ok := t.(*tool); ok {
		t.mu.Lock()
		clear(t.loaded)
		t.mu.Unlock()
	}
}
