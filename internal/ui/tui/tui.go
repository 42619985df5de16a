// Package tui is the terminal front end: a conversation that grows in the
// terminal's own scrollback, and under it a few live rows with what goes on,
// the questions, and the line the person writes.
//
// It owns the view: what is drawn, the draft, what is scrolled to. What it
// shows of the session is a fold over events: a front end that starts late
// shows the same. It must not know how the session does its work, nor touch
// the terminal but through the functions it was handed.
package tui

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/ui/tui/cell"
	"github.com/seed-eb844fcb/cinch/internal/ui/tui/editor"
)

// Options says how to talk. Fields without a word on nil are required.
type Options struct {
	In  io.Reader // the terminal in raw mode: bytes as they are typed
	Out io.Writer
	// Size is the terminal's, in columns and rows. Resized tells that it has
	// changed.
	Size    func() (width, height int)
	Resized <-chan struct{}
	// Suspend gives the terminal back to the shell, and returns when the
	// program goes on. Nil: not possible.
	Suspend func()
	// Edit lets the person edit text with a program of theirs. Nil: not possible.
	Edit func(text string) (string, error)

	// Prompt, if not nil, is submitted first.
	Prompt []agent.Block
	// Once ends after the turn of Prompt.
	Once bool
	// Past is the conversation that is resumed.
	Past []agent.Message
	// Typed are earlier prompts, the newest last; Remember keeps one more. May be nil.
	Typed    []string
	Remember func(text string)
	// Draft is what stands in the editor at the beginning: the prompt before
	// which the session was forked.
	Draft string
	// Fork makes a session that ends before a prompt of this one, named by its
	// uuid, and returns its id. Nil: not possible.
	Fork func(prompt string) (id string, err error)
	// Sessions lists what can be resumed. Nil: nothing can.
	Sessions func() ([]Session, error)
	// Status, if not nil, makes the status line from the document of figures
	// that such commands are documented to get.
	Status func(ctx context.Context, document []byte, width int) (string, error)
	// StatusEvery is how often it is made without a cause; 0: never.
	StatusEvery time.Duration
	// Facts are what only the program knows of that document. May be nil.
	Facts func() map[string]any

	Version string
	Color   bool
	// Still leaves out everything that moves by itself.
	Still bool
	// Kitty asks the terminal to tell all keys apart, if it can.
	Kitty bool
	// Bell rings when a person is waited for.
	Bell bool
}

// A Session is one that can be resumed.
type Session struct {
	ID, Title, Branch string
	When              time.Time
	Bytes             int64
}

// A Result is how talking ended.
type Result struct {
	Code int
	// Resume names the session that the person wants to go on with, or "".
	Resume string
	// Draft is what the editor holds then.
	Draft string
}

// How often the picture may change while much is written, and how often while
// nothing but time passes.
const (
	frameGap = 33 * time.Millisecond
	tickGap  = 250 * time.Millisecond
	hintTime = 3 * time.Second
)

// errLeft ends the conversation because the person wants so, errOver because
// the session has ended.
var (
	errLeft = errors.New("the person left")
	errOver = errors.New("the session is over")
)

// Run talks until the person leaves, the session is over or ctx ends.
func Run(ctx context.Context, s agent.Session, o Options) Result {
	t := start(s, o)
	ctx, cancel := context.WithCancelCause(ctx)
	defer t.leave()
	defer func() { cancel(nil); t.group.Wait() }()
	t.begin()
	if o.Prompt != nil {
		t.submit(ctx, agent.Prompt{Blocks: o.Prompt})
	}
	events := make(chan result)
	followed := make(chan struct{})
	go func() { defer close(followed); follow(ctx, s, events) }()
	defer func() { cancel(nil); <-followed }()
	keys := make(chan []byte)
	// The reader may sit in a Read of the terminal that nothing can end; it
	// holds nothing, so it is not waited for.
	go read(ctx, o.In, keys)
	t.loop(ctx, events, keys)
	return t.result()
}

// A result is what the session's events come to: the next one, or why there
// is none.
type result struct {
	event agent.Event
	err   error
}

