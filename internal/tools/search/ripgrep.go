package search

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

const (
	batchFiles = 2000
	batchBytes = 256 << 10 // of arguments
	// batchWindows is what a command line may have there, with some room.
	batchWindows = 24 << 10
)

// ripgrep is the engine that runs rg. It is handed the files one by one: which
// ones are searched is decided here, in the same way for either engine, and a
// denied file is never opened.
type ripgrep struct {
	o *Options
	q *query
}

func (r *ripgrep) search(ctx context.Context, files <-chan string, found *collector) error {
	var batch []string
	size, runs := 0, 0
	limit := batchBytes
	if runtime.GOOS == "windows" {
		limit = batchWindows
	}
	flush := func() error {
		err := r.run(ctx, batch, found)
		batch, size, runs = nil, 0, runs+1
		return err
	}
	for path := range files {
		if batch = append(batch, path); len(batch) < batchFiles && size+len(path) < limit {
			size += len(path) + 1
			continue
		}
		if err := flush(); err != nil {
			return err
		}
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if len(batch) == 0 && runs == 0 {
		batch = []string{os.DevNull} // an invalid pattern must show all the same
	}
	if len(batch) == 0 {
		return nil
	}
	return flush()
}

// args returns the command line up to the files. The user's configuration
// file stays out of it, and the pattern cannot be taken for an option.
func (r *ripgrep) args() []string {
	q := r.q
	a := []string{r.o.Ripgrep, "--no-config", "--no-messages", "--color=never", "--text"}
	if crlf(q.pattern, q.multiline) {
		a = append(a, "--crlf")
	}
	switch q.mode {
	case modeFiles:
		a = append(a, "--files-with-matches", "--null")
	case modeCount:
		a = append(a, "--count", "--with-filename", "--null")
	default:
		a = append(a, "--json", "--max-count", strconv.Itoa(q.need+1))
		if q.before > 0 {
			a = append(a, "--before-context", strconv.Itoa(q.before))
		}
		if q.after > 0 {
			a = append(a, "--after-context", strconv.Itoa(q.after))
		}
	}
	if q.fold {
		a = append(a, "--ignore-case")
	} else {
		a = append(a, "--case-sensitive")
	}
	if q.multiline {
		a = append(a, "--multiline", "--multiline-dotall")
	}
	return append(a, "--regexp", q.pattern, "--")
}

func (r *ripgrep) run(ctx context.Context, files []string, found *collector) error {
	out := &rgOutput{q: r.q, found: found}
	code, stderr, err := r.o.Exec(ctx, string(filepath.Separator), append(r.args(), files...), out)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if out.err != nil {
		return fmt.Errorf("reading the output of rg: %w", out.err)
	}
	if err != nil {
		return fmt.Errorf("running rg: %w", err)
	}
	// 0 is a match, 1 is none; 2 with a message is a fault of the pattern, and
	// without one, since messages about single files are off, of a file.
	if text := strings.TrimSpace(string(stderr)); code > 1 && text != "" {
		return refuse("The search failed:\n%s", text)
	}
	return nil
}

// rgOutput reads what rg writes, record by record.
type rgOutput struct {
	q     *query
	found *collector
	buf   []byte
	file  *hits // being told of
	err   error
}

func (w *rgOutput) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	w.buf = append(w.buf, p...)
	if bytes.IndexByte(p, w.end()) < 0 {
		if len(w.buf) > maxRecord {
			w.err = fmt.Errorf("a line of more than %d MB", maxRecord>>20)
		}
		return len(p), w.err // no record ends here
	}
	rest := w.buf
	for w.err == nil {
		n := w.record(rest)
		if n == 0 {
			break
		}
		rest = rest[n:]
	}
	w.buf = append(w.buf[:0], rest...)
	return len(p), w.err
}

// maxRecord bounds what is held of one line of one file.
const maxRecord = 256 << 20

// end returns the byte that ends a record.
func (w *rgOutput) end() byte {
	if w.q.mode == modeFiles {
		return 0
	}
	return '\n'
}

// record handles the record that b begins with and returns its length, 0 if
// it is not all there yet.
func (w *rgOutput) record(b []byte) int {
	switch w.q.mode {
	case modeFiles:
		i := bytes.IndexByte(b, 0)
		if i >= 0 {
			w.found.add(&hits{path: string(b[:i]), count: 1})
		}
		return i + 1
	case modeCount:
		i := bytes.IndexByte(b, 0)
		if i < 0 {
			return 0
		}
		j := bytes.IndexByte(b[i:], '\n')
		if j < 0 {
			return 0
		}
		// With --crlf rg ends its own lines so too.
		n, err := strconv.Atoi(strings.TrimSuffix(string(b[i+1:i+j]), "\r"))
		if err != nil {
			w.err = err
		} else {
			w.found.add(&hits{path: string(b[:i]), count: n})
		}
		return i + j + 1
	}
	i := bytes.IndexByte(b, '\n')
	if i > 0 {
		w.err = w.event(b[:i])
	}
	return i + 1
}

// rgText is a text of rg's JSON, in base64 if it is not valid UTF-8.
type rgText struct {
	Text  *string `json:"text"`
	Bytes string  `json:"bytes"`
}

func (t rgText) bytes() ([]byte, error) {
	if t.Text != nil {
		return []byte(*t.Text), nil
	}
	return base64.StdEncoding.DecodeString(t.Bytes)
}

type rgEvent struct {
	Type string `json:"type"`
	Data struct {
		Path    rgText `json:"path"`
		Lines   rgText `json:"lines"`
		Number  *int   `json:"line_number"`
		Matches []struct {
			Match rgText `json:"match"`
			Start int    `json:"start"`
			End   int    `json:"end"`
		} `json:"submatches"`
	} `json:"data"`
}

// event handles one line of JSON.
func (w *rgOutput) event(b []byte) error {
	var e rgEvent
	if err := json.Unmarshal(b, &e); err != nil {
		return err
	}
	switch e.Type {
	case "begin":
		path, err := e.Data.Path.bytes()
		if err != nil {
			return err
		}
		w.file = &hits{path: string(path)}
	case "end":
		if w.file != nil && w.file.count > 0 {
			w.found.add(w.file)
		}
		w.file = nil
	case "match", "context":
		if w.file == nil || e.Data.Number == nil {
			return errors.New("a line of no file")
		}
		text, err := e.Data.Lines.bytes()
		if err != nil {
			return err
		}
		w.lines(&e, text)
	}
	return nil
}

// lines takes the lines of one event: one, or in multiline as many as a match touches.
func (w *rgOutput) lines(e *rgEvent, text []byte) {
	match := e.Type == "match"
	n := *e.Data.Number
	if match {
		w.file.count++
	}
	if match && w.q.only {
		for _, m := range e.Data.Matches {
			number := n + bytes.Count(text[:m.Start], []byte{'\n'})
			for piece := range bytes.SplitSeq(bytes.TrimSuffix(text[m.Start:m.End], []byte{'\n'}), []byte{'\n'}) {
				if m.Start < m.End {
					w.file.lines = append(w.file.lines, line{number: number, text: printable(piece), match: true})
				}
				number++
			}
		}
		return
	}
	at := 0
	if len(e.Data.Matches) > 0 {
		at = e.Data.Matches[0].Start
	}
	for piece := range bytes.SplitSeq(bytes.TrimSuffix(text, []byte{'\n'}), []byte{'\n'}) {
		w.file.lines = append(w.file.lines, line{number: n, text: printable(piece), match: match, at: at})
		n, at = n+1, 0
	}
}
