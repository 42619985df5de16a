package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
)

// A message whose writer gives up, to a server that does not read just then,
// returns at once, is whole when it arrives, and the one behind it does too.
func TestWriteGivenUp(t *testing.T) {
	t.Parallel()
	const size = 16 << 20 // more than the buffers of a pipe or a connection hold
	for name, reach := range map[string]func(t *testing.T, read <-chan struct{}) (sdk.Connection, outbox, func() []string){
		"stdio": slowChild, "ws": slowSocket,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := make(chan struct{})
			c, out, messages := reach(t, read)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var given time.Time
			go func() { // gives up once it is being written
				for len(out) == 0 && ctx.Err() == nil {
					runtime.Gosched()
				}
				given = time.Now()
				cancel()
			}()
			params, _ := json.Marshal(map[string]string{"text": strings.Repeat("x", size)})
			if err := c.Write(ctx, &jsonrpc.Request{Method: "long", Params: params}); err != context.Canceled {
				t.Errorf("got %v", err)
			}
			// So does one that waits behind it.
			if err := c.Write(ctx, &jsonrpc.Request{Method: "never"}); err != context.Canceled {
				t.Errorf("got %v behind it", err)
			}
			if took := time.Since(given); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
			close(read)
			if err := c.Write(t.Context(), &jsonrpc.Request{Method: "short"}); err != nil {
				t.Errorf("got %v for the next message", err)
			}
			got := messages()
			if len(got) != 2 || len(got[0]) < size || !json.Valid([]byte(got[0])) || !strings.Contains(got[1], `"short"`) {
				t.Errorf("%d messages arrived", len(got))
				for _, m := range got {
					t.Errorf("%d bytes: %.80q", len(m), m)
				}
			}
		})
	}
}

// slowChild is a child that reads its input once read is closed.
func slowChild(t *testing.T, read <-chan struct{}) (sdk.Connection, outbox, func() []string) {
	dir := t.TempDir()
	spec := proc.Shell("", `while [ ! -e go ]; do sleep .02; done; cat >got`)
	spec.Dir, spec.Env = dir, os.Environ()
	c, err := startStdio(spec, nil, &proc.Capture{Max: 1000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	go func() {
		select {
		case <-read:
			_ = os.WriteFile(filepath.Join(dir, "go"), nil, 0o600)
		case <-t.Context().Done():
		}
	}()
	return c, c.out, func() []string {
		_ = c.p.Stdin.Close()
		select {
		case <-c.p.Exited():
		case <-time.After(20 * time.Second):
			t.Error("the child does not end")
		}
		data, err := os.ReadFile(filepath.Join(dir, "got"))
		if err != nil {
			t.Error(err)
		}
		return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	}
}

// slowSocket is a connection to a server that reads once read is closed.
func slowSocket(t *testing.T, read <-chan struct{}) (sdk.Connection, outbox, func() []string) {
	got := make(chan string, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer ws.CloseNow()
		ws.SetReadLimit(-1)
		select {
		case <-read:
		case <-t.Context().Done():
		}
		for {
			_, data, err := ws.Read(t.Context())
			if err != nil {
				return
			}
			got <- string(data)
		}
	}))
	t.Cleanup(srv.Close)
	c, err := dialSocket(t.Context(), srv.Client(), srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.c.CloseNow() })
	return c, c.out, func() []string {
		var all []string
		for len(all) < 2 {
			select {
			case m := <-got:
				all = append(all, m)
			case <-time.After(20 * time.Second):
				return all
			}
		}
		return all
	}
}
