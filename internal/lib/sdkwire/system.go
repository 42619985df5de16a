package sdkwire

import "encoding/json"

// Init opens a turn: type system, subtype init.
type Init struct {
	Type                  string          `json:"type"`
	Subtype               string          `json:"subtype"`
	Cwd                   string          `json:"cwd"`
	SessionID             string          `json:"session_id"`
	Tools                 []string        `json:"tools"`
	MCPServers            []Server        `json:"mcp_servers"`
	Model                 string          `json:"model"`
	PermissionMode        string          `json:"permissionMode"`
	SlashCommands         []string        `json:"slash_commands"`
	APIKeySource          string          `json:"apiKeySource"`
	ClaudeCodeVersion     string          `json:"claude_code_version"`
	OutputStyle           string          `json:"output_style"`
	Agents                []string        `json:"agents"`
	Skills                []string        `json:"skills"`
	Plugins               []Plugin        `json:"plugins"`
	Capabilities          []string        `json:"capabilities,omitempty"`
	AnalyticsDisabled     bool            `json:"analytics_disabled"`
	UUID                  string          `json:"uuid"`
	SandboxEnabled        bool            `json:"sandbox_enabled"`
	MemoryPaths           *MemoryPaths    `json:"memory_paths,omitempty"`
	OriginalCwd           string          `json:"original_cwd,omitempty"`
	AdditionalDirectories []string        `json:"additional_directories,omitempty"`
	FastModeState         string          `json:"fast_mode_state"`
	PluginErrors          json.RawMessage `json:"plugin_errors,omitempty"`
	MCPServerErrors       json.RawMessage `json:"mcp_server_errors,omitempty"`
}

// Server is one MCP server.
type Server struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Source string `json:"source,omitempty"`
}

// Plugin is one loaded plugin.
type Plugin struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Source string `json:"source,omitempty"`
}

// MemoryPaths says where memory is kept.
type MemoryPaths struct {
	Auto string `json:"auto,omitempty"`
}

// Status is subtype status: what the session is busy with.
type Status struct {
	Type           string  `json:"type"`
	Subtype        string  `json:"subtype"`
	Status         *string `json:"status"` // requesting, compacting, or null
	PermissionMode string  `json:"permissionMode,omitempty"`
	CompactResult  string  `json:"compact_result,omitempty"` // success, failed
	CompactError   string  `json:"compact_error,omitempty"`
	SessionID      string  `json:"session_id"`
	UUID           string  `json:"uuid"`
}

// APIRetry is subtype api_retry: a request failed and will be made again.
type APIRetry struct {
	Type         string `json:"type"`
	Subtype      string `json:"subtype"`
	Attempt      int    `json:"attempt"` // from 1
	MaxRetries   int    `json:"max_retries"`
	RetryDelayMS int64  `json:"retry_delay_ms"`
	ErrorStatus  *int   `json:"error_status"`
	Error        string `json:"error"`
	SessionID    string `json:"session_id"`
	UUID         string `json:"uuid"`
}

// ModelFallback is subtype model_fallback.
type ModelFallback struct {
	Type          string `json:"type"`
	Subtype       string `json:"subtype"`
	Trigger       string `json:"trigger"`
	OriginalModel string `json:"original_model"`
	FallbackModel string `json:"fallback_model"`
	Content       string `json:"content"`
	SessionID     string `json:"session_id"`
	UUID          string `json:"uuid"`
}

// CompactBoundary is subtype compact_boundary.
type CompactBoundary struct {
	Type      string          `json:"type"`
	Subtype   string          `json:"subtype"`
	Metadata  CompactMetadata `json:"compact_metadata"`
	SessionID string          `json:"session_id"`
	UUID      string          `json:"uuid"`
}

// CompactMetadata measures a compaction; sizes are in tokens.
type CompactMetadata struct {
	Trigger    string `json:"trigger"` // auto, manual
	PreTokens  int    `json:"pre_tokens"`
	PostTokens int    `json:"post_tokens,omitempty"`
	DurationMS int64  `json:"duration_ms,omitempty"`
}

// Informational is subtype informational: a line for the person.
type Informational struct {
	Type                string `json:"type"`
	Subtype             string `json:"subtype"`
	Content             string `json:"content"`
	Level               string `json:"level"` // info, notice, warning, error
	ToolUseID           string `json:"tool_use_id,omitempty"`
	PreventContinuation bool   `json:"prevent_continuation,omitempty"`
	SessionID           string `json:"session_id"`
	UUID                string `json:"uuid"`
}

// LocalOutput is subtype local_command_output.
type LocalOutput struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	Content   string `json:"content"`
	SessionID string `json:"session_id"`
	UUID      string `json:"uuid"`
}

// PermissionDenied is subtype permission_denied: a rule refused a call.
type PermissionDenied struct {
	Type               string `json:"type"`
	Subtype            string `json:"subtype"`
	ToolName           string `json:"tool_name"`
	ToolUseID          string `json:"tool_use_id"`
	AgentID            string `json:"agent_id,omitempty"`
	DecisionReasonType string `json:"decision_reason_type,omitempty"`
	DecisionReason     string `json:"decision_reason,omitempty"`
	Message            string `json:"message"`
	SessionID          string `json:"session_id"`
	UUID               string `json:"uuid"`
}

