package file

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

const (
	pdfLimit  = 100 << 20 // bytes read
	pdfSend   = 20 << 20  // bytes sent as one document: a request may have 32 MB, in base64
	pdfWhole  = 10        // pages sent without being asked for by number
	pdfPages  = 20        // pages sent by one Read
	pdfUnread = 3 << 20   // bytes sent whole when the pages cannot be counted
)

func (t *readTool) readPDF(s *source, pages string) (agent.Result, error) {
	data, err := s.all(pdfLimit)
	if err != nil {
		return agent.Result{}, err
	}
	// A document that the API cannot open would make every later request fail.
	if !bytes.Contains(data[max(0, len(data)-2048):], []byte("%%EOF")) {
		return agent.Result{}, refuse("%s is a PDF file without its end: it is damaged or was not copied whole. Nothing was attached.", s.abs)
	}
	if encrypted(data) {
		return agent.Result{}, refuse("%s is an encrypted PDF file. Remove the protection first (qpdf --decrypt does it, given the password).", s.abs)
	}
	count, known := countPages(data)
	if pages != "" {
		first, last, err := parsePages(pages, count, known)
		if err != nil {
			return agent.Result{}, refuse("%v", err)
		}
		return t.pdfParts(s, data, first, last)
	}
	switch {
	case known && count > pdfWhole:
		return agent.Result{}, refuse("%s has %d pages. Above %d, say which ones in pages, such as \"1-5\"; at most %d at a time.", s.abs, count, pdfWhole, pdfPages)
	case !known && len(data) > pdfUnread:
		return agent.Result{}, refuse("%s has %s and a page count that could not be found out. Say which pages in pages, such as \"1-5\".", s.abs, size(int64(len(data))))
	case len(data) > pdfSend:
		return agent.Result{}, refuse("%s has %s, too much to send whole. Say which pages in pages, such as \"1-5\".", s.abs, size(int64(len(data))))
	}
	t.o.State.put(s.real, s.info, data, span{1, 1}, 1)
	encoded := base64.StdEncoding.EncodeToString(data)
	return agent.Result{
		Blocks: []agent.Block{
			&agent.Text{Text: fmt.Sprintf("%s (PDF, %s) follows.", s.abs, size(int64(len(data))))},
			&agent.Document{MediaType: "application/pdf", Data: encoded, Title: filepath.Base(s.abs)},
		},
		Detail: ReadDetail{Type: "pdf", File: PDFFile{FilePath: s.abs, Base64: encoded, OriginalSize: int64(len(data))}},
	}, nil
}

// parsePages reads "3", "2-5" or "8-".
func parsePages(s string, count int, known bool) (first, last int, err error) {
	bad := fmt.Errorf("pages is %q; it must be a page or a range, such as \"3\" or \"1-5\"", s)
	from, to, ranged := strings.Cut(strings.ReplaceAll(s, " ", ""), "-")
	if first, err = strconv.Atoi(from); err != nil || first < 1 {
		return 0, 0, bad
	}
	switch {
	case !ranged:
		last = first
	case to == "" && known:
		last = count
	default:
		if last, err = strconv.Atoi(to); err != nil || last < first {
			return 0, 0, bad
		}
	}
	if known && first > count {
		return 0, 0, fmt.Errorf("there is no page %d: the file has %d", first, count)
	}
	if known {
		last = min(last, count)
	}
	if last-first >= pdfPages {
		return 0, 0, fmt.Errorf("pages %q are %d pages; at most %d can be read at a time", s, last-first+1, pdfPages)
	}
	return first, last, nil
}

// pdfParts shows single pages: as pictures, or cut out as documents.
func (t *readTool) pdfParts(s *source, data []byte, first, last int) (agent.Result, error) {
	part := t.pageCutter
	if t.o.Which("pdftoppm") != "" {
		part = t.pagePicture
	} else if t.o.Which("pdfseparate") == "" {
		return agent.Result{}, refuse("Single pages of a PDF file need the program pdftoppm or pdfseparate, and neither is installed here. Install poppler-utils, or split the file by other means.")
	}
	r := agent.Result{Blocks: textual(fmt.Sprintf("Pages %d to %d of %s follow.", first, last, s.abs))}
	total := 0
	for n := first; n <= last; n++ {
		b, err := part(s.ctx, s.abs, data, n)
		if err != nil {
			if cause := context.Cause(s.ctx); cause != nil {
				return agent.Result{}, cause
			}
			return agent.Result{}, refuse("Page %d of %s could not be taken out: %v", n, s.abs, err)
		}
		if total += blockSize(b); total > pdfSend {
			return agent.Result{}, refuse("Pages %d to %d of %s are too much to send at once. Ask for fewer.", first, last, s.abs)
		}
		r.Blocks = append(r.Blocks, b)
	}
	r.Detail = ReadDetail{Type: "parts", File: PartsFile{FilePath: s.abs, OriginalSize: int64(len(data)), Count: last - first + 1}}
	return r, nil
}

