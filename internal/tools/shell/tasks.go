package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// stop is the tool TaskStop.
type stop struct{ jobs Jobs }

const stopSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{` +
	`"task_id":{"description":"The id of the task","type":"string"},` +
	`"shell_id":{"description":"Old name of task_id","type":"string"}},"additionalProperties":false}`

func (stop) Spec() agent.Spec {
	return agent.Spec{
		Name:        "TaskStop",
		Description: "Ends work that runs in the background, a command or an agent, and everything it started. Takes the id that was given when it began.",
		Schema:      json.RawMessage(stopSchema),
	}
}

type stopInput struct {
	Task  string `json:"task_id"`
	Shell string `json:"shell_id"`
}

func parseStop(raw json.RawMessage) (string, error) {
	var in stopInput
	if err := json.Unmarshal(raw, &in); err != nil {
		return "", fmt.Errorf("reading the input: %w", err)
	}
	if in.Task == "" {
		in.Task = in.Shell
	}
	if in.Task == "" {
		return "", errors.New("task_id is missing")
	}
	return in.Task, nil
}

func (stop) Inspect(raw json.RawMessage) (agent.Effects, error) {
	_, err := parseStop(raw)
	return agent.Effects{Concurrent: true, Idempotent: true}, err
}

// stopLimit is how long ending a task may take: asking it, then forcing it.
const stopLimit = 15 * time.Second

func (s stop) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	id, err := parseStop(c.Input)
	if err != nil {
		return agent.Result{}, err
	}
	t, ok := s.jobs.Find(id)
	if !ok {
		return agent.Failed(fmt.Sprintf("There is no task with the id %q.", id)), nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	if err := s.jobs.Stop(ctx, id); err != nil {
		return agent.Result{}, err
	}
	text := fmt.Sprintf("Stopped task %s (%s).", id, t.Description)
	res := agent.Textual(text)
	res.Detail = map[string]any{"message": text, "task_id": id, "task_type": t.Type, "command": t.Command}
	return res, nil
}

// output is the tool TaskOutput.
type output struct{ b *bash }

const outputSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{` +
	`"task_id":{"description":"The id of the task","type":"string"},` +
	`"block":{"description":"Wait for the end of the task","default":true,"type":"boolean"},` +
	`"timeout":{"description":"Milliseconds to wait at most","default":30000,"minimum":0,"maximum":600000,"type":"number"}},` +
	`"required":["task_id"],"additionalProperties":false}`

func (output) Spec() agent.Spec {
	return agent.Spec{
		Name:        "TaskOutput",
		Description: "Returns the state and the newest output of work that runs in the background, after waiting for its end unless block is false. Reading the task's output file does the same without waiting.",
		Schema:      json.RawMessage(outputSchema),
	}
}

type outputInput struct {
	Task    string   `json:"task_id"`
	Block   *bool    `json:"block"`
	Timeout *float64 `json:"timeout"`
}

func parseOutput(raw json.RawMessage) (in outputInput, err error) {
	if err := json.Unmarshal(raw, &in); err != nil {
		return in, fmt.Errorf("reading the input: %w", err)
	}
	if in.Task == "" {
		return in, errors.New("task_id is missing")
	}
	if in.Timeout != nil && (*in.Timeout < 0 || *in.Timeout > 600_000) {
		return in, errors.New("timeout is not between 0 and 600000")
	}
	return in, nil
}

func (output) Inspect(raw json.RawMessage) (agent.Effects, error) {
	_, err := parseOutput(raw)
	return agent.Effects{Concurrent: true, ReadOnly: true, Idempotent: true}, err
}

func (o output) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	in, err := parseOutput(c.Input)
	if err != nil {
		return agent.Result{}, err
	}
	jobs := o.b.o.Jobs
	if _, ok := jobs.Find(in.Task); !ok {
		return agent.Failed(fmt.Sprintf("There is no task with the id %q.", in.Task)), nil
	}
	state := "success"
	if done := jobs.Done(in.Task); done != nil {
		state = "not_ready"
		if in.Block == nil || *in.Block {
			limit := 30 * time.Second
			if in.Timeout != nil {
				limit = millis(*in.Timeout)
			}
			timer := time.NewTimer(limit)
			defer timer.Stop()
			select {
			case <-done:
				state = "success"
			case <-timer.C:
				state = "timeout"
			case <-ctx.Done():
				return agent.Result{}, context.Cause(ctx)
			}
		}
	}
	t, ok := jobs.Find(in.Task)
	if !ok {
		return agent.Failed(fmt.Sprintf("Task %q has ended and is not listed any more.", in.Task)), nil
	}
	text := newest(t.Output, o.b.o.MaxTaskText)
	var s strings.Builder
	fmt.Fprintf(&s, "<retrieval_status>%s</retrieval_status>\n<task_id>%s</task_id>\n<task_type>%s</task_type>\n<status>%s</status>\n", state, t.ID, t.Type, t.Status)
	if text != "" {
		fmt.Fprintf(&s, "<output>\n%s\n</output>\n", text)
	}
	if t.Err != "" {
		fmt.Fprintf(&s, "<error>%s</error>\n", t.Err)
	}
	res := agent.Textual(strings.TrimSuffix(s.String(), "\n"))
	res.Detail = map[string]any{"retrieval_status": state, "task": map[string]any{
		"task_id": t.ID, "task_type": t.Type, "status": t.Status, "description": t.Description, "output": text,
	}}
	return res, nil
}

// newest is the end of the file's text, at most limit characters.
func newest(path string, limit int) string {
	if path == "" {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return "(the output could not be read: " + err.Error() + ")"
	}
	defer func() { _ = f.Close() }()
	fi, err := f.Stat()
	if err != nil || !fi.Mode().IsRegular() {
		return "(the output could not be read)"
	}
	window := int64(limit) * 4
	raw, err := part(f, max(fi.Size()-window, 0), min(fi.Size(), window))
	if err != nil {
		return "(the output could not be read: " + err.Error() + ")"
	}
	text, hidden := clean(raw)
	text = strings.TrimRight(text, "\r\n")
	if end := lastChars(text, limit); len(end) < len(text) || fi.Size() > window {
		text = fmt.Sprintf("[the newest part; all %s are in %s]\n%s", bytesText(fi.Size()), path, end)
	}
	return text + hiddenNote(hidden)
}
