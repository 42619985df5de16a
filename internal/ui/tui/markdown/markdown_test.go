package markdown

import (
	"strings"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/ui/tui/cell"
)

// show renders src as if it came line by line.
func show(src string, width int) string {
	var r Renderer
	var out []string
	add := func(rows []cell.Row) {
		for _, row := range rows {
			out = append(out, row.String())
		}
	}
	lines := strings.Split(src, "\n")
	for _, l := range lines {
		add(r.Line(l, width))
	}
	add(r.End(width))
	return strings.Join(out, "\n")
}

func TestShow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in, want string
		width          int
	}{
		{"text", "one\ntwo", "one\ntwo", 40},
		{"words are kept whole", "some words that go on", "some words\nthat go on", 12},
		{"long words are broken", "abcdefghijklmno", "abcdefghij\nklmno", 10},
		{"wide letters", "你好世界你好世界", "你好世界你\n好世界", 10},
		{"emphasis", "**bold** and *italic* and `code` and ~~gone~~", "bold and italic and code and gone", 60},
		{"marks that are text", "2 * 3 * 4, snake_case_name, a ` b, **open", "2 * 3 * 4, snake_case_name, a ` b, **open", 60},
		{"escaped marks", `\*not\* \[x\]`, "*not* [x]", 60},
		{"code keeps marks", "`a*b*c`", "a*b*c", 60},
		{"headings", "# One\n## Two ##\n#no", "One\nTwo\n#no", 40},
		{"lists", "- one\n  - two\n* three\n10. ten", "• one\n  • two\n• three\n10. ten", 40},
		{"items hang", "- some words that go on", "• some words\n  that go on", 13},
		{"tasks", "- [ ] a\n- [x] b", "☐ a\n☒ b", 40},
		{"quote", "> said\n> he", "│ said\n│ he", 40},
		{"links", "see [here](http://x/y) or [http://z](http://z)", "see here (http://x/y) or http://z", 60},
		{"fence", "a\n```go\nfunc x() {\n\treturn \"*y*\"\n```\nb", "a\n  func x() {\n      return \"*y*\"\nb", 40},
		{"fence in an item", "- a\n  ```\n  x\n  ```", "• a\n  x", 40},
		{"fence that stays open", "```\nx **y**", "  x **y**", 40},
		{"code is broken where the row ends", "```\nabc def ghi\n```", "  abc de\n  f ghi", 8},
		{"rule", "a\n\n---\n\nb", "a\n\n────────────────────────\n\nb", 40},
		{"blank lines", "\n\na\n\n\nb", "a\n\nb", 40},
		{"table", "| a | bb |\n|---|:--|\n| ccc | d |\nend", "a   │ bb\n────┼───\nccc │ d\nend", 40},
		{"table, bars in cells", "| a | b |\n|---|---|\n| `x|y` | p\\|q |", "a   │ b\n────┼────\nx|y │ p|q", 40},
		{"table too wide", "| a | b |\n|---|---|\n| some words that go on | x |", "a                │ b\n─────────────────┼──\nsome words that  │ x\ngo on            │ ", 20},
		{"bars that are no table", "| a | b |\nend", "| a | b |\nend", 40},
		{"html is text", "<b>x</b>", "<b>x</b>", 40},
		{"controls", "a\x1b[31mb\u202ec", `a\x1b[31mb\u202ec`, 40},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := show(tt.in, tt.width); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestHighlight(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ lang, in, want string }{
		{"go", `return "x" // why`, `<word>return< <string>"x"< <comment>// why`},
		{"go", "x1 := 0x1f", "x1 := <number>0x1f"},
		{"python", "def f(): # f", "<word>def< f(): <comment># f"},
		{"sh", "echo $# it's", "echo $# it's"},
		{"unknown", "return 1", "return 1"},
	} {
		h := newHighlighter(tt.lang)
		var got strings.Builder
		styled := false
		for _, s := range h.line(tt.in) {
			name := map[cell.Style]string{styleWord: "<word>", styleString: "<string>", styleNumber: "<number>", styleComment: "<comment>"}[s.Style]
			if name == "" && styled {
				name = "<"
			}
			styled = s.Style != cell.Style{}
			got.WriteString(name + s.Text)
		}
		if got.String() != tt.want {
			t.Errorf("%s: got %s, want %s", tt.lang, got.String(), tt.want)
		}
	}
	h := newHighlighter("go")
	h.line("a /* b")
	if l := h.line("c */ d"); l[0].Text != "c */" || l[0].Style != styleComment {
		t.Errorf("a comment over two lines: got %v", l)
	}
}

func FuzzLine(f *testing.F) {
	for _, s := range []string{"**a** `b` [c](d)\n- e", "```go\nx\n```", "|a|\n|-|\n|b|", "***x**", "\\", "[](", "> - # a", "~~~\n`"} {
		f.Add(s, 20)
	}
	f.Fuzz(func(t *testing.T, s string, width int) {
		width = 4 + max(width, -width)%100
		var r Renderer
		check := func(rows []cell.Row) {
			for _, row := range rows {
				if row.Width() > width {
					t.Fatalf("%q in %d columns: %q has %d", s, width, row, row.Width())
				}
			}
		}
		for l := range strings.SplitSeq(s, "\n") {
			check(r.Tail(l, width))
			check(r.Line(l, width))
		}
		check(r.End(width))
	})
}
