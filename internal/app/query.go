package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/checkpoint"
	"github.com/seed-eb844fcb/cinch/internal/lib/linkpath"
	"github.com/seed-eb844fcb/cinch/internal/ui/frame"
)

// rewindFiles takes changes to files back.
func (a *App) rewindFiles(_ context.Context, raw json.RawMessage) (any, error) {
	in, err := arguments[struct {
		ID    string `json:"user_message_id"`
		Dry   bool   `json:"dry_run"`
		Shell bool   `json:"include_shell"`
		Force bool   `json:"force"`
	}](raw)
	if err != nil {
		return nil, err
	}
	return a.rewind(checkpoint.Rewind{To: in.ID, Dry: in.Dry, Shell: in.Shell, Force: in.Force}), nil
}

type rewound struct {
	Can          bool     `json:"canRewind"`
	Err          string   `json:"error,omitempty"`
	Files        []string `json:"filesChanged,omitempty"`
	Insertions   int      `json:"insertions"`
	Deletions    int      `json:"deletions"`
	SkippedLinks int      `json:"skippedLinks,omitempty"`
	// Kept are files that somebody else has changed since; they stay.
	Kept []string `json:"filesKept,omitempty"`
	// Shell are files that commands changed and that were not asked for.
	Shell []string `json:"shellFiles,omitempty"`
}

func (a *App) rewind(r checkpoint.Rewind) rewound {
	if a.points == nil {
		return rewound{Err: "File rewinding is not enabled."}
	}
	r.Undo = frame.UUID()
	rep, err := a.points.Rewind(r)
	if err != nil {
		return rewound{Err: err.Error()}
	}
	out := rewound{Can: true, SkippedLinks: len(rep.Links), Shell: rep.Shell}
	for _, c := range rep.Changes {
		out.Files = append(out.Files, c.Path)
		out.Insertions += c.Insertions
		out.Deletions += c.Deletions
	}
	for _, k := range rep.Kept {
		out.Kept = append(out.Kept, k.Path+": "+k.Why)
	}
	if !r.Dry && len(out.Files) > 0 {
		a.emit("", "", agent.Rewound{To: r.To, Files: out.Files})
	}
	return out
}

func (a *App) settingsQuery(context.Context, json.RawMessage) (any, error) {
	_, effort := a.Session.Thinking()
	return map[string]any{
		"effective": a.cfg().effective(), "sources": a.cfg().sources(),
		"applied": map[string]any{"model": a.Session.Model(), "effort": effort},
	}, nil
}

func (a *App) reloadSkills(context.Context, json.RawMessage) (any, error) {
	a.reload()
	a.emit("", "", agent.Changed{What: "commands", Info: a.Session.Info()})
	return map[string]any{"skills": frame.Commands(a.commands())}, nil
}

func (a *App) reloadPlugins(_ context.Context, raw json.RawMessage) (any, error) {
	in, err := arguments[struct {
		Add []json.RawMessage `json:"add_plugins"`
	}](raw)
	if err != nil {
		return nil, err
	}
	if err := a.addPlugins(in.Add); err != nil {
		return nil, err
	}
	a.emit("", "", agent.Changed{What: "commands", Info: a.Session.Info()})
	plugins := []any{}
	for _, p := range a.pluginInfos() {
		plugins = append(plugins, map[string]any{"name": p.Name, "path": p.Path, "source": p.Source})
	}
	return map[string]any{"commands": frame.Commands(a.commands()), "agents": a.agentInfos(), "plugins": plugins, "mcpServers": []any{}, "error_count": 0}, nil
}

func (a *App) reloadOutputStyles(context.Context, json.RawMessage) (any, error) {
	styles := a.readStyles()
	a.ext.mu.Lock()
	a.ext.styles = styles
	a.ext.mu.Unlock()
	return map[string]any{"available_output_styles": a.styleNames()}, nil
}

// taskOutput is the end of what a background command has written.
func (a *App) taskOutput(_ context.Context, raw json.RawMessage) (any, error) {
	in, err := arguments[struct {
		ID string `json:"task_id"`
	}](raw)
	if err != nil {
		return nil, err
	}
	path, ok := a.jobs.Output(in.ID)
	if !ok {
		return nil, fmt.Errorf("no task %q is known", in.ID)
	}
	const tail = 8 << 10
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]any{"output": "", "total_bytes": 0, "truncated": false}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, fi.Size()-tail)
	data, err := io.ReadAll(io.NewSectionReader(f, from, fi.Size()-from))
	if err != nil {
		return nil, err
	}
	return map[string]any{"output": strings.ToValidUTF8(string(data), "\ufffd"), "total_bytes": fi.Size(), "truncated": from > 0}, nil
}

