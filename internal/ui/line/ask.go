package line

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/termsafe"
)

// An answer is a line of the person, for the question that was open then.
type answer struct{ question, text string }

// ask puts a question to the person. Without one, or after the input ended,
// the answer is that there is no one to ask. Anything but a clear yes is a no.
func (t *talk) ask(ctx context.Context, q agent.Question) {
	no := agent.Answer{ID: q.ID, Err: agent.ErrNoOne.Error(), Decision: agent.Decision{Verdict: agent.Deny, NoOne: true}}
	confirm := q.Kind == agent.AskConfirm && t.o.Person
	if t.o.In == nil || q.Kind != agent.AskPermission && !confirm {
		t.submit(ctx, no)
		return
	}
	if slices.ContainsFunc(t.later, func(r result) bool { return withdraws(r, q.ID) }) {
		return // it came and went while another one was open
	}
	if confirm {
		t.line(t.paint("1;33", termsafe.String(q.Title)))
	} else {
		t.line(t.paint("1;33", "may "+title(q.Call)+" run?"))
	}
	if r := q.Decision.Reason; r != "" {
		t.line("  " + termsafe.String(r))
	}
	for _, w := range q.Decision.Warn {
		t.line("  " + termsafe.String(w))
	}
	always := ""
	if len(q.Decision.Suggest) > 0 {
		always = ", a(lways: " + suggestions(q.Decision.Suggest) + ")"
	}
	t.waiting.Store(&q.ID) // before it is seen: who answers at once is heard
	t.write("  y(es)" + always + ", n(o): ")
	defer t.waiting.Store(nil)
	events := t.events
	for {
		select {
		case <-ctx.Done():
			return
		case a, ok := <-t.answers:
			if !ok {
				t.line("")
				t.submit(ctx, no)
				return
			}
			if a.question == q.ID { // else it was for one withdrawn meanwhile
				t.submit(ctx, reply(q, a.text))
				return
			}
		case r, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			t.later = append(t.later, r)
			if withdraws(r, q.ID) {
				t.line("")
				t.line(t.paint("2", "that needs no answer any more"))
				return
			}
		}
	}
}

// withdraws says whether r takes the question id back.
func withdraws(r result, id string) bool {
	w, ok := r.event.Body.(agent.Withdrawn)
	return ok && w.ID == id
}

func (t *talk) submit(ctx context.Context, a agent.Answer) {
	_ = t.s.Submit(ctx, a) // a question that was withdrawn meanwhile needs no answer
}

// reply reads the person's line.
func reply(q agent.Question, text string) agent.Answer {
	d := agent.Decision{Verdict: agent.Deny, Why: agent.WhyUser, By: "user"}
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch strings.ToLower(word) {
	case "y", "yes":
		d.Verdict = agent.Allow
	case "a", "always":
		d.Verdict, d.Updates = agent.Allow, q.Decision.Suggest
	case "n", "no", "":
		d.Reason = strings.TrimSpace(rest)
		d.Interrupt = d.Reason == "" // a plain no ends the turn; a reason goes to the model
	default:
		d.Reason = strings.TrimSpace(text)
	}
	if d.Verdict == agent.Deny && d.Reason == "" {
		d.Reason = "The user does not want this call to run."
	}
	return agent.Answer{ID: q.ID, Decision: d}
}

func suggestions(list []agent.PermissionUpdate) string {
	var out []string
	for _, u := range list {
		switch u.Type {
		case "setMode":
			out = append(out, "mode "+string(u.Mode))
		case "addDirectories":
			out = append(out, "directories "+strings.Join(u.Directories, ", "))
		default:
			for _, r := range u.Rules {
				out = append(out, r.String())
			}
		}
	}
	return termsafe.String(strings.Join(out, ", "))
}

// title is a call in one line: the tool and what it is about.
func title(c agent.Call) string {
	var in map[string]any
	if json.Unmarshal(c.Input, &in) != nil {
		return c.Name
	}
	for _, key := range []string{"command", "file_path", "notebook_path", "pattern", "url", "query", "description", "skill", "subject"} {
		if v, ok := in[key].(string); ok && v != "" {
			return termsafe.String(fmt.Sprintf("%s(%s)", c.Name, v))
		}
	}
	return termsafe.String(c.Name)
}
