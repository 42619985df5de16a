package shell

import (
	"fmt"
	"strings"
)

const bashSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{` +
	`"command":{"description":"The command line for bash","type":"string"},` +
	`"timeout":{"description":"Milliseconds after which the command is ended","type":"number"},` +
	`"description":{"description":"What the command is for, in a few plain words; shown to the person who approves it","type":"string"},` +
	`"run_in_background":{"description":"Return at once and let the command go on; its end is announced","type":"boolean"},` +
	`"dangerouslyDisableSandbox":{"description":"Run outside the sandbox. Only after the sandbox itself made the command fail; a person has to agree","type":"boolean"}},` +
	`"required":["command"],"additionalProperties":false}`

// description says what the model has to know to use Bash well.
func (b *bash) description() string {
	var s strings.Builder
	fmt.Fprintf(&s, `Runs a command line with bash and returns what it wrote, stdout and stderr together in the order it was written.

- Each call is a new shell. The working directory carries over to the next call while it stays inside the project; variables, functions and shell options do not.
- There is no terminal and nothing to read: standard input is empty, editors and pagers are switched off. Use flags that avoid questions (-y, --no-edit, -m).
- A call ends after %s unless timeout (in milliseconds, at most %d) says otherwise. `, brief(b.o.Timeout), b.o.MaxTimeout.Milliseconds())
	if b.o.Jobs.Start != nil {
		s.WriteString(`For servers, watchers and long builds set run_in_background instead of appending "&": you get the id of a task and the file its output goes to, and are told when it ends. Do not poll with sleep.
`)
	} else {
		s.WriteString("\n")
	}
	fmt.Fprintf(&s, `- More than %d characters of output are saved to a file, and you see the beginning, the end, and the path.
- Quote paths that hold blanks. Prefer absolute paths over cd.
- Join commands that depend on each other with &&; make separate calls for independent ones, so that they can run side by side.
- For reading, searching and changing files use the tools made for it; they are exact about bytes and need no quoting.
- Say in description what the command does, so that a person can decide about it.`, b.o.MaxText)
	return s.String()
}
