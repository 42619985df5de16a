package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// all decodes r into comparable lines.
func all(r io.Reader, limit int) []string {
	var out []string
	for e, err := range DecodeMax(r, limit) {
		if err != nil {
			out = append(out, "error "+err.Error())
			continue
		}
		s := fmt.Sprintf("%s %q", e.Name, e.Data)
		if e.Data == nil {
			s = fmt.Sprintf("%s nil", e.Name)
		}
		if e.ID != nil {
			s += fmt.Sprintf(" id=%s", e.ID)
		}
		if e.Retry >= 0 {
			s += fmt.Sprintf(" retry=%d", e.Retry)
		}
		if e.Comment {
			s = fmt.Sprintf("comment %q", e.Data)
		}
		if e.Tail {
			s += " tail"
		}
		out = append(out, s)
	}
	return out
}

// chunks reads its data in pieces of the given sizes, over and over.
type chunks struct {
	data  []byte
	sizes []byte
	n     int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	k := len(c.data)
	if len(c.sizes) > 0 {
		k = int(c.sizes[c.n%len(c.sizes)])
		c.n++
	}
	k = copy(p, c.data[:min(k, len(c.data))])
	c.data = c.data[k:]
	return k, nil
}

var framings = []struct {
	name, in string
	want     []string
}{
	{"LF", "event: a\ndata: 1\n\ndata: 2\n\n", []string{`a "1"`, ` "2"`}},
	{"CRLF", "event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", []string{`a "1"`, ` "2"`}},
	{"CR", "event: a\rdata: 1\r\rdata: 2\r\r", []string{`a "1"`, ` "2"`}},
	{"mixed ends", "event: a\rdata: 1\r\n\ndata: 2\n\r\n", []string{`a "1"`, ` "2"`}},
	{"no space", "event:a\ndata:1\n\n", []string{`a "1"`}},
	{"one space only", "data:  1 \n\n", []string{` " 1 "`}},
	{"two data lines", "data: 1\ndata: 2\n\n", []string{` "1\n2"`}},
	{"three data lines, one empty", "data: 1\ndata\ndata: 3\n\n", []string{` "1\n\n3"`}},
	{"empty data", "data\n\ndata:\n\n", []string{` ""`, ` ""`}},
	{"event behind data", "data: 1\nevent: a\n\n", []string{`a "1"`}},
	{"comments", ": hi\ndata: 1\n:\n\n:ping\n\n", []string{`comment "hi"`, `comment ""`, ` "1"`, `comment "ping"`}},
	{"byte order mark", "\xef\xbb\xbfdata: 1\n\n", []string{` "1"`}},
	{"byte order mark only once", "\xef\xbb\xbfdata: 1\n\n\xef\xbb\xbfdata: 2\n\n", []string{` "1"`}},
	{"id and retry", "id: 7\nretry: 500\ndata: 1\n\nid: 8\n\nretry: 9\n\nid\ndata: x\n\n",
		[]string{` "1" id=7 retry=500`, ` nil id=8`, ` nil retry=9`, ` "x" id=`}},
	{"bad id and retry", "id: a\x00b\nretry: 1e3\ndata: 1\n\n", []string{` "1"`}},
	{"unknown field", "foo: 1\nevent: a\n\ndata: 1\n\n", []string{` "1"`}},
	{"no blank line", "event: a\ndata: 1\n", []string{`a "1" tail`}},
	{"no line end", "event: a\ndata: 1", []string{`a "1" tail`}},
	{"no line end, two lines", "data: 1\ndata: 2", []string{` "1\n2" tail`}},
	{"only an event name", "event: a", nil},
	{"only a comment", ":x", nil},
	{"nothing", "", nil},
	{"blank lines", "\n\r\n\r\n\n", nil},
	{"UTF-8", "data: grüße €😀\n\n", []string{` "grüße €😀"`}},
	{"colon in data", "data: a: b\n\n", []string{` "a: b"`}},
}

