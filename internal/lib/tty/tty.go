// Package tty changes how a terminal takes what is typed: raw mode, in which
// every key comes at once and means nothing to the system. It owns the state
// to go back to, and knows nothing of keys and screens.
package tty

import "errors"

// ErrNone reports that raw mode is not known on this system.
var ErrNone = errors.New("raw mode is not available on this system")
