package reply

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/sse"
)

const start = `{"type":"message_start","message":{"id":"msg_1","model":"m","content":[],"usage":{"input_tokens":10,"output_tokens":1,"cache_read_input_tokens":4,"cache_creation_input_tokens":3,"service_tier":"standard"}}}`

var (
	startUsage = agent.Usage{In: 10, Out: 1, CacheRead: 4, CacheWrite5m: 3, ServiceTier: "standard"}
	begin      = agent.Begin{MessageID: "msg_1", Model: "m", RequestID: "req_1", Usage: startUsage}
)

// play feeds events to a decoder and returns the deltas and the first error.
func play(events ...string) (ds []agent.Delta, err error) {
	d := Decoder{RequestID: "req_1", Emit: func(x agent.Delta) { ds = append(ds, x) }}
	for _, e := range events {
		if err = d.Event([]byte(e), false); err != nil || d.Done {
			break
		}
	}
	return ds, err
}

func blockStart(i int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, block)
}

func piece(i int, delta string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, delta)
}

func stop(i int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i) }

func end(reason string) []string {
	return []string{
		fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":7,"input_tokens":0}}`, reason),
		`{"type":"message_stop"}`,
	}
}

func ended(reason string) []agent.Delta {
	u := startUsage
	u.Out = 7
	return []agent.Delta{agent.Stopped{Stop: reason, Usage: u}, agent.Done{}}
}

func call(id, in string) *agent.ToolUse {
	u := &agent.ToolUse{ID: agent.CallID(id), Name: "T"}
	if in != "" {
		u.Input = json.RawMessage(in)
	}
	return u
}

