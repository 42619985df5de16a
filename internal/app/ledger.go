package app

import (
	"context"
	"sync"

	"github.com/seed-eb844fcb/cinch/internal/net/dial"
)

// A ledger remembers who was contacted in this run.
type ledger struct {
	mu   sync.Mutex
	list []dial.Contact
}

func (l *ledger) add(c dial.Contact) {
	l.mu.Lock()
	defer l.mu.Unlock()
	const most = 10000
	if len(l.list) < most {
		l.list = append(l.list, c)
	}
}

// maxHookAnswer bounds what an HTTP hook may answer.
const maxHookAnswer = 1 << 20

// postHook sends an HTTP hook.
func (a *App) postHook(ctx context.Context, url string, header map[string]string, body []byte) (int, []byte, error) {
	out := map[string]string{"User-Agent": a.userAgent()}
	for k, v := range header {
		out[k] = v
	}
	return dial.Post(ctx, a.dialer.Client(dial.Use{Why: "hook", Only: a.o.OnlyHosts}), url, out, body, maxHookAnswer)
}
