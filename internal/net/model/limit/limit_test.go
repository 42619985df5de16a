package limit

import (
	"net/http"
	"testing"
	"time"
)

func TestAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	date := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for _, tt := range []struct {
		header map[string]string
		want   time.Duration
		ok     bool
	}{
		{nil, 0, false},
		{map[string]string{"Retry-After": "2"}, 2 * time.Second, true},
		{map[string]string{"Retry-After": " 1.5 "}, 1500 * time.Millisecond, true},
		{map[string]string{"Retry-After-Ms": "250", "Retry-After": "9"}, 250 * time.Millisecond, true},
		{map[string]string{"Retry-After": "-3"}, 0, true},
		{map[string]string{"Retry-After": "NaN"}, 0, true},
		{map[string]string{"Retry-After": "1e300"}, 1e9 * time.Second, true},
		{map[string]string{"Retry-After": "soon"}, 0, false},
		{map[string]string{"Retry-After": date(30 * time.Second)}, 30 * time.Second, true},
		{map[string]string{"Retry-After": date(-30 * time.Second)}, 0, true},
		{map[string]string{"Retry-After": date(time.Hour + 30*time.Second), "Date": date(time.Hour)}, 30 * time.Second, true},
	} {
		h := http.Header{}
		for k, v := range tt.header {
			h.Set(k, v)
		}
		if got, ok := After(h, now); got != tt.want || ok != tt.ok {
			t.Errorf("%v: got %v, %v, want %v, %v", tt.header, got, ok, tt.want, tt.ok)
		}
	}
}

func TestRoughly(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "1s", 42 * time.Second: "42s", 90 * time.Second: "2m", 59 * time.Minute: "59m", 150 * time.Minute: "2h30m", 24 * time.Hour: "24h0m", 100 * time.Hour: "4 days",
	} {
		if got := Roughly(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC)
	zone := time.FixedZone("CET", 3600)
	for _, tt := range []struct {
		limits Limits
		want   string
	}{
		{Limits{}, ""},
		{Limits{Claim: "seven_day", Windows: []Window{{Name: "7d", Used: 0.994, Reset: now.Add(30 * time.Minute)}}}, "7-day limit (99% used) resets at 00:30 CET (in 30m)"},
		{Limits{Claim: "five_hour", Reset: now.Add(26 * time.Hour)}, "5-hour limit resets at Wed 2 Dec 02:00 CET (in 26h0m)"},
		{Limits{Claim: "seven_day_opus"}, "seven day opus limit"},
		{Limits{Headers: map[string]string{"anthropic-ratelimit-tokens-remaining": "0", "anthropic-ratelimit-tokens-reset": now.Add(time.Minute).Format(time.RFC3339), "anthropic-ratelimit-requests-remaining": "5", "anthropic-ratelimit-requests-reset": now.Add(time.Hour).Format(time.RFC3339)}},
			"rate limit resets at 00:01 CET (in 1m)"},
	} {
		if got := tt.limits.Describe(now, zone); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
