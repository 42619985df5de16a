// Package procid names a process so that the name stays right after the
// process is gone: by its number and the moment it started, since numbers are
// used again. It owns how each platform tells that moment.
package procid

import "os"

// An ID names one process of this machine for as long as it is up.
type ID struct {
	PID int `json:"pid"`
	// Start is the moment the process began, in a form that only serves to
	// be compared. It is empty where the platform does not tell.
	Start string `json:"start,omitempty"`
}

// Self names this process.
func Self() ID { return Of(os.Getpid()) }

// Of names the process that has the number pid now.
func Of(pid int) ID {
	s, _ := start(pid)
	return ID{pid, s}
}

// Alive reports whether the very process that id names still runs. Where the
// platform does not tell, it says yes.
func (id ID) Alive() bool {
	if id.PID <= 0 {
		return false
	}
	s, ok := start(id.PID)
	if !ok {
		return exists(id.PID)
	}
	return id.Start == "" || s == id.Start
}
