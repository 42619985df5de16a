package audit

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

var noon = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

func segments(system string, messages ...string) []Segment {
	segs := []Segment{{Kind: Tools}, {Kind: System, Bytes: []byte(system)}}
	for _, m := range messages {
		segs = append(segs, Segment{Kind: Message, Role: "user", Bytes: []byte(m)})
	}
	return segs
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	c := NewChain()
	type step struct {
		after   time.Duration
		segs    []Segment
		key     string
		planned string
		usage   agent.Usage
		want    Record
	}
	at := noon
	for i, s := range []step{
		{0, segments("S", "[1]"), "k", "", agent.Usage{In: 1, CacheWrite5m: 1000}, Record{Written: 1000, Prompt: 1001, Verdict: First}},
		{time.Second, segments("S", "[1]", "[2]"), "k", "", agent.Usage{CacheRead: 1000, CacheWrite5m: 100}, Record{Expected: 1000, Read: 1000, Written: 100, Prompt: 1100, Verdict: Hit}},
		{time.Second, segments("S", "[1]", "[2,3]"), "k", "", agent.Usage{CacheRead: 1100, CacheWrite5m: 10}, Record{Expected: 1100, Read: 1100, Written: 10, Prompt: 1110, Verdict: Hit}},
		{time.Second, segments("S", "[1]"), "k", "", agent.Usage{CacheRead: 1000}, Record{Expected: 1000, Read: 1000, Prompt: 1000, Verdict: Hit}},
		{time.Second, segments("S", "[1]", "[4]"), "k", "", agent.Usage{CacheWrite5m: 1100}, Record{Expected: 1000, Written: 1100, Prompt: 1100, Verdict: Missed}},
		{time.Hour, segments("S", "[1]", "[4]", "[5]"), "k", "", agent.Usage{CacheWrite5m: 1200}, Record{Expected: 1100, Written: 1200, Prompt: 1200, Verdict: Expired}},
		{time.Second, segments("T", "[1]", "[4]", "[5]"), "k", "", agent.Usage{CacheWrite5m: 1200}, Record{Expected: 1200, Written: 1200, Prompt: 1200, Verdict: Unplanned,
			Break: &Break{Kind: System, Before: "S", After: "T", Reason: "nobody announced this change", Lost: 10}}},
		{time.Second, segments("T", "[1]", "[4]", "[5]"), "l", "the model", agent.Usage{CacheWrite5m: 1200}, Record{Expected: 1200, Written: 1200, Prompt: 1200, Verdict: Planned,
			Break: &Break{Kind: Key, Before: "k", After: "l", Planned: true, Reason: "the model", Lost: 10}}},
		{time.Second, segments("T", "[1]", "[4]", "[6]", "[7]"), "l", "cut", agent.Usage{CacheRead: 1100, CacheWrite5m: 200}, Record{Expected: 1200, Read: 1100, Written: 200, Prompt: 1300, Verdict: Planned,
			Break: &Break{Kind: Message, Index: 2, Offset: 1, Before: "5]", After: "6]", Planned: true, Reason: "cut", Kept: 8, Lost: 2}}},
	} {
		at = at.Add(s.after)
		c.Sent(Sent{At: at, Key: s.key, Life: 5 * time.Minute, Segments: s.segs, Planned: s.planned})
		got := c.Answered(s.usage)
		s.want.N, s.want.At, s.want.Gap = i+1, at, s.after
		for _, g := range s.segs {
			s.want.Bytes += len(g.Bytes)
		}
		if d := cmp.Diff(s.want, got); d != "" {
			t.Errorf("step %d: %s", i, d)
		}
	}
	if n := len(c.Records()); n != 9 {
		t.Errorf("%d records", n)
	}
}

func TestOverwrittenThenCopied(t *testing.T) {
	t.Parallel()
	c := NewChain()
	text := []byte(`["` + strings.Repeat("a", 5000) + `"]`)
	c.Sent(Sent{At: noon, Segments: []Segment{{Kind: Message, Bytes: text}}})
	text[3000] = 'b'
	r := c.Sent(Sent{At: noon, Segments: []Segment{{Kind: Message, Bytes: append([]byte(nil), text...)}}})
	if r.Break == nil || !r.Break.Near || r.Break.Offset != 2048 {
		t.Errorf("got %v", r.Break)
	}
	if r := c.Sent(Sent{At: noon, Segments: []Segment{{Kind: Message, Bytes: text}}}); r.Break != nil {
		t.Errorf("told twice: %v", r.Break)
	}
	if r := c.Sent(Sent{At: noon, Segments: []Segment{{Kind: Message, Role: "assistant", Bytes: text}}}); r.Break == nil {
		t.Error("a role that changed was missed")
	}
}
