package compact

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

func msg(role agent.Role, blocks ...agent.Block) agent.Message {
	return agent.Message{Role: role, Blocks: blocks}.Encode()
}

func txt(s string) agent.Block { return &agent.Text{Text: s} }

func use(id string) agent.Block {
	return &agent.ToolUse{ID: agent.CallID(id), Name: "Bash", Input: json.RawMessage(`{"a":1}`)}
}

func res(id string, bs ...agent.Block) agent.Block {
	return &agent.ToolResult{ID: agent.CallID(id), Blocks: bs}
}

func img(data string) agent.Block { return &agent.Image{MediaType: "image/png", Data: data} }

func sick() []agent.Message {
	return []agent.Message{
		msg(agent.User, txt("look"), img("AA")),
		msg(agent.Assistant, &agent.Thinking{Text: "t", Signature: "s"}, &agent.Redacted{Data: "r"}, txt("ok"), use("1"), use("2")),
		msg(agent.User, res("1", txt("one"), img("BB")), res("2", &agent.ToolReference{Name: "X"}), txt("and")),
		msg(agent.Assistant, &agent.Opaque{Type: "server_tool_use", Raw: json.RawMessage(`{"type":"server_tool_use"}`)}, txt("end")),
	}
}

func TestRepair(t *testing.T) {
	t.Parallel()
	const (
		u0 = `user [{"type":"text","text":"look"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"}}]`
		a1 = `assistant [{"type":"thinking","thinking":"t","signature":"s"},{"type":"redacted_thinking","data":"r"},{"type":"text","text":"ok"},{"type":"tool_use","id":"1","name":"Bash","input":{"a":1}},{"type":"tool_use","id":"2","name":"Bash","input":{"a":1}}]`
		u2 = `user [{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"one"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"BB"}}]},{"type":"tool_result","tool_use_id":"2","content":[{"type":"tool_reference","tool_name":"X"}]},{"type":"text","text":"and"}]`
		a3 = `assistant [{"type":"server_tool_use"},{"type":"text","text":"end"}]`
	)
	for _, tc := range []struct {
		path, message string
		want          []string
		cuts          int
	}{
		{"messages.0.content.1.image.source.base64", "could not process image", []string{
			`user [{"type":"text","text":"look"},{"type":"text","text":"[an image (image/png) was taken out: the upstream refused it: could not process image]"}]`, a1, u2, a3}, 1},
		{"messages.2.content.0", "messages.2.content.0.content.1.image.source: bad", []string{u0, a1,
			`user [{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"one"},{"type":"text","text":"[an image (image/png) was taken out: the upstream refused it: messages.2.content.0.content.1.image.source: bad]"}]},{"type":"tool_result","tool_use_id":"2","content":[{"type":"tool_reference","tool_name":"X"}]},{"type":"text","text":"and"}]`, a3}, 1},
		{"messages.2.content.0.tool_result.content.0.text", "odd", []string{u0, a1,
			`user [{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"[A text was taken out: the upstream refused it: odd]"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"BB"}}]},{"type":"tool_result","tool_use_id":"2","content":[{"type":"tool_reference","tool_name":"X"}]},{"type":"text","text":"and"}]`, a3}, 1},
		{"messages.1.content.0", "invalid signature in thinking block", []string{u0,
			`assistant [{"type":"text","text":"ok"},{"type":"tool_use","id":"1","name":"Bash","input":{"a":1}},{"type":"tool_use","id":"2","name":"Bash","input":{"a":1}}]`, u2, a3}, 2},
		{"", "the signature of a thinking block is wrong", []string{u0,
			`assistant [{"type":"text","text":"ok"},{"type":"tool_use","id":"1","name":"Bash","input":{"a":1}},{"type":"tool_use","id":"2","name":"Bash","input":{"a":1}}]`, u2, a3}, 2},
		{"messages.1.content.3", "no", []string{u0,
			`assistant [{"type":"thinking","thinking":"t","signature":"s"},{"type":"redacted_thinking","data":"r"},{"type":"text","text":"ok"},{"type":"text","text":"[A call of Bash was taken out: the upstream refused it: no]"},{"type":"tool_use","id":"2","name":"Bash","input":{"a":1}}]`,
			`user [{"type":"tool_result","tool_use_id":"2","content":[{"type":"tool_reference","tool_name":"X"}]},{"type":"text","text":"and"}]`, a3}, 2},
		{"messages.2.content.1", "no", []string{u0, a1,
			`user [{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"one"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"BB"}}]},{"type":"tool_result","tool_use_id":"2","content":"[This result was taken out: the upstream refused it: no]"},{"type":"text","text":"and"}]`, a3}, 1},
		{"messages.3", "unexpected block", []string{u0, a1, u2,
			`assistant [{"type":"text","text":"[A block (server_tool_use) was taken out: the upstream refused it: unexpected block]"},{"type":"text","text":"end"}]`}, 1},
		{"", "Could not process image", []string{u0, a1,
			`user [{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"one"},{"type":"text","text":"[an image (image/png) was taken out: the upstream refused it: Could not process image]"}]},{"type":"tool_result","tool_use_id":"2","content":[{"type":"tool_reference","tool_name":"X"}]},{"type":"text","text":"and"}]`, a3}, 1},
		{"", "tool_reference X has no definition", []string{u0, a1,
			`user [{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"one"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"BB"}}]},{"type":"tool_result","tool_use_id":"2","content":"The definition of X is not there."},{"type":"text","text":"and"}]`, a3}, 1},
		{"messages.9.content.0", "nowhere", []string{u0, a1, u2, a3}, 0},
		{"messages.0.content.77", "nowhere", []string{u0, a1, u2, a3}, 0},
		{"max_tokens", "too big", []string{u0, a1, u2, a3}, 0},
	} {
		h := sick()
		out, cuts := Repair(h, tc.path, tc.message)
		if d := cmp.Diff(tc.want, wires(out)); d != "" {
			t.Errorf("%s (%s): %s", tc.path, tc.message, d)
		}
		if len(cuts) != tc.cuts {
			t.Errorf("%s (%s): cuts %+v", tc.path, tc.message, cuts)
		}
		if d := cmp.Diff(wires(sick()), wires(h)); d != "" {
			t.Errorf("%s: the input changed: %s", tc.path, d)
		}
	}
}

