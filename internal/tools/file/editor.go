package file

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/safefile"
	"github.com/seed-eb844fcb/cinch/internal/lib/textenc"
)

// maxEdit bounds the files that are loaded whole to be changed.
const maxEdit = 256 << 20

// An Editor opens and changes files for one agent. It is what the tools of
// this package, and others that change files, have in common. It is safe for
// concurrent use.
type Editor struct {
	o      Options
	writer safefile.Writer
	load   int64 // a text up to this size is loaded whole; a bigger one is streamed
}

// NewEditor returns an Editor.
func NewEditor(o Options) *Editor {
	if o.MaxTokens <= 0 {
		o.MaxTokens = DefaultMaxTokens
	}
	if o.Deny == nil {
		o.Deny = func(string) bool { return false }
	}
	if o.Which == nil || o.Run == nil {
		o.Which = func(string) string { return "" }
	}
	if o.RequireRead == nil {
		o.RequireRead = func() bool { return false }
	}
	return &Editor{o: o, load: loadLimit}
}

// Tools returns Read, Write and Edit.
func (e *Editor) Tools() []agent.Tool {
	return []agent.Tool{&readTool{e}, &writeTool{e}, &editTool{e}}
}

// Subjects returns the absolute form of path and what a call on it touches:
// every name that the file has.
func (e *Editor) Subjects(kind agent.SubjectKind, path string) (abs string, subjects []agent.Subject, err error) {
	abs, err = safefile.Abs(path, e.o.Cwd(), e.o.Home)
	if err != nil {
		return "", nil, fmt.Errorf("file path %q: %w", path, err)
	}
	names, err := safefile.Resolve(abs)
	if err != nil {
		return "", nil, err
	}
	for _, n := range names {
		subjects = append(subjects, agent.Subject{Kind: kind, Value: n})
	}
	return abs, subjects, nil
}

// A toolError is a failure that lies in the call itself, as opposed to one of
// the disk. compat: clients and models know it by the tag around it.
type toolError string

func (e toolError) Error() string { return "<tool_use_error>" + string(e) + "</tool_use_error>" }

func refuse(format string, args ...any) error { return toolError(fmt.Sprintf(format, args...)) }

// target returns the absolute and the resolved path of a call. What Inspect
// named is what was approved: a path that leads elsewhere by now is refused.
func (e *Editor) target(c agent.Call, path string) (abs, real string, err error) {
	abs, subjects, err := e.Subjects("", path)
	if err != nil {
		return "", "", err
	}
	for _, s := range subjects {
		if e.o.Deny(s.Value) {
			return "", "", refuse("%s may not be read or changed: a permission rule denies it.", abs)
		}
	}
	real = subjects[len(subjects)-1].Value
	if len(c.Effects.Subjects) == 0 {
		return abs, real, nil
	}
	for _, s := range c.Effects.Subjects {
		if s.Value == real {
			return abs, real, nil
		}
	}
	return "", "", refuse("%s leads to another file than when this call was approved (now %s). Make the call again if that is right.", abs, real)
}

// Load returns the content of a file that the model has seen whole and that
// nobody has changed since; for any other the error tells the model what to do.
func (e *Editor) Load(_ context.Context, c agent.Call, path string) ([]byte, error) {
	abs, real, err := e.target(c, path)
	if err != nil {
		return nil, err
	}
	snap, err := safefile.Load(real, maxEdit)
	if err != nil {
		return nil, e.explain(abs, err)
	}
	switch st, _ := e.o.State.standing(snap); st {
	case unseen, partial:
		return nil, refuse("%s has not been read in full. Read it first, then make the call again.", abs)
	case stale:
		return nil, refuse("%s has changed since it was read, by the user or by another program. Read it again first.", abs)
	}
	return snap.Data, nil
}

// Save replaces the content before, which Load returned, by after.
func (e *Editor) Save(ctx context.Context, c agent.Call, path string, before, after []byte) error {
	abs, real, err := e.target(c, path)
	if err != nil {
		return err
	}
	snap, err := safefile.Load(real, maxEdit)
	if err != nil {
		return e.explain(abs, err)
	}
	if !bytes.Equal(snap.Data, before) {
		return e.explain(abs, safefile.ErrChanged)
	}
	return e.replace(ctx, abs, real, snap, after, true)
}

// replace writes a file, old being nil if it must not exist, and notes that
// the agent knows the new content, whole or in part.
func (e *Editor) replace(ctx context.Context, abs, real string, old *safefile.Snapshot, data []byte, whole bool) error {
	err := e.writer.Replace(real, old, data, func() error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if e.o.Before == nil {
			return nil
		}
		return e.o.Before(ctx, real)
	})
	if err != nil {
		if errors.Is(err, safefile.ErrChanged) {
			return err // the caller may look again
		}
		return e.explain(abs, err)
	}
	if snap, err := safefile.Load(real, maxEdit); err == nil && bytes.Equal(snap.Data, data) {
		total := strings.Count(textenc.Decode(data).String(), "\n") + 1
		sp := span{1, total}
		if !whole {
			sp = span{} // written, but not seen
		}
		e.o.State.put(real, snap.Info, snap.Data, sp, total)
	}
	if e.o.After != nil {
		e.o.After(ctx, real)
	}
	return nil
}

// explain words a failure to open or write a file for the model.
func (e *Editor) explain(abs string, err error) error {
	var kind *safefile.KindError
	switch {
	case errors.As(err, &kind) && kind.Mode.IsDir():
		// compat: the token is what models know a directory by.
		return fmt.Errorf("EISDIR: %s is a directory, not a file. List it with Glob or with ls", abs)
	case errors.As(err, &kind):
		return refuse("%s is %s, not a regular file. It cannot be read or written here.", abs, safefile.Kind(kind.Mode))
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist. The working directory is %s.%s", abs, e.o.Cwd(), e.suggest(abs))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("EACCES: the system does not permit access to %s: %w", abs, err)
	case errors.Is(err, safefile.ErrTooBig):
		return refuse("%s is bigger than %d MB, the most that can be changed here. Use a program such as sed.", abs, maxEdit>>20)
	case errors.Is(err, safefile.ErrChanged):
		return refuse("%s was changed by another program at this very moment. Nothing was written. Read it again first.", abs)
	}
	return err
}

// integer is a JSON number without a fraction, 5 or 5.0.
type integer int64

func (n *integer) UnmarshalJSON(b []byte) error {
	i, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		f, ferr := strconv.ParseFloat(string(b), 64)
		if ferr != nil || f != float64(int64(f)) {
			return fmt.Errorf("%s is not a whole number", b)
		}
		i = int64(f)
	}
	*n = integer(i)
	return nil
}

// decode reads a tool's input and words what is wrong with it.
func decode(raw json.RawMessage, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		var t *json.UnmarshalTypeError
		if errors.As(err, &t) {
			return fmt.Errorf("the parameter %s must not be a %s", t.Field, t.Value)
		}
		return err
	}
	return nil
}

func textual(s string) []agent.Block { return []agent.Block{&agent.Text{Text: s}} }
