package modelserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	const png = "iVBORw0KGgo="
	sig := sign("hm")
	use := func(id string) string { return `{"type":"tool_use","id":"` + id + `","name":"Bash","input":{}}` }
	res := func(id string) string { return `{"type":"tool_result","tool_use_id":"` + id + `","content":"ok"}` }
	msg := func(role string, blocks ...string) string {
		return `{"role":"` + role + `","content":[` + strings.Join(blocks, ",") + `]}`
	}
	const hi = `{"role":"user","content":"hi"}`
	body := func(more string, msgs ...string) string {
		return `{"model":"m","max_tokens":9000,` + more + `"messages":[` + strings.Join(msgs, ",") + `]}`
	}
	text := func(s string) string { return `{"type":"text","text":"` + s + `"}` }
	mark := func(ttl string) string {
		return `{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"` + ttl + `"}}`
	}
	mem := &Memory{}
	mem.sent([]sentBlock{{signature: "S", text: "deep"}, {data: "D"}, {tool: "t9"}})
	tests := []struct {
		name, body string
		want       []string
	}{
		{"plain", body("", hi), nil},
		{"a call and its result", body("", hi, msg("assistant", text("a"), use("t1")), msg("user", res("t1"), text("and"))), nil},
		{"neighbours are joined", body("", hi, hi, msg("assistant", use("t1")), msg("assistant", use("t2")), msg("user", res("t2")), msg("user", res("t1"), text("x"))), nil},
		{"proven thinking", body("", hi, msg("assistant", `{"type":"thinking","thinking":"hm","signature":"`+sig+`"}`, `{"type":"redacted_thinking","data":"`+redact("x")+`"}`, use("t1")), msg("user", res("t1"))), nil},
		{"remembered thinking", body(`"thinking":{"type":"adaptive"},`, hi, msg("assistant", `{"type":"thinking","thinking":"deep","signature":"S"}`, `{"type":"redacted_thinking","data":"D"}`, use("t9")), msg("user", res("t9"))), nil},
		{"an older turn needs no thinking", body(`"thinking":{"type":"adaptive"},`, hi, msg("assistant", use("t9")), msg("user", res("t9")), msg("assistant", text("a")), hi), nil},
		{"picture", body("", msg("user", `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+png+`"}}`)), nil},
		{"server tool", body(`"tools":[{"type":"web_search_20250305","name":"web_search"}],`, hi), nil},
		{"escaped pairs", body("", `{"role":"user","content":"\ud83d\ude00 \\ud83d \u0041"}`), nil},
		{"unknown block", body("", msg("user", `{"type":"unheard_of","x":1}`)), nil},

		{"no model", `{"max_tokens":1,"messages":[` + hi + `]}`, []string{"model: a model is required"}},
		{"no max_tokens", `{"model":"m","messages":[` + hi + `]}`, []string{"max_tokens: must be greater than 0"}},
		{"unknown key", body(`"note":1,`, hi), []string{"note: extra inputs are not permitted"}},
		{"unknown keys inside", body("", `{"role":"user","uuid":"u","content":[{"type":"text","text":"a","note":"n"}]}`), []string{"messages.0.uuid: extra inputs are not permitted", "messages.0.content.0.note: extra inputs are not permitted"}},
		{"thinking budget", body(`"thinking":{"type":"enabled","budget_tokens":9000},`, hi), []string{"max_tokens: must be greater than thinking.budget_tokens"}},
		{"thinking type", body(`"thinking":{"type":"much"},`, hi), []string{`thinking.type: "much" is not one of adaptive, enabled, disabled`}},
		{"forced tool", body(`"thinking":{"type":"adaptive"},"tools":[{"name":"A","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"B"},`, hi), []string{`tool_choice.name: no tool is called "B"`, "tool_choice.type: thinking cannot be combined with a forced tool"}},
		{"lone surrogate", body("", `{"role":"user","content":"a \ud83d b"}`), []string{"body: the request body is not valid JSON: no low surrogate in string at byte 71"}},
		{"bad UTF-8", body("", "{\"role\":\"user\",\"content\":\"a \xff\"}"), []string{"body: the request body is not valid UTF-8"}},

		{"no messages", body(""), []string{"messages: at least one message is required"}},
		{"first role", body("", msg("assistant", text("a")), hi), []string{"messages.0.role: the first message must have the role user"}},
		{"other role", body("", hi, `{"role":"system","content":"s"}`), []string{`messages.1.role: "system" is not one of user, assistant`}},
		{"last role", body("", hi, msg("assistant", text("a"))), []string{"messages.1: the conversation must end with a user message"}},
		{"empty content", body("", msg("user")), []string{"messages.0: all messages must have non-empty content"}},
		{"blank text", body(`"system":[{"type":"text","text":""}],`, msg("user", text("a"), text(` \n`))), []string{"system.0: text content blocks must be non-empty and contain more than whitespace", "messages.0.content.1: text content blocks must be non-empty and contain more than whitespace"}},
		{"marked blank text", body("", msg("user", text("a"), `{"type":"text","text":"","cache_control":{"type":"ephemeral"}}`)), []string{"messages.0.content.1: cache_control cannot be set for an empty text block"}},

		{"no result", body("", hi, msg("assistant", use("t1")), hi), []string{"messages.1.content.0: tool_use t1 has no tool_result in the next message"}},
		{"late result", body("", hi, msg("assistant", use("t1")), hi, msg("assistant", text("a")), msg("user", res("t1"))), []string{"messages.1.content.0: tool_use t1 has no tool_result in the next message", "messages.4.content.0: tool_result t1 answers no tool_use of the previous message"}},
		{"two results", body("", hi, msg("assistant", use("t1")), msg("user", res("t1"), res("t1"))), []string{"messages.1.content.0: tool_use t1 has 2 tool_result blocks: exactly one is allowed"}},
		{"result without call", body("", msg("user", res("t1"))), []string{"messages.0.content.0: tool_result t1 answers no tool_use of the previous message"}},
		{"result behind text", body("", hi, msg("assistant", use("t1")), msg("user", text("a"), res("t1"))), []string{"messages.2.content.1: tool_result blocks must come before other content (messages.2.content.0)"}},
		{"same id twice", body("", hi, msg("assistant", use("t1")), msg("user", res("t1")), msg("assistant", use("t1")), msg("user", res("t1"))), []string{"messages.3.content.0: tool_use ids must be unique: t1"}},
		{"odd call", body("", hi, msg("assistant", `{"type":"tool_use","id":"a b","name":"x.y","input":[]}`), msg("user", res("a b"))), []string{`messages.1.content.0.id: "a b" does not match ^[a-zA-Z0-9_-]+$`, `messages.1.content.0.name: "x.y" does not match ^[a-zA-Z0-9_-]{1,200}$`, "messages.1.content.0.input: must be an object"}},
		{"call of the user", body("", msg("user", use("t1")), msg("assistant", res("t1")), hi), []string{"messages.0.content.0.type: tool_use is not allowed in a message of the user", "messages.1.content.0.type: tool_result is not allowed in a message of the assistant"}},
		{"blank text in a result", body("", hi, msg("assistant", use("t1")), msg("user", `{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":""}]}`)), []string{"messages.2.content.0.content.0: text content blocks must be non-empty and contain more than whitespace"}},
		{"empty result", body("", hi, msg("assistant", use("t1")), msg("user", `{"type":"tool_result","tool_use_id":"t1","content":""}`)), nil},

		{"changed thinking", body("", hi, msg("assistant", `{"type":"thinking","thinking":"ha","signature":"`+sig+`"}`, text("a")), hi), []string{"messages.1.content.0: invalid signature in thinking block: text or signature is not what the model sent"}},
		{"made up thinking", body("", hi, msg("assistant", `{"type":"redacted_thinking","data":"E"}`, text("a")), hi), []string{"messages.1.content.0: invalid data in redacted_thinking block: it is not what the model sent"}},
		{"lost thinking", body(`"thinking":{"type":"adaptive"},`, hi, msg("assistant", use("t9")), msg("user", res("t9"))), []string{"messages.1.content.0: the thinking block that came with tool_use t9 is missing"}},

		{"tools", body(`"tools":[{"name":"a.b","input_schema":{"type":"object"}},{"name":"A","input_schema":{"type":"string"}},{"name":"A","input_schema":{"type":"object","oneOf":[],"properties":{"a b":{}}}},{"name":"N","input_schema":null}],`, hi), []string{
			`tools.0.name: "a.b" does not match ^[a-zA-Z0-9_-]{1,128}$`, "tools.1.input_schema.type: must be object", `tools.2.name: tool names must be unique: "A"`,
			"tools.2.input_schema: does not support oneOf at the top level", `tools.2.input_schema.properties: property "a b" does not match ^[a-zA-Z0-9_.-]{1,64}$`, "tools.3.input_schema: must be a JSON schema"}},
		{"pictures", body("", msg("user", `{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"`+png+`"}}`, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"!"}}`, `{"type":"image","source":{"type":"base64","media_type":"image/heic","data":"aaaa"}}`)), []string{
			"messages.0.content.0.image.source.base64.data: could not process image", "messages.0.content.1.image.source.base64: invalid base64 data", `messages.0.content.2.image.source.base64.media_type: "image/heic" is not one of image/jpeg, image/png, image/gif, image/webp`}},

		{"four marks", body(`"system":[`+mark("1h")+`,`+mark("1h")+`],`, msg("user", mark("5m"), mark("5m"))), nil},
		{"five marks", body(`"system":[`+mark("5m")+`,`+mark("5m")+`],`, msg("user", mark("5m"), mark("5m"), mark("5m"))), []string{"cache_control: a maximum of 4 blocks with cache_control may be provided, found 5"}},
		{"long after short", body("", msg("user", mark("5m"), mark("1h"))), []string{"messages.0.content.1.cache_control.ttl: a 1h mark must not come after a 5m mark"}},
		{"odd mark", body("", msg("user", `{"type":"text","text":"x","cache_control":{"type":"forever"}}`)), []string{"messages.0.content.0.cache_control.type: must be ephemeral"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := ParseRequest([]byte(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, v := range r.Check(mem) {
				got = append(got, v.String())
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestParseRequestErrors(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{`:                              "body: the request body is not a JSON object",
		`null`:                           "body: the request body is not a JSON object",
		`{"messages":[],"model":1}`:      "model: is not of the expected type",
		`{"model":"m"}`:                  "messages: is missing or not an array of messages",
		`{"messages":[{"content":"x"}]}`: "messages.0.role: is missing",
		`{"messages":[{"role":"user","content":{}}]}`:                                      "messages.0.content: is neither a string nor an array of blocks",
		`{"messages":[{"role":"user","content":[{"text":"x"}]}]}`:                          "messages.0.content.0.type: is missing",
		`{"messages":[{"role":"user","content":[1]}]}`:                                     "messages.0.content.0: is not a content block",
		`{"messages":[{"role":"user","content":[{"type":"tool_result","content":[{}]}]}]}`: "messages.0.content.0.content.0.type: is missing",
		`{"system":3,"messages":[]}`:                                                       "system: is neither a string nor an array of blocks",
		`{"tools":{},"messages":[]}`:                                                       "tools: is not an array",
		`{"tools":[1],"messages":[]}`:                                                      "tools.0: is not a tool definition",
	} {
		if _, err := ParseRequest([]byte(in)); fmt.Sprint(err) != want {
			t.Errorf("%s: got %v, want %s", in, err, want)
		}
	}
}

func TestStrictAndLenient(t *testing.T) {
	t.Parallel()
	bad := strings.Replace(hello, `"hello there"`, `" "`, 1)
	s, url := serve(t, Options{}, "text one")
	got, _, resp := post(t, url, bad)
	if want := `{"type":"error","error":{"type":"invalid_request_error","message":"messages.0.content.0: text content blocks must be non-empty and contain more than whitespace"},"request_id":"req_000001"}`; resp.StatusCode != 400 || got != want {
		t.Errorf("got  %d %s\nwant 400 %s", resp.StatusCode, got, want)
	}
	want := []string{"request 0: messages.0.content.0: text content blocks must be non-empty and contain more than whitespace"}
	if v := s.Violations(); !slices.Equal(v, want) {
		t.Errorf("got %q, want %q", v, want)
	}
	s, url = serve(t, Options{Lenient: true}, "text one")
	if _, _, resp := post(t, url, bad); resp.StatusCode != 200 {
		t.Errorf("got %d, want 200", resp.StatusCode)
	}
	if v := s.Violations(); !slices.Equal(v, want) {
		t.Errorf("got %q, want %q", v, want)
	}
	_, url = serve(t, Options{Key: "k"}, "text one")
	if got, _, resp := post(t, url, hello); resp.StatusCode != 401 || !strings.Contains(got, "authentication_error") {
		t.Errorf("got %d %s, want 401", resp.StatusCode, got)
	}
}

func TestRequestReads(t *testing.T) {
	t.Parallel()
	r, err := ParseRequest([]byte(`{"model":"m","max_tokens":1,"system":"sys","tools":[{"name":"Bash"}],"messages":[
		{"role":"user","content":[{"type":"text","text":"<system-reminder>x</system-reminder>"},{"type":"text","text":"first"}]},
		{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"a":1}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"old"}]},
		{"role":"assistant","content":"done"},
		{"role":"user","content":"second"},
		{"role":"assistant","content":[{"type":"tool_use","id":"t2","name":"Read","input":{"b":2}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"new"},{"type":"text","text":"er"}],"is_error":true},{"type":"text","text":"by the way"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := `[{t2 Read {"b":2} new` + "\n" + `er true}]`
	show := func(rs []Result) string {
		s := "["
		for _, r := range rs {
			s += fmt.Sprintf("{%s %s %s %s %t}", r.ID, r.Tool, r.Input, r.Text, r.IsError)
		}
		return s + "]"
	}
	if got := show(r.Results()); got != want {
		t.Errorf("Results: got %s, want %s", got, want)
	}
	if got := show(r.Work()); got != want {
		t.Errorf("Work: got %s, want %s", got, want)
	}
	if got := r.Prompt(); got != "second" {
		t.Errorf("Prompt: got %q", got)
	}
	if got := r.Last(); got != "new\ner\nby the way" {
		t.Errorf("Last: got %q", got)
	}
	if !r.Offers("Bash") || r.Offers("Read") {
		t.Error("Offers is wrong")
	}
	if got := r.All(); got != "sys\n<system-reminder>x</system-reminder>\nfirst\n\nold\ndone\nsecond\n\nnew\ner\nby the way" {
		t.Errorf("All: got %q", got)
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add([]byte(hello))
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"\ud83d","cache_control":{"type":"ephemeral"}}]}]}],"tools":[{"name":"a","input_schema":{}}],"system":[]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseRequest(b)
		if err != nil {
			return
		}
		r.Check(&Memory{})
		r.Prompt()
		r.Work()
		tokens(r)
	})
}
