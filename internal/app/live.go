package app

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/ext/hook"
	"github.com/seed-eb844fcb/cinch/internal/ext/skill"
	"github.com/seed-eb844fcb/cinch/internal/lib/glob"
	"github.com/seed-eb844fcb/cinch/internal/settings"
	"github.com/seed-eb844fcb/cinch/internal/window"
)

// A watch notices what changes on disk while a session runs. Nothing waits in
// the background for it: before each prompt and behind each batch of calls it
// looks at sizes and times, which costs microseconds.
type watch struct {
	mu     sync.Mutex
	loaded *settings.Value  // the newest that was looked at; a hook may have refused it
	places uint64           // of agents, skills, commands, styles
	files  map[string]stamp // that FileChanged hooks are interested in
	paths  []string         // that hooks asked for by watchPaths
	dirs   map[string]bool  // whose nested skills were looked for
	told   map[string]bool  // skills the model was told of because of a file
}

// A stamp tells one state of a file from another; the zero stamp is no file.
type stamp struct {
	size int64
	when int64
}

func stampOf(path string) stamp {
	fi, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{fi.Size() + 1, fi.ModTime().UnixNano()}
}

// refresh takes in what has changed since the prompt before.
func (a *App) refresh(ctx context.Context) {
	a.refreshSettings(ctx)
	a.refreshExtensions(ctx)
	a.changedOnDisk(ctx)
}

// refreshSettings applies settings files that were changed: hooks and rules.
// ConfigChange hooks are asked first. What they refuse is left out until a
// settings file changes again; what an administrator set cannot be refused.
func (a *App) refreshSettings(ctx context.Context) {
	w := &a.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.loaded == nil {
		w.loaded = a.cfg().value
	}
	if len(w.loaded.Changed()) == 0 {
		return
	}
	files := a.cfg().value.Changed()
	next := a.cfg().value.Reload()
	w.loaded = next
	refused := false
	for _, f := range files {
		source := a.sourceOf(f)
		r := a.hook(ctx, agent.Moment{Event: "ConfigChange", Match: source, Fields: map[string]any{"source": source, "file_path": f}})
		for _, n := range r.Notes {
			a.note("info", n)
		}
		refused = refused || (r.Block || r.Halt) && source != "policy_settings"
	}
	if refused || len(files) == 0 {
		return
	}
	for _, p := range next.Problems() {
		if p.Severity > settings.Info {
			a.warn("%s", p)
		}
	}
	if err := a.reread(next); err != nil {
		a.warn("the changed settings are not in force: %v", err)
	}
}

// sourceOf is what hooks call the layer of a settings file.
func (a *App) sourceOf(file string) string {
	for layer, name := range map[settings.Layer]string{settings.User: "user_settings", settings.Project: "project_settings", settings.Local: "local_settings"} {
		if f, err := a.cfg().value.File(layer); err == nil && f == file {
			return name
		}
	}
	return "policy_settings"
}

// refreshExtensions reads agents, skills, commands and styles anew if a file
// of theirs is not what it was. The model is told of skills that are new.
func (a *App) refreshExtensions(ctx context.Context) {
	now := a.fingerprint()
	a.watch.mu.Lock()
	before := a.watch.places
	a.watch.places = now
	a.watch.mu.Unlock()
	if before == 0 || before == now {
		return
	}
	r := a.hook(ctx, agent.Moment{Event: "ConfigChange", Match: "skills", Fields: map[string]any{"source": "skills"}})
	if r.Block || r.Halt {
		return
	}
	old := a.listed()
	a.reload()
	var fresh []skill.Skill
	for _, s := range a.listed() {
		if !slices.ContainsFunc(old, func(o skill.Skill) bool { return o.Name == s.Name && o.Description == s.Description }) {
			fresh = append(fresh, s)
		}
	}
	a.announce("These skills are new or have changed", fresh)
}

// announce tells the model of skills with its next request.
func (a *App) announce(why string, ss []skill.Skill) {
	list, _ := skill.Listing(ss, skill.Budget{Each: a.cfg().skillChars, Show: a.cfg().skillShow})
	if list == "" || a.tools.Lookup("Skill") == nil {
		return
	}
	a.layout.mu.Lock()
	defer a.layout.mu.Unlock()
	if a.layout.engine == nil {
		return // nothing was sent yet: the first listing will have them
	}
	a.layout.touched = append(a.layout.touched, window.Remind(window.Note{Kind: window.NoteSkills, Text: why + " (use the Skill tool):\n" + list})...)
}

// fingerprint is one number for the state of all files of extensions.
func (a *App) fingerprint() uint64 {
	h := fnv.New64a()
	file := func(path string) {
		s := stampOf(path)
		h.Write([]byte(path))
		h.Write(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(s.size)), uint64(s.when)))
	}
	tree := func(dir string) {
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() && filepath.Ext(path) == ".md" {
				file(path)
			}
			return nil // what cannot be read is not read by the others either
		})
	}
	agents, skills := a.extensionPlaces()
	for _, p := range agents {
		tree(p.Path)
	}
	for _, p := range skills {
		if p.Command {
			tree(p.Path)
			continue
		}
		entries, err := os.ReadDir(p.Path)
		if err != nil {
			continue
		}
		for _, e := range entries {
			file(filepath.Join(p.Path, e.Name(), "SKILL.md"))
		}
	}
	for _, dir := range a.styleDirs() {
		tree(filepath.Join(dir, "output-styles"))
	}
	return h.Sum64()
}

