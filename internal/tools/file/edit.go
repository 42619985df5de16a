package file

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/safefile"
	"github.com/seed-eb844fcb/cinch/internal/lib/textdiff"
	"github.com/seed-eb844fcb/cinch/internal/lib/textenc"
)

type editTool struct{ *Editor }

type editInput struct {
	FilePath   string  `json:"file_path"`
	OldString  *string `json:"old_string"`
	NewString  *string `json:"new_string"`
	ReplaceAll bool    `json:"replace_all"`
}

func parseEdit(raw json.RawMessage) (in editInput, err error) {
	if err := decode(raw, &in); err != nil {
		return in, err
	}
	if in.OldString == nil {
		return in, errors.New("old_string is missing")
	}
	if in.NewString == nil {
		return in, errors.New("new_string is missing")
	}
	return in, nil
}

func (*editTool) Spec() agent.Spec { return editSpec }

func (t *editTool) Inspect(raw json.RawMessage) (agent.Effects, error) {
	in, err := parseEdit(raw)
	if err != nil {
		return agent.Effects{}, err
	}
	_, subjects, err := t.Subjects(agent.SubjectWrite, in.FilePath)
	return agent.Effects{Subjects: subjects}, err
}

// attempts is how often an edit is made anew because another agent or program
// wrote the file in the same moment.
const attempts = 10

func (t *editTool) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	in, err := parseEdit(c.Input)
	if err != nil {
		return agent.Result{}, err
	}
	abs, real, err := t.target(c, in.FilePath)
	if err != nil {
		return agent.Result{}, err
	}
	if *in.OldString == *in.NewString {
		return agent.Result{}, refuse("old_string and new_string are the same: there is nothing to change.")
	}
	if strings.EqualFold(filepath.Ext(abs), ".ipynb") {
		return agent.Result{}, refuse("%s is a notebook. Change its cells with NotebookEdit.", abs)
	}
	for n := 1; ; n++ {
		r, err := t.edit(ctx, c, &in, abs, real)
		if errors.Is(err, safefile.ErrChanged) && n < attempts {
			continue
		}
		if err != nil {
			return agent.Result{}, t.explain(abs, err)
		}
		return r, nil
	}
}

func (t *editTool) edit(ctx context.Context, c agent.Call, in *editInput, abs, real string) (agent.Result, error) {
	snap, err := safefile.Load(real, maxEdit)
	if errors.Is(err, fs.ErrNotExist) && *in.OldString == "" {
		return t.create(ctx, c, in, abs, real)
	}
	if err != nil {
		return agent.Result{}, err
	}
	st, seenData := t.o.State.standing(snap)
	if t.o.RequireRead() && (st == unseen || st == partial) {
		return agent.Result{}, refuse("%s has not been read in full. Read it first, then make the call again.", abs)
	}
	if binary(snap.Data) {
		return agent.Result{}, refuse("%s is not text but %s. It cannot be edited here.", abs, contentKind(snap.Data[:min(1024, len(snap.Data))]))
	}
	m := matcher{text: textenc.Decode(snap.Data), old: *in.OldString, new: *in.NewString, all: in.ReplaceAll}
	data, err := m.apply(abs, st == stale)
	if err != nil {
		return agent.Result{}, err
	}
	if bytes.Equal(data, snap.Data) {
		return agent.Result{}, refuse("The edit would leave %s as it is: old_string and new_string differ in nothing but line ends.", abs)
	}
	if err := t.replace(ctx, abs, real, snap, data, st == current); err != nil {
		return agent.Result{}, err
	}
	before := m.text.String()
	detail := EditDetail{
		FilePath: abs, OldString: *in.OldString, NewString: *in.NewString, OriginalFile: original(before),
		StructuredPatch: textdiff.Hunks(before, textenc.Decode(data).String(), textdiff.Context),
		UserModified:    c.UserModified, ReplaceAll: in.ReplaceAll,
	}
	return agent.Result{Blocks: textual(t.done(abs, in, st, seenData, snap.Data) + modifiedNote(c)), Detail: detail}, nil
}

// done words success. compat: clients match on the first sentence.
func (t *editTool) done(abs string, in *editInput, st standing, seenData, was []byte) string {
	s := fmt.Sprintf("The file %s has been updated successfully.", abs)
	if in.ReplaceAll {
		s = fmt.Sprintf("The file %s has been updated. All occurrences were successfully replaced.", abs)
	}
	switch st {
	case current:
		s += " " + knownNote
	case stale:
		s += " Besides this edit, the file had changed since you last saw it, by the user or by another program; those changes are kept."
		if diff, cut := difference(seenData, was); diff != "" && !cut {
			s += " They are:\n" + diff
		} else {
			s += " Read it before you change more of it."
		}
	}
	return s
}

// create makes a file from an edit of nothing.
func (t *editTool) create(ctx context.Context, c agent.Call, in *editInput, abs, real string) (agent.Result, error) {
	if err := t.replace(ctx, abs, real, nil, []byte(*in.NewString), true); err != nil {
		return agent.Result{}, err
	}
	empty := ""
	return agent.Result{
		Blocks: textual("File created successfully at: " + abs + modifiedNote(c)),
		Detail: EditDetail{
			FilePath: abs, NewString: *in.NewString, OriginalFile: &empty,
			StructuredPatch: textdiff.Hunks("", *in.NewString, textdiff.Context),
			UserModified:    c.UserModified, ReplaceAll: in.ReplaceAll,
		},
	}, nil
}
