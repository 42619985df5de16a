package file

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/safefile"
)

type readTool struct{ *Editor }

type readInput struct {
	FilePath   string   `json:"file_path"`
	Offset     *integer `json:"offset"`
	Limit      *integer `json:"limit"`
	Pages      string   `json:"pages"`
	AllowLarge bool     `json:"allow_large"`
}

func parseRead(raw json.RawMessage) (in readInput, err error) {
	if err := decode(raw, &in); err != nil {
		return in, err
	}
	if in.Offset != nil && *in.Offset < 0 {
		return in, errors.New("offset must not be negative")
	}
	if in.Limit != nil && *in.Limit <= 0 {
		return in, errors.New("limit must be positive")
	}
	return in, nil
}

// first returns the first line asked for.
func (in *readInput) first() int {
	if in.Offset == nil {
		return 1
	}
	return max(1, int(*in.Offset))
}

// limit returns the number of lines asked for, 0 for as many as fit.
func (in *readInput) limit() int {
	if in.Limit == nil {
		return 0
	}
	return int(*in.Limit)
}

func (*readTool) Spec() agent.Spec { return readSpec }

func (t *readTool) Inspect(raw json.RawMessage) (agent.Effects, error) {
	in, err := parseRead(raw)
	if err != nil {
		return agent.Effects{}, err
	}
	_, subjects, err := t.Subjects(agent.SubjectRead, in.FilePath)
	return agent.Effects{Concurrent: true, ReadOnly: true, Idempotent: true, Subjects: subjects}, err
}

func (t *readTool) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	in, err := parseRead(c.Input)
	if err != nil {
		return agent.Result{}, err
	}
	abs, real, err := t.target(c, in.FilePath)
	if err != nil {
		return agent.Result{}, err
	}
	f, info, err := safefile.Open(real)
	if err != nil {
		return agent.Result{}, t.explain(abs, err)
	}
	defer f.Close()
	s := &source{ctx: ctx, abs: abs, real: real, f: f, info: info}
	if s.head, err = readHead(f); err != nil {
		return agent.Result{}, fmt.Errorf("reading %s: %w", abs, err)
	}
	return t.read(s, &in)
}

// A source is one opened file on its way to the model.
type source struct {
	ctx  context.Context // of the one call this serves
	abs  string          // as the model named it
	real string
	f    *os.File
	info fs.FileInfo
	head []byte // the first bytes
}

func readHead(f *os.File) ([]byte, error) {
	head := make([]byte, 1024)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	return head[:n], nil
}

// all reads the whole file.
func (s *source) all(limit int64) ([]byte, error) {
	rest, err := io.ReadAll(io.LimitReader(s.f, limit+1-int64(len(s.head))))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", s.abs, err)
	}
	data := append(s.head[:len(s.head):len(s.head)], rest...)
	if int64(len(data)) > limit {
		return nil, refuse("%s is bigger than %s, the most that can be read of a file of this kind.", s.abs, size(limit))
	}
	return data, nil
}

// read sends a file by what it holds, not by what it is called.
func (t *readTool) read(s *source, in *readInput) (agent.Result, error) {
	ext := strings.ToLower(filepath.Ext(s.abs))
	kind := sniff(s.head)
	if in.Pages != "" && kind != "application/pdf" {
		return agent.Result{}, refuse("pages is for PDF files, and %s is none. Use offset and limit.", s.abs)
	}
	switch {
	case strings.HasPrefix(kind, "image/"):
		return t.readImage(s, kind)
	case kind == "application/pdf":
		return t.readPDF(s, in.Pages)
	case imageExt[ext] || ext == ".pdf":
		return agent.Result{}, t.mislabelled(s, ext)
	case ext == ".ipynb" && len(bytes.TrimSpace(s.head)) > 0:
		return t.readNotebook(s, in)
	}
	return t.readText(s, in)
}

// mislabelled words the refusal of a file whose name promises an image or a
// document that its content is not. Sent as one it would make every later
// request fail.
func (t *readTool) mislabelled(s *source, ext string) error {
	what := contentKind(s.head)
	if len(s.head) == 0 {
		what = "nothing: it is empty"
	}
	return refuse("%s cannot be shown as %s: it holds %s.", s.abs, strings.ToUpper(ext[1:]), what)
}

// contentKind says in words what the first bytes of a file look like.
func contentKind(head []byte) string {
	if k := binaryKind(head); k != "" {
		return k
	}
	trimmed := bytes.ToLower(bytes.TrimSpace(head))
	switch {
	case bytes.HasPrefix(trimmed, []byte("<!doctype html")), bytes.HasPrefix(trimmed, []byte("<html")):
		return "HTML text"
	case bytes.HasPrefix(trimmed, []byte("<svg")):
		return "SVG text"
	case binary(head):
		return "data of an unknown kind"
	}
	return "text"
}

// size writes a number of bytes for people.
func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}

// tokens estimates how many tokens s takes: four characters of ASCII are
// about one, and so is every other character.
func tokens(s string) int {
	ascii := 0
	for i := range len(s) {
		if s[i] < utf8.RuneSelf {
			ascii++
		}
	}
	if ascii == len(s) {
		return ascii/4 + 1
	}
	return ascii/4 + utf8.RuneCountInString(s) - ascii + 1
}
