package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
	"github.com/seed-eb844fcb/cinch/internal/test/mcpserver"
)

// The test binary is the child process too: this variable names the script.
const childVar = "CINCH_TEST_MCP"

func TestMain(m *testing.M) {
	switch name := os.Getenv(childVar); {
	case name == "":
		os.Exit(m.Run())
	case name == "exit":
		fmt.Fprintln(os.Stderr, "no database")
		os.Exit(3)
	case name == "stubborn":
		stubborn()
	case name == "owner":
		owner()
	default:
		before(name)
		mcpserver.Stdio(os.Stdin, os.Stdout, script(name), func() { os.Exit(7) })
	}
}

// before is what a child does before it serves.
func before(name string) {
	switch name {
	case "junk":
		fmt.Println("Starting up…\n{not json\n\n[1,2]\n{\"hello\":\"world\"}")
	case "stderr flood":
		for range 20000 {
			fmt.Fprintln(os.Stderr, strings.Repeat("log ", 20))
		}
	case "slow":
		time.Sleep(300 * time.Millisecond)
	}
}

// A fault is one way to misbehave, and what must come of it.
type fault struct {
	name string
	on   map[string]func(*mcpserver.Conn, mcpserver.Request) (string, error)
	// tools are the definitions beside echo.
	tools []string
	caps  string
	// call is the tool that is called; "" is none.
	call string
	want string // part of the result's text
	// failed and unknown are what the result must be.
	failed, unknown bool
	// dead says that a child does not survive, state what the server's state
	// must be if it does not connect at all.
	dead  bool
	state string
	// only names the transports, "" all.
	only string
}

type handler = func(*mcpserver.Conn, mcpserver.Request) (string, error)

func result(s string) handler {
	return func(*mcpserver.Conn, mcpserver.Request) (string, error) { return s, nil }
}

func refuse(code int, text string) handler {
	return func(*mcpserver.Conn, mcpserver.Request) (string, error) {
		return "", &mcpserver.RPCError{Code: code, Message: text}
	}
}

