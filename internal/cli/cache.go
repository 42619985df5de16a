package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/lib/jsonl"
	"github.com/seed-eb844fcb/cinch/internal/lib/termsafe"
	"github.com/seed-eb844fcb/cinch/internal/transcript"
)

// cache tells how much of each request of a session came from the cache, and
// where and why it did not.
func (p *program) cache(args []string) int {
	s, err := p.session(first(args))
	if err != nil {
		return p.fail(err)
	}
	var skips jsonl.Skips
	n, prompt, read := 0, 0, 0
	for r, err := range transcript.Trace(s.Path, &skips) {
		if err != nil {
			return p.fail(fmt.Errorf("reading the trace: %w", err))
		}
		switch {
		case r.Kind == "responded" && r.Usage != nil:
			n++
			u := r.Usage
			prompt, read = prompt+u.Prompt(), read+u.CacheRead
			share := 0
			if u.Prompt() > 0 {
				share = 100 * u.CacheRead / u.Prompt()
			}
			fmt.Fprintf(p.stdout, "%3d  %-8s %8d tokens  %3d%% read  %6d written  $%.4f\n", n, or(r.Purpose, "main"), u.Prompt(), share, u.CacheWrite(), r.Cost)
		case r.Kind == "crossed" && r.Boundary == "cache":
			d := r.Detail
			text := fmt.Sprintf("     %s: %s tokens expected, %s read, %s paid for again", r.Name, d["expected"], d["read"], d["lost"])
			if d["break"] != "" {
				text += "; " + d["break"]
			}
			if d["reason"] != "" {
				text += " (" + d["reason"] + ")"
			}
			if d["before"] != "" || d["after"] != "" {
				text += fmt.Sprintf("\n       was %q\n       is  %q", d["before"], d["after"])
			}
			fmt.Fprintln(p.stdout, strings.ReplaceAll(termsafe.Text(text), "\r", ""))
		}
	}
	if n == 0 {
		return p.fail(errors.New("that session has made no request"))
	}
	fmt.Fprintf(p.stdout, "%d requests, %d tokens, %d%% from the cache\n", n, prompt, 100*read/max(prompt, 1))
	return 0
}
