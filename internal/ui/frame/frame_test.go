package frame

import (
	"encoding/json"
	"regexp"
	"testing"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/sdkwire"
)

func line(t *testing.T, frame any) string {
	t.Helper()
	b, err := sdkwire.Append(nil, frame)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestFrames(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.FixedZone("x", 3600))
	ev := agent.Event{At: at, Parent: "t0", Agent: "a1"}
	const zero = `{"input_tokens":1,"cache_creation_input_tokens":5,"cache_read_input_tokens":3,"output_tokens":2,"server_tool_use":{"web_search_requests":0,"web_fetch_requests":0},"service_tier":null,"cache_creation":{"ephemeral_1h_input_tokens":1,"ephemeral_5m_input_tokens":4}}`
	usage := agent.Usage{In: 1, Out: 2, CacheRead: 3, CacheWrite5m: 4, CacheWrite1h: 1}
	call := agent.Call{ID: "t1", Name: "Bash"}
	tests := []struct {
		name  string
		frame any
		want  string
	}{
		{"success", Result("S", agent.Outcome{
			Subtype: "success", Reason: "completed", Stop: "end_turn", Text: "done", Turns: 2, Took: 1500 * time.Millisecond, API: time.Second,
			TTFT: 20 * time.Millisecond, Usage: usage, Cost: 0.25,
			Models:  []agent.ModelUsage{{Model: "m", Usage: usage, Cost: 0.25, ContextWindow: 200, MaxOutput: 32}},
			Denials: []agent.Denial{{Tool: "Bash", ID: "t1"}},
		}), `{"type":"result","subtype":"success","is_error":false,"api_error_status":null,"duration_ms":1500,"duration_api_ms":1000,"ttft_ms":20,"num_turns":2,"result":"done","stop_reason":"end_turn","session_id":"S","total_cost_usd":0.25,"usage":` + zero +
			`,"modelUsage":{"m":{"inputTokens":1,"outputTokens":2,"cacheReadInputTokens":3,"cacheCreationInputTokens":5,"webSearchRequests":0,"costUSD":0.25,"contextWindow":200,"maxOutputTokens":32}},"permission_denials":[{"tool_name":"Bash","tool_use_id":"t1","tool_input":{}}],"terminal_reason":"completed","fast_mode_state":"off","uuid":"U"}` + "\n"},
		{"error", Result("S", agent.Outcome{Subtype: "error_max_turns", IsError: true, Text: "x", Errors: []string{"too many"}, Usage: usage, APIStatus: 500, Origin: "task-notification"}),
			`{"type":"result","subtype":"error_max_turns","is_error":true,"api_error_status":500,"duration_ms":0,"duration_api_ms":0,"num_turns":0,"errors":["too many"],"stop_reason":null,"session_id":"S","total_cost_usd":0,"usage":` + zero +
				`,"modelUsage":{},"permission_denials":[],"fast_mode_state":"off","origin":{"kind":"task-notification"},"uuid":"U"}` + "\n"},
		{"init", Init(agent.Info{Session: "S", Cwd: "/w", Model: "m", Version: "1", Mode: agent.ModeDefault, Tools: []string{"Agent", "Bash"}, Commands: []agent.CommandInfo{{Name: "cost"}}}),
			`{"type":"system","subtype":"init","cwd":"/w","session_id":"S","tools":["Task","Bash"],"mcp_servers":[],"model":"m","permissionMode":"default","slash_commands":["cost"],"apiKeySource":"none","claude_code_version":"1","output_style":"default","agents":[],"skills":[],"plugins":[],"analytics_disabled":true,"uuid":"U","sandbox_enabled":false,"fast_mode_state":"off"}` + "\n"},
		{"assistant", Assistant("S", ev, agent.Said{Message: agent.Message{ID: "msg", UUID: "m1", Blocks: []agent.Block{&agent.Text{Text: "<hi>"}}}, Model: "m", RequestID: "r", Usage: usage}),
			`{"type":"assistant","message":{"id":"msg","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"<hi>"}],"stop_reason":null,"stop_sequence":null,"usage":` + zero + `},"parent_tool_use_id":"t0","agent_id":"a1","session_id":"S","uuid":"m1","timestamp":"2026-01-02T02:04:05.678Z","request_id":"r"}` + "\n"},
		{"trouble", Assistant("S", agent.Event{At: at}, agent.Said{Message: agent.Message{UUID: "m1"}, Err: &agent.Trouble{Kind: "rate_limit", Status: 429, Type: "rate_limit_error"}, Usage: usage}),
			`{"type":"assistant","message":{"id":"","type":"message","role":"assistant","model":"<synthetic>","content":[],"stop_reason":null,"stop_sequence":null,"usage":` + zero + `},"parent_tool_use_id":null,"session_id":"S","uuid":"m1","timestamp":"2026-01-02T02:04:05.678Z","error":"rate_limit","is_api_error_message":true,"api_error_status":429,"api_error_type":"rate_limit_error"}` + "\n"},
		{"user without notes", User("S", agent.Event{At: at}, agent.Said{Replay: true, Message: agent.Message{UUID: "m1", Blocks: []agent.Block{&agent.Text{Text: "git", Note: "git"}, &agent.Text{Text: "hi"}}}}),
			`{"type":"user","message":{"role":"user","content":"hi"},"parent_tool_use_id":null,"session_id":"S","uuid":"m1","timestamp":"2026-01-02T02:04:05.678Z","isReplay":true}` + "\n"},
		{"denied", Finished("S", agent.Event{At: at}, agent.Finished{Call: call, Result: agent.Failed("no"), Decision: agent.Decision{Verdict: agent.Deny, Why: agent.WhyMode}}),
			`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"no","is_error":true}]},"parent_tool_use_id":null,"session_id":"S","uuid":"U","timestamp":"2026-01-02T02:04:05.678Z","tool_use_result":"Error: no","tool_result_meta":[{"id":"t1","permission_decision":{"decision":"reject","source":"config","reason_type":"mode"},"non_execution_kind":"permission-rule"}]}` + "\n"},
		{"allowed by a person", Finished("S", agent.Event{At: at}, agent.Finished{Call: call, Result: agent.Textual("ok"), Decision: agent.Decision{Verdict: agent.Allow, Why: agent.WhyUser}}),
			`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]},"parent_tool_use_id":null,"session_id":"S","uuid":"U","timestamp":"2026-01-02T02:04:05.678Z","tool_result_meta":[{"id":"t1","permission_decision":{"decision":"accept","source":"user_temporary"}}]}` + "\n"},
	}
	uuid := regexp.MustCompile(`"uuid":"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"`)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := line(t, tt.frame)
			if !json.Valid([]byte(got)) {
				t.Fatalf("not JSON: %s", got)
			}
			if got = uuid.ReplaceAllString(got, `"uuid":"U"`); got != tt.want {
				t.Errorf("got  %swant %s", got, tt.want)
			}
		})
	}
}