func TestStream(t *testing.T) {
	t.Parallel()
	type deltas = []agent.Delta
	for _, tt := range []struct {
		name   string
		events []string
		want   deltas // between Begin and the end
		stop   string
	}{
		{"text", []string{blockStart(0, `{"type":"text","text":""}`), piece(0, `{"type":"text_delta","text":"Hel"}`), piece(0, `{"type":"text_delta","text":"lo\n"}`), stop(0)},
			deltas{agent.BlockBegin{Block: &agent.Text{}}, agent.Chunk{Kind: "text_delta", Text: "Hel"}, agent.Chunk{Kind: "text_delta", Text: "lo\n"},
				agent.BlockEnd{Block: &agent.Text{Text: "Hello\n"}}}, "end_turn"},
		{"text at its start", []string{blockStart(0, `{"type":"text","text":"Hi"}`), piece(0, `{"type":"text_delta","text":"!"}`), stop(0)},
			deltas{agent.BlockBegin{Block: &agent.Text{Text: "Hi"}}, agent.Chunk{Kind: "text_delta", Text: "!"}, agent.BlockEnd{Block: &agent.Text{Text: "Hi!"}}}, "end_turn"},
		{"empty text is no block", []string{blockStart(0, `{"type":"text","text":""}`), stop(0), blockStart(1, `{"type":"text","text":" "}`), piece(1, `{"type":"text_delta","text":"\n"}`), stop(1)},
			nil, "end_turn"},
		{"white space waits for text", []string{blockStart(0, `{"type":"text","text":"\n"}`), piece(0, `{"type":"text_delta","text":" "}`), piece(0, `{"type":"text_delta","text":"a"}`), stop(0)},
			deltas{agent.BlockBegin{Block: &agent.Text{}}, agent.Chunk{Kind: "text_delta", Text: "\n a"}, agent.BlockEnd{Block: &agent.Text{Text: "\n a"}}}, "end_turn"},
		{"thinking", []string{blockStart(0, `{"type":"thinking","thinking":"","signature":""}`), piece(0, `{"type":"thinking_delta","thinking":"hm"}`), piece(0, `{"type":"signature_delta","signature":"c2ln"}`), piece(0, `{"type":"signature_delta","signature":"=="}`), stop(0)},
			deltas{agent.BlockBegin{Block: &agent.Thinking{}}, agent.Chunk{Kind: "thinking_delta", Text: "hm"}, agent.Chunk{Kind: "signature_delta", Text: "c2ln"}, agent.Chunk{Kind: "signature_delta", Text: "=="},
				agent.BlockEnd{Block: &agent.Thinking{Text: "hm", Signature: "c2ln=="}}}, "end_turn"},
		{"thinking that is omitted", []string{blockStart(0, `{"type":"thinking","thinking":"","signature":""}`), piece(0, `{"type":"signature_delta","signature":"s"}`), stop(0)},
			deltas{agent.BlockBegin{Block: &agent.Thinking{}}, agent.Chunk{Kind: "signature_delta", Text: "s"}, agent.BlockEnd{Block: &agent.Thinking{Signature: "s"}}}, "end_turn"},
		{"redacted thinking", []string{blockStart(0, `{"type":"redacted_thinking","data":"b3A="}`), stop(0)},
			deltas{agent.BlockBegin{Block: &agent.Redacted{Data: "b3A="}}, agent.BlockEnd{Block: &agent.Redacted{Data: "b3A="}}}, "end_turn"},
		{"tool", []string{blockStart(0, `{"type":"tool_use","id":"t1","name":"T","input":{}}`), piece(0, `{"type":"input_json_delta","partial_json":""}`), piece(0, `{"type":"input_json_delta","partial_json":"{\"a\": \"b"}`), piece(0, `{"type":"input_json_delta","partial_json":"\"}"}`), stop(0)},
			deltas{agent.BlockBegin{Block: call("t1", "")}, agent.Chunk{Kind: "input_json_delta"}, agent.Chunk{Kind: "input_json_delta", Text: `{"a": "b`}, agent.Chunk{Kind: "input_json_delta", Text: `"}`},
				agent.BlockEnd{Block: call("t1", `{"a":"b"}`)}}, "tool_use"},
		{"tool without input", []string{blockStart(0, `{"type":"tool_use","id":"t1","name":"T","input":{}}`), stop(0)},
			deltas{agent.BlockBegin{Block: call("t1", "")}, agent.BlockEnd{Block: call("t1", `{}`)}}, "tool_use"},
		{"tool with its input at the start", []string{blockStart(0, `{"type":"tool_use","id":"t1","name":"T","input":{"a":1}}`), stop(0)},
			deltas{agent.BlockBegin{Block: call("t1", "")}, agent.BlockEnd{Block: call("t1", `{"a":1}`)}}, "tool_use"},
		{"interleaved", []string{
			blockStart(0, `{"type":"tool_use","id":"t1","name":"T"}`), blockStart(1, `{"type":"tool_use","id":"t2","name":"T"}`),
			piece(1, `{"type":"input_json_delta","partial_json":"{\"n\":2"}`), piece(0, `{"type":"input_json_delta","partial_json":"{\"n\":"}`), piece(1, `{"type":"input_json_delta","partial_json":"}"}`),
			stop(1), piece(0, `{"type":"input_json_delta","partial_json":"1}"}`), stop(0)},
			deltas{agent.BlockBegin{Index: 0, Block: call("t1", "")}, agent.BlockBegin{Index: 1, Block: call("t2", "")},
				agent.Chunk{Index: 1, Kind: "input_json_delta", Text: `{"n":2`}, agent.Chunk{Index: 0, Kind: "input_json_delta", Text: `{"n":`}, agent.Chunk{Index: 1, Kind: "input_json_delta", Text: "}"},
				agent.BlockEnd{Index: 1, Block: call("t2", `{"n":2}`)}, agent.Chunk{Index: 0, Kind: "input_json_delta", Text: "1}"}, agent.BlockEnd{Index: 0, Block: call("t1", `{"n":1}`)}}, "tool_use"},
		{"citations", []string{blockStart(0, `{"type":"text","text":"","citations":[]}`), piece(0, `{"type":"text_delta","text":"x"}`), piece(0, `{"type":"citations_delta","citation":{"type":"c","n":1}}`), stop(0)},
			deltas{agent.BlockBegin{Block: &agent.Text{}}, agent.Chunk{Kind: "text_delta", Text: "x"}, agent.Chunk{Kind: "citations_delta", Text: `{"type":"c","n":1}`},
				agent.BlockEnd{Block: &agent.Text{Text: "x", Citations: json.RawMessage(`[{"type":"c","n":1}]`)}}}, "end_turn"},
		{"server tool", []string{blockStart(0, `{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}`), piece(0, `{"type":"input_json_delta","partial_json":"{\"query\":"}`), piece(0, `{"type":"input_json_delta","partial_json":"\"q\"}"}`), stop(0),
			blockStart(1, `{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"url":"u"}]}`), stop(1)},
			deltas{agent.BlockBegin{Block: &agent.Opaque{Type: "server_tool_use", Raw: json.RawMessage(`{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}`)}},
				agent.Chunk{Kind: "input_json_delta", Text: `{"query":`}, agent.Chunk{Kind: "input_json_delta", Text: `"q"}`},
				agent.BlockEnd{Block: &agent.Opaque{Type: "server_tool_use", Raw: json.RawMessage(`{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"q"}}`)}},
				agent.BlockBegin{Index: 1, Block: &agent.Opaque{Type: "web_search_tool_result", Raw: json.RawMessage(`{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"url":"u"}]}`)}},
				agent.BlockEnd{Index: 1, Block: &agent.Opaque{Type: "web_search_tool_result", Raw: json.RawMessage(`{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"url":"u"}]}`)}}}, "end_turn"},
		{"unknown block", []string{blockStart(0, `{"type":"dream","text":"a","list":[1],"n":1}`), piece(0, `{"type":"dream_delta","text":"b","list":[2],"n":2,"new":true}`), piece(0, `{"type":"text_delta","text":"c"}`), stop(0)},
			deltas{agent.BlockBegin{Block: &agent.Opaque{Type: "dream", Raw: json.RawMessage(`{"type":"dream","text":"a","list":[1],"n":1}`)}},
				agent.Chunk{Kind: "dream_delta", Text: `{"type":"dream_delta","text":"b","list":[2],"n":2,"new":true}`}, agent.Chunk{Kind: "text_delta", Text: `{"type":"text_delta","text":"c"}`},
				agent.BlockEnd{Block: &agent.Opaque{Type: "dream", Raw: json.RawMessage(`{"type":"dream","text":"abc","list":[1,2],"n":2,"new":true}`)}}}, "end_turn"},
		{"unknown piece of a known block", []string{blockStart(0, `{"type":"text","text":"a"}`), piece(0, `{"type":"mood_delta","mood":"good"}`), stop(0)},
			deltas{agent.BlockBegin{Block: &agent.Text{Text: "a"}}, agent.Chunk{Kind: "mood_delta", Text: `{"type":"mood_delta","mood":"good"}`}, agent.BlockEnd{Block: &agent.Text{Text: "a"}}}, "end_turn"},
		{"unknown event, ping", []string{`{"type":"ping"}`, `{"type":"weather","rain":true}`},
			deltas{agent.Unknown{Type: "weather", Raw: json.RawMessage(`{"type":"weather","rain":true}`)}}, "end_turn"},
		{"a block nobody closed", []string{blockStart(0, `{"type":"text","text":"a"}`), blockStart(1, `{"type":"tool_use","id":"t1","name":"T"}`), piece(1, `{"type":"input_json_delta","partial_json":"{\"a"}`)},
			deltas{agent.BlockBegin{Block: &agent.Text{Text: "a"}}, agent.BlockBegin{Index: 1, Block: call("t1", "")}, agent.Chunk{Index: 1, Kind: "input_json_delta", Text: `{"a`}}, ""},
		{"message_start twice", []string{start}, nil, "end_turn"},
		{"odd shapes of pieces", []string{blockStart(0, `{"type":"text","text":""}`), piece(0, `{"text":"x","type":"text_delta","extra":1}`), ` { "delta" : { "text" : "y" , "type" : "text_delta" } , "index" : 0 , "type" : "content_block_delta" } `, stop(0)},
			deltas{agent.BlockBegin{Block: &agent.Text{}}, agent.Chunk{Kind: "text_delta", Text: "x"}, agent.Chunk{Kind: "text_delta", Text: "y"}, agent.BlockEnd{Block: &agent.Text{Text: "xy"}}}, "end_turn"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			events := append([]string{start}, tt.events...)
			want := append(deltas{begin}, tt.want...)
			if tt.stop == "" { // message_stop closes the blocks
				events = append(events, end("max_tokens")...)
				e := ended("max_tokens")
				want = append(want, e[0], agent.BlockEnd{Block: &agent.Text{Text: "a"}}, agent.BlockEnd{Index: 1, Block: &agent.ToolUse{
					ID: "t1", Name: "T", Malformed: true, Input: json.RawMessage(`{"__unparsedToolInput":{"raw":"{\"a","len":3}}`)}}, e[1])
			} else {
				events = append(events, end(tt.stop)...)
				want = append(want, ended(tt.stop)...)
			}
			got, err := play(events...)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("deltas (-want +got):\n%s", d)
			}
		})
	}
}

