package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/atomicfile"
)

// A Todo is one line of a TodoWrite list.
type Todo struct {
	Content    string `json:"content"`
	Status     string `json:"status"`
	ActiveForm string `json:"activeForm"`
}

// todoFile is where the list of an agent is kept.
func (l *List) todoFile(agent string) string {
	name := "todos.json"
	if agent != "" {
		name = "todos-" + strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
				return r
			}
			return '_'
		}, agent) + ".json"
	}
	return filepath.Join(l.Dir(), name)
}

// Todos returns the TodoWrite list of that agent.
func (l *List) Todos(agent string) ([]Todo, error) {
	data, err := os.ReadFile(l.todoFile(agent))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the todo list: %w", err)
	}
	var todos []Todo
	if err := json.Unmarshal(data, &todos); err != nil {
		return nil, fmt.Errorf("reading the todo list: %w", err)
	}
	return todos, nil
}

// todoWrite is the tool TodoWrite.
type todoWrite struct{ l *List }

const todoSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{` +
	`"todos":{"description":"The whole list as it is to be from now on","type":"array","items":{"type":"object","properties":{` +
	`"content":{"description":"What is to be done","type":"string","minLength":1},` +
	`"status":{"type":"string","enum":["pending","in_progress","completed"]},` +
	`"activeForm":{"description":"The same as something that is going on (Running the tests)","type":"string","minLength":1}},` +
	`"required":["content","status","activeForm"],"additionalProperties":false}}},"required":["todos"],"additionalProperties":false}`

func (todoWrite) Spec() agent.Spec {
	return agent.Spec{Name: "TodoWrite", Schema: json.RawMessage(todoSchema), Description: `Replaces your list of what is to be done, which the person sees too.

Use it for work of three steps or more, or when you are given several things at once; not for a single plain step. Have one item in_progress while you work on it, mark it completed as soon as it is really done, and add what turns up on the way.`}
}

func parseTodos(raw json.RawMessage) ([]Todo, error) {
	var in struct {
		Todos []Todo `json:"todos"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, fmt.Errorf("reading the input: %w", err)
	}
	if in.Todos == nil {
		return nil, errors.New("todos is missing")
	}
	for i, t := range in.Todos {
		if strings.TrimSpace(t.Content) == "" {
			return nil, fmt.Errorf("todos[%d] has no content", i)
		}
		if !known(t.Status) {
			return nil, fmt.Errorf("todos[%d] has the status %q; it is pending, in_progress or completed", i, t.Status)
		}
	}
	return in.Todos, nil
}

func known(status string) bool {
	return status == Pending || status == InProgress || status == Completed
}

func (todoWrite) Inspect(raw json.RawMessage) (agent.Effects, error) {
	_, err := parseTodos(raw)
	return agent.Effects{Idempotent: true}, err
}

func (t todoWrite) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	todos, err := parseTodos(c.Input)
	if err != nil {
		return agent.Result{}, err
	}
	var old []Todo
	open := 0
	for _, x := range todos {
		if x.Status != Completed {
			open++
		}
	}
	err = t.l.change(ctx, func(string) error {
		old, _ = t.l.Todos(c.Agent) // it is about to be replaced
		kept := todos
		if open == 0 {
			kept = []Todo{} // all is done: nothing to be reminded of
		}
		data, err := json.MarshalIndent(kept, "", "  ")
		if err != nil {
			return fmt.Errorf("writing the todo list: %w", err)
		}
		if err := atomicfile.WriteFile(t.l.todoFile(c.Agent), append(data, '\n'), 0o600); err != nil {
			return fmt.Errorf("writing the todo list: %w", err)
		}
		return nil
	})
	if err != nil {
		return agent.Result{}, err
	}
	text := fmt.Sprintf("The list was updated: %d of %d items are open.", open, len(todos))
	if open == 0 {
		text = "The list was updated: everything on it is done."
	}
	res := agent.Textual(text)
	if old == nil {
		old = []Todo{}
	}
	res.Detail = map[string]any{"oldTodos": old, "newTodos": todos}
	return res, nil
}
