package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/schema"
)

// structured is the tool StructuredOutput.
type structured struct {
	raw     json.RawMessage
	compile func() (*schema.Schema, error) // once, at the first call
}

func newStructured(raw json.RawMessage) *structured {
	return &structured{raw: raw, compile: sync.OnceValues(func() (*schema.Schema, error) { return compile(raw) })}
}

// Spec sends the schema as it is. All checking is ours: the words in which a
// violation is told are part of the protocol.
func (s *structured) Spec() agent.Spec {
	return agent.Spec{Name: "StructuredOutput", Schema: s.raw, Loose: true,
		Description: "Hands in the final answer in the form that was asked for. Call it exactly once, when everything else is done; its input is the answer."}
}

func (s *structured) Inspect(raw json.RawMessage) (agent.Effects, error) {
	if !json.Valid(raw) {
		return agent.Effects{}, errors.New("the input is no JSON")
	}
	return agent.Effects{ReadOnly: true, Idempotent: true}, nil
}

func (s *structured) Run(_ context.Context, c agent.Call) (agent.Result, error) {
	sch, err := s.compile()
	if err != nil {
		return agent.Result{}, err
	}
	if err := sch.Check(c.Input); err != nil {
		return agent.Failed("Output does not match required schema: " + err.Error()), nil
	}
	res := agent.Textual("The answer was taken.")
	res.Structured = c.Input
	res.End = "completed"
	res.Detail = c.Input
	return res, nil
}

// CheckSchema reports why raw cannot be used for StructuredOutput.
func CheckSchema(raw json.RawMessage) error {
	_, err := compile(raw)
	return err
}

// compile reads a schema for the input of a tool, which is an object.
func compile(raw json.RawMessage) (*schema.Schema, error) {
	var top struct {
		Type any `json:"type"`
	}
	if err := json.Unmarshal(raw, &top); err != nil {
		return nil, fmt.Errorf("the schema is no object: %w", err)
	}
	if top.Type != "object" {
		return nil, errors.New(`the schema does not describe an object: it must have "type":"object" at its top`)
	}
	return schema.Compile(raw)
}
