package model

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/test/pipenet"
)

// A turn is how the scripted server answers one request.
type turn func(w http.ResponseWriter, r *http.Request)

// A script answers the n'th request with its n'th turn, the last one for
// ever, and keeps what was asked.
type script struct {
	turns []turn

	mu   sync.Mutex
	reqs []asked
}

type asked struct {
	path   string
	header http.Header
	body   string
	at     time.Time
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	n := len(s.reqs)
	s.reqs = append(s.reqs, asked{r.URL.RequestURI(), r.Header, string(body), time.Now()})
	s.mu.Unlock()
	w.Header().Set("request-id", fmt.Sprintf("req_%d", n+1))
	everything := r.URL.Path + " " + r.Header.Get("Anthropic-Beta") + " " + string(body)
	s.turns[min(n, len(s.turns)-1)](w, r.WithContext(context.WithValue(r.Context(), bodyKey{}, everything)))
}

// bodyKey is where turns find the path, the betas and the body of a request.
type bodyKey struct{}

func (s *script) asked() []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]asked(nil), s.reqs...)
}

// events sends events as a stream; "cut" drops the connection, "wait D"
// waits, anything else is the data of an event.
func events(list ...string) turn {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("content-type", "text/event-stream")
		w.WriteHeader(200)
		rc := http.NewResponseController(w)
		_ = rc.Flush()
		for _, e := range list {
			if d, ok := strings.CutPrefix(e, "wait "); ok {
				p, _ := time.ParseDuration(d)
				pause(r, p)
				continue
			}
			if e == "cut" {
				panic(http.ErrAbortHandler)
			}
			if strings.HasPrefix(e, ":") {
				fmt.Fprintf(w, "%s\n", e)
			} else {
				fmt.Fprintf(w, "event: x\ndata: %s\n\n", e)
			}
			_ = rc.Flush()
		}
	}
}

// pause waits, but not longer than the client does.
func pause(r *http.Request, d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.Context().Done():
	}
}

func status(code int, typ, message string, header ...string) turn {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("content-type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"type":"error","error":{"type":%q,"message":%q}}`, typ, message)
	}
}

func raw(code int, contentType, body string) turn {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		if contentType != "" {
			w.Header().Set("content-type", contentType)
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

const (
	evStart = `{"type":"message_start","message":{"id":"msg_1","model":"m","usage":{"input_tokens":5,"output_tokens":1}}}`
	evPing  = `{"type":"ping"}`
	evStop  = `{"type":"message_stop"}`
)

func evText(i int, text string) []string {
	return []string{evOpen(i, text), fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i)}
}

func evOpen(i int, text string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":%q}}`, i, text)
}

func evTool(i int, id string) []string {
	return []string{
		fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":%q,"name":"T","input":{}}}`, i, id),
		fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":"{\"a\""}}`, i),
		fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":":1}"}}`, i),
		fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i),
	}
}

func evEnd(reason string) string {
	return fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":3}}`, reason)
}

func join(lists ...any) (out []string) {
	for _, l := range lists {
		switch l := l.(type) {
		case string:
			out = append(out, l)
		case []string:
			out = append(out, l...)
		}
	}
	return out
}

// ok is a whole answer.
func ok(text string) turn {
	return events(join(evStart, evText(0, text), evEnd("end_turn"), evStop)...)
}

// whole is an answer in one piece.
func whole(text string) turn {
	return raw(200, "application/json", fmt.Sprintf(`{"id":"msg_w","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":%q}],"stop_reason":"end_turn","usage":{"input_tokens":5,"output_tokens":3}}`, text))
}

// A result is what a call of Stream yielded, in short.
type result struct {
	lines []string // the deltas but for Crossed
	cross []agent.Crossed
	err   error
	took  time.Duration
}

func (r result) String() string { return strings.Join(r.lines, "\n") }

// line shows a delta; times that depend on chance are left out.
func line(d agent.Delta) string {
	switch d := d.(type) {
	case agent.Begin:
		if d.Whole {
			return "begin whole " + d.RequestID
		}
		return "begin " + d.RequestID
	case agent.BlockBegin:
		return fmt.Sprintf("open %d", d.Index)
	case agent.Chunk:
		return fmt.Sprintf("chunk %d %q", d.Index, d.Text)
	case agent.BlockEnd:
		return fmt.Sprintf("end %d %s", d.Index, agent.AppendBlock(nil, d.Block))
	case agent.Stopped:
		return fmt.Sprintf("stopped %s %d/%d", d.Stop, d.Usage.In, d.Usage.Out)
	case agent.Done:
		return "done"
	case agent.Reset:
		return "reset"
	case agent.Retrying:
		return fmt.Sprintf("retrying %d/%d %s %d", d.Attempt, d.Max, d.Kind, d.Status)
	case agent.Switched:
		return fmt.Sprintf("switched %s %s %s", d.From, d.To, d.Reason)
	case agent.Waiting:
		return fmt.Sprintf("waiting for the %s %v of %v", d.For, d.Since, d.Limit)
	case agent.Unknown:
		return "unknown " + d.Type
	}
	return fmt.Sprintf("%T", d)
}

func collect(ctx context.Context, c *Client, req *agent.Request) (r result) {
	start := time.Now()
	for d, err := range c.Stream(ctx, req) {
		if err != nil {
			if r.err != nil {
				r.lines = append(r.lines, "a second error")
			}
			r.err = err
			continue
		}
		if x, ok := d.(agent.Crossed); ok {
			r.cross = append(r.cross, x)
			continue
		}
		r.lines = append(r.lines, line(d))
	}
	r.took = time.Since(start)
	return r
}

// bubble runs f with a client of a scripted server, in fake time.
func bubble(t *testing.T, o Options, turns []turn, f func(t *testing.T, c *Client, s *script)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := pipenet.Listen()
		s := &script{turns: turns}
		srv := &http.Server{Handler: s}
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = srv.Serve(l)
		}()
		hc := l.Client()
		if o.HTTP == nil {
			o.HTTP = hc
		}
		if o.BaseURL == "" {
			o.BaseURL = "http://gateway.test"
		}
		c, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		f(t, c, s)
		hc.CloseIdleConnections()
		_ = srv.Close()
		<-served
	})
}

func prompt(text string) *agent.Request {
	return &agent.Request{Model: "opus", Messages: []agent.Message{{Role: agent.User, Blocks: []agent.Block{&agent.Text{Text: text}}}}}
}

// field returns one top-level field of a request body.
func field(t *testing.T, body, name string) string {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Fatalf("the body is no JSON: %v\n%s", err, body)
	}
	return string(m[name])
}
