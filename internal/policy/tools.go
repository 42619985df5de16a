package policy

// Tools lists the built-in tools that rules can be about, whether a session
// offers them or not.
func Tools() []string {
	return []string{
		"Agent", "AskUserQuestion", "Bash", "BashOutput", "Edit", "EnterPlanMode", "ExitPlanMode", "Glob", "Grep", "KillBash", "KillShell",
		"ListMcpResourcesTool", "MultiEdit", "NotebookEdit", "NotebookRead", "Read", "ReadMcpResourceTool", "SandboxNetworkAccess",
		"SearchConversation", "SendMessage", "Skill", "StructuredOutput", "TaskCreate", "TaskGet", "TaskList", "TaskOutput", "TaskStop",
		"TaskUpdate", "TodoWrite", "ToolSearch", "WebFetch", "WebSearch", "Write",
	}
}
