package journal

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

func chunk(s string) agent.Body { return agent.Wrote{Delta: agent.Chunk{Kind: "text_delta", Text: s}} }

func said(s string) agent.Body {
	return agent.Said{Message: agent.Message{Blocks: []agent.Block{&agent.Text{Text: s}}}}
}

func show(e agent.Event) string {
	switch b := e.Body.(type) {
	case agent.Wrote:
		if c, ok := b.Delta.(agent.Chunk); ok {
			return string(e.Parent) + "~" + c.Text
		}
		return string(e.Parent) + "~reset"
	case agent.Said:
		return string(e.Parent) + "said " + agent.TextOf(b.Message.Blocks)
	case agent.Noted:
		return b.Level
	}
	return fmt.Sprintf("%T", e.Body)
}

// all reads a closed journal to its end.
func all(t *testing.T, j *Journal, from uint64) (out []string) {
	t.Helper()
	last := uint64(0)
	for e, err := range j.Read(t.Context(), from) {
		if err != nil {
			t.Fatal(err)
		}
		if len(out) > 0 && e.Seq <= last {
			t.Errorf("%d after %d", e.Seq, last)
		}
		last = e.Seq
		out = append(out, show(e))
	}
	return out
}

func TestOrder(t *testing.T) {
	t.Parallel()
	j := New(nil)
	for i, b := range []agent.Body{chunk("a"), said("b"), chunk("c"), agent.Settled{}} {
		if e := j.Append("", "", b); e.Seq != uint64(i) || e.At.IsZero() {
			t.Errorf("%+v", e)
		}
	}
	j.Close()
	if got := all(t, j, 0); !slices.Equal(got, []string{"~a", "said b", "~c", "agent.Settled"}) {
		t.Error(got)
	}
	if got := all(t, j, 2); !slices.Equal(got, []string{"~c", "agent.Settled"}) {
		t.Error(got)
	}
	if got := all(t, j, 99); len(got) != 0 {
		t.Error(got)
	}
}

// A reader that stalls loses deltas that a finished message of the same
// Parent covers, and nothing else; only once more of them have piled up than
// are kept.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	j := New(nil)
	big := strings.Repeat("x", 100<<10)
	j.Append("", "", chunk("first"))
	next, stop := pull(t, j)
	defer stop()
	if got := next(); got != "~first" {
		t.Fatal(got)
	}
	j.Append("other", "k", chunk("of another"))
	for range 10 {
		for range 100 {
			j.Append("", "", chunk(big))
		}
		j.Append("", "", said("m"))
	}
	j.Append("", "", chunk("last"))
	j.Close()
	var got []string
	chunks := 0
	for s := next(); s != ""; s = next() {
		if strings.HasPrefix(s, "~x") {
			chunks++
			continue
		}
		got = append(got, s)
	}
	want := append([]string{"other~of another"}, slices.Repeat([]string{"said m"}, 10)...)
	if want = append(want, "~last"); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if most := maxCovered/len(big) + 101; chunks > most {
		t.Errorf("%d chunks were kept, want at most %d", chunks, most)
	}
}

// pull reads a journal one event at a time; "" is the end.
func pull(t *testing.T, j *Journal) (next func() string, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ch := make(chan string)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(ch)
		for e, err := range j.Read(ctx, 0) {
			if err != nil {
				return
			}
			select {
			case ch <- show(e):
			case <-ctx.Done():
				return
			}
		}
	})
	return func() string { return <-ch }, func() { cancel(); wg.Wait() }
}

// What a reader in time gets does not depend on how fast everything happens.
func TestBurstIsNotLost(t *testing.T) {
	t.Parallel()
	j := New(nil)
	for i := range 300 {
		for range 5 {
			j.Append("", "", chunk("x"))
		}
		j.Append("", "", said(fmt.Sprint(i)))
	}
	j.Close()
	if n := len(all(t, j, 0)); n != 1800 {
		t.Errorf("%d events, want 1800", n)
	}
}

func TestResetAndSettledCover(t *testing.T) {
	t.Parallel()
	for _, cover := range []agent.Body{agent.Wrote{Delta: agent.Reset{}}, agent.Settled{}} {
		j := New(nil)
		for range 50 {
			j.Append("kid", "k", chunk(strings.Repeat("x", maxCovered/40)))
			j.Append("", "", chunk(strings.Repeat("x", maxCovered/40)))
		}
		j.Append("", "", cover)
		j.Append("", "", said("end"))
		_, settled := cover.(agent.Settled)
		want := 50 // those of the kid are not covered by a Reset of the main conversation
		if settled {
			want = 0
		}
		j.mu.Lock()
		n := len(j.live)
		j.mu.Unlock()
		if n != want {
			t.Errorf("%T: %d kept, want %d", cover, n, want)
		}
	}
}