// Hook is subtype hook_started, hook_progress or hook_response; the fields
// after HookEvent belong to the last two, ExitCode and Outcome to the last.
type Hook struct {
	Type      string  `json:"type"`
	Subtype   string  `json:"subtype"`
	HookID    string  `json:"hook_id"`
	HookName  string  `json:"hook_name"`
	HookEvent string  `json:"hook_event"`
	Output    *string `json:"output,omitempty"`
	Stdout    *string `json:"stdout,omitempty"`
	Stderr    *string `json:"stderr,omitempty"`
	ExitCode  *int    `json:"exit_code,omitempty"`
	Outcome   string  `json:"outcome,omitempty"`
	SessionID string  `json:"session_id"`
	UUID      string  `json:"uuid"`
}

// TaskUsage counts what a background task took.
type TaskUsage struct {
	TotalTokens int   `json:"total_tokens"`
	ToolUses    int   `json:"tool_uses"`
	DurationMS  int64 `json:"duration_ms"`
}

// TaskStarted is subtype task_started.
type TaskStarted struct {
	Type           string  `json:"type"`
	Subtype        string  `json:"subtype"`
	TaskID         string  `json:"task_id"`
	ToolUseID      *string `json:"tool_use_id,omitempty"`
	Description    string  `json:"description"`
	SubagentType   string  `json:"subagent_type,omitempty"`
	IsBackgrounded bool    `json:"is_backgrounded"`
	SpawnDepth     int     `json:"spawn_depth,omitempty"`
	TaskType       string  `json:"task_type,omitempty"` // local_bash, local_agent
	Prompt         string  `json:"prompt,omitempty"`
	SessionID      string  `json:"session_id"`
	UUID           string  `json:"uuid"`
}

// TaskProgress is subtype task_progress.
type TaskProgress struct {
	Type         string    `json:"type"`
	Subtype      string    `json:"subtype"`
	TaskID       string    `json:"task_id"`
	ToolUseID    *string   `json:"tool_use_id,omitempty"`
	Description  string    `json:"description"`
	LastToolName string    `json:"last_tool_name,omitempty"`
	Usage        TaskUsage `json:"usage"`
	Summary      string    `json:"summary,omitempty"`
	SessionID    string    `json:"session_id"`
	UUID         string    `json:"uuid"`
}

// TaskUpdated is subtype task_updated.
type TaskUpdated struct {
	Type      string    `json:"type"`
	Subtype   string    `json:"subtype"`
	TaskID    string    `json:"task_id"`
	Patch     TaskPatch `json:"patch"`
	SessionID string    `json:"session_id"`
	UUID      string    `json:"uuid"`
}

// TaskPatch is what changed about a task.
type TaskPatch struct {
	Status         string `json:"status,omitempty"`
	Description    string `json:"description,omitempty"`
	EndTime        int64  `json:"end_time,omitempty"` // milliseconds since 1970
	Error          string `json:"error,omitempty"`
	IsBackgrounded *bool  `json:"is_backgrounded,omitempty"`
}

// TaskNotification is subtype task_notification: a task ended.
type TaskNotification struct {
	Type       string     `json:"type"`
	Subtype    string     `json:"subtype"`
	TaskID     string     `json:"task_id"`
	ToolUseID  *string    `json:"tool_use_id,omitempty"`
	Status     string     `json:"status"` // completed, failed, stopped
	OutputFile string     `json:"output_file"`
	Summary    string     `json:"summary"`
	Usage      *TaskUsage `json:"usage,omitempty"`
	SessionID  string     `json:"session_id"`
	UUID       string     `json:"uuid"`
}

// BackgroundTasks is subtype background_tasks_changed: the tasks that run now.
type BackgroundTasks struct {
	Type      string           `json:"type"`
	Subtype   string           `json:"subtype"`
	Tasks     []BackgroundTask `json:"tasks"`
	SessionID string           `json:"session_id"`
	UUID      string           `json:"uuid"`
}

// BackgroundTask is one of them.
type BackgroundTask struct {
	TaskID      string `json:"task_id"`
	TaskType    string `json:"task_type"`
	Description string `json:"description"`
}

// SessionState is subtype session_state_changed, for hosts that ask for it.
type SessionState struct {
	Type        string `json:"type"`
	Subtype     string `json:"subtype"`
	State       string `json:"state"` // idle, running, requires_action
	SDKHostOnly bool   `json:"sdk_host_only"`
	SessionID   string `json:"session_id"`
	UUID        string `json:"uuid"`
}

// ToolProgress is news of a running call: type tool_progress.
type ToolProgress struct {
	Type            string  `json:"type"`
	ToolUseID       string  `json:"tool_use_id"`
	ToolName        string  `json:"tool_name"`
	ParentToolUseID *string `json:"parent_tool_use_id"`
	ElapsedSeconds  float64 `json:"elapsed_time_seconds"`
	SessionID       string  `json:"session_id"`
	UUID            string  `json:"uuid"`
}

// Lifecycle is the fate of a user message that has a uuid: type command_lifecycle.
type Lifecycle struct {
	Type        string `json:"type"`
	CommandUUID string `json:"command_uuid"`
	State       string `json:"state"` // queued, started, completed, cancelled
	SessionID   string `json:"session_id"`
	UUID        string `json:"uuid"`
}

// Reset says that the conversation starts anew: type conversation_reset.
type Reset struct {
	Type              string `json:"type"`
	NewConversationID string `json:"new_conversation_id"`
	SessionID         string `json:"session_id"`
	UUID              string `json:"uuid"`
}
