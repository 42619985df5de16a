package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/ui/frame"
	"github.com/seed-eb844fcb/cinch/internal/ui/tui/cell"
	"github.com/seed-eb844fcb/cinch/internal/ui/tui/editor"
)

// nameOf is a key as documentation writes it: ctrl+c, alt+left, enter, a.
func nameOf(in cell.Input) string {
	if in.Paste {
		return "paste"
	}
	name := map[cell.Key]string{
		cell.Enter: "enter", cell.Tab: "tab", cell.Escape: "esc", cell.Backspace: "backspace", cell.Up: "up", cell.Down: "down", cell.Left: "left", cell.Right: "right",
		cell.Home: "home", cell.End: "end", cell.PageUp: "pgup", cell.PageDown: "pgdown", cell.Insert: "insert", cell.Delete: "delete", ' ': "space",
	}[in.Key]
	if name == "" && in.Key > 0 {
		name = string(rune(in.Key))
	}
	var b strings.Builder
	for _, m := range []struct {
		m cell.Mod
		s string
	}{{cell.Ctrl, "ctrl+"}, {cell.Alt, "alt+"}, {cell.Shift, "shift+"}, {cell.Super, "cmd+"}} {
		if in.Mod&m.m != 0 {
			b.WriteString(m.s)
		}
	}
	return b.String() + name
}

// edit applies a key that edits text; it reports whether there is one.
func edit(e *editor.Editor, in cell.Input) bool {
	switch nameOf(in) {
	case "paste":
		e.Paste(in.Text)
	case "left", "ctrl+b":
		e.Left()
	case "right", "ctrl+f":
		e.Right()
	case "home", "ctrl+a":
		e.Home()
	case "end", "ctrl+e":
		e.End()
	case "alt+b", "ctrl+left", "alt+left":
		e.WordLeft()
	case "alt+f", "ctrl+right", "alt+right":
		e.WordRight()
	case "backspace", "ctrl+h", "shift+backspace":
		e.Backspace()
	case "delete", "ctrl+d":
		e.Delete()
	case "ctrl+k":
		e.KillToEnd()
	case "ctrl+u", "cmd+backspace":
		e.KillToStart()
	case "ctrl+w":
		e.KillBlankWord()
	case "alt+backspace", "ctrl+backspace":
		e.KillWordBefore()
	case "alt+d", "ctrl+delete":
		e.KillWordAfter()
	case "ctrl+y":
		e.Yank()
	case "alt+y":
		e.YankPop()
	case "ctrl+_", "ctrl+z":
		e.Undo()
	case "ctrl+j", "shift+enter", "alt+enter", "ctrl+enter":
		e.Insert("\n")
	default:
		if in.Text == "" || in.Mod&(cell.Ctrl|cell.Alt|cell.Super) != 0 {
			return false
		}
		e.Insert(in.Text)
	}
	return true
}

// key acts on one key.
func (t *tui) key(ctx context.Context, in cell.Input, now time.Time) {
	k := nameOf(in)
	if t.pager != nil {
		if t.pager.key(t, in) {
			t.closePager()
		}
		return
	}
	switch { // these work everywhere
	case k == "ctrl+l":
		t.redraw()
		return
	case k == "ctrl+o":
		t.openPager()
		return
	}
	if t.dialog != nil {
		if a := t.dialog.key(in, now); a != nil {
			t.dialog = nil
			t.submit(ctx, *a)
		}
		return
	}
	if t.list != nil {
		if t.list.key(in) {
			t.list = nil
		}
		return
	}
	if t.find != nil && t.findKey(in) {
		return
	}
	if t.help && k != "?" {
		t.help = false
	}
	if t.completing(k) {
		return
	}
	if !t.command(ctx, k, now) {
		edit(&t.ed, in)
		t.hist.left()
	}
	t.complete(ctx)
}

