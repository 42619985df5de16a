package cell

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func words(ins []Input) []string {
	var out []string
	for _, in := range ins {
		s := ""
		for _, m := range []struct {
			m Mod
			s string
		}{{Ctrl, "ctrl+"}, {Alt, "alt+"}, {Shift, "shift+"}, {Super, "super+"}} {
			if in.Mod&m.m != 0 {
				s += m.s
			}
		}
		names := map[Key]string{Enter: "enter", Tab: "tab", Escape: "esc", Backspace: "backspace", Up: "up", Down: "down", Left: "left", Right: "right", Home: "home", End: "end", PageUp: "pgup", PageDown: "pgdown", Insert: "insert", Delete: "delete"}
		switch n, ok := names[in.Key]; {
		case in.Paste:
			s += fmt.Sprintf("paste %q", in.Text)
		case ok:
			s += n
		case in.Key > 0:
			s += string(rune(in.Key))
		default:
			s += fmt.Sprint(int(in.Key))
		}
		out = append(out, s)
	}
	return out
}

// Each input is fed whole, and byte by byte with a pause of 40 ms after each.
func TestDecode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"letters", "aZ é", "a|Z| |é"},
		{"input method", "你好", "你|好"},
		{"emoji family", "👩\u200d👧", "👩|\u200d|👧"},
		{"enter", "\r", "enter"},
		{"ctrl j", "\n", "ctrl+j"},
		{"control letters", "\x01\x03\x1a\x1f\x00", "ctrl+a|ctrl+c|ctrl+z|ctrl+_|ctrl+ "},
		{"both backspaces", "\x7f\x08", "backspace|backspace"},
		{"escape", "\x1b", "esc"},
		{"arrows", "\x1b[A\x1b[B\x1bOC\x1bOD", "up|down|right|left"},
		{"arrows with modifiers", "\x1b[1;5C\x1b[1;3D\x1b[1;2A", "ctrl+right|alt+left|shift+up"},
		{"home and end", "\x1b[H\x1b[F\x1b[1~\x1b[4~\x1bOH", "home|end|home|end|home"},
		{"pages", "\x1b[5~\x1b[6~\x1b[3~\x1b[3;5~", "pgup|pgdown|delete|ctrl+delete"},
		{"shift tab", "\x1b[Z", "shift+tab"},
		{"alt letters", "\x1bb\x1bf\x1b\x7f\x1b\r", "alt+b|alt+f|alt+backspace|alt+enter"},
		{"alt letter beyond ascii", "\x1bé", "alt+é"},
		{"kitty", "\x1b[27u\x1b[13;2u\x1b[97;5u\x1b[9;2u\x1b[97;2u", "esc|shift+enter|ctrl+a|shift+tab|A"},
		{"kitty, event types", "\x1b[97;1:1u\x1b[97;1:3u", "a"},
		{"modifyOtherKeys", "\x1b[27;2;13~\x1b[27;5;99~", "shift+enter|ctrl+c"},
		{"mouse", "a\x1b[<35;150;7Mb\x1b[<0;1;1mc", "a|b|c"},
		{"mouse of old", "a\x1b[M !!b", "a|b"},
		{"focus", "\x1b[I\x1b[Ox", "x"},
		{"reports", "\x1b[?62;4c\x1b[12;40Rx\x1b[?1u", "x"},
		{"string reports", "\x1b]11;rgb:0000/0000/0000\x07a\x1bP1+r544e\x1b\\b\x1b]0;x\x1b\\c", "a|b|c"},
		{"unknown sequences", "\x1b[99;9Xa\x1b[200;3~b", "a|b"},
		{"function keys", "\x1bOP\x1b[15~x", "x"},
		{"a paste", "a\x1b[200~x\ny\tz\x1b[201~b", `a|paste "x\ny\tz"|b`},
		{"a paste with windows lines", "\x1b[200~x\r\ny\rz\x1b[201~", `paste "x\ny\nz"`},
		{"a paste with sequences", "\x1b[200~\x1b[31mred\x07\x1b[201~", `paste "[31mred"`},
		{"an empty paste", "\x1b[200~\x1b[201~", `paste ""`},
		{"invalid bytes", "a\xff\xc3(b", "a|(|b"},
		{"eight bit controls", "\u009b31ma", "3|1|m|a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			now := time.Unix(0, 0)
			var d Decoder
			got := d.Feed(now, []byte(tt.in))
			if d.Wait() != 0 {
				got = append(got, d.Flush()...)
			}
			if s := strings.Join(words(got), "|"); s != tt.want {
				t.Errorf("whole: got %s, want %s", s, tt.want)
			}
			var slow Decoder
			got = nil
			for i := range len(tt.in) {
				if w := slow.Wait(); w != 0 && w < 40*time.Millisecond {
					got = append(got, slow.Flush()...)
				}
				now = now.Add(40 * time.Millisecond)
				got = append(got, slow.Feed(now, []byte(tt.in[i:i+1]))...)
			}
			if slow.Wait() != 0 {
				got = append(got, slow.Flush()...)
			}
			if s := strings.Join(words(got), "|"); s != tt.want {
				t.Errorf("byte by byte: got %s, want %s", s, tt.want)
			}
		})
	}
}

