package mcp

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/test/mcpserver"
)

func defs(names ...string) (out []*sdk.Tool) {
	for _, n := range names {
		out = append(out, &sdk.Tool{Name: n, InputSchema: map[string]any{"type": "object"}})
	}
	return out
}

// A server that forgot its sessions is connected to anew, once for all calls
// that find out, and the calls are made again: it did not look at them.
func TestForgottenSession(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]struct {
		code int
		body string
	}{"404": {404, ""}, "400": {400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var cut atomic.Int32
			s := &mcpserver.Script{Status: func(_, session string, r mcpserver.Request) (int, string) {
				if session == "session-1" && cut.Load() > 0 {
					return answer.code, answer.body
				}
				return 0, ""
			}}
			c, r := reach(t, "http", "", s)
			set := start(t, options(t), c)
			cut.Store(1)
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					text := fmt.Sprint("call ", i)
					if got := agent.TextOf(call(t, set, "echo", `{"text":"`+text+`"}`).Blocks); got != text {
						t.Errorf("got %q, want %q", got, text)
					}
				})
			}
			wg.Wait()
			if n := r.Sessions(); n != 2 {
				t.Errorf("got %d sessions, want 2", n)
			}
		})
	}
}

// What the endpoint answers to the first contact decides how often it is tried.
func TestFirstContact(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code, times int
		state       string
	}{{401, 1, NeedsAuth}, {403, 1, NeedsAuth}, {404, 1, Failed}, {500, 3, Failed}, {503, 3, Failed}, {418, 1, Failed}} {
		for _, transport := range []string{"http", "sse", "ws"} {
			t.Run(fmt.Sprint(c.code, transport), func(t *testing.T) {
				t.Parallel()
				var n atomic.Int32
				s := &mcpserver.Script{Status: func(method, _ string, r mcpserver.Request) (int, string) {
					if r.Method != "server/discover" {
						n.Add(1)
					}
					return c.code, "no"
				}}
				cfg, _ := reach(t, transport, "", s)
				set := start(t, options(t), cfg)
				if st := set.Servers()[0]; st.State != c.state {
					t.Errorf("got %s (%s), want %s", st.State, st.Err, c.state)
				}
				if got := int(n.Load()); got != c.times {
					t.Errorf("got %d requests, want %d", got, c.times)
				}
			})
		}
	}
}

// A helper's headers are used, and asked for anew when they are refused.
func TestHeadersHelper(t *testing.T) {
	t.Parallel()
	c, r := reach(t, "http", "", &mcpserver.Script{})
	var old atomic.Bool
	r.Script.Header = func(get func(string) string) int {
		if get("X-Key") == "" || old.Load() && get("X-Key") == "first" {
			return 401
		}
		return 0
	}
	o := options(t)
	c.HeadersHelper = fmt.Sprintf(`if [ -e %[1]s/ran ]; then echo '{"X-Key":"second"}'; else : >%[1]s/ran; echo '{"X-Key":"first"}'; fi`, o.Dir)
	set := start(t, o, c)
	old.Store(true)
	if got := agent.TextOf(call(t, set, "echo", `{"text":"in"}`).Blocks); got != "in" {
		t.Errorf("got %q (%+v)", got, set.Servers())
	}
}

