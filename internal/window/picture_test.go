package window

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/window/audit"
)

func TestPicture(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	recs := []audit.Record{
		{N: 1, Prompt: 4000, Written: 3900, Verdict: audit.First},
		{N: 2, Prompt: 9000, Read: 3900, Written: 5000, Verdict: audit.Hit},
		{N: 3, Prompt: 5000, Written: 5000, Verdict: audit.Unplanned, Break: &audit.Break{Kind: audit.Message, Index: 2, Before: "<b>\x01&", After: "\xff"}},
		{N: 4, Prompt: 1000, Read: 5000, Verdict: audit.Planned, Break: &audit.Break{Kind: audit.Tools, Planned: true, Reason: "tools joined"}},
	}
	if err := Picture(&b, recs, 10_000, 8000); err != nil {
		t.Fatal(err)
	}
	for dec := xml.NewDecoder(strings.NewReader(b.String())); ; {
		if _, err := dec.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%v in %s", err, b.String())
		}
	}
	golden(t, "picture", b.String())
	b.Reset()
	if err := Picture(&b, nil, 0, 0); err != nil || !strings.Contains(b.String(), "<svg") {
		t.Errorf("%v: %s", err, b.String())
	}
}
