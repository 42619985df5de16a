// Package ask holds the tools with which the model turns to the person or to
// the host: AskUserQuestion, EnterPlanMode, ExitPlanMode and StructuredOutput.
//
// It owns their inputs and what the model is told. It does not know how a
// question is shown nor where the permission mode is kept; functions in
// Options do.
package ask

import (
	"context"
	"encoding/json"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// Options are what the tools stand on. Functions may be called concurrently.
type Options struct {
	// Questions offers AskUserQuestion. Preview is the format its previews
	// are shown in: "markdown", "html", or "" for none.
	Questions bool
	Preview   string
	// Ask puts a question of kind AskDialog, named AskUserQuestion, to the
	// front ends when the permission prompt has not brought the answers. Its
	// payload is the input of the call; that of the answer is
	// {"answers":{question:answer}}. May be nil.
	Ask agent.Asker
	// Plan offers EnterPlanMode and ExitPlanMode.
	Plan bool
	// Mode returns the permission mode and SetMode changes it. Required with Plan.
	Mode    func() agent.Mode
	SetMode func(ctx context.Context, m agent.Mode) error
	// Before returns the mode that plan mode replaced. Nil, or a mode that is
	// not known: the default mode follows an approved plan.
	Before func() agent.Mode
	// Approved keeps an approved plan, so that it survives compaction, and
	// returns the file that holds it, or "". May be nil.
	Approved func(plan string) (file string, err error)
	// Schema is the JSON Schema of StructuredOutput, sent as it is. Nil:
	// there is no such tool. CheckSchema tells whether it is usable.
	Schema json.RawMessage
}

// New returns the tools that o asks for.
func New(o Options) []agent.Tool {
	var tools []agent.Tool
	if o.Questions {
		tools = append(tools, questions{o})
	}
	if o.Plan {
		tools = append(tools, enterPlan{o}, exitPlan{o})
	}
	if o.Schema != nil {
		tools = append(tools, newStructured(o.Schema))
	}
	return tools
}

const object = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":`
