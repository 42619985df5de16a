package lookup

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

const description = `Loads the definitions of tools that are known by name only, so that they can be called.

query takes one of two forms:
- "select:NAME" or "select:NAME,NAME" loads exactly these tools.
- Words search names and descriptions, and the best matches are loaded; a word with + in front must occur.

A tool server that is still connecting is waited for.`

const schema = `{"type":"object","properties":{` +
	`"query":{"type":"string","description":"select:NAME,NAME or words to search for"},` +
	`"max_results":{"type":"number","description":"How many matches of a search to load","default":5}},` +
	`"required":["query"],"additionalProperties":false}`

// most bounds max_results: a search is no way to load everything.
const most = 20

type searchTool struct{ c *Catalog }

// Tool returns the ToolSearch tool over c. Its results name what was loaded
// (agent.Result.Loaded); whoever builds the requests adds the definitions.
func (c *Catalog) Tool() agent.Tool { return searchTool{c} }

type input struct {
	Query string  `json:"query"`
	Max   float64 `json:"max_results"`
}

func parse(raw json.RawMessage) (input, error) {
	in := input{Max: 5}
	if err := json.Unmarshal(raw, &in); err != nil {
		return in, fmt.Errorf("reading the input: %w", err)
	}
	if strings.TrimSpace(in.Query) == "" {
		return in, fmt.Errorf("the query is empty")
	}
	in.Max = min(max(in.Max, 1), most)
	return in, nil
}

func (t searchTool) Spec() agent.Spec {
	return agent.Spec{Name: Name, Description: description, Schema: json.RawMessage(schema)}
}

func (t searchTool) Inspect(raw json.RawMessage) (agent.Effects, error) {
	_, err := parse(raw)
	return agent.Effects{Concurrent: true, ReadOnly: true, Idempotent: true}, err
}

func (t searchTool) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	in, err := parse(c.Input)
	if err != nil {
		return agent.Result{}, err
	}
	found, missing := t.c.find(in.Query, int(in.Max))
	var news []string
	if t.c.wait != nil && (len(found) == 0 || len(missing) > 0) {
		news = t.c.wait(ctx)
		if err := context.Cause(ctx); err != nil {
			return agent.Result{}, err
		}
		found, missing = t.c.find(in.Query, int(in.Max))
	}
	var r agent.Result
	for _, s := range found {
		r.Blocks = append(r.Blocks, &agent.ToolReference{Name: s.Name})
		r.Loaded = append(r.Loaded, s.Name)
	}
	note := strings.Join(news, "\n")
	if len(missing) > 0 {
		note = strings.TrimSpace(fmt.Sprintf("There is no tool called %s.\n%s", strings.Join(missing, " or "), note))
	}
	if len(found) > 0 {
		r.Array = true
		if note != "" {
			// References stand alone in a result; the note goes behind it.
			r.After = []agent.Block{&agent.Text{Text: "<system-reminder>\n" + note + "\n</system-reminder>", Note: "tools"}}
		}
		return r, nil
	}
	names := t.c.Names()
	text := fmt.Sprintf("No tool matches %q.", in.Query)
	if note != "" {
		text += "\n" + note
	}
	if len(names) == 0 {
		text += "\nThere are no further tools."
	} else {
		text += "\nThere are: " + strings.Join(names, ", ")
	}
	return agent.Textual(text), nil
}