func def(name, rest string) string {
	return fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}%s}`, name, rest)
}

func on(pairs ...any) map[string]handler {
	m := map[string]handler{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1].(handler)
	}
	return m
}

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func faults() []fault {
	x := []string{def("x", "")}
	safe := []string{def("x", `,"annotations":{"readOnlyHint":true}`)}
	content := func(name, block, want string) fault {
		return fault{name: name, tools: x, on: on("tool:x", result(`{"content":[`+block+`]}`)), call: "x", want: want}
	}
	raw := func(name, bytes string) fault {
		return fault{name: name, tools: x, call: "x", want: "after", on: on("tool:x", handler(func(c *mcpserver.Conn, _ mcpserver.Request) (string, error) {
			c.Raw([]byte(bytes))
			return mcpserver.Text("after"), nil
		}))}
	}
	twice := handler(func(c *mcpserver.Conn, r mcpserver.Request) (string, error) {
		c.Raw(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, mcpserver.Text("first")))
		return mcpserver.Text("second"), nil
	})
	fs := []fault{
		{name: "well behaved"},
		{name: "junk", only: "stdio"},
		{name: "stderr flood", only: "stdio"},
		{name: "slow", only: "stdio"},
		{name: "exit", only: "stdio", state: Failed},
		raw("a log line in the stream", "INFO listening"),
		raw("an empty line", ""),
		raw("half a message", `{"jsonrpc":"2.0","id":`),
		raw("an array", `[1,2,3]`),
		raw("an object that is no message", `{"hello":"world"}`),
		raw("a number", `42`),
		raw("bytes that are no text", "\xff\xfe\x00{"),
		raw("an answer to nobody's question", `{"jsonrpc":"2.0","id":"nobody","result":{}}`),
		raw("a notification nobody knows", `{"jsonrpc":"2.0","method":"notifications/unheard","params":{}}`),
		raw("progress for no call", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"none","progress":1}}`),
		raw("a cancellation of nothing", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`),
		raw("a log message", `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hi"}}`),
		raw("a log message of an odd level", `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":7,"data":"hi"}}`),
		{name: "answers twice", tools: x, on: on("tool:x", twice), call: "x", want: "first"},
		{name: "12 MB in one line", tools: x, on: on("tool:x", handler(func(*mcpserver.Conn, mcpserver.Request) (string, error) {
			return mcpserver.Text(strings.Repeat("x", 12<<20)), nil
		})), call: "x", want: "more than"},
		content("an unknown kind of content", `{"type":"hologram","depth":3}`, "hologram"),
		content("content without a type", `{"text":"naked"}`, "naked"),
		content("content that is a string", `"bare"`, "bare"),
		content("a null among the content", `null,{"type":"text","text":"ok"}`, "ok"),
		content("known and unknown content", `{"type":"text","text":"plain"},{"type":"odd"}`, "plain"),
		content("an image that is none", `{"type":"image","mimeType":"image/png","data":"aGVsbG8="}`, "cannot be shown"),
		content("an image said to be another kind", `{"type":"image","mimeType":"image/jpeg","data":"`+pixel+`"}`, ""),
		content("audio", `{"type":"audio","mimeType":"audio/wav","data":"aGVsbG8="}`, "audio/wav"),
		content("a link", `{"type":"resource_link","uri":"file:///a","name":"a"}`, "file:///a"),
		content("an embedded resource", `{"type":"resource","resource":{"uri":"m:1","text":"inside"}}`, "inside"),
		content("an embedded resource that is missing", `{"type":"resource"},{"type":"text","text":"ok"}`, "ok"),
		content("no content", ``, "no output"),
		{name: "no content at all", tools: x, on: on("tool:x", result(`{}`)), call: "x", want: "no output"},
		{name: "content is null", tools: x, on: on("tool:x", result(`{"content":null}`)), call: "x", want: "no output"},
		{name: "structured only", tools: x, on: on("tool:x", result(`{"content":[],"structuredContent":{"n":1}}`)), call: "x", want: `{"n":1}`},
		{name: "a result that says it failed", tools: x, on: on("tool:x", result(`{"isError":true,"content":[{"type":"text","text":"no such row"}]}`)), call: "x", want: "no such row", failed: true},
		{name: "an error answer", tools: x, on: on("tool:x", refuse(-32603, "out of cheese")), call: "x", want: "out of cheese", failed: true},
		{name: "an error without words", tools: x, on: on("tool:x", refuse(-32000, "")), call: "x", want: "-32000", failed: true},
		{name: "an unknown tool", tools: x, call: "x", want: "unknown tool", failed: true},
		{name: "an odd result", tools: x, on: on("tool:x", result(`[]`)), call: "x", failed: true, unknown: true},
		{name: "ends in mid call", tools: x, call: "x", failed: true, unknown: true, dead: true, want: "unknown", on: on("tool:x", handler(func(c *mcpserver.Conn, _ mcpserver.Request) (string, error) {
			c.Drop()
			return "", mcpserver.ErrSilent
		}))},
		{name: "silent in a call that changes things", tools: x, call: "x", failed: true, unknown: true, want: "nothing was heard", on: on("tool:x", handler(func(*mcpserver.Conn, mcpserver.Request) (string, error) {
			return "", mcpserver.ErrSilent
		}))},
		{name: "silent in a call that reads", tools: safe, call: "x", failed: true, want: "nothing was heard", on: on("tool:x", handler(func(*mcpserver.Conn, mcpserver.Request) (string, error) {
			return "", mcpserver.ErrSilent
		}))},
		{name: "progress keeps a call alive", tools: x, call: "x", want: "at last", on: on("tool:x", handler(func(c *mcpserver.Conn, r mcpserver.Request) (string, error) {
			for i := range 6 {
				time.Sleep(500 * time.Millisecond)
				c.Notify("notifications/progress", fmt.Sprintf(`{"progressToken":%s,"progress":%d}`, r.Token(), i))
			}
			return mcpserver.Text("at last"), nil
		}))},
		{name: "lists nothing", on: on("tools/list", result(`{"tools":null}`))},
		{name: "cannot list", on: on("tools/list", refuse(-32603, "busy")), state: Failed},
		{name: "lists at the second try", on: on("tools/list", failing(1))},
		{name: "answers the handshake with an error", on: on("initialize", refuse(-32603, "not today")), state: Failed},
		{name: "never answers the handshake", on: on("initialize", handler(func(*mcpserver.Conn, mcpserver.Request) (string, error) { return "", mcpserver.ErrSilent })), state: Failed},
		{name: "a revision from the future", on: on("initialize", result(`{"protocolVersion":"2099-01-01","capabilities":{},"serverInfo":{"name":"f","version":"1"}}`)), state: Failed},
		{name: "an old revision", on: on("initialize", result(`{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"o","version":"1"}}`))},
		{name: "no capabilities", on: on("initialize", result(`{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"n","version":"1"}}`))},
		{name: "prompts fail", caps: `{"tools":{},"prompts":{}}`, on: on("prompts/list", refuse(-32603, "no prompts"))},
		{name: "asks for a sample", tools: x, call: "x", want: "-32601", on: on("tool:x", handler(func(c *mcpserver.Conn, _ mcpserver.Request) (string, error) {
			return mcpserver.Text(string(c.Ask("sampling/createMessage", `{"messages":[],"maxTokens":1}`).Error)), nil
		}))},
		{name: "asks for roots", tools: x, call: "x", want: "file:///", on: on("tool:x", handler(func(c *mcpserver.Conn, _ mcpserver.Request) (string, error) {
			return mcpserver.Text(string(c.Ask("roots/list", `{}`).Result)), nil
		}))},
		{name: "asks the person", tools: x, call: "x", want: "accept", on: on("tool:x", handler(func(c *mcpserver.Conn, _ mcpserver.Request) (string, error) {
			r := c.Ask("elicitation/create", `{"message":"who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`)
			return mcpserver.Text(string(r.Result) + string(r.Error)), nil
		}))},
		{name: "asks what nobody knows", tools: x, call: "x", want: "-32601", on: on("tool:x", handler(func(c *mcpserver.Conn, _ mcpserver.Request) (string, error) {
			return mcpserver.Text(string(c.Ask("weather/now", `{}`).Error)), nil
		}))},
		{name: "pings", tools: x, call: "x", want: "{}", on: on("tool:x", handler(func(c *mcpserver.Conn, _ mcpserver.Request) (string, error) {
			return mcpserver.Text(string(c.Ask("ping", `{}`).Result)), nil
		}))},
		{name: "pages that go round in a circle", on: on("tools/list", circle()), state: Failed},
		{name: "bad tools among good", tools: []string{
			`{"name":"s","inputSchema":{"type":"string"}}`, `{"name":"n","inputSchema":null}`, `{"inputSchema":{"type":"object"}}`,
			`{"name":"r","inputSchema":{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}}`, def("x", "")},
			call: "x", want: "fine", on: on("tool:x", result(mcpserver.Text("fine")))},
	}
	return fs
}

