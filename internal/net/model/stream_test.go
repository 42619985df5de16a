package model

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// again are the lines of a good second answer to request n.
func again(n int, text string) []string {
	return []string{fmt.Sprintf("begin req_%d", n), "open 0", fmt.Sprintf(`end 0 {"type":"text","text":%q}`, text), "stopped end_turn 5/3", "done"}
}

func wholeAgain(n int, text string) []string {
	l := again(n, text)
	l[0] = fmt.Sprintf("begin whole req_%d", n)
	return l
}

// TestBroken is the table of broken streams: what had come decides how the
// answer is got all the same.
func TestBroken(t *testing.T) {
	t.Parallel()
	overloaded := `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`
	tool := evTool(1, "t1")
	for _, tt := range []struct {
		name  string
		turns []turn
		want  []string
		fault agent.Fault // of the error that ends it, with what
		what  string
		wait  [2]time.Duration // least and most time it takes
	}{
		{name: "whole", turns: []turn{ok("hi")}, want: again(1, "hi")},
		{name: "comments, pings, unknown events", turns: []turn{events(join(":hello", evPing, evStart, `{"type":"new"}`, evText(0, "hi"), ":", evEnd("end_turn"), evStop)...)},
			want: slices.Insert(again(1, "hi"), 1, "unknown new")},
		{name: "error event first", turns: []turn{events(overloaded), ok("hi")},
			want: append([]string{"retrying 1/10 overloaded 529"}, again(2, "hi")...), wait: [2]time.Duration{500 * time.Millisecond, 625 * time.Millisecond}},
		{name: "error event after the start", turns: []turn{events(evStart, overloaded), whole("hi")},
			want: append([]string{"begin req_1", "reset"}, wholeAgain(2, "hi")...)},
		{name: "error event in a text", turns: []turn{events(evStart, evOpen(0, "par"), overloaded), whole("hi")},
			want: append([]string{"begin req_1", "open 0", "reset"}, wholeAgain(2, "hi")...)},
		{name: "error event behind a text", turns: []turn{events(join(evStart, evText(0, "a"), overloaded)...)},
			want: []string{"begin req_1", "open 0", `end 0 {"type":"text","text":"a"}`}, fault: agent.FaultTruncated, what: "Overloaded"},
		{name: "no event", turns: []turn{events(), whole("hi")}, want: wholeAgain(2, "hi")},
		{name: "only pings, then the end", turns: []turn{events(evPing, evPing), whole("hi")}, want: wholeAgain(2, "hi")},
		{name: "cut after the start", turns: []turn{events(evStart, "cut"), ok("hi")},
			want: append([]string{"begin req_1", "reset", "retrying 1/10 unknown 0"}, again(2, "hi")...), wait: [2]time.Duration{500 * time.Millisecond, 625 * time.Millisecond}},
		{name: "end in a text", turns: []turn{events(evStart, evOpen(0, "a")), ok("hi")},
			want: append([]string{"begin req_1", "open 0", "reset", "retrying 1/10 unknown 0"}, again(2, "hi")...), wait: [2]time.Duration{500 * time.Millisecond, 625 * time.Millisecond}},
		{name: "cut in a tool", turns: []turn{events(evStart, evTool(0, "t1")[0], evTool(0, "t1")[1], "cut"), ok("hi")},
			want: append([]string{"begin req_1", "open 0", `chunk 0 "{\"a\""`, "reset", "retrying 1/10 unknown 0"}, again(2, "hi")...), wait: [2]time.Duration{500 * time.Millisecond, 625 * time.Millisecond}},
		{name: "cut in a tool behind a text", turns: []turn{events(join(evStart, evText(0, "a"), tool[0], tool[1], "cut")...)},
			want:  []string{"begin req_1", "open 0", `end 0 {"type":"text","text":"a"}`, "open 1", `chunk 1 "{\"a\""`},
			fault: agent.FaultTruncated, what: "Connection lost"},
		{name: "cut behind a tool", turns: []turn{events(join(evStart, evText(0, "a"), tool, "cut")...)},
			want:  []string{"begin req_1", "open 0", `end 0 {"type":"text","text":"a"}`, "open 1", `chunk 1 "{\"a\""`, `chunk 1 ":1}"`, `end 1 {"type":"tool_use","id":"t1","name":"T","input":{"a":1}}`},
			fault: agent.FaultTruncated, what: "Connection lost"},
		{name: "only message_stop is missing", turns: []turn{events(join(evStart, evText(0, "a"), evEnd("end_turn"))...)},
			want: []string{"begin req_1", "open 0", `end 0 {"type":"text","text":"a"}`, "stopped end_turn 5/3"}, fault: agent.FaultTruncated, what: "Connection lost"},
		{name: "an event that is no JSON", turns: []turn{events(evStart, `{"type":`), whole("hi")}, want: append([]string{"begin req_1", "reset"}, wholeAgain(2, "hi")...)},
		{name: "a web page", turns: []turn{raw(200, "text/html", "<html><title>Sign in</title>"), whole("hi")}, want: wholeAgain(2, "hi")},
		{name: "a web page twice", turns: []turn{raw(200, "text/html", "<html><title>Sign in</title>")}, what: "a web page instead of an answer of the API: Sign in (text/html)"},
		{name: "JSON that is no message", turns: []turn{raw(200, "application/json", `{"ok":1}`)}, what: `the answer is no message: {"ok":1}`},
		{name: "one piece although a stream was asked for", turns: []turn{whole("hi")}, want: wholeAgain(1, "hi")},
		{name: "an error in one piece with status 200", turns: []turn{raw(200, "application/json", `{"type":"error","error":{"type":"api_error","message":"x"}}`), ok("hi")},
			want: append([]string{"retrying 1/10 server_error 500"}, again(2, "hi")...), wait: [2]time.Duration{500 * time.Millisecond, 625 * time.Millisecond}},
		{name: "no content type", turns: []turn{raw(200, "", sseText(join(evStart, evText(0, "hi"), evEnd("end_turn"), evStop)))}, want: again(1, "hi")},
		{name: "plain text, CR LF, no last line end", turns: []turn{raw(200, "text/plain", strings.TrimSpace(strings.ReplaceAll(sseText(join(evStart, evText(0, "hi"), evEnd("end_turn"), evStop)), "\n", "\r\n")))}, want: again(1, "hi")},
		{name: "nothing in one piece either", turns: []turn{events(), events(), ok("hi")},
			want: append([]string{"retrying 1/10 unknown 0"}, again(3, "hi")...), wait: [2]time.Duration{500 * time.Millisecond, 625 * time.Millisecond}},
		{name: "reset before the headers", turns: []turn{func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, ok("hi")},
			want: append([]string{"retrying 1/10 unknown 0"}, again(2, "hi")...), wait: [2]time.Duration{500 * time.Millisecond, 625 * time.Millisecond}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, Options{}, tt.turns, func(t *testing.T, c *Client, s *script) {
				got := collect(t.Context(), c, prompt("x"))
				if d := cmp.Diff(tt.want, got.lines); d != "" {
					t.Errorf("(-want +got):\n%s\n%v", d, got.err)
				}
				checkFault(t, got.err, tt.fault, tt.what)
				if got.took < tt.wait[0] || got.took > tt.wait[1]+linger {
					t.Errorf("took %v, want %v to %v", got.took, tt.wait[0], tt.wait[1])
				}
				for i, a := range s.asked() {
					if w := strings.HasPrefix(strings.Join(tt.want, "\n"), "begin whole req_1"); !w {
						wantStream := "true"
						if i > 0 && strings.Contains(strings.Join(tt.want, "\n"), fmt.Sprintf("begin whole req_%d", i+1)) {
							wantStream = "false"
						}
						if tt.want != nil && len(s.asked()) == 2 && field(t, a.body, "stream") != wantStream {
							t.Errorf("request %d has stream %s, want %s", i+1, field(t, a.body, "stream"), wantStream)
						}
					}
				}
			})
		})
	}
}

