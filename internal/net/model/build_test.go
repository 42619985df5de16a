package model

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// client is a client that is never asked to send anything.
func client(t testing.TB, o Options) *Client {
	t.Helper()
	o.HTTP = http.DefaultClient
	if o.BaseURL == "" {
		o.BaseURL = "http://gateway.test"
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *Client) bytes(req *agent.Request) string {
	p := c.plan(req, c.o.Models.Resolve(req.Model), req.Whole, 0, nil)
	return string(c.body(req, p))
}

func user(blocks string) agent.Message {
	return agent.Message{Role: agent.User, Wire: json.RawMessage(blocks)}
}

func said(blocks string) agent.Message {
	return agent.Message{Role: agent.Assistant, Wire: json.RawMessage(blocks)}
}

func TestBody(t *testing.T) {
	t.Parallel()
	sys := json.RawMessage(`[{"type":"text","text":"sys","cache_control":{"type":"ephemeral"}}]`)
	tools := json.RawMessage(`[{"name":"T","input_schema":{"type":"object"}}]`)
	hi := []agent.Message{user(`[{"type":"text","text":"hi"}]`)}
	const msgs = `"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]`
	const mark = `,"cache_control":{"type":"ephemeral"}`
	for _, tt := range []struct {
		name string
		o    Options
		req  agent.Request
		want string
	}{
		{"key order", Options{UserID: "u"}, agent.Request{Model: "opus", System: sys, Tools: tools, Messages: hi, Extra: map[string]json.RawMessage{"tool_choice": json.RawMessage(`{"type":"auto"}`), "context_management": json.RawMessage(`{"edits":[]}`)}},
			`{"model":"claude-opus-5-5",` + msgs + `,"system":` + string(sys) + `,"tools":` + string(tools) + `,"metadata":{"user_id":"u"},"max_tokens":128000,"thinking":{"type":"adaptive","display":"omitted"},"context_management":{"edits":[]},"output_config":{"effort":"medium"},"tool_choice":{"type":"auto"},"stream":true}`},
		{"one piece is capped", Options{}, agent.Request{Model: "opus", Messages: hi, Whole: true},
			`{"model":"claude-opus-5-5",` + msgs + `,"max_tokens":64000,"thinking":{"type":"adaptive","display":"omitted"},"output_config":{"effort":"medium"},"stream":false}`},
		{"[1m] is cut", Options{}, agent.Request{Model: "claude-opus-4-8[1m]", Messages: hi, Effort: "max"},
			`{"model":"claude-opus-4-8",` + msgs + `,"max_tokens":64000,"thinking":{"type":"adaptive","display":"omitted"},"output_config":{"effort":"max"},"stream":true}`},
		{"budget", Options{}, agent.Request{Model: "claude-sonnet-4-20250514", Messages: hi, Effort: "high"},
			`{"model":"claude-sonnet-4-20250514",` + msgs + `,"max_tokens":32000,"thinking":{"type":"enabled","budget_tokens":31999,"display":"omitted"},"stream":true}`},
		{"budget below max_tokens", Options{}, agent.Request{Model: "claude-sonnet-4-20250514", MaxTokens: 2000, Messages: hi},
			`{"model":"claude-sonnet-4-20250514",` + msgs + `,"max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":1999,"display":"omitted"},"stream":true}`},
		{"no room to think", Options{}, agent.Request{Model: "claude-sonnet-4-20250514", MaxTokens: 500, Messages: hi},
			`{"model":"claude-sonnet-4-20250514",` + msgs + `,"max_tokens":500,"stream":true}`},
		{"a model that does not think", Options{}, agent.Request{Model: "claude-3-5-haiku-20241022", Messages: hi, MaxTokens: 100_000},
			`{"model":"claude-3-5-haiku-20241022",` + msgs + `,"max_tokens":8192,"stream":true}`},
		{"unknown model", Options{}, agent.Request{Model: "my-model", Messages: hi, MaxTokens: 90_000},
			`{"model":"my-model",` + msgs + `,"max_tokens":90000,"thinking":{"type":"adaptive","display":"omitted"},"output_config":{"effort":"high"},"stream":true}`},
		{"enabled where only adaptive is taken", Options{}, agent.Request{Model: "opus", Messages: hi, Thinking: agent.Thought{Type: "enabled", Budget: 2048, Display: "summarized"}},
			`{"model":"claude-opus-5-5",` + msgs + `,"max_tokens":128000,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"medium"},"stream":true}`},
		{"thinking turned off", Options{Think: agent.Thought{Type: "disabled"}}, agent.Request{Model: "sonnet", Messages: hi},
			`{"model":"claude-sonnet-5-5",` + msgs + `,"max_tokens":128000,"thinking":{"type":"disabled"},"output_config":{"effort":"medium"},"stream":true}`},
		{"extra body and effort in output_config", Options{Extra: map[string]json.RawMessage{"max_tokens": json.RawMessage(`7`), "model": json.RawMessage(`"x"`), "zoo": json.RawMessage(`1`)}},
			agent.Request{Model: "opus", Messages: hi, Extra: map[string]json.RawMessage{"output_config": json.RawMessage(`{ "format":{"type":"json_schema"}}`)}},
			`{"model":"claude-opus-5-5",` + msgs + `,"max_tokens":7,"thinking":{"type":"adaptive","display":"omitted"},"output_config":{"effort":"medium","format":{"type":"json_schema"}},"zoo":1,"stream":true}`},
		{"without", Options{Without: []string{"thinking", "effort", "metadata"}, UserID: "u"}, agent.Request{Model: "opus", Messages: hi},
			`{"model":"claude-opus-5-5",` + msgs + `,"max_tokens":128000,"stream":true}`},
		{"blocks that have no bytes yet, empty ones left out", Options{Without: []string{"thinking", "effort"}}, agent.Request{Model: "opus", Messages: []agent.Message{
			{Role: agent.User, Blocks: []agent.Block{&agent.Text{Text: " \n"}, &agent.Image{MediaType: "image/png", Data: "aa"}}}, {Role: agent.Assistant, Blocks: []agent.Block{&agent.Text{}}}}, Mark: true},
			`{"model":"claude-opus-5-5","messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aa"}` + mark + `}]}],"max_tokens":128000,"stream":true}`},
		{"no cache", Options{Without: []string{"thinking", "effort", "cache"}}, agent.Request{Model: "opus", System: sys, Messages: hi, Mark: true},
			`{"model":"claude-opus-5-5",` + msgs + `,"system":[{"type":"text","text":"sys"}],"max_tokens":128000,"stream":true}`},
		{"no cache for a family", Options{Without: []string{"thinking", "effort", "cache haiku"}}, agent.Request{Model: "haiku", System: sys, Messages: hi, Mark: true},
			`{"model":"claude-haiku-5-5",` + msgs + `,"system":[{"type":"text","text":"sys"}],"max_tokens":128000,"stream":true}`},
		{"fields of tools that the upstream does not take", Options{Without: []string{"thinking", "effort", "strict-tools", "eager-input"}}, agent.Request{Model: "opus", Messages: hi, Tools: json.RawMessage(
			`[{"name":"T","input_schema":{"properties":{"strict":{}}},"strict":true,"defer_loading":true},{"eager_input_streaming":true,"name":"U"}]`)},
			`{"model":"claude-opus-5-5",` + msgs + `,"tools":[{"name":"T","input_schema":{"properties":{"strict":{}}}},{"name":"U"}],"max_tokens":128000,"stream":true}`},
		{"ttl and scope of marks", Options{Without: []string{"thinking", "effort", "cache-1h", "cache-scope"}}, agent.Request{Model: "opus", Messages: hi, System: json.RawMessage(
			`[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h","scope":"global"}},{"type":"text","text":"ttl"}]`)},
			`{"model":"claude-opus-5-5",` + msgs + `,"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":"ttl"}],"max_tokens":128000,"stream":true}`},
	} {
		got := client(t, tt.o).bytes(&tt.req)
		if got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.name, got, tt.want)
		}
		if !json.Valid([]byte(got)) {
			t.Errorf("%s: the body is no JSON", tt.name)
		}
	}
}

