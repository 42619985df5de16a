// Package journal keeps the events of one session in order and lets any
// number of readers follow them, each at its own pace.
//
// It owns the order, the sequence numbers and the memory that events take.
// Durable events reach the sink before any reader and before Append returns.
// Ephemeral ones (deltas, progress) are kept until a durable one covers them
// and either every reader has passed or too many have piled up. It knows the
// vocabulary only; what the sink does with an event is not its business.
package journal

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// A Sink takes a durable event to where it survives the process. It is called
// for one event at a time, in order. An error does not stop the session: the
// journal says once that events are not saved, and once when they are again.
type Sink func(agent.Event) error

// How much is kept. Readers lose nothing before these are reached.
const (
	maxCovered = 4 << 20  // bytes of ephemeral events that a durable one covers
	maxBulk    = 24 << 20 // estimated bytes of durable events kept whole
	maxDetails = 64       // results that keep their Detail
)

// A Journal is an ordered record of events. Its methods may be called
// concurrently. Writers never wait for readers.
type Journal struct {
	sink Sink
	// turn is held by the one Append at work: the sink may block, and rule
	// and tests want waiting on channels, not on mutexes.
	turn   chan struct{}
	broken bool // the sink failed last time; guarded by turn

	mu       sync.Mutex
	seq      uint64
	durable  []agent.Event
	live     []agent.Event // ephemeral
	covered  map[agent.CallID]uint64
	liveN    int // bytes in live
	trimAt   int // length of live at which to look for covered events
	bulk     int // estimated bytes of durable events that are whole
	thin     int // durable[:thin] have lost their bulk
	details  []int
	replaced int              // the newest event with a history, or -1
	readers  map[*uint64]bool // cursors of live readers
	wake     chan struct{}    // non-nil if a reader waits
	closed   bool
}

// New returns an empty journal. A nil sink saves nothing.
func New(sink Sink) *Journal {
	return &Journal{sink: sink, turn: make(chan struct{}, 1), covered: map[agent.CallID]uint64{},
		readers: map[*uint64]bool{}, trimAt: minTrim, replaced: -1}
}

const minTrim = 512

// Append records b as a fact of the sub-agent that works on the call parent
// (both empty for the main conversation) and returns the event. When it
// returns, a durable event has been through the sink. After Close it records
// nothing and returns an event without a place in the order.
func (j *Journal) Append(parent agent.CallID, agentID string, b agent.Body) agent.Event {
	j.turn <- struct{}{}
	defer func() { <-j.turn }()
	e := agent.Event{Seq: j.seq, At: time.Now(), Parent: parent, Agent: agentID, Body: b}
	if j.sink == nil || agent.Ephemeral(b) {
		j.publish(e)
		return e
	}
	err := j.sink(e)
	j.publish(e)
	switch {
	case err != nil && !j.broken:
		j.publish(agent.Event{Seq: j.seq, At: time.Now(), Body: agent.Noted{Level: "error",
			Text: "Transcript writes are failing: " + err.Error() + ". The session goes on, but what happens now is not saved; free space or fix the permissions of the session directory."}})
	case err == nil && j.broken:
		j.publish(agent.Event{Seq: j.seq, At: time.Now(), Body: agent.Noted{Level: "notice",
			Text: "Transcript writes work again. What happened in between is not in the session file."}})
	}
	j.broken = err != nil
	return e
}

// publish makes e readable. The caller holds turn, so nobody else changes seq.
func (j *Journal) publish(e agent.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return
	}
	j.seq++
	if agent.Ephemeral(e.Body) {
		j.live = append(j.live, e)
		j.liveN += weight(e.Body)
		if w, ok := e.Body.(agent.Wrote); ok {
			if _, ok := w.Delta.(agent.Reset); ok {
				j.cover(e)
			}
		}
	} else {
		j.keep(e)
	}
	if j.wake != nil {
		close(j.wake)
		j.wake = nil
	}
}

// Close ends the journal: readers return once they have read everything.
func (j *Journal) Close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	if j.wake != nil {
		close(j.wake)
		j.wake = nil
	}
}

// Read yields the events with Seq >= from, then follows until the journal is
// closed, or until ctx ends, which yields its cause as an error. A slow reader
// may miss ephemeral events that are covered; a reader that starts late finds
// old durable events without their bulk (see Journal's limits).
func (j *Journal) Read(ctx context.Context, from uint64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		cursor := from
		j.mu.Lock()
		j.readers[&cursor] = true
		j.mu.Unlock()
		defer func() {
			j.mu.Lock()
			delete(j.readers, &cursor)
			j.mu.Unlock()
		}()
		var batch []agent.Event
		for {
			j.mu.Lock()
			clear(batch)
			batch = since(batch[:0], j.durable, cursor)
			n := len(batch)
			batch = since(batch, j.live, cursor)
			var wake chan struct{}
			if len(batch) == 0 && !j.closed {
				if j.wake == nil {
					j.wake = make(chan struct{})
				}
				wake = j.wake
			}
			j.mu.Unlock()

			if wake != nil {
				select {
				case <-ctx.Done():
					yield(agent.Event{}, context.Cause(ctx))
					return
				case <-wake:
					continue
				}
			}
			if len(batch) == 0 {
				return
			}
			if 0 < n && n < len(batch) {
				slices.SortFunc(batch, func(a, b agent.Event) int { return cmp.Compare(a.Seq, b.Seq) })
			}
			for _, e := range batch {
				if ctx.Err() != nil {
					yield(agent.Event{}, context.Cause(ctx))
					return
				}
				if !yield(e, nil) {
					return
				}
				j.mu.Lock()
				cursor = e.Seq + 1
				j.mu.Unlock()
			}
		}
	}
}

func since(dst, src []agent.Event, from uint64) []agent.Event {
	i := sort.Search(len(src), func(i int) bool { return src[i].Seq >= from })
	return append(dst, src[i:]...)
}
