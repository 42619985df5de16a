package price

import (
	"math"
	"reflect"
	"testing"
)

func TestOf(t *testing.T) {
	t.Parallel()
	own := Table{"claude-opus-4": {Input: 1}, "claude-opus-4-5": {Input: 2}, "my-model": {Input: 3}}
	for _, tt := range []struct {
		table    Table
		model    string
		input    float64
		estimate bool
	}{
		{nil, "claude-opus-5-5", 4, false},
		{nil, "claude-opus-5-5[1m]", 4, false},
		{nil, "claude-opus-5", 5, false},
		{nil, "claude-opus-4-5-20251101", 5, false},
		{nil, "claude-opus-4-20250514", 15, false},
		{nil, "claude-opus-4-1", 15, false},
		{nil, "us.anthropic.claude-opus-4-5-20251101-v1:0", 5, false},
		{nil, "claude-sonnet-4-5@20250929", 3, false},
		{nil, "anthropic/claude-fable-5.2", 8, false},
		{nil, "claude-3-5-haiku-latest", 0.80, false},
		{nil, "claude-3-haiku-20240307", 0.25, false},
		{nil, "claude-haiku-5-5", 0.10, false},
		{nil, "claude-opus-4-9", 4, true},
		{nil, "claude-haiku-9", 0.10, true},
		{nil, "qwen3-coder", 4, true},
		{nil, "", 4, true},
		{own, "claude-opus-4-5", 2, false},
		{own, "claude-opus-4-5-20251101", 2, false},
		{own, "claude-opus-4-9", 1, false},
		{own, "claude-opus-45", 4, true},
		{own, "my-model", 3, false},
		{own, "claude-sonnet-5", 2, false},
	} {
		r, estimate := tt.table.Of(tt.model)
		if r.Input != tt.input || estimate != tt.estimate {
			t.Errorf("Of(%q) = %v, %v, want %v, %v", tt.model, r.Input, estimate, tt.input, tt.estimate)
		}
	}
}

func TestRates(t *testing.T) {
	t.Parallel()
	got, _ := Table(nil).Of("claude-opus-5-5")
	want := Rate{Input: 4, Output: 20, CacheRead: 0.20, CacheWrite5m: 5, CacheWrite1h: 8}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		model string
		use   Tokens
		want  float64
	}{
		{"claude-opus-5-5", Tokens{Input: 1e6, Output: 1e6, CacheRead: 1e6, CacheWrite5m: 1e6, CacheWrite1h: 1e6}, 37.20},
		{"claude-opus-5-5", Tokens{WebSearches: 3}, 0.03},
		{"claude-haiku-5-5", Tokens{Input: 50_000, CacheRead: 50_000, Output: 1000}, 0.0060},
		{"claude-haiku-5-5", Tokens{Input: 50_000, CacheRead: 50_001, Output: 1000}, 0.03000005},
		{"claude-opus-5-5", Tokens{}, 0},
	} {
		r, _ := Table(nil).Of(tt.model)
		if got := r.Cost(tt.use); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s %+v: got %v, want %v", tt.model, tt.use, got, tt.want)
		}
	}
}