func TestMark(t *testing.T) {
	t.Parallel()
	const mark = `,"cache_control":{"type":"ephemeral"}`
	one := `{"type":"text","text":"one"}`
	for _, tt := range []struct {
		name string
		back int
		msgs []agent.Message
		want string // with ^ where the mark goes
	}{
		{"last block", 0, []agent.Message{user("[" + one + "]"), said("[" + one + "," + one + "]")}, `[{"role":"user","content":[` + one + `]},{"role":"assistant","content":[` + one + `,{"type":"text","text":"one"^}]}]`},
		{"the message before", 1, []agent.Message{user("[" + one + "]"), said("[" + one + "]")}, `[{"role":"user","content":[{"type":"text","text":"one"^}]},{"role":"assistant","content":[` + one + `]}]`},
		{"not on thinking, nor on empty text", 0, []agent.Message{said(`[` + one + `,{"type":"text","text":" \n"},{"type":"thinking","thinking":"x","signature":"s"},{"type":"new"}]`)},
			`[{"role":"assistant","content":[{"type":"text","text":"one"^},{"type":"text","text":" \n"},{"type":"thinking","thinking":"x","signature":"s"},{"type":"new"}]}]`},
		{"an earlier message where the last has no place", 0, []agent.Message{user("[" + one + "]"), said(`[{"type":"thinking","thinking":"x","signature":"s"}]`)},
			`[{"role":"user","content":[{"type":"text","text":"one"^}]},{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"s"}]}]`},
		{"tool result with braces and quotes in it", 0, []agent.Message{user(`[{"type":"tool_result","tool_use_id":"t","content":"a\\\"}]{","is_error":true}]`)},
			`[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"a\\\"}]{","is_error":true^}]}]`},
		{"marked already", 0, []agent.Message{user(`[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]`)}, `[{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}]`},
		{"no place at all", 0, []agent.Message{said(`[{"type":"thinking","thinking":"x","signature":"s"}]`)}, `[{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"s"}]}]`},
		{"further back than there are messages", 5, []agent.Message{user("[" + one + "]")}, `[{"role":"user","content":[` + one + `]}]`},
	} {
		got := field(t, client(t, Options{}).bytes(&agent.Request{Model: "opus", Messages: tt.msgs, Mark: true, MarkBack: tt.back}), "messages")
		if want := strings.ReplaceAll(tt.want, "^", mark); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.name, got, want)
		}
	}
	got := field(t, client(t, Options{MarkTTL: "1h"}).bytes(&agent.Request{Model: "opus", Messages: []agent.Message{user("[" + one + "]")}, Mark: true}), "messages")
	if want := `[{"role":"user","content":[{"type":"text","text":"one","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]`; got != want {
		t.Errorf("one hour:\ngot  %s\nwant %s", got, want)
	}
}

