package frame

import (
	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/sdkwire"
)

// Commands returns the slash commands as frames list them; never nil.
func Commands(list []agent.CommandInfo) []sdkwire.Command {
	out := make([]sdkwire.Command, 0, len(list))
	for _, c := range list {
		out = append(out, sdkwire.Command{Name: c.Name, Description: c.Description, ArgumentHint: c.Hint, Aliases: c.Aliases, Builtin: c.Builtin})
	}
	return out
}
