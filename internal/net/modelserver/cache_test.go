package modelserver

import (
	"fmt"
	"strings"
	"testing"
)

// ask is a request with one system block and the given texts, marked where a
// text starts with "*" (5 minutes) or "**" (1 hour).
func ask(t *testing.T, model, thinking string, texts ...string) *Request {
	t.Helper()
	var blocks []string
	for _, s := range texts {
		mark := ""
		if rest, ok := strings.CutPrefix(s, "**"); ok {
			s, mark = rest, `,"cache_control":{"type":"ephemeral","ttl":"1h"}`
		} else if rest, ok := strings.CutPrefix(s, "*"); ok {
			s, mark = rest, `,"cache_control":{"type":"ephemeral"}`
		}
		// 40 characters without the mark: 10 tokens.
		blocks = append(blocks, fmt.Sprintf(`{"text":%q,"type":"text"%s}`, fmt.Sprintf("%-15s", s), mark))
	}
	r, err := ParseRequest([]byte(`{"model":"` + model + `","max_tokens":1,"thinking":{"type":"` + thinking + `"},"messages":[{"role":"user","content":[` + strings.Join(blocks, ",") + `]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCache(t *testing.T) {
	t.Parallel()
	many := func(n int, last string) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprint(i))
		}
		return append(out, last)
	}
	tests := []struct {
		name string
		min  int
		asks []*Request
		want []Usage
	}{
		{"no marks", 0, []*Request{ask(t, "m", "", "a", "b"), ask(t, "m", "", "a", "b")}, []Usage{{In: 20}, {In: 20}}},
		{"the mark moves on", 0, []*Request{ask(t, "m", "", "a", "*b"), ask(t, "m", "", "a", "b", "c", "*d"), ask(t, "m", "", "a", "b", "c", "*d", "e")},
			[]Usage{{Write5m: 20}, {Read: 20, Write5m: 20}, {Read: 40, In: 10}}},
		{"a changed byte", 0, []*Request{ask(t, "m", "", "a", "*b"), ask(t, "m", "", "x", "*b")}, []Usage{{Write5m: 20}, {Write5m: 20}}},
		{"another model", 0, []*Request{ask(t, "m", "", "*a"), ask(t, "n", "", "*a")}, []Usage{{Write5m: 10}, {Write5m: 10}}},
		{"other thinking", 0, []*Request{ask(t, "m", "", "*a"), ask(t, "m", "adaptive", "*a")}, []Usage{{Write5m: 10}, {Write5m: 10}}},
		{"two lives", 0, []*Request{ask(t, "m", "", "**a", "b", "*c", "d")}, []Usage{{Write1h: 10, Write5m: 20, In: 10}}},
		{"20 blocks back", 0, []*Request{ask(t, "m", "", "*0"), ask(t, "m", "", many(19, "*z")...)}, []Usage{{Write5m: 10}, {Read: 10, Write5m: 190}}},
		{"21 blocks back", 0, []*Request{ask(t, "m", "", "*0"), ask(t, "m", "", many(20, "*z")...)}, []Usage{{Write5m: 10}, {Write5m: 210}}},
		{"too small", 15, []*Request{ask(t, "m", "", "*a"), ask(t, "m", "", "*a"), ask(t, "m", "", "a", "*b"), ask(t, "m", "", "a", "*b")}, []Usage{{In: 10}, {In: 10}, {Write5m: 20}, {Read: 20}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := cache{min: tt.min}
			for i, r := range tt.asks {
				p := c.plan(r)
				if p.usage != tt.want[i] {
					t.Errorf("request %d: got %+v, want %+v", i, p.usage, tt.want[i])
				}
				c.commit(p)
			}
		})
	}
}

// A string and an array with one text are the same to the cache, and so are
// blocks with other marks.
func TestCacheForms(t *testing.T) {
	t.Parallel()
	var c cache
	for i, body := range []string{
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hello","cache_control":{"type":"ephemeral"}}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":"hello"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":"hello"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"x"}],"cache_control":{"type":"ephemeral"}}]}]}`,
	} {
		r, err := ParseRequest([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		p := c.plan(r)
		if want := []Usage{{Write5m: 8}, {Read: 8, Write5m: 20}, {Read: 28}}[i]; p.usage != want {
			t.Errorf("request %d: got %+v, want %+v", i, p.usage, want)
		}
		c.commit(p)
	}
}

func TestExtends(t *testing.T) {
	t.Parallel()
	old := ask(t, "m", "", "a", "*b", "c")
	for want, r := range map[string]*Request{
		"": ask(t, "m", "", "a", "b", "x", "*d"),
		"messages.0.content.1 is not what it was (it is messages.0.content.1 now)": ask(t, "m", "", "a", "*x"),
		"messages.0.content.1 is gone":                                             ask(t, "m", "", "a"),
	} {
		got := ""
		if err := r.Extends(old); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
