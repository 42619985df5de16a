package print

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// A told session has happened already: it tells its events and notes what is
// submitted. It ends, or with stays goes on until its reader leaves.
type told struct {
	events    []agent.Body
	stays     bool
	refuses   error
	submitted []agent.Input
}

func (s *told) Submit(_ context.Context, in agent.Input) error {
	s.submitted = append(s.submitted, in)
	return s.refuses
}

func (s *told) Events(ctx context.Context, from uint64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for i, b := range s.events {
			if !yield(agent.Event{Seq: uint64(i), At: time.Unix(0, 0), Body: b}, nil) {
				return
			}
		}
		if s.stays {
			<-ctx.Done()
			yield(agent.Event{}, context.Cause(ctx))
		}
	}
}

func said(text string) agent.Said {
	return agent.Said{Model: "m", Message: agent.Message{ID: "msg", UUID: "u1", Role: agent.Assistant, Blocks: []agent.Block{&agent.Text{Text: text}}}}
}

func settled(text string) agent.Settled {
	return agent.Settled{Outcome: agent.Outcome{Subtype: "success", Reason: "completed", Stop: "end_turn", Text: text, Turns: 1}}
}

var uuid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)

func TestRun(t *testing.T) {
	t.Parallel()
	began := agent.Began{Info: agent.Info{Session: "S", Model: "m"}}
	failed := func(o agent.Outcome) []agent.Body { o.IsError = true; return []agent.Body{agent.Settled{Outcome: o}} }
	const usage = `{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0,"server_tool_use":{"web_search_requests":0,"web_fetch_requests":0},"service_tier":null,"cache_creation":{"ephemeral_1h_input_tokens":0,"ephemeral_5m_input_tokens":0}}`
	const result = `{"type":"result","subtype":"success","is_error":false,"api_error_status":null,"duration_ms":0,"duration_api_ms":0,"num_turns":1,"result":"answer","stop_reason":"end_turn","session_id":"S","total_cost_usd":0,"usage":` + usage + `,"modelUsage":{},"permission_denials":[],"terminal_reason":"completed","fast_mode_state":"off","uuid":"U"}`
	tests := []struct {
		name     string
		o        Options
		events   []agent.Body
		out, err string
		code     int
	}{
		{"text", Options{}, []agent.Body{began, said("answer"), settled("answer")}, "answer\n", "", 0},
		{"the last of two turns", Options{}, []agent.Body{began, settled("first"), began, settled("second")}, "second\n", "", 0},
		{"an empty answer", Options{}, []agent.Body{settled("")}, "\n", "", 0},
		{"a command's own output", Options{}, []agent.Body{began, agent.Local{Text: "spent 0"}, settled("")}, "spent 0\n", "", 0},
		{"notes go to stderr", Options{}, []agent.Body{agent.Noted{Level: "warning", Text: "disk\x1b[2J full"}, agent.Noted{Level: "info", Text: "no"}, settled("answer")}, "answer\n", `cinch: disk\x1b[2J full` + "\n", 0},
		{"a pipe gets the bytes", Options{}, []agent.Body{settled("\x1b[31mred")}, "\x1b[31mred\n", "", 0},
		{"a terminal is not steered", Options{Terminal: true}, []agent.Body{settled("\x1b[31mred\nb")}, `\x1b[31mred` + "\nb\n", "", 0},
		{"a failed request", Options{}, failed(agent.Outcome{Subtype: "success", Reason: "api_error", Text: "API Error: 500 broken", APIStatus: 500}), "API Error: 500 broken\n", "", 1},
		{"max turns", Options{}, failed(agent.Outcome{Subtype: "error_max_turns", Turns: 4, Errors: []string{"Reached maximum number of turns (3)"}}), "Error: Reached max turns (3)", "", 1},
		{"max turns on a terminal", Options{Terminal: true}, failed(agent.Outcome{Subtype: "error_max_turns", Turns: 4}), "Error: Reached max turns (3)\n", "", 1},
		{"budget", Options{Budget: 0.5}, failed(agent.Outcome{Subtype: "error_max_budget_usd", Errors: []string{"over"}}), "Error: Exceeded USD budget (0.5)", "", 1},
		{"other errors", Options{}, failed(agent.Outcome{Subtype: "error_during_execution", Errors: []string{"a", "b"}}), "Error: a\nError: b\n", "", 1},
		{"an error without words", Options{}, failed(agent.Outcome{Subtype: "error_during_execution"}), "Error: the run ended early (error_during_execution)\n", "", 1},
		{"an interrupt", Options{}, failed(agent.Outcome{Subtype: "error_during_execution", Reason: "aborted_tools", Errors: []string{"interrupted"}}), "", "cinch: Error: interrupted\n", 1},
		{"no answer", Options{}, []agent.Body{began}, "", "cinch: the session ended before there was an answer\n", 1},
		{"structured", Options{}, []agent.Body{agent.Settled{Outcome: agent.Outcome{Subtype: "success", Structured: []byte(`{"a":1}`)}}}, `{"a":1}` + "\n", "", 0},
		{"json", Options{Format: "json"}, []agent.Body{began, said("answer"), settled("answer")}, result + "\n", "", 0},
		{"json of everything", Options{Format: "json", Verbose: true}, []agent.Body{began, said("answer"), settled("answer")},
			`[{"type":"system","subtype":"init","cwd":"","session_id":"S","tools":[],"mcp_servers":[],"model":"m","permissionMode":"","slash_commands":[],"apiKeySource":"none","claude_code_version":"","output_style":"default","agents":[],"skills":[],"plugins":[],"analytics_disabled":true,"uuid":"U","sandbox_enabled":false,"fast_mode_state":"off"},` +
				`{"type":"assistant","message":{"id":"msg","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"answer"}],"stop_reason":null,"stop_sequence":null,"usage":` + usage + `},"parent_tool_use_id":null,"session_id":"S","uuid":"u1","timestamp":"1970-01-01T00:00:00.000Z"},` + result + "]\n", "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			tt.o.Out, tt.o.Err, tt.o.Prompt = &out, &errs, []agent.Block{&agent.Text{Text: "hi"}}
			code := Run(t.Context(), &told{events: tt.events}, tt.o)
			if got := uuid.ReplaceAllString(out.String(), "U"); got != tt.out || errs.String() != tt.err || code != tt.code {
				t.Errorf("got  %d %q %q\nwant %d %q %q", code, got, errs.String(), tt.code, tt.out, tt.err)
			}
		})
	}
}

