package stream

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

func TestLines(t *testing.T) {
	t.Parallel()
	long := `"` + strings.Repeat("x", 200<<10) + `"`
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"two", "{}\n[]\n", []string{"{}", "[]"}},
		{"carriage returns and blanks", "\r\n{}\r\n\n  \n[]\r\n", []string{"{}", "[]"}},
		{"no newline at the end", "{}\n[1", []string{"{}", "[1"}},
		{"a line separator is no line end", "\"a\u2028b\"\n", []string{"\"a\u2028b\""}},
		{"longer than the buffer", long + "\n1\n" + long, []string{long, "1", long}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			var kept [][]byte
			err := lines(strings.NewReader(tt.in), func(l []byte) error { kept = append(kept, l); return nil })
			for _, l := range kept { // they are ours: reading on must not change them
				got = append(got, string(l))
			}
			if err != nil || strings.Join(got, "|") != strings.Join(tt.want, "|") {
				t.Errorf("got %.80q %v, want %.80q", got, err, tt.want)
			}
		})
	}
	stop := errors.New("stop")
	if err := lines(strings.NewReader("1\n2\n"), func([]byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v, want the error of the reader", err)
	}
}

func TestPermission(t *testing.T) {
	t.Parallel()
	q := agent.Question{Call: agent.Call{Input: json.RawMessage(`{"n":9007199254740992,"a":"<"}`)}}
	for _, tt := range []struct {
		name    string
		answer  agent.Answer
		verdict agent.Verdict
		input   string
	}{
		{"yes", agent.Answer{Payload: json.RawMessage(`{"behavior":"allow"}`)}, agent.Allow, ""},
		{"yes, the same input", agent.Answer{Payload: json.RawMessage(`{"behavior":"allow","updatedInput":{"a":"\u003c","n":9007199254740992}}`)}, agent.Allow, ""},
		{"yes, another input", agent.Answer{Payload: json.RawMessage(`{"behavior":"allow","updatedInput":{"a":">"}}`)}, agent.Allow, `{"a":">"}`},
		{"yes, one more than a float can tell", agent.Answer{Payload: json.RawMessage(`{"behavior":"allow","updatedInput":{"n":9007199254740993,"a":"<"}}`)}, agent.Allow, `{"n":9007199254740993,"a":"<"}`},
		{"no", agent.Answer{Payload: json.RawMessage(`{"behavior":"deny","message":"never"}`)}, agent.Deny, ""},
		{"another word", agent.Answer{Payload: json.RawMessage(`{"behavior":"Allow"}`)}, agent.Deny, ""},
		{"no object", agent.Answer{Payload: json.RawMessage(`"allow"`)}, agent.Deny, ""},
		{"nothing", agent.Answer{}, agent.Deny, ""},
		{"an error", agent.Answer{Err: "broke", Payload: json.RawMessage(`{"behavior":"allow"}`)}, agent.Deny, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := permission(q, tt.answer)
			if d.Verdict != tt.verdict || string(d.Input) != tt.input {
				t.Errorf("got %s %s, want %s %s", d.Verdict, d.Input, tt.verdict, tt.input)
			}
			if d.Verdict == agent.Deny && d.Reason == "" {
				t.Error("a refusal without a reason")
			}
		})
	}
}

// A sink is a session that takes everything.
type sink struct{}

func (sink) Submit(context.Context, agent.Input) error { return nil }

func (sink) Events(context.Context, uint64) iter.Seq2[agent.Event, error] {
	return func(func(agent.Event, error) bool) {}
}

// FuzzTake: whatever a host sends, the only error is that it is no JSON object.
func FuzzTake(f *testing.F) {
	for _, s := range []string{
		`{"type":"user","message":{"role":"user","content":"hi"}}`,
		`{"type":"user","message":{"content":[{"type":"image"},null,1]}}`,
		`{"type":"control_request","request_id":"1","request":{"subtype":"interrupt"}}`,
		`{"type":"control_response","response":{"subtype":"success","request_id":"p","response":{"behavior":"allow"}}}`,
		`{"type":"control_cancel_request","request_id":"1"}`, `[]`, `{`, `null`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var errs strings.Builder
		h := &host{
			s: sink{}, o: Options{Err: &errs}, seen: map[string]bool{}, dropped: map[string]bool{},
			asked: map[string]agent.Question{"p": {ID: "p", Kind: agent.AskPermission}, "m": {ID: "m", Kind: agent.AskMCP}},
		}
		if err := h.take(t.Context(), line); err != nil && !errors.Is(err, errJunk) {
			t.Fatal(err)
		}
	})
}
