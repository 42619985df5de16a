package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// questions is the tool AskUserQuestion.
type questions struct{ o Options }

const (
	maxQuestions = 4
	minOptions   = 2
	maxOptions   = 4
)

func (q questions) Spec() agent.Spec {
	preview := ""
	if q.o.Preview != "" {
		preview = `,"preview":{"description":"What the choice would look like, as ` + q.o.Preview + `","type":"string"}`
	}
	return agent.Spec{Name: "AskUserQuestion", Schema: json.RawMessage(object + `{` +
		`"questions":{"description":"One to four questions, which do not depend on each other","type":"array","minItems":1,"maxItems":4,"items":{"type":"object","properties":{` +
		`"question":{"description":"The whole question","type":"string"},` +
		`"header":{"description":"It in a word or two, at most 12 characters","type":"string"},` +
		`"options":{"description":"Two to four answers to choose from; free text is always offered besides","type":"array","minItems":2,"maxItems":4,"items":{"type":"object","properties":{` +
		`"label":{"description":"The answer in a few words","type":"string"},"description":{"description":"What follows from it","type":"string"}` + preview + `},` +
		`"required":["label","description"],"additionalProperties":false}},` +
		`"multiSelect":{"description":"More than one may be chosen","default":false,"type":"boolean"}},"required":["question","header","options"],"additionalProperties":false}},` +
		`"answers":{"description":"Set by the person","type":"object","additionalProperties":{}},` +
		`"annotations":{"description":"Set by the person","type":"object","additionalProperties":{}},` +
		`"metadata":{"type":"object","additionalProperties":{}}},"required":["questions"],"additionalProperties":false}`),
		Description: `Asks the person to choose between courses of action while you work.

Ask only what you cannot find out yourself and what changes what you do next; otherwise decide, and say what you assumed. If you recommend an answer, put it first and end its label with "(Recommended)". Not for the approval of a plan: ExitPlanMode asks for that.`}
}

type option struct {
	Label       string `json:"label"`
	Description string `json:"description"`
	Preview     string `json:"preview,omitempty"`
}

type question struct {
	Question    string   `json:"question"`
	Header      string   `json:"header"`
	Options     []option `json:"options"`
	MultiSelect bool     `json:"multiSelect"`
}

type questionsInput struct {
	Questions   []question            `json:"questions"`
	Answers     map[string]answer     `json:"answers"`
	Annotations map[string]annotation `json:"annotations"`
}

// An annotation is what the person said besides an answer.
type annotation struct {
	Preview string `json:"preview,omitempty"`
	Notes   string `json:"notes,omitempty"`
}

// An answer is a text. Hosts send several choices joined, or as an array.
type answer string

func (a *answer) UnmarshalJSON(data []byte) error {
	var many []string
	if json.Unmarshal(data, &many) == nil {
		*a = answer(strings.Join(many, ", "))
		return nil
	}
	return json.Unmarshal(data, (*string)(a))
}

func parseQuestions(raw json.RawMessage) (in questionsInput, err error) {
	if err := json.Unmarshal(raw, &in); err != nil {
		return in, fmt.Errorf("reading the input: %w", err)
	}
	if n := len(in.Questions); n < 1 || n > maxQuestions {
		return in, fmt.Errorf("there are %d questions; one to %d can be asked", n, maxQuestions)
	}
	asked := map[string]bool{}
	for i, q := range in.Questions {
		if strings.TrimSpace(q.Question) == "" {
			return in, fmt.Errorf("questions[%d] has no text", i)
		}
		if asked[q.Question] {
			return in, fmt.Errorf("questions[%d] is asked twice", i)
		}
		asked[q.Question] = true
		if n := len(q.Options); n < minOptions || n > maxOptions {
			return in, fmt.Errorf("questions[%d] has %d options; %d to %d can be chosen from", i, n, minOptions, maxOptions)
		}
		labels := map[string]bool{}
		for _, o := range q.Options {
			if labels[o.Label] || strings.TrimSpace(o.Label) == "" {
				return in, fmt.Errorf("questions[%d] has two options labelled %q, or one without a label", i, o.Label)
			}
			labels[o.Label] = true
		}
	}
	return in, nil
}

// Inspect says that a person must answer. Nothing else is touched.
func (questions) Inspect(raw json.RawMessage) (agent.Effects, error) {
	_, err := parseQuestions(raw)
	return agent.Effects{Interactive: true, ReadOnly: true, Idempotent: true}, err
}

func (q questions) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	in, err := parseQuestions(c.Input)
	if err != nil {
		return agent.Result{}, err
	}
	if len(in.Answers) == 0 && q.o.Ask != nil {
		a, err := q.o.Ask(ctx, agent.Question{Kind: agent.AskDialog, Name: "AskUserQuestion", Call: c, Payload: c.Input, Agent: c.Agent})
		switch {
		case errors.Is(err, agent.ErrNoOne):
		case err != nil:
			return agent.Result{}, err
		case a.Err != "" || a.Decision.Verdict == agent.Deny:
			return agent.Failed("The person did not want to answer. Go on without the answers, or ask in another way what they want."), nil
		default:
			var got questionsInput
			if err := json.Unmarshal(a.Payload, &got); err != nil && len(a.Payload) > 0 {
				return agent.Result{}, fmt.Errorf("reading the answers: %w", err)
			}
			in.Answers, in.Annotations = got.Answers, got.Annotations
		}
	}
	if len(in.Answers) == 0 {
		return agent.Failed("There is nobody who can answer. Decide yourself, and say what you assumed."), nil
	}
	var s strings.Builder
	s.WriteString("The person answered:")
	for _, q := range in.Questions {
		a, ok := in.Answers[q.Question]
		if !ok {
			a = "(no answer)"
		}
		fmt.Fprintf(&s, "\n- %s\n  %s", q.Question, a)
		if n := in.Annotations[q.Question].Notes; n != "" {
			fmt.Fprintf(&s, "\n  (note: %s)", n)
		}
	}
	res := agent.Textual(s.String())
	d := map[string]any{"questions": in.Questions, "answers": in.Answers}
	if len(in.Annotations) > 0 {
		d["annotations"] = in.Annotations
	}
	res.Detail = d
	return res, nil
}
