package termsafe

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTextAndString(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, text, line string }{
		{"plain", "häuser 你好 <b>", "häuser 你好 <b>", "häuser 你好 <b>"},
		{"lines and tabs", "a\tb\nc", "a\tb\nc", `a\tb\nc`},
		{"windows lines", "a\r\nb\r\n", "a\nb\n", `a\r\nb\r\n`},
		{"overwritten line", "safe\rrm -rf", `safe\rrm -rf`, `safe\rrm -rf`},
		{"colour", "\x1b[31mred", `\x1b[31mred`, `\x1b[31mred`},
		{"clipboard", "\x1b]52;c;eA==\a", `\x1b]52;c;eA==\x07`, `\x1b]52;c;eA==\x07`},
		{"link", "\x1b]8;;http://x\x1b\\y", `\x1b]8;;http://x\x1b\y`, `\x1b]8;;http://x\x1b\y`},
		{"reset, report", "\x1bc\x1b[6n", `\x1bc\x1b[6n`, `\x1bc\x1b[6n`},
		{"eight bit controls", "\u009b31m\u0090", `\u009b31m\u0090`, `\u009b31m\u0090`},
		{"raw bytes", "a\x9bb\xff", `a\x9bb\xff`, `a\x9bb\xff`},
		{"backspace, delete, null", "a\b\x7f\x00", `a\x08\x7f\x00`, `a\x08\x7f\x00`},
		{"bidi", "a\u202eb\u2066c", `a\u202eb\u2066c`, `a\u202eb\u2066c`},
		{"zero width", "r\u200bm \ufeffx", `r\u200bm \ufeffx`, `r\u200bm \ufeffx`},
		{"tags", "a\U000e0041b", `a\U000e0041b`, `a\U000e0041b`},
		{"line separators", "a\u2028b\u2029", `a\u2028b\u2029`, `a\u2028b\u2029`},
		{"private use", "\ue000", `\ue000`, `\ue000`},
		{"emoji family", "👩\u200d👧", "👩\u200d👧", "👩\u200d👧"},
		{"persian", "می\u200cخواهم", "می\u200cخواهم", "می\u200cخواهم"},
		{"joiner that hides", "r\u200dm 👩\u200d", `r\u200dm 👩\u200d`, `r\u200dm 👩\u200d`},
		{"replacement character", "\ufffd", "\ufffd", "\ufffd"},
		{"empty", "", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := Text(tt.in); got != tt.text {
				t.Errorf("Text(%q): got %q, want %q", tt.in, got, tt.text)
			}
			if got := String(tt.in); got != tt.line {
				t.Errorf("String(%q): got %q, want %q", tt.in, got, tt.line)
			}
		})
	}
}

func TestPlainTextIsNotCopied(t *testing.T) {
	s := strings.Repeat("some text\n", 100)
	if n := testing.AllocsPerRun(10, func() { Text(s) }); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"a\nb", "\x1b]0;t\a", "\r\n\r", "\x9b", "👩\u200d👧", "a\u202e", "\xf0\x9f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, got := range []string{Text(s), String(s)} {
			if !utf8.ValidString(got) {
				t.Fatalf("%q gives invalid text %q", s, got)
			}
			for _, r := range got {
				if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r == 0x202e || r == 0xfeff {
					t.Fatalf("%q lets %U through", s, r)
				}
			}
		}
		if got := String(s); strings.ContainsAny(got, "\n\t") {
			t.Fatalf("String(%q) is more than one line: %q", s, got)
		}
		if once := Text(s); Text(once) != once {
			t.Fatalf("Text(%q) is not stable", s)
		}
	})
}
