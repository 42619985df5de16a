package app

import (
	"github.com/seed-eb844fcb/cinch/internal/net/model"
	"github.com/seed-eb844fcb/cinch/internal/transcript"
)

// sent keeps what goes out to the model beside the session, where a session
// is saved: 'cinch context --request N' shows it.
func (a *App) sent(s model.Sending) {
	if a.record == nil || a.env.on("CINCH_NO_REQUEST_RECORD") {
		return
	}
	a.record.Sent(transcript.Sent{At: s.At, Agent: s.Agent, Purpose: s.Purpose, Model: s.Model, Attempt: s.Attempt}, s.Pieces)
}
