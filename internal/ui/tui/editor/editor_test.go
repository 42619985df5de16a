package editor

import (
	"fmt"
	"strings"
	"testing"
)

// do applies keys: letters write themselves, <name> are the editing keys.
func do(e *Editor, keys string) {
	names := map[string]func(){
		"left": e.Left, "right": e.Right, "home": e.Home, "end": e.End, "wleft": e.WordLeft, "wright": e.WordRight,
		"bs": e.Backspace, "del": e.Delete, "ck": e.KillToEnd, "cu": e.KillToStart, "cw": e.KillBlankWord, "mb": e.KillWordBefore,
		"md": e.KillWordAfter, "y": e.Yank, "my": e.YankPop, "undo": e.Undo, "up": func() { e.Up(20) }, "down": func() { e.Down(20) },
		"nl": func() { e.Insert("\n") }, "esc": func() { e.Escaped() },
	}
	for keys != "" {
		if name, rest, ok := strings.Cut(keys, ">"); ok && keys[0] == '<' {
			names[name[1:]]()
			keys = rest
			continue
		}
		r := []rune(keys)[0]
		e.Insert(string(r))
		keys = keys[len(string(r)):]
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ keys, want string }{
		{"abc", "abc|"},
		{"abc<left><left>x", "ax|bc"},
		{"你好<left>b", "你b|好"},
		{"👩\u200d👧<bs>", "|"},
		{"e\u0301<left>x", "x|e\u0301"},
		{"one two<wleft>x", "one x|two"},
		{"one two<home><wright>x", "onex| two"},
		{"one two<cw>", "one |"},
		{"a/b c/d<mb>", "a/b c/|"},
		{"one two<home><md>", "| two"},
		{"one two<cu>", "|"},
		{"one<cu>x<y>", "xone|"},
		{"one two<cw><cw><y>", "one two|"},
		{"a b<cw>x<cw><y><my>", "a b|"},
		{"one<home><ck><y><y>", "oneone|"},
		{"a<nl>b<home>x", "a\nx|b"},
		{"a<nl>b<up>x", "ax|\nb"},
		{"abcdef<nl>x<nl>abcdef<up><up>Y", "abcdefY|\nx\nabcdef"},
		{"ab<nl>cd<up><ck><ck>", "ab|"},
		{"word more<undo>", "word |"},
		{"word more<undo><undo><undo>", "|"},
		{`a\<esc>b`, "a\nb|"},
		{"a<home><bs><del><del>", "|"},
	} {
		var e Editor
		do(&e, tt.keys)
		if got := e.Text()[:e.At()] + "|" + e.Text()[e.At():]; got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.keys, got, tt.want)
		}
	}
}

func TestChips(t *testing.T) {
	t.Parallel()
	var e Editor
	long := strings.Repeat("a line\n", 100)
	do(&e, "see ")
	e.Paste(long)
	do(&e, " ok")
	if got, want := e.Text(), "see [Pasted text #1 +100 lines] ok"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := e.Value(), "see "+long+" ok"; got != want {
		t.Errorf("the value has %d bytes, want %d", len(got), len(want))
	}
	do(&e, "<left><left><left><left>x")
	if got, want := e.Text(), "see x[Pasted text #1 +100 lines] ok"; got != want {
		t.Errorf("the cursor goes over a chip at once: got %q", got)
	}
	do(&e, "<right><bs>")
	if got, want := e.Text(), "see x ok"; got != want {
		t.Errorf("a chip goes at once: got %q", got)
	}
	do(&e, "<undo>")
	if !strings.Contains(e.Value(), long) {
		t.Error("an undone chip has lost its text")
	}
	e.Clear()
	e.Paste("two\nlines")
	if got := e.Text(); got != "two\nlines" {
		t.Errorf("a short paste: got %q", got)
	}
}

func TestRows(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text  string
		width int
		want  string
	}{
		{"", 10, " 0,0"},
		{"abc", 10, "abc 3,0"},
		{"abcdefgh", 8, "abcdefgh/ 0,1"},
		{"a\nb", 8, "a/b 1,1"},
		{"你好世", 5, "你好/世 2,1"},
		{"a\tb", 10, "a    b 6,0"},
		{"a\x1b", 10, `a\x1b 5,0`},
	} {
		var e Editor
		e.Set(tt.text)
		rows, p := e.Rows(tt.width)
		var ss []string
		for _, r := range rows {
			ss = append(ss, r.String())
		}
		if got := fmt.Sprintf("%s %d,%d", strings.Join(ss, "/"), p.X, p.Y); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
	}
}

func FuzzEditor(f *testing.F) {
	f.Add("ab你<", []byte{0, 3, 7, 9, 20}, 12)
	f.Add("👩\u200d👧\n\tx", []byte{1, 2, 14, 15, 16}, 5)
	f.Fuzz(func(t *testing.T, s string, ops []byte, width int) {
		var e Editor
		width = 4 + max(width, -width)%80
		e.Paste(s)
		for _, op := range ops[:min(len(ops), 200)] {
			list := []func(){e.Left, e.Right, e.Home, e.End, e.WordLeft, e.WordRight, e.Backspace, e.Delete, e.KillToEnd, e.KillToStart, e.KillBlankWord,
				e.KillWordBefore, e.KillWordAfter, e.Yank, e.YankPop, e.Undo, func() { e.Up(width) }, func() { e.Down(width) }, func() { e.Insert(s) }, func() { e.Insert("x") }}
			list[int(op)%len(list)]()
			if e.at < 0 || e.at > len(e.text) {
				t.Fatalf("the cursor is at %d of %d", e.at, len(e.text))
			}
			if len(e.text) > 10000 {
				return
			}
			rows, p := e.Rows(width)
			if p.Y >= len(rows) || p.X > width {
				t.Fatalf("the cursor is at %v of %d rows", p, len(rows))
			}
		}
	})
}
