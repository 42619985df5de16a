package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
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
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	req.Header.Set("User-Agent", a.userAgent())
	resp, err := a.dialer.Client(dial.Use{Why: "hook", Only: a.o.OnlyHosts}).Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxHookAnswer+1))
	if err != nil {
		return 0, nil, fmt.Errorf("reading the answer of %s: %w", url, err)
	}
	if len(answer) > maxHookAnswer {
		return 0, nil, fmt.Errorf("%s answered with more than %d bytes", url, maxHookAnswer)
	}
	return resp.StatusCode, answer, nil
}