// Repairs come to an end, and so does a history of bad blocks.
func TestRepairsEnd(t *testing.T) {
	t.Parallel()
	c := New(Options{UUID: func() string { return "u" }})
	var h []agent.Message
	for range 20 {
		h = append(h, msg(agent.User, img("AA")), msg(agent.Assistant, txt("ok")))
	}
	n := 0
	for ; n < 30; n++ {
		out, ok := c.Recover(t.Context(), h, &agent.ModelError{Fault: agent.FaultBlock, Message: "could not process image"})
		if h = out.History; !ok {
			break
		}
	}
	if n != maxRepairs {
		t.Errorf("%d repairs", n)
	}
	c.Observe("m", agent.Usage{In: 1})
	if _, ok := c.Recover(t.Context(), h, &agent.ModelError{Fault: agent.FaultBlock, Message: "could not process image"}); !ok {
		t.Error("no repair after an answer came")
	}
	if _, ok := c.Recover(t.Context(), h, &agent.ModelError{Fault: agent.FaultAuth}); ok {
		t.Error("repaired a missing key")
	}
	if out, ok := c.Recover(t.Context(), []agent.Message{msg(agent.User, txt("hi"))}, &agent.ModelError{Fault: agent.FaultTooLarge}); ok || !strings.Contains(out.Note, "nothing left") {
		t.Errorf("got %q", out.Note)
	}
}

