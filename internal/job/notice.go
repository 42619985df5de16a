package job

import (
	"crypto/rand"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// Notice returns the text that tells the model how t ended. The tags are
// those that third-party readers of session files look for; what stands
// between them is escaped, so that a summary cannot close them.
func Notice(t agent.Task) string {
	status := t.Status
	if status == Killed {
		status = "stopped"
	}
	var b strings.Builder
	b.WriteString("<task-notification>\n")
	tag(&b, "task-id", t.ID)
	tag(&b, "tool-use-id", string(t.Call))
	tag(&b, "output-file", t.Output)
	tag(&b, "status", status)
	tag(&b, "summary", t.Summary)
	tag(&b, "error", t.Err)
	b.WriteString("</task-notification>")
	return b.String()
}

func tag(b *strings.Builder, name, s string) {
	if s == "" {
		return
	}
	b.WriteString("<" + name + ">" + escape(s) + "</" + name + ">\n")
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// Prompt returns the input that puts the notice of t before the model: it
// joins the running turn, or starts one.
func Prompt(t agent.Task) agent.Prompt {
	return agent.Prompt{Origin: "task-notification", Verbatim: true,
		Blocks: []agent.Block{&agent.Text{Text: Notice(t)}}}
}

// randomID returns nine characters: a letter for the type of the job, then a
// random word.
func randomID(kind string) string {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyz"
	var raw [8]byte
	_, _ = rand.Read(raw[:]) // documented never to fail
	id := []byte{'b'}
	if kind == Agent {
		id[0] = 'a'
	}
	for _, c := range raw {
		id = append(id, letters[int(c)%len(letters)])
	}
	return string(id)
}
