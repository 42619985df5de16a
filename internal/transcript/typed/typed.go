// Package typed keeps what people have typed at the prompt, for all sessions
// of a project: one JSON object a line, in the format of history.jsonl. It
// owns the file's format and knows no editors.
package typed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	tail    = 1 << 20 // how much of the file is read
	maxKept = 1000    // entries that Load returns
)

// An entry is one line of the file.
type entry struct {
	Display string          `json:"display"`
	Pasted  json.RawMessage `json:"pastedContents"`
	When    int64           `json:"timestamp"` // milliseconds since 1970
	Project string          `json:"project"`
	Session string          `json:"sessionId,omitempty"`
}

// Load returns what was typed in project, the newest last, each text once.
// Lines that cannot be read cost only themselves.
func Load(file, project string) ([]string, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
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
	data, err := io.ReadAll(io.NewSectionReader(f, from, tail))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	if from > 0 {
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	var out []string
	seen := map[string]bool{}
	for _, line := range slices.Backward(bytes.Split(data, []byte("\n"))) {
		var e entry
		if json.Unmarshal(line, &e) != nil || e.Project != project || e.Display == "" || seen[e.Display] {
			continue
		}
		seen[e.Display] = true
		if out = append(out, e.Display); len(out) == maxKept {
			break
		}
	}
	slices.Reverse(out)
	return out, nil
}

// Append keeps one more text. A line that another writer left without its end
// stays a line of its own.
func Append(file, project, session, text string, now time.Time) error {
	line, err := json.Marshal(entry{text, json.RawMessage("{}"), now.UnixMilli(), project, session})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if fi, err := f.Stat(); err == nil && fi.Size() > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, fi.Size()-1); err == nil && last[0] != '\n' {
			line = append([]byte("\n"), line...)
		}
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Close())
}
