package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// Options are what the tools stand on.
type Options struct {
	// List is the list of the session. Required.
	List *List
	// Todo offers TodoWrite in place of the four Task tools.
	Todo bool
	// Both offers all five.
	Both bool
}

// New returns the tools.
func New(o Options) []agent.Tool {
	var tools []agent.Tool
	if o.Todo || o.Both {
		tools = append(tools, todoWrite{o.List})
	}
	if !o.Todo || o.Both {
		tools = append(tools, create{o.List}, get{o.List}, list{o.List}, update{o.List})
	}
	return tools
}

const object = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":`

// create is the tool TaskCreate.
type create struct{ l *List }

func (create) Spec() agent.Spec {
	return agent.Spec{Name: "TaskCreate", Schema: json.RawMessage(object + `{` +
		`"subject":{"description":"What is to be done, in a few words","type":"string"},` +
		`"description":{"description":"What it takes, so that another could do it","type":"string"},` +
		`"activeForm":{"description":"The subject as something that is going on (Running the tests)","type":"string"},` +
		`"metadata":{"description":"Anything else to remember about it","type":"object","propertyNames":{"type":"string"},"additionalProperties":{}}},` +
		`"required":["subject","description"],"additionalProperties":false}`),
		Description: `Adds a task to the list of what is to be done, which the person sees too.

Use the list for work of three steps or more, or when you are given several things at once; not for a single plain step. A new task is pending. Look at TaskList first, so that nothing is on it twice; say what depends on what with TaskUpdate.`}
}

type createInput struct {
	Subject     string         `json:"subject"`
	Description string         `json:"description"`
	ActiveForm  string         `json:"activeForm"`
	Metadata    map[string]any `json:"metadata"`
}

func parseCreate(raw json.RawMessage) (in createInput, err error) {
	if err := json.Unmarshal(raw, &in); err != nil {
		return in, fmt.Errorf("reading the input: %w", err)
	}
	in.Subject = strings.Join(strings.Fields(in.Subject), " ") // it is shown in one line
	if in.Subject == "" {
		return in, errors.New("subject is empty")
	}
	return in, nil
}

func (create) Inspect(raw json.RawMessage) (agent.Effects, error) {
	_, err := parseCreate(raw)
	return agent.Effects{}, err
}

func (t create) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	in, err := parseCreate(c.Input)
	if err != nil {
		return agent.Result{}, err
	}
	it, err := t.l.Create(ctx, Item{Subject: in.Subject, Description: in.Description, ActiveForm: in.ActiveForm, Metadata: in.Metadata})
	if err != nil {
		return agent.Result{}, err
	}
	res := agent.Textual(fmt.Sprintf("Task #%s was added: %s", it.ID, it.Subject))
	res.Detail = map[string]any{"task": map[string]any{"id": it.ID, "subject": it.Subject}}
	return res, nil
}

// get is the tool TaskGet.
type get struct{ l *List }

func (get) Spec() agent.Spec {
	return agent.Spec{Name: "TaskGet", Schema: json.RawMessage(object + `{"taskId":{"description":"The number of the task","type":"string"}},"required":["taskId"],"additionalProperties":false}`),
		Description: "Returns one task of the list with its description and what it depends on."}
}

// parseID reads an input that is an id, with or without a # before it.
func parseID(raw json.RawMessage) (string, error) {
	var in struct {
		ID string `json:"taskId"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return "", fmt.Errorf("reading the input: %w", err)
	}
	id := strings.TrimPrefix(strings.TrimSpace(in.ID), "#")
	if id == "" {
		return "", errors.New("taskId is missing")
	}
	return id, nil
}

func (get) Inspect(raw json.RawMessage) (agent.Effects, error) {
	_, err := parseID(raw)
	return agent.Effects{Concurrent: true, ReadOnly: true, Idempotent: true}, err
}

func (t get) Run(_ context.Context, c agent.Call) (agent.Result, error) {
	id, err := parseID(c.Input)
	if err != nil {
		return agent.Result{}, err
	}
	items, rerr := t.l.Items()
	i := slices.IndexFunc(items, func(it Item) bool { return it.ID == id })
	if i < 0 {
		return agent.Result{}, errors.Join(fmt.Errorf("task %s: %w", id, errNoTask), rerr)
	}
	it := items[i]
	lines := []string{it.line(items)}
	if it.Description != "" {
		lines = append(lines, it.Description)
	}
	if len(it.Blocks) > 0 {
		lines = append(lines, "Others wait for it: #"+strings.Join(it.Blocks, ", #"))
	}
	res := agent.Textual(strings.Join(lines, "\n"))
	res.Detail = map[string]any{"task": it}
	return res, nil
}

// list is the tool TaskList.
type list struct{ l *List }

func (list) Spec() agent.Spec {
	return agent.Spec{Name: "TaskList", Schema: json.RawMessage(object + `{},"additionalProperties":false}`),
		Description: "Returns all tasks of the list, a line for each: its number, status, subject, owner, and the open tasks it waits for."}
}

func (list) Inspect(json.RawMessage) (agent.Effects, error) {
	return agent.Effects{Concurrent: true, ReadOnly: true, Idempotent: true}, nil
}

func (t list) Run(context.Context, agent.Call) (agent.Result, error) {
	items, err := t.l.Items()
	if err != nil && items == nil {
		return agent.Result{}, err
	}
	lines, shown := []string{}, []map[string]any{}
	for _, it := range items {
		lines = append(lines, it.line(items))
		m := map[string]any{"id": it.ID, "subject": it.Subject, "status": it.Status, "blockedBy": append([]string{}, it.BlockedBy...)}
		if it.Owner != "" {
			m["owner"] = it.Owner
		}
		shown = append(shown, m)
	}
	if len(lines) == 0 {
		lines = append(lines, "The list is empty.")
	}
	if err != nil {
		lines = append(lines, "Not shown: "+err.Error())
	}
	res := agent.Textual(strings.Join(lines, "\n"))
	res.Detail = map[string]any{"tasks": shown}
	return res, nil
}