func TestToolInput(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		``:                                    `{}`,
		"  ":                                  `{}`,
		`null`:                                `{}`,
		`{}`:                                  `{}`,
		" {\n\"a\" : [ 1 , \"x y\" ] }\n":     `{"a":[1,"x y"]}`,
		`{"a":1,"b":{"c":2},"a":3}`:           `{"a":3,"b":{"c":2}}`,
		`{"a":[{"x":1,"x":2}]}`:               `{"a":[{"x":2}]}`,
		`{"a":1,"\u0061":2}`:                  `{"a":2}`,
		`{"a":{"b":1},"b":1}`:                 `{"a":{"b":1},"b":1}`,
		`{"n":12345678901234567890,"n":1.50}`: `{"n":1.50}`,
		`{"h":"<&>","h":"<&>"}`:               `{"h":"<&>"}`,
	} {
		u := toolUse("t1", "T", []byte(in))
		if string(u.Input) != want || u.Malformed {
			t.Errorf("%s: got %s (malformed %v), want %s", in, u.Input, u.Malformed, want)
		}
	}
	for _, in := range []string{`{"a`, `{"a":"\x41"}`, `[1]`, `"s"`, `1`, `{} {}`, `{"a":1,}`, `{"path":"a` + "\n" + `b"}`, strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000)} {
		u := toolUse("t1", "T", []byte(in))
		var w struct {
			U struct {
				Raw string `json:"raw"`
				Len int    `json:"len"`
			} `json:"__unparsedToolInput"`
		}
		if err := json.Unmarshal(u.Input, &w); err != nil || !u.Malformed || w.U.Raw != in || w.U.Len != len(in) {
			t.Errorf("%.40q: got %.200s (malformed %v, %v)", in, u.Input, u.Malformed, err)
		}
	}
	big := `{"content":"` + strings.Repeat("x", 5<<20) + `"}`
	if u := toolUse("t1", "T", []byte(big)); string(u.Input) != big || u.Malformed {
		t.Error("5 MB of input came out changed")
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	text := blockStart(0, `{"type":"text","text":"a"}`)
	for _, tt := range []struct {
		name   string
		events []string
		want   error
	}{
		{"an error event", []string{start, text, `{"type":"error","error":{"type":"overloaded_error","message":"busy"},"request_id":"req_9"}`}, &StreamError{APIError{"overloaded_error", "busy"}, "req_9"}},
		{"an error event of another shape", []string{`{"type":"error","error":"busy"}`}, &StreamError{APIError{"", `{"type":"error","error":"busy"}`}, ""}},
		{"no JSON", []string{start, `{"type":`}, ErrProtocol},
		{"a piece of no block", []string{start, piece(3, `{"type":"text_delta","text":"a"}`)}, ErrProtocol},
		{"the end of no block", []string{start, stop(0)}, ErrProtocol},
		{"a block twice", []string{start, text, text}, ErrProtocol},
		{"a block before the start", []string{text}, ErrProtocol},
		{"a block without a type", []string{start, blockStart(0, `{}`)}, ErrProtocol},
		{"the end before the start", []string{`{"type":"message_stop"}`}, ErrProtocol},
		{"bad escape in a piece", []string{start, text, piece(0, `{"type":"text_delta","text":"\x"}`)}, ErrProtocol},
		{"start without a message", []string{`{"type":"message_start"}`}, ErrProtocol},
	} {
		_, err := play(tt.events...)
		var got, want *StreamError
		if errors.As(tt.want, &want) {
			if !errors.As(err, &got) || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: got %#v, want %#v", tt.name, err, want)
			}
		} else if !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
	// What may be cut short is not held against the stream.
	d := Decoder{Emit: func(agent.Delta) {}}
	if err := d.Event([]byte(`{"type":"mess`), true); err != nil {
		t.Errorf("a cut event: %v", err)
	}
}