// touched lets skills join that go with files which calls have read or
// written: those of the directories around the file, and those whose paths
// fit it.
func (a *App) touched(fs []agent.Finished) {
	if a.o.NoCommands || a.o.Bare || a.o.SafeMode || !a.source("project") {
		return
	}
	for _, f := range fs {
		if f.Result.IsError || f.Call.Agent != "" {
			continue
		}
		for _, s := range f.Call.Effects.Subjects {
			if s.Kind == agent.SubjectRead || s.Kind == agent.SubjectWrite {
				a.nested(filepath.Dir(s.Value))
				a.scoped(s.Value)
			}
		}
	}
}

// nested finds the skills of the directories between dir and the project.
func (a *App) nested(dir string) {
	var fresh []skill.Skill
	for ; under(a.o.Cwd, dir) && dir != a.o.Cwd; dir = filepath.Dir(dir) {
		a.watch.mu.Lock()
		seen := a.watch.dirs[dir]
		if a.watch.dirs == nil {
			a.watch.dirs = map[string]bool{}
		}
		a.watch.dirs[dir] = true
		a.watch.mu.Unlock()
		base := filepath.Join(dir, ".claude", "skills")
		if seen || !isDir(base) {
			continue
		}
		ss, ps := skill.Discover([]skill.Place{{FS: a.fs(), Dir: strings.TrimPrefix(filepath.ToSlash(base), "/"), Path: base, Source: "project"}})
		for _, p := range ps {
			a.warn("%s", p)
		}
		a.ext.mu.Lock()
		for _, s := range ss {
			if slices.ContainsFunc(append(a.ext.skills, a.ext.nested...), func(o skill.Skill) bool { return o.Name == s.Name }) {
				s.Name = filepath.Base(dir) + ":" + s.Name
			}
			a.ext.nested = append(a.ext.nested, s)
			fresh = append(fresh, s)
		}
		a.ext.mu.Unlock()
	}
	a.announce("Skills of the directory that was looked at", fresh)
}

// scoped announces the skills whose paths fit file, each once.
func (a *App) scoped(file string) {
	rel, err := filepath.Rel(a.projectRoot(), file)
	if err != nil || strings.HasPrefix(rel, "..") {
		return
	}
	var fresh []skill.Skill
	for _, s := range a.listed() {
		if len(s.Paths) == 0 || !fitsAny(s.Paths, filepath.ToSlash(rel)) {
			continue
		}
		a.watch.mu.Lock()
		if a.watch.told == nil {
			a.watch.told = map[string]bool{}
		}
		told := a.watch.told[s.Name]
		a.watch.told[s.Name] = true
		a.watch.mu.Unlock()
		if !told {
			s.Paths = nil // it is to be listed
			fresh = append(fresh, s)
		}
	}
	a.announce("Skills for "+rel, fresh)
}

func fitsAny(patterns []string, path string) bool {
	for _, p := range patterns {
		g, err := glob.Compile(strings.TrimPrefix(p, "./"))
		if err == nil && g.Match(path) {
			return true
		}
	}
	return false
}

// under reports whether path is dir or lies under it.
func under(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

// changedOnDisk fires FileChanged for the files that hooks watch: those their
// matchers name in the current directory, and those they asked for.
func (a *App) changedOnDisk(ctx context.Context) {
	if !a.hooks.Any("FileChanged") {
		return
	}
	w := &a.watch
	w.mu.Lock()
	names := slices.Clone(w.paths)
	for _, h := range a.hooks.Handlers() {
		if h.Event != "FileChanged" {
			continue
		}
		for n := range strings.SplitSeq(h.Matcher, "|") {
			if n != "" && n != "*" {
				names = append(names, filepath.Join(a.cwd(), n))
			}
		}
	}
	type change struct{ path, event string }
	var changes []change
	for _, n := range names {
		now := stampOf(n)
		old, known := w.files[n]
		if w.files == nil {
			w.files = map[string]stamp{}
		}
		w.files[n] = now
		switch {
		case !known || old == now:
		case old == stamp{}:
			changes = append(changes, change{n, "add"})
		case now == stamp{}:
			changes = append(changes, change{n, "unlink"})
		default:
			changes = append(changes, change{n, "change"})
		}
	}
	w.mu.Unlock()
	for _, c := range changes {
		r := a.hook(ctx, agent.Moment{Event: "FileChanged", Match: filepath.Base(c.path), Fields: map[string]any{"file_path": c.path, "event": c.event}})
		for _, n := range r.Notes {
			a.note("info", n)
		}
	}
}

// heed does what the answers of some events ask of the session itself.
func (a *App) heed(event string, r agent.HookResult) {
	switch event {
	case "SessionStart", "CwdChanged", "FileChanged":
		var paths []string
		if raw, ok := r.Extra["watchPaths"]; ok && json.Unmarshal(raw, &paths) == nil {
			a.watch.mu.Lock()
			a.watch.paths = paths
			a.watch.mu.Unlock()
		}
	}
	if event == "SessionStart" && string(r.Extra["reloadSkills"]) == "true" {
		a.reload()
	}
}

// Times after which a person who does not react is told once more.
const (
	slowAnswer = 6 * time.Second
	slowPrompt = time.Minute
)

// notify is the Notification event.
func (a *App) notify(ctx context.Context, kind, title, message string) {
	fields := map[string]any{"message": message, "notification_type": kind}
	if title != "" {
		fields["title"] = title
	}
	a.hook(ctx, agent.Moment{Event: "Notification", Match: kind, Fields: fields})
}

// notifyAfter calls notify once d is over, unless stop is called before; stop
// waits for the hooks that run.
func (a *App) notifyAfter(ctx context.Context, d time.Duration, kind, title, message string) (stop func()) {
	if !a.hooks.Any("Notification") {
		return func() {}
	}
	d = time.Duration(a.env.number("CINCH_NOTIFY_AFTER_MS", int(d.Milliseconds()))) * time.Millisecond
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-ctx.Done():
		case <-t.C:
			a.notify(ctx, kind, title, message)
		}
	})
	return func() { cancel(); wg.Wait() }
}