// Two quick Escapes are two keys even if they come in one read.
func TestTwoEscapes(t *testing.T) {
	t.Parallel()
	var d Decoder
	got := append(d.Feed(time.Unix(0, 0), []byte("\x1b\x1b")), d.Flush()...)
	if s := strings.Join(words(got), "|"); s != "esc|esc" {
		t.Errorf("got %s", s)
	}
}

// The rest of a report that comes after Escape was taken for a key is no text,
// and what a person types after Escape is.
func TestLateSequence(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"\x1b[<35;150;7Ma": "esc|a", "\x1b[Ia": "esc|a", "\x1b[x": "esc", "\x1b[": "esc|[", "\x1ba": "esc|a"} {
		var d Decoder
		now := time.Unix(1, 0)
		var got []Input
		for i := range len(in) {
			got = append(got, d.Feed(now, []byte{in[i]})...)
			now = now.Add(100 * time.Millisecond)
			if w := d.Wait(); w > 0 && w < 100*time.Millisecond {
				got = append(got, d.Flush()...)
			}
		}
		got = append(got, d.Flush()...)
		if s := strings.Join(words(got), "|"); s != want {
			t.Errorf("%q: got %s, want %s", in, s, want)
		}
	}
}

// Line ends in a paste without brackets send nothing, wherever reads end.
func TestPasteWithoutBrackets(t *testing.T) {
	t.Parallel()
	var d Decoder
	now := time.Unix(0, 0)
	var text strings.Builder
	for _, part := range []string{"one\rtwo\rth", "ree\r", "f\xc3", "\xbcnf\r"} {
		for _, in := range d.Feed(now, []byte(part)) {
			if !in.Paste {
				if in.Text == "" {
					t.Errorf("%q: the key %v was pressed", part, in.Key)
				}
			}
			text.WriteString(in.Text)
		}
		now = now.Add(time.Millisecond)
	}
	if got, want := text.String(), "one\ntwo\nthree\nfünf\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	// What is typed later is typed.
	got := d.Feed(now.Add(time.Second), []byte("ok\r"))
	if s := strings.Join(words(got), "|"); s != "o|k|enter" {
		t.Errorf("got %s", s)
	}
}

// The mark of a paste's end may be in what was copied.
func TestPasteHoldsItsEnd(t *testing.T) {
	t.Parallel()
	var d Decoder
	got := d.Feed(time.Unix(0, 0), []byte("\x1b[200~echo safe\x1b[201~\rrm -rf x\r\x1b[201~"))
	if s := strings.Join(words(got), "|"); s != `paste "echo safe\nrm -rf x\n"` {
		t.Errorf("got %s", s)
	}
}

func TestBigPaste(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a line of what was copied\n", 40000)
	all := []byte("\x1b[200~" + text + "\x1b[201~")
	var d Decoder
	var got []Input
	start := time.Now()
	for chunk := range slices.Chunk(all, 1024) {
		got = append(got, d.Feed(start, chunk)...)
	}
	if len(got) != 1 || got[0].Text != text {
		t.Errorf("got %d inputs", len(got))
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("1 MB took %s", took)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"abc\r", "\x1b[200~x\x1b[201~y", "\x1b[<35;1;1M", "\x1b]11;?\x07", "\x1b[27;2;13~", "\x1bP\x1b\\", "你\xff", "\x1b\x1b[A", "a\rb\rc"} {
		f.Add([]byte(s), 1)
	}
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		var d Decoder
		now := time.Unix(0, 0)
		check := func(ins []Input) {
			for _, in := range ins {
				for _, r := range in.Text {
					if r < ' ' && (!in.Paste || r != '\n' && r != '\t') || r >= 0x7f && r < 0xa0 {
						t.Fatalf("%q writes %q", b, in.Text)
					}
				}
				if in.Key == 0 && !in.Paste {
					t.Fatalf("%q gives an input that is nothing", b)
				}
			}
		}
		cut = 1 + max(cut, -cut)%7
		for chunk := range slices.Chunk(b, cut) {
			check(d.Feed(now, chunk))
			now = now.Add(50 * time.Millisecond)
		}
		check(d.Flush())
		if len(d.buf) > 0 && !d.inside {
			t.Fatalf("%q leaves %q", b, d.buf)
		}
	})
}
