package subagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// send is the SendMessage tool: it speaks to a running agent, or continues
// one that has ended.
type send struct{ o Options }

const sendSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"to":{"type":"string","maxLength":300,"description":"Id or name of the agent"},"summary":{"type":"string","maxLength":200},"message":{"type":"string","default":"","description":"What it should know or do"},"notify_when_idle":{"type":"boolean"}},"required":["to"],"additionalProperties":false}`

type sendInput struct {
	To      string `json:"to"`
	Summary string `json:"summary"`
	Message string `json:"message"`
}

func (t *send) Spec() agent.Spec {
	return agent.Spec{
		Name: "SendMessage", Schema: json.RawMessage(sendSchema), Deferred: true,
		Description: "Speak to a sub-agent by its id. A running one gets the message with its next tool results. One that has ended goes on with all it knew, in the background, and reports again.",
	}
}

func (t *send) Inspect(raw json.RawMessage) (agent.Effects, error) {
	var in sendInput
	if err := json.Unmarshal(raw, &in); err != nil {
		return agent.Effects{}, err
	}
	if strings.TrimSpace(in.To) == "" || strings.ContainsAny(in.To, "\n\r") {
		return agent.Effects{}, errors.New("to must be the id of an agent, on one line")
	}
	return agent.Effects{Concurrent: true, ReadOnly: true}, nil
}

func (t *send) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	var in sendInput
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return agent.Result{}, err
	}
	if t.o.Tell != nil && t.o.Tell(in.To, in.Message) {
		return agent.Textual(fmt.Sprintf("The agent %s gets the message with its next tool results.", in.To)), nil
	}
	if t.o.Known == nil {
		return agent.Result{}, fmt.Errorf("no agent %q is known", in.To)
	}
	name, stopped, ok := t.o.Known(in.To)
	switch {
	case !ok:
		return agent.Result{}, fmt.Errorf("no agent %q is known in this session", in.To)
	case stopped:
		return agent.Result{}, fmt.Errorf("the agent %s was stopped by the user and does not go on; send a new one if it is still needed", in.To)
	}
	d, err := (&delegate{t.o}).find(name)
	if err != nil {
		return agent.Result{}, err
	}
	if d.OneShot {
		return agent.Result{}, fmt.Errorf("agents of type %s cannot be continued; send a new one", name)
	}
	return t.o.launch(ctx, Launch{
		ID: in.To, Definition: d, Description: in.Summary, Prompt: in.Message, Call: c.ID, Parent: c.Agent,
		Background: t.o.Background, Resume: true,
	})
}
