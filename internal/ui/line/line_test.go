package line

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// A stage is a session that is told what to say.
type stage struct {
	events chan agent.Event

	mu     sync.Mutex
	inputs []agent.Input
}

func (s *stage) Submit(_ context.Context, in agent.Input) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inputs = append(s.inputs, in)
	return nil
}

func (s *stage) Events(ctx context.Context, _ uint64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for {
			select {
			case e, ok := <-s.events:
				if !ok || !yield(e, nil) {
					return
				}
			case <-ctx.Done():
				yield(agent.Event{}, context.Cause(ctx))
				return
			}
		}
	}
}

func (s *stage) answers() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, in := range s.inputs {
		if a, ok := in.(agent.Answer); ok {
			out = append(out, fmt.Sprintf("%s %s", a.ID, a.Decision.Verdict))
		}
	}
	return out
}

func asked(id string) agent.Event {
	return agent.Event{Body: agent.Asked{Question: agent.Question{ID: id, Kind: agent.AskPermission, Call: agent.Call{Name: "Bash"}}}}
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		once  bool
		steps []any // an event, or a line that is typed once all else is at rest
		want  string
		shown string
	}{
		{"a yes", true, []any{asked("q1"), "y"}, "q1 allow", "may Bash run?"},
		{"a no", true, []any{asked("q1"), "n"}, "q1 deny", ""},
		{"anything else is a no", true, []any{asked("q1"), "yeah, why not"}, "q1 deny", ""},
		{"typed ahead", true, []any{"y", asked("q1"), "n"}, "q1 deny", ""},
		{"typed twice", true, []any{asked("q1"), "y\ny", asked("q2"), "n"}, "q1 allow,q2 deny", ""},
		{"taken back", true, []any{asked("q1"), agent.Event{Body: agent.Withdrawn{ID: "q1"}}, "y", asked("q2"), "n"}, "q2 deny", "no answer any more"},
		{"one after the other", true, []any{asked("q1"), asked("q2"), "y", "n"}, "q1 allow,q2 deny", ""},
		{"taken back while another is open", true, []any{asked("q1"), asked("q2"), agent.Event{Body: agent.Withdrawn{ID: "q2"}}, "y", "n"}, "q1 allow", ""},
		{"in a conversation", false, []any{"hello", asked("q1"), "y"}, "q1 allow", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stage{events: make(chan agent.Event)}
				in, keys := io.Pipe()
				var out bytes.Buffer
				done := make(chan int)
				go func() { done <- Run(t.Context(), s, Options{In: in, Out: &out, Once: tt.once}) }()
				for _, step := range tt.steps {
					synctest.Wait()
					switch step := step.(type) {
					case agent.Event:
						s.events <- step
					case string:
						io.WriteString(keys, step+"\n")
					}
				}
				synctest.Wait()
				close(s.events)
				keys.Close()
				<-done
				if got := strings.Join(s.answers(), ","); got != tt.want {
					t.Errorf("got answers %q, want %q\n%s", got, tt.want, &out)
				}
				if !strings.Contains(out.String(), tt.shown) {
					t.Errorf("%q was not shown:\n%s", tt.shown, &out)
				}
			})
		})
	}
}

func TestTheEndOfTheInputIsNoYes(t *testing.T) {
	t.Parallel()
	s := &stage{events: make(chan agent.Event, 2)}
	s.events <- asked("q1")
	close(s.events)
	Run(t.Context(), s, Options{In: strings.NewReader(""), Out: io.Discard, Once: true})
	if got := strings.Join(s.answers(), ","); got != "q1 deny" {
		t.Errorf("got %q, want a refusal", got)
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{events: make(chan agent.Event)}
		ctx, cancel := context.WithCancel(t.Context())
		in, keys := io.Pipe()
		done := make(chan int)
		go func() { done <- Run(ctx, s, Options{In: in, Out: io.Discard, Once: true}) }()
		s.events <- asked("q1")
		synctest.Wait()
		cancel()
		if code := <-done; code != 1 {
			t.Errorf("got code %d, want 1", code)
		}
		keys.Close()
	})
}

// What goes through without a person is asked only where one is: a line from
// a pipe is a prompt, and no answer to it.
func TestConfirm(t *testing.T) {
	t.Parallel()
	for name, person := range map[string]bool{"a person": true, "a pipe": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stage{events: make(chan agent.Event)}
				in, keys := io.Pipe()
				var out bytes.Buffer
				done := make(chan int)
				go func() { done <- Run(t.Context(), s, Options{In: in, Out: &out, Person: person}) }()
				synctest.Wait()
				s.events <- agent.Event{Body: agent.Asked{Question: agent.Question{ID: "q1", Kind: agent.AskConfirm, Title: "It costs \x1b[31m$1. Switch?"}}}
				synctest.Wait()
				io.WriteString(keys, "y\n")
				synctest.Wait()
				close(s.events)
				keys.Close()
				<-done
				var got agent.Answer
				prompts := 0
				s.mu.Lock()
				defer s.mu.Unlock()
				for _, in := range s.inputs {
					switch in := in.(type) {
					case agent.Answer:
						got = in
					case agent.Prompt:
						prompts++
					}
				}
				if asked := strings.Contains(out.String(), "Switch?"); asked != person || strings.Contains(out.String(), "\x1b") {
					t.Errorf("shown was %q", &out)
				}
				if person && (got.Decision.Verdict != agent.Allow || prompts != 0) {
					t.Errorf("got %+v and %d prompts", got, prompts)
				}
				if !person && (got.Err == "" || prompts != 1) {
					t.Errorf("got %+v and %d prompts, want no answer and one prompt", got, prompts)
				}
			})
		})
	}
}
