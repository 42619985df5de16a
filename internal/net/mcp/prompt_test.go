package mcp

import (
	"fmt"
	"testing"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                        `[]`,
		"  a  b\tc ":              `["a" "b" "c"]`,
		`"a b" 'c d' e"f g"`:      `["a b" "c d" "ef g"]`,
		`it's don't`:              `["it's" "don't"]`,
		`'it is' ""`:              `["it is" ""]`,
		`a\ b \"c 'd\e'`:          `["a b" "\"c" "d\\e"]`,
		`"open to the end`:        `["open to the end"]`,
		`last\`:                   `["last\\"]`,
		"two\nlines and “quotes”": `["two" "lines" "and" "“quotes”"]`,
	} {
		if got := fmt.Sprintf("%q", words(in)); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func TestAssign(t *testing.T) {
	t.Parallel()
	p := Prompt{Command: "mcp__x__y", Arguments: []Argument{{"a", true}, {"b", true}, {"c", false}}}
	for in, want := range map[string]string{
		"1 2 3 4": `map[a:1 b:2 c:3 4]`,
		"1 2":     `map[a:1 b:2]`,
		"1":       "/mcp__x__y needs b\nusage: /mcp__x__y <a> <b> [c]",
		"":        "/mcp__x__y needs a and b\nusage: /mcp__x__y <a> <b> [c]",
	} {
		m, err := p.assign(words(in))
		got := fmt.Sprint(m)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
	if m, err := (Prompt{}).assign(words("left over")); err != nil || len(m) != 0 {
		t.Errorf("got %v, %v", m, err)
	}
}