func blockSize(b agent.Block) int {
	switch b := b.(type) {
	case *agent.Image:
		return len(b.Data)
	case *agent.Document:
		return len(b.Data)
	}
	return 0
}

// pagePicture renders one page; the program reads the file from its input
// and writes the picture to its output.
func (t *readTool) pagePicture(ctx context.Context, _ string, data []byte, n int) (agent.Block, error) {
	page := strconv.Itoa(n)
	out, err := t.o.Run(ctx, []string{t.o.Which("pdftoppm"), "-png", "-r", "110", "-f", page, "-l", page, "-"}, data)
	if err != nil {
		return nil, err
	}
	p, err := prepare("image/png", out)
	if err != nil {
		return nil, fmt.Errorf("pdftoppm made a picture, but %w", err)
	}
	return &agent.Image{MediaType: p.kind, Data: base64.StdEncoding.EncodeToString(p.data)}, nil
}

// pageCutter copies one page into a document of its own.
func (t *readTool) pageCutter(ctx context.Context, abs string, data []byte, n int) (agent.Block, error) {
	dir, err := os.MkdirTemp("", "cinch-pdf-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	// The program wants a file: what was opened, not what the path leads to by now.
	in, page := filepath.Join(dir, "in.pdf"), strconv.Itoa(n)
	if err := os.WriteFile(in, data, 0o600); err != nil {
		return nil, err
	}
	if _, err := t.o.Run(ctx, []string{t.o.Which("pdfseparate"), "-f", page, "-l", page, in, filepath.Join(dir, "page-%d.pdf")}, nil); err != nil {
		return nil, err
	}
	out, err := os.ReadFile(filepath.Join(dir, "page-"+page+".pdf"))
	if err != nil {
		return nil, err
	}
	return &agent.Document{MediaType: "application/pdf", Data: base64.StdEncoding.EncodeToString(out), Title: fmt.Sprintf("%s, page %d", filepath.Base(abs), n)}, nil
}

// The objects of a PDF file that tell its pages are dictionaries: /Type /Page
// for each page, /Type /Pages with a /Count for the groups they form.
var (
	pageObject = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`/Type\s*/Page[^s\w]`) })
	groupCount = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`/Type\s*/Pages\b[^>]*?/Count\s+(\d+)|/Count\s+(\d+)[^>]*?/Type\s*/Pages\b`)
	})
	streamHead = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`/Type\s*/(ObjStm|XRef)\b`) })
)

// countPages returns how many pages a document has: the biggest count that a
// group of pages claims, or the number of page objects if none does.
func countPages(data []byte) (n int, known bool) {
	pages := 0
	look := func(b []byte) {
		for _, m := range groupCount().FindAllSubmatch(b, -1) {
			c, err := strconv.Atoi(string(m[1]) + string(m[2]))
			if err == nil {
				n, known = max(n, c), true
			}
		}
		pages += len(pageObject().FindAll(b, -1))
	}
	look(data)
	for _, s := range objectStreams(data) {
		look(s)
	}
	if pages > 0 && !known {
		return pages, true
	}
	return n, known
}

func encrypted(data []byte) bool {
	i := bytes.LastIndex(data, []byte("trailer"))
	if i >= 0 && bytes.Contains(data[i:], []byte("/Encrypt")) {
		return true
	}
	// Newer files have no trailer but a stream whose dictionary does its work.
	for _, m := range streamHead().FindAllIndex(data, -1) {
		d := dictionary(data, m[0])
		if bytes.Contains(d, []byte("/XRef")) && bytes.Contains(d, []byte("/Encrypt")) {
			return true
		}
	}
	return false
}

// dictionary returns the text around an offset, from the start of its object
// to the start of its stream.
func dictionary(data []byte, at int) []byte {
	start := max(0, bytes.LastIndex(data[:at], []byte("obj")))
	end := bytes.Index(data[at:], []byte("stream"))
	if end < 0 || end > 4096 {
		end = min(4096, len(data)-at)
	}
	return data[start : at+end]
}

// objectStreams unpacks the streams that hold objects, within a limit.
func objectStreams(data []byte) [][]byte {
	var out [][]byte
	budget := int64(32 << 20)
	for _, m := range streamHead().FindAllSubmatchIndex(data, -1) {
		if string(data[m[2]:m[3]]) != "ObjStm" {
			continue
		}
		i := bytes.Index(data[m[0]:], []byte("stream"))
		if i < 0 {
			continue
		}
		body := bytes.TrimLeft(data[m[0]+i+len("stream"):], "\r\n")
		z, err := zlib.NewReader(bytes.NewReader(body))
		if err != nil {
			continue
		}
		b, _ := io.ReadAll(io.LimitReader(z, budget)) // a damaged end does not matter
		budget -= int64(len(b))
		out = append(out, b)
		if budget <= 0 {
			break
		}
	}
	return out
}
