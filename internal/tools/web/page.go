package web

import (
	"compress/gzip"
	"compress/zlib"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/seed-eb844fcb/cinch/internal/lib/textenc"
)

// A page is what was found at an address.
type page struct {
	code  int
	text  string
	plain bool // text is the page's own; else it is about the page
	bytes int64
}

// failure is what the model is told of an answer that is an error.
func (p page) failure() string {
	s := strings.TrimSpace(fmt.Sprintf("The server answered with status %d %s", p.code, statusText(p.code))) + "."
	switch p.code {
	case 401, 403, 407:
		s += " The page may need a login, which this tool does not have."
	case 429:
		s += " Try again later."
	}
	if part, _ := cut(strings.TrimSpace(p.text), 0, maxExcerpt); p.plain && part != "" {
		s += " The beginning of its text:\n" + part
	}
	return s
}

// read makes a page of an answer. It reads at most MaxBytes, however much
// there is or unpacks to.
func (f *fetch) read(u *url.URL, code int, header map[string][]string, body io.Reader) (page, error) {
	kind, params, err := mime.ParseMediaType(field(header, "Content-Type"))
	if err != nil {
		kind = ""
	}
	if kind == "text/event-stream" {
		return page{}, errors.New("this is a stream of events, which has no end, and no page")
	}
	plain, err := unpack(field(header, "Content-Encoding"), body)
	if err != nil {
		return page{}, err
	}
	raw, err := io.ReadAll(io.LimitReader(plain, f.o.MaxBytes+1))
	if err != nil && len(raw) == 0 {
		return page{}, fmt.Errorf("reading the page: %w", err)
	}
	p := page{code: code, plain: true, bytes: int64(len(raw))}
	note := ""
	switch {
	case int64(len(raw)) > f.o.MaxBytes:
		raw = raw[:f.o.MaxBytes]
		p.bytes = f.o.MaxBytes
		note = fmt.Sprintf("\n\n[Only the first %d bytes were read.]", f.o.MaxBytes)
	case err != nil:
		note = "\n\n[The page breaks off here: " + err.Error() + "]"
	}
	if !textual(kind, raw) {
		p.plain = false
		p.text, err = f.save(u, kind, raw, note != "")
		return p, err
	}
	text := decode(raw, params["charset"])
	if kind == "text/html" || kind == "application/xhtml+xml" || kind == "" && looksHTML(text) {
		if text, err = markdown(text, u); err != nil {
			return page{}, err
		}
	}
	p.text = text + note
	return p, nil
}

// unpack undoes the compression that the transport has left.
func unpack(encoding string, body io.Reader) (io.Reader, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return body, nil
	case "gzip", "x-gzip":
		return gzip.NewReader(body)
	case "deflate":
		return zlib.NewReader(body)
	}
	return nil, fmt.Errorf("the page is compressed with %q, which is not known", encoding)
}

// textual reports whether raw, said to be of that kind, can be read as text.
func textual(kind string, raw []byte) bool {
	main, sub, _ := strings.Cut(kind, "/")
	switch main {
	case "image", "audio", "video", "font":
		return sub == "svg+xml"
	case "application":
		switch sub {
		case "pdf", "zip", "gzip", "octet-stream", "wasm", "x-tar", "x-7z-compressed":
			if sub != "octet-stream" {
				return false
			}
		}
	}
	if strings.HasPrefix(string(raw[:min(len(raw), 5)]), "%PDF-") {
		return false
	}
	var s textenc.Stats
	_, _ = s.Write(raw)
	return !s.Binary()
}

// decode reads raw in the charset it is said to have, or in the one it seems
// to have.
func decode(raw []byte, charset string) string {
	switch strings.ToLower(charset) {
	case "utf-8", "utf8":
		return strings.ToValidUTF8(strings.TrimPrefix(string(raw), "\ufeff"), "\ufffd")
	case "iso-8859-1", "latin1", "windows-1252", "us-ascii":
		if !utf8.Valid(raw) {
			return textenc.DecodeAs(raw, textenc.Windows1252)
		}
	}
	return textenc.Decode(raw).String()
}

// save keeps a file that is no text for other tools to read.
func (f *fetch) save(u *url.URL, kind string, raw []byte, partial bool) (string, error) {
	what := or(kind, "a kind that the server does not name")
	if f.o.SaveDir == "" {
		return "", fmt.Errorf("this is no text but %s, and there is no place to save it", what)
	}
	if partial {
		return "", fmt.Errorf("this is no text but %s, and larger than %d bytes", what, f.o.MaxBytes)
	}
	if err := os.MkdirAll(f.o.SaveDir, 0o700); err != nil {
		return "", fmt.Errorf("saving the file: %w", err)
	}
	sum := sha256.Sum256(raw)
	name := filepath.Join(f.o.SaveDir, fmt.Sprintf("webfetch-%x%s", sum[:6], suffix(u, kind)))
	if err := os.WriteFile(name, raw, saveFile); err != nil {
		return "", fmt.Errorf("saving the file: %w", err)
	}
	return fmt.Sprintf("This is no text but %s (%d bytes). It was saved as %s; open it with a tool that reads such files.", what, len(raw), name), nil
}

// suffix is what the name of a file of that kind ends in.
func suffix(u *url.URL, kind string) string {
	switch kind {
	case "application/pdf":
		return ".pdf"
	case "image/png", "image/gif", "image/webp", "application/zip", "application/wasm":
		return "." + kind[strings.IndexByte(kind, '/')+1:]
	case "image/jpeg":
		return ".jpg"
	}
	ext := filepath.Ext(u.Path)
	for _, r := range strings.TrimPrefix(ext, ".") {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') {
			return ".bin"
		}
	}
	if len(ext) < 2 || len(ext) > 8 {
		return ".bin"
	}
	return ext
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
