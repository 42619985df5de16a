package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/glob"
)

type grepTool struct{ *searcher }

// number is a JSON number as models write it; a fraction is cut off.
type number = float64

type grepInput struct {
	Pattern   string  `json:"pattern"`
	Path      string  `json:"path"`
	Glob      string  `json:"glob"`
	Mode      string  `json:"output_mode"`
	Before    *number `json:"-B"`
	After     *number `json:"-A"`
	Around    *number `json:"-C"`
	Context   *number `json:"context"`
	Numbers   *bool   `json:"-n"`
	Fold      bool    `json:"-i"`
	Only      bool    `json:"-o"`
	Type      string  `json:"type"`
	HeadLimit *number `json:"head_limit"`
	Offset    *number `json:"offset"`
	Multiline bool    `json:"multiline"`
}

const (
	modeFiles   = "files_with_matches"
	modeContent = "content"
	modeCount   = "count"

	defaultHead = 250
	maxContext  = 1000
	maxLines    = 20_000 // lines held when no limit was asked for
	grepTimeout = time.Minute
)

// A query is a Grep, checked.
type query struct {
	pattern       string
	mode          string
	fold, only    bool
	multiline     bool
	before, after int
	numbers       bool
	limit, offset int // limit 0 is none
	names         nameFilter
	path          string // as asked for, absolute
	// need is how many lines, from the first path on, can be of use; 0 for all.
	need int
}

func (*grepTool) Spec() agent.Spec { return grepSpec }

func (t *grepTool) parse(raw json.RawMessage) (q query, err error) {
	var in grepInput
	if err := decode(raw, &in); err != nil {
		return q, err
	}
	if in.Pattern == "" {
		return q, errors.New("pattern is missing or empty")
	}
	q = query{pattern: in.Pattern, mode: in.Mode, fold: in.Fold, only: in.Only, multiline: in.Multiline, numbers: in.Numbers == nil || *in.Numbers}
	switch q.mode {
	case "":
		q.mode = modeFiles
	case modeFiles, modeContent, modeCount:
	default:
		return q, fmt.Errorf("output_mode is %q; it must be content, files_with_matches or count", q.mode)
	}
	var bad error
	whole := func(name string, n *number, otherwise int) int {
		if n == nil {
			return otherwise
		}
		if *n < 0 {
			bad = fmt.Errorf("%s must not be negative", name)
		}
		return int(min(*n, 1<<40))
	}
	around := whole("context", in.Context, whole("-C", in.Around, 0))
	q.before = min(whole("-B", in.Before, around), maxContext)
	q.after = min(whole("-A", in.After, around), maxContext)
	q.limit = whole("head_limit", in.HeadLimit, defaultHead)
	q.offset = whole("offset", in.Offset, 0)
	if bad != nil {
		return q, bad
	}
	if q.mode != modeContent || q.only {
		q.before, q.after = 0, 0 // has no meaning there
	}
	q.need = maxLines + q.offset
	if q.limit > 0 {
		q.need = q.offset + q.limit + 1
	}
	if q.names, err = newNameFilter(in.Glob, in.Type); err != nil {
		return q, err
	}
	q.path, err = t.abs(in.Path)
	return q, err
}

func (t *grepTool) Inspect(raw json.RawMessage) (agent.Effects, error) {
	q, err := t.parse(raw)
	if err != nil {
		return agent.Effects{}, err
	}
	return t.effects([]string{q.path})
}

func (t *grepTool) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	q, err := t.parse(c.Input)
	if err != nil {
		return agent.Result{}, err
	}
	real, err := t.target(c, q.path)
	if err != nil {
		return agent.Result{}, err
	}
	info, err := os.Lstat(real)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return agent.Result{}, refuse("The path %s does not exist. The working directory is %s.", q.path, t.o.Cwd())
	case err != nil:
		return agent.Result{}, err
	case !info.IsDir() && !info.Mode().IsRegular():
		return agent.Result{}, refuse("%s is neither a file nor a directory.", q.path)
	}
	engine, err := t.engine(&q)
	if err != nil {
		return agent.Result{}, err
	}
	found := newCollector(&q)
	if err := t.search(ctx, &q, real, info, engine, found); err != nil {
		return agent.Result{}, err
	}
	return t.report(&q, found), nil
}