// At most four marks go out, and it is the shortest prefixes that lose theirs.
func TestMarksAreFour(t *testing.T) {
	t.Parallel()
	block := func(s string) string {
		return `{"type":"text","text":"` + s + `","cache_control":{"type":"ephemeral"}}`
	}
	req := agent.Request{
		Model: "opus", Mark: true, Messages: []agent.Message{user(`[{"type":"text","text":"m"}]`)},
		System: json.RawMessage("[" + strings.Join([]string{block("1"), block("2"), block("3"), block("4"), block("5"), block("6")}, ",") + "]"),
		Tools:  json.RawMessage(`[{"name":"T","input_schema":{"properties":{"cache_control":{}}},"cache_control":{"type":"ephemeral"}}]`),
	}
	body := client(t, Options{}).bytes(&req)
	if got, want := field(t, body, "system"), `[{"type":"text","text":"1"},{"type":"text","text":"2"},{"type":"text","text":"3"},`+strings.Join([]string{block("4"), block("5"), block("6")}, ",")+`]`; got != want {
		t.Errorf("system:\ngot  %s\nwant %s", got, want)
	}
	if got, want := field(t, body, "tools"), `[{"name":"T","input_schema":{"properties":{"cache_control":{}}}}]`; got != want {
		t.Errorf("tools:\ngot  %s\nwant %s", got, want)
	}
	if n := strings.Count(field(t, body, "messages"), "cache_control"); n != 1 {
		t.Errorf("%d marks in the messages, want 1", n)
	}
	// Few enough: nothing is touched, and a property is no mark.
	req.System = json.RawMessage("[" + block("1") + "," + block("2") + "]")
	if got := field(t, client(t, Options{}).bytes(&req), "tools"); got != string(req.Tools) {
		t.Errorf("tools changed: %s", got)
	}
}

// Request N+1 begins with the bytes of request N up to its last mark, over
// turns of every kind.
func TestPrefixIsStable(t *testing.T) {
	t.Parallel()
	c := client(t, Options{})
	req := agent.Request{
		Model: "opus", Mark: true,
		System: json.RawMessage(`[{"type":"text","text":"sys","cache_control":{"type":"ephemeral"}}]`),
		Tools:  json.RawMessage(`[{"name":"T"}]`),
	}
	turns := []agent.Message{
		user(`[{"type":"text","text":"a"}]`),
		said(`[{"type":"thinking","thinking":"x","signature":"s"},{"type":"tool_use","id":"t1","name":"T","input":{}}]`),
		user(`[{"type":"tool_result","tool_use_id":"t1","content":"r"}]`),
		said(`[{"type":"text","text":"b"}]`),
		user(`[{"type":"text","text":"c"},{"type":"image","source":{}}]`),
	}
	mark := []byte(`,"cache_control":{"type":"ephemeral"}`)
	var last []byte
	for i := range turns {
		req.Messages = turns[:i+1]
		body := []byte(c.bytes(&req))
		if head := body[:bytes.IndexByte(body, ']')]; last != nil && !bytes.HasPrefix(body, last) {
			t.Errorf("turn %d does not begin with what came before:\n%s\n%s", i, last, head)
		}
		messages := body[:bytes.Index(body, []byte(`,"system":`))]
		at := bytes.LastIndex(messages, mark)
		if at < 0 {
			t.Fatalf("turn %d has no mark", i)
		}
		last = messages[:at]
	}
}

