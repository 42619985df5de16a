// Package job keeps the background work of a session: shells and sub-agents
// that go on beside the turns. It owns their list, their states, the caps on
// their number, stopping them, and the notice that tells the model of an end.
// It does not run anything itself: whoever starts a job does its work, and
// says here how it goes. It does not know the session; events and notices
// leave through functions.
package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// Types of jobs.
const (
	Shell = "local_bash"
	Agent = "local_agent"
)

// States of jobs.
const (
	Running   = "running"
	Completed = "completed"
	Failed    = "failed"
	Killed    = "killed"
)

// Options says where news of jobs goes, and how many there may be.
type Options struct {
	// Emit tells a change. It may be called concurrently. Nil: nobody is told.
	Emit func(agent.Worked)
	// Notify tells that a background job ended, to be put before the model;
	// Notice makes the text. It may be called concurrently and must not call
	// back into the Registry. Nil: nobody is told.
	Notify func(agent.Task)
	// Max caps the jobs of a type that run at one time. A type without an
	// entry has the default: 20 sub-agents, 50 shells, 50 of any other.
	Max map[string]int
	// ID makes ids. Nil: a short random word with a letter for the type.
	ID func(kind string) string
	// Keep is the number of ended jobs that stay listed; 0 is 100.
	Keep int
}

// ErrLimit reports that as many jobs run as may.
var ErrLimit = errors.New("too many run already")

// A Registry is the list of jobs of one session. Its methods may be called
// concurrently.
type Registry struct {
	o Options

	mu    sync.Mutex
	jobs  []*Job // in order of their start
	byID  map[string]*Job
	wake  chan struct{} // closed and replaced when a job ends or changes
	ended bool          // Close was called
}

// New returns an empty Registry.
func New(o Options) *Registry {
	if o.Keep == 0 {
		o.Keep = 100
	}
	if o.ID == nil {
		o.ID = randomID
	}
	return &Registry{o: o, byID: map[string]*Job{}, wake: make(chan struct{})}
}

// A Job is one piece of work in a Registry. Whoever started it must call End.
type Job struct {
	r    *Registry
	stop context.CancelCauseFunc
	done chan struct{}

	// guarded by r.mu
	task   agent.Task
	begun  time.Time // monotonic
	over   bool
	quiet  bool // no notice when it ends
	killed bool // a stop was asked for
}

// ErrStopped is the cause of a job's context after Stop.
var ErrStopped = errors.New("stopped")

// Start lists t as running and tells it. t.ID may be empty. The context it
// returns ends with ErrStopped when somebody stops the job; it does not end
// with ctx, whose values it has: background work outlives the call that
// started it. Over the cap, and after Close, it fails with ErrLimit or a
// reason, and nothing was started.
func (r *Registry) Start(ctx context.Context, t agent.Task) (context.Context, *Job, error) {
	r.mu.Lock()
	if r.ended {
		r.mu.Unlock()
		return nil, nil, errors.New("starting background work: the session is ending")
	}
	if n, most := r.running(t.Type), r.most(t.Type); n >= most {
		r.mu.Unlock()
		return nil, nil, fmt.Errorf("starting %s: %w: %d of at most %d", t.Type, ErrLimit, n, most)
	}
	for t.ID == "" || r.byID[t.ID] != nil && !r.byID[t.ID].over {
		t.ID = r.o.ID(t.Type)
	}
	t.Status = Running
	now := time.Now()
	if t.Started.IsZero() {
		t.Started = now
	}
	jctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	j := &Job{r: r, stop: cancel, done: make(chan struct{}), task: t, begun: now}
	if old := r.byID[t.ID]; old != nil { // resumed under its old id
		r.jobs = slices.DeleteFunc(r.jobs, func(x *Job) bool { return x == old })
	}
	r.jobs = append(r.jobs, j)
	r.byID[t.ID] = j
	r.mu.Unlock()
	r.emit("started", t)
	return jctx, j, nil
}

func (r *Registry) emit(stage string, t agent.Task) {
	if r.o.Emit != nil {
		r.o.Emit(agent.Worked{Stage: stage, Task: t})
	}
}

func (r *Registry) running(kind string) int {
	n := 0
	for _, j := range r.jobs {
		if !j.over && j.task.Type == kind {
			n++
		}
	}
	return n
}

func (r *Registry) most(kind string) int {
	if n, ok := r.o.Max[kind]; ok {
		return n
	}
	if kind == Agent {
		return 20
	}
	return 50
}

// Task returns the job as it is now.
func (j *Job) Task() agent.Task {
	j.r.mu.Lock()
	defer j.r.mu.Unlock()
	return j.task
}

// Done is closed when the job has ended.
func (j *Job) Done() <-chan struct{} { return j.done }

// Progress changes the numbers of the job (usage, last tool, summary) and
// tells them. f must not block.
func (j *Job) Progress(f func(*agent.Task)) { j.change("progress", f) }

// Update changes anything else about the job (background, description) and
// tells it. f must not block.
func (j *Job) Update(f func(*agent.Task)) { j.change("updated", f) }

