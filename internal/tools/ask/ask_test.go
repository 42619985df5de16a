package ask

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

func text(r agent.Result) string { return agent.TextOf(r.Blocks) }

func find(t *testing.T, o Options, name string) agent.Tool {
	t.Helper()
	for _, tool := range New(o) {
		if tool.Spec().Name == name {
			return tool
		}
	}
	t.Fatalf("there is no %s", name)
	return nil
}

func call(t *testing.T, tool agent.Tool, in string) agent.Result {
	t.Helper()
	e, err := tool.Inspect(json.RawMessage(in))
	if err != nil {
		return agent.Failed(err.Error())
	}
	res, err := tool.Run(t.Context(), agent.Call{ID: "toolu_1", Input: json.RawMessage(in), Effects: e})
	if err != nil {
		return agent.Failed(err.Error())
	}
	return res
}

func detail(t *testing.T, r agent.Result) string {
	t.Helper()
	data, err := json.Marshal(r.Detail)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

const twoQuestions = `"questions":[` +
	`{"question":"Which tea?","header":"Tea","options":[{"label":"Green","description":"g"},{"label":"Black","description":"b"}],"multiSelect":false},` +
	`{"question":"What with it?","header":"With","options":[{"label":"Milk","description":"m"},{"label":"Sugar","description":"s"}],"multiSelect":true}]`

func TestQuestions(t *testing.T) {
	t.Parallel()
	tool := find(t, Options{Questions: true}, "AskUserQuestion")
	e, err := tool.Inspect(json.RawMessage(`{` + twoQuestions + `}`))
	if diff := cmp.Diff(agent.Effects{Interactive: true, ReadOnly: true, Idempotent: true}, e); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	// The answers come with the permission.
	r := call(t, tool, `{`+twoQuestions+`,"answers":{"Which tea?":"Green","What with it?":["Milk","Sugar"]},"annotations":{"Which tea?":{"notes":"hot"}}}`)
	if got, want := text(r), "The person answered:\n- Which tea?\n  Green\n  (note: hot)\n- What with it?\n  Milk, Sugar"; got != want || r.IsError {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := detail(t, r), `{"annotations":{"Which tea?":{"notes":"hot"}},"answers":{"What with it?":"Milk, Sugar","Which tea?":"Green"},`+twoQuestions+`}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if r := call(t, tool, `{`+twoQuestions+`}`); !r.IsError || text(r) != "There is nobody who can answer. Decide yourself, and say what you assumed." {
		t.Errorf("got %q", text(r))
	}
	for _, in := range []string{
		`{}`, `{"questions":[]}`, `{"questions":"x"}`,
		`{"questions":[{"question":"a","header":"h","options":[{"label":"x","description":""}]}]}`,
		`{"questions":[{"question":" ","header":"h","options":[{"label":"x","description":""},{"label":"y","description":""}]}]}`,
		`{"questions":[{"question":"a","header":"h","options":[{"label":"x","description":""},{"label":"x","description":""}]}]}`,
		strings.Replace(`{`+twoQuestions+`}`, "What with it?", "Which tea?", 1),
		`{` + twoQuestions + `,"answers":{"Which tea?":1}}`,
	} {
		if _, err := tool.Inspect(json.RawMessage(in)); err == nil {
			t.Errorf("%s is accepted", in)
		}
	}
}

func TestQuestionsAreAskedInADialog(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, tt := range []struct {
		answer  agent.Answer
		err     error
		want    string
		isError bool
	}{
		{agent.Answer{Payload: json.RawMessage(`{"answers":{"Which tea?":"Black"}}`)}, nil, "The person answered:\n- Which tea?\n  Black\n- What with it?\n  (no answer)", false},
		{agent.Answer{Err: "dismissed"}, nil, "The person did not want to answer. Go on without the answers, or ask in another way what they want.", true},
		{agent.Answer{Decision: agent.Decision{Verdict: agent.Deny}}, nil, "The person did not want to answer. Go on without the answers, or ask in another way what they want.", true},
		{agent.Answer{}, nil, "There is nobody who can answer. Decide yourself, and say what you assumed.", true},
		{agent.Answer{}, agent.ErrNoOne, "There is nobody who can answer. Decide yourself, and say what you assumed.", true},
		{agent.Answer{}, broken, "broken", true},
		{agent.Answer{Payload: json.RawMessage(`[`)}, nil, "reading the answers: unexpected end of JSON input", true},
	} {
		var asked agent.Question
		tool := find(t, Options{Questions: true, Ask: func(_ context.Context, q agent.Question) (agent.Answer, error) {
			asked = q
			return tt.answer, tt.err
		}}, "AskUserQuestion")
		r := call(t, tool, `{`+twoQuestions+`}`)
		if text(r) != tt.want || r.IsError != tt.isError {
			t.Errorf("%+v, %v: got %q", tt.answer, tt.err, text(r))
		}
		if asked.Kind != agent.AskDialog || asked.Name != "AskUserQuestion" || string(asked.Payload) != `{`+twoQuestions+`}` {
			t.Errorf("asked %+v", asked)
		}
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		mode, before, want agent.Mode
	}{
		{agent.ModePlan, agent.ModeAcceptEdits, agent.ModeAcceptEdits},
		{agent.ModePlan, "", agent.ModeDefault},
		{agent.ModePlan, "nonsense", agent.ModeDefault},
		{agent.ModePlan, agent.ModePlan, agent.ModeDefault},
		{agent.ModeAcceptEdits, agent.ModeDefault, agent.ModeAcceptEdits}, // chosen with the approval
	} {
		mode, kept := tt.mode, ""
		o := Options{Plan: true,
			Mode:     func() agent.Mode { return mode },
			SetMode:  func(_ context.Context, m agent.Mode) error { mode = m; return nil },
			Before:   func() agent.Mode { return tt.before },
			Approved: func(plan string) (string, error) { kept = plan; return "/plans/p.md", nil },
		}
		r := call(t, find(t, o, "ExitPlanMode"), `{"plan":"1. write the file","allowedPrompts":[]}`)
		want := "The person approved the plan, and plan mode is over. Carry it out now.\nIt is kept in /plans/p.md.\n\nThe approved plan:\n1. write the file"
		if text(r) != want || r.IsError || mode != tt.want || kept != "1. write the file" {
			t.Errorf("%+v: got %q, mode %s, kept %q", tt, text(r), mode, kept)
		}
		if got, want := detail(t, r), `{"filePath":"/plans/p.md","isAgent":false,"plan":"1. write the file"}`; got != want {
			t.Errorf("got %s", got)
		}
	}
	o := Options{Plan: true, Mode: func() agent.Mode { return agent.ModePlan },
		SetMode:  func(context.Context, agent.Mode) error { return errors.New("refused") },
		Approved: func(string) (string, error) { return "", errors.New("disk full") }}
	exit := find(t, o, "ExitPlanMode")
	if r := call(t, exit, `{"plan":"p"}`); text(r) != "leaving plan mode: refused" || !r.IsError {
		t.Errorf("got %q", text(r))
	}
	if r := call(t, exit, `{"plan":" "}`); text(r) != "plan is empty: write the plan into it" {
		t.Errorf("got %q", text(r))
	}
	if e, err := exit.Inspect(json.RawMessage(`{"plan":"p"}`)); !e.Interactive || err != nil {
		t.Errorf("got %+v, %v", e, err)
	}
	o.SetMode = func(context.Context, agent.Mode) error { return nil }
	if r := call(t, find(t, o, "ExitPlanMode"), `{"plan":"p"}`); r.IsError || !strings.Contains(text(r), "could not be saved: disk full") {
		t.Errorf("got %q", text(r))
	}
}

func TestEnterPlan(t *testing.T) {
	t.Parallel()
	mode := agent.ModeDefault
	tool := find(t, Options{Plan: true, Mode: func() agent.Mode { return mode },
		SetMode: func(_ context.Context, m agent.Mode) error { mode = m; return nil }}, "EnterPlanMode")
	if r := call(t, tool, `{}`); r.IsError || mode != agent.ModePlan || !strings.HasPrefix(text(r), "Plan mode is on.") {
		t.Errorf("got %q, mode %s", text(r), mode)
	}
	if r := call(t, tool, `{}`); text(r) != "This is plan mode already." {
		t.Errorf("got %q", text(r))
	}
	mode = agent.ModeDefault
	if r, _ := tool.Run(t.Context(), agent.Call{Agent: "a"}); !r.IsError || mode != agent.ModeDefault {
		t.Errorf("a sub-agent got %q", text(r))
	}
}

func TestStructured(t *testing.T) {
	t.Parallel()
	const city = `{"type":"object","properties":{"city":{"type":"string"},"people":{"type":"integer"}},"required":["city","people"],"additionalProperties":false}`
	tool := find(t, Options{Schema: json.RawMessage(city)}, "StructuredOutput")
	if s := tool.Spec(); string(s.Schema) != city || !s.Loose {
		t.Errorf("the model gets %s", s.Schema)
	}
	const good = `{"city":"Bern","people":134000}`
	if r := call(t, tool, good); r.IsError || string(r.Structured) != good || r.End != "completed" {
		t.Errorf("got %+v", r)
	}
	for in, want := range map[string]string{
		`{"city":"Bern"}`:       `Output does not match required schema: root: required: missing properties: ["people"]`,
		`{"city":1,"people":2}`: `Output does not match required schema: /city: type: 1 has type "integer", want "string"`,
		`{"city":`:              "the input is no JSON",
	} {
		if r := call(t, tool, in); text(r) != want || !r.IsError || r.Structured != nil || r.End != "" {
			t.Errorf("%s: got %q, want %q", in, text(r), want)
		}
	}
}

func TestCheckSchema(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"type":"object"}`:            "",
		`{"type":"array"}`:             "the schema does not describe an object",
		`true`:                         "the schema is no object",
		`{`:                            "the schema is no object",
		`{"type":"object","$ref":"#"}`: "the schema refers to itself without end",
	} {
		err := CheckSchema(json.RawMessage(schema))
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", schema, err, want)
		}
	}
	if r := call(t, find(t, Options{Schema: json.RawMessage(`{"type":"array"}`)}, "StructuredOutput"), `{}`); !r.IsError {
		t.Errorf("got %q", text(r))
	}
}

func TestSchemas(t *testing.T) {
	t.Parallel()
	var names []string
	for _, tool := range New(Options{Questions: true, Preview: "markdown", Plan: true}) {
		names = append(names, tool.Spec().Name)
		if err := CheckSchema(tool.Spec().Schema); err != nil {
			t.Errorf("%s: %v", tool.Spec().Name, err)
		}
	}
	if diff := cmp.Diff([]string{"AskUserQuestion", "EnterPlanMode", "ExitPlanMode"}, names); diff != "" {
		t.Error(diff)
	}
}

func FuzzQuestions(f *testing.F) {
	f.Add(`{` + twoQuestions + `,"answers":{"Which tea?":["a"]},"annotations":{"x":{}}}`)
	f.Add(`{"questions":[{"options":null}],"answers":null}`)
	tool := New(Options{Questions: true})[0]
	f.Fuzz(func(t *testing.T, in string) {
		if _, err := tool.Inspect(json.RawMessage(in)); err == nil {
			if _, err := tool.Run(t.Context(), agent.Call{Input: json.RawMessage(in)}); err != nil {
				t.Errorf("%s: %v", in, err)
			}
		}
	})
}
