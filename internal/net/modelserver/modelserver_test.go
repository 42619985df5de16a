package modelserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serve starts a server that plays scripts, and returns it with its address.
func serve(t *testing.T, o Options, scripts ...string) (*Server, string) {
	t.Helper()
	var parsed []Script
	for _, src := range scripts {
		s, err := ParseScript(src)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, s)
	}
	if o.Brain == nil {
		o.Brain = Play(parsed...)
	}
	s := New(o)
	url, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, url
}

const hello = `{"model":"m","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"hello there"}]}`

// post sends body and returns the whole answer, what ended it, and the response.
func post(t *testing.T, url, body string) (string, error, *http.Response) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", url+"/v1/messages?beta=true", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("anthropic-version", "2023-06-01")
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Do(req)
	if err != nil {
		return "", err, nil
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err, resp
}

func TestStream(t *testing.T) {
	t.Parallel()
	const begin = `event: message_start
data: {"type":"message_start","message":{"id":"msg_000001","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"output_tokens":1,"service_tier":"standard"}}}

`
	end := func(stop string, out string) string {
		return `event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"` + stop + `","stop_sequence":null},"usage":{"input_tokens":9,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"output_tokens":` + out + `,"service_tier":"standard"}}

event: message_stop
data: {"type":"message_stop"}

`
	}
	tests := []struct {
		name, script, want string
		err                error
	}{
		{"text", "piece 5\ntext häll<o>\n", begin + `event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"häll<"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"o>"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

` + end("end_turn", "2"), nil},
		{"tool", "thinking sig=S hm\ntool t%n Bash {\"a\":1}", begin + `event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"S"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t0","name":"Bash","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

` + end("tool_use", "3"), nil},
		{"odd things", "headers\ncomment hi\nping\nunknown\nstart\nstop max_tokens", ": hi\nevent: ping\ndata: {\"type\":\"ping\"}\n\nevent: unheard_of\ndata: {\"type\":\"unheard_of\",\"value\":1}\n\n" + begin + end("max_tokens", "1"), nil},
		{"cut in a block", "open rawtool t Bash \"{\\\"a\" \"b\"\ncut", begin + `event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"Bash","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"b"}}

`, syscall.ECONNRESET},
		{"cut first", "cut", "", syscall.ECONNRESET},
		{"drop", "start\ndrop", begin, io.ErrUnexpectedEOF},
		{"eof", "start\neof", begin, nil},
		{"eof first", "eof", "", nil},
		{"error first", "error overloaded_error busy", "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n", nil},
		{"small chunks, other line ends", "chunk 1\neol crlf\nstart\neof", strings.ReplaceAll(begin, "\n", "\r\n"), nil},
		{"gzip", "gzip\nstart\neof", begin, nil},
		{"block", "block {\"type\":\"x\"}\neof", begin + "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"x\"}}\n\nevent: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, url := serve(t, Options{}, tt.script)
			got, err, _ := post(t, url, hello)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("got %v\n%s\nwant %v\n%s", err, got, tt.err, tt.want)
			}
			if v := s.Violations(); len(v) > 0 {
				t.Errorf("violations: %q", v)
			}
		})
	}
}

func TestWhole(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Options{}, "text hi\ntool t1 Bash {}", "error overloaded_error")
	body := strings.Replace(hello, `"stream":true,`, "", 1)
	got, err, resp := post(t, url, body)
	want := `{"id":"msg_000001","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hi"},{"type":"tool_use","id":"t1","name":"Bash","input":{}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":9,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"output_tokens":1,"service_tier":"standard"}}`
	if got != want || err != nil || resp.Header.Get("content-type") != "application/json" {
		t.Errorf("got  %s %v\nwant %s", got, err, want)
	}
	got, _, resp = post(t, url, body)
	if resp.StatusCode != 529 || !strings.Contains(got, `"type":"overloaded_error"`) {
		t.Errorf("got %d %s, want 529 overloaded_error", resp.StatusCode, got)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Options{}, "header x-should-retry false\nstatus 429 7", "body <html>\nheader content-type text/html\nstatus 502", "status 400 invalid_request_error messages.0: bad")
	_, _, resp := post(t, url, hello)
	if resp.StatusCode != 429 || resp.Header.Get("retry-after") != "7" || resp.Header.Get("x-should-retry") != "false" || resp.Header.Get("request-id") != "req_000001" {
		t.Errorf("got %d %v", resp.StatusCode, resp.Header)
	}
	if got, _, resp := post(t, url, hello); resp.StatusCode != 502 || got != "<html>" || resp.Header.Get("content-type") != "text/html" {
		t.Errorf("got %d %s %v", resp.StatusCode, got, resp.Header)
	}
	got, _, resp := post(t, url, hello)
	if want := `{"type":"error","error":{"type":"invalid_request_error","message":"messages.0: bad"},"request_id":"req_000003"}`; resp.StatusCode != 400 || got != want {
		t.Errorf("got  %d %s\nwant 400 %s", resp.StatusCode, got, want)
	}
}

