// Package jsonl reads and appends to files of one JSON value a line.
//
// It owns the care such files need: a line is appended by one write, so that
// two processes never interleave inside it; a torn last line, left by a crash
// or a full disk, is closed off with a line feed and never removed; a line
// that cannot be read is counted and passed over; and nothing is ever
// rewritten. It does not know what the lines mean.
package jsonl

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"sync"

	"github.com/seed-eb844fcb/cinch/internal/lib/disk"
)

// An Appender adds lines to the end of a file. It may be used concurrently.
type Appender struct {
	name string
	mu   sync.Mutex // keeps lines in the order of the calls
	f    disk.File
	torn bool // the file ends inside a line
	buf  []byte
}

// Open opens the file name for appending, making it with mode 0600. fsys nil
// is the machine's disk. Nothing is written until the first Append.
func Open(fsys disk.FS, name string) (*Appender, error) {
	if fsys == nil {
		fsys = disk.OS{}
	}
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	a := &Appender{name: name, f: f}
	info, err := f.Stat()
	if err == nil && info.Size() > 0 {
		var last [1]byte
		if _, err = f.ReadAt(last[:], info.Size()-1); err == nil {
			a.torn = last[0] != '\n'
		}
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, fmt.Errorf("opening %s: %w", name, err)
	}
	return a, nil
}

// Append adds each of lines, in order, by one write. A line is one JSON value
// without a line feed in it. When Append returns nil the lines are with the
// operating system: they outlive this process, and with Sync the machine.
// After an error any number of the lines may be there, and the last of them in
// part; the next Append closes that off.
func (a *Appender) Append(lines ...[]byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.buf[:0]
	if a.torn {
		b = append(b, '\n')
	}
	for _, l := range lines {
		if bytes.IndexByte(l, '\n') >= 0 {
			return fmt.Errorf("appending to %s: a line feed in a line", a.name)
		}
		b = append(b, l...)
		b = append(b, '\n')
	}
	if cap(b) <= 1<<16 {
		a.buf = b // kept for the next lines, unless it is big
	} else {
		a.buf = nil
	}
	n, err := a.f.Write(b)
	if n > 0 {
		a.torn = b[n-1] != '\n'
	}
	if err != nil {
		return fmt.Errorf("appending to %s: %w", a.name, err)
	}
	return nil
}

// Sync waits until what was appended is on the disk itself.
func (a *Appender) Sync() error {
	if err := a.f.Sync(); err != nil {
		return fmt.Errorf("syncing %s: %w", a.name, err)
	}
	return nil
}

// Close closes the file.
func (a *Appender) Close() error { return a.f.Close() }

// A Line is one line that a Read yields.
type Line struct {
	N    int    // from 1
	Off  int64  // of Data in the file
	Data []byte // without the line feed; valid until the next line is asked for
}

// A Skip is a line that was passed over.
type Skip struct {
	N   int
	Why string
}

// Skips counts the lines that were passed over and keeps the first few.
type Skips struct {
	Count int
	First []Skip
}

const kept = 20 // of the skipped lines, to be shown

// Add counts line n as skipped.
func (s *Skips) Add(n int, why string) {
	s.Count++
	if len(s.First) < kept {
		s.First = append(s.First, Skip{n, why})
	}
}

const blanks = " \t\r\n"

// Read yields the lines of r that hold something, whatever their length. Blank
// lines are left out without being counted; lines with NUL bytes, which some
// file systems leave after a crash, are counted in skips, and those that do
// not look like a JSON object. Whether the JSON is right all through is for
// the caller to find, with Add for lines that are not. A failure to read ends
// it with an error; the end of the file does not, with or without a line feed.
func Read(r io.Reader, skips *Skips) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		br := bufio.NewReaderSize(r, 1<<18)
		var long []byte // a line that did not fit br's buffer
		var off int64
		for n := 1; ; n++ {
			data, err := br.ReadSlice('\n')
			if errors.Is(err, bufio.ErrBufferFull) {
				long = append(long[:0], data...)
				for errors.Is(err, bufio.ErrBufferFull) {
					data, err = br.ReadSlice('\n')
					long = append(long, data...)
				}
				data = long
			}
			if err != nil && err != io.EOF {
				yield(Line{}, fmt.Errorf("reading line %d: %w", n, err))
				return
			}
			l := Line{N: n, Off: off, Data: data}
			off += int64(len(data))
			if n == 1 {
				l.Data = bytes.TrimPrefix(l.Data, []byte("\ufeff"))
			}
			l.Data = bytes.TrimLeft(l.Data, blanks)
			l.Off += int64(len(data) - len(l.Data))
			l.Data = bytes.TrimRight(l.Data, blanks)
			if len(l.Data) > 0 {
				if why := wrong(l.Data); why != "" {
					skips.Add(n, why)
				} else if !yield(l, nil) {
					return
				}
			}
			if err == io.EOF {
				return
			}
		}
	}
}

// wrong says why a line cannot be a JSON object, if that is seen at once.
func wrong(data []byte) string {
	switch {
	case bytes.IndexByte(data, 0) >= 0:
		return "NUL bytes"
	case data[0] != '{':
		return "not a JSON object"
	case data[len(data)-1] != '}':
		return "cut short"
	}
	return ""
}
