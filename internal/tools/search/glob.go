package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/glob"
)

const (
	maxFiles    = 100 // listed by one Glob
	globTimeout = 20 * time.Second
)

type globTool struct{ *searcher }

type globInput struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

// A GlobDetail is the Detail of a Glob: the SDK's tool_use_result.
type GlobDetail struct {
	Filenames       []string `json:"filenames"`
	NumFiles        int      `json:"numFiles"`
	Truncated       bool     `json:"truncated"`
	DurationMs      int64    `json:"durationMs"`
	TotalMatches    int      `json:"totalMatches"`
	CountIsComplete bool     `json:"countIsComplete"`
}

func (*globTool) Spec() agent.Spec { return globSpec }

// A globPlan is a pattern cut where its wildcards begin: what is to be
// matched below each directory.
type globPlan struct {
	dir   string // where relative patterns start
	bases map[string]*glob.Pattern
}

func (t *globTool) plan(raw json.RawMessage) (p globPlan, err error) {
	var in globInput
	if err := decode(raw, &in); err != nil {
		return p, err
	}
	switch {
	case in.Pattern == "":
		return p, errors.New("pattern is missing or empty")
	case strings.ContainsRune(in.Pattern, 0):
		return p, errors.New("pattern has a zero byte in it")
	}
	if p.dir, err = t.abs(in.Path); err != nil {
		return p, err
	}
	if t.o.Home != "" && strings.HasPrefix(in.Pattern, "~/") {
		in.Pattern = filepath.ToSlash(t.o.Home) + in.Pattern[1:]
	}
	pattern, err := glob.Compile(in.Pattern)
	if err != nil {
		return p, err
	}
	p.bases = map[string]*glob.Pattern{}
	for base, rest := range pattern.Split() {
		dir := filepath.FromSlash(base)
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(p.dir, dir)
		}
		p.bases[filepath.Clean(dir)] = rest
	}
	return p, nil
}

func (t *globTool) Inspect(raw json.RawMessage) (agent.Effects, error) {
	p, err := t.plan(raw)
	if err != nil {
		return agent.Effects{}, err
	}
	dirs := []string{p.dir}
	for base := range p.bases {
		dirs = append(dirs, base)
	}
	return t.effects(dirs)
}

func (t *globTool) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	begin := time.Now()
	p, err := t.plan(c.Input)
	if err != nil {
		return agent.Result{}, err
	}
	if err := t.isDir(p.dir); err != nil {
		return agent.Result{}, err
	}
	limit := t.o.Timeout
	if limit <= 0 {
		limit = globTimeout
	}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	list := newest{}
	for base, pattern := range p.bases {
		root, err := t.target(c, base)
		if err != nil {
			return agent.Result{}, err
		}
		w := walk{ctx: timed, deny: t.o.Deny, ignore: t.o.Ignore, hideDot: t.o.HideDot}
		w.file = func(path, _ string, d fs.DirEntry) {
			// A link has the name that was found, not that of its target.
			if mtime, ok := modTime(path, d); ok {
				list.add(filepath.Join(base, strings.TrimPrefix(path, root)), mtime)
			}
		}
		w.run(root, pattern)
	}
	if ctx.Err() != nil {
		return agent.Result{}, context.Cause(ctx)
	}
	complete := timed.Err() == nil
	return t.listing(&list, complete, limit, time.Since(begin)), nil
}

// modTime returns when a file that is no directory, also not through a link,
// was last changed.
func modTime(path string, d fs.DirEntry) (time.Time, bool) {
	info, err := d.Info()
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		target, terr := os.Stat(path)
		if terr == nil && target.IsDir() {
			return time.Time{}, false
		}
		if terr == nil {
			info = target
		}
	}
	if err != nil {
		return time.Time{}, false // gone in the meantime
	}
	return info.ModTime(), true
}

func (t *globTool) listing(list *newest, complete bool, limit, took time.Duration) agent.Result {
	files := list.sorted()
	d := GlobDetail{TotalMatches: len(files), CountIsComplete: complete, DurationMs: took.Milliseconds(), Filenames: []string{}}
	d.Truncated = len(files) > maxFiles || !complete
	for _, f := range files[:min(maxFiles, len(files))] {
		d.Filenames = append(d.Filenames, t.shown(f))
	}
	d.NumFiles = len(d.Filenames)
	var b strings.Builder
	if d.NumFiles == 0 {
		b.WriteString("No files found")
	}
	for i, f := range d.Filenames {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(visible(f))
	}
	if len(files) > maxFiles {
		fmt.Fprintf(&b, "\n(These are the %d newest of %d files. Use a narrower pattern or path to see others.)", maxFiles, len(files))
	}
	if !complete {
		fmt.Fprintf(&b, "\n(The search was ended after %s; there may be more. Use a narrower pattern or path.)", limit)
	}
	return agent.Result{Blocks: []agent.Block{&agent.Text{Text: b.String()}}, Detail: d}
}

// newest collects files for a list with the newest first.
type newest struct {
	mu    sync.Mutex
	files []dated
}

type dated struct {
	path  string
	mtime time.Time
}

func (n *newest) add(path string, mtime time.Time) {
	n.mu.Lock()
	n.files = append(n.files, dated{path, mtime})
	n.mu.Unlock()
}

func (n *newest) sorted() []string {
	slices.SortFunc(n.files, func(a, b dated) int {
		if c := b.mtime.Compare(a.mtime); c != 0 {
			return c
		}
		return comparePaths(a.path, b.path)
	})
	out := make([]string, len(n.files))
	for i, f := range n.files {
		out[i] = f.path
	}
	return out
}
