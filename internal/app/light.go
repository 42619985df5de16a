package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/policy"
	"github.com/seed-eb844fcb/cinch/internal/settings"
	"github.com/seed-eb844fcb/cinch/internal/transcript"
)

// What follows opens parts of an App for the commands that need no session.

// prepare makes an App that has read its settings and nothing more.
func prepare(ctx context.Context, o Options) (*App, error) {
	a := newApp(o)
	a.places()
	return a, a.readSettings(ctx)
}

// Settings returns the settings in force.
func Settings(ctx context.Context, o Options) (*settings.Value, error) {
	a, err := prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	return a.cfg().value, nil
}

// Policy returns the permission policy that a session would begin with.
func Policy(ctx context.Context, o Options) (*policy.Policy, error) {
	a, err := prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := a.judge(ctx); err != nil {
		return nil, err
	}
	return a.gate.Policy(), nil
}

// Store returns the place where sessions are kept.
func Store(o Options) transcript.Store {
	a := newApp(o)
	a.places()
	return transcript.NewStore(a.root)
}

// EditState changes the file of program state (MCP servers, trust).
func EditState(ctx context.Context, o Options, changes ...settings.Change) (file string, err error) {
	a := newApp(o)
	a.places()
	env := newEnvironment(o.Environ, nil)
	file = settings.StateFile(env.get)
	return file, settings.Editor{Root: a.root}.EditState(ctx, file, changes...)
}

// TestHooks runs the hooks of an event with an input of the caller's and
// writes which ones match, what they were given and what they said.
func TestHooks(ctx context.Context, o Options, event string, input json.RawMessage, w io.Writer) error {
	a, err := prepare(ctx, o)
	if err != nil {
		return err
	}
	defer a.Close()
	for _, step := range []func(context.Context) error{a.connect, a.judge, a.listen} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	fields := map[string]any{}
	if len(input) > 0 {
		if err := json.Unmarshal(input, &fields); err != nil {
			return fmt.Errorf("reading the input: %w", err)
		}
	}
	m := agent.Moment{Event: event, Fields: fields}
	for _, key := range []string{"tool_name", "source", "trigger", "reason", "notification_type", "agent_type", "error", "load_reason", "command_name", "mcp_server_name"} {
		if s, ok := fields[key].(string); ok {
			m.Match = s
			break
		}
	}
	if name, ok := fields["tool_name"].(string); ok {
		raw, err := json.Marshal(fields["tool_input"])
		if err != nil {
			return err
		}
		id, _ := fields["tool_use_id"].(string)
		c := agent.Call{ID: agent.CallID(id), Name: name, Input: raw}
		if cmd, ok := fields["tool_input"].(map[string]any)["command"].(string); ok {
			c.Effects.Subjects = []agent.Subject{{Kind: agent.SubjectCommand, Value: cmd}}
		}
		m.Call = &c
	}
	matching := a.hooks.Matching(m)
	fmt.Fprintf(w, "%d of %d hooks match %s", len(matching), len(a.hooks.Handlers()), event)
	if m.Match != "" {
		fmt.Fprintf(w, " (%s)", m.Match)
	}
	fmt.Fprintln(w)
	for _, h := range matching {
		fmt.Fprintf(w, "  %s: %s (%s)\n", h.Type, h.Name(), h.File)
	}
	if len(matching) == 0 {
		return nil
	}
	sent, err := a.hooks.Input(m)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "input: %s\n", sent)
	r := a.hooks.Run(ctx, m)
	say := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s: %s\n", name, strings.TrimSpace(value))
		}
	}
	if d := r.Decision; d != nil {
		say("decision", d.Verdict.String()+" by "+d.By)
		say("decision reason", d.Reason)
	}
	if r.Block {
		fmt.Fprintln(w, "blocks: yes")
	}
	if r.Halt {
		fmt.Fprintln(w, "ends the turn: yes")
	}
	say("reason", r.Reason)
	for _, c := range r.Context {
		say("context for the model", c)
	}
	for _, n := range r.Notes {
		say("note for the person", n)
	}
	if r.Input != nil {
		say("replaces the input by", string(r.Input))
	}
	if r.Output != nil {
		say("replaces the output by", string(r.Output))
	}
	if r.Decision == nil && !r.Block && !r.Halt && len(r.Context)+len(r.Notes) == 0 {
		fmt.Fprintln(w, "the hooks have no opinion")
	}
	return nil
}
