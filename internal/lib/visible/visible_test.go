package visible

import (
	"testing"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in, shown string
		hidden    int
	}{
		{"ls -la", "ls -la", 0},
		{"grüße 你好", "grüße 你好", 0},
		{"a\nb\tc", "a\nb\\tc", 0},
		{"safe\rrm x", `safe\rrm x`, 1},
		{"a\x1b[2Kb", `a\x1b[2Kb`, 1},
		{"a\u202eb", `a\u{202e}b`, 1},
		{"a\u200bb\u2060", `a\u{200b}b\u{2060}`, 2},
		{"x\U000e0041\U000e0042", `x\u{e0041}\u{e0042}`, 2},
		{"a\u00a0b\u3164", `a\xa0b\u{3164}`, 2},
		{"a\u009bb", `a\x9bb`, 1},
		{"bad\xff", `bad\xff`, 1},
	} {
		shown, hidden := Text(c.in)
		if shown != c.shown || hidden != c.hidden {
			t.Errorf("Text(%q) = %q, %d, want %q, %d", c.in, shown, hidden, c.shown, c.hidden)
		}
	}
	if n := Blanks("a" + "   \t b  "); n != 5 {
		t.Errorf("Blanks = %d, want 5", n)
	}
}

func FuzzText(f *testing.F) {
	f.Add("echo \u202e x\r\x1b]0;t\a")
	f.Fuzz(func(t *testing.T, s string) {
		shown, _ := Text(s)
		if !utf8.ValidString(shown) {
			t.Fatalf("Text(%q) = %q is not UTF-8", s, shown)
		}
		for _, r := range shown {
			if Hidden(r) {
				t.Fatalf("Text(%q) = %q still hides %U", s, shown, r)
			}
		}
	})
}
