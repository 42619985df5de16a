package app

import (
	"context"

	"github.com/seed-eb844fcb/cinch/internal/net/dial"
	"github.com/seed-eb844fcb/cinch/internal/net/ledger"
	"github.com/seed-eb844fcb/cinch/internal/transcript"
)

// openLedger makes the record of who is contacted. It stands beside the
// transcript: where no session is saved, none is kept.
func (a *App) openLedger() *ledger.Book {
	b := ledger.New(ledger.Options{
		Path: func() string {
			if a.record == nil {
				return ""
			}
			return ledger.Name(transcript.SideDir(a.transcriptPath()))
		},
		Failed: func(err error) { a.warn("who is contacted over the network cannot be written down: %v", err) },
	})
	a.onClose(b.Close)
	return b
}

// maxHookAnswer bounds what an HTTP hook may answer.
const maxHookAnswer = 1 << 20

// postHook sends an HTTP hook.
func (a *App) postHook(ctx context.Context, url string, header map[string]string, body []byte) (int, []byte, error) {
	out := map[string]string{"User-Agent": a.userAgent()}
	for k, v := range header {
		out[k] = v
	}
	return dial.Post(ctx, a.dialer.Client(dial.Use{Why: "hook"}), url, out, body, maxHookAnswer)
}
