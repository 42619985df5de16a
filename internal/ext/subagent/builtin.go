package subagent

// Names of the built-in agents.
const (
	General = "general-purpose"
	Explore = "Explore"
	Plan    = "Plan"
)

const report = `
You work on a task that another agent gave you, and only your last message goes back to it. So let that message stand on its own: what you found or did, with file paths and line numbers, what you could not settle, and nothing about how you went about it. Do not ask questions; where the task leaves something open, choose, and say what you chose.`

// looking are the tools of agents that change nothing.
var looking = [...]string{"Read", "Glob", "Grep", "Bash", "WebFetch", "WebSearch", "ToolSearch"}

// Builtin returns the agents that are always there.
func Builtin() []Definition {
	return []Definition{
		{
			Name: General, Source: "builtin",
			Description: "Takes on a task of several steps: looks things up in many places, works things out, changes files. Use it when a search may need several tries, or when a piece of work is independent of yours.",
			Prompt:      "You are an agent for software work: you search, read, reason, run commands and change files as the task needs." + report,
		},
		{
			Name: Explore, Source: "builtin", Tools: looking[:], OneShot: true, Bare: true,
			Description: "Finds its way through a code base without changing anything: where something is, how something works, what depends on what. Say how thorough it should be: quick, medium or very thorough.",
			Prompt:      "You explore a code base. You change nothing: no file is written, and commands only look. Search broadly first, with several searches side by side, then read the parts that matter." + report,
		},
		{
			Name: Plan, Source: "builtin", Tools: looking[:], OneShot: true, Bare: true,
			Description: "Works out how a change should be made before anyone makes it: reads the code and comes back with the steps, the files they touch and the risks. It changes nothing.",
			Prompt:      "You plan a change to a code base. You change nothing: no file is written, and commands only look. Read what the change will touch and what depends on it. Come back with the steps in order, the files and functions each one concerns, how to check the result, and what could go wrong." + report,
		},
	}
}