// command acts on a key that does not just edit; it reports whether it was one.
func (t *tui) command(ctx context.Context, k string, now time.Time) bool {
	switch k {
	case "enter":
		t.enter(ctx)
	case "esc":
		t.escape(ctx, now)
	case "ctrl+c":
		t.stop(ctx, now)
	case "ctrl+d":
		if !t.ed.Empty() {
			return false
		}
		if t.twice(k, 800*time.Millisecond, now) {
			t.end(errLeft, 0)
		} else {
			t.say("Press ctrl+d again to leave")
		}
	case "ctrl+z":
		if t.o.Suspend == nil {
			return true
		}
		t.away(t.o.Suspend)
	case "shift+tab", "alt+m":
		t.cycle(ctx)
	case "ctrl+r":
		t.find = newFinder(t.hist.items, t.ed.Text())
	case "ctrl+b":
		if !t.shells() {
			return false
		}
		t.behind = now.Add(2 * time.Second)
		t.background(ctx, now)
	case "ctrl+g":
		t.external()
	case "up", "ctrl+p":
		t.up(ctx)
	case "down", "ctrl+n":
		if !t.ed.Down(t.w - 2) {
			if text, ok := t.hist.newer(); ok {
				t.ed.Set(text)
			}
		}
	case "?":
		if !t.ed.Empty() {
			return false
		}
		t.help = !t.help
	default:
		return false
	}
	return true
}

// shells reports whether a command runs that could go to the background.
func (t *tui) shells() bool {
	return slices.ContainsFunc(t.st.items[t.committed:], func(it *item) bool { return it.kind == call && it.state == running && it.tool == "Bash" })
}

// background sends the running commands to the background. One that has just
// begun may not be ready for it, so it is asked for more than once.
func (t *tui) background(ctx context.Context, now time.Time) {
	if now.After(t.behind) || now.Sub(t.asked) < tickGap || !t.shells() {
		return
	}
	t.asked = now
	t.query(ctx, "background_tasks", map[string]any{}, func(r agent.Replied) {
		if r.Err != "" {
			t.say(r.Err)
		}
	})
}

// twice reports whether k was pressed before, within that time.
func (t *tui) twice(k string, within time.Duration, now time.Time) bool {
	was, ok := t.armed[k]
	clear(t.armed)
	if ok && now.Sub(was) <= within {
		return true
	}
	t.armed[k] = now
	return false
}

// enter sends the draft.
func (t *tui) enter(ctx context.Context) {
	if t.ed.Escaped() {
		return
	}
	text := strings.TrimRightFunc(t.ed.Value(), unicode.IsSpace)
	word := strings.TrimSpace(text)
	if word == "" {
		return
	}
	t.remember(t.ed.Text())
	if t.local(ctx, word) {
		t.ed.Clear()
		return
	}
	p := agent.Prompt{UUID: frame.UUID(), Blocks: []agent.Block{&agent.Text{Text: text}}}
	if command, ok := strings.CutPrefix(word, "!"); ok && strings.TrimSpace(command) != "" {
		p.Origin, p.Blocks, p.Later = "shell", []agent.Block{&agent.Text{Text: strings.TrimSpace(command)}}, true
	}
	// Commands change the session: they wait for the turn to end.
	p.Later = p.Later || t.st.running && strings.HasPrefix(word, "/")
	shown := t.ed.Text()
	if t.submit(ctx, p) {
		t.sent[p.UUID] = shown
		t.ed.Clear()
	}
}

// remember keeps what was typed for later.
func (t *tui) remember(text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	text = strings.TrimRightFunc(text, unicode.IsSpace)
	if t.hist.add(text) && t.o.Remember != nil {
		t.o.Remember(text)
	}
}

// escape interrupts a turn; without one, pressed twice, it puts the draft away.
func (t *tui) escape(ctx context.Context, now time.Time) {
	switch {
	case t.help:
		t.help = false
	case t.st.running:
		t.submit(ctx, agent.Interrupt{Reason: "esc"})
	case t.twice("esc", 800*time.Millisecond, now):
		if t.ed.Empty() {
			t.rewind(ctx)
			return
		}
		t.remember(t.ed.Value())
		t.ed.Clear()
		t.say("The draft is in the history (up)")
	case !t.ed.Empty():
		t.say("Press esc again to clear the draft")
	}
}

// stop is ctrl+c: interrupt, clear, leave.
func (t *tui) stop(ctx context.Context, now time.Time) {
	again := t.twice("ctrl+c", 2*time.Second, now)
	switch {
	case again:
		t.remember(t.ed.Value())
		t.end(errLeft, 0)
	case t.st.running:
		t.submit(ctx, agent.Interrupt{Reason: "ctrl+c"})
		t.say("Press ctrl+c again to leave")
	case !t.ed.Empty():
		t.remember(t.ed.Value())
		t.ed.Clear()
		t.say("The draft is in the history (up); press ctrl+c again to leave")
	default:
		t.say("Press ctrl+c again to leave")
	}
}

