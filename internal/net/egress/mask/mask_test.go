package mask

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
)

func only(names ...string) func(string, uint16) bool {
	return func(host string, _ uint16) bool {
		for _, n := range names {
			if n == host {
				return true
			}
		}
		return false
	}
}

const value = `s3cr"t/+=&value`

func set() *Set {
	return New([]Secret{{"TOKEN", value, only("a.test")}, {"OTHER", "other-value", only("b.test")}, {"EMPTY", "", only("a.test")}, {"NOWHERE", "x", nil}}, false, nil)
}

func TestStandIns(t *testing.T) {
	t.Parallel()
	s := set()
	if a, b := s.StandIn("TOKEN"), set().StandIn("TOKEN"); a == b || len(a) != len(mark)+32 || strings.Contains(a, "s3cr") {
		t.Errorf("%q %q", a, b)
	}
	if again := New([]Secret{{"TOKEN", "new value", only("a.test")}}, false, s); again.StandIn("TOKEN") != s.StandIn("TOKEN") {
		t.Error("a stand-in did not stay")
	}
	if s.StandIn("EMPTY") != "" || (*Set)(nil).StandIn("TOKEN") != "" {
		t.Error("a secret without a value has a stand-in")
	}
	if s.Swap("a.test", 80, false) != nil || s.Swap("c.test", 443, true) != nil || (*Set)(nil).Swap("a.test", 443, true) != nil {
		t.Error("there is an exchange where there must be none")
	}
	if New([]Secret{{"T", "v", only("a.test")}}, true, nil).Swap("a.test", 80, false) == nil {
		t.Error("plain text was allowed")
	}
	if got := fmt.Sprint(s.Names("a.test", 443), s.Names("c.test", 443)); got != "[TOKEN] []" {
		t.Error(got)
	}
}

// The value goes to its host in whatever form, and to no other.
func TestRequest(t *testing.T) {
	t.Parallel()
	s := set()
	stand, other := s.StandIn("TOKEN"), s.StandIn("OTHER")
	basic := func(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }
	for _, tc := range []struct {
		name, host          string
		header, wantHeader  string
		kind, body          string
		wantBody, wantNames string
	}{
		{"bearer", "a.test", "Bearer " + stand, "Bearer " + value, "", "", "", "[TOKEN]"},
		{"another host", "b.test", "Bearer " + stand, "Bearer " + stand, "text/plain", "x" + stand, "x" + stand, "[]"},
		{"another secret", "a.test", "Bearer " + other, "Bearer " + other, "text/plain", other, other, "[]"},
		{"basic", "a.test", basic("user:" + stand), basic("user:" + value), "", "", "", "[TOKEN]"},
		{"basic without", "a.test", basic("user:pass"), basic("user:pass"), "", "", "", "[]"},
		{"not basic", "a.test", "Basic %%%", "Basic %%%", "", "", "", "[]"},
		{"text", "a.test", "", "", "text/plain; charset=utf-8", "a" + stand + "b" + stand, "a" + value + "b" + value, "[]"},
		{"form", "a.test", "", "", "application/x-www-form-urlencoded", "secret=" + stand, "secret=" + url.QueryEscape(value), "[]"},
		{"json", "a.test", "", "", "application/json", `{"s":"` + stand + `"}`, `{"s":"s3cr\"t/+=\u0026value"}`, "[]"},
	} {
		for _, length := range []int64{int64(len(tc.body)), -1} {
			req, err := http.NewRequest("POST", "https://"+tc.host, iotest.OneByteReader(strings.NewReader(tc.body)))
			if err != nil {
				t.Fatal(err)
			}
			req.ContentLength = length
			req.Header.Set("Authorization", tc.header)
			req.Header.Set("Content-Type", tc.kind)
			var used []string
			names := s.Swap(tc.host, 443, true).Request(req, func(n string) { used = append(used, n) })
			got, err := io.ReadAll(req.Body)
			if err != nil || string(got) != tc.wantBody || req.Header.Get("Authorization") != tc.wantHeader || fmt.Sprint(names) != tc.wantNames {
				t.Errorf("%s: body %q, header %q, names %v, %v", tc.name, got, req.Header.Get("Authorization"), names, err)
			}
			if length >= 0 && req.ContentLength != int64(len(got)) {
				t.Errorf("%s: the length is %d, of %d bytes", tc.name, req.ContentLength, len(got))
			}
			if (len(used) > 0) != (tc.body != tc.wantBody) {
				t.Errorf("%s: used %v", tc.name, used)
			}
		}
	}
}

