package recall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

const file = `{"type":"user","timestamp":"t1","message":{"role":"user","content":"Please keep the PORT at 7."}}
not json
{"type":"assistant","timestamp":"t2","message":{"role":"assistant","content":[{"type":"text","text":"The port is 7, as you wish."},{"type":"tool_use","id":"a","name":"Bash","input":{"command":"nc port"}}]}}
{"type":"user","timestamp":"t3","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"listening on port 7"}]}}
{"type":"assistant","timestamp":"t4","message":{"role":"assistant","content":[{"type":"tool_use","id":"b","name":"SearchConversation","input":{"query":"port"}}]}}
{"type":"user","isMeta":true,"timestamp":"t5","message":{"role":"user","content":"a note on the port"}}
{"type":"system","content":"port"}
{"type":"user","timestamp":"t6","message":{"role":"user","content":[{"type":"te`

func TestSearch(t *testing.T) {
	t.Parallel()
	all := []Match{
		{"t1", "user", "Please keep the PORT at 7."}, {"t2", "assistant", "The port is 7, as you wish."},
		{"t2", "call of Bash", `{"command":"nc port"}`}, {"t3", "result", "listening on port 7"}, {"t5", "note", "a note on the port"},
	}
	for name, tc := range map[string]struct {
		q     Query
		want  []Match
		total int
	}{
		"word":      {Query{Text: "port"}, all, 5},
		"words":     {Query{Text: "7 PORT"}, []Match{all[0], all[1], all[3]}, 3},
		"user":      {Query{Text: "port", Role: "user"}, []Match{all[0], all[4]}, 2},
		"tool":      {Query{Text: "port", Role: "tool"}, []Match{all[2], all[3]}, 2},
		"newest":    {Query{Text: "port", Max: 1}, all[4:], 5},
		"regexp":    {Query{Text: `port (is|at) \d`, Regexp: true}, []Match{all[1]}, 1},
		"nothing":   {Query{Text: "starboard"}, nil, 0},
		"too large": {Query{Text: "port", Max: 1 << 40}, all, 5},
	} {
		got, total, err := Search(t.Context(), strings.NewReader(file), tc.q)
		if d := cmp.Diff(tc.want, got); err != nil || total != tc.total || d != "" {
			t.Errorf("%s: %d in all, %v: %s", name, total, err, d)
		}
	}
}

func TestLongLinesAndTexts(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	line := func(text string) {
		raw, _ := json.Marshal(map[string]any{"type": "user", "message": map[string]string{"content": text}})
		b.Write(append(raw, '\n'))
	}
	line("needle " + strings.Repeat("x", maxLine))
	line(strings.Repeat("ä", 5000) + " needle " + strings.Repeat("ö", 5000))
	for i := range 200 {
		line(fmt.Sprint("needle ", i))
	}
	got, total, err := Search(t.Context(), strings.NewReader(b.String()), Query{Text: "needle", Max: 500})
	if err != nil || total != 201 || len(got) != most || got[most-1].Text != "needle 199" {
		t.Errorf("%d of %d, %v", len(got), total, err)
	}
	got, _, _ = Search(t.Context(), strings.NewReader(b.String()), Query{Text: `ä needle ö`, Regexp: true})
	if len(got) != 1 || len(got[0].Text) > maxExcerpt+20 || !utf8.ValidString(got[0].Text) || !strings.Contains(got[0].Text, "needle") {
		t.Errorf("got %+v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Search(ctx, strings.NewReader(file), Query{Text: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestTool(t *testing.T) {
	t.Parallel()
	x := New(func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(file)), nil })
	run := func(in string) string {
		if _, err := x.Inspect(json.RawMessage(in)); err != nil {
			return "error: " + err.Error()
		}
		r, err := x.Run(t.Context(), agent.Call{Input: json.RawMessage(in)})
		if err != nil {
			return "error: " + err.Error()
		}
		return agent.TextOf(r.Blocks)
	}
	for in, want := range map[string]string{
		`{"query":"port","role":"tool","max_results":1}`: "1 of 2 matches, the newest last:\n\n[result, t3]\nlistening on port 7\n",
		`{"query":"starboard"}`:                          "Nothing in this conversation matches.",
		`{"query":" "}`:                                  "error: the query is empty",
		`{"query":"(","regexp":true}`:                    "error: the query is no regular expression: error parsing regexp: missing closing ): `(`",
		`[]`:                                             "error: reading the input: json: cannot unmarshal array into Go value of type recall.input",
	} {
		if got := run(in); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
	gone := New(func() (io.ReadCloser, error) { return nil, errors.New("gone") })
	if _, err := gone.Run(t.Context(), agent.Call{Input: json.RawMessage(`{"query":"x"}`)}); err == nil {
		t.Error("no error")
	}
}

func FuzzSearch(f *testing.F) {
	f.Add(file, "port", false)
	f.Add(file, "İ(", true)
	f.Fuzz(func(t *testing.T, text, query string, re bool) {
		ms, total, err := Search(t.Context(), strings.NewReader(text), Query{Text: query, Regexp: re})
		if err == nil && len(ms) > total {
			t.Errorf("%d of %d", len(ms), total)
		}
	})
}
