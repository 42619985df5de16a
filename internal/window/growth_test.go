package window

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func wellFormed(t *testing.T, s string) {
	t.Helper()
	for dec := xml.NewDecoder(strings.NewReader(s)); ; {
		if _, err := dec.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("%v in %s", err, s)
		}
	}
}

func TestGrowth(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 9, 1, 10, 0, 0, 0, time.UTC)
	evil := "<script>alert('1')</script>\x01&\"\u202e\xff"
	g := Growth{
		Title: "Session " + evil, Window: 10_000, Threshold: 8000, Notes: []string{"note " + evil},
		Parts: []Part{{"Results of calls", 3000}, {evil, 1000}},
		Steps: []Step{
			{N: 1, At: at, Model: evil, Prompt: 4000, Written: 3900, Verdict: "first", Cost: 0.01},
			{N: 2, At: at, Model: "m", Prompt: 9000, Read: 3900, Written: 5000, Verdict: "hit", Cost: 0.02},
			{N: 4, At: at, Model: "m", Prompt: 5000, Written: 5000, Verdict: "unplanned", Break: "message 2, byte 7 " + evil, Before: evil, After: evil},
			{N: 5, At: at, Model: "m", Prompt: 1000, Read: 5000, Verdict: "planned", Break: "tools", Planned: true, Summary: true},
		},
	}
	var svg, html strings.Builder
	if err := g.SVG(&svg); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, svg.String())
	golden(t, "growth", svg.String())
	if err := g.HTML(&html); err != nil {
		t.Fatal(err)
	}
	for what, s := range map[string]string{"picture": svg.String(), "page": html.String()} {
		for _, bad := range []string{"<script", "alert('", "\u202e", "\x01", "http://", "https://", "\xff"} {
			if strings.Contains(strings.ReplaceAll(s, "http://www.w3.org/2000/svg", ""), bad) {
				t.Errorf("the %s holds %q", what, bad)
			}
		}
	}
	for _, want := range []string{"Results of calls", "75 %", "message 2, byte 7", "<svg", "&lt;script&gt;", "</html>"} {
		if !strings.Contains(html.String(), want) {
			t.Errorf("the page does not hold %q", want)
		}
	}
}

// However many requests there are, the picture stays one that can be looked at.
func TestGrowthOfAnySize(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, 7, 999, 1001, 20_000} {
		g := Growth{Title: "t"}
		for i := range n {
			g.Steps = append(g.Steps, Step{N: i + 1, Prompt: i, Read: i / 2, Verdict: "hit", Summary: i%500 == 499})
		}
		var b strings.Builder
		if err := g.SVG(&b); err != nil {
			t.Fatal(err)
		}
		wellFormed(t, b.String())
		if bars := strings.Count(b.String(), "<g>"); bars > most || n > 0 && bars == 0 {
			t.Errorf("%d requests make %d bars", n, bars)
		}
		if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
			t.Errorf("%d requests: no numbers", n)
		}
	}
	for _, n := range []int{1, 5, 99, 100, 101, 4321, 1_000_000} {
		if got := nice(n); got < n || got > 4*n {
			t.Errorf("nice(%d) is %d", n, got)
		}
	}
}

func TestParts(t *testing.T) {
	t.Parallel()
	body := `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"<system-reminder>\nbe brief\n</system-reminder>"},{"type":"text","text":"hello"}]},
		{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"yes"},{"type":"tool_use","id":"t","name":"Read","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"` + strings.Repeat("x", 500) + `"},{"type":"image","source":{}}]},
		{"role":"user","content":"plain"}],"system":[{"type":"text","text":"s"}],"tools":[{"name":"Read"},{"name":"mcp__a__b"}]}`
	var got []string
	for _, p := range Parts([]byte(body)) {
		got = append(got, fmt.Sprintf("%s %d", p.Name, p.Bytes))
	}
	golden(t, "parts", strings.Join(got, "\n")+"\n")
	if diff := cmp.Diff([]Part(nil), Parts([]byte("{"))); diff != "" {
		t.Error(diff)
	}
}