func sseText(events []string) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "data: %s\n\n", e)
	}
	return b.String()
}

// checkFault compares the error that ended a stream; what "" means none.
func checkFault(t *testing.T, err error, fault agent.Fault, what string) {
	t.Helper()
	var e *agent.ModelError
	switch {
	case what == "" && err != nil:
		t.Errorf("err = %v", err)
	case what != "" && !errors.As(err, &e):
		t.Errorf("err = %v, want a *ModelError", err)
	case what != "" && (e.Fault != fault || !strings.Contains(e.Message, what)):
		t.Errorf("got fault %d, %q, want %d, …%q…", e.Fault, e.Message, fault, what)
	}
}

// TestEveryCut cuts the stream, and puts an error event, behind every event
// of an answer with a text, two tools and another text: no complete block is
// told twice, and none that was told is taken back.
func TestEveryCut(t *testing.T) {
	t.Parallel()
	all := join(evStart, evText(0, "one"), evTool(1, "t1"), evTool(2, "t2"), evText(3, "two"), evEnd("tool_use"), evStop)
	for _, fault := range []string{"cut", `{"type":"error","error":{"type":"api_error","message":"x"}}`, ""} {
		for n := range len(all) {
			t.Run(fmt.Sprintf("%.5s %d", fault, n), func(t *testing.T) {
				t.Parallel()
				first := slices.Clone(all[:n])
				if fault != "" {
					first = append(first, fault)
				}
				good := raw(200, "application/json", `{"id":"msg_w","type":"message","model":"m","content":[{"type":"text","text":"one"},{"type":"tool_use","id":"t1","name":"T","input":{"a":1}},{"type":"tool_use","id":"t2","name":"T","input":{"a":1}},{"type":"text","text":"two"}],"stop_reason":"tool_use"}`)
				second := func(w http.ResponseWriter, r *http.Request) { good(w, r) }
				bubble(t, Options{}, []turn{events(first...), second}, func(t *testing.T, c *Client, s *script) {
					complete, told, resets := map[int]int{}, 0, 0
					var last error
					for d, err := range c.Stream(t.Context(), prompt("x")) {
						switch d := d.(type) {
						case agent.BlockEnd:
							complete[d.Index]++
							told++
						case agent.Reset:
							resets++
							if told > 0 {
								t.Error("a complete block was taken back")
							}
						}
						if err != nil {
							last = err
						}
					}
					for i, n := range complete {
						if n != 1 {
							t.Errorf("block %d was told %d times", i, n)
						}
					}
					var e *agent.ModelError
					truncated := errors.As(last, &e) && e.Fault == agent.FaultTruncated
					// The text ends at event 3: from there on there is a complete block.
					if want := n >= 3; truncated != want || !truncated && (last != nil || told != 4) {
						t.Errorf("told %d blocks, truncated %v, want %v (%v)", told, truncated, want, last)
					}
				})
			})
		}
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	future := func(d time.Duration) string {
		// Fake time starts at midnight UTC of 2000-01-01.
		return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(d).Format(http.TimeFormat)
	}
	const s = time.Second
	for _, tt := range []struct {
		name  string
		o     Options
		turns []turn
		n     int // requests
		fault agent.Fault
		what  string
		wait  [2]time.Duration
	}{
		{"500 for ever", Options{}, []turn{status(500, "api_error", "x")}, 11, agent.FaultTransient, "x", [2]time.Duration{155 * s, 200 * s}},
		{"500, two retries", Options{MaxRetries: 2}, []turn{status(500, "api_error", "x")}, 3, agent.FaultTransient, "x", [2]time.Duration{1500 * time.Millisecond, 1875 * time.Millisecond}},
		{"500, no retry", Options{MaxRetries: -1}, []turn{status(500, "api_error", "x")}, 1, agent.FaultTransient, "x", [2]time.Duration{}},
		{"a hundred retries are fifteen", Options{MaxRetries: 100, Clocks: Clocks{Total: time.Hour}}, []turn{status(500, "api_error", "x")}, 16, agent.FaultTransient, "x", [2]time.Duration{315 * s, 400 * s}},
		{"total clock", Options{Clocks: Clocks{Total: 10 * s}}, []turn{status(500, "api_error", "x")}, 5, agent.FaultTransient, "given up after", [2]time.Duration{7 * s, 10 * s}},
		{"529 then fine", Options{}, []turn{status(529, "overloaded_error", "x"), ok("hi")}, 2, 0, "", [2]time.Duration{500 * time.Millisecond, 700 * time.Millisecond}},
		{"408, 409, 503", Options{}, []turn{status(408, "", "x"), status(409, "", "x"), status(503, "", "x"), ok("hi")}, 4, 0, "", [2]time.Duration{3500 * time.Millisecond, 4400 * time.Millisecond}},
		{"retry-after in seconds", Options{}, []turn{status(429, "rate_limit_error", "x", "retry-after", "20"), ok("hi")}, 2, 0, "", [2]time.Duration{20 * s, 25 * s}},
		{"retry-after below the backoff", Options{}, []turn{status(429, "rate_limit_error", "x", "retry-after", "0.01"), ok("hi")}, 2, 0, "", [2]time.Duration{500 * time.Millisecond, 650 * time.Millisecond}},
		{"retry-after as a date", Options{}, []turn{status(429, "rate_limit_error", "x", "retry-after", future(30*s)), ok("hi")}, 2, 0, "", [2]time.Duration{30 * s, 37500 * time.Millisecond}},
		{"retry-after as a date of a fast clock", Options{}, []turn{status(429, "rate_limit_error", "x", "date", future(time.Hour), "retry-after", future(time.Hour+30*s)), ok("hi")}, 2, 0, "", [2]time.Duration{30 * s, 37500 * time.Millisecond}},
		{"retry-after that is negative", Options{}, []turn{status(429, "rate_limit_error", "x", "retry-after", "-5"), ok("hi")}, 2, 0, "", [2]time.Duration{500 * time.Millisecond, 650 * time.Millisecond}},
		{"retry-after that is absurd", Options{}, []turn{status(429, "rate_limit_error", "x", "retry-after", "86400")}, 1, agent.FaultTransient, "asks to wait 24h0m", [2]time.Duration{}},
		{"retry-after that is no number", Options{}, []turn{status(429, "rate_limit_error", "x", "retry-after", "soon"), ok("hi")}, 2, 0, "", [2]time.Duration{500 * time.Millisecond, 650 * time.Millisecond}},
		{"retry-after 1 for ever", Options{}, []turn{status(429, "rate_limit_error", "x", "retry-after", "1")}, 11, agent.FaultTransient, "x", [2]time.Duration{155 * s, 200 * s}},
		{"x-should-retry false", Options{}, []turn{status(500, "api_error", "x", "x-should-retry", "false")}, 1, agent.FaultTransient, "x", [2]time.Duration{}},
		{"x-should-retry true", Options{}, []turn{status(418, "", "x", "x-should-retry", "true"), ok("hi")}, 2, 0, "", [2]time.Duration{500 * time.Millisecond, 650 * time.Millisecond}},
		{"401 with a key", Options{Auth: Auth{Key: "k"}}, []turn{status(401, "authentication_error", "invalid x-api-key")}, 1, agent.FaultAuth, "check ANTHROPIC_API_KEY", [2]time.Duration{}},
		{"401 with nothing", Options{}, []turn{status(401, "authentication_error", "no")}, 1, agent.FaultAuth, "no credential was sent", [2]time.Duration{}},
		{"403", Options{}, []turn{status(403, "permission_error", "x")}, 1, agent.FaultAuth, "x", [2]time.Duration{}},
		{"404 model", Options{}, []turn{status(404, "not_found_error", "model: nope")}, 1, agent.FaultModel, "model: nope", [2]time.Duration{}},
		{"404 page", Options{}, []turn{raw(404, "text/html", "<h1>no</h1>")}, 1, agent.FaultOther, "gateway.test has no /v1/messages", [2]time.Duration{}},
		{"402", Options{}, []turn{status(402, "billing_error", "x")}, 1, agent.FaultBilling, "x", [2]time.Duration{}},
		{"no credit", Options{}, []turn{status(400, "invalid_request_error", "Your credit balance is too low")}, 1, agent.FaultBilling, "credit", [2]time.Duration{}},
		{"413", Options{}, []turn{status(413, "request_too_large", "x")}, 1, agent.FaultTooLarge, "x", [2]time.Duration{}},
		{"413 of a proxy", Options{}, []turn{raw(413, "text/html", "<html><title>413 Request Entity Too Large</title></html>")}, 1, agent.FaultTooLarge, "Entity Too Large", [2]time.Duration{}},
		{"prompt too long", Options{}, []turn{status(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")}, 1, agent.FaultTooLong, "too long", [2]time.Duration{}},
		{"prompt too long, in the stream", Options{}, []turn{events(`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}`)}, 1, agent.FaultTooLong, "too long", [2]time.Duration{}},
		{"spend limit", Options{}, []turn{status(429, "rate_limit_error", "you reached your spend limit")}, 1, agent.FaultTransient, "spend limit", [2]time.Duration{}},
		{"redirect to another host", Options{}, []turn{func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "http://evil.test/x", 307) }}, 1, agent.FaultOther, "http://evil.test/x", [2]time.Duration{}},
		{"patient", Options{Patient: true, MaxRetries: 1}, append(slices.Repeat([]turn{status(529, "overloaded_error", "x")}, 40), ok("hi")), 41, 0, "", [2]time.Duration{18 * time.Minute, 25 * time.Minute}},
		{"patient with an absurd retry-after", Options{Patient: true}, []turn{status(429, "rate_limit_error", "x", "retry-after", "86400"), ok("hi")}, 2, 0, "", [2]time.Duration{5 * time.Minute, 6*time.Minute + 15*s}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, tt.o, tt.turns, func(t *testing.T, c *Client, sc *script) {
				got := collect(t.Context(), c, prompt("x"))
				checkFault(t, got.err, tt.fault, tt.what)
				if n := len(sc.asked()); n != tt.n {
					t.Errorf("%d requests, want %d\n%v", n, tt.n, got)
				}
				if got.took < tt.wait[0] || got.took > tt.wait[1]+linger {
					t.Errorf("took %v, want %v to %v", got.took, tt.wait[0], tt.wait[1])
				}
				if e, ok := errors.AsType[*agent.ModelError](got.err); ok && e.Attempts != tt.n {
					t.Errorf("the error counts %d attempts, want %d", e.Attempts, tt.n)
				}
			})
		})
	}
}