func TestMatching(t *testing.T) {
	t.Parallel()
	s, url := serve(t, Options{}, "when last nowhere\ntext wrong", "when last there\nwhen not model other\ntext right", "repeat 2\nbody again\nstatus 500")
	var got []string
	for range 4 {
		b, _, resp := post(t, url, hello)
		got = append(got, resp.Status+" "+b[max(0, len(b)-5):])
	}
	want := []string{"200 OK p\"}\n\n", "500 Internal Server Error again", "500 Internal Server Error again", "400 Bad Request 004\"}"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if v := s.Violations(); !slices.Equal(v, []string{"request 3: script: no script is left for request 3"}) {
		t.Errorf("got %q", v)
	}
}

func TestHangEndsWithTheClient(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"hang", "headers-only", "start\nhang", "sleep 1h"} {
		s, url := serve(t, Options{}, script)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		req, _ := http.NewRequestWithContext(ctx, "POST", url+"/v1/messages", strings.NewReader(hello))
		req.Header.Set("anthropic-version", "2023-06-01")
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v, want a timeout", script, err)
		}
		cancel()
		for deadline := time.Now().Add(10 * time.Second); !s.Exchanges()[0].Left; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: the server did not see the client leave", script)
			}
		}
	}
}

func TestPatienceEnds(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Options{Patience: 30 * time.Millisecond}, "start\nhang")
	if _, err, _ := post(t, url, hello); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want an unexpected EOF", err)
	}
}

func TestCloseEndsHangs(t *testing.T) {
	t.Parallel()
	s, url := serve(t, Options{}, "start\nhang")
	done := make(chan error)
	go func() {
		_, err, _ := post(t, url, hello)
		done <- err
	}()
	for len(s.Exchanges()) == 0 || s.Exchanges()[0].Status == 0 {
		time.Sleep(time.Millisecond)
	}
	s.Close()
	if err := <-done; err == nil {
		t.Error("the stream ended well")
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for f, want := range map[Fault]error{FaultCut: syscall.ECONNRESET, FaultDrop: io.ErrUnexpectedEOF, FaultEOF: nil, FaultError: nil} {
		s, url := serve(t, Options{Fault: func(request, event int) Fault {
			if request == 0 && event == 2 {
				return f
			}
			return NoFault
		}}, "repeat\ntext abc")
		got, err, _ := post(t, url, hello)
		n := strings.Count(got, "event: ")
		if !errors.Is(err, want) || f == FaultError != (n == 3) || f != FaultError && n != 2 {
			t.Errorf("fault %d: got %v after %d events\n%s", f, err, n, got)
		}
		if got, err, _ := post(t, url, hello); err != nil || !strings.HasSuffix(got, "message_stop\"}\n\n") {
			t.Errorf("fault %d: the next request: %v %s", f, err, got)
		}
		if got := len(s.Exchanges()[1].Events); got != 6 {
			t.Errorf("got %d events, want 6", got)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Options{Window: 5, MaxBody: 200}, "text hi")
	if got, _, resp := post(t, url, hello); resp.StatusCode != 400 || !strings.Contains(got, "prompt is too long: 9 tokens > 5 maximum") {
		t.Errorf("got %d %s", resp.StatusCode, got)
	}
	big := strings.Replace(hello, "hello", strings.Repeat("x", 300), 1)
	if got, _, resp := post(t, url, big); resp.StatusCode != 413 || !strings.Contains(got, "request_too_large") {
		t.Errorf("got %d %s", resp.StatusCode, got)
	}
}

func TestOtherPaths(t *testing.T) {
	t.Parallel()
	s, url := serve(t, Options{})
	resp, err := http.Head(url)
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("HEAD: got %v %v, want 200", resp, err)
	}
	resp, err = http.Get(url + "/v1/nothing")
	if err != nil || resp.StatusCode != 404 {
		t.Errorf("GET: got %v %v, want 404", resp, err)
	}
	resp.Body.Close()
	req, _ := http.NewRequest("POST", url+"/v1/messages/count_tokens", bytes.NewReader([]byte(`{"model":"m","messages":[{"role":"user","content":"hello there"}]}`)))
	req.Header.Set("anthropic-version", "2023-06-01")
	resp, err = http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); string(b) != `{"input_tokens":9}` {
		t.Errorf("got %s", b)
	}
	if len(s.Requests()) != 0 {
		t.Error("other requests count as messages")
	}
}
