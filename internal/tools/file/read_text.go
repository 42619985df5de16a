package file

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/textenc"
)

const (
	loadLimit = 8 << 20
	chunk     = 256 << 10
)

// A page is the stretch of lines that a Read asked for.
type page struct {
	text  string // from the first line on, "\n" for every line end
	first int    // number of the first line
	total int    // lines in the file
	stray int    // bytes that are no text
	more  bool   // text was cut off at its end, in the middle of a line perhaps
}

func (t *readTool) readText(s *source, in *readInput) (agent.Result, error) {
	budget := t.o.MaxTokens
	if in.AllowLarge {
		budget *= 4
	}
	var p page
	var data []byte
	if s.info.Size() > t.load {
		var err error
		if p, err = s.stream(in.first(), in.limit(), budget); err != nil {
			return agent.Result{}, err
		}
	} else {
		var err error
		if data, err = s.all(t.load); err != nil {
			return agent.Result{}, err
		}
		if binary(data) {
			return agent.Result{}, t.refuseBinary(s)
		}
		text := textenc.Decode(data)
		p = page{text: text.String(), first: in.first(), total: strings.Count(text.String(), "\n") + 1, stray: text.Stray()}
		p.text = fromLine(p.text, p.first)
	}
	return t.answer(s, in, p, data, budget)
}

func (t *readTool) refuseBinary(s *source) error {
	what := binaryKind(s.head)
	if what == "" {
		what = "binary data"
	}
	return refuse("%s is not text but %s (%s). Use a program that understands it, or xxd or strings to look at its bytes.", s.abs, what, size(s.info.Size()))
}

// fromLine returns what follows the first n-1 lines of s.
func fromLine(s string, n int) string {
	for ; n > 1; n-- {
		i := strings.IndexByte(s, '\n')
		if i < 0 {
			return ""
		}
		s = s[i+1:]
	}
	return s
}

// answer numbers the lines of p and returns as many as fit.
func (t *readTool) answer(s *source, in *readInput, p page, data []byte, budget int) (agent.Result, error) {
	detail := TextFile{FilePath: s.abs, StartLine: p.first, TotalLines: p.total}
	switch {
	case p.total == 1 && p.text == "" && p.first == 1:
		t.o.State.put(s.real, s.info, data, span{1, 1}, 1)
		detail.NumLines = 1
		return read(detail, fmt.Sprintf("(%s exists but is empty.)", s.abs)), nil
	case p.first > p.total:
		return read(detail, fmt.Sprintf("(%s has %d lines: there is nothing from line %d on.)", s.abs, p.total, p.first)), nil
	}
	var b strings.Builder
	rest, n, spent, cut := p.text, 0, 0, 0
	b.Grow(len(rest) + len(rest)/8)
	end := 0 // of what is shown, in p.text
	for more := true; more && (in.limit() == 0 || n < in.limit()); n++ {
		line := rest
		i := strings.IndexByte(rest, '\n')
		if more = i >= 0; more {
			line = rest[:i]
		}
		cost := tokens(line) + 2 // the number
		if spent+cost > budget || !more && p.more {
			if in.Limit != nil {
				return agent.Result{}, refuse("Lines %d to %d of %s are more text than one Read returns (about %d tokens). Ask for fewer lines, or search with Grep.", p.first, min(p.first+in.limit()-1, p.total), s.abs, budget)
			}
			if n == 0 {
				cut = fit(line, budget)
				appendLine(&b, p.first, line[:cut])
				end, n = cut, 1
			}
			detail.TruncatedByTokenCap = true
			break
		}
		if n > 0 {
			b.WriteByte('\n')
		}
		appendLine(&b, p.first+n, line)
		spent += cost
		end += len(line)
		if more {
			end++
			rest = rest[i+1:]
		}
	}
	detail.NumLines = n
	detail.Content = strings.TrimSuffix(p.text[:end], "\n")
	last := p.first + n - 1
	if last == p.total {
		detail.Content = p.text[:end]
	}
	if cut == 0 {
		t.o.State.put(s.real, s.info, data, span{p.first, last}, p.total)
	}
	b.WriteString(partialNote(detail, cut, s.info.Size()))
	b.WriteString(strayNote(p))
	return read(detail, b.String()), nil
}

func read(f TextFile, text string) agent.Result {
	return agent.Result{Blocks: textual(text), Detail: ReadDetail{Type: "text", File: f}}
}