func (j *Job) change(stage string, f func(*agent.Task)) {
	j.r.mu.Lock()
	if j.over {
		j.r.mu.Unlock()
		return
	}
	id := j.task.ID
	f(&j.task)
	j.task.ID = id
	t := j.task
	j.r.signal()
	j.r.mu.Unlock()
	j.r.emit(stage, t)
}

// Quiet says that nobody waits for a notice of the end: whoever started the
// job hands its result over himself.
func (j *Job) Quiet() {
	j.r.mu.Lock()
	defer j.r.mu.Unlock()
	j.quiet = true
}

// End closes the job. Status is Completed, Failed or Killed; after a Stop it
// is Killed whatever is said. f, if not nil, sets what else is known (summary,
// error, usage). The end is told, a background job's notice is sent, and only
// then do Wait and Stop return. A second End does nothing.
func (j *Job) End(status string, f func(*agent.Task)) {
	j.r.mu.Lock()
	if j.over {
		j.r.mu.Unlock()
		return
	}
	j.over = true
	if f != nil {
		id := j.task.ID
		f(&j.task)
		j.task.ID = id
	}
	if j.killed {
		status = Killed
	}
	j.task.Status = status
	j.task.Ended = time.Now()
	if j.task.Usage.Took == 0 {
		j.task.Usage.Took = time.Since(j.begun)
	}
	t, quiet := j.task, j.quiet || !j.task.Background
	j.r.mu.Unlock()

	j.r.emit("ended", t)
	if !quiet && j.r.o.Notify != nil {
		j.r.o.Notify(t)
	}
	j.stop(nil)
	j.r.mu.Lock()
	close(j.done)
	j.r.forget()
	j.r.signal()
	j.r.mu.Unlock()
}

// forget drops the oldest ended jobs beyond Keep.
func (r *Registry) forget() {
	over := 0
	for _, j := range r.jobs {
		if j.over {
			over++
		}
	}
	r.jobs = slices.DeleteFunc(r.jobs, func(j *Job) bool {
		if over <= r.o.Keep || !j.over {
			return false
		}
		over--
		delete(r.byID, j.task.ID)
		return true
	})
}

func (r *Registry) signal() {
	close(r.wake)
	r.wake = make(chan struct{})
}

// List returns all jobs that are known, in order of their start.
func (r *Registry) List() []agent.Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]agent.Task, 0, len(r.jobs))
	for _, j := range r.jobs {
		out = append(out, j.task)
	}
	return out
}

// Running returns the jobs that run in the background now.
func (r *Registry) Running() []agent.Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []agent.Task
	for _, j := range r.jobs {
		if !j.over && j.task.Background {
			out = append(out, j.task)
		}
	}
	return out
}

// Find returns the job with that id.
func (r *Registry) Find(id string) (agent.Task, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j := r.byID[id]; j != nil {
		return j.task, true
	}
	return agent.Task{}, false
}

// Output returns the file that holds the output of a job, "" if it has none.
func (r *Registry) Output(id string) (path string, ok bool) {
	t, ok := r.Find(id)
	return t.Output, ok
}

// Job returns the running job with that id, or nil.
func (r *Registry) Job(id string) *Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j := r.byID[id]; j != nil && !j.over {
		return j
	}
	return nil
}

// Stop stops a job and waits for its end, or for the end of ctx.
func (r *Registry) Stop(ctx context.Context, id string) error {
	r.mu.Lock()
	j := r.byID[id]
	if j == nil {
		r.mu.Unlock()
		return fmt.Errorf("no task with the id %q", id)
	}
	if j.over {
		status := j.task.Status
		r.mu.Unlock()
		return fmt.Errorf("task %s is not running (status %s)", id, status)
	}
	j.killed = true
	r.mu.Unlock()
	j.stop(ErrStopped)
	select {
	case <-j.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for task %s to stop: %w", id, context.Cause(ctx))
	}
}

// Wait returns once no background job of that type runs and the notices of
// those that ended have been handed over, or with the cause of ctx.
func (r *Registry) Wait(ctx context.Context, kind string) error {
	for {
		r.mu.Lock()
		wake, busy := r.wake, false
		for _, j := range r.jobs {
			if j.task.Type == kind && j.task.Background {
				select {
				case <-j.done:
				default:
					busy = true
				}
			}
		}
		r.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Close stops all jobs without notices, refuses new ones, and waits until
// they have ended or ctx has.
func (r *Registry) Close(ctx context.Context) error {
	r.mu.Lock()
	r.ended = true
	open := []*Job{}
	for _, j := range r.jobs {
		if !j.over {
			j.killed, j.quiet = true, true
			open = append(open, j)
		}
	}
	r.mu.Unlock()
	for _, j := range open {
		j.stop(ErrStopped)
	}
	for _, j := range open {
		select {
		case <-j.done:
		case <-ctx.Done():
			return fmt.Errorf("stopping background work: %w", context.Cause(ctx))
		}
	}
	return nil
}