// TestClocks: every wait has a clock and is told when it is long.
func TestClocks(t *testing.T) {
	t.Parallel()
	slow := func(d time.Duration, then turn) turn {
		return func(w http.ResponseWriter, r *http.Request) {
			pause(r, d)
			then(w, r)
		}
	}
	short := Options{Clocks: Clocks{FirstByte: 25 * time.Second, Whole: 35 * time.Second, Idle: 15 * time.Second, Events: 40 * time.Second}}
	waits := func(what, limit string, at ...string) (l []string) {
		for _, s := range at {
			l = append(l, fmt.Sprintf("waiting for the %s %s of %s", what, s, limit))
		}
		return l
	}
	pings := func(n int, each string) (l []string) {
		for range n {
			l = append(l, "wait "+each, evPing)
		}
		return l
	}
	for _, tt := range []struct {
		name  string
		o     Options
		turns []turn
		want  []string
		fault agent.Fault
		what  string
	}{
		{"no headers, then fine", short, []turn{slow(time.Hour, ok("no")), ok("hi")},
			join(waits("first byte", "25s", "10s", "20s"), "retrying 1/10 unknown 0", again(2, "hi")), 0, ""},
		{"headers late but in time", short, []turn{slow(24*time.Second, ok("hi"))}, join(waits("first byte", "25s", "10s", "20s"), again(1, "hi")), 0, ""},
		{"headers, then nothing", short, []turn{events("wait 1h"), whole("hi")}, join(waits("next byte", "15s", "10s"), wholeAgain(2, "hi")), 0, ""},
		{"half a text, then nothing", short, []turn{events(evStart, evOpen(0, "a"), "wait 1h"), whole("hi")},
			join("begin req_1", "open 0", waits("next byte", "15s", "10s"), "reset", wholeAgain(2, "hi")), 0, ""},
		{"a text, then nothing", short, []turn{events(join(evStart, evText(0, "a"), "wait 1h")...)},
			join("begin req_1", "open 0", `end 0 {"type":"text","text":"a"}`, waits("next byte", "15s", "10s")), agent.FaultTruncated, "stalled"},
		{"pings and comments are life", short, []turn{events(join(evStart, "wait 9s", evPing, "wait 9s", ":alive", "wait 9s", evPing, "wait 9s", evText(0, "hi"), evEnd("end_turn"), evStop)...)},
			join("begin req_1", waits("next event", "40s", "10s", "20s", "30s"), again(1, "hi")[1:]), 0, ""},
		{"nothing but pings", short, []turn{events(join(evStart, pings(600, "9s"))...), whole("hi")}, join("begin req_1", waits("next event", "40s", "10s", "20s", "30s"), "reset", wholeAgain(2, "hi")), 0, ""},
		{"nothing but comments", short, []turn{events(slices.Repeat([]string{"wait 9s", ":x"}, 400)...), whole("hi")}, join(waits("next event", "40s", "10s", "20s", "30s"), wholeAgain(2, "hi")), 0, ""},
		{"stall in one piece too", short, []turn{events("wait 1h"), slow(time.Hour, ok("no")), ok("hi")},
			join(waits("next byte", "15s", "10s"), waits("first byte", "35s", "10s", "20s", "30s"), "retrying 1/10 unknown 0", again(3, "hi")), 0, ""},
		{"stream only", Options{Clocks: short.Clocks, StreamOnly: true}, []turn{events("wait 1h"), ok("hi")},
			join(waits("next byte", "15s", "10s"), "retrying 1/10 unknown 0", again(2, "hi")), 0, ""},
		{"total clock over stalls", Options{Clocks: Clocks{FirstByte: time.Minute, Total: 90 * time.Second}}, []turn{slow(time.Hour, ok("no"))},
			join(waits("first byte", "1m0s", "10s", "20s", "30s", "40s", "50s"), "retrying 1/10 unknown 0", waits("first byte", "1m0s", "10s", "20s", "30s", "40s", "50s")), agent.FaultTransient, "Request timed out: nothing for 1m0s while waiting for the first byte · given up after 2m"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, tt.o, tt.turns, func(t *testing.T, c *Client, _ *script) {
				got := collect(t.Context(), c, prompt("x"))
				if d := cmp.Diff(tt.want, got.lines); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
				checkFault(t, got.err, tt.fault, tt.what)
			})
		})
	}
}

