package shell

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"
)

const (
	// maxFailedText is how much of a failed command's output is shown: its
	// end says why, and it is often repeated.
	maxFailedText = 10_000
	// previewText is what is shown of output that is kept in a file.
	previewText = 2_000
	// maxWhole is the size up to which output is read as a whole to be
	// shown; of more, only the two ends are looked at.
	maxWhole = 1 << 20
	// maxKept is how much of the output is kept for the session.
	maxKept = 64 << 20
)

// A view is what can be shown of an output file.
type view struct {
	text string
	path string // the file that holds all of it, or ""
	size int64  // of that file
	kept bool   // path is the run's own file
}

// view makes the text of r's output, of at most limit characters. Output that
// is longer, or no text, stays in a file that the text names. open says that
// somebody still writes to it.
func (r *run) view(limit int, failed, open bool, resultDir string) view {
	fi, err := r.file.Stat()
	if err != nil {
		return view{text: "(the output could not be read: " + err.Error() + ")"}
	}
	size := fi.Size()
	if size == 0 {
		return view{}
	}
	head, tail, err := ends(r.file, size)
	if err != nil {
		return view{text: "(the output could not be read: " + err.Error() + ")"}
	}
	if kind := binary(head); kind != "" {
		v := r.keep(size, open, resultDir, extension(kind))
		v.text = fmt.Sprintf("(%s of output that is no text: %s%s)", bytesText(size), kind, in(v.path))
		return v
	}
	text, hidden := clean(head)
	if tail == nil {
		text = strings.TrimRight(text, "\r\n")
		if utf8.RuneCountInString(text) <= limit {
			return view{text: text + hiddenNote(hidden)}
		}
	}
	v := r.keep(size, open, resultDir, ".txt")
	end := text
	if tail != nil {
		end, _ = clean(tail)
		end = strings.TrimRight(end, "\r\n")
	}
	if failed {
		v.text = excerpt(text, end, limit, size) + "\n[complete output" + in(v.path) + "]"
		return v
	}
	v.text = "<persisted-output>\n" + bytesText(size) + " of output, too much to show; all of it is" + in(v.path) +
		"\nBeginning and end of it:\n\n" + excerpt(text, end, min(previewText, limit), size) + "\n</persisted-output>"
	return v
}

func in(path string) string {
	if path == "" {
		return " lost: it could not be kept"
	}
	return " in " + path
}

func hiddenNote(hidden int) string {
	if hidden == 0 {
		return ""
	}
	return fmt.Sprintf("\n[%d overwritten states of progress lines are not shown]", hidden)
}

// excerpt is the beginning of head and the end of tail, cut at lines where
// lines are short, limit characters together.
func excerpt(head, tail string, limit int, size int64) string {
	a := firstChars(head, limit/2)
	if i := strings.LastIndexByte(a, '\n'); i > len(a)*3/4 {
		a = a[:i]
	}
	z := lastChars(tail, limit/2)
	if i := strings.IndexByte(z, '\n'); i >= 0 && i < len(z)/4 {
		z = z[i+1:]
	}
	left := size - int64(len(a)+len(z))
	return fmt.Sprintf("%s\n\n[… about %s left out …]\n\n%s", a, bytesText(max(left, 0)), z)
}

// firstChars is the first n characters of s, lastChars the last.
func firstChars(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

func lastChars(s string, n int) string {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, w := utf8.DecodeLastRuneInString(s[:i])
		i -= w
	}
	return s[i:]
}

// ends reads f, whole if it is not long; else its two ends.
func ends(f *os.File, size int64) (head, tail []byte, err error) {
	if size <= maxWhole {
		head, err = part(f, 0, size)
		return head, nil, err
	}
	if head, err = part(f, 0, maxWhole/4); err != nil {
		return nil, nil, err
	}
	tail, err = part(f, size-maxWhole/4, maxWhole/4)
	if len(tail) == 0 {
		tail = []byte{} // the file shrank
	}
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	return head, tail, err
}

func part(f *os.File, at, n int64) ([]byte, error) {
	b := make([]byte, n)
	k, err := f.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		err = nil // the file shrank, or its end was reached
	}
	return b[:k], err
}

// clean makes raw output a text: of a line that was overwritten by carriage
// returns the last state is left, bytes that are no UTF-8 and NULs become
// marks. hidden counts the states that are left out.
func clean(raw []byte) (text string, hidden int) {
	if bytes.IndexByte(raw, '\r') >= 0 {
		raw, hidden = collapse(raw)
	}
	if bytes.IndexByte(raw, 0) >= 0 {
		raw = bytes.ReplaceAll(raw, []byte{0}, []byte("\u2400"))
	}
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("\ufffd"))
	}
	return string(raw), hidden
}

