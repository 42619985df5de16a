package shell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
)

// task is r as the list of background work shows it.
func (r *run) task(c agent.Call, in bashInput) agent.Task {
	name := in.Description
	if name == "" {
		name = firstChars(in.Command, 200)
	}
	return agent.Task{
		ID: r.id, Type: "local_bash", Call: c.ID, Status: "running", Description: name,
		Command: in.Command, Output: r.path, Background: true, Owner: c.Agent, Started: r.begun,
	}
}

// background starts a command and returns at once.
func (b *bash) background(ctx context.Context, c agent.Call, in bashInput, dir string) (agent.Result, error) {
	if b.o.Jobs.Start == nil {
		return agent.Failed("Background commands are switched off here. Run it without run_in_background."), nil
	}
	r, err := b.start(context.WithoutCancel(ctx), newID(), in, dir)
	if err != nil {
		return agent.Result{}, err
	}
	if err := b.handOver(ctx, r, c, in, millis(in.Timeout)); err != nil {
		r.end(errStopped)
		r.close(false)
		return agent.Result{}, err
	}
	res := agent.Textual(fmt.Sprintf("Started in the background as task %s.\nIts output goes to %s; read that file to follow it. You will be told when it ends; TaskStop ends it.", r.id, r.path))
	res.Detail = detail{NoOutputExpected: true, Task: r.id}
	return res, nil
}

// moveToBackground lets a running command go on as a task. ok is false if it
// cannot. limit is the timeout it reached, or 0 if a person moved it.
func (b *bash) moveToBackground(ctx context.Context, r *run, c agent.Call, in bashInput, limit time.Duration) (res agent.Result, ok bool) {
	if err := b.handOver(ctx, r, c, in, 0); err != nil {
		return agent.Result{}, false
	}
	why := "The person moved the command to the background"
	d := detail{Task: r.id, ByUser: limit == 0}
	if limit > 0 {
		why = fmt.Sprintf("The command still ran after %s and was moved to the background", brief(limit))
		d.TimedOut = limit.Milliseconds()
	}
	v := r.view(previewText, true, true, "")
	text := fmt.Sprintf("%s as task %s.\nIts output goes to %s; read that file to follow it. You will be told when it ends; TaskStop ends it.", why, r.id, r.path)
	if v.text != "" {
		text += "\nOutput so far:\n" + v.text
	}
	d.Stdout = v.text
	res = agent.Textual(text)
	res.Detail = d
	return res, true
}

// lingering counts the processes that a command has left running. What ends
// by itself within settle, such as the rest of a pipeline, is not counted.
func (r *run) lingering(settle time.Duration) int {
	if r.p.Remaining() == 0 {
		return 0
	}
	short, cancel := context.WithTimeoutCause(context.Background(), settle, errTimeout)
	defer cancel()
	if err := r.p.WaitGroup(short); err == nil {
		return 0
	}
	return r.p.Remaining()
}

// adopt lists the n processes that a command has left running, so that
// somebody can stop them and they end with the session. Without a list they
// are killed: nothing may outlive us by accident. If id is not "", r is not
// ours any more.
func (b *bash) adopt(r *run, n int, c agent.Call, in bashInput) (id, note string) {
	what, them := fmt.Sprintf("%d processes", n), "them"
	if n == 1 {
		what, them = "1 process", "it"
	}
	if b.o.Jobs.Start != nil {
		t := r.task(c, in)
		if job, end, err := b.o.Jobs.Start(context.Background(), t, true); err == nil {
			go b.oversee(job, end, r, t, b.limitOf(c, 0))
			return r.id, fmt.Sprintf("Note: %s started by this command run on; what they write goes to %s (task %s; TaskStop ends %s).", what, r.path, r.id, them)
		}
	}
	if err := r.p.Kill(time.Second); err != nil {
		return "", "Note: " + what + " started by this command could not be ended: " + err.Error()
	}
	return "", fmt.Sprintf("Note: %s started by this command still ran when it ended and were stopped.", what)
}

// limitOf is how long a background command may run; 0 is as long as it likes.
func (b *bash) limitOf(c agent.Call, asked time.Duration) time.Duration {
	if asked == 0 && c.Agent != "" {
		return b.o.AgentLimit
	}
	return asked
}

// handOver lists r as background work that a goroutine of its own oversees;
// the list waits for it.
func (b *bash) handOver(ctx context.Context, r *run, c agent.Call, in bashInput, limit time.Duration) error {
	t := r.task(c, in)
	job, end, err := b.o.Jobs.Start(ctx, t, false)
	if err != nil {
		return err
	}
	go b.oversee(job, end, r, t, b.limitOf(c, limit))
	return nil
}

// oversee waits for the end of a background command and of what it started,
// and tells it.
func (b *bash) oversee(job context.Context, end func(agent.Task), r *run, t agent.Task, limit time.Duration) {
	// The clock runs on the time since the command began.
	if limit > 0 {
		var cancel context.CancelFunc
		job, cancel = context.WithDeadlineCause(job, r.begun.Add(limit), errTimeout)
		defer cancel()
	}
	job, cancel := context.WithCancelCause(job)
	defer cancel(nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.p.WaitGroup(job)
	}()
	look := time.NewTicker(nextLook)
	defer look.Stop()
wait:
	for {
		select {
		case <-ended:
			break wait
		case <-look.C:
			if r.grown(nil) > b.o.MaxOutput {
				cancel(errFlood)
			}
		case <-job.Done():
			if err := r.p.Kill(time.Second); err != nil {
				t.Err = err.Error()
			}
			<-ended
			break wait
		}
	}
	exit, _ := r.p.Wait()
	t.Ended = time.Now()
	t.Usage.Took = t.Ended.Sub(t.Started)
	t.Status, t.Summary = outcome(t.Description, exit, context.Cause(job), limit)
	r.close(true)
	end(t)
}

// outcome says in a status and a sentence how a background command ended.
func outcome(name string, exit proc.Exit, cause error, limit time.Duration) (status, summary string) {
	what := fmt.Sprintf("Background command %q ", name)
	switch {
	case errors.Is(cause, errTimeout):
		return "failed", what + "was ended after " + brief(limit)
	case errors.Is(cause, errFlood):
		return "failed", what + "was ended: its output grew without bounds"
	case cause != nil:
		return "killed", what + "was stopped"
	case exit.OK():
		return "completed", what + "completed (exit code 0)"
	case exit.Signal != "":
		return "failed", what + "was ended by " + exit.Signal
	}
	return "failed", fmt.Sprintf("%sfailed with exit code %d", what, exit.Code)
}