// A burst of changes is read once; a reading that fails keeps the last list.
func TestListChanged(t *testing.T) {
	t.Parallel()
	var lists, broken atomic.Int32
	s := &mcpserver.Script{On: on("tools/list", handler(func(*mcpserver.Conn, mcpserver.Request) (string, error) {
		if broken.Load() > 0 {
			return "", &mcpserver.RPCError{Code: -32603, Message: "busy"}
		}
		n := lists.Add(1)
		return fmt.Sprintf(`{"tools":[%s,%s]}`, mcpserver.Echo, def(fmt.Sprint("t", n), "")), nil
	}))}
	c, r := reach(t, "http", "", s)
	o := options(t)
	o.Pause = time.Second // a burst has 200 ms
	changed, noted := make(chan Status, 100), make(chan string, 100)
	o.Changed = func(s Status) { changed <- s }
	o.Note = func(_, text string) { noted <- text }
	set := start(t, o, c)
	<-changed
	for range 50 {
		r.Broadcast("notifications/tools/list_changed", `{}`)
	}
	select {
	case st := <-changed:
		if len(st.Tools) != 2 || st.Tools[1].Name != "t2" {
			t.Errorf("got %+v", st.Tools)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the change was not read")
	}
	if n := lists.Load(); n > 3 {
		t.Errorf("50 changes caused %d readings", n-1)
	}
	broken.Store(1)
	r.Broadcast("notifications/tools/list_changed", `{}`)
	select {
	case text := <-noted:
		if !strings.Contains(text, "the last list stands") {
			t.Errorf("got %q", text)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the failure was not told")
	}
	if got := set.ToolsOf("srv"); len(got) != 2 {
		t.Errorf("got %v after a failed reading", got)
	}
}

// A call that is given up returns at once, and the server is told.
func TestCancel(t *testing.T) {
	t.Parallel()
	told, begun := make(chan mcpserver.Request, 10), make(chan struct{}, 10)
	s := &mcpserver.Script{Tools: []string{mcpserver.Echo, def("x", "")}, On: on(
		"tool:x", handler(func(*mcpserver.Conn, mcpserver.Request) (string, error) {
			begun <- struct{}{}
			return "", mcpserver.ErrSilent
		}),
		"notifications/cancelled", handler(func(_ *mcpserver.Conn, r mcpserver.Request) (string, error) { told <- r; return "", nil }))}
	c, _ := reach(t, "ws", "", s)
	set := start(t, options(t), c)
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-begun; cancel(agent.ErrNoOne) }()
	if _, err := set.Call(ctx, "srv", "x", nil); err != agent.ErrNoOne {
		t.Errorf("got %v, want the cause of the cancellation", err)
	}
	select {
	case <-told:
	case <-time.After(20 * time.Second):
		t.Error("the server was not told")
	}
}

// The total clock of a call does not care for progress.
func TestTotalClock(t *testing.T) {
	t.Parallel()
	s := &mcpserver.Script{Tools: []string{mcpserver.Echo, def("x", "")}, On: on("tool:x", handler(func(c *mcpserver.Conn, r mcpserver.Request) (string, error) {
		for i := range 1000 {
			time.Sleep(20 * time.Millisecond)
			c.Notify("notifications/progress", fmt.Sprintf(`{"progressToken":%s,"progress":%d}`, r.Token(), i))
		}
		return mcpserver.Text("late"), nil
	}))}
	c, _ := reach(t, "ws", "", s)
	c.Timeout = time.Second
	set := start(t, options(t), c)
	r := call(t, set, "x", `{}`)
	if text := agent.TextOf(r.Blocks); !r.Unknown || !strings.Contains(text, "longer than 1s") {
		t.Errorf("got %q unknown=%v", text, r.Unknown)
	}
}

// Whoever tries to sign in is told why that failed, and not to sign in.
func TestSignInFails(t *testing.T) {
	t.Parallel()
	c, _ := reach(t, "http", "", &mcpserver.Script{Status: func(string, string, mcpserver.Request) (int, string) { return 401, "no" }})
	o := options(t)
	o.Credentials = filepath.Join(t.TempDir(), "credentials.json")
	c.OAuth.ClientID = "client"
	set := start(t, o, c)
	if st := set.Servers()[0]; st.State != NeedsAuth || !strings.Contains(st.Err, "cinch mcp login srv") {
		t.Errorf("got %s (%s), want %s and how to sign in", st.State, st.Err, NeedsAuth)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := set.SignIn(ctx, "srv", "http://localhost:3118/callback", func(context.Context, string) (string, error) {
		return "http://localhost:3118/callback?error=access_denied&error_description=not+today", nil
	})
	if err == nil || !strings.Contains(err.Error(), "access_denied not today") || strings.Contains(err.Error(), "cinch mcp login") {
		t.Errorf("got %v, want why it was refused", err)
	}
}