// asked puts a question to the front ends, with the hooks around it.
func (a *App) asked(ctx context.Context, q agent.Question) (agent.Answer, error) {
	switch q.Kind {
	case agent.AskPermission:
		defer a.notifyAfter(ctx, slowAnswer, "permission_prompt", "Permission needed", "Permission is needed to use "+q.Name)()
	case agent.AskElicit:
		return a.elicit(ctx, q)
	}
	return a.Session.Ask(ctx, q)
}

// elicit asks the Elicitation hooks before the person, and lets the
// ElicitationResult hooks see, and change, the answer.
func (a *App) elicit(ctx context.Context, q agent.Question) (agent.Answer, error) {
	fields := map[string]any{}
	if json.Unmarshal(q.Payload, &fields) != nil {
		return a.Session.Ask(ctx, q)
	}
	type result struct {
		Action  string          `json:"action"`
		Content json.RawMessage `json:"content,omitempty"`
	}
	// said is what a hook answers in the person's place.
	said := func(r agent.HookResult) (result, bool) {
		if r.Block || r.Halt {
			return result{Action: "decline"}, true
		}
		var action string
		if json.Unmarshal(r.Extra["action"], &action) == nil && slices.Contains([]string{"accept", "decline", "cancel"}, action) {
			return result{action, r.Extra["content"]}, true
		}
		return result{}, false
	}
	reply := func(r result) (agent.Answer, error) {
		raw, err := marshal(r)
		return agent.Answer{Payload: raw}, err
	}
	if r, ok := said(a.hook(ctx, agent.Moment{Event: "Elicitation", Match: q.Name, Fields: fields})); ok {
		return reply(r)
	}
	a.notify(ctx, "elicitation_dialog", "", q.Title)
	answer, err := a.Session.Ask(ctx, q)
	if err != nil || answer.Err != "" {
		return answer, err
	}
	var r result
	if json.Unmarshal(answer.Payload, &r) != nil {
		return answer, nil
	}
	after := map[string]any{"mcp_server_name": q.Name, "action": r.Action}
	for _, k := range []string{"mode", "elicitation_id"} {
		if v, ok := fields[k]; ok && v != "" {
			after[k] = v
		}
	}
	if r.Content != nil {
		after["content"] = r.Content
	}
	if o, ok := said(a.hook(ctx, agent.Moment{Event: "ElicitationResult", Match: q.Name, Fields: after})); ok {
		return reply(o)
	}
	return answer, nil
}

// setup is the Setup event, which a run asks for by its flags, before the
// first SessionStart.
func (a *App) setup(ctx context.Context) (r agent.HookResult) {
	for _, trigger := range []struct {
		name string
		on   bool
	}{{"init", a.o.Init}, {"maintenance", a.o.Maintenance}} {
		if trigger.on {
			x := a.hooks.Run(ctx, agent.Moment{Event: "Setup", Match: trigger.name, Fields: map[string]any{"trigger": trigger.name}})
			r.Context, r.Notes, r.Ran = append(r.Context, x.Context...), append(r.Notes, x.Notes...), r.Ran+x.Ran
		}
	}
	return r
}

// typeOf is the kind of a sub-agent, for the input of hooks.
func (a *App) typeOf(id string) string {
	t, _ := a.jobs.Find(id)
	return t.Agent
}

// lock applies the settings' locks on hooks.
func (a *App) lock() {
	a.hooks.Lock(hook.Locks{Disabled: a.cfg().noHooks || a.o.Bare, ManagedOnly: a.cfg().managedHooks || a.o.SafeMode})
}