// failing answers tools/list with an error n times.
func failing(n int) handler {
	var mu sync.Mutex
	return func(*mcpserver.Conn, mcpserver.Request) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if n--; n >= 0 {
			return "", &mcpserver.RPCError{Code: -32603, Message: "warming up"}
		}
		return `{"tools":[` + mcpserver.Echo + `]}`, nil
	}
}

func circle() handler {
	return result(`{"tools":[` + mcpserver.Echo + `],"nextCursor":"again"}`)
}

func script(name string) *mcpserver.Script {
	for _, f := range faults() {
		if f.name == name {
			return f.script()
		}
	}
	return scripts(name)
}

func (f fault) script() *mcpserver.Script {
	return &mcpserver.Script{Tools: append([]string{mcpserver.Echo}, f.tools...), Caps: f.caps, On: f.on}
}

// options are those of a session in a test.
func options(t *testing.T) Options {
	t.Helper()
	return Options{
		Version: "0", UserAgent: "cinch/0", Dir: t.TempDir(), Env: os.Environ(),
		HTTP:           func() *http.Client { return &http.Client{Transport: &http.Transport{}} },
		ConnectTimeout: 30 * time.Second, Idle: 30 * time.Second, Pause: 20 * time.Millisecond,
		Ask: func(_ context.Context, q agent.Question) (agent.Answer, error) {
			if q.Kind != agent.AskElicit {
				return agent.Answer{}, agent.ErrNoOne
			}
			return agent.Answer{Payload: json.RawMessage(`{"action":"accept","content":{"name":"Ada"}}`)}, nil
		},
	}
}

