package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// update is the tool TaskUpdate.
type update struct{ l *List }

// deleted is the status that removes a task.
const deleted = "deleted"

func (update) Spec() agent.Spec {
	return agent.Spec{Name: "TaskUpdate", Schema: json.RawMessage(object + `{` +
		`"taskId":{"description":"The number of the task","type":"string"},` +
		`"subject":{"type":"string"},"description":{"type":"string"},"activeForm":{"type":"string"},` +
		`"status":{"description":"deleted takes it off the list","anyOf":[{"type":"string","enum":["pending","in_progress","completed"]},{"type":"string","const":"deleted"}]},` +
		`"addBlocks":{"description":"Tasks that wait for this one","type":"array","items":{"type":"string"}},` +
		`"addBlockedBy":{"description":"Tasks that this one waits for","type":"array","items":{"type":"string"}},` +
		`"owner":{"description":"Who does it","type":"string"},` +
		`"metadata":{"description":"Merged with what is there; null removes a key","type":"object","propertyNames":{"type":"string"},"additionalProperties":{}}},` +
		`"required":["taskId"],"additionalProperties":false}`),
		Description: `Changes one task of the list. Set status to in_progress before you begin with it and to completed once it is really done: not while tests fail, parts are missing or questions are open. Only the fields you give are changed.`}
}

type updateInput struct {
	ID           string         `json:"taskId"`
	Subject      *string        `json:"subject"`
	Description  *string        `json:"description"`
	ActiveForm   *string        `json:"activeForm"`
	Status       *string        `json:"status"`
	AddBlocks    []string       `json:"addBlocks"`
	AddBlockedBy []string       `json:"addBlockedBy"`
	Owner        *string        `json:"owner"`
	Metadata     map[string]any `json:"metadata"`
}

func parseUpdate(raw json.RawMessage) (in updateInput, err error) {
	if err := json.Unmarshal(raw, &in); err != nil {
		return in, fmt.Errorf("reading the input: %w", err)
	}
	if in.ID, err = parseID(raw); err != nil {
		return in, err
	}
	if in.Status != nil && !known(*in.Status) && *in.Status != deleted {
		return in, fmt.Errorf("status is %q; it may be pending, in_progress, completed or deleted", *in.Status)
	}
	if in.Subject != nil {
		s := strings.Join(strings.Fields(*in.Subject), " ")
		if in.Subject = &s; s == "" {
			return in, errors.New("subject is empty")
		}
	}
	for _, ids := range [][]string{in.AddBlocks, in.AddBlockedBy} {
		for i := range ids {
			ids[i] = strings.TrimPrefix(strings.TrimSpace(ids[i]), "#")
		}
	}
	return in, nil
}

func (update) Inspect(raw json.RawMessage) (agent.Effects, error) {
	_, err := parseUpdate(raw)
	return agent.Effects{Idempotent: true}, err
}

func (t update) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	in, err := parseUpdate(c.Input)
	if err != nil {
		return agent.Result{}, err
	}
	var changed []string
	var from, to string
	err = t.l.update(ctx, in.ID, func(it *Item, all map[string]*Item) (bool, error) {
		from = it.Status
		if in.Status != nil && *in.Status == deleted {
			to, changed = deleted, []string{deleted}
			return true, nil
		}
		changed, err = in.apply(it, all)
		to = it.Status
		return false, err
	})
	if err != nil {
		return agent.Result{}, err
	}
	text := fmt.Sprintf("Task #%s was updated: %s.", in.ID, strings.Join(changed, ", "))
	switch {
	case to == deleted:
		text = fmt.Sprintf("Task #%s was deleted.", in.ID)
	case len(changed) == 0:
		text = fmt.Sprintf("Task #%s is as it was.", in.ID)
	case from != to:
		text += fmt.Sprintf(" It is %s now.", to)
	}
	res := agent.Textual(text)
	d := map[string]any{"success": true, "taskId": in.ID, "updatedFields": append([]string{}, changed...)}
	if from != to {
		d["statusChange"] = map[string]any{"from": from, "to": to}
	}
	res.Detail = d
	return res, nil
}

// apply changes it, and the tasks that depend on it, and returns the names of
// the fields that are different now.
func (in updateInput) apply(it *Item, all map[string]*Item) (changed []string, err error) {
	set := func(name string, field *string, to *string) {
		if to != nil && *field != *to {
			*field = *to
			changed = append(changed, name)
		}
	}
	set("subject", &it.Subject, in.Subject)
	set("description", &it.Description, in.Description)
	set("activeForm", &it.ActiveForm, in.ActiveForm)
	set("status", &it.Status, in.Status)
	set("owner", &it.Owner, in.Owner)
	if len(in.Metadata) > 0 {
		merged := maps.Clone(it.Metadata)
		if merged == nil {
			merged = map[string]any{}
		}
		for k, v := range in.Metadata {
			if v == nil {
				delete(merged, k)
			} else {
				merged[k] = v
			}
		}
		it.Metadata = merged
		changed = append(changed, "metadata")
	}
	before := len(it.Blocks) + len(it.BlockedBy)
	for _, id := range in.AddBlocks {
		if err := depend(all, it.ID, id); err != nil {
			return nil, err
		}
	}
	if len(it.Blocks)+len(it.BlockedBy) > before {
		changed = append(changed, "blocks")
		before = len(it.Blocks) + len(it.BlockedBy)
	}
	for _, id := range in.AddBlockedBy {
		if err := depend(all, id, it.ID); err != nil {
			return nil, err
		}
	}
	if len(it.Blocks)+len(it.BlockedBy) > before {
		changed = append(changed, "blockedBy")
	}
	return changed, nil
}

// depend makes the task later wait for the task first.
func depend(all map[string]*Item, first, later string) error {
	a, b := all[first], all[later]
	if a == nil {
		return fmt.Errorf("task %s: %w", first, errNoTask)
	}
	if b == nil {
		return fmt.Errorf("task %s: %w", later, errNoTask)
	}
	if waits(all, first, later, map[string]bool{}) {
		return fmt.Errorf("task %s already waits for task %s: they cannot wait for each other", first, later)
	}
	if !slices.Contains(a.Blocks, later) {
		a.Blocks = append(a.Blocks, later)
	}
	if !slices.Contains(b.BlockedBy, first) {
		b.BlockedBy = append(b.BlockedBy, first)
	}
	return nil
}

// waits reports whether a is b, or waits for it through others.
func waits(all map[string]*Item, a, b string, seen map[string]bool) bool {
	if a == b {
		return true
	}
	if seen[a] || all[a] == nil {
		return false
	}
	seen[a] = true
	return slices.ContainsFunc(all[a].BlockedBy, func(id string) bool { return waits(all, id, b, seen) })
}
