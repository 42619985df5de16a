package screen

import "testing"

func TestWrite(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, text, all string }{
		{"a\r\nb", "a\nb", "a\nb"},
		{"abc\rx", "xbc", "xbc"},
		{"a\r\nb\r\nc\r\nd", "b\nc\nd", "a\nb\nc\nd"},
		{"abcdef", "abcde\nf", "abcde\nf"},
		{"你好吗", "你好\n吗", "你好\n吗"},
		{"abc\x1b[2Gx\x1b[K", "ax", "ax"},
		{"a\r\nb\x1b[A\rx\x1b[J", "x", "x"},
		{"a\x1b[?1049h\x1b[Hb", "b", "a"},
		{"a\x1b[?1049h\x1b[Hb\x1b[?1049lc", "ac", "ac"},
	} {
		s := New(5, 3)
		for i := range len(tt.in) {
			s.Write([]byte(tt.in[i : i+1]))
		}
		if got := s.Text(); got != tt.text {
			t.Errorf("%q: got %q, want %q", tt.in, got, tt.text)
		}
		if got := s.All(); got != tt.all {
			t.Errorf("%q: got %q in all, want %q", tt.in, got, tt.all)
		}
	}
}

func TestResize(t *testing.T) {
	t.Parallel()
	s := New(8, 4)
	s.Write([]byte("one\r\nabcdefgh\r\nend"))
	s.Resize(4, 4)
	if got, want := s.All(), "one\nabcd\nefgh\nend"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s.Resize(8, 4)
	if got, want := s.All(), "one\nabcdefgh\nend"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if x, y, _ := s.Cursor(); x != 3 || y != 2 {
		t.Errorf("the cursor is at %d, %d", x, y)
	}
}

func TestAccount(t *testing.T) {
	t.Parallel()
	s := New(8, 4)
	s.Write([]byte("x\x1b[?2026h\x1b[?2026lx\x1b[?2026hy\x1b[?2026l\x1b]0;t\x07\x1b[6n\x01\x07\u009b"))
	a := s.Account()
	if a.Loose != 3 || a.Frames != 2 || len(a.Strange) != 4 || a.Bells != 1 {
		t.Errorf("got %+v", a)
	}
}