// Building a body copies what is encoded once: its cost is the allocation of
// the body and a few small ones, however long the history.
func TestBodyAllocs(t *testing.T) {
	c := client(t, Options{})
	req := agent.Request{Model: "opus", Mark: true, System: json.RawMessage(`[{"type":"text","text":"sys"}]`)}
	for range 2000 {
		req.Messages = append(req.Messages, user(`[{"type":"text","text":"`+strings.Repeat("x", 1000)+`"}]`))
	}
	p := c.plan(&req, c.o.Models.Resolve("opus"), false, 0, nil)
	if n := testing.AllocsPerRun(10, func() { c.body(&req, p) }); n > 40 {
		t.Errorf("%v allocations for a body of 2000 messages", n)
	}
}

func BenchmarkBody(b *testing.B) {
	c := client(b, Options{})
	req := agent.Request{Model: "opus", Mark: true, Tools: json.RawMessage(`[{"name":"T"}]`)}
	for range 500 {
		req.Messages = append(req.Messages, user(`[{"type":"tool_result","tool_use_id":"t","content":"`+strings.Repeat(`x\n`, 3000)+`"}]`))
	}
	b.ReportAllocs()
	for b.Loop() {
		p := c.plan(&req, c.o.Models.Resolve(req.Model), false, 0, nil)
		b.SetBytes(int64(len(c.body(&req, p))))
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	headers, err := ParseHeaders("X-Team: a: b\r\n\nanthropic-beta: own-beta-2026-01-01\nUser-Agent: mine\n")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		BaseURL: "http://gateway.test/base/?tenant=7", Auth: Auth{Token: "tok"}, Headers: headers, UserAgent: "cinch/1",
		Session: func() string { return "sess" }, Betas: []string{"extra-2026-02-02"},
	}
	bubble(t, o, []turn{ok("hi")}, func(t *testing.T, c *Client, s *script) {
		req := prompt("x")
		req.Agent, req.Features = "agent1", []string{"context-management"}
		if got := collect(t.Context(), c, req); got.err != nil {
			t.Fatal(got.err)
		}
		a := s.asked()[0]
		if want := "/base/v1/messages?beta=true&tenant=7"; a.path != want {
			t.Errorf("path %s, want %s", a.path, want)
		}
		got := map[string]string{}
		for k := range a.header {
			got[k] = a.header.Get(k)
		}
		delete(got, "Content-Length")
		want := map[string]string{
			"Accept": "text/event-stream, application/json", "Accept-Encoding": "identity", "Content-Type": "application/json", "User-Agent": "mine",
			"Anthropic-Version": "2023-06-01", "Authorization": "Bearer tok", "X-Team": "a: b", "X-Cinch-Session-Id": "sess", "X-Cinch-Agent-Id": "agent1",
			"Anthropic-Beta": "effort-2025-11-24,context-management-2025-06-27,extra-2026-02-02,own-beta-2026-01-01",
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}

func TestParseHeaders(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"A: b\nnothing":          `ANTHROPIC_CUSTOM_HEADERS line 2: no colon: write "Name: value"`,
		"A: ok\nB: x\x01y":       `ANTHROPIC_CUSTOM_HEADERS line 2: invalid request header value of B: character 2 ('\x01') is not allowed`,
		"A b: x":                 `ANTHROPIC_CUSTOM_HEADERS line 1: invalid request header name: character 2 (' ') is not allowed`,
		": x":                    `ANTHROPIC_CUSTOM_HEADERS line 1: the header has no name`,
		"content-length: 5":      `ANTHROPIC_CUSTOM_HEADERS line 1: content-length is set by the program and cannot be replaced`,
		"Authorization: se\x7fc": `ANTHROPIC_CUSTOM_HEADERS line 1: invalid request header value of Authorization: character 3 ('\x7f') is not allowed`,
	} {
		if _, err := ParseHeaders(in); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", in, err, want)
		}
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"gateway:4000", "ftp://x", "http://", "/v1", "http://[bad"} {
		if _, err := New(Options{HTTP: http.DefaultClient, BaseURL: base}); err == nil || !strings.Contains(err.Error(), "ANTHROPIC_BASE_URL") {
			t.Errorf("%s: got %v", base, err)
		}
	}
	c, err := New(Options{HTTP: http.DefaultClient})
	if err != nil || c.Upstream() != "api.anthropic.com" || !c.Allows("tool-search", "opus") {
		t.Errorf("got %v, %v", c, err)
	}
	if client(t, Options{}).Allows("tool-search", "opus") || !client(t, Options{With: []string{"tool-search"}}).Allows("tool-search", "opus") {
		t.Error("a gateway gets deferred tools only when they are asked for")
	}
}
