package tui

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// A state is what the events of a session come to. It is changed by fold
// alone, so that a front end which starts late, with the first event, has the
// same one.
type state struct {
	info    agent.Info
	items   []*item
	calls   map[agent.CallID]*item
	open    map[string]*item // the block that is being written, by sub-agent
	asks    []agent.Question // that a person can answer, the oldest first
	tasks   []agent.Task     // background work that has not ended
	queued  []string         // uuids of prompts that wait
	running bool
	began   time.Time // of the turn
	ended   time.Time
	wait    wait
	first   int // items[first] begins the turn

	written int         // bytes of text and thinking in this turn
	usage   agent.Usage // of the last request of the main conversation
	out     int         // tokens written in this turn
	window  int         // of the model, 0 if it is not known yet
	cost    float64
	api     time.Duration
	added   int // lines
	removed int
	replied map[string]agent.Replied // answers that nobody has taken yet
	changes int                      // counts what a status line is about
}

// A wait is what the person waits for beside the model's next word.
type wait struct {
	what  string    // connect, first byte, next byte, compacting
	since time.Time // when it began
	limit time.Duration
	retry *agent.Retrying
	at    time.Time // when the next attempt starts
}

func newState() *state {
	return &state{calls: map[agent.CallID]*item{}, open: map[string]*item{}, replied: map[string]agent.Replied{}}
}

// fold takes one event in.
func (s *state) fold(e agent.Event) {
	switch b := e.Body.(type) {
	case agent.Opened:
		s.info = b.Info
		s.add(&item{kind: end, text: strings.TrimSpace("cinch "+b.Info.Version) + " · " + place(b.Info.Cwd), final: true})
	case agent.Began:
		s.info = b.Info
		s.running, s.began = true, e.At
		s.first, s.out, s.written, s.wait = len(s.items), 0, 0, wait{}
	case agent.Said:
		s.said(e, b)
	case agent.Responded:
		s.responded(e, b)
	case agent.Wrote:
		s.wrote(e, b.Delta)
	case agent.Asked:
		s.asked(b.Question)
	case agent.Answered:
		s.answered(b.ID)
	case agent.Withdrawn:
		s.answered(b.ID)
	case agent.Started:
		it := s.call(e, b.Call)
		it.state, it.since = running, e.At
	case agent.Progressed:
		if it := s.calls[b.ID]; it != nil && it.state == running {
			it.progress, it.bytes = lastLine(b.Progress.Text), b.Progress.Bytes
		}
	case agent.Finished:
		s.finished(e, b)
	case agent.Noted:
		s.add(&item{kind: note, level: b.Level, text: b.Text, final: true})
	case agent.Local:
		s.add(&item{kind: local, text: b.Text, final: true})
	case agent.Worked:
		s.worked(b)
	case agent.Compacting:
		s.wait = wait{what: "compacting", since: e.At}
	case agent.Compacted:
		s.wait = wait{}
		s.compacted(b)
	case agent.Changed:
		s.changed(b)
	case agent.Cleared:
		s.clear(b.Session)
	case agent.Rewound:
		s.rewound(b)
	case agent.Mended:
		s.add(&item{kind: note, level: "info", text: b.Reason, final: true})
	case agent.Lifecycle:
		s.queued = slices.DeleteFunc(s.queued, func(id string) bool { return id == b.UUID })
		if b.State == "queued" {
			s.queued = append(s.queued, b.UUID)
		}
	case agent.Replied:
		s.replied[b.ID] = b
	case agent.State:
		if b.State == "running" && !s.running {
			s.running, s.began = true, e.At
		}
		if b.State == "idle" && s.running {
			s.running, s.ended = false, e.At
		}
	case agent.Settled:
		s.settled(e, b.Outcome)
	}
}

// add appends it to what is said. What was being written before is over.
func (s *state) add(it *item) *item {
	s.items = append(s.items, it)
	return it
}

// call is the item of a call; it is made if there is none yet.
func (s *state) call(e agent.Event, c agent.Call) *item {
	it := s.calls[c.ID]
	if it == nil {
		it = &item{kind: call, at: e.At}
		if parent := s.calls[e.Parent]; parent != nil {
			it.depth = parent.depth + 1
			parent.children = append(parent.children, it)
		} else {
			s.add(it)
		}
		s.calls[c.ID] = it
	}
	it.tool, it.title, it.input = c.Name, title(c.Name, c.Input, s.info.Cwd), c.Input
	return it
}

