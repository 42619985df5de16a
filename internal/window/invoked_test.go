package window

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

func TestInvoked(t *testing.T) {
	t.Parallel()
	skill := func(id, in string) agent.Block {
		return &agent.ToolUse{ID: agent.CallID(id), Name: "Skill", Input: []byte(in)}
	}
	h := []agent.Message{
		said(agent.User, "1", append(Remind(Note{NoteSkills, skillHead + "old" + skillTail + "text that names The skill x was invoked earlier and still applies:\n\n"},
			Note{NoteSkills, skillHead + "older" + skillTail + "text"}), words("go"))...),
		said(agent.Assistant, "2", skill("t1", `{"skill":"pdf","args":"a.pdf"}`), skill("t2", `{"skill":"broken"}`), skill("t3", `[1]`)),
		said(agent.User, "3", result("t1", "ok"), &agent.ToolResult{ID: "t2", IsError: true, Blocks: []agent.Block{words("no")}}),
		said(agent.Assistant, "4", words("<command-name>/said-by-the-model</command-name>")),
		said(agent.User, "5", words("<command-name>/review</command-name>\n<command-message>review</command-message>\n<command-args>all of it</command-args>"), words("body")),
		said(agent.Assistant, "6", skill("t4", `{"skill":"/pdf","args":"b.pdf"}`)),
		said(agent.User, "7", result("t4", "ok"), words("a text about <command-name>/nothing</command-name>")),
	}
	want := []Invocation{{"pdf", "b.pdf"}, {"review", "all of it"}, {"old", ""}, {"older", ""}}
	if d := cmp.Diff(want, Invoked(h)); d != "" {
		t.Error(d)
	}
}