// collapse keeps the last state of each line. CR LF at its end is kept.
func collapse(raw []byte) (out []byte, hidden int) {
	out = make([]byte, 0, len(raw))
	for line := range bytes.Lines(raw) {
		end := len(line)
		for end > 0 && (line[end-1] == '\n' || line[end-1] == '\r') {
			end--
		}
		body, rest := line[:end], line[end:]
		for len(rest) > 1 && rest[0] == '\r' && rest[1] == '\r' {
			rest = rest[1:]
		}
		if n := bytes.Count(body, []byte{'\r'}); n > 0 {
			hidden += n
			body = body[bytes.LastIndexByte(body, '\r')+1:]
		}
		out = append(append(out, body...), rest...)
	}
	return out, hidden
}

// binary names the kind of data in head if it is no text.
func binary(head []byte) string {
	for _, k := range []struct{ magic, kind string }{
		{"\x89PNG\r\n\x1a\n", "image/png"}, {"\xff\xd8\xff", "image/jpeg"}, {"GIF8", "image/gif"},
		{"%PDF-", "application/pdf"}, {"PK\x03\x04", "application/zip"}, {"\x1f\x8b\x08", "application/gzip"},
		{"\x7fELF", "an ELF program"},
	} {
		if bytes.HasPrefix(head, []byte(k.magic)) {
			return k.kind
		}
	}
	if len(head) > 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP" {
		return "image/webp"
	}
	sample := head[:min(len(head), 8<<10)]
	odd := 0
	for len(sample) > 0 {
		r, w := utf8.DecodeRune(sample)
		if r == utf8.RuneError && w == 1 || r == 0 || r < 7 || r > 13 && r < 27 {
			odd++
		}
		sample = sample[w:]
	}
	if odd > 16 && odd*10 > min(len(head), 8<<10) && bytes.IndexByte(head, 0) >= 0 {
		return "binary data"
	}
	return ""
}

// extension is what the name of a file of that kind ends in, so that others
// know what it is.
func extension(kind string) string {
	switch kind {
	case "image/png", "image/gif", "image/webp", "application/pdf", "application/zip":
		return "." + kind[strings.IndexByte(kind, '/')+1:]
	case "image/jpeg":
		return ".jpg"
	case "application/gzip":
		return ".gz"
	}
	return ".bin"
}

// keep moves the output to resultDir, at most maxKept of it. While it is open
// it stays where it is, as it does if it cannot be moved.
func (r *run) keep(size int64, open bool, resultDir, ext string) view {
	here := view{path: r.path, size: size, kept: true}
	if open || resultDir == "" {
		return here
	}
	if err := os.MkdirAll(resultDir, 0o700); err != nil {
		return here
	}
	to := filepath.Join(resultDir, r.id+ext)
	if size <= maxKept {
		err := os.Rename(r.path, to)
		if err == nil {
			return view{path: to, size: size}
		}
		if !errors.Is(err, syscall.EXDEV) {
			return here
		}
	}
	n, err := copyEnds(to, r.file, size)
	if err != nil {
		_ = os.Remove(to)
		if size > maxKept {
			return view{} // five gigabytes are not kept
		}
		return here
	}
	return view{path: to, size: n}
}

// copyEnds copies f to a new file: whole, or as much of its two ends as may
// be kept, with a line between them that says what is missing.
func copyEnds(to string, f *os.File, size int64) (n int64, err error) {
	w, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() {
		if cerr := w.Close(); err == nil {
			err = cerr
		}
	}()
	if size <= maxKept {
		return io.Copy(w, io.NewSectionReader(f, 0, size))
	}
	const half = maxKept / 2
	n, err = io.Copy(w, io.NewSectionReader(f, 0, half))
	if err != nil {
		return n, err
	}
	k, err := fmt.Fprintf(w, "\n[… %d bytes left out …]\n", size-2*half)
	n += int64(k)
	if err != nil {
		return n, err
	}
	m, err := io.Copy(w, io.NewSectionReader(f, size-half, half))
	return n + m, err
}

// lastLine is the newest line of f that is not empty.
func lastLine(f *os.File, size int64) string {
	const window = 1 << 10
	b, err := part(f, max(size-window, 0), min(size, window))
	if err != nil {
		return ""
	}
	text, _ := clean(bytes.TrimRight(b, "\r\n \t"))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// bytesText formats a size.
func bytesText(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
}
