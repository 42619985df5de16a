package lookup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

func spec(name, description string) agent.Spec {
	return agent.Spec{Name: name, Description: description, Schema: json.RawMessage(`{"type":"object"}`), Deferred: true}
}

func catalog(wait func(context.Context) []string) *Catalog {
	return New(wait,
		spec("WebFetch", "Reads a page."),
		spec("mcp__hub__create_issue", "Opens an issue in a repository."),
		spec("mcp__hub__list_issues", "Lists the issues of a repository."),
		spec("mcp__hub__readFile", "Reads a file of a repository."),
		spec("mcp__mail__send", "Sends a letter. Never about an issue."),
		spec("NotebookEdit", "Changes a cell."))
}

func run(t *testing.T, c *Catalog, in string) agent.Result {
	t.Helper()
	tool := c.Tool()
	if _, err := tool.Inspect(json.RawMessage(in)); err != nil {
		return agent.Failed(err.Error())
	}
	r, err := tool.Run(t.Context(), agent.Call{Name: Name, Input: json.RawMessage(in)})
	if err != nil {
		return agent.Failed(err.Error())
	}
	return r
}

func loaded(names ...string) agent.Result {
	r := agent.Result{Array: true, Loaded: names}
	for _, n := range names {
		r.Blocks = append(r.Blocks, &agent.ToolReference{Name: n})
	}
	return r
}

func TestSearch(t *testing.T) {
	t.Parallel()
	const there = "\nThere are: NotebookEdit, WebFetch, mcp__hub__create_issue, mcp__hub__list_issues, mcp__hub__readFile, mcp__mail__send"
	missing := loaded("WebFetch")
	missing.After = []agent.Block{&agent.Text{Text: "<system-reminder>\nThere is no tool called Nope.\n</system-reminder>", Note: "tools"}}
	for in, want := range map[string]agent.Result{
		`{"query":"select:WebFetch"}`:                              loaded("WebFetch"),
		`{"query":"select: mcp__mail__send , webfetch,WebFetch,"}`: loaded("mcp__mail__send", "WebFetch"),
		`{"query":"select:WebFetch,Nope"}`:                         missing,
		`{"query":"select:Nope"}`:                                  agent.Textual("No tool matches \"select:Nope\".\nThere is no tool called Nope." + there),
		`{"query":"issue"}`:                                        loaded("mcp__hub__create_issue", "mcp__hub__list_issues", "mcp__mail__send"),
		`{"query":"issues list"}`:                                  loaded("mcp__hub__list_issues"),
		`{"query":"+mail issue"}`:                                  loaded("mcp__mail__send"),
		`{"query":"hub","max_results":2}`:                          loaded("mcp__hub__create_issue", "mcp__hub__list_issues"),
		`{"query":"hub","max_results":-7}`:                         loaded("mcp__hub__create_issue"),
		`{"query":"file reads"}`:                                   loaded("mcp__hub__readFile", "WebFetch"),
		`{"query":"webfetch"}`:                                     loaded("WebFetch"),
		`{"query":"zzz"}`:                                          agent.Textual(`No tool matches "zzz".` + there),
		`{"query":"  "}`:                                           agent.Failed("the query is empty"),
		`{"query":7}`:                                              agent.Failed("reading the input: json: cannot unmarshal number into Go struct field input.query of type string"),
	} {
		if d := cmp.Diff(want, run(t, catalog(nil), in)); d != "" {
			t.Errorf("%s: %s", in, d)
		}
	}
	if got := run(t, New(nil), `{"query":"x"}`); agent.TextOf(got.Blocks) != "No tool matches \"x\".\nThere are no further tools." {
		t.Errorf("got %v", got)
	}
}

// The search waits for a server only when it would come back with less.
func TestWait(t *testing.T) {
	t.Parallel()
	var c *Catalog
	waits := 0
	c = catalog(func(context.Context) []string {
		waits++
		c.Set(spec("mcp__late__x", ""))
		return []string{"The tool server broken cannot be reached."}
	})
	run(t, c, `{"query":"select:WebFetch"}`)
	if waits != 0 {
		t.Error("waited for nothing")
	}
	want := loaded("mcp__late__x")
	want.After = []agent.Block{&agent.Text{Text: "<system-reminder>\nThe tool server broken cannot be reached.\n</system-reminder>", Note: "tools"}}
	if d := cmp.Diff(want, run(t, c, `{"query":"select:mcp__late__x"}`)); d != "" || waits != 1 {
		t.Errorf("%d waits: %s", waits, d)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stopped")
	c = catalog(func(context.Context) []string { cancel(stop); return nil })
	if _, err := c.Tool().Run(ctx, agent.Call{Input: json.RawMessage(`{"query":"zzz"}`)}); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
}

func TestParseWhen(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"": "{false 0} {true 0}", "true": "{false 0} {false 0}", " FALSE ": "{true 0} {true 0}", "auto": "{false 10} {false 10}",
		"auto:5": "{false 5} {false 5}", "auto:0": "{false 0} {false 0}", "auto:101": "error", "maybe": "error", "auto:x": "error",
	} {
		a, err := ParseWhen(s, true)
		b, _ := ParseWhen(s, false)
		got := fmt.Sprint(a, " ", b)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	}
}

func TestDefer(t *testing.T) {
	t.Parallel()
	specs := []agent.Spec{{Name: "Read", Description: string(make([]byte, 99999))}, spec("mcp__a", string(make([]byte, 3981)))} // 1,000 tokens deferred
	for _, tc := range []struct {
		w      When
		window int
		want   bool
	}{
		{When{}, 200_000, true}, {When{Off: true}, 200_000, false}, {When{Percent: 10}, 10_000, true}, {When{Percent: 10}, 20_000, false},
	} {
		if got := tc.w.Defer(specs, tc.window); got != tc.want {
			t.Errorf("%+v in %d: got %v", tc.w, tc.window, got)
		}
	}
	if (When{}).Defer(specs[:1], 1000) {
		t.Error("deferred nothing")
	}
}

func TestHint(t *testing.T) {
	t.Parallel()
	c := catalog(nil)
	want := "The definition of WebFetch was not loaded. Its input has this schema:\n{\"type\":\"object\"}\nTo load it, call ToolSearch with the query \"select:WebFetch\"."
	if got := c.Hint("WebFetch"); got != want || c.Hint("Nope") != "" {
		t.Errorf("got %q", got)
	}
}
