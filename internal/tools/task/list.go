// Package task holds the tools with which the model keeps a list of what is
// to do: TodoWrite, or TaskCreate, TaskGet, TaskList and TaskUpdate.
//
// It owns the list, its file format (one small file for each task, which
// other programs may read and change), and the reminder of what is open. It
// does not know who shows the list.
package task

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/lib/atomicfile"
)

// A List is the list of tasks of a session. It may be used concurrently, by
// several processes too.
type List struct {
	// Dir returns the directory that holds the list now. Required. It is
	// created with the first task.
	Dir func() string
}

// States of a task.
const (
	Pending    = "pending"
	InProgress = "in_progress"
	Completed  = "completed"
)

// An Item is one task.
type Item struct {
	ID          string         `json:"id"`
	Subject     string         `json:"subject"`
	Description string         `json:"description"`
	ActiveForm  string         `json:"activeForm,omitempty"`
	Status      string         `json:"status"`
	Owner       string         `json:"owner,omitempty"`
	Blocks      []string       `json:"blocks"`
	BlockedBy   []string       `json:"blockedBy"`
	Metadata    map[string]any `json:"metadata,omitempty"`

	// extra are fields of the file that we do not know, and keep.
	extra map[string]json.RawMessage
}

// fields are the names of Item's own fields.
var fields = []string{"id", "subject", "description", "activeForm", "status", "owner", "blocks", "blockedBy", "metadata"}

// decodeItem reads the content of a task file.
func decodeItem(data []byte) (Item, error) {
	var it Item
	if err := json.Unmarshal(data, &it); err != nil {
		return Item{}, err
	}
	if err := json.Unmarshal(data, &it.extra); err != nil {
		return Item{}, err
	}
	for _, f := range fields {
		delete(it.extra, f)
	}
	return it, nil
}

// encode writes it, the unknown fields last.
func (it Item) encode() ([]byte, error) {
	if it.Blocks == nil {
		it.Blocks = []string{}
	}
	if it.BlockedBy == nil {
		it.BlockedBy = []string{}
	}
	data, err := json.MarshalIndent(it, "", "  ")
	if err != nil {
		return nil, err
	}
	if len(it.extra) == 0 {
		return append(data, '\n'), nil
	}
	b := bytes.NewBuffer(bytes.TrimSuffix(data, []byte("\n}")))
	for _, k := range slices.Sorted(maps.Keys(it.extra)) {
		name, err := json.Marshal(k)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(b, ",\n  %s: %s", name, it.extra[k])
	}
	b.WriteString("\n}\n")
	return b.Bytes(), nil
}

// markFile remembers the highest id ever given, so that the id of a deleted
// task does not come back as another.
const markFile = ".highwatermark"

// Items returns the tasks in the order they were made. Files that cannot be
// read are left where they are and named in the error; the others are
// returned all the same.
func (l *List) Items() ([]Item, error) { return readItems(l.Dir()) }

func readItems(dir string) ([]Item, error) {
	es, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the task list: %w", err)
	}
	var items []Item
	var errs []error
	for _, e := range es {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || number(id) == 0 {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted just now
		}
		it := Item{}
		if err == nil {
			it, err = decodeItem(data)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("reading task %s: %w", id, err))
			continue
		}
		it.ID = id
		items = append(items, it)
	}
	slices.SortFunc(items, func(a, b Item) int { return number(a.ID) - number(b.ID) })
	return items, errors.Join(errs...)
}

// number is the number that id is, or 0.
func number(id string) int {
	n, err := strconv.Atoi(id)
	if err != nil || n <= 0 || strconv.Itoa(n) != id {
		return 0
	}
	return n
}

// lockWait is how long another process may hold the list.
const lockWait = 5 * time.Second

// change runs f alone among all who change the list.
func (l *List) change(ctx context.Context, f func(dir string) error) error {
	dir := l.Dir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the directory of the task list: %w", err)
	}
	lock, err := atomicfile.Acquire(ctx, filepath.Join(dir, ".lock"), lockWait, "changing a task list")
	if err != nil {
		return fmt.Errorf("changing the task list: %w", err)
	}
	err = f(dir)
	return errors.Join(err, lock.Release())
}