// up goes a row up, takes queued prompts back, or goes to what was typed before.
func (t *tui) up(ctx context.Context) {
	if t.ed.Up(t.w - 2) {
		return
	}
	if t.ed.Empty() && len(t.st.queued) > 0 {
		var texts []string
		for _, id := range slices.Clone(t.st.queued) {
			if text := t.sent[id]; text != "" && t.s.Submit(ctx, agent.Unqueue{UUID: id}) == nil {
				texts = append(texts, text)
				delete(t.sent, id)
			}
		}
		if len(texts) > 0 {
			t.ed.Set(strings.Join(texts, "\n"))
		}
		return
	}
	if text, ok := t.hist.older(t.ed.Text()); ok {
		t.ed.Set(text)
	}
}

// cycle goes to the next permission mode.
func (t *tui) cycle(ctx context.Context) {
	modes := []agent.Mode{agent.ModeDefault, agent.ModeAcceptEdits, agent.ModePlan}
	if m := t.st.info.Mode; m != "" && !slices.Contains(modes, m) {
		modes = append(modes, m)
	}
	i := slices.Index(modes, t.st.info.Mode)
	t.submit(ctx, agent.SetMode{Mode: modes[(i+1)%len(modes)]})
}

// away gives the terminal away while f runs.
func (t *tui) away(f func()) {
	t.leave()
	f()
	t.begin()
	t.w, t.h = t.o.Size()
	t.dirty, t.urgent = true, true
}

// external edits the draft elsewhere.
func (t *tui) external() {
	if t.o.Edit == nil {
		t.say("Set EDITOR or VISUAL to a program to edit with")
		return
	}
	t.away(func() {
		text, err := t.o.Edit(t.ed.Value())
		if err != nil {
			t.say("The editor did not end well, the draft is as it was: " + err.Error())
			return
		}
		t.ed.Set(strings.TrimRight(text, "\n"))
	})
}

// redraw draws the live rows anew, whatever else has been written there.
func (t *tui) redraw() {
	t.w, t.h = t.o.Size()
	t.write(t.screen.Resized(t.w))
	t.dirty, t.urgent = true, true
}

// local does commands that are about the terminal; it reports whether word is one.
func (t *tui) local(ctx context.Context, word string) bool {
	name, args, _ := strings.Cut(word, " ")
	args = strings.TrimSpace(args)
	switch name {
	case "/exit", "/quit", "exit", "quit":
		t.end(errLeft, 0)
	case "/resume", "/continue":
		t.choose(ctx, args)
	case "/model":
		if args != "" {
			return false
		}
		t.models(ctx)
	case "/rewind", "/checkpoint", "/undo":
		if args != "" {
			return false
		}
		t.rewind(ctx)
	case "/keys", "/keybindings":
		t.help = true
	default:
		return false
	}
	return true
}

// models lists the models to choose from.
func (t *tui) models(ctx context.Context) {
	t.query(ctx, "list_models", nil, func(r agent.Replied) {
		var in struct {
			Models []struct {
				Value, DisplayName, Description, ResolvedModel string
			} `json:"models"`
		}
		if !t.reply(r, &in) {
			return
		}
		t.list = newList("Which model goes on?")
		for _, m := range in.Models {
			t.list.add(m.DisplayName, m.ResolvedModel+" · "+m.Description, func() {
				if t.submit(ctx, agent.SetModel{Model: strings.TrimPrefix(m.Value, "default")}) {
					t.say("The model is " + m.ResolvedModel)
				}
			})
		}
	})
}

// reply reads the answer to a query into v; it reports whether there is one.
func (t *tui) reply(r agent.Replied, v any) bool {
	if r.Err != "" {
		t.say(r.Err)
		return false
	}
	return unmarshal(r.Value, v) == nil
}

// rewind lists the prompts that one can go back to.
func (t *tui) rewind(ctx context.Context) {
	l := newList("Go back to before which prompt?")
	for _, it := range slices.Backward(t.st.items) {
		if it.kind != user || it.uuid == "" {
			continue
		}
		l.add(firstLine(it.text), "", func() { t.preview(ctx, it) })
	}
	if len(l.all) == 0 {
		t.say("There is no prompt yet to go back to")
		return
	}
	t.list = l
}