// A process that was stopped for longer than a clock reads what came
// meanwhile before it gives up.
func TestGraceAfterStop(t *testing.T) {
	t.Parallel()
	bubble(t, Options{}, []turn{ok("x")}, func(t *testing.T, c *Client, _ *script) {
		r := &run{c: c, ctx: t.Context(), yield: func(agent.Delta, error) bool { return true }}
		ch := make(chan int)
		go func() {
			time.Sleep(2 * time.Second)
			ch <- 7
		}()
		told := time.Now().Add(-time.Minute)
		// since lies further back than the limit, as after SIGSTOP.
		v, _, err := wait(r, ch, &told, clock{"next byte", told, 20 * time.Second})
		if v != 7 || err != nil {
			t.Errorf("got %d, %v", v, err)
		}
	})
}

func TestContextEnds(t *testing.T) {
	t.Parallel()
	why := errors.New("the user pressed Esc")
	for name, turns := range map[string][]turn{
		"before the headers": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		"in the stream":      {events(evStart, "wait 1h")},
		"in a retry":         {status(429, "rate_limit_error", "x", "retry-after", "50")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, Options{}, turns, func(t *testing.T, c *Client, _ *script) {
				ctx, cancel := context.WithCancelCause(t.Context())
				stop := time.AfterFunc(3*time.Second, func() { cancel(why) })
				defer stop.Stop()
				got := collect(ctx, c, prompt("x"))
				if !errors.Is(got.err, why) || got.took != 3*time.Second {
					t.Errorf("got %v after %v, want %v after 3s", got.err, got.took, why)
				}
			})
		})
	}
}

