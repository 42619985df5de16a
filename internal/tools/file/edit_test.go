package file

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/textenc"
)

func TestEditBytes(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	long := strings.Repeat("x\n", 998)
	for _, c := range []struct{ name, before, old, new, after string }{
		{"crlf", "a\r\nb\r\nc\r\n", "a\nb", "a\nB", "a\r\nB\r\nc\r\n"},
		{"crlf asked for by name", "a\r\nb\r\n", "a\r\nb", "a\r\nB", "a\r\nB\r\n"},
		{"cr where the file has none", "a\nb\n", "a\r\nb", "a\r\nB", "a\nB\n"},
		{"mixed", "a\r\nb\nc\r\n", "b\nc", "b\nx\nc", "a\r\nb\nx\nc\r\n"},
		{"to lf by name", "a\r\nb\r\n", "a\r\n", "a\n", "a\nb\r\n"},
		{"windows-1252", "one\n" + long + "\x99\n", "one", "two", "two\n" + long + "\x99\n"},
		{"utf-16", "\xff\xfea\x00\n\x00b\x00", "b", "é", "\xff\xfea\x00\n\x00\xe9\x00"},
		{"byte order mark", "\xef\xbb\xbfa\n", "a", "b", "\xef\xbb\xbfb\n"},
		{"invalid bytes around", "é \xff é a\n", "a", "b", "é \xff é b\n"},
		{"invalid bytes inside", "é é x\xffy a\n", "x\ufffdy a", "x\ufffdy b", "é é x\xffy b\n"},
		{"zero byte", "long enough to be a text\x00b\n", "text\u2400b", "text\u2400c", "long enough to be a text\x00c\n"},
		{"no final newline", "a\nb", "b", "c", "a\nc"},
		{"final newline kept", "a\nb\n", "b", "c", "a\nc\n"},
		{"two blanks at the end", "a  \nb\n", "b", "b  ", "a  \nb  \n"},
		{"tabs", "\t\tif x {\n\t\t\ty()\n\t\t}\n", "\t\t\ty()\n", "\t\t\tz()\n", "\t\tif x {\n\t\t\tz()\n\t\t}\n"},
		{"delete a line", "a\nb\nc\n", "b\n", "", "a\nc\n"},
		{"empty file", "", "", "a\nb\n", "a\nb\n"},
		{"dollar signs", "a\n", "a", "$1 $& \\1", "$1 $& \\1\n"},
	} {
		d.write("f", c.before)
		d.ok("Edit", args{"file_path": "f", "old_string": c.old, "new_string": c.new})
		if got := d.content("f"); got != c.after {
			t.Errorf("%s: got %q, want %q", c.name, got, c.after)
		}
	}
	d.write("all", "x x\r\nxx\n")
	if got, want := d.ok("Edit", args{"file_path": "all", "old_string": "x", "new_string": "y\nz", "replace_all": true}), "The file "+d.path("all")+" has been updated. All occurrences were successfully replaced."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := d.content("all"), "y\r\nz y\r\nz\r\ny\r\nzy\r\nz\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := d.ok("Edit", args{"file_path": "new/f", "old_string": "", "new_string": "x"}), "File created successfully at: "+d.path("new/f"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEditRefusals(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	d.write("tabs", "func f() {\n\tif x {\n\t\ty()\n\t}\n}\n")
	d.write("a", "x x\naaa\nlast  \n“curly” it’s\nfoo(a, b)\nif a {\n\tb\n}\n")
	d.write("latin", "caf\xe9\n")
	d.write("bin", "\x7fELF\x02\x01\x01\x00\x00\x00\x00\xff")
	d.write("n.ipynb", "{}")
	for _, c := range []struct {
		file, old, new string
		want           []string
	}{
		{"a", "x", "y", []string{"<tool_use_error>", "2 times", "line 1, 1", "replace_all", "\nString: x</tool_use_error>"}},
		{"a", "aa", "b", []string{"2 times (line 2, 2)"}},
		{"a", "zzz", "y", []string{"<tool_use_error>", "not found", "\nString: zzz</tool_use_error>"}},
		{"a", "x x", "x x", []string{"the same"}},
		{"a", "", "y", []string{"not empty", "Write"}},
		{"tabs", "    if x {\n        y()\n    }", "z", []string{"other whitespace", "line 2 with 1 tab, old_string has 4 spaces", "\n\"\\tif x {\"\n\"\\t\\ty()\"\n\"\\t}\""}},
		{"tabs", "\tif x {\n\t\ty() \n\t}", "z", []string{"the file ends line 3 with no whitespace, old_string has 1 space"}},
		{"a", "last\n", "z", []string{"ends line 3 with 2 spaces, old_string has no whitespace", `"last  "`}},
		{"a", "foo(a,b)", "z", []string{"whitespace inside line 5", `"foo(a, b)"`}},
		{"a", "if a { b }", "z", []string{"other line breaks, at line 6"}},
		{"tabs", "2\t\tif x {\n3\t\t\ty()", "z", []string{"line numbers"}},
		{"tabs", `if x {\n\t\ty()`, "z", []string{"escape sequences", "line 2"}},
		{"a", `"curly" it's`, "z", []string{"look alike, at line 4", "U+201C '“' in the file, U+0022 '\"' in old_string"}},
		{"a", "FOO(A, B)", "z", []string{"upper and lower case, at line 5"}},
		{"tabs", "func f() {\n\tif x {\n\t\tother()\n", "z", []string{"at line 1, but line 3 differs", `"\t\ty()"`, `"\t\tother()"`}},
		{"latin", "caf", "☺", []string{"'☺' (U+263A)", "windows-1252"}},
		{"bin", "E", "F", []string{"not text but an ELF"}},
		{"n.ipynb", "{", "[", []string{"NotebookEdit"}},
		{"none", "a", "b", []string{"does not exist", "working directory is " + d.dir}},
		{".", "a", "b", []string{"EISDIR"}},
	} {
		before, _ := os.ReadFile(d.path(c.file))
		d.fails("Edit", args{"file_path": c.file, "old_string": c.old, "new_string": c.new}, c.want...)
		if after, _ := os.ReadFile(d.path(c.file)); !bytes.Equal(before, after) {
			t.Errorf("%s was changed by an edit that failed: %q", c.file, after)
		}
	}
}

