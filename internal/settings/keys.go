package settings

import (
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/lib/jsonc"
)

// A form is what the value of a key must look like.
type form uint8

const (
	formAny form = iota
	formBool
	formInt
	formNumber
	formString
	formStrings // a list of strings
	formText    // a string or a list of strings
	formObject
	formObjects // a list of objects
	formEnv     // an object of strings, numbers and booleans
)

var formNames = [...]string{"anything", "true or false", "a whole number", "a number", "a string", "a list of strings",
	"a string or a list of strings", "an object", "a list of objects", "an object of strings"}

// A place says which layers may set a key.
type place uint8

const (
	anywhere    place = iota
	userManaged       // not the project's files
	notShared         // not the project's shared file
	managedOnly
	stateOnly // only .claude.json
)

// A spec is what is known of a key.
type spec struct {
	form  form
	place place
	words string // the only strings, separated by blanks
}

// specOf returns what is known of the top-level key name; ok is false for keys
// that are not known.
func specOf(name string) (spec, bool) {
	for _, g := range keys {
		for k := range strings.FieldsSeq(g.names) {
			if k == name {
				return g.spec, true
			}
		}
	}
	return spec{}, false
}

// keys lists the known keys by what is known of them. It is searched in
// order and never changed.
var keys = [...]struct {
	spec
	names string
}{
	{spec{form: formString}, "model agent advisorModel language outputStyle theme apiKeyHelper awsAuthRefresh awsCredentialExport gcpAuthRefresh otelHeadersHelper " +
		"autoMemoryDirectory plansDirectory prUrlTemplate minimumVersion workflowSizeGuideline $schema preferredNotifChannel feedbackSurveyId"},
	{spec{form: formString, words: "low medium high xhigh max"}, "effortLevel"},
	{spec{form: formString, words: "normal vim emacs"}, "editorMode"},
	{spec{form: formString, words: "bash powershell"}, "defaultShell"},
	{spec{form: formString, words: "default fullscreen"}, "tui"},
	{spec{form: formString, words: "default verbose focus"}, "viewMode"},
	{spec{form: formString, words: "classic readline"}, "keybindingFlavor"},
	{spec{form: formString, words: "latest stable"}, "autoUpdatesChannel"},
	{spec{form: formString, words: "claudeai console gateway"}, "forceLoginMethod"},
	{spec{form: formString, words: "in-process auto tmux iterm2"}, "teammateMode"},
	{spec{form: formString, words: "accept hold refuse"}, "crossSessionInbound"},
	{spec{form: formString, words: "disable"}, "disableAutoMode disableDeepLinkRegistration"},
	{spec{form: formString, place: userManaged, words: "60s 5m 10m never"}, "askUserQuestionTimeout dialogExpiry"},
	{spec{form: formString, place: userManaged}, "processWrapper"},
	{spec{form: formString, place: managedOnly}, "claudeMd forceLoginGatewayUrl pluginTrustMessage requiredMinimumVersion requiredMaximumVersion"},
	{spec{form: formString, place: managedOnly, words: "first-wins merge"}, "parentSettingsBehavior"},
	{spec{form: formText}, "forceLoginOrgUUID fallbackModel"},
	{spec{form: formStrings}, "availableModels claudeMdExcludes companyAnnouncements enabledMcpjsonServers disabledMcpjsonServers " +
		"allowedHttpHookUrls httpHookAllowedEnvVars sshHostAllowlist"},
	{spec{form: formStrings, place: managedOnly}, "allowedChannelPlugins pluginSuggestionMarketplaces"},
	{spec{form: formBool}, "enforceAvailableModels alwaysThinkingEnabled showThinkingSummaries switchModelsOnFlag fastMode fastModePerSessionOptIn ultracode " +
		"autoCompactEnabled autoMemoryEnabled fileCheckpointingEnabled verbose autoScrollEnabled wheelScrollAccelerationEnabled syntaxHighlightingDisabled " +
		"prefersReducedMotion promptSuggestionEnabled respectGitignore respondToBashCommands showClearContextOnPlanAccept showTurnDuration spinnerTipsEnabled " +
		"terminalProgressBarEnabled terminalTitleFromRename emojiCompletionEnabled axScreenReader includeCoAuthoredBy includeGitInstructions disableAllHooks " +
		"disableWorkflows enableWorkflows workflowKeywordTriggerEnabled disableBundledSkills disableSkillShellExecution enableAllProjectMcpServers " +
		"disableClaudeAiConnectors disableAgentView isolatePeerMachines skipWebFetchPreflight remoteControlAtStartup disableRemoteControl agentPushNotifEnabled " +
		"inputNeededNotifEnabled awaySummaryEnabled disableArtifact enableArtifact browserExternalPageTools disableBrowserExternalNavigation disableMobileSimulatorTools"},
	{spec{form: formBool, place: userManaged}, "skipAutoPermissionPrompt"},
	{spec{form: formBool, place: notShared}, "useAutoModeDuringPlan skipDangerousModePermissionPrompt syncClaudeAiSkills"},
	{spec{form: formBool, place: managedOnly}, "allowManagedPermissionRulesOnly allowManagedHooksOnly allowManagedMcpServersOnly allowAllClaudeAiMcps " +
		"disableCommandPluginSources channelsEnabled forceRemoteSettingsRefresh disableSideloadFlags wslInheritsWindowsSettings"},
	{spec{form: formInt}, "cleanupPeriodDays autoCompactWindow skillListingMaxDescChars"},
	{spec{form: formNumber}, "skillListingBudgetFraction feedbackSurveyRate"},
	{spec{form: formObject}, "permissions hooks sandbox attribution statusLine subagentStatusLine fileSuggestion spinnerTipsOverride spinnerVerbs voice " +
		"enabledPlugins extraKnownMarketplaces additionalMarketplaces skillOverrides modelOverrides worktree remote"},
	{spec{form: formObject, place: userManaged}, "autoMode vimInsertModeRemaps spellcheck pluginConfigs"},
	{spec{form: formObject, place: managedOnly}, "policyHelper"},
	{spec{form: formObjects}, "allowedMcpServers deniedMcpServers sshConfigs"},
	{spec{form: formObjects, place: userManaged}, "footerLinksRegexes"},
	{spec{form: formAny, place: managedOnly}, "strictKnownMarketplaces allowedMarketplaces blockedMarketplaces strictPluginOnlyCustomization"},
	{spec{form: formEnv}, "env"},
	{spec{form: formAny, place: stateOnly}, "autoConnectIde autoInstallIdeExtension diffTool externalEditorContext permissionExplainerEnabled"},
}