// A long body is not held; one that breaks off stays broken.
func TestLongBody(t *testing.T) {
	t.Parallel()
	s := set()
	long := strings.Repeat("x", maxHeld+1) + s.StandIn("TOKEN")
	req, _ := http.NewRequest("POST", "https://a.test", strings.NewReader(long))
	s.Swap("a.test", 443, true).Request(req, nil)
	got, err := io.ReadAll(req.Body)
	if err != nil || req.ContentLength != -1 || string(got) != strings.Repeat("x", maxHeld+1)+value {
		t.Errorf("%d bytes, length %d, %v", len(got), req.ContentLength, err)
	}
	req, _ = http.NewRequest("POST", "https://a.test", io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(io.ErrUnexpectedEOF)))
	req.ContentLength = 10
	s.Swap("a.test", 443, true).Request(req, nil)
	if got, err := io.ReadAll(req.Body); string(got) != "abc" || err != io.ErrUnexpectedEOF {
		t.Errorf("%q %v", got, err)
	}
}

// A host that says the value back does not tell it to the command.
func TestResponse(t *testing.T) {
	t.Parallel()
	s := set()
	stand := s.StandIn("TOKEN")
	resp := &http.Response{
		StatusCode: 200, ContentLength: 5, Header: http.Header{"Content-Length": {"5"}, "X-Echo": {"Bearer " + value}},
		Body: io.NopCloser(iotest.OneByteReader(strings.NewReader("you sent " + value + ` and "s3cr\"t/+=\u0026value" "s3cr\"t/+=&value".`))),
	}
	s.Swap("a.test", 443, true).Response(resp)
	got, err := io.ReadAll(resp.Body)
	if err != nil || string(got) != "you sent "+stand+` and "`+stand+`" "`+stand+`".` || resp.Header.Get("X-Echo") != "Bearer "+stand || resp.ContentLength != -1 || resp.Header.Get("Content-Length") != "" {
		t.Errorf("%q %v %+v", got, err, resp)
	}
}

// Only what may be the beginning of a text is held back: an event stream goes on.
func TestHoldsBackNoMore(t *testing.T) {
	t.Parallel()
	in, out := io.Pipe()
	defer in.Close()
	r := &Replacer{src: in, pairs: []pair{{[]byte("secret"), []byte("S"), func() {}}}}
	for _, step := range []struct{ write, want string }{{"data: 1\n\n", "data: 1\n\n"}, {"a sec", "a "}, {"ond", "second"}, {"secretsecre", "S"}, {"t.", "S."}} {
		go func() { _, _ = io.WriteString(out, step.write) }()
		b := make([]byte, 100)
		n, err := r.Read(b)
		if err != nil || string(b[:n]) != step.want {
			t.Errorf("after %q: %q %v, want %q", step.write, b[:n], err, step.want)
		}
	}
}

// However a body is cut, it is exchanged as a whole one would be.
func FuzzReplacer(f *testing.F) {
	f.Add("abcabcab", "abc", "x", uint8(1))
	f.Add("aaaa", "aa", "aab", uint8(3))
	f.Fuzz(func(t *testing.T, text, from, to string, step uint8) {
		if from == "" {
			return
		}
		r := &Replacer{src: &stepped{text, int(step)%7 + 1}, pairs: []pair{{[]byte(from), []byte(to), func() {}}}}
		got, err := io.ReadAll(r)
		if want := strings.ReplaceAll(text, from, to); err != nil || string(got) != want {
			t.Errorf("got %q %v, want %q", got, err, want)
		}
	})
}

type stepped struct {
	rest string
	step int
}

func (s *stepped) Read(b []byte) (int, error) {
	if s.rest == "" {
		return 0, io.EOF
	}
	n := copy(b, s.rest[:min(len(s.rest), s.step)])
	s.rest = s.rest[n:]
	return n, nil
}