func (s *state) said(e agent.Event, b agent.Said) {
	if b.Hidden {
		return
	}
	if b.Message.Role == agent.User {
		s.heard(e, b)
		return
	}
	s.wait = wait{}
	for _, blk := range b.Message.Blocks {
		switch blk := blk.(type) {
		case *agent.Text:
			if e.Agent != "" || blk.Note != "" {
				continue
			}
			if b.Err != nil {
				s.closeOpen("")
				s.add(&item{kind: note, level: "error", text: blk.Text, final: true})
				continue
			}
			s.text(blk.Text, b.Aborted)
		case *agent.Thinking:
			if it := s.open[e.Agent]; e.Agent == "" {
				if it == nil || it.kind != thinking {
					it = s.add(&item{kind: thinking, at: e.At})
				}
				it.text, it.took, it.final = blk.Text, e.At.Sub(it.at), true
				delete(s.open, "")
			}
		case *agent.ToolUse:
			it := s.call(e, agent.Call{ID: blk.ID, Name: blk.Name, Input: blk.Input})
			if it.state == writing {
				it.state = waiting
			}
			delete(s.open, e.Agent)
		}
	}
}

// text ends the block of text that was being written: it says whole.
func (s *state) text(whole string, aborted bool) {
	it := s.open[""]
	delete(s.open, "")
	if it == nil || it.kind != answer || !strings.HasPrefix(whole, it.text) {
		if it != nil && !it.final { // part of it was missed: what follows is all of it
			it.final = true
			if it.shown == 0 {
				it.text = ""
			}
		}
		it = s.add(&item{kind: answer})
	}
	it.text, it.final, it.aborted = whole, true, aborted
}

// heard is a message of the person, or one that stands in for them.
func (s *state) heard(e agent.Event, b agent.Said) {
	if e.Agent != "" {
		return
	}
	text := agent.TextOf(b.Message.Blocks)
	pictures := 0
	for _, blk := range b.Message.Blocks {
		switch blk.(type) {
		case *agent.ToolResult:
			return // told by Finished
		case *agent.Image, *agent.Document:
			pictures++
		}
	}
	it := &item{kind: user, text: text, pictures: pictures, uuid: b.Message.UUID, final: true}
	switch b.Message.Origin {
	case "", "human":
		if b.Message.Meta {
			return
		}
		if name := command(b.Message.Blocks); name != "" {
			it.text = name
		}
		if typed := between(text, "<bash-input>", "</bash-input>"); typed != "" {
			it.text = "! " + typed
			s.add(it)
			s.add(&item{kind: local, text: between(text, "<bash-stdout>", "</bash-stdout>"), final: true})
			return
		}
	case "task-notification":
		return // told by Worked
	default:
		it.kind, it.level, it.text = note, "info", b.Message.Origin+": "+firstLine(text)
	}
	if it.text != "" || pictures > 0 {
		s.add(it)
	}
}

// command is the slash command that a message was made from, or "".
func command(bs []agent.Block) string {
	for _, b := range bs {
		t, ok := b.(*agent.Text)
		if !ok || t.Note != "command" {
			continue
		}
		name := between(t.Text, "<command-name>", "</command-name>")
		return strings.TrimSpace(name + " " + between(t.Text, "<command-args>", "</command-args>"))
	}
	return ""
}

func between(s, from, to string) string {
	_, s, ok := strings.Cut(s, from)
	s, _, found := strings.Cut(s, to)
	if !ok || !found {
		return ""
	}
	return s
}

func (s *state) responded(e agent.Event, b agent.Responded) {
	s.cost += b.Cost
	s.api += b.Took
	s.changes++
	if it := s.calls[e.Parent]; it != nil {
		it.tokens += b.Usage.Prompt() + b.Usage.Out
		it.cost += b.Cost
		return
	}
	if b.Purpose == "" || b.Purpose == "main" {
		s.usage = b.Usage
		s.out += b.Usage.Out
		s.written = 0
	}
}

// wrote takes in what the model has just written.
func (s *state) wrote(e agent.Event, d agent.Delta) {
	switch d := d.(type) {
	case agent.BlockBegin:
		s.wait = wait{}
		s.begin(e, d.Block)
	case agent.Chunk:
		s.wait = wait{}
		s.chunk(e, d)
	case agent.Begin:
		s.wait = wait{}
	case agent.Retrying:
		s.wait = wait{retry: &d, at: d.At, since: e.At}
	case agent.Waiting:
		s.wait = wait{what: d.For, since: e.At.Add(-d.Since), limit: d.Limit}
	case agent.Switched:
		s.wait = wait{}
		s.add(&item{kind: note, level: "warning", text: d.From + " did not answer; " + d.To + " goes on", final: true})
	case agent.Reset:
		s.reset(e)
	}
}

