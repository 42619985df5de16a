package tickets

import "testing"

func TestPrice(t *testing.T) {
	for _, tt := range []struct {
		kind string
		n    int
		want int
	}{{"foot", 1, 500}, {"foot", 9, 4500}, {"foot", 10, 4500}, {"car", 20, 43200}} {
		if got := Price(tt.kind, tt.n); got != tt.want {
			t.Errorf("%d %s: got %d, want %d", tt.n, tt.kind, got, tt.want)
		}
	}
}