// Who switched compaction off is told, and nothing is taken from them.
func TestTooLongSwitchedOff(t *testing.T) {
	t.Parallel()
	for want, l := range map[string]Limits{
		"DISABLE_COMPACT": {Window: 200_000, Off: true},
		"Use /compact":    {Window: 200_000, Threshold: 167_000},
	} {
		c := New(Options{Limits: l, UUID: func() string { return "u" }})
		out, ok := c.Recover(t.Context(), work(), &agent.ModelError{Fault: agent.FaultTooLong})
		if ok || out.Changed || !strings.Contains(out.Note, want) {
			t.Errorf("got %v, %q", ok, out.Note)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	off := false
	env := func(kv ...string) func(string) string {
		return func(k string) string {
			for i := 0; i < len(kv); i += 2 {
				if kv[i] == k {
					return kv[i+1]
				}
			}
			return ""
		}
	}
	for name, tc := range map[string]struct {
		w    Wish
		want Limits
	}{
		"200K":            {Wish{Window: 200_000}, Limits{Window: 200_000, Threshold: 167_000, Output: 20_000, Auto: true}},
		"1M":              {Wish{Window: 1_000_000}, Limits{Window: 1_000_000, Threshold: 967_000, Output: 20_000, Auto: true}},
		"small":           {Wish{Window: 20_000}, Limits{Window: 20_000, Threshold: 16_000, Output: 4000, Auto: true}},
		"unknown":         {Wish{}, Limits{Output: 1000, Auto: true}},
		"setting":         {Wish{Window: 1_000_000, Setting: "500k"}, Limits{Window: 1_000_000, Threshold: 467_000, Output: 20_000, Auto: true}},
		"flag wins":       {Wish{Window: 1_000_000, Setting: "500k", Flag: "300"}, Limits{Window: 1_000_000, Threshold: 267_000, Output: 20_000, Auto: true}},
		"flag auto":       {Wish{Window: 1_000_000, Setting: "500k", Flag: "auto"}, Limits{Window: 1_000_000, Threshold: 467_000, Output: 20_000, Auto: true}},
		"env wins":        {Wish{Window: 1_000_000, Flag: "300", Env: env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "200000")}, Limits{Window: 1_000_000, Threshold: 167_000, Output: 20_000, Auto: true}},
		"capped":          {Wish{Window: 200_000, Setting: "1M"}, Limits{Window: 200_000, Threshold: 167_000, Output: 20_000, Auto: true}},
		"percent":         {Wish{Window: 200_000, Env: env("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "50")}, Limits{Window: 200_000, Threshold: 100_000, Output: 20_000, Auto: true}},
		"percent no rise": {Wish{Window: 200_000, Env: env("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "99")}, Limits{Window: 200_000, Threshold: 167_000, Output: 20_000, Auto: true}},
		"setting off":     {Wish{Window: 200_000, Enabled: &off}, Limits{Window: 200_000, Threshold: 167_000, Output: 20_000}},
		"auto off":        {Wish{Window: 200_000, Env: env("DISABLE_AUTO_COMPACT", "1")}, Limits{Window: 200_000, Threshold: 167_000, Output: 20_000}},
		"all off":         {Wish{Window: 200_000, Env: env("DISABLE_COMPACT", "true")}, Limits{Window: 200_000, Threshold: 167_000, Output: 20_000, Off: true}},
		"no 1M":           {Wish{Window: 1_000_000, Env: env("CLAUDE_CODE_DISABLE_1M_CONTEXT", "1")}, Limits{Window: 200_000, Threshold: 167_000, Output: 20_000, Auto: true}},
		"told window":     {Wish{Window: 200_000, Assumed: true, Env: env("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "100000")}, Limits{Window: 100_000, Threshold: 80_000, Output: 20_000, Auto: true}},
		"known window":    {Wish{Window: 200_000, Env: env("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "100000")}, Limits{Window: 200_000, Threshold: 167_000, Output: 20_000, Auto: true}},
		"nonsense": {Wish{Window: 200_000, Assumed: true, Setting: "tiny", Flag: "5", Env: env("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "x", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "0", "CLAUDE_CODE_AUTO_COMPACT_WINDOW", "2M")},
			Limits{Window: 200_000, Threshold: 167_000, Output: 20_000, Auto: true, Problems: []string{
				`CLAUDE_CODE_MAX_CONTEXT_TOKENS is "x": it takes a number of tokens`,
				`CLAUDE_CODE_AUTO_COMPACT_WINDOW: "2M" is not between 100k and 1M tokens`,
				`--autocompact: "5" is not between 100k and 1M tokens`,
				`autoCompactWindow: "tiny" is no number of tokens: use 200000, 500k or 1M`,
				`CLAUDE_AUTOCOMPACT_PCT_OVERRIDE is "0": it takes 1 to 100`}}},
	} {
		if d := cmp.Diff(tc.want, tc.w.Limits()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestPDFPages(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"%PDF /Type /Pages /Count 3 /Type/Page /Type /Page\n/Type /PageX": 3,
		"/Type /Page >> /Type /Page >>":                                   2,
		"compressed":                                                      1,
		strings.Repeat("compressed", 20_000):                              4,
		"/Count 99999999999 /Count -5":                                    10_000,
		"":                                                                1,
	} {
		if got := pdfPages(b64(text)); got != want {
			t.Errorf("%.40q: %d pages, want %d", text, got, want)
		}
	}
	if got := pdfPages("no base64!"); got != 1 {
		t.Errorf("got %d", got)
	}
}

func FuzzRepair(f *testing.F) {
	for _, s := range []string{"messages.0.content.1", "messages.2.content.0.content.1.image", "messages[1].content[3]", "messages.99999999999999999999", "tools.0"} {
		f.Add(s, "image signature")
	}
	f.Fuzz(func(t *testing.T, path, message string) {
		out, _ := Repair(sick(), path, message)
		if !sound(out) {
			t.Errorf("path %q broke a pair", path)
		}
		numbers(message)
	})
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