func TestFraming(t *testing.T) {
	t.Parallel()
	for _, tt := range framings {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := all(strings.NewReader(tt.in), MaxEvent); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			for size := 1; size < len(tt.in); size++ {
				got := all(&chunks{data: []byte(tt.in), sizes: []byte{byte(size)}}, MaxEvent)
				if !reflect.DeepEqual(got, tt.want) {
					t.Errorf("in reads of %d: got  %q\nwant %q", size, got, tt.want)
				}
			}
		})
	}
}

// A CR may end the last line of an event while its LF is still on the way:
// the event must not wait for it.
func TestNoWaitBehindCR(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	got := make(chan string)
	go func() {
		for e, err := range Decode(r) {
			if err != nil {
				break
			}
			got <- string(e.Data)
		}
		close(got)
	}()
	for _, s := range []string{"1", "2"} {
		if _, err := io.WriteString(w, "data: "+s+"\r\n\r"); err != nil {
			t.Fatal(err)
		}
		if g := <-got; g != s {
			t.Errorf("got %q, want %q", g, s)
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	for range got {
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	cut := errors.New("cut")
	in := "data: 1\n\ndata: 2\n"
	got := all(io.MultiReader(strings.NewReader(in), iotest.ErrReader(cut)), MaxEvent)
	if want := []string{` "1"`, "error sse: cut"}; !reflect.DeepEqual(got, want) {
		t.Errorf("after a read error: got %q, want %q", got, want)
	}
	got = all(iotest.DataErrReader(strings.NewReader("data: 1\n\n")), MaxEvent)
	if want := []string{` "1"`}; !reflect.DeepEqual(got, want) {
		t.Errorf("EOF together with data: got %q, want %q", got, want)
	}
	for e, err := range DecodeMax(strings.NewReader("data: 123456\n\n"), 8) {
		if !errors.Is(err, ErrTooLong) {
			t.Errorf("over the limit: got %v, %v", e, err)
		}
	}
	got = all(strings.NewReader("data: 1\n\n"+strings.Repeat("data: 12\n", 9)+"\n"), 16)
	if want := []string{` "1"`, "error sse: event too long: over 16 bytes"}; !reflect.DeepEqual(got, want) {
		t.Errorf("over the limit in lines: got %q, want %q", got, want)
	}
	for range Decode(strings.NewReader("data: 1\n\ndata: 2\n\n")) {
		break // must not panic or go on
	}
}

func TestLargeEvent(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 3<<20)
	var n int
	for e, err := range Decode(strings.NewReader("data: " + big + "\n\ndata: " + big + "\ndata: " + big + "\n\n")) {
		if err != nil {
			t.Fatal(err)
		}
		n += len(e.Data)
	}
	if want := 9<<20 + 1; n != want {
		t.Errorf("got %d bytes, want %d", n, want)
	}
}

// FuzzChunks checks that the events depend on the bytes alone.
func FuzzChunks(f *testing.F) {
	for _, tt := range framings {
		f.Add([]byte(tt.in), []byte{1})
		f.Add([]byte(tt.in), []byte{2, 3, 1})
	}
	f.Fuzz(func(t *testing.T, in, sizes []byte) {
		for i := range sizes {
			sizes[i] = max(1, sizes[i])
		}
		for _, limit := range []int{MaxEvent, 16} {
			want := all(bytes.NewReader(in), limit)
			if got := all(&chunks{data: in, sizes: sizes}, limit); !reflect.DeepEqual(got, want) {
				t.Errorf("limit %d, reads of %v: got  %q\nwant %q", limit, sizes, got, want)
			}
		}
	})
}

const delta = "event: content_block_delta\n" +
	`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some words of text"}}` + "\n\n"

func BenchmarkDecode(b *testing.B) {
	in := strings.Repeat(delta, 10_000)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range Decode(strings.NewReader(in)) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func TestAllocs(t *testing.T) {
	const events = 10_000
	in := strings.Repeat(delta, events)
	n := testing.AllocsPerRun(5, func() {
		for range Decode(strings.NewReader(in)) {
		}
	})
	if n > 20 {
		t.Errorf("%v allocations for %d events, want a few in all", n, events)
	}
}
