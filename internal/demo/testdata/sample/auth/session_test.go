package auth

import (
	"testing"
	"time"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func TestSessionLivesUntilItExpires(t *testing.T) {
	s := Start("ada", Cashier, noon, time.Hour)
	if now := noon.Add(time.Hour - time.Second); s.Expired(now, Leeway) {
		t.Errorf("the session ended at %v, before %v", now, s.Expires)
	}
}

func TestSessionSurvivesClockSkew(t *testing.T) {
	s := Start("ada", Cashier, noon, time.Hour)
	if now := s.Expires.Add(Leeway / 2); s.Expired(now, Leeway) {
		t.Errorf("the session ended at %v, within the leeway of %v", now, Leeway)
	}
}

func TestSessionEnds(t *testing.T) {
	s := Start("ada", Cashier, noon, time.Hour)
	if now := s.Expires.Add(2 * Leeway); !s.Expired(now, Leeway) {
		t.Errorf("the session lives at %v, long after %v", now, s.Expires)
	}
}

func TestExtendGivesMoreTime(t *testing.T) {
	s := Start("ada", Cashier, noon, time.Hour)
	if got, want := s.Extend(time.Hour).Expires, noon.Add(2*time.Hour); !got.Equal(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
