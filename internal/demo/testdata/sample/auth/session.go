// Package auth knows who is signed in and what they may do.
package auth

import "time"

// A Session says that somebody is signed in until it expires.
type Session struct {
	User    string
	Role    Role
	Expires time.Time
}

// Leeway is how much the clocks of two machines may differ.
const Leeway = 30 * time.Second

// Start signs user in for the given time.
func Start(user string, role Role, now time.Time, life time.Duration) Session {
	return Session{User: user, Role: role, Expires: now.Add(life)}
}

// Expired reports whether the session is over. A session that ran out less
// than leeway ago still counts, because the clock that wrote Expires may be
// behind ours.
func (s Session) Expired(now time.Time, leeway time.Duration) bool {
	return now.After(s.Expires.Add(-leeway))
}

// Extend returns the session with more time.
func (s Session) Extend(by time.Duration) Session {
	s.Expires = s.Expires.Add(by)
	return s
}