// appendLine writes one line as Read shows it. A zero byte is shown by the
// symbol for it: many programs downstream cannot take the byte itself.
func appendLine(b *strings.Builder, number int, line string) {
	var buf [20]byte
	b.Write(strconv.AppendInt(buf[:0], int64(number), 10))
	b.WriteByte('\t')
	b.WriteString(strings.ReplaceAll(line, "\x00", nulSymbol))
}

const nulSymbol = "\u2400"

// fit returns how many bytes of s, whole characters, take at most n tokens.
func fit(s string, n int) int {
	quarters := 0
	for i, r := range s {
		if r < 0x80 {
			quarters++
		} else {
			quarters += 4
		}
		if quarters > 4*n {
			return i
		}
	}
	return len(s)
}

// partialNote words the notice of a view that is not all that was asked for.
func partialNote(d TextFile, cut int, bytes int64) string {
	last := d.StartLine + d.NumLines - 1
	switch {
	case cut > 0:
		return fmt.Sprintf("\n\nPARTIAL view: line %d of %d is too long to show; these are its first %d characters (the file has %s). Use Grep with -o, or a program, to see other parts of it.", d.StartLine, d.TotalLines, cut, size(bytes))
	case d.TruncatedByTokenCap:
		return fmt.Sprintf("\n\nPARTIAL view: lines %d to %d of %d are shown (the file has %s). Go on with offset %d, name a range with offset and limit, or search with Grep.", d.StartLine, last, d.TotalLines, size(bytes), last+1)
	}
	return ""
}

func strayNote(p page) string {
	if p.stray == 0 {
		return ""
	}
	return fmt.Sprintf("\n\n(%d bytes of the file are no valid text and are shown as \ufffd where they occur.)", p.stray)
}

// stream finds a stretch of lines in a file too big to load. It passes over
// the file once, with little memory, and loads no more than can be shown.
func (s *source) stream(first, limit, budget int) (page, error) {
	var stats textenc.Stats
	start, end := int64(-1), int64(-1)
	if first == 1 {
		start = 0
	}
	r := io.MultiReader(bytes.NewReader(s.head), s.f)
	buf := make([]byte, chunk)
	lines, at := 0, int64(0) // before the chunk
	for {
		if err := context.Cause(s.ctx); err != nil {
			return page{}, err
		}
		n, err := io.ReadFull(r, buf)
		if n > 0 {
			_, _ = stats.Write(buf[:n])
			if at == 0 {
				if err := s.streamable(&stats); err != nil {
					return page{}, err
				}
			}
			count := bytes.Count(buf[:n], []byte{'\n'})
			if want := first - 1; start < 0 && lines+count >= want {
				start = at + lineEnd(buf[:n], want-lines)
			}
			if want := first - 1 + limit; limit > 0 && end < 0 && lines+count >= want {
				end = at + lineEnd(buf[:n], want-lines)
			}
			lines, at = lines+count, at+int64(n)
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			return page{}, fmt.Errorf("reading %s: %w", s.abs, err)
		}
	}
	p := page{first: first, total: lines + 1}
	if start < 0 {
		return p, nil
	}
	if end < 0 {
		end = at
	}
	want := min(end-start, int64(budget)*4+chunk)
	p.more = start+want < end
	data := make([]byte, want)
	if _, err := s.f.ReadAt(data, start); err != nil && err != io.EOF {
		return page{}, fmt.Errorf("reading %s: %w", s.abs, err)
	}
	if start == 0 {
		data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	}
	p.text = strings.ReplaceAll(textenc.DecodeAs(data, stats.Encoding()), "\r\n", "\n")
	return p, nil
}

// lineEnd returns the offset behind the n-th line feed of b.
func lineEnd(b []byte, n int) int64 {
	at := 0
	for ; n > 0; n-- {
		at += bytes.IndexByte(b[at:], '\n') + 1
	}
	return int64(at)
}

// streamable refuses what cannot be read piece by piece.
func (s *source) streamable(stats *textenc.Stats) error {
	switch {
	case stats.Binary():
		what := binaryKind(s.head)
		if what == "" {
			what = "binary data"
		}
		return refuse("%s is not text but %s (%s). Use a program that understands it.", s.abs, what, size(s.info.Size()))
	case stats.Encoding() == textenc.UTF16LE || stats.Encoding() == textenc.UTF16BE:
		return refuse("%s is %s text of %s, too big to convert here. Convert a part of it with iconv.", s.abs, stats.Encoding(), size(s.info.Size()))
	}
	return nil
}