func TestStopIsTold(t *testing.T) {
	t.Parallel()
	got, err := play(start, blockStart(0, `{"type":"tool_use","id":"t1","name":"T"}`), stop(0), `{"type":"message_stop"}`)
	want := []agent.Delta{agent.Stopped{Stop: "tool_use", Usage: startUsage}, agent.Done{}}
	if d := cmp.Diff(want, got[len(got)-2:]); d != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, d)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	var got agent.Usage
	for _, s := range []string{
		`{"input_tokens":10,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20},"cache_read_input_tokens":null}`,
		`{"output_tokens":5,"input_tokens":0,"cache_creation_input_tokens":30,"server_tool_use":{"web_search_requests":2,"web_fetch_requests":1},"service_tier":"batch"}`,
	} {
		var w *wireUsage
		if err := json.Unmarshal([]byte(s), &w); err != nil {
			t.Fatal(err)
		}
		got = w.onto(got)
	}
	want := agent.Usage{In: 10, Out: 5, CacheWrite5m: 10, CacheWrite1h: 20, WebSearches: 2, WebFetches: 1, ServiceTier: "batch"}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestWhole(t *testing.T) {
	t.Parallel()
	var got []agent.Delta
	d := Decoder{RequestID: "req_1", Emit: func(x agent.Delta) { got = append(got, x) }}
	err := d.Whole([]byte(`{"id":"msg_1","type":"message","model":"m","content":[{"type":"text","text":" "},{"type":"text","text":"hi"},{"type":"tool_use","id":"t1","name":"T","input":{"a":1,"a":2}},{"type":"dream","x":1}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}`))
	if err != nil {
		t.Fatal(err)
	}
	u := agent.Usage{In: 1, Out: 2}
	hi, use, dream := &agent.Text{Text: "hi"}, call("t1", `{"a":2}`), &agent.Opaque{Type: "dream", Raw: json.RawMessage(`{"type":"dream","x":1}`)}
	want := []agent.Delta{
		agent.Begin{MessageID: "msg_1", Model: "m", RequestID: "req_1", Usage: u, Whole: true},
		agent.BlockBegin{Index: 1, Block: hi}, agent.BlockEnd{Index: 1, Block: hi},
		agent.BlockBegin{Index: 2, Block: use}, agent.BlockEnd{Index: 2, Block: use},
		agent.BlockBegin{Index: 3, Block: dream}, agent.BlockEnd{Index: 3, Block: dream},
		agent.Stopped{Stop: "tool_use", Usage: u}, agent.Done{},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for in, want := range map[string]error{`{"ok":true}`: ErrNoMessage, `nope`: ErrNoMessage, `{"id":"x","type":"message","content":[{}]}`: ErrNoMessage} {
		d := Decoder{Emit: func(x agent.Delta) { t.Errorf("%s: told %v", in, x) }}
		if err := d.Whole([]byte(in)); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", in, err, want)
		}
	}
	var se *StreamError
	if err := (&Decoder{}).Whole([]byte(`{"type":"error","error":{"type":"api_error","message":"x"}}`)); !errors.As(err, &se) || se.Type != "api_error" {
		t.Errorf("got %v", err)
	}
}