// begin opens a block. Text and thinking are only followed in the main
// conversation.
func (s *state) begin(e agent.Event, b agent.Block) {
	switch b := b.(type) {
	case *agent.Text:
		if e.Agent == "" {
			s.open[""] = s.add(&item{kind: answer, at: e.At, text: b.Text})
		}
	case *agent.Thinking:
		if e.Agent == "" {
			s.open[""] = s.add(&item{kind: thinking, at: e.At, text: b.Text})
		}
	case *agent.ToolUse:
		it := s.call(e, agent.Call{ID: b.ID, Name: b.Name})
		s.open[e.Agent] = it
	}
}

func (s *state) chunk(e agent.Event, c agent.Chunk) {
	if e.Agent != "" {
		return
	}
	it := s.open[""]
	switch c.Kind {
	case "text_delta":
		if it == nil || it.kind != answer { // its beginning was missed
			return
		}
		it.text += c.Text
	case "thinking_delta":
		if it == nil || it.kind != thinking {
			return
		}
		it.text += c.Text
	case "input_json_delta":
		if it != nil && it.kind == call {
			it.bytes += int64(len(c.Text))
		}
	}
	s.written += len(c.Text)
}

// reset voids what was written of an answer that broke off.
func (s *state) reset(e agent.Event) {
	it := s.open[e.Agent]
	delete(s.open, e.Agent)
	if it == nil {
		return
	}
	if it.kind == answer && it.shown > 0 {
		it.final = true
		s.add(&item{kind: note, level: "info", text: "that answer broke off and is asked for again", final: true})
		return
	}
	s.drop(it)
}

// drop takes an item back that never came to be.
func (s *state) drop(it *item) {
	same := func(o *item) bool { return o == it }
	s.items = slices.DeleteFunc(s.items, same)
	for id, o := range s.calls {
		if o == it {
			delete(s.calls, id)
		}
		o.children = slices.DeleteFunc(o.children, same)
	}
}

// closeOpen ends what was being written when something else took its place.
func (s *state) closeOpen(agentID string) {
	if it := s.open[agentID]; it != nil {
		it.final = it.kind != call
		delete(s.open, agentID)
	}
}

func (s *state) asked(q agent.Question) {
	switch q.Kind {
	case agent.AskPermission, agent.AskElicit, agent.AskDialog, agent.AskConfirm:
		if !q.OneWay {
			s.asks = append(s.asks, q)
		}
		if it := s.calls[q.Call.ID]; it != nil && it.state < running {
			it.state = asking
		}
	}
}

func (s *state) answered(id string) {
	for i, q := range s.asks {
		if q.ID == id {
			if it := s.calls[q.Call.ID]; it != nil && it.state == asking {
				it.state = waiting
			}
			s.asks = slices.Delete(s.asks, i, i+1)
			return
		}
	}
}

func (s *state) finished(e agent.Event, b agent.Finished) {
	it := s.call(e, b.Call)
	it.state, it.final, it.took, it.ran = done, true, b.Took, b.Ran
	it.failed = b.Result.IsError
	it.unknown = b.Result.Unknown
	it.denied = !b.Ran && b.Decision.Verdict == agent.Deny
	it.interrupted = b.Result.IsError && interruptedText(agent.TextOf(b.Result.Blocks))
	it.output = clipText(outputOf(b.Call.Name, b.Result.Blocks))
	it.patch = patchOf(b.Call.Name, b.Result.Detail)
	added, removed := it.patch.count()
	s.added += added
	s.removed += removed
	it.progress, it.bytes = "", 0
	for _, c := range it.children { // nobody tells of them any more
		if c.state != done {
			c.state, c.final = done, true
		}
	}
	if p := s.calls[e.Parent]; p != nil {
		p.tools++
	}
	s.changes++
}