func TestSink(t *testing.T) {
	t.Parallel()
	var got []string
	fails := true
	j := New(func(e agent.Event) error {
		got = append(got, show(e))
		if fails {
			return errors.New("no space left")
		}
		return nil
	})
	j.Append("", "", chunk("x"))
	j.Append("", "", said("a"))
	if !slices.Equal(got, []string{"said a"}) {
		t.Errorf("not saved when Append returned: %v", got)
	}
	j.Append("", "", said("b"))
	fails = false
	j.Append("", "", said("c"))
	j.Append("", "", said("d"))
	j.Close()
	if want := []string{"~x", "said a", "error", "said b", "said c", "notice", "said d"}; !slices.Equal(all(t, j, 0), want) {
		t.Errorf("got %v, want %v", all(t, j, 0), want)
	}
}

// Readers and writers do not wait for each other, and events reach the sink
// in their order.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var saved []uint64
		j := New(func(e agent.Event) error {
			time.Sleep(time.Millisecond)
			saved = append(saved, e.Seq)
			return nil
		})
		var readers, writers sync.WaitGroup
		counts := make([]int, 3)
		for i := range counts {
			readers.Go(func() {
				for range j.Read(context.Background(), 0) {
					counts[i]++
					time.Sleep(time.Duration(i) * time.Millisecond)
				}
			})
		}
		for range 4 {
			writers.Go(func() {
				for range 100 {
					j.Append("", "", said("m"))
				}
			})
		}
		writers.Wait()
		j.Close()
		readers.Wait()
		if !slices.Equal(counts, []int{400, 400, 400}) || !slices.IsSorted(saved) || len(saved) != 400 {
			t.Errorf("read %v, saved %d in order %v", counts, len(saved), slices.IsSorted(saved))
		}
	})
}

func TestReadEnds(t *testing.T) {
	t.Parallel()
	j := New(nil)
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(cause) })
	var got error
	for _, err := range j.Read(ctx, 0) {
		got = err
	}
	if !errors.Is(got, cause) {
		t.Error(got)
	}
	j.Close()
	if e := j.Append("", "", said("late")); len(all(t, j, 0)) != 0 {
		t.Errorf("%+v was recorded", e)
	}
}

// 800 results of 200 KB go through the journal; its memory stays bounded,
// a reader in time sees each whole, and a late one still sees that they were.
func TestMemory(t *testing.T) {
	t.Parallel()
	j := New(nil)
	next, stop := pull(t, j)
	defer stop()
	text := strings.Repeat("x", 200<<10)
	for i := range 800 {
		out := string(append([]byte(text), byte('a'+i%26))) // a string of its own
		b := agent.Finished{Result: agent.Result{Blocks: []agent.Block{&agent.Text{Text: out}}, Detail: []byte(out)}}
		j.Append("", "", b)
		j.Append("", "", agent.Said{Message: agent.Message{Blocks: []agent.Block{&agent.ToolResult{ID: "x", Blocks: b.Result.Blocks}}}})
		for range 2 {
			if next() == "" {
				t.Fatal("the reader lost something")
			}
		}
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 100<<20 {
		t.Errorf("%d MB in use", m.HeapAlloc>>20)
	}
	j.Close()
	if n := len(all(t, j, 0)); n != 1600 {
		t.Errorf("%d events, want 1600", n)
	}
	runtime.KeepAlive(j)
}

// Thinning changes neither the message that was handed in nor what a slow
// reader is still to see.
func TestThinningSparesReadersAndOwners(t *testing.T) {
	t.Parallel()
	j := New(nil)
	next, stop := pull(t, j)
	defer stop()
	big := strings.Repeat("y", 1<<20)
	owned := agent.Message{Blocks: []agent.Block{&agent.ToolResult{ID: "x", Blocks: []agent.Block{&agent.Text{Text: big}}}, &agent.Image{Data: big}}}
	j.Append("", "", said(big))
	j.Append("", "", agent.Said{Message: owned})
	for range 60 {
		j.Append("", "", said(big))
	}
	if got := next(); got != "said "+big {
		t.Errorf("a reader that had not read it got %d bytes", len(got))
	}
	for range 61 {
		next()
	}
	j.Append("", "", said("end"))
	if got := next(); got != "said end" {
		t.Error(got[:20])
	}
	j.Append("", "", said("more")) // the reader has passed them by now
	j.Close()
	if len(owned.Blocks[0].(*agent.ToolResult).Blocks[0].(*agent.Text).Text) != len(big) || owned.Blocks[1].(*agent.Image).Data != big {
		t.Error("the owner's message was changed")
	}
	late := all(t, j, 0)
	if len(late) != 64 || len(late[0]) > 2*small {
		t.Errorf("%d events, the first of %d bytes", len(late), len(late[0]))
	}
}

func BenchmarkDelta(b *testing.B) {
	b.ReportAllocs()
	j := New(nil)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for range j.Read(context.Background(), 0) {
			}
		})
	}
	d := chunk("x")
	i := 0
	for b.Loop() {
		j.Append("", "", d)
		if i++; i%500 == 0 {
			j.Append("", "", agent.Said{})
		}
	}
	j.Close()
	wg.Wait()
}