// follow hands events on until they or ctx end.
func follow(ctx context.Context, s agent.Session, to chan<- result) {
	defer close(to)
	for e, err := range s.Events(ctx, 0) {
		select {
		case to <- result{e, err}:
		case <-ctx.Done():
			return
		}
	}
}

// read hands on what is typed; the channel is closed when the terminal is gone.
func read(ctx context.Context, in io.Reader, to chan<- []byte) {
	defer close(to)
	for {
		buf := make([]byte, 4096)
		n, err := in.Read(buf)
		if n > 0 {
			select {
			case to <- buf[:n]:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// A tui is one run of this front end.
type tui struct {
	o Options
	s agent.Session

	st        *state
	committed int // items that stand in the scrollback
	rows      int // that were written there
	screen    cell.Screen
	dec       cell.Decoder
	w, h      int

	ed     editor.Editor
	hist   history
	comp   completion
	dialog *dialog
	list   *list  // a list to choose from
	pager  *pager // the transcript
	find   *finder
	help   bool // the keys are shown

	hint    string
	hinted  time.Time
	armed   map[string]time.Time // keys that count when pressed twice
	sent    map[string]string    // texts of prompts that wait, by uuid
	queries map[string]func(agent.Replied)
	number  int // of queries
	status  statusLine

	code    int
	resume  string
	draft   string
	err     error // why it is over
	last    time.Time
	dirty   bool
	urgent  bool // a key was pressed: the picture must not wait
	resized bool
	stale   bool // the main screen was resized while the transcript was open
	born    time.Time
	behind  time.Time      // commands are sent to the background until then
	asked   time.Time      // and were, last
	group   sync.WaitGroup // of status line commands
}

func start(s agent.Session, o Options) *tui {
	t := &tui{o: o, s: s, st: newState(), armed: map[string]time.Time{}, sent: map[string]string{}, queries: map[string]func(agent.Replied){}, born: time.Now()}
	t.screen.Color = o.Color
	t.hist.items = o.Typed
	t.w, t.h = o.Size()
	if o.Draft != "" {
		t.ed.Set(o.Draft)
		t.say("This is a copy that ends before that prompt; the session it comes from is kept")
	}
	t.st.items = past(o.Past, "")
	t.status.results = make(chan statusResult, 1)
	return t
}

// begin tells the terminal what is expected of it.
func (t *tui) begin() {
	s := "\x1b[?2004h"
	if t.o.Kitty {
		s += "\x1b[>1u"
	}
	t.write([]byte(s))
}

// leave gives the terminal back as it was.
func (t *tui) leave() {
	if draft := t.ed.Value(); t.err != nil && !errors.Is(t.err, errLeft) && draft != "" {
		t.remember(draft)
	}
	s := ""
	if t.pager != nil {
		s = "\x1b[?1049l"
	}
	s += string(t.screen.Leave())
	if t.o.Kitty {
		s += "\x1b[<u"
	}
	t.write([]byte(s + "\x1b[?2004l\x1b[?25h"))
}

func (t *tui) result() Result { return Result{Code: t.code, Resume: t.resume, Draft: t.draft} }

func (t *tui) write(b []byte) {
	if len(b) == 0 {
		return
	}
	if _, err := t.o.Out.Write(b); err != nil {
		t.end(err, 1)
	}
}

// end is the end of the loop.
func (t *tui) end(err error, code int) {
	if t.err == nil {
		t.err, t.code = err, code
	}
}

// loop takes what happens one after the other, and draws.
func (t *tui) loop(ctx context.Context, events <-chan result, keys <-chan []byte) {
	frame := time.NewTimer(0)
	defer frame.Stop()
	due := true // the timer runs
	t.dirty = true
	for t.err == nil {
		if t.urgent {
			t.draw(time.Now())
		}
		if t.dirty && !due {
			frame.Reset(max(0, frameGap-time.Since(t.last)))
			due = true
		}
		var flush <-chan time.Time
		if d := t.dec.Wait(); d > 0 {
			flush = time.After(d)
		}
		var tick <-chan time.Time
		if d := t.tick(time.Now()); d > 0 {
			tick = time.After(d)
		}
		select {
		case r, ok := <-events:
			if !ok {
				t.end(errOver, t.code)
				break
			}
			t.event(ctx, r)
		case b, ok := <-keys:
			if !ok {
				t.end(errors.New("the terminal is gone"), 129)
				break
			}
			now := time.Now()
			for _, in := range t.dec.Feed(now, b) {
				t.key(ctx, in, now)
			}
			t.dirty, t.urgent = true, true
		case <-flush:
			for _, in := range t.dec.Flush() {
				t.key(ctx, in, time.Now())
			}
			t.dirty, t.urgent = true, true
		case <-t.o.Resized:
			t.resized, t.dirty, t.urgent = true, true, true
		case r := <-t.status.results:
			t.status.take(r)
			t.dirty = true
		case <-frame.C:
			due = false
			t.draw(time.Now())
		case <-tick:
			t.dirty = true
		case <-ctx.Done():
			t.end(context.Cause(ctx), 1)
		}
		t.refresh(ctx, time.Now())
		t.background(ctx, time.Now())
	}
	t.draw(time.Now()) // what came last stays on the terminal
}

// event takes in what has happened.
func (t *tui) event(ctx context.Context, r result) {
	if r.err != nil {
		if errors.Is(r.err, io.EOF) {
			t.end(errOver, t.code)
		} else {
			t.end(r.err, 1)
		}
		return
	}
	t.st.fold(r.event)
	switch b := r.event.Body.(type) {
	case agent.Settled:
		t.code = 0
		if b.Outcome.IsError {
			t.code = 1
		}
		t.ring()
		if t.o.Once {
			t.end(errOver, t.code)
		}
	case agent.Replied:
		if f := t.queries[b.ID]; f != nil {
			delete(t.queries, b.ID)
			f(b)
		}
		delete(t.st.replied, b.ID)
	case agent.Asked:
		t.ring()
	case agent.Opened, agent.Changed:
		t.complete(ctx) // there may be other commands now
	}
	t.question(ctx)
	t.dirty = true
}

func (t *tui) ring() {
	if t.o.Bell {
		t.write([]byte{7})
	}
}

// question shows the oldest open question, and takes one back that needs no
// answer any more.
func (t *tui) question(ctx context.Context) {
	if t.dialog != nil {
		for _, q := range t.st.asks {
			if q.ID == t.dialog.q.ID {
				return
			}
		}
		t.dialog = nil
	}
	for _, q := range t.st.asks {
		d, answer := dialogOf(q, t.st.info.Cwd)
		if answer == nil {
			t.dialog, t.help, t.list = d, false, nil
			t.closePager()
			return
		}
		t.submit(ctx, *answer)
	}
}

// submit hands in an input; what cannot be done is told.
func (t *tui) submit(ctx context.Context, in agent.Input) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := t.s.Submit(ctx, in); err != nil {
		t.say(err.Error())
		return false
	}
	return true
}

// say shows a hint for a while.
func (t *tui) say(text string) {
	t.hint, t.hinted = text, time.Now()
	t.dirty = true
}

// query asks the session; f is called with the answer.
func (t *tui) query(ctx context.Context, name string, args any, f func(agent.Replied)) {
	t.number++
	id := "tui-" + name + "-" + time.Now().Format("150405.000000000")
	t.queries[id] = f
	if !t.submit(ctx, agent.Query{ID: id, Name: name, Args: encode(args)}) {
		delete(t.queries, id)
	}
}

// tick is how long until the picture changes by itself; 0 is never.
func (t *tui) tick(now time.Time) time.Duration {
	switch {
	case t.hint != "":
		return max(hintTime-now.Sub(t.hinted), time.Millisecond)
	case t.o.Status != nil && t.status.seen != t.st.changes:
		return statusGap
	case t.st.running && t.o.Still:
		return time.Second
	case t.st.running:
		return tickGap
	case t.o.StatusEvery > 0 && t.o.Status != nil:
		return t.o.StatusEvery
	}
	return 0
}
