package recording

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/net/modelserver"
)

const hello = `{"model":"m","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"hello there"}]}`

// serve starts a model that plays scripts, and returns its address.
func serve(t *testing.T, scripts ...string) string {
	t.Helper()
	var parsed []modelserver.Script
	for _, src := range scripts {
		s, err := modelserver.ParseScript(src)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, s)
	}
	s := modelserver.New(modelserver.Options{Brain: modelserver.Play(parsed...)})
	url, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return url
}

func replay(t *testing.T, rec *Recording) string {
	t.Helper()
	url, stop, err := rec.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return url
}

// ask sends bodies one after the other and returns what came back.
func ask(t *testing.T, rt http.RoundTripper, url string, bodies []string) (got []string) {
	t.Helper()
	for _, b := range bodies {
		req, err := http.NewRequestWithContext(t.Context(), "POST", url+"/v1/messages?beta=true", strings.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("anthropic-version", "2023-06-01")
		req.Header.Set("x-api-key", "secret")
		resp, err := rt.RoundTrip(req)
		if err != nil {
			got = append(got, "no answer")
			continue
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		line := resp.Status + " " + resp.Header.Get("request-id") + " " + resp.Header.Get("retry-after") + " " + string(text)
		if err != nil {
			line += "broken"
		}
		got = append(got, line)
	}
	return got
}

func TestRecordAndReplay(t *testing.T) {
	t.Parallel()
	bodies := []string{
		hello,
		strings.Replace(hello, "hello there", "again", 1),
		strings.Replace(hello, "hello there", "and again", 1),
		`{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"done"}]}]}`,
	}
	url := serve(t, "text one\ntool t1 Bash {}", "header retry-after 3\nstatus 529", "text half\ncut", "cut")
	var file bytes.Buffer
	rt := &http.Transport{}
	t.Cleanup(rt.CloseIdleConnections)
	c, err := NewRecorder(&file, rt, map[string]string{"prompt": "hi"})
	if err != nil {
		t.Fatal(err)
	}
	first := ask(t, c, url, bodies)
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
	if strings.Contains(file.String(), "secret") {
		t.Error("the recording holds a credential")
	}

	rec, err := Read(bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if string(rec.Session) != `{"prompt":"hi"}` || rec.Len() != 4 || rec.Torn {
		t.Errorf("got %s, %d exchanges, torn %t", rec.Session, rec.Len(), rec.Torn)
	}
	again := replay(t, rec)
	if second := ask(t, rt, again, bodies); !slices.Equal(second, first) {
		t.Errorf("got  %q\nwant %q", second, first)
	}
	if d := rec.Drift(); len(d) > 0 {
		t.Errorf("drift %q", d)
	}
	if raw, ok := rec.Result("t1"); !ok || string(raw) != `{"type":"tool_result","tool_use_id":"t1","content":"done"}` {
		t.Errorf("got %s, %t", raw, ok)
	}
	if got := ask(t, rt, again, bodies[:1]); !strings.HasPrefix(got[0], "400 ") || !strings.Contains(got[0], "holds no answer") {
		t.Errorf("got %q, want a refusal", got)
	}
}

// A request that differs in what does not matter finds its answer, and is told.
func TestReplayDrift(t *testing.T) {
	t.Parallel()
	url := serve(t, "text one", "text two")
	var file bytes.Buffer
	rt := &http.Transport{}
	t.Cleanup(rt.CloseIdleConnections)
	c, err := NewRecorder(&file, rt, nil)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(hello, "hello there", "other", 1)
	first := ask(t, c, url, []string{hello, other})
	rec, err := Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	again := replay(t, rec)
	second := ask(t, rt, again, []string{strings.Replace(other, `"max_tokens":100`, `"max_tokens":99`, 1), hello})
	if second[0] != first[1] || second[1] != first[0] {
		t.Errorf("got  %q\nwant %q, turned round", second, first)
	}
	if d := rec.Drift(); !slices.Equal(d, []string{"request 1: POST /v1/messages?beta=true differs from the recorded one"}) {
		t.Errorf("got %q", d)
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	const head = `{"cinch_recording":1,"session":null}` + "\n"
	const line = `{"n":0,"request":{"method":"POST","path":"/","digest":"d"},"response":{"status":200}}` + "\n"
	tests := []struct {
		name, in string
		n        int
		torn     bool
		err      string
	}{
		{"whole", head + line, 1, false, ""},
		{"torn", head + line + `{"n":1,`, 1, true, ""},
		{"empty", "", 0, false, "the file is empty"},
		{"another file", `{"type":"user"}` + "\n", 0, false, "not a recording"},
		{"newer", `{"cinch_recording":9}` + "\n", 0, false, "format 9"},
		{"broken line", head + "nonsense\n" + line, 0, false, "line 2"},
	}
	for _, tt := range tests {
		rec, err := Read(strings.NewReader(tt.in))
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: got %v, want %s", tt.name, err, tt.err)
			}
			continue
		}
		if err != nil || rec.Len() != tt.n || rec.Torn != tt.torn {
			t.Errorf("%s: got %+v, %v", tt.name, rec, err)
		}
	}
}

type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, syscall.ENOSPC
	}
	return len(p), nil
}

// A full disk ends the recording, not the session.
func TestRecorderOnFullDisk(t *testing.T) {
	t.Parallel()
	url := serve(t, "repeat\ntext one")
	rt := &http.Transport{}
	t.Cleanup(rt.CloseIdleConnections)
	c, err := NewRecorder(&full{1}, rt, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range ask(t, c, url, []string{hello, hello}) {
		if !strings.HasPrefix(got, "200 ") {
			t.Errorf("got %q", got)
		}
	}
	if !errors.Is(c.Err(), syscall.ENOSPC) {
		t.Errorf("got %v", c.Err())
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"cinch_recording":1,"session":null}` + "\n" + `{"n":0,"request":{"method":"POST","path":"/","digest":"d","results":[{"tool_use_id":"t"}]},"response":{"status":200,"base64":"/w=="}}` + "\n"))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		rec, err := Read(bytes.NewReader(b))
		if (rec == nil) == (err == nil) {
			t.Fatal("want a recording or an error")
		}
		if rec != nil {
			rec.Result("t")
		}
	})
}
