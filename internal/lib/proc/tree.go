package proc

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// An entry is one live process of the machine.
type entry struct {
	pid, ppid, group, session int
	start                     uint64 // tells two processes with one number apart
}

// A tree is a child's session, its group, and the descendants of both.
type tree struct {
	leader int
	known  map[int]entry
}

// refresh brings the tree up to date with all, a list of live processes.
// Members that left the session stay members as long as they live, although
// nothing would show any more where they came from. It returns the members
// that were not known before.
func (t *tree) refresh(all []entry) (fresh []entry) {
	live := make(map[int]entry, len(all))
	for _, e := range all {
		live[e.pid] = e
	}
	for pid, e := range t.known {
		if now, ok := live[pid]; !ok || now.start != e.start {
			delete(t.known, pid)
		}
	}
	for grown := true; grown; {
		grown = false
		for _, e := range all {
			if _, ok := t.known[e.pid]; ok {
				continue
			}
			_, child := t.known[e.ppid]
			if child || e.session == t.leader || e.group == t.leader || e.pid == t.leader {
				t.known[e.pid] = e
				fresh = append(fresh, e)
				grown = true
			}
		}
	}
	return fresh
}

// Kill ends the child and its descendants: SIGTERM, a second one for those
// that are left after a quarter of grace, and SIGKILL after all of it.
// It returns when all of them are dead, or with an error that counts those
// which would not die. A tree that is dead already is no error.
func (p *Process) Kill(grace time.Duration) error {
	if p.terminal {
		return p.killOne(grace)
	}
	t := tree{leader: p.pid, known: map[int]entry{}}
	begin, first, again := time.Now(), true, false
	timer := time.NewTimer(0)
	defer timer.Stop()
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		gone := p.reaped()
		all, err := processes()
		if err != nil { // no list to be had: the group is all we can reach
			if gone && !groupAlive(p.pid) {
				p.release()
				return nil
			}
			all = nil
		}
		var fresh []entry
		if !gone || !numberReused(all, p.pid) {
			fresh = t.refresh(all)
		}
		if gone && len(t.known) == 0 && (err == nil || !groupAlive(p.pid)) {
			p.release()
			return nil
		}
		switch elapsed := time.Since(begin); {
		case elapsed >= grace+killLimit:
			return fmt.Errorf("%d processes of child %d do not die", max(len(t.known), 1), p.pid)
		case elapsed >= grace:
			p.force(t, gone)
		case elapsed >= grace/4 && !again:
			// Who was just being forked, or between fork and exec, may have
			// missed the first, and a shell that waits for it cannot obey.
			again = true
			p.ask(slices.Collect(maps.Values(t.known)), false)
		default:
			p.ask(fresh, first)
		}
		first = false
		timer.Reset(pause)
		if gone {
			<-timer.C
			continue
		}
		select {
		case <-timer.C:
		case <-p.exited:
		}
	}
}

// reaped reports whether the child has ended and its number is free.
func (p *Process) reaped() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// numberReused reports whether the number of a reaped leader names a new process.
func numberReused(all []entry, leader int) bool {
	for _, e := range all {
		if e.pid == leader {
			return true
		}
	}
	return false
}

// Remaining counts the live processes of the child's session and group, and
// their descendants. While the group is empty this is one system call.
func (p *Process) Remaining() int {
	if p.terminal || p.reaped() && !p.sys.left(p.pid) {
		return 0
	}
	all, err := processes()
	if err != nil {
		return 1
	}
	if p.reaped() && numberReused(all, p.pid) {
		return 0
	}
	t := tree{leader: p.pid, known: map[int]entry{}}
	t.refresh(all)
	return len(t.known)
}

// WaitGroup waits until no process of the child's group is left, or ctx ends.
// Nobody tells us of the end of a process that is not our child, so this
// looks at growing intervals, at most one second.
func (p *Process) WaitGroup(ctx context.Context) error {
	if _, err := p.Wait(); err != nil {
		return err
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for pause := 10 * time.Millisecond; p.Remaining() > 0; pause = min(2*pause, time.Second) {
		timer.Reset(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	p.release()
	return nil
}
