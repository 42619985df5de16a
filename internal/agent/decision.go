package agent

import "encoding/json"

// A Verdict is the answer to "may this run?". The zero value asks.
type Verdict uint8

const (
	Ask Verdict = iota
	Allow
	Deny
	Defer // end the run and let the host decide; print mode only
)

func (v Verdict) String() string {
	switch v {
	case Allow:
		return "allow"
	case Deny:
		return "deny"
	case Defer:
		return "defer"
	}
	return "ask"
}

// A Mode is a permission mode.
type Mode string

const (
	ModeDefault     Mode = "default"
	ModeAcceptEdits Mode = "acceptEdits"
	ModePlan        Mode = "plan"
	ModeAuto        Mode = "auto"
	ModeDontAsk     Mode = "dontAsk"
	ModeBypass      Mode = "bypassPermissions"
)

// ParseMode returns the mode s names; "manual" is default. ok is false for any other word.
func ParseMode(s string) (m Mode, ok bool) {
	switch m := Mode(s); m {
	case ModeDefault, ModeAcceptEdits, ModePlan, ModeAuto, ModeDontAsk, ModeBypass:
		return m, true
	case "manual":
		return ModeDefault, true
	}
	return ModeDefault, false
}

// A Why classifies what settled a Decision. The values are the
// decision_reason_type words of the SDK's can_use_tool request.
type Why string

const (
	WhyRule       Why = "rule"
	WhyMode       Why = "mode"
	WhyParts      Why = "subcommandResults"
	WhyPrompt     Why = "permissionPromptTool"
	WhyHook       Why = "hook"
	WhyAsync      Why = "asyncAgent"
	WhySandbox    Why = "sandboxOverride"
	WhyDir        Why = "workingDir"
	WhySafety     Why = "safetyCheck"
	WhyClassifier Why = "classifier"
	WhyUser       Why = "user"
	WhyOther      Why = "other"
)

// A Decision is a verdict and where it came from.
type Decision struct {
	Verdict Verdict
	Why     Why
	// By names the source in full: "hook:lint", "rule:project:Bash(npm test *)", "mode:plan", "user".
	By string
	// Reason is shown to the model on Deny and to the person on Ask.
	Reason string
	// Input, if not nil, replaces the call's input; Inspect runs again.
	Input json.RawMessage
	// Interrupt ends the turn after a Deny.
	Interrupt bool
	// Updates are permission changes that come with the answer.
	Updates []PermissionUpdate
	// NoOne says that nobody could be asked.
	NoOne bool
	// Suggest are the smallest changes that would make this call need no question.
	Suggest []PermissionUpdate
	// Blocked is the path that made the question necessary, if it was a path.
	Blocked string
	// Warn holds what a person must see before answering: escapes made
	// visible, targets resolved, what is written, reached or left.
	Warn []string
	// Context is text for the model that comes with the decision (hooks).
	Context []string
}

// A PermissionUpdate changes rules, mode or directories. The JSON form is
// the SDK's PermissionUpdate.
type PermissionUpdate struct {
	Type        string     `json:"type"` // addRules, replaceRules, removeRules, setMode, addDirectories, removeDirectories
	Rules       []RuleText `json:"rules,omitempty"`
	Behavior    string     `json:"behavior,omitempty"` // allow, deny, ask
	Mode        Mode       `json:"mode,omitempty"`
	Directories []string   `json:"directories,omitempty"`
	Destination string     `json:"destination"` // userSettings, projectSettings, localSettings, session, cliArg
}

// A RuleText is a permission rule in two parts: Tool(Content).
type RuleText struct {
	Tool    string `json:"toolName"`
	Content string `json:"ruleContent,omitempty"`
}

// String returns the rule as settings files write it.
func (r RuleText) String() string {
	if r.Content == "" {
		return r.Tool
	}
	return r.Tool + "(" + r.Content + ")"
}