// reach is the configuration of a server that runs s by that transport.
func reach(t *testing.T, transport, name string, s *mcpserver.Script) (Config, *mcpserver.Remote) {
	t.Helper()
	c := Config{Name: "srv", Type: transport}
	if transport == "stdio" {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		c.Command, c.Env = exe, map[string]string{childVar: name}
		return c, nil
	}
	r := &mcpserver.Remote{Script: s}
	srv := httptest.NewServer(r)
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	c.URL = srv.URL + map[string]string{"http": "/mcp", "sse": "/sse", "ws": "/ws"}[transport]
	return c, r
}

// start connects to one server and returns the set once that is over.
func start(t *testing.T, o Options, c Config) *Set {
	t.Helper()
	set := New(o)
	t.Cleanup(set.Close)
	set.Add(c)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	set.Wait(ctx)
	return set
}

func call(t *testing.T, set *Set, name, args string) agent.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	r, err := set.Call(ctx, "srv", name, json.RawMessage(args))
	if err != nil {
		t.Fatalf("calling %s: %v", name, err)
	}
	return r
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for _, f := range faults() {
		for _, transport := range []string{"stdio", "http", "sse", "ws"} {
			if f.only != "" && f.only != transport {
				continue
			}
			t.Run(f.name+"/"+transport, func(t *testing.T) {
				t.Parallel()
				f.run(t, transport)
			})
		}
	}
}

func (f fault) run(t *testing.T, transport string) {
	s := script(f.name) // faults with a memory need a fresh one
	c, _ := reach(t, transport, f.name, s)
	o := options(t)
	if strings.HasPrefix(f.name, "never") {
		o.ConnectTimeout = time.Second
	}
	if strings.HasPrefix(f.name, "silent") || strings.HasPrefix(f.name, "progress") {
		o.Idle = 2 * time.Second
	}
	if strings.HasPrefix(f.name, "12 MB") {
		o.Idle = 3 * time.Minute // a race detector on a busy machine
	}
	set := start(t, o, c)
	st := set.Servers()[0]
	want := Connected
	if f.state != "" {
		want = f.state
	}
	if st.State != want {
		t.Fatalf("got state %s (%s), want %s", st.State, st.Err, want)
	}
	if f.state != "" {
		if st.Err == "" {
			t.Error("the failure is not explained")
		}
		return
	}
	if f.call != "" {
		r := call(t, set, f.call, `{}`)
		text := agent.TextOf(r.Blocks)
		if !strings.Contains(text, f.want) || r.IsError != f.failed || r.Unknown != f.unknown {
			t.Errorf("got %.300q failed=%v unknown=%v, want …%s… %v %v", text, r.IsError, r.Unknown, f.want, f.failed, f.unknown)
		}
	}
	if f.dead && transport == "stdio" {
		for end := time.Now().Add(20 * time.Second); set.Servers()[0].State != Failed; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("got state %s after the child ended, want %s", set.Servers()[0].State, Failed)
			}
		}
		return
	}
	if len(set.ToolsOf("srv")) == 0 {
		return
	}
	// The session goes on.
	if got := agent.TextOf(call(t, set, "echo", `{"text":"still here"}`).Blocks); got != "still here" {
		t.Errorf("echo afterwards: got %q", got)
	}
}

// stubborn is a server that ignores every polite way to end, with a child of
// its own that does too.
func stubborn() {
	cmd := exec.Command("/bin/sh", "-c", `trap '' TERM HUP INT; while :; do sleep 1; done`)
	if err := cmd.Start(); err != nil {
		os.Exit(9)
	}
	s := scripts("pids")
	s.On["tool:pids"] = result(mcpserver.Text(fmt.Sprintf("%d %d", os.Getpid(), cmd.Process.Pid)))
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE)
	mcpserver.Stdio(os.Stdin, os.Stdout, s, func() {})
	select {}
}

// owner is a process with a server, which somebody kills.
func owner() {
	exe, _ := os.Executable()
	o := Options{Version: "0", Dir: os.TempDir(), Env: os.Environ(), Guard: &proc.Guard{}}
	set := New(o)
	set.Add(Config{Name: "srv", Type: "stdio", Command: exe, Env: map[string]string{childVar: "stubborn"}})
	set.Wait(context.Background())
	r, err := set.Call(context.Background(), "srv", "pids", nil)
	fmt.Println(agent.TextOf(r.Blocks), err)
	select {}
}

func scripts(name string) *mcpserver.Script {
	return &mcpserver.Script{Tools: []string{mcpserver.Echo, def("pids", "")}, On: map[string]handler{}}
}
