package proc

import (
	"bytes"
	"testing"
)

func FuzzCapture(f *testing.F) {
	f.Add(10, []byte("hello, world, this is longer than ten"), 3)
	f.Add(7, []byte("abcdefg"), 100)
	f.Add(1, []byte("ab"), 1)
	f.Add(0, []byte("x"), 1)
	f.Fuzz(func(t *testing.T, limit int, data []byte, piece int) {
		if limit < 0 || limit > 1000 || piece < 1 || len(data) > 10_000 {
			return
		}
		c := Capture{Max: limit}
		for i := 0; i < len(data); i += piece {
			c.Write(data[i:min(i+piece, len(data))])
		}
		head := limit - limit/2
		want := data
		if len(data) > limit {
			want = append(append([]byte(nil), data[:head]...), data[len(data)-limit/2:]...)
		}
		if got := c.Bytes(); !bytes.Equal(got, want) || c.Omitted() != int64(len(data)-len(want)) {
			t.Errorf("got %q and %d omitted, want %q", got, c.Omitted(), want)
		}
	})
}
