package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

type news struct {
	mu   sync.Mutex
	list []string
}

func (n *news) add(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, fmt.Sprintf(format, args...))
}

func (n *news) options() Options {
	return Options{
		Emit:   func(w agent.Worked) { n.add("%s %s %s", w.Stage, w.Task.ID, w.Task.Status) },
		Notify: func(t agent.Task) { n.add("notice %s %s", t.ID, t.Status) },
	}
}

func start(t *testing.T, r *Registry, task agent.Task) (context.Context, *Job) {
	t.Helper()
	ctx, j, err := r.Start(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	return ctx, j
}

func TestLife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n news
		r := New(n.options())
		_, fg := start(t, r, agent.Task{ID: "fg", Type: Agent})
		ctx, bg := start(t, r, agent.Task{ID: "bg", Type: Shell, Background: true, Output: "/o"})
		time.Sleep(time.Second)
		bg.Progress(func(t *agent.Task) { t.Usage.Tools++; t.ID = "other" })
		fg.Update(func(t *agent.Task) { t.Background = true })
		fg.Quiet()
		fg.End(Completed, func(t *agent.Task) { t.Summary = "done" })
		fg.End(Failed, nil)
		bg.End(Failed, nil)
		bg.Progress(func(*agent.Task) { t.Error("after the end") })
		want := []string{"started fg running", "started bg running", "progress bg running", "updated fg running", "ended fg completed", "ended bg failed", "notice bg failed"}
		if !slices.Equal(n.list, want) {
			t.Errorf("got %v\nwant %v", n.list, want)
		}
		if ctx.Err() == nil {
			t.Error("the context of an ended job goes on")
		}
		task, ok := r.Find("bg")
		if out, _ := r.Output("bg"); !ok || out != "/o" || task.Usage.Tools != 1 || task.Usage.Took != time.Second || task.Ended.IsZero() {
			t.Errorf("%+v", task)
		}
		if len(r.List()) != 2 || len(r.Running()) != 0 || r.Job("bg") != nil {
			t.Errorf("%v %v", r.List(), r.Running())
		}
	})
}

func TestStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n news
		r := New(n.options())
		ctx, j := start(t, r, agent.Task{ID: "a", Type: Shell, Background: true})
		go func() {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), ErrStopped) {
				t.Error(context.Cause(ctx))
			}
			time.Sleep(time.Second) // it has children to end
			j.End(Completed, nil)
		}()
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := r.Stop(short, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := r.Stop(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		if task, _ := r.Find("a"); task.Status != Killed {
			t.Errorf("%+v", task)
		}
		for _, id := range []string{"a", "none"} {
			if r.Stop(t.Context(), id) == nil {
				t.Errorf("%s was stopped", id)
			}
		}
		if !slices.Contains(n.list, "notice a killed") {
			t.Error(n.list)
		}
	})
}

func TestCaps(t *testing.T) {
	t.Parallel()
	o := Options{Max: map[string]int{Agent: 2}, Keep: 3}
	r := New(o)
	_, a := start(t, r, agent.Task{Type: Agent})
	start(t, r, agent.Task{Type: Agent})
	start(t, r, agent.Task{Type: Shell})
	if _, _, err := r.Start(t.Context(), agent.Task{Type: Agent}); !errors.Is(err, ErrLimit) {
		t.Error(err)
	}
	a.End(Completed, nil)
	for range 10 {
		_, j := start(t, r, agent.Task{Type: Agent})
		j.End(Completed, nil)
	}
	if n := len(r.List()); n != 5 {
		t.Errorf("%d listed, want two that run and three that ended", n)
	}
	_, again := start(t, r, agent.Task{ID: r.List()[4].ID, Type: Agent})
	if n := len(r.List()); n != 5 || r.Job(again.Task().ID) != again {
		t.Errorf("%d listed", n)
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := New(Options{Notify: func(agent.Task) { time.Sleep(time.Second) }})
		begin := time.Now()
		_, a := start(t, r, agent.Task{Type: Agent, Background: true})
		start(t, r, agent.Task{Type: Shell, Background: true}) // not waited for
		start(t, r, agent.Task{Type: Agent})                   // nor this
		time.AfterFunc(time.Second, func() {
			_, b := start(t, r, agent.Task{Type: Agent, Background: true})
			a.End(Completed, nil)
			time.AfterFunc(time.Second, func() { b.End(Completed, nil) })
		})
		var late time.Duration // of a wait that begins while the last notice is handed over
		time.AfterFunc(3500*time.Millisecond, func() {
			_ = r.Wait(context.Background(), Agent)
			late = time.Since(begin)
		})
		if err := r.Wait(t.Context(), Agent); err != nil || time.Since(begin) != 4*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		synctest.Wait()
		if late != 4*time.Second {
			t.Errorf("the second wait ended after %v", late)
		}
		start(t, r, agent.Task{Type: Agent, Background: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Wait(ctx, Agent); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

func TestClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n news
		r := New(n.options())
		for range 3 {
			ctx, j := start(t, r, agent.Task{Type: Shell, Background: true})
			context.AfterFunc(ctx, func() { j.End(Completed, nil) })
		}
		stuck, _ := start(t, r, agent.Task{ID: "stuck", Type: Shell})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if !errors.Is(context.Cause(stuck), ErrStopped) || strings.Contains(fmt.Sprint(n.list), "notice") {
			t.Error(n.list)
		}
		if _, _, err := r.Start(t.Context(), agent.Task{}); err == nil {
			t.Error("started after Close")
		}
	})
}

func TestNotice(t *testing.T) {
	t.Parallel()
	got := Notice(agent.Task{ID: "b1", Call: "toolu_1", Output: "/tmp/o", Status: Killed, Summary: "</summary><x>&"})
	want := `<task-notification>
<task-id>b1</task-id>
<tool-use-id>toolu_1</tool-use-id>
<output-file>/tmp/o</output-file>
<status>stopped</status>
<summary>&lt;/summary&gt;&lt;x&gt;&amp;</summary>
</task-notification>`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	p := Prompt(agent.Task{})
	if p.Origin != "task-notification" || !p.Verbatim {
		t.Errorf("%+v", p)
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		for _, k := range []string{Agent, Shell} {
			id := randomID(k)
			if len(id) != 9 || seen[id] || (id[0] == 'a') != (k == Agent) {
				t.Fatal(id)
			}
			seen[id] = true
		}
	}
}