// readFile gives a host the content of a file, under the rules for reading.
func (a *App) readFile(_ context.Context, raw json.RawMessage) (any, error) {
	in, err := arguments[struct {
		Path     string `json:"path"`
		Max      int64  `json:"max_bytes"`
		Encoding string `json:"encoding"`
	}](raw)
	if err != nil {
		return nil, err
	}
	path := in.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.cwd(), path)
	}
	path = filepath.Clean(path)
	c := agent.Call{Name: "Read", Input: raw, Effects: agent.Effects{ReadOnly: true, Concurrent: true, Subjects: []agent.Subject{{Kind: agent.SubjectRead, Value: path}}}}
	for _, p := range linkpath.Targets(path) {
		c.Effects.Subjects = append(c.Effects.Subjects, agent.Subject{Kind: agent.SubjectRead, Value: p})
	}
	if d := a.gate.Policy().Decide(c); d.Verdict != agent.Allow {
		return nil, fmt.Errorf("reading %s is not allowed: %s", path, or(d.Reason, d.By))
	}
	limit := in.Max
	if limit <= 0 {
		limit = 1 << 20
	}
	limit = min(limit, 10<<20)
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	out := map[string]any{"absPath": path}
	if int64(len(data)) > limit {
		data = data[:limit]
		out["truncated"] = true
	}
	if in.Encoding == "base64" {
		out["contents"], out["encoding"] = data, "base64" // encoding/json writes bytes so
		return out, nil
	}
	if !utf8.Valid(data) {
		out["contents"] = strings.ToValidUTF8(string(data), "\ufffd")
		return out, nil
	}
	out["contents"] = string(data)
	return out, nil
}

// fileSuggestions are files whose path has the letters of query in order,
// the closest first.
func (a *App) fileSuggestions(ctx context.Context, raw json.RawMessage) (any, error) {
	in, err := arguments[struct {
		Query string `json:"query"`
	}](raw)
	if err != nil {
		return nil, err
	}
	type hit struct {
		path  string
		score int
	}
	var hits []hit
	deadline := time.Now().Add(time.Second)
	root := a.cwd()
	_ = filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || time.Now().After(deadline) || ctx.Err() != nil || len(hits) > 20000:
			if e != nil && e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case e.IsDir() && (e.Name() == ".git" || e.Name() == "node_modules"):
			return fs.SkipDir
		case e.IsDir():
			return nil
		}
		rel, err := filepath.Rel(root, p)
		if err != nil || a.denied(p) {
			return nil
		}
		if s, ok := fuzzy(in.Query, rel); ok {
			hits = append(hits, hit{rel, s})
		}
		return nil
	})
	slices.SortStableFunc(hits, func(x, y hit) int { return x.score - y.score })
	out := []map[string]any{}
	for _, h := range hits[:min(15, len(hits))] {
		out = append(out, map[string]any{"path": h.path, "score": h.score})
	}
	return map[string]any{"suggestions": out}, nil
}

// fuzzy scores how well query's letters are found in s in order: gaps cost,
// and so does length; lower is better.
func fuzzy(query, s string) (score int, ok bool) {
	at := 0
	low := strings.ToLower(s)
	for _, r := range strings.ToLower(query) {
		i := strings.IndexRune(low[at:], r)
		if i < 0 {
			return 0, false
		}
		score += i
		at += i + utf8.RuneLen(r)
	}
	return score*4 + len(s), true
}

// seedReadState says that the host knows a file as of some time.
func (a *App) seedReadState(_ context.Context, raw json.RawMessage) (any, error) {
	in, err := arguments[struct {
		Path  string `json:"path"`
		MTime int64  `json:"mtime"` // milliseconds since 1970
	}](raw)
	if err != nil {
		return nil, err
	}
	path := in.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.cwd(), path)
	}
	if err := a.files.Seed(path, time.UnixMilli(in.MTime)); err != nil {
		// No fault of the request: an edit will ask for the file to be read again.
		return map[string]any{"seeded": false, "reason": err.Error()}, nil
	}
	return map[string]any{"seeded": true}, nil
}

// registerRoot adds a repository to the working directories.
func (a *App) registerRoot(ctx context.Context, raw json.RawMessage) (any, error) {
	in, err := arguments[struct {
		Dir string `json:"directory"`
	}](raw)
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(in.Dir) || !isDir(in.Dir) {
		return nil, fmt.Errorf("%q is not the absolute path of a directory", in.Dir)
	}
	u := agent.PermissionUpdate{Type: "addDirectories", Directories: []string{in.Dir}, Destination: "session"}
	if err := a.gate.Grant(ctx, []agent.PermissionUpdate{u}); err != nil {
		return nil, err
	}
	a.hook(ctx, agent.Moment{Event: "DirectoryAdded", Match: "register_repo_root", Fields: map[string]any{"directory": in.Dir, "source": "register_repo_root"}})
	return nil, nil
}