func TestConsumerLeaves(t *testing.T) {
	t.Parallel()
	for n := range 7 {
		bubble(t, Options{}, []turn{ok("hi")}, func(t *testing.T, c *Client, _ *script) {
			left := n
			for range c.Stream(t.Context(), prompt("x")) {
				if left == 0 {
					break
				}
				left--
			}
			// The bubble ends only if nothing of the exchange is left.
		})
	}
}

func TestConnectionIsReused(t *testing.T) {
	t.Parallel()
	bubble(t, Options{}, []turn{ok("a"), status(500, "api_error", "x"), ok("b"), whole("c")}, func(t *testing.T, c *Client, _ *script) {
		var reused []string
		for range 3 {
			for _, x := range collect(t.Context(), c, prompt("x")).cross {
				if x.Boundary == "connect" {
					reused = append(reused, x.Detail["reused"])
				}
			}
		}
		if want := []string{"", "true", "true", "true"}; !slices.Equal(reused, want) {
			t.Errorf("reused = %q, want %q", reused, want)
		}
	})
}

func TestFallbackModel(t *testing.T) {
	t.Parallel()
	over := status(529, "overloaded_error", "Overloaded")
	for _, tt := range []struct {
		name   string
		o      Options
		turns  []turn
		want   []string
		models []string
	}{
		{"third overload", Options{Fallback: []string{"opus", "sonnet"}}, []turn{over, over, over, ok("hi")},
			join("retrying 1/10 overloaded 529", "retrying 2/10 overloaded 529", "switched claude-opus-5-5 claude-sonnet-5-5 overloaded", again(4, "hi")),
			[]string{"claude-opus-5-5", "claude-opus-5-5", "claude-opus-5-5", "claude-sonnet-5-5"}},
		{"overloads that are not in a row", Options{Fallback: []string{"sonnet"}}, []turn{over, over, status(500, "api_error", "x"), over, ok("hi")},
			join("retrying 1/10 overloaded 529", "retrying 2/10 overloaded 529", "retrying 3/10 server_error 500", "retrying 4/10 overloaded 529", again(5, "hi")), nil},
		{"chain, with a budget for each", Options{Fallback: []string{"sonnet", "haiku"}, MaxRetries: 1}, []turn{over, over, over, over, ok("hi")},
			join("retrying 1/1 overloaded 529", "switched claude-opus-5-5 claude-sonnet-5-5 overloaded", "retrying 1/1 overloaded 529", "switched claude-sonnet-5-5 claude-haiku-5-5 overloaded", again(5, "hi")), nil},
		{"unknown model", Options{Fallback: []string{"sonnet"}}, []turn{status(404, "not_found_error", "model: x"), ok("hi")},
			join("switched claude-opus-5-5 claude-sonnet-5-5 model_not_found", again(2, "hi")), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, tt.o, tt.turns, func(t *testing.T, c *Client, s *script) {
				got := collect(t.Context(), c, prompt("x"))
				if d := cmp.Diff(tt.want, got.lines); d != "" || got.err != nil {
					t.Errorf("%v (-want +got):\n%s", got.err, d)
				}
				var models []string
				for _, a := range s.asked() {
					models = append(models, strings.Trim(field(t, a.body, "model"), `"`))
				}
				if tt.models != nil && !slices.Equal(models, tt.models) {
					t.Errorf("models %q, want %q", models, tt.models)
				}
			})
		})
	}
	// Not on what another model cannot help with.
	for _, bad := range []turn{status(401, "authentication_error", "x"), status(402, "billing_error", "x"), status(413, "request_too_large", "x"), status(400, "invalid_request_error", "messages.0: x")} {
		bubble(t, Options{Fallback: []string{"sonnet"}}, []turn{bad}, func(t *testing.T, c *Client, s *script) {
			if got := collect(t.Context(), c, prompt("x")); got.err == nil || len(s.asked()) != 1 {
				t.Errorf("%v after %d requests:\n%v", got.err, len(s.asked()), got)
			}
		})
	}
}

func TestTrace(t *testing.T) {
	t.Parallel()
	bubble(t, Options{}, []turn{status(529, "overloaded_error", "busy"), ok("hi")}, func(t *testing.T, c *Client, _ *script) {
		req := prompt("x")
		req.Purpose = "main"
		got := collect(t.Context(), c, req)
		var lines []string
		for _, x := range got.cross {
			lines = append(lines, fmt.Sprintf("%s %s %s %d %s %s%s", x.ID, x.Name, x.Boundary, x.Attempt, x.Outcome, x.Detail["status"], x.Detail["request_id"]))
			if x.Boundary != "retry" && x.Detail["gateway"] != "gateway.test:80" {
				t.Errorf("%s has gateway %q", x.Boundary, x.Detail["gateway"])
			}
			if x.End.Before(x.Start) {
				t.Errorf("%s ends before it starts", x.Boundary)
			}
		}
		want := []string{
			"model/1 main connect 1 ok ", "model/1 main request 1 ok ", "model/1 main first byte 1 ok 529req_1", "model/2 main retry 1 ok 529",
			"model/3 main connect 2 ok ", "model/3 main request 2 ok ", "model/3 main first byte 2 ok 200req_2",
		}
		if d := cmp.Diff(want, lines); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}