// allowed reports whether layer l may set a key of place p.
func (p place) allowed(l Layer) bool {
	switch p {
	case userManaged:
		return l == Managed || l == Flag || l == User
	case notShared:
		return l != Project
	case managedOnly:
		return l == Managed
	case stateOnly:
		return false
	}
	return true
}

func (p place) String() string {
	return [...]string{"", "only user and managed settings may set it", "the project's shared file may not set it",
		"only managed settings may set it", "it belongs into ~/.claude.json"}[p]
}

// fits reports whether n has the form f.
func (f form) fits(n *node) bool {
	all := func(k jsonc.Kind) bool {
		return n.kind == array && !slices.ContainsFunc(n.elements, func(e *node) bool { return e.kind != k })
	}
	switch f {
	case formBool:
		return n.kind == boolean
	case formInt:
		return n.kind == number && !strings.ContainsAny(n.text, ".eE")
	case formNumber:
		return n.kind == number
	case formString:
		return n.kind == text
	case formStrings:
		return all(text)
	case formText:
		return n.kind == text || all(text)
	case formObject, formEnv:
		return n.kind == object
	case formObjects:
		return all(object)
	}
	return true
}

// near returns the known key that name is most likely a slip of, or "".
func near(name string) string {
	best, at := "", 3
	for _, g := range keys {
		for k := range strings.FieldsSeq(g.names) {
			if strings.EqualFold(k, name) {
				return k
			}
			if d := distance(k, name, at); d < at {
				best, at = k, d
			}
		}
	}
	return best
}

// distance counts the changes that make b of a; limit and more are limit.
func distance(a, b string, limit int) int {
	if len(a) > len(b)+limit || len(b) > len(a)+limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			up := row[j+1]
			d := left
			if a[i] != b[j] {
				d = 1 + min(left, up, row[j])
			}
			row[j+1], left = d, up
		}
	}
	return min(row[len(b)], limit)
}
