package compact

import "testing"

func TestTold(t *testing.T) {
	t.Parallel()
	o := Outcome{Cuts: []Cut{
		{What: "a result of Read", Why: "it is old", Tokens: 10}, {What: "a result of Read", Why: "it is old", Tokens: 20}, {What: "thinking", Why: "its turn is over", Tokens: 500},
		{What: "12 bytes from the middle of a result of Bash", Why: "too long", Tokens: 3}, {What: "13 bytes from the middle of a result of Bash", Why: "too long", Tokens: 4},
	}}
	want := "To make room about 537 tokens were taken out of the conversation. thinking: its turn is over; a result of Read (2 times): it is old; the middle of a result of Bash (2 times): too long."
	if got := o.Told(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := (Outcome{}).Told(); got != "" {
		t.Error(got)
	}
	for _, what := range "abcdefg" {
		o.Cuts = append(o.Cuts, Cut{What: string(what), Why: "so"})
	}
	if got := o.Told(); len(got) > 400 {
		t.Error(got)
	}
}