// An engine searches files. It tells what it finds to the collector, in any
// order. An invalid pattern is an error even if there is no file.
type engine interface {
	search(ctx context.Context, files <-chan string, found *collector) error
}

func (t *grepTool) engine(q *query) (engine, error) {
	if !q.multiline && spansLines(q.pattern) {
		return nil, refuse("The pattern asks for a line end, but lines are searched one by one. Set multiline to true.")
	}
	if t.o.Ripgrep != "" {
		return &ripgrep{o: &t.o, q: q}, nil
	}
	return newMatcher(q)
}

// search sends the files below real to the engine. When time is up, what was
// found until then is the answer.
func (t *grepTool) search(parent context.Context, q *query, real string, info fs.FileInfo, e engine, found *collector) error {
	limit := t.o.Timeout
	if limit <= 0 {
		limit = grepTimeout
	}
	ctx, cancel := context.WithTimeout(parent, limit)
	defer cancel()
	files := make(chan string, 1024)
	walked := make(chan struct{})
	found.alias(real, q.path)
	go func() {
		defer close(walked)
		defer close(files)
		if !info.IsDir() {
			found.single = true
			files <- real // there is room
			return
		}
		all, err := glob.Compile("**")
		if err != nil {
			return // it is valid
		}
		w := walk{ctx: ctx, deny: t.o.Deny, ignore: true}
		w.file = func(path, rel string, d fs.DirEntry) {
			if !d.Type().IsRegular() || !q.names.match(rel) {
				return
			}
			select {
			case files <- path:
			case <-ctx.Done():
			}
		}
		w.run(real, all)
	}()
	err := e.search(ctx, files, found)
	cancel() // the engine may have given up
	<-walked
	if errors.Is(err, context.DeadlineExceeded) && parent.Err() == nil {
		found.ended, err = limit, nil
	}
	return err
}

// A nameFilter says which files a Grep is about.
type nameFilter struct {
	include, exclude []nameGlob
	kinds            []nameGlob
}

// A nameGlob without a slash matches the last part of a path.
type nameGlob struct {
	p    *glob.Pattern
	base bool
}

func newNameGlob(s string) (nameGlob, error) {
	anchored := strings.TrimPrefix(s, "/")
	if strings.HasSuffix(anchored, "/") {
		anchored += "**"
	}
	p, err := glob.Compile(anchored)
	return nameGlob{p, !strings.Contains(s, "/")}, err
}

func (g nameGlob) match(rel string) bool {
	if g.base {
		rel = rel[strings.LastIndexByte(rel, '/')+1:]
	}
	return g.p.Match(rel)
}

func newNameFilter(globs, kind string) (f nameFilter, err error) {
	for _, s := range splitGlobs(globs) {
		s, not := strings.CutPrefix(s, "!")
		g, err := newNameGlob(strings.TrimPrefix(s, "./"))
		if err != nil {
			return f, err
		}
		if not {
			f.exclude = append(f.exclude, g)
		} else {
			f.include = append(f.include, g)
		}
	}
	if kind == "" {
		return f, nil
	}
	patterns, ok := typeGlobs(kind)
	if !ok {
		return f, fmt.Errorf("the file type %q is not known; known are %s. Use glob instead", kind, typeNames())
	}
	for s := range strings.FieldsSeq(patterns) {
		g, err := newNameGlob(s)
		if err != nil {
			return f, err
		}
		f.kinds = append(f.kinds, g)
	}
	return f, nil
}

// splitGlobs cuts a list of globs at blanks and commas outside braces.
func splitGlobs(s string) []string {
	depth := 0
	return strings.FieldsFunc(s, func(r rune) bool {
		switch r {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',', ' ', '\t', '\n':
			return depth <= 0
		}
		return false
	})
}

func (f *nameFilter) match(rel string) bool {
	return (len(f.include) == 0 || anyMatch(f.include, rel)) && (len(f.kinds) == 0 || anyMatch(f.kinds, rel)) && !anyMatch(f.exclude, rel)
}

func anyMatch(gs []nameGlob, rel string) bool {
	for _, g := range gs {
		if g.match(rel) {
			return true
		}
	}
	return false
}