func write(dir string, it Item) error {
	data, err := it.encode()
	if err != nil {
		return fmt.Errorf("writing task %s: %w", it.ID, err)
	}
	if err := atomicfile.WriteFile(filepath.Join(dir, it.ID+".json"), data, 0o600); err != nil {
		return fmt.Errorf("writing task %s: %w", it.ID, err)
	}
	return nil
}

// mark returns the highest id that was given to a task that is gone.
func mark(dir string) int {
	data, err := os.ReadFile(filepath.Join(dir, markFile))
	if err != nil {
		return 0
	}
	return number(strings.TrimSpace(string(data)))
}

// Create adds it, whose ID is made, and returns it.
func (l *List) Create(ctx context.Context, it Item) (Item, error) {
	it.Status = Pending
	err := l.change(ctx, func(dir string) error {
		highest := mark(dir)
		es, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("reading the task list: %w", err)
		}
		for _, e := range es { // names, so that a file that is damaged keeps its id
			highest = max(highest, number(strings.TrimSuffix(e.Name(), ".json")))
		}
		it.ID = strconv.Itoa(highest + 1)
		return write(dir, it)
	})
	return it, err
}

// errNoTask reports an id that no task has.
var errNoTask = errors.New("there is no such task")

// update changes the task with that id by f, which gets it and all others by
// their ids, and may change those too. If f returns drop the task is deleted.
func (l *List) update(ctx context.Context, id string, f func(it *Item, all map[string]*Item) (drop bool, err error)) error {
	return l.change(ctx, func(dir string) error {
		items, rerr := readItems(dir)
		all := make(map[string]*Item, len(items))
		before := make(map[string][]byte, len(items))
		for i := range items {
			it := &items[i]
			all[it.ID] = it
			before[it.ID], _ = it.encode()
		}
		it := all[id]
		if it == nil {
			return errors.Join(fmt.Errorf("task %s: %w", id, errNoTask), rerr)
		}
		drop, err := f(it, all)
		if err != nil {
			return err
		}
		for i := range items {
			other := &items[i]
			if drop {
				if other.ID == id {
					continue
				}
				other.Blocks = without(other.Blocks, id)
				other.BlockedBy = without(other.BlockedBy, id)
			}
			if now, err := other.encode(); err != nil {
				return fmt.Errorf("writing task %s: %w", other.ID, err)
			} else if bytes.Equal(now, before[other.ID]) {
				continue
			}
			if err := write(dir, *other); err != nil {
				return err
			}
		}
		if !drop {
			return nil
		}
		if n := number(id); n > mark(dir) {
			if err := atomicfile.WriteFile(filepath.Join(dir, markFile), []byte(id), 0o600); err != nil {
				return fmt.Errorf("deleting task %s: %w", id, err)
			}
		}
		if err := os.Remove(filepath.Join(dir, id+".json")); err != nil {
			return fmt.Errorf("deleting task %s: %w", id, err)
		}
		return nil
	})
}

func without(ids []string, id string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(s string) bool { return s == id })
}

// open returns those of it's blockers that are not completed.
func (it Item) open(all []Item) []string {
	var ids []string
	for _, id := range it.BlockedBy {
		for _, b := range all {
			if b.ID == id && b.Status != Completed {
				ids = append(ids, "#"+id)
			}
		}
	}
	return ids
}

// line is it in one line.
func (it Item) line(all []Item) string {
	s := fmt.Sprintf("#%s [%s] %s", it.ID, it.Status, it.Subject)
	if it.Owner != "" {
		s += " (" + it.Owner + ")"
	}
	if b := it.open(all); len(b) > 0 {
		s += " (blocked by " + strings.Join(b, ", ") + ")"
	}
	return s
}

// Reminder says what is on the list of that agent ("" is the main
// conversation), for the model to be reminded of; "" if nothing is open.
func (l *List) Reminder(agent string) string {
	items, _ := l.Items() // what cannot be read is told when the list is asked for
	var lines []string
	open := false
	for _, it := range items {
		lines = append(lines, it.line(items))
		open = open || it.Status != Completed
	}
	todos, _ := l.Todos(agent)
	for _, t := range todos {
		lines = append(lines, fmt.Sprintf("[%s] %s", t.Status, t.Content))
		open = open || t.Status != Completed
	}
	if !open {
		return ""
	}
	return strings.Join(lines, "\n")
}
