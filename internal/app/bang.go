package app

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/session"
	"github.com/seed-eb844fcb/cinch/internal/transcript"
	"github.com/seed-eb844fcb/cinch/internal/ui/frame"
)

// bang runs a command that a person typed behind "!": nobody is asked, since
// the person is who would be. What it was and what came of it joins the
// conversation, and the model answers unless the settings say otherwise.
func (a *App) bang(ctx context.Context, p agent.Prompt) (session.Expansion, error) {
	command := strings.TrimSpace(agent.TextOf(p.Blocks))
	tool := a.tools.Lookup("Bash")
	if tool == nil {
		return session.Expansion{}, fmt.Errorf("there is no shell in this session")
	}
	input, err := marshal(map[string]any{"command": command})
	if err != nil {
		return session.Expansion{}, err
	}
	effects, err := tool.Inspect(input)
	if err != nil {
		return session.Expansion{}, err
	}
	r, err := tool.Run(agent.WithCall(ctx, agent.CallID("typed-"+p.UUID)), agent.Call{ID: agent.CallID("typed-" + p.UUID), Name: "Bash", Input: input, Effects: effects, Progress: func(agent.Progress) {}})
	if err != nil {
		r = agent.Failed(err.Error())
	}
	text := fmt.Sprintf("The user ran this command:\n<bash-input>%s</bash-input>\n<bash-stdout>%s</bash-stdout>", command, agent.TextOf(r.Blocks))
	m := agent.Message{UUID: p.UUID, Role: agent.User, Origin: "human", Blocks: []agent.Block{&agent.Text{Text: text}}}
	if a.cfg().value.Bool(true, "respondToBashCommands") {
		return session.Expansion{Messages: []agent.Message{m}}, nil
	}
	quiet := agent.Prompt{UUID: frame.UUID(), Blocks: m.Blocks, Origin: "human", Quiet: true, Verbatim: true}
	return session.Expansion{Local: "! " + command + "\n" + agent.TextOf(r.Blocks)}, a.Session.Submit(ctx, quiet)
}

// ForkBefore makes a session that ends before a prompt of this one, which
// stays as it is, and returns its id.
func (a *App) ForkBefore(prompt string) (string, error) {
	if a.record == nil {
		return "", fmt.Errorf("this session is not kept, so there is nothing to go back to")
	}
	path, id := a.transcriptPath(), frame.UUID()
	return id, transcript.ForkBefore(path, filepath.Join(filepath.Dir(path), id+filepath.Ext(path)), prompt)
}
