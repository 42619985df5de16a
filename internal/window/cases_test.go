package window_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/net/modelserver"
	"github.com/seed-eb844fcb/cinch/internal/window"
	"github.com/seed-eb844fcb/cinch/internal/window/prompt"
)

// Case 33: whatever happens in a session, request N+1 begins with the bytes
// of request N up to its last mark; where it cannot, somebody said why.
func TestCachePrefixThroughASession(t *testing.T) {
	t.Parallel()
	tool := func(name string, deferred bool) agent.Spec {
		return agent.Spec{Name: name, Description: name, Schema: json.RawMessage(`{"type":"object"}`), Deferred: deferred}
	}
	mind := func(_ context.Context, q *modelserver.Request) (modelserver.Script, error) {
		if len(q.Results()) > 0 && q.N%5 != 0 {
			return answer("done"), nil
		}
		var s modelserver.Script
		for k := range 1 + q.N%4*4 { // up to 13 calls side by side
			s.Steps = append(s.Steps, modelserver.Tool{ID: fmt.Sprintf("t%d_%d", q.N, k), Name: "Bash", Input: json.RawMessage(`{}`)})
		}
		return s, nil
	}
	r := newRig(t, setup{Options: modelserver.Options{Brain: mind}, limits: roomy, builder: window.Options{
		ToolSearch: true, Tools: []agent.Spec{tool("Bash", false), tool("WebFetch", true), tool("mcp__a__x", true)},
	}})
	r.run = func(agent.ToolUse) []agent.Block { return []agent.Block{text("ok")} }
	facts := window.Facts{Date: "2026-09-01", Mode: agent.ModeDefault, Model: "m", Deferred: []string{"WebFetch", "mcp__a__x"}}
	planned := map[int]bool{} // requests that may begin otherwise
	loaded := -1              // the request that brings deferred definitions
	for i := range 12 {
		next := facts
		switch i {
		case 2:
			next.Mode = agent.ModePlan
		case 4: // a tool server connects late
			r.e.AppendTools(tool("mcp__late__y", true))
			next.Deferred = append(next.Deferred, "mcp__late__y")
		case 5:
			r.e.Load("mcp__late__y", "WebFetch")
			loaded = len(r.srv.Requests())
		case 7:
			next.Date = "2026-09-02"
		case 9: // a server whose tools are always loaded
			r.e.AppendTools(tool("mcp__eager__z", false))
			planned[len(r.srv.Requests())] = true
		case 10:
			r.e.SetModel("claude-sonnet-4-5", 1000)
			planned[len(r.srv.Requests())] = true
		}
		r.h = append(r.h, agent.Message{Role: agent.User, UUID: r.id(), Blocks: append(facts.Changes(next), text(fmt.Sprint("turn ", i)))}.Encode())
		facts = next
		if _, err := r.goOn(); err != nil {
			t.Fatal(err)
		}
	}
	reqs := r.srv.Requests()
	for i, q := range reqs[1:] {
		err := q.Extends(reqs[i])
		if err == nil && q.Model != reqs[i].Model {
			err = fmt.Errorf("another model")
		}
		// The API leaves deferred tools out of the prefix; the server does not.
		if (err != nil) != (planned[i+1] || i+1 == loaded) {
			t.Errorf("request %d: %v, planned: %v", i+1, err, planned[i+1])
		}
	}
	for i, rec := range r.e.Records() {
		if want := planned[i]; (rec.Break != nil) != want || rec.Break != nil && !rec.Break.Planned {
			t.Errorf("record %d: %v", i, rec.Break)
		}
	}
	if share := float64(r.reads.read) / float64(r.reads.expected); share < 0.85 {
		t.Errorf("%.0f %% was read from the cache", share*100)
	}
	r.fine()
}

// Case 48: what upstreams refuse never leaves, and no request has more than
// four marks.
func TestNothingBlankIsSent(t *testing.T) {
	t.Parallel()
	var sections []prompt.Section
	for i := range 6 {
		sections = append(sections, prompt.Section{Text: fmt.Sprint("Section ", i), Mark: true}, prompt.Section{Text: " ", Mark: i == 5})
	}
	n := 0
	mind := func(context.Context, *modelserver.Request) (modelserver.Script, error) {
		if n++; n == 1 {
			return modelserver.ParseScript("block {\"type\":\"text\",\"text\":\"\"}\ntool t1 Bash {}")
		}
		return answer("fine"), nil
	}
	r := newRig(t, setup{Options: modelserver.Options{Brain: mind}, limits: roomy, builder: window.Options{Sections: sections}})
	r.run = func(agent.ToolUse) []agent.Block { return []agent.Block{text("")} }
	r.say(agent.User, "", &agent.Image{MediaType: "image/png", Data: picture(t)}, text(" "))
	if _, err := r.goOn(); err != nil {
		t.Fatal(err)
	}
	r.say(agent.User, "", text(" \n\t"))
	if _, err := r.turn("go on"); err != nil {
		t.Fatal(err)
	}
	for i, q := range r.srv.Requests() {
		if n := strings.Count(string(q.Raw), `"cache_control"`); n < 2 || n > 4 {
			t.Errorf("request %d has %d marks", i, n)
		}
	}
	r.fine()
}