func TestNobodyIsAsked(t *testing.T) {
	t.Parallel()
	prompt := []agent.Block{&agent.Text{Text: "hi"}}
	s := &told{events: []agent.Body{
		agent.Asked{Question: agent.Question{ID: "q1", Kind: agent.AskPermission}},
		agent.Asked{Question: agent.Question{ID: "q2", Kind: agent.AskElicit}},
		agent.Asked{Question: agent.Question{ID: "q3", Kind: agent.AskMCP, OneWay: true}},
		settled("x"),
	}}
	var out, errs bytes.Buffer
	Run(t.Context(), s, Options{Prompt: prompt, Out: &out, Err: &errs})
	want := []agent.Input{
		agent.Prompt{Blocks: prompt},
		agent.Finish{},
		agent.Answer{ID: "q1", Err: agent.ErrNoOne.Error(), Decision: agent.Decision{Verdict: agent.Deny, NoOne: true}},
		agent.Answer{ID: "q2", Err: agent.ErrNoOne.Error()},
	}
	if !reflect.DeepEqual(s.submitted, want) {
		t.Errorf("got  %#v\nwant %#v", s.submitted, want)
	}
}

func TestNoPromptOnlyFinishes(t *testing.T) {
	t.Parallel()
	s := &told{}
	var out, errs bytes.Buffer
	if code := Run(t.Context(), s, Options{Out: &out, Err: &errs}); code != 0 || out.Len()+errs.Len() > 0 {
		t.Errorf("got %d %q %q, want 0 and silence", code, out.String(), errs.String())
	}
	if want := []agent.Input{agent.Finish{}}; !reflect.DeepEqual(s.submitted, want) {
		t.Errorf("got %#v, want %#v", s.submitted, want)
	}
}

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// A reader that went away stops the session and fails the run.
func TestClosedOut(t *testing.T) {
	t.Parallel()
	s := &told{events: []agent.Body{settled("x")}}
	var errs bytes.Buffer
	if code := Run(t.Context(), s, Options{Out: closed{}, Err: &errs}); code != 1 {
		t.Errorf("got %d, want 1", code)
	}
	if _, ok := s.submitted[len(s.submitted)-1].(agent.Stop); !ok || !strings.Contains(errs.String(), "broken pipe") {
		t.Errorf("got %#v, %q; want a stop and the reason", s.submitted, errs.String())
	}
}

// An answer that was there is printed even if the session breaks off later.
func TestEndOfContext(t *testing.T) {
	t.Parallel()
	for _, events := range [][]agent.Body{{settled("kept")}, nil} {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := &told{events: events, stays: true}
		var out, errs bytes.Buffer
		time.AfterFunc(10*time.Millisecond, func() { cancel(errors.New("terminated")) })
		code := Run(ctx, s, Options{Prompt: []agent.Block{}, Out: &out, Err: &errs})
		want := ""
		if events != nil {
			want = "kept\n"
		}
		if code != 1 || out.String() != want || errs.String() != "cinch: terminated\n" {
			t.Errorf("got %d %q %q", code, out.String(), errs.String())
		}
	}
}

func TestRefusedPrompt(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	code := Run(t.Context(), &told{refuses: errors.New("over")}, Options{Prompt: []agent.Block{}, Out: &out, Err: &errs})
	if code != 1 || errs.String() != "cinch: over\n" {
		t.Errorf("got %d %q", code, errs.String())
	}
}
