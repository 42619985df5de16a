package file

import (
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

type writeTool struct{ *Editor }

type writeInput struct {
	FilePath string  `json:"file_path"`
	Content  *string `json:"content"`
}

func parseWrite(raw json.RawMessage) (in writeInput, err error) {
	if err := decode(raw, &in); err != nil {
		return in, err
	}
	if in.Content == nil {
		return in, errors.New("content is missing")
	}
	return in, nil
}

func (*writeTool) Spec() agent.Spec { return writeSpec }

func (t *writeTool) Inspect(raw json.RawMessage) (agent.Effects, error) {
	in, err := parseWrite(raw)
	if err != nil {
		return agent.Effects{}, err
	}
	_, subjects, err := t.Subjects(agent.SubjectWrite, in.FilePath)
	return agent.Effects{Subjects: subjects}, err
}

func (t *writeTool) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	in, err := parseWrite(c.Input)
	if err != nil {
		return agent.Result{}, err
	}
	abs, real, err := t.target(c, in.FilePath)
	if err != nil {
		return agent.Result{}, err
	}
	snap, err := safefile.Load(real, maxEdit)
	if errors.Is(err, fs.ErrNotExist) {
		return t.create(ctx, c, abs, real, *in.Content)
	}
	if err != nil {
		return agent.Result{}, t.explain(abs, err)
	}
	if err := t.mayReplace(abs, snap); err != nil {
		return agent.Result{}, err
	}
	before, data, err := rewrite(snap.Data, *in.Content)
	if err != nil {
		return agent.Result{}, refuse("%s was not written: %v. Use characters that it has, or convert the file first.", abs, err)
	}
	if err := t.replace(ctx, abs, real, snap, data, true); err != nil {
		return agent.Result{}, t.explain(abs, err)
	}
	return agent.Result{
		Blocks: textual(updated(abs) + modifiedNote(c)),
		Detail: WriteDetail{
			Type: "update", FilePath: abs, Content: *in.Content, UserModified: c.UserModified, OriginalFile: original(before),
			StructuredPatch: textdiff.Hunks(before, textenc.Decode(data).String(), textdiff.Context),
		},
	}, nil
}

// mayReplace refuses to put new content over what the model does not know.
func (t *writeTool) mayReplace(abs string, snap *safefile.Snapshot) error {
	switch st, _ := t.o.State.standing(snap); {
	case st == stale:
		return refuse("%s has changed since it was read, by the user or by another program, and writing it would undo that. Read it again first.", abs)
	case st == partial:
		return refuse("%s has been read only in part, and writing it would drop the rest. Read all of it first, or change the part with Edit.", abs)
	case st == unseen && (t.o.RequireRead() || strings.EqualFold(filepath.Ext(abs), ".ipynb")):
		return refuse("%s exists and has not been read. Read it first.", abs)
	}
	return nil
}

func (t *writeTool) create(ctx context.Context, c agent.Call, abs, real, content string) (agent.Result, error) {
	if err := t.replace(ctx, abs, real, nil, []byte(content), true); err != nil {
		return agent.Result{}, t.explain(abs, err)
	}
	return agent.Result{
		// compat: clients match on these words.
		Blocks: textual("File created successfully at: " + abs + modifiedNote(c)),
		Detail: WriteDetail{Type: "create", FilePath: abs, Content: content, UserModified: c.UserModified, StructuredPatch: []textdiff.Hunk{}},
	}, nil
}

// rewrite returns what a file holds, as text, and the bytes that make it hold content.
func rewrite(old []byte, content string) (before string, data []byte, err error) {
	text := textenc.Decode(old)
	if binary(old) {
		return text.String(), []byte(content), nil
	}
	data, err = text.Rewrite(content)
	return text.String(), data, err
}

// updated words success. compat: clients match on the first sentence.
func updated(abs string) string {
	return fmt.Sprintf("The file %s has been updated successfully. %s", abs, knownNote)
}

const knownNote = "(You know its content now; there is no need to read it again.)"

func modifiedNote(c agent.Call) string {
	if !c.UserModified {
		return ""
	}
	return " The user modified the content before accepting it: read the file to see what it holds."
}
