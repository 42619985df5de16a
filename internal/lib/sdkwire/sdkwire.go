// Package sdkwire is the shape of the frames that go out to an SDK host: one
// JSON object a line. It owns the names and the order of their fields and
// their encoding, and nothing else: it knows no events, no session and no
// stream. Package ui/frame fills these structs from events; ui/print and
// ui/stream write them.
//
// Fields that a host may rely on are always present; a nil pointer among
// them is sent as null. Fields marked omitempty are left out when empty.
package sdkwire

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Append appends frame to dst as one line of JSON with its newline. '<', '>'
// and '&' stay as they are. It fails only if frame holds raw JSON that is
// not JSON.
func Append(dst []byte, frame any) ([]byte, error) {
	buf := bytes.NewBuffer(dst)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(frame); err != nil {
		return dst, fmt.Errorf("encoding %T: %w", frame, err)
	}
	return buf.Bytes(), nil
}

// OrNull returns nil, which is sent as null, for the empty string.
func OrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Usage counts tokens as the Messages API does.
type Usage struct {
	InputTokens         int           `json:"input_tokens"`
	CacheCreationTokens int           `json:"cache_creation_input_tokens"`
	CacheReadTokens     int           `json:"cache_read_input_tokens"`
	OutputTokens        int           `json:"output_tokens"`
	ServerToolUse       ServerToolUse `json:"server_tool_use"`
	ServiceTier         *string       `json:"service_tier"`
	CacheCreation       CacheCreation `json:"cache_creation"`
}

// ServerToolUse counts the requests of tools that ran upstream.
type ServerToolUse struct {
	WebSearches int `json:"web_search_requests"`
	WebFetches  int `json:"web_fetch_requests"`
}

// CacheCreation splits the tokens written to the cache by their life.
type CacheCreation struct {
	OneHour     int `json:"ephemeral_1h_input_tokens"`
	FiveMinutes int `json:"ephemeral_5m_input_tokens"`
}

// ModelUsage is what one model was used for in a session.
type ModelUsage struct {
	InputTokens         int     `json:"inputTokens"`
	OutputTokens        int     `json:"outputTokens"`
	CacheReadTokens     int     `json:"cacheReadInputTokens"`
	CacheCreationTokens int     `json:"cacheCreationInputTokens"`
	WebSearches         int     `json:"webSearchRequests"`
	CostUSD             float64 `json:"costUSD"`
	ContextWindow       int     `json:"contextWindow"`
	MaxOutputTokens     int     `json:"maxOutputTokens"`
}

// Denial is one call that was not allowed.
type Denial struct {
	ToolName  string          `json:"tool_name"`
	ToolUseID string          `json:"tool_use_id"`
	ToolInput json.RawMessage `json:"tool_input"`
}

// Origin says what started a turn, where it was not a person.
type Origin struct {
	Kind string `json:"kind"`
}

// DeferredToolUse is a call that was left for the host to decide.
type DeferredToolUse struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// Result ends a turn. A success has Result and no Errors, the error subtypes
// have Errors and no Result.
type Result struct {
	Type              string                `json:"type"` // result
	Subtype           string                `json:"subtype"`
	IsError           bool                  `json:"is_error"`
	APIErrorStatus    *int                  `json:"api_error_status"`
	DurationMS        int64                 `json:"duration_ms"`
	DurationAPIMS     int64                 `json:"duration_api_ms"`
	TTFTMS            *int64                `json:"ttft_ms,omitempty"`
	NumTurns          int                   `json:"num_turns"`
	Result            *string               `json:"result,omitempty"`
	Errors            []string              `json:"errors,omitempty"`
	StopReason        *string               `json:"stop_reason"`
	SessionID         string                `json:"session_id"`
	TotalCostUSD      float64               `json:"total_cost_usd"`
	Usage             Usage                 `json:"usage"`
	ModelUsage        map[string]ModelUsage `json:"modelUsage"`
	PermissionDenials []Denial              `json:"permission_denials"`
	StructuredOutput  json.RawMessage       `json:"structured_output,omitempty"`
	DeferredToolUse   *DeferredToolUse      `json:"deferred_tool_use,omitempty"`
	TerminalReason    string                `json:"terminal_reason,omitempty"`
	FastModeState     string                `json:"fast_mode_state"`
	Origin            *Origin               `json:"origin,omitempty"`
	UUID              string                `json:"uuid"`
	UserMessageUUIDs  []string              `json:"user_message_uuids,omitempty"`
	QueuedTurnCount   *int                  `json:"queued_turn_count,omitempty"`
	ResultIndex       *int                  `json:"result_index,omitempty"`
}

