package modelserver

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestParseScript(t *testing.T) {
	t.Parallel()
	got, err := ParseScript(`
# a comment
when last some words
when not tool Grep
repeat 3
text plain words
| and a second line
|
text "quoted\nlines"
thinking sig=S hm
| hm
redacted
tool t%n Bash {"command": "ls"}
rawtool t2 Bash "{\"a" "\":1"
rawtool t3 Bash {"half":
block {"type":"x"}
open text begun
start
event foo {"a":1}
comment c d
ping
unknown
unknown block
stop max_tokens
sleep 5ms
headers-only
cut
drop
eof
error overloaded_error too much
body <html>
status 429 1.5
status 400 invalid_request_error it is wrong
status 529
header X-Y a b
header content-type
model m2
usage in=1 out=2
chunk 3
piece 4
pace 1ms
eol crlf
gzip
hang
`)
	if err != nil {
		t.Fatal(err)
	}
	js := func(s string) json.RawMessage { return json.RawMessage(s) }
	want := Script{
		When:   []Match{{What: "last", Text: "some words"}, {Not: true, What: "tool", Text: "Grep"}},
		Repeat: 3,
		Steps: []Step{
			Text{"plain words\nand a second line\n"}, Text{"quoted\nlines"}, Thinking{"hm\nhm", "S"}, Redacted{},
			Tool{"t%n", "Bash", js(`{"command": "ls"}`)}, RawTool{"t2", "Bash", []string{`{"a`, `":1`}}, RawTool{"t3", "Bash", []string{`{"half":`}},
			RawBlock{js(`{"type":"x"}`)}, Open{Text{"begun"}}, Start{}, Event{"foo", `{"a":1}`}, Comment{"c d"}, Ping{},
			Event{"unheard_of", `{"type":"unheard_of","value":1}`}, RawBlock{js(`{"type":"unheard_of","value":1}`)},
			Stop{"max_tokens", ""}, Sleep{5 * time.Millisecond}, Headers{}, Hang{}, Cut{}, Drop{}, EOF{},
			Fail{"overloaded_error", "too much"}, Body{"<html>"}, Status{429, "1.5", "", ""}, Status{400, "", "invalid_request_error", "it is wrong"}, Status{529, "", "", ""},
			Header{"X-Y", "a b"}, Header{"content-type", ""}, Model{"m2"}, Count{1, -1, -1, 2}, Chunk{3}, Piece{4}, Pace{time.Millisecond}, EOL{"\r\n"}, Gzip{}, Hang{},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %#v\nwant %#v", got, want)
	}
}

func TestParseScriptErrors(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"text a\njump high": "line 2: jump: no such verb",
		"| lost":            "line 1: a line that goes on needs a text, thinking or body before it",
		"tool t1 Bash {":    "line 1: tool: the input is not JSON: {",
		"tool t1":           "line 1: tool: want an id, a name and an input",
		"when somewhere x":  `line 1: when: "somewhere" names no part of a request`,
		"sleep long":        `line 1: sleep: time: invalid duration "long"`,
		"status x":          `line 1: status: "x" is no HTTP status`,
		"chunk -1":          `line 1: chunk: "-1" is no count`,
		"usage much=1":      `line 1: usage: "much" is not one of in, read, write, out`,
		"eol x":             `line 1: eol: "x" is not one of lf, crlf, cr`,
		"unknown x":         `line 1: unknown: "x" is neither event nor block`,
		"open ping":         "line 1: open: cannot leave a ping open",
	} {
		if _, err := ParseScript(src); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", src, err, want)
		}
	}
}

func FuzzParseScript(f *testing.F) {
	f.Add("when not last x\nrepeat\ntext \"a\"\n| b\nrawtool t B \"x\" \"y\nopen tool t B {}\nusage in=1")
	f.Fuzz(func(t *testing.T, src string) {
		s, err := ParseScript(src)
		if err != nil && !strings.HasPrefix(err.Error(), "line ") {
			t.Fatalf("got %v, which names no line", err)
		}
		for _, st := range s.Steps {
			if st == nil && err == nil {
				t.Fatal("a step is nil")
			}
		}
	})
}
