package sdkwire

import (
	"encoding/json"
	"testing"
)

func TestAppendIsOneLine(t *testing.T) {
	t.Parallel()
	status := 529
	text := "a<b> & c\nd"
	tests := []struct {
		name  string
		frame any
		want  string
	}{
		{"nulls stay", Status{Type: "system", Subtype: "status", SessionID: "s", UUID: "u"},
			`{"type":"system","subtype":"status","status":null,"session_id":"s","uuid":"u"}` + "\n"},
		{"raw JSON and plain signs pass", Assistant{Type: "assistant", Message: Message{Content: json.RawMessage(`[ {"type":"text","text":"<x>"} ]`)}, SessionID: "s", UUID: "u", APIErrorStatus: &status},
			`{"type":"assistant","message":{"id":"","type":"","role":"","model":"","content":[{"type":"text","text":"<x>"}],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0,"server_tool_use":{"web_search_requests":0,"web_fetch_requests":0},"service_tier":null,"cache_creation":{"ephemeral_1h_input_tokens":0,"ephemeral_5m_input_tokens":0}}},"parent_tool_use_id":null,"session_id":"s","uuid":"u","timestamp":"","api_error_status":529}` + "\n"},
		{"text is escaped once", LocalOutput{Content: text}, `{"type":"","subtype":"","content":"a<b> & c\nd","session_id":"","uuid":""}` + "\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Append([]byte("x"), tt.frame)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != "x"+tt.want {
				t.Errorf("got  %s\nwant x%s", got, tt.want)
			}
		})
	}
}

func TestAppendKeepsDstOnError(t *testing.T) {
	t.Parallel()
	got, err := Append([]byte("kept"), StreamEvent{Event: json.RawMessage("{")})
	if err == nil || string(got) != "kept" {
		t.Errorf("got %q, %v; want kept and an error", got, err)
	}
}
