package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// enterPlan is the tool EnterPlanMode.
type enterPlan struct{ o Options }

func (enterPlan) Spec() agent.Spec {
	return agent.Spec{Name: "EnterPlanMode", Schema: json.RawMessage(object + `{},"additionalProperties":false}`),
		Description: `Switches to plan mode, in which you look and think but change nothing until the person has approved a plan.

Use it before work where a wrong start would be costly: several sensible designs, many files, unclear requirements. Not for what is small or fully told.`}
}

// Inspect asks for nothing: the mode allows less than the one before.
func (enterPlan) Inspect(json.RawMessage) (agent.Effects, error) {
	return agent.Effects{Idempotent: true}, nil
}

func (e enterPlan) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	if c.Agent != "" {
		return agent.Failed("Only the main conversation can enter plan mode."), nil
	}
	if e.o.Mode() == agent.ModePlan {
		return agent.Textual("This is plan mode already."), nil
	}
	if err := e.o.SetMode(ctx, agent.ModePlan); err != nil {
		return agent.Result{}, fmt.Errorf("entering plan mode: %w", err)
	}
	text := "Plan mode is on. Read and search as much as you need, change nothing, and settle open questions with the person. When the plan is complete, hand it in with ExitPlanMode."
	res := agent.Textual(text)
	res.Detail = map[string]any{"message": text}
	return res, nil
}

// exitPlan is the tool ExitPlanMode.
type exitPlan struct{ o Options }

func (exitPlan) Spec() agent.Spec {
	return agent.Spec{Name: "ExitPlanMode", Schema: json.RawMessage(object +
		`{"plan":{"description":"The plan, as Markdown: what is to change, where, in which order, and how it will be checked","type":"string"}},"required":["plan"],"additionalProperties":{}}`),
		Description: `Hands your plan to the person for approval and, once it is approved, leaves plan mode. Only in plan mode, and only when the plan is complete; what you only found out is told in words. Do not ask in other ways whether the plan is fine: this call asks.`}
}

func parsePlan(raw json.RawMessage) (string, error) {
	var in struct {
		Plan string `json:"plan"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return "", fmt.Errorf("reading the input: %w", err)
	}
	if strings.TrimSpace(in.Plan) == "" {
		return "", errors.New("plan is empty: write the plan into it")
	}
	return in.Plan, nil
}

// Inspect says that a person must approve the plan, whatever the rules allow.
func (exitPlan) Inspect(raw json.RawMessage) (agent.Effects, error) {
	_, err := parsePlan(raw)
	return agent.Effects{Interactive: true}, err
}

// Run is reached once the plan is approved. The person may have chosen the
// mode that follows with the approval; then it is in force already.
func (e exitPlan) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	plan, err := parsePlan(c.Input)
	if err != nil {
		return agent.Result{}, err
	}
	if e.o.Mode() == agent.ModePlan {
		next := agent.ModeDefault
		if e.o.Before != nil {
			if m, ok := agent.ParseMode(string(e.o.Before())); ok && m != agent.ModePlan {
				next = m
			}
		}
		if err := e.o.SetMode(ctx, next); err != nil {
			return agent.Result{}, fmt.Errorf("leaving plan mode: %w", err)
		}
	}
	text := "The person approved the plan, and plan mode is over. Carry it out now."
	d := map[string]any{"plan": plan, "isAgent": c.Agent != ""}
	if e.o.Approved != nil {
		switch file, err := e.o.Approved(plan); {
		case err != nil: // the plan stands in the conversation all the same
			text += "\n(The plan could not be saved: " + err.Error() + ")"
		case file != "":
			text += "\nIt is kept in " + file + "."
			d["filePath"] = file
		}
	}
	res := agent.Textual(text + "\n\nThe approved plan:\n" + plan)
	res.Detail = d
	return res, nil
}