// Message is a response, or one finished block of it, as the Messages API
// gives it.
type Message struct {
	ID           string          `json:"id"`
	Type         string          `json:"type"` // message
	Role         string          `json:"role"` // assistant
	Model        string          `json:"model"`
	Content      json.RawMessage `json:"content"`
	StopReason   *string         `json:"stop_reason"`
	StopSequence *string         `json:"stop_sequence"`
	Usage        Usage           `json:"usage"`
}

// Assistant is one finished block of a response, or a message that the
// program made in place of an answer that failed.
type Assistant struct {
	Type            string  `json:"type"` // assistant
	Message         Message `json:"message"`
	ParentToolUseID *string `json:"parent_tool_use_id"`
	AgentID         string  `json:"agent_id,omitempty"`
	SessionID       string  `json:"session_id"`
	UUID            string  `json:"uuid"`
	Timestamp       string  `json:"timestamp"` // RFC 3339 in UTC, milliseconds
	RequestID       string  `json:"request_id,omitempty"`
	Aborted         bool    `json:"aborted,omitempty"`
	// Of a failed request only.
	Error             string `json:"error,omitempty"`
	IsAPIErrorMessage bool   `json:"is_api_error_message,omitempty"`
	APIErrorStatus    *int   `json:"api_error_status,omitempty"`
	APIErrorType      string `json:"api_error_type,omitempty"`
}

// UserMessage is the message of a User frame. Content is a JSON string or an
// array of blocks.
type UserMessage struct {
	Role    string          `json:"role"` // user
	Content json.RawMessage `json:"content"`
}

// User is a tool result, a synthetic message, or the echo of one the host sent.
type User struct {
	Type            string       `json:"type"` // user
	Message         UserMessage  `json:"message"`
	ParentToolUseID *string      `json:"parent_tool_use_id"`
	AgentID         string       `json:"agent_id,omitempty"`
	SessionID       string       `json:"session_id"`
	UUID            string       `json:"uuid"`
	Timestamp       string       `json:"timestamp"`
	ToolUseResult   any          `json:"tool_use_result,omitempty"`
	ToolResultMeta  []ToolResult `json:"tool_result_meta,omitempty"`
	IsSynthetic     bool         `json:"isSynthetic,omitempty"`
	IsReplay        bool         `json:"isReplay,omitempty"`
	Origin          *Origin      `json:"origin,omitempty"`
}

// ToolResult says how a call came to run, or why it did not.
type ToolResult struct {
	ID               string              `json:"id"`
	Decision         *PermissionDecision `json:"permission_decision,omitempty"`
	NonExecutionKind string              `json:"non_execution_kind,omitempty"` // user-rejected, permission-rule, …
}

// PermissionDecision is the verdict on one call.
type PermissionDecision struct {
	Decision   string `json:"decision"` // accept, reject
	Source     string `json:"source"`   // config, user_temporary, user_reject, …
	ReasonType string `json:"reason_type,omitempty"`
}

// StreamEvent is one event of the model's stream, passed on.
type StreamEvent struct {
	Type            string          `json:"type"` // stream_event
	Event           json.RawMessage `json:"event"`
	SessionID       string          `json:"session_id"`
	ParentToolUseID *string         `json:"parent_tool_use_id"`
	AgentID         string          `json:"agent_id,omitempty"`
	UUID            string          `json:"uuid"`
	TTFTMS          *int64          `json:"ttft_ms,omitempty"` // on message_start
	APIMessageID    string          `json:"api_message_id,omitempty"`
}