// preview says what going back to a prompt would change, and asks.
func (t *tui) preview(ctx context.Context, it *item) {
	t.query(ctx, "rewind_files", map[string]any{"user_message_id": it.uuid, "dry_run": true}, func(r agent.Replied) {
		var in rewound
		if r.Err != "" || unmarshal(r.Value, &in) != nil || in.Err != "" {
			in = rewound{} // no file is kept of that time: the conversation can go back still
		}
		l := newList(fmt.Sprintf("Go back to before “%s”?", firstLine(it.text)))
		if len(in.Files) > 0 {
			what := fmt.Sprintf("%s, +%d -%d", plural(len(in.Files), "file"), in.Plus, in.Minus)
			files := t.paths(in.Files)
			l.add("Files and conversation: "+what, files, func() { t.restore(ctx, it, false, true) })
			l.add("Files only: "+what, files, func() { t.restore(ctx, it, false, false) })
		}
		if len(in.Shell) > 0 {
			l.add(fmt.Sprintf("Files, and %s that commands changed", plural(len(in.Shell), "file")), t.paths(in.Shell), func() { t.restore(ctx, it, true, false) })
		}
		l.add("Conversation only", "files stay as they are; this session is kept, too", func() { t.fork(ctx, it) })
		l.add("No", strings.Join(in.Kept, ", "), func() {})
		t.list, t.dirty = l, true
	})
}

// paths are files as seen from the working directory.
func (t *tui) paths(files []string) string {
	var out []string
	for _, f := range files {
		out = append(out, short(f, t.st.info.Cwd))
	}
	return strings.Join(out, ", ")
}

// A rewound is what the session says of files that went back, or would.
type rewound struct {
	Err   string   `json:"error"`
	Files []string `json:"filesChanged"`
	Kept  []string `json:"filesKept"`
	Shell []string `json:"shellFiles"`
	Plus  int      `json:"insertions"`
	Minus int      `json:"deletions"`
}

// restore takes changes to files back, and then perhaps the conversation.
func (t *tui) restore(ctx context.Context, it *item, shell, talk bool) {
	t.query(ctx, "rewind_files", map[string]any{"user_message_id": it.uuid, "include_shell": shell}, func(r agent.Replied) {
		var in rewound
		switch {
		case !t.reply(r, &in):
		case in.Err != "":
			t.say(in.Err)
		case talk:
			t.fork(ctx, it)
		case t.ed.Empty():
			t.ed.Set(it.text)
		}
	})
}

// fork goes on with a copy of the conversation that ends before a prompt,
// which becomes the draft.
func (t *tui) fork(ctx context.Context, it *item) {
	for _, o := range t.st.items {
		if o.kind != user || o.uuid == "" {
			continue
		}
		if o == it { // nothing comes before it
			if t.submit(ctx, agent.Prompt{UUID: frame.UUID(), Blocks: []agent.Block{&agent.Text{Text: "/clear"}}}) {
				t.ed.Set(it.text)
			}
			return
		}
		break
	}
	if t.o.Fork == nil {
		t.say("The conversation is not kept here")
		return
	}
	id, err := t.o.Fork(it.uuid)
	if err != nil {
		t.say(err.Error())
		return
	}
	t.resume, t.draft = id, it.text
	t.end(errLeft, 0)
}

// choose lists the sessions that can be resumed.
func (t *tui) choose(ctx context.Context, args string) {
	if args != "" {
		t.resume = args
		t.end(errLeft, 0)
		return
	}
	if t.o.Sessions == nil {
		t.say("Sessions are not kept here")
		return
	}
	all, err := t.o.Sessions()
	if err != nil {
		t.say(err.Error())
		return
	}
	l := newList("Which session goes on? (type to search)")
	for _, s := range all {
		if s.ID == t.st.info.Session {
			continue
		}
		about := ago(time.Since(s.When)) + " · " + size(s.Bytes)
		if s.Branch != "" {
			about += " · " + s.Branch
		}
		l.add(firstLine(s.Title), about, func() {
			t.resume = s.ID
			t.end(errLeft, 0)
		})
	}
	if len(l.all) == 0 {
		t.say("There is no other session of this directory")
		return
	}
	t.list = l
}

func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return plural(int(d.Minutes()), "minute") + " ago"
	case d < 48*time.Hour:
		return plural(int(d.Hours()), "hour") + " ago"
	}
	return plural(int(d.Hours()/24), "day") + " ago"
}
