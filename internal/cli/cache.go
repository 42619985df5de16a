package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/lib/jsonl"
	"github.com/seed-eb844fcb/cinch/internal/lib/termsafe"
	"github.com/seed-eb844fcb/cinch/internal/transcript"
	"github.com/seed-eb844fcb/cinch/internal/window"
)

// cache tells how much of each request of a session came from the cache, and
// where and why it did not.
func (p *program) cache(args []string) int {
	s, err := p.session(first(args))
	if err != nil {
		return p.fail(err)
	}
	list, _, err := p.answers(s)
	if err != nil {
		return p.fail(err)
	}
	if len(list) == 0 {
		return p.fail(errors.New("that session has made no request"))
	}
	prompt, read := 0, 0
	for _, a := range list {
		st := a.step
		prompt, read = prompt+st.Prompt, read+st.Read
		fmt.Fprintf(p.stdout, "%3d  %-8s %8d tokens  %3d%% read  %6d written  $%.4f\n",
			st.N, termsafe.String(purposeOf(a.purpose, a.agent)), st.Prompt, 100*st.Read/max(st.Prompt, 1), st.Written, st.Cost)
		if a.expected == "" {
			continue
		}
		text := fmt.Sprintf("     %s: %s tokens expected, %d read, %s paid for again", st.Verdict, a.expected, st.Read, a.lost)
		if a.price != "" {
			text += " for " + a.price + " more"
		}
		if st.Break != "" {
			text += "; " + st.Break
		}
		if st.Before != "" || st.After != "" {
			text += fmt.Sprintf("\n       was %q\n       is  %q", st.Before, st.After)
		}
		fmt.Fprintln(p.stdout, strings.ReplaceAll(termsafe.Text(text), "\r", ""))
	}
	fmt.Fprintf(p.stdout, "%d requests, %d tokens, %d%% from the cache\n", len(list), prompt, 100*read/max(prompt, 1))
	return 0
}

// An answered is a request that was answered, as the trace tells it.
type answered struct {
	purpose, agent string
	summary        bool // the history was replaced before it
	step           window.Step
	// Of a cache that was not what it could have been: tokens, and what they
	// cost more than if they had been read.
	expected, lost, price string
}

// answers reads the answered requests of a session in order, each with the
// number that the record of requests gives it, or its place among all.
func (p *program) answers(s transcript.Summary) (list []answered, skipped int, err error) {
	var skips jsonl.Skips
	summary := false
	newest := map[string]int{} // of each conversation, by agent
	for r, err := range transcript.Trace(s.Path, &skips) {
		if err != nil {
			return nil, 0, fmt.Errorf("reading the trace: %w", err)
		}
		switch {
		case r.Kind == "responded" && r.Usage != nil:
			u := r.Usage
			a := answered{purpose: or(r.Purpose, "main"), agent: r.Agent, step: window.Step{
				N: len(list) + 1, At: r.At, Model: r.Model, Prompt: u.Prompt(), Read: u.CacheRead, Written: u.CacheWrite(), Out: u.Out, Cost: r.Cost, Verdict: "hit",
			}}
			if u.CacheRead == 0 {
				a.step.Verdict = "first"
			}
			if a.agent == "" && a.purpose == "main" {
				a.summary, summary = summary, false
			}
			if a.purpose == "main" || a.purpose == "agent" {
				newest[a.agent] = len(list)
			}
			list = append(list, a)
		case r.Kind == "compacted" && r.Agent == "" && r.Text == "":
			summary = true
		case r.Kind == "crossed" && r.Boundary == "cache":
			at, ok := newest[r.Agent]
			if !ok {
				continue
			}
			d, st := r.Detail, &list[at].step
			st.Verdict, st.Break, st.Reason, st.Before, st.After = r.Name, d["break"], d["reason"], d["before"], d["after"]
			st.Planned = r.Name == "planned"
			list[at].expected, list[at].lost, list[at].price = d["expected"], d["lost"], d["price"]
		}
	}
	return number(s, list), skips.Count, nil
}

// number gives each answer the number of the request it came to: the newest
// one of its conversation and purpose that was sent before it came.
func number(s transcript.Summary, list []answered) []answered {
	r, err := transcript.ReadRequests(s.Path)
	if err != nil || len(r.All()) == 0 {
		return list
	}
	all := r.All()
	type line struct{ agent, purpose string }
	newest := map[line]int{}
	i := 0
	for k := range list {
		for ; i < len(all) && !all[i].At.After(list[k].step.At); i++ {
			newest[line{all[i].Agent, or(all[i].Purpose, "main")}] = all[i].N
		}
		if n, ok := newest[line{list[k].agent, list[k].purpose}]; ok {
			list[k].step.N = n
		}
	}
	return list
}