func TestEditStanding(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	d.write("f", "one\ntwo\nthree\n")
	// Never read: allowed, without the note that the content is known.
	if got := d.ok("Edit", args{"file_path": "f", "old_string": "one", "new_string": "1"}); strings.Contains(got, knownNote) {
		t.Errorf("got %q", got)
	}
	d.ok("Read", args{"file_path": "f"})
	d.write("f", "1\ntwo\nTHREE\n")
	got := d.ok("Edit", args{"file_path": "f", "old_string": "two", "new_string": "2"})
	if !strings.Contains(got, "had changed") || !strings.Contains(got, "-three\n+THREE") || strings.Contains(got, knownNote) {
		t.Errorf("got %q", got)
	}
	if got := d.content("f"); got != "1\n2\nTHREE\n" {
		t.Errorf("got %q", got)
	}
	d.ok("Read", args{"file_path": "f"})
	d.write("f", "something else\n")
	d.fails("Edit", args{"file_path": "f", "old_string": "THREE", "new_string": "3"}, "changed since you last saw it", "read it again")

	strict := newDesk(t, func(o *Options) { o.RequireRead = func() bool { return true } })
	strict.write("f", "one\ntwo\n")
	strict.fails("Edit", args{"file_path": "f", "old_string": "one", "new_string": "1"}, "Read it first")
	strict.fails("Write", args{"file_path": "f", "content": "x"}, "Read it first")
	strict.ok("Read", args{"file_path": "f", "limit": 1})
	strict.fails("Edit", args{"file_path": "f", "old_string": "one", "new_string": "1"}, "Read it first")
	strict.ok("Read", args{"file_path": "f", "offset": 2})
	strict.ok("Edit", args{"file_path": "f", "old_string": "one", "new_string": "1"})
}

// Whatever the bytes and the edit, what is outside the edit stays.
func FuzzEdit(f *testing.F) {
	f.Add([]byte("a\r\nb\nc"), 2, 3, "x\ny")
	f.Add([]byte("caf\xe9 \x99"), 0, 3, "tea")
	f.Add([]byte("\xff\xfea\x00\r\x00\n\x00b\x00"), 0, 2, "z\n")
	f.Fuzz(func(t *testing.T, raw []byte, start, end int, s string) {
		text := textenc.Decode(raw).String()
		if start < 0 || start >= end || end > len(text) || !utf8.ValidString(s) || !utf8.RuneStart(text[start]) || end < len(text) && !utf8.RuneStart(text[end]) {
			return
		}
		m := matcher{text: textenc.Decode(raw), old: text[start:end], new: s}
		got, err := m.apply("f", false)
		if err != nil || strings.Contains(s, "\r") || strings.Contains(m.old, "\r") {
			return
		}
		at := strings.Index(text, m.old)
		want := text[:at] + s + text[at+len(m.old):]
		back := textenc.Decode(got)
		if back.Encoding() == m.text.Encoding() && back.EOL() == m.text.EOL() && m.text.Stray() == 0 && !strings.Contains(text, "\r") && !strings.Contains(s, nulSymbol) && back.String() != want {
			t.Errorf("%q: %q for %q gives %q, want %q", raw, s, m.old, back.String(), want)
		}
		// The ends that old and the file share with the result, in bytes.
		head := commonHead(raw, got)
		tail := commonHead(reverse(raw), reverse(got))
		if head+tail < min(len(raw), len(got))-4*len(m.old)-4 {
			t.Errorf("%q to %q: only %d and %d bytes at the ends are the same", raw, got, head, tail)
		}
	})
}

func commonHead(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func reverse(b []byte) []byte {
	out := make([]byte, len(b))
	for i, c := range b {
		out[len(b)-1-i] = c
	}
	return out
}

func TestUserModified(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	r, err := d.tools["Write"].Run(t.Context(), agent.Call{Input: []byte(`{"file_path":"f","content":"x"}`), UserModified: true})
	if err != nil || !strings.Contains(agent.TextOf(r.Blocks), "user modified") || !r.Detail.(WriteDetail).UserModified {
		t.Errorf("got %v, %v", r, err)
	}
}