// FuzzEvent checks that no event makes the decoder panic, and that the fast
// path for pieces understands what the long way understands.
func FuzzEvent(f *testing.F) {
	for _, s := range []string{
		start, blockStart(0, `{"type":"text","text":""}`), piece(0, `{"type":"text_delta","text":"a\n\u00e9\ud83d\ude00"}`), piece(1, `{"type":"input_json_delta","partial_json":"{\"a\":1}"}`),
		piece(2, `{"type":"signature_delta","signature":"x"}`), piece(0, `{"type":"citations_delta","citation":{}}`), stop(0), `{"type":"message_stop"}`, `{"type":"error","error":null}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}`, piece(3, `{"type":"x_delta","a":[1]}`),
		piece(0, `{"type":"text_delta","text":"a","text":"b"}`), `{"index":0,"type":"content_block_delta","type":"ping","delta":{"type":"text_delta","text":"a"}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		open := []string{start, blockStart(0, `{"type":"text","text":"x"}`), blockStart(1, `{"type":"tool_use","id":"a","name":"T"}`), blockStart(2, `{"type":"thinking"}`), blockStart(3, `{"type":"new","a":[]}`)}
		var text string
		d := Decoder{Emit: func(x agent.Delta) {
			if c, ok := x.(agent.Chunk); ok {
				text += c.Text
			}
		}}
		for _, e := range open {
			if err := d.Event([]byte(e), false); err != nil {
				t.Fatal(err)
			}
		}
		err := d.Event(in, false)
		if index, kind, piece, ok := parseDelta(in); ok && kind == "text_delta" && index == 0 && err == nil {
			var w struct {
				Type  string
				Index int
				Delta struct{ Type, Text string }
			}
			if json.Unmarshal(in, &w) == nil && (w.Delta.Text != text || w.Index != 0) {
				t.Errorf("%s: the fast path read %q out of %q, encoding/json %q", in, text, piece, w.Delta.Text)
			}
		}
		for i := range 4 {
			if o := d.find(i); o != nil {
				d.blockStop(o)
			}
		}
	})
}

// stream is a response of about size bytes: text in pieces as the API sends
// them, with a tool call at its end.
func stream(size int) string {
	var b strings.Builder
	ev := func(name, data string) { fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", name, data) }
	ev("message_start", start)
	ev("content_block_start", blockStart(0, `{"type":"text","text":""}`))
	for b.Len() < size {
		ev("content_block_delta", piece(0, `{"type":"text_delta","text":" some words, a \"quote\"\nand more"}`))
	}
	ev("content_block_stop", stop(0))
	ev("content_block_start", blockStart(1, `{"type":"tool_use","id":"t1","name":"T","input":{}}`))
	ev("content_block_delta", piece(1, `{"type":"input_json_delta","partial_json":"{\"a\":1}"}`))
	ev("content_block_stop", stop(1))
	for _, e := range end("tool_use") {
		ev("message", e)
	}
	return b.String()
}

// decodeAll decodes and accumulates in and returns the number of deltas.
func decodeAll(tb testing.TB, in string) (n int) {
	d := Decoder{Emit: func(agent.Delta) { n++ }}
	for ev, err := range sse.Decode(strings.NewReader(in)) {
		if err == nil {
			err = d.Event(ev.Data, ev.Tail)
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	if !d.Done {
		tb.Fatal("not done")
	}
	return n
}

// The bar: 100 MB/s on one core.
func BenchmarkStream(b *testing.B) {
	in := stream(4 << 20)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n += decodeAll(b, in)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/delta")
}

// The bar: at most two allocations for a delta, its text and its box.
func TestAllocs(t *testing.T) {
	in := stream(1 << 20)
	var n int
	allocs := testing.AllocsPerRun(5, func() { n = decodeAll(t, in) })
	if per := allocs / float64(n); per > 2.05 {
		t.Errorf("%.2f allocations per delta, want 2", per)
	}
}
