package hook

// An EventKind is one event that hooks may listen to.
type EventKind struct {
	Name    string
	Summary string
	Matcher bool // hooks on it may say which of its moments they want
}

// Catalog lists every event, in the order in which a session comes to them.
func Catalog() []EventKind {
	list := []EventKind{
		{Name: "Setup", Summary: "A project is being set up"},
		{Name: "SessionStart", Summary: "A session begins or goes on"},
		{Name: "InstructionsLoaded", Summary: "An instruction file was read"},
		{Name: "UserPromptExpansion", Summary: "A command of the prompt is being expanded"},
		{Name: "UserPromptSubmit", Summary: "A prompt is about to be sent"},
		{Name: "PreToolUse", Summary: "A tool is about to run"},
		{Name: "PermissionRequest", Summary: "A call waits for a decision"},
		{Name: "PermissionDenied", Summary: "A call was not permitted"},
		{Name: "PostToolUse", Summary: "A tool has done its work"},
		{Name: "PostToolUseFailure", Summary: "A tool has failed"},
		{Name: "PostToolBatch", Summary: "All calls of one answer have ended"},
		{Name: "Notification", Summary: "Something wants the user's attention"},
		{Name: "MessageDisplay", Summary: "A message is about to be shown"},
		{Name: "SubagentStart", Summary: "A sub-agent begins"},
		{Name: "SubagentStop", Summary: "A sub-agent wants to end"},
		{Name: "TeammateIdle", Summary: "An agent of the team has nothing to do"},
		{Name: "TaskCreated", Summary: "A task was put on the list"},
		{Name: "TaskCompleted", Summary: "A task is about to count as done"},
		{Name: "Elicitation", Summary: "An MCP server asks the user"},
		{Name: "ElicitationResult", Summary: "The user has answered an MCP server"},
		{Name: "ConfigChange", Summary: "A settings file has changed"},
		{Name: "CwdChanged", Summary: "The working directory has changed"},
		{Name: "DirectoryAdded", Summary: "A working directory was added"},
		{Name: "FileChanged", Summary: "A file that is watched has changed"},
		{Name: "WorktreeCreate", Summary: "A worktree is being made"},
		{Name: "WorktreeRemove", Summary: "A worktree is being removed"},
		{Name: "PreCompact", Summary: "The conversation is about to be compacted"},
		{Name: "PostCompact", Summary: "The conversation was compacted"},
		{Name: "Stop", Summary: "The agent wants to end its turn"},
		{Name: "StopFailure", Summary: "A turn ended with an error"},
		{Name: "SessionEnd", Summary: "A session ends"},
	}
	for i, e := range list {
		list[i].Matcher = !unmatched[e.Name]
	}
	return list
}