func (s *state) worked(b agent.Worked) {
	i := slices.IndexFunc(s.tasks, func(t agent.Task) bool { return t.ID == b.Task.ID })
	ended := b.Stage == "ended" || b.Task.Status != "" && b.Task.Status != "running"
	if it := s.calls[b.Task.Call]; it != nil && b.Task.Usage.Tokens > 0 {
		it.tokens, it.tools = max(it.tokens, b.Task.Usage.Tokens), max(it.tools, b.Task.Usage.Tools)
	}
	switch {
	case ended && i >= 0:
		was := s.tasks[i]
		s.tasks = slices.Delete(s.tasks, i, i+1)
		if was.Background || b.Task.Background {
			s.add(&item{kind: note, level: "task", text: taskEnd(b.Task), final: true})
		}
	case ended:
	case i >= 0:
		s.tasks[i] = b.Task
	default:
		s.tasks = append(s.tasks, b.Task)
	}
}

func (s *state) compacted(b agent.Compacted) {
	it := &item{kind: note, level: "info", final: true}
	if b.Err != "" {
		it.level, it.text = "warning", "the conversation was not shortened: "+b.Err
	} else {
		it.text = "the conversation was shortened from " + tokens(b.Pre) + " to " + tokens(b.Post) + " tokens"
		it.detail = b.Summary
		s.usage = agent.Usage{In: b.Post}
	}
	s.add(it)
	s.changes++
}

func (s *state) changed(b agent.Changed) {
	was := s.info
	s.info = b.Info
	s.changes++
	switch {
	case b.What == "model" && was.Model != "" && was.Model != b.Info.Model:
		s.window = 0
	case b.What == "cwd" && was.Cwd != b.Info.Cwd:
		s.add(&item{kind: note, level: "info", text: "the working directory is " + b.Info.Cwd, final: true})
	}
}

// clear begins the conversation anew.
func (s *state) clear(session string) {
	s.info.Session = session
	s.info.Title = ""
	s.usage = agent.Usage{}
	s.add(&item{kind: divider, text: "a new conversation begins", final: true})
	s.changes++
}

func (s *state) rewound(b agent.Rewound) {
	if len(b.Files) > 0 {
		s.add(&item{kind: note, level: "info", text: plural(len(b.Files), "file") + " went back", detail: strings.Join(b.Files, "\n"), final: true})
	}
	if b.History != nil {
		s.add(&item{kind: note, level: "info", text: "the conversation went back", final: true})
	}
}

func (s *state) settled(e agent.Event, o agent.Outcome) {
	s.running, s.ended, s.wait = false, e.At, wait{}
	s.closeOpen("")
	clear(s.open)
	for _, it := range s.items[min(s.first, len(s.items)):] { // nothing of a turn goes on behind its end
		if !it.final {
			if it.kind == call {
				it.state, it.interrupted = done, true
			}
			it.final = true
		}
	}
	for _, m := range o.Models {
		if m.Model == s.info.Model && m.ContextWindow > 0 {
			s.window = m.ContextWindow
		}
	}
	s.cost = o.Cost
	s.changes++
	switch {
	case strings.HasPrefix(o.Reason, "aborted_"):
		s.add(&item{kind: note, level: "interrupt", text: s.stopped(o.Reason), final: true})
	case o.IsError || o.Subtype != "success":
		for _, t := range o.Errors {
			if n := len(s.items); n > 0 && s.items[n-1].text == t {
				continue // it has been said
			}
			s.add(&item{kind: note, level: "error", text: t, final: true})
		}
	}
	if o.Usage.Prompt() > 0 || o.Took >= time.Second {
		s.add(&item{kind: end, text: s.summary(o), final: true})
	}
}

// stopped says what an interrupt met: what was cut short, what never began.
func (s *state) stopped(reason string) string {
	var cut []string
	never := 0
	for _, it := range s.items[min(s.first, len(s.items)):] {
		if it.kind != call || !it.interrupted {
			continue
		}
		if it.ran {
			cut = append(cut, it.name()+" after "+rounded(it.took))
		} else {
			never++
		}
	}
	t := "Interrupted"
	switch {
	case len(cut) > 0:
		t += ": stopped " + strings.Join(cut, ", ") + "; what it did until then stands"
	case reason == "aborted_streaming":
		t += " while the model was writing"
	}
	if never > 0 {
		t += "; " + plural(never, "call") + " never ran"
	}
	return t + ". What should be done instead?"
}

// summary is the line of figures at the end of a turn.
func (s *state) summary(o agent.Outcome) string {
	parts := []string{rounded(o.Took)}
	if n := o.Usage.Prompt(); n > 0 {
		parts = append(parts, tokens(n)+" in", tokens(o.Usage.Out)+" out")
	}
	if len(o.Denials) > 0 {
		parts = append(parts, plural(len(o.Denials), "call")+" not permitted")
	}
	return strings.Join(parts, " · ")
}
