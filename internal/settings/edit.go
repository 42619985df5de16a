package settings

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/lib/atomicfile"
	"github.com/seed-eb844fcb/cinch/internal/lib/disk"
	"github.com/seed-eb844fcb/cinch/internal/lib/jsonc"
)

// An Op is what a Change does.
type Op uint8

const (
	Set    Op = iota // the key to Value
	Delete           // the key
	Add              // Value to the list at the key, unless it is in it
	Remove           // Value from the list at the key
)

// A Change is one change of a file of settings or state.
type Change struct {
	Op    Op
	Path  []string
	Value any // anything that encodes as JSON
}

// An Editor changes files of settings and state. Other processes may change
// them too; each change is made to what is there when it is made, under a
// lock, and everything else in the file keeps its bytes.
type Editor struct {
	// Root is the configuration root: locks and copies are kept there.
	Root string
	// FS is the disk. Nil: the machine's.
	FS disk.FS
}

// File returns the file that an edit of a layer changes. There is none for
// Managed and Flag.
func (v *Value) File(l Layer) (string, error) {
	switch l {
	case User:
		if v.o.Root != "" {
			return filepath.Join(v.o.Root, "settings.json"), nil
		}
		return "", errors.New("there is no home directory to keep user settings in; set HOME or CLAUDE_CONFIG_DIR")
	case Project:
		return filepath.Join(v.o.ProjectRoot, ".claude", "settings.json"), nil
	case Local:
		return filepath.Join(v.LocalDir(), ".claude", "settings.local.json"), nil
	case State:
		if v.o.State != "" {
			return v.o.State, nil
		}
		return "", errors.New("there is no home directory to keep state in; set HOME or CLAUDE_CONFIG_DIR")
	}
	return "", fmt.Errorf("%s settings cannot be changed from here", l)
}

// Edit applies changes to file, all or none. A file that is not there is made,
// with its directory; one that cannot be parsed is left alone, and the error
// says where it is wrong.
func (e Editor) Edit(ctx context.Context, file string, changes ...Change) error {
	return e.edit(ctx, file, nil, changes)
}

// EditState is Edit for the program state. Before each change a copy is kept
// in <root>/backups, the newest five.
func (e Editor) EditState(ctx context.Context, file string, changes ...Change) error {
	return e.edit(ctx, file, Editor.backUp, changes)
}

const lockWait = 10 * time.Second

func (e Editor) edit(ctx context.Context, file string, before func(e Editor, name string, old []byte), changes []Change) error {
	if e.FS == nil {
		e.FS = disk.OS{}
	}
	if err := e.FS.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("changing %s: %w", file, err)
	}
	w := atomicfile.Writer{FS: e.FS, Spare: filepath.Join(e.Root, "backups")}
	return w.Update(ctx, atomicfile.Update{
		Name: file, Perm: 0o600, Lock: e.lock(file), Wait: lockWait,
		Change: func(old []byte) ([]byte, error) {
			data := old
			var err error
			for _, c := range changes {
				if data, err = c.apply(data); err != nil {
					var je *jsonc.Error
					if errors.As(err, &je) {
						return nil, fmt.Errorf("line %d, column %d: %s; put that right first, the file was left as it is", je.Line, je.Col, je.Text)
					}
					return nil, err
				}
			}
			if before != nil && len(old) > 0 && !bytes.Equal(old, data) {
				before(e, filepath.Base(file), old)
			}
			return data, nil
		},
	})
}

// lock returns the name of the lock for file. It is that of the file behind
// links, so that all who change it agree.
func (e Editor) lock(file string) string {
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(file)) // a hash never fails
	return filepath.Join(e.Root, "cinch", "locks", strings.TrimPrefix(filepath.Base(file), ".")+"-"+strconv.FormatUint(h.Sum64(), 36)+".lock")
}

func (c Change) apply(data []byte) ([]byte, error) {
	value, err := json.Marshal(c.Value)
	if err != nil {
		return nil, fmt.Errorf("encoding the value of %s: %w", strings.Join(c.Path, "."), err)
	}
	switch c.Op {
	case Delete:
		data, _, err = jsonc.Delete(data, c.Path)
		return data, err
	case Remove:
		data, _, err = jsonc.Remove(data, c.Path, func(v *jsonc.Value) bool { return same(v, value) })
		return data, err
	case Add:
		root, err := jsonc.Parse(data)
		if err != nil {
			return nil, err
		}
		at := root
		for _, k := range c.Path {
			at = at.Member(k)
		}
		if at != nil && slices.ContainsFunc(at.Elements, func(v *jsonc.Value) bool { return same(v, value) }) {
			return data, nil
		}
		return jsonc.Append(data, c.Path, value)
	}
	return jsonc.Set(data, c.Path, value)
}

// same reports whether v says what the JSON value says.
func same(v *jsonc.Value, value json.RawMessage) bool {
	w, err := jsonc.Parse(value)
	return err == nil && w != nil && bytes.Equal(v.JSON(), w.JSON())
}

const backups = 5

// backUp keeps a copy of old. It is a help, not a condition: a copy that
// cannot be made does not keep the change from being made.
func (e Editor) backUp(name string, old []byte) {
	dir := filepath.Join(e.Root, "backups")
	if e.FS.MkdirAll(dir, 0o700) != nil {
		return
	}
	prefix := name + ".backup."
	if (atomicfile.Writer{FS: e.FS}).WriteFile(filepath.Join(dir, prefix+strconv.FormatInt(time.Now().UnixMilli(), 10)), old, 0o600) != nil {
		return
	}
	es, err := e.FS.ReadDir(dir)
	if err != nil {
		return
	}
	var names []string
	for _, d := range es {
		if strings.HasPrefix(d.Name(), prefix) {
			names = append(names, d.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int { // by age: times of one length, but for clocks set wildly
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	for len(names) > backups {
		_ = e.FS.Remove(filepath.Join(dir, names[0]))
		names = names[1:]
	}
}

// Exclude adds the local settings file to a file of patterns that git
// ignores, such as ~/.config/git/ignore, unless it is in it.
func Exclude(file string) error {
	const pattern = "**/.claude/settings.local.json"
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("excluding local settings from git: %w", err)
	}
	for l := range bytes.Lines(data) {
		if string(bytes.TrimSpace(l)) == pattern {
			return nil
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("excluding local settings from git: %w", err)
	}
	if len(data) > 0 && data[len(data)-1] != '\n' {
		data = append(data, '\n')
	}
	if err := atomicfile.WriteFile(file, append(data, pattern+"\n"...), 0o644); err != nil {
		return fmt.Errorf("excluding local settings from git: %w", err)
	}
	return nil
}
